/* Reduction operations as the MPI calls see them: the predefined ones by the value of their handle, the program's own
 * by a struct tb_user_op each, which lives until MPI_Op_free. Any thread may look one up. */
#ifndef TB_MPI_OP_H
#define TB_MPI_OP_H

#include "mpi/comm.h"
#include "mpi/self.h"

struct tb_user_op {
    struct tb_handle head;
    const struct tb_op *op; /* held */
};

/* The operation of a handle, NULL if there is none. */
const struct tb_op *tb_op_find(MPI_Op op);
/* Finds an operation that may be used in a reduction of data of this type; otherwise raises MPI_ERR_OP. */
int tb_op_get(struct tb_comm *comm, const char *call, int position, MPI_Op handle, const struct tb_type *type,
              const struct tb_op **op);

#endif
