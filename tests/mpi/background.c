/* Progress without calls: with the parameter progress_thread, collectives and long messages go on while the program
 * computes. Here it looks at its own memory and calls nothing; without such a thread it would look in vain. Then the
 * same thread beside ordinary use, beside a fork, and beside threads of the program. */
#include "test.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#define INTS    300000
#define PATIENT 40.0 /* seconds */

/* Waits, without MPI, until something has arrived at the end of the data. */
static bool arrives(const volatile int *last, int before)
{
    double end = test_now() + PATIENT;
    while (*last == before && test_now() < end)
        test_sleep(0.0005);
    return *last != before;
}

static void alone(void)
{
    int *data = test_memory(INTS * sizeof(int)), *sums = test_memory(INTS * sizeof(int));
    MPI_Request requests[2];
    for (int i = 0; i < INTS; i++) {
        data[i] = test_rank == 0 ? i + 1 : 0;
        sums[i] = 0;
    }
    MPI_Ibcast(data, INTS, MPI_INT, 0, MPI_COMM_WORLD, &requests[0]);
    CHECK(arrives(&data[INTS - 1], 0), "a broadcast that does not go on by itself");
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    for (int i = 0; i < INTS; i++)
        if (!CHECK_EQUAL(data[i], i + 1))
            break;
    MPI_Iallreduce(data, sums, INTS, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[0]);
    CHECK(arrives(&sums[INTS - 1], 0), "a reduction that does not go on by itself");
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    for (int i = 0; i < INTS; i++)
        if (!CHECK_EQUAL(sums[i], (i + 1) * test_size))
            break;
    test_clear(sums, INTS * sizeof(int));
    sums[INTS - 1] = 0;
    MPI_Irecv(sums, INTS, MPI_INT, test_previous(), 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(data, INTS, MPI_INT, test_next(), 1, MPI_COMM_WORLD, &requests[1]);
    CHECK(arrives(&sums[INTS - 1], 0), "a message that does not go on by itself");
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    free(data);
    free(sums);
}

static void ordinary(void)
{
    MPI_Comm copy;
    MPI_Request request;
    for (int i = 0; i < 50; i++) {
        int got = -1, sum = 0;
        MPI_Sendrecv(&test_rank, 1, MPI_INT, test_next(), 2, &got, 1, MPI_INT, test_previous(), 2, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        CHECK_EQUAL(got, test_previous());
        MPI_Allreduce(&i, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        CHECK_EQUAL(sum, i * test_size);
    }
    MPI_Comm_idup(MPI_COMM_WORLD, &copy, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Barrier(copy);
    MPI_Comm_free(&copy);
}

static void forked(void)
{
    pid_t child = fork();
    if (child == 0)
        _exit(7);
    int status = 0;
    waitpid(child, &status, 0);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7, "status %x of a child", (unsigned)status);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void *talk(void *comm)
{
    for (int i = 0; i < 50; i++) {
        int sum = 0;
        MPI_Allreduce(&i, &sum, 1, MPI_INT, MPI_SUM, *(MPI_Comm *)comm);
        CHECK_EQUAL(sum, i * test_size);
    }
    return NULL;
}

static void threads(void)
{
    MPI_Comm comms[2];
    pthread_t thread;
    for (int i = 0; i < 2; i++)
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    pthread_create(&thread, NULL, talk, &comms[1]);
    talk(&comms[0]);
    pthread_join(thread, NULL);
    for (int i = 0; i < 2; i++)
        MPI_Comm_free(&comms[i]);
}

int main(int argc, char **argv)
{
    bool multiple = argc > 1 && strcmp(argv[1], "multiple") == 0;
    setenv("TOMBOLO_PROGRESS_THREAD", "yes", 1);
    test_begin_threads(&argc, &argv, multiple ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE);
    alone();
    ordinary();
    forked();
    if (multiple)
        threads();
    return test_end();
}
