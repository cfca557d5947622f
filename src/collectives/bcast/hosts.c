/* Along a binomial tree of the hosts, from the root to the first rank of each other host, and within each host through
 * common memory, in pieces that are passed on as they come. For h hosts log2 h (L + 2o + m G) and a latency of the
 * host; each host gets the data once, whatever the order of ranks is. */
#include "collectives/algorithms.h"

static int make(const struct tb_collective *c, struct tb_program **program)
{
    struct tb_host_levels h;
    struct tb_builder b;
    struct tb_tree t;
    uint32_t come = TB_STEP_NONE;
    tb_hosts_open(&h, c, c->root);
    tb_builder_open(&b, tb_pieces(c));
    const struct tb_slice data = tb_slice_whole(&b, TB_SYMBOL_OUT, 0), nothing = tb_slice_nothing();
    bool leads = c->rank == h.leader;
    if (leads) {
        tb_tree_mine(&t, TB_TREE_BINOMIAL, 0, &h.call, h.call.root);
        tb_tree_broadcast(&b, &t, 0, data, TB_STEP_NONE);
        tb_hosts_name(&b, 0, &h, c);
        come = t.root ? TB_STEP_NONE : 0;
    }
    if (h.members > 1) {
        tb_hosts_meet(&b, &h, c, TB_COMPOSITE_BCAST, 0, leads ? data : nothing, leads ? nothing : data);
        tb_builder_cut(&b, 1);
        tb_after_pieces(&b, come);
    }
    tb_builder_places(&b, TB_COLLECTIVE_PLACES);
    return tb_builder_finish(&b, program);
}

const struct tb_algorithm tb_bcast_hosts = {TB_OPERATION_BCAST, "hosts", tb_fits_hosts, make, "piece", NULL};
