#include "agent/hop_connection.h"
#include "agent/hop_frame.h"

#include <errno.h>
#include <linux/sockios.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define WRITE_FLAGS  (MSG_NOSIGNAL | MSG_DONTWAIT)
#define BATCH_FRAMES 16         /* of one write */
#define TURN_WRITES  8          /* of one turn of a connection */
#define CODED_LIMIT  (4u << 20) /* more than any batch becomes by coding */

/* ---- its end ------------------------------------------------------------------------------------------------------
 */

void tb_hop_connection_close(struct tb_hop_connection *connection)
{
    struct tb_hop_set *hop_set = connection->hop_set;
    int socket = connection->watch.descriptor;
    tb_loop_unwatch(hop_set->loop, &connection->watch);
    close(socket);
    struct tb_frame_buffer *buffer;
    TB_LIST_EACH (buffer, &connection->out, struct tb_frame_buffer, node) {
        tb_list_remove(&buffer->node);
        tb_frame_buffer_free(hop_set->pool, buffer);
    }
    connection->out_count = 0;
    tb_frame_buffer_free(hop_set->pool, connection->in_buffer);
    connection->in_buffer = NULL;
    if (connection->codec != NULL)
        connection->codec->close(connection->codec);
    connection->codec = NULL;
    free(connection->coded);
    connection->coded = NULL;
    tb_list_remove(&connection->node);
    tb_list_append(&hop_set->dead, &connection->node);
}

static void connection_end(struct tb_hop_connection *connection, int error)
{
    const struct tb_hop_set_events *events = &connection->hop_set->events;
    tb_hop_connection_close(connection);
    events->ended(events->context, connection->peer, connection, error);
}

static bool is_open(const struct tb_hop_connection *connection)
{
    return connection->watch.descriptor >= 0;
}

