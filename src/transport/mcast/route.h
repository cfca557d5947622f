/* By which interface, and under which address, this host reaches another one: what a multicast group among both uses.
 * It is the way that a TCP connection to the same address would take. */
#ifndef TB_TRANSPORT_MCAST_ROUTE_H
#define TB_TRANSPORT_MCAST_ROUTE_H

#include "transport/mcast/address.h"

struct tb_mcast_route {
    union tb_mcast_address local; /* port 0 */
    uint32_t interface;           /* its index */
    bool near;                    /* the other one is in the same subnet: no router lies between */
};

/* TB_ERR_PEER: no way leads there; TB_ERR_UNSUPPORTED: the interface that does carries no multicast. */
int tb_mcast_route_find(struct tb_mcast_route *route, const union tb_mcast_address *to);

#endif
