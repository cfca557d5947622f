/* Two turns around the ring of ranks. The message is a block for each rank; in the first turn everyone passes on to the
 * next rank what comes from the one before, combined with its own, so that rank r ends with all of block r + 1; in the
 * second turn complete blocks go around. Blocks may go in several pieces. For m bytes 2 (p - 1)(L + 2o + m/p G) and
 * (p - 1)/p m to combine, the least that is possible. A handful of steps for any number of ranks; operands are combined
 * in the order in which they come, so for commutative operations only.
 *
 * In the first turn rank s sends block s (own), the blocks below it down to 0 (lower), and then the last block down to
 * s + 2 (upper); in the second turn it begins with block s + 1, down to 0, and then the last down to s + 3. */
#include "collectives/algorithms.h"

enum { EDGE_OWN, EDGE_LOWER, EDGE_UPPER, EDGE_SECOND_LOWER, EDGE_SECOND_UPPER };

struct ring {
    struct tb_builder b;
    uint32_t size, rank, before, next;
    uint32_t pieces; /* of a block */
};

static bool fits(const struct tb_collective *c)
{
    return !c->inter && c->commutative && c->size > 1 && tb_has_parts(c);
}

/* `count` blocks from `high` down, piece by piece. */
static struct tb_slice down(const struct ring *r, enum tb_symbol symbol, uint32_t high, uint32_t count)
{
    return (struct tb_slice){
        .symbol = symbol, .first = (high + 1) * r->pieces - 1, .stride = -1, .count = count * r->pieces};
}

/* Blocks below its own, and from the last one down, that a rank sends in the first turn. */
static uint32_t lower_count(const struct ring *r, uint32_t sender)
{
    return sender == r->size - 1 ? sender - 1 : sender;
}

static uint32_t upper_count(const struct ring *r, uint32_t sender)
{
    return sender == r->size - 1 ? 0 : r->size - 2 - sender;
}

/* The steps of the first turn. */
struct turn {
    uint32_t own, lower, upper;            /* sends */
    uint32_t reduced_lower, reduced_upper; /* reductions, of the blocks below mine and above it */
};

static uint32_t receive(struct ring *r, uint16_t edge, struct tb_slice slice)
{
    return slice.count == 0 ? TB_STEP_NONE : tb_builder_receive(&r->b, r->before, edge, slice);
}

static uint32_t reduce(struct ring *r, const struct tb_collective *c, enum tb_symbol room, uint32_t high,
                       uint32_t count)
{
    struct tb_slice theirs = down(r, room, high, count), out = down(r, TB_SYMBOL_OUT, high, count);
    if (count == 0)
        return TB_STEP_NONE;
    return tb_builder_reduce(&r->b, c->in_place ? theirs : down(r, TB_SYMBOL_IN, high, count), out);
}

static struct turn first_turn(struct ring *r, const struct tb_collective *c)
{
    uint32_t last = r->size - 1, me = r->rank;
    enum tb_symbol room = c->in_place ? TB_SYMBOL_WORK : TB_SYMBOL_OUT;
    struct turn t;
    uint32_t own = receive(r, EDGE_OWN, down(r, room, r->before, 1));
    uint32_t lower = receive(r, EDGE_LOWER, down(r, room, r->before - 1, lower_count(r, r->before)));
    uint32_t upper = receive(r, EDGE_UPPER, down(r, room, last, upper_count(r, r->before)));
    t.own = tb_builder_send(&r->b, r->next, EDGE_OWN, down(r, tb_source(c), me, 1));
    /* To rank 0 all that comes is from above. */
    t.reduced_lower = reduce(r, c, room, me - 1, me);
    if (me > 0) {
        tb_builder_after_pieces(&r->b, own);
        if (lower != TB_STEP_NONE)
            tb_builder_after_lag(&r->b, lower, r->pieces);
    }
    t.reduced_upper = reduce(r, c, room, last, last - me);
    if (me < last) {
        tb_after_pieces(&r->b, me > 0 ? upper : own);
        if (me == 0 && lower != TB_STEP_NONE)
            tb_builder_after_lag(&r->b, lower, r->pieces);
    }
    t.lower = t.upper = TB_STEP_NONE;
    if (lower_count(r, me) > 0) {
        t.lower = tb_builder_send(&r->b, r->next, EDGE_LOWER, down(r, TB_SYMBOL_OUT, me - 1, lower_count(r, me)));
        tb_builder_after_pieces(&r->b, t.reduced_lower);
    }
    if (upper_count(r, me) > 0) {
        t.upper = tb_builder_send(&r->b, r->next, EDGE_UPPER, down(r, TB_SYMBOL_OUT, last, upper_count(r, me)));
        tb_builder_after_pieces(&r->b, t.reduced_upper);
    }
    return t;
}

/* Complete blocks: `count` from `high` down of p - 1 in all, and the others from the last block down. */
static void second_turn(struct ring *r, const struct turn *t)
{
    uint32_t last = r->size - 1, me = r->rank, start = me == last ? 0 : me + 1;
    uint32_t come_lower = me + 1 < last ? me + 1 : last, come_upper = last - come_lower;
    uint32_t go_lower = start + 1 < last ? start + 1 : last, go_upper = last - go_lower;
    /* What comes takes the place of what has left in the first turn. */
    uint32_t lower = receive(r, EDGE_SECOND_LOWER, down(r, TB_SYMBOL_OUT, me, come_lower));
    tb_builder_after_pieces(&r->b, t->own);
    if (t->lower != TB_STEP_NONE)
        tb_builder_after_lag(&r->b, t->lower, r->pieces);
    uint32_t upper = receive(r, EDGE_SECOND_UPPER, down(r, TB_SYMBOL_OUT, last, come_upper));
    if (upper != TB_STEP_NONE)
        tb_after_pieces(&r->b, t->upper);
    tb_builder_send(&r->b, r->next, EDGE_SECOND_LOWER, down(r, TB_SYMBOL_OUT, start, go_lower));
    tb_builder_after(&r->b, me == last ? t->reduced_lower : t->reduced_upper);
    if (start > 0)
        tb_builder_after_lag(&r->b, lower, r->pieces);
    if (go_upper > 0) {
        tb_builder_send(&r->b, r->next, EDGE_SECOND_UPPER, down(r, TB_SYMBOL_OUT, last, go_upper));
        if (start > 0)
            tb_builder_after_pieces(&r->b, upper);
        else
            tb_builder_after_pieces(&r->b, lower);
    }
}

static int make(const struct tb_collective *c, struct tb_program **program)
{
    struct ring r = {.size = c->size, .rank = c->rank};
    r.before = tb_rank_after(c, c->rank, c->size - 1);
    r.next = tb_rank_after(c, c->rank, 1);
    r.pieces = (tb_pieces(c) + c->size - 1) / c->size;
    tb_builder_open(&r.b, r.size * r.pieces);
    struct turn t = first_turn(&r, c);
    second_turn(&r, &t);
    return tb_builder_finish(&r.b, program);
}

const struct tb_algorithm tb_allreduce_ring = {TB_OPERATION_ALLREDUCE, "ring", fits, make, "piece", NULL};
