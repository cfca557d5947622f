/* Steps along the circulant graph: pipelines of any number of blocks from and to a root, and rounds of ranges of blocks
 * of which there is one for each rank. */
#include "collectives/algorithms.h"
#include "collectives/circulant.h"

/* Rank and graph of a pipeline, counted from its root: of the whole call, or of one block of it, which one of several
 * roots gives. */
struct pipeline {
    struct tb_circulant g;
    struct tb_builder *b;
    const struct tb_collective *c;
    uint32_t root, me;
    struct tb_slice data; /* all pieces of it, as this rank gives or gets them */
    uint32_t pieces;
    uint16_t edge;  /* from here on; two for each round */
    bool paced;     /* blocks go to several ranks in turn, and are told of */
    uint32_t sizes; /* in use, of SIZES */
};

static void pipeline_open(struct pipeline *l, struct tb_builder *b, const struct tb_collective *c, uint32_t root,
                          struct tb_slice data, uint16_t edge)
{
    *l = (struct pipeline){.b = b, .c = c, .root = root, .data = data, .pieces = data.count, .edge = edge};
    l->me = (uint32_t)(((uint64_t)c->rank + c->size - root) % c->size);
    tb_circulant_open(&l->g, c->size);
    tb_circulant_find(&l->g, l->me);
}

/* One root for the whole call. */
static void pipeline_whole(struct pipeline *l, struct tb_builder *b, const struct tb_collective *c)
{
    pipeline_open(l, b, c, c->root, tb_slice_whole(b, TB_SYMBOL_OUT, 0), 0);
    l->paced = l->g.q > 1 && l->pieces > TB_PACE_AHEAD;
}

/* The ranks that round k goes to and comes from. */
static uint32_t rank_to(const struct pipeline *l, uint32_t k)
{
    return tb_rank_after(l->c, l->root, tb_circulant_after(&l->g, l->me, l->g.skip[k]));
}

static uint32_t rank_from(const struct pipeline *l, uint32_t k)
{
    return tb_rank_after(l->c, l->root, tb_circulant_before(&l->g, l->me, l->g.skip[k]));
}

/* Round k of each phase has two edges: one for its blocks, and one for the last block. */
static uint16_t edge_blocks(const struct pipeline *l, uint32_t k)
{
    return (uint16_t)(l->edge + 2 * k);
}

static uint16_t edge_last(const struct pipeline *l, uint32_t k)
{
    return (uint16_t)(l->edge + 2 * k + 1);
}

/* Of a reduction, in which round k may go to the same rank as its blocks are told of. */
static uint16_t edge_told(uint32_t k)
{
    return (uint16_t)(2 * TB_CIRCULANT_ROUNDS + k);
}

/* ---- broadcast --------------------------------------------------------------------------------------------------- */

static struct tb_slice forwards(const struct pipeline *l, const struct tb_circulant_blocks *blocks)
{
    return (struct tb_slice){l->data.symbol, l->data.first + blocks->first, (int32_t)l->g.q, blocks->count};
}

static struct tb_slice last_block(const struct pipeline *l)
{
    return tb_slice_one(l->data.symbol, l->data.first + l->pieces - 1);
}

/* Whether the root waits for somebody to have got the last block in round k. */
static bool last_paced(const struct pipeline *l, uint32_t k)
{
    return l->paced && k + TB_PACE_AHEAD < l->g.q;
}

/* What comes in round k of each phase; got[f] is then the step with which the blocks f, f + q... come. */
static void broadcast_receive(const struct pipeline *l, uint32_t k, uint32_t *got, uint32_t *got_last)
{
    struct tb_circulant_blocks blocks = tb_circulant_blocks(&l->g, l->g.receive[k], l->pieces);
    uint32_t from = rank_from(l, k);
    bool tells = from == l->root;
    if (blocks.count > 0) {
        got[blocks.first] = tb_builder_receive(l->b, from, edge_blocks(l, k), forwards(l, &blocks));
        if (tells && l->paced)
            tb_pace_tell(l->b, from, edge_blocks(l, k), forwards(l, &blocks), got[blocks.first], 0);
    }
    if (blocks.last) {
        *got_last = tb_builder_receive(l->b, from, edge_last(l, k), last_block(l));
        if (tells && last_paced(l, k))
            tb_pace_tell(l->b, from, edge_last(l, k), last_block(l), *got_last, blocks.count);
    }
}

