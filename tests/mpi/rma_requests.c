/* Accesses with requests: each completes by itself, mixed with those of messages, and says what the standard says. */
#include "rma.h"

#define MANY 200

static void all_kinds(struct rma_window *w)
{
    int next = rma_next(w), previous = rma_previous(w);
    int64_t *cells = (int64_t *)w->base, out[3] = {1, 2, 3}, back[3] = {0, 0, 0}, in = -1, mine = 10 + w->rank;
    MPI_Request requests[6];
    MPI_Status statuses[6];
    cells[0] = 0;
    cells[1] = 100;
    cells[2] = 1000 + w->rank;
    cells[3] = 50;
    MPI_Barrier(w->comm);
    MPI_Win_lock_all(0, w->win);
    CHECK_EQUAL(MPI_Rput(&mine, 1, MPI_INT64_T, next, rma_at(w, next, 0), 1, MPI_INT64_T, w->win, &requests[0]), 0);
    CHECK_EQUAL(MPI_Raccumulate(&out[1], 1, MPI_INT64_T, next, rma_at(w, next, 8), 1, MPI_INT64_T, MPI_SUM, w->win,
                                &requests[1]),
                0);
    CHECK_EQUAL(MPI_Rget(&back[0], 1, MPI_INT64_T, next, rma_at(w, next, 16), 1, MPI_INT64_T, w->win, &requests[2]), 0);
    CHECK_EQUAL(MPI_Rget_accumulate(&out[2], 1, MPI_INT64_T, &back[1], 1, MPI_INT64_T, next, rma_at(w, next, 24), 1,
                                    MPI_INT64_T, MPI_SUM, w->win, &requests[3]),
                0);
    MPI_Irecv(&in, 1, MPI_INT64_T, previous, 4, w->comm, &requests[4]);
    MPI_Isend(&mine, 1, MPI_INT64_T, next, 4, w->comm, &requests[5]);
    CHECK_EQUAL(MPI_Waitall(6, requests, statuses), MPI_SUCCESS);
    for (int i = 0; i < 6; i++)
        CHECK(requests[i] == MPI_REQUEST_NULL, "request %d is still there", i);
    CHECK_EQUAL(in, 10 + previous);
    CHECK_EQUAL(back[0], 1000 + next); /* a get is complete with its request */
    CHECK_EQUAL(back[1], 50);
    MPI_Win_flush(next, w->win);
    MPI_Barrier(w->comm);
    MPI_Win_sync(w->win);
    CHECK_EQUAL(cells[0], 10 + previous);
    CHECK_EQUAL(cells[1], 102);
    CHECK_EQUAL(cells[3], 53);
    MPI_Win_unlock_all(w->win);
    MPI_Barrier(w->comm);
}

/* Many at a time, completed in another order; the buffers of puts are used again as soon as their requests are done. */
static void many(struct rma_window *w)
{
    int next = rma_next(w), previous = rma_previous(w), flag, done = 0;
    int32_t *cells = (int32_t *)w->base, out[MANY], back[MANY];
    MPI_Request requests[MANY];
    memset(cells, -1, MANY * 4);
    MPI_Barrier(w->comm);
    MPI_Win_lock(MPI_LOCK_SHARED, next, 0, w->win);
    for (int i = 0; i < MANY; i++) {
        out[i] = w->rank * 1000 + i;
        MPI_Rput(&out[i], 1, MPI_INT, next, rma_at(w, next, 4 * i), 1, MPI_INT, w->win, &requests[i]);
    }
    for (int left = MANY; left > 0; left--) {
        int which = -1;
        MPI_Waitany(MANY, requests, &which, MPI_STATUS_IGNORE);
        CHECK(which >= 0 && which < MANY, "request %d was completed", which);
        out[which] = -7;
    }
    MPI_Win_flush(next, w->win);
    for (int i = MANY; i-- > 0;)
        MPI_Rget(&back[i], 1, MPI_INT, next, rma_at(w, next, 4 * i), 1, MPI_INT, w->win, &requests[i]);
    for (double end = test_now() + 60; !done && test_now() < end;)
        MPI_Testall(MANY, requests, &done, MPI_STATUSES_IGNORE);
    CHECK(done, "gets that do not end");
    for (int i = 0; i < MANY; i++)
        CHECK_EQUAL(back[i], w->rank * 1000 + i);
    /* One request that is freed; the epoch's end completes it. */
    out[0] = 4711;
    MPI_Rput(&out[0], 1, MPI_INT, next, rma_at(w, next, 0), 1, MPI_INT, w->win, &requests[0]);
    MPI_Request_get_status(requests[0], &flag, MPI_STATUS_IGNORE);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Win_unlock(next, w->win);
    MPI_Barrier(w->comm);
    MPI_Win_lock(MPI_LOCK_SHARED, w->rank, 0, w->win);
    CHECK_EQUAL(cells[0], 4711);
    for (int i = 1; i < MANY; i++)
        CHECK_EQUAL(cells[i], previous * 1000 + i);
    MPI_Win_unlock(w->rank, w->win);
    MPI_Barrier(w->comm);
}

