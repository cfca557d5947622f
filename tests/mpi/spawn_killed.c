/* A process that was started while the job runs dies after it has joined: it is a rank like others, and the job ends.
 * That holds as long as anything connects it with the others: a communicator that was freed and not disconnected, one
 * that was made of it, a window, or a process that is connected with both. The runner expects it. */
#include "test.h"

#include <signal.h>

static MPI_Comm stays;
static MPI_Win window;
static int *memory;

static void part(MPI_Comm inter, const char *how)
{
    if (strcmp(how, "freed") == 0) {
        MPI_Comm_free(&inter);
        return;
    }
    if (strcmp(how, "window") == 0) {
        MPI_Comm_get_parent(&stays);
        MPI_Intercomm_merge(inter, stays != MPI_COMM_NULL, &stays);
        MPI_Win_allocate(sizeof *memory, sizeof *memory, MPI_INFO_NULL, stays, &memory, &window);
        MPI_Comm_disconnect(&stays);
    } else {
        MPI_Comm_dup(inter, &stays);
    }
    MPI_Comm_disconnect(&inter);
}

int main(int argc, char **argv)
{
    MPI_Comm parent, inter;
    test_begin(&argc, &argv);
    const char *how = argc > 1 ? argv[1] : "";
    bool below = strcmp(how, "below") == 0;
    char *words[] = {(char *)(below ? "killed" : how), NULL};
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL && !below && *how != 0 && strcmp(how, "killed") != 0)
        part(parent, how);
    if (parent == MPI_COMM_NULL || below) {
        words[0] = parent == MPI_COMM_NULL ? (char *)how : words[0];
        MPI_Comm_spawn(argv[0], words, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
        if (*how != 0 && !below)
            part(inter, how);
        test_sleep(60); /* the job is ended before */
    } else if (test_rank == 1) {
        raise(SIGKILL);
    }
    test_sleep(60);
    return test_end();
}
