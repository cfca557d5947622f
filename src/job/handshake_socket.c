#include "job/job.h"

#include <errno.h>

int tb_handshake_socket_receive(struct tb_handshake *h, int socket)
{
    uint8_t bytes[sizeof(struct tb_hello)];
    size_t wants;
    while ((wants = tb_handshake_wants(h)) > 0) {
        ssize_t n = recv(socket, bytes, wants, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN ? TB_AGAIN : TB_ERR_SYSTEM;
        if (n == 0)
            return TB_ERR_CLOSED;
        tb_handshake_feed(h, bytes, (size_t)n);
    }
    return TB_OK;
}

int tb_handshake_socket_send(struct tb_handshake *h, int socket)
{
    size_t length;
    const void *bytes = tb_handshake_output(h, &length);
    ssize_t n = length > 0 ? send(socket, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT) : 0;
    return n == (ssize_t)length ? TB_OK : TB_ERR_CLOSED;
}

int tb_handshake_socket_welcome(struct tb_handshake *h, struct tb_nonces *nonces, int socket)
{
    int rc = tb_nonces_add(nonces, h->hello.nonce);
    if (rc == TB_OK)
        rc = tb_handshake_answer(h, TB_WELCOME_OK, 0, false);
    return rc == TB_OK ? tb_handshake_socket_send(h, socket) : rc;
}
