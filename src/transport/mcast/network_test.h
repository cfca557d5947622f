/* For unit tests of multicast: hosts on one switch, which are network namespaces of this process (10.77.0.1 and fd77::1
 * the first of them). A socket belongs to the network in which it was made, so that one process has sockets on all of
 * them. Where the machine allows no namespaces, or `ip` is missing, tests are skipped. */
#ifndef TB_TRANSPORT_MCAST_NETWORK_TEST_H
#define TB_TRANSPORT_MCAST_NETWORK_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "transport/mcast/group.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define NETWORK_HOSTS 3
#define PATIENCE_NS   UINT64_C(20000000000) /* on a machine that has other things to do */

static int network_home = -1, network_hosts[NETWORK_HOSTS];
static const char *network_missing; /* why there is none */

static inline bool file_write(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool fine = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    if (fd >= 0)
        close(fd);
    return fine;
}

static inline bool namespaces_make(void)
{
    char text[64];
    uid_t uid = geteuid();
    gid_t gid = getegid();
    if (uid == 0 && unshare(CLONE_NEWNET | CLONE_NEWNS) == 0)
        return true;
    if (unshare(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWNS) != 0)
        return false;
    snprintf(text, sizeof text, "0 %u 1", uid);
    bool fine = file_write("/proc/self/uid_map", text) && file_write("/proc/self/setgroups", "deny");
    snprintf(text, sizeof text, "0 %u 1", gid);
    return fine && file_write("/proc/self/gid_map", text);
}

/* Commands of ip, where this process is; %d: the descriptor of a host. */
static inline bool ip_run(const char *commands)
{
    FILE *to = popen("PATH=$PATH:/usr/sbin:/sbin ip -batch - >/dev/null 2>&1", "w");
    return to != NULL && fputs(commands, to) >= 0 && pclose(to) == 0;
}

static inline void host_enter(int host)
{
    assert_int_equal(setns(network_hosts[host], CLONE_NEWNET), 0);
}

static inline void host_leave(void)
{
    assert_int_equal(setns(network_home, CLONE_NEWNET), 0);
}

static inline bool host_make(int host)
{
    char text[512];
    int n = 1 + host;
    if (unshare(CLONE_NEWNET) != 0)
        return false;
    network_hosts[host] = open("/proc/self/ns/net", O_RDONLY); /* `ip` inherits it */
    host_leave();
    snprintf(text, sizeof text,
             "link add port%d type veth peer name eth0 netns /proc/self/fd/%d\nlink set port%d master switch0 up\n", n,
             network_hosts[host], n);
    if (network_hosts[host] < 0 || !ip_run(text))
        return false;
    host_enter(host);
    snprintf(text, sizeof text,
             "link set lo up\naddr add 10.77.0.%d/24 dev eth0\naddr add fd77::%d/64 dev eth0 nodad\nlink set eth0 up\n",
             n, n);
    bool fine = ip_run(text);
    host_leave();
    return fine;
}

static inline union tb_mcast_address address_of(const char *text, uint16_t port)
{
    union tb_mcast_address a = {0};
    if (strchr(text, ':') != NULL) {
        a.in6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons(port)};
        assert_int_equal(inet_pton(AF_INET6, text, &a.in6.sin6_addr), 1);
    } else {
        a.in4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port)};
        assert_int_equal(inet_pton(AF_INET, text, &a.in4.sin_addr), 1);
    }
    return a;
}

static inline union tb_mcast_address host_address(int family, int host)
{
    char text[32];
    snprintf(text, sizeof text, family == 4 ? "10.77.0.%d" : "fd77::%d", 1 + host);
    return address_of(text, 0);
}

/* Until a datagram passes from one host to another. */
static inline bool pair_await(int family, int from, int to)
{
    union tb_mcast_address there = host_address(family, to);
    socklen_t length = sizeof there;
    bool reached = false;
    host_enter(to);
    int in = socket(there.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool fine = bind(in, &there.any, tb_mcast_address_bytes(&there)) == 0 && getsockname(in, &there.any, &length) == 0;
    host_enter(from);
    int out = socket(there.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    host_leave();
    for (uint64_t end = tb_clock_now_real() + PATIENCE_NS; fine && !reached && tb_clock_now_real() < end;) {
        struct pollfd some = {.fd = in, .events = POLLIN};
        (void)sendto(out, "", 1, 0, &there.any, tb_mcast_address_bytes(&there));
        reached = poll(&some, 1, 20) == 1;
    }
    close(in);
    close(out);
    return reached;
}

/* A switch passes frames on at a port some time after the port is up, when the kernel has noticed that. */
static inline bool network_await(void)
{
    for (int i = 0; i < NETWORK_HOSTS; i++)
        if (!pair_await(4, i, (i + 1) % NETWORK_HOSTS) || !pair_await(6, i, (i + 1) % NETWORK_HOSTS))
            return false;
    return true;
}

static inline int network_setup(void **state)
{
    if (!namespaces_make()) {
        network_missing = "this machine allows no namespaces";
        return 0;
    }
    network_home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    if (network_home < 0 || !ip_run("link add switch0 type bridge mcast_snooping 0\nlink set switch0 up\n"))
        network_missing = "no bridge can be made with `ip`";
    for (int i = 0; i < NETWORK_HOSTS && network_missing == NULL; i++)
        if (!host_make(i))
            network_missing = "no hosts can be made with `ip`";
    if (network_missing == NULL && !network_await())
        network_missing = "hosts on a bridge do not reach each other";
    return 0;
}

/* First in every test that needs the network. */
#define NETWORK_NEEDED()                                                                                               \
    do {                                                                                                               \
        if (network_missing != NULL) {                                                                                 \
            print_message("skipped: %s\n", network_missing);                                                           \
            skip();                                                                                                    \
        }                                                                                                              \
    } while (0)

static inline void host_ip(int host, const char *commands)
{
    host_enter(host);
    bool fine = ip_run(commands);
    host_leave();
    assert_true(fine);
}

#endif
