/* relay: frames to processes that this one has no connection with: agents pass them on. Inside is a tcp transport with
 * one endpoint, the agent of this host, to whom everything goes and from whom everything comes; the endpoints here are
 * the processes behind it. A frame says itself where it goes (TB_MESSAGE_ROUTED), so that nothing is added to it.
 *
 * Which way a frame takes from there on is for the agent to find out. Frames of the two streams, and those that take
 * several ways, overtake each other: link restores the order. Without its agent a rank is no part of the job any more:
 * when the connection breaks, everybody is out of reach. */
#include "transport/endpoint_table.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct relay_peer {
    struct tb_endpoint head;
    struct tb_list wanting; /* in the relay's list: the owner got TB_AGAIN */
    struct tb_list notice;  /* in the relay's list: `broken` is to be told */
    bool known;             /* to the owner */
    bool asked;             /* there is a way, as config->way says */
    int error;              /* nothing more will pass; `story` says why */
    char *story;
};

struct relay {
    struct tb_transport head;
    struct tb_transport_config config;
    struct tb_transport *inner;
    struct tb_endpoint *agent; /* the only one of `inner` */
    struct tb_list wanting, notices;
    int error; /* the agent cannot be reached any more; `story` says why */
    char *story;
    bool changed;                   /* whoever waits for room is to be told */
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

static int peer_story(const struct relay_peer *p, int code)
{
    return tb_error(code, "%s", p->story != NULL ? p->story : tb_error_name(p->error));
}

/* Asks whether there is a way to a process at all. */
static void way_ask(struct relay *r, struct relay_peer *p)
{
    int error = TB_OK;
    if (r->error != TB_OK)
        error = tb_error(r->error, "%s", r->story != NULL ? r->story : tb_error_name(r->error));
    else if (!p->asked && r->config.way != NULL)
        error = r->config.way(r->config.way_context, p->head.proc);
    p->asked = error == TB_OK;
    if (error != TB_OK)
        peer_fail(r, p, error);
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

/* ---- sending ----------------------------------------------------------------------------------------------------- */

static int relay_send(struct tb_endpoint *endpoint, const struct tb_envelope *envelope, struct tb_spans *payload,
                      enum tb_stream stream, void *token)
{
    (void)token; /* what a socket does not take is copied: frames are short */
    struct relay_peer *p = (struct relay_peer *)endpoint;
    struct relay *r = (struct relay *)endpoint->transport;
    TB_ASSERT((envelope->message.flags & TB_MESSAGE_ROUTED) != 0);
    if (__builtin_expect(!p->asked && p->error == TB_OK, 0))
        way_ask(r, p);
    if (__builtin_expect(p->error != TB_OK, 0))
        return peer_story(p, TB_ERR_PEER);
    int result = r->inner->table->send(r->agent, envelope, payload, stream, NULL);
    if (result == TB_AGAIN && tb_list_empty(&p->wanting))
        tb_list_append(&r->wanting, &p->wanting);
    return result < 0 ? TB_ERR_PEER : result; /* then `broken` of the agent follows, and with it that of everybody */
}

/* ---- calls up from the connection to the agent ------------------------------------------------------------------- */

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
    uint32_t source = routing != NULL ? routing->source.index : 0;
    bool known =
        source < r->config.processes || (r->config.knows != NULL && r->config.knows(r->config.way_context, source));
    /* A frame for another process, or of one that is none of this job, is somebody's mistake. It makes nothing grow. */
    if (routing == NULL || routing->destination.job != self->job || routing->destination.index != self->index ||
        routing->source.job != self->job || !known || source == self->index)
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
    (void)to;
    wanting_tell(context);
}

static void up_opened(void *context, struct tb_endpoint *from)
{
    (void)context, (void)from; /* it is the agent, who is known */
}

static void up_broken(void *context, struct tb_endpoint *with, int error)
{
    (void)with;
    struct relay *r = context;
    r->error = error == TB_ERR_CLOSED ? TB_ERR_PEER : error;
    r->story = strdup(tb_error_story());
    struct relay_peer *p;
    for (uint32_t i = 0; (p = (struct relay_peer *)tb_endpoint_table_next(&r->peers, &i)) != NULL;) {
        p->asked = false;
        way_ask(r, p);
    }
}

/* ---- moving ------------------------------------------------------------------------------------------------------ */

static int notices_tell(struct relay *r)
{
    int count = 0;
    while (!tb_list_empty(&r->notices)) {
        struct relay_peer *p = TB_CONTAINER(r->notices.next, struct relay_peer, notice);
        tb_list_remove(&p->notice);
        peer_introduce(r, p);
        peer_story(p, p->error);
        r->config.upcalls.broken(r->config.upcalls.context, &p->head, p->error);
        count++;
    }
    return count;
}

static int relay_poll(struct tb_transport *transport)
{
    struct relay *r = (struct relay *)transport;
    int count = r->inner->table->poll(r->inner);
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
    return r->inner->table->deadline(r->inner);
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

static void relay_forget(struct tb_endpoint *endpoint)
{
    struct relay_peer *p = (struct relay_peer *)endpoint;
    TB_ASSERT(tb_list_empty(&p->wanting) && tb_list_empty(&p->notice));
    free(p->story);
    tb_endpoint_table_remove(&((struct relay *)endpoint->transport)->peers, endpoint);
}

/* ---- what the job says ------------------------------------------------------------------------------------------- */

static bool relay_adopts(struct tb_proc proc, enum tb_stream stream)
{
    return (proc.index & TB_PROC_AGENT) != 0;
}

static int relay_adopt(struct tb_transport *transport, struct tb_proc agent, enum tb_stream stream, int descriptor)
{
    TB_ASSERT(transport->table == &tb_transport_relay);
    struct relay *r = (struct relay *)transport;
    if (agent.job == r->agent->proc.job && agent.index == r->agent->proc.index)
        return r->inner->table->adopt(r->inner, agent, stream, descriptor);
    close(descriptor);
    return tb_error(TB_ERR_PEER, "the agent of host %u is not the one of this host", agent.index & ~TB_PROC_AGENT);
}

static void relay_refused(struct tb_transport *transport, struct tb_proc agent, enum tb_stream stream, int error)
{
    TB_ASSERT(transport->table == &tb_transport_relay);
    struct relay *r = (struct relay *)transport;
    if (agent.job == r->agent->proc.job && agent.index == r->agent->proc.index)
        r->inner->table->refused(r->inner, agent, stream, error);
}

static void relay_routes(struct tb_transport *transport)
{
    TB_ASSERT(transport->table == &tb_transport_relay);
    struct relay *r = (struct relay *)transport;
    struct relay_peer *p;
    for (uint32_t i = 0; (p = (struct relay_peer *)tb_endpoint_table_next(&r->peers, &i)) != NULL;) {
        if (p->error != TB_OK || !p->asked)
            continue;
        p->asked = false;
        way_ask(r, p);
    }
    r->changed = true; /* poll tells */
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

static bool relay_usable(const struct tb_transport_config *config)
{
    return config->connect != NULL;
}

static int relay_open(const struct tb_transport_config *config, struct tb_transport **transport)
{
    struct relay *r = calloc(1, sizeof(*r));
    if (r == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for the way through agents");
    uint64_t eager = tb_param.eager_tcp;
    r->head = (struct tb_transport){.table = &tb_transport_relay,
                                    .capabilities = tb_transport_relay.capabilities,
                                    .max_payload = TB_RELAY_PAYLOAD,
                                    .eager_limit = eager < TB_RELAY_PAYLOAD ? (uint32_t)eager : TB_RELAY_PAYLOAD};
    r->config = *config;
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
        error = r->inner->table->endpoint(r->inner, config->agent, &r->agent);
    if (error == TB_OK)
        error = tb_endpoint_table_open(&r->peers, "through agents");
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
    r->inner->table->close(r->inner);
    struct relay_peer *p;
    for (uint32_t i = 0; (p = (struct relay_peer *)tb_endpoint_table_next(&r->peers, &i)) != NULL;)
        free(p->story);
    tb_endpoint_table_close(&r->peers);
    free(r->story);
    free(r);
}

const struct tb_transport_table tb_transport_relay = {
    .name = "relay",
    .scope = TB_SCOPE_RELAYED,
    .patience = 32,
    .capabilities = TB_CAP_RELIABLE | TB_CAP_INTEGRITY,
    .usable = relay_usable,
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
    .forget = relay_forget,
    .adopts = relay_adopts,
    .adopt = relay_adopt,
    .refused = relay_refused,
    .routes = relay_routes,
};
