/* Every rank but 0 sends its number to rank 0, as many times as the first argument says (1), all at the same moment. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    int rank, size, rounds = argc > 1 ? atoi(argv[1]) : 1;
    long long sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < rounds; i++) {
        if (rank > 0)
            MPI_Send(&rank, 1, MPI_INT, 0, i, MPI_COMM_WORLD);
        for (int k = 1; rank == 0 && k < size; k++) {
            int number;
            MPI_Recv(&number, 1, MPI_INT, MPI_ANY_SOURCE, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            sum += number;
        }
    }
    if (rank == 0)
        printf("sum %lld of %d ranks\n", sum, size);
    MPI_Finalize();
    return 0;
}
