/* An address and port of UDP, of either family. */
#ifndef TB_TRANSPORT_MCAST_ADDRESS_H
#define TB_TRANSPORT_MCAST_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#define TB_MCAST_ADDRESS_TEXT   80
#define TB_MCAST_ADDRESS_PACKED 18u /* bytes, at most */

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
/* Address and port as they travel, of IPv4 6 bytes and of IPv6 18; how many. */
uint32_t tb_mcast_address_pack(const union tb_mcast_address *a, uint8_t bytes[static TB_MCAST_ADDRESS_PACKED]);
/* The same read, by whoever reaches it by that interface. False: they are no address. */
bool tb_mcast_address_unpack(union tb_mcast_address *a, const uint8_t *bytes, uint32_t length, uint32_t interface);
/* "239.1.2.3 port 7000", for messages. Returns `text`. */
const char *tb_mcast_address_print(const union tb_mcast_address *a, char text[static TB_MCAST_ADDRESS_TEXT]);

#endif
