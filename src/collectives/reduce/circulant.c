/* Träff's broadcast on the circulant graph backwards: what a rank sends there it receives and combines, last round
 * first. For n pieces of m bytes in all (n - 1 + ceil(log2 p))(L + 2o + (m/n)(G + r)), for any p; operands are combined
 * as they come, so for commutative operations only. */
#include "collectives/algorithms.h"

static bool fits(const struct tb_collective *c)
{
    return !c->inter && c->commutative;
}

static int make(const struct tb_collective *c, struct tb_program **program)
{
    struct tb_builder b;
    tb_builder_open(&b, tb_pieces(c));
    tb_circulant_reduce(&b, c);
    return tb_builder_finish(&b, program);
}

const struct tb_algorithm tb_reduce_circulant = {TB_OPERATION_REDUCE, "circulant", fits, make, "piece",
                                                 tb_candidates_rounds};
