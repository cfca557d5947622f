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

struct tb_layout; /* where the bytes of one item lie: layout.h */
struct tb_recipe; /* how a derived type was made: below */

struct tb_type {
    uint64_t size; /* bytes of data */
    int64_t lower_bound, extent;
    int64_t true_lower_bound, true_extent;
    enum tb_basic basic;
    uint32_t alignment;
    bool dense;        /* any count of them is one span: size == extent, no gaps, lower bound 0 */
    bool bounded;      /* its bounds were given (MPI_Type_create_resized...) and decide those of what is made of it */
    bool long_double;  /* some of its data is, which machines write differently that otherwise agree */
    bool committed;    /* may be used in communication; only tb_type_commit changes it */
    uint64_t elements; /* basic elements in one: 2 in a pair, 1 in every other predefined type */
    const char *name;  /* "MPI_INT"; "" in a derived type */
    const struct tb_type *pair[2];    /* of a pair: value and index */
    int64_t origin;                   /* where the layout stands, seen from the address of the item */
    const struct tb_layout *layout;   /* NULL: `size` bytes side by side */
    const struct tb_recipe *envelope; /* NULL: predefined */
    uint8_t code;     /* the predefined type that it is or stands for (low byte of the ABI handle), 0: none; for op.h */
    uintptr_t handle; /* of the layer above, opaque here; given to reduction functions of users */
    _Atomic uint32_t users; /* 0: lives forever */
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
        *spans = tb_spans_of((char *)((uintptr_t)b->base + from), length); /* the base may be NULL */
    else
        tb_buffer_spans_slow(b, from, length, spans);
}

/* The mean length in bytes of what lies side by side in memory: with long spans a transport had better send them where
 * they lie, with short ones pack them. UINT64_MAX if any count is one span. */
uint64_t tb_type_average_span(const struct tb_type *type);

/* ---- derived types ----------------------------------------------------------------------------------------------- */

/* A derived type is made by one of the constructors below, holds the types that it is made of, and belongs to its
 * users: the caller of the constructor is the first. Arguments are checked, except that arrays have their length. All
 * return TB_ERR_ARGUMENT (the story names the argument), TB_ERR_LIMIT (something would not fit into 64 bits, or is
 * nested too deeply) or TB_ERR_MEMORY. `large` says that the caller was the large-count twin, which the envelope
 * remembers. The numbers are those of the MPI ABI. */

enum tb_combiner {
    TB_COMBINER_NAMED = 101,
    TB_COMBINER_DUP,
    TB_COMBINER_CONTIGUOUS,
    TB_COMBINER_VECTOR,
    TB_COMBINER_HVECTOR,
    TB_COMBINER_INDEXED,
    TB_COMBINER_HINDEXED,
    TB_COMBINER_INDEXED_BLOCK,
    TB_COMBINER_HINDEXED_BLOCK,
    TB_COMBINER_STRUCT,
    TB_COMBINER_SUBARRAY,
    TB_COMBINER_DARRAY,
    TB_COMBINER_F90_REAL,
    TB_COMBINER_F90_COMPLEX,
    TB_COMBINER_F90_INTEGER,
    TB_COMBINER_RESIZED,
    TB_COMBINER_VALUE_INDEX
};

enum { TB_ORDER_C = 12, TB_ORDER_FORTRAN = 15 };
enum { TB_DISTRIBUTE_NONE = 16, TB_DISTRIBUTE_BLOCK, TB_DISTRIBUTE_CYCLIC, TB_DISTRIBUTE_DEFAULT };
enum tb_type_class { TB_CLASS_INTEGER = 192, TB_CLASS_REAL, TB_CLASS_COMPLEX };
#define TB_PRECISION_UNDEFINED (-32766) /* MPI_UNDEFINED, for tb_type_f90_real and its like */

#define TB_TYPE_BLOCKS_LIMIT     (1ll << 36) /* blocks of an indexed type, members of a struct */
#define TB_TYPE_DIMENSIONS_LIMIT 1024

/* How a type was made: the arguments of its constructor as MPI_Type_get_contents gives them back, in its order. Of the
 * arguments that are counts or bytes, those of a large-count constructor are in `large_counts`, all others in
 * `integers` and `addresses`. Belongs to the type. */
struct tb_recipe {
    enum tb_combiner combiner;
    bool large;
    uint64_t integer_count, address_count, large_count_count, type_count;
    const int32_t *integers;
    const int64_t *addresses, *large_counts;
    const struct tb_type *const *types;
};

