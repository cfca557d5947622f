#include "agent/hop_ping.h"

#include <linux/sockios.h>
#include <netinet/in.h>
#include <linux/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

/* False: the socket cannot tell (it is no TCP socket, as in tests), and what was written counts as arrived. */
static bool acknowledged(int socket, uint64_t *bytes)
{
    struct tcp_info info = {0};
    socklen_t length = sizeof info;
    if (getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &length) != 0)
        return false;
    *bytes = info.tcpi_bytes_acked;
    return true;
}

void tb_hop_ping_ask(struct tb_hop_ping *ping, uint32_t about, uint64_t now)
{
    if (ping->asked_at != 0)
        return;
    ping->nonce++;
    ping->about = about;
    ping->due = true;
    ping->asked_at = now;
    ping->acked_at = 0;
    ping->position = UINT64_MAX;
}

size_t tb_hop_ping_put(const struct tb_hop_ping *ping, char *bytes, uint32_t *sequence)
{
    size_t length = 0;
    struct tb_hop hop = {.version = TB_WIRE_VERSION, .flags = ping->small ? TB_HOP_SMALL : 0};
    if (ping->pong_due) {
        hop.type = TB_HOP_PONG;
        hop.credit = ping->owed;
        hop.sequence = (*sequence)++;
        tb_wire_put_hop(bytes, &hop);
        length += sizeof hop;
    }
    if (ping->due) {
        hop.type = TB_HOP_PING;
        hop.credit = ping->nonce;
        hop.check = ping->about;
        hop.sequence = (*sequence)++;
        tb_wire_put_hop(bytes + length, &hop);
        length += sizeof hop;
    }
    return length;
}

void tb_hop_ping_written(struct tb_hop_ping *ping, int socket, size_t left)
{
    int queued = 0;
    uint64_t acked = 0;
    bool pinged = ping->due;
    ping->due = ping->pong_due = false;
    if (!pinged)
        return;
    bool known = acknowledged(socket, &acked) && ioctl(socket, SIOCOUTQ, &queued) == 0;
    ping->position = known ? acked + (uint64_t)queued + left : 0;
    ping->acked = acked;
}

void tb_hop_ping_take(struct tb_hop_ping *ping, const struct tb_hop *hop)
{
    if (hop->type == TB_HOP_PING) { /* a second one before the answer has left replaces the first: nothing grows */
        ping->owed = hop->credit;
        ping->pong_due = true;
    } else if (hop->credit == ping->nonce && !ping->due) {
        ping->asked_at = 0;
    }
}

uint64_t tb_hop_ping_since(struct tb_hop_ping *ping, int socket, uint64_t now)
{
    uint64_t acked;
    if (ping->asked_at == 0)
        return 0;
    if (acknowledged(socket, &acked) && acked > ping->acked) {
        if (ping->acked + TB_HOP_PING_BYTES < ping->position) /* something was before it, and becomes less */
            ping->acked_at = now;
        ping->acked = acked;
    }
    return ping->acked_at > ping->asked_at ? ping->acked_at : ping->asked_at;
}
