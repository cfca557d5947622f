/* Reductions to one and to all: every root, predefined operations, the program's own with and without commutativity,
 * types with gaps, in place, many lengths. */
#include "test.h"

#include <stddef.h>

#define LARGEST 100001

static const int lengths[] = {0, 1, 7, 1000, LARGEST};
#define LENGTHS (int)(sizeof lengths / sizeof lengths[0])

static long *in, *out;

static long element(int rank, int i)
{
    return (rank + 1) * 3 + i % 1000;
}

/* The sum over ranks [0, size) of element(rank, i). */
static long sum_of(int size, int i)
{
    return 3l * size * (size + 1) / 2 + (long)size * (i % 1000);
}

static void longs_fill(long *data, int count)
{
    for (int i = 0; i < count; i++)
        data[i] = element(test_rank, i);
}

static void longs_check(int count)
{
    for (int i = 0; i < count; i++)
        if (out[i] != sum_of(test_size, i)) {
            CHECK(false, "element %d of %d is %ld", i, count, out[i]);
            return;
        }
    CHECK(test_untouched(out + count, TEST_GUARD), "bytes behind the buffer were changed");
}

static void sums(int root, int count, bool in_place)
{
    bool there = in_place && test_rank == root;
    test_clear(out, (size_t)count * sizeof(long));
    longs_fill(there ? out : in, count);
    MPI_Reduce(there ? MPI_IN_PLACE : in, test_rank == root ? out : NULL, count, MPI_LONG, MPI_SUM, root,
               MPI_COMM_WORLD);
    if (test_rank == root)
        longs_check(count);
    if (!there)
        for (int i = 0; i < count; i++)
            if (in[i] != element(test_rank, i))
                CHECK(false, "element %d of what is given was changed", i);
}

