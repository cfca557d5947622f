/* A rank dies with locks, in a job that goes on without it: whoever asks for these afterwards, or waits for them
 * already, gets them, or an error that says who is gone; nobody waits for ever. Who posts a window to it is told so by
 * what ends that epoch, and can post again. The job fails in the end, as a rank of it has. */
#include "rma.h"

#include <signal.h>
#include <unistd.h>

static int class_of(int code)
{
    int class = -1;
    MPI_Error_class(code, &class);
    return class;
}

#define DOOMED 1

/* An error is of who has died, and names that rank. */
static void check_death(int code, const char *what)
{
    char text[MPI_MAX_ERROR_STRING] = "", who[32];
    int length;
    CHECK(class_of(code) == MPI_ERR_PROC_ABORTED, "%s: class %d", what, class_of(code));
    MPI_Error_string(code, text, &length);
    snprintf(who, sizeof who, "rank %d", DOOMED);
    CHECK(strstr(text, who) != NULL, "%s: %s", what, text);
}

static void check(int code, const char *what)
{
    if (code != MPI_SUCCESS)
        check_death(code, what);
}

/* It is posted to this rank and to the dead one, which may not be known to be dead at first, and then to this one
 * alone. The epoch is over when that has been told, whoever ends it. */
static void post_to_the_dead(MPI_Win win)
{
    MPI_Group all, both, dead, own;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, 2, (int[]){DOOMED, test_rank}, &both);
    MPI_Group_incl(all, 1, (int[]){DOOMED}, &dead);
    MPI_Group_incl(all, 1, &test_rank, &own);
    for (int round = 0; round < 4; round++) {
        int done = 0, code = MPI_SUCCESS;
        bool lost = round < 3;
        CHECK_EQUAL(MPI_Win_post(lost ? both : own, 0, win), MPI_SUCCESS);
        CHECK_EQUAL(MPI_Win_start(own, 0, win), MPI_SUCCESS);
        CHECK_EQUAL(MPI_Put(&round, 1, MPI_INT, test_rank, 3, 1, MPI_INT, win), MPI_SUCCESS);
        CHECK_EQUAL(MPI_Win_complete(win), MPI_SUCCESS);
        while (round % 2 && !done && code == MPI_SUCCESS)
            code = MPI_Win_test(win, &done);
        if (round % 2 == 0)
            code = MPI_Win_wait(win);
        if (lost)
            check_death(code, "the end of an exposure");
        else
            CHECK_EQUAL(code, MPI_SUCCESS);
    }
    check_death(MPI_Win_start(dead, 0, win), "start");
    CHECK_EQUAL(MPI_Win_lock(MPI_LOCK_SHARED, test_rank, MPI_MODE_NOCHECK, win), MPI_SUCCESS); /* it opened nothing */
    CHECK_EQUAL(MPI_Win_unlock(test_rank, win), MPI_SUCCESS);
    MPI_Group_free(&all);
    MPI_Group_free(&both);
    MPI_Group_free(&dead);
    MPI_Group_free(&own);
}

/* Rank 1, which mostly is on the same host as rank 0, has the lock of that alone, shares that of the last rank with
 * others, and dies. */
int main(int argc, char **argv)
{
    int well = 0, sum = 0;
    int64_t *memory = NULL, one = 1;
    MPI_Win win;
    test_begin(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Win_allocate(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    memset(memory, 0, 64);
    MPI_Barrier(MPI_COMM_WORLD);
    if (test_rank == DOOMED) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
        MPI_Win_lock(MPI_LOCK_SHARED, test_size - 1, 0, win);
        MPI_Put(&one, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, win);
        MPI_Win_flush(0, win);
        for (int rank = 0; rank < test_size; rank++)
            if (rank != DOOMED)
                MPI_Send(NULL, 0, MPI_BYTE, rank, 1, MPI_COMM_WORLD);
        test_sleep(0.2); /* some wait by then */
        kill(getpid(), SIGKILL);
    }
    MPI_Recv(NULL, 0, MPI_BYTE, DOOMED, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < 3; i++) {
        int target = (test_rank + i) % 2 ? 0 : test_size - 1;
        int code = MPI_Win_lock(i == 1 ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, target, 0, win);
        check(code, "lock");
        if (code != MPI_SUCCESS)
            continue;
        check(MPI_Accumulate(&one, 1, MPI_INT64_T, target, 1, 1, MPI_INT64_T, MPI_SUM, win), "accumulate");
        check(MPI_Win_unlock(target, win), "unlock");
    }
    int code = MPI_Win_lock_all(0, win);
    check(code, "lock_all");
    if (code == MPI_SUCCESS) {
        for (int rank = 0; rank < test_size; rank++)
            check(MPI_Accumulate(&one, 1, MPI_INT64_T, rank, 2, 1, MPI_INT64_T, MPI_SUM, win), "accumulate");
        check(MPI_Win_unlock_all(win), "unlock_all");
    }
    post_to_the_dead(win);
    /* Messages between those who are left are as before. */
    well = test_failures == 0;
    for (int rank = 2; rank < test_size && test_rank == 0; rank++) {
        int his = 0;
        MPI_Recv(&his, 1, MPI_INT, rank, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        sum += his;
    }
    if (test_rank > 0)
        MPI_Send(&well, 1, MPI_INT, 0, 2, MPI_COMM_WORLD);
    for (int rank = 2; rank < test_size && test_rank == 0; rank++)
        MPI_Send(NULL, 0, MPI_BYTE, rank, 3, MPI_COMM_WORLD);
    if (test_rank > 0) /* nobody ends before all have had their locks */
        MPI_Recv(NULL, 0, MPI_BYTE, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (test_rank == 0 && well && sum == test_size - 2)
        printf("those who are left are well\n");
    return test_end();
}