/* Long ones, waited for one by one, with the order of accumulates of one origin. */
static void long_ones(struct rma_window *w)
{
    enum { WORDS = 100000 };
    int next = rma_next(w), previous = rma_previous(w);
    int64_t *cells = (int64_t *)w->base, *ones = test_memory(WORDS * 8), *back = test_memory(WORDS * 8);
    MPI_Request requests[4];
    for (int i = 0; i < WORDS; i++) {
        cells[i] = 0;
        ones[i] = w->rank + i;
    }
    MPI_Barrier(w->comm);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, w->win);
    MPI_Raccumulate(ones, WORDS, MPI_INT64_T, next, rma_at(w, next, 0), WORDS, MPI_INT64_T, MPI_REPLACE, w->win,
                    &requests[0]);
    MPI_Raccumulate(ones, WORDS, MPI_INT64_T, next, rma_at(w, next, 0), WORDS, MPI_INT64_T, MPI_SUM, w->win,
                    &requests[1]);
    MPI_Rget_accumulate(NULL, 0, MPI_INT64_T, back, WORDS, MPI_INT64_T, next, rma_at(w, next, 0), WORDS, MPI_INT64_T,
                        MPI_NO_OP, w->win, &requests[2]);
    MPI_Raccumulate(ones, WORDS, MPI_INT64_T, next, rma_at(w, next, 0), WORDS, MPI_INT64_T, MPI_SUM, w->win,
                    &requests[3]);
    MPI_Wait(&requests[2], MPI_STATUS_IGNORE);
    for (int i = 0; i < WORDS; i++)
        if (!CHECK_EQUAL(back[i], 2 * (w->rank + i)))
            break;
    MPI_Wait(&requests[3], MPI_STATUS_IGNORE);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    MPI_Win_unlock(next, w->win);
    MPI_Barrier(w->comm);
    MPI_Win_lock(MPI_LOCK_SHARED, w->rank, 0, w->win);
    for (int i = 0; i < WORDS; i++)
        if (!CHECK_EQUAL(cells[i], 3 * (previous + i)))
            break;
    MPI_Win_unlock(w->rank, w->win);
    free(ones);
    free(back);
    MPI_Barrier(w->comm);
}

/* What goes wrong is said at once, and leaves no request. */
static void wrong(struct rma_window *w)
{
    MPI_Request request = MPI_REQUEST_NULL;
    int64_t value = 0;
    MPI_Win_lock_all(0, w->win);
    CHECK_CLASS(MPI_Rput(&value, 1, MPI_INT64_T, w->size, 0, 1, MPI_INT64_T, w->win, &request), MPI_ERR_RANK);
    CHECK_CLASS(MPI_Rget(&value, -1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, w->win, &request), MPI_ERR_COUNT);
    CHECK_CLASS(MPI_Rput(&value, 1, MPI_DATATYPE_NULL, 0, 0, 1, MPI_INT64_T, w->win, &request), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_Rput(&value, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, w->win, NULL), MPI_ERR_ARG);
    CHECK(request == MPI_REQUEST_NULL, "a request was made");
    MPI_Win_unlock_all(w->win);
    MPI_Win_fence(0, w->win);
    CHECK_CLASS(MPI_Rput(&value, 1, MPI_INT64_T, 0, rma_at(w, 0, 0), 1, MPI_INT64_T, w->win, &request),
                MPI_ERR_RMA_SYNC); /* not in an epoch of fences */
    MPI_Win_fence(MPI_MODE_NOSUCCEED, w->win);
}

