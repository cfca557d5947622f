/* Shared windows: what each rank of a host loads and stores in the memory of the others, contiguous or not, with sizes
 * that differ, some of them nothing; accesses by calls beside loads; several windows at once; what several hosts get.
 */
#include "rma.h"

#include <stdatomic.h>

static MPI_Comm host;
static int rank, size;

static MPI_Aint size_of(int of)
{
    return of % 3 == 1 ? 0 : 8 * (100 * of + 5);
}

/* Every rank sees what all others have stored, by the addresses that it asks for. */
static void loads(bool contiguous)
{
    MPI_Info info;
    MPI_Win win;
    int64_t *base = NULL;
    MPI_Info_create(&info);
    MPI_Info_set(info, "alloc_shared_noncontig", contiguous ? "false" : "true");
    CHECK_EQUAL(MPI_Win_allocate_shared(size_of(rank), 8, info, host, &base, &win), MPI_SUCCESS);
    MPI_Info_free(&info);
    for (MPI_Aint i = 0; i < size_of(rank) / 8; i++)
        base[i] = rank * 100000 + i;
    MPI_Win_fence(0, win);
    char *end = NULL;
    for (int other = 0; other < size; other++) {
        MPI_Aint bytes = -1;
        int unit = -1;
        int64_t *theirs = NULL;
        CHECK_EQUAL(MPI_Win_shared_query(win, other, &bytes, &unit, &theirs), MPI_SUCCESS);
        CHECK_EQUAL(bytes, size_of(other));
        CHECK_EQUAL(unit, 8);
        if (other == rank && bytes)
            CHECK(theirs == base, "the own memory is at %p, not at %p", (void *)theirs, (void *)base);
        for (MPI_Aint i = 0; i < bytes / 8; i++)
            if (!CHECK_EQUAL(theirs[i], other * 100000 + i))
                break;
        if (contiguous && bytes && end)
            CHECK((char *)theirs == end, "the memory of rank %d is not behind that of the others", other);
        end = bytes ? (char *)theirs + bytes : end;
    }
    int64_t *first = NULL;
    MPI_Aint bytes;
    int unit;
    MPI_Win_shared_query(win, MPI_PROC_NULL, &bytes, &unit, &first); /* of the first that has any */
    CHECK_EQUAL(bytes, size_of(0));
    CHECK_EQUAL(first[0], 0);
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
}

/* Stores of one are loads of another, ordered by MPI_Win_sync and a barrier; and by atomics alone. */
static void stores(void)
{
    MPI_Win win;
    int64_t *base = NULL, *next = NULL;
    _Atomic int64_t *counter = NULL;
    MPI_Aint bytes;
    int unit;
    MPI_Win_allocate_shared(4096, 1, MPI_INFO_NULL, host, &base, &win);
    MPI_Win_shared_query(win, (rank + 1) % size, &bytes, &unit, &next);
    MPI_Win_shared_query(win, 0, &bytes, &unit, &counter);
    counter += 8;
    MPI_Win_lock_all(MPI_MODE_NOCHECK, win);
    base[8] = 0;
    for (int64_t i = 0; i < 50; i++) {
        next[0] = 10 * i + rank;
        MPI_Win_sync(win);
        MPI_Barrier(host);
        MPI_Win_sync(win);
        CHECK_EQUAL(base[0], 10 * i + (rank + size - 1) % size);
        MPI_Barrier(host);
    }
    for (int i = 0; i < 10000; i++)
        atomic_fetch_add(counter, 1);
    MPI_Barrier(host);
    CHECK_EQUAL(atomic_load(counter), 10000 * size);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

/* Calls and loads see the same memory. */
static void both(void)
{
    MPI_Win win;
    int *base = NULL;
    int target = (rank + 1) % size, value = rank + 40, one = 1;
    MPI_Win_allocate_shared(4096, 4, MPI_INFO_NULL, host, &base, &win);
    base[0] = base[1] = 0;
    MPI_Win_fence(0, win);
    MPI_Put(&value, 1, MPI_INT, target, 0, 1, MPI_INT, win);
    for (int i = 0; i < size; i++)
        MPI_Accumulate(&one, 1, MPI_INT, i, 1, 1, MPI_INT, MPI_SUM, win);
    MPI_Win_fence(0, win);
    CHECK_EQUAL(base[0], (rank + size - 1) % size + 40);
    CHECK_EQUAL(base[1], size);
    MPI_Win_free(&win);
}

/* A window of nothing; several at once; one of a single rank. */
static void odd_ones(void)
{
    MPI_Win wins[4];
    int *bases[4];
    for (int i = 0; i < 4; i++) {
        MPI_Comm comm = i == 3 ? MPI_COMM_SELF : host;
        CHECK_EQUAL(MPI_Win_allocate_shared(i == 0 ? 0 : 4000 * i, 4, MPI_INFO_NULL, comm, &bases[i], &wins[i]), 0);
        for (int k = 0; k < 1000 * i; k++)
            bases[i][k] = 1000 * i + rank;
    }
    for (int i = 0; i < 4; i++) {
        MPI_Win_fence(0, wins[i]);
        for (int k = 0; k < 1000 * i; k++)
            if (!CHECK_EQUAL(bases[i][k], 1000 * i + rank))
                break;
        MPI_Win_free(&wins[i]);
    }
}

/* Memory that cannot be shared, and windows that are not. */
static void refused(void)
{
    MPI_Win win = MPI_WIN_NULL;
    void *base = NULL;
    MPI_Aint bytes;
    int unit;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (size < test_size) {
        CHECK_CLASS(MPI_Win_allocate_shared(8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win), MPI_ERR_RMA_SHARED);
        CHECK(win == MPI_WIN_NULL, "a shared window of several hosts was made");
    }
    int64_t cell;
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    CHECK_CLASS(MPI_Win_shared_query(win, test_rank, &bytes, &unit, &base), MPI_ERR_RMA_FLAVOR);
    MPI_Win_free(&win);
    MPI_Win_allocate_shared(8, 1, MPI_INFO_NULL, host, &base, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    CHECK_CLASS(MPI_Win_shared_query(win, size, &bytes, &unit, &base), MPI_ERR_RANK);
    CHECK_CLASS(MPI_Win_attach(win, &cell, 8), MPI_ERR_RMA_FLAVOR);
    MPI_Win_free(&win);
}

int main(int argc, char **argv)
{
    test_begin(&argc, &argv);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
    MPI_Comm_rank(host, &rank);
    MPI_Comm_size(host, &size);
    loads(true);
    loads(false);
    stores();
    both();
    odd_ones();
    if (!test_peer())
        refused();
    MPI_Comm_free(&host);
    return test_end();
}
