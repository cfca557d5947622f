/* By levels: who stands for a part of the network gets the blocks of all its ranks together and passes them on to its
 * parts, within a host through its memory where there is some. Each block crosses each level once, in one message for
 * each part, or block by block, or in pieces of blocks, which go on as they come. The root puts bundles together. Where
 * multicast works, one bundle of a whole cluster can go to all of its hosts, each of which takes what is its own. Also
 * for blocks of different sizes, which at first only the root knows: who is to pass blocks on is told them first. */
#include "collectives/bundles.h"
#include "collectives/sides.h"

enum { EDGE_SIZES, EDGE_DATA };

/* One rank's part of it. */
struct scattering {
    const struct tb_collective *c;
    const struct tb_levels *l;
    struct tb_builder *b;
    struct tb_bundles x;
    bool unsized, root;
    bool alone;                  /* it has no block but its own */
    const struct tb_stage *cast; /* whose hosts get the blocks of all of them at once; NULL: none */
    uint32_t stages;             /* in which messages are sent */
    struct tb_bundle mine;       /* what this rank passes on */
    uint32_t measured;           /* the step with which sizes are there */
};

/* All blocks of the hosts of a cluster, by multicast: each takes its own. */
static void bundle_cast(struct scattering *w)
{
    const struct tb_bundle blocks = tb_bundles_of_stage(&w->x, w->cast);
    struct tb_slice data = tb_bundles_packed(&w->x, TB_SYMBOL_WORK, blocks);
    if (w->root && tb_bundles_in_order(&w->x, blocks))
        data = tb_bundles_placed(&w->x, TB_SYMBOL_IN, blocks);
    else if (w->root)
        tb_bundles_note(&w->x, blocks, tb_builder_copy(w->b, tb_bundles_placed(&w->x, TB_SYMBOL_IN, blocks), data));
    uint32_t step = tb_stage_cast(w->b, w->cast, 0, data);
    if (w->cast->mine == w->cast->root)
        tb_bundles_after(&w->x, blocks);
    else
        tb_bundles_note(&w->x, blocks, step);
}

/* What this rank gets: sizes if it passes something on, and blocks. */
static void bundle_take(struct scattering *w)
{
    const struct tb_stage *top = &w->l->stages[0];
    const uint32_t parent = top->parts[top->root].rank;
    if (w->unsized && !w->alone) {
        w->measured = tb_builder_receive(w->b, parent, EDGE_SIZES, tb_bundles_packed(&w->x, TB_SYMBOL_SIZES, w->mine));
        tb_builder_join(w->b);
        w->x.bound = tb_builder_bind(w->b, w->mine.count * w->x.parts);
        tb_builder_after(w->b, w->measured);
    }
    tb_bundles_receive(&w->x, parent, EDGE_DATA,
                       w->alone ? tb_slice_many(TB_SYMBOL_OUT, 0, w->x.parts)
                                : tb_bundles_packed(&w->x, TB_SYMBOL_WORK, w->mine),
                       w->mine);
}

/* The root has it all and knows all sizes. */
static void bundle_find(struct scattering *w)
{
    if (!w->unsized)
        return;
    w->measured = tb_builder_measure(w->b, tb_bundles_placed(&w->x, TB_SYMBOL_IN, w->mine), 0);
    if (w->x.joined) {
        w->x.bound = tb_builder_bind(w->b, w->mine.count * w->x.parts);
        tb_builder_after(w->b, w->measured);
    }
}

