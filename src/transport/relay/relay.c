/* relay: frames to processes that this one has no connection with: agents of gateways pass them on. Inside is a tcp
 * transport whose endpoints are those agents, the next hops; the endpoints here are the processes behind them. A
 * frame says itself where it goes (TB_MESSAGE_ROUTED), so that nothing is added to it.
 *
 * Frames may get lost with a gateway, and overtake each other where there are several: link repairs both. Short
 * frames to one process stick to one hop, so that they rarely do; bulk frames take whichever hop has room, in turns,
 * so that a long message is spread over all gateways by what each of them carries.
 *
 * A hop whose connection breaks or cannot be made is left alone for a while and then asked for again. Meanwhile there
 * is no room on it, and that is all: whether a process can still be reached is for the job to say (config->hops). */
#include "transport/endpoint_table.h"

#include <stdlib.h>
#include <string.h>

#define MS          UINT64_C(1000000)
#define RETRY_FIRST (200 * MS)
#define RETRY_MAX   (2000 * MS)
#define SHUN_FIRST  (4000 * MS)  /* how long a hop is avoided behind which frames get lost; doubled each time, */
#define SHUN_MAX    (64000 * MS) /* up to this */

/* The agent of a gateway. */
struct hop {
    struct tb_list of_relay;
    struct tb_endpoint *inner;
    bool connected[TB_STREAM_COUNT]; /* there is a stream */
    bool full[TB_STREAM_COUNT];      /* took nothing when last asked */
    bool down;                       /* until retry_at */
    uint64_t retry_at, pause;
};

struct relay_peer {
    struct tb_endpoint head;
    struct tb_list wanting; /* in the relay's list: the owner got TB_AGAIN */
    struct tb_list notice;  /* in the relay's list: `broken` is to be told */
    bool known;             /* to the owner */
    bool asked;             /* hops are as config->hops says */
    int error;              /* nothing more will pass; `story` says why */
    char *story;
    uint32_t turn; /* the hop for the next bulk frame */
    uint32_t last; /* the process that took the last frame */
    uint32_t hop_count;
    struct hop *hops[TB_RELAY_HOPS_LIMIT];
    /* What the repairer has told about the same hops. */
    struct {
        uint64_t good_at; /* when a frame was sent that has arrived */
        uint64_t shunned; /* nothing arrives through it: until then it is used only if there is no other */
        uint64_t span;    /* how long it is shunned, or was the last time; 0: it has proved good since */
    } marks[TB_RELAY_HOPS_LIMIT];
};

struct relay {
    struct tb_transport head;
    struct tb_transport_config config;
    struct tb_transport *inner;
    struct tb_list hops, wanting, notices;
    bool changed; /* the hops of somebody: whoever waits for room is to be told */
    uint32_t down_count;
    uint64_t next_retry;
    struct tb_endpoint_table peers; /* of struct relay_peer */
};

/* ---- processes --------------------------------------------------------------------------------------------------- */

/* NULL: no memory, or too many; the story is told. */
static struct relay_peer *peer_find(struct relay *r, struct tb_proc proc)
{
    bool fresh;
    struct relay_peer *p = (struct relay_peer *)tb_endpoint_table_find(&r->peers, &r->head, proc, sizeof(*p), &fresh);
    if (fresh) {
        tb_list_init(&p->wanting);
        tb_list_init(&p->notice);
    }
    return p;
}

/* The story has been told; the owner hears it from poll. */
static void peer_fail(struct relay *r, struct relay_peer *p, int error)
{
    if (p->error != TB_OK)
        return;
    p->error = error;
    p->story = strdup(tb_error_story());
    tb_list_remove(&p->wanting);
    tb_list_append(&r->notices, &p->notice);
}

/* ---- hops -------------------------------------------------------------------------------------------------------- */

static struct hop *hop_find(struct relay *r, struct tb_proc agent)
{
    struct tb_endpoint *inner;
    if (r->inner->table->endpoint(r->inner, agent, &inner) != TB_OK)
        return NULL;
    if (inner->user != NULL)
        return inner->user;
    struct hop *h = calloc(1, sizeof(*h));
    if (h == NULL) {
        tb_error(TB_ERR_MEMORY, "no memory for the way to the agent of host %u", agent.index & ~TB_PROC_AGENT);
        return NULL;
    }
    h->inner = inner;
    h->pause = RETRY_FIRST;
    inner->user = h;
    tb_list_append(&r->hops, &h->of_relay);
    return h;
}

