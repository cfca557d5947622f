/* Dynamic windows: memory that is attached, detached and attached again while others access it, in several pieces; a
 * list across all ranks to which everyone adds by compare-and-swap; what is not attached is refused. */
#include "rma.h"

#define ELEMENTS 30 /* that each rank adds to the list */
#define PIECES   16

static MPI_Win win;

static MPI_Aint address(const void *at)
{
    MPI_Aint result;
    MPI_Get_address(at, &result);
    return result;
}

/* ---- pieces ------------------------------------------------------------------------------------------------------ */

static void pieces(void)
{
    int64_t *memory[PIECES], value[PIECES], back[PIECES];
    MPI_Aint mine[PIECES], theirs[PIECES];
    for (int i = 0; i < PIECES; i++) {
        memory[i] = test_memory(8 * (size_t)(i + 1));
        CHECK_EQUAL(MPI_Win_attach(win, memory[i], 8 * (i + 1)), MPI_SUCCESS);
        memory[i][i] = 100 * test_rank + i;
        mine[i] = address(&memory[i][i]);
    }
    MPI_Sendrecv(mine, PIECES, MPI_AINT, test_previous(), 0, theirs, PIECES, MPI_AINT, test_next(), 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Win_fence(0, win);
    for (int i = 0; i < PIECES; i++)
        MPI_Get(&back[i], 1, MPI_INT64_T, test_next(), theirs[i], 1, MPI_INT64_T, win);
    MPI_Win_fence(0, win);
    for (int i = 0; i < PIECES; i++) {
        CHECK_EQUAL(back[i], 100 * test_next() + i);
        value[i] = 1000 * test_rank + i;
        MPI_Put(&value[i], 1, MPI_INT64_T, test_next(), theirs[i], 1, MPI_INT64_T, win);
        if (i > 0) /* every piece but the first has room before */
            MPI_Accumulate(&value[0], 1, MPI_INT64_T, test_next(), MPI_Aint_diff(theirs[i], 8), 1, MPI_INT64_T,
                           MPI_REPLACE, win);
    }
    MPI_Win_fence(0, win);
    for (int i = 0; i < PIECES; i++) {
        CHECK_EQUAL(memory[i][i], 1000 * test_previous() + i);
        if (i > 0)
            CHECK_EQUAL(memory[i][i - 1], 1000 * test_previous());
        CHECK(test_untouched(memory[i] + i + 1, TEST_GUARD), "bytes behind a piece were written");
    }
    MPI_Win_fence(0, win);
    for (int i = PIECES; i-- > 0;) {
        CHECK_EQUAL(MPI_Win_detach(win, memory[i]), MPI_SUCCESS);
        free(memory[i]);
    }
}

/* Memory that was attached in pieces side by side is one for whoever accesses it, and so is what a type touches of many
 * pieces, of which those on the same host know only some. */
static void side_by_side(void)
{
    enum { WORDS = 3000, HALF = WORDS / 2, STEPS = 80 };
    int32_t *memory = test_memory(4 * WORDS), *ones = test_memory(4 * WORDS), *parts = test_memory(4 * 2 * STEPS);
    MPI_Aint places[2], theirs[2];
    MPI_Datatype every_other;
    MPI_Type_vector(STEPS, 1, 2, MPI_INT32_T, &every_other);
    MPI_Type_commit(&every_other);
    for (int i = 0; i < WORDS; i++)
        memory[i] = ones[i] = i;
    memset(parts, 0, 4 * 2 * STEPS);
    MPI_Win_attach(win, memory + HALF, 4 * (WORDS - HALF));
    MPI_Win_attach(win, memory, 4 * HALF);
    for (int i = 0; i < STEPS; i++)
        MPI_Win_attach(win, parts + 2 * i, 4);
    places[0] = address(memory);
    places[1] = address(parts);
    MPI_Sendrecv(places, 2, MPI_AINT, test_previous(), 0, theirs, 2, MPI_AINT, test_next(), 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Win_fence(0, win);
    CHECK_EQUAL(MPI_Accumulate(ones, WORDS, MPI_INT32_T, test_next(), theirs[0], WORDS, MPI_INT32_T, MPI_SUM, win), 0);
    CHECK_EQUAL(MPI_Accumulate(ones, STEPS, MPI_INT32_T, test_next(), theirs[1], 1, every_other, MPI_SUM, win), 0);
    CHECK_EQUAL(MPI_Win_fence(0, win), MPI_SUCCESS);
    for (int i = 0; i < WORDS; i++)
        if (!CHECK_EQUAL(memory[i], 2 * i))
            break;
    for (int i = 0; i < STEPS; i++)
        CHECK(parts[2 * i] == i && parts[2 * i + 1] == 0, "%d: %d, %d", i, parts[2 * i], parts[2 * i + 1]);
    MPI_Win_detach(win, memory);
    MPI_Win_detach(win, memory + HALF);
    for (int i = 0; i < STEPS; i++)
        MPI_Win_detach(win, parts + 2 * i);
    MPI_Type_free(&every_other);
    free(memory);
    free(ones);
    free(parts);
}

/* The gap behind the last item of a type of pairs need not be in the window, and nobody touches it. */
static void at_the_edge(void)
{
    struct pair {
        double value;
        int32_t index;
    };
    enum { ITEMS = 3, BYTES = (ITEMS - 1) * sizeof(struct pair) + 12 };
    char *memory = test_memory(BYTES);
    struct pair pairs[ITEMS], seen[ITEMS];
    MPI_Aint place = address(memory), theirs;
    memset(pairs, 0x5a, sizeof pairs);
    memset(memory, 0, BYTES);
    memset(memory + 12, 7, 4); /* between two items */
    for (int i = 0; i < ITEMS; i++) {
        pairs[i].value = 1 + i;
        pairs[i].index = test_rank + i;
    }
    MPI_Win_attach(win, memory, BYTES);
    MPI_Sendrecv(&place, 1, MPI_AINT, test_previous(), 0, &theirs, 1, MPI_AINT, test_next(), 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Win_fence(0, win);
    MPI_Get_accumulate(pairs, ITEMS, MPI_DOUBLE_INT, seen, ITEMS, MPI_DOUBLE_INT, test_next(), theirs, ITEMS,
                       MPI_DOUBLE_INT, MPI_MAXLOC, win);
    CHECK_EQUAL(MPI_Win_fence(MPI_MODE_NOSUCCEED, win), MPI_SUCCESS);
    for (int i = 0; i < ITEMS; i++) {
        double value;
        int32_t index;
        memcpy(&value, memory + 16 * i, 8);
        memcpy(&index, memory + 16 * i + 8, 4);
        CHECK(value == 1 + i && index == test_previous() + i, "%g at %d", value, index);
        CHECK(seen[i].value == 0 && seen[i].index == 0, "%g at %d", seen[i].value, seen[i].index);
    }
    CHECK(memcmp(memory + 12, (char[4]){7, 7, 7, 7}, 4) == 0, "a gap was written");
    CHECK(test_untouched(memory + BYTES, TEST_GUARD), "bytes behind the window were written");
    MPI_Win_detach(win, memory);
    free(memory);
}

/* The same memory again and again, longer each time; one piece stays. */
static void again(void)
{
    int64_t *memory = test_memory(8 * 64), kept = -1, value = test_rank;
    MPI_Aint places[2], theirs[2];
    MPI_Win_attach(win, &kept, 8);
    for (int i = 1; i <= 64; i *= 2) {
        MPI_Win_attach(win, memory, 8 * i);
        places[0] = address(&memory[i - 1]);
        places[1] = address(&kept);
        MPI_Sendrecv(places, 2, MPI_AINT, test_previous(), 0, theirs, 2, MPI_AINT, test_next(), 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        MPI_Win_lock(MPI_LOCK_SHARED, test_next(), 0, win);
        MPI_Put(&value, 1, MPI_INT64_T, test_next(), theirs[0], 1, MPI_INT64_T, win);
        MPI_Put(&value, 1, MPI_INT64_T, test_next(), theirs[1], 1, MPI_INT64_T, win);
        MPI_Win_unlock(test_next(), win);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Win_detach(win, memory);
        CHECK_EQUAL(memory[i - 1], test_previous());
        CHECK_EQUAL(kept, test_previous());
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Win_detach(win, &kept);
    free(memory);
}

/* Types with displacements of the target's own, absolute in a dynamic window. */
static void scattered(void)
{
    int *memory = test_memory(400), mine[10], back[10];
    MPI_Aint place = address(memory), theirs;
    MPI_Datatype type;
    MPI_Win_attach(win, memory, 400);
    for (int i = 0; i < 100; i++)
        memory[i] = i;
    for (int i = 0; i < 10; i++)
        mine[i] = 1000 * (test_rank + 1) + i;
    MPI_Sendrecv(&place, 1, MPI_AINT, test_previous(), 0, &theirs, 1, MPI_AINT, test_next(), 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Type_vector(10, 1, 10, MPI_INT, &type);
    MPI_Type_commit(&type);
    MPI_Win_fence(0, win);
    MPI_Get(back, 10, MPI_INT, test_next(), theirs, 1, type, win);
    MPI_Win_fence(0, win);
    MPI_Put(mine, 10, MPI_INT, test_next(), theirs, 1, type, win);
    MPI_Win_fence(0, win);
    for (int i = 0; i < 100; i++)
        CHECK_EQUAL(memory[i], i % 10 ? i : 1000 * (test_previous() + 1) + i / 10);
    for (int i = 0; i < 10; i++)
        CHECK_EQUAL(back[i], 10 * i);
    MPI_Type_free(&type);
    MPI_Win_fence(0, win);
    MPI_Win_detach(win, memory);
    free(memory);
}

/* ---- a list ------------------------------------------------------------------------------------------------------ */

/* Where an element is: a rank and an address, in two words, of which the first is what is swapped. */
struct element {
    int64_t next_rank; /* -1: the last one */
    MPI_Aint next_at;
    int64_t owner, number;
};

static int64_t fetch(int rank, MPI_Aint at)
{
    int64_t nothing = 0, seen = -3;
    MPI_Fetch_and_op(&nothing, &seen, MPI_INT64_T, rank, at, MPI_NO_OP, win);
    MPI_Win_flush(rank, win);
    return seen;
}

/* Hangs an element behind the last one. Who swaps the rank owns the place and then tells the address. */
static void append(struct element *mine, int *tail_rank, MPI_Aint *tail)
{
    const int64_t claimed = -2, last = -1;
    for (;;) {
        int64_t seen = -3;
        MPI_Compare_and_swap(&claimed, &last, &seen, MPI_INT64_T, *tail_rank, *tail, win);
        MPI_Win_flush(*tail_rank, win);
        if (seen == last)
            break;
        while (seen == claimed) /* somebody is about to tell */
            seen = fetch(*tail_rank, *tail);
        MPI_Aint at = 0;
        MPI_Get(&at, 1, MPI_AINT, *tail_rank, MPI_Aint_add(*tail, 8), 1, MPI_AINT, win);
        MPI_Win_flush(*tail_rank, win);
        *tail_rank = (int)seen;
        *tail = at;
    }
    MPI_Aint at = address(mine), seen_at;
    int64_t rank = test_rank, seen;
    MPI_Fetch_and_op(&at, &seen_at, MPI_AINT, *tail_rank, MPI_Aint_add(*tail, 8), MPI_REPLACE, win);
    MPI_Win_flush(*tail_rank, win);
    MPI_Fetch_and_op(&rank, &seen, MPI_INT64_T, *tail_rank, *tail, MPI_REPLACE, win);
    MPI_Win_flush(*tail_rank, win);
    CHECK_EQUAL(seen, claimed);
    *tail_rank = test_rank;
    *tail = at;
}

static void list(void)
{
    struct element *elements[ELEMENTS], head = {-1, 0, -1, -1};
    MPI_Aint start = address(&head), tail;
    int tail_rank = 0, found = 0, *next_of = test_memory((size_t)test_size * 4);
    MPI_Win_attach(win, &head, sizeof head);
    MPI_Bcast(&start, 1, MPI_AINT, 0, MPI_COMM_WORLD);
    tail = start;
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < ELEMENTS; i++) {
        elements[i] = test_memory(sizeof head);
        *elements[i] = (struct element){-1, 0, test_rank, i};
        MPI_Win_attach(win, elements[i], sizeof head);
        MPI_Win_sync(win);
        append(elements[i], &tail_rank, &tail);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    memset(next_of, 0, (size_t)test_size * 4);
    struct element seen;
    for (int64_t rank = 0, at = start; rank >= 0 && found <= ELEMENTS * test_size; rank = seen.next_rank) {
        MPI_Get(&seen, sizeof seen / 8, MPI_INT64_T, (int)rank, at, sizeof seen / 8, MPI_INT64_T, win);
        MPI_Win_flush((int)rank, win);
        at = seen.next_at;
        if (seen.owner < 0)
            continue;
        found++;
        if (CHECK_EQUAL(seen.owner >= 0 && seen.owner < test_size, 1))
            CHECK_EQUAL(seen.number, next_of[seen.owner]++); /* those of one rank are in its order */
    }
    CHECK_EQUAL(found, ELEMENTS * test_size);
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < ELEMENTS; i++) {
        MPI_Win_detach(win, elements[i]);
        free(elements[i]);
    }
    MPI_Win_detach(win, &head);
    free(next_of);
}

/* ---- errors ------------------------------------------------------------------------------------------------------ */

/* The error of an access comes with it, or with what completes it. */
static int outcome(int code, int rank)
{
    int end = MPI_Win_unlock(rank, win);
    return code != MPI_SUCCESS ? code : end;
}

static void refused(void)
{
    int64_t *memory = test_memory(64), value = 1, intact[8];
    MPI_Aint place = address(memory), theirs;
    int next = test_next();
    memcpy(intact, memory, 64);
    MPI_Sendrecv(&place, 1, MPI_AINT, test_previous(), 0, &theirs, 1, MPI_AINT, next, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win);
    CHECK_CLASS(outcome(MPI_Put(&value, 1, MPI_INT64_T, next, theirs, 1, MPI_INT64_T, win), next), MPI_ERR_RMA_RANGE);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(memcmp(memory, intact, 64) == 0, "memory that is not attached was written");
    MPI_Win_attach(win, memory + 1, 16);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win);
    CHECK_CLASS(outcome(MPI_Get(&value, 1, MPI_INT64_T, next, theirs, 1, MPI_INT64_T, win), next), MPI_ERR_RMA_RANGE);
    MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win);
    CHECK_CLASS(outcome(MPI_Accumulate(&value, 1, MPI_INT64_T, next, theirs + 24, 1, MPI_INT64_T, MPI_SUM, win), next),
                MPI_ERR_RMA_RANGE);
    MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win);
    CHECK_CLASS(outcome(MPI_Fetch_and_op(&value, &value, MPI_INT64_T, next, theirs + 20, MPI_SUM, win), next),
                MPI_ERR_RMA_RANGE); /* half of it is outside */
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(memcmp(memory, intact, 64) == 0, "memory beside what is attached was written");
    CHECK_CLASS(MPI_Win_detach(win, memory), MPI_ERR_RMA_ATTACH);
    CHECK_CLASS(MPI_Win_attach(win, memory, 16), MPI_ERR_RMA_ATTACH); /* a part is attached already */
    CHECK_CLASS(MPI_Win_attach(win, memory, -1), MPI_ERR_SIZE);
    MPI_Win_detach(win, memory + 1);
    MPI_Barrier(MPI_COMM_WORLD);
    value = 8;
    MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win);
    CHECK_CLASS(outcome(MPI_Put(&value, 1, MPI_INT64_T, next, theirs + 8, 1, MPI_INT64_T, win), next),
                MPI_ERR_RMA_RANGE);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(memcmp(memory, intact, 64) == 0, "memory that was detached was written");
    MPI_Win_attach(win, memory, 64); /* and the window can be used as before */
    MPI_Win_fence(0, win);
    MPI_Put(&value, 1, MPI_INT64_T, next, theirs, 1, MPI_INT64_T, win);
    MPI_Win_fence(0, win);
    CHECK_EQUAL(memory[0], 8);
    MPI_Win_detach(win, memory);
    free(memory);
}

int main(int argc, char **argv)
{
    test_begin(&argc, &argv);
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    pieces();
    if (!test_peer()) { /* who do not take memory side by side for one, nor leave gaps alone */
        side_by_side();
        at_the_edge();
    }
    again();
    scattered();
    list();
    if (!test_peer())
        refused();
    MPI_Win_free(&win);
    return test_end();
}
