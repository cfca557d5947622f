/* Blocks that go from one part of a place to another cross together. "levels-dealt": in each part the other parts are
 * dealt to its ranks; who has part j collects what the ranks of its own part have for that, sends it as one message to
 * who has this part there, and deals out what comes from it. For P parts of n ranks one message crosses from each to
 * each instead of n^2, two latencies of the next level later: for small blocks, as what a rank keeps for others grows
 * with n^2. "levels-spread": the ranks of other parts are shared out among those of each part; who has one collects
 * what its own part has for it and sends it there: n messages of n blocks, one latency of the next level later, all
 * ranks doing the same. Within a part the same is done at the next level, down to clusters, in which messages go
 * directly, or, with "-hosts", down to hosts. Ranks of a host meet in its memory where they can. */
#include <stdlib.h>

#include "collectives/levels_ranks.h"
#include "collectives/levels_steps.h"

#define ROOM_LIMIT (64ull << 20) /* bytes of WORK, */
#define PAIR_LIMIT (1ull << 20)  /* and of what goes from one part to another as one message */
#define RANKS_MOST 8192u         /* so that there are edges enough */
#define OVERLAP    2u            /* messages to ranks of the same part that leave a rank at once */
#define QUEUE_FAIR 32768u        /* bytes that a switch keeps for one port, with room for others, */
#define BURST      28960u        /* and those that one sends to it before it hears anything */

struct deal {
    struct tb_builder *b;
    const struct tb_collective *c;
    struct tb_stage_ranks r; /* of the stage at hand */
    enum tb_symbol source;   /* where the blocks are that this rank gives, */
    uint32_t ready;          /* after this step, after which OUT may be written, too; or TB_STEP_NONE */
    uint32_t work;           /* pieces of WORK that are in use */
    uint16_t edge;           /* of the stage: two for each part, and one more */
    uint32_t given;          /* the last step that sent this rank's own blocks */
    bool spread, hosts;
};

static void after(struct tb_builder *b, uint32_t step)
{
    if (step != TB_STEP_NONE)
        tb_builder_after(b, step);
}

static struct tb_slice room(struct deal *d, uint32_t count)
{
    d->work += count;
    return tb_slice_many(TB_SYMBOL_WORK, d->work - count, count);
}

/* Who of a part has another one. */
static uint32_t dealt_to(const struct tb_stage_ranks *r, uint32_t part, uint32_t other)
{
    uint32_t size = tb_stage_size(r, part), distance = (other + r->count - part - 1) % r->count;
    uint32_t takers = size < r->count - 1 ? size : r->count - 1;
    return tb_stage_part(r, part)[(uint64_t)(distance % takers) * size / takers];
}

/* Sends the blocks for these ranks as one message, after a step if that is not TB_STEP_NONE. */
static void give(struct deal *d, uint32_t peer, uint16_t edge, const uint32_t *ranks, uint32_t count, uint32_t asked)
{
    struct tb_slice blocks = tb_slice_many(d->source, ranks[0], count);
    uint32_t ready = d->ready;
    if (!tb_ranks_follow(ranks, count)) {
        blocks = room(d, count);
        ready = tb_builder_copy(d->b, tb_builder_list(d->b, d->source, ranks, count), blocks);
        after(d->b, d->ready);
    }
    d->given = tb_builder_send(d->b, peer, edge, blocks);
    tb_builder_join(d->b);
    after(d->b, ready);
    after(d->b, asked);
}

/* Puts blocks from these ranks, which lie side by side after a step, where they belong. */
static void put(struct deal *d, struct tb_slice blocks, uint32_t come, const uint32_t *ranks)
{
    tb_builder_copy(d->b, blocks, tb_builder_list(d->b, TB_SYMBOL_OUT, ranks, blocks.count));
    tb_builder_after(d->b, come);
    after(d->b, d->ready);
}

