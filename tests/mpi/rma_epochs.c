/* Epochs that do not match across ranks: whoever would wait for ever is told MPI_ERR_RMA_SYNC, by the window's error
 * handler, with the window's name and who has not done what. Programs that are right but slow are told nothing.
 *
 * Without an argument: ranks that wait for each other in different calls, after which the window works as ever. With
 * one: the last rank ends its part of MPI too early, or as it may ("early"). */
#include "rma.h"

#define LATE 1.2 /* seconds: long enough for the others to have asked what has become of a rank */

static struct rma_window w;
static int last;

/* A group of one rank of the window. */
static MPI_Group only(int rank)
{
    MPI_Group all, one;
    MPI_Win_get_group(w.win, &all);
    MPI_Group_incl(all, 1, &rank, &one);
    MPI_Group_free(&all);
    return one;
}

/* One whose host mate has gone on need not know why that has. */
static bool told_by_another(const char *text)
{
    return test_size > 2 && (strstr(text, "has gone on without") != NULL || strstr(text, "has given up") != NULL);
}

/* The code of a call that cannot go well says who, and in which window. */
static void told(const char *call, int code, int rank, const char *what)
{
    char text[MPI_MAX_ERROR_STRING] = "", who[32];
    int class = -1, length = 0;
    MPI_Error_class(code, &class);
    MPI_Error_string(code, text, &length);
    snprintf(who, sizeof who, "rank %d", rank);
    bool right = told_by_another(text) || ((rank < 0 || strstr(text, who) != NULL) && strstr(text, what) != NULL);
    if (class != MPI_ERR_RMA_SYNC || strstr(text, "\"halo\"") == NULL || !right || strstr(text, call) != text)
        test_fail(__FILE__, __LINE__, "MPI_ERR_RMA_SYNC that names call, window and rank", "class %d (%s) of %s", class,
                  text, call);
}

static void still_works(void)
{
    int64_t mine = w.rank + 3;
    MPI_Barrier(w.comm);
    CHECK_EQUAL(MPI_Win_fence(MPI_MODE_NOPRECEDE, w.win), MPI_SUCCESS);
    CHECK_EQUAL(MPI_Put(&mine, 1, MPI_INT64_T, rma_next(&w), rma_at(&w, rma_next(&w), 0), 1, MPI_INT64_T, w.win),
                MPI_SUCCESS);
    CHECK_EQUAL(MPI_Win_fence(MPI_MODE_NOSUCCEED, w.win), MPI_SUCCESS);
    CHECK_EQUAL(*(int64_t *)w.base, rma_previous(&w) + 3);
    MPI_Barrier(w.comm);
}

/* At least one rank was told; one that has come to a call when the others were told already may find all there. */
static void somebody(int failed)
{
    int all;
    MPI_Allreduce(&failed, &all, 1, MPI_INT, MPI_SUM, w.comm);
    CHECK(all > 0, "nobody was told");
}

/* ---- ranks that wait for each other ------------------------------------------------------------------------------ */

static void nobody_posts(void)
{
    if (w.rank < 2) {
        MPI_Group other = only(1 - w.rank);
        told("MPI_Win_start", MPI_Win_start(other, 0, w.win), 1 - w.rank, "MPI_Win_post");
        MPI_Group_free(&other);
    }
    still_works();
}

static void nobody_starts(void)
{
    int failed = 0;
    if (w.rank < 2) {
        MPI_Group other = only(1 - w.rank);
        CHECK_EQUAL(MPI_Win_post(other, 0, w.win), MPI_SUCCESS);
        int code = MPI_Win_wait(w.win);
        if (code != MPI_SUCCESS) /* else the other one was told, and has gone on */
            told("MPI_Win_wait", code, 1 - w.rank, "MPI_Win_complete");
        failed = code != MPI_SUCCESS;
        CHECK_EQUAL(MPI_Win_start(other, 0, w.win), MPI_SUCCESS); /* what was posted stays so */
        CHECK_EQUAL(MPI_Win_complete(w.win), MPI_SUCCESS);
        MPI_Group_free(&other);
    }
    somebody(failed);
    still_works();
}

