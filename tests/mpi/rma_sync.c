/* Synchronisation: fences with assertions, post and start among some, locks that exclude each other, lock_all with all
 * kinds of flush, and windows whose epochs overlap. Every epoch carries data, so that one that ends too early is seen.
 */
#include "rma.h"

#define ROUNDS 20
#define ADDS   100

static int64_t *cells(struct rma_window *w)
{
    return (int64_t *)w->base;
}

/* A put of `value` into a cell of a rank. */
static void put(struct rma_window *w, int rank, int cell, int64_t *value)
{
    CHECK_EQUAL(MPI_Put(value, 1, MPI_INT64_T, rank, rma_at(w, rank, 8 * cell), 1, MPI_INT64_T, w->win), MPI_SUCCESS);
}

static void get(struct rma_window *w, int rank, int cell, int64_t *value)
{
    CHECK_EQUAL(MPI_Get(value, 1, MPI_INT64_T, rank, rma_at(w, rank, 8 * cell), 1, MPI_INT64_T, w->win), MPI_SUCCESS);
}

/* ---- fences ------------------------------------------------------------------------------------------------------ */

static void fences(struct rma_window *w)
{
    int64_t values[ROUNDS];
    CHECK_EQUAL(MPI_Win_fence(MPI_MODE_NOPRECEDE, w->win), MPI_SUCCESS);
    for (int i = 0; i < ROUNDS; i++) {
        values[i] = 1000 * w->rank + i;
        int distance = 1 + i % w->size;
        put(w, (w->rank + distance) % w->size, i % 4, &values[i]);
        int assertion = i == ROUNDS - 1 ? MPI_MODE_NOSUCCEED : i % 3 == 1 ? MPI_MODE_NOSTORE : 0;
        CHECK_EQUAL(MPI_Win_fence(assertion, w->win), MPI_SUCCESS);
        CHECK_EQUAL(cells(w)[i % 4], 1000 * ((w->rank + w->size * 2 - distance) % w->size) + i);
    }
    /* An epoch in which only stores were made, and one in which only others were read. */
    MPI_Win_fence(MPI_MODE_NOPRECEDE, w->win);
    cells(w)[0] = w->rank + 7;
    MPI_Win_fence(MPI_MODE_NOPUT | MPI_MODE_NOPRECEDE, w->win);
    get(w, rma_next(w), 0, &values[0]);
    MPI_Win_fence(MPI_MODE_NOSTORE | MPI_MODE_NOPUT | MPI_MODE_NOSUCCEED, w->win);
    CHECK_EQUAL(values[0], rma_next(w) + 7);
    MPI_Barrier(w->comm);
}

/* Some ranks are late: nobody accesses before they are there. */
static void late_fences(struct rma_window *w)
{
    int64_t value = w->rank + 1;
    for (int i = 0; i < 3; i++) {
        if (w->rank == i % w->size)
            test_sleep(0.02);
        cells(w)[0] = -5;
        MPI_Win_fence(0, w->win);
        put(w, rma_next(w), 0, &value);
        if (w->rank == (i + 1) % w->size)
            test_sleep(0.02);
        MPI_Win_fence(0, w->win);
        CHECK_EQUAL(cells(w)[0], rma_previous(w) + 1);
    }
    MPI_Win_fence(MPI_MODE_NOSUCCEED, w->win);
}

/* ---- post, start, complete, wait --------------------------------------------------------------------------------- */

static MPI_Group part(struct rma_window *w, const int *ranks, int count)
{
    MPI_Group all, some;
    MPI_Win_get_group(w->win, &all);
    MPI_Group_incl(all, count, ranks, &some);
    MPI_Group_free(&all);
    return some;
}

