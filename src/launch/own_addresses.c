#include "launch/own_addresses.h"

#include "job/job.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

void tb_own_addresses_print(uint16_t port, char text[static TB_OWN_ADDRESSES_BYTES])
{
    struct ifaddrs *all = NULL;
    size_t used = 0;
    if (getifaddrs(&all) < 0)
        all = NULL;
    for (const struct ifaddrs *i = all; i != NULL && used < TB_OWN_ADDRESSES_BYTES; i = i->ifa_next) {
        struct tb_address address = {.port = port};
        char one[80];
        if (i->ifa_addr == NULL || !(i->ifa_flags & IFF_UP) || (i->ifa_flags & IFF_LOOPBACK))
            continue;
        if (i->ifa_addr->sa_family == AF_INET) {
            address.family = 4;
            memcpy(address.bytes, &((const struct sockaddr_in *)i->ifa_addr)->sin_addr, 4);
        } else if (i->ifa_addr->sa_family == AF_INET6 &&
                   !IN6_IS_ADDR_LINKLOCAL(&((const struct sockaddr_in6 *)i->ifa_addr)->sin6_addr)) {
            address.family = 6;
            memcpy(address.bytes, &((const struct sockaddr_in6 *)i->ifa_addr)->sin6_addr, 16);
        } else {
            continue;
        }
        tb_address_print(&address, one, sizeof one);
        used += (size_t)snprintf(text + used, TB_OWN_ADDRESSES_BYTES - used, "%s%s", used > 0 ? "," : "", one);
    }
    if (used == 0)
        snprintf(text, TB_OWN_ADDRESSES_BYTES, "127.0.0.1:%u", (unsigned)port);
    freeifaddrs(all);
}
