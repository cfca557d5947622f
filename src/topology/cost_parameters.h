/* What the parameters say of costs: what is assumed where nothing else is known, and what holds for all hosts of a job.
 * Programs may use it: it needs nothing that reads grid files. */
#ifndef TB_TOPOLOGY_COST_PARAMETERS_H
#define TB_TOPOLOGY_COST_PARAMETERS_H

#include "topology/cost_build.h"

/* Opens a builder with what the parameters say, without links. Close it also after an error. */
int tb_cost_parameters_open(struct tb_cost_builder *builder, const struct tb_places *places);
/* Whether they make sense; the story names the parameter. */
int tb_cost_parameters_check(void);
/* The table of a job without a grid file: one kind of hosts, and everybody reaches everybody. One malloc'd block. */
int tb_cost_table_make_plain(const struct tb_places *places, uint32_t host_count, void **bytes, size_t *length);

#endif
