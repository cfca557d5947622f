/* Datagrams as a multicast group hands them up, and where they go. */
#ifndef TB_TRANSPORT_MCAST_ARRIVAL_H
#define TB_TRANSPORT_MCAST_ARRIVAL_H

#include "transport/mcast/address.h"

#include "wire/wire.h"

/* One that has come, its check being right. Valid during the call. */
struct tb_mcast_arrival {
    struct tb_datagram head;
    const uint8_t *payload;
    size_t length;                      /* of the payload */
    const union tb_mcast_address *from; /* where its sender can be answered */
    bool alone;                         /* it was sent to this process, not to the group */
    bool placed;                        /* the payload lies where `expect` has wanted it */
};

/* Room for the payloads of datagrams that are expected next: fragments of one message, in a row, so that those that do
 * come in this order need not be copied: best those behind the last one that has come, not a hole before it. None of
 * them may be there yet, since whatever comes, from whomever, may be written to this room before it is looked at. */
struct tb_mcast_room {
    uint64_t context, number, length;
    uint32_t sender;
    uint32_t fragment; /* the first one */
    uint32_t count;    /* how many, at least one */
    uint16_t piece;
    uint8_t *at; /* where the first one goes; all others stand behind it */
};

struct tb_mcast_upcalls {
    void *context;
    /* What may be received next? Called before datagrams are taken from the network; the room must stay valid until it
     * is called again or the poll ends. False: nothing is known to come. May be NULL. */
    bool (*expect)(void *context, struct tb_mcast_room *room);
    /* A datagram has come. May send, but neither poll nor close. */
    void (*datagram)(void *context, const struct tb_mcast_arrival *arrival);
    /* After fewer datagrams were taken than given: trying again is worth it now. May be NULL. */
    void (*writable)(void *context);
};

#endif
