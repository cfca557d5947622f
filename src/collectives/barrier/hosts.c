/* Ranks of a host meet in its common memory, the first of each host tells the others by dissemination, and lets those
 * of its host go. ceil(log2 h) messages one after the other for h hosts, and two latencies of the host. */
#include "collectives/algorithms.h"

/* After `before`, if there is such a step. Returns the last two steps, which stand for all. */
static void disseminate(struct tb_builder *b, const struct tb_collective *c, uint32_t before, uint32_t last[2])
{
    const struct tb_slice nothing = tb_slice_nothing();
    uint16_t round = 0;
    last[0] = last[1] = before;
    for (uint64_t distance = 1; distance < c->size; distance *= 2, round++) {
        uint32_t told = tb_builder_send(b, tb_rank_after(c, c->rank, distance), round, nothing);
        for (uint32_t i = round == 0; i < 2; i++)
            if (last[i] != TB_STEP_NONE)
                tb_builder_after(b, last[i]);
        last[0] = told;
        last[1] = tb_builder_receive(b, tb_rank_after(c, c->rank, c->size - distance), round, nothing);
    }
}

static int make(const struct tb_collective *c, struct tb_program **program)
{
    const struct tb_slice nothing = tb_slice_nothing();
    struct tb_host_levels h;
    struct tb_builder b;
    uint32_t come = TB_STEP_NONE, last[2];
    tb_hosts_open(&h, c, 0);
    tb_builder_open(&b, 0);
    if (h.members > 1)
        come = tb_hosts_meet(&b, &h, c, TB_COMPOSITE_BARRIER, 0, nothing, nothing);
    last[0] = last[1] = come;
    if (c->rank == h.leader) {
        uint32_t first = b.program.step_count;
        disseminate(&b, &h.call, come, last);
        tb_hosts_name(&b, first, &h, c);
    }
    if (h.members > 1) {
        tb_hosts_meet(&b, &h, c, TB_COMPOSITE_BARRIER, 1, nothing, nothing);
        tb_builder_after(&b, last[0]);
        if (last[1] != last[0])
            tb_builder_after(&b, last[1]);
    }
    tb_builder_places(&b, TB_COLLECTIVE_PLACES);
    return tb_builder_finish(&b, program);
}

const struct tb_algorithm tb_barrier_hosts = {TB_OPERATION_BARRIER, "hosts", tb_fits_hosts, make, NULL, NULL};
