#include "agent/bundle.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define WRITE_FLAGS (MSG_NOSIGNAL | MSG_DONTWAIT)
/* Unsent bytes beyond which a socket is not writable: what is in there cannot be overtaken any more. */
#define UNSENT_MOST (16 << 10)
/* A write to another agent that is not acknowledged for so long, or its silence, means that the link is cut. */
#define SILENCE_MS       4000
#define KEEPALIVE_IDLE_S 4
#define KEEPALIVE_STEP_S 2
#define KEEPALIVE_COUNT  4
#define REPEATS_MOST     3 /* of the kernel, in a row; about a second */
/* One write: so many frames or bytes. One turn of a strand: so many writes. */
#define BATCH_FRAMES 16
#define BATCH_BYTES  (16u << 10)
#define TURN_WRITES  8
#define CODED_LIMIT  (4u << 20) /* more than any batch becomes by coding */

static void strand_ready(struct tb_watch *watch, uint32_t events);
static int write_coded(struct tb_strand *strand);

/* ---- docks and bundles ------------------------------------------------------------------------------------------ */

int tb_dock_open(struct tb_dock *dock, struct tb_loop *loop, struct tb_depot *depot, const struct tb_dock_calls *calls)
{
    *dock = (struct tb_dock){.loop = loop, .depot = depot, .calls = *calls};
    tb_list_init(&dock->dead);
    dock->scratch = malloc(TB_CRATE_HEAD + TB_DOCK_READ);
    return dock->scratch != NULL ? TB_OK : tb_error(TB_ERR_MEMORY, "no memory to forward messages");
}

void tb_dock_bury(struct tb_dock *dock)
{
    struct tb_strand *strand;
    TB_LIST_EACH (strand, &dock->dead, struct tb_strand, node) {
        tb_list_remove(&strand->node);
        free(strand);
    }
}

void tb_dock_close(struct tb_dock *dock)
{
    tb_dock_bury(dock);
    free(dock->scratch);
    dock->scratch = NULL;
}

void tb_bundle_open(struct tb_bundle *bundle, struct tb_dock *dock, struct tb_proc proc)
{
    *bundle = (struct tb_bundle){.dock = dock, .proc = proc};
    for (int i = 0; i < TB_STREAM_COUNT; i++)
        tb_list_init(&bundle->strands[i]);
    tb_queue_open(&bundle->queue, dock->depot);
}

bool tb_bundle_is_agent(const struct tb_bundle *bundle)
{
    return (bundle->proc.index & TB_PROC_AGENT) != 0;
}

bool tb_bundle_stalled(const struct tb_bundle *bundle)
{
    for (int i = 0; i < TB_STREAM_COUNT; i++) {
        const struct tb_strand *strand;
        TB_LIST_EACH (strand, &bundle->strands[i], struct tb_strand, node) {
            struct tcp_info info = {0};
            socklen_t length = sizeof info;
            if (getsockopt(strand->watch.descriptor, IPPROTO_TCP, TCP_INFO, &info, &length) == 0 &&
                info.tcpi_retransmits >= REPEATS_MOST)
                return true;
        }
    }
    return false;
}

static void strand_close(struct tb_strand *strand)
{
    struct tb_bundle *bundle = strand->bundle;
    struct tb_dock *dock = bundle->dock;
    int socket = strand->watch.descriptor;
    tb_loop_unwatch(dock->loop, &strand->watch);
    close(socket);
    struct tb_crate *crate;
    TB_LIST_EACH (crate, &strand->out, struct tb_crate, node) {
        tb_list_remove(&crate->node);
        tb_crate_free(dock->depot, crate);
    }
    strand->out_count = 0;
    tb_crate_free(dock->depot, strand->in_crate);
    strand->in_crate = NULL;
    if (strand->codec != NULL)
        strand->codec->close(strand->codec);
    strand->codec = NULL;
    free(strand->coded);
    strand->coded = NULL;
    tb_list_remove(&strand->held);
    tb_list_remove(&strand->node);
    tb_list_append(&dock->dead, &strand->node);
    bundle->strand_count--;
}

static void strand_end(struct tb_strand *strand, int error)
{
    struct tb_bundle *bundle = strand->bundle;
    strand_close(strand);
    bundle->dock->calls.ended(bundle->dock->calls.context, bundle, strand, error);
}

static bool is_open(const struct tb_strand *strand)
{
    return strand->watch.descriptor >= 0;
}

