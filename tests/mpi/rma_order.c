/* What a rank has put and flushed is there before it looks at anything else: of two that each put a word to the other
 * one and then look at their own, at least one sees what the other has put. They meet before each round, so that both
 * do it at the same time. */
#include "rma.h"

#define SECONDS     0.25 /* of all rounds of a window, about */
#define TRIAL       100  /* rounds, to learn how many there can be */
#define ROUNDS_MOST 100000
#define LINGERS     200 /* turns of a loop */
#define MEETING     0   /* bytes of a window: up to which round the other one has come, ... */
#define MARKS       8   /* ...and a mark of each round */

struct pair {
    struct rma_window *w;
    int partner;
    char *seen;
};

static void meet(const struct pair *p, int64_t round)
{
    int64_t there = 0, number = round + 1;
    MPI_Put(&number, 1, MPI_INT64_T, p->partner, rma_at(p->w, p->partner, MEETING), 1, MPI_INT64_T, p->w->win);
    MPI_Win_flush(p->partner, p->w->win);
    while (there <= round) {
        MPI_Get(&there, 1, MPI_INT64_T, p->w->rank, rma_at(p->w, p->w->rank, MEETING), 1, MPI_INT64_T, p->w->win);
        MPI_Win_flush(p->w->rank, p->w->win);
    }
}

/* Who comes last to a meeting goes on first: by how much is not known, so all of it is tried. */
static void linger(uint64_t *state)
{
    volatile uint64_t turns = test_random(state) % LINGERS;
    while (turns > 0)
        turns--;
}

static void rounds(const struct pair *p, int from, int to)
{
    uint64_t state = (uint64_t)test_rank * ROUNDS_MOST + (uint64_t)from;
    char mark = 1;
    for (int i = from; i < to; i++) {
        meet(p, i);
        linger(&state);
        MPI_Put(&mark, 1, MPI_CHAR, p->partner, rma_at(p->w, p->partner, MARKS + i), 1, MPI_CHAR, p->w->win);
        MPI_Win_flush(p->partner, p->w->win);
        MPI_Get(&p->seen[i], 1, MPI_CHAR, p->w->rank, rma_at(p->w, p->w->rank, MARKS + i), 1, MPI_CHAR, p->w->win);
        MPI_Win_flush(p->w->rank, p->w->win);
    }
}

/* So many as there is time for, the same on both sides. */
static int count_rounds(const struct pair *p)
{
    double began = test_now(), slower, took;
    rounds(p, 0, TRIAL);
    took = test_now() - began;
    MPI_Sendrecv(&took, 1, MPI_DOUBLE, p->partner, 0, &slower, 1, MPI_DOUBLE, p->partner, 0, p->w->comm,
                 MPI_STATUS_IGNORE);
    slower = took > slower ? took : slower;
    double most = SECONDS * TRIAL / slower;
    return most > ROUNDS_MOST ? ROUNDS_MOST : most < TRIAL ? TRIAL : (int)most;
}

static void check(const struct pair *p, int count)
{
    char *other = malloc(ROUNDS_MOST);
    int missed = 0;
    test_need(other != NULL, "there is no memory");
    MPI_Sendrecv(p->seen, count, MPI_CHAR, p->partner, 0, other, count, MPI_CHAR, p->partner, 0, p->w->comm,
                 MPI_STATUS_IGNORE);
    for (int i = 0; i < count; i++) {
        CHECK(p->seen[i] == 0 || p->seen[i] == 1, "something else stands there");
        missed += p->seen[i] == 0 && other[i] == 0;
    }
    CHECK(missed == 0, "in %d of %d rounds neither saw what the other one had put", missed, count);
    free(other);
}

int main(int argc, char **argv)
{
    test_begin(&argc, &argv);
    for (int flavor = 0; flavor < RMA_FLAVORS; flavor++) {
        struct rma_window w;
        rma_open(&w, (enum rma_flavor)flavor, MARKS + ROUNDS_MOST, 1);
        struct pair p = {&w, w.rank ^ 1, calloc(ROUNDS_MOST, 1)};
        test_need(p.seen != NULL, "there is no memory");
        memset(w.base, 0, MARKS + ROUNDS_MOST);
        MPI_Barrier(w.comm);
        MPI_Win_lock_all(0, w.win);
        if (p.partner < w.size) {
            int count = count_rounds(&p);
            rounds(&p, TRIAL, count);
            check(&p, count);
        }
        MPI_Win_unlock_all(w.win);
        free(p.seen);
        rma_close(&w);
    }
    return test_end();
}
