/* A stranger on a multicast group: sends datagrams that look like those of a job, as fast as the port takes them, for
 * bench/multicast.
 *
 * usage: flood INTERFACE GROUP PORT COUNT SECONDS
 * It hears the group and keeps the last datagrams of it. Of eight that it sends one is such a datagram as it was, and
 * one with a byte changed, in the header or in what it carries; the others, so that they are many, are such headers
 * alone, with a byte changed. Until it has heard one, it sends noise. Ends after COUNT datagrams or SECONDS, and prints
 * "flood SENT REPLAYED SECONDS". */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "plain.h"

#define HEADER 52 /* TB_DATAGRAM_BYTES */
#define LONG   2048
#define KEPT   256
#define BATCH  64

static struct {
    char bytes[LONG];
    size_t length;
} kept[KEPT];
static uint32_t heard; /* datagrams; the last ones are kept */
static unsigned long long sent, replayed;

static int group_socket(const char *interface, const struct sockaddr_in *at)
{
    struct ip_mreqn where = {.imr_multiaddr = at->sin_addr, .imr_ifindex = (int)if_nametoindex(interface)};
    unsigned char no = 0;
    int yes = 1, buffer = 4 << 20, s = socket(AF_INET, SOCK_DGRAM, 0);
    setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    setsockopt(s, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer);
    if (bind(s, (const struct sockaddr *)at, sizeof *at) < 0)
        fail("bind");
    if (setsockopt(s, IPPROTO_IP, IP_ADD_MEMBERSHIP, &where, sizeof where) < 0 ||
        setsockopt(s, IPPROTO_IP, IP_MULTICAST_IF, &where, sizeof where) < 0 ||
        setsockopt(s, IPPROTO_IP, IP_MULTICAST_LOOP, &no, sizeof no) < 0)
        fail("a multicast socket");
    return s;
}

static void hear(int s)
{
    ssize_t n;
    for (int i = 0; i < BATCH; i++) {
        uint32_t at = heard % KEPT;
        if ((n = recv(s, kept[at].bytes, LONG, MSG_DONTWAIT)) <= 0)
            return;
        kept[at].length = (size_t)n;
        heard++;
    }
}

/* Writes the next datagram; returns its length. */
static size_t forge(char *bytes)
{
    uint32_t there = heard < KEPT ? heard : KEPT, one = there > 0 ? (uint32_t)rand() % there : 0;
    if (there == 0) {
        for (size_t i = 0; i < HEADER; i++)
            bytes[i] = (char)rand();
        return HEADER;
    }
    int is_short = sent % 4 != 0;
    size_t length = is_short && kept[one].length > HEADER ? HEADER : kept[one].length;
    memcpy(bytes, kept[one].bytes, length);
    if (sent % 8 == 0) {
        replayed++;
        return length;
    }
    size_t at = (size_t)rand() % length;
    bytes[at] = (char)(bytes[at] ^ (1 + rand() % 255));
    return length;
}

static void send_some(int s, const struct sockaddr_in *to)
{
    static char bytes[BATCH][LONG];
    static struct iovec parts[BATCH];
    static struct mmsghdr messages[BATCH];
    for (int i = 0; i < BATCH; i++) {
        parts[i] = (struct iovec){bytes[i], forge(bytes[i])};
        sent++;
        messages[i].msg_hdr =
            (struct msghdr){.msg_name = (void *)to, .msg_namelen = sizeof *to, .msg_iov = &parts[i], .msg_iovlen = 1};
    }
    for (int done = 0; done < BATCH;) {
        int n = sendmmsg(s, messages + done, (unsigned)(BATCH - done), 0);
        if (n < 0 && errno != EINTR && errno != ENOBUFS)
            fail("sendmmsg");
        done += n > 0 ? n : 0;
    }
}

int main(int argc, char **argv)
{
    if (argc != 6)
        return 2;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[3]))};
    if (inet_pton(AF_INET, argv[2], &at.sin_addr) != 1)
        return 2;
    int s = group_socket(argv[1], &at);
    unsigned long long most = strtoull(argv[4], NULL, 10);
    double begin = now(), seconds = atof(argv[5]);
    while (sent < most && now() < begin + seconds) {
        hear(s);
        send_some(s, &at);
    }
    printf("flood %llu %llu %.3f\n", sent, replayed, now() - begin);
    return 0;
}