void tb_bundle_close(struct tb_bundle *bundle)
{
    for (int i = 0; i < TB_STREAM_COUNT; i++) {
        struct tb_strand *strand;
        TB_LIST_EACH (strand, &bundle->strands[i], struct tb_strand, node) {
            struct tb_hop bye = {.version = TB_WIRE_VERSION, .type = TB_HOP_BYE, .sequence = strand->out_sequence};
            char bytes[sizeof bye];
            tb_wire_put_hop(bytes, &bye);
            if (strand->codec != NULL)
                strand->codec->encode(strand->codec, strand, bytes, sizeof bytes);
            if (strand->codec != NULL && strand->coded_at < strand->coded_end)
                (void)!send(strand->watch.descriptor, strand->coded + strand->coded_at,
                            strand->coded_end - strand->coded_at, WRITE_FLAGS);
            else if (strand->codec == NULL && tb_list_empty(&strand->out))
                (void)!send(strand->watch.descriptor, bytes, sizeof bytes, WRITE_FLAGS);
            strand_close(strand);
        }
    }
    tb_queue_close(&bundle->queue);
}

/* Options that a socket lacks (a Unix socket in tests) are no reason to refuse it. */
static void set_options(const struct tb_bundle *bundle, enum tb_stream stream, int socket)
{
    int on = 1, unsent = UNSENT_MOST;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(socket, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof unsent);
    if (!tb_bundle_is_agent(bundle))
        return;
    int silence = SILENCE_MS, idle = KEEPALIVE_IDLE_S, step = KEEPALIVE_STEP_S, count = KEEPALIVE_COUNT;
    setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &step, sizeof step);
    setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
    setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &silence, sizeof silence);
    if (stream == TB_STREAM_SHORT) /* after a cut, what waits alone is repeated soon */
        setsockopt(socket, IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS, &on, sizeof on);
}

void tb_strand_watch(struct tb_strand *strand)
{
    bool held = !tb_list_empty(&strand->held);
    uint32_t events = (held ? 0 : (uint32_t)EPOLLIN) | (strand->blocked ? (uint32_t)EPOLLOUT : 0);
    tb_loop_change(strand->bundle->dock->loop, &strand->watch, events);
}

int tb_bundle_adopt(struct tb_bundle *bundle, enum tb_stream stream, uint32_t lane, bool ours, int socket,
                    struct tb_codec *codec)
{
    struct tb_strand *strand;
    TB_LIST_EACH (strand, &bundle->strands[stream], struct tb_strand, node)
        if (strand->lane == lane && strand->ours == ours)
            strand_close(strand);
    strand = bundle->strand_count < TB_BUNDLE_STRANDS ? calloc(1, sizeof *strand) : NULL;
    int rc = strand != NULL ? tb_loop_watch(bundle->dock->loop, &strand->watch, socket, EPOLLIN, strand_ready)
                            : tb_error(TB_ERR_LIMIT, "too many connections with one process");
    if (rc != TB_OK) {
        free(strand);
        close(socket);
        if (codec != NULL)
            codec->close(codec);
        return rc;
    }
    set_options(bundle, stream, socket);
    strand->bundle = bundle;
    strand->stream = (uint8_t)stream;
    strand->lane = (uint8_t)lane;
    strand->ours = ours;
    strand->codec = codec;
    tb_list_init(&strand->held);
    tb_list_init(&strand->out);
    tb_list_append(&bundle->strands[stream], &strand->node);
    bundle->strand_count++;
    if (codec == NULL || codec->begin == NULL)
        return TB_OK;
    rc = codec->begin(codec, strand);
    if (rc != TB_OK)
        strand_close(strand);
    else
        write_coded(strand);
    return rc;
}

/* ---- writing ---------------------------------------------------------------------------------------------------- */

static bool would_block(int error)
{
    return error == EAGAIN || error == EWOULDBLOCK || error == ENOBUFS;
}

static int break_down(struct tb_strand *strand, int error)
{
    tb_error(TB_ERR_PEER, "%s", error != 0 ? strerror(error) : "the other side has closed the connection");
    strand_end(strand, TB_ERR_PEER);
    return TB_ERR_PEER;
}

static void block(struct tb_strand *strand)
{
    strand->blocked = true;
    tb_strand_watch(strand);
}

/* Gives a frame its number on this connection. */
static void number(struct tb_strand *strand, char *bytes)
{
    struct tb_hop hop;
    TB_ASSERT(tb_wire_get_hop(bytes, &hop) == TB_OK);
    hop.sequence = strand->out_sequence++;
    hop.credit = 0;
    tb_wire_put_hop(bytes, &hop);
}

static ssize_t write_list(int socket, struct iovec *list, size_t count)
{
    struct msghdr message = {.msg_iov = list, .msg_iovlen = count};
    ssize_t n;
    do {
        n = sendmsg(socket, &message, WRITE_FLAGS);
    } while (n < 0 && errno == EINTR);
    return n;
}

