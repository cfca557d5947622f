/* The algorithms, for the catalogue, and what they are made of. Constant data and pure functions; any thread. */
#ifndef TB_COLLECTIVES_ALGORITHMS_H
#define TB_COLLECTIVES_ALGORITHMS_H

#include "collectives/collectives.h"

extern const struct tb_algorithm tb_barrier_linear, tb_barrier_dissemination, tb_barrier_doubling, tb_barrier_tree,
    tb_barrier_inter;
extern const struct tb_algorithm tb_bcast_linear, tb_bcast_binomial, tb_bcast_chain, tb_bcast_binary,
    tb_bcast_split_binary, tb_bcast_scatter_ring, tb_bcast_scatter_doubling, tb_bcast_postal, tb_bcast_circulant,
    tb_bcast_two_tree, tb_bcast_inter;
extern const struct tb_algorithm tb_gather_linear, tb_gather_bounded, tb_gather_binomial;
extern const struct tb_algorithm tb_gatherv_linear, tb_gatherv_bounded, tb_gatherv_binomial;
extern const struct tb_algorithm tb_scatter_linear, tb_scatter_binomial, tb_scatterv_linear, tb_scatterv_binomial;
extern const struct tb_algorithm tb_allgather_linear, tb_allgather_ring, tb_allgather_bruck, tb_allgather_doubling,
    tb_allgather_neighbour, tb_allgather_circulant;
extern const struct tb_algorithm tb_allgatherv_linear, tb_allgatherv_ring, tb_allgatherv_doubling,
    tb_allgatherv_neighbour, tb_allgatherv_circulant, tb_allgatherv_pipelined;
extern const struct tb_algorithm tb_alltoall_linear, tb_alltoallv_linear, tb_alltoallw_linear;
extern const struct tb_algorithm tb_alltoall_pairwise, tb_alltoallv_pairwise, tb_alltoallw_pairwise;
extern const struct tb_algorithm tb_alltoall_swap, tb_alltoallv_swap, tb_alltoallw_swap, tb_alltoall_bruck;
extern const struct tb_algorithm tb_reduce_linear, tb_reduce_binomial, tb_reduce_chain, tb_reduce_binary,
    tb_reduce_halving, tb_reduce_circulant, tb_reduce_two_tree, tb_reduce_inter;
extern const struct tb_algorithm tb_allreduce_binomial, tb_allreduce_doubling, tb_allreduce_halving, tb_allreduce_ring,
    tb_allreduce_chain, tb_allreduce_binary, tb_allreduce_circulant, tb_allreduce_inter;
extern const struct tb_algorithm tb_reduce_scatter_linear, tb_reduce_scatter_pairwise, tb_reduce_scatter_halving,
    tb_reduce_scatter_butterfly, tb_reduce_scatter_circulant, tb_reduce_scatter_inter;
extern const struct tb_algorithm tb_reduce_scatter_block_linear, tb_reduce_scatter_block_pairwise,
    tb_reduce_scatter_block_halving, tb_reduce_scatter_block_butterfly, tb_reduce_scatter_block_circulant,
    tb_reduce_scatter_block_inter;
extern const struct tb_algorithm tb_barrier_shm, tb_bcast_shm, tb_reduce_shm, tb_allreduce_shm, tb_scan_shm,
    tb_exscan_shm, tb_gather_shm, tb_gatherv_shm, tb_scatter_shm, tb_scatterv_shm, tb_allgather_shm, tb_allgatherv_shm,
    tb_alltoall_shm, tb_alltoallv_shm, tb_alltoallw_shm, tb_reduce_scatter_shm, tb_reduce_scatter_block_shm;
extern const struct tb_algorithm tb_scan_linear, tb_scan_doubling, tb_scan_chain, tb_scan_two_tree, tb_scan_shares;
extern const struct tb_algorithm tb_exscan_linear, tb_exscan_doubling, tb_exscan_chain, tb_exscan_shares;
extern const struct tb_algorithm tb_neighbor_allgather_linear, tb_neighbor_allgatherv_linear;
extern const struct tb_algorithm tb_neighbor_alltoall_linear, tb_neighbor_alltoallv_linear,
    tb_neighbor_alltoallw_linear;

