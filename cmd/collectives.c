/* What collectives need before a job starts, and all ranks must have alike. */
#include "command.h"

#include "planner/planner.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

void tb_command_cores(void)
{
    cpu_set_t cores;
    char text[16];
    if (tb_param.cores > 0 || sched_getaffinity(0, sizeof cores, &cores) != 0)
        return;
    snprintf(text, sizeof text, "%d", CPU_COUNT(&cores));
    (void)tb_param_set("cores", text, TB_PARAM_LAUNCHER);
}

int tb_command_collectives(const struct tb_grid *grid)
{
    struct tb_preference wishes[TB_OPERATION_COUNT];
    struct tb_rules rules;
    tb_command_cores();
    int rc = grid != NULL ? tb_costs_pass_grid(grid) : TB_OK;
    if (rc == TB_OK)
        rc = tb_rules_load();
    if (rc == TB_OK)
        rc = tb_cost_parameters_check();
    if (rc == TB_OK)
        rc = tb_preferences_read(wishes, &rules);
    /* So that ranks here do not think that they were told something else. */
    if (rc == TB_OK && *tb_param.rules != 0)
        setenv("TOMBOLO_RULES", tb_param.rules, 1);
    return rc;
}
