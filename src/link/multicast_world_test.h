/* A network in virtual time for tests of multicast: hosts at the ports of a switch, each with an object, a socket of
 * bounded size, and a processor. What a host sends passes its own port, which refuses more than fits, then the port of
 * each receiver, which drops more than fits. Control messages take the same wires and are never dropped, only late.
 * Datagrams get lost, come late or twice as the faults of the receiving host say. Chance comes from one seed, and what
 * is due at the same time happens in the order in which it was caused, so that a run replays.
 *
 *     struct world w;
 *     world_open(&w, hosts, seed);
 *     ... settings of w and w.hosts[i] ...
 *     world_start(&w);                     makes the objects
 *     while (world_step(&w)) ...           the next event
 *     world_close(&w); */
#ifndef TB_LINK_MULTICAST_WORLD_TEST_H
#define TB_LINK_MULTICAST_WORLD_TEST_H

#include "link/multicast.h"

#include <stdio.h>
#include <stdlib.h>

#define WORLD_FRAME_BYTES 66u  /* of UDP, IP and Ethernet around a datagram, with preamble and gap */
#define WORLD_TCP_BYTES   154u /* the same around a control message, with the headers of a frame */
#define WORLD_PIECE       1420u
#define WORLD_BATCH       64u /* datagrams that a host reads before it looks at anything else */
#define WORLD_US          UINT64_C(1000)
#define WORLD_MS          UINT64_C(1000000)
#define WORLD_SECOND      UINT64_C(1000000000)
#define WORLD_MILLION     1000000u

// NOLINTBEGIN(clang-analyzer-unix.Malloc): a packet is freed by the last who refers to it, which the analyzer cannot
// count

struct world;

/* What travels, shared by all who get it. */
struct world_packet {
    uint32_t references;
    uint32_t from, to; /* UINT32_MAX: all */
    uint32_t bytes;    /* on the wire */
    bool control;
    bool other; /* of another program, whose socket has room of its own */
    enum tb_multicast_control kind;
    struct tb_datagram head;
    size_t length;
    char payload[];
};

struct world_item { /* one that waits to be read */
    struct tb_list in_queue;
    struct world_packet *packet;
};

struct world_host {
    struct world *world;
    uint32_t index;
    struct tb_multicast *m;
    struct tb_random random;
    /* Settings. Times a byte takes in ps, rooms in bytes. */
    uint64_t out_time, in_time;
    uint32_t out_room, in_room, socket_room, holds;
    uint64_t overhead;                        /* ns that the processor takes to send or read a datagram */
    uint32_t loss, burst, duplicate, reorder; /* of a million datagrams; a burst loses three */
    uint64_t reorder_time;                    /* ns, at most */
    bool deaf;                                /* to all datagrams */
    bool multicast_deaf;                      /* to those for all */
    uint64_t control_late;                    /* ns by which a control message comes later, at most */
    uint64_t computes_until;                  /* it reads nothing and nothing is done */
    bool standby;                             /* but its object is looked after if others need it */
    struct tb_multicast_limits limits;
    /* State. */
    uint64_t out_free, in_free, cpu_free, sender_free;
    struct world_packet *reading; /* the processor reads it until it is free */
    uint32_t read;                /* datagrams, since it has last looked at anything else */
    uint32_t out_used, in_used, socket_used;
    bool refused;
    uint32_t burst_left;
    struct tb_list socket, controls;
    uint64_t wake;            /* an event is due then */
    uint32_t *context_states; /* of contexts of the play, by id: 0 not joined yet, 1 joined, 2 left */
    /* What has happened to it. */
    uint64_t lost, overflowed, port_drops; /* datagrams that did not reach it: by faults, socket, port */
    uint64_t frames_out, frames_in, controls_out, controls_in, polls_out; /* polls by control messages */
};

enum world_event_kind {
    WORLD_SWITCHED,
    WORLD_ARRIVED,
    WORLD_IN_SOCKET,
    WORLD_CONTROL,
    WORLD_WAKE,
    WORLD_OUT,
    WORLD_OTHER
};

struct world_event {
    uint64_t at, order;
    enum world_event_kind kind;
    uint32_t host;
    struct world_packet *packet;
};

