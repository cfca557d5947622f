/* Down the first tree of a forest: each host gets the blocks of all ranks behind it together, block by block, or in
 * pieces of blocks, and passes them on. Whole bundles go to one child after the other if the forest has no pieces, and
 * otherwise to all at once. Within a host through common memory where there is some, or straight from its leader. */
#include "collectives/planned_blocks.h"

/* A child gets those behind it, in whole bundles after step `before`. Returns the step. */
static uint32_t bundle_give(struct tb_planned_blocks *w, struct tb_builder *b, uint32_t child, uint32_t before)
{
    const struct tb_bundle blocks = w->behind[child];
    struct tb_slice at = tb_planned_blocks_at(w, TB_SYMBOL_IN, blocks);
    if (tb_planned_blocks_apart(w, blocks)) {
        const struct tb_slice packed = tb_bundles_packed(&w->x, TB_SYMBOL_WORK, blocks);
        tb_bundles_note(&w->x, blocks, tb_builder_copy(b, at, packed));
        at = packed;
    }
    uint32_t sent = tb_bundles_send(&w->x, tb_planned_child(&w->planned, 0, child), 0, at, blocks);
    if (before != TB_STEP_NONE && w->x.joined && w->planned.call->forest->piece == 0)
        tb_builder_after(b, before);
    return sent;
}

/* The leader gives the ranks of its host their blocks. */
static void here_give(struct tb_planned_blocks *w, struct tb_builder *b)
{
    const struct tb_collective *c = w->planned.call;
    const struct tb_slice out = tb_slice_many(TB_SYMBOL_OUT, 0, w->x.parts), nothing = tb_slice_nothing();
    if (w->common) {
        tb_hosts_meet(b, &w->planned.host, c, TB_COMPOSITE_SCATTER, 0, tb_planned_blocks_at(w, TB_SYMBOL_IN, w->here),
                      c->in_place ? nothing : out);
        tb_bundles_after(&w->x, w->here);
        return;
    }
    for (uint32_t i = 0; i < w->here.count; i++) {
        const struct tb_bundle one = {i, 1};
        const struct tb_slice given = tb_planned_blocks_at(w, TB_SYMBOL_IN, one);
        if (w->x.ranks[i] != c->rank) {
            tb_bundles_send(&w->x, w->x.ranks[i], 0, given, one);
        } else if (!c->in_place) {
            tb_builder_copy(b, given, out);
            tb_bundles_after(&w->x, one);
        }
    }
}

static void distribute(struct tb_planned_blocks *w, struct tb_builder *b)
{
    const struct tb_slice own = tb_slice_many(TB_SYMBOL_OUT, 0, w->x.parts);
    bool one = tb_planned_blocks_one(w);
    uint32_t parent, sent = TB_STEP_NONE;
    w->x.window = TB_BUNDLE_WINDOW;
    if (tb_planned_parent(&w->planned, 0, &parent))
        tb_bundles_receive(&w->x, parent, 0, one ? own : tb_bundles_packed(&w->x, TB_SYMBOL_WORK, w->all), w->all);
    for (uint32_t i = 0; i < w->children; i++)
        sent = bundle_give(w, b, i, sent);
    if (!one)
        here_give(w, b);
}

static int make(const struct tb_collective *c, struct tb_program **program)
{
    struct tb_planned_blocks w;
    struct tb_builder b;
    int error = tb_planned_blocks_open(&w, &b, c, true);
    if (error == TB_OK && w.planned.leads) {
        distribute(&w, &b);
    } else if (error == TB_OK && w.common) {
        tb_hosts_meet(&b, &w.planned.host, c, TB_COMPOSITE_SCATTER, 0, tb_slice_nothing(),
                      tb_slice_one(TB_SYMBOL_OUT, 0));
    } else if (error == TB_OK) {
        tb_builder_receive(&b, w.planned.host.leader, 0, tb_slice_many(TB_SYMBOL_OUT, 0, w.x.parts));
        if (w.x.joined)
            tb_builder_join(&b);
    }
    tb_planned_blocks_close(&w);
    tb_builder_places(&b, TB_COLLECTIVE_PLACES);
    tb_builder_fail(&b, error);
    return tb_builder_finish(&b, program);
}

const struct tb_algorithm tb_scatter_planned = {
    TB_OPERATION_SCATTER, "planned", tb_fits_planned_blocks, make, NULL, NULL};