/* One waits for what it has posted, the others for its fence. */
static void posted_beside_fence(void)
{
    int failed = 0;
    if (w.rank == 0) {
        MPI_Group second = only(1);
        CHECK_EQUAL(MPI_Win_post(second, 0, w.win), MPI_SUCCESS);
        told("MPI_Win_wait", MPI_Win_wait(w.win), 1, "MPI_Win_complete");
        MPI_Group_free(&second);
        failed = 1;
    }
    int code = MPI_Win_fence(0, w.win);
    if (code != MPI_SUCCESS)
        told("MPI_Win_fence", code, -1, "MPI_Win_fence");
    somebody(failed + (code != MPI_SUCCESS));
    if (w.rank == 1) {
        MPI_Group first = only(0);
        CHECK_EQUAL(MPI_Win_start(first, 0, w.win), MPI_SUCCESS); /* the post is still to be used */
        CHECK_EQUAL(MPI_Win_complete(w.win), MPI_SUCCESS);
        MPI_Group_free(&first);
    }
    still_works();
}

/* One waits for somebody in a barrier, in which somebody is missing, who waits for the first one in another barrier. */
static void start_beside_barriers(void)
{
    int missing = w.size / 2 + 1; /* for whom those wait that others wait for */
    bool apart = w.rank == 1 || w.rank == missing;
    MPI_Comm part;
    if (w.size < 3)
        return;
    MPI_Comm_split(w.comm, apart, 0, &part);
    if (w.rank == 1) {
        MPI_Group first = only(0);
        told("MPI_Win_start", MPI_Win_start(first, 0, w.win), 0, "MPI_Win_post");
        MPI_Group_free(&first);
    }
    if (apart)
        MPI_Barrier(part);
    still_works();
    MPI_Comm_free(&part);
}

static void fence_beside_barrier(void)
{
    if (w.rank == 0)
        MPI_Barrier(w.comm);
    int code = MPI_Win_fence(0, w.win);
    if (w.rank != 0 || code != MPI_SUCCESS)
        told("MPI_Win_fence", code, -1, "MPI_Win_fence");
    if (w.rank != 0)
        MPI_Barrier(w.comm);
    still_works();
}

static void fence_beside_free(void)
{
    MPI_Win win = w.win;
    int code = w.rank == 0 ? MPI_Win_fence(0, win) : MPI_Win_free(&win), class;
    if (w.size == 2)
        told(w.rank == 0 ? "MPI_Win_fence" : "MPI_Win_free", code, 1 - w.rank,
             w.rank == 0 ? "MPI_Win_free" : "MPI_Win_fence");
    MPI_Error_class(code, &class);
    CHECK_EQUAL(class, MPI_ERR_RMA_SYNC);
    CHECK(win == w.win, "the window is gone");
    still_works();
}

/* Each has what the other wants. */
static void locks(void)
{
    int code, failed = 0;
    if (w.rank < 2)
        CHECK_EQUAL(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, w.rank, 0, w.win), MPI_SUCCESS);
    MPI_Barrier(w.comm);
    if (w.rank < 2) {
        code = MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1 - w.rank, 0, w.win);
        if (code == MPI_SUCCESS)
            CHECK_EQUAL(MPI_Win_unlock(1 - w.rank, w.win), MPI_SUCCESS);
        else
            told("MPI_Win_lock", code, 1 - w.rank, "MPI_Win_unlock");
        failed = code != MPI_SUCCESS;
        CHECK_EQUAL(MPI_Win_unlock(w.rank, w.win), MPI_SUCCESS);
    }
    somebody(failed);
    still_works();
}

/* ---- what is only slow ------------------------------------------------------------------------------------------- */

