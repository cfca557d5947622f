/* Whether large packets arrive at another agent. Where the MTU on the way is smaller than that of the hosts and nobody
 * tells them, a connection opens and passes whatever is small, and the first large packet stands still for ever. A
 * connection that is silent while others of the same agent answer, and on which the kernel sends something again and
 * again in vain, shows that; new ones use small segments then. If those do not pass either, the way is as good as cut.
 * One on which everything was taken and nothing comes back is dead for another reason, such as a proxy that has
 * stopped.
 *
 * A part of a hop peer; one thread. */
#ifndef TB_AGENT_PACKET_SIZE_H
#define TB_AGENT_PACKET_SIZE_H

#include <stdbool.h>
#include <stdint.h>

#define TB_PACKET_STORY                                                                                                \
    "small packets passed and large ones did not: is the MTU on the way smaller than that of the hosts?"

enum tb_packet_verdict {
    TB_PACKET_UNKNOWN,   /* it may still answer */
    TB_PACKET_TOO_LARGE, /* it is to be made anew, with small segments */
    TB_PACKET_DEAD,      /* it is to be made anew */
    TB_PACKET_NONE       /* it has small ones */
};

struct tb_packet_size {
    bool small;              /* connections that are opened from now on use small segments */
    uint64_t answered_since; /* there has been no long pause since then between answers; 0: none yet */
    uint64_t answered;       /* for the last time */
    /* Small segments have stood still as well: */
    uint64_t stuck_since; /* since then without a break; 0: not so */
    uint64_t stuck;       /* found out for the last time */
    bool stuck_here;      /* what we have sent; else what we wait for */
    uint8_t stuck_stream; /* where */
};

/* Something has come from the agent, on any connection. */
void tb_packet_size_answered(struct tb_packet_size *size, uint64_t when);
/* For how long it has answered since then, without a long pause until now. */
uint64_t tb_packet_size_answered_for(const struct tb_packet_size *size, uint64_t since, uint64_t now);
/* Of a connection that has been silent since then. */
enum tb_packet_verdict tb_packet_size_judge(const struct tb_packet_size *size, int socket, uint64_t since,
                                            uint64_t now);
/* The verdict was TB_PACKET_NONE for a connection of this stream. */
void tb_packet_size_stuck(struct tb_packet_size *size, int socket, uint8_t stream, uint64_t since, uint64_t now);
/* A connection of that stream that was opened after it: perhaps it passes what the last one did not. */
void tb_packet_size_look(struct tb_packet_size *size, int socket);
/* Since when not even small segments pass; 0: they do, or it is worth trying again. */
uint64_t tb_packet_size_stuck_since(struct tb_packet_size *size, uint64_t now);
/* Before it connects: nothing that is sent or comes on it is larger than what any network carries. */
void tb_packet_size_make_small(int socket);

#endif