static void watch_again(struct tb_hop_connection *connection)
{
    uint32_t events = (uint32_t)EPOLLIN | (connection->blocked ? (uint32_t)EPOLLOUT : 0);
    tb_loop_change(connection->hop_set->loop, &connection->watch, events);
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static bool would_block(int error)
{
    return error == EAGAIN || error == EWOULDBLOCK || error == ENOBUFS;
}

static bool is_agent(const struct tb_hop_connection *connection)
{
    return (connection->proc.index & TB_PROC_AGENT) != 0;
}

/* Nothing can be written now. What a rank that has ended said before is still to be read; its end is noticed there. */
static bool cannot_write(const struct tb_hop_connection *connection, int error)
{
    bool gone = error == EPIPE || error == ECONNRESET;
    return would_block(error) || (gone && connection->codec == NULL && !is_agent(connection));
}

static int break_down(struct tb_hop_connection *connection, int error)
{
    tb_error(TB_ERR_PEER, "%s", error != 0 ? strerror(error) : "the other side has closed the connection");
    connection_end(connection, TB_ERR_PEER);
    return TB_ERR_PEER;
}

static void block(struct tb_hop_connection *connection)
{
    connection->blocked = true;
    watch_again(connection);
}

/* The kernel looks at TCP_NOTSENT_LOWAT only when it begins a buffer, of up to 64 KiB: on a slow wire several messages
 * would lie in as many sockets, each to leave at a part of the rate, and the first would arrive with the last. */
static bool block_if_full(struct tb_hop_connection *connection)
{
    int unsent = 0;
    if (connection->unsent == 0 || ioctl(connection->watch.descriptor, SIOCOUTQNSD, &unsent) != 0 ||
        (uint32_t)unsent < connection->unsent)
        return false;
    block(connection);
    return true;
}

/* Gives a frame its number on this connection. */
static void number(struct tb_hop_connection *connection, char *bytes)
{
    tb_hop_frame_number(bytes, connection->out_sequence++, is_agent(connection));
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

int tb_hop_connection_put(struct tb_hop_connection *connection, const void *bytes, size_t length)
{
    if (connection->coded_at == connection->coded_end)
        connection->coded_at = connection->coded_end = 0;
    if (connection->coded_end + length > CODED_LIMIT)
        return tb_error(TB_ERR_LIMIT, "a codec makes too many bytes");
    if (connection->coded_end + length > connection->coded_room) {
        size_t room = 2 * (connection->coded_end + length);
        char *coded = realloc(connection->coded, room);
        if (coded == NULL)
            return tb_error(TB_ERR_MEMORY, "no memory to code frames");
        connection->coded = coded;
        connection->coded_room = room;
    }
    memcpy(connection->coded + connection->coded_end, bytes, length);
    connection->coded_end += length;
    return TB_OK;
}

/* Writes what the codec has made. TB_OK: all of it; TB_AGAIN; TB_ERR_PEER: the connection has ended. */
static int write_coded(struct tb_hop_connection *connection)
{
    while (connection->coded_at < connection->coded_end) {
        struct iovec list = {connection->coded + connection->coded_at, connection->coded_end - connection->coded_at};
        ssize_t n = write_list(connection->watch.descriptor, &list, 1);
        if (n < 0 && !cannot_write(connection, errno))
            return break_down(connection, errno);
        if (n < 0) {
            connection->refused++;
            block(connection);
            return TB_AGAIN;
        }
        connection->coded_at += (size_t)n;
    }
    return TB_OK;
}

bool tb_hop_connection_is_ready(const struct tb_hop_connection *connection)
{
    return !connection->blocked && connection->out_count == 0 && connection->coded_at == connection->coded_end &&
           (connection->codec == NULL || connection->codec->ready == NULL ||
            connection->codec->ready(connection->codec));
}

static int encode(struct tb_hop_connection *connection, const char *bytes, size_t length, bool more)
{
    int rc = connection->codec->encode(connection->codec, connection, bytes, length, more);
    if (rc == TB_OK)
        return TB_OK;
    connection_end(connection, rc);
    return TB_ERR_PEER;
}

/* A frame buffer that holds what is in `bytes`, or the one that does already. */
static struct tb_frame_buffer *keep(struct tb_hop_set *hop_set, struct tb_cargo *cargo)
{
    struct tb_frame_buffer *buffer = cargo->buffer;
    if (buffer != NULL) {
        cargo->buffer = NULL;
        return buffer;
    }
    buffer = tb_frame_buffer_make(hop_set->pool, cargo->length);
    if (buffer != NULL)
        memcpy(buffer->bytes, cargo->bytes, cargo->length);
    return buffer;
}

int tb_hop_connection_send(struct tb_hop_connection *connection, struct tb_cargo *cargo)
{
    struct tb_hop_set *hop_set = connection->hop_set;
    uint32_t sequence = connection->out_sequence;
    number(connection, cargo->bytes);
    if (connection->codec != NULL) {
        if (encode(connection, cargo->bytes, cargo->length, false) != TB_OK)
            return TB_ERR_PEER;
        int rc = write_coded(connection);
        if (rc == TB_OK)
            block_if_full(connection);
        return rc == TB_ERR_PEER ? TB_ERR_PEER : TB_OK;
    }
    struct iovec list = {cargo->bytes, cargo->length};
    ssize_t n = write_list(connection->watch.descriptor, &list, 1);
    if (n == (ssize_t)cargo->length) {
        block_if_full(connection);
        return TB_OK;
    }
    if (n < 0) {
        connection->out_sequence = sequence;
        if (!cannot_write(connection, errno))
            return break_down(connection, errno);
        block(connection);
        return TB_AGAIN;
    }
    struct tb_frame_buffer *buffer = keep(hop_set, cargo);
    if (buffer == NULL)
        return break_down(connection, ENOMEM);
    tb_list_append(&connection->out, &buffer->node);
    connection->out_count = 1;
    connection->out_at = (size_t)n;
    block(connection);
    return TB_OK;
}

/* Writes the PING and the PONG that are due; nothing is half-written, and the codec is ready. TB_OK: they are out;
 * TB_AGAIN: not all of it; TB_ERR_PEER. */
static int write_ping(struct tb_hop_connection *connection)
{
    char bytes[TB_HOP_PING_BYTES];
    uint32_t sequence = connection->out_sequence;
    size_t length = tb_hop_ping_put(&connection->ping, bytes, &sequence), left;
    int rc = TB_OK, socket = connection->watch.descriptor;
    if (connection->codec != NULL) {
        connection->out_sequence = sequence;
        rc = encode(connection, bytes, length, false) == TB_OK ? write_coded(connection) : TB_ERR_PEER;
        left = connection->coded_end - connection->coded_at;
    } else {
        struct iovec list = {bytes, length};
        ssize_t n = write_list(socket, &list, 1);
        if (n < 0 && !cannot_write(connection, errno))
            return break_down(connection, errno);
        if (n < 0) {
            block(connection);
            return TB_AGAIN;
        }
        connection->out_sequence = sequence;
        left = length - (size_t)n;
    }
    if (rc != TB_ERR_PEER)
        tb_hop_ping_written(&connection->ping, socket, left);
    if (rc == TB_ERR_PEER || connection->codec != NULL || left == 0)
        return rc;
    struct tb_frame_buffer *rest = tb_frame_buffer_make(connection->hop_set->pool, (uint32_t)length);
    if (rest == NULL)
        return break_down(connection, ENOMEM);
    memcpy(rest->bytes, bytes, length);
    tb_list_append(&connection->out, &rest->node);
    connection->out_count = 1;
    connection->out_at = length - left;
    block(connection);
    return TB_AGAIN;
}

/* Fills `out` from the queue, as far as one write goes. */
static void pull(struct tb_hop_connection *connection)
{
    struct tb_hop_set *hop_set = connection->hop_set;
    size_t bytes = 0;
    while (connection->out_count < BATCH_FRAMES && bytes < connection->batch) {
        struct tb_frame_buffer *buffer = tb_queue_pull(connection->queue, (enum tb_stream)connection->stream);
        if (buffer == NULL)
            break;
        number(connection, buffer->bytes);
        hop_set->frames_out++;
        hop_set->bytes_out += buffer->length;
        bytes += buffer->length;
        tb_list_append(&connection->out, &buffer->node);
        connection->out_count++;
    }
}

static void drop_written(struct tb_hop_connection *connection, size_t n)
{
    while (n > 0) {
        struct tb_frame_buffer *buffer = TB_CONTAINER(connection->out.next, struct tb_frame_buffer, node);
        size_t part = buffer->length - connection->out_at;
        if (n < part) {
            connection->out_at += n;
            return;
        }
        n -= part;
        connection->out_at = 0;
        connection->out_count--;
        tb_list_remove(&buffer->node);
        tb_frame_buffer_free(connection->hop_set->pool, buffer);
    }
}

/* Writes `out` once. TB_OK: something was written; TB_AGAIN; TB_ERR_PEER. */
static int write_out(struct tb_hop_connection *connection)
{
    struct iovec list[BATCH_FRAMES];
    size_t count = 0, at = connection->out_at;
    struct tb_frame_buffer *buffer;
    TB_LIST_EACH (buffer, &connection->out, struct tb_frame_buffer, node) {
        list[count++] = (struct iovec){buffer->bytes + at, buffer->length - at};
        at = 0;
    }
    if (connection->codec != NULL) {
        size_t whole = 0;
        for (size_t i = 0; i < count; whole += list[i++].iov_len)
            if (encode(connection, list[i].iov_base, list[i].iov_len, i + 1 < count) != TB_OK)
                return TB_ERR_PEER;
        drop_written(connection, whole);
        return write_coded(connection);
    }
    ssize_t n = write_list(connection->watch.descriptor, list, count);
    if (n < 0 && !cannot_write(connection, errno))
        return break_down(connection, errno);
    if (n < 0) {
        block(connection);
        return TB_AGAIN;
    }
    drop_written(connection, (size_t)n);
    return TB_OK;
}

static void flush(struct tb_hop_connection *connection)
{
    if (write_coded(connection) != TB_OK)
        return;
    if (connection->codec != NULL && connection->codec->ready != NULL && !connection->codec->ready(connection->codec))
        return;
    for (int i = 0; i < TURN_WRITES; i++) {
        if (connection->out_count == 0 && tb_hop_ping_is_due(&connection->ping) && write_ping(connection) != TB_OK)
            return;
        if (connection->out_count == 0)
            pull(connection);
        if (connection->out_count == 0)
            return;
        if (write_out(connection) != TB_OK || block_if_full(connection))
            return;
    }
    if (connection->out_count > 0 || !tb_queue_empty(connection->queue, (enum tb_stream)connection->stream))
        block(connection); /* epoll says at once that it is writable, but others first */
}

bool tb_hop_connection_flush(struct tb_hop_connection *connection)
{
    flush(connection);
    return is_open(connection);
}

void tb_hop_connection_ask(struct tb_hop_connection *connection, uint32_t about)
{
    tb_hop_ping_ask(&connection->ping, about, tb_loop_now(connection->hop_set->loop));
    if (connection->ping.due && tb_hop_connection_is_ready(connection))
        flush(connection);
}

void tb_hop_connection_give_up(struct tb_hop_connection *connection, const char *why)
{
    tb_error(TB_ERR_PEER, "%s", why);
    connection_end(connection, TB_ERR_PEER);
}

void tb_hop_connection_say_bye(struct tb_hop_connection *connection)
{
    struct tb_hop bye = {.version = TB_WIRE_VERSION, .type = TB_HOP_BYE};
    char bytes[sizeof bye];
    tb_wire_put_hop(bytes, &bye);
    tb_hop_frame_number(bytes, connection->out_sequence, is_agent(connection));
    if (connection->codec != NULL)
        connection->codec->encode(connection->codec, connection, bytes, sizeof bytes, false);
    if (connection->codec != NULL && connection->coded_at < connection->coded_end)
        (void)!send(connection->watch.descriptor, connection->coded + connection->coded_at,
                    connection->coded_end - connection->coded_at, WRITE_FLAGS);
    else if (connection->codec == NULL && tb_list_empty(&connection->out))
        (void)!send(connection->watch.descriptor, bytes, sizeof bytes, WRITE_FLAGS);
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static int deliver(struct tb_hop_connection *connection, char *bytes, uint32_t length, bool more)
{
    struct tb_hop_set *hop_set = connection->hop_set;
    struct tb_envelope envelope;
    if (tb_wire_get_envelope(bytes + sizeof(struct tb_hop), &envelope) != TB_OK)
        return tb_hop_frame_nonsense(connection->proc, tb_error_story());
    connection->in_sequence++;
    struct tb_cargo cargo = {.bytes = bytes,
                             .length = length,
                             .envelope = &envelope,
                             .source = envelope.routing.source,
                             .destination = envelope.routing.destination,
                             .buffer = connection->in_buffer,
                             .more = more};
    connection->in_buffer = NULL;
    int rc = TB_OK;
    if (tb_hop_frame_count_pass(bytes))
        rc = hop_set->events.frame(hop_set->events.context, connection, &cargo);
    else
        tb_log(TB_LOG_DEBUG, "agent", "a message from process %u to process %u runs in circles, and is dropped",
               cargo.source.index, cargo.destination.index);
    tb_frame_buffer_free(hop_set->pool, cargo.buffer);
    return rc;
}

static void take_ping(struct tb_hop_connection *connection, const struct tb_hop *hop)
{
    const struct tb_hop_set_events *events = &connection->hop_set->events;
    connection->in_sequence++;
    tb_hop_ping_take(&connection->ping, hop);
    if ((hop->flags & TB_HOP_SMALL) != 0)
        events->small(events->context, connection->peer);
    events->asked(events->context, connection, hop->type == TB_HOP_PING ? hop->check : 0);
}

/* Goes on with the frame that the read before had only begun. Returns the bytes taken. */
static size_t fill_buffer(struct tb_hop_connection *connection, const char *bytes, size_t length)
{
    size_t part = connection->in_buffer->length - connection->in_have;
    if (part > length)
        part = length;
    memcpy(connection->in_buffer->bytes + connection->in_have, bytes, part);
    connection->in_have += (uint32_t)part;
    return part;
}

/* What is left at the end of a read: a part of header and envelope, or of a frame (`whole`) of which these are there.
 */
static int keep_rest(struct tb_hop_connection *connection, const char *bytes, size_t length, uint32_t whole)
{
    connection->in_have = (uint32_t)length;
    if (length < TB_FRAME_BUFFER_HEAD) {
        memcpy(connection->in_head, bytes, length);
        return TB_OK;
    }
    connection->in_buffer = tb_frame_buffer_make(connection->hop_set->pool, whole);
    if (connection->in_buffer == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory to forward messages");
    memcpy(connection->in_buffer->bytes, bytes, length);
    return TB_OK;
}

int tb_hop_connection_take(struct tb_hop_connection *connection, char *bytes, size_t length)
{
    char *at = bytes, *end = bytes + length;
    int rc;
    if (connection->in_buffer != NULL) {
        at += fill_buffer(connection, bytes, length);
        if (connection->in_have < connection->in_buffer->length)
            return TB_OK;
        rc = deliver(connection, connection->in_buffer->bytes, connection->in_buffer->length, at < end);
        if (rc != TB_OK || !is_open(connection))
            return rc;
    } else if (connection->in_have > 0) {
        at -= connection->in_have;
        memcpy(at, connection->in_head, connection->in_have);
    }
    connection->in_have = 0;
    uint32_t whole = 0;
    while ((size_t)(end - at) >= sizeof(struct tb_hop)) {
        struct tb_hop hop;
        rc = tb_hop_frame_look(at, connection->proc, connection->in_sequence, &hop);
        if (rc != TB_OK)
            return rc;
        whole = (uint32_t)sizeof hop + hop.length;
        if (hop.type != TB_HOP_ENVELOPE) {
            take_ping(connection, &hop);
            at += whole;
            continue;
        }
        if ((size_t)(end - at) < TB_FRAME_BUFFER_HEAD)
            break;
        rc = tb_hop_frame_is_whole(at, connection->proc, &hop);
        if (rc != TB_OK)
            return rc;
        if ((size_t)(end - at) < whole)
            break;
        rc = deliver(connection, at, whole, (size_t)(end - at) > whole);
        if (rc != TB_OK || !is_open(connection))
            return rc;
        at += whole;
    }
    return keep_rest(connection, at, (size_t)(end - at), whole);
}

static void connection_read(struct tb_hop_connection *connection)
{
    struct tb_hop_set *hop_set = connection->hop_set;
    char *into = hop_set->scratch + TB_FRAME_BUFFER_HEAD;
    ssize_t n;
    do {
        n = recv(connection->watch.descriptor, into, TB_HOP_SET_READ, MSG_DONTWAIT);
    } while (n < 0 && errno == EINTR);
    if (n < 0 && would_block(errno))
        return;
    if (n <= 0) {
        break_down(connection, n < 0 ? errno : 0);
        return;
    }
    connection->heard = tb_loop_now(hop_set->loop);
    int rc = connection->codec != NULL ? connection->codec->decode(connection->codec, connection, into, (size_t)n)
                                       : tb_hop_connection_take(connection, into, (size_t)n);
    if (is_open(connection) && rc == TB_OK && (connection->codec != NULL || connection->ping.pong_due))
        flush(connection);
    if (is_open(connection) && rc != TB_OK)
        connection_end(connection, rc);
}

static void connection_ready(struct tb_watch *watch, uint32_t events)
{
    struct tb_hop_connection *connection = TB_CONTAINER(watch, struct tb_hop_connection, watch);
    struct tb_hop_set *hop_set = connection->hop_set;
    tb_hop_set_bury(hop_set);
    if ((events & EPOLLOUT) != 0) {
        connection->blocked = false;
        flush(connection);
        if (is_open(connection) && !connection->blocked)
            watch_again(connection);
    }
    if (is_open(connection) && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0)
        connection_read(connection);
    hop_set->events.settle(hop_set->events.context);
}

/* ---- its beginning ----------------------------------------------------------------------------------------------- */

int tb_hop_connection_open(struct tb_hop_connection **opened, struct tb_hop_set *hop_set, int socket,
                           struct tb_codec *codec)
{
    struct tb_hop_connection *connection = calloc(1, sizeof *connection);
    int rc = connection != NULL ? tb_loop_watch(hop_set->loop, &connection->watch, socket, EPOLLIN, connection_ready)
                                : tb_error(TB_ERR_MEMORY, "no memory for a connection");
    if (rc != TB_OK) {
        free(connection);
        close(socket);
        if (codec != NULL)
            codec->close(codec);
        return rc;
    }
    connection->hop_set = hop_set;
    connection->codec = codec;
    connection->batch = TB_HOP_CONNECTION_BATCH;
    tb_list_init(&connection->node);
    tb_list_init(&connection->out);
    *opened = connection;
    return TB_OK;
}

int tb_hop_connection_begin(struct tb_hop_connection *connection)
{
    struct tb_codec *codec = connection->codec;
    if (codec == NULL || codec->begin == NULL)
        return TB_OK;
    int rc = codec->begin(codec, connection);
    if (rc != TB_OK)
        tb_hop_connection_close(connection);
    else
        write_coded(connection);
    return rc;
}