/* Gives another part its blocks. */
static void bundle_give(struct scattering *w, const struct tb_level_part *part)
{
    const struct tb_bundle blocks = tb_bundles_of_part(&w->x, part);
    bool apart = w->x.joined && blocks.count > 1 && (w->unsized || !tb_bundles_in_order(&w->x, blocks));
    const struct tb_slice packed = tb_bundles_packed(&w->x, TB_SYMBOL_WORK, blocks);
    if (w->unsized && blocks.count > 1) {
        tb_builder_send(w->b, part->rank, EDGE_SIZES, tb_bundles_packed(&w->x, TB_SYMBOL_SIZES, blocks));
        tb_builder_join(w->b);
        tb_builder_after(w->b, w->measured);
    }
    if (w->root && !apart) {
        tb_bundles_send(&w->x, part->rank, EDGE_DATA, tb_bundles_placed(&w->x, TB_SYMBOL_IN, blocks), blocks);
        return;
    }
    if (w->root) {
        tb_bundles_note(&w->x, blocks, tb_builder_copy(w->b, tb_bundles_placed(&w->x, TB_SYMBOL_IN, blocks), packed));
        if (w->x.bound != TB_STEP_NONE)
            tb_builder_after(w->b, w->x.bound);
    }
    tb_bundles_send(&w->x, part->rank, EDGE_DATA, packed, blocks);
}

/* The own block, or those of this host, of a rank that has several. */
static void own_give(struct scattering *w, bool common)
{
    const struct tb_collective *c = w->c;
    const struct tb_slice out = tb_slice_many(TB_SYMBOL_OUT, 0, w->x.parts);
    struct tb_bundle blocks =
        common ? tb_bundles_of_stage(&w->x, &w->l->stages[w->l->stage_count - 1]) : tb_bundles_of_rank(&w->x, c->rank);
    struct tb_slice given =
        w->root ? tb_bundles_placed(&w->x, TB_SYMBOL_IN, blocks) : tb_bundles_packed(&w->x, TB_SYMBOL_WORK, blocks);
    if (common)
        tb_levels_meet(w->b, w->l, TB_COMPOSITE_SCATTER, 0, given, c->in_place ? tb_slice_nothing() : out);
    else if (!c->in_place)
        tb_builder_copy(w->b, given, out);
    if (!w->root)
        tb_bundles_after(&w->x, blocks);
}

static void distribute(struct scattering *w, bool common)
{
    if (w->root)
        bundle_find(w);
    else if (w->cast != w->l->stages)
        bundle_take(w);
    for (uint32_t i = w->root || w->cast == w->l->stages ? 0 : 1; i < w->stages; i++) {
        if (&w->l->stages[i] == w->cast)
            bundle_cast(w);
        for (uint32_t k = 0; &w->l->stages[i] != w->cast && k < w->l->stages[i].count; k++)
            if (k != w->l->stages[i].mine)
                bundle_give(w, &w->l->stages[i].parts[k]);
    }
    if (!w->alone && !(w->root && w->c->guest))
        own_give(w, common);
}

/* Opens the builder. */
static int steps_make(struct tb_builder *b, const struct tb_collective *c, uint32_t parts, bool joined, bool cast)
{
    const struct tb_level_kinds kinds = {TB_LEVEL_FLAT, TB_LEVEL_FLAT, cast};
    struct tb_levels l;
    struct scattering w = {.c = c, .l = &l, .b = b, .root = c->rank == c->root};
    w.unsized = c->operation == TB_OPERATION_SCATTERV;
    int error = tb_levels_open(&l, c, c->root);
    tb_builder_open(b, (c->size - (c->guest ? 1 : 0)) * parts);
    if (error == TB_OK) {
        const struct tb_level_part *part = &l.stages[0].parts[l.stages[0].mine];
        bool common =
            !w.unsized && parts == 1 && tb_levels_common(&l) && l.stages[l.stage_count - 1].count <= TB_COMMON_DEALS;
        w.cast = tb_levels_cast_stage(&l, &kinds);
        w.alone = !w.root && w.cast != l.stages && tb_part_size(c, part) == 1;
        error = tb_bundles_open(&w.x, b, &l, parts, joined, !w.alone);
        if (error == TB_OK && common && !tb_levels_leads(&l)) {
            tb_levels_meet(b, &l, TB_COMPOSITE_SCATTER, 0, tb_slice_nothing(), tb_slice_one(TB_SYMBOL_OUT, 0));
        } else if (error == TB_OK) {
            w.stages = common ? tb_levels_message_stages(&l) : l.stage_count;
            w.mine = w.alone              ? (struct tb_bundle){0, 1}
                     : w.root             ? tb_bundles_of_all(&w.x)
                     : w.cast == l.stages ? tb_bundles_of_stage(&w.x, w.cast)
                                          : tb_bundles_of_part(&w.x, part);
            w.x.base = w.mine.first;
            w.x.window = TB_BUNDLE_WINDOW;
            distribute(&w, common);
        }
        tb_bundles_close(&w.x);
    }
    tb_levels_close(&l);
    return error;
}

