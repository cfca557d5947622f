/* Accesses: every operation with every predefined type and reduction, of lengths from nothing to megabytes, with types
 * of both sides that do not look alike, in windows of each flavor and with several units. What memory must be
 * afterwards follows from MPI_Reduce_local, MPI_Pack and MPI_Unpack: each rank accesses the next one of a ring, and
 * knows what the one before it has. */
#include "rma.h"

#include <float.h>
#include <complex.h>

#define ELEMENTS 5
#define ROOM     (ELEMENTS * 64)
#define LONGEST  3000001
#define WINDOW   (734 * 4096)

/* ---- predefined types and reductions ----------------------------------------------------------------------------- */

enum kind { INTEGER, FLOATING, COMPLEX, LOGICAL, OTHER, PAIR };

/* Small numbers of a type, so that no reduction overflows or rounds. */
#define SCALAR(name, c)                                                                                                \
    static void name(void *at, int value)                                                                              \
    {                                                                                                                  \
        c x = (c)value;                                                                                                \
        memcpy(at, &x, sizeof x);                                                                                      \
    }
#define VALUE_AND_INDEX(name, c)                                                                                       \
    static void name(void *at, int value)                                                                              \
    {                                                                                                                  \
        struct {                                                                                                       \
            c value;                                                                                                   \
            int index;                                                                                                 \
        } *x = at;                                                                                                     \
        x->value = (c)(value / 2);                                                                                     \
        x->index = value % 5;                                                                                          \
    }

SCALAR(one_byte, int8_t)
SCALAR(two_bytes, int16_t)
SCALAR(four_bytes, int32_t)
SCALAR(eight_bytes, int64_t)
SCALAR(a_float, float)
SCALAR(a_double, double)
SCALAR(a_long_double, long double)
SCALAR(a_float_complex, float complex)
SCALAR(a_double_complex, double complex)
SCALAR(a_long_double_complex, long double complex)
VALUE_AND_INDEX(float_int, float)
VALUE_AND_INDEX(double_int, double)
VALUE_AND_INDEX(long_int, long)
VALUE_AND_INDEX(int_int, int)
VALUE_AND_INDEX(short_int, short)
VALUE_AND_INDEX(long_double_int, long double)

static void a_bool(void *at, int value)
{
    *(_Bool *)at = value % 2;
}

struct named {
    const char *name;
    MPI_Datatype type;
    enum kind kind;
    void (*write)(void *at, int value);
};

#define TYPE(type, kind, write)                                                                                        \
    {                                                                                                                  \
#type, type, kind, write                                                                                       \
    }

