/* Up the first tree of a forest: each host sends the blocks of all ranks behind it together, block by block, or in
 * pieces of blocks, which go on as they come. Within a host through common memory where there is some, or straight to
 * its leader. */
#include "collectives/planned_blocks.h"

/* The blocks of this host's ranks come to its leader. */
static void here_take(struct tb_planned_blocks *w, struct tb_builder *b)
{
    const struct tb_collective *c = w->planned.call;
    const struct tb_slice given = tb_slice_many(tb_source(c), c->in_place ? c->rank * w->x.parts : 0, w->x.parts);
    if (w->common) {
        struct tb_slice taken = tb_planned_blocks_at(w, TB_SYMBOL_OUT, w->here);
        tb_bundles_note(&w->x, w->here, tb_hosts_meet(b, &w->planned.host, c, TB_COMPOSITE_GATHER, 0, given, taken));
        return;
    }
    for (uint32_t i = 0; i < w->here.count; i++) {
        const struct tb_bundle one = {i, 1};
        struct tb_slice taken = tb_planned_blocks_at(w, TB_SYMBOL_OUT, one);
        if (w->x.ranks[i] != c->rank)
            tb_bundles_receive(&w->x, w->x.ranks[i], 0, taken, one);
        else if (!c->in_place)
            tb_bundles_note(&w->x, one, tb_builder_copy(b, given, taken));
    }
}

/* Those behind a child. */
static void bundle_take(struct tb_planned_blocks *w, struct tb_builder *b, uint32_t child)
{
    const struct tb_bundle blocks = w->behind[child];
    const struct tb_slice at = tb_planned_blocks_at(w, TB_SYMBOL_OUT, blocks);
    const uint32_t peer = tb_planned_child(&w->planned, 0, child);
    if (!tb_planned_blocks_apart(w, blocks)) {
        tb_bundles_receive(&w->x, peer, 0, at, blocks);
        return;
    }
    struct tb_slice packed = tb_bundles_packed(&w->x, TB_SYMBOL_WORK, blocks);
    tb_bundles_receive(&w->x, peer, 0, packed, blocks);
    tb_builder_copy(b, packed, at);
    tb_bundles_after(&w->x, blocks);
}

static void collect(struct tb_planned_blocks *w, struct tb_builder *b)
{
    const struct tb_slice own = tb_slice_many(TB_SYMBOL_IN, 0, w->x.parts);
    bool one = tb_planned_blocks_one(w);
    uint32_t parent;
    if (!one)
        here_take(w, b);
    for (uint32_t i = w->children; i-- > 0;)
        bundle_take(w, b, i);
    if (tb_planned_parent(&w->planned, 0, &parent))
        tb_bundles_send(&w->x, parent, 0, one ? own : tb_bundles_packed(&w->x, TB_SYMBOL_WORK, w->all), w->all);
}

static int make(const struct tb_collective *c, struct tb_program **program)
{
    struct tb_planned_blocks w;
    struct tb_builder b;
    int error = tb_planned_blocks_open(&w, &b, c, false);
    if (error == TB_OK && w.planned.leads)
        collect(&w, &b);
    else if (error == TB_OK && w.common)
        tb_hosts_meet(&b, &w.planned.host, c, TB_COMPOSITE_GATHER, 0, tb_slice_one(TB_SYMBOL_IN, 0),
                      tb_slice_nothing());
    else if (error == TB_OK)
        tb_bundles_send(&w.x, w.planned.host.leader, 0, tb_slice_many(TB_SYMBOL_IN, 0, w.x.parts), w.all);
    tb_planned_blocks_close(&w);
    tb_builder_places(&b, TB_COLLECTIVE_PLACES);
    tb_builder_fail(&b, error);
    return tb_builder_finish(&b, program);
}

const struct tb_algorithm tb_gather_planned = {
    TB_OPERATION_GATHER, "planned", tb_fits_planned_blocks, make, NULL, NULL};