int tb_strand_put(struct tb_strand *strand, const void *bytes, size_t length)
{
    if (strand->coded_at == strand->coded_end)
        strand->coded_at = strand->coded_end = 0;
    if (strand->coded_end + length > CODED_LIMIT)
        return tb_error(TB_ERR_LIMIT, "a codec makes too many bytes");
    if (strand->coded_end + length > strand->coded_room) {
        size_t room = 2 * (strand->coded_end + length);
        char *coded = realloc(strand->coded, room);
        if (coded == NULL)
            return tb_error(TB_ERR_MEMORY, "no memory to code frames");
        strand->coded = coded;
        strand->coded_room = room;
    }
    memcpy(strand->coded + strand->coded_end, bytes, length);
    strand->coded_end += length;
    return TB_OK;
}

/* Writes what the codec has made. TB_OK: all of it; TB_AGAIN; TB_ERR_PEER: the strand has ended. */
static int write_coded(struct tb_strand *strand)
{
    while (strand->coded_at < strand->coded_end) {
        struct iovec list = {strand->coded + strand->coded_at, strand->coded_end - strand->coded_at};
        ssize_t n = write_list(strand->watch.descriptor, &list, 1);
        if (n < 0 && !would_block(errno))
            return break_down(strand, errno);
        if (n < 0) {
            strand->refused++;
            block(strand);
            return TB_AGAIN;
        }
        strand->coded_at += (size_t)n;
    }
    return TB_OK;
}

static bool is_ready(const struct tb_strand *strand)
{
    return !strand->blocked && strand->out_count == 0 && strand->coded_at == strand->coded_end &&
           (strand->codec == NULL || strand->codec->ready == NULL || strand->codec->ready(strand->codec));
}

static int encode(struct tb_strand *strand, const char *bytes, size_t length)
{
    int rc = strand->codec->encode(strand->codec, strand, bytes, length);
    if (rc == TB_OK)
        return TB_OK;
    strand_end(strand, rc);
    return TB_ERR_PEER;
}

/* A crate that holds what is in `bytes`, or the one that does already. */
static struct tb_crate *keep(struct tb_dock *dock, struct tb_cargo *cargo)
{
    struct tb_crate *crate = cargo->crate;
    if (crate != NULL) {
        cargo->crate = NULL;
        return crate;
    }
    crate = tb_crate_make(dock->depot, cargo->length);
    if (crate != NULL)
        memcpy(crate->bytes, cargo->bytes, cargo->length);
    return crate;
}

/* TB_AGAIN: nothing was taken. Otherwise TB_OK, or the strand has ended. */
static int strand_send(struct tb_strand *strand, struct tb_cargo *cargo)
{
    struct tb_dock *dock = strand->bundle->dock;
    uint32_t sequence = strand->out_sequence;
    number(strand, cargo->bytes);
    if (strand->codec != NULL) {
        if (encode(strand, cargo->bytes, cargo->length) != TB_OK)
            return TB_ERR_PEER;
        return write_coded(strand) == TB_ERR_PEER ? TB_ERR_PEER : TB_OK;
    }
    struct iovec list = {cargo->bytes, cargo->length};
    ssize_t n = write_list(strand->watch.descriptor, &list, 1);
    if (n == (ssize_t)cargo->length)
        return TB_OK;
    if (n < 0) {
        strand->out_sequence = sequence;
        if (!would_block(errno))
            return break_down(strand, errno);
        block(strand);
        return TB_AGAIN;
    }
    struct tb_crate *crate = keep(dock, cargo);
    if (crate == NULL)
        return break_down(strand, ENOMEM);
    tb_list_append(&strand->out, &crate->node);
    strand->out_count = 1;
    strand->out_at = (size_t)n;
    block(strand);
    return TB_OK;
}

int tb_bundle_send(struct tb_bundle *bundle, enum tb_stream stream, struct tb_cargo *cargo)
{
    struct tb_strand *strand;
    TB_LIST_EACH (strand, &bundle->strands[stream], struct tb_strand, node) {
        if (!is_ready(strand))
            continue;
        int rc = strand_send(strand, cargo);
        if (rc == TB_OK) {
            bundle->dock->frames_out++;
            bundle->dock->bytes_out += cargo->length;
            return TB_OK;
        }
        if (rc != TB_AGAIN)
            return TB_AGAIN; /* what is left of the bundle is for the caller to find out */
    }
    return TB_AGAIN;
}