/* Filled when the program runs: other libraries' handles are no constants. */
static const struct named *types(int *count)
{
    static struct named list[40];
    const struct named all[] = {
        TYPE(MPI_SIGNED_CHAR, INTEGER, one_byte),
        TYPE(MPI_UNSIGNED_CHAR, INTEGER, one_byte),
        TYPE(MPI_SHORT, INTEGER, two_bytes),
        TYPE(MPI_UNSIGNED_SHORT, INTEGER, two_bytes),
        TYPE(MPI_INT, INTEGER, four_bytes),
        TYPE(MPI_UNSIGNED, INTEGER, four_bytes),
        TYPE(MPI_LONG, INTEGER, eight_bytes),
        TYPE(MPI_UNSIGNED_LONG, INTEGER, eight_bytes),
        TYPE(MPI_LONG_LONG, INTEGER, eight_bytes),
        TYPE(MPI_UNSIGNED_LONG_LONG, INTEGER, eight_bytes),
        TYPE(MPI_INT8_T, INTEGER, one_byte),
        TYPE(MPI_INT16_T, INTEGER, two_bytes),
        TYPE(MPI_INT32_T, INTEGER, four_bytes),
        TYPE(MPI_INT64_T, INTEGER, eight_bytes),
        TYPE(MPI_UINT8_T, INTEGER, one_byte),
        TYPE(MPI_UINT16_T, INTEGER, two_bytes),
        TYPE(MPI_UINT32_T, INTEGER, four_bytes),
        TYPE(MPI_UINT64_T, INTEGER, eight_bytes),
        TYPE(MPI_AINT, INTEGER, eight_bytes),
        TYPE(MPI_COUNT, INTEGER, eight_bytes),
        TYPE(MPI_OFFSET, INTEGER, eight_bytes),
        TYPE(MPI_BYTE, OTHER, one_byte),
        TYPE(MPI_CHAR, OTHER, one_byte),
        TYPE(MPI_WCHAR, OTHER, four_bytes),
        TYPE(MPI_C_BOOL, LOGICAL, a_bool),
        TYPE(MPI_FLOAT, FLOATING, a_float),
        TYPE(MPI_DOUBLE, FLOATING, a_double),
        TYPE(MPI_LONG_DOUBLE, FLOATING, a_long_double),
        TYPE(MPI_C_FLOAT_COMPLEX, COMPLEX, a_float_complex),
        TYPE(MPI_C_DOUBLE_COMPLEX, COMPLEX, a_double_complex),
        TYPE(MPI_C_LONG_DOUBLE_COMPLEX, COMPLEX, a_long_double_complex),
        TYPE(MPI_FLOAT_INT, PAIR, float_int),
        TYPE(MPI_DOUBLE_INT, PAIR, double_int),
        TYPE(MPI_LONG_INT, PAIR, long_int),
        TYPE(MPI_2INT, PAIR, int_int),
        TYPE(MPI_SHORT_INT, PAIR, short_int),
        TYPE(MPI_LONG_DOUBLE_INT, PAIR, long_double_int),
    };
    *count = (int)(sizeof all / sizeof all[0]);
    memcpy(list, all, sizeof all);
    return list;
}

#define OPS  14
#define MOST (40 * OPS)

struct named_op {
    const char *name;
    MPI_Op op;
    unsigned kinds; /* that it is allowed for */
};

#define FOR(kind) (1u << (kind))

static struct named_op op_of(int i)
{
    unsigned numbers = FOR(INTEGER) | FOR(FLOATING), logical = FOR(INTEGER) | FOR(LOGICAL);
    const struct named_op ops[OPS] = {
        {"MPI_MAX", MPI_MAX, numbers},
        {"MPI_MIN", MPI_MIN, numbers},
        {"MPI_SUM", MPI_SUM, numbers | FOR(COMPLEX)},
        {"MPI_PROD", MPI_PROD, numbers | FOR(COMPLEX)},
        {"MPI_BAND", MPI_BAND, FOR(INTEGER)},
        {"MPI_BOR", MPI_BOR, FOR(INTEGER)},
        {"MPI_BXOR", MPI_BXOR, FOR(INTEGER)},
        {"MPI_LAND", MPI_LAND, logical},
        {"MPI_LOR", MPI_LOR, logical},
        {"MPI_LXOR", MPI_LXOR, logical},
        {"MPI_MAXLOC", MPI_MAXLOC, FOR(PAIR)},
        {"MPI_MINLOC", MPI_MINLOC, FOR(PAIR)},
        {"MPI_REPLACE", MPI_REPLACE, ~0u},
        {"MPI_NO_OP", MPI_NO_OP, ~0u},
    };
    return ops[i];
}

static void fill(void *memory, const struct named *t, MPI_Aint extent, int first)
{
    for (int i = 0; i < ELEMENTS; i++)
        t->write((char *)memory + i * extent, (first + 3 * i) % 11 + 1);
}

/* What a reduction leaves at the target. */
static void combined(void *target, const void *origin, const struct named *t, const struct named_op *op,
                     MPI_Aint extent)
{
    if (op->op == MPI_REPLACE)
        memcpy(target, origin, (size_t)(ELEMENTS * extent));
    else if (op->op != MPI_NO_OP)
        MPI_Reduce_local(origin, target, ELEMENTS, t->type, op->op);
}

