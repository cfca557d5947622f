/* The addresses of this host, and the port for other hosts' agents. */
#include "agent/state.h"

#include <arpa/inet.h>
#include <errno.h>
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

int tb_address_list(struct tb_address *addresses, uint32_t limit, uint32_t *count)
{
    struct ifaddrs *all;
    if (getifaddrs(&all) < 0)
        return tb_error_errno("cannot list the network interfaces");
    *count = 0;
    /* The best rating that occurs is taken, nothing worse. */
    for (int rating = REAL; rating < UNUSABLE && *count == 0; rating++)
        for (const struct ifaddrs *i = all; i != NULL && *count < limit; i = i->ifa_next) {
            struct tb_address address;
            if (i->ifa_addr != NULL && take_socket_address(i->ifa_addr, i->ifa_netmask, &address) &&
                (int)rate(i, &address) == rating)
                addresses[(*count)++] = address;
        }
    freeifaddrs(all);
    if (*count == 0 && *tb_param.interfaces != 0)
        return tb_error(TB_ERR_ARGUMENT,
                        "no network interface fits the parameter interfaces=%s; `ip address` shows what there is",
                        tb_param.interfaces);
    if (*count == 0)
        return tb_error(TB_ERR_UNSUPPORTED, "no network interface is up");
    return TB_OK;
}

int tb_ports_parse(const char *text, uint16_t *low, uint16_t *high)
{
    char *end;
    errno = 0;
    unsigned long first = strtoul(text, &end, 10), last = first;
    bool good = end != text && errno == 0 && *text != '-';
    if (good && *end == '-' && end[1] >= '0' && end[1] <= '9')
        last = strtoul(end + 1, &end, 10);
    if (!good || *end != 0 || first > 65535 || last > 65535 || last < first)
        return tb_error(TB_ERR_ARGUMENT, "ports=%s is neither 0, a port nor a range such as 20000-20100", text);
    *low = (uint16_t)first;
    *high = (uint16_t)last;
    return TB_OK;
}

/* Both families with one socket where there is IPv6, else IPv4. */
static int make_socket(int *family)
{
    int off = 0, fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    *family = 6;
    if (fd >= 0 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    *family = 4;
    return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

static int bind_port(int fd, int family, uint16_t port)
{
    struct tb_address any = {.family = (uint8_t)family, .port = port};
    struct sockaddr_storage name;
    socklen_t length = tb_address_socket(&any, &name);
    return bind(fd, (struct sockaddr *)&name, length);
}

/* A listening socket at the first free port of the range; -1 with errno. */
static int listen_somewhere(uint16_t low, uint16_t high)
{
    int family, error = EADDRINUSE, on = 1;
    for (uint32_t port = low; port <= high; port++) {
        int fd = make_socket(&family);
        if (fd < 0)
            return -1;
        /* Connections of an earlier job that still linger do not make a port unusable. */
        if (port != 0)
            setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        int rc = bind_port(fd, family, (uint16_t)port);
        if (rc < 0 && family == 6 && errno == EADDRNOTAVAIL) { /* IPv6 is compiled in but switched off */
            close(fd);
            fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
            rc = fd >= 0 ? bind_port(fd, 4, (uint16_t)port) : -1;
        }
        if (rc == 0 && listen(fd, SOMAXCONN) == 0)
            return fd;
        error = errno;
        if (fd >= 0)
            close(fd);
        if (error != EADDRINUSE && error != EACCES)
            break;
    }
    errno = error;
    return -1;
}

int tb_listener_open(struct tb_agent *agent)
{
    uint16_t low, high;
    int rc = tb_ports_parse(tb_param.ports, &low, &high);
    if (rc != TB_OK)
        return rc;
    int fd = listen_somewhere(low, high);
    if (fd < 0 && errno == EADDRINUSE)
        return tb_error(TB_ERR_LIMIT,
                        "no free port: every TCP port of ports=%s is in use; choose another range with "
                        "--set ports=LOW-HIGH, or 0 for any port",
                        tb_param.ports);
    if (fd < 0 && errno == EACCES)
        return tb_error(TB_ERR_FORBIDDEN,
                        "no permission to listen on a port of ports=%s; ports below 1024 are for root", tb_param.ports);
    if (fd < 0)
        return tb_error_errno("cannot listen for other hosts on ports=%s", tb_param.ports);
    struct sockaddr_in6 name = {0}; /* the port is at the same place in both families */
    socklen_t length = sizeof name;
    getsockname(fd, (struct sockaddr *)&name, &length);
    agent->port = ntohs(name.sin6_port);
    tb_timer_init(&agent->patience, tb_accept_expire);
    rc = tb_loop_watch(&agent->loop, &agent->listener, fd, EPOLLIN, tb_accept_ready);
    if (rc != TB_OK)
        return rc;
    rc = tb_address_list(agent->addresses, TB_HOST_ADDRESS_LIMIT, &agent->address_count);
    for (uint32_t i = 0; i < agent->address_count; i++)
        agent->addresses[i].port = agent->port;
    return rc;
}
