/* Two jobs that were started apart and meet.
 *
 *   apart serve FILE HOW...    opens a port, writes its name to FILE, and accepts
 *   apart visit FILE HOW...    reads it, and connects
 *
 * HOW: use N      they meet N times, and try everything each time
 *      finish     disconnect, say so, and wait until FILE is gone
 *      stay       the same while they are connected; then say what becomes of a receive
 *      keep       the same as finish, but what keeps communicators is freed after they are; serve does not wait
 *      each N     all of N visitors connect at once, each by itself; serve makes more communicators with each of them
 *      join       two processes with a socket between them, whose path is FILE.socket
 *      lone N     serve: N times the same with whoever comes; visit: once; one or both were not started by mpiexec
 *      bad NAME   connect to NAME, and say what came of it
 *      refused    try to meet once, and say what came of it
 *      closed     serve: close the port at once, and go on
 *      name NAME  serve: publish the port, and accept; visit: look it up, and connect
 *      seek NAME  look it up, at once, and say what came of it */
#include <mpi.h>
#include <tombolo.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int rank, size;
static int serves;
static const char *file;

#define CHECK(good)                                                                                                    \
    do {                                                                                                               \
        if (!(good)) {                                                                                                 \
            fprintf(stderr, "rank %d, line %d: %s\n", rank, __LINE__, #good);                                          \
            MPI_Abort(MPI_COMM_WORLD, 3);                                                                              \
        }                                                                                                              \
    } while (0)

/* ---- everything -------------------------------------------------------------------------------------------------- */

/* Nobody receives them before all have left: each side may keep as many as the other may send without asking. */
static void use_early_messages(MPI_Comm inter)
{
    enum { EARLY = 40, BYTES = 16000 };
    static char out[EARLY][BYTES], in[BYTES];
    int others;
    MPI_Request requests[EARLY];
    MPI_Comm_remote_size(inter, &others);
    for (int i = 0; i < EARLY && rank == 0; i++) {
        memset(out[i], i, BYTES);
        MPI_Isend(out[i], BYTES, MPI_CHAR, others - 1, 9, inter, &requests[i]);
    }
    MPI_Barrier(inter);
    MPI_Barrier(inter); /* and they have come, as far as they may */
    for (int i = 0; i < EARLY && rank == size - 1; i++) {
        MPI_Recv(in, BYTES, MPI_CHAR, 0, 9, inter, MPI_STATUS_IGNORE);
        CHECK(in[0] == i && in[BYTES - 1] == i);
    }
    if (rank == 0)
        MPI_Waitall(EARLY, requests, MPI_STATUSES_IGNORE);
}

static void use_messages(MPI_Comm inter)
{
    enum { LONG = 3000000 };
    int others, mine;
    MPI_Comm_remote_size(inter, &others);
    MPI_Comm_size(inter, &mine);
    for (int i = 0; i < others; i++) {
        int out = 1000 * serves + rank, in = -1;
        MPI_Sendrecv(&out, 1, MPI_INT, i, 7, &in, 1, MPI_INT, i, 7, inter, MPI_STATUS_IGNORE);
        CHECK(in == 1000 * !serves + i);
    }
    char *to = malloc(LONG), *from = calloc(1, LONG);
    CHECK(to != NULL && from != NULL);
    memset(to, 'a' + serves, LONG);
    if (rank < others && rank < mine) {
        MPI_Request both[2];
        MPI_Irecv(from, LONG, MPI_CHAR, rank, 8, inter, &both[0]);
        MPI_Isend(to, LONG, MPI_CHAR, rank, 8, inter, &both[1]);
        MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
        for (int i = 0; i < LONG; i++)
            CHECK(from[i] == 'a' + !serves);
    }
    free(to);
    free(from);
    int own = rank + 1, sum = 0;
    MPI_Barrier(inter);
    MPI_Allreduce(&own, &sum, 1, MPI_INT, MPI_SUM, inter);
    CHECK(sum == others * (others + 1) / 2);
}

static void use_collectives(MPI_Comm all)
{
    enum { BYTES = 200000 };
    int count, me, one = 1, sum = 0;
    MPI_Comm_size(all, &count);
    MPI_Comm_rank(all, &me);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, all);
    CHECK(sum == count);
    int *ranks = malloc((size_t)count * sizeof *ranks);
    char *data = malloc(BYTES);
    CHECK(ranks != NULL && data != NULL);
    MPI_Allgather(&me, 1, MPI_INT, ranks, 1, MPI_INT, all);
    for (int i = 0; i < count; i++)
        CHECK(ranks[i] == i);
    for (int root = 0; root < count; root++) {
        memset(data, me == root ? root + 1 : 0, BYTES);
        MPI_Bcast(data, BYTES, MPI_CHAR, root, all);
        CHECK(data[0] == root + 1 && data[BYTES - 1] == root + 1);
    }
    free(ranks);
    free(data);
}

