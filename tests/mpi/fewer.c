/* Rank 0 calls one collective less than the others and leaves, and errors are returned. Whoever cannot get out of
 * MPI_Finalize because of it ends the job with that story, which the runner expects; nobody hangs, and nobody is said
 * not to have called it. */
#include "test.h"

int main(int argc, char **argv)
{
    test_begin(&argc, &argv);
    test_need(test_size > 1, "this takes two ranks");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int i = test_rank == 0; i < 3; i++)
        MPI_Barrier(MPI_COMM_WORLD);
    return test_end();
}
