/* Ranks that wait use no processor time: one rank sleeps, the others wait for it in a receive, a barrier, and for any
 * of several requests. Together they may use a small part of one core.
 *
 * usage: idle [SECONDS [PERCENT]]     how long the slow rank sleeps each time (5), and what all together may use (1) */
#include "test.h"

#include <sys/resource.h>

static double used(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

static void wait_in_receive(int slow)
{
    int value = -1;
    MPI_Recv(&value, 1, MPI_INT, slow, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK_EQUAL(value, slow);
}

static void wait_for_any(int slow)
{
    int values[3] = {-1, -1, -1}, index = -1;
    MPI_Request requests[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Irecv(&values[0], 1, MPI_INT, MPI_ANY_SOURCE, 50, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(&values[2], 1, MPI_INT, slow, 1, MPI_COMM_WORLD, &requests[2]);
    MPI_Waitany(3, requests, &index, MPI_STATUS_IGNORE);
    CHECK_EQUAL(index, 2);
    CHECK_EQUAL(values[2], slow);
    MPI_Cancel(&requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
}

static void wait_in_barrier(int slow)
{
    (void)slow;
    MPI_Barrier(MPI_COMM_WORLD);
}

/* What the waiting ranks have used goes to the slow one, which judges. */
static void measure(const char *what, void (*wait)(int), bool messages, int slow, double seconds, double percent)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (test_rank != slow) {
        double before = used();
        wait(slow);
        double spent = used() - before;
        MPI_Send(&spent, 1, MPI_DOUBLE, slow, 2, MPI_COMM_WORLD);
        return;
    }
    test_sleep(seconds);
    for (int i = 0; i < test_size && messages; i++)
        if (i != slow)
            MPI_Send(&slow, 1, MPI_INT, i, 1, MPI_COMM_WORLD);
    if (!messages)
        wait(slow);
    double total = 0, most = 0;
    for (int i = 0; i < test_size; i++) {
        double spent = 0;
        if (i != slow)
            MPI_Recv(&spent, 1, MPI_DOUBLE, i, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        total += spent;
        most = spent > most ? spent : most;
    }
    CHECK(total <= seconds * percent / 100, "%d ranks that waited %.1f s %s used %.4f s in all, one of them %.4f s",
          test_size - 1, seconds, what, total, most);
    if (getenv("TEST_VERBOSE") != NULL)
        printf("%s: %.2f %% of a core\n", what, 100 * total / seconds);
}

int main(int argc, char **argv)
{
    test_begin(&argc, &argv);
    double seconds = argc > 1 ? strtod(argv[1], NULL) : 5, percent = argc > 2 ? strtod(argv[2], NULL) : 1;
    /* Once round, so that what is made on first use is made. */
    for (int slow = 0; slow<test_size; slow += test_size> 1 ? test_size - 1 : 1)
        measure("at first", wait_in_receive, true, slow, 0.01, 1e6);
    measure("in a receive", wait_in_receive, true, 0, seconds, percent);
    measure("in a barrier", wait_in_barrier, false, test_size - 1, seconds, percent);
    measure("for any request", wait_for_any, true, 0, seconds, percent);
    return test_end();
}
