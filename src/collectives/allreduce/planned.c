/* Up the trees of a forest and down the same ones, piece by piece one after the other: the result of each piece is made
 * at the root of the forest, so that all ranks have the same bits. */
#include "collectives/planned.h"

static bool fits(const struct tb_collective *c)
{
    return c->commutative && tb_fits_planned(c);
}

static int make(const struct tb_collective *c, struct tb_program **program)
{
    struct tb_planned p;
    struct tb_builder b;
    uint32_t come[TB_FOREST_TREES];
    tb_planned_open(&p, c);
    tb_builder_open(&b, p.pieces);
    const struct tb_level_sum whole = tb_planned_sum(&b, &p, 0, true);
    for (uint32_t i = 0; i < c->forest->trees; i++) {
        struct tb_level_sum sum = tb_planned_up(&b, &p, i, (uint16_t)(2 * i), &whole);
        if (c->rank == p.host.root)
            tb_levels_result(&b, &sum);
        come[i] = tb_planned_down(&b, &p, i, (uint16_t)(2 * i + 1), sum.ready);
    }
    tb_planned_out(&b, &p, 1, come, whole.ready);
    tb_builder_places(&b, TB_COLLECTIVE_PLACES);
    return tb_builder_finish(&b, program);
}

const struct tb_algorithm tb_allreduce_planned = {TB_OPERATION_ALLREDUCE, "planned", fits, make, NULL, NULL};