static void take(struct deal *d, uint32_t peer, uint16_t edge, const uint32_t *ranks, uint32_t count)
{
    bool follow = tb_ranks_follow(ranks, count);
    struct tb_slice blocks = follow ? tb_slice_many(TB_SYMBOL_OUT, ranks[0], count) : room(d, count);
    uint32_t come = tb_builder_receive(d->b, peer, edge, blocks);
    tb_builder_join(d->b);
    if (follow)
        after(d->b, d->ready);
    else
        put(d, blocks, come, ranks);
}

/* How many ranks may send so many blocks to one at once without overrunning the switch before it. Where they are more
 * it asks for them. */
static uint32_t at_once(const struct tb_collective *c, uint32_t blocks)
{
    uint64_t bytes = c->elements * c->element_bytes * blocks;
    return bytes <= 1 ? QUEUE_FAIR : (uint32_t)(QUEUE_FAIR / (bytes < BURST ? bytes : BURST));
}

/* What my part has for part `other`, rank by rank, to who has my part there. */
static void bundle_send(struct deal *d, uint32_t other, uint16_t edge, uint16_t cross)
{
    const struct tb_stage_ranks *r = &d->r;
    const uint32_t *here = tb_stage_part(r, r->mine), *there = tb_stage_part(r, other);
    uint32_t ranks = tb_stage_size(r, r->mine), each = tb_stage_size(r, other), first = d->b->program.step_count;
    struct tb_slice all = room(d, ranks * each);
    for (uint32_t i = 0; i < ranks; i++) {
        struct tb_slice blocks = tb_slice_range(all, i * each, (i + 1) * each);
        if (i == r->position) {
            tb_builder_copy(d->b, tb_builder_list(d->b, d->source, there, each), blocks);
            after(d->b, d->ready);
        } else {
            tb_builder_receive(d->b, here[i], edge, blocks);
            tb_builder_join(d->b);
        }
    }
    for (uint32_t i = 1, most = at_once(d->c, each); i < ranks && ranks - 1 > most; i++) {
        tb_builder_send(d->b, here[(r->position + i) % ranks], edge, tb_slice_nothing());
        if (i > most)
            tb_builder_after(d->b, first + (r->position + i - most) % ranks);
    }
    tb_builder_send(d->b, dealt_to(r, other, r->mine), cross, all);
    tb_builder_join(d->b);
    for (uint32_t i = 0; i < ranks; i++)
        tb_builder_after(d->b, first + i);
}

/* Blocks that come from one rank of the other part after the other, ordered by who of this part gets them. */
static struct tb_slice bundle_turn(struct deal *d, struct tb_slice all, uint32_t ranks, uint32_t each, uint32_t *come)
{
    if (ranks == 1 || each == 1)
        return all;
    uint32_t *list = malloc((size_t)all.count * sizeof(*list));
    if (list == NULL) {
        d->b->error = tb_error(TB_ERR_MEMORY, "no memory for a list of %u blocks", all.count);
        return all;
    }
    for (uint32_t i = 0; i < all.count; i++)
        list[i] = all.first + i % each * ranks + i / each;
    struct tb_slice turned = room(d, all.count);
    uint32_t copied = tb_builder_copy(d->b, tb_builder_list(d->b, TB_SYMBOL_WORK, list, all.count), turned);
    tb_builder_after(d->b, *come);
    *come = copied;
    free(list);
    return turned;
}

static void bundle_receive(struct deal *d, uint32_t other, uint16_t edge, uint16_t cross)
{
    const struct tb_stage_ranks *r = &d->r;
    const uint32_t *here = tb_stage_part(r, r->mine), *there = tb_stage_part(r, other);
    uint32_t ranks = tb_stage_size(r, r->mine), each = tb_stage_size(r, other);
    struct tb_slice all = room(d, ranks * each);
    uint32_t come = tb_builder_receive(d->b, dealt_to(r, other, r->mine), cross, all);
    tb_builder_join(d->b);
    all = bundle_turn(d, all, ranks, each, &come);
    put(d, tb_slice_range(all, r->position * each, (r->position + 1) * each), come, there);
    for (uint32_t i = 1; i < ranks; i++) { /* each begins with another one, so that they do not all meet there */
        uint32_t to = (r->position + i) % ranks;
        tb_builder_send(d->b, here[to], edge, tb_slice_range(all, to * each, (to + 1) * each));
        tb_builder_join(d->b);
        tb_builder_after(d->b, come);
    }
}

