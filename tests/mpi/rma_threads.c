/* One-sided communication by several threads of each rank at a time: windows of their own, one that they share, and
 * messages and collectives beside it. */
#include "rma.h"

#include <pthread.h>

#define THREADS 4
#define TURNS   100

struct worker {
    pthread_t thread;
    int number;
    MPI_Win own;     /* of the threads with this number */
    int64_t *memory; /* of it here */
    struct rma_window *shared;
    int64_t tickets[TURNS];
};

static void *own_window(void *argument)
{
    struct worker *me = argument;
    for (int i = 0; i < TURNS; i++) {
        int target = (test_rank + i) % test_size;
        int64_t seen = -1;
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, me->own);
        MPI_Get(&seen, 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, me->own);
        MPI_Win_flush(target, me->own);
        seen++;
        MPI_Put(&seen, 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, me->own);
        MPI_Win_unlock(target, me->own);
    }
    return NULL;
}

/* Everybody draws numbers from rank 0, and nobody draws one twice. */
static void *draw(void *argument)
{
    struct worker *me = argument;
    struct rma_window *w = me->shared;
    int64_t one = 1, square = 0, *cell = &square;
    for (int i = 0; i < TURNS; i++) {
        int neighbour = (test_rank + 1 + me->number) % w->size;
        MPI_Aint at = rma_at(w, neighbour, 8 * (1 + me->number + THREADS * w->rank));
        MPI_Fetch_and_op(&one, &me->tickets[i], MPI_INT64_T, 0, rma_at(w, 0, 0), MPI_SUM, w->win);
        MPI_Win_flush_local(0, w->win);
        square = (int64_t)i * i + me->number;
        MPI_Put(cell, 1, MPI_INT64_T, neighbour, at, 1, MPI_INT64_T, w->win);
        MPI_Win_flush(neighbour, w->win);
        square = -1;
        MPI_Request request;
        MPI_Rget(cell, 1, MPI_INT64_T, neighbour, at, 1, MPI_INT64_T, w->win, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK_EQUAL(square, (int64_t)i * i + me->number);
    }
    return NULL;
}

/* Messages between the same ranks, meanwhile. */
static void *talk(void *argument)
{
    int turns = *(int *)argument;
    for (int i = 0; i < turns; i++) {
        int seen = -1;
        MPI_Sendrecv(&i, 1, MPI_INT, test_next(), 77, &seen, 1, MPI_INT, test_previous(), 77, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        CHECK_EQUAL(seen, i);
    }
    return NULL;
}

static void run(struct worker *workers, void *(*work)(void *))
{
    pthread_t talker;
    int turns = TURNS;
    pthread_create(&talker, NULL, talk, &turns);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&workers[i].thread, NULL, work, &workers[i]);
    for (int i = 0; i < THREADS; i++)
        pthread_join(workers[i].thread, NULL);
    pthread_join(talker, NULL);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void own_windows(struct worker *workers)
{
    int64_t sum = 0;
    for (int i = 0; i < THREADS; i++) {
        workers[i].number = i;
        MPI_Win_allocate(8, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &workers[i].memory, &workers[i].own);
        *workers[i].memory = 0;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    run(workers, own_window);
    for (int i = 0; i < THREADS; i++) {
        MPI_Win_lock(MPI_LOCK_SHARED, test_rank, 0, workers[i].own);
        MPI_Allreduce(workers[i].memory, &sum, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
        MPI_Win_unlock(test_rank, workers[i].own);
        CHECK_EQUAL(sum, (int64_t)TURNS * test_size);
        MPI_Win_free(&workers[i].own);
    }
}

static void shared_window(struct worker *workers, enum rma_flavor flavor)
{
    struct rma_window w;
    rma_open(&w, flavor, 8 * (1 + THREADS * 64), 8);
    int64_t all = (int64_t)w.size * THREADS * TURNS, *cells = (int64_t *)w.base;
    unsigned char *drawn = test_memory((size_t)all);
    memset(drawn, 0, (size_t)all);
    cells[0] = 0;
    MPI_Barrier(w.comm);
    MPI_Win_lock_all(0, w.win);
    for (int i = 0; i < THREADS; i++)
        workers[i].shared = &w;
    run(workers, draw);
    MPI_Win_unlock_all(w.win);
    for (int i = 0; i < THREADS; i++) {
        for (int k = 0; k < TURNS; k++) {
            int64_t ticket = workers[i].tickets[k];
            CHECK(ticket >= 0 && ticket < all, "the ticket %lld of %lld", (long long)ticket, (long long)all);
            if (ticket >= 0 && ticket < all)
                drawn[ticket]++;
            CHECK(k == 0 || workers[i].tickets[k - 1] < ticket, "tickets of one thread are not in order");
        }
    }
    MPI_Allreduce(MPI_IN_PLACE, drawn, (int)all, MPI_UNSIGNED_CHAR, MPI_SUM, w.comm);
    for (int64_t i = 0; i < all; i++)
        if (!CHECK_EQUAL(drawn[i], 1))
            break;
    free(drawn);
    rma_close(&w);
}

/* Each thread locks a rank of its own again and again. What is locked is counted right: nothing is at the end. */
static void *lock_one(void *argument)
{
    struct worker *me = argument;
    struct rma_window *w = me->shared;
    for (int i = 0; i < 5 * TURNS && me->number < w->size; i++) {
        CHECK_EQUAL(MPI_Win_lock(MPI_LOCK_SHARED, me->number, 0, w->win), MPI_SUCCESS);
        CHECK_EQUAL(MPI_Win_unlock(me->number, w->win), MPI_SUCCESS);
    }
    return NULL;
}

static void different_locks(struct worker *workers)
{
    struct rma_window w;
    rma_open(&w, RMA_ALLOCATED, 8, 8);
    for (int i = 0; i < THREADS; i++)
        workers[i].shared = &w;
    run(workers, lock_one);
    rma_close(&w);
}

/* One puts until the others have flushed so often: a flush waits for what was there before it, not for what comes. */
static int flushing;

static void *put_or_flush(void *argument)
{
    struct worker *me = argument;
    struct rma_window *w = me->shared;
    int next = rma_next(w);
    int64_t value[64] = {0};
    if (me->number == 0) {
        for (double end = test_now() + 60; __atomic_load_n(&flushing, __ATOMIC_RELAXED) > 0 && test_now() < end;) {
            for (int i = 0; i < 16; i++)
                MPI_Put(value, 64, MPI_INT64_T, next, rma_at(w, next, 0), 64, MPI_INT64_T, w->win);
            MPI_Win_flush_local(next, w->win);
        }
        CHECK_EQUAL(__atomic_load_n(&flushing, __ATOMIC_RELAXED), 0);
        return NULL;
    }
    int64_t mine = 17 + me->number, seen = -1;
    for (int i = 0; i < 5; i++) {
        MPI_Put(&mine, 1, MPI_INT64_T, next, rma_at(w, next, 8 * (64 + me->number)), 1, MPI_INT64_T, w->win);
        if (i % 2)
            MPI_Win_flush(next, w->win);
        else
            MPI_Win_flush_all(w->win);
        MPI_Get(&seen, 1, MPI_INT64_T, next, rma_at(w, next, 8 * (64 + me->number)), 1, MPI_INT64_T, w->win);
        MPI_Win_flush_local(next, w->win);
        CHECK_EQUAL(seen, mine);
    }
    __atomic_fetch_sub(&flushing, 1, __ATOMIC_RELAXED);
    return NULL;
}

static void flush_beside_puts(struct worker *workers)
{
    struct rma_window w;
    rma_open(&w, RMA_CREATED, 8 * (64 + THREADS), 8);
    flushing = THREADS - 1;
    for (int i = 0; i < THREADS; i++)
        workers[i].shared = &w;
    MPI_Win_lock_all(0, w.win);
    run(workers, put_or_flush);
    MPI_Win_unlock_all(w.win);
    rma_close(&w);
}

int main(int argc, char **argv)
{
    static struct worker workers[THREADS];
    test_begin_threads(&argc, &argv, MPI_THREAD_MULTIPLE);
    own_windows(workers);
    for (int flavor = 0; flavor < RMA_FLAVORS; flavor++)
        shared_window(workers, (enum rma_flavor)flavor);
    different_locks(workers);
    flush_beside_puts(workers);
    return test_end();
}
