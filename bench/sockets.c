/* What bare sockets take for what bench/gateways measures of messages: round trips, and many senders to one receiver.
 *
 * usage: sockets echo PORT                               sends back what comes, until the other side ends
 *        sockets ping HOST PORT BYTES SECONDS            prints half a round trip in microseconds, median
 *        sockets sink PORT SENDERS BYTES ROUNDS START    prints, for each round, seconds until the last byte was there
 *        sockets fan HOST PORT SENDERS BYTES ROUNDS START    so many processes, which send at the same instants
 * START is a time of CLOCK_MONOTONIC in seconds, which all hosts of a lab share; a round begins every PERIOD_S. Servers
 * print "ready" when they listen. */
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "plain.h"

#define PERIOD_S    0.2
#define SAMPLES_MAX 200000
#define WARM_UP     20
#define BYTES_MAX   (1 << 20)
#define SENDERS_MAX 1024

static char data[BYTES_MAX];

static void sleep_until(double instant)
{
    struct timespec t = {.tv_sec = (time_t)instant, .tv_nsec = (long)((instant - (double)(time_t)instant) * 1e9)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) != 0)
        continue;
}

static void hurry(int s)
{
    int yes = 1;
    setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

static int listen_on(int port)
{
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons((unsigned short)port)};
    int yes = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(listener, (struct sockaddr *)&here, sizeof here) < 0 || listen(listener, SENDERS_MAX) < 0)
        fail("listen");
    puts("ready");
    fflush(stdout);
    return listener;
}

static int take(int listener)
{
    int s = accept(listener, NULL, NULL);
    if (s < 0)
        fail("accept");
    hurry(s);
    return s;
}

static int reach(const char *host, const char *port)
{
    struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *found = NULL;
    if (getaddrinfo(host, port, &hints, &found) != 0)
        fail(host);
    int s = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(s, found->ai_addr, found->ai_addrlen) < 0)
        fail("connect");
    freeaddrinfo(found);
    hurry(s);
    return s;
}

static void send_all(int s, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t n = write(s, data + done, bytes - done);
        if (n < 0)
            fail("write");
        done += (size_t)n;
    }
}

static void take_all(int s, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t n = read(s, data, bytes - done);
        if (n <= 0)
            fail("read");
        done += (size_t)n;
    }
}

static int echo(int port)
{
    int s = take(listen_on(port));
    ssize_t n;
    while ((n = read(s, data, sizeof data)) > 0)
        send_all(s, (size_t)n);
    return 0;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int ping(const char *host, const char *port, size_t bytes, double seconds)
{
    static double samples[SAMPLES_MAX];
    int s = reach(host, port), count = 0;
    for (int i = 0; i < WARM_UP; i++) {
        send_all(s, bytes);
        take_all(s, bytes);
    }
    for (double end = now() + seconds; now() < end && count < SAMPLES_MAX; count++) {
        double begin = now();
        send_all(s, bytes);
        take_all(s, bytes);
        samples[count] = (now() - begin) * 1e6 / 2;
    }
    qsort(samples, (size_t)count, sizeof samples[0], compare);
    printf("%.3f\n", samples[count / 2]);
    return 0;
}

static int sink(int port, int senders, size_t bytes, int rounds, double start)
{
    static struct pollfd from[SENDERS_MAX];
    int listener = listen_on(port);
    for (int i = 0; i < senders; i++)
        from[i] = (struct pollfd){.fd = take(listener), .events = POLLIN};
    for (int round = 0; round < rounds; round++) {
        size_t left = bytes * (size_t)senders;
        while (left > 0 && poll(from, (nfds_t)senders, -1) > 0) {
            for (int i = 0; i < senders; i++) {
                ssize_t n = from[i].revents != 0 ? read(from[i].fd, data, sizeof data) : 0;
                if (n < 0 || (n == 0 && from[i].revents != 0))
                    fail("read");
                left -= (size_t)n;
            }
        }
        printf("%.6f\n", now() - (start + round * PERIOD_S));
    }
    return 0;
}

static int fan(char **argv)
{
    int senders = atoi(argv[4]), rounds = atoi(argv[6]);
    double start = atof(argv[7]);
    for (int i = 0; i < senders; i++) {
        if (fork() != 0)
            continue;
        int s = reach(argv[2], argv[3]);
        for (int round = 0; round < rounds; round++) {
            sleep_until(start + round * PERIOD_S);
            send_all(s, (size_t)atoi(argv[5]));
        }
        sleep_until(start + rounds * PERIOD_S);
        _exit(0);
    }
    while (wait(NULL) > 0)
        continue;
    return 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "echo") == 0 && argc == 3)
        return echo(atoi(argv[2]));
    if (strcmp(what, "ping") == 0 && argc == 6)
        return ping(argv[2], argv[3], (size_t)atoi(argv[4]), atof(argv[5]));
    if (strcmp(what, "sink") == 0 && argc == 7)
        return sink(atoi(argv[2]), atoi(argv[3]), (size_t)atoi(argv[4]), atoi(argv[5]), atof(argv[6]));
    if (strcmp(what, "fan") == 0 && argc == 8)
        return fan(argv);
    return 2;
}
