#include "planner/plan_follow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/plan_text.h"

struct tb_followed {
    struct tb_plan_image image;
    struct tb_plan_seat seats[]; /* of the plan's hosts, in its order */
};

/* ---- whose plan it is -------------------------------------------------------------------------------------------- */

static int keys_compare(const void *a, const void *b)
{
    uint64_t x = ((const struct tb_plan_seat *)a)->key, y = ((const struct tb_plan_seat *)b)->key;
    return x < y ? -1 : x > y;
}

/* The seat of each host of the plan; `sorted` by keys. False: one has none, or two are meant by one key. */
static bool seats_find(struct tb_followed *f, const struct tb_plan_seat *sorted, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++)
        if (sorted[i].key == sorted[i - 1].key)
            return false;
    for (uint32_t i = 0; i < count; i++) {
        struct tb_plan_seat wanted = {.key = f->image.hosts[i]};
        const struct tb_plan_seat *found = bsearch(&wanted, sorted, count, sizeof *sorted, keys_compare);
        if (found == NULL)
            return false;
        f->seats[i] = *found;
    }
    return true;
}

/* TB_OK: the job has just the hosts of the plan. */
static int job_compare(const struct tb_plan_image *image, const struct tb_plan_seat *seats, uint32_t count)
{
    uint64_t digest = 0;
    for (uint32_t i = 0; i < count; i++)
        digest = tb_plan_digest_add(digest, seats[i].key);
    if (count == image->head->host_count && digest == image->head->digest)
        return TB_OK;
    return tb_error(TB_ERR_MISMATCH,
                    "it is for %u host%s, whose places and slots have the digest %016llx; this job has ranks on %u "
                    "host%s with %016llx",
                    image->head->host_count, tb_plural(image->head->host_count),
                    (unsigned long long)image->head->digest, count, tb_plural(count), (unsigned long long)digest);
}

int tb_followed_open(struct tb_followed **followed, const void *bytes, size_t length, const struct tb_plan_seat *seats,
                     uint32_t count)
{
    struct tb_plan_image image;
    *followed = NULL;
    int error = tb_plan_image_open(&image, bytes, length);
    if (error == TB_OK)
        error = job_compare(&image, seats, count);
    if (error != TB_OK)
        return error;
    struct tb_plan_seat *sorted = malloc(count * sizeof *sorted);
    struct tb_followed *f = malloc(sizeof *f + count * sizeof f->seats[0]);
    if (f == NULL || sorted == NULL) {
        error = tb_error(TB_ERR_MEMORY, "no memory for a plan");
    } else {
        f->image = image;
        memcpy(sorted, seats, count * sizeof *sorted);
        qsort(sorted, count, sizeof *sorted, keys_compare);
        if (!seats_find(f, sorted, count))
            error = tb_error(TB_ERR_MISMATCH, "hosts of the plan cannot be told apart");
    }
    free(sorted);
    if (error == TB_OK)
        *followed = f;
    else
        free(f);
    return error;
}

void tb_followed_close(struct tb_followed *followed)
{
    free(followed);
}

/* ---- shapes ------------------------------------------------------------------------------------------------------ */

/* A host of the plan, or of a shape: what it is known by, and its number. */
struct known_host {
    struct tb_spot spot;
    uint32_t ranks, number;
};

static int spots_compare(const struct known_host *a, const struct known_host *b)
{
    const uint32_t x[] = {a->spot.place, a->spot.kind, a->spot.who, a->ranks},
                   y[] = {b->spot.place, b->spot.kind, b->spot.who, b->ranks};
    for (int i = 0; i < 4; i++)
        if (x[i] != y[i])
            return x[i] < y[i] ? -1 : 1;
    return 0;
}

static int hosts_compare(const void *a, const void *b)
{
    const struct known_host *x = a, *y = b;
    int order = spots_compare(x, y);
    return order != 0 ? order : x->number < y->number ? -1 : x->number > y->number;
}