struct world {
    uint64_t now, seed, events_done;
    struct tb_clock clock;
    struct tb_random random;
    uint32_t count;
    struct world_host *hosts;
    uint64_t delay; /* ns from port to port */
    uint32_t contexts;
    uint64_t order;
    struct world_event *heap;
    size_t heap_count, heap_room;
    uint64_t *last_control; /* arrival of the last control message, from a host to another */
    /* Called when a host is awake and has read everything; returns when it wants to be woken. */
    uint64_t (*awake)(struct world_host *h);
    /* Whether a datagram gets lost at a host, besides its faults; may be NULL. */
    bool (*loses)(struct world *w, uint32_t host, const struct world_packet *packet);
    /* Another user of the ports: called at its own events. */
    void (*other)(struct world *w, uint32_t host, struct world_packet *packet, bool dropped);
    void *user;
    uint64_t asks, repairs, data, statuses, polls; /* datagrams that left a host */
    uint64_t marks;                                /* of the data, the last of a window */
};

/* Memory of the world itself, which does not fail: where the test lets one allocation fail, the next one does not. */
static inline void *world_memory(void *before, size_t bytes)
{
    void *memory = realloc(before, bytes);
    if (memory == NULL)
        memory = realloc(before, bytes);
    if (memory == NULL)
        abort();
    return memory;
}

static inline void *world_zeroed(size_t bytes)
{
    return memset(world_memory(NULL, bytes), 0, bytes);
}

/* ---- events --------------------------------------------------------------------------------------------------------
 */

static inline bool world_before(const struct world_event *a, const struct world_event *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static inline void world_post(struct world *w, uint64_t at, enum world_event_kind kind, uint32_t host,
                              struct world_packet *packet)
{
    struct world_event e = {.at = at, .order = w->order++, .kind = kind, .host = host, .packet = packet};
    if (w->heap_count == w->heap_room) {
        w->heap_room = w->heap_room > 0 ? 2 * w->heap_room : 1024;
        w->heap = world_memory(w->heap, w->heap_room * sizeof *w->heap);
    }
    if (packet != NULL)
        packet->references++;
    size_t i = w->heap_count++;
    for (; i > 0 && world_before(&e, &w->heap[(i - 1) / 2]); i = (i - 1) / 2)
        w->heap[i] = w->heap[(i - 1) / 2];
    w->heap[i] = e;
}

static inline struct world_event world_take(struct world *w)
{
    struct world_event first = w->heap[0], last = w->heap[--w->heap_count];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < w->heap_count; i = child) {
        if (child + 1 < w->heap_count && world_before(&w->heap[child + 1], &w->heap[child]))
            child++;
        if (!world_before(&w->heap[child], &last))
            break;
        w->heap[i] = w->heap[child];
    }
    w->heap[i] = last;
    return first;
}

static inline void world_release(struct world_packet *p)
{
    if (p != NULL && --p->references == 0)
        free(p);
}

static inline bool world_chance(struct tb_random *random, uint32_t share)
{
    return share > 0 && tb_random_below(random, WORLD_MILLION) < share;
}

/* ---- ports ---------------------------------------------------------------------------------------------------------
 */

/* Puts a packet on the wire of its host; false: the port has no room. */
static inline bool world_out(struct world *w, struct world_packet *p)
{
    struct world_host *h = &w->hosts[p->from];
    if (h->out_used + p->bytes > h->out_room && h->out_used > 0 && !p->other)
        return false;
    if (!p->other && !p->control)
        h->sender_free = (h->sender_free > w->now ? h->sender_free : w->now) + h->overhead;
    uint64_t ready = h->sender_free > w->now ? h->sender_free : w->now;
    uint64_t begin = h->out_free > ready ? h->out_free : ready;
    h->out_used += p->bytes;
    h->out_free = begin + p->bytes * h->out_time / 1000;
    h->frames_out++;
    world_post(w, h->out_free, WORLD_OUT, p->from, p);
    world_post(w, h->out_free + w->delay / 2, WORLD_SWITCHED, p->to, p);
    return true;
}

static inline void world_to_port(struct world *w, uint32_t host, struct world_packet *p, bool dependable)
{
    struct world_host *h = &w->hosts[host];
    if (!dependable && h->in_used + p->bytes > h->in_room) {
        h->port_drops++;
        if (p->other)
            w->other(w, host, p, true);
        return;
    }
    uint64_t begin = h->in_free > w->now ? h->in_free : w->now;
    h->in_used += p->bytes;
    h->in_free = begin + p->bytes * h->in_time / 1000;
    world_post(w, h->in_free, WORLD_ARRIVED, host, p);
}