/* In each round each rank accesses `degree` ranks behind it, and is accessed by as many before it. */
static void subsets(struct rma_window *w)
{
    int targets[16], origins[16];
    int64_t values[16];
    for (int round = 0; round < ROUNDS; round++) {
        int degree = test_peer() ? 1 + round % w->size : round % (w->size + 1); /* MPICH waits for nobody in vain */
        int assertion = round % 4 == 3 ? MPI_MODE_NOSTORE : 0;
        for (int i = 0; i < degree; i++) {
            targets[i] = (w->rank + i) % w->size;
            origins[i] = (w->rank + w->size - i) % w->size;
            values[i] = 1000 * round + 10 * w->rank + i;
        }
        MPI_Group to = part(w, targets, degree), from = part(w, origins, degree);
        for (int i = 0; i < w->size; i++)
            cells(w)[i] = -1;
        CHECK_EQUAL(MPI_Win_post(from, assertion, w->win), MPI_SUCCESS);
        CHECK_EQUAL(MPI_Win_start(to, 0, w->win), MPI_SUCCESS);
        for (int i = 0; i < degree; i++)
            put(w, targets[i], i, &values[i]);
        CHECK_EQUAL(MPI_Win_complete(w->win), MPI_SUCCESS);
        if (round % 2) {
            CHECK_EQUAL(MPI_Win_wait(w->win), MPI_SUCCESS);
        } else {
            int flag = 0;
            while (!flag)
                CHECK_EQUAL(MPI_Win_test(w->win, &flag), MPI_SUCCESS);
        }
        for (int i = 0; i < w->size; i++)
            CHECK_EQUAL(cells(w)[i], i < degree ? 1000 * round + 10 * origins[i] + i : -1);
        MPI_Group_free(&to);
        MPI_Group_free(&from);
    }
    MPI_Barrier(w->comm);
}

/* Rank 0 is written to by all others in turn, who do not know of each other; it computes in between. */
static void one_target(struct rma_window *w)
{
    if (w->size < 2)
        return;
    int zero = 0, others[16];
    for (int i = 1; i < w->size; i++)
        others[i - 1] = i;
    for (int round = 0; round < 5; round++) {
        int64_t value = 100 * round + w->rank, sum = 0;
        int flag = 1;
        if (w->rank == 0) {
            MPI_Group from = part(w, others, w->size - 1);
            MPI_Win_post(from, 0, w->win);
            MPI_Group_free(&from);
            if (round == 0) {
                MPI_Win_test(w->win, &flag);
                CHECK_EQUAL(flag, 0); /* rank 1 waits for a message of this one */
            }
            if (round == 0)
                MPI_Send(NULL, 0, MPI_BYTE, 1, 5, w->comm);
            MPI_Win_wait(w->win);
            for (int i = 1; i < w->size; i++)
                sum += cells(w)[i];
            CHECK_EQUAL(sum, (int64_t)(w->size - 1) * 100 * round + (int64_t)w->size * (w->size - 1) / 2);
        } else {
            MPI_Group to = part(w, &zero, 1);
            MPI_Win_start(to, 0, w->win);
            put(w, 0, w->rank, &value);
            if (round == 0 && w->rank == 1)
                MPI_Recv(NULL, 0, MPI_BYTE, 0, 5, w->comm, MPI_STATUS_IGNORE);
            MPI_Win_complete(w->win);
            MPI_Group_free(&to);
        }
    }
    MPI_Barrier(w->comm);
}

/* A rank exposes its memory to the one before it while it accesses the next one in an epoch that begins later. */
static void overlapping(struct rma_window *w)
{
    int next = rma_next(w), previous = rma_previous(w);
    MPI_Group to = part(w, &next, 1), from = part(w, &previous, 1);
    for (int64_t round = 0; round < ROUNDS; round++) {
        int64_t value = round * 10 + w->rank, seen = -1;
        cells(w)[1] = round;
        MPI_Win_post(from, round % 2 ? MPI_MODE_NOPUT : 0, w->win);
        MPI_Win_start(to, 0, w->win);
        get(w, next, 1, &seen);
        if (round % 2 == 0)
            put(w, next, 0, &value);
        MPI_Win_complete(w->win);
        CHECK_EQUAL(seen, round);
        MPI_Win_wait(w->win);
        if (round % 2 == 0)
            CHECK_EQUAL(cells(w)[0], round * 10 + previous);
    }
    /* Nothing has asked yet what has become of the last ones; an epoch without any does not wait for it in vain. */
    CHECK_EQUAL(MPI_Win_lock_all(0, w->win), MPI_SUCCESS);
    CHECK_EQUAL(MPI_Win_unlock_all(w->win), MPI_SUCCESS);
    MPI_Group_free(&to);
    MPI_Group_free(&from);
    MPI_Barrier(w->comm);
}

/* ---- locks ------------------------------------------------------------------------------------------------------- */

/* Get, add, put: right only if exclusive locks exclude all others. Two cells must always agree for who has a shared
 * one. */
