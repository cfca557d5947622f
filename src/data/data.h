/* data: datatypes, packing, reduction operations, conversion. A struct tb_type is immutable once committed and counted;
 * predefined ones live forever. Any thread may read. */
#ifndef TB_DATA_DATA_H
#define TB_DATA_DATA_H

#include "base/base.h"

/* What a basic element is, whatever its name in C or Fortran: decides conversion and which operations are allowed. */
enum tb_basic {
    TB_BASIC_BYTE,    /* never converted */
    TB_BASIC_CHAR,    /* printable characters */
    TB_BASIC_INT,     /* signed, any size */
    TB_BASIC_UINT,
    TB_BASIC_FLOAT,
    TB_BASIC_COMPLEX,
    TB_BASIC_LOGICAL,
    TB_BASIC_PAIR,    /* value and index, as MPI_DOUBLE_INT */
    TB_BASIC_PACKED,
    TB_BASIC_DERIVED  /* not one element: made by a constructor */
};

struct tb_type {
    uint64_t size;        /* bytes of data */
    int64_t lower_bound, extent;
    int64_t true_lower_bound, true_extent;
    enum tb_basic basic;
    uint32_t alignment;
    bool dense;           /* any count of them is one span: size == extent, no gaps, lower bound 0 */
    const char *name;     /* "MPI_INT" */
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

/* The spans of bytes [from, from + length) of the packed data, where they lie in memory. */
void tb_buffer_spans_slow(const struct tb_buffer *b, uint64_t from, uint64_t length, struct tb_spans *spans);

static inline void tb_buffer_spans(const struct tb_buffer *b, uint64_t from, uint64_t length, struct tb_spans *spans)
{
    if (__builtin_expect(b->type->dense, 1))
        *spans = tb_spans_of((char *)b->base + from, length);
    else
        tb_buffer_spans_slow(b, from, length, spans);
}

/* The predefined type of an ABI handle value (0x200...0x2ff), or NULL. Handle values are given as numbers, since mpi.h
 * belongs to the layer above. */
const struct tb_type *tb_type_predefined(uintptr_t handle);
extern const struct tb_type tb_type_byte;

#endif
