/* Along the trees of a forest that was planned beforehand, each with its share of the pieces, which go on as they come;
 * within each host through common memory where there is some. */
#include "collectives/planned.h"

static int make(const struct tb_collective *c, struct tb_program **program)
{
    struct tb_planned p;
    struct tb_builder b;
    uint32_t come[TB_FOREST_TREES];
    tb_planned_open(&p, c);
    tb_builder_open(&b, p.pieces);
    for (uint32_t i = 0; i < c->forest->trees; i++)
        come[i] = tb_planned_down(&b, &p, i, (uint16_t)i, TB_STEP_NONE);
    tb_planned_out(&b, &p, 0, come, TB_STEP_NONE);
    tb_builder_places(&b, TB_COLLECTIVE_PLACES);
    return tb_builder_finish(&b, program);
}

const struct tb_algorithm tb_bcast_planned = {TB_OPERATION_BCAST, "planned", tb_fits_planned, make, NULL, NULL};
