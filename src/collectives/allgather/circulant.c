/* On the circulant graph: in each round everyone sends the blocks that it has, from its own on, to a rank further down,
 * and receives as many that follow them: ceil(log2 p)(L + 2o) + (p - 1) m G for any p. Blocks stay where they belong;
 * those that go around the ring's end are two messages. Blocks of different sizes lie apart and go each in a message of
 * its own. */
#include "collectives/algorithms.h"

static int make(const struct tb_collective *c, struct tb_program **program)
{
    struct tb_builder b;
    tb_builder_open(&b, c->size);
    tb_builder_order(&b);
    if (!c->in_place)
        tb_builder_copy(&b, tb_slice_one(TB_SYMBOL_IN, 0), tb_slice_one(TB_SYMBOL_OUT, c->rank));
    tb_circulant_collect(&b, c, tb_slice_whole(&b, TB_SYMBOL_OUT, 0), c->operation == TB_OPERATION_ALLGATHERV, 0);
    return tb_builder_finish(&b, program);
}

const struct tb_algorithm tb_allgather_circulant = {TB_OPERATION_ALLGATHER, "circulant", NULL, make, NULL, NULL};
const struct tb_algorithm tb_allgatherv_circulant = {TB_OPERATION_ALLGATHERV, "circulant", NULL, make, NULL, NULL};
