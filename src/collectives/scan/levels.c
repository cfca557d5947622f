/* Prefixes within the parts of each place, from hosts to the widest level: when a rank has combined its own data with
 * that of the ranks before it in its part, it gets what other parts have before it. Where parts follow each other in
 * the order of ranks that is the whole of the parts before its own, which their last ranks exchange: each tells the
 * later ones, or in rounds where there are many; it comes to one rank of each part and is told within it by levels. So
 * everything crosses once, one latency of the widest level, and in order, so for all operations. Where ranks are dealt
 * to the parts a rank needs another prefix of each part than the rank before it, which comes directly from who has it;
 * these are not in order, so for commutative operations only, and of not too many ranks. */
#include "collectives/levels_ranks.h"
#include "collectives/levels_steps.h"

#define DEALT_MOST 512u   /* ranks, where they are in no order */
#define RANKS_MOST 16384u /* so that there are edges enough */
#define WIDE_MOST  16u    /* parts that tell each other directly, where latency is long */
#define NEAR_MOST  4u     /* and where it is not */
#define ROUNDS     32u

#define ROOMS_FREE 8u /* prefixes of other parts for which there is always room */

/* Pieces of WORK: this rank's part up to itself, of exscan; of rounds, the last parts, those before, and what comes;
 * rooms for prefixes that come, one for each in a stage: who waits for a room to be free again may have a sender wait
 * that others must hear of first. */
enum { WORK_UPTO, WORK_LAST, WORK_BEFORE, WORK_COME, WORK_ROOMS = WORK_COME + 2 };

struct prefix {
    struct tb_builder *b;
    const struct tb_collective *c;
    const struct tb_stage *stage;
    struct tb_stage_ranks r;
    bool widest;
    bool exclusive, begun; /* OUT is without this rank, and there is something in it */
    struct tb_slice upto;  /* the ranks of this part up to this one */
    uint32_t turn;         /* rooms of this stage that are taken */
    uint16_t edge;
};

static struct tb_slice work(uint32_t piece)
{
    return tb_slice_one(TB_SYMBOL_WORK, piece);
}

/* What comes before everything that there is so far. */
static void combine(struct prefix *p, struct tb_slice before)
{
    const struct tb_slice out = tb_slice_one(TB_SYMBOL_OUT, 0);
    if (!p->exclusive || !p->widest)
        tb_builder_reduce(p->b, before, p->upto);
    if (p->exclusive && p->begun)
        tb_builder_reduce(p->b, before, out);
    else if (p->exclusive)
        tb_builder_copy(p->b, before, out);
    p->begun = true;
}

/* ---- within a part ----------------------------------------------------------------------------------------------- */

/* From `root` to all ranks of its part, by levels. */
static int part_tell(struct prefix *p, uint32_t root, uint16_t edge, struct tb_slice slice)
{
    static const struct tb_level_kinds kinds = {.wide = TB_LEVEL_BINOMIAL, .narrow = TB_LEVEL_BINOMIAL};
    const struct tb_shape_place *places = p->c->shape->places;
    struct tb_levels l;
    struct tb_tree t;
    if (tb_stage_size(&p->r, p->r.mine) == 1)
        return TB_OK;
    int error = tb_levels_open(&l, p->c, root);
    for (uint32_t i = 0; error == TB_OK && i < l.stage_count; i++) {
        const struct tb_stage *s = &l.stages[i];
        if (s->place != TB_PLACE_NONE && places[s->place].depth <= places[p->stage->place].depth)
            continue;
        tb_stage_tree(&t, &l, s, &kinds, 0);
        t.whole = true;
        tb_tree_broadcast(p->b, &t, edge, slice, TB_STEP_NONE);
    }
    tb_levels_close(&l);
    return error;
}

/* Along a binomial tree from the rank at `first` to those before `end`. */
static void run_tell(struct prefix *p, uint32_t first, uint32_t end, uint16_t edge, struct tb_slice slice)
{
    const uint32_t *here = tb_stage_part(&p->r, p->r.mine) + first;
    struct tb_tree t;
    tb_tree_find(&t, TB_TREE_BINOMIAL, 0, end - first, 0, p->r.position - first);
    t.whole = true;
    t.parent = here[t.parent];
    for (uint32_t i = 0; i < t.count; i++)
        t.children[i] = here[t.children[i]];
    tb_tree_broadcast(p->b, &t, edge, slice, TB_STEP_NONE);
}

