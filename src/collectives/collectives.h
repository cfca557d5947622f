/* collectives: a folder for each operation, a file for each algorithm, a row in the catalogue. An algorithm is a pure
 * function from the shape of the communicator, my rank and the arguments to my program.
 *
 * What IN and OUT are cut into:
 *   bcast                       OUT is one piece
 *   gather, allgather           IN is one piece, OUT has a piece for each rank
 *   scatter                     IN has a piece for each rank, OUT is one
 *   alltoall                    both have a piece for each rank
 *   reduce, allreduce, scan     both are one piece
 *   reduce_scatter              IN has a piece for each rank, OUT is one: the reduction of the rank's own pieces
 * In place, what would be in IN is in the piece of OUT where it belongs, and IN is not used; of reduce_scatter alone it
 * is in IN, which overlaps OUT. The pieces of an intercommunicator are those of the remote group, except that
 * reduce_scatter cuts by the ranks of the local one. */
#ifndef TB_COLLECTIVES_COLLECTIVES_H
#define TB_COLLECTIVES_COLLECTIVES_H

#include "schedule/schedule.h"
#include "topology/topology.h"

/* Of intercommunicators, whose root is in one group: in that group the root itself and the others say who they are. In
 * the other group `root` is the rank of the root. */
#define TB_ROOT_HERE   UINT32_MAX
#define TB_ROOT_BESIDE (UINT32_MAX - 1)

/* What an algorithm may know: the same on all ranks but for `rank` and `in_place`. */
struct tb_collective {
    enum tb_operation operation;
    uint32_t size, rank, root;
    uint64_t elements;      /* basic elements of the type signature; 0 where ranks do not know the same sizes */
    uint64_t element_bytes; /* of one of them; MPI requires equal signatures */
    bool commutative;       /* of reductions */
    bool in_place;          /* on this rank; changes no message */
    bool inter;             /* size and rank are those of the local group */
    uint32_t remote_size;
    uint64_t argument; /* of algorithms that take one; 0: its own */
};

struct tb_algorithm {
    enum tb_operation operation;
    const char *name;
    bool (*fits)(const struct tb_collective *c); /* NULL: always, but for intercommunicators */
    int (*make)(const struct tb_collective *c, struct tb_program **program);
    /* What `argument` is: "piece", bytes of a piece; "fan-out", children of a rank; "latency", of the postal model, in
     * multiples of the gap. NULL: it takes none. */
    const char *argument;
    /* Arguments worth rating for this call, at most `room`; how many. NULL with an argument: those of
     * tb_candidates_piece. */
    uint32_t (*candidates)(const struct tb_collective *c, uint64_t *values, uint32_t room);
};

bool tb_algorithm_fits(const struct tb_algorithm *a, const struct tb_collective *c);

extern const struct tb_algorithm
    *const tb_catalogue[]; /* NULL at the end; the first that fits an operation is its reference */

#endif