static int handled;

static void on_error(MPI_Win *win, int *code, ...)
{
    handled++;
}

/* A target that refuses an access is told by the request, to the window's handler, and not by the next flush; also
 * where each of its parts is refused. */
static void refused(struct rma_window *w)
{
    static char many_bytes[512 << 10];
    int next = rma_next(w), class;
    char in[16], out[16] = "";
    MPI_Aint beyond = rma_at(w, next, w->bytes + 64);
    MPI_Request requests[2];
    MPI_Status statuses[2];
    MPI_Errhandler handler;
    MPI_Win_create_errhandler(on_error, &handler);
    MPI_Win_lock_all(0, w->win);
    MPI_Rget(in, 16, MPI_BYTE, next, beyond, 16, MPI_BYTE, w->win, &requests[0]);
    CHECK_CLASS(MPI_Wait(&requests[0], MPI_STATUS_IGNORE), MPI_ERR_RMA_RANGE);
    CHECK(requests[0] == MPI_REQUEST_NULL, "the request is still there");
    MPI_Rget(many_bytes, sizeof many_bytes, MPI_BYTE, next, beyond, sizeof many_bytes, MPI_BYTE, w->win, &requests[0]);
    CHECK_CLASS(MPI_Wait(&requests[0], MPI_STATUS_IGNORE), MPI_ERR_RMA_RANGE);
    CHECK_EQUAL(MPI_Win_flush(next, w->win), MPI_SUCCESS);
    MPI_Win_set_errhandler(w->win, handler);
    MPI_Rput(out, 16, MPI_BYTE, next, rma_at(w, next, 0), 16, MPI_BYTE, w->win, &requests[0]);
    MPI_Rget_accumulate(out, 16, MPI_BYTE, in, 16, MPI_BYTE, next, beyond, 16, MPI_BYTE, MPI_REPLACE, w->win,
                        &requests[1]);
    CHECK_EQUAL(MPI_Waitall(2, requests, statuses), MPI_ERR_IN_STATUS);
    CHECK_EQUAL(statuses[0].MPI_ERROR, MPI_SUCCESS);
    MPI_Error_class(statuses[1].MPI_ERROR, &class);
    CHECK_EQUAL(class, MPI_ERR_RMA_RANGE);
    CHECK_EQUAL(handled, 1);
    MPI_Rget(in, 1, MPI_BYTE, next, rma_at(w, next, 0), 1, MPI_BYTE, w->win, &requests[0]);
    CHECK_CLASS(MPI_Cancel(&requests[0]), MPI_ERR_REQUEST);
    CHECK_CLASS(MPI_Request_free(&requests[0]), MPI_ERR_REQUEST);
    CHECK_EQUAL(handled, 3);
    CHECK_EQUAL(MPI_Wait(&requests[0], MPI_STATUS_IGNORE), MPI_SUCCESS);
    CHECK_EQUAL(MPI_Win_unlock_all(w->win), MPI_SUCCESS);
    handled = 0;
    MPI_Win_set_errhandler(w->win, MPI_ERRORS_RETURN);
    MPI_Errhandler_free(&handler);
    MPI_Barrier(w->comm);
}

int main(int argc, char **argv)
{
    test_begin(&argc, &argv);
    for (int flavor = 0; flavor < RMA_FLAVORS; flavor++) {
        struct rma_window w;
        rma_open(&w, (enum rma_flavor)flavor, 200 * 4096, flavor == RMA_ALLOCATED ? 4 : 1);
        all_kinds(&w);
        many(&w);
        long_ones(&w);
        if (!test_peer())
            wrong(&w);
        if (!test_peer() && w.flavor == RMA_DYNAMIC)
            refused(&w);
        rma_close(&w);
    }
    return test_end();
}
