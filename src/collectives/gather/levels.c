/* By levels: who stands for a part of the network collects the blocks of all its ranks, of a host through its memory
 * where there is some, and sends them up together. Each block crosses each level once, in one message for each part, or
 * block by block, or in pieces of blocks, which go on as they come. The root takes bundles apart. Also for blocks of
 * different sizes, which at first only the root knows: ranks tell how much they have to who is to pass it on. */
#include "collectives/bundles.h"
#include "collectives/sides.h"

enum { EDGE_SIZES, EDGE_DATA };

/* One rank's part of it. */
struct gathering {
    const struct tb_collective *c;
    const struct tb_levels *l;
    struct tb_builder *b;
    struct tb_bundles x;
    bool unsized, root;
    bool alone;            /* it has no block but its own */
    uint32_t stages;       /* in which messages are sent */
    struct tb_bundle mine; /* what this rank collects */
};

/* Sizes of blocks that are passed on. */
static void sizes_collect(struct gathering *w, uint32_t parent)
{
    struct tb_builder *b = w->b;
    const struct tb_slice sizes = tb_bundles_packed(&w->x, TB_SYMBOL_SIZES, w->mine);
    uint32_t own = w->alone ? 0 : w->x.at[w->c->rank] - w->x.base;
    uint32_t first = tb_builder_measure(b, tb_slice_many(TB_SYMBOL_IN, 0, w->x.parts), own * w->x.parts);
    tb_bundles_receive_sizes(b, &w->x, 1, w->stages, EDGE_SIZES);
    uint32_t last = b->program.step_count;
    if (parent != w->c->root) {
        tb_builder_send(b, parent, EDGE_SIZES, sizes);
        tb_builder_join(b);
        for (uint32_t i = first; i < last; i++)
            tb_builder_after(b, i);
    }
    if (!w->alone) {
        w->x.bound = tb_builder_bind(b, w->mine.count * w->x.parts);
        for (uint32_t i = first; i < last; i++)
            tb_builder_after(b, i);
    }
}

/* The root knows them. */
static void sizes_find(struct gathering *w)
{
    uint32_t measured = tb_builder_measure(w->b, tb_bundles_placed(&w->x, TB_SYMBOL_OUT, w->mine), 0);
    w->x.bound = tb_builder_bind(w->b, w->mine.count * w->x.parts);
    tb_builder_after(w->b, measured);
}

/* The own block, or those of this host. */
static void own_take(struct gathering *w, bool common)
{
    const struct tb_collective *c = w->c;
    const struct tb_bundle own = tb_bundles_of_rank(&w->x, c->rank);
    struct tb_slice given = tb_slice_many(tb_source(c), c->in_place ? c->rank * w->x.parts : 0, w->x.parts);
    struct tb_bundle blocks = common ? tb_bundles_of_stage(&w->x, &w->l->stages[w->l->stage_count - 1]) : own;
    struct tb_slice taken =
        w->root ? tb_bundles_placed(&w->x, TB_SYMBOL_OUT, blocks) : tb_bundles_packed(&w->x, TB_SYMBOL_WORK, blocks);
    if (common)
        tb_bundles_note(&w->x, blocks, tb_levels_meet(w->b, w->l, TB_COMPOSITE_GATHER, 0, given, taken));
    else if (!c->in_place)
        tb_bundles_note(&w->x, blocks, tb_builder_copy(w->b, given, taken));
    if (!common && w->x.bound != TB_STEP_NONE && taken.symbol == TB_SYMBOL_WORK)
        tb_builder_after(w->b, w->x.bound);
}

/* The bundle of another part. */
static void bundle_take(struct gathering *w, const struct tb_level_part *part)
{
    const struct tb_bundle blocks = tb_bundles_of_part(&w->x, part);
    bool apart = w->x.joined && blocks.count > 1 && (w->unsized || !tb_bundles_in_order(&w->x, blocks));
    const struct tb_slice packed = tb_bundles_packed(&w->x, TB_SYMBOL_WORK, blocks);
    if (w->root && !apart) {
        tb_bundles_receive(&w->x, part->rank, EDGE_DATA, tb_bundles_placed(&w->x, TB_SYMBOL_OUT, blocks), blocks);
        return;
    }
    tb_bundles_receive(&w->x, part->rank, EDGE_DATA, packed, blocks);
    if (w->root) {
        tb_builder_copy(w->b, packed, tb_bundles_placed(&w->x, TB_SYMBOL_OUT, blocks));
        tb_bundles_after(&w->x, blocks);
    }
}

