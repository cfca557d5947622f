#include "transport/mcast/route.h"

#include "base/base.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sys/socket.h>
#include <unistd.h>

#define DISCARD_PORT 9 /* nothing is ever sent there */

/* The address that the kernel would send from. */
static int local_of(const union tb_mcast_address *to, union tb_mcast_address *local)
{
    char text[TB_MCAST_ADDRESS_TEXT];
    union tb_mcast_address there = *to;
    socklen_t length = sizeof *local;
    if (to->any.sa_family == AF_INET6)
        there.in6.sin6_port = htons(DISCARD_PORT);
    else
        there.in4.sin_port = htons(DISCARD_PORT);
    int s = socket(to->any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (s < 0)
        return tb_error_errno("cannot make a UDP socket");
    int rc = TB_OK;
    if (connect(s, &there.any, tb_mcast_address_bytes(&there)) != 0)
        rc = tb_error(TB_ERR_PEER, "no way leads to %s: %s", tb_mcast_address_print(to, text), strerror(errno));
    else if (getsockname(s, &local->any, &length) != 0)
        rc = tb_error_errno("cannot ask for the address of a socket");
    close(s);
    return rc;
}

static const uint8_t *bytes_of(const struct sockaddr *a, size_t *length)
{
    *length = a->sa_family == AF_INET6 ? 16 : 4;
    return a->sa_family == AF_INET6 ? (const uint8_t *)&((const struct sockaddr_in6 *)a)->sin6_addr
                                    : (const uint8_t *)&((const struct sockaddr_in *)a)->sin_addr;
}

static bool is_near(const struct ifaddrs *at, const union tb_mcast_address *to)
{
    size_t length;
    const uint8_t *there = bytes_of(&to->any, &length), *here = bytes_of(at->ifa_addr, &length);
    if (at->ifa_netmask == NULL)
        return false;
    const uint8_t *mask = at->ifa_addr->sa_family == AF_INET6
                              ? (const uint8_t *)&((const struct sockaddr_in6 *)at->ifa_netmask)->sin6_addr
                              : (const uint8_t *)&((const struct sockaddr_in *)at->ifa_netmask)->sin_addr;
    for (size_t i = 0; i < length; i++)
        if (((there[i] ^ here[i]) & mask[i]) != 0)
            return false;
    return true;
}

static bool has_address(const struct ifaddrs *at, const union tb_mcast_address *local)
{
    size_t length;
    if (at->ifa_addr == NULL || at->ifa_addr->sa_family != local->any.sa_family)
        return false;
    if (local->any.sa_family == AF_INET6 && local->in6.sin6_scope_id != 0 &&
        local->in6.sin6_scope_id != if_nametoindex(at->ifa_name))
        return false; /* several interfaces may have the same link-local address */
    const uint8_t *one = bytes_of(at->ifa_addr, &length), *other = bytes_of(&local->any, &length);
    return memcmp(one, other, length) == 0;
}

int tb_mcast_route_find(struct tb_mcast_route *route, const union tb_mcast_address *to)
{
    char text[TB_MCAST_ADDRESS_TEXT];
    struct ifaddrs *all;
    *route = (struct tb_mcast_route){0};
    int rc = local_of(to, &route->local);
    if (rc != TB_OK)
        return rc;
    if (route->local.any.sa_family == AF_INET6)
        route->local.in6.sin6_port = 0;
    else
        route->local.in4.sin_port = 0;
    if (getifaddrs(&all) != 0)
        return tb_error_errno("cannot list the network interfaces");
    rc = tb_error(TB_ERR_PEER, "no interface has the address that leads to %s", tb_mcast_address_print(to, text));
    for (const struct ifaddrs *at = all; at != NULL; at = at->ifa_next) {
        if (!has_address(at, &route->local))
            continue;
        route->interface = if_nametoindex(at->ifa_name);
        route->near = is_near(at, to);
        rc = (at->ifa_flags & IFF_MULTICAST) != 0
                 ? TB_OK
                 : tb_error(TB_ERR_UNSUPPORTED, "the interface %s, which leads to %s, carries no multicast",
                            at->ifa_name, tb_mcast_address_print(to, text));
        break;
    }
    freeifaddrs(all);
    return rc;
}
