#include "planner/simulator_state.h"

#include <stdlib.h>
#include <string.h>

/* Bytes that TCP has sent before it can hear of a loss: ten segments, and ten more for their answers. */
#define FIRST_BURST  28960u
#define HEADER_BYTES 64u

/* ---- events ------------------------------------------------------------------------------------------------------ */

static bool event_before(const struct tb_simulator_event *a, const struct tb_simulator_event *b)
{
    return a->time != b->time ? a->time < b->time : a->order < b->order;
}

static void event_push(struct tb_simulator *m, enum tb_simulator_event_kind kind, uint32_t step, uint64_t time,
                       uint64_t bytes, uint64_t until)
{
    if (m->heap_count == m->heap_room) {
        uint32_t room = m->heap_room * 2;
        struct tb_simulator_event *grown = realloc(m->heap, room * sizeof *grown);
        if (grown == NULL) {
            m->error = tb_error(TB_ERR_MEMORY, "no memory to simulate %u ranks", m->ranks);
            return;
        }
        m->heap = grown;
        m->heap_room = room;
    }
    struct tb_simulator_event e = {time, m->order++, step, kind, bytes, until};
    uint32_t at = m->heap_count++;
    while (at > 0 && event_before(&e, &m->heap[(at - 1) / 2])) {
        m->heap[at] = m->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    m->heap[at] = e;
}

static struct tb_simulator_event event_pop(struct tb_simulator *m)
{
    struct tb_simulator_event first = m->heap[0], last = m->heap[--m->heap_count];
    uint32_t at = 0;
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= m->heap_count)
            break;
        if (child + 1 < m->heap_count && event_before(&m->heap[child + 1], &m->heap[child]))
            child++;
        if (!event_before(&m->heap[child], &last))
            break;
        m->heap[at] = m->heap[child];
        at = child;
    }
    m->heap[at] = last;
    return first;
}

/* ---- ranks ------------------------------------------------------------------------------------------------------- */

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* The core on which `rank` can begin soonest, and of these the one that idles least. */
static struct tb_simulator_core *core_find(const struct tb_simulator *m, struct tb_simulator_host *h, uint32_t rank,
                                           uint64_t from)
{
    struct tb_simulator_core *best = &h->cores[0];
    for (uint32_t i = 1; i < m->s->costs->cores; i++) {
        struct tb_simulator_core *c = &h->cores[i];
        bool free = c->free <= from, best_free = best->free <= from;
        if (free != best_free ? free
            : free            ? c->free > best->free || (c->free == best->free && c->rank == rank)
                              : c->free < best->free)
            best = c;
    }
    return best;
}

/* Keeps a rank busy for some time; `bytes` pass through memory. Returns the end. */
static uint64_t rank_work(struct tb_simulator *m, uint32_t rank, uint64_t now, uint64_t time, uint64_t bytes)
{
    const struct tb_costs *costs = m->s->costs;
    struct tb_simulator_host *h = &m->hosts[tb_group_shape_host(m->s->shape, rank)];
    uint64_t from = later(now, m->busy[rank]);
    struct tb_simulator_core *core = NULL;
    if (h->cores != NULL) {
        core = core_find(m, h, rank, from);
        from = later(from, core->free);
        if (core->rank != rank)
            from = tb_cost_add(from, costs->change);
        core->rank = rank;
    }
    uint64_t end = tb_cost_add(from, time);
    m->loads[rank] = tb_cost_add(m->loads[rank], time);
    h->load = tb_cost_add(h->load, time);
    if (bytes > 0) {
        h->memory = tb_cost_add(later(h->memory, from), tb_cost_at(&costs->memory, bytes));
        end = later(end, h->memory);
    }
    if (core != NULL)
        core->free = end;
    return m->busy[rank] = end;
}

/* The times of a message of so many bytes. */
static void step_measure(const struct tb_simulator *m, struct tb_simulator_step *f, uint64_t bytes)
{
    if (f->known == bytes)
        return;
    const struct tb_cost_link *link = f->link != NULL ? f->link : &m->s->costs->host;
    const struct tb_cost_curve *own = f->about->kind == TB_STEP_SEND ? &link->send : &link->receive;
    f->known = bytes;
    f->own = tb_cost_at(own, bytes);
    f->own_first = tb_cost_at(own, 0);
    f->gap = f->link != NULL ? tb_cost_at(&link->gap, bytes) : 0;
}

