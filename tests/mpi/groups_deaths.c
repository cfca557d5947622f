/* Members of a named group are killed at random moments, in a job that goes on without them: those who are left are
 * told who is dead, and have communicators of who is left; in one world or in several. The job fails in the end, as
 * ranks of it have. */
#include "worlds.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#define LONG    60.0
#define MOMENTS 300 /* ms within which they die */

static const char name[] = "mortals";

static int class_of(int code)
{
    int class = -1;
    MPI_Error_class(code, &class);
    return class;
}

static void *die(void *when)
{
    test_sleep(*(double *)when);
    kill(getpid(), SIGKILL);
    return NULL;
}

/* Rank 0 never dies; of the others about half do, as all know from the seed. */
static bool is_doomed(int rank, uint64_t seed)
{
    uint64_t state = seed * 100 + (uint64_t)rank;
    return rank == test_size - 1 || (rank > 0 && test_random(&state) % 2 == 0);
}

/* Whether an error is one of those that death brings. */
static bool is_of_death(int code)
{
    int class = class_of(code);
    return class == MPI_ERR_PROC_ABORTED || class == MPI_ERR_OTHER;
}

/* Once, with whoever is there. True: these are all who are to be left, and all is well. */
static bool meet(int left)
{
    int size = -1, one = 1, count = -1;
    MPI_Comm comm = MPI_COMM_NULL;
    int code = Tombolo_Group_comm(name, 1, LONG, &comm);
    CHECK(code == MPI_SUCCESS || class_of(code) == MPI_ERR_PROC_ABORTED, "class %d", class_of(code));
    if (code != MPI_SUCCESS)
        return false;
    MPI_Comm_size(comm, &size);
    CHECK(size >= left, "%d of %d who live", size, left);
    for (int i = 0; i < 10 && code == MPI_SUCCESS; i++)
        code = MPI_Allreduce(&one, &count, 1, MPI_INT, MPI_SUM, comm);
    CHECK(code == MPI_SUCCESS ? count == size : is_of_death(code), "class %d, %d of %d", class_of(code), count, size);
    MPI_Comm_free(&comm);
    return code == MPI_SUCCESS && size == left;
}

int main(int argc, char **argv)
{
    int left = 0, lost = -1, sum = -1, id = -1;
    MPI_Group dead;
    MPI_Comm comm = MPI_COMM_NULL;
    pthread_t reaper;
    test_begin(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    worlds_begin(argc, argv);
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    for (int i = 0; i < test_size; i++)
        left += !is_doomed(i, seed);
    CHECK_EQUAL(Tombolo_Group_join(name, test_size, LONG, &comm), MPI_SUCCESS);
    uint64_t state = seed * 100000 + (uint64_t)test_rank;
    double when = (double)(test_random(&state) % MOMENTS) / 1000;
    if (is_doomed(test_rank, seed))
        test_need(pthread_create(&reaper, NULL, die, &when) == 0, "there is no thread");
    for (double until = MPI_Wtime() + LONG; !meet(left) && MPI_Wtime() < until;)
        ;
    CHECK_EQUAL(Tombolo_Group_lost(name, &dead), MPI_SUCCESS);
    MPI_Group_size(dead, &lost);
    CHECK_EQUAL(lost, test_size - left);
    CHECK_EQUAL(Tombolo_Group_comm(name, left, LONG, &comm), MPI_SUCCESS);
    MPI_Allreduce(&(int){test_failures}, &sum, 1, MPI_INT, MPI_SUM, comm);
    MPI_Comm_rank(comm, &id);
    if (id == 0 && sum == 0)
        printf("those who are left are well\n");
    return test_end();
}
