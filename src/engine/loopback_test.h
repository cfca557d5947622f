/* A transport between engines of one process, for tests: frames go through queues in memory. It can be told to take
 * nothing (TB_AGAIN), to hold payload back (TB_PENDING), to allow or forbid reading, and to break. Safe for engines
 * that are used by different threads. */
#ifndef TB_ENGINE_LOOPBACK_TEST_H
#define TB_ENGINE_LOOPBACK_TEST_H

#include "engine/engine_state.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define LOOP_ENGINES 16

struct loop_frame {
    struct loop_frame *next;
    struct tb_message message;
    uint32_t from;
    size_t length;
    char payload[];
};

struct loop_held {
    struct loop_held *next;
    struct loop_endpoint *to;
    struct tb_message message;
    struct tb_spans payload;
    void *token;
};

struct loop_transport;

struct loop_endpoint {
    struct tb_endpoint endpoint;
    struct loop_transport *owner;
    bool made, blocked, known;
};

struct loop_transport {
    struct tb_transport transport;
    struct tb_transport_config config;
    struct loop_net *net;
    struct loop_endpoint endpoints[LOOP_ENGINES];
    struct loop_frame *inbox, **inbox_end; /* under the net's lock */
    bool armed;                            /* under the net's lock */
    struct loop_held *held, **held_end;
    int bell;
};

struct loop_net {
    pthread_mutex_t lock;
    struct loop_transport *transports[LOOP_ENGINES];
    struct tb_random random;
    uint32_t again, pending; /* percent */
    uint32_t max_payload, eager_limit;
    uint64_t remote_minimum;
    int refusal;    /* what sending answers, if not TB_OK */
    uint32_t drops; /* peers that engines have given up */
    bool remote_read, forbidden;
    bool remote;                    /* engines take it for the transport to other hosts */
    uint64_t frames[TB_KIND_COUNT]; /* that were sent */
    struct tb_engine *engines[LOOP_ENGINES];
    struct tb_channel *channels[LOOP_ENGINES];
    uint32_t count;
};

static struct loop_net *loop_opening; /* the net that engines are opened on; tests do that one after the other */

static inline bool loop_chance(struct loop_net *net, uint32_t percent)
{
    return percent > 0 && tb_random_below(&net->random, 100) < percent;
}

static int loop_open(const struct tb_transport_config *config, struct tb_transport **transport)
{
    struct loop_transport *t = calloc(1, sizeof *t);
    struct loop_net *net = loop_opening;
    t->config = *config;
    t->net = net;
    t->inbox_end = &t->inbox;
    t->held_end = &t->held;
    t->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    t->transport.capabilities = TB_CAP_DEPENDABLE | (net->remote_read ? (unsigned)TB_CAP_REMOTE_READ : 0);
    t->transport.max_payload = net->max_payload;
    t->transport.eager_limit = net->eager_limit;
    t->transport.remote_minimum = net->remote_minimum;
    extern const struct tb_transport_table loop_table;
    t->transport.table = &loop_table;
    net->transports[config->self.index] = t;
    *transport = &t->transport;
    return TB_OK;
}

static void loop_close(struct tb_transport *transport)
{
    struct loop_transport *t = (struct loop_transport *)transport;
    pthread_mutex_lock(&t->net->lock);
    t->net->transports[t->config.self.index] = NULL;
    pthread_mutex_unlock(&t->net->lock);
    while (t->inbox != NULL) {
        struct loop_frame *f = t->inbox;
        t->inbox = f->next;
        free(f);
    }
    while (t->held != NULL) {
        struct loop_held *h = t->held;
        t->held = h->next;
        free(h);
    }
    close(t->bell);
    free(t);
}

static struct loop_endpoint *loop_endpoint_of(struct loop_transport *t, uint32_t index)
{
    struct loop_endpoint *ep = &t->endpoints[index];
    ep->endpoint.transport = &t->transport;
    ep->endpoint.proc = (struct tb_proc){t->config.self.job, index};
    ep->owner = t;
    return ep;
}

static int loop_endpoint(struct tb_transport *transport, struct tb_proc proc, struct tb_endpoint **endpoint)
{
    struct loop_endpoint *ep = loop_endpoint_of((struct loop_transport *)transport, proc.index);
    ep->known = true;
    *endpoint = &ep->endpoint;
    return TB_OK;
}

