#include "planner/folds.h"

#include <stdlib.h>

#define SAMPLE_LEAST 8u /* ranks */
#define PAIRS_LEAST  4u /* clusters with two hosts each, */
#define PAIRS_MOST   8u /* and so many where there are twice as many */
#define KEPT_MOST    4u /* more than TB_FOLD_RANKS, where the rank to be kept is beside those that stay anyhow */

/* Takes over the hold of a shape. */
static int fold_add(struct tb_folds *f, const struct tb_group_shape *shape, uint32_t root)
{
    struct tb_fold_group *fold = &f->list[f->count];
    TB_ASSERT(f->count < TB_FOLDS_LIMIT);
    int error = tb_ways_open(&fold->ways, shape->table, shape);
    if (error != TB_OK) {
        tb_group_shape_release(shape);
        return error;
    }
    fold->shape = shape;
    fold->root = root;
    f->count++;
    return TB_OK;
}

static uint32_t cluster_of(const struct tb_group_shape *s, uint32_t rank)
{
    return s->places[s->hosts[tb_group_shape_host(s, rank)].place].cluster;
}

/* Where a rank is among those of a fold. */
static uint32_t rank_find(const uint32_t *ranks, uint32_t count, uint32_t rank)
{
    uint32_t low = 0;
    while (count > 1) {
        uint32_t half = count / 2;
        low = ranks[low + half] <= rank ? low + half : low;
        count -= half;
    }
    return low;
}

/* Samples of the smallest fold, which is too large to begin with: hosts that are spread over it. Of a root somebody on
 * a host like its own takes the place, if there is one. */
static int samples_make(struct tb_folds *f, const struct tb_group_shape *smallest, uint32_t root)
{
    uint32_t kind = tb_group_shape_kind(smallest, root);
    int error = TB_OK;
    for (uint32_t size = SAMPLE_LEAST; size <= TB_FOLD_RANKS && error == TB_OK; size *= 2) {
        const struct tb_group_shape *sample;
        uint32_t at = 0;
        error = tb_group_shape_sample(&sample, smallest, size, f->ranks);
        if (error != TB_OK)
            return error;
        for (uint32_t i = size; i-- > 0;)
            if (tb_group_shape_kind(smallest, f->ranks[i]) == kind)
                at = i;
        error = fold_add(f, sample, at);
    }
    return error;
}

/* Two hosts of so many of the clusters, spread over them, the kept rank's among them. */
static int pairs_make(struct tb_folds *f, const struct tb_group_shape *pairs, uint32_t root, uint32_t clusters)
{
    const uint32_t all = pairs->cluster_count, kept = cluster_of(pairs, root);
    const struct tb_group_shape *sample;
    uint32_t ranks[TB_FOLD_RANKS], count = 0, at = 0;
    for (uint32_t rank = 0; rank < pairs->size; rank++) {
        uint32_t away = (cluster_of(pairs, rank) + all - kept) % all, next = (away * clusters + all - 1) / all;
        if (next >= clusters || next * all / clusters != away)
            continue;
        if (count == TB_FOLD_RANKS)
            return TB_OK;
        at = rank == root ? count : at;
        ranks[count++] = rank;
    }
    int error = tb_group_shape_part(&sample, pairs, ranks, count);
    return error == TB_OK ? fold_add(f, sample, at) : error;
}

/* Where clusters are many and unlike, and everyone sends everyone something: few of them first, and so few hosts that
 * each candidate can be simulated. */
static int pairs_begin(struct tb_folds *f)
{
    const struct tb_group_shape *pairs;
    int error = tb_group_shape_fold(&pairs, f->shape, 1, 2, f->keep, f->ranks);
    if (error != TB_OK)
        return error;
    uint32_t root = rank_find(f->ranks, pairs->size, f->keep);
    for (uint32_t clusters = PAIRS_LEAST; clusters <= PAIRS_MOST && error == TB_OK; clusters *= 2)
        if (2 * clusters <= pairs->cluster_count)
            error = pairs_make(f, pairs, root, clusters);
    tb_group_shape_release(pairs);
    return error;
}

int tb_folds_grow(struct tb_folds *f)
{
    TB_ASSERT(!tb_folds_are_whole(f));
    if (f->pairs) {
        f->pairs = false;
        int error = pairs_begin(f);
        if (error != TB_OK || f->count > 0)
            return error;
    }
    uint32_t before = f->count > 0 ? f->list[f->count - 1].shape->size : 0;
    for (;;) {
        const struct tb_group_shape *shape;
        f->most = f->most == 0 ? 1 : 2 * f->most;
        int error = tb_group_shape_fold(&shape, f->shape, f->places ? UINT32_MAX : f->most, f->most, f->keep, f->ranks);
        if (error != TB_OK)
            return error;
        if (f->places && f->count == 0 && shape->size > TB_FOLD_RANKS + KEPT_MOST) {
            tb_group_shape_release(shape);
            f->places = false;
            f->most = 0;
            continue;
        }
        if (shape->size <= before && shape->size < f->shape->size) {
            tb_group_shape_release(shape);
            continue;
        }
        uint32_t root = rank_find(f->ranks, shape->size, f->keep);
        if (f->count == 0 && shape->size > TB_FOLD_RANKS && !f->places)
            error = samples_make(f, shape, root);
        if (error == TB_OK)
            return fold_add(f, shape, root);
        tb_group_shape_release(shape);
        return error;
    }
}

int tb_folds_open(struct tb_folds *folds, const struct tb_group_shape *shape, uint32_t keep, bool places)
{
    *folds = (struct tb_folds){.shape = shape, .keep = keep, .places = places};
    TB_ASSERT(shape->table != NULL);
    folds->ranks = malloc(shape->size * sizeof *folds->ranks);
    return folds->ranks != NULL ? TB_OK : tb_error(TB_ERR_MEMORY, "no memory to fold a group of %u ranks", shape->size);
}

void tb_folds_close(struct tb_folds *folds)
{
    for (uint32_t i = 0; i < folds->count; i++) {
        tb_ways_close(&folds->list[i].ways);
        tb_group_shape_release(folds->list[i].shape);
    }
    free(folds->ranks);
    folds->ranks = NULL;
    folds->count = 0;
}