static void message_send(struct tb_simulator *m, uint32_t step, uint64_t bytes, uint64_t now)
{
    struct tb_simulator_step *f = &m->steps[step];
    step_measure(m, f, bytes);
    uint64_t end = rank_work(m, f->rank, now, f->own, f->link != NULL ? 0 : bytes);
    uint64_t first = end - f->own + f->own_first;
    if (f->link != NULL) {
        event_push(m, TB_EVENT_PORT, step, first, bytes, end);
        return;
    }
    const struct tb_cost_link *host = &m->s->costs->host;
    struct tb_simulator_step *to = &m->steps[f->partner];
    step_measure(m, to, bytes);
    event_push(m, TB_EVENT_DONE, step, end, 0, 0);
    event_push(m, TB_EVENT_ARRIVE, f->partner, tb_cost_add(first, host->latency), bytes,
               tb_cost_add(tb_cost_add(end, host->latency), to->own_first));
}

static void message_receive(struct tb_simulator *m, uint32_t step, uint64_t bytes, uint64_t now, uint64_t until)
{
    struct tb_simulator_step *f = &m->steps[step];
    step_measure(m, f, bytes);
    uint64_t end = rank_work(m, f->rank, now, f->own, f->link != NULL ? 0 : bytes);
    if (end < until)
        end = m->busy[f->rank] = until;
    event_push(m, TB_EVENT_DONE, step, end, 0, 0);
}

/* ---- ports ------------------------------------------------------------------------------------------------------- */

/* Keeps a port busy from `from` on; returns when it begins. A short message does not wait for long ones, but takes
 * from their time. */
static uint64_t port_take(struct tb_simulator_port *p, uint64_t from, uint64_t time, bool is_short)
{
    uint64_t begin = later(from, is_short ? p->free_short : p->free);
    p->load = tb_cost_add(p->load, time);
    if (is_short) {
        p->free_short = tb_cost_add(begin, time);
        p->free = tb_cost_add(later(p->free, begin), time);
    } else {
        p->free = tb_cost_add(begin, time);
    }
    return begin;
}

/* The time that a port of a rank's host is busy with what goes to or comes from another cluster. */
static uint64_t own_gap(const struct tb_simulator *m, uint32_t rank, uint64_t bytes)
{
    uint32_t cluster = tb_group_shape_cluster(m->s->shape, rank);
    return tb_cost_at(&tb_costs_link(m->s->costs, cluster, cluster)->gap, bytes);
}

/* When a message has got through the queue in front of a port, from `first` on if that has room, at `here`. */
static uint64_t queue_pass(struct tb_simulator *m, uint32_t to, uint32_t from, uint64_t bytes, uint64_t first,
                           uint64_t here)
{
    if (m->flows == NULL)
        return here;
    uint32_t hosts = m->s->shape->host_count;
    struct tb_simulator_flow *flows = m->flows + (size_t)to * hosts, *mine = &flows[from];
    uint64_t held = mine->until > first ? mine->bytes : 0;
    held = bytes > FIRST_BURST - held ? FIRST_BURST : held + bytes;
    held = held + HEADER_BYTES > FIRST_BURST ? FIRST_BURST : held + HEADER_BYTES;
    mine->bytes = held;
    for (uint32_t i = 0; i < hosts; i++)
        held += i != from && flows[i].until > first ? flows[i].bytes : 0;
    if (held > m->s->costs->queue)
        here = tb_cost_add(here, m->s->costs->loss);
    mine->until = here;
    return here;
}

static void message_cross(struct tb_simulator *m, const struct tb_simulator_event *e)
{
    struct tb_simulator_step *f = &m->steps[e->step], *to = &m->steps[f->partner];
    const struct tb_group_shape *shape = m->s->shape;
    uint32_t from_cluster = tb_group_shape_cluster(shape, f->rank),
             to_cluster = tb_group_shape_cluster(shape, to->rank);
    bool is_short = e->bytes <= m->s->costs->short_bytes, crosses = from_cluster != to_cluster;
    step_measure(m, f, e->bytes);
    step_measure(m, to, e->bytes);
    uint64_t gap_out = crosses ? own_gap(m, f->rank, e->bytes) : f->gap;
    uint64_t gap_in = crosses ? own_gap(m, to->rank, e->bytes) : to->gap;
    struct tb_simulator_host *out = &m->hosts[tb_group_shape_host(shape, f->rank)];
    struct tb_simulator_host *in = &m->hosts[tb_group_shape_host(shape, to->rank)];
    struct tb_simulator_port *wires = &m->wide[from_cluster * shape->cluster_count + to_cluster];
    bool hub = f->link->hub && !crosses;
    uint64_t begin = port_take(hub ? wires : &out->out, e->time, gap_out, is_short), left = tb_cost_add(begin, gap_out);
    if (crosses) {
        begin = port_take(wires, begin, f->gap, is_short);
        left = later(left, tb_cost_add(begin, f->gap));
    }
    uint64_t latency = f->link->latency, first = tb_cost_add(begin, latency);
    uint64_t here = hub ? tb_cost_add(left, latency) : tb_cost_add(port_take(&in->in, first, gap_in, is_short), gap_in);
    here = later(here, tb_cost_add(left, latency));
    if (!hub)
        here = queue_pass(m, tb_group_shape_host(shape, to->rank), tb_group_shape_host(shape, f->rank), e->bytes, first,
                          here);
    /* A long message has left when the other side has taken it; a short one waits in the kernel. */
    uint64_t sent = is_short ? e->until : later(e->until, later(left, here - latency));
    uint64_t copying = to->own - to->own_first;
    event_push(m, TB_EVENT_DONE, e->step, sent, 0, 0);
    event_push(m, TB_EVENT_ARRIVE, f->partner, later(first, here > copying ? here - copying : 0), e->bytes,
               tb_cost_add(here, to->own_first));
}

