/* What the ranks that measure are told of a plan, and what they say: lines of text, as cmd/probe/probe.c has them. */
#ifndef TB_TOPOLOGY_MEASURE_LINES_H
#define TB_TOPOLOGY_MEASURE_LINES_H

#include "topology/measure_plan.h"

/* The tasks from `first` on and before `end` that have hosts and are not done, as the ranks read them; allocated. And
 * these hosts, as -H has them. */
int tb_measure_lines_print(const struct tb_measure_plan *plan, uint32_t first, uint32_t end, char **text, char **hosts);
/* A line of the ranks' report; false: it is none. `*begun` becomes the task that they are about to begin, and
 * TB_GRID_NONE when it is over. */
bool tb_measure_lines_take(struct tb_measure_plan *plan, const char *line, uint32_t *begun);
/* What a task is called. */
void tb_measure_lines_name(const struct tb_measure_plan *plan, const struct tb_measure_task *task, char *text,
                           size_t size);

#endif