/* How many rounds a block that is sent in round k has been there. */
static uint32_t rounds_kept(const struct pipeline *l, uint32_t k)
{
    int32_t q = (int32_t)l->g.q;
    for (int32_t j = 0; j < q; j++) {
        int32_t phases = l->g.send[k] - l->g.receive[j]; /* in rounds: 0, or -q if it has come in the phase before */
        if (phases % q == 0)
            return (uint32_t)((int32_t)k - j - phases);
    }
    return 0;
}

/* The round whose blocks have been there for the shortest time when they are sent. q: nothing is sent. */
static uint32_t first_round(const struct pipeline *l)
{
    uint32_t first = l->g.q;
    for (uint32_t k = 0; k < l->g.q; k++)
        if (rank_to(l, k) != l->root && (first == l->g.q || rounds_kept(l, k) < rounds_kept(l, first)))
            first = k;
    return first;
}

/* Everyone but the root passes blocks on as they come, but in the order of the rounds: a block that goes to several
 * ranks is not needed by all of them at once, and what comes before its turn is only in the way of another block there.
 * So each leaves after that of the round before; the first in this order is one that could not leave sooner anyway. */
static void broadcast_pass(const struct pipeline *l)
{
    uint32_t got[TB_CIRCULANT_ROUNDS], got_last = TB_STEP_NONE, q = l->g.q, first = first_round(l);
    uint32_t before = TB_STEP_NONE, before_round = 0, before_phase = 0;
    for (uint32_t k = 0; k < q; k++)
        broadcast_receive(l, k, got, &got_last);
    for (uint32_t turn = 0; turn < q; turn++) {
        uint32_t k = (first + turn) % q;
        struct tb_circulant_blocks blocks = tb_circulant_blocks(&l->g, l->g.send[k], l->pieces);
        if (blocks.count == 0 || rank_to(l, k) == l->root)
            continue;
        uint32_t sent = tb_builder_send(l->b, rank_to(l, k), edge_blocks(l, k), forwards(l, &blocks));
        tb_builder_after_pieces(l->b, got[blocks.first]);
        if (before != TB_STEP_NONE)
            tb_builder_after_lag(l->b, before,
                                 (int32_t)before_phase + (before_round > k ? 1 : 0) - (int32_t)blocks.phase);
        before = sent;
        before_round = k;
        before_phase = blocks.phase;
    }
    for (uint32_t k = 0; k < q; k++)
        if (l->g.send[k] >= 0 && rank_to(l, k) != l->root) {
            tb_builder_send(l->b, rank_to(l, k), edge_last(l, k), last_block(l));
            tb_builder_after_pieces(l->b, got_last);
        }
}

/* The last added step comes after `step`, if there is one, as many blocks behind. */
static void after_phases(struct tb_builder *b, uint32_t step, uint32_t phases)
{
    if (step != TB_STEP_NONE && phases > 0)
        tb_builder_after_lag(b, step, phases);
    else
        tb_after_pieces(b, step);
}

