#include "launch/tls_stream.h"

#define READ_BYTES 65536

void tb_tls_stream_flush(struct tb_tls_stream *stream)
{
    /* An error here is seen, and told, when reading. */
    int rc = TB_OK;
    while (rc == TB_OK && tb_tls_socket_is_ready(stream->tls) && tb_tls_socket_has_room(stream->tls) &&
           tb_control_stream_queued(stream->control) > 0) {
        size_t length;
        const void *bytes = tb_control_stream_take(stream->control, READ_BYTES, &length);
        rc = tb_tls_socket_write(stream->tls, bytes, length);
    }
    bool more = tb_tls_socket_flush(stream->tls) == TB_AGAIN ||
                (rc == TB_OK && tb_tls_socket_is_ready(stream->tls) && tb_control_stream_queued(stream->control) > 0);
    tb_loop_change(stream->loop, &stream->watch, more ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

/* What has come; TB_AGAIN: all of it was used, or it was closed meanwhile. */
static int decrypt(struct tb_tls_stream *stream)
{
    static uint8_t plain[READ_BYTES];
    struct tb_tls_socket *tls = stream->tls;
    size_t got;
    int rc = TB_OK;
    while (stream->tls == tls && (rc = tb_tls_socket_read(tls, plain, sizeof plain, &got)) == TB_OK)
        stream->events.received(stream->events.context, plain, got);
    return rc == TB_OK ? TB_AGAIN : rc;
}

static void socket_ready(struct tb_watch *watch, uint32_t events)
{
    struct tb_tls_stream *stream = TB_CONTAINER(watch, struct tb_tls_stream, watch);
    if (events & ~(uint32_t)EPOLLOUT) {
        int rc = tb_tls_socket_receive(stream->tls);
        if (rc == TB_OK)
            rc = decrypt(stream);
        if (rc != TB_AGAIN)
            stream->events.ended(stream->events.context, rc);
    }
    if (tb_tls_stream_is_open(stream))
        tb_tls_stream_flush(stream);
}

int tb_tls_stream_open(struct tb_tls_stream *stream, struct tb_loop *loop, int socket, const struct tb_key *secret,
                       bool connector, struct tb_control_stream *control, const struct tb_tls_stream_events *events)
{
    *stream = (struct tb_tls_stream){.loop = loop, .watch.descriptor = -1, .control = control, .events = *events};
    int rc = tb_loop_watch(loop, &stream->watch, socket, EPOLLIN, socket_ready);
    if (rc == TB_OK)
        rc = tb_tls_socket_open(&stream->tls, socket, secret, connector);
    if (rc != TB_OK)
        tb_loop_unwatch(loop, &stream->watch);
    return rc;
}

void tb_tls_stream_close(struct tb_tls_stream *stream)
{
    if (!tb_tls_stream_is_open(stream))
        return;
    tb_loop_unwatch(stream->loop, &stream->watch);
    tb_tls_socket_close(stream->tls);
    *stream = (struct tb_tls_stream){.watch.descriptor = -1};
}
