/* What drivers take for an item of a composite step, by the contract that they have (struct tb_contract). The table has
 * a row for each driver, as that of the engine does, which cannot see it and need not: a driver is known here by its
 * costs alone. Pure functions; any thread. */
#ifndef TB_PLANNER_DRIVER_COST_H
#define TB_PLANNER_DRIVER_COST_H

#include "schedule/schedule.h"
#include "topology/topology.h"

struct tb_driver_item {
    const struct tb_cost_constants *constants;
    const struct tb_contract *contract;
    uint32_t members;
    uint32_t cores;           /* that they share; 0: each has its own */
    uint64_t bytes, everyone; /* that the member with most of them gives or gets, and all together */
};

struct tb_driver_time {
    uint64_t passes; /* from when all have come to it until the next item may follow */
    uint64_t rounds; /* then, until everyone knows */
    bool memory;     /* the host's memory is busy for the passes */
};

struct tb_driver_cost {
    bool wires; /* it sends what goes from one member to all others, and takes what the wires between their hosts do
                   (simulator_multicast.c); `time` is NULL. Others have all members on one host */
    struct tb_driver_time (*time)(const struct tb_driver_item *item);
};
extern const struct tb_driver_cost tb_driver_costs[TB_DRIVER_COUNT];

#endif
