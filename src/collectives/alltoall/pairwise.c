/* In round k everyone sends to the rank k further and receives from the one k before, so that nobody is sent to by two
 * at once; a few rounds overlap. p - 1 messages one after the other. */
#include "collectives/algorithms.h"

#define OVERLAP 4 /* rounds: enough to hide that neighbours are not in step */

static bool fits(const struct tb_collective *c)
{
    return !c->in_place && !c->inter;
}

static int make(const struct tb_collective *c, struct tb_program **program)
{
    struct tb_builder b;
    tb_builder_open(&b, c->size);
    tb_builder_copy(&b, tb_slice_one(TB_SYMBOL_IN, c->rank), tb_slice_one(TB_SYMBOL_OUT, c->rank));
    for (uint32_t k = 1; k < c->size; k++) {
        uint32_t from = tb_rank_after(c, c->rank, c->size - k), to = tb_rank_after(c, c->rank, k);
        tb_builder_receive(&b, from, 0, tb_slice_one(TB_SYMBOL_OUT, from));
        if (k > OVERLAP)
            tb_builder_after(&b, 2 * (k - OVERLAP) - 1); /* the receive of that round; behind it stands its send */
        tb_builder_send(&b, to, 0, tb_slice_one(TB_SYMBOL_IN, to));
        if (k > OVERLAP)
            tb_builder_after(&b, 2 * (k - OVERLAP));
    }
    return tb_builder_finish(&b, program);
}

const struct tb_algorithm tb_alltoall_pairwise = {TB_OPERATION_ALLTOALL, "pairwise", fits, make, NULL, NULL};
const struct tb_algorithm tb_alltoallv_pairwise = {TB_OPERATION_ALLTOALLV, "pairwise", fits, make, NULL, NULL};
const struct tb_algorithm tb_alltoallw_pairwise = {TB_OPERATION_ALLTOALLW, "pairwise", fits, make, NULL, NULL};