static void hop_reset(struct hop *h)
{
    for (int i = 0; i < TB_STREAM_COUNT; i++)
        h->connected[i] = h->full[i] = false;
}

/* Its connection is gone, or there was none. Whoever has frames for it keeps them; what was in it is repaired. */
static void hop_down(struct relay *r, struct hop *h)
{
    if (h->down)
        return;
    hop_reset(h);
    h->down = true;
    h->retry_at = tb_clock_now(r->config.clock) + h->pause;
    h->pause = 2 * h->pause < RETRY_MAX ? 2 * h->pause : RETRY_MAX;
    r->down_count++;
    if (h->retry_at < r->next_retry)
        r->next_retry = h->retry_at;
    tb_log(TB_LOG_INFO, "relay", "%s; asking again in %.1f s", tb_error_story(),
           (double)(h->retry_at - tb_clock_now(r->config.clock)) / 1e9);
}

static void hop_up(struct relay *r, struct hop *h)
{
    if (!h->down)
        return;
    h->down = false;
    r->down_count--;
    hop_reset(h);
    tb_tcp_revive(h->inner);
}

/* Everybody who waits for room may try again. */
static int wanting_tell(struct relay *r)
{
    struct tb_list told;
    int count = 0;
    tb_list_init(&told);
    while (!tb_list_empty(&r->wanting)) { /* whoever is told may want again at once */
        struct tb_list *first = r->wanting.next;
        tb_list_remove(first);
        tb_list_append(&told, first);
    }
    while (!tb_list_empty(&told)) {
        struct relay_peer *p = TB_CONTAINER(told.next, struct relay_peer, wanting);
        tb_list_remove(&p->wanting);
        if (p->error == TB_OK)
            r->config.upcalls.writable(r->config.upcalls.context, &p->head);
        count++;
    }
    return count;
}

static int hops_retry(struct relay *r)
{
    uint64_t now = tb_clock_now(r->config.clock);
    if (now < r->next_retry)
        return 0;
    bool some = false;
    struct hop *h;
    r->next_retry = TB_NEVER;
    TB_LIST_EACH (h, &r->hops, struct hop, of_relay) {
        if (h->down && h->retry_at <= now) {
            hop_up(r, h);
            some = true;
        } else if (h->down && h->retry_at < r->next_retry) {
            r->next_retry = h->retry_at;
        }
    }
    return some ? wanting_tell(r) : 0;
}

/* Asks which hops lead to a process. */
static int hops_ask(struct relay *r, struct relay_peer *p)
{
    struct tb_proc agents[TB_RELAY_HOPS_LIMIT];
    if (p->asked)
        return TB_OK;
    int count = r->config.hops != NULL
                    ? r->config.hops(r->config.hops_context, p->head.proc, agents)
                    : tb_error(TB_ERR_PEER, "nobody knows a gateway that leads to rank %u", p->head.proc.index);
    if (count < 0)
        return count;
    TB_ASSERT(count > 0 && count <= (int)TB_RELAY_HOPS_LIMIT);
    p->hop_count = 0;
    memset(p->marks, 0, sizeof(p->marks));
    for (int i = 0; i < count; i++) {
        struct hop *h = hop_find(r, agents[i]);
        if (h == NULL)
            return TB_ERR_MEMORY;
        p->hops[p->hop_count++] = h;
    }
    p->asked = true;
    return TB_OK;
}

/* ---- sending ----------------------------------------------------------------------------------------------------- */

/* As send of the inner transport, but errors only mean that there is no room. */
static int hop_send(struct relay *r, struct hop *h, const struct tb_envelope *envelope, struct tb_spans *payload,
                    enum tb_stream stream)
{
    if (h->down || h->full[stream])
        return TB_AGAIN;
    int result = r->inner->table->send(h->inner, envelope, payload, stream, NULL);
    if (result == TB_AGAIN) {
        h->full[stream] = true;
    } else if (result < 0) {
        hop_down(r, h);
        result = TB_AGAIN;
    } else {
        h->connected[stream] = true;
        h->pause = RETRY_FIRST;
    }
    return result;
}

/* Which of the hops of a process to prefer: all but those that are shunned; if that is nobody, all. One bit each. */
static uint32_t hops_preferred(const struct relay *r, const struct relay_peer *p)
{
    uint32_t all = (1u << p->hop_count) - 1, bits = 0;
    if (p->hop_count == 1)
        return all;
    uint64_t now = 0;
    for (uint32_t i = 0; i < p->hop_count; i++) {
        if (p->marks[i].shunned != 0 && now == 0)
            now = tb_clock_now(r->config.clock);
        if (p->marks[i].shunned <= now && !p->hops[i]->down)
            bits |= 1u << i;
    }
    return bits != 0 ? bits : all;
}

