#include "transport/mcast/group_sockets.h"

#include <errno.h>
#include <linux/sock_diag.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define ERRORS_AT_ONCE 64

/* An option of a socket that this file sets; the name is for messages. */
struct option {
    int level, name;
    const char *text;
    const void *value;
    socklen_t length;
};

#define OPTION(level, name, value)                                                                                     \
    {                                                                                                                  \
        level, name, #name, &(value), sizeof(value)                                                                    \
    }

static int options_set(int socket, const struct option *options, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (setsockopt(socket, options[i].level, options[i].name, options[i].value, options[i].length) != 0)
            return tb_error_errno("cannot set %s of a multicast socket", options[i].text);
    return TB_OK;
}

static int socket_make(int family, int *made)
{
    *made = socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return *made >= 0 ? TB_OK : tb_error_errno("cannot make a UDP socket");
}

/* What the administrator does not allow is silently less. */
static void buffer_wish(int socket, int name, uint32_t bytes)
{
    int wish = bytes < INT32_MAX ? (int)bytes : INT32_MAX;
    if (bytes > 0)
        (void)setsockopt(socket, SOL_SOCKET, name, &wish, sizeof wish);
}

static int socket_bind(int socket, const union tb_mcast_address *to)
{
    char text[TB_MCAST_ADDRESS_TEXT];
    if (bind(socket, &to->any, tb_mcast_address_bytes(to)) == 0)
        return TB_OK;
    return tb_error_errno("cannot bind a UDP socket to %s", tb_mcast_address_print(to, text));
}

/* Groups that do not leave a link are told apart by it. */
static union tb_mcast_address on_interface(const union tb_mcast_address *address, uint32_t interface)
{
    union tb_mcast_address a = *address;
    if (a.any.sa_family == AF_INET6)
        a.in6.sin6_scope_id =
            IN6_IS_ADDR_LINKLOCAL(&a.in6.sin6_addr) || IN6_IS_ADDR_MC_LINKLOCAL(&a.in6.sin6_addr) ? interface : 0;
    return a;
}

int tb_mcast_sockets_hear(const struct tb_mcast_config *config, int *socket)
{
    static const int yes = 1;
    const struct option options[] = {OPTION(SOL_SOCKET, SO_REUSEADDR, yes)};
    union tb_mcast_address group = on_interface(&config->group, config->interface);
    int interface = (int)config->interface;
    int rc = socket_make(config->group.any.sa_family, socket);
    if (rc == TB_OK)
        rc = options_set(*socket, options, 1);
    if (rc != TB_OK)
        return rc;
    buffer_wish(*socket, SO_RCVBUF, config->receive_buffer);
    /* It hears whatever the host is a member of, so that the membership may be somebody else's. That the same group
     * may be joined on another interface as well does not matter: kernels since 5.1 hear it on this one alone. */
    (void)setsockopt(*socket, SOL_SOCKET, SO_BINDTOIFINDEX, &interface, sizeof interface);
    return socket_bind(*socket, &group);
}

/* None is ever cut: PROBE lets nothing pass that is longer than the interface takes, and believes nobody who says that
 * the way takes less, which anybody could. With RECVERR datagrams that the queue of the interface has no room for are
 * refused, which otherwise are dropped silently. */
static int speak_set(int socket, const struct tb_mcast_config *config)
{
    static const int no = 0, yes = 1, probe4 = IP_PMTUDISC_PROBE, probe6 = IPV6_PMTUDISC_PROBE;
    const int hops = config->hops, interface = (int)config->interface;
    if (config->group.any.sa_family == AF_INET) {
        const struct ip_mreqn out = {.imr_address = config->local.in4.sin_addr, .imr_ifindex = interface};
        const struct option options[] = {
            OPTION(IPPROTO_IP, IP_MULTICAST_IF, out),  OPTION(IPPROTO_IP, IP_MULTICAST_TTL, hops),
            OPTION(IPPROTO_IP, IP_MULTICAST_LOOP, no), OPTION(IPPROTO_IP, IP_MTU_DISCOVER, probe4),
            OPTION(IPPROTO_IP, IP_RECVERR, yes),
        };
        return options_set(socket, options, sizeof options / sizeof options[0]);
    }
    const struct option options[] = {
        OPTION(IPPROTO_IPV6, IPV6_MULTICAST_IF, interface),
        OPTION(IPPROTO_IPV6, IPV6_MULTICAST_HOPS, hops),
        OPTION(IPPROTO_IPV6, IPV6_MULTICAST_LOOP, no),
        OPTION(IPPROTO_IPV6, IPV6_MTU_DISCOVER, probe6),
        OPTION(IPPROTO_IPV6, IPV6_RECVERR, yes),
    };
    return options_set(socket, options, sizeof options / sizeof options[0]);
}

int tb_mcast_sockets_speak(const struct tb_mcast_config *config, int *socket, union tb_mcast_address *own)
{
    union tb_mcast_address local = on_interface(&config->local, config->interface);
    socklen_t length = sizeof *own;
    if (local.any.sa_family == AF_INET6)
        local.in6.sin6_port = 0;
    else
        local.in4.sin_port = 0;
    int rc = socket_make(config->group.any.sa_family, socket);
    if (rc == TB_OK)
        rc = speak_set(*socket, config);
    if (rc != TB_OK)
        return rc;
    buffer_wish(*socket, SO_SNDBUF, config->send_buffer);
    buffer_wish(*socket, SO_RCVBUF, config->receive_buffer);
    rc = socket_bind(*socket, &local);
    if (rc == TB_OK && getsockname(*socket, &own->any, &length) != 0)
        rc = tb_error_errno("cannot ask for the address of a socket");
    return rc;
}

int tb_mcast_sockets_limit(int socket, int family, uint32_t interface, uint32_t *limit)
{
    struct ifreq request = {.ifr_ifindex = (int)interface};
    if (ioctl(socket, SIOCGIFNAME, &request) != 0 || ioctl(socket, SIOCGIFMTU, &request) != 0)
        return tb_error_errno("cannot ask how long packets may be on interface %u", interface);
    uint32_t headers = family == AF_INET6 ? 40 + 8 : 20 + 8;
    *limit = (uint32_t)request.ifr_mtu > headers ? (uint32_t)request.ifr_mtu - headers : 0;
    return TB_OK;
}

uint32_t tb_mcast_sockets_buffer(int socket)
{
    int bytes = 0;
    socklen_t length = sizeof bytes;
    return getsockopt(socket, SOL_SOCKET, SO_RCVBUF, &bytes, &length) == 0 && bytes > 0 ? (uint32_t)bytes : 0;
}

uint64_t tb_mcast_sockets_drops(int socket)
{
    uint32_t figures[SK_MEMINFO_VARS] = {0};
    socklen_t length = sizeof figures;
    return getsockopt(socket, SOL_SOCKET, SO_MEMINFO, figures, &length) == 0 ? figures[SK_MEMINFO_DROPS] : 0;
}

void tb_mcast_sockets_forget_errors(int socket)
{
    int error;
    socklen_t length = sizeof error;
    for (int i = 0; i < ERRORS_AT_ONCE; i++) {
        char control[512];
        struct msghdr message = {.msg_control = control, .msg_controllen = sizeof control};
        if (recvmsg(socket, &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
            break;
    }
    (void)getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &length);
}
