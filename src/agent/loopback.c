#include "agent/loopback.h"

#include "job/job.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <unistd.h>

#define STRANGERS_MOST 4096 /* that may be in the way */
#define WAIT_MS        200

void tb_loopback_open(struct tb_loopback *loopback)
{
    loopback->listener = -1;
}

static int begin(struct tb_loopback *loopback)
{
    struct tb_address address = {.family = 4, .bytes = {127, 0, 0, 1}};
    struct sockaddr_storage name;
    socklen_t length = tb_address_socket(&address, &name);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&name, length) < 0 || listen(fd, SOMAXCONN) < 0) {
        int rc = tb_error_errno("cannot listen on 127.0.0.1");
        if (fd >= 0)
            close(fd);
        return rc;
    }
    loopback->listener = fd;
    return TB_OK;
}

/* Accepts until the caller has this name. Who else connects to our port is recognised by his own, and closed. -1: errno
 * says why. */
static int accept_from(int listener, const struct sockaddr_in *caller)
{
    for (int i = 0; i < STRANGERS_MOST;) {
        struct sockaddr_in theirs = {0};
        socklen_t length = sizeof theirs;
        int fd = accept4(listener, (struct sockaddr *)&theirs, &length, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0 && errno == EAGAIN) {
            struct pollfd wait = {.fd = listener, .events = POLLIN};
            if (poll(&wait, 1, WAIT_MS) > 0)
                continue;
            errno = ETIMEDOUT;
            return -1;
        }
        if (fd < 0 && errno != EINTR && errno != ECONNABORTED)
            return -1;
        if (fd < 0)
            continue;
        if (theirs.sin_port == caller->sin_port && theirs.sin_addr.s_addr == caller->sin_addr.s_addr)
            return fd;
        close(fd);
        i++;
    }
    errno = EBUSY;
    return -1;
}

int tb_loopback_pair(struct tb_loopback *loopback, const char *host, int pair[2])
{
    int rc = loopback->listener >= 0 ? TB_OK : begin(loopback);
    pair[0] = pair[1] = -1;
    if (rc != TB_OK)
        return rc;
    struct sockaddr_in name = {0}, ours = {0};
    socklen_t length = sizeof name;
    getsockname(loopback->listener, (struct sockaddr *)&name, &length);
    /* Whoever waits there already is a stranger, and would fill the queue. */
    int stranger;
    for (int i = 0; i < STRANGERS_MOST && (stranger = accept4(loopback->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0; i++)
        close(stranger);
    pair[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    length = sizeof ours;
    if (pair[0] >= 0 && (connect(pair[0], (struct sockaddr *)&name, sizeof name) == 0 || errno == EINPROGRESS) &&
        getsockname(pair[0], (struct sockaddr *)&ours, &length) == 0)
        pair[1] = accept_from(loopback->listener, &ours);
    if (pair[1] < 0) {
        rc = tb_error_errno("cannot connect two ranks of host %s over TCP", host);
        if (pair[0] >= 0)
            close(pair[0]);
        return rc;
    }
    int on = 1;
    for (int k = 0; k < 2; k++)
        setsockopt(pair[k], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return TB_OK;
}

void tb_loopback_close(struct tb_loopback *loopback)
{
    if (loopback->listener >= 0)
        close(loopback->listener);
    loopback->listener = -1;
}
