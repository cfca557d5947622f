#include "planner/simulator.h"

#include <stdlib.h>
#include <string.h>

#define NONE        UINT32_MAX
#define FLOWS_HOSTS 512u /* among more hosts, queues are taken for endless */
#define FIRST_BURST                                                                                                    \
    28960u /* bytes that TCP has sent before it can hear of a loss: ten segments, and ten more for their answers */
#define HEADER_BYTES 64u

enum event_kind {
    EVENT_DONE,   /* an item of the step is finished */
    EVENT_PORT,   /* the first byte of a message has reached the port of its host */
    EVENT_ARRIVE, /* the receiving rank has something to do for a message */
};

struct event {
    uint64_t time;
    uint32_t order; /* of what happens at the same time, that which was known first comes first */
    uint32_t step;
    uint32_t kind;
    uint64_t bytes, until; /* of PORT: when the sender is free; of ARRIVE: the receive is not done before */
};

/* A step of one rank. All ranks' steps stand in one array. */
struct step {
    const struct tb_step *about;
    const struct tb_cost_link *link; /* of messages to other hosts; NULL: within the host */
    uint32_t rank;
    uint32_t items, window, started, done;
    uint32_t posted, arrived;  /* receives, and messages for them */
    uint32_t partner;          /* of a send: the receive; of composites: the next that has come */
    uint32_t waiting, waiters; /* steps that depend on it: first index, and how many */
    uint64_t known;            /* for a message of so many bytes the following times hold */
    uint64_t own, own_first;   /* of the rank, in all and before the first byte (after the last) */
    uint64_t gap;              /* of the link */
};

struct port {
    uint64_t free, free_short;
    uint64_t load; /* time for which it was busy */
};

struct core {
    uint64_t free;
    uint32_t rank;
};

struct host {
    uint32_t ranks;
    struct port out, in;
    uint64_t memory;
    uint64_t load;      /* of all its ranks */
    struct core *cores; /* NULL: every rank has its own */
};

/* What one host sends to another, and so holds in the queue of the switch in front of that one's port: TCP adapts each
 * connection to what it finds, but what many send at first may be too much, and who loses all of little waits for long.
 */
struct flow {
    uint64_t until, bytes;
};

struct composite {
    uint32_t edge, come, first;
};

#define COMPOSITES 16

struct simulator {
    struct tb_simulation *s;
    uint32_t ranks, step_count;
    struct step *steps;
    uint32_t *firsts;  /* step of each rank, and the end */
    uint32_t *waiting; /* indices of steps */
    uint32_t *left;    /* steps of each rank that are not done */
    uint64_t *busy;    /* until when each rank is */
    uint64_t *loads;   /* time for which each rank was busy */
    struct host *hosts;
    struct port *wide;  /* between clusters, and the wire of a hub */
    struct flow *flows; /* to host * host_count + from host; NULL: queues are endless */
    struct core *cores;
    struct event *heap;
    uint32_t heap_count, heap_room, order;
    struct composite composites[COMPOSITES];
    uint32_t composite_count;
    uint32_t finished;
    int error;
};

/* ---- events ------------------------------------------------------------------------------------------------------ */

static bool event_before(const struct event *a, const struct event *b)
{
    return a->time != b->time ? a->time < b->time : a->order < b->order;
}

