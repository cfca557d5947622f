/* Processes that were started while the job runs, and have disconnected from those who did, end in every bad way: they
 * and those that they are still connected with are ended, and the others go on. Who is left says so; the job has failed
 * all the same, which the runner expects. */
#include "test.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#define CHILDREN 2

static char *program;

static void wait_for_the_end(void)
{
    int nothing;
    MPI_Recv(&nothing, 1, MPI_INT, (test_rank + 1) % test_size, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* The child that fails is the last one; the others wait for it, and must be ended. */
static void fail(const char *how)
{
    if (test_rank < test_size - 1)
        wait_for_the_end();
    if (strcmp(how, "killed") == 0)
        raise(SIGKILL);
    if (strcmp(how, "aborts") == 0)
        MPI_Abort(MPI_COMM_SELF, 3);
    if (strcmp(how, "exits") == 0)
        _exit(5);
    _exit(0); /* without MPI_Finalize */
}

/* What connects parents and children besides, and is given up one by one. */
static void part(MPI_Comm inter, bool high)
{
    MPI_Comm twin, all;
    MPI_Win window;
    int *memory;
    MPI_Comm_dup(inter, &twin);
    MPI_Intercomm_merge(twin, high, &all);
    MPI_Win_allocate(sizeof *memory, sizeof *memory, MPI_INFO_NULL, all, &memory, &window);
    CHECK_EQUAL(MPI_Comm_disconnect(&inter), MPI_SUCCESS);
    CHECK_EQUAL(MPI_Comm_disconnect(&all), MPI_SUCCESS);
    CHECK_EQUAL(MPI_Comm_disconnect(&twin), MPI_SUCCESS);
    CHECK_EQUAL(MPI_Win_free(&window), MPI_SUCCESS);
}

static void child(MPI_Comm parent, const char *how)
{
    int pid = (int)getpid();
    MPI_Comm below;
    if (strcmp(how, "grandchild") == 0) { /* stays connected with this one, which waits */
        char *words[] = {(char *)"killed", NULL};
        MPI_Comm_spawn(program, words, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &below, MPI_ERRCODES_IGNORE);
    }
    MPI_Gather(&pid, 1, MPI_INT, NULL, 0, MPI_INT, 0, parent);
    if (strcmp(how, "barely") == 0)
        MPI_Comm_disconnect(&parent);
    else
        part(parent, true);
    if (strcmp(how, "grandchild") == 0)
        MPI_Send(NULL, 0, MPI_INT, 0, 0, below);
    if (strcmp(how, "grandchild") == 0)
        wait_for_the_end();
    fail(how);
}

/* The one that is started by a child: it dies when that one has disconnected. */
static void grandchild(MPI_Comm parent)
{
    MPI_Recv(NULL, 0, MPI_INT, MPI_ANY_SOURCE, 0, parent, MPI_STATUS_IGNORE);
    fail("killed");
}

/* Until none of them is there; where processes of other hosts cannot be seen, it takes no time. */
static void wait_for_deaths(const int *pids)
{
    for (int i = 0; i < CHILDREN; i++)
        for (double until = test_now() + 20; kill(pids[i], 0) == 0 && errno != EPERM;) {
            if (test_now() > until) {
                test_fail(__FILE__, __LINE__, "no child", "process %d goes on", pids[i]);
                return;
            }
            test_sleep(0.01);
        }
}

static void spawn_and_part(const char *how)
{
    char *words[] = {(char *)how, NULL};
    int pids[CHILDREN] = {0}, sum = 0;
    MPI_Comm inter;
    CHECK_EQUAL(MPI_Comm_spawn(program, words, CHILDREN, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE),
                MPI_SUCCESS);
    MPI_Gather(NULL, 0, MPI_INT, pids, 1, MPI_INT, test_rank == 0 ? MPI_ROOT : MPI_PROC_NULL, inter);
    if (strcmp(how, "barely") == 0)
        MPI_Comm_disconnect(&inter);
    else
        part(inter, false);
    if (test_rank == 0)
        wait_for_deaths(pids);
    test_sleep(0.1); /* if this one is to be ended, it will be now */
    MPI_Allreduce(&test_rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK_EQUAL(sum, test_size * (test_size - 1) / 2);
}

int main(int argc, char **argv)
{
    static const char *const ways[] = {"killed", "aborts", "exits", "ends", "barely", "grandchild"};
    MPI_Comm parent;
    int failures = 0;
    test_begin(&argc, &argv);
    program = argv[0];
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL && test_size == CHILDREN)
        child(parent, argv[1]);
    else if (parent != MPI_COMM_NULL)
        grandchild(parent);
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++)
        spawn_and_part(ways[i]);
    MPI_Reduce(&(int){test_failures}, &failures, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (test_rank == 0 && failures == 0)
        printf("those who had parted are well\n");
    return test_end();
}