/* Of a packed long double: bytes that are no part of its value say nothing. */
static void forget_padding(char *packed, int used, const struct named *t)
{
    size_t value = LDBL_MANT_DIG == 64 ? 10 : sizeof(long double), step = sizeof(long double);
    if (t->write == long_double_int)
        step += sizeof(int);
    else if (t->write != a_long_double && t->write != a_long_double_complex)
        return;
    for (size_t at = 0; at < (size_t)used; at += step)
        memset(packed + at + value, 0, sizeof(long double) - value);
}

static bool same(const void *a, const void *b, const struct named *t, int count)
{
    char packed[2][ROOM];
    int used[2] = {0, 0};
    MPI_Pack(a, count, t->type, packed[0], ROOM, &used[0], MPI_COMM_SELF);
    MPI_Pack(b, count, t->type, packed[1], ROOM, &used[1], MPI_COMM_SELF);
    for (int i = 0; i < 2; i++)
        forget_padding(packed[i], used[i], t);
    return memcmp(packed[0], packed[1], (size_t)used[0]) == 0;
}

/* Elements of one type and one reduction, at a place of their own. */
struct trial {
    const struct named *t;
    struct named_op op;
    MPI_Aint extent, offset;
    _Alignas(16) char mine[ROOM], others[ROOM], expected[ROOM], before[ROOM], result[ROOM];
};

static int trials(struct trial *list, const struct rma_window *w)
{
    int count = 0, found = 0;
    const struct named *all = types(&count);
    for (int i = 0; i < count; i++) {
        for (int k = 0; k < OPS; k++) {
            struct named_op op = op_of(k);
            bool bits_of_bytes = all[i].type == MPI_BYTE && k >= 4 && k <= 6;
            if (!(op.kinds & FOR(all[i].kind)) && !bits_of_bytes)
                continue;
            struct trial *x = &list[found];
            *x = (struct trial){.t = &all[i], .op = op, .offset = 64 + (MPI_Aint)found * ROOM};
            MPI_Aint lower;
            MPI_Type_get_extent(x->t->type, &lower, &x->extent);
            fill(x->mine, x->t, x->extent, test_rank);
            fill(x->others, x->t, x->extent, rma_world(w, rma_previous(w)));
            fill(x->expected, x->t, x->extent, test_rank + 5);
            fill(x->before, x->t, x->extent, rma_world(w, rma_next(w)) + 5);
            memcpy(w->base + x->offset, x->expected, ROOM);
            found++;
        }
    }
    return found;
}

/* An accumulate, and what a get_accumulate of the same sees of it: those of one origin are in order. */
static void accumulated(struct rma_window *w, struct trial *x)
{
    MPI_Aint at = rma_at(w, rma_next(w), x->offset);
    if (x->op.op != MPI_NO_OP) {
        CHECK_EQUAL(
            MPI_Accumulate(x->mine, ELEMENTS, x->t->type, rma_next(w), at, ELEMENTS, x->t->type, x->op.op, w->win),
            MPI_SUCCESS);
        combined(x->before, x->mine, x->t, &x->op, x->extent);
        combined(x->expected, x->others, x->t, &x->op, x->extent);
    }
    CHECK_EQUAL(MPI_Get_accumulate(x->mine, ELEMENTS, x->t->type, x->result, ELEMENTS, x->t->type, rma_next(w), at,
                                   ELEMENTS, x->t->type, x->op.op, w->win),
                MPI_SUCCESS);
    combined(x->expected, x->others, x->t, &x->op, x->extent);
}

