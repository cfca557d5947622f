/* data: datatypes, packing, reduction operations, conversion. A struct tb_type is immutable once committed and counted;
 * predefined ones live forever. Any thread may read. */
#ifndef TB_DATA_DATA_H
#define TB_DATA_DATA_H

#include "base/base.h"

/* What a basic element is, whatever its name in C or Fortran: decides conversion and which operations are allowed. */
enum tb_basic {
    TB_BASIC_BYTE, /* never converted */
    TB_BASIC_CHAR, /* printable characters */
    TB_BASIC_INT,  /* signed, any size */
    TB_BASIC_UINT,
    TB_BASIC_FLOAT,
    TB_BASIC_COMPLEX,
    TB_BASIC_LOGICAL,
    TB_BASIC_PAIR, /* value and index, as MPI_DOUBLE_INT */
    TB_BASIC_PACKED,
    TB_BASIC_DERIVED /* not one element: made by a constructor */
};

/* A read-only view of the caller's array of 32-bit or 64-bit numbers. */
struct tb_numbers {
    const void *base;
    bool wide;
};

static inline int64_t tb_numbers_at(struct tb_numbers numbers, uint64_t i)
{
    return numbers.wide ? ((const int64_t *)numbers.base)[i] : ((const int32_t *)numbers.base)[i];
}

struct tb_layout;   /* where the bytes of one item lie: layout.h */
struct tb_envelope; /* how a derived type was made: below */

struct tb_type {
    uint64_t size; /* bytes of data */
    int64_t lower_bound, extent;
    int64_t true_lower_bound, true_extent;
    enum tb_basic basic;
    uint32_t alignment;
    bool dense;   /* any count of them is one span: size == extent, no gaps, lower bound 0 */
    bool bounded; /* its bounds were given (MPI_Type_create_resized and the like) and decide those of what is made of it
                   */
    bool committed;                     /* may be used in communication; only tb_type_commit changes it */
    uint64_t elements;                  /* basic elements in one: 2 in a pair, 1 in every other predefined type */
    const char *name;                   /* "MPI_INT"; "" in a derived type */
    const struct tb_type *pair[2];      /* of a pair: value and index */
    int64_t origin;                     /* where the layout stands, seen from the address of the item */
    const struct tb_layout *layout;     /* NULL: `size` bytes side by side */
    uint64_t signature;                 /* of a derived type: hash of the sequence of basic elements of one */
    const struct tb_envelope *envelope; /* NULL: predefined */
    _Atomic uint32_t users;             /* 0: lives forever */
    uint8_t code;     /* the predefined type that it is or stands for (low byte of the ABI handle), 0: none; for op.h */
    uintptr_t handle; /* of the layer above, opaque here; given to reduction functions of users */
};

/* Data of a user: count elements of a type at an address. */
struct tb_buffer {
    void *base;
    uint64_t count;
    const struct tb_type *type;
};

static inline uint64_t tb_buffer_bytes(const struct tb_buffer *b)
{
    return b->count * b->type->size;
}

/* The spans of bytes [from, from + length) of the packed data, where they lie in memory. What is made refers to the
 * type and to the memory, not to `b`; a copy of it walks by itself. */
void tb_buffer_spans_slow(const struct tb_buffer *b, uint64_t from, uint64_t length, struct tb_spans *spans);

static inline void tb_buffer_spans(const struct tb_buffer *b, uint64_t from, uint64_t length, struct tb_spans *spans)
{
    if (__builtin_expect(b->type->dense, 1))
        *spans = tb_spans_of((char *)b->base + from, length);
    else
        tb_buffer_spans_slow(b, from, length, spans);
}

/* The mean length in bytes of what lies side by side in memory: with long spans a transport had better send them where
 * they lie, with short ones pack them. UINT64_MAX if any count is one span. */
uint64_t tb_type_average_span(const struct tb_type *type);

/* The predefined type of an ABI handle value (0x200...0x2ff), or NULL. Handle values are given as numbers, since mpi.h
 * belongs to the layer above. */
const struct tb_type *tb_type_predefined(uintptr_t handle);
extern const struct tb_type tb_type_byte;

#include "data/op.h"

#endif
