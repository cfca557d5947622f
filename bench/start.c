/* Starts and ends: nothing but MPI_Init, a barrier and MPI_Finalize. With an argument it waits that many seconds
 * between the barrier and the end, after rank 0 has said "ready", so that memory can be looked at. */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    if (argc > 1) {
        if (rank == 0) {
            puts("ready");
            fflush(stdout);
        }
        double seconds = atof(argv[1]);
        struct timespec pause = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
        nanosleep(&pause, NULL);
    }
    MPI_Finalize();
    return 0;
}