static void predefined(struct rma_window *w)
{
    struct trial *list = test_memory(MOST * sizeof *list);
    int count = trials(list, w), next = rma_next(w);
    MPI_Barrier(w->comm);
    MPI_Win_lock(MPI_LOCK_SHARED, next, 0, w->win);
    for (int i = 0; i < count; i++)
        accumulated(w, &list[i]);
    MPI_Win_unlock(next, w->win);
    MPI_Barrier(w->comm);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, w->rank, 0, w->win); /* so that loads see what others did */
    for (int i = 0; i < count; i++) {
        struct trial *x = &list[i];
        CHECK(same(x->result, x->before, x->t, ELEMENTS), "another value was fetched by MPI_Get_accumulate of %s, %s",
              x->t->name, x->op.name);
        CHECK(same(w->base + x->offset, x->expected, x->t, ELEMENTS), "another value is in the window after %s, %s",
              x->t->name, x->op.name);
        combined(x->before, x->mine, x->t, &x->op, x->extent);
        memset(x->result, 0, ROOM);
    }
    MPI_Win_unlock(w->rank, w->win);
    MPI_Barrier(w->comm);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, w->win);
    for (int i = 0; i < count; i++)
        MPI_Fetch_and_op(list[i].op.op == MPI_NO_OP ? NULL : list[i].mine, list[i].result, list[i].t->type, next,
                         rma_at(w, next, list[i].offset), list[i].op.op, w->win);
    MPI_Win_unlock(next, w->win);
    for (int i = 0; i < count; i++)
        CHECK(same(list[i].result, list[i].before, list[i].t, 1),
              "another value was fetched by MPI_Fetch_and_op of %s, %s", list[i].t->name, list[i].op.name);
    MPI_Barrier(w->comm);
    free(list);
}

/* Compare-and-swap of every type that MPI allows, and of MPI_CHAR: one that meets, one that does not. */
static void swapped(struct rma_window *w)
{
    int64_t seen[2][40] = {{0}}, values[40] = {0}, others[40] = {0}, zero = 0;
    int count = 0, next = rma_next(w);
    const struct named *list = types(&count);
    memset(w->base, 0, 8 * 40);
    MPI_Barrier(w->comm);
    MPI_Win_lock(MPI_LOCK_SHARED, next, 0, w->win);
    for (int i = 0; i < count; i++) {
        bool text = list[i].type == MPI_CHAR && !test_peer();
        if (list[i].kind != INTEGER && list[i].kind != LOGICAL && list[i].type != MPI_BYTE && !text)
            continue;
        list[i].write(&values[i], 3);
        list[i].write(&others[i], 2);
        for (int k = 0; k < 2; k++)
            MPI_Compare_and_swap(k ? &others[i] : &values[i], &zero, &seen[k][i], list[i].type, next,
                                 rma_at(w, next, 8 * i), w->win);
    }
    MPI_Win_unlock(next, w->win);
    MPI_Barrier(w->comm);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, w->rank, 0, w->win);
    for (int i = 0; i < count; i++) {
        CHECK(seen[0][i] == 0, "%s: %lld instead of 0", list[i].name, (long long)seen[0][i]);
        CHECK(seen[1][i] == values[i], "%s: %lld instead of %lld", list[i].name, (long long)seen[1][i],
              (long long)values[i]);
        CHECK(memcmp(w->base + 8 * i, &values[i], 8) == 0, "another value after swaps of %s", list[i].name);
    }
    MPI_Win_unlock(w->rank, w->win);
    MPI_Barrier(w->comm);
}

/* ---- lengths ----------------------------------------------------------------------------------------------------- */

