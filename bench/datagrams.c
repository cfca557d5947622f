/* What a bare sender of datagrams takes to bring so many bytes to many hosts at once: the measure for broadcasts by
 * multicast. The bytes are cut as ours are, into datagrams of a header and PAYLOAD bytes, sent many with a system call
 * as fast as the kernel takes them, and nothing is repaired.
 *
 * usage: datagrams hear GROUP PORT ROOT CONTROL
 *        datagrams send GROUP PORT CONTROL RECEIVERS PAYLOAD ROUNDS BYTES...
 * One host sends, all others hear; they connect to port CONTROL of host ROOT, over which rounds begin and end. The
 * interface is the one that this connection uses. A round begins when all receivers are ready; its time is that until
 * the last datagram has come to the last receiver, by the clock that all hosts of a lab share. The sender prints a row
 * for each round, "BYTES SLOWEST FASTEST LOST": the times of the slowest and the fastest receiver in microseconds, and
 * how many datagrams receivers have missed, all together; of a receiver that has missed some it is the time of the last
 * one that came, or 0. The first round of each size is not printed. Then "done". */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/sockios.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "plain.h"

#define HEADER        52 /* TB_DATAGRAM_BYTES */
#define BATCH         32
#define BUFFER        (4 << 20)
#define RECEIVERS_MAX 1024
#define BYTES_MAX     (64 << 20)
#define PAYLOAD_MAX   9000
#define TRIES         200   /* of connecting to somebody who is still starting, */
#define TRY_MS        50    /* so long apart */
#define SETTLE_MS     5     /* before a round, so that receivers sleep */
#define SILENCE_MS    50    /* after the end of a round: nothing more will come */
#define HANG_MS       60000 /* nothing takes that long */

/* What goes over the control connection, on one machine with one byte order. */
struct round {
    uint32_t number; /* 0: no more */
    uint32_t datagrams;
};

struct result {
    double last; /* when the last one came */
    uint32_t came;
};

static void put(int s, const void *bytes, size_t length)
{
    if (send(s, bytes, length, MSG_NOSIGNAL) != (ssize_t)length)
        fail("control connection");
}

static void get(int s, void *bytes, size_t length)
{
    if (recv(s, bytes, length, MSG_WAITALL) != (ssize_t)length)
        fail("control connection");
}

static void hurry(int s)
{
    struct timeval most = {.tv_sec = HANG_MS / 1000};
    int yes = 1;
    setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
}

static struct sockaddr_in group_of(const char *group, const char *port)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
    if (inet_pton(AF_INET, group, &to.sin_addr) != 1)
        fail(group);
    return to;
}

static struct in_addr interface_of(int s)
{
    struct sockaddr_in here;
    socklen_t length = sizeof here;
    if (getsockname(s, (struct sockaddr *)&here, &length) < 0)
        fail("getsockname");
    return here.sin_addr;
}

/* ---- hearing ----------------------------------------------------------------------------------------------------- */

static int reach(const char *host, const char *port)
{
    struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *found = NULL;
    if (getaddrinfo(host, port, &hints, &found) != 0)
        fail(host);
    for (int i = 0; i < TRIES; i++) {
        int s = socket(AF_INET, SOCK_STREAM, 0);
        if (s < 0)
            fail("socket");
        if (connect(s, found->ai_addr, found->ai_addrlen) == 0) {
            freeaddrinfo(found);
            hurry(s);
            return s;
        }
        close(s);
        poll(NULL, 0, TRY_MS);
    }
    fail("connect");
    return -1;
}

static int hearing_socket(const char *group, const char *port, struct in_addr interface)
{
    struct sockaddr_in at = group_of(group, port);
    struct ip_mreq join = {.imr_multiaddr = at.sin_addr, .imr_interface = interface};
    int yes = 1, buffer = BUFFER, s = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    setsockopt(s, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer);
    if (bind(s, (struct sockaddr *)&at, sizeof at) < 0)
        fail("bind");
    if (setsockopt(s, IPPROTO_IP, IP_ADD_MEMBERSHIP, &join, sizeof join) < 0)
        fail("IP_ADD_MEMBERSHIP");
    return s;
}

