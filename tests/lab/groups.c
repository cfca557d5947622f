/* A job that lives for as many milliseconds as it is told, and looks all the while for what its agents say. */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int rank, flag, whole = 0, one = 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    double end = MPI_Wtime() + atof(argv[1]) / 1e3;
    do {
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        usleep(2000);
    } while (MPI_Wtime() < end);
    MPI_Allreduce(&one, &whole, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%d ranks\n", whole);
    MPI_Finalize();
    return 0;
}
