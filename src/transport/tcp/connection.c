#include "transport/tcp/connection.h"
#include "transport/tcp/tcp_param.h"

#include <errno.h>
#include <linux/pkt_sched.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define WRITE_FLAGS (MSG_NOSIGNAL | MSG_DONTWAIT)

/* Frames up to this payload are copied behind their header and written as one piece: cheaper than a list of two. */
#define SMALL_PAYLOAD 2048u
/* A span shorter than this announces many short ones, which are gathered, unless it is the first: a head of its own. */
#define SHORT_SPAN 4096u
/* Unsent bytes in a socket beyond which it is not writable: what is queued there cannot be overtaken any more, and what
 * leaves the port next is decided above. Large enough to keep a 10 Gbit/s port busy for a tenth of a millisecond; on
 * the short stream less, so that answers and questions are never far behind, however slow the wire is (a long
 * accumulate may stand before them, in frames of 64 KiB). */
#define UNSENT_BULK  (128 << 10)
#define UNSENT_SHORT (16 << 10)
/* How far to read on a bulk stream when a header is expected: what is read beyond it must be copied once more. */
#define BULK_AHEAD (8u << 10)
/* How many times a connection is read before others have their turn. */
#define READ_ROUNDS    4
#define EXHAUST_ROUNDS 64 /* the same of one that is given up */

static size_t body_head(const struct tb_hop *hop)
{
    return hop->type == TB_HOP_ENVELOPE ? sizeof(struct tb_envelope) : sizeof(struct tb_message);
}

/* ---- stories ---------------------------------------------------------------------------------------------------- */

static int nonsense(const struct tb_connection *c, const char *what)
{
    char why[256];
    snprintf(why, sizeof(why), "the other side sent nonsense: %s", what);
    return tb_connection_end_story(c, TB_ERR_PROTOCOL, why);
}

/* ---- opening and ending ------------------------------------------------------------------------------------------ */

/* Options that a socket lacks (a Unix socket in tests) are no reason to refuse it. */
static void options_set(int descriptor, enum tb_stream stream)
{
    int on = 1, priority = TC_PRIO_BULK, unsent = stream == TB_STREAM_BULK ? UNSENT_BULK : UNSENT_SHORT;
    setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(descriptor, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof(unsent));
    if (stream == TB_STREAM_BULK)
        setsockopt(descriptor, SOL_SOCKET, SO_PRIORITY, &priority, sizeof(priority));
    if (tb_tcp_param.buffer > 0) {
        int bytes = (int)tb_tcp_param.buffer;
        setsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
        setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
    }
}

