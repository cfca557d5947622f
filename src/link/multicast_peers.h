/* Peers: what is remembered of other processes that were heard of, as roots or as members that asked. All of it can be
 * forgotten and found out again, so there are few of them: who was not heard of for longest gives way. */
#ifndef TB_LINK_MULTICAST_PEERS_H
#define TB_LINK_MULTICAST_PEERS_H

#include "link/multicast.h"

#define TB_MULTICAST_PEER_BUCKETS 256u

struct tb_multicast_peer {
    struct tb_list in_bucket, in_order;
    uint32_t process;
    struct tb_multicast_address address; /* length 0: not known */
    /* As a member that asks: its last question. As a root: its last status. */
    uint64_t question, status;
    /* As a root. */
    uint32_t unheard;                         /* messages in a row of which no datagram came but repairs */
    uint64_t unheard_context, unheard_number; /* the last of them */
    uint64_t context, number;                 /* the last message that something was heard of */
    uint64_t wait, wait_deviation;            /* ns from beginning to receive to the first datagram; 0: not known */
    uint64_t answer;                          /* ns that it takes to answer, smoothed; 0: not known */
    uint64_t gap;                             /* ns between datagrams, smoothed */
    uint64_t overtaking;                      /* ns by which one was overtaken, the most of late */
};

struct tb_multicast_peers {
    struct tb_list buckets[TB_MULTICAST_PEER_BUCKETS];
    struct tb_list order; /* heard of last: last */
    uint32_t count, limit;
};

void tb_multicast_peers_open(struct tb_multicast_peers *p, uint32_t limit);
void tb_multicast_peers_close(struct tb_multicast_peers *p);
struct tb_multicast_peer *tb_multicast_peers_find(const struct tb_multicast_peers *p, uint32_t process);
/* Finds it, or makes it; NULL: there is no memory. */
struct tb_multicast_peer *tb_multicast_peers_get(struct tb_multicast_peers *p, uint32_t process);
void tb_multicast_peers_forget(struct tb_multicast_peers *p, uint32_t process);
/* A datagram that was new came from there, or a report says so. */
void tb_multicast_peer_learn(struct tb_multicast_peer *peer, const struct tb_multicast_address *address);
/* After this process began to receive, the first datagram of the root came so much later. */
void tb_multicast_peer_note_wait(struct tb_multicast_peer *peer, uint64_t waited);
void tb_multicast_peer_note_answer(struct tb_multicast_peer *peer, uint64_t took);
void tb_multicast_peer_note_gap(struct tb_multicast_peer *peer, uint64_t gap);
void tb_multicast_peer_note_overtaking(struct tb_multicast_peer *peer, uint64_t by);

#endif
