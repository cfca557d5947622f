/* What was counted, for tools: by the engine and the plan cache while MPI is active, and afterwards what they have
 * left. All of it with the lock of the interface held. */
#include <stdlib.h>
#include <string.h>

#include "mpi/tool.h"

static bool is_live(void)
{
    return tb_self.state == TB_STATE_ACTIVE;
}

void tb_mpit_counters(struct tb_counters *counters)
{
    if (is_live())
        tb_engine_count(tb_self.engine, counters);
    else
        *counters = tb_self.mpit->counters;
}

void tb_mpit_usage_flush(void)
{
    if (is_live())
        tb_planner_flush_all(tb_self.plan_cache);
}

bool tb_mpit_usage(uint32_t index, struct tb_usage *usage)
{
    if (is_live())
        return tb_plan_cache_usage(tb_self.plan_cache, index, usage);
    if (index >= tb_self.mpit->usage_count)
        return false;
    *usage = tb_self.mpit->usage[index];
    return true;
}

uint64_t tb_mpit_ratings(void)
{
    return is_live() ? tb_plan_cache_ratings(tb_self.plan_cache) : tb_self.mpit->ratings;
}

void tb_mpit_keep(void)
{
    if (tb_self.mpit == NULL)
        tb_self.mpit = calloc(1, sizeof *tb_self.mpit);
    struct tb_mpit *m = tb_self.mpit;
    struct tb_usage row;
    uint32_t count = 0;
    if (m == NULL)
        return;
    tb_engine_count(tb_self.engine, &m->counters);
    m->ratings = tb_plan_cache_ratings(tb_self.plan_cache);
    tb_planner_flush_all(tb_self.plan_cache);
    while (tb_plan_cache_usage(tb_self.plan_cache, count, &row))
        count++;
    free(m->usage); /* of the time before */
    m->usage = count > 0 ? malloc(count * sizeof *m->usage) : NULL;
    m->usage_count = m->usage != NULL ? count : 0;
    for (uint32_t i = 0; i < m->usage_count; i++)
        TB_ASSERT(tb_plan_cache_usage(tb_self.plan_cache, i, &m->usage[i]));
}
