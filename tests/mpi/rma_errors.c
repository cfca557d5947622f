/* What goes wrong in one-sided communication ends with the standard's error class, changes nobody's memory, and leaves
 * a window that works: places outside it, epochs that do not match, types, reductions, ranks and assertions. Nothing
 * waits for what will not come. */
#include "rma.h"

static int64_t value = 4711;

/* The error of an access comes with it, or with what completes it at the target. */
static int outcome(struct rma_window *w, int code, int rank)
{
    int flushed = MPI_Win_flush(rank, w->win);
    return code != MPI_SUCCESS ? code : flushed;
}

static int put_at(struct rma_window *w, int rank, MPI_Aint disp, int count)
{
    static int64_t many[64];
    return outcome(w, MPI_Put(many, count, MPI_INT64_T, rank, disp, count, MPI_INT64_T, w->win), rank);
}

/* That the window can be used as ever. */
static void still_works(struct rma_window *w)
{
    int64_t mine = w->rank + 3;
    MPI_Barrier(w->comm);
    CHECK_EQUAL(MPI_Win_fence(MPI_MODE_NOPRECEDE, w->win), MPI_SUCCESS);
    CHECK_EQUAL(MPI_Put(&mine, 1, MPI_INT64_T, rma_next(w), rma_at(w, rma_next(w), 0), 1, MPI_INT64_T, w->win),
                MPI_SUCCESS);
    CHECK_EQUAL(MPI_Win_fence(MPI_MODE_NOSUCCEED, w->win), MPI_SUCCESS);
    CHECK_EQUAL(*(int64_t *)w->base, rma_previous(w) + 3);
    MPI_Barrier(w->comm);
    memset(w->base, TEST_UNTOUCHED, (size_t)w->bytes);
    MPI_Barrier(w->comm);
}

/* ---- places ------------------------------------------------------------------------------------------------------ */

static void outside(struct rma_window *w)
{
    int next = rma_next(w);
    MPI_Aint end = w->bytes / w->unit, word = 8 / w->unit;
    int64_t back = 0, zero = 0;
    MPI_Datatype type, before;
    MPI_Type_vector(2, 1, 200, MPI_INT64_T, &type);
    MPI_Type_commit(&type);
    MPI_Type_create_hindexed(1, (int[]){1}, (MPI_Aint[]){-8}, MPI_INT64_T, &before);
    MPI_Type_commit(&before);
    MPI_Win_lock_all(0, w->win);
    CHECK_CLASS(put_at(w, next, end, 1), MPI_ERR_RMA_RANGE);
    CHECK_CLASS(put_at(w, next, end - word, 2), MPI_ERR_RMA_RANGE);
    CHECK_CLASS(put_at(w, next, INT64_MAX / 2, 1), MPI_ERR_RMA_RANGE);
    CHECK_CLASS(put_at(w, next, INT64_MAX - 3, 1), MPI_ERR_RMA_RANGE);
    CHECK_CLASS(put_at(w, next, -1, 1), MPI_ERR_DISP);
    CHECK_CLASS(outcome(w, MPI_Get(&back, 1, MPI_INT64_T, next, end, 1, MPI_INT64_T, w->win), next), MPI_ERR_RMA_RANGE);
    CHECK_CLASS(outcome(w, MPI_Accumulate(&value, 1, MPI_INT64_T, next, end, 1, MPI_INT64_T, MPI_SUM, w->win), next),
                MPI_ERR_RMA_RANGE);
    CHECK_CLASS(outcome(w,
                        MPI_Get_accumulate(&value, 1, MPI_INT64_T, &back, 1, MPI_INT64_T, next, end, 1, MPI_INT64_T,
                                           MPI_SUM, w->win),
                        next),
                MPI_ERR_RMA_RANGE);
    CHECK_CLASS(outcome(w, MPI_Fetch_and_op(&value, &back, MPI_INT64_T, next, end, MPI_SUM, w->win), next),
                MPI_ERR_RMA_RANGE);
    CHECK_CLASS(outcome(w, MPI_Compare_and_swap(&value, &zero, &back, MPI_INT64_T, next, end, w->win), next),
                MPI_ERR_RMA_RANGE);
    CHECK_CLASS(outcome(w, MPI_Put(&value, 1, MPI_INT64_T, next, 0, 1, type, w->win), next), MPI_ERR_RMA_RANGE);
    CHECK_CLASS(outcome(w, MPI_Put(&value, 1, MPI_INT64_T, next, 0, 1, before, w->win), next), MPI_ERR_RMA_RANGE);
    CHECK_EQUAL(outcome(w, MPI_Put(&value, 1, MPI_INT64_T, next, word, 1, before, w->win), next), MPI_SUCCESS);
    CHECK_EQUAL(put_at(w, next, end, 0), MPI_SUCCESS);
    CHECK_EQUAL(put_at(w, next, end - word, 1), MPI_SUCCESS); /* the last one */
    MPI_Win_unlock_all(w->win);
    MPI_Barrier(w->comm);
    CHECK_EQUAL(back, 0);
    CHECK_EQUAL(*(int64_t *)w->base, value);
    CHECK(test_untouched(w->base + 8, (size_t)w->bytes - 16), "what failed has changed memory");
    MPI_Type_free(&type);
    MPI_Type_free(&before);
    still_works(w);
}