/* What this rank does for what goes between its part and another one. */
static void parts_exchange(struct deal *d, uint32_t other)
{
    const struct tb_stage_ranks *r = &d->r;
    const uint32_t *there = tb_stage_part(r, other);
    uint32_t each = tb_stage_size(r, other), taker = dealt_to(r, r->mine, other);
    uint16_t collect = (uint16_t)(d->edge + 2 * other), deal = collect + 1, cross = (uint16_t)(d->edge + 2 * r->count);
    if (tb_stage_size(r, r->mine) == 1) {
        give(d, dealt_to(r, other, r->mine), cross, there, each, TB_STEP_NONE);
        take(d, dealt_to(r, other, r->mine), cross, there, each);
    } else if (taker == d->c->rank) {
        bundle_send(d, other, collect, cross);
        bundle_receive(d, other, deal, cross);
    } else {
        uint32_t asked = TB_STEP_NONE;
        if (tb_stage_size(r, r->mine) - 1 > at_once(d->c, each))
            asked = tb_builder_receive(d->b, taker, collect, tb_slice_nothing());
        give(d, taker, collect, there, each, asked);
        take(d, taker, deal, there, each);
    }
}

/* ---- spread ------------------------------------------------------------------------------------------------------ */

/* What my part has for those whom I have there, ordered by them, and each gets its own. */
static void share_send(struct deal *d, uint16_t edge, uint16_t cross)
{
    const struct tb_stage_ranks *r = &d->r;
    const uint32_t *here = tb_stage_part(r, r->mine), *there = r->others + tb_stage_share(r, r->position);
    uint32_t ranks = tb_stage_size(r, r->mine), first = d->b->program.step_count;
    uint32_t each = tb_stage_share(r, r->position + 1) - tb_stage_share(r, r->position);
    struct tb_slice all = room(d, ranks * each);
    for (uint32_t i = 0; i < ranks && each > 0; i++) {
        struct tb_slice blocks = tb_slice_range(all, i * each, (i + 1) * each);
        if (i == r->position) {
            tb_builder_copy(d->b, tb_builder_list(d->b, d->source, there, each), blocks);
            after(d->b, d->ready);
        } else {
            tb_builder_receive(d->b, here[i], edge, blocks);
            tb_builder_join(d->b);
        }
    }
    bool turns = ranks > 1 && each > 1;
    uint32_t come = first, count = turns || each == 0 ? 1 : ranks;
    if (turns)
        all = bundle_turn(d, all, each, ranks, &come);
    for (uint32_t i = 1; i < ranks && turns; i++)
        tb_builder_after(d->b, first + i);
    for (uint32_t i = 0; i < each; i++) {
        tb_builder_send(d->b, there[i], cross, tb_slice_range(all, i * ranks, (i + 1) * ranks));
        tb_builder_join(d->b);
        for (uint32_t k = 0; k < count; k++)
            tb_builder_after(d->b, come + k);
    }
}

static void stage_spread(struct deal *d)
{
    const struct tb_stage_ranks *r = &d->r;
    uint32_t ranks = tb_stage_size(r, r->mine);
    uint16_t collect = d->edge, cross = d->edge + 1;
    for (uint32_t i = 1; i < ranks; i++) {
        uint32_t to = (r->position + i) % ranks, low = tb_stage_share(r, to), count = tb_stage_share(r, to + 1) - low;
        if (count > 0)
            give(d, tb_stage_part(r, r->mine)[to], collect, r->others + low, count, TB_STEP_NONE);
    }
    if (ranks > 1)
        share_send(d, collect, cross);
    for (uint32_t i = 0; i < r->other_count && ranks == 1; i++)
        give(d, r->others[i], cross, r->others + i, 1, TB_STEP_NONE);
    for (uint32_t i = 1; i < r->count; i++) {
        uint32_t part = (r->mine + r->count - i) % r->count;
        take(d, tb_stage_sharer(r, part, d->c->rank), cross, tb_stage_part(r, part), tb_stage_size(r, part));
    }
}

