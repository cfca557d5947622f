/* collectives: a folder for each operation, a file for each algorithm, a row in the catalogue. An algorithm is a pure
 * function from the shape of the communicator, my rank and the arguments to my program.
 *
 * What IN and OUT are cut into:
 *   bcast                       OUT is cut evenly, into as many pieces as the algorithm likes
 *   gather, allgather           IN is one piece, OUT has a piece for each rank
 *   scatter                     IN has a piece for each rank, OUT is one
 *   alltoall                    both have a piece for each rank
 *   reduce, allreduce, scan     both are cut evenly
 *   reduce_scatter              IN has a piece for each rank, OUT is one: the reduction of the rank's own pieces
 *   neighbor_allgather          IN is one piece, OUT has a piece for each source
 *   neighbor_alltoall           IN has a piece for each target, OUT one for each source
 * What is cut evenly is bound later to any size of the same class: the last pieces may be short or empty, on all ranks
 * alike. WORK has pieces of the same lengths, several times over; where pieces are blocks of ranks it has blocks of one
 * length, unless the program says that it is cut as IN.
 * In place, what would be in IN is in the piece of OUT where it belongs, and IN is not used; of reduce_scatter alone it
 * is in IN, which overlaps OUT. The pieces of an intercommunicator are those of the remote group, except that
 * reduce_scatter cuts by the ranks of the local one. */
#ifndef TB_COLLECTIVES_COLLECTIVES_H
#define TB_COLLECTIVES_COLLECTIVES_H

#include <string.h>

#include "collectives/forest.h"
#include "schedule/schedule.h"
#include "topology/topology.h"

/* Of intercommunicators, whose root is in one group: in that group the root itself and the others say who they are. In
 * the other group `root` is the rank of the root. */
#define TB_ROOT_HERE   UINT32_MAX
#define TB_ROOT_BESIDE (UINT32_MAX - 1)
/* Among sources and targets: there is no neighbour (MPI_PROC_NULL). Its block is there, and nothing happens to it. */
#define TB_NOBODY UINT32_MAX

/* Bytes of others' blocks that a rank keeps for passing them on, at most: at 100 Mbit/s five seconds of one link, where
 * a latency is worth less than the memory. */
#define TB_BUNDLE_LIMIT (64u << 20)

/* What an algorithm may know: the same on all ranks but for `rank` and `in_place`. */
struct tb_collective {
    enum tb_operation operation;
    uint32_t size, rank, root;
    uint64_t elements;      /* basic elements of the type signature; 0 also if the operation is unsized */
    uint64_t element_bytes; /* of one of them; MPI requires equal signatures */
    bool commutative;       /* of reductions */
    bool reproducible;      /* of reductions: each element is combined along the fixed tree; then not commutative */
    bool in_place;          /* on this rank; changes no message */
    bool inter;             /* size and rank are those of the local group */
    bool common;            /* ranks of a host share memory through which composite steps can be run, on each host */
    bool connected;         /* no multicast: it may be started in another order than elsewhere */
    bool last;              /* the meeting with which a job ends, connected too: no plan is for it, nor is it counted */
    uint8_t skip;           /* levels that algorithms by levels leave out: bits 1 << enum tb_level */
    uint32_t remote_size;
    uint64_t argument; /* of algorithms that take one; 0: its own */
    /* Where the ranks are, and what the ways between them cost; the planner sets both, for rating and for running. Of
     * an intercommunicator both groups are in it: tb_group_shape_index. NULL: not known, in tests. */
    const struct tb_group_shape *shape;
    const struct tb_cost_table *costs; /* the shape's; may be NULL */
    const struct tb_forest *forest;    /* planned trees over the hosts of the shape; NULL: there are none */
    bool first;                        /* of an intercommunicator: the local group is the first of the two */
    /* The call stands for one on an intercommunicator (sides.h): its last rank is the root, which is in the other group
     * and has no data or block of its own where it gets something. */
    bool guest;
    /* Of neighbourhood collectives, this rank's neighbours in the order of the call's blocks; a rank may stand there
     * several times, and so may this one. Edge numbers tell the messages between two ranks apart: that of a target here
     * is that of the source there which is meant, and no two sources (targets) of the same rank have the same one. What
     * they point to must live while the program is made. */
    const uint32_t *sources, *targets;
    const uint16_t *source_edges, *target_edges;
    uint32_t source_count, target_count;
};

/* Whether ranks do not know the sizes of each other's blocks, so that `elements` says nothing. */
static inline bool tb_operation_unsized(enum tb_operation o)
{
    return o == TB_OPERATION_GATHERV || o == TB_OPERATION_SCATTERV || o == TB_OPERATION_ALLTOALLV ||
           o == TB_OPERATION_ALLTOALLW;
}