/* Each rank's part is larger than what ranks of a host agree on, so that it matters where it stands. */
static void use_window(MPI_Comm all)
{
    enum { INTS = 300000 };
    int count, me, *base, *data = malloc(INTS * sizeof *data), unit;
    MPI_Win win;
    MPI_Comm_size(all, &count);
    MPI_Comm_rank(all, &me);
    CHECK(data != NULL);
    MPI_Win_allocate(INTS * sizeof *base, sizeof *base, MPI_INFO_NULL, all, &base, &win);
    for (int i = 0; i < INTS; i++)
        base[i] = 0;
    MPI_Win_fence(0, win);
    for (int i = 0; i < count; i++)
        MPI_Put(&me, 1, MPI_INT, i, INTS - 1 - me, 1, MPI_INT, win);
    MPI_Win_fence(0, win);
    for (int i = 0; i < count; i++)
        CHECK(base[INTS - 1 - i] == i);
    MPI_Barrier(all);
    for (int i = 0; i < count; i++) {
        const int one = 1;
        int before = -1;
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, i, 0, win);
        MPI_Get(data, INTS, MPI_INT, i, 0, INTS, MPI_INT, win);
        MPI_Win_unlock(i, win);
        CHECK(data[INTS - 1] == 0 && data[INTS - count] == count - 1);
        MPI_Win_lock(MPI_LOCK_SHARED, i, 0, win);
        MPI_Fetch_and_op(&one, &before, MPI_INT, i, 0, MPI_SUM, win);
        MPI_Win_unlock(i, win);
        CHECK(before >= 0 && before < count);
    }
    MPI_Barrier(all);
    CHECK(base[0] == count);
    for (int i = 0, first = serves ? 0 : size; i < count - size; i++) { /* those of the other job */
        MPI_Aint bytes;
        int *theirs;
        MPI_Win_shared_query(win, first + i, &bytes, &unit, &theirs);
        CHECK(bytes == 0 && theirs == NULL);
    }
    MPI_Win_free(&win);
    MPI_Comm_set_errhandler(all, MPI_ERRORS_RETURN);
    int code = MPI_Win_allocate_shared(8, 1, MPI_INFO_NULL, all, &base, &win), class;
    MPI_Error_class(code, &class);
    CHECK(class == MPI_ERR_RMA_SHARED);
    MPI_Comm_set_errhandler(all, MPI_ERRORS_ARE_FATAL);
    free(data);
}

