/* Ranks of a host meet in its memory, those who stand for the parts of a place tell who stands for it, those at the
 * widest level tell each other, and all are let go by levels. One message crosses the widest level one after the other,
 * or the logarithm of its parts, where these are too many to tell each of them. */
#include "collectives/sides.h"

#define DIRECT_MOST 16u

/* Steps that the next ones come after. */
struct told {
    uint32_t *steps;
    uint32_t count;
};

static void after_told(struct tb_builder *b, const struct told *told)
{
    for (uint32_t i = 0; i < told->count; i++)
        tb_builder_after(b, told->steps[i]);
}

/* A step that stands for all that were told: what comes later needs to know of it alone. */
static void told_set(struct told *told, uint32_t step)
{
    told->steps[0] = step;
    told->count = 1;
}

static void top_meet(struct tb_builder *b, const struct tb_stage *s, struct told *told)
{
    const struct tb_slice nothing = tb_slice_nothing();
    uint32_t n = s->count;
    if (n <= DIRECT_MOST) {
        for (uint32_t i = 1; i < n; i++) {
            tb_builder_send(b, s->parts[(s->mine + i) % n].rank, 0, nothing);
            after_told(b, told);
        }
        for (uint32_t i = 1; i < n; i++)
            told->steps[told->count++] = tb_builder_receive(b, s->parts[(s->mine + n - i) % n].rank, 0, nothing);
        return;
    }
    uint16_t round = 0;
    for (uint32_t distance = 1; distance < n; distance *= 2, round++) {
        uint32_t sent = tb_builder_send(b, s->parts[(s->mine + distance) % n].rank, round, nothing);
        after_told(b, told);
        told_set(told, tb_builder_receive(b, s->parts[(s->mine + n - distance) % n].rank, round, nothing));
        told->steps[told->count++] = sent;
    }
}

/* The leaders of two groups tell each other. */
static void leaders_meet(struct tb_builder *b, uint32_t other, struct told *told)
{
    tb_builder_send(b, other, 0, tb_slice_nothing());
    after_told(b, told);
    told->steps[told->count++] = tb_builder_receive(b, other, 0, tb_slice_nothing());
}

/* All of a cluster are let go at once. */
static void cast(struct tb_builder *b, const struct tb_levels *l, const struct tb_level_kinds *k, struct told *told)
{
    struct tb_level_shares none = {.count = 0};
    uint32_t come = TB_STEP_NONE;
    tb_levels_cast(b, l, k, 0, &come, &none, TB_STEP_NONE);
    after_told(b, told);
    told_set(told, b->program.step_count - 1);
}

/* Between the ways up and down stands the exchange at the widest level, or that with the leader of the other group. */
static void lead(struct tb_builder *b, const struct tb_levels *l, const struct tb_level_kinds *k,
                 const struct tb_side *side, struct told *told)
{
    const struct tb_slice nothing = tb_slice_nothing();
    bool meets = side == NULL && tb_levels_at_top(l) && l->stages != tb_levels_cast_stage(l, k);
    uint32_t narrow = meets ? 1 : 0, stages = tb_levels_message_stages(l);
    struct tb_tree t;
    for (uint32_t i = stages; i-- > narrow;) {
        tb_levels_tree(b, &t, l, &l->stages[i], k, 0);
        for (uint32_t n = 0; n < t.count; n++)
            told->steps[told->count++] = tb_builder_receive(b, t.children[n], 0, nothing);
        if (!t.root) {
            uint32_t sent = tb_builder_send(b, t.parent, 0, nothing);
            after_told(b, told);
            told_set(told, sent);
        }
    }
    if (narrow > 0)
        top_meet(b, &l->stages[0], told);
    if (side != NULL && l->call->rank == side->leader)
        leaders_meet(b, side->other, told);
    for (uint32_t i = narrow; i < stages; i++) {
        if (&l->stages[i] == tb_levels_cast_stage(l, k)) {
            cast(b, l, k, told);
            continue;
        }
        tb_levels_tree(b, &t, l, &l->stages[i], k, 0);
        if (!t.root) {
            uint32_t come = tb_builder_receive(b, t.parent, 1, nothing);
            after_told(b, told);
            told_set(told, come);
        }
        for (uint32_t n = 0; n < t.count; n++) {
            tb_builder_send(b, t.children[n], 1, nothing);
            after_told(b, told);
        }
    }
}

