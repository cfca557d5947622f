/* The emulated wide area where the kernel has no netem: one process, which carries frames between the interfaces of its
 * network namespace through pipes that have rate, latency, jitter, loss and order of their own. It is a switch: a frame
 * goes to the port behind which its destination is, through the pipe between the two ports. One thread.
 *
 * It is told what to do, and asked what it saw, by messages of text on its control socket; each gets one answer, "ok",
 * "ok\nTEXT" or "error STORY"; a message may hold several lines, done in turn up to the first that fails. Words are
 * separated by blanks:
 *   port INTERFACE SEGMENT [trunk] [MAC...]   carries frames of this interface from now on; only ports of one segment
 *                                             meet. A trunk leads to a switch: whatever is not known elsewhere is there
 *   drop INTERFACE                            no longer
 *   pipe NAME                                 there is such a pipe, without limits
 *   half NAME NAME                            these two are the directions of one half-duplex wire
 *   route FROM TO NAME...                     frames from port to port pass these pipes, one after the other; without
 *                                             any they pass at once
 *   set NAME [bandwidth=BITS_A_SECOND] [latency=NS] [jitter=NS] [loss=PPM] [reorder=PPM] [queue=BYTES]; queue 0: what
 *                                             fits the wire in a round trip
 *   cut NAME, heal NAME                       nothing passes; passes again
 *   report                                    lines on its own lateness, ports and pipes: see emulator_report.c
 *   reset                                     forgets what was counted so far
 *
 * What it needs of the interfaces: nobody in its namespace answers on them (no addresses, disable_ipv6), and what is
 * sent to them is not segmented by offload (TSO, GSO off on the peer of a veth; such frames are dropped and counted as
 * giants). Checksum offload may stay. */
#ifndef TB_LAB_EMULATOR_H
#define TB_LAB_EMULATOR_H

#include "topology/topology.h"

#define TB_EMULATOR_MESSAGE_BYTES 65536

/* Runs in the namespace where the interfaces are, until `control` (SOCK_SEQPACKET) is closed by the other side. */
int tb_emulator_run(int control, uint64_t seed);

#endif
