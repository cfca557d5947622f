/* Blocks that cross from one part of a place to another are bundled by who gets them, where ranks do not know the sizes
 * of each other's blocks: "levels-spread" of alltoallv and alltoallw, and "levels-inter" between two groups. As in
 * levels.c, the ranks outside of a part are shared out among those of the part; who has one collects what its part has
 * for it and sends it there as one message. Ranks tell those who collect from them how long their blocks are, before
 * these blocks; who gets a bundle knows the lengths in it from its own arguments. So no size crosses what a bundle
 * crosses, and data leaves the part two latencies of the next level later than it would by itself. Bundles of all
 * blocks between two parts would need their sizes on the far side first, one more latency of the wide level.
 *
 * All ranks are numbered as in the shape. Of an intercommunicator those of this group collect from each other, for
 * those of the other one. */
#include <stdlib.h>

#include "collectives/levels_ranks.h"
#include "collectives/sides.h"

#define RANKS_MOST 8192u
#define OVERLAP    4u /* messages to ranks of the same part that leave a rank at once */

enum { EDGE_SIZES, EDGE_COLLECT, EDGE_CROSS, EDGES };

struct parcel {
    struct tb_builder *b;
    const struct tb_collective *c; /* as given, */
    struct tb_collective all;      /* and with all ranks of the shape as one group */
    bool hosts;
    bool told; /* sizes are known: the second of two passes, in which blocks are moved */
    /* Of the stage at hand: the ranks of this rank's part that are of its group, this rank's place among them, and
     * those outside of the part for whom they have blocks. */
    uint32_t *team, *targets;
    uint32_t members, position, target_count;
    uint32_t group, before; /* ranks of this group in all parts, and those of them before this rank */
    uint32_t *list;         /* room for pieces of a slice */
    uint32_t *lengths;      /* where in SIZES the length of each piece of WORK stands, */
    uint32_t length_room;
    uint32_t work;  /* pieces of WORK, in this pass, */
    uint32_t sizes; /* and of SIZES */
    uint32_t bound; /* the step that makes room in WORK */
    uint32_t own;   /* in place: where the own blocks are in WORK, */
    uint32_t ready; /* after this step, after which OUT may be written; or TB_STEP_NONE */
    uint32_t sent[OVERLAP], sent_count;
    uint16_t edge;
};

/* ---- ranks ------------------------------------------------------------------------------------------------------- */

static bool is_first(const struct parcel *p, uint32_t rank)
{
    return rank < p->c->shape->split;
}

static bool is_beside(const struct parcel *p, uint32_t rank)
{
    return !p->c->inter || is_first(p, rank) == is_first(p, p->all.rank);
}

/* Whether this rank has a block for it, and it one for this rank; on its own part that includes this rank itself. */
static bool is_target(const struct parcel *p, uint32_t rank)
{
    return !p->c->inter || is_first(p, rank) != is_first(p, p->all.rank);
}

/* Its number in its group, and that of its block. */
static uint32_t number(const struct parcel *p, uint32_t rank)
{
    return p->c->inter && !is_first(p, rank) ? rank - p->c->shape->split : rank;
}

/* The last added step is a message from or to this rank. */
static void peer_set(struct parcel *p, uint32_t rank)
{
    if (p->b->error != TB_OK)
        return;
    struct tb_step *s = &p->b->program.steps[p->b->program.step_count - 1];
    s->peer = number(p, rank);
    s->group = p->c->inter && is_beside(p, rank) ? 1 : 0;
}

static uint32_t share(const struct parcel *p, uint32_t position)
{
    return (uint32_t)((uint64_t)p->target_count * position / p->members);
}

/* How many ranks of this group a part has, before `limit`. In the numbers of the shape the first group comes first. */
static uint32_t group_count(const struct parcel *p, const struct tb_stage_ranks *r, uint32_t part, uint32_t limit)
{
    uint32_t split = p->c->shape->split;
    if (!p->c->inter || (is_first(p, p->all.rank) && limit <= split))
        return tb_stage_before(r, part, limit);
    uint32_t first = tb_stage_before(r, part, split);
    return is_first(p, p->all.rank) ? first : tb_stage_before(r, part, limit) - first;
}

