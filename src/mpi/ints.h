/*
 * What differs between an MPI call and its large-count twin, in the one form that the implementation sees. The
 * generated bindings (see bindings.py) make these values from the caller's arguments; they are passed by value, own
 * nothing and live as long as the call.
 */
#ifndef TB_MPI_INTS_H
#define TB_MPI_INTS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <mpi.h>

/* A read-only view of the caller's array of int (small call) or of MPI_Count or MPI_Aint (large call). */
struct tb_ints {
    const void *base; /* null when the caller gave null, as is usual where an argument matters only at the root */
    unsigned wide;    /* 1: elements of 64 bits, 0: int */
};

/* A function of the program, whose type depends on the twin. Cast it back to that type before calling it. */
struct tb_callback {
    void (*function)(void); /* null when the caller gave null */
    bool large;             /* true: of the _c type, which takes MPI_Count */
};

static inline struct tb_ints tb_ints_narrow(const int *base)
{
    return (struct tb_ints){base, 0};
}

static inline struct tb_ints tb_ints_wide(const int64_t *base)
{
    return (struct tb_ints){base, 1};
}

/* The element at `i`. Not to be called on a null view. */
static inline int64_t tb_ints_at(struct tb_ints ints, size_t i)
{
    return ints.wide ? ((const int64_t *)ints.base)[i] : ((const int *)ints.base)[i];
}

/* A result as the small twin returns it: the standard asks for MPI_UNDEFINED where int cannot hold it. */
static inline int tb_ints_result(int64_t value)
{
    return value < INT_MIN || value > INT_MAX ? MPI_UNDEFINED : (int)value;
}

#endif