static void event_push(struct simulator *m, enum event_kind kind, uint32_t step, uint64_t time, uint64_t bytes,
                       uint64_t until)
{
    if (m->heap_count == m->heap_room) {
        uint32_t room = m->heap_room * 2;
        struct event *grown = realloc(m->heap, room * sizeof *grown);
        if (grown == NULL) {
            m->error = tb_error(TB_ERR_MEMORY, "no memory to simulate %u ranks", m->ranks);
            return;
        }
        m->heap = grown;
        m->heap_room = room;
    }
    struct event e = {time, m->order++, step, kind, bytes, until};
    uint32_t at = m->heap_count++;
    while (at > 0 && event_before(&e, &m->heap[(at - 1) / 2])) {
        m->heap[at] = m->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    m->heap[at] = e;
}

static struct event event_pop(struct simulator *m)
{
    struct event first = m->heap[0], last = m->heap[--m->heap_count];
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

/* ---- lengths ----------------------------------------------------------------------------------------------------- */

/* Bytes before a piece of what is cut evenly. */
static uint64_t piece_start(uint64_t piece, uint64_t length, uint64_t bytes)
{
    uint64_t start;
    return __builtin_mul_overflow(piece, length, &start) || start > bytes ? bytes : start;
}

static uint64_t slice_bytes(const struct simulator *m, const struct tb_program *p, const struct tb_step *t,
                            const struct tb_slice *slice, uint32_t item)
{
    const struct tb_simulation *s = m->s;
    if (slice->count == 0)
        return 0;
    uint64_t count = t->joined || t->kind == TB_STEP_COMPOSITE ? slice->count : 1;
    if (slice->symbol == TB_SYMBOL_SIZES)
        return count * sizeof(uint64_t);
    if (s->blocks) {
        uint64_t bytes;
        return __builtin_mul_overflow(count, s->bytes, &bytes) ? UINT64_MAX : bytes;
    }
    if (p->pieces == 0)
        return 0;
    uint64_t length = s->bytes / p->pieces + (s->bytes % p->pieces != 0);
    uint64_t piece = tb_slice_piece(slice, item) % p->pieces;
    return piece_start(piece + count, length, s->bytes) - piece_start(piece, length, s->bytes);
}

static uint64_t item_bytes(const struct simulator *m, const struct step *f, uint32_t item)
{
    const struct tb_step *t = f->about;
    const struct tb_program *p = m->s->programs[f->rank];
    if (t->kind == TB_STEP_MEASURE || t->kind == TB_STEP_BIND)
        return 0;
    bool like = (t->kind == TB_STEP_SEND || t->kind == TB_STEP_RECEIVE) && t->other.count > 0;
    return slice_bytes(m, p, t, like ? &t->other : &t->slice, item);
}

/* ---- ranks ------------------------------------------------------------------------------------------------------- */

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* The core on which `rank` can begin soonest, and of these the one that idles least. */
static struct core *core_find(const struct simulator *m, struct host *h, uint32_t rank, uint64_t from)
{
    struct core *best = &h->cores[0];
    for (uint32_t i = 1; i < m->s->costs->cores; i++) {
        struct core *c = &h->cores[i];
        bool free = c->free <= from, best_free = best->free <= from;
        if (free != best_free ? free
            : free            ? c->free > best->free || (c->free == best->free && c->rank == rank)
                              : c->free < best->free)
            best = c;
    }
    return best;
}

/* Keeps a rank busy for some time; `bytes` pass through memory. Returns the end. */
static uint64_t rank_work(struct simulator *m, uint32_t rank, uint64_t now, uint64_t time, uint64_t bytes)
{
    const struct tb_costs *costs = m->s->costs;
    struct host *h = &m->hosts[tb_group_shape_host(m->s->shape, rank)];
    uint64_t from = later(now, m->busy[rank]);
    struct core *core = NULL;
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
static void step_measure(const struct simulator *m, struct step *f, uint64_t bytes)
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

static void message_send(struct simulator *m, uint32_t step, uint64_t bytes, uint64_t now)
{
    struct step *f = &m->steps[step];
    step_measure(m, f, bytes);
    uint64_t end = rank_work(m, f->rank, now, f->own, f->link != NULL ? 0 : bytes);
    uint64_t first = end - f->own + f->own_first;
    if (f->link != NULL) {
        event_push(m, EVENT_PORT, step, first, bytes, end);
        return;
    }
    const struct tb_cost_link *host = &m->s->costs->host;
    struct step *to = &m->steps[f->partner];
    step_measure(m, to, bytes);
    event_push(m, EVENT_DONE, step, end, 0, 0);
    event_push(m, EVENT_ARRIVE, f->partner, tb_cost_add(first, host->latency), bytes,
               tb_cost_add(tb_cost_add(end, host->latency), to->own_first));
}

static void message_receive(struct simulator *m, uint32_t step, uint64_t bytes, uint64_t now, uint64_t until)
{
    struct step *f = &m->steps[step];
    step_measure(m, f, bytes);
    uint64_t end = rank_work(m, f->rank, now, f->own, f->link != NULL ? 0 : bytes);
    if (end < until)
        end = m->busy[f->rank] = until;
    event_push(m, EVENT_DONE, step, end, 0, 0);
}

/* ---- ports ------------------------------------------------------------------------------------------------------- */

/* Keeps a port busy from `from` on; returns when it begins. A short message does not wait for long ones, but takes
 * from their time. */
static uint64_t port_take(struct port *p, uint64_t from, uint64_t time, bool is_short)
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
static uint64_t own_gap(const struct simulator *m, uint32_t rank, uint64_t bytes)
{
    uint32_t cluster = tb_group_shape_cluster(m->s->shape, rank);
    return tb_cost_at(&tb_costs_link(m->s->costs, cluster, cluster)->gap, bytes);
}

/* When a message has got through the queue in front of a port, from `first` on if that has room, at `here`. */
static uint64_t queue_pass(struct simulator *m, uint32_t to, uint32_t from, uint64_t bytes, uint64_t first,
                           uint64_t here)
{
    if (m->flows == NULL)
        return here;
    uint32_t hosts = m->s->shape->host_count;
    struct flow *flows = m->flows + (size_t)to * hosts, *mine = &flows[from];
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

static void message_cross(struct simulator *m, const struct event *e)
{
    struct step *f = &m->steps[e->step], *to = &m->steps[f->partner];
    const struct tb_group_shape *shape = m->s->shape;
    uint32_t from_cluster = tb_group_shape_cluster(shape, f->rank),
             to_cluster = tb_group_shape_cluster(shape, to->rank);
    bool is_short = e->bytes <= m->s->costs->short_bytes, crosses = from_cluster != to_cluster;
    step_measure(m, f, e->bytes);
    step_measure(m, to, e->bytes);
    uint64_t gap_out = crosses ? own_gap(m, f->rank, e->bytes) : f->gap;
    uint64_t gap_in = crosses ? own_gap(m, to->rank, e->bytes) : to->gap;
    struct host *out = &m->hosts[tb_group_shape_host(shape, f->rank)];
    struct host *in = &m->hosts[tb_group_shape_host(shape, to->rank)];
    struct port *wires = &m->wide[from_cluster * shape->cluster_count + to_cluster];
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
    event_push(m, EVENT_DONE, e->step, sent, 0, 0);
    event_push(m, EVENT_ARRIVE, f->partner, later(first, here > copying ? here - copying : 0), e->bytes,
               tb_cost_add(here, to->own_first));
}

/* ---- composite steps --------------------------------------------------------------------------------------------- */

/* How long it takes once all have come: see struct tb_contract. */
static uint64_t composite_time(const struct simulator *m, const struct step *f, uint64_t bytes, uint64_t everyone)
{
    const struct tb_costs *costs = m->s->costs;
    const struct tb_group_shape *shape = m->s->shape;
    const struct tb_cost_link *link = &costs->host;
    uint64_t pass, round = tb_cost_at(&link->send, 0) + link->latency;
    if (shape->host_count > 1) {
        link = tb_costs_link(costs, 0, shape->cluster_count > 1 ? 1 : 0);
        pass = tb_cost_at(&link->gap, bytes);
        round = tb_cost_at(&link->send, 0) + link->latency + tb_cost_at(&link->receive, 0);
    } else {
        /* Within a host a pass is everyone's copying, which its memory must carry; a flag that is seen is all that
         * there is to receive. */
        pass = tb_cost_at(&costs->memory, everyone);
        if (pass == 0)
            pass = tb_cost_at(&link->send, bytes) - tb_cost_at(&link->send, 0);
        if (costs->cores > 0 && shape->size > costs->cores) /* Everyone must get a core once in a round. */
            round += costs->change * ((shape->size + costs->cores - 1) / costs->cores);
    }
    unsigned __int128 time =
        (unsigned __int128)round * f->about->contract.rounds + (unsigned __int128)pass * f->about->contract.passes;
    return time > TB_COST_NEVER ? TB_COST_NEVER : (uint64_t)time;
}

static void composite_come(struct simulator *m, uint32_t step, uint64_t now)
{
    struct step *f = &m->steps[step];
    struct composite *c = NULL;
    for (uint32_t i = 0; i < m->composite_count; i++)
        c = m->composites[i].edge == f->about->edge ? &m->composites[i] : c;
    if (c == NULL) {
        if (m->composite_count == COMPOSITES) {
            m->error = TB_ERR_LIMIT;
            return;
        }
        c = &m->composites[m->composite_count++];
        *c = (struct composite){.edge = f->about->edge, .first = NONE};
    }
    f->partner = c->first;
    c->first = step;
    if (++c->come < m->ranks)
        return;
    uint64_t bytes = 0, everyone = 0;
    for (uint32_t k = c->first; k != NONE; k = m->steps[k].partner) {
        const struct step *g = &m->steps[k];
        const struct tb_program *p = m->s->programs[g->rank];
        uint64_t given = slice_bytes(m, p, g->about, &g->about->slice, 0);
        uint64_t its = later(given, slice_bytes(m, p, g->about, &g->about->other, 0));
        bytes = later(bytes, its);
        everyone = everyone > UINT64_MAX - its ? UINT64_MAX : everyone + its;
    }
    uint64_t end = tb_cost_add(now, composite_time(m, f, bytes, everyone));
    for (uint32_t k = c->first; k != NONE; k = m->steps[k].partner) {
        m->busy[m->steps[k].rank] = later(m->busy[m->steps[k].rank], end);
        event_push(m, EVENT_DONE, k, end, 0, 0);
    }
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

static bool item_ready(const struct simulator *m, const struct step *f)
{
    const uint32_t *after = m->s->programs[f->rank]->after + f->about->after;
    for (uint32_t i = 0; i < f->about->after_count; i++) {
        const struct step *before = &m->steps[m->firsts[f->rank] + TB_AFTER_STEP(after[i])];
        if (before->done < tb_step_needs(f->about, after[i], before->items, f->started))
            return false;
    }
    return true;
}

static void item_start(struct simulator *m, uint32_t step, uint64_t now)
{
    struct step *f = &m->steps[step];
    const struct tb_step *t = f->about;
    uint64_t bytes = item_bytes(m, f, f->started);
    bool message = t->kind == TB_STEP_SEND || t->kind == TB_STEP_RECEIVE;
    f->started++;
    if (t->kind == TB_STEP_COMPOSITE) {
        composite_come(m, step, now);
    } else if (bytes == 0 && (!message || (t->slice.count > 0 && !t->upto))) {
        event_push(m, EVENT_DONE, step, now, 0, 0);
    } else if (!message) {
        const struct tb_costs *costs = m->s->costs;
        uint64_t time = tb_cost_at(t->kind == TB_STEP_COPY ? &costs->copy : &costs->reduce, bytes);
        event_push(m, EVENT_DONE, step, rank_work(m, f->rank, now, time, bytes), 0, 0);
    } else if (t->kind == TB_STEP_SEND) {
        message_send(m, step, bytes, now);
    } else if (++f->posted <= f->arrived) {
        message_receive(m, step, bytes, now, 0);
    }
}

static void step_advance(struct simulator *m, uint32_t step, uint64_t now)
{
    struct step *f = &m->steps[step];
    while (f->started < f->items && f->started - f->done < f->window && item_ready(m, f))
        item_start(m, step, now);
}

static void item_done(struct simulator *m, const struct event *e)
{
    struct step *f = &m->steps[e->step];
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

static void message_arrive(struct simulator *m, const struct event *e)
{
    struct step *f = &m->steps[e->step];
    if (++f->arrived <= f->posted)
        message_receive(m, e->step, e->bytes, e->time, e->until);
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static uint64_t match_hash(uint32_t from, uint32_t to, uint32_t edge)
{
    uint64_t h = ((uint64_t)from << 40 ^ (uint64_t)to << 16 ^ edge) * 0x9e3779b97f4a7c15u;
    return h >> 32;
}

/* Finds for every send its receive. */
static int partners_find(struct simulator *m)
{
    uint32_t room = 16;
    while (room < 2 * m->step_count)
        room *= 2;
    uint32_t *table = malloc(room * sizeof *table);
    if (table == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory to simulate %u ranks", m->ranks);
    memset(table, 0xff, room * sizeof *table);
    int error = TB_OK;
    for (uint32_t i = 0; i < m->step_count; i++) {
        const struct step *f = &m->steps[i];
        if (f->about->kind != TB_STEP_RECEIVE)
            continue;
        uint32_t at = (uint32_t)match_hash(f->about->peer, f->rank, f->about->edge) & (room - 1);
        while (table[at] != NONE)
            at = (at + 1) & (room - 1);
        table[at] = i;
    }
    for (uint32_t i = 0; i < m->step_count && error == TB_OK; i++) {
        struct step *f = &m->steps[i];
        if (f->about->kind != TB_STEP_SEND)
            continue;
        uint32_t at = (uint32_t)match_hash(f->rank, f->about->peer, f->about->edge) & (room - 1);
        for (; table[at] != NONE; at = (at + 1) & (room - 1)) {
            const struct step *g = &m->steps[table[at]];
            if (g->rank == f->about->peer && g->about->peer == f->rank && g->about->edge == f->about->edge)
                break;
        }
        f->partner = table[at];
        error = f->partner == NONE ? TB_ERR_MISMATCH : TB_OK;
    }
    free(table);
    return error;
}

static const struct tb_cost_link *step_link(const struct simulator *m, uint32_t rank, const struct tb_step *t)
{
    const struct tb_group_shape *shape = m->s->shape;
    if ((t->kind != TB_STEP_SEND && t->kind != TB_STEP_RECEIVE) ||
        tb_group_shape_host(shape, rank) == tb_group_shape_host(shape, t->peer))
        return NULL;
    uint32_t from = t->kind == TB_STEP_SEND ? rank : t->peer, to = t->kind == TB_STEP_SEND ? t->peer : rank;
    return tb_costs_link(m->s->costs, tb_group_shape_cluster(shape, from), tb_group_shape_cluster(shape, to));
}

static int steps_fill(struct simulator *m)
{
    uint32_t at = 0;
    for (uint32_t rank = 0; rank < m->ranks; rank++) {
        const struct tb_program *p = m->s->programs[rank];
        m->firsts[rank] = at;
        m->left[rank] = p->step_count;
        m->finished += p->step_count == 0;
        for (uint32_t i = 0; i < p->step_count; i++) {
            const struct tb_step *t = &p->steps[i];
            bool message = t->kind == TB_STEP_SEND || t->kind == TB_STEP_RECEIVE;
            if (message && (t->peer >= m->ranks || t->group != 0))
                return TB_ERR_MISMATCH;
            uint32_t items = t->kind == TB_STEP_COMPOSITE ? 1 : tb_step_items(t);
            m->steps[at++] = (struct step){.about = t,
                                           .link = step_link(m, rank, t),
                                           .rank = rank,
                                           .items = items,
                                           .window = tb_step_window(t),
                                           .partner = NONE,
                                           .known = UINT64_MAX};
        }
    }
    m->firsts[m->ranks] = at;
    return partners_find(m);
}

/* Turns "comes after" into "is waited for by". */
static void waiters_fill(struct simulator *m)
{
    for (uint32_t i = 0; i < m->step_count; i++) {
        const struct step *f = &m->steps[i];
        const uint32_t *after = m->s->programs[f->rank]->after + f->about->after;
        for (uint32_t k = 0; k < f->about->after_count; k++)
            m->steps[m->firsts[f->rank] + TB_AFTER_STEP(after[k])].waiters++;
    }
    uint32_t total = 0;
    for (uint32_t i = 0; i < m->step_count; i++) {
        m->steps[i].waiting = total;
        total += m->steps[i].waiters;
        m->steps[i].waiters = 0;
    }
    for (uint32_t i = 0; i < m->step_count; i++) {
        const struct step *f = &m->steps[i];
        const uint32_t *after = m->s->programs[f->rank]->after + f->about->after;
        for (uint32_t k = 0; k < f->about->after_count; k++) {
            struct step *before = &m->steps[m->firsts[f->rank] + TB_AFTER_STEP(after[k])];
            m->waiting[before->waiting + before->waiters++] = i;
        }
    }
}

static void hosts_fill(struct simulator *m)
{
    const struct tb_group_shape *shape = m->s->shape;
    uint32_t cores = m->s->costs->cores;
    for (uint32_t rank = 0; rank < m->ranks; rank++)
        m->hosts[tb_group_shape_host(shape, rank)].ranks++;
    for (uint32_t i = 0; i < shape->host_count && m->cores != NULL; i++) {
        struct core *own = m->cores + (size_t)i * cores;
        for (uint32_t k = 0; k < cores; k++)
            own[k].rank = NONE;
        m->hosts[i].cores = m->hosts[i].ranks > cores ? own : NULL;
    }
}

static int simulator_open(struct simulator *m)
{
    const struct tb_group_shape *shape = m->s->shape;
    uint32_t cores = m->s->costs->cores;
    size_t steps = 0, after = 0;
    for (uint32_t rank = 0; rank < m->ranks; rank++) {
        const struct tb_program *p = m->s->programs[rank];
        steps += p->step_count;
        for (uint32_t i = 0; i < p->step_count; i++)
            after += p->steps[i].after_count;
    }
    if (steps >= UINT32_MAX / 2 || after >= UINT32_MAX || steps > m->s->limit)
        return TB_ERR_LIMIT;
    m->step_count = (uint32_t)steps;
    m->heap_room = 256;
    m->steps = malloc((steps + 1) * sizeof *m->steps);
    m->firsts = malloc(((size_t)m->ranks + 1) * sizeof *m->firsts);
    m->left = malloc(m->ranks * sizeof *m->left);
    m->waiting = malloc((after + 1) * sizeof *m->waiting);
    m->busy = calloc(m->ranks, sizeof *m->busy);
    m->loads = calloc(m->ranks, sizeof *m->loads);
    m->hosts = calloc(shape->host_count, sizeof *m->hosts);
    m->wide = calloc((size_t)shape->cluster_count * shape->cluster_count, sizeof *m->wide);
    m->heap = malloc(m->heap_room * sizeof *m->heap);
    bool crowded = cores > 0 && shape->most > cores;
    bool queues = m->s->costs->queue > 0 && shape->host_count > 2 && shape->host_count <= FLOWS_HOSTS;
    m->flows = queues ? calloc((size_t)shape->host_count * shape->host_count, sizeof *m->flows) : NULL;
    m->cores = crowded ? calloc((size_t)shape->host_count * cores, sizeof *m->cores) : NULL;
    if (m->steps == NULL || m->firsts == NULL || m->left == NULL || m->waiting == NULL || m->busy == NULL ||
        m->loads == NULL || m->hosts == NULL || m->wide == NULL || m->heap == NULL || (crowded && m->cores == NULL) ||
        (queues && m->flows == NULL))
        return tb_error(TB_ERR_MEMORY, "no memory to simulate %u ranks", m->ranks);
    int error = steps_fill(m);
    if (error != TB_OK)
        return error;
    waiters_fill(m);
    hosts_fill(m);
    return TB_OK;
}

/* The busiest of all that work one after the other. */
static uint64_t busiest(const struct simulator *m)
{
    const struct tb_group_shape *shape = m->s->shape;
    uint64_t load = 0;
    for (uint32_t i = 0; i < m->ranks; i++)
        load = later(load, m->loads[i]);
    for (uint32_t i = 0; i < shape->host_count; i++) {
        const struct host *h = &m->hosts[i];
        load = later(load, later(h->out.load, h->in.load));
        if (h->cores != NULL)
            load = later(load, h->load / m->s->costs->cores);
    }
    for (uint32_t i = 0; i < shape->cluster_count * shape->cluster_count; i++)
        load = later(load, m->wide[i].load);
    return load;
}

static int simulator_run(struct simulator *m)
{
    struct tb_simulation *s = m->s;
    for (uint32_t i = 0; i < m->step_count; i++)
        step_advance(m, i, 0);
    while (m->heap_count > 0 && m->error == TB_OK) {
        struct event e = event_pop(m);
        if (++s->events > s->limit)
            return TB_ERR_LIMIT;
        if (e.kind == EVENT_DONE)
            item_done(m, &e);
        else if (e.kind == EVENT_PORT)
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
    struct simulator m = {.s = s, .ranks = s->shape->size};
    TB_ASSERT(m.ranks > 0);
    s->end = s->events = s->load = 0;
    if (s->ends != NULL)
        memset(s->ends, 0, m.ranks * sizeof *s->ends);
    int error = simulator_open(&m);
    if (error == TB_OK)
        error = simulator_run(&m);
    free(m.steps);
    free(m.firsts);
    free(m.left);
    free(m.waiting);
    free(m.busy);
    free(m.loads);
    free(m.hosts);
    free(m.wide);
    free(m.flows);
    free(m.heap);
    free(m.cores);
    return error;
}
