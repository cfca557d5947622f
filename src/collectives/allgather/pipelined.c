/* Each block goes from its rank to all others in a pipeline of its own on the circulant graph, piece by piece, all of
 * them at the same time: for the longest block, of m bytes in n pieces, (n - 1 + ceil(log2 p))(L + 2o + (m/n) G) if the
 * others are short, where a ring passes it on as a whole p - 1 times. If all are equally long, it takes what a ring
 * takes, in more messages. */
#include "collectives/algorithms.h"

#define RANKS_MOST 32u  /* each has steps for every block */
#define PARTS_MOST 256u /* of a block */

static bool fits(const struct tb_collective *c)
{
    return !c->inter && c->size <= RANKS_MOST;
}

static int make(const struct tb_collective *c, struct tb_program **program)
{
    uint32_t parts = tb_pieces(c) < PARTS_MOST ? tb_pieces(c) : PARTS_MOST;
    struct tb_slice own = tb_slice_many(TB_SYMBOL_OUT, c->rank * parts, parts), given = own;
    struct tb_builder b;
    tb_builder_open(&b, c->size * parts);
    tb_builder_parts(&b, parts);
    if (!c->in_place) {
        given = tb_slice_many(TB_SYMBOL_IN, 0, parts);
        tb_builder_copy(&b, given, own);
        tb_builder_join(&b);
    }
    for (uint32_t i = 0; i < c->size; i++) {
        uint32_t root = tb_rank_after(c, c->rank, i);
        tb_circulant_spread(&b, c, root, i == 0 ? given : tb_slice_many(TB_SYMBOL_OUT, root * parts, parts));
    }
    return tb_builder_finish(&b, program);
}

const struct tb_algorithm tb_allgatherv_pipelined = {TB_OPERATION_ALLGATHERV, "pipelined", fits, make, "piece",
                                                     tb_candidates_rounds};