static void collect(struct gathering *w, bool common)
{
    const struct tb_stage *top = &w->l->stages[0];
    const uint32_t parent = top->parts[top->root].rank;
    if (w->unsized && !w->root && (!w->alone || parent != w->c->root))
        sizes_collect(w, parent);
    if (w->unsized && w->root && w->x.joined)
        sizes_find(w);
    if (!w->alone && !(w->root && w->c->guest))
        own_take(w, common);
    for (uint32_t i = w->root ? 0 : 1; i < w->stages; i++)
        for (uint32_t k = 0; k < w->l->stages[i].count; k++)
            if (k != w->l->stages[i].mine)
                bundle_take(w, &w->l->stages[i].parts[k]);
    if (!w->root)
        tb_bundles_send(&w->x, parent, EDGE_DATA,
                        w->alone ? tb_slice_many(TB_SYMBOL_IN, 0, w->x.parts)
                                 : tb_bundles_packed(&w->x, TB_SYMBOL_WORK, w->mine),
                        w->mine);
}

/* Opens the builder. */
static int steps_make(struct tb_builder *b, const struct tb_collective *c, uint32_t parts, bool joined)
{
    struct tb_levels l;
    struct gathering w = {.c = c, .l = &l, .b = b, .root = c->rank == c->root};
    w.unsized = c->operation == TB_OPERATION_GATHERV;
    int error = tb_levels_open(&l, c, c->root);
    tb_builder_open(b, (c->size - (c->guest ? 1 : 0)) * parts);
    if (error == TB_OK) {
        const struct tb_level_part *part = &l.stages[0].parts[l.stages[0].mine];
        bool common = !w.unsized && parts == 1 && tb_levels_common(&l);
        w.alone = !w.root && tb_part_size(c, part) == 1;
        error = tb_bundles_open(&w.x, b, &l, parts, joined, !w.alone);
        if (error == TB_OK && common && !tb_levels_leads(&l)) {
            tb_levels_meet(b, &l, TB_COMPOSITE_GATHER, 0, tb_slice_one(TB_SYMBOL_IN, 0), tb_slice_nothing());
        } else if (error == TB_OK) {
            w.stages = common ? tb_levels_message_stages(&l) : l.stage_count;
            w.mine = w.alone  ? (struct tb_bundle){0, 1}
                     : w.root ? tb_bundles_of_all(&w.x)
                              : tb_bundles_of_part(&w.x, part);
            w.x.base = w.mine.first;
            collect(&w, common);
        }
        tb_bundles_close(&w.x);
    }
    tb_levels_close(&l);
    return error;
}

static int levels_make(const struct tb_collective *c, uint32_t parts, bool joined, struct tb_program **program)
{
    struct tb_builder b;
    int error = steps_make(&b, c, parts, joined);
    tb_builder_places(&b, TB_COLLECTIVE_PLACES);
    tb_builder_fail(&b, error);
    return tb_builder_finish(&b, program);
}

static int make(const struct tb_collective *c, struct tb_program **program)
{
    return levels_make(c, tb_bundle_parts(c), tb_bundle_joined(c), program);
}

static int make_bundles(const struct tb_collective *c, struct tb_program **program)
{
    return levels_make(c, 1, true, program);
}

static int make_blocks(const struct tb_collective *c, struct tb_program **program)
{
    return levels_make(c, 1, false, program);
}

static int make_pieces(const struct tb_collective *c, struct tb_program **program)
{
    return levels_make(c, TB_BUNDLE_PIECES, false, program);
}

const struct tb_algorithm tb_gather_levels = {TB_OPERATION_GATHER,  "levels", tb_fits_bundles, make, "piece",
                                              tb_candidates_bundles};
const struct tb_algorithm tb_gatherv_levels_bundles = {
    TB_OPERATION_GATHERV, "levels-bundles", tb_fits_levels, make_bundles, NULL, NULL};
const struct tb_algorithm tb_gatherv_levels_blocks = {
    TB_OPERATION_GATHERV, "levels-blocks", tb_fits_levels, make_blocks, NULL, NULL};
const struct tb_algorithm tb_gatherv_levels_pieces = {
    TB_OPERATION_GATHERV, "levels-pieces", tb_fits_levels, make_pieces, NULL, NULL};

/* ---- between two groups ------------------------------------------------------------------------------------------ */

static int side_steps(struct tb_builder *b, const struct tb_collective *c)
{
    if (c->operation == TB_OPERATION_GATHERV)
        return steps_make(b, c, 1, true);
    struct tb_collective cut = tb_bundles_cut(c);
    return steps_make(b, &cut, tb_bundle_parts(&cut), tb_bundle_joined(&cut));
}

static int make_inter(const struct tb_collective *c, struct tb_program **program)
{
    return tb_side_make_rooted(c, side_steps, program);
}

const struct tb_algorithm tb_gather_levels_inter = {TB_OPERATION_GATHER, "levels-inter", tb_fits_bundles_inter,
                                                    make_inter,          "piece",        NULL};
const struct tb_algorithm tb_gatherv_levels_inter = {TB_OPERATION_GATHERV, "levels-inter", tb_fits_sides,
                                                     make_inter,           NULL,           NULL};