/* Put, get, and sums of so many bytes at odd places; the guard behind stays. */
static void lengths(struct rma_window *w)
{
    static const int LENGTHS[] = {0, 1, 2, 3, 7, 8, 9, 63, 64, 1000, 4096, 8191, 65537, 300001, LONGEST};
    int from = rma_world(w, rma_previous(w)), to = rma_world(w, rma_next(w));
    unsigned char *mine = test_memory(LONGEST), *back = test_memory(LONGEST);
    for (size_t i = 0; i < sizeof LENGTHS / sizeof LENGTHS[0]; i++) {
        int bytes = LENGTHS[i];
        MPI_Aint offset = i % 3 * 8, at = rma_at(w, rma_next(w), offset);
        memset(w->base, TEST_UNTOUCHED, (size_t)w->bytes);
        test_fill(mine, (size_t)bytes, (uint64_t)(test_rank + 10));
        test_clear(back, (size_t)bytes);
        MPI_Win_fence(0, w->win);
        CHECK_EQUAL(MPI_Put(mine, bytes, MPI_BYTE, rma_next(w), at, bytes, MPI_BYTE, w->win), MPI_SUCCESS);
        MPI_Win_fence(0, w->win);
        CHECK_DATA(w->base + offset, (size_t)bytes, (uint64_t)(from + 10));
        CHECK(test_untouched(w->base, (size_t)offset) && test_untouched(w->base + offset + bytes, 64),
              "bytes around %d were written", bytes);
        MPI_Win_fence(0, w->win);
        CHECK_EQUAL(MPI_Get(back, bytes, MPI_BYTE, rma_next(w), at, bytes, MPI_BYTE, w->win), MPI_SUCCESS);
        MPI_Win_fence(0, w->win);
        CHECK_DATA(back, (size_t)bytes, (uint64_t)(test_rank + 10));
        CHECK(test_untouched(back + bytes, TEST_GUARD), "bytes behind %d were written", bytes);
        MPI_Win_fence(0, w->win);
        memset(mine, 1, (size_t)bytes);
        CHECK_EQUAL(MPI_Get_accumulate(mine, bytes, MPI_UINT8_T, back, bytes, MPI_UINT8_T, rma_next(w), at, bytes,
                                       MPI_UINT8_T, MPI_SUM, w->win),
                    MPI_SUCCESS);
        CHECK_EQUAL(MPI_Accumulate(mine, bytes, MPI_UINT8_T, rma_next(w), at, bytes, MPI_UINT8_T, MPI_SUM, w->win),
                    MPI_SUCCESS);
        MPI_Win_fence(0, w->win);
        for (int k = 0; k < bytes; k++)
            w->base[offset + k] = (unsigned char)(w->base[offset + k] - 2);
        CHECK_DATA(w->base + offset, (size_t)bytes, (uint64_t)(from + 10));
        CHECK_DATA(back, (size_t)bytes, (uint64_t)(test_rank + 10));
        CHECK(test_untouched(w->base + offset + bytes, 64), "bytes behind a sum of %d were written", bytes);
        MPI_Win_fence(0, w->win);
    }
    CHECK(to >= 0, "no such rank");
    free(mine);
    free(back);
}

/* ---- types of both sides ----------------------------------------------------------------------------------------- */

#define LAYOUTS 6
#define INTS    24 /* in each of them */

/* A type of INTS ints within 4 * INTS, and how many of it. */
static MPI_Datatype layout(int which, int *count)
{
    MPI_Datatype type, part;
    int lengths_of[INTS], starts[INTS];
    *count = 1;
    for (int i = 0; i < INTS; i++) {
        lengths_of[i] = 1;
        starts[i] = (i * 7) % INTS * 3 + i % 2;
    }
    if (which == 0) {
        *count = INTS;
        MPI_Type_dup(MPI_INT, &type);
    } else if (which == 1) {
        MPI_Type_vector(INTS / 3, 3, 7, MPI_INT, &type);
    } else if (which == 2) {
        MPI_Type_indexed(INTS, lengths_of, starts, MPI_INT, &type);
    } else if (which == 3) {
        MPI_Type_create_subarray(2, (int[]){8, 10}, (int[]){6, 4}, (int[]){1, 5}, MPI_ORDER_C, MPI_INT, &type);
    } else if (which == 4) {
        *count = INTS / 4;
        MPI_Type_create_hvector(2, 2, 3 * sizeof(int), MPI_INT, &part);
        MPI_Type_create_resized(part, 0, 6 * sizeof(int), &type);
        MPI_Type_free(&part);
    } else {
        MPI_Type_vector(4, 2, 4, MPI_INT, &part);
        MPI_Type_create_struct(2, (int[]){1, 16}, (MPI_Aint[]){200, 0}, (MPI_Datatype[]){part, MPI_INT}, &type);
        MPI_Type_free(&part);
    }
    MPI_Type_commit(&type);
    return type;
}