static inline void world_switched(struct world *w, const struct world_event *e)
{
    struct world_packet *p = e->packet;
    if (p->to != UINT32_MAX) {
        world_to_port(w, p->to, p, p->control);
        return;
    }
    for (uint32_t i = 0; i < w->count; i++)
        if (i != p->from)
            world_to_port(w, i, p, false);
}

/* ---- hosts ---------------------------------------------------------------------------------------------------------
 */

static inline void world_wake(struct world_host *h, uint64_t at)
{
    struct world *w = h->world;
    at = at > w->now ? at : w->now;
    if (at >= h->wake)
        return;
    h->wake = at;
    world_post(w, at, WORLD_WAKE, h->index, NULL);
}

static inline bool world_is_awake(const struct world_host *h)
{
    return h->world->now >= h->computes_until || (h->standby && tb_multicast_is_needed(h->m));
}

static inline void world_feed(struct world_host *h, struct world_packet *p)
{
    struct tb_multicast_address from = {.length = sizeof p->from};
    memcpy(from.bytes, &p->from, sizeof p->from);
    if (p->control)
        tb_multicast_hear(h->m, p->from, p->kind, p->payload, p->length);
    else
        tb_multicast_feed(h->m, &p->head, p->payload, p->length, &from);
}

static inline struct world_packet *world_read(struct tb_list *queue)
{
    struct world_item *item = TB_CONTAINER(queue->next, struct world_item, in_queue);
    struct world_packet *p = item->packet;
    tb_list_remove(&item->in_queue);
    free(item);
    return p;
}

/* Reads datagrams as fast as the processor can. True: it has read all of them, or many. */
static inline bool world_read_socket(struct world_host *h)
{
    struct world *w = h->world;
    while (h->reading != NULL || !tb_list_empty(&h->socket)) {
        if (h->reading == NULL) {
            h->reading = world_read(&h->socket);
            h->socket_used -= h->reading->bytes;
            h->cpu_free = w->now + h->overhead;
        }
        if (h->cpu_free > w->now) {
            world_wake(h, h->cpu_free);
            break;
        }
        struct world_packet *p = h->reading;
        h->reading = NULL;
        h->read++;
        world_feed(h, p);
        world_release(p);
    }
    if (h->reading != NULL && h->read < WORLD_BATCH)
        return false;
    h->read = 0;
    return true;
}

/* Reads datagrams, then control messages, then looks at the time. */
static inline void world_run(struct world_host *h)
{
    struct world *w = h->world;
    if (!world_is_awake(h)) {
        world_wake(h, h->computes_until);
        return;
    }
    if (!world_read_socket(h))
        return;
    while (!tb_list_empty(&h->controls)) {
        struct world_packet *p = world_read(&h->controls);
        h->controls_in++;
        world_feed(h, p);
        world_release(p);
    }
    uint64_t next = TB_NEVER;
    for (int i = 0; i < 3; i++) { /* what the play begins may be due at once */
        tb_multicast_advance(h->m);
        if (w->awake != NULL && w->now >= h->computes_until)
            next = w->awake(h);
    }
    uint64_t due = tb_multicast_deadline(h->m);
    if (h->computes_until > w->now && h->computes_until < next)
        next = h->computes_until;
    if (due < next)
        next = due;
    if (next != TB_NEVER)
        world_wake(h, next > w->now ? next : w->now + 1);
}

static inline void world_put(struct tb_list *queue, struct world_packet *p)
{
    struct world_item *item = world_memory(NULL, sizeof *item);
    item->packet = p;
    p->references++;
    tb_list_append(queue, &item->in_queue);
}

static inline void world_to_socket(struct world_host *h, struct world_packet *p)
{
    if (h->socket_used + p->bytes > h->socket_room) {
        h->overflowed++;
        return;
    }
    h->socket_used += p->bytes;
    world_put(&h->socket, p);
    world_run(h);
}

