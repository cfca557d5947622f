#include "launch/tls_stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define READ_BYTES   65536
#define QUEUED_LIMIT (256u << 20)

/* Takes what TLS wants to send. */
static int put(void *context, const void *bytes, size_t length)
{
    struct tb_tls_stream *stream = context;
    if (stream->start == stream->end)
        stream->start = stream->end = 0;
    if (stream->room - stream->end < length && stream->start > 0) {
        memmove(stream->bytes, stream->bytes + stream->start, stream->end - stream->start);
        stream->end -= stream->start;
        stream->start = 0;
    }
    if (stream->room - stream->end < length) {
        size_t wanted = stream->end + length > 2 * stream->room ? stream->end + length : 2 * stream->room;
        uint8_t *grown = wanted <= QUEUED_LIMIT ? realloc(stream->bytes, wanted) : NULL;
        if (grown == NULL)
            return tb_error(TB_ERR_MEMORY, "no memory for what an agent is told");
        stream->bytes = grown;
        stream->room = wanted;
    }
    memcpy(stream->bytes + stream->end, bytes, length);
    stream->end += length;
    return TB_OK;
}

void tb_tls_stream_flush(struct tb_tls_stream *stream)
{
    while (stream->established && tb_control_stream_queued(stream->control) > 0 &&
           stream->end - stream->start < READ_BYTES) {
        size_t length;
        const void *bytes = tb_control_stream_take(stream->control, READ_BYTES, &length);
        if (tb_tls_write(stream->tls, bytes, length) != TB_OK)
            break; /* seen when reading */
    }
    bool full = false;
    while (stream->start < stream->end && !full) {
        ssize_t n = send(stream->watch.descriptor, stream->bytes + stream->start, stream->end - stream->start,
                         MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n > 0)
            stream->start += (size_t)n;
        else
            full = errno != EINTR;
    }
    bool more = stream->start < stream->end || (stream->established && tb_control_stream_queued(stream->control) > 0);
    tb_loop_change(stream->loop, &stream->watch, more ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

/* What was fed; TB_AGAIN: all of it was used. */
static int decrypt(struct tb_tls_stream *stream)
{
    static uint8_t plain[READ_BYTES];
    struct tb_tls *tls = stream->tls;
    size_t got;
    int rc = TB_OK;
    if (!stream->established) {
        rc = tb_tls_handshake(tls);
        stream->established = rc == TB_OK;
    }
    while (rc == TB_OK && stream->tls == tls && (rc = tb_tls_read(tls, plain, sizeof plain, &got)) == TB_OK)
        stream->events.received(stream->events.context, plain, got);
    return rc;
}

static void socket_ready(struct tb_watch *watch, uint32_t events)
{
    static uint8_t bytes[READ_BYTES];
    struct tb_tls_stream *stream = TB_CONTAINER(watch, struct tb_tls_stream, watch);
    if (events & ~(uint32_t)EPOLLOUT) {
        ssize_t n = recv(watch->descriptor, bytes, sizeof bytes, MSG_DONTWAIT);
        int rc = TB_AGAIN;
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
            rc = TB_ERR_CLOSED;
        } else if (n > 0) {
            tb_tls_feed(stream->tls, bytes, (size_t)n);
            rc = decrypt(stream);
        }
        if (rc != TB_AGAIN && rc != TB_OK)
            stream->events.ended(stream->events.context);
    }
    if (tb_tls_stream_is_open(stream))
        tb_tls_stream_flush(stream);
}

int tb_tls_stream_open(struct tb_tls_stream *stream, struct tb_loop *loop, int socket, const struct tb_key *secret,
                       struct tb_control_stream *control, const struct tb_tls_stream_events *events)
{
    *stream = (struct tb_tls_stream){.loop = loop, .watch.descriptor = -1, .control = control, .events = *events};
    int rc = tb_tls_open(&stream->tls, secret, false, put, stream);
    if (rc == TB_OK)
        rc = tb_loop_watch(loop, &stream->watch, socket, EPOLLIN, socket_ready);
    if (rc != TB_OK) {
        tb_tls_close(stream->tls);
        stream->tls = NULL;
    }
    return rc;
}

void tb_tls_stream_close(struct tb_tls_stream *stream)
{
    int socket = stream->watch.descriptor;
    if (!tb_tls_stream_is_open(stream))
        return;
    if (stream->established && tb_tls_end(stream->tls) == TB_OK)
        tb_tls_stream_flush(stream);
    tb_loop_unwatch(stream->loop, &stream->watch);
    close(socket);
    tb_tls_close(stream->tls);
    free(stream->bytes);
    *stream = (struct tb_tls_stream){.watch.descriptor = -1};
}