/* What is made of communicators with processes of both. */
static void use_communicators(MPI_Comm inter, MPI_Comm all)
{
    MPI_Comm made, again;
    MPI_Group ours, theirs, both;
    int count, me;
    MPI_Comm_rank(all, &me);
    MPI_Comm_dup(all, &made);
    use_collectives(made);
    MPI_Comm_free(&made);
    MPI_Comm_split(all, me % 2, me, &made);
    MPI_Barrier(made);
    MPI_Comm_free(&made);
    MPI_Comm_split_type(all, MPI_COMM_TYPE_SHARED, me, MPI_INFO_NULL, &made);
    MPI_Comm_size(made, &count);
    CHECK(count <= size); /* whatever hosts they are on, jobs share none */
    MPI_Comm_free(&made);
    MPI_Comm_group(inter, &ours);
    MPI_Comm_remote_group(inter, &theirs);
    MPI_Group_intersection(ours, theirs, &both);
    MPI_Group_size(both, &count);
    CHECK(count == 0);
    MPI_Intercomm_create(MPI_COMM_WORLD, 0, all, serves ? 0 : size, 5, &again); /* leaders know each other by `all` */
    MPI_Barrier(again);
    MPI_Comm_free(&again);
    MPI_Comm_dup(inter, &again);
    use_messages(again);
    MPI_Comm_free(&again);
    MPI_Group_free(&ours);
    MPI_Group_free(&theirs);
    if (both != MPI_GROUP_EMPTY)
        MPI_Group_free(&both);
}

/* Processes of the other job count in the inbox of a group of this one, and nothing leads to them there; whoever tries
 * is told, and the jobs stay connected. */
static void use_inbox(void)
{
    static char data[100000];
    MPI_Comm inbox;
    int processes, class;
    Tombolo_Group_join("ours", 0, 0, NULL);
    Tombolo_Group_inbox("ours", &inbox);
    MPI_Comm_size(inbox, &processes);
    CHECK(processes > size);
    MPI_Comm_set_errhandler(inbox, MPI_ERRORS_RETURN);
    for (int i = size; i < processes; i++)
        for (int bytes = 0; bytes < (int)sizeof data; bytes += 49999) {
            MPI_Error_class(MPI_Send(data, bytes, MPI_CHAR, i, 1, inbox), &class);
            CHECK(class == MPI_ERR_RANK);
        }
    Tombolo_Group_leave("ours");
}

static void use(MPI_Comm inter)
{
    MPI_Comm all;
    use_inbox();
    use_messages(inter);
    use_inbox();
    use_early_messages(inter);
    MPI_Intercomm_merge(inter, serves, &all);
    use_collectives(all);
    use_window(all);
    use_communicators(inter, all);
    MPI_Comm_free(&all);
}

/* ---- meeting ----------------------------------------------------------------------------------------------------- */

static void tell_name(const char *name)
{
    char other[4096];
    snprintf(other, sizeof other, "%s.part", file);
    FILE *f = fopen(other, "w");
    CHECK(f != NULL && fputs(name, f) >= 0 && fclose(f) == 0 && rename(other, file) == 0);
}

static void read_name(char *name)
{
    FILE *f = NULL;
    for (int i = 0; i < 3000 && f == NULL; i++) {
        f = fopen(file, "r");
        if (f == NULL)
            usleep(10000);
    }
    CHECK(f != NULL && fgets(name, MPI_MAX_PORT_NAME, f) != NULL);
    fclose(f);
}

static void meet(const char *name, MPI_Comm *inter)
{
    if (serves)
        MPI_Comm_accept(name, MPI_INFO_NULL, 0, MPI_COMM_WORLD, inter);
    else
        MPI_Comm_connect(name, MPI_INFO_NULL, 0, MPI_COMM_WORLD, inter);
}

static void say(const char *what, int code)
{
    char text[MPI_MAX_ERROR_STRING] = "no error";
    int length, class;
    MPI_Error_class(code, &class);
    if (code != MPI_SUCCESS)
        MPI_Error_string(code, text, &length);
    printf("%s: %s: %s\n", what, class == MPI_ERR_PORT ? "port" : class == MPI_SUCCESS ? "success" : "other", text);
    fflush(stdout);
}

/* Until the test has taken the file away. */
static void await_word(void)
{
    while (access(file, F_OK) == 0)
        usleep(10000);
}

static void stay(MPI_Comm inter)
{
    int value;
    MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
    if (rank == 0)
        puts("connected"), fflush(stdout);
    say("receive", MPI_Recv(&value, 1, MPI_INT, 0, 1, inter, MPI_STATUS_IGNORE));
    if (MPI_Barrier(inter) == MPI_SUCCESS)
        MPI_Abort(MPI_COMM_WORLD, 4);
    MPI_Comm_free(&inter);
}