/* What becomes of a datagram at its receiver. */
static inline void world_arrived(struct world *w, const struct world_event *e)
{
    struct world_host *h = &w->hosts[e->host];
    struct world_packet *p = e->packet;
    h->in_used -= p->bytes;
    h->frames_in++;
    if (p->other) {
        w->other(w, e->host, p, false);
        return;
    }
    if (p->control) {
        uint64_t *last = &w->last_control[(size_t)p->from * w->count + e->host];
        uint64_t at = w->now + w->delay / 2 + (h->control_late > 0 ? tb_random_below(&h->random, h->control_late) : 0);
        *last = at > *last ? at : *last;
        world_post(w, *last, WORLD_CONTROL, e->host, p);
        return;
    }
    if (h->burst_left == 0 && world_chance(&h->random, h->burst))
        h->burst_left = 3;
    bool lost = h->deaf || (h->multicast_deaf && p->to == UINT32_MAX) || h->burst_left > 0 ||
                world_chance(&h->random, h->loss) || (w->loses != NULL && w->loses(w, e->host, p));
    h->burst_left -= h->burst_left > 0;
    if (lost) {
        h->lost++;
        return;
    }
    uint64_t at = w->now + w->delay / 2;
    if (world_chance(&h->random, h->duplicate))
        world_post(w, at + tb_random_below(&h->random, h->reorder_time + 1), WORLD_IN_SOCKET, e->host, p);
    if (world_chance(&h->random, h->reorder))
        at += tb_random_below(&h->random, h->reorder_time + 1);
    world_post(w, at, WORLD_IN_SOCKET, e->host, p);
}

/* ---- what objects ask for ------------------------------------------------------------------------------------------
 */

static inline struct world_packet *world_packet_make(size_t length, uint32_t bytes, uint32_t from, uint32_t to)
{
    struct world_packet *p = world_zeroed(sizeof *p + length);
    p->from = from;
    p->to = to;
    p->bytes = bytes;
    p->length = length;
    p->references = 1;
    return p;
}

static inline void world_count(struct world *w, const struct tb_datagram *head)
{
    bool data = head->type == TB_DATAGRAM_DATA, repair = (head->flags & TB_DATAGRAM_REPAIR) != 0;
    w->data += data && !repair;
    w->repairs += data && repair;
    w->marks += (head->flags & TB_DATAGRAM_WINDOW) != 0;
    w->asks += head->type == TB_DATAGRAM_ASK;
    w->statuses += head->type == TB_DATAGRAM_STATUS;
    w->polls += head->type == TB_DATAGRAM_POLL;
}

static inline uint32_t world_send(void *owner, const struct tb_multicast_out *out, uint32_t count)
{
    struct world_host *h = owner;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t to = UINT32_MAX;
        if (out[i].to != NULL)
            memcpy(&to, out[i].to->bytes, sizeof to);
        uint32_t bytes = (uint32_t)out[i].length + TB_DATAGRAM_BYTES + WORLD_FRAME_BYTES;
        struct world_packet *p = world_packet_make(out[i].length, bytes, h->index, to);
        p->head = out[i].head;
        if (out[i].length > 0)
            memcpy(p->payload, out[i].payload, out[i].length);
        bool taken = world_out(h->world, p);
        if (taken)
            world_count(h->world, &p->head);
        world_release(p);
        if (!taken) {
            h->refused = true;
            return i;
        }
    }
    return count;
}

static inline int world_control(void *owner, uint32_t process, enum tb_multicast_control kind, const void *head,
                                size_t head_length, const void *bytes, size_t length)
{
    struct world_host *h = owner;
    size_t all = head_length + length;
    uint32_t frames = (uint32_t)(all / 1448 + 1);
    if (process == h->index)
        abort();
    if (process >= h->world->count) /* somebody has made it up */
        return TB_ERR_PEER;
    struct world_packet *p = world_packet_make(all, (uint32_t)all + frames * WORLD_TCP_BYTES, h->index, process);
    p->control = true;
    p->kind = kind;
    memcpy(p->payload, head, head_length);
    if (length > 0)
        memcpy(p->payload + head_length, bytes, length);
    bool taken = world_out(h->world, p);
    world_release(p);
    h->controls_out += taken;
    h->polls_out += taken && kind == TB_MULTICAST_POLL;
    h->refused = h->refused || !taken;
    return taken ? TB_OK : TB_AGAIN;
}

static inline bool world_is_gone(void *owner, uint64_t context)
{
    struct world_host *h = owner;
    return context < h->world->contexts && h->context_states[context] == 2;
}

/* ---- the whole -----------------------------------------------------------------------------------------------------
 */

static inline uint64_t world_now(void *context)
{
    return ((struct world *)context)->now;
}

#define WORLD_100_MBIT 80000u /* ps a byte */