static int levels_make(const struct tb_collective *c, uint32_t parts, bool joined, bool cast,
                       struct tb_program **program)
{
    struct tb_builder b;
    int error = steps_make(&b, c, parts, joined, cast);
    tb_builder_places(&b, TB_COLLECTIVE_PLACES);
    tb_builder_fail(&b, error);
    return tb_builder_finish(&b, program);
}

static int make(const struct tb_collective *c, struct tb_program **program)
{
    return levels_make(c, tb_bundle_parts(c), tb_bundle_joined(c), false, program);
}

static int make_bundles(const struct tb_collective *c, struct tb_program **program)
{
    return levels_make(c, 1, true, false, program);
}

static int make_blocks(const struct tb_collective *c, struct tb_program **program)
{
    return levels_make(c, 1, false, false, program);
}

static int make_pieces(const struct tb_collective *c, struct tb_program **program)
{
    return levels_make(c, TB_BUNDLE_PIECES, false, false, program);
}

/* Hosts get the blocks of others, too: what that saves is messages, which counts where blocks are short. */
static bool fits_multicast(const struct tb_collective *c)
{
    return tb_fits_cast(c) && c->elements * c->element_bytes <= TB_BUNDLE_LIMIT / c->size;
}

static int make_multicast(const struct tb_collective *c, struct tb_program **program)
{
    return levels_make(c, 1, true, true, program);
}

const struct tb_algorithm tb_scatter_multicast = {
    TB_OPERATION_SCATTER, "levels-multicast", fits_multicast, make_multicast, NULL, NULL};
const struct tb_algorithm tb_scatter_levels = {TB_OPERATION_SCATTER, "levels", tb_fits_bundles, make, "piece",
                                               tb_candidates_bundles};
const struct tb_algorithm tb_scatterv_levels_bundles = {
    TB_OPERATION_SCATTERV, "levels-bundles", tb_fits_levels, make_bundles, NULL, NULL};
const struct tb_algorithm tb_scatterv_levels_blocks = {
    TB_OPERATION_SCATTERV, "levels-blocks", tb_fits_levels, make_blocks, NULL, NULL};
const struct tb_algorithm tb_scatterv_levels_pieces = {
    TB_OPERATION_SCATTERV, "levels-pieces", tb_fits_levels, make_pieces, NULL, NULL};

/* ---- between two groups ------------------------------------------------------------------------------------------ */

static int side_steps(struct tb_builder *b, const struct tb_collective *c)
{
    if (c->operation == TB_OPERATION_SCATTERV)
        return steps_make(b, c, 1, true, false);
    struct tb_collective cut = tb_bundles_cut(c);
    return steps_make(b, &cut, tb_bundle_parts(&cut), tb_bundle_joined(&cut), false);
}

static int make_inter(const struct tb_collective *c, struct tb_program **program)
{
    return tb_side_make_rooted(c, side_steps, program);
}

const struct tb_algorithm tb_scatter_levels_inter = {TB_OPERATION_SCATTER, "levels-inter", tb_fits_bundles_inter,
                                                     make_inter,           "piece",        NULL};
const struct tb_algorithm tb_scatterv_levels_inter = {
    TB_OPERATION_SCATTERV, "levels-inter", tb_fits_sides, make_inter, NULL, NULL};
