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

uint32_t tb_mcast_address_pack(const union tb_mcast_address *a, uint8_t bytes[static TB_MCAST_ADDRESS_PACKED])
{
    bool new = a->any.sa_family == AF_INET6;
    uint32_t length = new ? sizeof a->in6.sin6_addr : sizeof a->in4.sin_addr;
    memcpy(bytes, new ? (const void *)&a->in6.sin6_addr : (const void *)&a->in4.sin_addr, length);
    memcpy(bytes + length, new ? &a->in6.sin6_port : &a->in4.sin_port, 2);
    return length + 2;
}

bool tb_mcast_address_unpack(union tb_mcast_address *a, const uint8_t *bytes, uint32_t length, uint32_t interface)
{
    memset(a, 0, sizeof *a);
    if (length == sizeof a->in4.sin_addr + 2) {
        a->in4.sin_family = AF_INET;
        memcpy(&a->in4.sin_addr, bytes, length - 2);
        memcpy(&a->in4.sin_port, bytes + length - 2, 2);
        return true;
    }
    if (length != sizeof a->in6.sin6_addr + 2)
        return false;
    a->in6.sin6_family = AF_INET6;
    memcpy(&a->in6.sin6_addr, bytes, length - 2);
    memcpy(&a->in6.sin6_port, bytes + length - 2, 2);
    a->in6.sin6_scope_id = IN6_IS_ADDR_LINKLOCAL(&a->in6.sin6_addr) ? interface : 0;
    return true;
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
