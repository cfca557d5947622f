#include "agent/address.h"

#include <arpa/inet.h>
#include <fnmatch.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* How good an address is for being reached from other hosts; lower is better. */
enum rating { REAL, VIRTUAL, LINK_LOCAL, LOOPBACK, UNUSABLE };

/* Interfaces that lead to guests of this machine, not to other machines. In a container or a test they may be the only
 * ones, so they are not left out but come last. */
static const char *const inner_names[] = {"docker*",  "virbr*", "br-*",   "veth*",  "vnet*",   "cni*",
                                          "flannel*", "cali*",  "lxcbr*", "lxdbr*", "podman*", "kube*"};

struct found {
    struct tb_address address;
    enum rating rating;
};

static bool take_socket_address(const struct sockaddr *from, const struct sockaddr *mask, struct tb_address *to)
{
    *to = (struct tb_address){0};
    const uint8_t *mask_bytes = NULL;
    size_t length;
    if (from->sa_family == AF_INET) {
        to->family = 4;
        length = 4;
        memcpy(to->bytes, &((const struct sockaddr_in *)from)->sin_addr, 4);
        if (mask != NULL)
            mask_bytes = (const uint8_t *)&((const struct sockaddr_in *)mask)->sin_addr;
    } else if (from->sa_family == AF_INET6) {
        const struct sockaddr_in6 *in = (const struct sockaddr_in6 *)from;
        to->family = 6;
        length = 16;
        memcpy(to->bytes, &in->sin6_addr, 16);
        to->scope = IN6_IS_ADDR_LINKLOCAL(&in->sin6_addr) ? in->sin6_scope_id : 0;
        if (mask != NULL)
            mask_bytes = (const uint8_t *)&((const struct sockaddr_in6 *)mask)->sin6_addr;
    } else {
        return false;
    }
    for (size_t i = 0; mask_bytes != NULL && i < length; i++)
        to->prefix = (uint8_t)(to->prefix + __builtin_popcount(mask_bytes[i]));
    return true;
}

static bool in_subnet(const struct tb_address *address, const char *subnet)
{
    char text[64];
    uint8_t bytes[16];
    const char *slash = strchr(subnet, '/');
    size_t length = slash != NULL ? (size_t)(slash - subnet) : strlen(subnet);
    if (length >= sizeof text)
        return false;
    memcpy(text, subnet, length);
    text[length] = 0;
    if (inet_pton(address->family == 4 ? AF_INET : AF_INET6, text, bytes) != 1)
        return false;
    unsigned full = address->family == 4 ? 32 : 128;
    unsigned bits = slash != NULL ? (unsigned)strtoul(slash + 1, NULL, 10) : full;
    for (unsigned i = 0; i < bits && i < full; i++)
        if (((address->bytes[i / 8] ^ bytes[i / 8]) >> (7 - i % 8)) & 1)
            return false;
    return true;
}

/* What the parameter `interfaces` says: 1 named, 0 not mentioned, -1 left out. *only: others are not to be used. */
static int wished(const char *name, const struct tb_address *address, bool *only)
{
    char list[512], *rest = NULL;
    snprintf(list, sizeof list, "%s", tb_param.interfaces);
    int wish = 0;
    *only = false;
    for (char *word = strtok_r(list, ", ", &rest); word != NULL; word = strtok_r(NULL, ", ", &rest)) {
        bool out = *word == '^';
        word += out;
        *only = *only || !out;
        if (fnmatch(word, name, 0) == 0 || in_subnet(address, word))
            wish = out ? -1 : wish < 0 ? -1 : 1;
    }
    return wish;
}

static enum rating rate(const struct ifaddrs *interface, const struct tb_address *address)
{
    bool only;
    int wish = wished(interface->ifa_name, address, &only);
    if (!(interface->ifa_flags & IFF_UP) || wish < 0 || (only && wish == 0))
        return UNUSABLE;
    if (interface->ifa_flags & IFF_LOOPBACK)
        return wish > 0 ? REAL : LOOPBACK;
    if (address->family == 6 && address->scope != 0)
        return LINK_LOCAL;
    if (address->family == 4 && address->bytes[0] == 169 && address->bytes[1] == 254)
        return LINK_LOCAL;
    if (wish > 0)
        return REAL;
    for (size_t i = 0; i < sizeof inner_names / sizeof inner_names[0]; i++)
        if (fnmatch(inner_names[i], interface->ifa_name, 0) == 0)
            return VIRTUAL;
    return REAL;
}

