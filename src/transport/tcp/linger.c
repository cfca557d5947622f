#include "transport/tcp/linger.h"

#include <errno.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#define DRAIN_ROUNDS 64 /* what the other side has sent in vain is read to keep its kernel and ours from a reset */

/* Reads and forgets what the other side has sent: closing a socket with unread bytes sends a reset, which would destroy
 * what we have sent. True: the other side has ended too, so nothing more can come. */
static bool drain(struct tb_connection *c)
{
    for (int round = 0; round < DRAIN_ROUNDS; round++) {
        ssize_t n = recv(c->descriptor, c->hub->scratch, TB_HUB_SCRATCH, MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
            return true;
        if (n < 0 && errno == EAGAIN)
            return false;
    }
    return false;
}

/* A frame that reaches a closed socket is answered with a reset too. That harms nobody when all that we have sent (but
 * for the goodbye) has been acknowledged by the other kernel, or when the other side has ended. Otherwise wait for one
 * of the two, but not long: this is the end of a process. */
void tb_connection_linger(struct tb_connection *c, uint64_t until)
{
    int unsent = 0, goodbye = sizeof(struct tb_hop) + 1;
    if (c->here.any.sa_family == AF_UNIX) { /* what was written to it stays readable, whatever we do */
        drain(c);
        return;
    }
    while (!drain(c) && ioctl(c->descriptor, SIOCOUTQ, &unsent) == 0 && unsent > goodbye &&
           tb_clock_now_real() < until) {
        struct pollfd wait = {.fd = c->descriptor, .events = POLLIN};
        poll(&wait, 1, 1);
    }
}
