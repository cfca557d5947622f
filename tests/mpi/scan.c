/* Sums over the ranks up to each one, with and without it, and reductions whose result is divided among ranks. */
#include "test.h"

#define LARGEST 50001

static const int lengths[] = {0, 1, 9, 1000, LARGEST};
#define LENGTHS (int)(sizeof lengths / sizeof lengths[0])

static long *in, *out;

static long element(int rank, int i)
{
    return rank * 5 + i % 100 + 1;
}

static long sum_of(int ranks, int i)
{
    return 5l * ranks * (ranks - 1) / 2 + (long)ranks * (i % 100 + 1);
}

static void check(const char *what, const long *seen, int first, int count, int ranks)
{
    for (int i = 0; i < count; i++)
        if (seen[i] != sum_of(ranks, first + i)) {
            CHECK(false, "%s: element %d of %d is %ld", what, i, count, seen[i]);
            return;
        }
}

static void scans(int count, bool in_place)
{
    test_clear(out, (size_t)count * sizeof(long));
    for (int i = 0; i < count; i++)
        (in_place ? out : in)[i] = element(test_rank, i);
    MPI_Scan(in_place ? MPI_IN_PLACE : in, out, count, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    check("scan", out, 0, count, test_rank + 1);
    CHECK(test_untouched(out + count, TEST_GUARD), "bytes behind the buffer were changed");
    test_clear(out, (size_t)count * sizeof(long));
    for (int i = 0; i < count; i++)
        (in_place ? out : in)[i] = element(test_rank, i);
    MPI_Exscan(in_place ? MPI_IN_PLACE : in, out, count, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (test_rank > 0)
        check("exscan", out, 0, count, test_rank);
    else if (!in_place)
        CHECK(test_untouched(out, (size_t)count * sizeof(long)), "the first rank was given something");
}

/* What the first rank gives as the receive buffer of an exclusive scan does not matter. */
static void first_takes_nothing(int count)
{
    void *taken = test_rank > 0 ? out : NULL;
    for (int form = 0; form < 4; form++) {
        MPI_Request request = MPI_REQUEST_NULL;
        for (int i = 0; i < count; i++)
            in[i] = element(test_rank, i);
        test_clear(out, (size_t)count * sizeof(long));
        if (form == 0) {
            MPI_Exscan(in, taken, count, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        } else if (form == 1) {
            MPI_Exscan_c(in, taken, count, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        } else if (form == 2) {
            MPI_Iexscan(in, taken, count, MPI_LONG, MPI_SUM, MPI_COMM_WORLD, &request);
        } else {
            MPI_Exscan_init(in, taken, count, MPI_LONG, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
            MPI_Start(&request);
        }
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (form == 3)
            MPI_Request_free(&request);
        for (int i = 0; i < count; i++)
            if (in[i] != element(test_rank, i)) {
                CHECK(false, "form %d: element %d of %d given has become %ld", form, i, count, in[i]);
                break;
            }
        if (test_rank > 0)
            check("exscan", out, 0, count, test_rank);
    }
}

/* ---- order ------------------------------------------------------------------------------------------------------- */

/* Words of letters: two halves joined; a word knows its first and last rank, and only neighbours may be joined. */
struct word {
    int first, last;
};

static void join(void *left, void *right, int *count, MPI_Datatype *type)
{
    struct word *a = left, *b = right;
    for (int i = 0; i < *count; i++) {
        CHECK(a[i].last + 1 == b[i].first, "ranks %d to %d were joined with %d to %d", a[i].first, a[i].last,
              b[i].first, b[i].last);
        b[i].first = a[i].first;
    }
}

static void orders(int count)
{
    MPI_Op op;
    MPI_Datatype type;
    struct word *given = test_memory((size_t)(count * test_size) * sizeof *given);
    struct word *taken = test_memory((size_t)(count * test_size) * sizeof *taken);
    MPI_Op_create(join, 0, &op);
    MPI_Type_contiguous(2, MPI_INT, &type);
    MPI_Type_commit(&type);
    for (int way = 0; way < 2; way++) {
        for (int i = 0; i < count * test_size; i++)
            given[i] = taken[i] = (struct word){test_rank, test_rank};
        MPI_Scan(way ? MPI_IN_PLACE : given, taken, count, type, op, MPI_COMM_WORLD);
        for (int i = 0; i < count; i++)
            CHECK(taken[i].first == 0 && taken[i].last == test_rank, "%d to %d", taken[i].first, taken[i].last);
        for (int i = 0; i < count * test_size; i++)
            taken[i] = given[i];
        MPI_Exscan(way ? MPI_IN_PLACE : given, taken, count, type, op, MPI_COMM_WORLD);
        for (int i = 0; i < count && test_rank > 0; i++)
            CHECK(taken[i].first == 0 && taken[i].last == test_rank - 1, "%d to %d", taken[i].first, taken[i].last);
        for (int i = 0; i < count * test_size; i++)
            taken[i] = given[i];
        MPI_Reduce_scatter_block(way ? MPI_IN_PLACE : given, taken, count, type, op, MPI_COMM_WORLD);
        for (int i = 0; i < count; i++)
            CHECK(taken[i].first == 0 && taken[i].last == test_size - 1, "%d to %d", taken[i].first, taken[i].last);
    }
    MPI_Type_free(&type);
    MPI_Op_free(&op);
    free(given);
    free(taken);
}

/* ---- divided results --------------------------------------------------------------------------------------------- */

static void divided(int unit, bool in_place, bool large)
{
    int counts[64], first = 0, total = 0;
    MPI_Count wide[64];
    for (int rank = 0; rank < test_size; rank++) {
        counts[rank] = (rank * 3 + 2) % 4 * unit;
        wide[rank] = counts[rank];
        first += rank < test_rank ? counts[rank] : 0;
        total += counts[rank];
    }
    long *given = test_memory((size_t)total * sizeof(long)), *taken = test_memory((size_t)total * sizeof(long));
    for (int i = 0; i < total; i++)
        (in_place ? taken : given)[i] = element(test_rank, i);
    const void *send = in_place ? MPI_IN_PLACE : given;
    if (large)
        MPI_Reduce_scatter_c(send, taken, wide, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    else
        MPI_Reduce_scatter(send, taken, counts, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    check("reduce_scatter", taken, first, counts[test_rank], test_size);
    if (!in_place)
        CHECK(test_untouched(taken + counts[test_rank], TEST_GUARD), "too much was changed");
    free(given);
    free(taken);
}

static void divided_evenly(int count, bool in_place)
{
    int total = count * test_size;
    long *given = test_memory((size_t)total * sizeof(long)), *taken = test_memory((size_t)total * sizeof(long));
    for (int i = 0; i < total; i++)
        (in_place ? taken : given)[i] = element(test_rank, i);
    MPI_Reduce_scatter_block(in_place ? MPI_IN_PLACE : given, taken, count, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    check("reduce_scatter_block", taken, count * test_rank, count, test_size);
    free(given);
    free(taken);
}

static void errors(void)
{
    MPI_Comm comm;
    int counts[64] = {0};
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    CHECK_CLASS(MPI_Scan(in, out, 1, MPI_LONG, MPI_OP_NULL, comm), MPI_ERR_OP);
    CHECK_CLASS(MPI_Scan(in, in, 1, MPI_LONG, MPI_SUM, comm), MPI_ERR_BUFFER);
    CHECK_CLASS(MPI_Exscan(in, in, 1, MPI_LONG, MPI_SUM, comm), MPI_ERR_BUFFER);
    if (test_rank > 0)
        CHECK_CLASS(MPI_Exscan(in, NULL, 1, MPI_LONG, MPI_SUM, comm), MPI_ERR_BUFFER);
    CHECK_CLASS(MPI_Exscan(MPI_IN_PLACE, NULL, 1, MPI_LONG, MPI_SUM, comm), MPI_ERR_BUFFER);
    CHECK_CLASS(MPI_Reduce_scatter_block(in, in, 1, MPI_LONG, MPI_SUM, comm), MPI_ERR_BUFFER);
    CHECK_CLASS(MPI_Reduce_scatter_block(in, out, -1, MPI_LONG, MPI_SUM, comm), MPI_ERR_COUNT);
    CHECK_CLASS(MPI_Reduce_scatter(in, out, NULL, MPI_LONG, MPI_SUM, comm), MPI_ERR_ARG);
    counts[test_size - 1] = -1;
    CHECK_CLASS(MPI_Reduce_scatter(in, out, counts, MPI_LONG, MPI_SUM, comm), MPI_ERR_COUNT);
    MPI_Comm_free(&comm);
}

int main(int argc, char **argv)
{
    test_begin(&argc, &argv);
    in = test_memory((size_t)LARGEST * sizeof(long));
    out = test_memory((size_t)LARGEST * sizeof(long));
    for (int i = 0; i < LENGTHS; i++) {
        scans(lengths[i], false);
        scans(lengths[i], true);
        if (!test_peer())
            first_takes_nothing(lengths[i]);
        if (lengths[i] > 1000 && test_size > 7)
            continue;
        divided(lengths[i] / 3, false, false);
        divided(lengths[i] / 3, true, true);
        divided_evenly(lengths[i], false);
        divided_evenly(lengths[i], true);
    }
    orders(1);
    orders(500);
    if (!test_peer())
        errors();
    free(in);
    free(out);
    return test_end();
}