#define SPREAD (4 * INTS * (int)sizeof(int))

/* The bytes that are in one layout put where they are in another. */
static void moved(unsigned char *to, int to_count, MPI_Datatype to_type, const unsigned char *from, int from_count,
                  MPI_Datatype from_type)
{
    char packed[1024];
    int used = 0;
    MPI_Pack(from, from_count, from_type, packed, sizeof packed, &used, MPI_COMM_SELF);
    int position = 0;
    MPI_Unpack(packed, used, &position, to, to_count, to_type, MPI_COMM_SELF);
}

/* Put, get and accumulate between two layouts; the types are freed before the epoch ends. */
static void between(struct rma_window *w, int here, int there)
{
    unsigned char mine[SPREAD], others[SPREAD], expected[SPREAD], back[SPREAD], wanted[SPREAD];
    int count, far, from = rma_world(w, rma_previous(w)), to = rma_world(w, rma_next(w)), next = rma_next(w);
    MPI_Aint at = rma_at(w, next, 128);
    MPI_Datatype near_type = layout(here, &count), far_type = layout(there, &far);
    test_fill(mine, SPREAD, (uint64_t)test_rank);
    test_fill(others, SPREAD, (uint64_t)from);
    test_fill(w->base + 128, SPREAD, (uint64_t)(test_rank + 50));
    test_fill(back, SPREAD, 99);
    memcpy(expected, w->base + 128, SPREAD);
    memcpy(wanted, back, SPREAD);
    MPI_Win_fence(0, w->win);
    MPI_Get(back, count, near_type, next, at, far, far_type, w->win);
    MPI_Win_fence(0, w->win);
    unsigned char remote[SPREAD];
    test_fill(remote, SPREAD, (uint64_t)(to + 50));
    moved(wanted, count, near_type, remote, far, far_type);
    CHECK(memcmp(back, wanted, SPREAD) == 0, "a get from layout %d to %d", there, here);
    MPI_Put(mine, count, near_type, next, at, far, far_type, w->win);
    MPI_Win_fence(0, w->win);
    moved(expected, far, far_type, others, count, near_type);
    CHECK(memcmp(w->base + 128, expected, SPREAD) == 0, "a put from layout %d to %d", here, there);
    MPI_Win_fence(0, w->win);
    MPI_Accumulate(mine, count, near_type, next, at, far, far_type, MPI_BXOR, w->win);
    MPI_Get_accumulate(mine, count, near_type, back, count, near_type, next, at, far, far_type, MPI_REPLACE, w->win);
    MPI_Type_free(&near_type);
    MPI_Type_free(&far_type);
    MPI_Win_fence(0, w->win);
    CHECK(memcmp(w->base + 128, expected, SPREAD) == 0, "a replacement from layout %d to %d", here, there);
    near_type = layout(here, &count);
    unsigned char zeros[SPREAD] = {0};
    moved(wanted, count, near_type, zeros, count, near_type); /* xor with itself */
    CHECK(memcmp(back, wanted, SPREAD) == 0, "what a replacement fetched from layout %d to %d", there, here);
    MPI_Type_free(&near_type);
    MPI_Win_fence(0, w->win);
}

static void layouts(struct rma_window *w)
{
    for (int here = 0; here < LAYOUTS; here++)
        for (int there = 0; there < LAYOUTS; there++)
            between(w, here, there);
}

