/* tcp: frames over stream sockets. A rank neither listens nor holds the key: its agent makes connections and proves
 * them, and the sockets come in through `adopt`, whichever side has asked.
 *
 * Each pair of processes has two streams, SHORT and BULK, connected on first use. Both sides may ask at the same time,
 * and then a stream has two connections: a direction stays on the connection that carried its first frame, so that its
 * order is kept, and frames are accepted from all of them.
 *
 * Waiting in a busy loop costs one read of the connection that was active last and one look at epoll, whatever the
 * number of connections. */
#include "transport/endpoint_table.h"
#include "transport/tcp/connection.h"
#include "transport/tcp/late.h"
#include "transport/tcp/linger.h"
#include "transport/tcp/tcp_param.h"

#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define EVENTS_LIMIT 32
#define STREAK_LIMIT 8
/* At closing: how long bytes that the other side has not acknowledged may take. */
#define LINGER_MS 2000

struct tcp_peer {
    struct tb_endpoint head;
    struct tb_list notice;      /* in the transport's notices when there is something to tell from poll */
    struct tb_list connections; /* all that are open */
    struct tb_connection *out[TB_STREAM_COUNT]; /* where our frames go; NULL: none has been sent yet */
    bool asked[TB_STREAM_COUNT];                /* for a connection; the answer is outstanding */
    bool waiting[TB_STREAM_COUNT];              /* the owner got TB_AGAIN for want of a connection */
    bool known;                                 /* to the owner: no need for `opened` */
    bool writable;                              /* to be told */
    bool leaving;                               /* it has said goodbye on some connection, */
    uint32_t goodbyes, goodbyes_due;            /* on so many of so many: the others may still be on their way to us */
    bool told;                                  /* `broken` has been called */
    int error;                                  /* nothing more will pass; `story` says why */
    char *story;
};

struct tcp {
    struct tb_transport head;
    struct tb_transport_config config;
    struct tb_hub hub;
    struct tb_endpoint_table peers; /* of struct tcp_peer */
    struct tb_list notices;
    struct tb_list troubled;    /* connections whose write has failed */
    struct tb_list dead;        /* ended connections that may still be pointed to until the end of poll */
    struct tb_connection *last; /* the one that was active last */
    uint32_t streak;            /* how often in a row it was served without a look at the others */
    struct tb_late late;
};

/* ---- peers ------------------------------------------------------------------------------------------------------- */

/* NULL: no memory, or too many. */
static struct tcp_peer *peer_find(struct tcp *t, struct tb_proc proc)
{
    bool fresh;
    struct tcp_peer *p = (struct tcp_peer *)tb_endpoint_table_find(&t->peers, &t->head, proc, sizeof(*p), &fresh);
    if (fresh) {
        tb_list_init(&p->notice);
        tb_list_init(&p->connections);
    }
    return p;
}

static void peer_notice(struct tcp *t, struct tcp_peer *p)
{
    if (tb_list_empty(&p->notice))
        tb_list_append(&t->notices, &p->notice);
}

static struct tb_connection *peer_connection(struct tcp_peer *p, enum tb_stream stream)
{
    struct tb_connection *c;
    TB_LIST_EACH (c, &p->connections, struct tb_connection, of_peer)
        if (c->stream == stream && c->trouble == 0)
            return c;
    return NULL;
}

/* Remembers why nothing more will pass, with the story of this moment; the owner is told from poll. */
static void peer_fail(struct tcp *t, struct tcp_peer *p, int error)
{
    if (p->error != TB_OK)
        return;
    p->error = error;
    p->story = strdup(tb_error_story());
    peer_notice(t, p);
}

static int peer_story(const struct tcp_peer *p, int code)
{
    return tb_error(code, "%s", p->story != NULL ? p->story : tb_error_name(code));
}

/* ---- the ends of connections and peers; from poll, or by the owner's wish ---------------------------------------- */

static void connection_drop(struct tcp *t, struct tb_connection *c)
{
    struct tcp_peer *p = (struct tcp_peer *)c->peer;
    if (p->out[c->stream] == c)
        p->out[c->stream] = NULL;
    if (t->last == c)
        t->last = NULL;
    tb_list_remove(&c->in_trouble);
    tb_list_remove(&c->of_peer);
    tb_list_append(&t->dead, &c->of_peer);
    tb_connection_end(c);
}

