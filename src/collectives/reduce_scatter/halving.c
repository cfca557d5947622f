/* Recursive halving: in each round everyone gives away half of what it has and combines the other half. If p is no
 * power of two, the first ranks stand two by two for one. For m bytes in all log2 p (L + 2o) + (p - 1)/p m (G + r), or
 * a message of the whole and one of a part more. "halving" begins with the furthest rank and ends with everyone's own
 * part, and is for commutative operations only; "butterfly" begins with the nearest, so in order, and must send each
 * part to its owner at the end: a message of one part more. */
#include "collectives/algorithms.h"

enum { EDGE_FOLD, EDGE_PART, EDGE_ROUNDS };

static bool fits_halving(const struct tb_collective *c)
{
    return !c->inter && c->commutative;
}

static uint32_t reversed(uint32_t number, uint32_t power)
{
    uint32_t r = 0;
    for (uint32_t bit = 1; bit < power; bit *= 2)
        r = r * 2 + ((number & bit) != 0 ? 1 : 0);
    return r;
}

/* The number whose part a number ends with; and the other way round. */
static uint32_t part_of(const struct tb_halving *h, uint32_t number)
{
    return h->far ? number : reversed(number, h->fold.power);
}

/* Everyone gets its own block from who has it. */
static void deliver(struct tb_halving *h, bool has)
{
    const struct tb_slice out = tb_slice_one(TB_SYMBOL_OUT, 0);
    uint32_t me = h->c->rank, holder = tb_fold_rank(&h->fold, part_of(h, h->number));
    for (uint32_t k = h->low[h->rounds]; has && k < h->high[h->rounds]; k++)
        if (k != me)
            tb_builder_send(h->b, k, EDGE_PART, tb_slice_range(h->sum, k, k + 1));
    if (holder == me)
        tb_builder_copy(h->b, tb_slice_range(h->sum, me, me + 1), out);
    else
        tb_builder_receive(h->b, holder, EDGE_PART, out);
    if (h->c->in_place)
        tb_after_input(h->b);
}

static int make(const struct tb_collective *c, bool far, struct tb_program **program)
{
    struct tb_builder b;
    struct tb_halving h = {.b = &b, .fold = tb_fold_make(c->size, UINT32_MAX), .c = c, .ranks = true, .far = far};
    tb_builder_open(&b, c->size);
    tb_builder_order(&b);
    tb_builder_whole(&b);
    h.sum = tb_slice_whole(&b, TB_SYMBOL_IN, 0);
    h.places[0] = tb_slice_whole(&b, TB_SYMBOL_WORK, 0);
    h.places[1] = tb_slice_whole(&b, TB_SYMBOL_WORK, 1);
    bool has = tb_halving_open(&h, EDGE_FOLD);
    if (has)
        tb_halving_run(&h, EDGE_ROUNDS);
    deliver(&h, has);
    return tb_builder_finish(&b, program);
}

static int make_halving(const struct tb_collective *c, struct tb_program **program)
{
    return make(c, true, program);
}

static int make_butterfly(const struct tb_collective *c, struct tb_program **program)
{
    return make(c, false, program);
}

#define ROW(row, operation, name, fits, make) const struct tb_algorithm row = {operation, name, fits, make, NULL, NULL}
ROW(tb_reduce_scatter_halving, TB_OPERATION_REDUCE_SCATTER, "halving", fits_halving, make_halving);
ROW(tb_reduce_scatter_block_halving, TB_OPERATION_REDUCE_SCATTER_BLOCK, "halving", fits_halving, make_halving);
ROW(tb_reduce_scatter_butterfly, TB_OPERATION_REDUCE_SCATTER, "butterfly", NULL, make_butterfly);
ROW(tb_reduce_scatter_block_butterfly, TB_OPERATION_REDUCE_SCATTER_BLOCK, "butterfly", NULL, make_butterfly);