static inline void world_open(struct world *w, uint32_t count, uint64_t seed)
{
    *w = (struct world){.now = 1000 * WORLD_SECOND, .seed = seed, .count = count, .delay = 100 * WORLD_US};
    w->clock = (struct tb_clock){world_now, w};
    tb_random_seed(&w->random, seed);
    w->hosts = world_zeroed(count * sizeof *w->hosts);
    w->last_control = world_zeroed((size_t)count * count * sizeof *w->last_control);
    for (uint32_t i = 0; i < count; i++) {
        struct world_host *h = &w->hosts[i];
        *h = (struct world_host){.world = w,
                                 .index = i,
                                 .out_time = WORLD_100_MBIT,
                                 .in_time = WORLD_100_MBIT,
                                 .out_room = 64u << 10,
                                 .in_room = 256u << 10,
                                 .socket_room = 300u << 10,
                                 .standby = true,
                                 .wake = TB_NEVER,
                                 .limits = tb_multicast_defaults()};
        tb_random_seed(&h->random, tb_random_next(&w->random));
        tb_list_init(&h->socket);
        tb_list_init(&h->controls);
    }
}

/* Contexts are numbered from 0 on. */
static inline void world_start(struct world *w, uint32_t contexts)
{
    w->contexts = contexts;
    for (uint32_t i = 0; i < w->count; i++) {
        struct world_host *h = &w->hosts[i];
        h->context_states = world_zeroed((contexts + 1) * sizeof *h->context_states);
        struct tb_multicast_config config = {.clock = &w->clock,
                                             .random = &h->random,
                                             .calls = {h, world_send, world_control, world_is_gone},
                                             .limits = h->limits,
                                             .job = 7,
                                             .self = i,
                                             .piece = WORLD_PIECE,
                                             .holds = h->holds,
                                             .byte_time = h->out_time};
        int error = tb_multicast_open(&config, &h->m);
        if (error != TB_OK) /* as with memory */
            error = tb_multicast_open(&config, &h->m);
        if (error != TB_OK)
            abort();
        tb_multicast_move(h->m, &(struct tb_multicast_address){sizeof i, {(uint8_t)i, (uint8_t)(i >> 8)}});
        world_wake(h, w->now);
    }
}

/* The next event. False: there is none. */
static inline bool world_step(struct world *w)
{
    if (w->heap_count == 0)
        return false;
    struct world_event e = world_take(w);
    struct world_host *h = &w->hosts[e.host < w->count ? e.host : 0]; /* what is no host's has other kinds of events */
    w->now = e.at;
    w->events_done++;
    if (e.kind == WORLD_SWITCHED) {
        world_switched(w, &e);
    } else if (e.kind == WORLD_ARRIVED) {
        world_arrived(w, &e);
    } else if (e.kind == WORLD_IN_SOCKET) {
        world_to_socket(h, e.packet);
    } else if (e.kind == WORLD_CONTROL) {
        world_put(&h->controls, e.packet);
        world_run(h);
    } else if (e.kind == WORLD_OTHER) {
        w->other(w, e.host, e.packet, false);
    } else if (e.kind == WORLD_OUT) {
        h->out_used -= e.packet->bytes;
        if (h->refused && h->out_used <= h->out_room / 2 && world_is_awake(h)) {
            h->refused = false;
            tb_multicast_writable(h->m);
            tb_multicast_control_writable(h->m);
            world_run(h);
        }
    } else if (e.at >= h->wake) {
        h->wake = TB_NEVER;
        if (h->refused && h->out_used <= h->out_room / 2) {
            h->refused = false;
            tb_multicast_writable(h->m);
        }
        world_run(h);
    }
    world_release(e.packet);
    return true;
}

static inline void world_close(struct world *w)
{
    for (uint32_t i = 0; i < w->count; i++) {
        struct world_host *h = &w->hosts[i];
        world_release(h->reading);
        while (!tb_list_empty(&h->socket))
            world_release(world_read(&h->socket));
        while (!tb_list_empty(&h->controls))
            world_release(world_read(&h->controls));
        tb_multicast_close(h->m);
        free(h->context_states);
    }
    while (w->heap_count > 0) {
        struct world_event e = world_take(w);
        world_release(e.packet);
    }
    free(w->heap);
    free(w->hosts);
    free(w->last_control);
}

/* Datagrams that did not reach somebody, whatever the reason. */
static inline uint64_t world_lost(const struct world *w)
{
    uint64_t lost = 0;
    for (uint32_t i = 0; i < w->count; i++)
        lost += w->hosts[i].lost + w->hosts[i].overflowed + w->hosts[i].port_drops;
    return lost;
}

// NOLINTEND(clang-analyzer-unix.Malloc)

#endif
