/* flood PORT COUNT RATE SECONDS: so many connections a second to COUNT ports of this machine from PORT on, from many of
 * its addresses, which say nothing and stay open for as long as there are descriptors. Prints how many were made, and
 * how many of them each second. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define OPEN_MOST 16384

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int call(uint16_t port, uint32_t from)
{
    static const int on = 1;
    static const struct linger at_once = {.l_onoff = 1};
    struct sockaddr_in self = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f010001u + from % 60000u)};
    struct sockaddr_in there = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(0x7f000001u)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    if (bind(fd, (struct sockaddr *)&self, sizeof self) == 0 &&
        (connect(fd, (struct sockaddr *)&there, sizeof there) == 0 || errno == EINPROGRESS))
        return fd;
    close(fd);
    return -1;
}

int main(int argc, char **argv)
{
    if (argc != 5)
        return 2;
    uint16_t port = (uint16_t)strtoul(argv[1], NULL, 10);
    uint32_t ports = (uint32_t)strtoul(argv[2], NULL, 10);
    double rate = strtod(argv[3], NULL), seconds = strtod(argv[4], NULL), start = now(), time = 0;
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    uint32_t room = limit.rlim_cur > OPEN_MOST + 64 ? OPEN_MOST : (uint32_t)limit.rlim_cur - 64, made = 0;
    int *open_ones = calloc(room, sizeof *open_ones);
    if (open_ones == NULL)
        return 1;
    for (uint32_t tries = 0; time < seconds; time = now() - start) {
        for (; tries < rate * time; tries++) {
            int fd = call((uint16_t)(port + tries % ports), tries);
            if (fd < 0)
                continue;
            if (made >= room)
                close(open_ones[made % room]);
            open_ones[made++ % room] = fd;
        }
        usleep(500);
    }
    printf("%u connections, %.0f a second\n", made, made / time);
    return 0;
}