extern const struct tb_algorithm tb_bcast_levels_flat_binomial, tb_bcast_levels_flat_chain, tb_bcast_levels_chain_chain,
    tb_bcast_levels_packed_chain, tb_bcast_levels_lpbf_fitted, tb_bcast_levels_packed_fitted,
    tb_bcast_levels_fitted_fitted, tb_bcast_flat_binomial_multicast, tb_bcast_chain_chain_multicast,
    tb_bcast_packed_chain_multicast;
extern const struct tb_algorithm tb_reduce_levels_flat_binomial, tb_reduce_levels_flat_chain,
    tb_reduce_levels_chain_chain, tb_reduce_levels_packed_chain, tb_reduce_levels_lpbf_fitted,
    tb_reduce_levels_packed_fitted, tb_reduce_levels_fitted_fitted;
extern const struct tb_algorithm tb_allreduce_levels_flat_binomial, tb_allreduce_levels_flat_chain,
    tb_allreduce_levels_chain_chain, tb_allreduce_levels_packed_chain, tb_allreduce_levels_lpbf_fitted,
    tb_allreduce_levels_packed_fitted, tb_allreduce_levels_fitted_fitted, tb_allreduce_flat_binomial_multicast,
    tb_allreduce_chain_chain_multicast;
extern const struct tb_algorithm tb_allreduce_exchange_fitted, tb_barrier_levels_flat, tb_barrier_levels_binomial,
    tb_barrier_levels_fitted, tb_barrier_multicast;
extern const struct tb_algorithm tb_gather_levels, tb_gatherv_levels_bundles, tb_gatherv_levels_blocks,
    tb_gatherv_levels_pieces, tb_scatter_levels, tb_scatter_multicast, tb_scatterv_levels_bundles,
    tb_scatterv_levels_blocks, tb_scatterv_levels_pieces;
extern const struct tb_algorithm tb_allgather_levels_flat, tb_allgather_levels_binomial, tb_allgather_levels_chain,
    tb_allgather_levels_ring, tb_allgatherv_levels_flat, tb_allgatherv_levels_binomial, tb_allgatherv_levels_chain,
    tb_allgatherv_levels_ring, tb_allgather_multicast, tb_allgatherv_multicast, tb_allgather_turns_multicast,
    tb_allgatherv_turns_multicast;
extern const struct tb_algorithm tb_alltoall_levels_dealt, tb_alltoall_levels_dealt_hosts, tb_alltoall_levels_spread,
    tb_alltoall_levels_spread_hosts, tb_reduce_scatter_levels, tb_reduce_scatter_block_levels, tb_scan_levels,
    tb_exscan_levels;
extern const struct tb_algorithm tb_barrier_levels_inter, tb_bcast_levels_inter, tb_reduce_levels_inter,
    tb_allreduce_levels_inter, tb_gather_levels_inter, tb_gatherv_levels_inter, tb_scatter_levels_inter,
    tb_scatterv_levels_inter, tb_allgather_levels_inter, tb_allgatherv_levels_inter, tb_alltoall_levels_inter,
    tb_alltoallv_levels_inter, tb_alltoallw_levels_inter, tb_reduce_scatter_levels_inter,
    tb_reduce_scatter_block_levels_inter;
extern const struct tb_algorithm tb_alltoallv_levels_spread, tb_alltoallv_levels_spread_hosts,
    tb_alltoallw_levels_spread, tb_alltoallw_levels_spread_hosts;
extern const struct tb_algorithm tb_barrier_hosts, tb_bcast_hosts, tb_allreduce_hosts;
extern const struct tb_algorithm tb_barrier_planned, tb_bcast_planned, tb_gather_planned, tb_scatter_planned,
    tb_reduce_planned, tb_allreduce_planned;

/* Of an intercommunicator no allreduce ends on a rank before all ranks of both groups have begun it: MPI_Comm_idup
 * counts on that. */

/* For rows that need an intercommunicator, or do with either kind. */
bool tb_fits_inter(const struct tb_collective *c);
bool tb_fits_any(const struct tb_collective *c);
bool tb_fits_common(const struct tb_collective *c); /* an intracommunicator whose ranks share memory, all of them */
bool tb_fits_deals(const struct tb_collective *c);  /* the same, where a block is for one rank */
bool tb_has_parts(const struct tb_collective *c);   /* so many bytes that every rank has a part of the elements */
/* Latencies until a rank has looked at what each of the others has written there: reading a line that another core has
 * written takes an eighth of what a message does. */