/* The root sends block after block, each to another rank in turn. */
static void broadcast_give(const struct pipeline *l)
{
    uint32_t heard[TB_CIRCULANT_ROUNDS], heard_last[TB_CIRCULANT_ROUNDS], q = l->g.q;
    uint32_t room = l->pieces / q + 2; /* for what is heard from one rank */
    struct tb_circulant_blocks blocks[TB_CIRCULANT_ROUNDS];
    for (uint32_t k = 0; k < q; k++) {
        blocks[k] = tb_circulant_blocks(&l->g, (int32_t)k, l->pieces);
        heard[k] = heard_last[k] = TB_STEP_NONE;
        if (l->paced && blocks[k].count > 0)
            heard[k] = tb_pace_hear(l->b, rank_to(l, k), edge_blocks(l, k), blocks[k].count, k * room);
        if (last_paced(l, k))
            heard_last[k] = tb_pace_hear(l->b, rank_to(l, k), edge_last(l, k), 1, k * room + blocks[k].count);
    }
    for (uint32_t k = 0; k < q; k++) {
        /* The block that is TB_PACE_AHEAD rounds before is of round j, so many phases before. */
        uint32_t j = (k + q * TB_PACE_AHEAD - TB_PACE_AHEAD) % q, phases = (j + TB_PACE_AHEAD - k) / q;
        if (blocks[k].count == 0)
            continue;
        tb_builder_send(l->b, rank_to(l, k), edge_blocks(l, k), forwards(l, &blocks[k]));
        after_phases(l->b, heard[j], blocks[j].phase + phases - blocks[k].phase);
    }
    for (uint32_t k = 0; k < q; k++) {
        uint32_t j = (k + q * TB_PACE_AHEAD - TB_PACE_AHEAD) % q, after = k < TB_PACE_AHEAD ? heard[j] : heard_last[j];
        tb_builder_send(l->b, rank_to(l, k), edge_last(l, k), last_block(l));
        if (after != TB_STEP_NONE)
            tb_builder_after(l->b, after);
    }
}

static void broadcast_steps(const struct pipeline *l)
{
    if (l->me == 0 && l->g.q > 0)
        broadcast_give(l);
    else if (l->me != 0)
        broadcast_pass(l);
}

void tb_circulant_broadcast(struct tb_builder *b, const struct tb_collective *c)
{
    struct pipeline l;
    pipeline_whole(&l, b, c);
    broadcast_steps(&l);
}

void tb_circulant_spread(struct tb_builder *b, const struct tb_collective *c, uint32_t root, struct tb_slice block)
{
    struct pipeline l;
    pipeline_open(&l, b, c, root, block, 0);
    l.edge = (uint16_t)(root * 2 * l.g.q);
    broadcast_steps(&l);
}

/* ---- reduction --------------------------------------------------------------------------------------------------- */

/* The blocks from the last one down, in a symbol; of WORK, in one of its copies. */
static struct tb_slice backwards(const struct pipeline *l, const struct tb_circulant_blocks *blocks,
                                 enum tb_symbol symbol, uint32_t copy)
{
    uint32_t last = blocks->first + (blocks->count - 1) * l->g.q;
    return (struct tb_slice){symbol, copy * l->pieces + last, -(int32_t)l->g.q, blocks->count};
}

/* What comes in the rounds `from` is combined with this rank's own, one after the other; of the root in OUT. The sum
 * moves from room to room, of which there are two, unless it is made in place. Returns where it is and, as `*ready`,
 * the step after which each block of it is there. */
static struct tb_slice sum_make(struct pipeline *l, const struct tb_circulant_blocks *blocks, const uint32_t *from,
                                uint32_t count, uint32_t *ready)
{
    struct tb_slice sum = backwards(l, blocks, tb_source(l->c), 0);
    uint32_t reduced = TB_STEP_NONE, before = TB_STEP_NONE;
    for (uint32_t i = 0; i < count; i++) {
        bool stays = l->c->in_place, result = l->me == 0 && !stays && i + 1 == count;
        struct tb_slice room = backwards(l, blocks, result ? TB_SYMBOL_OUT : TB_SYMBOL_WORK, result ? 0 : i % 2);
        uint16_t edge = blocks->last ? edge_last(l, from[i]) : edge_blocks(l, from[i]);
        uint32_t come = tb_builder_receive(l->b, rank_to(l, from[i]), edge, room);
        if (i >= 2 && !result)
            tb_builder_after_pieces(l->b, stays ? before : reduced);
        if (l->paced && !blocks->last) {
            tb_pace_tell(l->b, rank_to(l, from[i]), edge_told(from[i]), room, come, l->sizes);
            l->sizes += blocks->count;
        }
        before = reduced;
        reduced = tb_builder_reduce(l->b, stays ? room : sum, stays ? sum : room);
        tb_builder_after_pieces(l->b, come);
        tb_after_pieces(l->b, before);
        sum = stays ? sum : room;
    }
    *ready = reduced;
    return sum;
}

