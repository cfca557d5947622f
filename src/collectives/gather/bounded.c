/* Everyone sends to the root when it is asked, so that no more than `argument` ranks send at once: many at a time
 * would overrun the buffers of the switch in front of the root, and the lost packets cost far more than the asking.
 * For k senders at once (p - 1)(max(o + m G, (2L + 4o + m G)/k)). Also for blocks of different sizes, which only the
 * root knows. */
#include "collectives/algorithms.h"

#define SENDERS 4 /* if nothing else is asked for */

static int make(const struct tb_collective *c, struct tb_program **program)
{
    const struct tb_slice nothing = tb_slice_nothing();
    struct tb_builder b;
    tb_builder_open(&b, c->size);
    if (c->rank != c->root) {
        uint32_t asked = tb_builder_receive(&b, c->root, 0, nothing);
        tb_builder_send(&b, c->root, 1, tb_slice_one(TB_SYMBOL_IN, 0));
        tb_builder_after(&b, asked);
        return tb_builder_finish(&b, program);
    }
    uint64_t senders = c->argument != 0 ? c->argument : SENDERS;
    for (uint32_t i = 1; i < c->size; i++) {
        uint32_t from = tb_rank_after(c, c->rank, i);
        tb_builder_receive(&b, from, 1, tb_slice_one(TB_SYMBOL_OUT, from)); /* step 2 (i - 1) */
        tb_builder_send(&b, from, 0, nothing);
        if (i > senders)
            tb_builder_after(&b, 2 * (i - 1 - (uint32_t)senders));
    }
    if (!c->in_place)
        tb_builder_copy(&b, tb_slice_one(TB_SYMBOL_IN, 0), tb_slice_one(TB_SYMBOL_OUT, c->rank));
    return tb_builder_finish(&b, program);
}

const struct tb_algorithm tb_gather_bounded = {TB_OPERATION_GATHER,  "bounded", NULL, make, "senders",
                                               tb_candidates_senders};
const struct tb_algorithm tb_gatherv_bounded = {TB_OPERATION_GATHERV, "bounded", NULL, make, "senders",
                                                tb_candidates_senders};
