/* Sends datagrams of one process, many with a system call, without copying payloads. Belongs to the thread of its
 * group. */
#ifndef TB_TRANSPORT_MCAST_SENDER_H
#define TB_TRANSPORT_MCAST_SENDER_H

#include "transport/mcast/batch.h"
#include "transport/mcast/group.h"

struct tb_mcast_sender {
    int socket;
    uint32_t job, self;
    const struct tb_siphash_key *key; /* of the group; NULL: there is no check */
    uint8_t heads[TB_MCAST_BATCH][TB_DATAGRAM_BYTES];
    struct iovec parts[TB_MCAST_BATCH][2];
    struct mmsghdr messages[TB_MCAST_BATCH];
};

/* At most TB_MCAST_BATCH. Returns how many the kernel has taken, and their bytes; if these are not all, *error says why
 * not. */
uint32_t tb_mcast_sender_send(struct tb_mcast_sender *s, const union tb_mcast_address *to,
                              const struct tb_mcast_datagram *datagrams, uint32_t count, uint64_t *bytes, int *error);

#endif
