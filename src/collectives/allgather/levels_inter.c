/* Between two groups: in each one the blocks of all ranks go up to its leader, bundled at each level, the two leaders
 * exchange them, ordered by ranks, and pass what they got down to their groups. So the blocks of a group cross to each
 * place of the other one once. Ranks know the sizes of the other group's blocks, but not of their own group's: these
 * are told before the blocks. What comes of the other group is passed on from where it is to be, in allgatherv from
 * WORK. */
#include "collectives/bundles.h"
#include "collectives/sides.h"

#include <stdlib.h>

enum { EDGE_SIZES, EDGE_UP, EDGE_DOWN };

#define CHUNKS                                                                                                         \
    4u /* messages that the blocks of a group cross in, so that the first ones go on before the last come              \
        */

/* One rank's part of it. In WORK are first the blocks that it collects, at the leader then the same by ranks unless
 * they are so already, and last those of the other group if blocks are of any length. */
struct trade {
    struct tb_builder *b;
    const struct tb_side *s;
    const struct tb_levels *l;
    struct tb_bundles x;
    struct tb_bundle mine;
    bool leads, alone, sorts, sized;
    struct tb_slice theirs;
    uint32_t bound;
};

/* Who is told what this rank has collected; not of the leader. */
static uint32_t parent_of(const struct trade *w)
{
    const struct tb_stage *top = &w->l->stages[0];
    return top->parts[top->root].rank;
}

/* The first stage whose other parts this rank collects from. */
static uint32_t stage_first(const struct trade *w)
{
    return w->leads ? 0 : 1;
}

/* ---- sizes ------------------------------------------------------------------------------------------------------- */

/* Of the blocks of this group that this rank passes on, and of those of the other group. */
static uint32_t sizes_collect(struct trade *w)
{
    const struct tb_collective *c = &w->s->call;
    struct tb_builder *b = w->b;
    const struct tb_slice sizes = tb_bundles_packed(&w->x, TB_SYMBOL_SIZES, w->mine);
    tb_builder_measure(b, tb_slice_one(TB_SYMBOL_IN, 0), w->alone ? 0 : w->x.at[c->rank] - w->x.base);
    tb_bundles_receive_sizes(b, &w->x, stage_first(w), w->alone ? 0 : w->l->stage_count, EDGE_SIZES);
    uint32_t count = b->program.step_count;
    if (!w->leads) {
        tb_builder_send(b, parent_of(w), EDGE_SIZES, sizes);
        tb_builder_join(b);
        for (uint32_t i = 0; i < count; i++)
            tb_builder_after(b, i);
    }
    return count;
}