/* Of many elements with gaps, in several frames: every other double of the window is added to. */
static void long_strides(struct rma_window *w)
{
    int doubles = 100000;
    double *mine = test_memory((size_t)doubles * 8), *at = (double *)w->base;
    MPI_Datatype type;
    MPI_Type_vector(doubles, 1, 2, MPI_DOUBLE, &type);
    MPI_Type_commit(&type);
    for (int i = 0; i < 2 * doubles; i++)
        at[i] = i;
    for (int i = 0; i < doubles; i++)
        mine[i] = test_rank + 1;
    MPI_Win_fence(0, w->win);
    for (int rank = 0; rank < w->size; rank++)
        MPI_Accumulate(mine, doubles, MPI_DOUBLE, rank, rma_at(w, rank, 0), 1, type, MPI_SUM, w->win);
    MPI_Win_fence(0, w->win);
    double sum = 0;
    for (int rank = 0; rank < w->size; rank++)
        sum += rma_world(w, rank) + 1;
    for (int i = 0; i < 2 * doubles; i++)
        if (at[i] != i + (i % 2 == 0 ? sum : 0)) {
            CHECK(false, "%g in double %d of the window", at[i], i);
            break;
        }
    MPI_Win_fence(0, w->win);
    MPI_Type_free(&type);
    free(mine);
}

/* ---- nobody, nothing, oneself ------------------------------------------------------------------------------------ */

static void nobody(struct rma_window *w)
{
    int64_t a = 1, b = 2, c = 3;
    MPI_Request request;
    MPI_Win_fence(0, w->win);
    CHECK_EQUAL(MPI_Put(&a, 1, MPI_INT64_T, MPI_PROC_NULL, 0, 1, MPI_INT64_T, w->win), MPI_SUCCESS);
    CHECK_EQUAL(MPI_Get(&a, 1, MPI_INT64_T, MPI_PROC_NULL, 0, 1, MPI_INT64_T, w->win), MPI_SUCCESS);
    CHECK_EQUAL(MPI_Accumulate(&a, 1, MPI_INT64_T, MPI_PROC_NULL, 0, 1, MPI_INT64_T, MPI_SUM, w->win), MPI_SUCCESS);
    CHECK_EQUAL(MPI_Fetch_and_op(&a, &b, MPI_INT64_T, MPI_PROC_NULL, 0, MPI_SUM, w->win), MPI_SUCCESS);
    CHECK_EQUAL(MPI_Compare_and_swap(&a, &b, &c, MPI_INT64_T, MPI_PROC_NULL, 0, w->win), MPI_SUCCESS);
    MPI_Win_fence(0, w->win);
    CHECK(a == 1 && b == 2 && c == 3, "something came from nobody");
    MPI_Win_lock(MPI_LOCK_SHARED, MPI_PROC_NULL, 0, w->win);
    CHECK_EQUAL(MPI_Rget(&a, 1, MPI_INT64_T, MPI_PROC_NULL, 0, 1, MPI_INT64_T, w->win, &request), MPI_SUCCESS);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Win_unlock(MPI_PROC_NULL, w->win);
    CHECK_EQUAL(a, 1);
    MPI_Barrier(w->comm);
}