static void loop_deliver(struct loop_endpoint *ep, const struct tb_message *message, struct tb_spans *payload)
{
    struct loop_net *net = ep->owner->net;
    size_t length = payload->left;
    struct loop_frame *f = malloc(sizeof *f + length);
    *f = (struct loop_frame){.message = *message, .from = ep->owner->config.self.index, .length = length};
    if (length > 0)
        tb_spans_gather(payload, f->payload, length);
    pthread_mutex_lock(&net->lock);
    struct loop_transport *to = net->transports[ep->endpoint.proc.index];
    net->frames[message->kind]++;
    if (to != NULL) {
        *to->inbox_end = f;
        to->inbox_end = &f->next;
        uint64_t one = 1;
        if (to->armed && write(to->bell, &one, sizeof one) < 0)
            abort();
    } else {
        free(f);
    }
    pthread_mutex_unlock(&net->lock);
}

static int loop_send(struct tb_endpoint *endpoint, const struct tb_envelope *envelope, struct tb_spans *payload,
                     enum tb_stream stream, void *token)
{
    struct loop_endpoint *ep = (struct loop_endpoint *)endpoint;
    struct loop_transport *t = ep->owner;
    TB_ASSERT(payload->left <= t->transport.max_payload);
    if (t->net->refusal != TB_OK)
        return tb_error(t->net->refusal, "refused in this test");
    if (loop_chance(t->net, t->net->again)) {
        ep->blocked = true;
        return TB_AGAIN;
    }
    /* Bulk may be late, short frames of one peer stay in order: only bulk is held back. */
    if (token != NULL && stream == TB_STREAM_BULK && loop_chance(t->net, t->net->pending)) {
        struct loop_held *h = malloc(sizeof *h);
        *h = (struct loop_held){.to = ep, .message = envelope->message, .payload = *payload, .token = token};
        *t->held_end = h;
        t->held_end = &h->next;
        return TB_PENDING;
    }
    loop_deliver(ep, &envelope->message, payload);
    return TB_OK;
}

static int loop_poll_frames(struct loop_transport *t)
{
    pthread_mutex_lock(&t->net->lock);
    struct loop_frame *f = t->inbox;
    t->inbox = NULL;
    t->inbox_end = &t->inbox;
    pthread_mutex_unlock(&t->net->lock);
    int count = 0;
    while (f != NULL) {
        struct loop_frame *next = f->next;
        struct loop_endpoint *ep = loop_endpoint_of(t, f->from);
        if (!ep->known) {
            ep->known = true;
            t->config.upcalls.opened(t->config.upcalls.context, &ep->endpoint);
        }
        void *room = f->message.kind == TB_KIND_DATA
                         ? t->config.upcalls.place(t->config.upcalls.context, &ep->endpoint, &f->message, f->length)
                         : NULL;
        if (room != NULL)
            memcpy(room, f->payload, f->length);
        t->config.upcalls.frame(t->config.upcalls.context, &ep->endpoint, NULL, &f->message,
                                room != NULL ? room : f->payload, f->length);
        free(f);
        f = next;
        count++;
    }
    return count;
}

static int loop_poll_writable(struct loop_transport *t)
{
    int count = 0;
    for (uint32_t i = 0; i < LOOP_ENGINES; i++)
        if (t->endpoints[i].blocked) {
            t->endpoints[i].blocked = false;
            t->config.upcalls.writable(t->config.upcalls.context, &t->endpoints[i].endpoint);
            count++;
        }
    return count;
}

static int loop_poll_held(struct loop_transport *t)
{
    int count = 0;
    struct loop_held *held = t->held;
    t->held = NULL;
    t->held_end = &t->held;
    while (held != NULL) {
        struct loop_held *h = held;
        held = h->next;
        loop_deliver(h->to, &h->message, &h->payload);
        t->config.upcalls.sent(t->config.upcalls.context, &h->to->endpoint, h->token, TB_OK);
        free(h);
        count++;
    }
    return count;
}

/* What comes first, room or frames, is left open: whoever is told of room may have more to send by the end. */
static int loop_poll(struct tb_transport *transport)
{
    struct loop_transport *t = (struct loop_transport *)transport;
    int count = loop_poll_held(t);
    if (t->net->again > 0 && loop_chance(t->net, 50))
        count += loop_poll_writable(t);
    count += loop_poll_frames(t);
    return count + loop_poll_writable(t);
}

static bool loop_busy(struct loop_transport *t)
{
    for (uint32_t i = 0; i < LOOP_ENGINES; i++)
        if (t->endpoints[i].blocked)
            return true;
    return t->held != NULL;
}