/* How many datagrams of this round a system call brings. */
static uint32_t take(int s, uint32_t number)
{
    static char bytes[BATCH][HEADER + PAYLOAD_MAX];
    static struct iovec parts[BATCH];
    static struct mmsghdr messages[BATCH];
    uint32_t count = 0, of;
    for (int i = 0; i < BATCH; i++) {
        parts[i] = (struct iovec){.iov_base = bytes[i], .iov_len = sizeof bytes[i]};
        messages[i].msg_hdr = (struct msghdr){.msg_iov = &parts[i], .msg_iovlen = 1};
    }
    int n = recvmmsg(s, messages, BATCH, MSG_DONTWAIT, NULL);
    for (int i = 0; i < n; i++) {
        memcpy(&of, bytes[i], sizeof of);
        count += of == number;
    }
    return count;
}

/* Until all have come, or the sender has said that all were sent and nothing comes any more. */
static struct result round_hear(int s, int control, const struct round *round)
{
    struct pollfd in[2] = {{.fd = s, .events = POLLIN}, {.fd = control, .events = POLLIN}};
    struct result result = {0};
    int over = 0;
    while (result.came < round->datagrams) {
        int ready = poll(in, over ? 1 : 2, over ? SILENCE_MS : HANG_MS);
        if (ready == 0 && !over)
            fail("the sender says nothing");
        if (ready == 0)
            break;
        uint32_t some = (in[0].revents & POLLIN) != 0 ? take(s, round->number) : 0;
        if (some > 0)
            result.last = now();
        result.came += some;
        if (!over && in[1].revents != 0) {
            uint32_t end;
            get(control, &end, sizeof end);
            over = 1;
        }
    }
    if (!over) {
        uint32_t end;
        get(control, &end, sizeof end);
    }
    return result;
}

static int hear(char **argv)
{
    int control = reach(argv[4], argv[5]);
    int s = hearing_socket(argv[2], argv[3], interface_of(control));
    struct round round;
    for (;;) {
        get(control, &round, sizeof round);
        if (round.number == 0)
            return 0;
        put(control, &round.number, sizeof round.number);
        struct result result = round_hear(s, control, &round);
        put(control, &result, sizeof result);
    }
}

/* ---- sending ----------------------------------------------------------------------------------------------------- */

static int receivers[RECEIVERS_MAX];
static int count; /* of them */
static char data[BYTES_MAX];

static void await_receivers(const char *port)
{
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
    int yes = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
    struct pollfd in = {.fd = listener, .events = POLLIN};
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(listener, (struct sockaddr *)&here, sizeof here) < 0 || listen(listener, RECEIVERS_MAX) < 0)
        fail("listen");
    for (int i = 0; i < count; i++) {
        if (poll(&in, 1, HANG_MS) <= 0 || (receivers[i] = accept(listener, NULL, NULL)) < 0)
            fail("a receiver is missing");
        hurry(receivers[i]);
    }
    close(listener);
}

static int sending_socket(struct in_addr interface)
{
    unsigned char no = 0, hops = 1;
    int whole = IP_PMTUDISC_PROBE, s = socket(AF_INET, SOCK_DGRAM, 0);
    if (setsockopt(s, IPPROTO_IP, IP_MULTICAST_IF, &interface, sizeof interface) < 0 ||
        setsockopt(s, IPPROTO_IP, IP_MULTICAST_LOOP, &no, sizeof no) < 0 ||
        setsockopt(s, IPPROTO_IP, IP_MULTICAST_TTL, &hops, sizeof hops) < 0 ||
        setsockopt(s, IPPROTO_IP, IP_MTU_DISCOVER, &whole, sizeof whole) < 0)
        fail("a multicast socket");
    return s;
}

