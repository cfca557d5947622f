/* Through common memory to the first rank of each host, these by recursive doubling, and through common memory back:
 * log2 h messages of the whole one after the other for h hosts, and three latencies of the host. For operations that
 * are commutative, since ranks of a host need not follow each other. */
#include "collectives/algorithms.h"

static bool fits(const struct tb_collective *c)
{
    return c->commutative && tb_fits_hosts(c);
}

static int make(const struct tb_collective *c, struct tb_program **program)
{
    const struct tb_slice out = tb_slice_one(TB_SYMBOL_OUT, 0), nothing = tb_slice_nothing();
    struct tb_host_levels h;
    struct tb_builder b;
    tb_hosts_open(&h, c, 0);
    tb_builder_open(&b, 1);
    tb_builder_order(&b);
    bool leads = c->rank == h.leader;
    if (h.members > 1) {
        tb_hosts_meet(&b, &h, c, TB_COMPOSITE_REDUCE, 0, tb_slice_one(tb_source(c), 0), leads ? out : nothing);
        h.call.in_place = true;
    }
    if (leads) {
        uint32_t first = b.program.step_count;
        tb_allreduce_double(&b, &h.call);
        tb_hosts_name(&b, first, &h, c);
    }
    if (h.members > 1)
        tb_hosts_meet(&b, &h, c, TB_COMPOSITE_BCAST, 1, leads ? out : nothing, leads ? nothing : out);
    tb_builder_places(&b, TB_COLLECTIVE_PLACES);
    return tb_builder_finish(&b, program);
}

const struct tb_algorithm tb_allreduce_hosts = {TB_OPERATION_ALLREDUCE, "hosts", fits, make, NULL, NULL};
