/* A collective that has a request: what its program needs until it has run, and a persistent one until it is freed. It
 * belongs to its struct tb_pending, and keeps alive the datatypes and the operation that it uses, whatever the program
 * frees meanwhile; the communicator is held by the request. Touched by the thread that uses the request. */
#ifndef TB_MPI_COLLECTIVE_REQUEST_H
#define TB_MPI_COLLECTIVE_REQUEST_H

#include "mpi/request.h"

struct tb_collective_request {
    struct tb_binding binding;
    const struct tb_program *program; /* of the communicator's planner */
    struct tb_kept *kept;             /* of a persistent one: its own common memory, or NULL */
    struct tb_buffer *tables;         /* that the binding points to: owned; NULL: none */
    uint64_t *offsets;                /* likewise */
    uint32_t table_size;              /* entries of `tables` */
};

/* Starts the collective of a request. Errors are told by the request. */
void tb_collective_request_start(struct tb_pending *p);
/* NULL is allowed: a request that was given up while it was being made. */
void tb_collective_request_free(struct tb_collective_request *collective_request, struct tb_comm *comm);

#endif
