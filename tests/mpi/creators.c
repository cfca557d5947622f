/* Several threads that make and free communicators at the same time, each from one of its own, and all of them from the
 * world with tags that differ. */
#include <pthread.h>

#include "test.h"

#define THREADS 4
#define ROUNDS  60

static MPI_Comm parents[THREADS];

static void use(MPI_Comm comm, int expected, const char *what)
{
    int size = -1, sum = -1, one = 1;
    MPI_Comm_size(comm, &size);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
    CHECK(size == expected && sum == expected, "%d ranks, %d counted of %d in %s", size, sum, expected, what);
}

static void *thread(void *argument)
{
    int me = (int)(intptr_t)argument;
    MPI_Comm kept = MPI_COMM_NULL;
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Comm comm;
        MPI_Request request;
        MPI_Group world;
        int half = (test_size + 1 - test_rank % 2) / 2;
        MPI_Comm_dup(parents[me], &comm);
        use(comm, test_size, "a duplicate");
        if (kept != MPI_COMM_NULL)
            MPI_Comm_free(&kept);
        kept = comm;
        MPI_Comm_split(parents[me], test_rank % 2, 0, &comm);
        use(comm, half, "a part");
        MPI_Comm_free(&comm);
        MPI_Comm_idup(parents[me], &comm, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        use(comm, test_size, "a later duplicate");
        MPI_Comm_free(&comm);
        MPI_Comm_group(MPI_COMM_WORLD, &world);
        MPI_Comm_create_group(MPI_COMM_WORLD, world, 10 + me, &comm);
        MPI_Group_free(&world);
        use(comm, test_size, "one of a group");
        MPI_Comm_free(&comm);
    }
    MPI_Comm_free(&kept);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    test_begin_threads(&argc, &argv, MPI_THREAD_MULTIPLE);
    for (int i = 0; i < THREADS; i++)
        MPI_Comm_dup(MPI_COMM_WORLD, &parents[i]);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, thread, (void *)(intptr_t)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++)
        MPI_Comm_free(&parents[i]);
    return test_end();
}
