#include "planner/driver_cost.h"

static uint64_t times(uint64_t time, uint32_t count)
{
    uint64_t all;
    return __builtin_mul_overflow(time, (uint64_t)count, &all) ? TB_COST_NEVER : all;
}

/* Through memory: a pass is everyone's copying, which the host's memory must carry, and a flag that is seen is all that
 * there is to receive. */
static struct tb_driver_time common_time(const struct tb_driver_item *item)
{
    const struct tb_cost_constants *c = item->constants;
    const struct tb_cost_curve *send = &c->ends[TB_ENDS_SHM].send;
    uint64_t round = tb_cost_add(c->shm_latency, tb_cost_at(send, 0)), pass = tb_cost_at(&c->memory, item->everyone);
    bool memory = pass > 0;
    if (!memory)
        pass = tb_cost_at(send, item->bytes) - tb_cost_at(send, 0);
    if (item->cores > 0 && item->members > item->cores) /* Everyone must get a core once in a round. */
        round = tb_cost_add(round, times(c->change, (item->members + item->cores - 1) / item->cores));
    return (struct tb_driver_time){.passes = times(pass, item->contract->passes),
                                   .rounds = times(round, item->contract->rounds),
                                   .memory = memory};
}

const struct tb_driver_cost tb_driver_costs[TB_DRIVER_COUNT] = {
    [TB_DRIVER_COMMON] = {.time = common_time}, [TB_DRIVER_MULTICAST] = {.wires = true}};
