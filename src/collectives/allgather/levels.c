/* By levels, in whole bundles, for short blocks: who stands for a part of the network collects the blocks of its ranks,
 * of a host through its memory where there is some, those at the widest level exchange bundles directly, and all blocks
 * are told down by levels, each time in one message: one latency of the widest level, and two of each other one. Longer
 * blocks go by themselves or in pieces (levels_pieces.c). Blocks that do not stand in the order of ranks are put into
 * their places at the end. Also for blocks of different sizes, which all ranks know. */
#include "collectives/allgather/levels.h"

#include <stdlib.h>

#define PARTS_MOST 64u    /* of the widest place: each sends to each other one */
#define HOSTS_MOST 256u   /* of one cluster, whose blocks come together at one host */
#define RANKS_MOST 32768u /* whose bundles have numbers of edges */

/* Sends and receives whole bundles that stand in `room`. */
static void bundle_send(const struct tb_bundles *x, enum tb_symbol room, uint32_t peer, uint16_t edge,
                        struct tb_bundle blocks)
{
    tb_builder_send(x->builder, peer, edge, tb_bundles_slice(x, room, blocks));
    tb_builder_join(x->builder);
}

static void bundle_receive(const struct tb_bundles *x, enum tb_symbol room, uint32_t peer, uint16_t edge,
                           struct tb_bundle blocks)
{
    tb_builder_receive(x->builder, peer, edge, tb_bundles_slice(x, room, blocks));
    tb_builder_join(x->builder);
}

static void stage_up(const struct tb_bundles *x, enum tb_symbol room, const struct tb_stage *s,
                     const struct tb_allgather_kind *k)
{
    if (k->turns && s == tb_levels_cast_stage(x->levels, &k->trees)) {
        tb_allgather_turns(x, room, s);
        return;
    }
    if (s->mine != s->root) {
        bundle_send(x, room, s->parts[s->root].rank, 0, tb_bundles_of_part(x, &s->parts[s->mine]));
        return;
    }
    for (uint32_t i = 0; i < s->count; i++)
        if (i != s->mine)
            bundle_receive(x, room, s->parts[i].rank, 0, tb_bundles_of_part(x, &s->parts[i]));
}

static void top_exchange(const struct tb_bundles *x, enum tb_symbol room, const struct tb_stage *s)
{
    const struct tb_bundle mine = tb_bundles_of_part(x, &s->parts[s->mine]);
    for (uint32_t i = 1; i < s->count; i++)
        bundle_send(x, room, s->parts[(s->mine + i) % s->count].rank, 0, mine);
    for (uint32_t i = 1; i < s->count; i++) {
        const struct tb_level_part *other = &s->parts[(s->mine + s->count - i) % s->count];
        bundle_receive(x, room, other->rank, 0, tb_bundles_of_part(x, other));
    }
}

static void stage_down(const struct tb_bundles *x, enum tb_symbol room, const struct tb_stage *s,
                       const struct tb_allgather_kind *k)
{
    const struct tb_bundle all = tb_bundles_of_all(x);
    struct tb_tree t;
    if (k->turns && s == tb_levels_cast_stage(x->levels, &k->trees)) {
        tb_allgather_rest(x, room, s);
        return;
    }
    if (s == tb_levels_cast_stage(x->levels, &k->trees)) {
        tb_stage_cast(x->builder, s, 0, tb_bundles_slice(x, room, all));
        return;
    }
    tb_stage_tree(&t, x->levels, s, &k->trees, 0);
    if (!t.root)
        bundle_receive(x, room, t.parent, 1, all);
    for (uint32_t i = 0; i < t.count; i++)
        bundle_send(x, room, t.children[i], 1, all);
}

/* All blocks but those that are in place already. */
static void blocks_place(const struct tb_bundles *x)
{
    const struct tb_collective *c = x->levels->call;
    const uint32_t own = c->in_place ? x->at[c->rank] : c->size;
    const struct tb_bundle before = {0, own}, after = {own + 1, own < c->size ? c->size - own - 1 : 0};
    if (before.count > 0)
        tb_builder_copy(x->builder, tb_bundles_packed(x, TB_SYMBOL_WORK, before),
                        tb_bundles_placed(x, TB_SYMBOL_OUT, before));
    if (after.count > 0)
        tb_builder_copy(x->builder, tb_bundles_packed(x, TB_SYMBOL_WORK, after),
                        tb_bundles_placed(x, TB_SYMBOL_OUT, after));
}

/* Everyone knows all sizes and makes room. */
static void blocks_bind(const struct tb_bundles *x)
{
    tb_builder_measure(x->builder, tb_bundles_placed(x, TB_SYMBOL_OUT, tb_bundles_of_all(x)), 0);
    tb_builder_bind(x->builder, x->levels->call->size);
}

