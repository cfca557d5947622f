/* Jobs that meet in vain, or with ranks that have died (tests/fault/vain). The name of a port stands in FILE.
 *
 *   vain serve FILE      accepts one, and then whoever comes within milliseconds, until the first says that it is over
 *   vain call FILE       its first rank is that first one; the others connect again and again, with as little patience
 *   vain dying FILE HOST the last rank kills itself; when there is FILE.go, the others accept somebody at a port of
 * HOST, if there is one, alone; else, all are to, and what that comes to does not matter vain ask FILE        connects,
 * and asks each process of the other job something: the last may be lost */
#include <mpi.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ASK = 1, OVER, ROUNDS = 40, MOST = 4 * ROUNDS, PATIENCE_US = 3000 };
#define PATIENCE "0.003"

static int rank, size;
static char port[MPI_MAX_PORT_NAME];
static MPI_Comm made[MOST];

static void fail(const char *what)
{
    fprintf(stderr, "rank %d: %s\n", rank, what);
    MPI_Abort(MPI_COMM_WORLD, 3);
}

static void await_file(const char *file)
{
    for (int i = 0; access(file, R_OK) != 0; i++)
        if (i >= 60000 || usleep(1000) != 0)
            fail("there is no name of a port");
}

static void tell_name(const char *file)
{
    char other[4096];
    snprintf(other, sizeof other, "%s.new", file);
    FILE *f = fopen(other, "w");
    if (f == NULL || fputs(port, f) < 0 || fclose(f) != 0 || rename(other, file) != 0)
        fail("cannot tell the name of the port");
}

static void read_name(const char *file)
{
    await_file(file);
    FILE *f = fopen(file, "r");
    if (f == NULL || fgets(port, sizeof port, f) == NULL)
        fail("there is no name of a port");
    fclose(f);
}

/* What was there before works. */
static void exchange(MPI_Comm inter)
{
    int out = 5, in = 0;
    MPI_Sendrecv(&out, 1, MPI_INT, 0, ASK, &in, 1, MPI_INT, 0, ASK, inter, MPI_STATUS_IGNORE);
    if (in != out)
        fail("a message is not what was sent");
}

static void disconnect(int count)
{
    for (int i = 0; i < count; i++)
        MPI_Comm_disconnect(&made[i]);
}

static void serve(const char *file, MPI_Info patience)
{
    MPI_Comm first;
    int over = 0, count = 0, vain = 0;
    MPI_Open_port(MPI_INFO_NULL, port);
    tell_name(file);
    MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &first);
    MPI_Comm_set_errhandler(first, MPI_ERRORS_ARE_FATAL);
    while (!over && count < MOST) {
        if (MPI_Comm_accept(port, patience, 0, MPI_COMM_SELF, &made[count]) == MPI_SUCCESS)
            count++;
        else
            vain++;
        MPI_Iprobe(0, OVER, first, &over, MPI_STATUS_IGNORE);
    }
    exchange(first);
    MPI_Recv(NULL, 0, MPI_INT, 0, OVER, first, MPI_STATUS_IGNORE);
    printf("accepted %d, %d times in vain\n", count, vain);
    disconnect(count);
    MPI_Comm_disconnect(&first);
}

static void call(const char *file, MPI_Info patience)
{
    MPI_Comm first = MPI_COMM_NULL;
    int count = 0;
    read_name(file);
    if (rank == 0) {
        MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &first);
        MPI_Comm_set_errhandler(first, MPI_ERRORS_ARE_FATAL);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    srand((unsigned)getpid());
    for (int i = 0; rank > 0 && i < ROUNDS; i++) {
        usleep((unsigned)rand() % (PATIENCE_US * 3 / 2));
        count += MPI_Comm_connect(port, patience, 0, MPI_COMM_SELF, &made[count]) == MPI_SUCCESS;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        MPI_Send(NULL, 0, MPI_INT, 0, OVER, first);
        exchange(first);
        MPI_Comm_disconnect(&first);
    }
    disconnect(count);
}

static void dying(const char *file, const char *host)
{
    char go[4096];
    MPI_Comm other;
    MPI_Info info;
    if (rank == size - 1) {
        MPI_Recv(NULL, 0, MPI_INT, 0, OVER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        raise(SIGKILL);
    }
    MPI_Info_create(&info);
    if (host != NULL)
        MPI_Info_set(info, "host", host);
    MPI_Open_port(info, port);
    MPI_Info_free(&info);
    MPI_Send(NULL, 0, MPI_INT, size - 1, OVER, MPI_COMM_WORLD);
    snprintf(go, sizeof go, "%s.go", file);
    await_file(go); /* the launcher has said that it goes on */
    tell_name(file);
    if (MPI_Comm_accept(port, MPI_INFO_NULL, 0, host != NULL ? MPI_COMM_SELF : MPI_COMM_WORLD, &other) == MPI_SUCCESS) {
        exchange(other);
        MPI_Comm_disconnect(&other);
    } else {
        snprintf(go, sizeof go, "%s.asked", file); /* as long as we live, those who ask us would wait */
        await_file(go);
    }
}

static void ask(const char *file)
{
    MPI_Comm other;
    int others, in;
    char asked[4096];
    read_name(file);
    if (MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &other) != MPI_SUCCESS)
        fail("cannot connect");
    MPI_Comm_set_errhandler(other, MPI_ERRORS_RETURN);
    MPI_Comm_remote_size(other, &others);
    if (others == 1) {
        exchange(other);
        MPI_Comm_disconnect(&other);
        return;
    }
    if (MPI_Recv(&in, 1, MPI_INT, others - 1, ASK, other, MPI_STATUS_IGNORE) == MPI_SUCCESS)
        fail("one that is dead has answered");
    snprintf(asked, sizeof asked, "%s.asked", file);
    FILE *f = fopen(asked, "w");
    if (f == NULL || fclose(f) != 0)
        fail("cannot say that all were asked");
}

int main(int argc, char **argv)
{
    MPI_Info patience;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Info_create(&patience);
    MPI_Info_set(patience, "timeout", PATIENCE);
    if (argc < 3)
        fail("what?");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, strcmp(argv[1], "dying") == 0 ? MPI_ERRORS_RETURN : MPI_ERRORS_ARE_FATAL);
    if (strcmp(argv[1], "serve") == 0)
        serve(argv[2], patience);
    else if (strcmp(argv[1], "call") == 0)
        call(argv[2], patience);
    else if (strcmp(argv[1], "dying") == 0)
        dying(argv[2], argc > 3 ? argv[3] : NULL);
    else
        ask(argv[2]);
    MPI_Info_free(&patience);
    MPI_Finalize();
    if (rank == 0)
        printf("done\n");
    return 0;
}
