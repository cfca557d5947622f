/* meet MS: after so many milliseconds of silence every rank speaks to every other one for the first time; rank 0 prints
 * how many milliseconds that took the slowest. */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int *from = calloc((size_t)size, sizeof *from), *to = calloc((size_t)size, sizeof *to);
    MPI_Request *requests = malloc(2 * (size_t)size * sizeof *requests);
    if (from == NULL || to == NULL || requests == NULL)
        MPI_Abort(MPI_COMM_WORLD, 1);
    usleep(1000u * (unsigned)atoi(argc > 1 ? argv[1] : "0"));
    double start = MPI_Wtime(), took, slowest;
    for (int i = 0; i < size; i++) {
        to[i] = rank;
        MPI_Irecv(&from[i], 1, MPI_INT, i, 0, MPI_COMM_WORLD, &requests[2 * i]);
        MPI_Isend(&to[i], 1, MPI_INT, i, 0, MPI_COMM_WORLD, &requests[2 * i + 1]);
    }
    MPI_Waitall(2 * size, requests, MPI_STATUSES_IGNORE);
    took = MPI_Wtime() - start;
    for (int i = 0; i < size; i++)
        if (from[i] != i)
            MPI_Abort(MPI_COMM_WORLD, 2);
    MPI_Reduce(&took, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%.0f ms\n", slowest * 1e3);
    free(from);
    free(to);
    free(requests);
    return MPI_Finalize();
}
