/* Composite steps by multicast: what a member gives takes its own port once, however many get it, and the port of each
 * of them. An item of a broadcast leaves when the root comes to it, and whoever comes later finds it there; where all
 * give something, they do so in turn. */
#include "planner/simulator_state.h"

#define HEADERS    50u    /* bytes of a message for which datagrams take one more than TCP: 1420 a frame, and 1448 */
#define PARTS      8u     /* of an item, between which others have the port */
#define KEPT_BYTES 65536u /* up to so many the root need not wait until all have it */

/* The first and the last byte of something, on their way. */
struct cast_span {
    uint64_t first, last;
};

static uint64_t datagram_bytes(uint64_t bytes)
{
    return tb_cost_add(bytes, bytes / HEADERS);
}

static const struct tb_step *about(const struct tb_simulator *m, uint32_t step)
{
    return m->steps[step].about;
}

static bool gives_all(const struct tb_step *s)
{
    return s->contract.composite == TB_COMPOSITE_BCAST || s->contract.composite == TB_COMPOSITE_SCATTER;
}

static uint64_t given(const struct tb_simulator *m, uint32_t step, uint32_t item)
{
    const struct tb_simulator_step *f = &m->steps[step];
    return tb_slice_bytes(&m->data, m->run->programs[f->rank], f->about, &f->about->slice, item);
}

/* Bytes of an item from one up to another. */
struct cast_part {
    uint64_t start, end;
};

/* Passes a leg, if it has a wire. */
static void leg_pass(struct tb_simulator *m, const struct tb_simulator_leg *leg, const struct tb_simulator_ends *ends,
                     struct cast_part part, struct cast_span *span)
{
    uint64_t begin = span->first, end = span->last;
    if (leg->wire != TB_SIMULATOR_BARE)
        begin = tb_simulator_wire_take(m, tb_simulator_leg_wire(leg, ends), datagram_bytes(part.start),
                                       datagram_bytes(part.end) - datagram_bytes(part.start), begin, &end);
    span->first = tb_cost_add(begin, leg->delay);
    span->last = tb_cost_add(tb_simulator_later(end, span->last), leg->delay);
}

static bool leg_is_last(const struct tb_simulator_leg *leg)
{
    return leg->wire == TB_WAY_IN || leg->wire == TB_WAY_IN_AGENT;
}

/* Leaves a member, up to where the ways to all others part; `path` leads to one of them. */
static void leave(struct tb_simulator *m, uint32_t rank, uint32_t to, uint32_t path, struct cast_part part,
                  struct cast_span *span)
{
    const struct tb_simulator_ends ends = tb_simulator_ends_of(m, rank, to);
    const struct tb_simulator_leg *leg = &m->legs[m->paths[path].first];
    for (uint32_t i = 0; i < m->paths[path].count && !leg_is_last(&leg[i]); i++)
        leg_pass(m, &leg[i], &ends, part, span);
}

/* Comes to a member. */
static void reach(struct tb_simulator *m, uint32_t from, const struct tb_simulator_step *g, struct cast_part part,
                  struct cast_span *span)
{
    const struct tb_simulator_ends ends = tb_simulator_ends_of(m, from, g->rank);
    const struct tb_simulator_path *path = &m->paths[g->path];
    bool last = false;
    for (uint32_t i = 0; i < path->count; i++) {
        last = last || leg_is_last(&m->legs[path->first + i]);
        if (last)
            leg_pass(m, &m->legs[path->first + i], &ends, part, span);
    }
}

/* When a member has all of an item, whose last byte comes at this time. */
static uint64_t take(struct tb_simulator *m, const struct tb_simulator_step *g, uint64_t bytes, uint64_t last)
{
    const struct tb_simulator_path *path = &m->paths[g->path];
    uint64_t own = tb_simulator_receive_time(m, g->path, bytes), copying = own - path->receive_none;
    uint64_t begin = last > copying ? last - copying : 0;
    return tb_simulator_later(tb_simulator_work(m, g->rank, begin, own, 0), tb_cost_add(last, path->receive_none));
}

/* ---- from one to all --------------------------------------------------------------------------------------------- */

/* The steps of another member than the root, from `from` on. */
static uint32_t other_next(const struct tb_simulator *m, uint32_t from, uint32_t root)
{
    return from == root ? m->steps[from].partner : from;
}

/* All of the item is there. */
static void item_end(struct tb_simulator *m, struct tb_simulator_composite *c, uint64_t bytes)
{
    uint64_t there = 0, latency = 0;
    for (uint32_t k = other_next(m, c->first, c->root); k != TB_SIMULATOR_NONE;
         k = m->steps[k].partner == TB_SIMULATOR_NONE ? TB_SIMULATOR_NONE
                                                      : other_next(m, m->steps[k].partner, c->root)) {
        const struct tb_simulator_step *g = &m->steps[k];
        uint64_t end = take(m, g, bytes, c->free);
        there = tb_simulator_later(there, end);
        latency = tb_simulator_later(latency, m->paths[g->path].latency);
        if (g->started > c->item)
            tb_simulator_done(m, k, end);
    }
    c->there = tb_simulator_later(c->there, there);
    c->item++;
    tb_simulator_done(m, c->root, bytes <= KEPT_BYTES ? c->given : tb_cost_add(c->there, latency));
}

