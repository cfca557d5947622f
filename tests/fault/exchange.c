/* Two ranks exchange messages of several lengths, whatever is in them when they come. */
#include <mpi.h>

#include <stdlib.h>

int main(void)
{
    static const int lengths[] = {0, 8, 1000, 20000, 200000};
    char *out = calloc(1, 200000), *in = calloc(1, 200000);
    int rank;
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < 5; i++)
        MPI_Sendrecv(out, lengths[i], MPI_BYTE, !rank, 1, in, 200000, MPI_BYTE, !rank, 1, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    free(out);
    free(in);
    return 0;
}
