#include "planner/bound_part.h"

enum tb_bound_reach tb_bound_reach_of(enum tb_operation operation)
{
    switch (operation) {
    case TB_OPERATION_BCAST:
    case TB_OPERATION_SCATTER:
    case TB_OPERATION_SCATTERV:
        return TB_BOUND_REACH_FROM_ROOT;
    case TB_OPERATION_REDUCE:
    case TB_OPERATION_GATHER:
    case TB_OPERATION_GATHERV:
        return TB_BOUND_REACH_TO_ROOT;
    case TB_OPERATION_SCAN:
    case TB_OPERATION_EXSCAN:
        return TB_BOUND_REACH_UP;
    case TB_OPERATION_BARRIER:
    case TB_OPERATION_ALLGATHER:
    case TB_OPERATION_ALLGATHERV:
    case TB_OPERATION_ALLTOALL:
    case TB_OPERATION_ALLTOALLV:
    case TB_OPERATION_ALLTOALLW:
    case TB_OPERATION_ALLREDUCE:
    case TB_OPERATION_REDUCE_SCATTER:
    case TB_OPERATION_REDUCE_SCATTER_BLOCK:
        return TB_BOUND_REACH_ALL;
    default:
        return TB_BOUND_REACH_NONE;
    }
}

/* What comes into it. */
static uint64_t part_in(const struct tb_collective *c, uint64_t bytes, const struct tb_bound_part *p,
                        struct tb_bound_load *load)
{
    uint64_t others = c->size - p->ranks;
    switch (c->operation) {
    case TB_OPERATION_BCAST:
        load->inside_all = true;
        return p->root ? 0 : bytes;
    case TB_OPERATION_REDUCE:
        load->outside_all = true;
        return p->root ? bytes : 0;
    case TB_OPERATION_ALLREDUCE:
        load->inside_all = load->outside_all = true;
        return bytes;
    case TB_OPERATION_SCAN:
    case TB_OPERATION_EXSCAN:
        /* Each time what those outside have between them, of which nothing else tells. */
        return tb_bound_times(bytes, p->enters);
    case TB_OPERATION_SCATTER:
    case TB_OPERATION_SCATTERV:
        return p->root ? 0 : tb_bound_times(bytes, p->ranks);
    case TB_OPERATION_GATHER:
    case TB_OPERATION_GATHERV:
        return p->root ? tb_bound_times(bytes, others) : 0;
    case TB_OPERATION_ALLGATHER:
    case TB_OPERATION_ALLGATHERV:
        load->inside_all = true;
        return tb_bound_times(bytes, others);
    case TB_OPERATION_ALLTOALL:
    case TB_OPERATION_ALLTOALLV:
    case TB_OPERATION_ALLTOALLW:
        return tb_bound_times(bytes, p->ranks * others);
    case TB_OPERATION_REDUCE_SCATTER:
    case TB_OPERATION_REDUCE_SCATTER_BLOCK:
        load->outside_all = true;
        return tb_bound_times(bytes, p->ranks);
    default:
        return 0;
    }
}

struct tb_bound_load tb_bound_part_load(const struct tb_collective *c, uint64_t bytes, const struct tb_bound_part *p,
                                        bool in)
{
    struct tb_bound_load load = {.bytes = 0};
    if (in) {
        load.bytes = part_in(c, bytes, p, &load);
        return load;
    }
    /* What leaves it comes into the rest. */
    const struct tb_bound_part rest = {
        .ranks = c->size - p->ranks, .root = !p->root, .enters = p->leaves, .leaves = p->enters};
    load.bytes = part_in(c, bytes, &rest, &load);
    bool inside_all = load.outside_all;
    load.outside_all = load.inside_all;
    load.inside_all = inside_all;
    return load;
}
