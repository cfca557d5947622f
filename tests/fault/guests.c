/* Jobs that meet, one of which is killed at any moment (tests/fault/guests). Everybody reads or writes the name of a
 * port in FILE.
 *
 *   guests host FILE     opens a port, and accepts whoever comes, again and again, until one of them says that it is
 * over guests visit FILE    connects to whatever port is named there, again and again, until its host says so guests
 * come FILE     connects, uses the other job and disconnects, again and again, until it is killed guests wait FILE
 * opens a port, and does so with whoever comes guests last FILE     connects once, uses the other job, and says that it
 * is over guests end FILE      opens a port, and does so with whoever comes first */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { GO_ON, OVER, ROUNDS = 5, LONG = 200000 };

static int rank;
static const char *file;
static char port[MPI_MAX_PORT_NAME];
static int *out, *in; /* LONG of them */

static void fail(const char *what)
{
    fprintf(stderr, "rank %d: %s\n", rank, what);
    MPI_Abort(MPI_COMM_WORLD, 3);
}

static void tell_name(void)
{
    char other[4096];
    snprintf(other, sizeof other, "%s.%d", file, (int)getpid());
    FILE *f = fopen(other, "w");
    if (f == NULL || fputs(port, f) < 0 || fclose(f) != 0 || rename(other, file) != 0)
        fail("cannot tell the name of the port");
}

static void read_name(void)
{
    FILE *f = NULL;
    for (int i = 0; i < 6000 && f == NULL; i++) {
        f = fopen(file, "r");
        if (f == NULL)
            usleep(10000);
    }
    if (f == NULL || fgets(port, sizeof port, f) == NULL)
        fail("there is no name of a port");
    fclose(f);
}

/* Messages, short and long, from each to each of the others. */
static int use_messages(MPI_Comm inter)
{
    int others, code = MPI_SUCCESS;
    MPI_Comm_remote_size(inter, &others);
    for (int i = 0; i < others && code == MPI_SUCCESS; i++) {
        MPI_Request both[2];
        int count = i % 2 == 0 ? LONG : 1;
        in[0] = -1;
        code = MPI_Irecv(in, count, MPI_INT, i, 1, inter, &both[0]);
        if (code == MPI_SUCCESS)
            code = MPI_Isend(out, rank % 2 == 0 ? LONG : 1, MPI_INT, i, 1, inter, &both[1]);
        if (code == MPI_SUCCESS)
            code = MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
        if (code == MPI_SUCCESS && in[0] != i)
            fail("a message is not right");
    }
    return code;
}

/* What is made of the communicator, with processes of both. */
static int use_together(MPI_Comm inter, int high)
{
    MPI_Comm all = MPI_COMM_NULL, again = MPI_COMM_NULL;
    int one = 1, sum = 0, size = 0;
    int code = MPI_Intercomm_merge(inter, high, &all);
    if (code == MPI_SUCCESS) {
        MPI_Comm_set_errhandler(all, MPI_ERRORS_RETURN);
        MPI_Comm_size(all, &size);
        code = MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, all);
        if (code == MPI_SUCCESS && sum != size)
            fail("a sum is not right");
    }
    if (code == MPI_SUCCESS)
        code = MPI_Comm_dup(all, &again);
    if (code == MPI_SUCCESS)
        code = MPI_Barrier(again);
    if (again != MPI_COMM_NULL)
        MPI_Comm_free(&again);
    if (all != MPI_COMM_NULL)
        MPI_Comm_free(&all);
    return code;
}

/* Guests say whether it is over: `command` of their rank 0. */
static int use(MPI_Comm inter, int guest, int *command)
{
    int code = MPI_Bcast(command, 1, MPI_INT, !guest ? 0 : rank == 0 ? MPI_ROOT : MPI_PROC_NULL, inter);
    for (int i = 0; i < ROUNDS && code == MPI_SUCCESS; i++) {
        code = use_messages(inter);
        if (code == MPI_SUCCESS)
            code = use_together(inter, guest);
    }
    return code;
}

static void say(const char *what, int code)
{
    char text[MPI_MAX_ERROR_STRING];
    int length;
    MPI_Error_string(code, text, &length);
    printf("rank %d: %s: %s\n", rank, what, text);
    fflush(stdout);
}

/* Whoever is there, or was. Whether it has gone well, here. */
static int meet(int accepts, int guest, int *command)
{
    MPI_Comm inter = MPI_COMM_NULL;
    int code = accepts ? MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter)
                       : MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter);
    if (code != MPI_SUCCESS) {
        say(accepts ? "accept" : "connect", code);
        return 0;
    }
    MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
    code = use(inter, guest, command);
    if (code == MPI_SUCCESS)
        code = MPI_Comm_disconnect(&inter);
    if (code == MPI_SUCCESS)
        return 1;
    say("use", code);
    if (inter != MPI_COMM_NULL)
        MPI_Comm_free(&inter);
    return 0;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (argc != 3)
        fail("how, and where is the name of the port?");
    const char *how = argv[1];
    file = argv[2];
    int accepts = strcmp(how, "host") == 0 || strcmp(how, "wait") == 0 || strcmp(how, "end") == 0;
    int survives = strcmp(how, "host") == 0 || strcmp(how, "visit") == 0;
    int once = strcmp(how, "last") == 0 || strcmp(how, "end") == 0;
    out = calloc(LONG, sizeof *out);
    in = calloc(LONG, sizeof *in);
    if (out == NULL || in == NULL)
        fail("out of memory");
    out[0] = rank;
    if (accepts && rank == 0) {
        MPI_Open_port(MPI_INFO_NULL, port);
        tell_name();
    }
    int over = 0;
    for (int i = 0; i < 20000 && !over; i++) {
        int command = once ? OVER : GO_ON;
        if (!accepts && rank == 0)
            read_name(); /* the one who was there may be gone, and another one have come */
        int good = meet(accepts, !survives, &command);
        if (once && !good)
            fail("it should have gone well");
        over = once || (good && command == OVER);
        if (!good)
            usleep(10000);
        MPI_Allreduce(MPI_IN_PLACE, &over, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    }
    if (rank == 0)
        puts(over ? "done" : "in vain");
    return MPI_Finalize();
}
