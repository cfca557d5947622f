/* dump MIB: rank 0 sends a pattern to rank 1 through the memory that they share; rank 1 receives it, forgets it, says
 * its number, and crashes with so many MiB of memory, which go to its core file. The others wait. Each prints its
 * process. */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LENGTH 4096

int main(int argc, char **argv)
{
    int rank;
    char secret[LENGTH];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    printf("rank %d is %d\n", rank, (int)getpid());
    fflush(stdout);
    if (rank == 0) {
        MPI_Recv(NULL, 0, MPI_CHAR, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < LENGTH; i++) /* over and over what the program itself does not contain: "Sesame" */
            secret[i] = "emaseS"[5 - i % 6];
        MPI_Send(secret, LENGTH, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
    }
    if (rank == 1) {
        size_t bytes = (size_t)atoi(argc > 1 ? argv[1] : "1") << 20;
        MPI_Request request; /* it is awaited, so nobody else makes a copy of it */
        MPI_Irecv(secret, LENGTH, MPI_CHAR, 0, 0, MPI_COMM_WORLD, &request);
        MPI_Send(NULL, 0, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        explicit_bzero(secret, sizeof secret);
        char *much = malloc(bytes);
        if (much == NULL)
            return 1;
        memset(much, 7, bytes);
        printf("rank 1 crashes with %d\n", much[bytes / 3]);
        fflush(stdout);
        abort();
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