/* ---- composite steps --------------------------------------------------------------------------------------------- */

/* Times of one that has everyone: of all rounds, and of the bytes that pass; see struct tb_contract. */
static void composite_times(const struct tb_simulator *m, const struct tb_simulator_composite *c, uint64_t bytes,
                            uint64_t everyone, uint64_t *rounds, uint64_t *passes)
{
    const struct tb_costs *costs = m->s->costs;
    const struct tb_contract *contract = &m->steps[c->first].about->contract;
    const struct tb_cost_link *link = c->link != NULL ? c->link : &costs->host;
    uint64_t pass, round = tb_cost_at(&link->send, 0) + link->latency;
    if (c->link != NULL) {
        pass = tb_cost_at(&link->gap, bytes);
        round += tb_cost_at(&link->receive, 0);
    } else {
        /* Within a host a pass is everyone's copying, which its memory must carry; a flag that is seen is all that
         * there is to receive. */
        pass = tb_cost_at(&costs->memory, everyone);
        if (pass == 0)
            pass = tb_cost_at(&link->send, bytes) - tb_cost_at(&link->send, 0);
        if (costs->cores > 0 && c->members > costs->cores) /* Everyone must get a core once in a round. */
            round += costs->change * ((c->members + costs->cores - 1) / costs->cores);
    }
    unsigned __int128 all = (unsigned __int128)round * contract->rounds;
    *rounds = all > TB_COST_NEVER ? TB_COST_NEVER : (uint64_t)all;
    all = (unsigned __int128)pass * contract->passes;
    *passes = all > TB_COST_NEVER ? TB_COST_NEVER : (uint64_t)all;
}

/* All have come to the next item. */
static void composite_meet(struct tb_simulator *m, struct tb_simulator_composite *c, uint64_t now)
{
    uint64_t bytes = 0, everyone = 0, rounds, passes;
    for (uint32_t k = c->first; k != TB_SIMULATOR_NONE; k = m->steps[k].partner) {
        const struct tb_simulator_step *g = &m->steps[k];
        const struct tb_program *p = m->s->programs[g->rank];
        uint64_t given = tb_slice_bytes(&m->data, p, g->about, &g->about->slice, c->item);
        uint64_t its = later(given, tb_slice_bytes(&m->data, p, g->about, &g->about->other, c->item));
        bytes = later(bytes, its);
        everyone = everyone > UINT64_MAX - its ? UINT64_MAX : everyone + its;
    }
    composite_times(m, c, bytes, everyone, &rounds, &passes);
    c->free = tb_cost_add(later(now, c->free), passes);
    uint64_t end = tb_cost_add(c->free, rounds);
    c->item++;
    for (uint32_t k = c->first; k != TB_SIMULATOR_NONE; k = m->steps[k].partner) {
        struct tb_simulator_step *g = &m->steps[k];
        m->busy[g->rank] = later(m->busy[g->rank], c->free);
        c->behind += g->started <= c->item;
        event_push(m, TB_EVENT_DONE, k, end, 0, 0);
    }
}

