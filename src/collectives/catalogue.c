#include "collectives/algorithms.h"

#define ELEMENT_MOST 32u /* bytes of the longest basic element, a complex of long doubles */

const struct tb_algorithm *const tb_catalogue[] = {
    &tb_barrier_linear,
    &tb_barrier_dissemination,
    &tb_barrier_doubling,
    &tb_barrier_tree,
    &tb_barrier_shm,
    &tb_barrier_hosts,
    &tb_barrier_levels_flat,
    &tb_barrier_levels_binomial,
    &tb_barrier_levels_inter,
    &tb_barrier_inter,
    &tb_bcast_linear,
    &tb_bcast_binomial,
    &tb_bcast_chain,
    &tb_bcast_binary,
    &tb_bcast_split_binary,
    &tb_bcast_scatter_ring,
    &tb_bcast_scatter_doubling,
    &tb_bcast_postal,
    &tb_bcast_circulant,
    &tb_bcast_two_tree,
    &tb_bcast_shm,
    &tb_bcast_hosts,
    &tb_bcast_levels_flat_flat,
    &tb_bcast_levels_flat_binomial,
    &tb_bcast_levels_flat_chain,
    &tb_bcast_levels_flat_binary,
    &tb_bcast_levels_binomial_binomial,
    &tb_bcast_levels_chain_chain,
    &tb_bcast_levels_chain_binary,
    &tb_bcast_levels_packed_chain,
    &tb_bcast_levels_packed_binary,
    &tb_bcast_levels_lpbf_binomial,
    &tb_bcast_levels_inter,
    &tb_bcast_inter,
    &tb_gather_linear,
    &tb_gather_bounded,
    &tb_gather_binomial,
    &tb_gather_shm,
    &tb_gather_levels,
    &tb_gather_levels_inter,
    &tb_gatherv_linear,
    &tb_gatherv_bounded,
    &tb_gatherv_binomial,
    &tb_gatherv_shm,
    &tb_gatherv_levels_bundles,
    &tb_gatherv_levels_blocks,
    &tb_gatherv_levels_pieces,
    &tb_gatherv_levels_inter,
    &tb_scatter_linear,
    &tb_scatter_binomial,
    &tb_scatter_shm,
    &tb_scatter_levels,
    &tb_scatter_levels_inter,
    &tb_scatterv_linear,
    &tb_scatterv_binomial,
    &tb_scatterv_shm,
    &tb_scatterv_levels_bundles,
    &tb_scatterv_levels_blocks,
    &tb_scatterv_levels_pieces,
    &tb_scatterv_levels_inter,
    &tb_allgather_linear,
    &tb_allgather_ring,
    &tb_allgather_bruck,
    &tb_allgather_doubling,
    &tb_allgather_neighbour,
    &tb_allgather_circulant,
    &tb_allgather_shm,
    &tb_allgather_levels_flat,
    &tb_allgather_levels_binomial,
    &tb_allgather_levels_chain,
    &tb_allgather_levels_ring,
    &tb_allgather_levels_inter,
    &tb_allgatherv_linear,
    &tb_allgatherv_ring,
    &tb_allgatherv_doubling,
    &tb_allgatherv_neighbour,
    &tb_allgatherv_circulant,
    &tb_allgatherv_pipelined,
    &tb_allgatherv_shm,
    &tb_allgatherv_levels_flat,
    &tb_allgatherv_levels_binomial,
    &tb_allgatherv_levels_chain,
    &tb_allgatherv_levels_ring,
    &tb_allgatherv_levels_inter,
    &tb_alltoall_linear,
    &tb_alltoall_pairwise,
    &tb_alltoall_swap,
    &tb_alltoall_bruck,
    &tb_alltoall_shm,
    &tb_alltoall_levels_dealt,
    &tb_alltoall_levels_dealt_hosts,
    &tb_alltoall_levels_spread,
    &tb_alltoall_levels_spread_hosts,
    &tb_alltoall_levels_inter,
    &tb_alltoallv_linear,
    &tb_alltoallv_pairwise,
    &tb_alltoallv_swap,
    &tb_alltoallv_shm,
    &tb_alltoallv_levels_spread,
    &tb_alltoallv_levels_spread_hosts,
    &tb_alltoallv_levels_inter,
    &tb_alltoallw_linear,
    &tb_alltoallw_pairwise,
    &tb_alltoallw_swap,
    &tb_alltoallw_shm,
    &tb_alltoallw_levels_spread,
    &tb_alltoallw_levels_spread_hosts,
    &tb_alltoallw_levels_inter,
    &tb_reduce_linear,
    &tb_reduce_binomial,
    &tb_reduce_chain,
    &tb_reduce_binary,
    &tb_reduce_halving,
    &tb_reduce_circulant,
    &tb_reduce_two_tree,
    &tb_reduce_shm,
    &tb_reduce_levels_flat_flat,
    &tb_reduce_levels_flat_binomial,
    &tb_reduce_levels_flat_chain,
    &tb_reduce_levels_flat_binary,
    &tb_reduce_levels_binomial_binomial,
    &tb_reduce_levels_chain_chain,
    &tb_reduce_levels_chain_binary,
    &tb_reduce_levels_packed_chain,
    &tb_reduce_levels_packed_binary,
    &tb_reduce_levels_lpbf_binomial,
    &tb_reduce_levels_inter,
    &tb_reduce_inter,
    &tb_allreduce_binomial,
    &tb_allreduce_doubling,
    &tb_allreduce_halving,
    &tb_allreduce_ring,
    &tb_allreduce_chain,
    &tb_allreduce_binary,
    &tb_allreduce_circulant,
    &tb_allreduce_shm,
    &tb_allreduce_hosts,
    &tb_allreduce_levels_flat_flat,
    &tb_allreduce_levels_flat_binomial,
    &tb_allreduce_levels_flat_chain,
    &tb_allreduce_levels_flat_binary,
    &tb_allreduce_levels_binomial_binomial,
    &tb_allreduce_levels_chain_chain,
    &tb_allreduce_levels_chain_binary,
    &tb_allreduce_levels_packed_chain,
    &tb_allreduce_levels_packed_binary,
    &tb_allreduce_levels_lpbf_binomial,
    &tb_allreduce_exchange_flat,
    &tb_allreduce_exchange_binomial,
    &tb_allreduce_levels_inter,
    &tb_allreduce_inter,
    &tb_reduce_scatter_linear,
    &tb_reduce_scatter_pairwise,
    &tb_reduce_scatter_halving,
    &tb_reduce_scatter_butterfly,
    &tb_reduce_scatter_circulant,
    &tb_reduce_scatter_shm,
    &tb_reduce_scatter_levels,
    &tb_reduce_scatter_levels_inter,
    &tb_reduce_scatter_inter,
    &tb_reduce_scatter_block_linear,
    &tb_reduce_scatter_block_pairwise,
    &tb_reduce_scatter_block_halving,
    &tb_reduce_scatter_block_butterfly,
    &tb_reduce_scatter_block_circulant,
    &tb_reduce_scatter_block_shm,
    &tb_reduce_scatter_block_levels,
    &tb_reduce_scatter_block_levels_inter,
    &tb_reduce_scatter_block_inter,
    &tb_scan_linear,
    &tb_scan_doubling,
    &tb_scan_chain,
    &tb_scan_two_tree,
    &tb_scan_shares,
    &tb_scan_shm,
    &tb_scan_levels,
    &tb_exscan_linear,
    &tb_exscan_doubling,
    &tb_exscan_chain,
    &tb_exscan_shares,
    &tb_exscan_shm,
    &tb_exscan_levels,
    &tb_neighbor_allgather_linear,
    &tb_neighbor_allgatherv_linear,
    &tb_neighbor_alltoall_linear,
    &tb_neighbor_alltoallv_linear,
    &tb_neighbor_alltoallw_linear,
    NULL,
};