/* ---- within clusters and hosts ----------------------------------------------------------------------------------- */

/* Directly to each rank of this part, but for those on the same host if they meet elsewhere, when what leaves the part
 * is on its way; a few at a time. */
static void part_direct(struct deal *d, bool meet)
{
    const struct tb_stage_ranks *r = &d->r;
    const struct tb_group_shape *s = d->c->shape;
    const uint32_t *here = tb_stage_part(r, r->mine);
    uint32_t ranks = tb_stage_size(r, r->mine), host = tb_group_shape_host(s, d->c->rank), sends[OVERLAP], made = 0;
    for (uint32_t i = 0; i < OVERLAP; i++)
        sends[i] = d->given;
    for (uint32_t i = 1; i < ranks; i++) {
        uint32_t to = here[(r->position + i) % ranks], from = here[(r->position + ranks - i) % ranks];
        if (!meet || tb_group_shape_host(s, from) != host)
            take(d, from, d->edge, &from, 1);
        if (meet && tb_group_shape_host(s, to) == host)
            continue;
        give(d, to, d->edge, &to, 1, sends[made % OVERLAP]);
        sends[made++ % OVERLAP] = d->given;
    }
}

/* The ranks of a host, and each with itself, in its memory. */
static int host_meet(struct deal *d)
{
    struct tb_levels l;
    uint32_t ranks[TB_COMMON_DEALS];
    int error = tb_levels_open(&l, d->c, 0);
    if (error == TB_OK) {
        const struct tb_stage *s = &l.stages[l.stage_count - 1];
        for (uint32_t i = 0; i < s->count; i++)
            ranks[i] = s->parts[i].number;
        tb_levels_meet(d->b, &l, TB_COMPOSITE_ALLTOALL, 0, tb_builder_list(d->b, d->source, ranks, s->count),
                       tb_builder_list(d->b, TB_SYMBOL_OUT, ranks, s->count));
        after(d->b, d->ready);
    }
    tb_levels_close(&l);
    return error;
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static int stage_make(struct deal *d, const struct tb_stage *s, bool last, bool meet)
{
    int error = tb_stage_ranks_open(&d->r, d->c, s);
    if (error == TB_OK) {
        for (uint32_t i = 1; i < s->count && !d->spread; i++)
            parts_exchange(d, (s->mine + i) % s->count);
        if (d->spread)
            stage_spread(d);
        d->edge += (uint16_t)(2 * s->count + 1);
        if (last)
            part_direct(d, meet);
    }
    tb_stage_ranks_close(&d->r);
    return error;
}

static int program_make(struct deal *d, const struct tb_levels *l)
{
    bool meet = tb_levels_common(l) && l->stages[l->stage_count - 1].count <= TB_COMMON_DEALS;
    uint32_t stages = l->stage_count - (meet ? 1 : 0), bundled = stages, me = d->c->rank;
    for (uint32_t i = 0; i < stages && !d->hosts && bundled == stages; i++)
        bundled = l->stages[i].wide ? bundled : i;
    if (d->c->in_place) {
        d->source = TB_SYMBOL_WORK;
        d->ready = tb_builder_copy(d->b, tb_slice_whole(d->b, TB_SYMBOL_OUT, 0), room(d, d->c->size));
        tb_builder_join(d->b);
    } else if (!meet) {
        tb_builder_copy(d->b, tb_slice_one(TB_SYMBOL_IN, me), tb_slice_one(TB_SYMBOL_OUT, me));
    }
    int error = TB_OK;
    for (uint32_t i = 0; i < bundled && error == TB_OK; i++)
        error = stage_make(d, &l->stages[i], i + 1 == bundled, meet);
    if (error == TB_OK && meet)
        error = host_meet(d);
    return error;
}

static int levels_make(const struct tb_collective *c, bool spread, bool hosts, struct tb_program **program)
{
    struct tb_levels l;
    struct tb_builder b;
    int error = tb_levels_open_all(&l, c);
    if (error == TB_OK) {
        struct deal d = {.b = &b, .c = c, .source = TB_SYMBOL_IN, .ready = TB_STEP_NONE, .given = TB_STEP_NONE};
        d.spread = spread;
        d.hosts = hosts;
        tb_builder_open(&b, c->size);
        error = program_make(&d, &l);
        tb_builder_places(&b, TB_COLLECTIVE_PLACES);
        tb_builder_fail(&b, error);
        error = tb_builder_finish(&b, program);
    }
    tb_levels_close(&l);
    return error;
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

/* The parts of the widest place, as far as the room that they need depends on them. */
struct widest {
    const struct tb_collective *c;
    uint32_t count;
    uint64_t first, second; /* ranks of the two largest */
    uint64_t most;          /* blocks that a rank of some part has for others, and three times over */
};

static void largest_note(void *context, const struct tb_level_part *part)
{
    struct widest *w = context;
    uint64_t size = tb_part_size(w->c, part);
    w->second = size > w->first ? w->first : size > w->second ? size : w->second;
    w->first = size > w->first ? size : w->first;
}

static void most_note(void *context, const struct tb_level_part *part)
{
    struct widest *w = context;
    uint64_t size = tb_part_size(w->c, part), takers = size < w->count - 1 ? size : w->count - 1;
    TB_ASSERT(takers > 0); /* parts have ranks, and there are several */
    uint64_t each = (w->count - 1 + takers - 1) / takers, has = 3 * size * w->first * each;
    w->most = has > w->most ? has : w->most;
}

/* Bytes of a block, at most: by the blocks of WORK that any rank may need, and some more (what it gives and gets, and
 * three times what it has for its part; of narrower stages, whose parts are not looked at, the most that parts of so
 * many ranks can have), and by those that go from one part to another. */
static uint64_t dealt_most(const struct tb_collective *c)
{
    struct widest w = {.c = c};
    w.count = tb_levels_widest(c, largest_note, &w);
    tb_levels_widest(c, most_note, &w);
    uint64_t rooms = 3ull * c->size + w.most + w.first * w.first, pairs = w.first * w.second;
    TB_ASSERT(rooms > 0 && pairs > 0);
    return ROOM_LIMIT / rooms < PAIR_LIMIT / pairs ? ROOM_LIMIT / rooms : PAIR_LIMIT / pairs;
}

static bool room_fits(const struct tb_collective *c, bool spread)
{
    return c->elements * c->element_bytes <= (spread ? ROOM_LIMIT / (8ull * c->size) : dealt_most(c));
}

/* Some of the widest parts are places; or some hosts have several ranks. */
static bool fits(const struct tb_collective *c, bool spread, bool hosts)
{
    bool any = false;
    if (!tb_fits_levels(c) || c->size > RANKS_MOST)
        return false;
    for (uint32_t p = 1; p < c->shape->place_count && !hosts; p++) {
        const struct tb_shape_place *place = &c->shape->places[p];
        any = any || ((c->skip & 1u << place->level) == 0 && place->rank_count < c->size);
    }
    if (hosts)
        any = c->shape->most > 1 && (c->skip & 1u << TB_LEVEL_HOST) == 0;
    return any && room_fits(c, spread);
}

#define ROW(row, name, spread, hosts)                                                                                  \
    static bool fits_##row(const struct tb_collective *c)                                                              \
    {                                                                                                                  \
        return fits(c, spread, hosts);                                                                                 \
    }                                                                                                                  \
    static int make_##row(const struct tb_collective *c, struct tb_program **program)                                  \
    {                                                                                                                  \
        return levels_make(c, spread, hosts, program);                                                                 \
    }                                                                                                                  \
    const struct tb_algorithm tb_alltoall_##row = {TB_OPERATION_ALLTOALL, name, fits_##row, make_##row, NULL, NULL}
ROW(levels_dealt, "levels-dealt", false, false);
ROW(levels_dealt_hosts, "levels-dealt-hosts", false, true);
ROW(levels_spread, "levels-spread", true, false);
ROW(levels_spread_hosts, "levels-spread-hosts", true, true);
