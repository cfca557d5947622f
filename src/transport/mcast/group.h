/* A multicast group as one process uses it: two UDP sockets. One is bound to the address of the group and hears; from
 * the other one everything is sent, and what is meant for this process alone comes to it. Datagrams are checked,
 * counted and handed up, and that is all: whatever is lost, repeated, late or out of order is the business of the
 * owner.
 *
 * Nothing here blocks. A group belongs to one engine or agent, which serialises all calls; calls up are made only from
 * inside poll.
 *
 * Own datagrams do not come back: they are not looped to this host at all, so that other processes of the host do not
 * hear them either; of a host one rank hears. */
#ifndef TB_TRANSPORT_MCAST_GROUP_H
#define TB_TRANSPORT_MCAST_GROUP_H

#include "transport/mcast/arrival.h"
#include "transport/mcast/membership.h"

#define TB_MCAST_RECEIVE_BYTES (4u << 20) /* that the kernel is asked to hold for a rank */

struct tb_mcast_group;

struct tb_mcast_config {
    union tb_mcast_address group; /* with its port */
    union tb_mcast_address local; /* of this host, of the same family; its port is not looked at */
    uint32_t interface;           /* the index of the one that has it */
    uint8_t hops;                 /* how many networks datagrams may cross; 1: they pass no router */
    bool join;                    /* else another process of this host holds the membership */
    uint32_t job, self;
    struct tb_siphash_key key;
    uint32_t receive_buffer, send_buffer; /* bytes that the kernel should hold, if it allows it; 0: what is usual */
    const char *faults; /* to inject, for tests, as in faults.h; NULL or "": none. Not needed after opening */
    const struct tb_clock *clock;
    struct tb_mcast_upcalls upcalls;
};

/* A datagram to send. Its header's job and sender are filled in. */
struct tb_mcast_datagram {
    struct tb_datagram head;
    const void *payload;
    size_t length;
};

struct tb_mcast_counters {
    uint64_t sent, sent_bytes;                /* datagrams that the kernel has taken; headers included */
    uint64_t full;                            /* how often it took fewer than it was given */
    uint64_t received, received_bytes;        /* right ones; injected faults come later */
    uint64_t placed;                          /* of these, how many came straight to where they were expected */
    uint64_t forged, foreign, malformed, own; /* the others: a wrong check; another job; nothing of ours; our own */
    uint64_t lost, repeated, reordered;       /* by injected faults */
};

/* Opens. On error nothing is left open. TB_ERR_UNSUPPORTED: the interface takes too short datagrams. */
int tb_mcast_group_open(struct tb_mcast_group **group, const struct tb_mcast_config *config);
void tb_mcast_group_close(struct tb_mcast_group *g);

/* How many bytes of payload a datagram can have, so that it is not longer than the interface takes. */
uint16_t tb_mcast_group_piece(const struct tb_mcast_group *g);
/* How many bytes the kernel holds for us, as it counts them; 0: not known. */
uint32_t tb_mcast_group_buffer(const struct tb_mcast_group *g);
/* How many datagrams with so many bytes of payload it surely holds in these before it drops one. */
uint32_t tb_mcast_holds(uint32_t buffer, uint32_t piece);
/* How many it has dropped so far, since it held too many. */
uint64_t tb_mcast_group_overflowed(const struct tb_mcast_group *g);
/* Where others reach this process alone. */
const union tb_mcast_address *tb_mcast_group_own(const struct tb_mcast_group *g);

/* Sends datagrams to one process, or to the group if `to` is NULL. Returns how many have left; their payloads are no
 * longer needed. If these are fewer than given, `writable` follows: the kernel is full, or the next one has an error,
 * which is then told. TB_ERR_LIMIT: the first one is longer than the interface takes, which may have changed:
 * tb_mcast_group_piece says what it takes now. TB_ERR_SYSTEM: nothing can be sent, as when the interface is down. */
int tb_mcast_group_send(struct tb_mcast_group *g, const union tb_mcast_address *to,
                        const struct tb_mcast_datagram *datagrams, uint32_t count);

/* Takes what has come, a bounded number of datagrams, and hands up what is right; renews the membership when it is
 * time. Returns how many were right. */
int tb_mcast_group_poll(struct tb_mcast_group *g);
/* Sleeping: the owner waits until the descriptor is readable or the deadline has passed, then polls. */
int tb_mcast_group_descriptor(const struct tb_mcast_group *g);
uint64_t tb_mcast_group_deadline(const struct tb_mcast_group *g);

const struct tb_mcast_counters *tb_mcast_group_counters(struct tb_mcast_group *g);

#endif
