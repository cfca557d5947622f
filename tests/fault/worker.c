/* A rank for tests of endings: worker MODE [ARGUMENT]
 *
 *   work MS          passes messages around for so long, then ends properly and says so
 *   sums MS          the same with sums of all ranks, which are checked
 *   abort CODE       the last rank calls MPI_Abort, the others wait for a message that never comes
 *   unfinalized all  every rank ends without MPI_Finalize; `one`: only rank 0, the others wait
 *   crash            the last rank writes half a line and dies, the others wait
 *   late CODE        the last rank ends with CODE after MPI_Finalize */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size;

static void wait_for_ever(void)
{
    int nothing;
    MPI_Recv(&nothing, 1, MPI_INT, MPI_ANY_SOURCE, 999, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void work(int ms)
{
    double end = MPI_Wtime() + ms / 1000.0;
    for (int round = 0, more = 1; more; round++) {
        int token = rank, got = -1;
        MPI_Sendrecv(&token, 1, MPI_INT, (rank + 1) % size, 1, &got, 1, MPI_INT, (rank + size - 1) % size, 1,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (got != (rank + size - 1) % size)
            MPI_Abort(MPI_COMM_WORLD, 99);
        more = MPI_Wtime() < end;
        MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
}

static void add_up(int ms)
{
    double end = MPI_Wtime() + ms / 1000.0;
    for (int round = 0, more = 1; more; round++) {
        int mine[2] = {rank + round, rank == 0 && MPI_Wtime() < end}, sums[2] = {0, 0};
        MPI_Allreduce(mine, sums, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        if (sums[0] != size * (size - 1) / 2 + size * round)
            MPI_Abort(MPI_COMM_WORLD, 99);
        more = sums[1];
    }
}

static int tell_program(void)
{
    int *program = NULL, flag = 0;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &program, &flag);
    printf("rank %d runs program %d\n", rank, flag ? *program : -1);
    return MPI_Finalize();
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "work";
    int number = argc > 2 ? atoi(argv[2]) : 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int last = rank == size - 1;
    if (strcmp(mode, "programs") == 0)
        return tell_program();
    if (strcmp(mode, "work") == 0)
        work(number);
    if (strcmp(mode, "sums") == 0)
        add_up(number);
    if (strcmp(mode, "abort") == 0 && last)
        MPI_Abort(MPI_COMM_WORLD, number);
    if (strcmp(mode, "crash") == 0 && last) {
        printf("a whole line\nhalf a line");
        fflush(stdout);
        abort();
    }
    if (strcmp(mode, "unfinalized") == 0 && (rank == 0 || strcmp(argv[2], "all") == 0))
        _exit(0);
    if (strcmp(mode, "work") != 0 && strcmp(mode, "sums") != 0 && strcmp(mode, "late") != 0)
        wait_for_ever();
    MPI_Finalize();
    printf("rank %d of %d is done\n", rank, size);
    return strcmp(mode, "late") == 0 && last ? number : 0;
}
