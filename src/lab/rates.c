/* The rate of a port: a token bucket that counts frames as they are on the wire, with preamble, check sum and gap (24
 * bytes beyond header and payload, 84 at least). It holds one frame, and so much more as passes while a timer of the
 * kernel is late; with exactly one frame every late timer is lost time (measured: 95 % of the rate at 100 Mbit/s, and
 * all of it with 2 KiB). */
#include "lab/lab.h"
#include "lab/network.h"

#include <inttypes.h>

#define LATENESS_US    TB_COST_BURST_LEAST
#define QUEUE_LIMIT    1073741824u /* a number of 32 bits in tc */
#define FRAME_BYTES    1538u       /* the longest frame; a wire that rests takes one */
#define BITS_OF_A_BYTE 8u

static void write_rate(FILE *to, const char *verb, const char *device, uint64_t bandwidth, uint64_t queue)
{
    uint64_t bucket = bandwidth / BITS_OF_A_BYTE * LATENESS_US / 1000000u;
    queue = queue > QUEUE_LIMIT ? QUEUE_LIMIT : queue;
    fprintf(to,
            "qdisc %s dev %s root handle 1: stab mtu 2047 tsize 2048 mpu 84 overhead 24 linklayer ethernet tbf rate "
            "%" PRIu64 "bit burst %" PRIu64 "b limit %" PRIu64 "\n",
            verb, device, bandwidth, bucket > TB_LAB_PORT_BURST ? bucket : TB_LAB_PORT_BURST,
            queue < FRAME_BYTES ? (uint64_t)FRAME_BYTES : queue);
}

void tb_rate_write_add(FILE *to, const char *device, uint64_t bandwidth, uint64_t queue)
{
    write_rate(to, "add", device, bandwidth, queue);
}

void tb_rate_write_bands(FILE *to, const char *device)
{
    fprintf(to, "qdisc add dev %s parent 1:1 handle 2: pfifo_fast\n", device);
}

void tb_rate_write_change(FILE *to, const char *device, uint64_t before, uint64_t bandwidth, uint64_t queue)
{
    if (bandwidth > 0)
        write_rate(to, before > 0 ? "change" : "replace", device, bandwidth, queue);
    else if (before > 0)
        fprintf(to, "qdisc del dev %s root\n", device);
}