/* ---- directly ---------------------------------------------------------------------------------------------------- */

/* What this part has up to this rank is what the next rank of another part needs, unless the next one here is before
 * that. */
static void prefix_send(struct prefix *p, uint32_t other)
{
    const struct tb_stage_ranks *r = &p->r;
    uint32_t next = r->position + 1, after = tb_stage_before(r, other, p->c->rank);
    if (after == tb_stage_size(r, other))
        return;
    uint32_t to = tb_stage_part(r, other)[after];
    if (next == tb_stage_size(r, r->mine) || to < tb_stage_part(r, r->mine)[next])
        tb_builder_send(p->b, to, p->edge, p->upto);
}

/* What another part has before this rank. Others of this part may need the same; the first of them gets it. */
static int prefix_receive(struct prefix *p, uint32_t other)
{
    const struct tb_stage_ranks *r = &p->r;
    const uint32_t *here = tb_stage_part(r, r->mine);
    const struct tb_slice theirs = work(WORK_ROOMS + p->turn);
    uint32_t before = tb_stage_before(r, other, p->c->rank), first = r->position, end = r->position + 1;
    uint16_t edge = (uint16_t)(p->edge + 1 + other);
    int error = TB_OK;
    if (before == 0)
        return TB_OK;
    while (first > 0 && tb_stage_before(r, other, here[first - 1]) == before)
        first--;
    while (end < tb_stage_size(r, r->mine) && tb_stage_before(r, other, here[end]) == before)
        end++;
    p->turn++;
    if (first == r->position)
        tb_builder_receive(p->b, tb_stage_part(r, other)[before - 1], p->edge, theirs);
    if (end - first == tb_stage_size(r, r->mine))
        error = part_tell(p, here[0], edge, theirs);
    else
        run_tell(p, first, end, edge, theirs);
    combine(p, theirs);
    return error;
}

static int stage_direct(struct prefix *p)
{
    uint32_t parts = p->r.count;
    int error = TB_OK;
    for (uint32_t i = 1; i < parts; i++)
        prefix_send(p, (p->r.mine + i) % parts);
    /* The nearest first, as those before it come before what is there then. */
    for (uint32_t i = 1; i < parts && error == TB_OK; i++)
        error = prefix_receive(p, (p->r.mine + parts - i) % parts);
    return error;
}

/* ---- in rounds --------------------------------------------------------------------------------------------------- */

static uint32_t last_rank(const struct tb_stage_ranks *r, uint32_t part)
{
    return tb_stage_part(r, part)[tb_stage_size(r, part) - 1];
}

/* In round k the last rank of each part sends the sum of the last 2^k parts up to its own to the one 2^k further. */
static void rounds(struct prefix *p)
{
    const struct tb_stage_ranks *r = &p->r;
    const struct tb_slice last = work(WORK_LAST), before = work(WORK_BEFORE);
    bool any = false;
    uint16_t edge = p->edge;
    tb_builder_copy(p->b, p->upto, last);
    for (uint32_t distance = 1; distance < r->count; distance *= 2, edge++) {
        if (r->mine + distance < r->count)
            tb_builder_send(p->b, last_rank(r, r->mine + distance), edge, last);
        if (r->mine < distance)
            continue;
        struct tb_slice come = work(WORK_COME + edge % 2);
        tb_builder_receive(p->b, last_rank(r, r->mine - distance), edge, come);
        tb_builder_reduce(p->b, come, last);
        if (any)
            tb_builder_reduce(p->b, come, before);
        else
            tb_builder_copy(p->b, come, before);
        any = true;
    }
}