static void sums_for_all(int count, bool in_place)
{
    test_clear(out, (size_t)count * sizeof(long));
    longs_fill(in_place ? out : in, count);
    MPI_Allreduce(in_place ? MPI_IN_PLACE : in, out, count, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    longs_check(count);
}

static void operations(void)
{
    struct {
        double value;
        int index;
    } pair = {test_rank % 3, test_rank}, least = {-1, -1};
    double most = -1, mine = (test_rank * 7) % 5;
    unsigned bits = 1u << (test_rank % 20), set = 0, product;
    int truth = test_rank == 0, any = -1, each = -1;
    MPI_Allreduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    double expected = 0;
    for (int rank = 0; rank < test_size; rank++)
        expected = (rank * 7) % 5 > expected ? (rank * 7) % 5 : expected;
    CHECK(most == expected, "the greatest is %g instead of %g", most, expected);
    MPI_Allreduce(&pair, &least, 1, MPI_DOUBLE_INT, MPI_MINLOC, MPI_COMM_WORLD);
    CHECK(least.value == 0 && least.index == 0, "the least is %g at %d", least.value, least.index);
    MPI_Allreduce(&pair, &least, 1, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD);
    int top = test_size < 3 ? test_size - 1 : 2;
    CHECK(least.value == top && least.index == top, "the greatest is %g at %d", least.value, least.index);
    MPI_Allreduce(&bits, &set, 1, MPI_UNSIGNED, MPI_BOR, MPI_COMM_WORLD);
    CHECK_EQUAL(set, test_size >= 20 ? (1 << 20) - 1 : (1 << test_size) - 1);
    MPI_Allreduce(&truth, &any, 1, MPI_INT, MPI_LOR, MPI_COMM_WORLD);
    MPI_Allreduce(&truth, &each, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    CHECK_EQUAL(any, 1);
    CHECK_EQUAL(each, test_size == 1);
    bits = test_rank % 2 + 1;
    MPI_Allreduce(&bits, &product, 1, MPI_UNSIGNED, MPI_PROD, MPI_COMM_WORLD);
    CHECK_EQUAL(product, 1u << (test_size / 2));
}

/* MPI_CHAR is text for the standard; many programs reduce it, as a C char. */
static void chars(void)
{
    char mine[2] = {(char)(test_rank + 1), (char)(-3 - test_rank)}, seen[2] = {0, 0};
    MPI_Allreduce(mine, seen, 2, MPI_CHAR, MPI_SUM, MPI_COMM_WORLD);
    CHECK_EQUAL(seen[0], (char)(test_size * (test_size + 1) / 2));
    CHECK_EQUAL(seen[1], (char)(-3 * test_size - test_size * (test_size - 1) / 2));
    MPI_Allreduce(mine, seen, 2, MPI_CHAR, MPI_MAX, MPI_COMM_WORLD);
    CHECK_EQUAL(seen[0], test_size);
    CHECK_EQUAL(seen[1], (char)-3);
    MPI_Allreduce(mine, seen, 2, MPI_CHAR, MPI_MIN, MPI_COMM_WORLD);
    CHECK_EQUAL(seen[0], 1);
    CHECK_EQUAL(seen[1], (char)(-2 - test_size));
}

/* ---- the program's own operations -------------------------------------------------------------------------------- */

/* 2 x 2 matrices over the integers modulo a prime: their product depends on the order. */
#define PRIME 10007

static void multiply(void *left, void *right, int *count, MPI_Datatype *type)
{
    long *a = left, *b = right;
    for (int i = 0; i < *count; i++, a += 4, b += 4) {
        long r[4] = {a[0] * b[0] + a[1] * b[2], a[0] * b[1] + a[1] * b[3], a[2] * b[0] + a[3] * b[2],
                     a[2] * b[1] + a[3] * b[3]};
        for (int k = 0; k < 4; k++)
            b[k] = r[k] % PRIME;
    }
}

static void multiply_large(void *left, void *right, MPI_Count *count, MPI_Datatype *type)
{
    int n = (int)*count;
    multiply(left, right, &n, type);
}

static void matrix_of(int rank, int i, long m[4])
{
    m[0] = rank + 1;
    m[1] = (i + rank) % 17 + 1;
    m[2] = 1;
    m[3] = rank % 5 + 2;
}

static void matrices(int count, bool large)
{
    MPI_Datatype matrix;
    MPI_Op op;
    int commute = -1;
    MPI_Type_contiguous(4, MPI_LONG, &matrix);
    MPI_Type_commit(&matrix);
    if (large)
        MPI_Op_create_c(multiply_large, 0, &op);
    else
        MPI_Op_create(multiply, 0, &op);
    MPI_Op_commutative(op, &commute);
    CHECK_EQUAL(commute, 0);
    for (int way = 0; way <= 2 * test_size + 1; way++) {
        int root = way / 2;
        bool in_place = way % 2 == 1, all = root == test_size, takes = all || test_rank == root;
        long *given = in_place && takes ? out : in;
        test_clear(out, (size_t)count * 4 * sizeof(long));
        for (int i = 0; i < count; i++)
            matrix_of(test_rank, i, given + 4 * i);
        const void *send = in_place && takes ? MPI_IN_PLACE : in;
        if (all)
            MPI_Allreduce(send, out, count, matrix, op, MPI_COMM_WORLD);
        else
            MPI_Reduce(send, out, count, matrix, op, root, MPI_COMM_WORLD);
        for (int i = 0; i < count && takes; i++) {
            long expected[4], next[4];
            int one = 1;
            matrix_of(test_size - 1, i, expected);
            for (int rank = test_size - 2; rank >= 0; rank--) {
                matrix_of(rank, i, next);
                multiply(next, expected, &one, NULL);
            }
            for (int k = 0; k < 4; k++)
                CHECK(out[4 * i + k] % PRIME == expected[k] % PRIME, "way %d: number %d of matrix %d is %ld", way, k, i,
                      out[4 * i + k]);
        }
    }
    MPI_Op_free(&op);
    CHECK(op == MPI_OP_NULL, "the handle of a freed operation stays");
    MPI_Type_free(&matrix);
}

/* A type with a gap in front, between and behind; the operation looks at its handle and leaves the gaps alone. */
struct gap {
    int before;
    short value;
    int between;
    double other;
    int behind;
};

static MPI_Datatype gap_type;

static void add_gaps(void *left, void *right, int *count, MPI_Datatype *type)
{
    struct gap *a = left, *b = right;
    CHECK(*type == gap_type, "the operation was given another type");
    for (int i = 0; i < *count; i++) {
        b[i].value = (short)(b[i].value + a[i].value);
        b[i].other += a[i].other;
    }
}

static void gaps(int count)
{
    MPI_Datatype inner;
    MPI_Op op;
    int lengths_of[] = {1, 1};
    MPI_Aint places[] = {offsetof(struct gap, value), offsetof(struct gap, other)};
    MPI_Datatype types[] = {MPI_SHORT, MPI_DOUBLE};
    MPI_Type_create_struct(2, lengths_of, places, types, &inner);
    MPI_Type_create_resized(inner, 0, sizeof(struct gap), &gap_type);
    MPI_Type_commit(&gap_type);
    MPI_Op_create(add_gaps, 1, &op);
    struct gap *given = test_memory((size_t)count * sizeof *given), *taken = test_memory((size_t)count * sizeof *taken);
    for (int i = 0; i < count; i++) {
        given[i] = (struct gap){1, (short)(test_rank + i % 9), 2, test_rank * 0.5 + i, 3};
        taken[i] = (struct gap){-1, -1, -2, -1, -3};
    }
    MPI_Allreduce(given, taken, count, gap_type, op, MPI_COMM_WORLD);
    for (int i = 0; i < count; i++) {
        int ranks = test_size * (test_size - 1) / 2;
        CHECK_EQUAL(taken[i].value, ranks + test_size * (i % 9));
        CHECK(taken[i].other == ranks * 0.5 + (double)test_size * i, "item %d is %g", i, taken[i].other);
        CHECK(taken[i].before == -1 && taken[i].between == -2 && taken[i].behind == -3, "a gap of item %d was changed",
              i);
    }
    free(given);
    free(taken);
    MPI_Op_free(&op);
    MPI_Type_free(&inner);
    MPI_Type_free(&gap_type);
}

/* ---- without communication, and errors --------------------------------------------------------------------------- */

static void handles(void)
{
    MPI_Op op;
    MPI_Op_create(multiply, 1, &op);
    CHECK(MPI_Op_fromint(MPI_Op_toint(MPI_MAX)) == MPI_MAX, "a predefined handle is not the same again");
    CHECK(MPI_Op_fromint(MPI_Op_toint(op)) == op, "a handle is not the same again");
    MPI_Op_free(&op);
}

static void alone(void)
{
    int a[3] = {1, 2, 3}, b[3] = {10, 20, 30}, commute = -1;
    MPI_Reduce_local(a, b, 3, MPI_INT, MPI_SUM);
    CHECK(b[0] == 11 && b[1] == 22 && b[2] == 33, "the sums are %d, %d, %d", b[0], b[1], b[2]);
    MPI_Op_commutative(MPI_SUM, &commute);
    CHECK_EQUAL(commute, 1);
    if (!test_peer())
        handles();
}

static void errors(void)
{
    MPI_Comm comm;
    MPI_Op op = MPI_SUM;
    int value = 1;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    CHECK_CLASS(MPI_Allreduce(in, out, 1, MPI_LONG, MPI_OP_NULL, comm), MPI_ERR_OP);
    CHECK_CLASS(MPI_Allreduce(in, out, 1, MPI_DOUBLE, MPI_BAND, comm), MPI_ERR_OP);
    CHECK_CLASS(MPI_Allreduce(in, out, 1, MPI_LONG, MPI_REPLACE, comm), MPI_ERR_OP);
    CHECK_CLASS(MPI_Allreduce(in, out, 1, MPI_LONG, MPI_MINLOC, comm), MPI_ERR_OP);
    CHECK_CLASS(MPI_Allreduce(in, in, 1, MPI_LONG, MPI_SUM, comm), MPI_ERR_BUFFER);
    CHECK_CLASS(MPI_Allreduce(in, MPI_IN_PLACE, 1, MPI_LONG, MPI_SUM, comm), MPI_ERR_BUFFER);
    CHECK_CLASS(MPI_Reduce(in, out, 1, MPI_LONG, MPI_SUM, -1, comm), MPI_ERR_ROOT);
    CHECK_CLASS(MPI_Reduce(in, out, -1, MPI_LONG, MPI_SUM, 0, comm), MPI_ERR_COUNT);
    CHECK_CLASS(MPI_Reduce(in, out, 1, MPI_DATATYPE_NULL, MPI_SUM, 0, comm), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_Op_free(&op), MPI_ERR_OP);
    CHECK_CLASS(MPI_Reduce_local(&value, &value, 1, MPI_INT, MPI_SUM), MPI_ERR_BUFFER);
    /* Ranks that do not agree about the length are told, or done; nobody hangs. */
    if (test_size > 1) {
        int code = MPI_Allreduce(in, out, test_rank == 0 ? 1 : 2, MPI_LONG, MPI_SUM, comm);
        CHECK(code != MPI_SUCCESS, "a reduction of different lengths succeeded");
        MPI_Barrier(comm);
    }
    MPI_Comm_free(&comm);
}

int main(int argc, char **argv)
{
    test_begin(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    in = test_memory((size_t)LARGEST * sizeof(long));
    out = test_memory((size_t)LARGEST * sizeof(long));
    for (int i = 0; i < LENGTHS; i++) {
        for (int root = 0; root < test_size; root++) {
            if (lengths[i] > 1000 && root > 0 && root < test_size - 1)
                continue;
            sums(root, lengths[i], false);
            sums(root, lengths[i], true);
        }
        sums_for_all(lengths[i], false);
        sums_for_all(lengths[i], true);
    }
    operations();
    chars();
    matrices(1, false);
    matrices(333, true);
    gaps(1);
    gaps(1001);
    alone();
    if (!test_peer())
        errors();
    free(in);
    free(out);
    return test_end();
}