static int levels_make(const struct tb_collective *c, enum tb_level_tree tree, bool cast, struct tb_program **program)
{
    const struct tb_level_kinds k = {tree, tree, cast};
    const struct tb_slice nothing = tb_slice_nothing();
    uint32_t steps[TB_LEVELS_STAGES * TB_TREE_CHILDREN_LIMIT + DIRECT_MOST];
    struct told told = {steps, 0};
    struct tb_levels l;
    struct tb_builder b;
    int error = tb_levels_open(&l, c, 0);
    if (error == TB_OK) {
        bool common = tb_levels_common(&l);
        tb_builder_open(&b, 0);
        if (common)
            told_set(&told, tb_levels_meet(&b, &l, TB_COMPOSITE_BARRIER, 0, nothing, nothing));
        if (tb_levels_leads(&l))
            lead(&b, &l, &k, NULL, &told);
        if (common) {
            tb_levels_meet(&b, &l, TB_COMPOSITE_BARRIER, 1, nothing, nothing);
            after_told(&b, &told);
        }
        tb_builder_places(&b, TB_COLLECTIVE_PLACES);
        error = tb_builder_finish(&b, program);
    }
    tb_levels_close(&l);
    return error;
}

static int make_flat(const struct tb_collective *c, struct tb_program **program)
{
    return levels_make(c, TB_LEVEL_FLAT, false, program);
}

static int make_binomial(const struct tb_collective *c, struct tb_program **program)
{
    return levels_make(c, TB_LEVEL_BINOMIAL, false, program);
}

static int make_fitted(const struct tb_collective *c, struct tb_program **program)
{
    return levels_make(c, TB_LEVEL_FITTED, false, program);
}

static int make_multicast(const struct tb_collective *c, struct tb_program **program)
{
    return levels_make(c, TB_LEVEL_BINOMIAL, true, program);
}

const struct tb_algorithm tb_barrier_levels_flat = {
    TB_OPERATION_BARRIER, "levels-flat", tb_fits_levels, make_flat, NULL, NULL};
const struct tb_algorithm tb_barrier_levels_binomial = {
    TB_OPERATION_BARRIER, "levels-binomial", tb_fits_levels, make_binomial, NULL, NULL};
const struct tb_algorithm tb_barrier_levels_fitted = {
    TB_OPERATION_BARRIER, "levels-fitted", tb_fits_levels, make_fitted, NULL, NULL};

const struct tb_algorithm tb_barrier_multicast = {
    TB_OPERATION_BARRIER, "levels-multicast", tb_fits_cast, make_multicast, NULL, NULL};

/* ---- of two groups ----------------------------------------------------------------------------------------------- */

static int side_steps(struct tb_builder *b, const struct tb_side *s)
{
    const struct tb_level_kinds k = {.wide = TB_LEVEL_FLAT, .narrow = TB_LEVEL_BINOMIAL};
    uint32_t steps[TB_LEVELS_STAGES * TB_TREE_CHILDREN_LIMIT + DIRECT_MOST];
    struct told told = {steps, 0};
    struct tb_levels l;
    int error = tb_levels_open(&l, &s->call, s->leader);
    if (error == TB_OK)
        lead(b, &l, &k, s, &told);
    tb_levels_close(&l);
    return error;
}

static int make_inter(const struct tb_collective *c, struct tb_program **program)
{
    return tb_side_make(c, side_steps, program);
}

const struct tb_algorithm tb_barrier_levels_inter = {TB_OPERATION_BARRIER, "levels-inter", tb_fits_sides,
                                                     make_inter,           NULL,           NULL};
