/* Between two groups: each one combines all blocks at its leader, level by level; the two leaders exchange their
 * results, and each passes to the parts of its group the blocks of their ranks, level by level, since only its own
 * group knows how it divides the whole. Blocks of ranks that follow each other go as one message. For commutative
 * operations. */
#include "collectives/levels_ranks.h"
#include "collectives/sides.h"

#include <stdlib.h>

#define RANKS_MOST 4096u /* so that there are edges enough */

enum { EDGE_UP, EDGE_DOWN };

#define RESULT 2u /* the copy of WORK that has the other group's; what is combined alternates between the first two */

/* What this rank's part has, combined; at the leader that of the group. */
static void blocks_combine(struct tb_builder *b, const struct tb_side *s, const struct tb_levels *l)
{
    const struct tb_level_kinds k = {.wide = TB_LEVEL_FLAT, .narrow = TB_LEVEL_BINOMIAL};
    struct tb_slice sum = tb_slice_whole(b, TB_SYMBOL_IN, 0);
    uint32_t turn = 0;
    struct tb_tree t;
    for (uint32_t i = l->stage_count; i-- > 0;) {
        tb_stage_tree(&t, l, &l->stages[i], &k, 0);
        for (uint32_t n = t.count; n-- > 0; turn = 1 - turn) {
            struct tb_slice theirs = tb_slice_whole(b, TB_SYMBOL_WORK, turn);
            tb_builder_receive(b, t.children[n], EDGE_UP, theirs);
            tb_builder_join(b);
            tb_builder_reduce(b, sum, theirs);
            sum = theirs;
        }
        if (!t.root) {
            tb_builder_send(b, t.parent, EDGE_UP, sum);
            tb_builder_join(b);
        }
    }
    if (s->call.rank != s->leader)
        return;
    tb_builder_send(b, s->other, EDGE_UP, sum);
    tb_builder_join(b);
    tb_builder_receive(b, s->other, EDGE_UP, tb_slice_whole(b, TB_SYMBOL_WORK, RESULT));
    tb_builder_join(b);
}

/* The blocks of a part to or from a peer: those that lie side by side together, each run on an edge of its own. */
static void runs_pass(struct tb_builder *b, const uint32_t *ranks, uint32_t count, uint32_t peer, bool send)
{
    for (uint32_t low = 0, high; low < count; low = high) {
        for (high = low + 1; high < count && ranks[high] == ranks[high - 1] + 1;)
            high++;
        struct tb_slice run = tb_slice_many(TB_SYMBOL_WORK, RESULT * b->program.pieces + ranks[low], high - low);
        uint16_t edge = (uint16_t)(EDGE_DOWN + ranks[low]);
        if (send)
            tb_builder_send(b, peer, edge, run);
        else
            tb_builder_receive(b, peer, edge, run);
        tb_builder_join(b);
    }
}

/* What the other group has, to those whose it is. */
static int blocks_divide(struct tb_builder *b, const struct tb_side *s, const struct tb_levels *l)
{
    const struct tb_collective *c = &s->call;
    uint32_t *ranks = malloc(c->size * sizeof(*ranks));
    if (ranks == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for the ranks of a part of %u", c->size);
    for (uint32_t i = 0; i < l->stage_count; i++) {
        const struct tb_stage *stage = &l->stages[i];
        bool gives = stage->mine == stage->root;
        for (uint32_t k = 0; k < stage->count; k++) {
            const struct tb_level_part *part = &stage->parts[k];
            if (gives == (k == stage->mine))
                continue; /* who has them gives all others theirs; others get those of their own part */
            tb_part_ranks(c, part, ranks);
            runs_pass(b, ranks, tb_part_size(c, part), gives ? part->rank : stage->parts[stage->root].rank, gives);
        }
    }
    uint32_t own = RESULT * b->program.pieces + c->rank;
    tb_builder_copy(b, tb_slice_one(TB_SYMBOL_WORK, own), tb_slice_one(TB_SYMBOL_OUT, 0));
    free(ranks);
    return TB_OK;
}

static int side_steps(struct tb_builder *b, const struct tb_side *s)
{
    struct tb_levels l;
    int error = tb_levels_open(&l, &s->call, s->leader);
    tb_builder_open(b, s->call.size);
    tb_builder_order(b);
    tb_builder_whole(b);
    if (error == TB_OK) {
        blocks_combine(b, s, &l);
        error = blocks_divide(b, s, &l);
    }
    tb_levels_close(&l);
    return error;
}

static int make(const struct tb_collective *c, struct tb_program **program)
{
    return tb_side_make(c, side_steps, program);
}

static bool fits(const struct tb_collective *c)
{
    return tb_fits_sides_commutative(c) && c->shape->size <= RANKS_MOST;
}

const struct tb_algorithm tb_reduce_scatter_levels_inter = {
    TB_OPERATION_REDUCE_SCATTER, "levels-inter", fits, make, NULL, NULL};
const struct tb_algorithm tb_reduce_scatter_block_levels_inter = {
    TB_OPERATION_REDUCE_SCATTER_BLOCK, "levels-inter", fits, make, NULL, NULL};