static inline uint16_t tb_common_rounds(const struct tb_collective *c)
{
    uint32_t rounds = 1 + (c->size > 2 ? (c->size - 2) / 8 : 0);
    return rounds < UINT16_MAX ? (uint16_t)rounds : UINT16_MAX;
}

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

/* All pieces of a symbol; of WORK, of its `copy`th copy of them. */
static inline struct tb_slice tb_slice_whole(const struct tb_builder *b, enum tb_symbol symbol, uint32_t copy)
{
    return tb_slice_many(symbol, copy * b->program.pieces, b->program.pieces);
}

/* Every second of them, from the first (0) or the second (1) on. */
static inline struct tb_slice tb_slice_every_second(const struct tb_builder *b, enum tb_symbol symbol, uint32_t copy,
                                                    uint32_t from)
{
    return (struct tb_slice){symbol, copy * b->program.pieces + from, 2, (b->program.pieces + 1 - from) / 2};
}

/* The rank `distance` further on the ring of ranks. */
static inline uint32_t tb_rank_after(const struct tb_collective *c, uint32_t rank, uint64_t distance)
{
    return (uint32_t)((rank + distance) % c->size);
}

/* The last added step comes after all that read IN, which it may overwrite. */
void tb_after_input(struct tb_builder *b);

/* ---- pieces (pieces.c) ------------------------------------------------------------------------------------------- */

#define TB_PIECES_LIMIT 4096u /* that a message is cut into, for pipelines */

/* How many pieces of about c->argument bytes the message is; 1 if there is no argument. */
uint32_t tb_pieces(const struct tb_collective *c);
/* Other arguments than lengths of pieces. */
uint32_t tb_candidates_fan(const struct tb_collective *c, uint64_t *values, uint32_t room);
uint32_t tb_candidates_latency(const struct tb_collective *c, uint64_t *values, uint32_t room);
uint32_t tb_candidates_senders(const struct tb_collective *c, uint64_t *values, uint32_t room);
/* Lengths of pieces for pipelines whose first piece is everywhere after ceil(log2 p) rounds: of fewer pieces than that
 * other algorithms make as much. */
uint32_t tb_candidates_rounds(const struct tb_collective *c, uint64_t *values, uint32_t room);

/* ---- trees (tree.c) ---------------------------------------------------------------------------------------------- */

/* A tree in which everyone's descendants are the ranks that follow on the ring of ranks, so that reductions are in
 * order if the root is rank 0. */
enum tb_tree_kind {
    TB_TREE_CHAIN,
    TB_TREE_EVEN, /* the same number of ranks behind each of `argument` children */
    TB_TREE_BINOMIAL,
    TB_TREE_FIXED, /* the fixed tree: as deep as a binomial one */
    TB_TREE_POSTAL /* the postal model's, for a latency of `argument` */
};

#define TB_TREE_CHILDREN_LIMIT 512u

/* One rank's place in it: its parent and its children. */
struct tb_tree {
    bool root;
    bool whole;    /* each message is all pieces at once; the builder must order steps. Otherwise piece by piece */
    bool local;    /* of the local group of an intercommunicator */
    uint32_t join; /* pieces that are one message; 0: one */
    uint32_t parent;
    uint32_t count;
    uint32_t children[TB_TREE_CHILDREN_LIMIT]; /* ranks, the furthest, which has the most behind it, first */
};

/* Of the rank that is `distance` from the root. */
void tb_tree_find(struct tb_tree *t, enum tb_tree_kind kind, uint64_t argument, uint32_t size, uint32_t root,
                  uint32_t distance);
/* Of this rank in a tree with that root. */
void tb_tree_mine(struct tb_tree *t, enum tb_tree_kind kind, uint64_t argument, const struct tb_collective *c,
                  uint32_t root);
/* Of this rank in the binomial tree over the local group of an intercommunicator, for whole messages. Its root is
 * rank 0. In calls that are to be reproducible it is the fixed tree. */
void tb_tree_group(struct tb_tree *t, const struct tb_collective *c);

/* After how many gaps the postal model's tree has told everyone; how many children its root has, and how many ranks are
 * behind the first of them, itself included. */
uint32_t tb_tree_postal(uint64_t latency, uint32_t size, uint32_t *children, uint32_t *first);