/* Never NULL: that of a predefined type says TB_COMBINER_NAMED. */
const struct tb_recipe *tb_type_envelope(const struct tb_type *type);

/* One more user. Returns the type. Predefined types do not count. Any thread. */
const struct tb_type *tb_type_hold(const struct tb_type *type);
/* One user less; the last one frees it. Any thread. NULL is ignored. */
void tb_type_release(const struct tb_type *type);
/* Layouts are merged as types are built; this only allows the use in communication. */
void tb_type_commit(struct tb_type *type);

int tb_type_contiguous(int64_t count, const struct tb_type *old, bool large, struct tb_type **type);
int tb_type_vector(int64_t count, int64_t length, int64_t stride, const struct tb_type *old, bool large,
                   struct tb_type **type);
int tb_type_hvector(int64_t count, int64_t length, int64_t stride, const struct tb_type *old, bool large,
                    struct tb_type **type);
int tb_type_indexed(int64_t count, struct tb_numbers lengths, struct tb_numbers displacements,
                    const struct tb_type *old, bool large, struct tb_type **type);
int tb_type_hindexed(int64_t count, struct tb_numbers lengths, struct tb_numbers displacements,
                     const struct tb_type *old, bool large, struct tb_type **type);
int tb_type_indexed_block(int64_t count, int64_t length, struct tb_numbers displacements, const struct tb_type *old,
                          bool large, struct tb_type **type);
int tb_type_hindexed_block(int64_t count, int64_t length, struct tb_numbers displacements, const struct tb_type *old,
                           bool large, struct tb_type **type);
int tb_type_struct(int64_t count, struct tb_numbers lengths, struct tb_numbers displacements,
                   const struct tb_type *const *types, bool large, struct tb_type **type);
int tb_type_subarray(int dimensions, struct tb_numbers sizes, struct tb_numbers subsizes, struct tb_numbers starts,
                     int order, const struct tb_type *old, bool large, struct tb_type **type);
/* `distributions`, `arguments` and `grid` are arrays of int in both twins; `sizes` are of the global array. */
int tb_type_darray(int size, int rank, int dimensions, struct tb_numbers sizes, struct tb_numbers distributions,
                   struct tb_numbers arguments, struct tb_numbers grid, int order, const struct tb_type *old,
                   bool large, struct tb_type **type);
int tb_type_resized(const struct tb_type *old, int64_t lower_bound, int64_t extent, bool large, struct tb_type **type);
/* Committed if `old` is. */
int tb_type_dup(const struct tb_type *old, struct tb_type **type);

/* Fortran kinds: the types live forever, and equal arguments give the same one. TB_ERR_ARGUMENT if there is none. */
int tb_type_f90_real(int precision, int range, const struct tb_type **type);
int tb_type_f90_complex(int precision, int range, const struct tb_type **type);
int tb_type_f90_integer(int range, const struct tb_type **type);
/* The predefined type of a class with so many bytes; NULL if there is none. */
const struct tb_type *tb_type_match_size(enum tb_type_class class, int size);
/* The predefined pair of two predefined types; NULL if there is none. */
const struct tb_type *tb_type_value_index(const struct tb_type *value, const struct tb_type *index);

/* How many basic elements the first `bytes` of packed items are; -1 if they end within an element. */
int64_t tb_type_elements_in(const struct tb_type *type, uint64_t bytes);
/* How many bytes the first `elements` basic elements of packed items are; -1 if there are none, or it is too many. */
int64_t tb_type_bytes_of(const struct tb_type *type, uint64_t elements);
/* The predefined type to which byte `at` of packed items belongs, and to how many bytes from there on. */
const struct tb_type *tb_type_basic_at(const struct tb_type *type, uint64_t at, uint64_t *bytes);
/* The predefined type of which all data of a type consists, which has some; NULL: there are several. Looks at each
 * member of a struct once. */
const struct tb_type *tb_type_only_basic(const struct tb_type *type);

/* The canonical form "external32" of data: how many bytes it has (TB_ERR_LIMIT: too many), and conversion to it
 * (TB_ERR_ARGUMENT: a value is out of its range) and from it. */
int tb_external_size(const struct tb_type *type, uint64_t count, uint64_t *bytes);
int tb_external_pack(const struct tb_buffer *b, void *to);
void tb_external_unpack(const struct tb_buffer *b, const void *from);

/* The predefined type of an ABI handle value (0x200...0x2ff), or NULL. Handle values are given as numbers, since mpi.h
 * belongs to the layer above. */
const struct tb_type *tb_type_predefined(uintptr_t handle);
extern const struct tb_type tb_type_byte;

#include "data/op.h"

#endif
