/* Threads of one process at both sides of a port: whoever is in both groups cannot meet itself, which both sides are
 * told, and the port goes on. */
#include "test.h"

#include <pthread.h>

#define ROUNDS 10

static char name[MPI_MAX_PORT_NAME];
static MPI_Comm all;

static void is_refused(const char *call, int code, MPI_Comm inter)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;
    CHECK_CLASS(code, MPI_ERR_COMM);
    MPI_Error_string(code, text, &length);
    CHECK(strncmp(text, call, strlen(call)) == 0 && strstr(text, "is in both groups") != NULL, "\"%s\"", text);
    CHECK(inter == MPI_COMM_NULL, "there is a communicator");
}

static void *accept_alone(void *unused)
{
    MPI_Comm inter = MPI_COMM_SELF;
    int code = MPI_Comm_accept(name, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter);
    is_refused("MPI_Comm_accept", code, inter);
    return NULL;
}

static void *accept_together(void *unused)
{
    MPI_Comm inter = MPI_COMM_SELF;
    int code = MPI_Comm_accept(name, MPI_INFO_NULL, 0, all, &inter);
    is_refused("MPI_Comm_accept", code, inter);
    return NULL;
}

/* In one process only, or where all accept together. */
static void meet_itself(void *(*accept)(void *), int round)
{
    pthread_t thread;
    MPI_Comm inter = MPI_COMM_SELF;
    bool alone = accept == accept_alone;
    if (alone && test_rank != 0)
        return;
    test_need(pthread_create(&thread, NULL, accept, NULL) == 0, "a thread cannot be started");
    if (round % 2 == 0)
        test_sleep(0.002); /* so that now this one comes first, now that one */
    if (alone || test_rank == test_size - 1) {
        int code = MPI_Comm_connect(name, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter);
        is_refused("MPI_Comm_connect", code, inter);
    }
    pthread_join(thread, NULL);
}

/* Two that are different. */
static void meet_another(void)
{
    MPI_Comm inter;
    int value = test_rank, got = -1;
    if (test_size < 2 || test_rank > 1)
        return;
    if (test_rank == 0)
        MPI_Comm_accept(name, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter);
    else
        MPI_Comm_connect(name, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter);
    MPI_Sendrecv(&value, 1, MPI_INT, 0, 1, &got, 1, MPI_INT, 0, 1, inter, MPI_STATUS_IGNORE);
    CHECK_EQUAL(got, 1 - test_rank);
    MPI_Comm_disconnect(&inter);
}

int main(int argc, char **argv)
{
    test_begin_threads(&argc, &argv, MPI_THREAD_MULTIPLE);
    MPI_Comm_dup(MPI_COMM_WORLD, &all);
    if (test_rank == 0)
        MPI_Open_port(MPI_INFO_NULL, name);
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(all, MPI_ERRORS_RETURN);
    for (int i = 0; i < ROUNDS; i++) {
        meet_itself(accept_alone, i);
        MPI_Barrier(MPI_COMM_WORLD);
        meet_itself(accept_together, i);
        meet_another();
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Comm_free(&all);
    return test_end();
}