static void stage_find(struct parcel *p, const struct tb_stage_ranks *r)
{
    const uint32_t *here = tb_stage_part(r, r->mine);
    p->members = p->target_count = p->group = p->before = 0;
    for (uint32_t i = 0; i < r->count; i++) {
        p->group += group_count(p, r, i, p->all.size);
        p->before += group_count(p, r, i, p->all.rank);
    }
    for (uint32_t i = 0; i < tb_stage_size(r, r->mine); i++) {
        p->position = here[i] == p->all.rank ? p->members : p->position;
        if (is_beside(p, here[i]))
            p->team[p->members++] = here[i];
    }
    for (uint32_t i = 0; i < r->other_count; i++)
        if (is_target(p, r->others[i]))
            p->targets[p->target_count++] = r->others[i];
}

/* Those of another part that have blocks for this rank, in `list`, and who of them collects these. */
static uint32_t part_find(struct parcel *p, const struct tb_stage_ranks *r, uint32_t part, uint32_t *collector)
{
    const uint32_t *there = tb_stage_part(r, part);
    uint32_t before = p->before - group_count(p, r, part, p->all.rank), count = 0, at = 0;
    uint32_t all = p->group - group_count(p, r, part, p->all.size);
    for (uint32_t i = 0; i < tb_stage_size(r, part); i++)
        if (is_target(p, there[i]))
            p->list[count++] = there[i];
    while (count > 0 && (uint32_t)((uint64_t)all * (at + 1) / count) <= before)
        at++;
    *collector = count > 0 ? p->list[at] : 0;
    return count;
}

/* ---- room -------------------------------------------------------------------------------------------------------- */

/* The next pieces of WORK, whose lengths are in SIZES from `sizes` on; of both passes alike. */
static struct tb_slice room(struct parcel *p, uint32_t sizes, uint32_t count)
{
    if (!p->told && p->work + count > p->length_room) {
        uint32_t more = 2 * (p->work + count);
        uint32_t *grown = realloc(p->lengths, more * sizeof(*grown));
        if (grown == NULL) {
            tb_builder_fail(p->b, tb_error(TB_ERR_MEMORY, "no memory for lengths of %u blocks", more));
            return tb_slice_many(TB_SYMBOL_WORK, 0, 0);
        }
        p->lengths = grown;
        p->length_room = more;
    }
    for (uint32_t i = 0; i < count && !p->told; i++)
        p->lengths[p->work + i] = sizes + i;
    p->work += count;
    return tb_slice_many(TB_SYMBOL_WORK, p->work - count, count);
}

static uint32_t sizes_take(struct parcel *p, uint32_t count)
{
    p->sizes += count;
    return p->sizes - count;
}

