/* Datagrams that one system call has taken from a socket. Payloads go straight to the room that is expected for them
 * where they come in that order; all others, before anybody is told of any, to memory of the batch, so that whoever
 * copies one of them to its place there destroys none that is still to be handed up. Belongs to one thread. */
#ifndef TB_TRANSPORT_MCAST_BATCH_H
#define TB_TRANSPORT_MCAST_BATCH_H

#include "transport/mcast/arrival.h"

#include <sys/socket.h>

#define TB_MCAST_BATCH 32u

struct tb_mcast_batch {
    size_t limit;   /* bytes of payload that one can have */
    uint8_t *bytes; /* so many for each */
    struct tb_mcast_room room;
    uint32_t places; /* how many of the first ones have a place in the room */
    uint32_t stale;  /* how many of the first ones have to be prepared before they can be received into again */
    uint8_t heads[TB_MCAST_BATCH][TB_DATAGRAM_BYTES];
    union tb_mcast_address from[TB_MCAST_BATCH];
    struct iovec parts[TB_MCAST_BATCH][3];
    struct mmsghdr messages[TB_MCAST_BATCH];
};

int tb_mcast_batch_open(struct tb_mcast_batch *b, size_t limit);
void tb_mcast_batch_close(struct tb_mcast_batch *b);
/* Receives what is there, without waiting; room may be NULL. How many; 0 with errno: none. */
uint32_t tb_mcast_batch_receive(struct tb_mcast_batch *b, int socket, const struct tb_mcast_room *room);
/* Checks one of those. As tb_datagram_get; with TB_OK the arrival is set but for `alone`. */
int tb_mcast_batch_check(struct tb_mcast_batch *b, uint32_t which, const struct tb_siphash_key *key,
                         struct tb_mcast_arrival *arrival);
size_t tb_mcast_batch_bytes(const struct tb_mcast_batch *b, uint32_t which); /* of the datagram, header included */

#endif