static bool loop_arm(struct tb_transport *transport)
{
    struct loop_transport *t = (struct loop_transport *)transport;
    pthread_mutex_lock(&t->net->lock);
    t->armed = true;
    bool empty = t->inbox == NULL;
    pthread_mutex_unlock(&t->net->lock);
    return empty && !loop_busy(t);
}

static void loop_disarm(struct tb_transport *transport)
{
    struct loop_transport *t = (struct loop_transport *)transport;
    uint64_t rings;
    pthread_mutex_lock(&t->net->lock);
    t->armed = false;
    if (read(t->bell, &rings, sizeof rings) < 0)
        rings = 0;
    pthread_mutex_unlock(&t->net->lock);
}

static int loop_descriptor(struct tb_transport *transport)
{
    return ((struct loop_transport *)transport)->bell;
}

static uint64_t loop_deadline(struct tb_transport *transport)
{
    return TB_NEVER;
}

static bool loop_idle(struct tb_transport *transport)
{
    return !loop_busy((struct loop_transport *)transport);
}

static int loop_read(struct tb_endpoint *endpoint, uint64_t address, struct tb_spans *into, uint64_t length)
{
    struct loop_endpoint *ep = (struct loop_endpoint *)endpoint;
    if (ep->owner->net->forbidden)
        return tb_error(TB_ERR_FORBIDDEN, "not allowed in this test");
    tb_spans_scatter(into, (const void *)(uintptr_t)address, length);
    return TB_OK;
}

static void loop_drop(struct tb_endpoint *endpoint)
{
    ((struct loop_endpoint *)endpoint)->owner->net->drops++;
}

extern const struct tb_transport_table loop_table;
const struct tb_transport_table loop_table = {
    .name = "loop",
    .open = loop_open,
    .close = loop_close,
    .endpoint = loop_endpoint,
    .send = loop_send,
    .poll = loop_poll,
    .arm = loop_arm,
    .disarm = loop_disarm,
    .descriptor = loop_descriptor,
    .deadline = loop_deadline,
    .idle = loop_idle,
    .read = loop_read,
    .drop = loop_drop,
};

/* ---- nets of engines --------------------------------------------------------------------------------------------- */

static bool loop_is_local(void *context, struct tb_proc proc)
{
    return true;
}

static void loop_net_init(struct loop_net *net, uint32_t count)
{
    *net = (struct loop_net){.count = count, .max_payload = 4096, .eager_limit = 1024, .remote_minimum = UINT64_MAX};
    tb_random_seed(&net->random, 1);
    pthread_mutex_init(&net->lock, NULL);
    if (tb_param_load() != TB_OK)
        abort();
}

#define LOOP_CONTEXT tb_context_make(0, 0, 1, TB_PLANE_POINT)

static void loop_net_open(struct loop_net *net, bool threaded)
{
    loop_opening = net;
    for (uint32_t i = 0; i < net->count; i++) {
        struct tb_engine_config config = {.transport = {.self = {7, i}, .local_count = net->count},
                                          .processes = net->count,
                                          .threaded = threaded,
                                          .use_shm = !net->remote,
                                          .use_tcp = net->remote,
                                          .is_local = loop_is_local,
                                          .control = -1,
                                          .local_table = &loop_table,
                                          .remote_table = &loop_table};
        struct tb_channel_config channel = {.context = LOOP_CONTEXT, .size = net->count, .rank = i};
        if (tb_engine_open(&config, &net->engines[i]) != TB_OK ||
            tb_channel_open(net->engines[i], &channel, &net->channels[i]) != TB_OK)
            abort();
        if (net->remote && tb_engine_open_remote(net->engines[i]) != TB_OK) /* as a connection from outside would */
            abort();
    }
}

static void loop_net_close(struct loop_net *net)
{
    for (uint32_t i = 0; i < net->count; i++)
        if (net->channels[i] != NULL)
            tb_channel_close(net->channels[i]);
    for (uint32_t i = 0; i < net->count; i++)
        tb_engine_close(net->engines[i]);
    pthread_mutex_destroy(&net->lock);
}

/* Rounds of progress everywhere until nothing happens any more. */
static inline void loop_net_settle(struct loop_net *net)
{
    for (int quiet = 0; quiet < 2;) {
        int n = 0;
        for (uint32_t i = 0; i < net->count; i++)
            n += tb_engine_progress(net->engines[i]);
        quiet = n == 0 ? quiet + 1 : 0;
    }
}

#endif