static void connection_over(struct tcp *t, struct tb_connection *c, int error)
{
    struct tcp_peer *p = (struct tcp_peer *)c->peer;
    if (error == TB_ERR_CLOSED) {
        p->leaving = true;
        p->goodbyes++;
        p->goodbyes_due = c->in_goodbyes;
        if (p->story == NULL)
            p->story = strdup(tb_error_story());
    } else if (error != TB_ERR_CANCELLED && p->error == TB_OK) {
        free(p->story); /* of a goodbye; that of the first failure stays */
        p->story = NULL;
        peer_fail(t, p, error);
    }
    connection_drop(t, c);
    if (p->leaving && p->error == TB_OK && tb_list_empty(&p->connections))
        peer_notice(t, p);
}

static void peer_broken(struct tcp *t, struct tcp_peer *p)
{
    struct tb_connection *c;
    TB_LIST_EACH (c, &p->connections, struct tb_connection, of_peer) {
        tb_connection_exhaust(c);
        connection_drop(t, c);
    }
    if (p->told)
        return;
    p->told = true;
    peer_story(p, p->error);
    t->hub.upcalls.broken(t->hub.upcalls.context, &p->head, p->error);
}

static void peer_introduce(struct tcp *t, struct tcp_peer *p)
{
    if (p->known)
        return;
    p->known = true;
    if (t->hub.upcalls.opened != NULL)
        t->hub.upcalls.opened(t->hub.upcalls.context, &p->head);
}

static int notices_tell(struct tcp *t)
{
    int told = 0;
    while (!tb_list_empty(&t->notices)) {
        struct tcp_peer *p = TB_CONTAINER(t->notices.next, struct tcp_peer, notice);
        tb_list_remove(&p->notice);
        peer_introduce(t, p);
        if (p->leaving && p->error == TB_OK && tb_list_empty(&p->connections) && p->goodbyes >= p->goodbyes_due)
            p->error = TB_ERR_CLOSED;
        if (p->error != TB_OK) {
            peer_broken(t, p);
        } else if (p->writable) {
            p->writable = false;
            t->hub.upcalls.writable(t->hub.upcalls.context, &p->head);
        }
        told++;
    }
    return told;
}

/* ---- moving ------------------------------------------------------------------------------------------------------ */

static int connection_take(struct tcp *t, struct tb_connection *c)
{
    int got = tb_connection_read(c);
    if (got < 0) {
        connection_over(t, c, got);
        return 1;
    }
    if (got > 0 && c->descriptor >= 0)
        t->last = c;
    return got;
}

/* The envelope of a long message may come right before its data on the other stream: it is read first, since data
 * without an envelope would have to be copied. */
static int connection_receive(struct tcp *t, struct tb_connection *c)
{
    struct tcp_peer *p = (struct tcp_peer *)c->peer;
    int got = 0;
    peer_introduce(t, p);
    if (c->stream == TB_STREAM_BULK && c->in_body == NULL) {
        struct tb_connection *other = peer_connection(p, TB_STREAM_SHORT);
        got = other != NULL ? connection_take(t, other) : 0;
    }
    return c->descriptor >= 0 ? got + connection_take(t, c) : got;
}

static int connection_transmit(struct tcp *t, struct tb_connection *c)
{
    int left = tb_connection_flush(c);
    if (left < 0) {
        tb_list_remove(&c->in_trouble);
        tb_list_append(&t->troubled, &c->in_trouble);
        return 1;
    }
    if (c->out_count == 0 && c->wanted) {
        c->wanted = false;
        t->hub.upcalls.writable(t->hub.upcalls.context, c->peer);
        left++;
    }
    if (c->trouble == 0 && tb_connection_watch(c) != TB_OK)
        connection_over(t, c, TB_ERR_SYSTEM);
    return left;
}

/* A write has failed. What the other side sent before it went away is still to be delivered, its goodbye above all. */
static int troubled_settle(struct tcp *t)
{
    int count = 0;
    while (!tb_list_empty(&t->troubled)) {
        struct tb_connection *c = TB_CONTAINER(t->troubled.next, struct tb_connection, in_trouble);
        tb_list_remove(&c->in_trouble);
        peer_introduce(t, (struct tcp_peer *)c->peer);
        int end = tb_connection_exhaust(c);
        if (end == 0 || end == TB_ERR_CANCELLED) /* it was used, though in vain: whoever did is to be told */
            end = tb_connection_story(c, strerror(c->trouble));
        connection_over(t, c, end);
        count++;
    }
    return count;
}

static void dead_bury(struct tcp *t)
{
    struct tb_connection *c;
    TB_LIST_EACH (c, &t->dead, struct tb_connection, of_peer)
        tb_connection_free(c);
}

