/* How long the frames are that agents pass on, and how much may be on its way: what the rank that sends, the agents and
 * the simulator must say alike. Latency in ps and rates in bit/s; 0: no limit is known. */
#ifndef TB_BASE_FRAME_SIZE_H
#define TB_BASE_FRAME_SIZE_H

#include <stdint.h>

#define TB_FRAME_BYTES_LEAST 2048u
#define TB_FRAME_BYTES_MOST  16384u

/* A frame takes 2 ms of the slowest wire on its way; a multiple of 64. */
static inline uint32_t tb_frame_bytes(uint64_t slowest)
{
    uint64_t bytes = slowest / 8 / 500;
    if (slowest == 0 || bytes > TB_FRAME_BYTES_MOST)
        return TB_FRAME_BYTES_MOST;
    return bytes < TB_FRAME_BYTES_LEAST ? TB_FRAME_BYTES_LEAST : (uint32_t)(bytes / 64 * 64);
}

/* What is on its way while an answer comes back. */
static inline uint64_t tb_round_trip_bytes(uint64_t latency, uint64_t bandwidth)
{
    unsigned __int128 bytes = (unsigned __int128)latency * bandwidth / 4 / UINT64_C(1000000000000);
    return bytes > UINT64_MAX / 32 ? UINT64_MAX / 32 : (uint64_t)bytes;
}

/* How far a sender may be ahead of what has arrived, where nothing asks it to wait. */
static inline uint64_t tb_ahead_bytes(uint64_t latency, uint64_t bandwidth)
{
    return 16 * tb_round_trip_bytes(latency, bandwidth);
}

/* How much must be on its way so that the wires are never idle. */
static inline uint64_t tb_window_bytes(uint64_t latency, uint64_t bandwidth)
{
    uint64_t bytes = tb_round_trip_bytes(latency, bandwidth) + 65536;
    return bytes < 131072 ? 131072 : bytes;
}

#endif
