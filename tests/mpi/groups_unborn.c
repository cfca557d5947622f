/* A process that is started while the job runs joins a group and publishes a name, and then its world fails, since
 * another one of it never calls MPI_Init: what it has left goes with it, and its fellow member does not wait for it. */
#include "test.h"

#include <tombolo.h>
#include <unistd.h>

#define LONG 60.0

static const char name[] = "unborn";

/* The one that joins: the other one is to go on now. */
static void join_and_wait(int argc, char **argv, const char *path)
{
    test_begin(&argc, &argv);
    test_need(Tombolo_Group_join(name, 0, 0, NULL) == MPI_SUCCESS, "it cannot join");
    test_need(MPI_Publish_name(name, MPI_INFO_NULL, "port") == MPI_SUCCESS, "it cannot publish");
    FILE *file = fopen(path, "w");
    test_need(file != NULL && fclose(file) == 0, "it cannot make a file");
    sleep(2 * (unsigned)LONG); /* it is killed */
}

static int wait_and_fail(const char *path)
{
    for (double until = test_now() + LONG; access(path, F_OK) != 0 && test_now() < until;)
        test_sleep(0.01);
    return 3;
}

static void start(char *command, char *path)
{
    char *commands[] = {command, command}, *joins[] = {(char *)"joins", path, NULL},
         *fails[] = {(char *)"fails", path, NULL};
    char **words[] = {joins, fails};
    MPI_Info infos[] = {MPI_INFO_NULL, MPI_INFO_NULL};
    MPI_Comm inter;
    CHECK_CLASS(MPI_Comm_spawn_multiple(2, commands, words, (int[]){1, 1}, infos, 0, MPI_COMM_SELF, &inter,
                                        MPI_ERRCODES_IGNORE),
                MPI_ERR_SPAWN);
}

int main(int argc, char **argv)
{
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Group lost;
    int size = -1;
    char path[64], port[MPI_MAX_PORT_NAME];
    if (argc > 2 && strcmp(argv[1], "fails") == 0)
        return wait_and_fail(argv[2]);
    if (argc > 2)
        join_and_wait(argc, argv, argv[2]);
    test_begin(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    if (test_rank == 0) {
        snprintf(path, sizeof path, "/tmp/tombolo-unborn-%d", (int)getpid());
        CHECK_EQUAL(Tombolo_Group_join(name, 0, 0, NULL), MPI_SUCCESS);
        start(argv[0], path);
        CHECK_CLASS(Tombolo_Group_comm(name, 1, LONG, &comm), MPI_ERR_PROC_ABORTED);
        CHECK_EQUAL(Tombolo_Group_comm(name, 1, LONG, &comm), MPI_SUCCESS);
        MPI_Comm_size(comm, &size);
        CHECK_EQUAL(size, 1);
        MPI_Comm_free(&comm);
        CHECK_EQUAL(Tombolo_Group_lost(name, &lost), MPI_SUCCESS);
        MPI_Group_size(lost, &size);
        CHECK_EQUAL(size, 1);
        MPI_Group_free(&lost);
        CHECK_CLASS(MPI_Lookup_name(name, MPI_INFO_NULL, port), MPI_ERR_NAME);
        CHECK_EQUAL(Tombolo_Group_leave(name), MPI_SUCCESS);
        unlink(path);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    return test_end();
}
