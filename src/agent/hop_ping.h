/* Whether the agent at the other end of a connection answers: the PING that we have sent there and the PONG that we
 * owe. A connection that is open may pass nothing: its wire is cut, or whatever stands between stops and still
 * acknowledges.
 *
 * On a slow wire a PING waits behind what the kernel took before it. So the time without an answer begins anew as long
 * as the kernel hears that this becomes less. A part of a connection of the forwarder; one thread. */
#ifndef TB_AGENT_HOP_PING_H
#define TB_AGENT_HOP_PING_H

#include "wire/wire.h"

#define TB_HOP_PING_BYTES (2 * sizeof(struct tb_hop)) /* a PING and a PONG */

struct tb_hop_ping {
    uint32_t nonce, about; /* of our PING; see TB_HOP_ABOUT */
    uint32_t owed;         /* the nonce of theirs */
    bool due, pong_due;    /* to be written */
    bool small;            /* they say that only small packets pass */
    uint64_t asked_at;     /* when we began to wait for an answer; 0: we do not */
    uint64_t position; /* so many bytes acknowledged mean that our PING has arrived; UINT64_MAX: it is not written */
    uint64_t acked;    /* the most that was seen */
    uint64_t acked_at; /* when that last grew before the PING had arrived */
};

/* Another PING, unless one is under way. */
void tb_hop_ping_ask(struct tb_hop_ping *ping, uint32_t about, uint64_t now);
static inline bool tb_hop_ping_is_due(const struct tb_hop_ping *ping)
{
    return ping->due || ping->pong_due;
}
/* What is due, as frames with the next numbers; TB_HOP_PING_BYTES of room. Returns the bytes. */
size_t tb_hop_ping_put(const struct tb_hop_ping *ping, char *bytes, uint32_t *sequence);
/* That was written to the socket, up to `left` bytes that follow. */
void tb_hop_ping_written(struct tb_hop_ping *ping, int socket, size_t left);
void tb_hop_ping_take(struct tb_hop_ping *ping, const struct tb_hop *hop); /* a PING or a PONG has come */
/* Since when an answer is waited for that should have come; 0: for none. */
uint64_t tb_hop_ping_since(struct tb_hop_ping *ping, int socket, uint64_t now);

#endif
