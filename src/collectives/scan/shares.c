/* Each rank has a share of the message: it gets that of everyone, combines them rank after rank, and tells each rank
 * its prefix of it. Everything passes each port twice, whatever the number of ranks, in two latencies: for m bytes on
 * p ranks 2 (p - 1)(2o + (m/p) G) + 2 L, and m to combine, in order. It does not matter to it where ranks are: for
 * those that are dealt to sites a chain crosses with each rank, and all of them. Room in WORK is for p copies of the
 * message, of which one share each is used. */
#include "collectives/algorithms.h"

#define RANKS_MOST 1024u         /* each sends to each other one, twice */
#define ROOM_LIMIT (64ull << 20) /* bytes of WORK */

enum { EDGE_GIVE, EDGE_TELL };

struct shares {
    struct tb_builder *b;
    const struct tb_collective *c;
    bool exclusive;
    uint32_t givers; /* the ranks before this one have something that others need */
    uint32_t given;  /* the first step that sends this rank's data, to the next rank, and so on; TB_STEP_NONE: none */
    uint32_t own;    /* the step after which this rank's own share is in its slot; TB_STEP_NONE: at once */
    uint32_t come;   /* the first step with which a share comes */
};

static struct tb_slice piece(enum tb_symbol symbol, uint32_t share)
{
    return tb_slice_one(symbol, share);
}

/* Where what comes from a rank is, of this rank's share, and then what all up to it have. */
static struct tb_slice slot(const struct shares *s, uint32_t rank)
{
    if (rank == s->c->rank && !s->exclusive)
        return piece(TB_SYMBOL_OUT, rank);
    return piece(TB_SYMBOL_WORK, rank * s->c->size + s->c->rank);
}

static void after(const struct shares *s, uint32_t step)
{
    if (step != TB_STEP_NONE)
        tb_builder_after(s->b, step);
}

/* The own share stays; of scan the first rank has all of its result. */
static void own_place(struct shares *s)
{
    const struct tb_collective *c = s->c;
    s->own = TB_STEP_NONE;
    if (s->exclusive && c->rank < s->givers)
        s->own = tb_builder_copy(s->b, piece(tb_source(c), c->rank), slot(s, c->rank));
    if (s->exclusive || c->in_place)
        return;
    s->own = tb_builder_copy(s->b, piece(TB_SYMBOL_IN, c->rank), slot(s, c->rank));
    if (c->rank == 0 && c->size > 1) {
        tb_builder_copy(s->b, tb_slice_many(TB_SYMBOL_IN, 1, c->size - 1),
                        tb_slice_many(TB_SYMBOL_OUT, 1, c->size - 1));
        tb_builder_join(s->b);
    }
}

/* Everyone begins with the rank behind it, so that they do not all meet at one. */
static void shares_give(struct shares *s)
{
    const struct tb_collective *c = s->c;
    s->given = TB_STEP_NONE;
    for (uint32_t i = 1; i < c->size && c->rank < s->givers; i++) {
        uint32_t to = (c->rank + i) % c->size, step = tb_builder_send(s->b, to, EDGE_GIVE, piece(tb_source(c), to));
        s->given = i == 1 ? step : s->given;
    }
    for (uint32_t i = 0, first = 1; i < s->givers; i++) {
        if (i == c->rank)
            continue;
        uint32_t step = tb_builder_receive(s->b, i, EDGE_GIVE, slot(s, i));
        s->come = first ? step : s->come;
        first = 0;
    }
}

/* What all ranks up to `upto` have, there after a step, is a rank's result. */
static void share_tell(const struct shares *s, uint32_t rank, uint32_t upto, uint32_t ready)
{
    bool own = rank == s->c->rank;
    if (own && !s->exclusive)
        return;
    if (own) {
        tb_builder_copy(s->b, slot(s, upto), piece(TB_SYMBOL_OUT, rank));
        after(s, s->own);
    } else {
        tb_builder_send(s->b, rank, EDGE_TELL, slot(s, upto));
    }
    after(s, ready);
}

static void shares_combine(const struct shares *s)
{
    const struct tb_collective *c = s->c;
    uint32_t ready = TB_STEP_NONE;
    for (uint32_t i = 0; i < c->size; i++) {
        if (s->exclusive && i > 0)
            share_tell(s, i, i - 1, ready);
        if (i >= s->givers)
            continue;
        uint32_t there = i == c->rank ? s->own : s->come + i - (i > c->rank ? 1 : 0), before = ready;
        ready = there;
        if (i > 0) {
            ready = tb_builder_reduce(s->b, slot(s, i - 1), slot(s, i));
            after(s, before);
            after(s, there);
        }
        if (!s->exclusive && i > 0)
            share_tell(s, i, i, ready);
    }
}

/* The results of this rank, of which the first one has none from others. */
static void shares_take(const struct shares *s)
{
    const struct tb_collective *c = s->c;
    for (uint32_t i = 1; i < c->size && c->rank > 0; i++) {
        uint32_t from = (c->rank + i) % c->size;
        tb_builder_receive(s->b, from, EDGE_TELL, piece(TB_SYMBOL_OUT, from));
        if (c->in_place && s->given != TB_STEP_NONE)
            tb_builder_after(s->b, s->given + i - 1);
    }
}

static int shares_make(const struct tb_collective *c, bool exclusive, struct tb_program **program)
{
    struct tb_builder b;
    struct shares s = {.b = &b, .c = c, .exclusive = exclusive, .givers = exclusive ? c->size - 1 : c->size};
    tb_builder_open(&b, c->size);
    own_place(&s);
    shares_give(&s);
    shares_combine(&s);
    shares_take(&s);
    return tb_builder_finish(&b, program);
}

static bool fits(const struct tb_collective *c)
{
    return !c->inter && c->size > 1 && c->size <= RANKS_MOST && c->elements >= c->size &&
           c->elements <= ROOM_LIMIT / c->size / (c->element_bytes > 0 ? c->element_bytes : 1);
}

static int make_scan(const struct tb_collective *c, struct tb_program **program)
{
    return shares_make(c, false, program);
}

static int make_exscan(const struct tb_collective *c, struct tb_program **program)
{
    return shares_make(c, true, program);
}

const struct tb_algorithm tb_scan_shares = {TB_OPERATION_SCAN, "shares", fits, make_scan, NULL, NULL};
const struct tb_algorithm tb_exscan_shares = {TB_OPERATION_EXSCAN, "shares", fits, make_exscan, NULL, NULL};