/* No step. */
#define TB_STEP_NONE UINT32_MAX

/* The last added step comes after `step` piece by piece, if there is one. */
static inline void tb_after_pieces(struct tb_builder *b, uint32_t step)
{
    if (step != TB_STEP_NONE)
        tb_builder_after_pieces(b, step);
}

/* A binomial tree for a reduction, or what stands for it in calls that are to be reproducible. */
static inline enum tb_tree_kind tb_tree_binomial(const struct tb_collective *c)
{
    return c->reproducible ? TB_TREE_FIXED : TB_TREE_BINOMIAL;
}

/* How many ranks the one at a distance from the root stands for in a binomial tree: itself and those behind it. */
uint32_t tb_binomial_behind(uint32_t size, uint32_t distance);

/* Everyone passes `slice`, which has the root's data, on to its children. The root's pieces are there after the
 * step `ready`; other ranks may write them after their step `ready`. */
void tb_tree_broadcast(struct tb_builder *b, const struct tb_tree *t, uint16_t edge, struct tb_slice slice,
                       uint32_t ready);
/* The root gets the reduction of everyone's data: in OUT if that is asked for, otherwise anywhere. Returns where,
 * and as `*ready` after which step each piece of it is there; elsewhere, after which step each piece has left. In order
 * if the tree's root is rank 0. WORK has two copies of the whole. */
struct tb_slice tb_tree_reduce(struct tb_builder *b, const struct tb_tree *t, const struct tb_collective *c,
                               uint16_t edge, bool into_out, uint32_t *ready);

/* Whole programs along a tree: the message is cut into c->argument bytes if `cut`. */
int tb_tree_make_bcast(const struct tb_collective *c, enum tb_tree_kind kind, uint64_t argument, bool cut,
                       struct tb_program **program);
int tb_tree_make_reduce(const struct tb_collective *c, enum tb_tree_kind kind, uint64_t argument,
                        struct tb_program **program);
int tb_tree_make_allreduce(const struct tb_collective *c, enum tb_tree_kind kind, uint64_t argument,
                           struct tb_program **program);

/* ---- hosts (hosts.c) --------------------------------------------------------------------------------------------- */

/* A collective of two levels: ranks of a host meet in its common memory, and one of them, the leader, exchanges
 * messages with the leaders of other hosts. */
struct tb_host_levels {
    struct tb_collective call; /* as leaders have it, a communicator of theirs, numbered by host of the shape */
    uint32_t root;             /* is a leader; elsewhere the first rank of a host is */
    uint32_t leader;           /* of this rank's host */
    uint32_t members;          /* ranks of that */
};

#define TB_HOSTS_RANKS 4096u /* of one host, at most */

bool tb_fits_hosts(const struct tb_collective *c); /* several hosts, and several ranks on one of them */
void tb_hosts_open(struct tb_host_levels *h, const struct tb_collective *c, uint32_t root);
/* Steps from `first` on were made for the call of leaders: they get the ranks that these have. */
void tb_hosts_name(struct tb_builder *b, uint32_t first, const struct tb_host_levels *h, const struct tb_collective *c);
/* A composite step of the ranks of this host, which has several; its root is the leader. */
uint32_t tb_hosts_meet(struct tb_builder *b, const struct tb_host_levels *h, const struct tb_collective *c,
                       enum tb_composite what, uint16_t place, struct tb_slice give, struct tb_slice get);

/* ---- powers of two (fold.c) -------------------------------------------------------------------------------------- */

/* The largest power of two among the ranks: the first ranks stand two by two for one, so that everyone who stands for
 * itself or for two has a number below `power`. */
struct tb_fold {
    uint32_t size, power;
    uint32_t pairs;  /* so many: ranks 0 and 1, 2 and 3... */
    uint32_t chosen; /* of its pair this rank stands for both; otherwise the odd one does */
};

struct tb_fold tb_fold_make(uint32_t size, uint32_t chosen);
/* The rank that has a number. */
uint32_t tb_fold_rank(const struct tb_fold *f, uint32_t number);
/* Whether another rank stands for this one; if not, `number` is its own. */
bool tb_fold_out(const struct tb_fold *f, uint32_t rank, uint32_t *number);
/* The other one of its pair; false: it has none. */
bool tb_fold_other(const struct tb_fold *f, uint32_t rank, uint32_t *other);
/* The first rank that a number stands for; of `power`, the count of ranks. */
uint32_t tb_fold_first(const struct tb_fold *f, uint32_t number);