static void exclusion(struct rma_window *w)
{
    cells(w)[0] = cells(w)[1] = 0;
    MPI_Barrier(w->comm);
    for (int i = 0; i < ADDS; i++) {
        int target = (i * 7 + w->rank) % w->size;
        int64_t pair[2] = {-1, -2};
        bool writes = i % 3 != 0;
        MPI_Win_lock(writes ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, target, 0, w->win);
        get(w, target, 0, &pair[0]);
        get(w, target, 1, &pair[1]);
        MPI_Win_flush(target, w->win);
        CHECK_EQUAL(pair[0], pair[1]);
        pair[0]++;
        pair[1]++;
        if (writes) {
            put(w, target, 0, &pair[0]);
            put(w, target, 1, &pair[1]);
        }
        MPI_Win_unlock(target, w->win);
    }
    MPI_Barrier(w->comm);
    int64_t sum = 0, mine;
    MPI_Win_lock(MPI_LOCK_SHARED, w->rank, 0, w->win);
    mine = cells(w)[0];
    MPI_Win_unlock(w->rank, w->win);
    MPI_Allreduce(&mine, &sum, 1, MPI_INT64_T, MPI_SUM, w->comm);
    CHECK_EQUAL(sum, (int64_t)w->size * (ADDS - (ADDS + 2) / 3));
}

/* The owner loads and stores under its own lock, beside others. */
static void owner(struct rma_window *w)
{
    cells(w)[0] = 0;
    MPI_Barrier(w->comm);
    for (int i = 0; i < ADDS; i++) {
        int64_t seen;
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, w->win);
        if (w->rank == 0) {
            seen = ++cells(w)[0];
        } else {
            get(w, 0, 0, &seen);
            MPI_Win_flush_local(0, w->win);
            seen++;
            put(w, 0, 0, &seen);
        }
        MPI_Win_unlock(0, w->win);
    }
    MPI_Barrier(w->comm);
    if (w->rank == 0) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, w->win);
        CHECK_EQUAL(cells(w)[0], (int64_t)w->size * ADDS);
        MPI_Win_unlock(0, w->win);
    }
    MPI_Barrier(w->comm);
}

/* Shared locks are held by all at once: everyone waits, with its lock, for all others to have theirs. */
static void together(struct rma_window *w)
{
    int64_t one = 1, seen = 0;
    cells(w)[2] = 0;
    MPI_Barrier(w->comm);
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, w->win);
    MPI_Fetch_and_op(&one, &seen, MPI_INT64_T, 0, rma_at(w, 0, 16), MPI_SUM, w->win);
    for (double end = test_now() + 60; seen < w->size && test_now() < end;) {
        MPI_Fetch_and_op(&one, &seen, MPI_INT64_T, 0, rma_at(w, 0, 16), MPI_NO_OP, w->win);
        MPI_Win_flush(0, w->win);
    }
    CHECK_EQUAL(seen, w->size);
    MPI_Win_unlock(0, w->win);
    MPI_Barrier(w->comm);
}

/* Locks of all ranks at once, in an order in which nobody waits for who waits for him. */
static void several_locks(struct rma_window *w)
{
    cells(w)[0] = 0;
    MPI_Barrier(w->comm);
    for (int i = 0; i < 5; i++) {
        int64_t sum = 0, values[16];
        for (int rank = 0; rank < w->size; rank++)
            MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, w->win);
        for (int rank = 0; rank < w->size; rank++)
            get(w, rank, 0, &values[rank]);
        for (int rank = 0; rank < w->size; rank++)
            MPI_Win_flush_local(rank, w->win);
        for (int rank = 0; rank < w->size; rank++) {
            sum += values[rank];
            values[rank]++;
            put(w, rank, 0, &values[rank]);
        }
        CHECK(sum % w->size == 0, "cells that were changed together have the sum %lld", (long long)sum);
        for (int rank = w->size; rank-- > 0;)
            MPI_Win_unlock(rank, w->win);
    }
    MPI_Barrier(w->comm);
    MPI_Win_lock(MPI_LOCK_SHARED, w->rank, 0, w->win);
    CHECK_EQUAL(cells(w)[0], 5 * w->size);
    MPI_Win_unlock(w->rank, w->win);
    MPI_Barrier(w->comm);
}

/* Two ranks that share one lock each, or all, and then need the other's; and two that wait for one of these alone
 * meanwhile. Nobody has done anything that another must wait for. */
