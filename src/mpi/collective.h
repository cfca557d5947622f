/* A collective call on its way from its arguments to its program: what the planner must know, what the program's
 * symbols stand for, and the tables that this takes. It is made on the stack of the call, checks the arguments as they
 * are given to it, and ends with tb_call_end: the program runs, or a request is made that runs it (see form.h). One
 * thread uses it. */
#ifndef TB_MPI_COLLECTIVE_H
#define TB_MPI_COLLECTIVE_H

#include "mpi/check.h"
#include "mpi/form.h"
#include "mpi/ints.h"

struct tb_call {
    struct tb_comm *comm;
    const struct tb_form *form;
    struct tb_collective what;
    struct tb_binding binding;
    /* Blocks of IN and OUT: ranks that data is exchanged with, of the communicator or of the remote group, or
     * neighbours. */
    uint32_t blocks[2];
    struct tb_buffer *tables; /* of IN, then of OUT, or NULL */
    uint64_t *offsets;        /* or NULL */
};

/* Blocks of different sizes, as the arguments of a `v` or `w` call give them. */
struct tb_vector {
    const void *buffer;
    struct tb_ints counts, displs;
    MPI_Datatype type;
    const MPI_Datatype *types; /* of each block, and then displs are in bytes */
    bool typed;                /* there are such; otherwise all have the same one */
    const char *displs_name;
};

/* All that return an int raise an error of the call and return its code, or MPI_SUCCESS. Which call it is the form
 * says; `call` of the names is not used. */
int tb_call_open(struct tb_call *call, const struct tb_form *form, const struct tb_names *names,
                 enum tb_operation operation, MPI_Comm comm);
int tb_call_root(struct tb_call *call, const struct tb_names *names, int root);
/* MPI_IN_PLACE was given for this buffer: it must be possible here. */
int tb_call_in_place(struct tb_call *call, const struct tb_names *names, bool possible);
/* A symbol is data of equal blocks, of which this is the first. */
int tb_call_data(struct tb_call *call, const struct tb_names *names, enum tb_symbol symbol, const void *buffer,
                 MPI_Count count, MPI_Datatype datatype);
/* A symbol is blocks of different sizes, one for each of call->blocks[symbol]. `bytes` may be NULL: of the largest. */
int tb_call_vector(struct tb_call *call, const struct tb_names *names, enum tb_symbol symbol,
                   const struct tb_vector *vector, uint64_t *bytes);
/* What this rank gives must not stand where it takes. Blocks at one address are the same only if their types are: those
 * of different types may lie between each other, as in a program that keeps borders and inner part in one array. */
int tb_call_distinct(struct tb_call *call, const struct tb_names *names, const struct tb_buffer *given,
                     const struct tb_buffer *taken);
/* The same for IN and OUT that are blocks of different sizes: those with one number, which are for and from one rank,
 * or for and from neighbours that stand at one place. */
int tb_call_distinct_blocks(struct tb_call *call, const struct tb_names *names);
/* WORK has blocks with room for the packed data of `like`. */
void tb_call_relay(struct tb_call *call, const struct tb_buffer *like);
/* What is cut is `elements` of so many bytes. */
void tb_call_measure(struct tb_call *call, uint64_t elements, uint64_t element_bytes);

/* There is no memory for it here: the others are told; of a persistent one, at least the numbers of later ones agree.
 */
int tb_call_refuse(struct tb_call *call, int error);
int tb_call_run(struct tb_call *call);  /* of a blocking call */
int tb_call_keep(struct tb_call *call); /* of the others: makes the request, and starts it if it is not persistent */
void tb_call_drop(struct tb_call *call);

/* After the arguments: carry it out, or drop it. */
static inline int tb_call_end(struct tb_call *call, int code)
{
    if (__builtin_expect(code == MPI_SUCCESS, 1))
        return call->form->kind == TB_FORM_BLOCKING ? tb_call_run(call) : tb_call_keep(call);
    tb_call_drop(call);
    return code;
}

#endif
