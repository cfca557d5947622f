/* All connections between this agent and one other process, a rank or another agent, of both streams, and the queue of
 * what waits for them. Belongs to a neighbour of the forwarder, and to the agent's one thread. */
#ifndef TB_AGENT_HOP_PEER_H
#define TB_AGENT_HOP_PEER_H

#include "agent/connected.h"
#include "agent/hop_connection.h"
#include "agent/packet_size.h"

#define TB_HOP_PEER_CONNECTIONS (4u * TB_STRIPES_LIMIT) /* all connections of a peer */

struct tb_hop_peer {
    struct tb_hop_set *hop_set;
    struct tb_proc proc;
    struct tb_list connections[TB_STREAM_COUNT]; /* the one to write to first is in front */
    struct tb_queue queue;
    struct tb_packet_size packet_size;
    uint64_t dead_since[TB_STREAM_COUNT]; /* its last connection passed nothing, or none can be made, though the agent
                                             answers */
};

void tb_hop_peer_open(struct tb_hop_peer *peer, struct tb_hop_set *hop_set, struct tb_proc proc);
/* Says goodbye on all connections, closes them without a call up, and drops what waits. */
void tb_hop_peer_close(struct tb_hop_peer *peer);
/* Takes the socket, and the codec if there is one, in any case. One of the same stream, stripe and side that is there
 * already is replaced. */
int tb_hop_peer_adopt(struct tb_hop_peer *peer, enum tb_stream stream, uint32_t stripe, bool ours, int socket,
                      struct tb_codec *codec);
/* Writes a frame at once. TB_OK: done (cargo->buffer may have been taken). TB_AGAIN: no connection takes it now,
 * the caller may queue it. */
int tb_hop_peer_send(struct tb_hop_peer *peer, enum tb_stream stream, struct tb_cargo *cargo);
/* Lets connections that are not blocked pull what is queued. */
void tb_hop_peer_flush(struct tb_hop_peer *peer, enum tb_stream stream);
static inline bool tb_hop_peer_is_agent(const struct tb_hop_peer *peer)
{
    return (peer->proc.index & TB_PROC_AGENT) != 0;
}
/* Asks on every connection that does not wait for an answer already. */
void tb_hop_peer_ask(struct tb_hop_peer *peer, uint32_t about);
/* When a connection that waits for an answer was asked, or what was sent on it before was last seen to arrive; of
 * several the latest, 0: none waits. One that has been silent for too long is closed, as if it had broken. That is much
 * sooner if others answer `again` after a silence of all: the kernel repeats ever more seldom what a cut has swallowed,
 * and a new connection is there before. One that is silent while others of the same agent answer is closed sooner, too;
 * if the kernel repeats in vain what was sent on it, small packets are used from then on. */
uint64_t tb_hop_peer_progress(struct tb_hop_peer *peer, bool again);
/* Since when connections with small packets stand still, or a stream has no connection that passes anything, though the
 * agent answers on others; 0: not so. *why: what stands in the way. */
uint64_t tb_hop_peer_stuck_since(struct tb_hop_peer *peer, const char **why);
/* The stream has lost all its connections in this way: a new one is wanted, even if nobody has anything to send. */
bool tb_hop_peer_is_dead(const struct tb_hop_peer *peer, enum tb_stream stream);
/* Frames have waited since then for a connection of this stream, over a way of this latency (ns). If the agent answers
 * on others all the while, the stream is as dead as one that has one which passes nothing. */
void tb_hop_peer_miss(struct tb_hop_peer *peer, enum tb_stream stream, uint64_t since, uint64_t latency);
/* Connections use small packets from now on, and the other side is told. */
void tb_hop_peer_use_small(struct tb_hop_peer *peer);
/* The kernel repeats what it has written to one of the connections, again and again without an answer. */
bool tb_hop_peer_stalled(const struct tb_hop_peer *peer);

#endif