int tb_address_list_own(struct tb_address_list *list, uint16_t port)
{
    struct ifaddrs *all;
    list->count = 0;
    if (getifaddrs(&all) < 0)
        return tb_error_errno("cannot list the network interfaces");
    /* The best rating that occurs is taken, nothing worse. */
    for (int rating = REAL; rating < UNUSABLE && list->count == 0; rating++)
        for (const struct ifaddrs *i = all; i != NULL && list->count < TB_HOST_ADDRESS_LIMIT; i = i->ifa_next) {
            struct tb_address address;
            if (i->ifa_addr == NULL || !take_socket_address(i->ifa_addr, i->ifa_netmask, &address) ||
                (int)rate(i, &address) != rating)
                continue;
            address.port = port;
            list->at[list->count++] = address;
        }
    freeifaddrs(all);
    if (list->count == 0 && *tb_param.interfaces != 0)
        return tb_error(TB_ERR_ARGUMENT,
                        "no network interface fits the parameter interfaces=%s; `ip address` shows what there is",
                        tb_param.interfaces);
    if (list->count == 0)
        return tb_error(TB_ERR_UNSUPPORTED, "no network interface is up");
    return TB_OK;
}

bool tb_address_is_near(const struct tb_address_list *list, const struct tb_address *address)
{
    for (uint32_t i = 0; i < list->count; i++)
        if (tb_address_same_subnet(&list->at[i], address))
            return true;
    return false;
}

/* The third word is the address here. */
static bool is_of_ssh(const struct tb_address *address, const char *ssh)
{
    char text[INET6_ADDRSTRLEN + 1];
    uint8_t bytes[16];
    return ssh != NULL && sscanf(ssh, "%*s %*s %46s", text) == 1 &&
           inet_pton(address->family == 4 ? AF_INET : AF_INET6, text, bytes) == 1 &&
           memcmp(bytes, address->bytes, address->family == 4 ? 4 : 16) == 0;
}

bool tb_address_list_narrow(struct tb_address_list *own, const struct tb_address *neighbours, uint32_t count,
                            const char *ssh)
{
    struct tb_address_list near = {0}, reached = {0};
    for (uint32_t i = 0; i < own->count; i++) {
        bool is_near = false;
        for (uint32_t k = 0; k < count && !is_near; k++)
            is_near = tb_address_same_subnet(&own->at[i], &neighbours[k]);
        if (is_near)
            near.at[near.count++] = own->at[i];
        if (is_of_ssh(&own->at[i], ssh))
            reached.at[reached.count++] = own->at[i];
    }
    if (near.count > 0 || reached.count > 0)
        *own = near.count > 0 ? near : reached;
    return near.count > 0 || reached.count > 0 || own->count == 1;
}

void tb_address_fix_scope(const struct tb_address_list *own, struct tb_address *address)
{
    for (uint32_t i = 0; address->scope != 0 && i < own->count; i++)
        if (own->at[i].scope != 0) {
            address->scope = own->at[i].scope;
            return;
        }
}

static const struct ifaddrs *find_holder(const struct ifaddrs *all, const struct tb_address *own)
{
    for (const struct ifaddrs *i = all; i != NULL; i = i->ifa_next) {
        struct tb_address address;
        if (i->ifa_addr != NULL && take_socket_address(i->ifa_addr, NULL, &address) && address.family == own->family &&
            address.scope == own->scope && memcmp(address.bytes, own->bytes, sizeof own->bytes) == 0)
            return i;
    }
    return NULL;
}

int tb_address_find_interface(const struct tb_address *own, uint32_t *index)
{
    struct ifaddrs *all;
    char text[80];
    int rc = TB_OK;
    if (getifaddrs(&all) < 0)
        return tb_error_errno("cannot list the network interfaces");
    const struct ifaddrs *holder = find_holder(all, own);
    tb_address_print(own, text, sizeof text);
    *index = holder != NULL ? if_nametoindex(holder->ifa_name) : 0;
    if (*index == 0)
        rc = tb_error(TB_ERR_UNSUPPORTED, "no network interface has the address %s any more", text);
    else if (!(holder->ifa_flags & IFF_UP) || !(holder->ifa_flags & IFF_MULTICAST))
        rc = tb_error(TB_ERR_UNSUPPORTED, "network interface %s %s", holder->ifa_name,
                      holder->ifa_flags & IFF_UP ? "carries no multicast" : "is down");
    freeifaddrs(all);
    return rc;
}
