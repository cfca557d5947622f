/* The algorithms, for the catalogue, and what they are made of. Constant data and pure functions; any thread. */
#ifndef TB_COLLECTIVES_ALGORITHMS_H
#define TB_COLLECTIVES_ALGORITHMS_H

#include "collectives/collectives.h"

extern const struct tb_algorithm tb_barrier_linear, tb_barrier_dissemination, tb_barrier_inter;
extern const struct tb_algorithm tb_bcast_linear, tb_bcast_binomial, tb_bcast_inter;
extern const struct tb_algorithm tb_gather_linear, tb_gather_binomial, tb_gatherv_linear;
extern const struct tb_algorithm tb_scatter_linear, tb_scatter_binomial, tb_scatterv_linear;
extern const struct tb_algorithm tb_allgather_linear, tb_allgather_ring, tb_allgatherv_linear, tb_allgatherv_ring;
extern const struct tb_algorithm tb_alltoall_linear, tb_alltoallv_linear, tb_alltoallw_linear;
extern const struct tb_algorithm tb_alltoall_pairwise, tb_alltoallv_pairwise, tb_alltoallw_pairwise;
extern const struct tb_algorithm tb_alltoall_swap, tb_alltoallv_swap, tb_alltoallw_swap;
extern const struct tb_algorithm tb_reduce_linear, tb_reduce_binomial, tb_reduce_inter;
extern const struct tb_algorithm tb_allreduce_binomial, tb_allreduce_doubling, tb_allreduce_inter;
extern const struct tb_algorithm tb_reduce_scatter_linear, tb_reduce_scatter_inter;
extern const struct tb_algorithm tb_reduce_scatter_block_linear, tb_reduce_scatter_block_inter;
extern const struct tb_algorithm tb_scan_linear, tb_scan_doubling, tb_exscan_linear, tb_exscan_doubling;

/* For rows that need an intercommunicator, or do with either kind. */
bool tb_fits_inter(const struct tb_collective *c);
bool tb_fits_any(const struct tb_collective *c);

/* ---- slices ------------------------------------------------------------------------------------------------------ */

static inline struct tb_slice tb_slice_nothing(void)
{
    return (struct tb_slice){.symbol = TB_SYMBOL_OUT};
}

static inline struct tb_slice tb_slice_one(enum tb_symbol symbol, uint32_t piece)
{
    return (struct tb_slice){.symbol = symbol, .first = piece, .stride = 1, .count = 1};
}

static inline struct tb_slice tb_slice_many(enum tb_symbol symbol, uint32_t first, uint32_t count)
{
    return (struct tb_slice){.symbol = symbol, .first = first, .stride = 1, .count = count};
}

/* Where the data is that this rank gives. */
static inline enum tb_symbol tb_source(const struct tb_collective *c)
{
    return c->in_place ? TB_SYMBOL_OUT : TB_SYMBOL_IN;
}

/* The rank `distance` further on the ring of ranks. */
static inline uint32_t tb_rank_after(const struct tb_collective *c, uint32_t rank, uint64_t distance)
{
    return (uint32_t)((rank + distance) % c->size);
}

/* ---- trees (tree.c) ---------------------------------------------------------------------------------------------- */

/* A binomial tree over all ranks of a group: the one at `distance` from the root on the ring of ranks has as parent the
 * one whose distance lacks the lowest set bit. ceil(log2 p) messages one after the other, each of the whole data, which
 * is all pieces of a symbol. */
struct tb_tree {
    uint32_t size, rank, root;
    uint16_t edge;
    bool local; /* of the local group of an intercommunicator */
};

/* All pieces of a symbol; of WORK, of its `copy`th copy of them. */
struct tb_slice tb_tree_whole(const struct tb_builder *b, enum tb_symbol symbol, uint32_t copy);
/* Everyone gets the root's data, in `slice`, which everyone gives alike. */
void tb_tree_broadcast(struct tb_builder *b, const struct tb_tree *t, struct tb_slice slice);
/* The root gets the reduction of everyone's data. Returns where: in OUT if that is asked for, otherwise anywhere. With
 * root 0 operands are combined in the order of ranks; other roots are for commutative operations only. Uses two copies
 * of the whole in WORK. The builder must order steps. */
struct tb_slice tb_tree_reduce(struct tb_builder *b, const struct tb_tree *t, const struct tb_collective *c,
                               bool into_out);

#endif
