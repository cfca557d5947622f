#include "collectives/algorithms.h"

const struct tb_algorithm *const tb_catalogue[] = {
    &tb_barrier_linear,
    &tb_barrier_dissemination,
    &tb_barrier_inter,
    &tb_bcast_linear,
    &tb_bcast_binomial,
    &tb_bcast_inter,
    &tb_gather_linear,
    &tb_gather_binomial,
    &tb_gatherv_linear,
    &tb_scatter_linear,
    &tb_scatter_binomial,
    &tb_scatterv_linear,
    &tb_allgather_linear,
    &tb_allgather_ring,
    &tb_allgatherv_linear,
    &tb_allgatherv_ring,
    &tb_alltoall_linear,
    &tb_alltoall_pairwise,
    &tb_alltoall_swap,
    &tb_alltoallv_linear,
    &tb_alltoallv_pairwise,
    &tb_alltoallv_swap,
    &tb_alltoallw_linear,
    &tb_alltoallw_pairwise,
    &tb_alltoallw_swap,
    &tb_reduce_linear,
    &tb_reduce_binomial,
    &tb_reduce_inter,
    &tb_allreduce_binomial,
    &tb_allreduce_doubling,
    &tb_allreduce_inter,
    &tb_reduce_scatter_linear,
    &tb_reduce_scatter_inter,
    &tb_reduce_scatter_block_linear,
    &tb_reduce_scatter_block_inter,
    &tb_scan_linear,
    &tb_scan_doubling,
    &tb_exscan_linear,
    &tb_exscan_doubling,
    NULL,
};

bool tb_algorithm_fits(const struct tb_algorithm *a, const struct tb_collective *c)
{
    return a->operation == c->operation && (a->fits != NULL ? a->fits(c) : !c->inter);
}

bool tb_fits_inter(const struct tb_collective *c)
{
    return c->inter;
}

bool tb_fits_any(const struct tb_collective *c)
{
    return true;
}
