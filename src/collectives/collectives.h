/* collectives: a folder for each operation, a file for each algorithm, a row in the catalogue. An algorithm is a pure
 * function from the shape of the communicator, my rank and the arguments to my program. */
#ifndef TB_COLLECTIVES_COLLECTIVES_H
#define TB_COLLECTIVES_COLLECTIVES_H

#include "schedule/schedule.h"
#include "topology/topology.h"

/* What an algorithm may know: the same on all ranks but for `rank`. */
struct tb_collective {
    enum tb_operation operation;
    uint32_t size, rank, root;
    uint64_t elements;      /* basic elements of the type signature */
    uint32_t element_bytes; /* of one of them; MPI requires equal signatures */
};

struct tb_algorithm {
    enum tb_operation operation;
    const char *name;
    bool (*fits)(const struct tb_collective *c); /* NULL: always */
    int (*make)(const struct tb_collective *c, struct tb_program **program);
};

extern const struct tb_algorithm
    *const tb_catalogue[]; /* NULL at the end; the first that fits an operation is its reference */

#endif