/* A rank has come to an item, which others may have come to before, or have not. */
static void composite_come(struct tb_simulator *m, uint32_t step, uint64_t now)
{
    struct tb_simulator_step *f = &m->steps[step];
    struct tb_simulator_composite *c = &m->composites[f->composite];
    if (f->started == c->item + 1 && --c->behind == 0)
        composite_meet(m, c, now);
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

static bool item_ready(const struct tb_simulator *m, const struct tb_simulator_step *f)
{
    const struct tb_after *after = m->s->programs[f->rank]->after + f->about->after;
    for (uint32_t i = 0; i < f->about->after_count; i++) {
        const struct tb_simulator_step *before = &m->steps[m->firsts[f->rank] + after[i].step];
        if (before->done < before->items && tb_step_waits(f->about, &after[i], before->about, before->done, f->started))
            return false;
    }
    return true;
}

static void item_start(struct tb_simulator *m, uint32_t step, uint64_t now)
{
    struct tb_simulator_step *f = &m->steps[step];
    const struct tb_step *t = f->about;
    uint64_t bytes = tb_item_bytes(&m->data, m->s->programs[f->rank], t, f->started);
    bool message = t->kind == TB_STEP_SEND || t->kind == TB_STEP_RECEIVE;
    f->started++;
    if (t->kind == TB_STEP_COMPOSITE) {
        composite_come(m, step, now);
    } else if (bytes == 0 && (!message || (t->slice.count > 0 && !t->upto))) {
        event_push(m, TB_EVENT_DONE, step, now, 0, 0);
    } else if (!message) {
        const struct tb_costs *costs = m->s->costs;
        uint64_t time = tb_cost_at(t->kind == TB_STEP_COPY ? &costs->copy : &costs->reduce, bytes);
        event_push(m, TB_EVENT_DONE, step, rank_work(m, f->rank, now, time, bytes), 0, 0);
    } else if (t->kind == TB_STEP_SEND) {
        message_send(m, step, bytes, now);
    } else if (++f->posted <= f->arrived) {
        message_receive(m, step, bytes, now, 0);
    }
}

static void step_advance(struct tb_simulator *m, uint32_t step, uint64_t now)
{
    struct tb_simulator_step *f = &m->steps[step];
    while (f->started < f->items && f->started - f->done < f->window && item_ready(m, f))
        item_start(m, step, now);
}

static void item_done(struct tb_simulator *m, const struct tb_simulator_event *e)
{
    struct tb_simulator_step *f = &m->steps[e->step];
    f->done++;
    if (f->done == f->items && --m->left[f->rank] == 0) {
        m->finished++;
        if (m->s->ends != NULL)
            m->s->ends[f->rank] = e->time;
        m->s->end = later(m->s->end, e->time);
    }
    step_advance(m, e->step, e->time);
    for (uint32_t i = 0; i < f->waiters; i++)
        step_advance(m, m->waiting[f->waiting + i], e->time);
}

static void message_arrive(struct tb_simulator *m, const struct tb_simulator_event *e)
{
    struct tb_simulator_step *f = &m->steps[e->step];
    if (++f->arrived <= f->posted)
        message_receive(m, e->step, e->bytes, e->time, e->until);
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

/* The busiest of all that work one after the other. */
static uint64_t busiest(const struct tb_simulator *m)
{
    const struct tb_group_shape *shape = m->s->shape;
    uint64_t load = 0;
    for (uint32_t i = 0; i < m->ranks; i++)
        load = later(load, m->loads[i]);
    for (uint32_t i = 0; i < shape->host_count; i++) {
        const struct tb_simulator_host *h = &m->hosts[i];
        load = later(load, later(h->out.load, h->in.load));
        if (h->cores != NULL)
            load = later(load, h->load / m->s->costs->cores);
    }
    for (uint32_t i = 0; i < shape->cluster_count * shape->cluster_count; i++)
        load = later(load, m->wide[i].load);
    return load;
}

static int simulator_run(struct tb_simulator *m)
{
    struct tb_simulation *s = m->s;
    for (uint32_t i = 0; i < m->step_count; i++)
        step_advance(m, i, 0);
    while (m->heap_count > 0 && m->error == TB_OK) {
        struct tb_simulator_event e = event_pop(m);
        if (++s->events > s->limit)
            return TB_ERR_LIMIT;
        if (e.kind == TB_EVENT_DONE)
            item_done(m, &e);
        else if (e.kind == TB_EVENT_PORT)
            message_cross(m, &e);
        else
            message_arrive(m, &e);
    }
    if (m->error != TB_OK)
        return m->error;
    s->load = busiest(m);
    return m->finished == m->ranks ? TB_OK : TB_ERR_MISMATCH;
}

int tb_simulate(struct tb_simulation *s)
{
    struct tb_simulator m = {.s = s, .data = {s->bytes, s->blocks}, .ranks = s->shape->size};
    TB_ASSERT(m.ranks > 0);
    s->end = s->events = s->load = 0;
    if (s->ends != NULL)
        memset(s->ends, 0, m.ranks * sizeof *s->ends);
    int error = tb_simulator_open(&m);
    if (error == TB_OK)
        error = simulator_run(&m);
    tb_simulator_close(&m);
    return error;
}
