/* A seat: where a rank is below its host, as numbers that count on that host. Agents find it out for ranks that are
 * bound to processors; a rank that may go anywhere has none. A value. */
#ifndef TB_TOPOLOGY_SEAT_H
#define TB_TOPOLOGY_SEAT_H

#include "topology/places.h"

#define TB_SEAT_NONE   UINT16_MAX /* not on one alone, or there are none */
#define TB_SEAT_LEVELS (TB_LEVEL_CORE - TB_LEVEL_HOST)

struct tb_seat {
    uint16_t at[TB_SEAT_LEVELS]; /* package, NUMA node, shared cache, core */
};

static const struct tb_seat tb_seat_none = {{TB_SEAT_NONE, TB_SEAT_NONE, TB_SEAT_NONE, TB_SEAT_NONE}};

/* As control frames have it. */
static inline uint64_t tb_seat_pack(const struct tb_seat *seat)
{
    uint64_t packed = 0;
    for (int i = 0; i < TB_SEAT_LEVELS; i++)
        packed = packed << 16 | seat->at[i];
    return packed;
}

static inline struct tb_seat tb_seat_unpack(uint64_t packed)
{
    struct tb_seat seat;
    for (int i = TB_SEAT_LEVELS; i-- > 0; packed >>= 16)
        seat.at[i] = (uint16_t)packed;
    return seat;
}

/* Of two seats on one host: the nearest level that they have in common, TB_LEVEL_HOST to TB_LEVEL_CORE. */
static inline enum tb_level tb_seat_meet(const struct tb_seat *a, const struct tb_seat *b)
{
    for (int i = TB_SEAT_LEVELS; i-- > 0;)
        if (a->at[i] == b->at[i] && a->at[i] != TB_SEAT_NONE)
            return (enum tb_level)(TB_LEVEL_PACKAGE + i);
    return TB_LEVEL_HOST;
}

#endif
