/* Rank 0 calls another collective than the others: that must end the job with a message, not hang it. The runner
 * expects the failure. */
#include "test.h"

int main(int argc, char **argv)
{
    int value = 1;
    test_begin(&argc, &argv);
    test_need(test_size > 1, "this takes two ranks");
    if (test_rank == 0)
        MPI_Barrier(MPI_COMM_WORLD);
    else
        MPI_Bcast(&value, 1, MPI_INT, test_size - 1, MPI_COMM_WORLD);
    /* Whoever was served before anybody noticed waits here for the others. */
    MPI_Barrier(MPI_COMM_WORLD);
    return test_end();
}
