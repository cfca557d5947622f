/* How long the frames are that agents pass on, and how much may be on its way: what the rank that sends, the agents and
 * the simulator must say alike. Latency in ps and rates in bit/s; 0: no limit is known. */
#ifndef TB_BASE_FRAME_SIZE_H
#define TB_BASE_FRAME_SIZE_H

#include <stdint.h>

#define TB_FRAME_BYTES_LEAST 4096u
#define TB_FRAME_BYTES_MOST  16384u
#define TB_FRAME_SHARE       32u /* a frame need not be shorter than this part of its message */

#define TB_AHEAD_LATENCY UINT64_C(100000000) /* ps: to those who are nearer, asking costs next to nothing */
#define TB_AHEAD_RATE    UINT64_C(2000000000)

/* A frame takes 2 ms of the slowest wire on its way; a multiple of 64. */
static inline uint32_t tb_frame_bytes(uint64_t slowest)
{
    uint64_t bytes = slowest / 8 / 500;
    if (slowest == 0 || bytes > TB_FRAME_BYTES_MOST)
        return TB_FRAME_BYTES_MOST;
    return bytes < TB_FRAME_BYTES_LEAST ? TB_FRAME_BYTES_LEAST : (uint32_t)(bytes / 64 * 64);
}

/* The same for one message: an agent passes a frame on when it is whole, which holds the end of a long message up for a
 * small part of its time, however long its frames are; and those cost fewer headers, and compress better. */
static inline uint64_t tb_frame_bytes_for(uint64_t frame, uint64_t most, uint64_t length)
{
    uint64_t share = length / TB_FRAME_SHARE;
    return share <= frame ? frame : share < most ? share : most;
}

/* What is on its way while an answer comes back. */
static inline uint64_t tb_round_trip_bytes(uint64_t latency, uint64_t bandwidth)
{
    unsigned __int128 bytes = (unsigned __int128)latency * bandwidth / 4 / UINT64_C(1000000000000);
    return bytes > UINT64_MAX / 32 ? UINT64_MAX / 32 : (uint64_t)bytes;
}

/* How long a message may be that leaves without asking whether anybody expects it. One for which asking takes less than
 * a sixteenth of its time on the wire asks, and so does one that would be copied for longer than asking takes, at 4
 * GB/s. In one network everybody asks: that costs little, and keeps those who send to one process at the same time from
 * filling the queue in front of its port. */
static inline uint64_t tb_ahead_bytes(uint64_t latency, uint64_t bandwidth)
{
    if (latency < TB_AHEAD_LATENCY)
        return 0;
    return 16 * tb_round_trip_bytes(latency, bandwidth < TB_AHEAD_RATE ? bandwidth : TB_AHEAD_RATE);
}

/* How much must be on its way so that the wires are never idle. */
static inline uint64_t tb_window_bytes(uint64_t latency, uint64_t bandwidth)
{
    uint64_t bytes = tb_round_trip_bytes(latency, bandwidth) + 65536;
    return bytes < 131072 ? 131072 : bytes;
}

#endif