static void crossing(struct rma_window *w, bool all)
{
    enum { SHIFTS = 3 };
    int64_t one = 1, seen = -1, sum, cell;
    cells(w)[4] = 0;
    MPI_Barrier(w->comm);
    for (int shift = 0; shift < SHIFTS && w->size >= 4; shift++) {
        int place = (w->rank + w->size - shift) % w->size; /* 0 and 1 share, 2 and 3 want it alone */
        int own = ((place & 1) + shift) % w->size, other = (1 - (place & 1) + shift) % w->size;
        int waiter = (place + 2 + shift) % w->size, told = (place + w->size - 2 + shift) % w->size;
        if (place < 2) {
            if (all)
                MPI_Win_lock_all(0, w->win);
            else
                MPI_Win_lock(MPI_LOCK_SHARED, own, 0, w->win);
            get(w, own, 4, &seen);
            MPI_Win_flush(own, w->win);
            MPI_Send(NULL, 0, MPI_BYTE, waiter, 6, w->comm);
            test_sleep(0.02);
            if (!all)
                MPI_Win_lock(MPI_LOCK_SHARED, other, 0, w->win);
            MPI_Accumulate(&one, 1, MPI_INT64_T, other, rma_at(w, other, 32), 1, MPI_INT64_T, MPI_SUM, w->win);
            CHECK_EQUAL(MPI_Win_flush(other, w->win), MPI_SUCCESS);
            if (all)
                MPI_Win_unlock_all(w->win);
            else
                MPI_Win_unlock(other, w->win);
            if (!all)
                MPI_Win_unlock(own, w->win);
        } else if (place < 4) {
            MPI_Recv(NULL, 0, MPI_BYTE, told, 6, w->comm, MPI_STATUS_IGNORE);
            MPI_Win_lock(MPI_LOCK_EXCLUSIVE, own, 0, w->win);
            get(w, own, 4, &seen);
            MPI_Win_flush(own, w->win);
            seen++;
            put(w, own, 4, &seen);
            MPI_Win_unlock(own, w->win);
        }
        MPI_Barrier(w->comm);
    }
    MPI_Win_lock(MPI_LOCK_SHARED, w->rank, 0, w->win);
    cell = cells(w)[4];
    MPI_Win_unlock(w->rank, w->win);
    MPI_Allreduce(&cell, &sum, 1, MPI_INT64_T, MPI_SUM, w->comm);
    CHECK_EQUAL(sum, w->size >= 4 ? 4 * SHIFTS : 0);
}

/* ---- lock_all and flush ------------------------------------------------------------------------------------------ */

/* A message after a flush finds the data there. After a local flush the buffer may change. */
static void flushes(struct rma_window *w)
{
    int next = rma_next(w), previous = rma_previous(w);
    MPI_Win_lock_all(0, w->win);
    for (int64_t i = 0; i < ROUNDS; i++) {
        int64_t value = 100 * i + w->rank, got = -1;
        put(w, next, 0, &value);
        if (i % 2)
            MPI_Win_flush_local(next, w->win);
        else
            MPI_Win_flush_local_all(w->win);
        value = -9;
        if (i % 3)
            MPI_Win_flush(next, w->win);
        else
            MPI_Win_flush_all(w->win);
        MPI_Sendrecv(NULL, 0, MPI_BYTE, next, 1, NULL, 0, MPI_BYTE, previous, 1, w->comm, MPI_STATUS_IGNORE);
        MPI_Win_sync(w->win);
        CHECK_EQUAL(cells(w)[0], 100 * i + previous);
        get(w, next, 0, &got);
        MPI_Win_flush_local(next, w->win);
        CHECK_EQUAL(got, 100 * i + w->rank);
        MPI_Barrier(w->comm);
    }
    MPI_Win_unlock_all(w->win);
    MPI_Barrier(w->comm);
}

/* NOCHECK: the program sees to it that nobody else has the lock. */
static void unchecked(struct rma_window *w)
{
    int64_t value = 500 + w->rank;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rma_next(w), MPI_MODE_NOCHECK, w->win);
    put(w, rma_next(w), 3, &value);
    MPI_Win_unlock(rma_next(w), w->win);
    MPI_Barrier(w->comm);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, w->win);
    get(w, rma_next(w), 3, &value);
    MPI_Win_unlock_all(w->win);
    CHECK_EQUAL(value, 500 + w->rank);
    CHECK_EQUAL(cells(w)[3], 500 + rma_previous(w));
    MPI_Barrier(w->comm);
}