static void late(void)
{
    MPI_Group first = only(0), second = only(1);
    MPI_Comm others;
    int64_t mine = 7;
    MPI_Comm_split(w.comm, w.rank > 0, 0, &others);
    if (w.rank == last)
        test_sleep(LATE);
    if (w.rank == 0) {
        CHECK_EQUAL(MPI_Win_start(second, 0, w.win), MPI_SUCCESS); /* which waits in a barrier before it posts */
        CHECK_EQUAL(MPI_Put(&mine, 1, MPI_INT64_T, 1, rma_at(&w, 1, 0), 1, MPI_INT64_T, w.win), MPI_SUCCESS);
        test_sleep(LATE);
        CHECK_EQUAL(MPI_Win_complete(w.win), MPI_SUCCESS);
    } else {
        MPI_Barrier(others);
        if (w.rank == 1) {
            CHECK_EQUAL(MPI_Win_post(first, 0, w.win), MPI_SUCCESS);
            CHECK_EQUAL(MPI_Win_wait(w.win), MPI_SUCCESS);
            CHECK_EQUAL(*(int64_t *)w.base, 7);
        }
    }
    if (w.rank == last)
        test_sleep(LATE);
    CHECK_EQUAL(MPI_Win_fence(0, w.win), MPI_SUCCESS);
    if (w.rank == last) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, w.win);
        MPI_Barrier(w.comm);
        test_sleep(LATE);
        MPI_Win_unlock(0, w.win);
    } else {
        MPI_Barrier(w.comm);
        CHECK_EQUAL(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, w.win), MPI_SUCCESS);
        CHECK_EQUAL(MPI_Win_unlock(0, w.win), MPI_SUCCESS);
    }
    MPI_Comm_free(&others);
    MPI_Group_free(&first);
    MPI_Group_free(&second);
    still_works();
}

/* ---- MPI_Finalize ------------------------------------------------------------------------------------------------ */

/* The last rank has done its part, and others have still to do theirs. */
static void early(void)
{
    MPI_Group first = only(0), end = only(last);
    int64_t mine = 11, seen = -1;
    if (w.rank == last && w.size > 1) {
        CHECK_EQUAL(MPI_Win_start(first, 0, w.win), MPI_SUCCESS);
        CHECK_EQUAL(MPI_Put(&mine, 1, MPI_INT64_T, 0, rma_at(&w, 0, 0), 1, MPI_INT64_T, w.win), MPI_SUCCESS);
        CHECK_EQUAL(MPI_Win_complete(w.win), MPI_SUCCESS);
    } else if (w.rank == 0 && w.size > 1) {
        CHECK_EQUAL(MPI_Win_post(end, 0, w.win), MPI_SUCCESS);
        test_sleep(LATE);
        CHECK_EQUAL(MPI_Win_wait(w.win), MPI_SUCCESS);
        CHECK_EQUAL(*(int64_t *)w.base, 11);
    }
    CHECK_EQUAL(MPI_Win_fence(0, w.win), MPI_SUCCESS);
    for (int i = 0; w.rank != last && i < 3; i++) {
        test_sleep(LATE / 3);
        CHECK_EQUAL(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, last, 0, w.win), MPI_SUCCESS);
        CHECK_EQUAL(MPI_Put(&mine, 1, MPI_INT64_T, last, rma_at(&w, last, 0), 1, MPI_INT64_T, w.win), MPI_SUCCESS);
        CHECK_EQUAL(MPI_Win_unlock(last, w.win), MPI_SUCCESS);
        MPI_Win_lock_all(0, w.win);
        CHECK_EQUAL(MPI_Get(&seen, 1, MPI_INT64_T, last, rma_at(&w, last, 0), 1, MPI_INT64_T, w.win), MPI_SUCCESS);
        CHECK_EQUAL(MPI_Win_unlock_all(w.win), MPI_SUCCESS);
        CHECK_EQUAL(seen, 11);
    }
    MPI_Group_free(&first);
    MPI_Group_free(&end);
}

static void start(void)
{
    MPI_Group end = only(last);
    if (w.rank != last)
        told("MPI_Win_start", MPI_Win_start(end, 0, w.win), last, "MPI_Finalize");
    MPI_Group_free(&end);
}

