/* What the ranks of each part of the widest place have is combined by levels, those who stand for these parts tell it
 * to each other, and everyone combines it, in the order of parts, so that all have the same bits; then it is told by
 * levels. One message crosses the widest level one after the other, where a reduction and a broadcast would be two. */
#include "collectives/levels_steps.h"

#define PARTS_MOST 16u

static bool fits(const struct tb_collective *c)
{
    return c->commutative && tb_fits_level_parts(c, PARTS_MOST);
}

static void stage_up(struct tb_builder *b, const struct tb_tree *t, struct tb_slice sum)
{
    for (uint32_t n = t->count; n-- > 0;) {
        struct tb_slice theirs = tb_slice_one(TB_SYMBOL_WORK, n % 2);
        tb_builder_receive(b, t->children[n], 0, theirs);
        tb_builder_reduce(b, theirs, sum);
    }
    if (!t->root)
        tb_builder_send(b, t->parent, 0, sum);
}

static void exchange(struct tb_builder *b, const struct tb_stage *top, struct tb_slice sum)
{
    struct tb_slice all = sum;
    for (uint32_t i = 1; i < top->count; i++)
        tb_builder_send(b, top->parts[(top->mine + i) % top->count].rank, 1, sum);
    for (uint32_t i = 1; i < top->count; i++) {
        uint32_t other = (top->mine + i) % top->count;
        tb_builder_receive(b, top->parts[other].rank, 1, tb_slice_one(TB_SYMBOL_WORK, other));
    }
    for (uint32_t i = 0; i < top->count; i++) {
        struct tb_slice next = i == top->mine ? sum : tb_slice_one(TB_SYMBOL_WORK, i);
        if (i > 0)
            tb_builder_reduce(b, all, next);
        all = next;
    }
    if (all.symbol != TB_SYMBOL_OUT)
        tb_builder_copy(b, all, sum);
}

static void lead(struct tb_builder *b, const struct tb_levels *l, const struct tb_level_kinds *k)
{
    const struct tb_slice out = tb_slice_one(TB_SYMBOL_OUT, 0);
    uint32_t narrow = tb_levels_at_top(l) ? 1 : 0;
    struct tb_tree t;
    for (uint32_t i = tb_levels_message_stages(l); i-- > narrow;) {
        tb_levels_tree(b, &t, l, &l->stages[i], k, 0);
        stage_up(b, &t, out);
    }
    if (narrow > 0)
        exchange(b, &l->stages[0], out);
    for (uint32_t i = narrow; i < tb_levels_message_stages(l); i++) {
        tb_levels_tree(b, &t, l, &l->stages[i], k, 0);
        t.whole = true;
        tb_tree_broadcast(b, &t, 1, out, TB_STEP_NONE);
    }
}

static int exchange_make(const struct tb_collective *c, struct tb_program **program)
{
    const struct tb_level_kinds k = {.wide = TB_LEVEL_FITTED, .narrow = TB_LEVEL_FITTED};
    const struct tb_slice own = tb_slice_one(tb_source(c), 0), out = tb_slice_one(TB_SYMBOL_OUT, 0);
    struct tb_levels l;
    struct tb_builder b;
    int error = tb_levels_open(&l, c, 0);
    if (error == TB_OK) {
        bool common = tb_levels_common(&l), leads = tb_levels_leads(&l);
        tb_builder_open(&b, 1);
        tb_builder_order(&b);
        if (common)
            tb_levels_meet(&b, &l, TB_COMPOSITE_REDUCE, 0, own, leads ? out : tb_slice_nothing());
        else if (!c->in_place)
            tb_builder_copy(&b, own, out);
        if (leads)
            lead(&b, &l, &k);
        if (common)
            tb_levels_meet(&b, &l, TB_COMPOSITE_BCAST, 1, leads ? out : tb_slice_nothing(),
                           leads ? tb_slice_nothing() : out);
        tb_builder_places(&b, TB_COLLECTIVE_PLACES);
        error = tb_builder_finish(&b, program);
    }
    tb_levels_close(&l);
    return error;
}

const struct tb_algorithm tb_allreduce_exchange_fitted = {
    TB_OPERATION_ALLREDUCE, "levels-exchange-fitted", fits, exchange_make, NULL, NULL};