/* A rank accesses itself; several accesses of an epoch reach all ranks. */
static void everybody(struct rma_window *w)
{
    int64_t *cells = (int64_t *)w->base, *seen = test_memory((size_t)w->size * 8), mine = test_rank + 1, sum = 0;
    for (int i = 0; i <= w->size; i++)
        cells[i] = 0;
    MPI_Win_fence(0, w->win);
    for (int rank = 0; rank < w->size; rank++) {
        MPI_Put(&mine, 1, MPI_INT64_T, rank, rma_at(w, rank, 8 * w->rank), 1, MPI_INT64_T, w->win);
        MPI_Accumulate(&mine, 1, MPI_INT64_T, rank, rma_at(w, rank, 8 * w->size), 1, MPI_INT64_T, MPI_SUM, w->win);
    }
    MPI_Win_fence(0, w->win);
    for (int rank = 0; rank < w->size; rank++) {
        CHECK_EQUAL(cells[rank], rma_world(w, rank) + 1);
        sum += cells[rank];
        MPI_Get(&seen[rank], 1, MPI_INT64_T, rank, rma_at(w, rank, 8 * w->rank), 1, MPI_INT64_T, w->win);
    }
    CHECK_EQUAL(cells[w->size], sum);
    MPI_Win_fence(0, w->win);
    for (int rank = 0; rank < w->size; rank++)
        CHECK_EQUAL(seen[rank], mine);
    free(seen);
    MPI_Win_fence(0, w->win);
}

static void large_forms(struct rma_window *w)
{
#if MPI_VERSION >= 4
    int64_t *cells = (int64_t *)w->base, a = test_rank + 1, b = 0, c = 0;
    int next = rma_next(w), from = rma_world(w, rma_previous(w));
    MPI_Request requests[4];
    cells[0] = cells[1] = cells[2] = 0;
    MPI_Win_fence(0, w->win);
    MPI_Put_c(&a, 1, MPI_INT64_T, next, rma_at(w, next, 0), 1, MPI_INT64_T, w->win);
    MPI_Accumulate_c(&a, 1, MPI_INT64_T, next, rma_at(w, next, 8), 1, MPI_INT64_T, MPI_SUM, w->win);
    MPI_Win_fence(0, w->win);
    MPI_Get_c(&b, 1, MPI_INT64_T, next, rma_at(w, next, 0), 1, MPI_INT64_T, w->win);
    MPI_Get_accumulate_c(&a, 1, MPI_INT64_T, &c, 1, MPI_INT64_T, next, rma_at(w, next, 8), 1, MPI_INT64_T, MPI_SUM,
                         w->win);
    MPI_Win_fence(0, w->win);
    CHECK(b == a && c == a, "%lld and %lld instead of %lld", (long long)b, (long long)c, (long long)a);
    CHECK(cells[0] == from + 1 && cells[1] == 2 * (from + 1), "%lld, %lld", (long long)cells[0], (long long)cells[1]);
    MPI_Barrier(w->comm);
    MPI_Win_lock_all(0, w->win);
    MPI_Rput_c(&a, 1, MPI_INT64_T, next, rma_at(w, next, 16), 1, MPI_INT64_T, w->win, &requests[0]);
    MPI_Raccumulate_c(&a, 1, MPI_INT64_T, next, rma_at(w, next, 8), 1, MPI_INT64_T, MPI_SUM, w->win, &requests[1]);
    MPI_Rget_c(&b, 1, MPI_INT64_T, next, rma_at(w, next, 0), 1, MPI_INT64_T, w->win, &requests[2]);
    MPI_Rget_accumulate_c(NULL, 0, MPI_INT64_T, &c, 1, MPI_INT64_T, next, rma_at(w, next, 8), 1, MPI_INT64_T, MPI_NO_OP,
                          w->win, &requests[3]);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    MPI_Win_unlock_all(w->win);
    CHECK(b == a && c == 3 * a, "%lld and %lld of %lld", (long long)b, (long long)c, (long long)a);
    MPI_Barrier(w->comm);
#endif
}

int main(int argc, char **argv)
{
    static const int UNITS[] = {1, 4, 8, 2};
    test_begin(&argc, &argv);
    for (int flavor = 0; flavor < RMA_FLAVORS; flavor++) {
        struct rma_window w;
        rma_open(&w, (enum rma_flavor)flavor, WINDOW, UNITS[flavor]);
        predefined(&w);
        swapped(&w);
        lengths(&w);
        layouts(&w);
        long_strides(&w);
        nobody(&w);
        everybody(&w);
        large_forms(&w);
        rma_close(&w);
    }
    return test_end();
}
