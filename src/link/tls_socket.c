#include "link/tls_socket.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define READ_BYTES   16384u
#define AHEAD_BYTES  65536u      /* that may wait before it has no room; */
#define QUEUED_LIMIT (16u << 20) /* whoever writes nevertheless ends it here */

struct tb_tls_socket {
    int descriptor;
    struct tb_tls *tls;
    bool ready;
    uint8_t *queued; /* encrypted bytes that wait for the socket */
    size_t start, end, room;
    uint8_t received[READ_BYTES];
};

/* Takes what TLS wants to send. */
static int put(void *context, const void *bytes, size_t length)
{
    struct tb_tls_socket *s = context;
    if (s->start > 0) {
        memmove(s->queued, s->queued + s->start, s->end - s->start);
        s->end -= s->start;
        s->start = 0;
    }
    if (s->room - s->end < length) {
        size_t wanted = s->end + length > 2 * s->room ? s->end + length : 2 * s->room;
        if (s->end + length > QUEUED_LIMIT)
            return tb_error(TB_ERR_LIMIT, "too much waits to be sent on an encrypted stream");
        uint8_t *grown = realloc(s->queued, wanted);
        if (grown == NULL)
            return tb_error(TB_ERR_MEMORY, "no memory for what is to be sent on an encrypted stream");
        s->queued = grown;
        s->room = wanted;
    }
    memcpy(s->queued + s->end, bytes, length);
    s->end += length;
    return TB_OK;
}

static void release(struct tb_tls_socket *s)
{
    tb_tls_close(s->tls);
    free(s->queued);
    free(s);
}

int tb_tls_socket_open(struct tb_tls_socket **socket, int descriptor, const struct tb_key *secret, bool connector)
{
    struct tb_tls_socket *s = calloc(1, sizeof *s);
    *socket = NULL;
    if (s == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for an encrypted stream");
    s->descriptor = descriptor;
    int rc = tb_tls_open(&s->tls, secret, connector, put, s);
    if (rc == TB_OK && connector) {
        rc = tb_tls_handshake(s->tls);
        rc = rc == TB_AGAIN ? TB_OK : rc;
    }
    if (rc != TB_OK) {
        release(s);
        return rc;
    }
    *socket = s;
    return TB_OK;
}

void tb_tls_socket_close(struct tb_tls_socket *s)
{
    if (s == NULL)
        return;
    if (s->ready && tb_tls_end(s->tls) == TB_OK)
        tb_tls_socket_flush(s);
    close(s->descriptor);
    release(s);
}

int tb_tls_socket_receive(struct tb_tls_socket *s)
{
    ssize_t n = recv(s->descriptor, s->received, sizeof s->received, MSG_DONTWAIT);
    if (n > 0)
        tb_tls_feed(s->tls, s->received, (size_t)n);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return TB_AGAIN;
    return n > 0 ? TB_OK : TB_ERR_CLOSED;
}

int tb_tls_socket_read(struct tb_tls_socket *s, void *bytes, size_t room, size_t *got)
{
    *got = 0;
    if (!s->ready) {
        int rc = tb_tls_handshake(s->tls);
        if (rc != TB_OK)
            return rc;
        s->ready = true;
    }
    return tb_tls_read(s->tls, bytes, room, got);
}

int tb_tls_socket_write(struct tb_tls_socket *s, const void *bytes, size_t length)
{
    return tb_tls_write(s->tls, bytes, length);
}

int tb_tls_socket_flush(struct tb_tls_socket *s)
{
    while (s->start < s->end) {
        ssize_t n = send(s->descriptor, s->queued + s->start, s->end - s->start, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n >= 0)
            s->start += (size_t)n;
        else if (errno == EAGAIN)
            return TB_AGAIN;
        else if (errno != EINTR)
            return TB_ERR_CLOSED;
    }
    s->start = s->end = 0;
    return TB_OK;
}

int tb_tls_socket_descriptor(const struct tb_tls_socket *s)
{
    return s->descriptor;
}

bool tb_tls_socket_is_ready(const struct tb_tls_socket *s)
{
    return s->ready;
}

bool tb_tls_socket_has_room(const struct tb_tls_socket *s)
{
    return s->end - s->start < AHEAD_BYTES;
}
