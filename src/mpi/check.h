/* Checks of arguments. What is right passes through a few comparisons here; what is wrong is looked at again by the
 * cold functions in check.c, which find out what it is and raise the standard's error class with a message that names
 * call and argument. */
#ifndef TB_MPI_CHECK_H
#define TB_MPI_CHECK_H

#include "mpi/comm.h"
#include "mpi/datatype.h"

/* How the arguments of a transfer are called and where they stand, for messages; 0 and NULL where there is none. */
struct tb_names {
    const char *call;
    const char *buffer, *count, *datatype, *rank, *tag, *comm;
    uint8_t buffer_at, count_at, datatype_at, rank_at, tag_at, comm_at;
};

/* The type of data that is given with a count. Programs give MPI_DATATYPE_NULL where they have no data, and there it
 * does not matter. */
static inline const struct tb_type *tb_type_given(MPI_Datatype datatype, MPI_Count count)
{
    const struct tb_type *type = tb_type_find(datatype);
    bool nothing = __builtin_expect(type == NULL, 0) && count == 0 && datatype == MPI_DATATYPE_NULL;
    return nothing ? &tb_type_byte : type;
}

/* MPI_BOTTOM is a place for data only if the type has absolute addresses. */
#define TB_ADDRESS_LEAST 4096

/* Data that can be sent or received: of a committed type, and count times size or extent must fit. */
static inline bool tb_check_data(const struct tb_type *type, const void *buffer, MPI_Count count)
{
    int64_t bytes;
    return type != NULL && type->committed && count >= 0 &&
           (buffer != NULL || count == 0 || type->size == 0 || type->true_lower_bound >= TB_ADDRESS_LEAST) &&
           !__builtin_mul_overflow((int64_t)count, type->extent, &bytes) &&
           (type->dense || !__builtin_mul_overflow((int64_t)count, (int64_t)type->size, &bytes));
}

/* A rank to send to, MPI_PROC_NULL excluded. */
static inline bool tb_check_rank(const struct tb_comm *comm, int rank)
{
    return (uint32_t)rank < comm->peers;
}

/* Whether the machines of this rank and another of the communicator, or of all its ranks, are alike in this. Data goes
 * as it lies in memory, which long double cannot where it is written differently, and chars cannot be compared where
 * only some have a sign. That happens in few jobs, so it is looked up there. */
bool tb_is_alike(const struct tb_comm *comm, uint32_t rank, enum tb_trait trait) __attribute__((cold));
bool tb_are_alike(const struct tb_comm *comm, enum tb_trait trait) __attribute__((cold));
/* The same of so many long doubles. */
bool tb_can_pass(const struct tb_comm *comm, MPI_Count count, int rank) __attribute__((cold));
bool tb_can_pass_all(const struct tb_comm *comm, MPI_Count count) __attribute__((cold));

static inline bool tb_check_machine(const struct tb_comm *comm, const struct tb_type *type, MPI_Count count, int rank)
{
    return __builtin_expect(!type->long_double, 1) || tb_can_pass(comm, count, rank);
}

static inline bool tb_check_machines(const struct tb_comm *comm, const struct tb_type *type, MPI_Count count)
{
    return __builtin_expect(!type->long_double, 1) || tb_can_pass_all(comm, count);
}

/* Each finds out what is wrong with the arguments, raises it and returns the code. tb_raise_transfer looks at
 * communicator and data, tb_raise_send and tb_raise_receive at rank and tag too, tb_raise_data at data alone. */
int tb_raise_data(const struct tb_names *names, struct tb_comm *c, const void *buffer, MPI_Count count,
                  MPI_Datatype datatype) __attribute__((cold));
int tb_raise_transfer(const struct tb_names *names, struct tb_comm *c, MPI_Comm comm, const void *buffer,
                      MPI_Count count, MPI_Datatype datatype) __attribute__((cold));
int tb_raise_send(const struct tb_names *names, MPI_Comm comm, const void *buffer, MPI_Count count,
                  MPI_Datatype datatype, int dest, int tag) __attribute__((cold));
int tb_raise_receive(const struct tb_names *names, MPI_Comm comm, const void *buffer, MPI_Count count,
                     MPI_Datatype datatype, int source, int tag) __attribute__((cold));
/* An operation that orders MPI_CHAR where machines are not alike in it. */
int tb_raise_order(const char *call, int position, struct tb_comm *c, const char *op) __attribute__((cold));
int tb_raise_machines(const struct tb_names *names, struct tb_comm *c, const struct tb_type *type)
    __attribute__((cold));
int tb_raise_probe(const struct tb_names *names, MPI_Comm comm, int source, int tag) __attribute__((cold));

#endif
