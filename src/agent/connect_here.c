#include "agent/connect_here.h"

#include "agent/rank_memory.h"

#include <sys/socket.h>

#define PAIR_SHORT (64 << 10)  /* bytes that wait in the socket of a rank or its agent, */
#define PAIR_BULK  (256 << 10) /* of one stream */

/* A rank and its agent share a pair of Unix sockets: nobody else can get at it, and what was written stays readable
 * when its writer has ended. The buffers are bounds for what nobody can overtake any more. */
static int make_pair(const struct tb_member *member, enum tb_stream stream, int pair[2])
{
    int room = stream == TB_STREAM_BULK ? PAIR_BULK : PAIR_SHORT;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
        return tb_error_errno("host %s cannot connect a rank with its agent", member->name);
    for (int k = 0; k < 2; k++)
        setsockopt(pair[k], SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
    return TB_OK;
}

/* Two ranks of this host get memory of their own: first that, and then what they connect it by. */
static int share_memory(struct tb_dialer *dialer, struct tb_proc self, struct tb_proc to)
{
    const struct tb_dialer_events *events = &dialer->events;
    int memories[2], sockets[2], rc = tb_rank_memory_pair(dialer->member->name, memories, sockets);
    if (rc != TB_OK)
        return rc;
    for (int k = 0; k < 2; k++) {
        struct tb_connected end = {.self = k == 0 ? self : to, .proc = k == 0 ? to : self};
        end.stream = (enum tb_stream)TB_STREAM_MEMORY;
        end.socket = memories[k];
        events->connected(events->context, &end);
        end.stream = (enum tb_stream)TB_STREAM_PAIR;
        end.socket = sockets[k];
        events->connected(events->context, &end);
    }
    return TB_OK;
}

int tb_connect_here(struct tb_dialer *dialer, struct tb_proc self, struct tb_proc to, enum tb_stream stream)
{
    const struct tb_member *member = dialer->member;
    const struct tb_dialer_events *events = &dialer->events;
    bool for_agent = tb_proc_is_agent(self);
    if (!tb_proc_is_agent(to) && !events->has_rank(events->context, to.index))
        return tb_error(for_agent ? TB_ERR_CLOSED : TB_ERR_PEER, "rank %u on host %s has ended", to.index,
                        member->name);
    if ((uint32_t)stream == TB_STREAM_PAIR)
        return share_memory(dialer, self, to);
    int pair[2], rc = for_agent || tb_proc_is_agent(to) ? make_pair(member, stream, pair)
                                                        : tb_loopback_pair(&dialer->loopback, member->name, pair);
    if (rc != TB_OK)
        return rc;
    struct tb_connected ends[2] = {
        {.self = self, .proc = to, .stream = stream, .socket = pair[0], .dialed = for_agent},
        {.self = to, .proc = self, .stream = stream, .socket = pair[1], .dialed = for_agent}};
    for (int k = 0; k < 2; k++)
        events->connected(events->context, &ends[k]);
    return TB_OK;
}
