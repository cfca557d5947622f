/* How something grows with the number of ranks, continued from what it was for fewer: by as much for each doubling (a
 * tree), by twice as much each time (a ring), or anything between and beyond. In integers: the same on every machine. A
 * pure function; any thread. */
#ifndef TB_PLANNER_GROWTH_H
#define TB_PLANNER_GROWTH_H

#include "base/base.h"

/* What was seen: `value` of so many ranks. */
struct tb_growth_point {
    uint32_t ranks;
    uint64_t value;
};

/* What it is for `ranks`, of which there are at least as many as of the last point; points stand in the order of their
 * ranks, no two with the same number. Saturates at UINT64_MAX. */
uint64_t tb_growth_continue(const struct tb_growth_point points[3], uint32_t ranks);

#endif
