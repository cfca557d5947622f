/* What collectives need before a job starts, and all ranks must have alike. */
#include "command.h"

#include "lab/lab.h"
#include "planner/planner.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

/* Unless it was told. */
static void lab_assume(const char *name, const char *text)
{
    if (tb_param_origin(tb_param_find(name)) == TB_PARAM_DEFAULT)
        (void)tb_param_set(name, text, TB_PARAM_LAUNCHER);
}

void tb_command_assume(bool lab)
{
    cpu_set_t cores;
    char text[16];
    lab = lab || getenv(TB_LAB_VARIABLE) != NULL;
    if (lab) {
        snprintf(text, sizeof text, "%u", TB_LAB_PORT_QUEUE);
        lab_assume("switch_queue", text);
        snprintf(text, sizeof text, "%u", TB_LAB_PORT_BURST);
        lab_assume("port_burst", text);
        lab_assume("lab_latency", TB_LAB_LATENCY);
        lab_assume("ethernet_overhead", TB_LAB_OVERHEAD);
    }
    if (sched_getaffinity(0, sizeof cores, &cores) != 0)
        return;
    snprintf(text, sizeof text, "%d", CPU_COUNT(&cores));
    if (tb_param.cores == 0)
        (void)tb_param_set("cores", text, TB_PARAM_LAUNCHER);
    if (lab && tb_param.shared_cores == 0)
        (void)tb_param_set("shared_cores", text, TB_PARAM_LAUNCHER);
}

int tb_command_collectives(bool lab)
{
    struct tb_preference wishes[TB_OPERATION_COUNT];
    struct tb_rules rules;
    uint8_t skip;
    tb_command_assume(lab);
    int rc = tb_rules_load();
    if (rc == TB_OK)
        rc = tb_cost_parameters_check();
    if (rc == TB_OK)
        rc = tb_preferences_read(wishes, &rules);
    if (rc == TB_OK)
        rc = tb_levels_read(&skip);
    /* So that ranks here do not think that they were told something else. */
    if (rc == TB_OK && *tb_param.rules != 0)
        setenv("TOMBOLO_RULES", tb_param.rules, 1);
    return rc;
}
