/* A process that was started while the job runs dies after it has joined: it is a rank like others, and the job ends.
 * The runner expects that. */
#include "test.h"

#include <signal.h>

int main(int argc, char **argv)
{
    MPI_Comm parent, inter;
    test_begin(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    if (parent == MPI_COMM_NULL) {
        MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
        MPI_Barrier(inter);
    } else if (test_rank == 1) {
        raise(SIGKILL);
    } else {
        MPI_Barrier(parent);
    }
    return test_end();
}
