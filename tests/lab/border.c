/* Two ranks send each other a text that is easy to find on a wire, until somebody makes a file.
 *
 * usage: border FILE */
#include <mpi.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BYTES 65536

static const char text[] = "this is what two ranks say to each other, as plain as can be. ";

int main(int argc, char **argv)
{
    static char out[BYTES], in[BYTES];
    int rank, size, on = argc == 2;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (size_t i = 0; i < BYTES; i++)
        out[i] = text[i % (sizeof text - 1)];
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        puts("running");
    fflush(stdout);
    while (on) {
        int to = (rank + 1) % size, from = (rank + size - 1) % size;
        memset(in, 0, BYTES);
        MPI_Sendrecv(out, BYTES, MPI_BYTE, to, 1, in, BYTES, MPI_BYTE, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (memcmp(in, out, BYTES) != 0)
            MPI_Abort(MPI_COMM_WORLD, 3);
        on = access(argv[1], F_OK) != 0;
        MPI_Bcast(&on, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