/* The rounds in which this rank has sent these blocks in the broadcast, the latest first: those of a value below 0 were
 * a phase later. */
static uint32_t rounds_sent(const struct pipeline *l, const struct tb_circulant_blocks *blocks, uint32_t *rounds)
{
    uint32_t count = 0;
    for (int early = 0; early < 2; early++)
        for (uint32_t k = l->g.q; k-- > 0;) {
            struct tb_circulant_blocks sent = tb_circulant_blocks(&l->g, l->g.send[k], l->pieces);
            bool same = blocks->last ? sent.last : sent.count > 0 && sent.first == blocks->first;
            if (same && sent.last == (early == 1) && rank_to(l, k) != l->root)
                rounds[count++] = k;
        }
    return count;
}

/* When each stream of blocks that this rank sends has come to the other side. */
static void reduce_hear(struct pipeline *l, uint32_t *heard)
{
    for (uint32_t k = 0; k < l->g.q; k++) {
        struct tb_circulant_blocks blocks = tb_circulant_blocks(&l->g, l->g.receive[k], l->pieces);
        heard[k] = TB_STEP_NONE;
        if (!l->paced || l->me == 0 || blocks.count == 0)
            continue;
        heard[k] = tb_pace_hear(l->b, rank_from(l, k), edge_told(k), blocks.count, l->sizes);
        l->sizes += blocks.count;
    }
}

/* In which phase from the end on the blocks of round k begin: a value from 0 on has the last block before them. */
static uint32_t phase_backwards(const struct pipeline *l, uint32_t k)
{
    return l->g.receive[k] >= 0 ? 1 : 0;
}

/* The last added step sends the blocks of round k, backwards, each TB_PACE_AHEAD rounds behind what has come to the
 * other side. Where it would have to look a phase ahead it waits for a phase less. */
static void reduce_pace(const struct pipeline *l, uint32_t k, const uint32_t *heard)
{
    uint32_t j = (k + TB_PACE_AHEAD) % l->g.q, phases = (k + TB_PACE_AHEAD) / l->g.q + phase_backwards(l, j);
    after_phases(l->b, heard[j], phases > phase_backwards(l, k) ? phases - phase_backwards(l, k) : 0);
}

/* What the broadcast has received in round k (the root: sent) is summed up and goes back. */
static void reduce_round(struct pipeline *l, uint32_t k, const struct tb_circulant_blocks *blocks,
                         const uint32_t *heard)
{
    uint32_t rounds[TB_CIRCULANT_ROUNDS], ready;
    struct tb_slice sum = sum_make(l, blocks, rounds, rounds_sent(l, blocks, rounds), &ready);
    if (l->me == 0)
        return;
    tb_builder_send(l->b, rank_from(l, k), blocks->last ? edge_last(l, k) : edge_blocks(l, k), sum);
    tb_after_pieces(l->b, ready);
    if (!blocks->last)
        reduce_pace(l, k, heard);
}

void tb_circulant_reduce(struct tb_builder *b, const struct tb_collective *c)
{
    struct pipeline l;
    uint32_t heard[TB_CIRCULANT_ROUNDS];
    bool last = false;
    pipeline_whole(&l, b, c);
    reduce_hear(&l, heard);
    const int32_t *values = l.me == 0 ? l.g.send : l.g.receive;
    for (uint32_t k = l.g.q; k-- > 0;)
        if (values[k] >= 0 && !last) {
            last = true;
            reduce_round(&l, k, &(struct tb_circulant_blocks){.first = l.pieces - 1, .count = 1, .last = true}, heard);
        }
    for (uint32_t k = l.g.q; k-- > 0;) {
        struct tb_circulant_blocks blocks = tb_circulant_blocks(&l.g, values[k], l.pieces);
        blocks.last = false;
        if (blocks.count > 0)
            reduce_round(&l, k, &blocks, heard);
    }
    if (c->size == 1 && !c->in_place)
        tb_builder_copy(b, tb_slice_whole(b, TB_SYMBOL_IN, 0), tb_slice_whole(b, TB_SYMBOL_OUT, 0));
}

