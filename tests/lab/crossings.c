/* Calls of collectives, one at a time, between which nothing at all is sent, so that what links have carried meanwhile
 * belongs to that call (tests/lab/crossings). Before each call there is another like it, which opens connections.
 *
 * usage: crossings FOLDER OPERATION:BYTES:ROOT ...
 *
 * The i-th call is made ready when FOLDER/warm.i is there, and each rank then makes the file FOLDER/ready.i.RANK. It
 * begins when FOLDER/go.i is there, and a rank makes FOLDER/done.i.RANK when its result has come and is right. */
#define _GNU_SOURCE
#include "../../bench/operations.h"

#include <fcntl.h>
#include <unistd.h>

#define LOOK_NS 1000000

static const char *folder;

static void make_file(const char *what, int number)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.%d.%d", folder, what, number, rank);
    int fd = open(path, O_CREAT | O_WRONLY, 0644);
    if (fd < 0)
        fail("cannot make a file");
    close(fd);
}

/* What others still want of this rank is done meanwhile. */
static void wait_for_file(const char *what, int number)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.%d", folder, what, number);
    while (access(path, F_OK) != 0) {
        int flag;
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
        nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
    }
}

static void call(const struct operation *op, int n)
{
    salt = (salt + 1) % 256;
    fill(op, n);
    op->run(n);
    check(op, n);
}

static void step(int number, char *what)
{
    char *rest = NULL, *name = strtok_r(what, ":", &rest), *bytes = strtok_r(NULL, ":", &rest);
    const struct operation *op = operation_of(name);
    int n = atoi(bytes);
    root = atoi(rest);
    room_open(op, n);
    wait_for_file("warm", number);
    call(op, n);
    make_file("ready", number);
    wait_for_file("go", number);
    call(op, n);
    make_file("done", number);
    room_close();
}

int main(int argc, char **argv)
{
    bench_open(&argc, &argv);
    if (argc < 2)
        fail("usage: crossings FOLDER OPERATION:BYTES:ROOT ...");
    folder = argv[1];
    for (int i = 2; i < argc; i++)
        step(i - 2, argv[i]);
    bench_close();
    return 0;
}