int tb_followed_match(const struct tb_followed *f, const struct tb_group_shape *shape, uint32_t **hosts)
{
    uint32_t count = f->image.head->host_count;
    *hosts = NULL;
    if (shape->split > 0 || shape->host_count != count)
        return TB_OK;
    struct known_host *planned = malloc(count * sizeof *planned), *there = malloc(count * sizeof *there);
    uint32_t *made = malloc(2 * (size_t)count * sizeof *made);
    bool same = planned != NULL && there != NULL && made != NULL;
    int error = same ? TB_OK : tb_error(TB_ERR_MEMORY, "no memory for a plan");
    for (uint32_t i = 0; i < count && error == TB_OK; i++) {
        planned[i] = (struct known_host){f->seats[i].spot, f->seats[i].ranks, i};
        there[i] = (struct known_host){tb_group_shape_spot(shape, i), shape->hosts[i].rank_count, i};
    }
    if (error == TB_OK) {
        qsort(planned, count, sizeof *planned, hosts_compare);
        qsort(there, count, sizeof *there, hosts_compare);
    }
    for (uint32_t i = 0; i < count && same; i++) {
        same = spots_compare(&planned[i], &there[i]) == 0;
        made[planned[i].number] = there[i].number;
        made[count + there[i].number] = planned[i].number;
    }
    free(planned);
    free(there);
    if (same)
        *hosts = made;
    else
        free(made);
    return error;
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

/* The plan's host that the root is on. */
static uint32_t root_host(const struct tb_followed *f, const uint32_t *hosts, const struct tb_collective *c)
{
    return hosts[f->image.head->host_count + tb_group_shape_host(c->shape, c->root)];
}

const struct tb_plan_row *tb_followed_find(const struct tb_followed *f, const uint32_t *hosts,
                                           const struct tb_collective *c)
{
    const struct tb_plan_image *image = &f->image;
    uint64_t bytes = c->operation == TB_OPERATION_BARRIER ? 0 : tb_size_class_bytes(c);
    const struct tb_plan_row *row = NULL;
    if (c->inter)
        return NULL;
    if (tb_choice_rooted(c->operation)) {
        uint32_t root = root_host(f, hosts, c), place = f->seats[root].spot.place;
        row = tb_plan_image_find(image, c->operation, root, bytes);
        for (uint32_t i = 0; i < image->head->host_count && row == NULL; i++)
            if (f->seats[i].spot.place == place)
                row = tb_plan_image_find(image, c->operation, i, bytes);
    }
    return row != NULL ? row : tb_plan_image_find(image, c->operation, TB_PLAN_ANY, bytes);
}

/* The trees of a row, over the shape's hosts, with the root that the plan has. */
static int trees_make(const struct tb_followed *f, const uint32_t *of, const struct tb_plan_row *row,
                      struct tb_forest **forest)
{
    size_t count = f->image.head->host_count, all = count * row->trees;
    const uint32_t *shares = f->image.numbers + row->first, *from = shares + row->trees, *when = from + all;
    uint32_t *parents = malloc(all * sizeof *parents);
    uint64_t *order = malloc(all * sizeof *order);
    int error = parents != NULL && order != NULL ? TB_OK : tb_error(TB_ERR_MEMORY, "no memory for trees");
    if (error == TB_OK) {
        for (size_t t = 0; t < row->trees; t++)
            for (size_t i = 0; i < count; i++) {
                parents[t * count + of[i]] = of[from[t * count + i]];
                order[t * count + of[i]] = when[t * count + i];
            }
        const struct tb_forest source = {.nodes = (uint32_t)count,
                                         .root = of[row->top],
                                         .trees = row->trees,
                                         .piece = row->piece,
                                         .shares = shares,
                                         .parents = parents};
        error = tb_forest_make(forest, &source, order);
    }
    free(parents);
    free(order);
    return error;
}

/* The same for the call: if its root is on another host, in the same place, the two change places. */
static int trees_move(const struct tb_collective *c, struct tb_forest **forest)
{
    uint32_t root = tb_choice_rooted(c->operation) ? tb_group_shape_host(c->shape, c->root) : (*forest)->root;
    struct tb_forest *moved;
    if (root == (*forest)->root)
        return TB_OK;
    int error = tb_forest_move(&moved, *forest, c->shape, root);
    tb_forest_close(*forest);
    *forest = moved;
    return error;
}

int tb_followed_choose(const struct tb_followed *f, const uint32_t *hosts, const struct tb_plan_row *row,
                       const struct tb_collective *c, struct tb_choice *choice, struct tb_forest **forest)
{
    struct tb_preference wish = {.argument = row->argument};
    struct tb_collective call = *c;
    int error = TB_OK;
    *forest = NULL;
    *choice = (struct tb_choice){.reason = TB_REASON_PLAN};
    snprintf(wish.name, sizeof wish.name, "%s", row->trees > 0 ? "planned" : row->name);
    if (row->trees > 0)
        error = trees_make(f, hosts, row, forest);
    if (error == TB_OK && row->trees > 0)
        error = trees_move(c, forest);
    if (error != TB_OK) /* trees with circles, which nobody has looked for before, are as good as none */
        return error == TB_ERR_ARGUMENT ? TB_OK : error;
    call.forest = *forest;
    choice->best = (struct tb_candidate){tb_preference_find(&wish, &call), row->argument, TB_COST_NEVER};
    if (choice->best.algorithm == NULL) {
        tb_forest_close(*forest);
        *forest = NULL;
    }
    return TB_OK;
}