int tb_connection_open(struct tb_hub *hub, struct tb_endpoint *peer, enum tb_stream stream, int descriptor,
                       struct tb_connection **connection)
{
    struct tb_connection *c = calloc(1, sizeof(*c));
    if (c == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for a connection to rank %u", peer->proc.index);
    tb_list_init(&c->of_peer);
    tb_list_init(&c->in_trouble);
    tb_list_init(&c->in_waits);
    c->hub = hub;
    c->peer = peer;
    c->descriptor = descriptor;
    c->stream = (uint8_t)stream;
    socklen_t size = sizeof(c->here);
    getsockname(descriptor, &c->here.any, &size);
    size = sizeof(c->there);
    getpeername(descriptor, &c->there.any, &size);
    options_set(descriptor, stream);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
    if (epoll_ctl(hub->epoll, EPOLL_CTL_ADD, descriptor, &event) != 0) {
        free(c);
        return tb_error_errno("cannot watch the connection to rank %u", peer->proc.index);
    }
    *connection = c;
    return TB_OK;
}

static void out_clear(struct tb_connection *c)
{
    if (c->out_count > 0)
        c->hub->unsent--;
    free(c->out_copy);
    c->out_copy = NULL;
    c->out_at = c->out_count = 0;
    c->out_token = NULL;
}

static void in_clear(struct tb_connection *c)
{
    if (c->in_own)
        free(c->in_body);
    c->in_body = NULL;
    c->in_own = false;
}

void tb_connection_end(struct tb_connection *c)
{
    if (c->descriptor < 0)
        return;
    tb_list_remove(&c->in_waits);
    /* Closing alone would leave it in epoll while a child of the user's program holds the socket too. */
    epoll_ctl(c->hub->epoll, EPOLL_CTL_DEL, c->descriptor, NULL);
    /* Nor would the other side hear of it, while a child or our agent does. */
    shutdown(c->descriptor, SHUT_WR);
    close(c->descriptor);
    c->descriptor = -1;
    void *token = c->out_token;
    out_clear(c);
    in_clear(c);
    if (token != NULL)
        c->hub->upcalls.sent(c->hub->upcalls.context, c->peer, token, TB_ERR_PEER);
}

void tb_connection_free(struct tb_connection *c)
{
    TB_ASSERT(c->descriptor < 0);
    tb_list_remove(&c->of_peer);
    tb_list_remove(&c->in_trouble);
    free(c);
}

int tb_connection_watch(struct tb_connection *c)
{
    bool watch = c->out_count > 0 || c->wanted;
    if (watch == c->watching || c->descriptor < 0)
        return TB_OK;
    struct epoll_event event = {.events = EPOLLIN | (watch ? (uint32_t)EPOLLOUT : 0), .data.ptr = c};
    if (epoll_ctl(c->hub->epoll, EPOLL_CTL_MOD, c->descriptor, &event) != 0)
        return tb_error_errno("cannot watch the connection to rank %u", c->peer->proc.index);
    c->watching = watch;
    return TB_OK;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

/* Between ranks the network is in between; what goes to the own agent stays on the host, and further on it is looked
 * after by the agents. */
static bool is_checked(const struct tb_connection *c)
{
    return ((c->peer->proc.index | c->hub->self.index) & TB_PROC_AGENT) == 0;
}

static size_t head_put(const struct tb_connection *c, const struct tb_envelope *envelope, uint64_t payload, char *to)
{
    bool routed = (envelope->message.flags & TB_MESSAGE_ROUTED) != 0;
    struct tb_hop hop = {.version = TB_WIRE_VERSION,
                         .type = routed ? TB_HOP_ENVELOPE : TB_HOP_MESSAGE,
                         .flags = is_checked(c) ? TB_HOP_CHECKED : 0,
                         .sequence = c->out_sequence};
    size_t head = body_head(&hop);
    hop.length = (uint32_t)(head + payload);
    tb_wire_put_hop(to, &hop);
    if (routed)
        tb_wire_put_envelope(to + sizeof(hop), envelope);
    else
        tb_wire_put_message(to + sizeof(hop), &envelope->message);
    if (is_checked(c))
        tb_wire_seal_heads(to, sizeof(hop) + head);
    return sizeof(hop) + head;
}

/* Drops `n` bytes from the front of what is still to be written. */
static void out_skip(struct tb_connection *c, size_t n)
{
    while (n > 0) {
        struct iovec *v = &c->out[c->out_at];
        size_t part = n < v->iov_len ? n : v->iov_len;
        v->iov_base = (char *)v->iov_base + part;
        v->iov_len -= part;
        n -= part;
        if (v->iov_len == 0)
            c->out_at++;
    }
}

/* Copies what is still to be written into memory of our own, so that the giver's is free. */
static int out_copy(struct tb_connection *c)
{
    size_t bytes = 0, at = 0;
    for (int i = c->out_at; i < c->out_count; i++)
        bytes += c->out[i].iov_len;
    TB_ASSERT(bytes > 0);
    char *copy = malloc(bytes);
    if (copy == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for %zu bytes on their way to rank %u", bytes, c->peer->proc.index);
    for (int i = c->out_at; i < c->out_count; i++) {
        memcpy(copy + at, c->out[i].iov_base, c->out[i].iov_len);
        at += c->out[i].iov_len;
    }
    c->out_copy = copy;
    c->out[0] = (struct iovec){copy, bytes};
    c->out_at = 0;
    c->out_count = 1;
    return TB_OK;
}

static int write_failed(struct tb_connection *c, int error)
{
    c->trouble = error;
    return tb_connection_story(c, strerror(error));
}

static ssize_t out_write(struct tb_connection *c)
{
    struct msghdr message = {.msg_iov = c->out + c->out_at, .msg_iovlen = (size_t)(c->out_count - c->out_at)};
    ssize_t n;
    do {
        n = sendmsg(c->descriptor, &message, WRITE_FLAGS);
    } while (n < 0 && errno == EINTR);
    /* What cannot be read is the program's fault, not the peer's: it ends here, as where such bytes are copied. */
    for (int i = c->out_at; n < 0 && errno == EFAULT && i < c->out_count; i++)
        for (size_t at = 0; at < c->out[i].iov_len; at += 512)
            (void)((const volatile char *)c->out[i].iov_base)[at];
    return n;
}

static bool would_block(int error)
{
    return error == EAGAIN || error == EWOULDBLOCK || error == ENOBUFS;
}

static int refuse_for_now(struct tb_connection *c)
{
    c->wanted = true;
    return tb_connection_watch(c) == TB_OK ? TB_AGAIN : write_failed(c, errno);
}

/* The frame has been begun: keep the rest. */
static int out_keep(struct tb_connection *c, bool copy, void *token)
{
    c->hub->unsent++;
    c->out_token = copy ? NULL : token;
    if ((copy && out_copy(c) != TB_OK) || tb_connection_watch(c) != TB_OK) {
        out_clear(c);
        return write_failed(c, ENOMEM);
    }
    return copy ? TB_OK : TB_PENDING;
}

static int send_small(struct tb_connection *c, const struct tb_envelope *envelope, struct tb_spans *payload, bool more)
{
    char *frame = c->hub->staging;
    size_t length = payload->left;
    size_t total = head_put(c, envelope, length, frame) + length;
    bool whole = payload->length == length; /* then it is not consumed by looking at it */
    if (!whole)
        tb_spans_gather(payload, frame + total - length, length);
    else if (length > 0) /* else there may be no base either */
        memcpy(frame + total - length, payload->base, length);
    ssize_t n;
    do {
        n = send(c->descriptor, frame, total, WRITE_FLAGS | (more ? MSG_MORE : 0));
    } while (n < 0 && errno == EINTR);
    if (more && tb_list_empty(&c->in_waits))
        tb_list_append(&c->hub->waits, &c->in_waits);
    if (n < 0) {
        if (!would_block(errno))
            return write_failed(c, errno);
        if (whole)
            return refuse_for_now(c);
        n = 0;
    }
    if (whole && length > 0)
        tb_spans_skip(payload, length);
    c->out_sequence++;
    if ((size_t)n == total)
        return TB_OK;
    c->out[0] = (struct iovec){frame + n, total - (size_t)n};
    c->out_at = 0;
    c->out_count = 1;
    return out_keep(c, true, NULL);
}

/* Lists the payload behind the header. Spans that are short or too many are gathered in the staging buffer, which has
 * to be given back at once: true. */
static bool out_list(struct tb_connection *c, struct tb_spans *payload)
{
    while (payload->left > 0 && c->out_count <= TB_CONNECTION_SPANS &&
           (payload->length >= SHORT_SPAN || c->out_count == 1)) {
        c->out[c->out_count++] = (struct iovec){payload->base, payload->length};
        tb_spans_skip(payload, payload->length);
    }
    size_t rest = payload->left;
    if (rest == 0)
        return false;
    tb_spans_gather(payload, c->hub->staging, rest);
    c->out[c->out_count++] = (struct iovec){c->hub->staging, rest};
    return true;
}

static int send_large(struct tb_connection *c, const struct tb_envelope *envelope, struct tb_spans *payload,
                      void *token)
{
    uint64_t length = payload->left;
    size_t head = head_put(c, envelope, length, c->out_head);
    bool whole = payload->length == length, staged = false;
    size_t total = head + length;
    c->out_at = 0;
    c->out[0] = (struct iovec){c->out_head, head};
    if (whole) {
        c->out[1] = (struct iovec){payload->base, length};
        c->out_count = 2;
    } else {
        c->out_count = 1;
        staged = out_list(c, payload);
    }
    ssize_t n = out_write(c);
    if (n < 0) {
        if (!would_block(errno) || whole)
            c->out_count = 0;
        if (!would_block(errno))
            return write_failed(c, errno);
        if (whole)
            return refuse_for_now(c);
        n = 0;
    }
    if (whole)
        tb_spans_skip(payload, length);
    c->out_sequence++;
    if ((size_t)n == total) {
        c->out_count = 0;
        return TB_OK;
    }
    out_skip(c, (size_t)n);
    return out_keep(c, staged || token == NULL, token);
}

int tb_connection_send(struct tb_connection *c, const struct tb_envelope *envelope, struct tb_spans *payload,
                       void *token, bool more)
{
    TB_ASSERT(payload->left <= TB_FRAME_PAYLOAD_LIMIT);
    if (c->trouble != 0)
        return tb_connection_story(c, strerror(c->trouble));
    if (c->out_count > 0) {
        c->wanted = true;
        return TB_AGAIN;
    }
    bool waits = more && payload->left <= SMALL_PAYLOAD;
    int rc = payload->left <= SMALL_PAYLOAD ? send_small(c, envelope, payload, more)
                                            : send_large(c, envelope, payload, token);
    if (!waits && rc != TB_AGAIN) /* what waited has gone before it */
        tb_list_remove(&c->in_waits);
    return rc;
}

void tb_hub_push(struct tb_hub *hub)
{
    int on = 1;
    while (!tb_list_empty(&hub->waits)) {
        struct tb_connection *c = TB_CONTAINER(hub->waits.next, struct tb_connection, in_waits);
        tb_list_remove(&c->in_waits);
        setsockopt(c->descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)); /* said once more, it sends what waits */
    }
}

int tb_connection_flush(struct tb_connection *c)
{
    if (c->out_count == 0)
        return 0;
    ssize_t n = out_write(c);
    if (n < 0)
        return would_block(errno) ? 0 : write_failed(c, errno);
    out_skip(c, (size_t)n);
    if (c->out_at < c->out_count)
        return 1;
    void *token = c->out_token;
    out_clear(c);
    if (token != NULL)
        c->hub->upcalls.sent(c->hub->upcalls.context, c->peer, token, TB_OK);
    return 1;
}

void tb_connection_bye(struct tb_connection *c, uint32_t goodbyes)
{
    struct tb_hop hop = {.version = TB_WIRE_VERSION,
                         .type = TB_HOP_BYE,
                         .flags = is_checked(c) ? TB_HOP_CHECKED : 0,
                         .sequence = c->out_sequence,
                         .credit = goodbyes};
    char frame[sizeof(hop)];
    tb_wire_put_hop(frame, &hop);
    if (is_checked(c))
        tb_wire_seal_heads(frame, sizeof(frame));
    if (c->out_count == 0 && c->trouble == 0)
        (void)!send(c->descriptor, frame, sizeof(frame), WRITE_FLAGS);
    shutdown(c->descriptor, SHUT_WR);
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static void deliver(struct tb_connection *c, uint8_t type, const void *payload, size_t length)
{
    const struct tb_envelope *envelope = &c->in_envelope;
    c->hub->upcalls.frame(c->hub->upcalls.context, c->peer, type == TB_HOP_ENVELOPE ? &envelope->routing : NULL,
                          &envelope->message, payload, length);
}

static int hop_check(const struct tb_connection *c, const struct tb_hop *hop)
{
    if (hop->type != TB_HOP_BYE && hop->type != TB_HOP_MESSAGE && hop->type != TB_HOP_ENVELOPE)
        return nonsense(c, "a frame of a type that ranks do not exchange");
    if (((hop->flags & TB_HOP_CHECKED) != 0) != is_checked(c))
        return nonsense(c,
                        is_checked(c) ? "a frame without a check" : "a frame with a check, which agents do not make");
    if (hop->type != TB_HOP_BYE && hop->sequence != c->in_sequence)
        return nonsense(c, "a frame out of sequence");
    return TB_OK;
}

/* The payload is not looked at: a change there gives the program wrong data, as the network has it; one in the headers
 * would have the ranks wait for each other for ever. */
static int heads_check(const struct tb_connection *c, const char *frame, size_t length)
{
    return !is_checked(c) || tb_wire_heads_intact(frame, length)
               ? TB_OK
               : nonsense(c, "the header of a frame was changed on the way");
}

static int envelope_get(const struct tb_hop *hop, const char *from, struct tb_envelope *envelope)
{
    if (hop->type == TB_HOP_ENVELOPE)
        return tb_wire_get_envelope(from, envelope);
    return tb_wire_get_message(from, &envelope->message);
}

/* A frame whose payload is not here yet: finds room and takes what there is. */
static int body_begin(struct tb_connection *c, const char *from, size_t have)
{
    const struct tb_message *message = &c->in_envelope.message;
    const struct tb_upcalls *up = &c->hub->upcalls;
    c->in_body = NULL;
    c->in_own = false;
    if (tb_kind_is_placed(message->kind) && up->place != NULL)
        c->in_body = up->place(up->context, c->peer, message, c->in_length);
    if (c->in_body == NULL) {
        c->in_body = malloc(c->in_length);
        c->in_own = true;
        if (c->in_body == NULL)
            return tb_error(TB_ERR_MEMORY, "no memory for a frame of %zu bytes from rank %u", c->in_length,
                            c->peer->proc.index);
    }
    memcpy(c->in_body, from, have);
    c->in_read = have;
    return TB_OK;
}

static void body_finish(struct tb_connection *c)
{
    deliver(c, c->in_type, c->in_body, c->in_length);
    in_clear(c);
}

/* Takes one frame, or the beginning of a long one, from [at, end). Returns the bytes taken; 0: more are needed. */
static ssize_t frame_take(struct tb_connection *c, const char *at, const char *end, int *frames)
{
    size_t have = (size_t)(end - at);
    struct tb_hop hop;
    if (have < sizeof(hop))
        return 0;
    if (tb_wire_get_hop(at, &hop) != TB_OK)
        return nonsense(c, tb_error_story());
    int error = hop_check(c, &hop);
    if (error != TB_OK)
        return error;
    if (hop.type == TB_HOP_BYE) {
        error = heads_check(c, at, sizeof(hop));
        if (error != TB_OK)
            return error;
        c->in_goodbyes = hop.credit;
        return tb_connection_end_story(c, TB_ERR_CLOSED, "the other side has said goodbye");
    }
    size_t head = sizeof(hop) + body_head(&hop);
    if (have < head)
        return 0;
    error = heads_check(c, at, head);
    if (error != TB_OK)
        return error;
    if (envelope_get(&hop, at + sizeof(hop), &c->in_envelope) != TB_OK)
        return nonsense(c, tb_error_story());
    c->in_sequence++;
    size_t length = hop.length - body_head(&hop);
    if (have - head >= length) {
        deliver(c, hop.type, at + head, length);
        *frames += 1;
        return (ssize_t)(head + length);
    }
    c->in_type = hop.type;
    c->in_length = length;
    error = body_begin(c, at + head, have - head);
    return error != TB_OK ? error : (ssize_t)have;
}

/* Parses what is in the scratch buffer; a header that has only begun is kept. */
static int scratch_parse(struct tb_connection *c, size_t length, int *frames)
{
    const char *at = c->hub->scratch, *end = at + length;
    c->in_have = 0;
    while (at < end) {
        ssize_t taken = frame_take(c, at, end, frames);
        if (taken < 0)
            return (int)taken;
        if (taken == 0)
            break;
        at += taken;
    }
    TB_ASSERT((size_t)(end - at) < sizeof(c->in_head));
    memcpy(c->in_head, at, (size_t)(end - at));
    c->in_have = (uint32_t)(end - at);
    return TB_OK;
}

static int stream_end(struct tb_connection *c, int error)
{
    bool begun = c->in_body != NULL || c->in_have > 0;
    if (!begun && c->in_sequence == 0 && c->out_sequence == 0)
        return TB_ERR_CANCELLED;
    return tb_connection_story(c, error != 0 ? strerror(error)
                                  : begun    ? "the other side ended in the middle of a frame"
                                             : "the other side ended without a goodbye");
}

/* Reads once: first what is missing of the present frame, straight to its place, then what follows into the scratch
 * buffer. *more: the socket may have more. */
static ssize_t stream_read(struct tb_connection *c, bool *more)
{
    size_t missing = c->in_body != NULL ? c->in_length - c->in_read : 0;
    size_t ahead = c->stream == TB_STREAM_BULK ? BULK_AHEAD : TB_HUB_SCRATCH - sizeof(c->in_head);
    char *scratch = c->hub->scratch + c->in_have;
    ssize_t n;
    do {
        if (missing == 0) {
            n = recv(c->descriptor, scratch, ahead, MSG_DONTWAIT);
        } else {
            struct iovec into[2] = {{c->in_body + c->in_read, missing}, {scratch, ahead}};
            struct msghdr message = {.msg_iov = into, .msg_iovlen = 2};
            n = recvmsg(c->descriptor, &message, MSG_DONTWAIT);
        }
    } while (n < 0 && errno == EINTR);
    *more = n == (ssize_t)(missing + ahead);
    return n;
}

int tb_connection_read(struct tb_connection *c)
{
    int frames = 0;
    bool more = true, moved = false;
    for (int round = 0; more && round < READ_ROUNDS; round++) {
        ssize_t n = stream_read(c, &more);
        if (n < 0 && would_block(errno))
            break;
        if (n <= 0)
            return stream_end(c, n < 0 ? errno : 0);
        moved = true;
        size_t rest = (size_t)n;
        if (c->in_body != NULL) {
            size_t missing = c->in_length - c->in_read;
            size_t part = rest < missing ? rest : missing;
            c->in_read += part;
            rest -= part;
            if (part < missing)
                continue;
            body_finish(c);
            frames++;
        }
        memcpy(c->hub->scratch, c->in_head, c->in_have);
        int error = scratch_parse(c, c->in_have + rest, &frames);
        if (error != TB_OK)
            return error;
    }
    return frames > 0 ? frames : moved;
}

int tb_connection_exhaust(struct tb_connection *c)
{
    int got, rounds = 0;
    do {
        got = tb_connection_read(c);
    } while (got > 0 && ++rounds < EXHAUST_ROUNDS);
    return got < 0 ? got : 0;
}
