/* As the planned broadcast, in the other direction: up the trees down which a broadcast from the root goes, piece by
 * piece. Of commutative operations, since those behind a rank need not follow it. */
#include "collectives/planned.h"

static bool fits(const struct tb_collective *c)
{
    return c->commutative && tb_fits_planned(c);
}

static int make(const struct tb_collective *c, struct tb_program **program)
{
    struct tb_planned p;
    struct tb_builder b;
    tb_planned_open(&p, c);
    tb_builder_open(&b, p.pieces);
    const struct tb_level_sum whole = tb_planned_sum(&b, &p, 0, c->rank == c->root);
    for (uint32_t i = 0; i < c->forest->trees; i++) {
        struct tb_level_sum sum = tb_planned_up(&b, &p, i, (uint16_t)i, &whole);
        if (c->rank == c->root)
            tb_levels_result(&b, &sum);
    }
    tb_builder_places(&b, TB_COLLECTIVE_PLACES);
    return tb_builder_finish(&b, program);
}

const struct tb_algorithm tb_reduce_planned = {TB_OPERATION_REDUCE, "planned", fits, make, NULL, NULL};