/* Windows of which some ranks have nothing. */
static void nothing_there(void)
{
    MPI_Win win;
    int64_t cell = -1;
    MPI_Win_create(test_rank % 2 ? &cell : NULL, test_rank % 2 ? 8 : 0, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Win_lock_all(0, win);
    for (int rank = 0; rank < test_size; rank++) {
        int code = MPI_Accumulate(&value, 1, MPI_INT64_T, rank, 0, 1, MPI_INT64_T, MPI_REPLACE, win);
        int flushed = MPI_Win_flush(rank, win);
        CHECK_CLASS(code != MPI_SUCCESS ? code : flushed, rank % 2 ? MPI_SUCCESS : MPI_ERR_RMA_RANGE);
    }
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_EQUAL(cell, test_rank % 2 ? value : -1);
    MPI_Win_free(&win);
}

/* What a target has refused in the last epoch is told, at the latest when the window is freed. */
static void refused_at_last(void)
{
    MPI_Win win;
    MPI_Group all, next, previous;
    int64_t cell = -1;
    MPI_Aint place, theirs;
    int to = test_next(), from = test_previous();
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Get_address(&cell, &place);
    MPI_Sendrecv(&place, 1, MPI_AINT, from, 0, &theirs, 1, MPI_AINT, to, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Win_get_group(win, &all);
    MPI_Group_incl(all, 1, &to, &next);
    MPI_Group_incl(all, 1, &from, &previous);
    MPI_Win_post(previous, 0, win);
    MPI_Win_start(next, 0, win);
    MPI_Put(&value, 1, MPI_INT64_T, to, theirs, 1, MPI_INT64_T, win);
    int code = MPI_Win_complete(win);
    CHECK_EQUAL(MPI_Win_wait(win), MPI_SUCCESS);
    int freed = MPI_Win_free(&win);
    CHECK_CLASS(code != MPI_SUCCESS ? code : freed, MPI_ERR_RMA_RANGE);
    CHECK(win == MPI_WIN_NULL, "the window is still there");
    CHECK_EQUAL(cell, -1);
    MPI_Group_free(&all);
    MPI_Group_free(&next);
    MPI_Group_free(&previous);
}

/* ---- epochs ------------------------------------------------------------------------------------------------------ */

/* None is open. */
static void no_epoch(struct rma_window *w)
{
    int flag, next = rma_next(w);
    MPI_Aint at = rma_at(w, next, 0);
    MPI_Request request;
    CHECK_CLASS(MPI_Put(&value, 1, MPI_INT64_T, next, at, 1, MPI_INT64_T, w->win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Get(&value, 1, MPI_INT64_T, w->rank, 0, 1, MPI_INT64_T, w->win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Accumulate(&value, 1, MPI_INT64_T, next, at, 1, MPI_INT64_T, MPI_SUM, w->win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Fetch_and_op(&value, &value, MPI_INT64_T, next, at, MPI_SUM, w->win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Compare_and_swap(&value, &value, &value, MPI_INT64_T, next, at, w->win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Rput(&value, 1, MPI_INT64_T, next, at, 1, MPI_INT64_T, w->win, &request), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_unlock(next, w->win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_unlock_all(w->win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_flush(next, w->win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_flush_all(w->win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_flush_local(next, w->win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_flush_local_all(w->win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_complete(w->win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_wait(w->win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_test(w->win, &flag), MPI_ERR_RMA_SYNC);
    still_works(w);
}

/* One of another kind is. */
static void other_epoch(struct rma_window *w)
{
    MPI_Group all;
    int next = rma_next(w);
    MPI_Win_get_group(w->win, &all);
    MPI_Win_lock(MPI_LOCK_SHARED, next, 0, w->win);
    CHECK_CLASS(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, w->win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_lock_all(0, w->win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_unlock_all(w->win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_fence(0, w->win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_start(all, 0, w->win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_complete(w->win), MPI_ERR_RMA_SYNC);
    if (w->size > 1) {
        CHECK_CLASS(MPI_Put(&value, 1, MPI_INT64_T, w->rank, rma_at(w, w->rank, 0), 1, MPI_INT64_T, w->win),
                    MPI_ERR_RMA_SYNC); /* another rank is locked */
        CHECK_CLASS(MPI_Win_unlock(w->rank, w->win), MPI_ERR_RMA_SYNC);
        CHECK_CLASS(MPI_Win_flush(w->rank, w->win), MPI_ERR_RMA_SYNC);
    }
    MPI_Win copy = w->win;
    CHECK_CLASS(MPI_Win_free(&copy), MPI_ERR_RMA_SYNC);
    CHECK_EQUAL(MPI_Win_unlock(next, w->win), MPI_SUCCESS);
    MPI_Win_lock_all(0, w->win);
    CHECK_CLASS(MPI_Win_lock_all(0, w->win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, w->win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_unlock(next, w->win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_fence(0, w->win), MPI_ERR_RMA_SYNC);
    CHECK_EQUAL(MPI_Win_unlock_all(w->win), MPI_SUCCESS);
    MPI_Group_free(&all);
    still_works(w);
}

/* Access and exposure by groups. */
static void groups(struct rma_window *w)
{
    MPI_Group all, next_alone, previous_alone;
    int next = rma_next(w), previous = rma_previous(w);
    MPI_Win_get_group(w->win, &all);
    MPI_Group_incl(all, 1, &next, &next_alone);
    MPI_Group_incl(all, 1, &previous, &previous_alone);
    CHECK_EQUAL(MPI_Win_post(previous_alone, 0, w->win), MPI_SUCCESS);
    CHECK_CLASS(MPI_Win_post(previous_alone, 0, w->win), MPI_ERR_RMA_SYNC);
    CHECK_EQUAL(MPI_Win_start(next_alone, 0, w->win), MPI_SUCCESS);
    CHECK_CLASS(MPI_Win_start(next_alone, 0, w->win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, w->win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_fence(0, w->win), MPI_ERR_RMA_SYNC);
    CHECK_CLASS(MPI_Win_flush(next, w->win), MPI_ERR_RMA_SYNC);
    if (w->size > 1)
        CHECK_CLASS(MPI_Put(&value, 1, MPI_INT64_T, w->rank, rma_at(w, w->rank, 0), 1, MPI_INT64_T, w->win),
                    MPI_ERR_RMA_SYNC); /* not in the group */
    CHECK_EQUAL(MPI_Win_complete(w->win), MPI_SUCCESS);
    CHECK_EQUAL(MPI_Win_wait(w->win), MPI_SUCCESS);
    CHECK_CLASS(MPI_Win_post(MPI_GROUP_NULL, 0, w->win), MPI_ERR_GROUP);
    CHECK_CLASS(MPI_Win_start(MPI_GROUP_NULL, 0, w->win), MPI_ERR_GROUP);
    MPI_Group_free(&all);
    MPI_Group_free(&next_alone);
    MPI_Group_free(&previous_alone);
    still_works(w);
}

/* ---- arguments --------------------------------------------------------------------------------------------------- */

static void user_function(void *in, void *inout, int *count, MPI_Datatype *type)
{
    test_fail(__FILE__, __LINE__, "nothing", "a reduction of the program was called for an access");
}

static void arguments(struct rma_window *w)
{
    int next = rma_next(w);
    MPI_Aint at = rma_at(w, next, 0);
    MPI_Win win = w->win;
    CHECK_CLASS(MPI_Win_lock(12345, next, 0, win), MPI_ERR_LOCKTYPE);
    CHECK_CLASS(MPI_Win_lock(MPI_LOCK_SHARED, w->size, 0, win), MPI_ERR_RANK);
    CHECK_CLASS(MPI_Win_lock(MPI_LOCK_SHARED, -77, 0, win), MPI_ERR_RANK);
    CHECK_CLASS(MPI_Win_lock(MPI_LOCK_SHARED, next, MPI_MODE_NOPUT, win), MPI_ERR_ASSERT);
    CHECK_CLASS(MPI_Win_fence(MPI_MODE_NOCHECK, win), MPI_ERR_ASSERT);
    CHECK_CLASS(MPI_Win_lock_all(1 << 20, win), MPI_ERR_ASSERT);
    MPI_Win_lock_all(0, win);
    CHECK_CLASS(MPI_Put(&value, -1, MPI_INT64_T, next, at, 1, MPI_INT64_T, win), MPI_ERR_COUNT);
    CHECK_CLASS(MPI_Put(&value, 1, MPI_INT64_T, next, at, -1, MPI_INT64_T, win), MPI_ERR_COUNT);
    CHECK_CLASS(MPI_Put(&value, 1, MPI_INT64_T, w->size, at, 1, MPI_INT64_T, win), MPI_ERR_RANK);
    CHECK_CLASS(MPI_Put(&value, 1, MPI_INT64_T, -77, at, 1, MPI_INT64_T, win), MPI_ERR_RANK);
    CHECK_CLASS(MPI_Put(&value, 1, MPI_DATATYPE_NULL, next, at, 1, MPI_INT64_T, win), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_Get(&value, 1, MPI_INT64_T, next, at, 1, MPI_DATATYPE_NULL, win), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_Put(NULL, 1, MPI_INT64_T, next, at, 1, MPI_INT64_T, win), MPI_ERR_BUFFER);
    CHECK_CLASS(MPI_Win_flush(w->size, win), MPI_ERR_RANK);
    MPI_Win_unlock_all(win);
    still_works(w);
}

static void reductions(struct rma_window *w)
{
    int next = rma_next(w);
    MPI_Aint at = rma_at(w, next, 0);
    MPI_Win win = w->win;
    MPI_Op own;
    MPI_Datatype mixed, pair, uncommitted, freed;
    double number = 1;
    int64_t back = 0;
    MPI_Op_create(user_function, 1, &own);
    MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){0, 8}, (MPI_Datatype[]){MPI_INT64_T, MPI_DOUBLE}, &mixed);
    MPI_Type_commit(&mixed);
    MPI_Type_contiguous(2, MPI_INT64_T, &pair);
    MPI_Type_commit(&pair);
    MPI_Type_contiguous(1, MPI_INT64_T, &uncommitted);
    MPI_Type_contiguous(1, MPI_INT64_T, &freed);
    MPI_Type_commit(&freed);
    MPI_Datatype gone = freed;
    MPI_Type_free(&freed);
    MPI_Win_lock_all(0, win);
    CHECK_CLASS(MPI_Accumulate(&value, 1, MPI_INT64_T, next, at, 1, MPI_INT64_T, own, win), MPI_ERR_OP);
    CHECK_CLASS(MPI_Accumulate(&value, 1, MPI_INT64_T, next, at, 1, MPI_INT64_T, MPI_OP_NULL, win), MPI_ERR_OP);
    CHECK_CLASS(MPI_Accumulate(&value, 1, MPI_INT64_T, next, at, 1, MPI_INT64_T, MPI_NO_OP, win), MPI_ERR_OP);
    CHECK_CLASS(MPI_Accumulate(&number, 1, MPI_DOUBLE, next, at, 1, MPI_DOUBLE, MPI_BAND, win), MPI_ERR_OP);
    CHECK_CLASS(MPI_Fetch_and_op(&number, &number, MPI_DOUBLE, next, at, MPI_LXOR, win), MPI_ERR_OP);
    CHECK_CLASS(MPI_Accumulate(&value, 1, mixed, next, at, 1, mixed, MPI_SUM, win), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_Accumulate(&value, 1, MPI_INT64_T, next, at, 1, MPI_DOUBLE, MPI_SUM, win), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_Fetch_and_op(&value, &back, pair, next, at, MPI_SUM, win), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_Compare_and_swap(&number, &number, &number, MPI_DOUBLE, next, at, win), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_Compare_and_swap(&value, &value, &value, MPI_WCHAR, next, at, win), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_Put(&value, 1, uncommitted, next, at, 1, MPI_INT64_T, win), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_Put(&value, 1, MPI_INT64_T, next, at, 1, uncommitted, win), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_Put(&value, 1, gone, next, at, 1, MPI_INT64_T, win), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_Put(&value, 1, MPI_INT64_T, next, at, 1, gone, win), MPI_ERR_TYPE);
    MPI_Win_unlock_all(win);
    MPI_Op_free(&own);
    MPI_Type_free(&mixed);
    MPI_Type_free(&pair);
    MPI_Type_free(&uncommitted);
    MPI_Barrier(w->comm);
    CHECK(test_untouched(w->base, (size_t)w->bytes), "what failed has changed memory");
    still_works(w);
}

/* A message says which call failed, and where. */
static void told(struct rma_window *w)
{
    char text[MPI_MAX_ERROR_STRING] = "", where[16];
    int length = 0;
    MPI_Win_lock_all(0, w->win);
    int code = put_at(w, rma_next(w), w->bytes / w->unit, 1);
    MPI_Error_string(code, text, &length);
    snprintf(where, sizeof where, "%lld", (long long)w->bytes);
    CHECK(strstr(text, where) != NULL, "no word of the window's %s bytes: %s", where, text);
    MPI_Win_unlock_all(w->win);
    MPI_Barrier(w->comm);
}

/* One rank cannot have a window, and nobody gets one: that rank says why, the others that it was this one. Where it
 * asks for memory, that is so though ranks of a host have theirs together. */
static void none_for_one(void)
{
    const MPI_Aint much = (MPI_Aint)1 << 46;
    int doomed = test_size - 1, mine = test_rank == doomed;
    for (int i = 0; i < 4; i++) {
        char text[MPI_MAX_ERROR_STRING] = "", who[32];
        int length, code, class = i < 2 ? MPI_ERR_NO_MEM : MPI_ERR_SIZE;
        void *memory = NULL;
        MPI_Win win = MPI_WIN_NULL;
        if (i == 3)
            code = MPI_Win_create(&value, mine ? -8 : 8, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
        else
            code = (i == 1 ? MPI_Win_allocate_shared : MPI_Win_allocate)(mine ? i < 2 ? much : -8 : 8, 8, MPI_INFO_NULL,
                                                                         MPI_COMM_WORLD, &memory, &win);
        if (i == 1) { /* ranks on several hosts cannot have it anyway */
            int there = 0;
            MPI_Error_class(code, &there);
            if (there == MPI_ERR_RMA_SHARED)
                continue;
        }
        CHECK(win == MPI_WIN_NULL, "there is a window");
        CHECK_CLASS(code, mine ? class : MPI_ERR_OTHER);
        MPI_Error_string(code, text, &length);
        snprintf(who, sizeof who, "rank %d has given ", doomed);
        CHECK(mine || strstr(text, who) != NULL, "%s", text);
        CHECK(strstr(text, "MPI_Allreduce") == NULL, "%s", text);
    }
}

int main(int argc, char **argv)
{
    test_begin(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    for (int flavor = 0; flavor < RMA_FLAVORS; flavor++) {
        struct rma_window w;
        rma_open(&w, (enum rma_flavor)flavor, 1024, 1 << flavor);
        no_epoch(&w);
        other_epoch(&w);
        groups(&w);
        arguments(&w);
        reductions(&w);
        if (flavor != RMA_DYNAMIC) { /* whose places have a test of their own */
            outside(&w);
            told(&w);
        }
        rma_close(&w);
    }
    nothing_there();
    none_for_one();
    refused_at_last();
    return test_end();
}