/* Many accesses of an epoch, more than can be on their way at once. */
static void crowd(struct rma_window *w)
{
    enum { MANY = 5000 };
    int64_t one = 1, values[64];
    cells(w)[0] = 0;
    for (int i = 0; i < 64; i++)
        values[i] = w->rank * 100 + i;
    MPI_Win_fence(0, w->win);
    for (int i = 0; i < MANY; i++) {
        MPI_Accumulate(&one, 1, MPI_INT64_T, i % w->size, rma_at(w, i % w->size, 0), 1, MPI_INT64_T, MPI_SUM, w->win);
        put(w, rma_next(w), 1 + i % 64, &values[i % 64]);
    }
    MPI_Win_fence(0, w->win);
    int64_t expected = (int64_t)w->size * (MANY / w->size + (w->rank < MANY % w->size));
    CHECK_EQUAL(cells(w)[0], expected);
    for (int i = 0; i < 64; i++)
        CHECK_EQUAL(cells(w)[1 + i], rma_previous(w) * 100 + i);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, w->win);
}

/* Two windows, in one of which a lock is held while the other has fences. */
static void two_windows(struct rma_window *a, struct rma_window *b)
{
    int64_t x = a->rank, y = -1;
    cells(b)[0] = 70 + b->rank;
    MPI_Barrier(b->comm);
    MPI_Win_lock(MPI_LOCK_SHARED, rma_next(b), 0, b->win);
    MPI_Win_fence(0, a->win);
    put(a, rma_next(a), 0, &x);
    get(b, rma_next(b), 0, &y);
    MPI_Win_fence(0, a->win);
    CHECK_EQUAL(cells(a)[0], rma_previous(a));
    MPI_Win_unlock(rma_next(b), b->win);
    CHECK_EQUAL(y, 70 + rma_next(b));
    MPI_Win_fence(MPI_MODE_NOSUCCEED, a->win);
    MPI_Barrier(b->comm);
}

/* More small gets in one epoch than a target keeps results for that wait, from rank 0, which reads nothing in between.
 */
static void many_gets(void)
{
    enum { MANY = 20000, EACH = 128 };
    MPI_Info calls_only;
    struct rma_window w = {.flavor = RMA_ALLOCATED, .comm = MPI_COMM_WORLD, .rank = test_rank, .size = test_size};
    unsigned char *here = test_memory(MANY * EACH);
    MPI_Info_create(&calls_only);
    MPI_Info_set(calls_only, "no_locks", "true");
    CHECK_EQUAL(MPI_Win_allocate(MANY * EACH, EACH, calls_only, w.comm, &w.base, &w.win), MPI_SUCCESS);
    MPI_Info_free(&calls_only);
    for (int i = 0; i < MANY * EACH; i++)
        w.base[i] = (unsigned char)(i % 251 + w.rank);
    CHECK_EQUAL(MPI_Win_fence(MPI_MODE_NOPRECEDE, w.win), MPI_SUCCESS);
    for (int i = 0; i < MANY && w.rank == 0; i++)
        MPI_Get(here + (size_t)i * EACH, EACH, MPI_BYTE, rma_next(&w), i, EACH, MPI_BYTE, w.win);
    CHECK_EQUAL(MPI_Win_fence(MPI_MODE_NOSUCCEED, w.win), MPI_SUCCESS);
    for (int i = 0; i < MANY * EACH && w.rank == 0; i++)
        if (!CHECK_EQUAL(here[i], (unsigned char)(i % 251 + rma_next(&w))))
            break;
    MPI_Win_free(&w.win);
    free(here);
}

int main(int argc, char **argv)
{
    test_begin(&argc, &argv);
    for (int flavor = 0; flavor < RMA_FLAVORS; flavor++) {
        struct rma_window w, other;
        rma_open(&w, (enum rma_flavor)flavor, 4096, 8);
        rma_open(&other, RMA_CREATED, 4096, 8);
        fences(&w);
        late_fences(&w);
        subsets(&w);
        one_target(&w);
        overlapping(&w);
        exclusion(&w);
        owner(&w);
        together(&w);
        several_locks(&w);
        crossing(&w, false);
        crossing(&w, true);
        flushes(&w);
        unchecked(&w);
        crowd(&w);
        two_windows(&w, &other);
        rma_close(&other);
        rma_close(&w);
    }
    many_gets();
    return test_end();
}