/* A window and a request are the last of what they have in common. */
static void keep(MPI_Comm inter)
{
    MPI_Comm all;
    MPI_Win win;
    MPI_Request request;
    int value, *base;
    MPI_Intercomm_merge(inter, serves, &all);
    MPI_Win_allocate(sizeof *base, 1, MPI_INFO_NULL, all, &base, &win);
    MPI_Recv_init(&value, 1, MPI_INT, 0, 3, inter, &request);
    MPI_Comm_disconnect(&all);
    MPI_Comm_disconnect(&inter);
    MPI_Win_free(&win);
    MPI_Request_free(&request);
}

/* One of the visitors: everything that is agreed on with it later is with it, as it is known by that meeting. */
static void use_one(MPI_Comm inter, MPI_Comm mine)
{
    MPI_Comm all, again, part;
    MPI_Group own;
    int me, value = -1;
    MPI_Intercomm_merge(inter, !serves, &all);
    use_collectives(all);
    MPI_Intercomm_create(mine, 0, all, serves ? size : 0, 5, &again);
    if (serves)
        MPI_Recv(&value, 1, MPI_INT, 0, 2, again, MPI_STATUS_IGNORE);
    MPI_Comm_remote_size(again, &me);
    for (int i = 0; i < me && !serves; i++)
        MPI_Send(&rank, 1, MPI_INT, i, 2, again);
    MPI_Barrier(again);
    MPI_Comm_disconnect(&again);
    MPI_Comm_group(mine, &own);
    MPI_Comm_create(inter, own, &part);
    MPI_Barrier(part);
    MPI_Comm_disconnect(&part);
    MPI_Group_free(&own);
    MPI_Comm_disconnect(&all);
}

static void each(const char *name, int count)
{
    MPI_Comm inters[16];
    CHECK(count <= 16);
    if (serves)
        usleep(500000); /* they have all come by then, of whom nobody knows that the others have */
    for (int i = 0; i < (serves ? count : 1); i++)
        if (serves)
            MPI_Comm_accept(name, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inters[i]);
        else
            MPI_Comm_connect(name, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inters[i]);
    for (int i = 0; i < (serves ? count : 1); i++)
        use_one(inters[i], serves ? MPI_COMM_WORLD : MPI_COMM_SELF);
    for (int i = 0; i < (serves ? count : 1); i++)
        MPI_Comm_disconnect(&inters[i]);
}

/* At the path FILE.socket; who serves takes as many as come. */
static int socket_open(int *door)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    snprintf(name.sun_path, sizeof name.sun_path, "%s.socket", file);
    int fd = *door >= 0 ? *door : socket(AF_UNIX, SOCK_STREAM, 0);
    if (serves) {
        if (*door < 0)
            CHECK(bind(fd, (struct sockaddr *)&name, sizeof name) == 0 && listen(fd, 16) == 0);
        *door = fd;
        return accept(fd, NULL, NULL);
    }
    while (connect(fd, (struct sockaddr *)&name, sizeof name) != 0)
        usleep(10000);
    return fd;
}

static void join(void)
{
    MPI_Comm other;
    int value = serves ? 11 : 22, got = -1, size_of_it, door = -1, fd = socket_open(&door);
    MPI_Comm_join(fd, &other);
    CHECK(other != MPI_COMM_NULL);
    MPI_Comm_remote_size(other, &size_of_it);
    MPI_Sendrecv(&value, 1, MPI_INT, 0, 0, &got, 1, MPI_INT, 0, 0, other, MPI_STATUS_IGNORE);
    CHECK(size_of_it == 1 && got == 33 - value);
    MPI_Comm_disconnect(&other);
    close(fd);
    close(door);
}

/* Which of two would open a port is chance; there is none either way, and nobody waits for one. */
static void join_in_vain(int count)
{
    int door = -1;
    for (int i = 0; i < count; i++) {
        MPI_Comm other = MPI_COMM_SELF;
        int fd = socket_open(&door);
        CHECK(MPI_Comm_join(fd, &other) == MPI_SUCCESS && other == MPI_COMM_NULL);
        close(fd);
    }
    close(door);
}