/* The next part of an item leaves. */
void tb_simulator_cast_next(struct tb_simulator *m, uint32_t composite, uint64_t now)
{
    struct tb_simulator_composite *c = &m->composites[composite];
    uint64_t bytes = given(m, c->root, c->item), each = bytes / PARTS + 1, gone = each * c->parts, sent = now;
    struct cast_part part = {gone, bytes - gone < each ? bytes : gone + each};
    uint32_t rank = m->steps[c->root].rank;
    struct cast_span span = {now, now};
    bool first = true;
    for (uint32_t k = other_next(m, c->first, c->root); k != TB_SIMULATOR_NONE;
         k = m->steps[k].partner == TB_SIMULATOR_NONE ? TB_SIMULATOR_NONE
                                                      : other_next(m, m->steps[k].partner, c->root)) {
        const struct tb_simulator_step *g = &m->steps[k];
        if (first) {
            leave(m, rank, g->rank, g->path, part, &span);
            sent = tb_simulator_later(now, m->wires[tb_simulator_ends_of(m, rank, g->rank).out].free);
        }
        first = false;
        struct cast_span its = span;
        reach(m, rank, g, part, &its);
        c->free = tb_simulator_later(c->free, its.last);
    }
    c->parts++;
    bool last = part.end == bytes;
    if (last) {
        c->parts = 0;
        item_end(m, c, bytes);
    }
    c->busy = !last || m->steps[c->root].started > c->item;
    if (c->busy)
        tb_simulator_push(m, TB_SIMULATOR_NEXT, 2 * (m->stream_count + composite), sent);
}

/* The root has come to an item. */
static void root_come(struct tb_simulator *m, uint32_t composite, uint32_t step, uint64_t now)
{
    struct tb_simulator_composite *c = &m->composites[composite];
    uint32_t item = m->steps[step].started - 1, other = other_next(m, c->first, step), path = m->steps[other].path;
    uint64_t own = tb_simulator_send_time(m, path, given(m, step, item));
    c->root = step;
    c->given = tb_simulator_work(m, m->steps[step].rank, now, own, 0);
    if (c->busy)
        return;
    c->busy = true;
    tb_simulator_push(m, TB_SIMULATOR_NEXT, 2 * (m->stream_count + composite),
                      c->given - own + m->paths[path].send_none);
}

/* ---- from each to all -------------------------------------------------------------------------------------------- */

/* All have come. */
static void blocks_exchange(struct tb_simulator *m, struct tb_simulator_composite *c, uint64_t now)
{
    uint64_t everyone = 0, end = now;
    struct cast_span all = {TB_COST_NEVER, now};
    for (uint32_t k = c->first; k != TB_SIMULATOR_NONE; k = m->steps[k].partner) {
        const struct tb_simulator_step *g = &m->steps[k];
        uint32_t other = g->partner != TB_SIMULATOR_NONE ? g->partner : c->first;
        uint64_t bytes = given(m, k, c->item), own = tb_simulator_send_time(m, g->path, bytes);
        uint64_t free = tb_simulator_work(m, g->rank, now, own, 0), ready = free - own + m->paths[g->path].send_none;
        struct cast_span span = {ready, ready};
        leave(m, g->rank, m->steps[other].rank, g->path, (struct cast_part){0, bytes}, &span);
        everyone = tb_cost_add(everyone, bytes);
        all.first = span.first < all.first ? span.first : all.first;
        all.last = tb_simulator_later(all.last, span.last);
    }
    for (uint32_t k = c->first; k != TB_SIMULATOR_NONE; k = m->steps[k].partner) {
        const struct tb_simulator_step *g = &m->steps[k];
        uint32_t other = g->partner != TB_SIMULATOR_NONE ? g->partner : c->first;
        uint64_t theirs = everyone - given(m, k, c->item);
        struct cast_span span = all;
        reach(m, m->steps[other].rank, g, (struct cast_part){0, theirs}, &span);
        end = tb_simulator_later(end, take(m, g, theirs, span.last));
    }
    c->item++;
    for (uint32_t k = c->first; k != TB_SIMULATOR_NONE; k = m->steps[k].partner) {
        c->behind += m->steps[k].started <= c->item;
        tb_simulator_done(m, k, end);
    }
}

/* ---- both -------------------------------------------------------------------------------------------------------- */

int tb_simulator_cast_join(struct tb_simulator *m, uint32_t step)
{
    struct tb_simulator_step *f = &m->steps[step];
    const struct tb_program *p = m->run->programs[f->rank];
    uint32_t other = f->about->peer;
    for (uint32_t i = 0; i < f->about->member_count && other == f->rank; i++)
        other = p->lists[f->about->members + i];
    if (f->about->member_count < 2 || other >= m->ranks || m->host_of[other] == m->host_of[f->rank])
        return TB_ERR_MISMATCH;
    f->path = tb_simulator_path(m, other, f->rank);
    return m->error;
}

void tb_simulator_cast_come(struct tb_simulator *m, uint32_t step, uint64_t now)
{
    const struct tb_simulator_step *f = &m->steps[step];
    struct tb_simulator_composite *c = &m->composites[f->stream];
    if (!gives_all(about(m, step))) {
        if (f->started == c->item + 1 && --c->behind == 0)
            blocks_exchange(m, c, now);
    } else if (f->rank == about(m, step)->peer) {
        root_come(m, f->stream, step, now);
    } else if (f->started <= c->item) {
        tb_simulator_done(m, step, tb_simulator_later(now, c->there));
    }
}
