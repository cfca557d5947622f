/* Groups that find each other by a port: the ranks with odd and with even numbers, then the ranks and processes that
 * they have started; many pairs one after the other, ports that are closed, gone or were never there, names that were
 * typed wrong, time limits, and MPI_Comm_join by a socket. */
#include "test.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define PAIRS 20

static char *own_name;

/* A value goes round: each side has the other's. */
static void greet(MPI_Comm inter, int value, int expected)
{
    int got = -1, theirs;
    MPI_Comm_remote_size(inter, &theirs);
    for (int i = 0; i < theirs; i++) {
        MPI_Sendrecv(&value, 1, MPI_INT, i, 1, &got, 1, MPI_INT, i, 1, inter, MPI_STATUS_IGNORE);
        CHECK_EQUAL(got, expected);
    }
}

/* Everyone is in one of the two groups; the first of the even ones opens the port. */
static void halves(MPI_Comm half, bool even, int again)
{
    char name[MPI_MAX_PORT_NAME] = "";
    int size;
    MPI_Comm inter;
    MPI_Comm_size(half, &size);
    if (test_rank == 0)
        MPI_Open_port(MPI_INFO_NULL, name);
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    for (int i = 0; i < again; i++) {
        int root = i % size;
        if (even)
            MPI_Comm_accept(name, MPI_INFO_NULL, root, half, &inter);
        else
            MPI_Comm_connect(name, MPI_INFO_NULL, root, half, &inter);
        greet(inter, even ? i : -i, even ? -i : i);
        MPI_Comm_disconnect(&inter);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (test_rank == 0)
        MPI_Close_port(name);
}

/* Two worlds meet that have nothing in common but the name. */
static void strangers(void)
{
    char name[MPI_MAX_PORT_NAME] = "";
    char *words[] = {name, NULL};
    MPI_Comm children, inter;
    if (test_rank == 0)
        MPI_Open_port(MPI_INFO_NULL, name);
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    MPI_Comm_spawn(own_name, words, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
    MPI_Comm_disconnect(&children);
    MPI_Comm_accept(name, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter);
    greet(inter, 17, 18);
    MPI_Comm_disconnect(&inter);
    if (test_rank == 0)
        MPI_Close_port(name);
}

static int stranger(MPI_Comm parent, const char *name)
{
    MPI_Comm inter;
    MPI_Comm_disconnect(&parent);
    MPI_Comm_connect(name, MPI_INFO_NULL, 1, MPI_COMM_WORLD, &inter);
    greet(inter, 18, 17);
    MPI_Comm_disconnect(&inter);
    return test_end();
}

/* Each character of the name, typed wrong. */
static void mistyped(void)
{
    char name[MPI_MAX_PORT_NAME], wrong[MPI_MAX_PORT_NAME];
    MPI_Comm inter;
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Open_port(MPI_INFO_NULL, name);
    for (size_t i = 0; name[i] != 0 && name[i] != '@'; i++) {
        memcpy(wrong, name, sizeof name);
        wrong[i] = name[i] == '1' ? '2' : '1';
        CHECK_CLASS(MPI_Comm_connect(wrong, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter), MPI_ERR_PORT);
    }
    MPI_Close_port(name);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
}

static void failures(void)
{
    char name[MPI_MAX_PORT_NAME];
    MPI_Comm inter = MPI_COMM_WORLD;
    MPI_Info info;
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    CHECK_CLASS(MPI_Comm_connect("nonsense", MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter), MPI_ERR_PORT);
    CHECK(inter == MPI_COMM_NULL, "there is a communicator");
    CHECK_CLASS(MPI_Comm_accept("tombolo:1:2:3", MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter), MPI_ERR_PORT);
    CHECK_CLASS(MPI_Close_port("nonsense"), MPI_ERR_PORT);
    CHECK_EQUAL(MPI_Open_port(MPI_INFO_NULL, name), MPI_SUCCESS);
    MPI_Info_create(&info);
    static const char *const bad[] = {"soon", "", "-1", "1 s", "nan"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        MPI_Info_set(info, "timeout", bad[i]);
        CHECK_CLASS(MPI_Comm_accept(name, info, 0, MPI_COMM_SELF, &inter), MPI_ERR_INFO_VALUE);
        CHECK_CLASS(MPI_Comm_connect(name, info, 0, MPI_COMM_SELF, &inter), MPI_ERR_INFO_VALUE);
    }
    MPI_Info_set(info, "timeout", "0"); /* at once */
    CHECK_CLASS(MPI_Comm_accept(name, info, 0, MPI_COMM_SELF, &inter), MPI_ERR_PORT);
    MPI_Info_set(info, "timeout", "0.05");
    CHECK_CLASS(MPI_Comm_accept(name, info, 0, MPI_COMM_SELF, &inter), MPI_ERR_PORT);
    CHECK_CLASS(MPI_Comm_connect(name, info, 0, MPI_COMM_SELF, &inter), MPI_ERR_PORT);
    MPI_Info_free(&info);
    CHECK_EQUAL(MPI_Close_port(name), MPI_SUCCESS);
    CHECK_CLASS(MPI_Comm_connect(name, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter), MPI_ERR_PORT);
    CHECK_CLASS(MPI_Close_port(name), MPI_ERR_PORT);
    CHECK_CLASS(MPI_Comm_accept(name, MPI_INFO_NULL, 1, MPI_COMM_SELF, &inter), MPI_ERR_ROOT);
    CHECK_CLASS(MPI_Comm_join(-1, &inter), MPI_ERR_ARG);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
}

/* Who waits at a port that is closed is told. */
static void closed_while_waiting(void)
{
    char name[MPI_MAX_PORT_NAME] = "";
    MPI_Comm inter;
    if (test_size < 2)
        return;
    if (test_rank == 0)
        MPI_Open_port(MPI_INFO_NULL, name);
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    if (test_rank == 0) {
        usleep(50000);
        MPI_Close_port(name);
    } else {
        CHECK_CLASS(MPI_Comm_connect(name, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter), MPI_ERR_PORT);
    }
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Both ends of a socket are here, in two threads of one process or not at all: so only what goes wrong. */
static void join_nobody(void)
{
    int ends[2];
    MPI_Comm inter = MPI_COMM_WORLD;
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    CHECK_EQUAL(write(ends[1], "this is no introduction of a process", 36), 36);
    CHECK_CLASS(MPI_Comm_join(ends[0], &inter), MPI_ERR_ARG);
    CHECK(inter == MPI_COMM_NULL, "there is a communicator");
    close(ends[1]);
    close(ends[0]);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
}

/* Whoever was at the other end has closed it, before the call or in it, with bytes unread: an error, and no SIGPIPE. */
static void join_the_closed(void)
{
    int ends[2];
    MPI_Comm inter = MPI_COMM_WORLD;
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    close(ends[1]);
    CHECK_CLASS(MPI_Comm_join(ends[0], &inter), MPI_ERR_OTHER);
    CHECK(inter == MPI_COMM_NULL, "there is a communicator");
    close(ends[0]);
    CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    CHECK_EQUAL(shutdown(ends[1], SHUT_WR), 0);
    CHECK_CLASS(MPI_Comm_join(ends[0], &inter), MPI_ERR_OTHER);
    CHECK_EQUAL(write(ends[0], "unread", 6), 6);
    close(ends[1]);
    CHECK_CLASS(MPI_Comm_join(ends[0], &inter), MPI_ERR_OTHER);
    close(ends[0]);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
}

/* What goes in one direction only is no stream for two, and one that nobody reads must not end the process. */
static void join_by_a_pipe(void)
{
    int ends[2];
    MPI_Comm inter = MPI_COMM_WORLD;
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    CHECK_EQUAL(pipe(ends), 0);
    CHECK_CLASS(MPI_Comm_join(ends[0], &inter), MPI_ERR_ARG);
    close(ends[0]);
    CHECK_CLASS(MPI_Comm_join(ends[1], &inter), MPI_ERR_ARG);
    CHECK(inter == MPI_COMM_NULL, "there is a communicator");
    close(ends[1]);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
}

/* As this process introduces itself at a socket. */
struct introduction {
    uint32_t magic, job, index, alone;
    uint64_t context;
};

/* Whoever is at the other end cannot make this process use a context that is not its own to give. */
static void join_an_impostor(void)
{
    int ends[2];
    MPI_Comm inter = MPI_COMM_WORLD;
    struct introduction mine = {0}, forged;
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    for (int round = 0; round < 2; round++) {
        forged = mine; /* nonsense at first; then it is known how one looks */
        forged.index = mine.index > 0 ? 0 : 1;
        CHECK_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
        CHECK_EQUAL(write(ends[1], &forged, sizeof forged), (ssize_t)sizeof forged);
        CHECK_CLASS(MPI_Comm_join(ends[0], &inter), MPI_ERR_ARG);
        CHECK(inter == MPI_COMM_NULL, "there is a communicator");
        CHECK_EQUAL(read(ends[1], &mine, sizeof mine), (ssize_t)sizeof mine);
        close(ends[1]);
        close(ends[0]);
    }
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
}

/* A socket between the first two ranks; -1: they are not on one host. */
static int connect_pair(void)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int pid = (int)getpid(), fd = socket(AF_UNIX, SOCK_STREAM, 0), accepted;
    MPI_Bcast(&pid, 1, MPI_INT, 0, MPI_COMM_WORLD);
    snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "tombolo-test-ports-%d", pid);
    if (test_rank == 0)
        CHECK(bind(fd, (struct sockaddr *)&name, sizeof name) == 0 && listen(fd, 1) == 0, "there is no socket");
    MPI_Barrier(MPI_COMM_WORLD);
    int there = test_rank != 1 || connect(fd, (struct sockaddr *)&name, sizeof name) == 0;
    MPI_Bcast(&there, 1, MPI_INT, 1, MPI_COMM_WORLD);
    if (test_rank == 0 && there) {
        accepted = accept(fd, NULL, NULL);
        close(fd);
        fd = accepted;
    }
    if (test_rank < 2 && there)
        return fd;
    close(fd);
    return -1;
}

/* Who waits for the other end makes progress, without which that end would never come. */
static void join_somebody(void)
{
    enum { BYTES = 4 << 20 };
    char *data;
    MPI_Request request;
    MPI_Comm inter;
    int fd = test_size > 1 ? connect_pair() : -1;
    if (fd < 0)
        return;
    data = test_memory(BYTES);
    if (test_rank == 0) {
        MPI_Irecv(data, BYTES, MPI_BYTE, 1, 7, MPI_COMM_WORLD, &request);
    } else {
        test_fill(data, BYTES, 5);
        test_sleep(0.05);
        MPI_Ssend(data, BYTES, MPI_BYTE, 0, 7, MPI_COMM_WORLD);
    }
    CHECK_EQUAL(MPI_Comm_join(fd, &inter), MPI_SUCCESS);
    if (test_rank == 0)
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK_DATA(data, BYTES, 5);
    greet(inter, test_rank, 1 - test_rank);
    MPI_Comm_disconnect(&inter);
    close(fd);
    free(data);
}

int main(int argc, char **argv)
{
    MPI_Comm parent, half;
    own_name = argv[0];
    test_begin(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL)
        return stranger(parent, argc > 1 ? argv[1] : "");
    MPI_Comm_split(MPI_COMM_WORLD, test_rank % 2, 0, &half);
    if (test_size > 1)
        halves(half, test_rank % 2 == 0, PAIRS);
    strangers();
    if (!test_peer()) {
        failures();
        mistyped();
        closed_while_waiting();
        join_nobody();
        join_the_closed();
        join_by_a_pipe();
        join_an_impostor();
        join_somebody();
    }
    MPI_Comm_free(&half);
    return test_end();
}