/* ---- ranges ------------------------------------------------------------------------------------------------------ */

/* `count` blocks from that of a rank on, around the ring, in as many messages as there are runs of them; those of a
 * reduction are of the same ranges in IN, OUT or WORK. */
struct range {
    uint32_t low[2], count[2];
};

static struct range range_make(const struct tb_collective *c, uint64_t first, uint32_t count)
{
    uint32_t low = (uint32_t)(first % c->size), below = count < c->size - low ? count : c->size - low;
    return (struct range){{low, 0}, {below, count - below}};
}

static void range_send(struct tb_builder *b, uint32_t peer, uint32_t edge, struct tb_slice whole, struct range range,
                       bool apart)
{
    for (uint32_t i = 0; i < 2; i++) {
        if (range.count[i] == 0)
            continue;
        tb_builder_send(b, peer, (uint16_t)(edge + i),
                        tb_slice_range(whole, range.low[i], range.low[i] + range.count[i]));
        if (!apart)
            tb_builder_join(b);
    }
}

static void range_receive(struct tb_builder *b, uint32_t peer, uint32_t edge, struct tb_slice whole, struct range range,
                          bool apart)
{
    for (uint32_t i = 0; i < 2; i++) {
        if (range.count[i] == 0)
            continue;
        tb_builder_receive(b, peer, (uint16_t)(edge + i),
                           tb_slice_range(whole, range.low[i], range.low[i] + range.count[i]));
        if (!apart)
            tb_builder_join(b);
    }
}

static void range_reduce(struct tb_builder *b, struct tb_slice from, struct tb_slice into, struct range range)
{
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t low = range.low[i], high = low + range.count[i];
        if (range.count[i] == 0)
            continue;
        tb_builder_reduce(b, tb_slice_range(from, low, high), tb_slice_range(into, low, high));
        tb_builder_join(b);
    }
}

void tb_circulant_collect(struct tb_builder *b, const struct tb_collective *c, struct tb_slice whole, bool apart,
                          uint16_t edge)
{
    struct tb_circulant g;
    tb_circulant_open(&g, c->size);
    for (uint32_t k = 0; k < g.q; k++) {
        uint32_t count = g.skip[k + 1] - g.skip[k], from = tb_rank_after(c, c->rank, g.skip[k]);
        range_receive(b, from, edge + 2 * k, whole, range_make(c, from, count), apart);
        range_send(b, tb_rank_after(c, c->rank, c->size - g.skip[k]), edge + 2 * k, whole,
                   range_make(c, c->rank, count), apart);
    }
}

void tb_circulant_combine(struct tb_builder *b, const struct tb_collective *c, struct tb_slice own, struct tb_slice sum,
                          struct tb_slice room)
{
    struct tb_circulant g;
    bool in_place = own.symbol == sum.symbol;
    tb_circulant_open(&g, c->size);
    /* Of an odd number of ranks nothing comes for one block in the first round, which leaves in the second. */
    if (c->size % 2 == 1 && c->size > 1 && !in_place) {
        uint32_t block = tb_rank_after(c, c->rank, g.skip[g.q - 1] - 1);
        tb_builder_copy(b, tb_slice_range(own, block, block + 1), tb_slice_range(sum, block, block + 1));
    }
    for (uint32_t k = g.q; k-- > 0;) {
        uint32_t to = tb_rank_after(c, c->rank, g.skip[k]), count = g.skip[k + 1] - g.skip[k];
        uint32_t from = tb_rank_after(c, c->rank, c->size - g.skip[k]);
        bool first = k + 1 == g.q && !in_place; /* there is no sum yet */
        struct range mine = range_make(c, c->rank, count);
        range_send(b, to, 2 * k, first ? own : sum, range_make(c, to, count), false);
        range_receive(b, from, 2 * k, first ? sum : room, mine, false);
        range_reduce(b, first ? own : room, sum, mine);
    }
}
