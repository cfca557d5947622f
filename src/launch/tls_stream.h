/* The TLS stream of an agent that somebody has started by hand: it lies between a socket and a control stream, whose
 * queued bytes it encrypts and sends. What comes is decrypted and reported. Belongs to the host agent in which it is
 * embedded; the one thread of the launcher. It may be closed from inside its own callbacks. */
#ifndef TB_LAUNCH_TLS_STREAM_H
#define TB_LAUNCH_TLS_STREAM_H

#include "job/job.h"
#include "link/link.h"
#include "remote/remote.h"

struct tb_tls_stream_events {
    void *context;
    void (*received)(void *context, const void *bytes, size_t length);
    /* TB_ERR_CLOSED: by the other side, or by the network; else because it makes no sense, and there is a story. */
    void (*ended)(void *context, int error);
};

struct tb_tls_stream {
    struct tb_loop *loop;
    struct tb_watch watch;
    struct tb_tls_socket *tls; /* NULL: not open */
    struct tb_control_stream *control;
    struct tb_tls_stream_events events;
};

/* `connector`: we have opened the connection, and say the first words with the next flush. TB_ERR_UNSUPPORTED with a
 * story where libssl cannot be used. After an error it is not open, and the socket stays the caller's. */
int tb_tls_stream_open(struct tb_tls_stream *stream, struct tb_loop *loop, int socket, const struct tb_key *secret,
                       bool connector, struct tb_control_stream *control, const struct tb_tls_stream_events *events);
/* Tells the other side that nothing more comes. Harmless when it is not open. */
void tb_tls_stream_close(struct tb_tls_stream *stream);
void tb_tls_stream_flush(struct tb_tls_stream *stream);

static inline bool tb_tls_stream_is_open(const struct tb_tls_stream *stream)
{
    return stream->tls != NULL;
}

#endif
