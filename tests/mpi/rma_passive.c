/* Passive targets: a rank that computes and calls nothing is read, written and added to, and its locks are granted.
 * Each rank is that target once; it sees in its own memory that all others have been there, or would look in vain. */
#include "rma.h"

#define PATIENT 15.0         /* seconds */
#define BYTES   (256 * 4096) /* more than a socket takes at once */
#define WORDS   1000
#define PAIRS   500
#define CROWD   70 /* pieces of memory */

/* Waits, without MPI, until `count` others have come. Peers do not promise that. */
static bool visited(const volatile int64_t *counter, int64_t count)
{
    double end = test_now() + PATIENT;
    int flag;
    while (*counter < count && test_now() < end) {
        if (test_peer())
            MPI_Iprobe(MPI_ANY_SOURCE, 5000, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        else
            test_sleep(0.0002);
    }
    return *counter == count;
}

struct pair {
    double value;
    int at;
};

/* Pairs, which have gaps, in the second half of the window. */
static void visit_pairs(struct rma_window *w, int target)
{
    struct pair mine[PAIRS], seen[PAIRS];
    MPI_Aint there = rma_at(w, target, BYTES / 2 + (MPI_Aint)sizeof mine * w->rank);
    for (int round = 0; round < 2; round++) {
        int wrong = 0;
        for (int i = 0; i < PAIRS; i++)
            mine[i] = (struct pair){i % 3 + round, i + 1000 * round};
        MPI_Win_lock(MPI_LOCK_SHARED, target, 0, w->win);
        MPI_Accumulate(mine, PAIRS, MPI_DOUBLE_INT, target, there, PAIRS, MPI_DOUBLE_INT,
                       round == 0 ? MPI_REPLACE : MPI_MAXLOC, w->win);
        MPI_Get_accumulate(NULL, 0, MPI_DOUBLE_INT, seen, PAIRS, MPI_DOUBLE_INT, target, there, PAIRS, MPI_DOUBLE_INT,
                           MPI_NO_OP, w->win);
        MPI_Win_unlock(target, w->win);
        for (int i = 0; i < PAIRS; i++)
            wrong += seen[i].value != mine[i].value || seen[i].at != mine[i].at;
        CHECK_EQUAL(wrong, 0);
    }
}

/* Everything that another rank can do to the target: the last thing is to count. */
static void visit(struct rma_window *w, int target, int64_t *words)
{
    int64_t one = 1, seen = -1, compare = -1, own = w->rank, *back = test_memory(WORDS * 8);
    MPI_Aint mine = rma_at(w, target, 4096 + 8 * WORDS * w->rank);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, w->win);
    MPI_Get(&seen, 1, MPI_INT64_T, target, rma_at(w, target, 8), 1, MPI_INT64_T, w->win);
    MPI_Win_unlock(target, w->win);
    CHECK_EQUAL(seen, 7 + target);
    MPI_Win_lock(MPI_LOCK_SHARED, target, 0, w->win);
    MPI_Put(words, WORDS, MPI_INT64_T, target, mine, WORDS, MPI_INT64_T, w->win);
    MPI_Win_flush(target, w->win);
    MPI_Get_accumulate(words, WORDS, MPI_INT64_T, back, WORDS, MPI_INT64_T, target, mine, WORDS, MPI_INT64_T, MPI_SUM,
                       w->win);
    MPI_Compare_and_swap(&own, &compare, &seen, MPI_INT64_T, target, rma_at(w, target, 16), w->win);
    MPI_Win_unlock(target, w->win);
    CHECK(memcmp(back, words, WORDS * 8) == 0, "other words came back");
    CHECK(seen >= -1 && seen < w->size && seen != target, "swapped for %lld", (long long)seen);
    int64_t *all = test_memory(BYTES);
    MPI_Win_lock(MPI_LOCK_SHARED, target, 0, w->win);
    MPI_Get(all, BYTES / 8, MPI_INT64_T, target, rma_at(w, target, 0), BYTES / 8, MPI_INT64_T, w->win);
    MPI_Win_unlock(target, w->win);
    CHECK_EQUAL(all[1], 7 + target);
    for (int i = 0; i < WORDS; i++)
        if (!CHECK_EQUAL(all[512 + WORDS * w->rank + i], 2 * words[i]))
            break;
    free(all);
    visit_pairs(w, target);
    MPI_Win_lock_all(0, w->win);
    MPI_Accumulate(&one, 1, MPI_INT64_T, target, rma_at(w, target, 0), 1, MPI_INT64_T, MPI_SUM, w->win);
    MPI_Win_unlock_all(w->win);
    free(back);
}

