/* By levels, block by block or in pieces of blocks, for long ones: in each stage those who stand for its parts give
 * each other the blocks of these, directly or around a ring, and who stands for the whole passes on what comes from
 * elsewhere, along a tree. Each block comes to each part of each place once, and straight to its place; it goes on as
 * it comes. What comes from different parts of the widest place, over different links, does not wait for each other. */
#include "collectives/allgather/levels.h"

#define EDGE_RING 256u /* and above: one for each part of a stage; below: what comes from elsewhere */

static void ring(struct tb_bundles *x, const struct tb_stage *s)
{
    uint32_t next = s->parts[(s->mine + 1) % s->count].rank,
             before = s->parts[(s->mine + s->count - 1) % s->count].rank;
    for (uint32_t i = 0; i + 1 < s->count; i++) {
        uint32_t given = (s->mine + s->count - i) % s->count, taken = (given + s->count - 1) % s->count;
        struct tb_bundle blocks = tb_bundles_of_part(x, &s->parts[given]);
        tb_bundles_send(x, next, (uint16_t)(EDGE_RING + given), tb_bundles_placed(x, TB_SYMBOL_OUT, blocks), blocks);
        blocks = tb_bundles_of_part(x, &s->parts[taken]);
        tb_bundles_receive(x, before, (uint16_t)(EDGE_RING + taken), tb_bundles_placed(x, TB_SYMBOL_OUT, blocks),
                           blocks);
    }
}

static void exchange(struct tb_bundles *x, const struct tb_stage *s)
{
    const struct tb_bundle mine = tb_bundles_of_part(x, &s->parts[s->mine]);
    const struct tb_slice given = tb_bundles_placed(x, TB_SYMBOL_OUT, mine);
    for (uint32_t i = 1; i < s->count; i++)
        tb_bundles_send(x, s->parts[(s->mine + i) % s->count].rank, EDGE_RING, given, mine);
    for (uint32_t i = 1; i < s->count; i++) {
        const struct tb_level_part *other = &s->parts[(s->mine + s->count - i) % s->count];
        const struct tb_bundle blocks = tb_bundles_of_part(x, other);
        tb_bundles_receive(x, other->rank, EDGE_RING, tb_bundles_placed(x, TB_SYMBOL_OUT, blocks), blocks);
    }
}

/* Blocks from elsewhere, along the tree of a stage. */
static void spread(struct tb_bundles *x, const struct tb_tree *t, uint16_t edge, struct tb_bundle blocks)
{
    if (blocks.count == 0)
        return;
    const struct tb_slice slice = tb_bundles_placed(x, TB_SYMBOL_OUT, blocks);
    if (!t->root)
        tb_bundles_receive(x, t->parent, edge, slice, blocks);
    /* Each piece has left for one child before it goes to the next. */
    for (uint32_t i = 0, sent = 0; i < t->count; i++) {
        uint32_t before = sent;
        sent = tb_bundles_send(x, t->children[i], edge, slice, blocks);
        if (i > 0)
            tb_builder_after_pieces(x->builder, before);
    }
}

static bool within(struct tb_bundle inner, struct tb_bundle outer)
{
    return inner.first >= outer.first && inner.first + inner.count <= outer.first + outer.count;
}

static void stage_spread(struct tb_bundles *x, const struct tb_stage *s, const struct tb_allgather_kind *k)
{
    const struct tb_levels *l = x->levels;
    const struct tb_bundle here = tb_bundles_of_stage(x, s);
    struct tb_bundle around = here;
    struct tb_tree t;
    if (s->place == l->top)
        return;
    tb_stage_tree(&t, l, s, &k->trees, 0);
    for (uint32_t i = 0; i < l->parts; i++) {
        struct tb_bundle part = tb_bundles_of_part(x, &l->top_parts[i]);
        if (within(here, part))
            around = part;
        else
            spread(x, &t, (uint16_t)(2 + i), part);
    }
    spread(x, &t, 0, (struct tb_bundle){around.first, here.first - around.first});
    uint32_t end = here.first + here.count;
    spread(x, &t, 1, (struct tb_bundle){end, around.first + around.count - end});
}

void tb_allgather_pieces(struct tb_bundles *x, const struct tb_allgather_kind *k)
{
    const struct tb_levels *l = x->levels;
    const struct tb_collective *c = l->call;
    const struct tb_bundle own = tb_bundles_of_rank(x, c->rank);
    x->window = TB_BUNDLE_WINDOW;
    if (!c->in_place)
        tb_bundles_note(x, own,
                        tb_builder_copy(x->builder, tb_slice_many(TB_SYMBOL_IN, 0, x->parts),
                                        tb_bundles_placed(x, TB_SYMBOL_OUT, own)));
    for (uint32_t i = l->stage_count; i-- > 0;) {
        const struct tb_stage *s = &l->stages[i];
        if (s->wide ? k->wide_ring : k->narrow_ring)
            ring(x, s);
        else
            exchange(x, s);
    }
    for (uint32_t i = 0; i < l->stage_count; i++)
        stage_spread(x, &l->stages[i], k);
}
