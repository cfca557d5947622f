/* The message is cut into a part for each rank; the parts are scattered along a binomial tree, and everyone collects
 * them, on a ring or by recursive doubling. For m bytes, with the ring: (log2 p + p - 1)(L + 2o) + 2 (p - 1)/p m G;
 * with doubling, where p is a power of two: 2 log2 p (L + 2o) + 2 (p - 1)/p m G. Nobody is sent what it has. */
#include "collectives/algorithms.h"

struct scatter {
    struct tb_builder b;
    const struct tb_collective *c;
    uint32_t size, distance; /* ranks are counted from the root */
    uint32_t scattered;      /* the step with which my parts come; none at the root */
    uint32_t sent;           /* the last send: they go one after the other, so that the first one arrives early */
};

static uint32_t rank_at(const struct scatter *s, uint32_t distance)
{
    return tb_rank_after(s->c, s->c->root, distance);
}

/* Sends a part of the scatter, or what nothing else that comes is needed for. */
static void send_next(struct scatter *s, uint32_t to, uint16_t edge, struct tb_slice slice, bool joined)
{
    uint32_t before = s->sent;
    s->sent = tb_builder_send(&s->b, rank_at(s, to), edge, slice);
    if (joined)
        tb_builder_join(&s->b);
    if (s->scattered != TB_STEP_NONE)
        tb_builder_after(&s->b, s->scattered);
    if (before != TB_STEP_NONE)
        tb_builder_after(&s->b, before);
}

static void scatter_open(struct scatter *s, const struct tb_collective *c)
{
    uint32_t d = (uint32_t)(((uint64_t)c->rank + c->size - c->root) % c->size), bit = 1;
    s->c = c;
    s->size = c->size;
    s->distance = d;
    s->scattered = s->sent = TB_STEP_NONE;
    tb_builder_open(&s->b, c->size);
    while (bit < s->size && (d & bit) == 0)
        bit *= 2;
    if (d != 0) {
        s->scattered = tb_builder_receive(&s->b, rank_at(s, d - bit), 0,
                                          tb_slice_many(TB_SYMBOL_OUT, d, tb_binomial_behind(s->size, d)));
        tb_builder_join(&s->b);
    }
    for (bit /= 2; bit > 0; bit /= 2)
        if (bit < s->size - d)
            send_next(s, d + bit, 0, tb_slice_many(TB_SYMBOL_OUT, d + bit, tb_binomial_behind(s->size, d + bit)), true);
}

/* ---- on a ring --------------------------------------------------------------------------------------------------- */

enum { EDGE_LOWER = 1, EDGE_UPPER, EDGE_SCATTERED };

/* The parts from `high` down to `low`. */
static struct tb_slice down(uint32_t high, uint32_t low)
{
    return (struct tb_slice){.symbol = TB_SYMBOL_OUT, .first = high, .stride = -1, .count = high + 1 - low};
}

/* What the rank at a distance passes to the next one, beside the parts from its own down: from the last one down those
 * that it gets on the ring itself, to `upper`, and then those of its scatter, to `scattered`. */
static void ring_limits(const struct scatter *s, uint32_t distance, uint32_t *upper, uint32_t *scattered)
{
    uint32_t mine = distance + tb_binomial_behind(s->size, distance);
    *scattered = distance + 1 + tb_binomial_behind(s->size, distance + 1);
    *upper = mine > *scattered ? mine : *scattered;
}

static int make_ring(const struct tb_collective *c, struct tb_program **program)
{
    struct scatter s;
    scatter_open(&s, c);
    uint32_t d = s.distance, last = s.size - 1, lower = TB_STEP_NONE, above = TB_STEP_NONE, upper, scattered;
    if (d > 0) {
        ring_limits(&s, d - 1, &upper, &scattered);
        lower = tb_builder_receive(&s.b, rank_at(&s, d - 1), EDGE_LOWER, down(d - 1, 0));
        if (upper <= last)
            above = tb_builder_receive(&s.b, rank_at(&s, d - 1), EDGE_UPPER, down(last, upper));
        if (scattered < upper)
            tb_builder_receive(&s.b, rank_at(&s, d - 1), EDGE_SCATTERED, down(upper - 1, scattered));
    }
    if (d == last)
        return tb_builder_finish(&s.b, program);
    uint32_t gathered = s.b.program.step_count - 1; /* the last receive, which may bring parts that I pass on */
    bool relays = d > 0 && s.b.error == TB_OK && s.b.program.steps[gathered].edge == EDGE_SCATTERED;
    ring_limits(&s, d, &upper, &scattered);
    uint32_t given = s.sent; /* the last of the scatter */
    send_next(&s, d + 1, EDGE_LOWER, down(d, 0), false);
    if (lower != TB_STEP_NONE)
        tb_builder_after_shifted(&s.b, lower);
    if (upper <= last) {
        tb_builder_send(&s.b, rank_at(&s, d + 1), EDGE_UPPER, down(last, upper));
        if (above != TB_STEP_NONE)
            tb_builder_after_pieces(&s.b, above);
        if (relays)
            tb_builder_after(&s.b, gathered);
        if (given != TB_STEP_NONE)
            tb_builder_after(&s.b, given);
    }
    s.sent = given; /* what comes on the ring is not waited for */
    if (scattered < upper)
        send_next(&s, d + 1, EDGE_SCATTERED, down(upper - 1, scattered), false);
    return tb_builder_finish(&s.b, program);
}

/* ---- by recursive doubling --------------------------------------------------------------------------------------- */

static bool fits_doubling(const struct tb_collective *c)
{
    return !c->inter && (c->size & (c->size - 1)) == 0;
}

static int make_doubling(const struct tb_collective *c, struct tb_program **program)
{
    struct scatter s;
    scatter_open(&s, c);
    uint16_t edge = 1;
    uint32_t first = s.b.program.step_count; /* of the rounds' receives */
    for (uint32_t bit = 1; bit < s.size; bit *= 2, edge++) {
        uint32_t peer = s.distance ^ bit, mine = s.distance & -bit, theirs = peer & -bit;
        uint32_t before = s.b.program.step_count;
        /* Of two, the higher one's parts have come to it through the lower one, if they all came in the scatter. */
        bool had = theirs >= s.distance && theirs + bit <= s.distance + tb_binomial_behind(s.size, s.distance);
        bool has = mine >= peer && mine + bit <= peer + tb_binomial_behind(s.size, peer);
        if (!had) {
            tb_builder_receive(&s.b, rank_at(&s, peer), edge, tb_slice_many(TB_SYMBOL_OUT, theirs, bit));
            tb_builder_join(&s.b);
        }
        if (has)
            continue;
        send_next(&s, peer, edge, tb_slice_many(TB_SYMBOL_OUT, mine, bit), true);
        for (uint32_t i = first; i < before && s.b.error == TB_OK; i++)
            if (s.b.program.steps[i].kind == TB_STEP_RECEIVE)
                tb_builder_after(&s.b, i);
    }
    return tb_builder_finish(&s.b, program);
}

const struct tb_algorithm tb_bcast_scatter_ring = {TB_OPERATION_BCAST, "scatter-ring", NULL, make_ring, NULL, NULL};
const struct tb_algorithm tb_bcast_scatter_doubling = {
    TB_OPERATION_BCAST, "scatter-doubling", fits_doubling, make_doubling, NULL, NULL};
