/* This host's membership in a multicast group, as one process holds it: a socket that has joined and receives nothing
 * itself. Whoever is bound to the address of the group hears it as long as some process of the host holds one; so an
 * agent may hold it for all of its ranks. Belongs to one thread.
 *
 * It has to be renewed. Switches that snoop pass a group on to a port only for some minutes after they have last heard
 * a report of it there (260 s by default), and hosts report only when they join or are asked. Who asks is a querier,
 * which many networks have none of. */
#ifndef TB_TRANSPORT_MCAST_MEMBERSHIP_H
#define TB_TRANSPORT_MCAST_MEMBERSHIP_H

#include "transport/mcast/address.h"

#define TB_MCAST_RENEW_NS UINT64_C(60000000000)

struct tb_mcast_membership {
    int socket; /* -1: none */
    uint32_t interface;
    union tb_mcast_address group;
};

int tb_mcast_membership_open(struct tb_mcast_membership *m, const union tb_mcast_address *group, uint32_t interface);
/* Has the kernel report the membership again. What comes from `sources`, those that have sent lately, is not missed
 * meanwhile; of others a datagram may be, within some microseconds. Where another process of the host is a member too,
 * nothing is reported: one of a host holds the membership, or all but one listen without. */
int tb_mcast_membership_renew(struct tb_mcast_membership *m, const union tb_mcast_address *sources, uint32_t count);
void tb_mcast_membership_close(struct tb_mcast_membership *m);

#endif
