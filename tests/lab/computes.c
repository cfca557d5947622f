/* A rank sends much and then computes for long, without a call of MPI; the last rank tells how long it took until it
 * had all.
 *
 * usage: computes SECONDS */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BYTES 8192
#define COUNT 256

int main(int argc, char **argv)
{
    static char data[BYTES];
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank == 0)
        MPI_Recv(NULL, 0, MPI_BYTE, size - 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* they are connected */
    if (rank == size - 1)
        MPI_Send(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    for (int i = 0; i < COUNT && rank == 0; i++) {
        memset(data, i, sizeof data);
        MPI_Send(data, BYTES, MPI_BYTE, size - 1, 2, MPI_COMM_WORLD);
    }
    if (rank == 0)
        usleep((useconds_t)(atof(argv[1]) * 1e6));
    for (int i = 0; i < COUNT && rank == size - 1; i++) {
        MPI_Recv(data, BYTES, MPI_BYTE, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int k = 0; k < BYTES; k++)
            if (data[k] != (char)i)
                MPI_Abort(MPI_COMM_WORLD, 3);
    }
    if (rank == size - 1)
        printf("took %.3f\n", MPI_Wtime() - begin);
    MPI_Finalize();
    return 0;
}
