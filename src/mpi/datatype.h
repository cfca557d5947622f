/* Datatypes as the MPI calls see them; so far the predefined ones. */
#ifndef TB_MPI_DATATYPE_H
#define TB_MPI_DATATYPE_H

#include "mpi/self.h"

/* The type of a handle, NULL if there is none. */
static inline const struct tb_type *tb_type_find(MPI_Datatype datatype)
{
    uintptr_t at = (uintptr_t)datatype - (uintptr_t)MPI_DATATYPE_NULL;
    return __builtin_expect(at < sizeof tb_self.types / sizeof tb_self.types[0], 1) ? tb_self.types[at] : NULL;
}

void tb_types_open(void); /* fills tb_self.types */
/* Raises MPI_ERR_TYPE: says what is wrong with the handle. */
int tb_raise_type(struct tb_comm *comm, const char *call, int position, const char *name, MPI_Datatype datatype)
    __attribute__((cold));
/* Of a pair: bytes of the value; the rest is the index. */
uint64_t tb_type_pair_value(const struct tb_type *type);

#endif
