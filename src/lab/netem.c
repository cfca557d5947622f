#include "lab/netem.h"
#include "lab/pipe.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#define FRAME_BYTES 1538u /* of the longest frame on the wire */
#define FASTEST                                                                                                        \
    100000000000u /* bit/s; where there is no limit, a rate is given all the same: with one netem keeps order */
#define QUEUE_UNLIMITED 100000u /* frames */

/* netem's limit holds for the frames that wait and those that travel alike. */
static uint64_t frames_limit(const struct tb_grid_wire *wire)
{
    struct tb_pipe pipe;
    if (wire->bandwidth == 0)
        return QUEUE_UNLIMITED;
    tb_pipe_init(&pipe, 0);
    tb_pipe_set(&pipe, wire);
    double seconds = (double)(pipe.queue + pipe.wire.latency + pipe.wire.jitter) / 1e9;
    return (uint64_t)(seconds * (double)wire->bandwidth / 8 / FRAME_BYTES) + 1;
}

/* A million parts are 100 %. */
static void write_share(FILE *to, const char *what, uint32_t share)
{
    fprintf(to, " %s %" PRIu32 ".%04" PRIu32 "%%", what, share / 10000, share % 10000);
}

static void write_wire(FILE *to, const struct tb_grid_wire *wire, bool cut)
{
    uint64_t latency = wire->latency == UINT64_MAX ? 0 : wire->latency;
    uint64_t jitter = wire->jitter < latency ? wire->jitter : latency;
    fprintf(to, " netem limit %" PRIu64 " delay %" PRIu64 ".%03" PRIu64 "us", frames_limit(wire), latency / 1000,
            latency % 1000);
    if (jitter > 0)
        fprintf(to, " %" PRIu64 ".%03" PRIu64 "us", jitter / 1000, jitter % 1000);
    if (cut || wire->loss > 0)
        write_share(to, "loss random", cut ? 1000000 : wire->loss);
    if (wire->reorder > 0 && latency > 0)
        write_share(to, "reorder", wire->reorder);
    fprintf(to, " rate %" PRIu64 "bit\n", wire->bandwidth ? wire->bandwidth : FASTEST);
}

void tb_netem_write_port(FILE *to, const char *port)
{
    /* The size table makes every discipline below count frames as a wire does. */
    fprintf(to, "qdisc add dev %s root handle 1: stab linklayer ethernet overhead 24 mpu 84 htb\n", port);
    fprintf(to, "filter add dev %s parent 1: protocol arp prio 1 u32 match u32 0 0 classid 1:\n", port);
    for (int type = 133; type <= 137; type++) /* neighbour discovery */
        fprintf(
            to,
            "filter add dev %s parent 1: protocol ipv6 prio 2 u32 match ip6 protocol 58 0xff match u8 %d 0xff at 40 "
            "classid 1:\n",
            port, type);
}

void tb_netem_write_pipe(FILE *to, const char *port, uint32_t number, const struct tb_grid_wire *wire)
{
    TB_ASSERT(number >= 1 && number <= TB_NETEM_PIPES_LIMIT);
    fprintf(to, "class add dev %s parent 1: classid 1:%x htb rate %" PRIu64 "bit quantum %u\n", port, number,
            (uint64_t)FASTEST, FRAME_BYTES);
    fprintf(to, "qdisc add dev %s parent 1:%x handle %x:", port, number, number + 1);
    write_wire(to, wire, false);
}

void tb_netem_write_source(FILE *to, const char *port, uint32_t number, const uint8_t a[6])
{
    fprintf(to,
            "filter add dev %s parent 1: protocol all prio 3 u32 match ether src %02x:%02x:%02x:%02x:%02x:%02x classid "
            "1:%x\n",
            port, a[0], a[1], a[2], a[3], a[4], a[5], number);
}

void tb_netem_write_change(FILE *to, const char *port, uint32_t number, const struct tb_grid_wire *wire, bool cut)
{
    fprintf(to, "qdisc change dev %s parent 1:%x handle %x:", port, number, number + 1);
    write_wire(to, wire, cut);
}

/* In the child: its last call. */
static void try_it(void)
{
    int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (unshare(CLONE_NEWNET) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
        _exit(1);
    for (int fd = 0; nowhere >= 0 && fd < 3; fd++)
        dup2(nowhere, fd);
    execlp("tc", "tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms", (char *)NULL);
    execl("/usr/sbin/tc", "tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms", (char *)NULL);
    execl("/sbin/tc", "tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms", (char *)NULL);
    _exit(1);
}

bool tb_netem_probe(void)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0)
        try_it();
    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}