/* The pair's own hop, or the next one that works; those that are still to be connected are asked only when it is their
 * turn. */
static int short_send(struct relay *r, struct relay_peer *p, const struct tb_envelope *envelope,
                      struct tb_spans *payload)
{
    uint32_t own = (r->config.self.index * 0x9e3779b1u ^ p->head.proc.index * 0x85ebca6bu) >> 8;
    uint32_t preferred = hops_preferred(r, p);
    bool first = true; /* of those that are not down */
    for (uint32_t i = 0; i < p->hop_count; i++) {
        uint32_t at = (own + i) % p->hop_count;
        struct hop *h = p->hops[at];
        if (h->down || (preferred >> at & 1) == 0 || (!first && !h->connected[TB_STREAM_SHORT]))
            continue;
        bool connected = h->connected[TB_STREAM_SHORT];
        int result = hop_send(r, h, envelope, payload, TB_STREAM_SHORT);
        if (result != TB_AGAIN)
            p->last = h->inner->proc.index;
        if (result != TB_AGAIN || (connected && !h->down))
            return result;
        first = h->down && first;
    }
    return TB_AGAIN;
}

static int bulk_send(struct relay *r, struct relay_peer *p, const struct tb_envelope *envelope,
                     struct tb_spans *payload)
{
    uint32_t preferred = hops_preferred(r, p);
    for (uint32_t i = 0; i < p->hop_count; i++) {
        uint32_t at = (p->turn + i) % p->hop_count;
        if ((preferred >> at & 1) == 0)
            continue;
        int result = hop_send(r, p->hops[at], envelope, payload, TB_STREAM_BULK);
        if (result != TB_AGAIN) {
            p->turn = at + 1;
            p->last = p->hops[at]->inner->proc.index;
            return result;
        }
    }
    return TB_AGAIN;
}

static int relay_send(struct tb_endpoint *endpoint, const struct tb_envelope *envelope, struct tb_spans *payload,
                      enum tb_stream stream, void *token)
{
    (void)token; /* what a socket does not take is copied: frames are short */
    struct relay_peer *p = (struct relay_peer *)endpoint;
    struct relay *r = (struct relay *)endpoint->transport;
    TB_ASSERT((envelope->message.flags & TB_MESSAGE_ROUTED) != 0);
    if (p->error == TB_OK) {
        int error = hops_ask(r, p);
        if (error != TB_OK)
            peer_fail(r, p, error);
    }
    if (p->error != TB_OK)
        return tb_error(TB_ERR_PEER, "%s", p->story != NULL ? p->story : tb_error_name(p->error));
    int result = stream == TB_STREAM_SHORT ? short_send(r, p, envelope, payload) : bulk_send(r, p, envelope, payload);
    if (result == TB_AGAIN && tb_list_empty(&p->wanting))
        tb_list_append(&r->wanting, &p->wanting);
    return result;
}

/* ---- calls up from the connections to agents --------------------------------------------------------------------- */

static void peer_introduce(struct relay *r, struct relay_peer *p)
{
    if (p->known)
        return;
    p->known = true;
    if (r->config.upcalls.opened != NULL)
        r->config.upcalls.opened(r->config.upcalls.context, &p->head);
}

static void up_frame(void *context, struct tb_endpoint *from, const struct tb_routing *routing,
                     const struct tb_message *message, const void *payload, size_t length)
{
    (void)from;
    struct relay *r = context;
    const struct tb_proc *self = &r->config.self;
    /* A frame for another process, or without an address, is an agent's mistake; losing it is what repair is for. */
    if (routing == NULL || routing->destination.job != self->job || routing->destination.index != self->index)
        return;
    struct relay_peer *p = peer_find(r, routing->source);
    if (p == NULL || p->error != TB_OK)
        return;
    peer_introduce(r, p);
    r->config.upcalls.frame(r->config.upcalls.context, &p->head, routing, message, payload, length);
}

static void up_sent(void *context, struct tb_endpoint *to, void *token, int error)
{
    (void)context, (void)to, (void)token, (void)error; /* no frame of ours has a token */
}