/* A rank that has ended is not waited for, another one is. */
static void wait_for(void)
{
    MPI_Group all, group;
    MPI_Win_get_group(w.win, &all);
    MPI_Group_incl(all, w.size - 1, (int[]){last, 0, 1, 2, 3, 4, 5, 6}, &group); /* not the one before the last */
    if (w.rank == w.size - 2) {
        CHECK_EQUAL(MPI_Win_post(group, 0, w.win), MPI_SUCCESS);
        told("MPI_Win_wait", MPI_Win_wait(w.win), last, "MPI_Finalize");
    } else if (w.rank != last) {
        MPI_Group poster = only(w.size - 2);
        test_sleep(LATE);
        CHECK_EQUAL(MPI_Win_start(poster, 0, w.win), MPI_SUCCESS);
        CHECK_EQUAL(MPI_Win_complete(w.win), MPI_SUCCESS);
        MPI_Group_free(&poster);
    }
    MPI_Group_free(&all);
    MPI_Group_free(&group);
}

static void fence(void)
{
    if (w.rank != last)
        told("MPI_Win_fence", MPI_Win_fence(0, w.win), last, "MPI_Finalize");
}

static void leave(void)
{
    MPI_Win win = w.win;
    if (w.rank != last)
        told("MPI_Win_free", MPI_Win_free(&win), last, "MPI_Finalize");
}

/* The lock that it has not given back; of the first rank's memory or its own. */
static void keep(int whose)
{
    int64_t mine = 1;
    if (w.rank == last)
        CHECK_EQUAL(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, whose, 0, w.win), MPI_SUCCESS);
    MPI_Barrier(w.comm);
    if (w.rank == last) {
        MPI_Win win = w.win;
        CHECK_CLASS(MPI_Win_free(&win), MPI_ERR_RMA_SYNC);
        return;
    }
    told("MPI_Win_lock", MPI_Win_lock(w.rank % 2 ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, whose, 0, w.win), last,
         "MPI_Finalize");
    int code = MPI_Win_lock_all(0, w.win);
    if (code == MPI_SUCCESS) { /* it is asked for when it is needed */
        MPI_Put(&mine, 1, MPI_INT64_T, whose, rma_at(&w, whose, 0), 1, MPI_INT64_T, w.win);
        code = MPI_Win_unlock_all(w.win);
    }
    CHECK_CLASS(code, MPI_ERR_RMA_SYNC);
    leave();
}

int main(int argc, char **argv)
{
    test_begin(&argc, &argv);
    const char *what = argc > 1 ? argv[1] : "";
    last = test_size - 1;
    for (int flavor = 0; flavor < RMA_FLAVORS && what[0] == 0; flavor++) {
        rma_open(&w, (enum rma_flavor)flavor, 64, 8);
        last = w.size - 1;
        MPI_Win_set_name(w.win, "halo");
        if (w.size > 1) {
            nobody_posts();
            nobody_starts();
            posted_beside_fence();
            start_beside_barriers();
            fence_beside_barrier();
            fence_beside_free();
            locks();
            if (flavor == RMA_ALLOCATED)
                late();
        }
        rma_close(&w);
    }
    if (what[0] != 0) {
        rma_open(&w, strchr(what, '-') != NULL ? RMA_CREATED : RMA_ALLOCATED, 64, 8);
        MPI_Win_set_name(w.win, "halo");
        if (strncmp(what, "early", 5) == 0)
            early();
        else if (strncmp(what, "start", 5) == 0)
            start();
        else if (strncmp(what, "wait", 4) == 0)
            wait_for();
        else if (strncmp(what, "fence", 5) == 0)
            fence();
        else if (strncmp(what, "free", 4) == 0)
            leave();
        else if (strncmp(what, "lock", 4) == 0)
            keep(0);
        else if (strncmp(what, "own", 3) == 0)
            keep(last);
        else
            test_fail(__FILE__, __LINE__, "a case that there is", "%s", what);
    }
    return test_end();
}
