/* What tests/walk/run follows: rank 0 gives eight bytes to rank 1, by the call that the first argument names, first to
 * get connected and to have a plan, and then a few times more, each with the receiver waiting already. Each rank says
 * which process it is: a file RANK.number in the folder that WALK_DIR names. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define WARM   8
#define ROUNDS 5
#define TAG    7
#define NAP_NS 30000000 /* so that the receiver, who has said that it is about to wait, does */

static void give(const char *call, int rank, long *value)
{
    if (strcmp(call, "bcast") == 0)
        MPI_Bcast(value, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    else if (rank == 0)
        MPI_Send(value, 1, MPI_LONG, 1, TAG, MPI_COMM_WORLD);
    else
        MPI_Recv(value, 1, MPI_LONG, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Rank 0 hears that the other one is about to wait. */
static void meet(int rank)
{
    const struct timespec nap = {.tv_nsec = NAP_NS};
    if (rank == 1)
        MPI_Ssend(NULL, 0, MPI_BYTE, 0, TAG + 1, MPI_COMM_WORLD);
    else
        MPI_Recv(NULL, 0, MPI_BYTE, 1, TAG + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 0)
        nanosleep(&nap, NULL);
}

static int number_tell(int rank)
{
    const char *folder = getenv("WALK_DIR");
    char path[512];
    snprintf(path, sizeof path, "%s/%d.number", folder != NULL ? folder : ".", rank);
    FILE *f = fopen(path, "w");
    if (f == NULL)
        return 1;
    fprintf(f, "%d\n", (int)getpid());
    return fclose(f);
}

int main(int argc, char **argv)
{
    int rank, wrong;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    wrong = argc != 2 || number_tell(rank);
    for (int i = 0; i < WARM + ROUNDS && !wrong; i++) {
        long value = rank == 0 ? i + 42 : 0;
        if (i >= WARM)
            meet(rank);
        give(argv[1], rank, &value);
        wrong = value != i + 42;
    }
    MPI_Finalize();
    return wrong;
}