/* The connection that may have been asked for does not come; the story is in tb_error. */
static void peer_without(struct tcp *t, struct tcp_peer *p, enum tb_stream stream, int error)
{
    if (!p->asked[stream])
        return; /* the other side's wish was granted first */
    p->asked[stream] = false;
    if (peer_connection(p, stream) == NULL)
        peer_fail(t, p, error);
}

/* Takes the descriptor unless it returns TB_ERR_MEMORY. */
static int adopt_now(void *context, struct tb_proc proc, enum tb_stream stream, int descriptor)
{
    struct tcp *t = context;
    struct tcp_peer *p = peer_find(t, proc);
    struct tb_connection *c;
    if (p == NULL)
        return TB_ERR_MEMORY;
    if (p->error != TB_OK) {
        close(descriptor);
        return peer_story(p, p->error == TB_ERR_MEMORY ? TB_ERR_PEER : p->error);
    }
    int error = tb_connection_open(&t->hub, &p->head, stream, descriptor, &c);
    if (error != TB_OK) {
        if (error != TB_ERR_MEMORY) {
            close(descriptor);
            peer_without(t, p, stream, error);
        }
        return error;
    }
    tb_list_append(&p->connections, &c->of_peer);
    p->asked[stream] = false;
    if (p->waiting[stream]) {
        p->waiting[stream] = false;
        p->writable = true;
    }
    if (p->writable || !p->known)
        peer_notice(t, p);
    return TB_OK;
}

