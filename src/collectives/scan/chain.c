/* Everyone combines with its own each piece that comes from the rank before, and passes it to the next: for n pieces of
 * m bytes in all (p + n - 2)(L + 2o + (m/n)(G + r)). */
#include "collectives/algorithms.h"

static int make_scan(const struct tb_collective *c, struct tb_program **program)
{
    struct tb_builder b;
    tb_builder_open(&b, tb_pieces(c));
    const struct tb_slice in = tb_slice_whole(&b, TB_SYMBOL_IN, 0), out = tb_slice_whole(&b, TB_SYMBOL_OUT, 0);
    const struct tb_slice work = tb_slice_whole(&b, TB_SYMBOL_WORK, 0);
    uint32_t ready = TB_STEP_NONE;
    /* If order does not matter, what comes can be where the result is to be. */
    bool direct = c->rank > 0 && c->commutative && !c->in_place;
    if (!c->in_place && !direct)
        ready = tb_builder_copy(&b, in, out);
    if (c->rank > 0) {
        uint32_t come = tb_builder_receive(&b, c->rank - 1, 0, direct ? out : work), copied = ready;
        ready = tb_builder_reduce(&b, direct ? in : work, out);
        tb_builder_after_pieces(&b, come);
        tb_after_pieces(&b, copied);
    }
    if (c->rank + 1 < c->size) {
        tb_builder_send(&b, c->rank + 1, 0, out);
        tb_after_pieces(&b, ready);
    }
    return tb_builder_finish(&b, program);
}

/* What goes on to the next rank is not what stays here. */
static int make_exscan(const struct tb_collective *c, struct tb_program **program)
{
    struct tb_builder b;
    tb_builder_open(&b, tb_pieces(c));
    const struct tb_slice out = tb_slice_whole(&b, TB_SYMBOL_OUT, 0), work = tb_slice_whole(&b, TB_SYMBOL_WORK, 0);
    const struct tb_slice before = c->in_place ? work : out, sum = c->in_place ? out : work;
    struct tb_slice mine = tb_slice_whole(&b, tb_source(c), 0);
    bool last = c->rank + 1 == c->size;
    uint32_t ready = TB_STEP_NONE, come = TB_STEP_NONE;
    if (c->rank > 0)
        come = tb_builder_receive(&b, c->rank - 1, 0, before);
    if (c->rank > 0 && !last) {
        uint32_t copied = TB_STEP_NONE;
        if (!c->in_place)
            copied = tb_builder_copy(&b, mine, sum);
        ready = tb_builder_reduce(&b, before, sum);
        tb_builder_after_pieces(&b, come);
        tb_after_pieces(&b, copied);
        mine = sum;
    }
    if (!last) {
        uint32_t reduced = ready;
        ready = tb_builder_send(&b, c->rank + 1, 0, mine);
        tb_after_pieces(&b, reduced);
    }
    if (c->in_place && c->rank > 0) {
        tb_builder_copy(&b, before, out);
        tb_builder_after_pieces(&b, come);
        tb_after_pieces(&b, ready);
    }
    return tb_builder_finish(&b, program);
}

const struct tb_algorithm tb_scan_chain = {TB_OPERATION_SCAN, "chain", NULL, make_scan, "piece", NULL};
const struct tb_algorithm tb_exscan_chain = {TB_OPERATION_EXSCAN, "chain", NULL, make_exscan, "piece", NULL};