static void up_writable(void *context, struct tb_endpoint *to)
{
    struct hop *h = to->user;
    if (h == NULL)
        return;
    h->full[TB_STREAM_SHORT] = h->full[TB_STREAM_BULK] = false;
    wanting_tell(context);
}

static void up_opened(void *context, struct tb_endpoint *from)
{
    hop_find(context, from->proc);
}

static void up_broken(void *context, struct tb_endpoint *with, int error)
{
    (void)error;
    struct hop *h = with->user;
    if (h != NULL)
        hop_down(context, h);
}

/* ---- moving ------------------------------------------------------------------------------------------------------ */

static int notices_tell(struct relay *r)
{
    int count = 0;
    while (!tb_list_empty(&r->notices)) {
        struct relay_peer *p = TB_CONTAINER(r->notices.next, struct relay_peer, notice);
        tb_list_remove(&p->notice);
        peer_introduce(r, p);
        tb_error(p->error, "%s", p->story != NULL ? p->story : tb_error_name(p->error));
        r->config.upcalls.broken(r->config.upcalls.context, &p->head, p->error);
        count++;
    }
    return count;
}

static int relay_poll(struct tb_transport *transport)
{
    struct relay *r = (struct relay *)transport;
    int count = r->inner->table->poll(r->inner);
    if (__builtin_expect(r->down_count > 0, 0))
        count += hops_retry(r);
    if (__builtin_expect(r->changed, 0)) {
        r->changed = false;
        count += wanting_tell(r);
    }
    if (__builtin_expect(!tb_list_empty(&r->notices), 0))
        count += notices_tell(r);
    return count;
}

static bool relay_arm(struct tb_transport *transport)
{
    struct relay *r = (struct relay *)transport;
    return r->inner->table->arm(r->inner) && tb_list_empty(&r->notices) && !r->changed;
}

static void relay_disarm(struct tb_transport *transport)
{
    struct relay *r = (struct relay *)transport;
    r->inner->table->disarm(r->inner);
}

static int relay_descriptor(struct tb_transport *transport)
{
    struct relay *r = (struct relay *)transport;
    return r->inner->table->descriptor(r->inner);
}

static uint64_t relay_deadline(struct tb_transport *transport)
{
    struct relay *r = (struct relay *)transport;
    uint64_t inner = r->inner->table->deadline(r->inner);
    uint64_t own = r->down_count > 0 ? r->next_retry : TB_NEVER;
    return own < inner ? own : inner;
}

static bool relay_idle(struct tb_transport *transport)
{
    struct relay *r = (struct relay *)transport;
    return r->inner->table->idle(r->inner);
}

static void relay_drop(struct tb_endpoint *endpoint)
{
    struct relay_peer *p = (struct relay_peer *)endpoint;
    if (p->error == TB_OK) {
        p->error = TB_ERR_PEER;
        p->story = strdup("this process has given the way to the other one up");
    }
    tb_list_remove(&p->wanting);
    tb_list_remove(&p->notice);
}

/* ---- what the repairer says -------------------------------------------------------------------------------------- */

static uint32_t relay_route(const struct tb_endpoint *endpoint)
{
    return ((const struct relay_peer *)endpoint)->last;
}

/* One that was lost though later ones have arrived says nothing against its hop: a gateway that is full drops some. */
static void relay_outcome(struct tb_endpoint *endpoint, uint32_t route, uint64_t sent_at, bool arrived)
{
    struct relay_peer *p = (struct relay_peer *)endpoint;
    const struct relay *r = (const struct relay *)endpoint->transport;
    uint32_t at = 0;
    while (at < p->hop_count && p->hops[at]->inner->proc.index != route)
        at++;
    if (p->hop_count < 2 || at == p->hop_count)
        return;
    if (arrived) {
        if (sent_at > p->marks[at].good_at)
            p->marks[at].good_at = sent_at;
        if (sent_at > p->marks[at].shunned - p->marks[at].span) /* what comes now is a new story */
            p->marks[at].span = 0;
        return;
    }
    uint64_t now = tb_clock_now(r->config.clock);
    if (sent_at <= p->marks[at].good_at || now < p->marks[at].shunned)
        return;
    uint64_t span = p->marks[at].span == 0 ? SHUN_FIRST : 2 * p->marks[at].span;
    p->marks[at].span = span < SHUN_MAX ? span : SHUN_MAX;
    p->marks[at].shunned = now + p->marks[at].span;
    tb_log(TB_LOG_INFO, "relay", "frames for rank %u get lost behind host %u; it is avoided for %.0f s",
           p->head.proc.index, route & ~TB_PROC_AGENT, (double)p->marks[at].span / 1e9);
}

