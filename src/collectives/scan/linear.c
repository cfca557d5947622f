/* Everyone combines with its own what comes from the rank before, and sends it to the next: p - 1 messages and
 * reductions one after the other; the reference. */
#include "collectives/algorithms.h"

static int make_scan(const struct tb_collective *c, struct tb_program **program)
{
    const struct tb_slice out = tb_slice_one(TB_SYMBOL_OUT, 0), before = tb_slice_one(TB_SYMBOL_WORK, 0);
    struct tb_builder b;
    tb_builder_open(&b, 1);
    tb_builder_order(&b);
    if (!c->in_place)
        tb_builder_copy(&b, tb_slice_one(TB_SYMBOL_IN, 0), out);
    if (c->rank > 0) {
        tb_builder_receive(&b, c->rank - 1, 0, before);
        tb_builder_reduce(&b, before, out);
    }
    if (c->rank + 1 < c->size)
        tb_builder_send(&b, c->rank + 1, 0, out);
    return tb_builder_finish(&b, program);
}

/* What goes on to the next rank is not what stays here. */
static int make_exscan(const struct tb_collective *c, struct tb_program **program)
{
    const struct tb_slice out = tb_slice_one(TB_SYMBOL_OUT, 0), work = tb_slice_one(TB_SYMBOL_WORK, 0);
    struct tb_slice before = c->in_place ? work : out, mine = tb_slice_one(tb_source(c), 0);
    struct tb_builder b;
    tb_builder_open(&b, 1);
    tb_builder_order(&b);
    if (c->rank > 0)
        tb_builder_receive(&b, c->rank - 1, 0, before);
    if (c->rank > 0 && c->rank + 1 < c->size) {
        struct tb_slice sum = c->in_place ? out : work;
        if (!c->in_place)
            tb_builder_copy(&b, mine, sum);
        tb_builder_reduce(&b, before, sum);
        mine = sum;
    }
    if (c->rank + 1 < c->size)
        tb_builder_send(&b, c->rank + 1, 0, mine);
    if (c->in_place && c->rank > 0)
        tb_builder_copy(&b, before, out);
    return tb_builder_finish(&b, program);
}

const struct tb_algorithm tb_scan_linear = {TB_OPERATION_SCAN, "linear", NULL, make_scan, NULL, NULL};
const struct tb_algorithm tb_exscan_linear = {TB_OPERATION_EXSCAN, "linear", NULL, make_exscan, NULL, NULL};