static int stage_rounds(struct prefix *p)
{
    const struct tb_stage_ranks *r = &p->r;
    uint32_t last = last_rank(r, r->mine);
    int error = TB_OK;
    if (last == p->c->rank)
        rounds(p);
    if (r->mine > 0) {
        error = part_tell(p, last, (uint16_t)(p->edge + ROUNDS), work(WORK_BEFORE));
        combine(p, work(WORK_BEFORE));
    }
    return error;
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

/* Edges are counted from the widest stage on, which all have in common who meet in one of them. */
static uint16_t stage_edge(const struct tb_levels *l, uint32_t stage)
{
    uint32_t edge = 0;
    for (uint32_t i = 0; i < stage; i++)
        edge += 1 + (l->stages[i].count > ROUNDS ? l->stages[i].count : ROUNDS);
    return (uint16_t)edge;
}

static int stage_make(struct prefix *p, const struct tb_levels *l, uint32_t stage)
{
    const struct tb_stage *s = &l->stages[stage];
    int error = tb_stage_ranks_open(&p->r, p->c, s);
    p->stage = s;
    p->widest = stage == 0;
    p->turn = 0;
    p->edge = stage_edge(l, stage);
    if (error == TB_OK) {
        bool few = s->count <= (s->wide ? WIDE_MOST : NEAR_MOST);
        error = few || !tb_stage_in_order(&p->r) ? stage_direct(p) : stage_rounds(p);
    }
    tb_stage_ranks_close(&p->r);
    return error;
}

static int levels_make(const struct tb_collective *c, bool exclusive, struct tb_program **program)
{
    struct tb_levels l;
    struct tb_builder b;
    int error = tb_levels_open_all(&l, c);
    if (error == TB_OK) {
        struct tb_slice own = tb_slice_one(tb_source(c), 0), out = tb_slice_one(TB_SYMBOL_OUT, 0);
        struct prefix p = {.b = &b, .c = c, .exclusive = exclusive, .upto = exclusive ? work(WORK_UPTO) : out};
        tb_builder_open(&b, 1);
        tb_builder_order(&b);
        if (exclusive || !c->in_place)
            tb_builder_copy(&b, own, p.upto);
        for (uint32_t i = l.stage_count; i-- > 0 && error == TB_OK;)
            error = stage_make(&p, &l, i);
        tb_builder_places(&b, TB_COLLECTIVE_PLACES);
        tb_builder_fail(&b, error);
        error = tb_builder_finish(&b, program);
    }
    tb_levels_close(&l);
    return error;
}

/* The most parts of a place that tell each other directly; where ranks are in order only few ever do. */
static uint32_t direct_most(const struct tb_collective *c, bool in_order)
{
    const struct tb_group_shape *s = c->shape;
    uint32_t most = in_order ? 0 : s->most;
    if (c->skip != 0)
        return in_order ? WIDE_MOST : c->size;
    for (uint32_t p = 0; p < s->place_count; p++) {
        uint32_t parts = s->places[p].hosts;
        for (uint32_t q = p + 1; q < s->places[p].end; q = s->places[q].end)
            parts -= s->places[q].hosts - 1;
        if ((!in_order || parts <= WIDE_MOST) && parts > most)
            most = parts;
    }
    return most;
}

/* Whether a rank can keep what comes from all of them. */
static bool rooms_fit(const struct tb_collective *c, bool in_order)
{
    uint64_t most = direct_most(c, in_order);
    return most <= ROOMS_FREE + 1 || c->elements * c->element_bytes <= TB_BUNDLE_LIMIT / most;
}

static bool fits(const struct tb_collective *c)
{
    if (!tb_fits_levels(c))
        return false;
    if (c->commutative && c->size <= DEALT_MOST && rooms_fit(c, false))
        return true;
    return c->size <= RANKS_MOST && rooms_fit(c, true) && tb_levels_in_order(c);
}

static int make_scan(const struct tb_collective *c, struct tb_program **program)
{
    return levels_make(c, false, program);
}

static int make_exscan(const struct tb_collective *c, struct tb_program **program)
{
    return levels_make(c, true, program);
}

const struct tb_algorithm tb_scan_levels = {TB_OPERATION_SCAN, "levels", fits, make_scan, NULL, NULL};
const struct tb_algorithm tb_exscan_levels = {TB_OPERATION_EXSCAN, "levels", fits, make_exscan, NULL, NULL};
