/* The library is a guest: a rank may fork. What the child does (end by exit, run another program, be ended) does not
 * disturb the parent, and the child inherits no descriptor of the library. */
#include "test.h"

#include <dirent.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum child { CHILD_EXITS, CHILD_EXITS_AT_ONCE, CHILD_RUNS_PROGRAM, CHILD_IS_KILLED, CHILD_KINDS };

/* Open descriptors besides standard input, output and error. */
static int descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int count = 0;
    if (folder == NULL)
        return 100;
    for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder))
        count += entry->d_name[0] != '.' && atoi(entry->d_name) > 2 && atoi(entry->d_name) != dirfd(folder);
    closedir(folder);
    return count;
}

static void exchange(int round)
{
    enum { BYTES = 100000 };
    static unsigned char out[BYTES], in[BYTES + TEST_GUARD];
    for (int bytes = 1; bytes <= BYTES; bytes *= 10) {
        test_fill(out, (size_t)bytes, (uint64_t)(test_rank * 100 + round));
        test_clear(in, (size_t)bytes);
        MPI_Sendrecv(out, bytes, MPI_BYTE, test_next(), round, in, bytes, MPI_BYTE, test_previous(), round,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK_DATA(in, (size_t)bytes, (uint64_t)(test_previous() * 100 + round));
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void be_child(enum child kind, int hold)
{
    char byte;
    /* Lives while the parent exchanges messages. */
    if (read(hold, &byte, 1) < 0)
        _exit(90);
    close(hold);
    if (kind == CHILD_EXITS)
        exit(7);
    if (kind == CHILD_RUNS_PROGRAM)
        execl("/proc/self/exe", "fork", "--descriptors", (char *)NULL);
    if (kind == CHILD_IS_KILLED)
        raise(SIGKILL);
    _exit(8);
}

static void with_child(enum child kind)
{
    int hold[2], status = -1;
    test_need(pipe(hold) == 0, "a pipe cannot be made");
    fflush(NULL);
    pid_t pid = fork();
    test_need(pid >= 0, "a child cannot be started");
    if (pid == 0) {
        close(hold[1]);
        be_child(kind, hold[0]);
    }
    close(hold[0]);
    exchange(1);
    close(hold[1]);
    test_need(waitpid(pid, &status, 0) == pid, "the child cannot be waited for");
    if (kind == CHILD_IS_KILLED)
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "the child ended with status 0x%x", status);
    else if (kind == CHILD_RUNS_PROGRAM)
        CHECK(test_peer() || status == 0, "the child has %d descriptors of the library", WEXITSTATUS(status));
    else
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == (kind == CHILD_EXITS ? 7 : 8),
              "the child ended with status 0x%x", status);
    exchange(2);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--descriptors") == 0)
        return descriptors();
    test_begin(&argc, &argv);
    exchange(0);
    for (int kind = 0; kind < CHILD_KINDS; kind++)
        with_child((enum child)kind);
    /* Only some have a child. */
    if (test_rank % 2 == 0) {
        with_child(CHILD_EXITS);
    } else {
        exchange(1);
        exchange(2);
    }
    /* A child that outlives MPI_Finalize of its parent. */
    int hold[2];
    test_need(pipe(hold) == 0, "a pipe cannot be made");
    pid_t pid = fork();
    if (pid == 0) {
        close(hold[1]);
        be_child(CHILD_EXITS, hold[0]);
    }
    close(hold[0]);
    int failed = test_end(), status = -1;
    close(hold[1]);
    waitpid(pid, &status, 0);
    return failed || !WIFEXITED(status) || WEXITSTATUS(status) != 7;
}