/* The blocks of these ranks: those that this rank has for them, or has from them. */
static struct tb_slice blocks(struct parcel *p, bool given, const uint32_t *ranks, uint32_t count)
{
    bool kept = given && p->told && p->c->in_place;
    enum tb_symbol symbol = kept ? TB_SYMBOL_WORK : given && !p->c->in_place ? TB_SYMBOL_IN : TB_SYMBOL_OUT;
    uint32_t *pieces = calloc(count + 1, sizeof(*pieces));
    if (pieces == NULL) {
        tb_builder_fail(p->b, tb_error(TB_ERR_MEMORY, "no memory for a list of %u blocks", count));
        return tb_slice_many(symbol, 0, 0);
    }
    for (uint32_t i = 0; i < count; i++)
        pieces[i] = (kept ? p->own : 0) + number(p, ranks[i]);
    struct tb_slice slice = tb_builder_list(p->b, symbol, pieces, count);
    free(pieces);
    return count == 1 && p->b->error == TB_OK ? tb_slice_one(symbol, p->b->program.lists[slice.first]) : slice;
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

static void after(struct parcel *p, uint32_t step)
{
    if (step != TB_STEP_NONE)
        tb_builder_after(p->b, step);
}

static uint32_t message_receive(struct parcel *p, uint32_t from, uint16_t edge, struct tb_slice slice)
{
    uint32_t step = tb_builder_receive(p->b, 0, p->edge + edge, slice);
    peer_set(p, from);
    tb_builder_join(p->b);
    if (slice.symbol == TB_SYMBOL_WORK)
        tb_builder_after(p->b, p->bound);
    if (slice.symbol == TB_SYMBOL_OUT)
        after(p, p->ready);
    return step;
}

static uint32_t message_send(struct parcel *p, uint32_t to, uint16_t edge, struct tb_slice slice, uint32_t before)
{
    uint32_t step = tb_builder_send(p->b, 0, p->edge + edge, slice);
    peer_set(p, to);
    tb_builder_join(p->b);
    after(p, before);
    return step;
}

/* Few messages of this rank at once within its part. */
static void paced(struct parcel *p, uint32_t step)
{
    if (p->sent_count >= OVERLAP)
        tb_builder_after(p->b, p->sent[p->sent_count % OVERLAP]);
    p->sent[p->sent_count++ % OVERLAP] = step;
}

/* What another one of this part collects: its sizes, and then the blocks. */
static void share_give(struct parcel *p, uint32_t to)
{
    const uint32_t *ranks = p->targets + share(p, to);
    uint32_t count = share(p, to + 1) - share(p, to);
    if (count == 0)
        return;
    if (p->told) {
        struct tb_slice packed = room(p, 0, count);
        uint32_t copied = tb_builder_copy(p->b, blocks(p, true, ranks, count), packed);
        tb_builder_after(p->b, p->bound);
        after(p, p->ready);
        paced(p, message_send(p, p->team[to], EDGE_COLLECT, packed, copied));
        return;
    }
    uint32_t first = sizes_take(p, count);
    uint32_t measured = tb_builder_measure(p->b, blocks(p, true, ranks, count), first);
    message_send(p, p->team[to], EDGE_SIZES, tb_slice_many(TB_SYMBOL_SIZES, first, count), measured);
    room(p, first, count);
}

/* Sizes of what this rank collects, member by member, and room for it: ordered by who gets it, and as it comes. */
static void share_measure(struct parcel *p)
{
    uint32_t low = share(p, p->position), count = share(p, p->position + 1) - low, n = p->members;
    uint32_t first = sizes_take(p, n * count);
    for (uint32_t i = 0; i < n; i++) {
        if (i == p->position)
            tb_builder_measure(p->b, blocks(p, true, p->targets + low, count), first + i * count);
        else
            message_receive(p, p->team[i], EDGE_SIZES, tb_slice_many(TB_SYMBOL_SIZES, first + i * count, count));
    }
    struct tb_slice turned = room(p, first, n * count);
    for (uint32_t i = 0; i < n * count && p->b->error == TB_OK; i++)
        p->lengths[turned.first + i] = first + i % n * count + i / n;
    if (count > 1)
        room(p, first, n * count);
}

/* Blocks of one member, in a slice, to where who gets them has all of his. */
static uint32_t row_turn(struct parcel *p, struct tb_slice from, uint32_t turned, uint32_t member, uint32_t before)
{
    for (uint32_t i = 0; i < from.count; i++)
        p->list[i] = turned + i * p->members + member;
    struct tb_slice to = from.count == 1 ? tb_slice_one(TB_SYMBOL_WORK, p->list[0])
                                         : tb_builder_list(p->b, TB_SYMBOL_WORK, p->list, from.count);
    uint32_t step = tb_builder_copy(p->b, from, to);
    tb_builder_after(p->b, p->bound);
    after(p, before);
    return step;
}

/* Collects, and sends everyone his own. */
static void share_move(struct parcel *p)
{
    uint32_t low = share(p, p->position), count = share(p, p->position + 1) - low, n = p->members;
    struct tb_slice turned = room(p, 0, n * count), rows = turned;
    if (count > 1)
        rows = room(p, 0, n * count);
    uint32_t *come = malloc(n * sizeof(*come));
    if (come == NULL) {
        tb_builder_fail(p->b, tb_error(TB_ERR_MEMORY, "no memory for what comes from %u ranks", n));
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (i == p->position) {
            come[i] = row_turn(p, blocks(p, true, p->targets + low, count), turned.first, i, p->ready);
            continue;
        }
        struct tb_slice row = tb_slice_many(TB_SYMBOL_WORK, rows.first + i * count, count);
        come[i] = message_receive(p, p->team[i], EDGE_COLLECT, row);
        if (count > 1)
            come[i] = row_turn(p, row, turned.first, i, come[i]);
    }
    for (uint32_t k = 0; k < count; k++) {
        struct tb_slice bundle = tb_slice_many(TB_SYMBOL_WORK, turned.first + k * n, n);
        message_send(p, p->targets[low + k], EDGE_CROSS, bundle, TB_STEP_NONE);
        for (uint32_t i = 0; i < n; i++)
            tb_builder_after(p->b, come[i]);
    }
    free(come);
}

/* The bundle of another part for this rank. */
static void bundle_take(struct parcel *p, const struct tb_stage_ranks *r, uint32_t part)
{
    uint32_t collector, count = part_find(p, r, part, &collector);
    if (count == 1 && p->told)
        message_receive(p, collector, EDGE_CROSS, blocks(p, false, p->list, 1));
    if (count < 2)
        return;
    if (!p->told) {
        uint32_t first = sizes_take(p, count);
        tb_builder_measure(p->b, blocks(p, false, p->list, count), first);
        room(p, first, count);
        return;
    }
    struct tb_slice packed = room(p, 0, count);
    uint32_t come = message_receive(p, collector, EDGE_CROSS, packed);
    tb_builder_copy(p->b, packed, blocks(p, false, p->list, count));
    tb_builder_after(p->b, come);
    after(p, p->ready);
}

/* ---- stages ------------------------------------------------------------------------------------------------------ */

/* What goes directly: between the ranks of this part, but for those of one host if they meet elsewhere. */
static void part_direct(struct parcel *p, const struct tb_stage_ranks *r, bool meet)
{
    const struct tb_group_shape *s = p->c->shape;
    const uint32_t *here = tb_stage_part(r, r->mine);
    uint32_t n = tb_stage_size(r, r->mine), host = tb_group_shape_host(s, p->all.rank);
    p->edge += EDGES;
    for (uint32_t i = 1; i < n; i++) {
        uint32_t to = here[(r->position + i) % n], from = here[(r->position + n - i) % n];
        if (is_target(p, from) && !(meet && tb_group_shape_host(s, from) == host))
            message_receive(p, from, 0, blocks(p, false, &from, 1));
        if (is_target(p, to) && !(meet && tb_group_shape_host(s, to) == host))
            paced(p, message_send(p, to, 0, blocks(p, true, &to, 1), p->ready));
    }
}

/* One pass of a stage. */
static void stage_pass(struct parcel *p, const struct tb_stage_ranks *r)
{
    stage_find(p, r);
    for (uint32_t i = 1; i < p->members; i++)
        share_give(p, (p->position + i) % p->members);
    if (p->members > 1 && share(p, p->position + 1) > share(p, p->position)) {
        if (p->told)
            share_move(p);
        else
            share_measure(p);
    }
    for (uint32_t i = 0; i < p->target_count && p->members == 1 && p->told; i++)
        message_send(p, p->targets[i], EDGE_CROSS, blocks(p, true, &p->targets[i], 1), p->ready);
    for (uint32_t i = 1; i < r->count; i++)
        bundle_take(p, r, (r->mine + r->count - i) % r->count);
}

static int pass(struct parcel *p, const struct tb_levels *l, uint32_t stages, bool meet)
{
    int error = TB_OK;
    p->edge = 0;
    for (uint32_t i = 0; i < stages && error == TB_OK; i++) {
        struct tb_stage_ranks r;
        error = tb_stage_ranks_open(&r, &p->all, &l->stages[i]);
        if (error == TB_OK) {
            stage_pass(p, &r);
            if (p->told && i + 1 == stages)
                part_direct(p, &r, meet);
        }
        p->edge += EDGES;
        tb_stage_ranks_close(&r);
    }
    return error;
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

/* Room in WORK, when all sizes are there. */
static void sizes_bind(struct parcel *p)
{
    uint32_t last = p->b->program.step_count;
    p->told = true;
    p->bound = TB_STEP_NONE;
    if (p->work == 0)
        return;
    p->bound = tb_builder_bind_list(p->b, p->lengths, p->work);
    for (uint32_t i = 0; i < last && p->b->error == TB_OK; i++)
        if (p->b->program.steps[i].kind != TB_STEP_SEND)
            tb_builder_after(p->b, i);
}

/* In place everything is in OUT, and is kept for a while. */
static void own_keep(struct parcel *p)
{
    const struct tb_slice out = tb_slice_whole(p->b, TB_SYMBOL_OUT, 0);
    if (!p->c->in_place)
        return;
    if (!p->told) {
        uint32_t first = sizes_take(p, out.count);
        tb_builder_measure(p->b, out, first);
        room(p, first, out.count);
        return;
    }
    struct tb_slice kept = room(p, 0, out.count);
    p->own = kept.first;
    p->ready = tb_builder_copy(p->b, out, kept);
    tb_builder_after(p->b, p->bound);
}

/* The ranks of a host, and each with itself, in its memory. */
static int host_meet(struct parcel *p)
{
    struct tb_levels l;
    uint32_t ranks[TB_COMMON_DEALS];
    int error = tb_levels_open(&l, p->c, 0);
    if (error == TB_OK) {
        const struct tb_stage *s = &l.stages[l.stage_count - 1];
        for (uint32_t i = 0; i < s->count; i++)
            ranks[i] = s->parts[i].number;
        struct tb_slice given = blocks(p, true, ranks, s->count);
        tb_levels_meet(p->b, &l, TB_COMPOSITE_ALLTOALL, 0, given, blocks(p, false, ranks, s->count));
        after(p, p->ready);
    }
    tb_levels_close(&l);
    return error;
}

static int program_make(struct parcel *p, const struct tb_levels *l)
{
    const struct tb_collective *c = p->c;
    bool meet = tb_levels_common(l) && l->stages[l->stage_count - 1].count <= TB_COMMON_DEALS;
    uint32_t stages = l->stage_count - (meet ? 1 : 0), bundled = stages;
    for (uint32_t i = 0; i < stages && !p->hosts && bundled == stages; i++)
        bundled = l->stages[i].wide ? bundled : i;
    own_keep(p);
    int error = pass(p, l, bundled, meet);
    if (error != TB_OK)
        return error;
    sizes_bind(p);
    p->work = 0;
    own_keep(p);
    if (!c->in_place && !meet && !c->inter)
        tb_builder_copy(p->b, tb_slice_one(TB_SYMBOL_IN, c->rank), tb_slice_one(TB_SYMBOL_OUT, c->rank));
    error = pass(p, l, bundled, meet);
    if (error == TB_OK && meet)
        error = host_meet(p);
    return error;
}

static int levels_make(const struct tb_collective *c, bool hosts, struct tb_program **program)
{
    struct tb_builder b;
    struct parcel p = {.b = &b, .c = c, .all = *c, .hosts = hosts, .ready = TB_STEP_NONE};
    struct tb_levels l = {.room = NULL};
    uint32_t size = c->shape->size;
    p.all.size = size;
    p.all.rank = tb_group_shape_index(c->shape, c->first, false, c->rank);
    p.all.inter = false;
    p.team = malloc(3 * (size_t)size * sizeof(*p.team));
    tb_builder_open(&b, c->inter ? c->remote_size : c->size);
    int error = p.team != NULL ? TB_OK : tb_error(TB_ERR_MEMORY, "no memory for parts of %u ranks", size);
    if (error == TB_OK) {
        p.targets = p.team + size;
        p.list = p.targets + size;
        error = tb_levels_open_all(&l, &p.all);
    }
    if (error == TB_OK)
        error = program_make(&p, &l);
    if (!c->inter)
        tb_builder_places(&b, TB_COLLECTIVE_PLACES);
    tb_levels_close(&l);
    free(p.team);
    free(p.lengths);
    tb_builder_fail(&b, error);
    return tb_builder_finish(&b, program);
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

/* Whether some place that counts has not all ranks of the shape. */
static bool places_there(const struct tb_collective *c)
{
    const struct tb_group_shape *s = c->shape;
    for (uint32_t p = 1; p < s->place_count; p++)
        if ((c->skip & 1u << s->places[p].level) == 0 && s->places[p].rank_count < s->size)
            return true;
    return false;
}

static bool fits_spread(const struct tb_collective *c)
{
    return tb_fits_levels(c) && c->size <= RANKS_MOST && places_there(c);
}

static bool fits_spread_hosts(const struct tb_collective *c)
{
    return tb_fits_levels(c) && c->size <= RANKS_MOST && c->shape->most > 1 && (c->skip & 1u << TB_LEVEL_HOST) == 0;
}

static bool fits_inter(const struct tb_collective *c)
{
    return tb_fits_sides(c) && c->shape->size <= RANKS_MOST && places_there(c);
}

static int make(const struct tb_collective *c, struct tb_program **program)
{
    return levels_make(c, false, program);
}

static int make_hosts(const struct tb_collective *c, struct tb_program **program)
{
    return levels_make(c, true, program);
}

#define ROWS(OPERATION, operation)                                                                                     \
    const struct tb_algorithm tb_##operation##_levels_spread = {OPERATION, "levels-spread", fits_spread, make, NULL,   \
                                                                NULL};                                                 \
    const struct tb_algorithm tb_##operation##_levels_spread_hosts = {                                                 \
        OPERATION, "levels-spread-hosts", fits_spread_hosts, make_hosts, NULL, NULL};                                  \
    const struct tb_algorithm tb_##operation##_levels_inter = {OPERATION, "levels-inter", fits_inter, make, NULL, NULL}
ROWS(TB_OPERATION_ALLTOALLV, alltoallv);
ROWS(TB_OPERATION_ALLTOALLW, alltoallw);
const struct tb_algorithm tb_alltoall_levels_inter = {
    TB_OPERATION_ALLTOALL, "levels-inter", fits_inter, make, NULL, NULL};
