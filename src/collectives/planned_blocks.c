#include "collectives/planned_blocks.h"

#include <stdlib.h>

bool tb_fits_planned_blocks(const struct tb_collective *c)
{
    if (!tb_fits_planned(c))
        return false;
    uint32_t others = c->size - c->shape->hosts[c->forest->root].rank_count;
    return c->elements * c->element_bytes <= TB_BUNDLE_LIMIT / others;
}

/* ---- order ------------------------------------------------------------------------------------------------------- */

struct number_list {
    uint32_t *numbers;
    uint32_t count, room;
};

static int list_add(struct number_list *list, uint32_t number)
{
    if (list->count == list->room) {
        uint32_t room = list->room == 0 ? 16 : 2 * list->room;
        uint32_t *grown = realloc(list->numbers, room * sizeof *grown);
        if (grown == NULL)
            return tb_error(TB_ERR_MEMORY, "no memory for the order of %u blocks", room);
        list->numbers = grown;
        list->room = room;
    }
    list->numbers[list->count++] = number;
    return TB_OK;
}

/* The ranks of a host. */
static int ranks_add(const struct tb_collective *c, uint32_t node, struct number_list *ranks)
{
    int error = TB_OK;
    for (uint32_t r = c->shape->hosts[node].first_rank; error == TB_OK && r != TB_PLACE_NONE;
         r = tb_group_shape_next(c->shape, r))
        error = list_add(ranks, r);
    return error;
}

static int falling(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

/* Those of a host and of all behind it; `waiting` is room for hosts. */
static int behind_add(const struct tb_collective *c, uint32_t node, struct number_list *ranks,
                      struct number_list *waiting)
{
    const struct tb_forest *f = c->forest;
    int error = list_add(waiting, node);
    while (error == TB_OK && waiting->count > 0) {
        uint32_t at = waiting->numbers[--waiting->count], first = waiting->count;
        error = ranks_add(c, at, ranks);
        for (uint32_t k = f->first[at]; error == TB_OK && k < f->first[at + 1]; k++)
            error = list_add(waiting, f->children[k]);
        if (waiting->count > first + 1)
            qsort(waiting->numbers + first, waiting->count - first, sizeof *waiting->numbers, falling);
    }
    return error;
}

/* A child of this rank's host. */
struct host_child {
    uint32_t node, index;
};

static int children_compare(const void *a, const void *b)
{
    const struct host_child *x = a, *y = b;
    return x->node < y->node ? -1 : x->node > y->node;
}

/* The order of blocks, and which are behind whom. */
static int order_find(struct tb_planned_blocks *w, struct number_list *ranks)
{
    const struct tb_collective *c = w->planned.call;
    const struct tb_forest *f = c->forest;
    const uint32_t node = w->planned.host.call.rank;
    struct number_list waiting = {.count = 0};
    struct host_child *children = malloc((w->children + (size_t)1) * sizeof *children);
    int error = children != NULL ? ranks_add(c, node, ranks)
                                 : tb_error(TB_ERR_MEMORY, "no memory for the order of %u blocks", c->size);
    w->here = (struct tb_bundle){0, ranks->count};
    for (uint32_t i = 0; i < w->children && error == TB_OK; i++)
        children[i] = (struct host_child){f->children[f->first[node] + i], i};
    if (error == TB_OK)
        qsort(children, w->children, sizeof *children, children_compare);
    for (uint32_t i = 0; i < w->children && error == TB_OK; i++) {
        uint32_t before = ranks->count;
        error = behind_add(c, children[i].node, ranks, &waiting);
        w->behind[children[i].index] = (struct tb_bundle){before, ranks->count - before};
    }
    w->all = (struct tb_bundle){0, ranks->count};
    free(waiting.numbers);
    free(children);
    return error;
}

int tb_planned_blocks_open(struct tb_planned_blocks *w, struct tb_builder *b, const struct tb_collective *c, bool deals)
{
    struct tb_collective cut = *c;
    struct number_list ranks = {.count = 0};
    cut.argument = c->forest->piece < TB_ARGUMENT_PIECE ? c->forest->piece : 0;
    *w = (struct tb_planned_blocks){.root = c->rank == c->root};
    w->x = (struct tb_bundles){.builder = b, .bound = TB_STEP_NONE};
    w->x.parts = tb_bundle_parts(&cut);
    w->x.joined = tb_bundle_joined(&cut);
    tb_builder_open(b, c->size * w->x.parts);
    tb_builder_parts(b, w->x.parts);
    tb_planned_open(&w->planned, c);
    w->common = w->planned.common && w->x.parts == 1 && (!deals || w->planned.host.members <= TB_COMMON_DEALS);
    w->all = w->here = (struct tb_bundle){0, 1};
    if (!w->planned.leads)
        return TB_OK;
    const uint32_t *first = c->forest->first + w->planned.host.call.rank;
    w->children = first[1] - first[0];
    w->behind = malloc((w->children + (size_t)1) * sizeof *w->behind);
    w->x.came = malloc((w->children + (size_t)w->planned.host.members + 1) * sizeof *w->x.came);
    if (w->behind == NULL || w->x.came == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for what comes of %u blocks", c->size);
    int error = order_find(w, &ranks);
    w->x.ranks = ranks.numbers;
    return error;
}

void tb_planned_blocks_close(struct tb_planned_blocks *w)
{
    tb_bundles_close(&w->x);
    free(w->behind);
    w->behind = NULL;
}

/* ---- slices ------------------------------------------------------------------------------------------------------ */

struct tb_slice tb_planned_blocks_at(const struct tb_planned_blocks *w, enum tb_symbol symbol, struct tb_bundle blocks)
{
    return w->root ? tb_bundles_placed(&w->x, symbol, blocks) : tb_bundles_packed(&w->x, TB_SYMBOL_WORK, blocks);
}

bool tb_planned_blocks_apart(const struct tb_planned_blocks *w, struct tb_bundle blocks)
{
    return w->root && w->x.joined && blocks.count > 1 && !tb_bundles_in_order(&w->x, blocks);
}
