/* Träff's pipeline on the circulant graph: in each round everyone sends a piece to one rank and receives another from
 * one, so that n pieces of m bytes in all are everywhere after the fewest rounds that there can be:
 * (n - 1 + ceil(log2 p))(L + 2o + (m/n) G), for any p. Of one piece it is a binomial tree. At most four steps for each
 * of log2 p rounds, and what the root is told.
 */
#include "collectives/algorithms.h"

static int make(const struct tb_collective *c, struct tb_program **program)
{
    struct tb_builder b;
    tb_builder_open(&b, tb_pieces(c));
    tb_circulant_broadcast(&b, c);
    return tb_builder_finish(&b, program);
}

const struct tb_algorithm tb_bcast_circulant = {TB_OPERATION_BCAST,  "circulant", NULL, make, "piece",
                                                tb_candidates_rounds};