static int tcp_poll(struct tb_transport *transport)
{
    struct tcp *t = (struct tcp *)transport;
    tb_hub_push(&t->hub);
    dead_bury(t);
    if (__builtin_expect(t->late.count > 0, 0))
        tb_late_try(&t->late, adopt_now, t);
    int count = notices_tell(t) + troubled_settle(t);
    if (t->last != NULL) {
        count += connection_receive(t, t->last);
        /* The usual answer comes from where the last one came, and is found without asking epoll. */
        if (count > 0 && t->hub.unsent == 0 && ++t->streak < STREAK_LIMIT)
            return count;
    }
    t->streak = 0;
    struct epoll_event events[EVENTS_LIMIT];
    int ready = epoll_wait(t->hub.epoll, events, EVENTS_LIMIT, 0);
    for (int i = 0; i < ready; i++) {
        struct tb_connection *c = events[i].data.ptr;
        if (c->descriptor >= 0 && (events[i].events & EPOLLOUT))
            count += connection_transmit(t, c);
        if (c->descriptor >= 0 && (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
            count += connection_receive(t, c);
    }
    count += troubled_settle(t) + notices_tell(t);
    dead_bury(t);
    return count;
}

static int stream_ask(struct tcp *t, struct tcp_peer *p, enum tb_stream stream)
{
    p->waiting[stream] = true;
    if (p->asked[stream])
        return TB_AGAIN;
    p->asked[stream] = true;
    int error = t->config.connect != NULL
                    ? t->config.connect(t->config.connect_context, p->head.proc, stream)
                    : tb_error(TB_ERR_PEER, "there is nobody to connect this process to rank %u", p->head.proc.index);
    if (error == TB_OK)
        return TB_AGAIN;
    peer_fail(t, p, error);
    return error;
}

static int tcp_send(struct tb_endpoint *endpoint, const struct tb_envelope *envelope, struct tb_spans *payload,
                    enum tb_stream stream, void *token)
{
    struct tcp_peer *p = (struct tcp_peer *)endpoint;
    struct tcp *t = (struct tcp *)endpoint->transport;
    struct tb_connection *c = p->out[stream];
    if (__builtin_expect(c == NULL, 0)) {
        if (p->error != TB_OK || p->leaving)
            return peer_story(p, TB_ERR_PEER);
        c = peer_connection(p, stream);
        if (c == NULL)
            return stream_ask(t, p, stream);
    }
    int result = tb_connection_send(c, envelope, payload, token, t->head.more);
    if (result >= 0 && result != TB_AGAIN) {
        p->out[stream] = c;
        t->head.sent++;
    } else if (result < 0 && tb_list_empty(&c->in_trouble)) {
        tb_list_append(&t->troubled, &c->in_trouble);
    }
    return result;
}

static void tcp_drop(struct tb_endpoint *endpoint)
{
    struct tcp_peer *p = (struct tcp_peer *)endpoint;
    struct tcp *t = (struct tcp *)endpoint->transport;
    struct tb_connection *c;
    if (p->error == TB_OK) {
        free(p->story);
        p->story = strdup("this process has given the connection up");
        p->error = TB_ERR_CLOSED;
    }
    p->told = true;
    tb_list_remove(&p->notice);
    TB_LIST_EACH (c, &p->connections, struct tb_connection, of_peer) {
        c->out_token = NULL; /* its owner wants to hear nothing */
        connection_drop(t, c);
    }
}

static void tcp_forget(struct tb_endpoint *endpoint)
{
    TB_ASSERT(tb_list_empty(&((struct tcp_peer *)endpoint)->connections));
    free(((struct tcp_peer *)endpoint)->story);
    tb_endpoint_table_remove(&((struct tcp *)endpoint->transport)->peers, endpoint);
}

void tb_tcp_revive(struct tb_endpoint *endpoint)
{
    struct tcp_peer *p = (struct tcp_peer *)endpoint;
    tcp_drop(endpoint);
    free(p->story);
    p->story = NULL;
    p->error = TB_OK;
    p->told = p->leaving = p->writable = false;
    p->goodbyes = p->goodbyes_due = 0;
    for (int i = 0; i < TB_STREAM_COUNT; i++)
        p->asked[i] = p->waiting[i] = false;
}

/* ---- sleeping ---------------------------------------------------------------------------------------------------- */

static bool tcp_arm(struct tb_transport *transport)
{
    struct tcp *t = (struct tcp *)transport;
    t->last = NULL; /* after a sleep epoll knows better who has something */
    tb_hub_push(&t->hub);
    return tb_list_empty(&t->notices) && tb_list_empty(&t->troubled);
}

static void tcp_disarm(struct tb_transport *transport) {}

static int tcp_descriptor(struct tb_transport *transport)
{
    return ((struct tcp *)transport)->hub.epoll;
}

static uint64_t tcp_deadline(struct tb_transport *transport)
{
    return tb_late_deadline(&((struct tcp *)transport)->late);
}

static bool tcp_idle(struct tb_transport *transport)
{
    return ((struct tcp *)transport)->hub.unsent == 0;
}

/* ---- whether anything passes ------------------------------------------------------------------------------------- */

static bool tcp_is_stuck(struct tb_transport *transport, struct tb_proc proc, uint64_t *tried)
{
    struct tcp_peer *p = peer_find((struct tcp *)transport, proc);
    struct tb_connection *c;
    uint64_t ago = 0;
    bool stuck = false;
    if (p == NULL)
        return false;
    TB_LIST_EACH (c, &p->connections, struct tb_connection, of_peer) {
        if (c->here.any.sa_family == AF_UNIX)
            continue;
        tb_pulse_feel(&c->pulse, c->descriptor);
        if (!tb_pulse_is_stuck(&c->pulse, c->descriptor, &ago))
            continue;
        *tried = stuck && *tried < ago ? *tried : ago;
        stuck = true;
    }
    return stuck;
}

static void tcp_rest(struct tb_transport *transport)
{
    struct tcp *t = (struct tcp *)transport;
    struct tcp_peer *p;
    struct tb_connection *c;
    for (uint32_t i = 0; (p = (struct tcp_peer *)tb_endpoint_table_next(&t->peers, &i)) != NULL;)
        TB_LIST_EACH (c, &p->connections, struct tb_connection, of_peer)
            tb_pulse_rest(&c->pulse, c->descriptor);
}

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

static int tcp_endpoint(struct tb_transport *transport, struct tb_proc proc, struct tb_endpoint **endpoint)
{
    struct tcp_peer *p = peer_find((struct tcp *)transport, proc);
    if (p == NULL)
        return TB_ERR_MEMORY;
    p->known = true;
    *endpoint = &p->head;
    return TB_OK;
}

static bool tcp_adopts(struct tb_proc proc, enum tb_stream stream)
{
    return (proc.index & TB_PROC_AGENT) == 0 && stream < TB_STREAM_COUNT;
}

static int tcp_adopt(struct tb_transport *transport, struct tb_proc proc, enum tb_stream stream, int descriptor)
{
    TB_ASSERT(transport->table == &tb_transport_tcp && stream < TB_STREAM_COUNT);
    struct tcp *t = (struct tcp *)transport;
    int error = adopt_now(t, proc, stream, descriptor);
    if (error != TB_ERR_MEMORY)
        return error;
    if (tb_late_keep(&t->late, proc, stream, descriptor))
        return TB_OK;
    close(descriptor);
    return error;
}

static void tcp_refused(struct tb_transport *transport, struct tb_proc proc, enum tb_stream stream, int error)
{
    TB_ASSERT(transport->table == &tb_transport_tcp && stream < TB_STREAM_COUNT);
    struct tcp *t = (struct tcp *)transport;
    struct tcp_peer *p = peer_find(t, proc);
    if (p != NULL)
        peer_without(t, p, stream, error);
}

static bool tcp_usable(const struct tb_transport_config *config)
{
    return config->connect != NULL;
}

static int tcp_open(const struct tb_transport_config *config, struct tb_transport **transport)
{
    struct tcp *t = calloc(1, sizeof(*t));
    if (t == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for the TCP transport");
    uint64_t eager = tb_param.eager_tcp;
    t->head =
        (struct tb_transport){.table = &tb_transport_tcp,
                              .capabilities = tb_transport_tcp.capabilities,
                              .max_payload = TB_FRAME_PAYLOAD_LIMIT,
                              .eager_limit = eager < TB_FRAME_PAYLOAD_LIMIT ? (uint32_t)eager : TB_FRAME_PAYLOAD_LIMIT};
    t->config = *config;
    t->hub = (struct tb_hub){.upcalls = config->upcalls, .self = config->self, .epoll = epoll_create1(EPOLL_CLOEXEC)};
    tb_list_init(&t->hub.waits);
    t->hub.scratch = malloc(TB_HUB_SCRATCH);
    t->hub.staging = malloc(TB_HUB_STAGING);
    tb_list_init(&t->notices);
    tb_list_init(&t->troubled);
    tb_list_init(&t->dead);
    int error = t->hub.epoll < 0 ? tb_error_errno("cannot make an epoll descriptor for the TCP transport") : TB_OK;
    if (error == TB_OK && (t->hub.scratch == NULL || t->hub.staging == NULL))
        error = tb_error(TB_ERR_MEMORY, "no memory for the buffers of the TCP transport");
    if (error == TB_OK)
        error = tb_endpoint_table_open(&t->peers, "over TCP");
    if (error != TB_OK) {
        if (t->hub.epoll >= 0)
            close(t->hub.epoll);
        free(t->hub.scratch);
        free(t->hub.staging);
        free(t);
        return error;
    }
    *transport = &t->head;
    return TB_OK;
}

static void peer_bye(struct tcp_peer *p)
{
    uint32_t count = 0;
    struct tb_connection *c;
    TB_LIST_EACH (c, &p->connections, struct tb_connection, of_peer)
        count++;
    TB_LIST_EACH (c, &p->connections, struct tb_connection, of_peer)
        tb_connection_bye(c, count);
}

static void tcp_close(struct tb_transport *transport)
{
    struct tcp *t = (struct tcp *)transport;
    struct tb_connection *c;
    t->hub.upcalls.sent = NULL;
    dead_bury(t);
    struct tcp_peer *p;
    for (uint32_t i = 0; (p = (struct tcp_peer *)tb_endpoint_table_next(&t->peers, &i)) != NULL;)
        peer_bye(p);
    uint64_t until = tb_clock_now_real() + LINGER_MS * UINT64_C(1000000);
    for (uint32_t i = 0; (p = (struct tcp_peer *)tb_endpoint_table_next(&t->peers, &i)) != NULL;) {
        TB_LIST_EACH (c, &p->connections, struct tb_connection, of_peer) {
            tb_connection_linger(c, until);
            c->out_token = NULL; /* its owner is closing and wants to hear nothing */
            tb_connection_end(c);
            tb_connection_free(c);
        }
        free(p->story);
    }
    tb_late_close(&t->late);
    tb_endpoint_table_close(&t->peers);
    close(t->hub.epoll);
    free(t->hub.scratch);
    free(t->hub.staging);
    free(t);
}

const struct tb_transport_table tb_transport_tcp = {
    .name = "tcp",
    .scope = TB_SCOPE_DIRECT,
    .patience = 32,
    .capabilities = TB_CAP_DEPENDABLE,
    .params = tb_tcp_param_rows,
    .usable = tcp_usable,
    .open = tcp_open,
    .close = tcp_close,
    .endpoint = tcp_endpoint,
    .send = tcp_send,
    .poll = tcp_poll,
    .arm = tcp_arm,
    .disarm = tcp_disarm,
    .descriptor = tcp_descriptor,
    .deadline = tcp_deadline,
    .idle = tcp_idle,
    .drop = tcp_drop,
    .forget = tcp_forget,
    .adopts = tcp_adopts,
    .adopt = tcp_adopt,
    .refused = tcp_refused,
    .is_stuck = tcp_is_stuck,
    .rest = tcp_rest,
};
