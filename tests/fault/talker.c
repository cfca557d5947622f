/* A rank that prints without flushing: talker MODE
 *
 *   live      a line before MPI_Init and one behind it, then waits for the end of standard input
 *   segv, kill, exit, abort
 *             a line, then its end by a signal, by _exit(3), or by MPI_Abort
 *   wait      a line, `ready` on standard error, then waits for ever
 *   report    says on standard error how standard output is buffered: terminal, by lines, bytes
 *   own       the same, but asks for a buffer of its own first
 *   bytes     every byte there is, a hundred times, without order of lines */
#include <mpi.h>

#include <signal.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <string.h>
#include <unistd.h>

static void wait_for_input(void)
{
    char byte;
    while (read(0, &byte, 1) > 0)
        ;
}

static void report(void)
{
    fprintf(stderr, "terminal %d lines %d\n", isatty(1), __flbf(stdout) != 0);
}

static void all_bytes(void)
{
    for (int i = 0; i < 100 * 256; i++)
        putchar(i % 256);
}

int main(int argc, char **argv)
{
    static char room[65536];
    const char *mode = argc > 1 ? argv[1] : "live";
    if (strcmp(mode, "own") == 0)
        setvbuf(stdout, room, _IOFBF, sizeof room);
    if (strcmp(mode, "report") == 0 || strcmp(mode, "own") == 0) {
        report();
        MPI_Init(&argc, &argv);
        report();
        MPI_Finalize();
        return 0;
    }
    if (strcmp(mode, "bytes") != 0)
        printf("before MPI_Init\n");
    MPI_Init(&argc, &argv);
    if (strcmp(mode, "bytes") == 0)
        all_bytes();
    else
        printf("behind MPI_Init\n");
    if (strcmp(mode, "live") == 0)
        wait_for_input();
    if (strcmp(mode, "segv") == 0)
        raise(SIGSEGV);
    if (strcmp(mode, "kill") == 0)
        raise(SIGKILL);
    if (strcmp(mode, "exit") == 0)
        _exit(3);
    if (strcmp(mode, "abort") == 0)
        MPI_Abort(MPI_COMM_WORLD, 4);
    if (strcmp(mode, "wait") == 0) {
        fprintf(stderr, "ready\n");
        for (;;)
            pause();
    }
    MPI_Finalize();
    return 0;
}