/* Returns when the kernel has taken all. */
static void stream(int s, const struct sockaddr_in *to, const struct round *round, size_t bytes, size_t payload)
{
    static char heads[BATCH][HEADER];
    static struct iovec parts[BATCH][2];
    static struct mmsghdr messages[BATCH];
    for (uint32_t done = 0; done < round->datagrams;) {
        uint32_t n = round->datagrams - done < BATCH ? round->datagrams - done : BATCH;
        for (uint32_t i = 0; i < n; i++) {
            size_t at = (size_t)(done + i) * payload, rest = bytes - at;
            memcpy(heads[i], &round->number, sizeof round->number);
            parts[i][0] = (struct iovec){.iov_base = heads[i], .iov_len = HEADER};
            parts[i][1] = (struct iovec){.iov_base = data + at, .iov_len = rest < payload ? rest : payload};
            messages[i].msg_hdr = (struct msghdr){
                .msg_name = (void *)to, .msg_namelen = sizeof *to, .msg_iov = parts[i], .msg_iovlen = 2};
        }
        int sent = sendmmsg(s, messages, n, 0);
        if (sent < 0 && errno != EINTR)
            fail("sendmmsg");
        done += sent > 0 ? (uint32_t)sent : 0;
    }
}

static void round_send(int s, const struct sockaddr_in *to, const struct round *round, size_t bytes, size_t payload,
                       int is_printed)
{
    double slowest = 0, fastest = 1e9;
    uint64_t lost = 0;
    uint32_t answer;
    int queued = 0;
    for (int i = 0; i < count; i++)
        put(receivers[i], round, sizeof *round);
    for (int i = 0; i < count; i++)
        get(receivers[i], &answer, sizeof answer);
    poll(NULL, 0, SETTLE_MS);
    double begin = now();
    stream(s, to, round, bytes, payload);
    while (ioctl(s, SIOCOUTQ, &queued) == 0 && queued > 0 && now() - begin < HANG_MS / 1e3)
        poll(NULL, 0, 1);
    for (int i = 0; i < count; i++)
        put(receivers[i], &round->number, sizeof round->number);
    for (int i = 0; i < count; i++) {
        struct result result;
        get(receivers[i], &result, sizeof result);
        double took = result.came > 0 ? result.last - begin : 0;
        slowest = took > slowest ? took : slowest;
        fastest = took < fastest ? took : fastest;
        lost += round->datagrams - result.came;
    }
    if (is_printed)
        printf("%zu %.3f %.3f %llu\n", bytes, slowest * 1e6, fastest * 1e6, (unsigned long long)lost);
    fflush(stdout);
}

static int sender(int argc, char **argv)
{
    struct sockaddr_in to = group_of(argv[2], argv[3]);
    size_t payload = (size_t)atol(argv[6]);
    int rounds = atoi(argv[7]);
    struct round round = {0};
    count = atoi(argv[5]);
    if (count < 1 || count > RECEIVERS_MAX || payload < 1 || payload > PAYLOAD_MAX || rounds < 1)
        return 2;
    await_receivers(argv[4]);
    int s = sending_socket(interface_of(receivers[0]));
    for (int i = 8; i < argc; i++) {
        size_t bytes = (size_t)atol(argv[i]);
        if (bytes < 1 || bytes > sizeof data)
            return 2;
        for (int k = 0; k <= rounds; k++) {
            round = (struct round){.number = round.number + 1, .datagrams = (uint32_t)((bytes - 1) / payload + 1)};
            round_send(s, &to, &round, bytes, payload, k > 0);
        }
    }
    for (int i = 0; i < count; i++)
        put(receivers[i], &(struct round){0}, sizeof round);
    puts("done");
    return 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "hear") == 0 && argc == 6)
        return hear(argv);
    if (strcmp(what, "send") == 0 && argc > 8)
        return sender(argc, argv);
    return 2;
}
