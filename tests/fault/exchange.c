/* Two ranks exchange messages of several lengths, and the first says so at the end.
 *
 * usage: exchange [check] [hold]     check: what comes must be what was sent; hold: the first waits for a line before
 * it */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONGEST 200000

static unsigned char pattern(int rank, int turn, int at)
{
    return (unsigned char)(at * 31 + at / 251 + rank * 7 + turn);
}

static void exchange(int rank, int turn, int length, int check)
{
    static unsigned char out[LONGEST], in[LONGEST];
    for (int i = 0; i < length; i++)
        out[i] = pattern(rank, turn, i);
    MPI_Sendrecv(out, length, MPI_BYTE, !rank, 1, in, LONGEST, MPI_BYTE, !rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; check && i < length; i++)
        if (in[i] != pattern(!rank, turn, i)) {
            fprintf(stderr, "wrong data: byte %d of %d\n", i, length);
            exit(3);
        }
}

int main(int argc, char **argv)
{
    static const int lengths[] = {0, 8, 1000, 20000, LONGEST};
    int rank, check = 0, hold = 0;
    for (int i = 1; i < argc; i++) {
        check |= strcmp(argv[i], "check") == 0;
        hold |= strcmp(argv[i], "hold") == 0;
    }
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (hold)
        MPI_Barrier(MPI_COMM_WORLD);
    if (hold && rank == 0) {
        printf("begun\n");
        fflush(stdout);
        getchar();
    }
    for (int i = 0; i < 5; i++)
        exchange(rank, i, lengths[i], check);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        printf("exchanged\n");
    MPI_Finalize();
    return 0;
}
