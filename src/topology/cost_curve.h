/* A time that depends on a number of bytes: straight lines between points, the last one going on. A time is
 * picoseconds in 64 bits, which saturate. Values; any thread. */
#ifndef TB_TOPOLOGY_COST_CURVE_H
#define TB_TOPOLOGY_COST_CURVE_H

#include "base/base.h"

#define TB_COST_POINTS 12
#define TB_COST_NEVER  UINT64_MAX /* a time that is not reached */

struct tb_cost_curve {
    uint32_t count;
    struct {
        uint64_t bytes, time;
    } points[TB_COST_POINTS]; /* rising in bytes, the first at 0 */
};

static inline uint64_t tb_cost_add(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? TB_COST_NEVER : sum;
}

uint64_t tb_cost_at(const struct tb_cost_curve *curve, uint64_t bytes);
/* The least that any number of bytes takes: measured curves may fall. */
uint64_t tb_cost_least(const struct tb_cost_curve *curve);
/* A straight line: `base` picoseconds and then `bandwidth` bits a second (0: it takes no time). */
struct tb_cost_curve tb_cost_line(uint64_t base, uint64_t bandwidth);
/* What was measured, as text: points BYTES:SEND:RECEIVE:GAP with commas between, times in nanoseconds, the first one
 * for 0 bytes, rising, at most TB_COST_POINTS. False: it is something else. `gap` may be NULL. */
bool tb_cost_points_parse(const char *text, struct tb_cost_curve *send, struct tb_cost_curve *receive,
                          struct tb_cost_curve *gap);

#endif