/* ---- what the job says ------------------------------------------------------------------------------------------- */

int tb_relay_adopt(struct tb_transport *transport, struct tb_proc agent, enum tb_stream stream, int descriptor)
{
    TB_ASSERT(transport->table == &tb_transport_relay);
    struct relay *r = (struct relay *)transport;
    struct hop *h = hop_find(r, agent);
    if (h != NULL && h->down) { /* it has come back by itself */
        hop_up(r, h);
        r->changed = true;
    }
    int error = tb_tcp_adopt(r->inner, agent, stream, descriptor);
    if (h != NULL && error == TB_OK)
        h->connected[stream] = true;
    return error;
}

void tb_relay_refused(struct tb_transport *transport, struct tb_proc agent, enum tb_stream stream, int error)
{
    TB_ASSERT(transport->table == &tb_transport_relay);
    struct relay *r = (struct relay *)transport;
    tb_tcp_refused(r->inner, agent, stream, error);
}

void tb_relay_changed(struct tb_transport *transport)
{
    TB_ASSERT(transport->table == &tb_transport_relay);
    struct relay *r = (struct relay *)transport;
    struct relay_peer *p;
    for (uint32_t i = 0; (p = (struct relay_peer *)tb_endpoint_table_next(&r->peers, &i)) != NULL;) {
        if (p->error != TB_OK || !p->asked)
            continue;
        p->asked = false;
        int error = hops_ask(r, p);
        if (error != TB_OK)
            peer_fail(r, p, error);
    }
    r->changed = true; /* there may be room now; poll tells */
}

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

static int relay_endpoint(struct tb_transport *transport, struct tb_proc proc, struct tb_endpoint **endpoint)
{
    struct relay_peer *p = peer_find((struct relay *)transport, proc);
    if (p == NULL)
        return TB_ERR_MEMORY;
    p->known = true;
    *endpoint = &p->head;
    return TB_OK;
}

static int relay_open(const struct tb_transport_config *config, struct tb_transport **transport)
{
    struct relay *r = calloc(1, sizeof(*r));
    if (r == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for the way through gateways");
    uint64_t eager = tb_param.eager_tcp;
    r->head = (struct tb_transport){.table = &tb_transport_relay,
                                    .capabilities = TB_CAP_INTEGRITY,
                                    .max_payload = TB_RELAY_PAYLOAD,
                                    .eager_limit = eager < TB_RELAY_PAYLOAD ? (uint32_t)eager : TB_RELAY_PAYLOAD,
                                    .wide = true};
    r->config = *config;
    r->next_retry = TB_NEVER;
    tb_list_init(&r->hops);
    tb_list_init(&r->wanting);
    tb_list_init(&r->notices);
    struct tb_transport_config inner = *config;
    inner.upcalls = (struct tb_upcalls){.context = r,
                                        .frame = up_frame,
                                        .sent = up_sent,
                                        .writable = up_writable,
                                        .opened = up_opened,
                                        .broken = up_broken};
    int error = tb_transport_tcp.open(&inner, &r->inner);
    if (error == TB_OK)
        error = tb_endpoint_table_open(&r->peers, "through gateways");
    if (error != TB_OK) {
        if (r->inner != NULL)
            r->inner->table->close(r->inner);
        free(r);
        return error;
    }
    *transport = &r->head;
    return TB_OK;
}

static void relay_close(struct tb_transport *transport)
{
    struct relay *r = (struct relay *)transport;
    struct hop *h;
    r->inner->table->close(r->inner);
    TB_LIST_EACH (h, &r->hops, struct hop, of_relay)
        free(h);
    struct relay_peer *p;
    for (uint32_t i = 0; (p = (struct relay_peer *)tb_endpoint_table_next(&r->peers, &i)) != NULL;)
        free(p->story);
    tb_endpoint_table_close(&r->peers);
    free(r);
}

const struct tb_transport_table tb_transport_relay = {
    .name = "relay",
    .open = relay_open,
    .close = relay_close,
    .endpoint = relay_endpoint,
    .send = relay_send,
    .poll = relay_poll,
    .arm = relay_arm,
    .disarm = relay_disarm,
    .descriptor = relay_descriptor,
    .deadline = relay_deadline,
    .idle = relay_idle,
    .drop = relay_drop,
    .route = relay_route,
    .outcome = relay_outcome,
};