static void bad(const char *name)
{
    MPI_Comm inter = MPI_COMM_SELF;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    say("connect", MPI_Comm_connect(name, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter));
    CHECK(inter == MPI_COMM_NULL);
}

static void refused(const char *name)
{
    MPI_Comm inter = MPI_COMM_SELF;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    say(serves ? "accept" : "connect", serves ? MPI_Comm_accept(name, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter)
                                              : MPI_Comm_connect(name, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter));
    CHECK(inter == MPI_COMM_NULL);
}

static void seek(const char *service)
{
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    say("lookup", MPI_Lookup_name(service, MPI_INFO_NULL, port));
    say("publish", MPI_Publish_name("mine", MPI_INFO_NULL, "some port"));
}

/* By a name; the file says only that all is done. */
static void meet_by_name(const char *service)
{
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm inter;
    MPI_Info patience;
    MPI_Info_create(&patience);
    MPI_Info_set(patience, "tombolo_timeout", "20");
    if (serves && rank == 0) {
        MPI_Open_port(MPI_INFO_NULL, port);
        MPI_Publish_name(service, MPI_INFO_NULL, port);
    } else if (rank == 0) {
        MPI_Lookup_name(service, patience, port);
    }
    meet(port, &inter);
    use(inter);
    MPI_Comm_disconnect(&inter);
    MPI_Info_free(&patience);
    if (rank == 0)
        puts("disconnected"), fflush(stdout);
    if (serves)
        await_word();
    if (serves && rank == 0)
        MPI_Unpublish_name(service, MPI_INFO_NULL, port);
}

int main(int argc, char **argv)
{
    char name[MPI_MAX_PORT_NAME] = "";
    MPI_Comm inter;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK(argc > 3);
    serves = strcmp(argv[1], "serve") == 0;
    file = argv[2];
    const char *how = argv[3];
    int rounds = strcmp(how, "use") == 0 ? atoi(argv[4]) : 1;
    if (strcmp(how, "join") == 0)
        join();
    else if (strcmp(how, "lone") == 0)
        join_in_vain(atoi(argv[4]));
    else if (strcmp(how, "bad") == 0)
        bad(argv[4]);
    else if (strcmp(how, "seek") == 0)
        seek(argv[4]);
    else if (strcmp(how, "name") == 0)
        meet_by_name(argv[4]);
    if (strcmp(how, "join") == 0 || strcmp(how, "lone") == 0 || strcmp(how, "bad") == 0 || strcmp(how, "seek") == 0 ||
        strcmp(how, "name") == 0)
        return MPI_Finalize();
    if (serves && rank == 0) {
        MPI_Open_port(MPI_INFO_NULL, name);
        if (strcmp(how, "closed") == 0)
            MPI_Close_port(name);
        tell_name(name);
    } else if (rank == 0) {
        read_name(name);
    }
    if (strcmp(how, "each") == 0) {
        MPI_Bcast(name, MPI_MAX_PORT_NAME, MPI_CHAR, 0, MPI_COMM_WORLD);
        each(name, atoi(argv[4]));
        return MPI_Finalize();
    }
    if (strcmp(how, "refused") == 0) {
        refused(name);
        rounds = 0;
    }
    for (int i = 0; i < rounds && strcmp(how, "closed") != 0; i++) {
        meet(name, &inter);
        if (strcmp(how, "use") == 0)
            use(inter);
        if (strcmp(how, "stay") == 0)
            stay(inter);
        else if (strcmp(how, "keep") == 0)
            keep(inter);
        else
            MPI_Comm_disconnect(&inter);
    }
    if ((strcmp(how, "finish") == 0 || strcmp(how, "keep") == 0) && rank == 0)
        puts("disconnected"), fflush(stdout);
    if (strcmp(how, "use") != 0 && strcmp(how, "refused") != 0 && (strcmp(how, "keep") != 0 || !serves))
        await_word();
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        puts("done");
    return MPI_Finalize();
}
