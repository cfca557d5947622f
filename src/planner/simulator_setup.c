#include "planner/simulator_state.h"

#include <stdlib.h>
#include <string.h>

#define STEPS_LIMIT (1u << (TB_SIMULATOR_INDEX_BITS - 1))

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* As many elements, whatever was there before. */
static void *room_of(struct tb_simulator *m, unsigned room, size_t count, size_t size)
{
    return m->error == TB_OK ? tb_simulator_room(m, room, (count + 1) * size) : NULL;
}

static void *room_zero(struct tb_simulator *m, unsigned room, size_t count, size_t size)
{
    void *at = room_of(m, room, count, size);
    return at != NULL ? memset(at, 0, count * size) : NULL;
}

/* An open addressing table for so many entries, empty; *mask of its indices. */
static uint32_t *table_of(struct tb_simulator *m, uint32_t entries, uint32_t *mask)
{
    uint32_t room = 16;
    while (room < 2 * entries)
        room *= 2;
    *mask = room - 1;
    uint32_t *table = room_of(m, ROOM_TABLE, room, sizeof *table);
    return table != NULL ? memset(table, 0xff, room * sizeof *table) : NULL;
}

static uint32_t match_hash(uint32_t from, uint32_t to, uint32_t edge)
{
    uint64_t h = ((uint64_t)from << 40 ^ (uint64_t)to << 16 ^ edge) * 0x9e3779b97f4a7c15u;
    return (uint32_t)(h >> 32);
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

/* Finds for every send its receive. */
static int partners_find(struct tb_simulator *m)
{
    uint32_t mask, *table = table_of(m, m->step_count, &mask);
    if (table == NULL)
        return m->error;
    for (uint32_t i = 0; i < m->step_count; i++) {
        const struct tb_simulator_step *f = &m->steps[i];
        if (f->kind != TB_STEP_RECEIVE)
            continue;
        uint32_t at = match_hash(f->about->peer, f->rank, f->about->edge) & mask;
        while (table[at] != TB_SIMULATOR_NONE)
            at = (at + 1) & mask;
        table[at] = i;
    }
    for (uint32_t i = 0; i < m->step_count; i++) {
        struct tb_simulator_step *f = &m->steps[i];
        if (f->kind != TB_STEP_SEND)
            continue;
        uint32_t at = match_hash(f->rank, f->about->peer, f->about->edge) & mask;
        for (; table[at] != TB_SIMULATOR_NONE; at = (at + 1) & mask) {
            const struct tb_simulator_step *g = &m->steps[table[at]];
            if (g->rank == f->about->peer && g->about->peer == f->rank && g->about->edge == f->about->edge)
                break;
        }
        f->partner = table[at];
        if (f->partner == TB_SIMULATOR_NONE)
            return TB_ERR_MISMATCH;
        f->path = m->steps[f->partner].path = tb_simulator_path(m, f->rank, f->about->peer);
        if (m->error != TB_OK)
            return m->error;
    }
    return TB_OK;
}

enum { MESSAGES_SHORT = 1, MESSAGES_LONG = 2 };

/* What messages a step sends, by the first and the last of them. */
static unsigned step_messages(const struct tb_simulator *m, const struct tb_simulator_step *f)
{
    const struct tb_step *t = f->about;
    unsigned kinds = 0;
    for (int i = 0; i < 2 && t->items > 0; i++) {
        uint64_t bytes = tb_item_bytes(&m->data, m->run->programs[f->rank], t, i == 0 ? 0 : t->items - 1);
        if (bytes > 0 || t->slice.count == 0 || t->upto)
            kinds |= bytes <= m->constants->short_bytes ? MESSAGES_SHORT : MESSAGES_LONG;
    }
    return kinds;
}

/* One for every two ranks of which one sends to the other. */
static int streams_find(struct tb_simulator *m)
{
    uint32_t mask, *table = table_of(m, m->step_count, &mask);
    m->streams = room_of(m, ROOM_STREAMS, m->step_count, sizeof *m->streams);
    unsigned kinds = 0;
    if (table == NULL || m->streams == NULL)
        return m->error;
    for (uint32_t i = 0; i < m->step_count; i++) {
        struct tb_simulator_step *f = &m->steps[i];
        if (f->kind != TB_STEP_SEND || f->path == TB_SIMULATOR_NONE)
            continue;
        uint32_t to = f->about->peer, at = match_hash(f->rank, to, 0) & mask;
        while (table[at] != TB_SIMULATOR_NONE &&
               (m->streams[table[at]].from != f->rank || m->streams[table[at]].to != to))
            at = (at + 1) & mask;
        if (table[at] == TB_SIMULATOR_NONE) {
            m->streams[m->stream_count] = (struct tb_simulator_stream){.from = f->rank,
                                                                       .to = to,
                                                                       .path = f->path,
                                                                       .ends = tb_simulator_ends_of(m, f->rank, to),
                                                                       .head = TB_SIMULATOR_NONE,
                                                                       .short_head = TB_SIMULATOR_NONE,
                                                                       .acks = TB_SIMULATOR_NONE,
                                                                       .turns = TB_SIMULATOR_NONE,
                                                                       .brief = true};
            table[at] = m->stream_count++;
        }
        f->stream = table[at];
        unsigned its = step_messages(m, f);
        if ((its & MESSAGES_LONG) != 0)
            m->streams[f->stream].brief = false;
        kinds |= its;
    }
    m->mixed = kinds == (MESSAGES_SHORT | MESSAGES_LONG);
    return TB_OK;
}

/* ---- all steps --------------------------------------------------------------------------------------------------- */

/* How many items of a step there are but for those at its end that are empty, where a message has fewer bytes than
 * would fill all pieces: of these nothing is sent, and nobody waits for them. */
static uint32_t items_count(const struct tb_simulator *m, const struct tb_program *p, const struct tb_step *t)
{
    uint32_t items = t->items;
    uint64_t each = p->pieces > 0 ? (m->data.bytes + p->pieces - 1) / p->pieces : 0;
    if (t->kind == TB_STEP_COMPOSITE || m->data.blocks || t->upto || t->slice.count == 0 ||
        each * (p->pieces - (uint64_t)1) < m->data.bytes) /* not even the last piece is empty */
        return items;
    while (items > 1 && tb_item_bytes(&m->data, p, t, items - 1) == 0)
        items--;
    return items;
}

/* Bytes of all items of a step but the last; 0: they differ, or may. Pieces in order get shorter only towards the end
 * of the message, and blocks without parts are all as long. */
static uint32_t items_each(const struct tb_simulator *m, const struct tb_program *p, const struct tb_step *t,
                           uint32_t items)
{
    bool like = (t->kind == TB_STEP_SEND || t->kind == TB_STEP_RECEIVE) && t->other.count > 0;
    const struct tb_slice *s = like ? &t->other : &t->slice;
    if (items < 3 || t->kind == TB_STEP_COMPOSITE)
        return 0;
    bool alike = m->data.blocks
                     ? p->parts == 1
                     : s->stride > 0 && s->first + ((uint64_t)s->count - 1) * (uint64_t)s->stride < p->pieces;
    if (s->count == 0 || (!alike && s->symbol != TB_SYMBOL_SIZES))
        return 0;
    uint64_t bytes = tb_item_bytes(&m->data, p, t, 0);
    return bytes <= UINT32_MAX && bytes == tb_item_bytes(&m->data, p, t, items - 2) ? (uint32_t)bytes : 0;
}

/* What a step comes after, from *at on; `first` is the first step of its rank. */
static uint32_t after_fill(struct tb_simulator *m, const struct tb_program *p, const struct tb_step *t, uint32_t first,
                           uint32_t *at)
{
    uint32_t begin = *at;
    for (uint32_t i = 0; i < t->after_count; i++) {
        const struct tb_after *a = &p->after[t->after + i];
        m->after[(*at)++] = (struct tb_simulator_after){.step = first + a->step,
                                                        .joined = t->join != 1 || p->steps[a->step].join != 1,
                                                        .last = i + 1 == t->after_count,
                                                        .lag = a->lag};
    }
    return t->after_count > 0 ? begin : TB_SIMULATOR_NONE;
}

static int steps_fill(struct tb_simulator *m)
{
    uint32_t at = 0, after = 0;
    for (uint32_t rank = 0; rank < m->ranks; rank++) {
        const struct tb_program *p = m->run->programs[rank];
        m->firsts[rank] = at;
        m->left[rank] = p->step_count;
        m->finished += p->step_count == 0;
        for (uint32_t i = 0; i < p->step_count; i++) {
            const struct tb_step *t = &p->steps[i];
            const uint32_t items = items_count(m, p, t);
            bool receives = t->kind == TB_STEP_RECEIVE, message = receives || t->kind == TB_STEP_SEND;
            if (message && (t->peer >= m->ranks || t->group != 0))
                return TB_ERR_MISMATCH;
            m->steps[at] = (struct tb_simulator_step){.about = t,
                                                      .after = after_fill(m, p, t, m->firsts[rank], &after),
                                                      .each = items_each(m, p, t, items),
                                                      .rank = rank & (STEPS_LIMIT - 1),
                                                      .kind = t->kind & 7u,
                                                      .items = items,
                                                      .window = t->window,
                                                      .path = TB_SIMULATOR_NONE,
                                                      .blocker = TB_SIMULATOR_NONE,
                                                      .askers = TB_SIMULATOR_NONE,
                                                      .partner = receives ? 0 : TB_SIMULATOR_NONE,
                                                      .stream = receives ? 0 : TB_SIMULATOR_NONE};
            at++;
        }
    }
    m->firsts[m->ranks] = at;
    int error = tb_simulator_composites(m);
    if (error == TB_OK)
        error = partners_find(m);
    return error == TB_OK ? streams_find(m) : error;
}

/* Turns "comes after" into "is waited for by". */
static void waiters_fill(struct tb_simulator *m)
{
    for (uint32_t i = 0; i < m->step_count; i++) {
        for (uint32_t k = m->steps[i].after; k != TB_SIMULATOR_NONE; k = tb_simulator_after_next(m, k))
            m->steps[m->after[k].step].waiters++;
    }
    uint32_t total = 0;
    for (uint32_t i = 0; i < m->step_count; i++) {
        m->steps[i].waiting = total;
        total += m->steps[i].waiters;
        m->steps[i].waiters = 0;
    }
    for (uint32_t i = 0; i < m->step_count; i++) {
        for (uint32_t k = m->steps[i].after; k != TB_SIMULATOR_NONE; k = tb_simulator_after_next(m, k)) {
            struct tb_simulator_step *before = &m->steps[m->after[k].step];
            m->waiting[before->waiting + before->waiters++] = i;
        }
    }
}

/* ---- hosts and wires --------------------------------------------------------------------------------------------- */

/* Cores count where there are fewer of them than ranks, on a host or in all. */
static void hosts_fill(struct tb_simulator *m)
{
    const struct tb_cost_constants *c = m->constants;
    uint32_t hosts = m->shape->host_count;
    m->pool = c->pool > 0 ? c->pool : c->cores;
    for (uint32_t rank = 0; rank < m->ranks; rank++)
        m->hosts[m->host_of[rank]].ranks++;
    bool all = c->pool > 0 && (m->ranks > c->pool || c->wire_work > 0), crowded = all;
    for (uint32_t i = 0; i < hosts; i++)
        crowded = crowded || (c->pool == 0 && c->cores > 0 && m->hosts[i].ranks > c->cores);
    m->core_count = !crowded ? 0 : all ? c->pool : hosts * c->cores;
    m->cores = crowded ? room_zero(m, ROOM_CORES, m->core_count, sizeof *m->cores) : NULL;
    for (uint32_t i = 0; m->cores != NULL && i < m->core_count; i++)
        m->cores[i].rank = TB_SIMULATOR_NONE;
    for (uint32_t i = 0; i < hosts; i++) {
        bool shares = all || (crowded && m->hosts[i].ranks > c->cores);
        m->hosts[i].cores = !shares ? TB_SIMULATOR_NONE : all ? 0 : i * c->cores;
    }
}

static void wires_fill(struct tb_simulator *m)
{
    const struct tb_ways *ways = m->run->ways;
    m->wire_count = ways->wire_count;
    m->wires = room_of(m, ROOM_WIRES, m->wire_count, sizeof *m->wires);
    m->dues = m->constants->burst > 0 ? room_zero(m, ROOM_DUES, m->wire_count, sizeof *m->dues) : NULL;
    struct tb_simulator_last none = {0, 0};
    for (uint32_t i = 0; m->wires != NULL && i < m->wire_count; i++) {
        const struct tb_way_wire *wire = &ways->wires[i];
        bool waits =
            wire->use.role == TB_ROLE_PORT_OUT || wire->use.role == TB_ROLE_HUB || wire->use.role == TB_ROLE_AGENT;
        uint32_t row = (uint32_t)(wire->wire - m->table->wires);
        if (i == 0 || row != m->wires[i - 1].row)
            none.time = tb_simulator_time(m, m->wire_times + row, 0);
        m->wires[i] = (struct tb_simulator_wire){.last = none,
                                                 .queue = TB_SIMULATOR_NONE,
                                                 .waiting = TB_SIMULATOR_NONE,
                                                 .last_waiting = TB_SIMULATOR_NONE,
                                                 .row = row & ((1u << 30) - 1),
                                                 .limited = !waits && wire->wire->queue > 0};
    }
    if (m->run->wire_bytes != NULL)
        memset(m->run->wire_bytes, 0, m->run->wire_room * sizeof *m->run->wire_bytes);
}

/* Everything but the memory as it is at the beginning. */
static void simulator_clear(struct tb_simulator *m, struct tb_simulation *run)
{
    m->run = run;
    m->table = run->ways->table;
    m->constants = &m->table->head->constants;
    m->shape = run->ways->shape;
    m->data = (struct tb_item_data){run->bytes, run->blocks};
    m->ranks = m->shape->size;
    m->stream_count = m->path_count = m->way_count = m->leg_count = m->composite_count = 0;
    m->message_count = m->part_count = m->note_count = m->finished = 0;
    m->free_message = m->free_part = m->free_note = TB_SIMULATOR_NONE;
    tb_simulator_events_clear(m);
    m->messages = m->rooms[ROOM_MESSAGES].at;
    m->parts = m->rooms[ROOM_PARTS].at;
    m->notes = m->rooms[ROOM_NOTES].at;
    m->wire_times = TB_TIME_ENDS + 2 * (TB_ENDS_COUNT + m->table->head->ends_count);
    m->error = TB_OK;
    m->runs++;
}

int tb_simulator_fill(struct tb_simulator *m, struct tb_simulation *run)
{
    size_t steps = 0, after = 0;
    simulator_clear(m, run);
    TB_ASSERT(m->ranks > 0);
    for (uint32_t rank = 0; rank < m->ranks; rank++) {
        const struct tb_program *p = run->programs[rank];
        steps += p->step_count;
        for (uint32_t i = 0; i < p->step_count; i++)
            after += p->steps[i].after_count;
    }
    if (steps >= STEPS_LIMIT || m->ranks >= STEPS_LIMIT || after >= UINT32_MAX || steps > run->limit)
        return TB_ERR_LIMIT;
    m->step_count = (uint32_t)steps;
    m->steps = room_of(m, ROOM_STEPS, steps, sizeof *m->steps);
    m->firsts = room_of(m, ROOM_FIRSTS, (size_t)m->ranks + 1, sizeof *m->firsts);
    m->left = room_of(m, ROOM_LEFT, m->ranks, sizeof *m->left);
    m->waiting = room_of(m, ROOM_WAITING, after, sizeof *m->waiting);
    m->after = room_of(m, ROOM_AFTER, after, sizeof *m->after);
    m->busy = room_zero(m, ROOM_BUSY, m->ranks, sizeof *m->busy);
    m->loads = room_zero(m, ROOM_LOADS, m->ranks, sizeof *m->loads);
    m->host_of = room_of(m, ROOM_HOST_OF, m->ranks, sizeof *m->host_of);
    m->hosts = room_zero(m, ROOM_HOSTS, m->shape->host_count, sizeof *m->hosts);
    if (m->error != TB_OK)
        return m->error;
    if (run->ends != NULL)
        memset(run->ends, 0, m->ranks * sizeof *run->ends);
    if (run->times != NULL)
        memset(run->times, 0xff, steps * sizeof *run->times);
    for (uint32_t rank = 0; rank < m->ranks; rank++)
        m->host_of[rank] = tb_group_shape_host(m->shape, rank);
    int error = steps_fill(m);
    if (error != TB_OK)
        return error;
    waiters_fill(m);
    hosts_fill(m);
    wires_fill(m);
    if (m->error == TB_OK)
        tb_simulator_turns(m);
    return m->error;
}
