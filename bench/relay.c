/* The least that a relay can be: takes one TCP connection, makes another, and passes on whatever comes from either side
 * as soon as it comes. What it adds to a round trip is the yardstick for a gateway.
 *
 * usage: relay PORT HOST HOSTPORT        prints "ready" when it listens; ends with the first connection */
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static void hurry(int s)
{
    int yes = 1;
    setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

static int take(int port)
{
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons((unsigned short)port)};
    int yes = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(listener, (struct sockaddr *)&here, sizeof here) < 0 || listen(listener, 1) < 0)
        fail("listen");
    puts("ready");
    fflush(stdout);
    int s = accept(listener, NULL, NULL);
    if (s < 0)
        fail("accept");
    close(listener);
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

/* False: that side has ended. */
static int pass(int from, int to)
{
    static char data[1 << 16];
    ssize_t count = read(from, data, sizeof data);
    for (ssize_t done = 0; done < count;) {
        ssize_t n = write(to, data + done, (size_t)(count - done));
        if (n < 0)
            fail("write");
        done += n;
    }
    return count > 0;
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    struct pollfd sides[2] = {{.events = POLLIN}, {.events = POLLIN}};
    sides[0].fd = take(atoi(argv[1]));
    sides[1].fd = reach(argv[2], argv[3]);
    while (poll(sides, 2, -1) > 0)
        for (int i = 0; i < 2; i++)
            if (sides[i].revents != 0 && !pass(sides[i].fd, sides[1 - i].fd))
                return 0;
    return 1;
}