/* Everybody is here, and knows it before the target calls nothing more: what that has sent last might get lost, and it
 * would not send it again. */
static void gather(struct rma_window *w, int target)
{
    MPI_Barrier(w->comm);
    if (w->rank != target)
        MPI_Send(NULL, 0, MPI_BYTE, target, 9, w->comm);
    for (int i = 1; w->rank == target && i < w->size; i++)
        MPI_Recv(NULL, 0, MPI_BYTE, MPI_ANY_SOURCE, 9, w->comm, MPI_STATUS_IGNORE);
}

static void computing(struct rma_window *w)
{
    int64_t *cells = (int64_t *)w->base, words[WORDS];
    for (int i = 0; i < WORDS; i++)
        words[i] = w->rank * 10000 + i;
    for (int target = 0; target < w->size; target++) {
        cells[0] = 0;
        cells[1] = 7 + w->rank;
        cells[2] = -1;
        gather(w, target);
        if (w->rank != target) {
            visit(w, target, words);
        } else {
            CHECK(visited(&cells[0], w->size - 1), "%lld of %d came while this rank computed", (long long)cells[0],
                  w->size - 1);
        }
        MPI_Barrier(w->comm);
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, w->rank, 0, w->win);
        for (int rank = 0; target == w->rank && rank < w->size; rank++)
            for (int i = 0; rank != target && i < WORDS; i++)
                if (!CHECK_EQUAL(cells[512 + WORDS * rank + i], 2 * (rank * 10000 + i)))
                    break;
        MPI_Win_unlock(w->rank, w->win);
        MPI_Barrier(w->comm);
    }
}

/* Those who wait for a lock get it when it is given back, though its target computes. */
static void granted(struct rma_window *w)
{
    int64_t *cells = (int64_t *)w->base, one = 1, seen = -1;
    if (w->size < 3)
        return;
    cells[0] = cells[1] = 0;
    gather(w, 0);
    if (w->rank == 0) {
        CHECK(visited(&cells[1], w->size - 1), "%lld of %d had the lock", (long long)cells[1], w->size - 1);
    } else {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, w->win);
        MPI_Get(&seen, 1, MPI_INT64_T, 0, rma_at(w, 0, 0), 1, MPI_INT64_T, w->win);
        MPI_Win_flush(0, w->win);
        CHECK_EQUAL(seen, 0); /* nobody else has it */
        MPI_Put(&one, 1, MPI_INT64_T, 0, rma_at(w, 0, 0), 1, MPI_INT64_T, w->win);
        MPI_Win_flush(0, w->win);
        test_sleep(0.005);
        MPI_Put(&(int64_t){0}, 1, MPI_INT64_T, 0, rma_at(w, 0, 0), 1, MPI_INT64_T, w->win);
        MPI_Win_unlock(0, w->win);
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, w->win);
        MPI_Accumulate(&one, 1, MPI_INT64_T, 0, rma_at(w, 0, 8), 1, MPI_INT64_T, MPI_SUM, w->win);
        MPI_Win_unlock(0, w->win);
    }
    MPI_Barrier(w->comm);
}

/* More pieces of memory than others of the host are told about: the last one is served all the same. */
static void crowded(void)
{
    struct rma_window w;
    int64_t *cells = test_memory(2 * CROWD * sizeof *cells), *last = &cells[2 * (CROWD - 1)], one = 1;
    MPI_Aint there;
    rma_open(&w, RMA_DYNAMIC, 8, 1);
    for (int i = 0; i < CROWD; i++)
        MPI_Win_attach(w.win, &cells[2 * i], sizeof *cells);
    *last = 0;
    MPI_Get_address(last, &there);
    MPI_Bcast(&there, 1, MPI_AINT, 0, w.comm);
    gather(&w, 0);
    if (w.rank == 0) {
        CHECK(visited(last, w.size - 1), "%lld of %d came to the last piece", (long long)*last, w.size - 1);
    } else {
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, w.win);
        MPI_Accumulate(&one, 1, MPI_INT64_T, 0, there, 1, MPI_INT64_T, MPI_SUM, w.win);
        MPI_Win_unlock(0, w.win);
    }
    MPI_Barrier(w.comm);
    for (int i = 0; i < CROWD; i++)
        MPI_Win_detach(w.win, &cells[2 * i]);
    rma_close(&w);
    free(cells);
}

int main(int argc, char **argv)
{
    test_begin(&argc, &argv);
    for (int flavor = 0; flavor < RMA_FLAVORS; flavor++) {
        struct rma_window w;
        rma_open(&w, (enum rma_flavor)flavor, BYTES, 8);
        computing(&w);
        granted(&w);
        rma_close(&w);
    }
    crowded();
    return test_end();
}