static int room_bind(struct trade *w)
{
    uint32_t mine = w->alone ? 0 : w->mine.count, sorted = w->sorts ? mine : 0;
    uint32_t theirs = w->sized ? 0 : w->s->of->remote_size, measured = TB_STEP_NONE;
    uint32_t told = sizes_collect(w), total = mine + sorted + theirs, first = w->alone ? 1 : mine;
    w->theirs = tb_slice_many(TB_SYMBOL_OUT, 0, w->s->of->remote_size);
    if (!w->sized)
        measured = tb_builder_measure(w->b, w->theirs, first);
    if (total == 0)
        return TB_OK;
    uint32_t *sizes = malloc(total * sizeof(*sizes));
    if (sizes == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for the sizes of %u blocks", total);
    for (uint32_t i = 0; i < total; i++)
        sizes[i] = i < mine ? i : i < mine + sorted ? w->x.at[i - mine] : first + i - mine - sorted;
    if (!w->sized)
        w->theirs = tb_slice_many(TB_SYMBOL_WORK, mine + sorted, theirs);
    w->bound = tb_builder_bind_list(w->b, sizes, total);
    if (!w->sized)
        tb_builder_after(w->b, measured);
    for (uint32_t i = 0; i < told; i++)
        tb_builder_after(w->b, i);
    w->x.bound = w->bound;
    free(sizes);
    return TB_OK;
}

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

static void blocks_collect(struct trade *w)
{
    const struct tb_collective *c = &w->s->call;
    const struct tb_slice in = tb_slice_one(TB_SYMBOL_IN, 0);
    if (w->alone) {
        tb_builder_send(w->b, parent_of(w), EDGE_UP, in);
        return;
    }
    struct tb_bundle own = tb_bundles_of_rank(&w->x, c->rank);
    tb_bundles_note(&w->x, own, tb_builder_copy(w->b, in, tb_bundles_packed(&w->x, TB_SYMBOL_WORK, own)));
    tb_builder_after(w->b, w->bound);
    for (uint32_t i = stage_first(w); i < w->l->stage_count; i++)
        for (uint32_t k = 0; k < w->l->stages[i].count; k++) {
            const struct tb_level_part *part = &w->l->stages[i].parts[k];
            struct tb_bundle blocks = tb_bundles_of_part(&w->x, part);
            if (k != w->l->stages[i].mine)
                tb_bundles_receive(&w->x, part->rank, EDGE_UP, tb_bundles_packed(&w->x, TB_SYMBOL_WORK, blocks),
                                   blocks);
        }
    if (!w->leads)
        tb_bundles_send(&w->x, parent_of(w), EDGE_UP, tb_bundles_packed(&w->x, TB_SYMBOL_WORK, w->mine), w->mine);
}

/* The last added step is about all blocks of a group, in a few messages. */
static void chunks_cut(struct trade *w, uint32_t blocks)
{
    tb_builder_cut(w->b, (blocks + CHUNKS - 1) / CHUNKS);
}

/* What the leader has collected, ordered by ranks, to the leader of the other group. */
static void blocks_cross(struct trade *w)
{
    uint32_t size = w->s->call.size, sorted = TB_STEP_NONE;
    struct tb_slice ours = tb_slice_many(TB_SYMBOL_WORK, 0, size);
    if (w->sorts) {
        struct tb_slice to = tb_slice_many(TB_SYMBOL_WORK, size, size);
        sorted = tb_builder_copy(w->b, tb_builder_list(w->b, TB_SYMBOL_WORK, w->x.at, size), to);
        for (uint32_t i = 0; i < w->x.came_count; i++)
            tb_builder_after(w->b, w->x.came[i].step);
        ours = to;
    }
    tb_builder_send(w->b, w->s->other, EDGE_UP, ours);
    chunks_cut(w, size);
    for (uint32_t i = 0; i < w->x.came_count && !w->sorts; i++)
        tb_builder_after(w->b, w->x.came[i].step);
    tb_after_pieces(w->b, sorted);
}

static uint32_t blocks_receive(struct trade *w, uint32_t from, uint16_t edge)
{
    uint32_t step = tb_builder_receive(w->b, from, edge, w->theirs);
    chunks_cut(w, w->theirs.count);
    if (!w->sized)
        tb_builder_after(w->b, w->bound);
    return step;
}

/* The other group's blocks to everyone. */
static void blocks_pass(struct trade *w)
{
    const struct tb_level_kinds k = {.wide = TB_LEVEL_FLAT, .narrow = TB_LEVEL_BINOMIAL};
    uint32_t come = TB_STEP_NONE;
    struct tb_tree t;
    if (w->leads)
        come = blocks_receive(w, w->s->other, EDGE_UP);
    for (uint32_t i = 0; i < w->l->stage_count; i++) {
        tb_stage_tree(&t, w->l, &w->l->stages[i], &k, 0);
        come = t.root ? come : blocks_receive(w, t.parent, EDGE_DOWN);
        for (uint32_t n = 0; n < t.count; n++) {
            tb_builder_send(w->b, t.children[n], EDGE_DOWN, w->theirs);
            chunks_cut(w, w->theirs.count);
            tb_builder_after_pieces(w->b, come);
        }
    }
    if (!w->sized) {
        tb_builder_copy(w->b, w->theirs, tb_slice_many(TB_SYMBOL_OUT, 0, w->theirs.count));
        tb_builder_after_pieces(w->b, come);
    }
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static int side_steps(struct tb_builder *b, const struct tb_side *s)
{
    const struct tb_collective *c = &s->call;
    struct tb_levels l;
    struct trade w = {.b = b, .s = s, .l = &l, .leads = c->rank == s->leader, .bound = TB_STEP_NONE};
    int error = tb_levels_open(&l, c, s->leader);
    tb_builder_open(b, s->of->remote_size);
    if (error == TB_OK)
        error = tb_bundles_open(&w.x, b, &l, 1, true, true);
    if (error == TB_OK) {
        w.mine = w.leads ? tb_bundles_of_all(&w.x) : tb_bundles_of_part(&w.x, &l.stages[0].parts[l.stages[0].mine]);
        w.alone = !w.leads && w.mine.count == 1;
        w.sorts = w.leads && !tb_bundles_in_order(&w.x, w.mine);
        w.x.base = w.mine.first;
        w.sized = c->operation == TB_OPERATION_ALLGATHER;
        error = room_bind(&w);
    }
    if (error == TB_OK) {
        blocks_collect(&w);
        if (w.leads)
            blocks_cross(&w);
        blocks_pass(&w);
    }
    tb_bundles_close(&w.x);
    tb_levels_close(&l);
    return error;
}

static int make(const struct tb_collective *c, struct tb_program **program)
{
    return tb_side_make(c, side_steps, program);
}

const struct tb_algorithm tb_allgather_levels_inter = {
    TB_OPERATION_ALLGATHER, "levels-inter", tb_fits_sides, make, NULL, NULL};
const struct tb_algorithm tb_allgatherv_levels_inter = {
    TB_OPERATION_ALLGATHERV, "levels-inter", tb_fits_sides, make, NULL, NULL};