/* Fills `out` from the queue, as far as one write goes. */
static void pull(struct tb_strand *strand)
{
    struct tb_bundle *bundle = strand->bundle;
    size_t bytes = 0;
    while (strand->out_count < BATCH_FRAMES && bytes < BATCH_BYTES) {
        struct tb_crate *crate = tb_queue_pull(&bundle->queue, (enum tb_stream)strand->stream);
        if (crate == NULL)
            break;
        number(strand, crate->bytes);
        bundle->dock->frames_out++;
        bundle->dock->bytes_out += crate->length;
        bytes += crate->length;
        tb_list_append(&strand->out, &crate->node);
        strand->out_count++;
    }
}

static void drop_written(struct tb_strand *strand, size_t n)
{
    while (n > 0) {
        struct tb_crate *crate = TB_CONTAINER(strand->out.next, struct tb_crate, node);
        size_t part = crate->length - strand->out_at;
        if (n < part) {
            strand->out_at += n;
            return;
        }
        n -= part;
        strand->out_at = 0;
        strand->out_count--;
        tb_list_remove(&crate->node);
        tb_crate_free(strand->bundle->dock->depot, crate);
    }
}

/* Writes `out` once. TB_OK: something was written; TB_AGAIN; TB_ERR_PEER. */
static int write_out(struct tb_strand *strand)
{
    struct iovec list[BATCH_FRAMES];
    size_t count = 0, at = strand->out_at;
    struct tb_crate *crate;
    TB_LIST_EACH (crate, &strand->out, struct tb_crate, node) {
        list[count++] = (struct iovec){crate->bytes + at, crate->length - at};
        at = 0;
    }
    if (strand->codec != NULL) {
        size_t whole = 0;
        for (size_t i = 0; i < count; whole += list[i++].iov_len)
            if (encode(strand, list[i].iov_base, list[i].iov_len) != TB_OK)
                return TB_ERR_PEER;
        drop_written(strand, whole);
        return write_coded(strand);
    }
    ssize_t n = write_list(strand->watch.descriptor, list, count);
    if (n < 0 && !would_block(errno))
        return break_down(strand, errno);
    if (n < 0) {
        block(strand);
        return TB_AGAIN;
    }
    drop_written(strand, (size_t)n);
    return TB_OK;
}

/* Writes and pulls until the socket is full or there is nothing more; after a while others have their turn. */
static void strand_flush(struct tb_strand *strand)
{
    struct tb_queue *queue = &strand->bundle->queue;
    if (write_coded(strand) != TB_OK)
        return;
    if (strand->codec != NULL && strand->codec->ready != NULL && !strand->codec->ready(strand->codec))
        return;
    for (int i = 0; i < TURN_WRITES; i++) {
        if (strand->out_count == 0)
            pull(strand);
        if (strand->out_count == 0)
            return;
        if (write_out(strand) != TB_OK)
            return;
    }
    if (strand->out_count > 0 || !tb_queue_empty(queue, (enum tb_stream)strand->stream))
        block(strand); /* epoll says at once that it is writable, but others first */
}

void tb_bundle_flush(struct tb_bundle *bundle, enum tb_stream stream)
{
    struct tb_strand *strand;
    TB_LIST_EACH (strand, &bundle->strands[stream], struct tb_strand, node) {
        if (tb_queue_empty(&bundle->queue, stream))
            return;
        if (is_ready(strand)) {
            strand_flush(strand);
            if (!is_open(strand))
                return; /* the list has changed in unknown ways; whatever is left is flushed by others */
        }
    }
}

/* ---- reading ---------------------------------------------------------------------------------------------------- */

static int nonsense(const struct tb_strand *strand, const char *what)
{
    bool agent = tb_bundle_is_agent(strand->bundle);
    return tb_error(TB_ERR_PROTOCOL, "%s %u sent nonsense to the gateway: %s", agent ? "the agent of host" : "rank",
                    strand->bundle->proc.index & ~TB_PROC_AGENT, what);
}

static int hop_check(const struct tb_strand *strand, const char *at, struct tb_hop *hop)
{
    if (tb_wire_get_hop(at, hop) != TB_OK)
        return nonsense(strand, tb_error_story());
    if (hop->type == TB_HOP_BYE)
        return tb_error(TB_ERR_CLOSED, "the other side has said goodbye");
    if (hop->type != TB_HOP_ENVELOPE)
        return nonsense(strand, "a frame of a type that gateways do not pass on");
    if (hop->sequence != strand->in_sequence)
        return nonsense(strand, "a frame out of sequence");
    if (hop->length > sizeof(struct tb_envelope) + TB_RELAY_PAYLOAD)
        return nonsense(strand, "a frame that is too long");
    return TB_OK;
}