/* Recursive doubling (allreduce/doubling.c) of the one piece that tb_source has, into OUT. The builder orders steps. */
void tb_allreduce_double(struct tb_builder *b, const struct tb_collective *c);

/* ---- halving (halving.c) ----------------------------------------------------------------------------------------- */

/* A reduction in which in each round half of what a rank has is given away and half is combined, in the order of ranks:
 * with the rank whose number differs in bit 0 first, then bit 1... At the end everyone with a number has the reduction
 * of a range of pieces. The builder orders steps. */
struct tb_halving {
    struct tb_builder *b;
    struct tb_fold fold;
    const struct tb_collective *c;
    struct tb_slice sum;        /* a whole, in which my range is the sum so far */
    struct tb_slice places[2];  /* wholes that may be overwritten; the result is rather in the first */
    bool ranks;                 /* a piece for each rank; otherwise for each number */
    bool far;                   /* the highest bit first, so that everyone ends with its own piece; not in order */
    uint32_t number;            /* mine */
    uint32_t rounds;            /* done */
    uint32_t low[33], high[33]; /* my range before round k */
};

/* What is to be set first: b, fold, c, sum, places, ranks, far. Those who stand for two get the data of the other.
 * False: another rank stands for this one, and all it had to do was to send. */
bool tb_halving_open(struct tb_halving *h, uint16_t edge);
/* All rounds, from this edge on. */
void tb_halving_run(struct tb_halving *h, uint16_t edge);
/* The rank met in a round. */
uint32_t tb_halving_peer(const struct tb_halving *h, uint32_t round);
/* What that one has after the round. */
void tb_halving_theirs(const struct tb_halving *h, uint32_t round, uint32_t *low, uint32_t *high);

/* A range of the pieces of a whole. */
static inline struct tb_slice tb_slice_range(struct tb_slice whole, uint32_t low, uint32_t high)
{
    return tb_slice_many(whole.symbol, whole.first + low, high - low);
}

/* ---- pacing (pace.c) --------------------------------------------------------------------------------------------- */

#define TB_PACE_AHEAD 4u /* pieces that are on their way from a rank whose others wait for these to be there */

/* Who gets pieces tells the sender of each: the pieces that come with the step `come`, by numbers in SIZES from `first`
 * on. */
void tb_pace_tell(struct tb_builder *b, uint32_t peer, uint16_t edge, struct tb_slice pieces, uint32_t come,
                  uint32_t first);
/* The sender hears of them, with the step that is returned. */
uint32_t tb_pace_hear(struct tb_builder *b, uint32_t peer, uint16_t edge, uint32_t count, uint32_t first);

/* ---- circulant graphs (circulant_steps.c) ------------------------------------------------------------------------ */

/* Pipelines of the pieces of OUT from the root to everyone, and of everyone's pieces to the root, which has their
 * reduction in OUT then: not in order. For n pieces n - 1 + ceil(log2 p) rounds. WORK has two copies of the whole. */
void tb_circulant_broadcast(struct tb_builder *b, const struct tb_collective *c);
void tb_circulant_reduce(struct tb_builder *b, const struct tb_collective *c);
/* A pipeline of one block, which `root` has: its pieces, where this rank has or gets them. Those of several roots may
 * be in one program, which has no other messages. */
void tb_circulant_spread(struct tb_builder *b, const struct tb_collective *c, uint32_t root, struct tb_slice block);
/* Of one block for each rank, in ceil(log2 p) rounds; the builder orders steps. Everyone, who has its own block in
 * `whole`, gets all of them; blocks that lie `apart` go each in a message of its own. */
void tb_circulant_collect(struct tb_builder *b, const struct tb_collective *c, struct tb_slice whole, bool apart,
                          uint16_t edge);
/* Everyone's own block of `sum` becomes the reduction of everyone's block in `own`: not in order. `sum` is `own`, or
 * another whole, in which other blocks may be written, too, as in `room`. Edges from 0 on, 64 at most. */
void tb_circulant_combine(struct tb_builder *b, const struct tb_collective *c, struct tb_slice own, struct tb_slice sum,
                          struct tb_slice room);
#define TB_CIRCULANT_EDGES 64u

#endif