bool tb_algorithm_fits(const struct tb_algorithm *a, const struct tb_collective *c)
{
    return a->operation == c->operation && (a->fits != NULL ? a->fits(c) : !c->inter) &&
           (!c->reproducible || tb_algorithm_reproducible(a));
}

bool tb_fits_inter(const struct tb_collective *c)
{
    return c->inter;
}

/* Empty parts are not sent: nothing is gained by them, and ranks that do not agree about the length would wait for each
 * other. Choices are made for bytes, before the elements are known. */
bool tb_has_parts(const struct tb_collective *c)
{
    return c->elements * c->element_bytes >= (uint64_t)ELEMENT_MOST * c->size;
}

bool tb_fits_common(const struct tb_collective *c)
{
    return c->common && !c->inter && (c->shape == NULL || c->shape->host_count == 1);
}

bool tb_fits_deals(const struct tb_collective *c)
{
    return tb_fits_common(c) && c->size <= TB_COMMON_DEALS;
}

bool tb_fits_any(const struct tb_collective *c)
{
    return true;
}

void tb_after_input(struct tb_builder *b)
{
    for (uint32_t i = 0; b->error == TB_OK && i + 1 < b->program.step_count; i++)
        if (b->program.steps[i].kind != TB_STEP_RECEIVE && b->program.steps[i].slice.symbol == TB_SYMBOL_IN)
            tb_builder_after(b, i);
}
