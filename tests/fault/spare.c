/* Starts two processes on each of the hosts that it is given, again and again: usage: spare UNIVERSE HOST... Those of
 * one call share memory, so they are on one host, and not with those of another. For tests/fault/options and
 * tests/lab/grid-run. */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 3
#define EACH   2

static int count_near(MPI_Comm comm)
{
    MPI_Comm near;
    int count;
    MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &near);
    MPI_Comm_size(near, &count);
    MPI_Comm_free(&near);
    return count;
}

static void check(const char *what, int expected, int seen)
{
    if (expected == seen)
        return;
    fprintf(stderr, "%s: %d instead of %d\n", what, seen, expected);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* As seen by the one who starts and by those who are started. */
static void meet(MPI_Comm between, int high)
{
    MPI_Comm all;
    int size;
    MPI_Intercomm_merge(between, high, &all);
    MPI_Comm_size(all, &size);
    check("of those who meet", 1 + EACH, size);
    check("on one host", high ? EACH : 1, count_near(all));
    MPI_Comm_disconnect(&all);
    MPI_Comm_disconnect(&between);
}

static void start(char *program, char *host)
{
    MPI_Comm workers;
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "host", host);
    MPI_Comm_spawn(program, MPI_ARGV_NULL, EACH, info, 0, MPI_COMM_SELF, &workers, MPI_ERRCODES_IGNORE);
    MPI_Info_free(&info);
    meet(workers, 0);
}

int main(int argc, char **argv)
{
    MPI_Comm parent;
    int *universe, known;
    MPI_Init(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        const char *late = getenv("SPARE_LATE"); /* what new processes leave running when they end */
        meet(parent, 1);
        if (late != NULL && system(late) != 0)
            return 1;
    } else {
        MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &universe, &known);
        check("universe", atoi(argv[1]), known ? *universe : 0);
        for (int i = 0; i < ROUNDS; i++)
            for (int k = 2; k < argc; k++)
                start(argv[0], argv[k]);
        puts("done");
    }
    MPI_Finalize();
    return 0;
}
