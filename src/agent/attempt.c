#include "agent/attempt.h"

#include "agent/packet_size.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <unistd.h>

int tb_attempt_take(struct tb_attempt *attempt)
{
    int socket = attempt->watch.descriptor;
    tb_loop_unwatch(attempt->loop, &attempt->watch);
    return socket;
}

bool tb_attempt_is_open(const struct tb_attempt *attempt)
{
    return attempt->watch.descriptor >= 0;
}

void tb_attempt_close(struct tb_attempt *attempt)
{
    if (tb_attempt_is_open(attempt))
        close(tb_attempt_take(attempt));
}

static void end(struct tb_attempt *attempt, enum tb_attempt_event event)
{
    tb_attempt_close(attempt);
    attempt->event(attempt, event);
}

static void fail(struct tb_attempt *attempt, int error, enum tb_attempt_event event)
{
    attempt->error = error;
    end(attempt, event);
}

/* The connection is there (or not): say hello. False: it is over. */
static bool greet(struct tb_attempt *attempt)
{
    int error = 0, on = 1, socket = attempt->watch.descriptor;
    socklen_t length = sizeof error;
    getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &length);
    if (error != 0) {
        fail(attempt, error, TB_ATTEMPT_FAILED);
        return false;
    }
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (tb_handshake_connect(&attempt->handshake, attempt->key, attempt->source, attempt->destination, attempt->stream,
                             attempt->features) != TB_OK) {
        end(attempt, TB_ATTEMPT_TROUBLE);
        return false;
    }
    if (tb_handshake_socket_send(&attempt->handshake, socket) != TB_OK) {
        fail(attempt, errno, TB_ATTEMPT_DROPPED);
        return false;
    }
    attempt->greeted = true;
    tb_loop_change(attempt->loop, &attempt->watch, EPOLLIN);
    return true;
}

static void judge(struct tb_attempt *attempt)
{
    const struct tb_handshake *h = &attempt->handshake;
    switch (h->verdict) {
    case TB_HANDSHAKE_WELCOMED:
        attempt->event(attempt, TB_ATTEMPT_WELCOMED);
        break;
    case TB_HANDSHAKE_DONE:
        attempt->event(attempt, TB_ATTEMPT_CONNECTED);
        break;
    case TB_HANDSHAKE_REFUSED:
        end(attempt, TB_ATTEMPT_REFUSED);
        break;
    default:
        end(attempt, attempt->confirmed             ? TB_ATTEMPT_NONSENSE
                     : h->error == TB_ERR_FORBIDDEN ? TB_ATTEMPT_STRANGER
                                                    : TB_ATTEMPT_VERSION);
        break;
    }
}

static void attempt_ready(struct tb_watch *watch, uint32_t events)
{
    struct tb_attempt *attempt = TB_CONTAINER(watch, struct tb_attempt, watch);
    if (!attempt->greeted && !greet(attempt))
        return;
    int rc = tb_handshake_socket_receive(&attempt->handshake, watch->descriptor);
    if (rc == TB_OK)
        judge(attempt);
    else if (rc == TB_ERR_CLOSED)
        end(attempt, TB_ATTEMPT_CLOSED);
    else if (rc == TB_ERR_SYSTEM)
        fail(attempt, errno, TB_ATTEMPT_FAILED);
}

int tb_attempt_open(struct tb_attempt *attempt, const struct tb_member *member, const struct tb_address *address)
{
    struct sockaddr_storage name;
    socklen_t length = tb_address_socket(address, &name);
    attempt->loop = member->loop;
    attempt->key = member->key;
    attempt->watch.descriptor = -1;
    attempt->greeted = attempt->confirmed = false;
    attempt->error = 0;
    int fd = socket(name.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return TB_ERR_SYSTEM;
    if (attempt->small)
        tb_packet_size_make_small(fd);
    if (connect(fd, (struct sockaddr *)&name, length) < 0 && errno != EINPROGRESS) {
        int error = errno;
        close(fd);
        errno = error;
        return TB_ERR_SYSTEM;
    }
    if (tb_loop_watch(attempt->loop, &attempt->watch, fd, EPOLLOUT, attempt_ready) != TB_OK) {
        close(fd);
        attempt->watch.descriptor = -1;
        return TB_ERR_LIMIT;
    }
    return TB_OK;
}

bool tb_attempt_confirm(struct tb_attempt *attempt)
{
    if (tb_handshake_confirm(&attempt->handshake) == TB_OK &&
        tb_handshake_socket_send(&attempt->handshake, attempt->watch.descriptor) == TB_OK) {
        attempt->confirmed = true;
        return true;
    }
    tb_attempt_close(attempt);
    return false;
}
