#include "transport/mcast/sender.h"

#include "transport/mcast/group_sockets.h"

#include <errno.h>

#define TRIES 4 /* what the network said of earlier datagrams comes as an error of later ones */

static void prepare(struct tb_mcast_sender *s, const union tb_mcast_address *to, const struct tb_mcast_datagram *d,
                    uint32_t which)
{
    struct tb_datagram head = d->head;
    struct iovec *parts = s->parts[which];
    head.job = s->job;
    head.sender = s->self;
    tb_datagram_put(s->heads[which], &head, s->key, d->payload, d->length);
    parts[0] = (struct iovec){.iov_base = s->heads[which], .iov_len = TB_DATAGRAM_BYTES};
    parts[1] = (struct iovec){.iov_base = (void *)d->payload, .iov_len = d->length};
    s->messages[which].msg_hdr = (struct msghdr){.msg_name = (void *)to,
                                                 .msg_namelen = tb_mcast_address_bytes(to),
                                                 .msg_iov = parts,
                                                 .msg_iovlen = d->length > 0 ? 2 : 1};
}

/* The same datagram would meet it again. */
static bool is_lasting(int error)
{
    return error == EAGAIN || error == EWOULDBLOCK || error == ENOBUFS || error == ENOMEM || error == EMSGSIZE;
}

uint32_t tb_mcast_sender_send(struct tb_mcast_sender *s, const union tb_mcast_address *to,
                              const struct tb_mcast_datagram *datagrams, uint32_t count, uint64_t *bytes, int *error)
{
    uint32_t done = 0;
    int tries = 0;
    for (uint32_t i = 0; i < count; i++)
        prepare(s, to, &datagrams[i], i);
    *bytes = 0;
    *error = 0;
    while (done < count) {
        int n = sendmmsg(s->socket, s->messages + done, count - done, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            *error = errno;
            if (*error != EAGAIN && *error != EWOULDBLOCK)
                tb_mcast_sockets_forget_errors(s->socket);
            if (is_lasting(*error) || ++tries == TRIES)
                break;
            continue;
        }
        for (int i = 0; i < n; i++)
            *bytes += TB_DATAGRAM_BYTES + datagrams[done + (uint32_t)i].length;
        done += (uint32_t)n;
        tries = 0;
    }
    return done;
}
