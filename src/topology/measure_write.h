/* Puts what was measured into a grid file, and says in words what that is, what it means, and what could not be
 * measured. */
#ifndef TB_TOPOLOGY_MEASURE_WRITE_H
#define TB_TOPOLOGY_MEASURE_WRITE_H

#include "topology/grid_edit.h"
#include "topology/measure_plan.h"

struct tb_measure_writer {
    const struct tb_measure_plan *plan;
    struct tb_grid_edit *edit;  /* of the grid file of the plan */
    FILE *words;                /* gets a line beginning with # for each finding */
    bool tables;                /* by message size, too */
    uint32_t changes, failures; /* measurements that were written, and that were not or have failed */
};

int tb_measure_write(struct tb_measure_writer *writer);

#endif
