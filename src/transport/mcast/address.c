#include "transport/mcast/address.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

bool tb_mcast_address_same(const union tb_mcast_address *a, const union tb_mcast_address *b)
{
    if (a->any.sa_family != b->any.sa_family)
        return false;
    if (a->any.sa_family == AF_INET)
        return a->in4.sin_addr.s_addr == b->in4.sin_addr.s_addr;
    return memcmp(&a->in6.sin6_addr, &b->in6.sin6_addr, sizeof a->in6.sin6_addr) == 0;
}

const char *tb_mcast_address_print(const union tb_mcast_address *a, char text[static TB_MCAST_ADDRESS_TEXT])
{
    char host[INET6_ADDRSTRLEN] = "?";
    bool new = a->any.sa_family == AF_INET6;
    inet_ntop(a->any.sa_family, new ? (const void *)&a->in6.sin6_addr : (const void *)&a->in4.sin_addr, host,
              sizeof host);
    snprintf(text, TB_MCAST_ADDRESS_TEXT, "%s port %u", host, ntohs(new ? a->in6.sin6_port : a->in4.sin_port));
    return text;
}
