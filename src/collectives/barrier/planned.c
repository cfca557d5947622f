/* Everyone tells its parent in the first tree of a forest when all behind it have come, and the root lets everyone go
 * along the same tree; ranks of a host meet in its memory before and after, where there is some. */
#include "collectives/planned.h"

/* Messages of this rank, the first of them after `met`. Returns the step after which it may go on, and before which no
 * rank has begun to. */
static uint32_t tell(struct tb_builder *b, const struct tb_planned *p, uint32_t met)
{
    const struct tb_slice nothing = tb_slice_nothing();
    uint32_t children = tb_planned_children(p, 0), first = b->program.step_count, parent, go = TB_STEP_NONE;
    for (uint32_t i = children; i-- > 0;)
        tb_builder_receive(b, tb_planned_child(p, 0, i), 0, nothing);
    bool up = tb_planned_parent(p, 0, &parent);
    uint32_t next = up ? parent : tb_planned_child(p, 0, 0);
    /* What goes up, or from the root down first, goes after all that came; everything else after that. */
    uint32_t told = tb_builder_send(b, next, up ? 0 : 1, nothing);
    for (uint32_t i = 0; i < children; i++)
        tb_builder_after(b, first + i);
    if (met != TB_STEP_NONE)
        tb_builder_after(b, met);
    if (up) {
        go = tb_builder_receive(b, parent, 1, nothing);
        tb_builder_after(b, told);
    }
    for (uint32_t i = up ? 0 : 1; i < children; i++) {
        tb_builder_send(b, tb_planned_child(p, 0, i), 1, nothing);
        tb_builder_after(b, up ? go : told);
    }
    return up ? go : told;
}

static int make(const struct tb_collective *c, struct tb_program **program)
{
    const struct tb_slice nothing = tb_slice_nothing();
    struct tb_planned p;
    struct tb_builder b;
    uint32_t met = TB_STEP_NONE;
    tb_planned_open(&p, c);
    tb_builder_open(&b, 0);
    if (p.common)
        met = tb_hosts_meet(&b, &p.host, c, TB_COMPOSITE_BARRIER, 0, nothing, nothing);
    if (!tb_planned_alone(&p))
        met = tell(&b, &p, met);
    if (p.common) {
        tb_hosts_meet(&b, &p.host, c, TB_COMPOSITE_BARRIER, 1, nothing, nothing);
        tb_builder_after(&b, met);
    }
    tb_builder_places(&b, TB_COLLECTIVE_PLACES);
    return tb_builder_finish(&b, program);
}

const struct tb_algorithm tb_barrier_planned = {TB_OPERATION_BARRIER, "planned", tb_fits_planned, make, NULL, NULL};