void tb_allgather_bundles(struct tb_bundles *x, const struct tb_allgather_kind *k)
{
    const struct tb_levels *l = x->levels;
    const struct tb_collective *c = l->call;
    const struct tb_bundle all = tb_bundles_of_all(x), own = tb_bundles_of_rank(x, c->rank);
    const struct tb_slice given = tb_slice_one(tb_source(c), c->in_place ? c->rank : 0), nothing = tb_slice_nothing();
    bool sized = c->operation == TB_OPERATION_ALLGATHER, leads = tb_levels_leads(l), common = tb_levels_common(l);
    bool straight = (sized && tb_bundles_in_order(x, all)) || (k->turns && tb_allgather_alone(c));
    enum tb_symbol room = straight ? TB_SYMBOL_OUT : TB_SYMBOL_WORK;
    bool exchange = tb_levels_at_top(l) && l->stages != tb_levels_cast_stage(l, &k->trees);
    uint32_t narrow = exchange ? 1 : 0, stages = tb_levels_message_stages(l);
    if (!sized && !straight)
        blocks_bind(x);
    if (common)
        tb_levels_meet(x->builder, l, TB_COMPOSITE_GATHER, 0, given,
                       leads ? tb_bundles_slice(x, room, tb_bundles_of_stage(x, &l->stages[l->stage_count - 1]))
                             : nothing);
    else if (room == TB_SYMBOL_WORK || !c->in_place)
        tb_builder_copy(x->builder, given, tb_bundles_slice(x, room, own));
    for (uint32_t i = stages; leads && i-- > narrow;)
        stage_up(x, room, &l->stages[i], k);
    if (leads && narrow > 0)
        top_exchange(x, room, &l->stages[0]);
    for (uint32_t i = narrow; leads && i < stages; i++)
        stage_down(x, room, &l->stages[i], k);
    if (common)
        tb_levels_meet(x->builder, l, TB_COMPOSITE_BCAST, 1, leads ? tb_bundles_slice(x, room, all) : nothing,
                       leads ? nothing : tb_bundles_slice(x, room, all));
    if (room == TB_SYMBOL_WORK)
        blocks_place(x);
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static bool fits(const struct tb_collective *c)
{
    return c->size <= RANKS_MOST && tb_fits_level_parts(c, PARTS_MOST);
}

/* Long blocks leave a rank once where there are chains. */
static bool fits_short(const struct tb_collective *c)
{
    return c->elements * c->element_bytes <= TB_BUNDLE_LONG && fits(c);
}

static bool fits_ring(const struct tb_collective *c)
{
    return tb_fits_level_tree(c, TB_LEVEL_CHAIN) && fits(c);
}

static int levels_make(const struct tb_collective *c, const struct tb_allgather_kind *k, uint32_t parts, bool joined,
                       struct tb_program **program)
{
    struct tb_levels l;
    struct tb_builder b;
    struct tb_bundles x;
    int error = tb_levels_open(&l, c, 0);
    if (error == TB_OK) {
        tb_builder_open(&b, c->size * parts);
        error = tb_bundles_open(&x, &b, &l, parts, joined, true);
        if (error == TB_OK && x.joined) {
            tb_builder_order(&b);
            tb_allgather_bundles(&x, k);
        } else if (error == TB_OK) {
            tb_allgather_pieces(&x, k);
        }
        tb_builder_places(&b, TB_COLLECTIVE_PLACES);
        tb_builder_fail(&b, error);
        error = tb_builder_finish(&b, program);
        tb_bundles_close(&x);
    }
    tb_levels_close(&l);
    return error;
}

#define ROW(name, NAME, row_fits, tree, wide, narrow)                                                                  \
    static int make_##name(const struct tb_collective *c, struct tb_program **program)                                 \
    {                                                                                                                  \
        static const struct tb_allgather_kind kind = {{tree, tree, false}, wide, narrow, false};                       \
        return levels_make(c, &kind, tb_bundle_parts(c), tb_bundle_joined(c), program);                                \
    }                                                                                                                  \
    const struct tb_algorithm tb_allgather_levels_##name = {                                                           \
        TB_OPERATION_ALLGATHER, NAME, row_fits, make_##name, "piece", tb_candidates_bundles};                          \
    const struct tb_algorithm tb_allgatherv_levels_##name = {                                                          \
        TB_OPERATION_ALLGATHERV, NAME, row_fits, make_##name, "piece", tb_candidates_bundles}

/* Within a cluster blocks come together at one host, which multicasts them with those from elsewhere. */
static bool fits_cast(const struct tb_collective *c)
{
    return c->size <= RANKS_MOST && tb_fits_cast(c) && c->elements * c->element_bytes <= TB_BUNDLE_LIMIT / c->size &&
           tb_levels_widest(c, NULL, NULL) <= (c->shape->cluster_count > 1 ? PARTS_MOST : HOSTS_MOST);
}

static int make_cast(const struct tb_collective *c, struct tb_program **program)
{
    static const struct tb_allgather_kind kind = {{TB_LEVEL_FLAT, TB_LEVEL_BINOMIAL, true}, false, false, false};
    return levels_make(c, &kind, 1, true, program);
}

const struct tb_algorithm tb_allgather_multicast = {
    TB_OPERATION_ALLGATHER, "levels-flat-multicast", fits_cast, make_cast, NULL, NULL};
const struct tb_algorithm tb_allgatherv_multicast = {
    TB_OPERATION_ALLGATHERV, "levels-flat-multicast", fits_cast, make_cast, NULL, NULL};

/* Each host multicasts its own. */
static int make_turns(const struct tb_collective *c, struct tb_program **program)
{
    static const struct tb_allgather_kind kind = {{TB_LEVEL_FLAT, TB_LEVEL_BINOMIAL, true}, false, false, true};
    return levels_make(c, &kind, 1, true, program);
}

const struct tb_algorithm tb_allgather_turns_multicast = {
    TB_OPERATION_ALLGATHER, "levels-turns-multicast", tb_fits_turns, make_turns, "senders", tb_candidates_turns};
const struct tb_algorithm tb_allgatherv_turns_multicast = {
    TB_OPERATION_ALLGATHERV, "levels-turns-multicast", tb_fits_turns, make_turns, "senders", tb_candidates_turns};

ROW(flat, "levels-flat", fits_short, TB_LEVEL_FLAT, false, false);
ROW(binomial, "levels-binomial", fits_short, TB_LEVEL_BINOMIAL, false, false);
ROW(chain, "levels-chain", fits, TB_LEVEL_CHAIN, false, true);
ROW(ring, "levels-ring", fits_ring, TB_LEVEL_CHAIN, true, true);