static int deliver(struct tb_strand *strand, char *bytes, uint32_t length, bool more)
{
    struct tb_dock *dock = strand->bundle->dock;
    struct tb_envelope envelope;
    if (tb_wire_get_envelope(bytes + sizeof(struct tb_hop), &envelope) != TB_OK)
        return nonsense(strand, tb_error_story());
    strand->in_sequence++;
    struct tb_cargo cargo = {.bytes = bytes,
                             .length = length,
                             .source = envelope.routing.source,
                             .destination = envelope.routing.destination,
                             .crate = strand->in_crate,
                             .more = more};
    strand->in_crate = NULL;
    dock->calls.frame(dock->calls.context, strand, &cargo);
    tb_crate_free(dock->depot, cargo.crate);
    return TB_OK;
}

/* Goes on with the frame that the read before had only begun. Returns the bytes taken. */
static size_t fill_crate(struct tb_strand *strand, const char *bytes, size_t length)
{
    size_t part = strand->in_crate->length - strand->in_have;
    if (part > length)
        part = length;
    memcpy(strand->in_crate->bytes + strand->in_have, bytes, part);
    strand->in_have += (uint32_t)part;
    return part;
}

/* What is left at the end of a read: a part of a header, or of a frame whose length is known. */
static int keep_rest(struct tb_strand *strand, const char *bytes, size_t length)
{
    strand->in_have = (uint32_t)length;
    if (length < sizeof(struct tb_hop)) {
        memcpy(strand->in_head, bytes, length);
        return TB_OK;
    }
    struct tb_hop hop;
    int rc = hop_check(strand, bytes, &hop);
    if (rc != TB_OK)
        return rc;
    strand->in_crate = tb_crate_make(strand->bundle->dock->depot, (uint32_t)sizeof hop + hop.length);
    if (strand->in_crate == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory to forward messages");
    memcpy(strand->in_crate->bytes, bytes, length);
    return TB_OK;
}

int tb_strand_take(struct tb_strand *strand, char *bytes, size_t length)
{
    char *at = bytes, *end = bytes + length;
    int rc;
    if (strand->in_crate != NULL) {
        at += fill_crate(strand, bytes, length);
        if (strand->in_have < strand->in_crate->length)
            return TB_OK;
        rc = deliver(strand, strand->in_crate->bytes, strand->in_crate->length, at < end);
        if (rc != TB_OK || !is_open(strand))
            return rc;
    } else if (strand->in_have > 0) {
        at -= strand->in_have;
        memcpy(at, strand->in_head, strand->in_have);
    }
    strand->in_have = 0;
    while ((size_t)(end - at) >= sizeof(struct tb_hop)) {
        struct tb_hop hop;
        rc = hop_check(strand, at, &hop);
        if (rc != TB_OK)
            return rc;
        uint32_t whole = (uint32_t)sizeof hop + hop.length;
        if ((size_t)(end - at) < whole)
            break;
        rc = deliver(strand, at, whole, (size_t)(end - at) > whole);
        if (rc != TB_OK || !is_open(strand))
            return rc;
        at += whole;
    }
    return keep_rest(strand, at, (size_t)(end - at));
}

static void strand_read(struct tb_strand *strand)
{
    struct tb_dock *dock = strand->bundle->dock;
    char *into = dock->scratch + TB_CRATE_HEAD;
    ssize_t n;
    do {
        n = recv(strand->watch.descriptor, into, TB_DOCK_READ, MSG_DONTWAIT);
    } while (n < 0 && errno == EINTR);
    if (n < 0 && would_block(errno))
        return;
    if (n <= 0) {
        break_down(strand, n < 0 ? errno : 0);
        return;
    }
    int rc = strand->codec != NULL ? strand->codec->decode(strand->codec, strand, into, (size_t)n)
                                   : tb_strand_take(strand, into, (size_t)n);
    if (is_open(strand) && rc == TB_OK && strand->codec != NULL)
        strand_flush(strand);
    if (is_open(strand) && rc != TB_OK)
        strand_end(strand, rc);
}

static void strand_ready(struct tb_watch *watch, uint32_t events)
{
    struct tb_strand *strand = TB_CONTAINER(watch, struct tb_strand, watch);
    struct tb_dock *dock = strand->bundle->dock;
    tb_dock_bury(dock);
    if ((events & EPOLLOUT) != 0) {
        strand->blocked = false;
        strand_flush(strand);
        if (is_open(strand) && !strand->blocked)
            tb_strand_watch(strand);
    }
    if (is_open(strand) && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0)
        strand_read(strand);
    dock->calls.settle(dock->calls.context);
}
