/* An address and port of UDP, of either family. */
#ifndef TB_TRANSPORT_MCAST_ADDRESS_H
#define TB_TRANSPORT_MCAST_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#define TB_MCAST_ADDRESS_TEXT 80

union tb_mcast_address {
    struct sockaddr any;
    struct sockaddr_in in4;
    struct sockaddr_in6 in6;
};

static inline socklen_t tb_mcast_address_bytes(const union tb_mcast_address *a)
{
    return a->any.sa_family == AF_INET6 ? sizeof a->in6 : sizeof a->in4;
}

/* The same host, whatever the ports. */
bool tb_mcast_address_same(const union tb_mcast_address *a, const union tb_mcast_address *b);
/* "239.1.2.3 port 7000", for messages. Returns `text`. */
const char *tb_mcast_address_print(const union tb_mcast_address *a, char text[static TB_MCAST_ADDRESS_TEXT]);

#endif