struct tb_algorithm {
    enum tb_operation operation;
    const char *name;
    bool (*fits)(const struct tb_collective *c); /* NULL: always, but for intercommunicators */
    int (*make)(const struct tb_collective *c, struct tb_program **program);
    /* What `argument` is: "piece", bytes of a piece; "pieces", bytes of a piece of narrow stages and of wide ones
     * (tb_argument_of); "fan-out", children of a rank; "latency", of the postal model, in
     * multiples of the gap; "senders", that may send at once to the root, or
     * by multicast. NULL: it takes none. */
    const char *argument;
    /* Arguments worth rating for this call, at most `room`; how many. NULL with an argument: those of
     * tb_candidates_piece. */
    uint32_t (*candidates)(const struct tb_collective *c, uint64_t *values, uint32_t room);
};

/* An argument that is two lengths of pieces, of narrow stages and of wide ones (levels.h): the message is cut into the
 * shorter of the two, and the longer is a power of two of these. One length alone is both. */
#define TB_ARGUMENT_BITS  48u
#define TB_ARGUMENT_PIECE ((1ull << TB_ARGUMENT_BITS) - 1)
#define TB_ARGUMENT_JOIN  12u /* at most so many times two */
static inline uint64_t tb_argument_piece(uint64_t argument)
{
    return argument & TB_ARGUMENT_PIECE;
}
/* Pieces that go as one message in wide stages, and in narrow ones. */
static inline uint32_t tb_argument_wide(uint64_t argument)
{
    return 1u << (argument >> TB_ARGUMENT_BITS & 15u);
}
static inline uint32_t tb_argument_narrow(uint64_t argument)
{
    return 1u << (argument >> (TB_ARGUMENT_BITS + 4) & 15u);
}
/* The longer of the two lengths. */
static inline uint64_t tb_argument_longest(uint64_t argument)
{
    return tb_argument_piece(argument) * tb_argument_wide(argument) * tb_argument_narrow(argument);
}
/* Of an algorithm that fits stages to their costs, an argument that was found for a call also says into how many pieces
 * its message is cut, a power of two: so a part of it that is simulated goes the way of the whole. 0: as it is. */
#define TB_ARGUMENT_COUNT_BITS 56u
static inline uint32_t tb_argument_count(uint64_t argument)
{
    uint64_t bits = argument >> TB_ARGUMENT_COUNT_BITS;
    return bits > 0 ? 1u << (bits - 1) : 0;
}
static inline uint64_t tb_argument_counted(uint64_t argument, uint32_t count)
{
    return argument | (uint64_t)(32 - __builtin_clz(count)) << TB_ARGUMENT_COUNT_BITS;
}
/* What people write: without the number of pieces. */
static inline uint64_t tb_argument_written(uint64_t argument)
{
    return argument & ((1ull << TB_ARGUMENT_COUNT_BITS) - 1);
}
/* 0: that cannot be said. */
uint64_t tb_argument_of(uint64_t narrow, uint64_t wide);
/* "4096", or "4096/32768"; with the largest units, if these are asked for. The length, as snprintf gives it. */
int tb_argument_print(uint64_t argument, bool units, char *text, size_t size);

/* Lengths of pieces in bytes, from the whole message down in a geometric series. */
uint32_t tb_candidates_piece(const struct tb_collective *c, uint64_t *values, uint32_t room);

/* Whether it follows the levels of the network (levels.h), which its name says: the others know nothing of them, or of
 * hosts alone. */
static inline bool tb_algorithm_levels(const struct tb_algorithm *a)
{
    return strncmp(a->name, "levels", 6) == 0;
}

/* Whether it multicasts inside clusters, which its name says, too. */
static inline bool tb_algorithm_casts(const struct tb_algorithm *a)
{
    size_t length = strlen(a->name), end = sizeof "-multicast" - 1;
    return length > end && strcmp(a->name + length - end, "-multicast") == 0;
}

bool tb_algorithm_fits(const struct tb_algorithm *a, const struct tb_collective *c);

/* ---- results that do not depend on where ranks are (reproducible.c) ---------------------------------------------- */

/* Whether it combines each element along the fixed tree (schedule/schedule.h) in calls that are to be reproducible,
 * whatever the root, the number of pieces, in place or not; other algorithms do not fit these calls. */
bool tb_algorithm_reproducible(const struct tb_algorithm *a);

/* Whether the operation combines data at all. */
static inline bool tb_operation_reduces(enum tb_operation o)
{
    return o >= TB_OPERATION_REDUCE && o <= TB_OPERATION_EXSCAN;
}

/* Makes it a call that is to be reproducible, if its operation combines data. */
static inline void tb_collective_reproduce(struct tb_collective *c)
{
    c->reproducible = tb_operation_reduces(c->operation);
    c->commutative = c->commutative && !c->reproducible;
}

extern const struct tb_algorithm
    *const tb_catalogue[]; /* NULL at the end; the first that fits an operation is its reference */

#endif
