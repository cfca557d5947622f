/* Ranks that wait in many ways until SIGUSR1 has come: waiter KIND. Each says "ready" before it waits; then all go on
 * and end well. Rank 1 is the one that the others wait for. */
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t released;
static int rank, size;
static MPI_Comm halo;

static void release(int number)
{
    released = 1;
}

static void sleep_outside(void)
{
    while (!released)
        usleep(5000);
}

static void ready(void)
{
    printf("ready\n");
    fflush(stdout);
}

static void *receive_run(void *tag)
{
    int value;
    MPI_Recv(&value, 1, MPI_INT, 1, *(int *)tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return NULL;
}

/* Rank 0 receives, 2 is in a barrier, 3 waits for several. */
static void messages(void)
{
    int values[3] = {0};
    MPI_Request requests[3];
    switch (rank) {
    case 0:
        MPI_Recv(values, 1, MPI_INT, 1, 7, halo, MPI_STATUS_IGNORE);
        break;
    case 1:
        sleep_outside();
        MPI_Send(values, 1, MPI_INT, 0, 7, halo);
        MPI_Send(values, 1, MPI_INT, 3, 1, halo);
        MPI_Send(values, 1, MPI_INT, 3, 9, MPI_COMM_WORLD);
        break;
    case 2:
        MPI_Send(values, 1, MPI_INT, 3, 5, MPI_COMM_WORLD);
        break;
    default:
        MPI_Irecv(&values[0], 1, MPI_INT, 2, 5, MPI_COMM_WORLD, &requests[0]);
        MPI_Irecv(&values[1], 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, halo, &requests[1]);
        MPI_Irecv(&values[2], 1, MPI_INT, 1, 9, MPI_COMM_WORLD, &requests[2]);
        MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
        break;
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Rank 0 sends, 2 probes, 3 waits for any of two, 4 tests. */
static void others(void)
{
    int value = 0, index, flag = 0;
    MPI_Request requests[2];
    switch (rank) {
    case 0:
        MPI_Ssend(&value, 1, MPI_INT, 1, 3, MPI_COMM_WORLD);
        break;
    case 1:
        sleep_outside();
        MPI_Recv(&value, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 2; i < 5; i++)
            MPI_Send(&value, 1, MPI_INT, i, i, MPI_COMM_WORLD);
        MPI_Send(&value, 1, MPI_INT, 3, 33, MPI_COMM_WORLD);
        break;
    case 2:
        MPI_Probe(1, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(&value, 1, MPI_INT, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        break;
    case 3:
        MPI_Irecv(&value, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, &requests[0]);
        MPI_Irecv(&flag, 1, MPI_INT, 1, 33, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        break;
    default:
        MPI_Irecv(&value, 1, MPI_INT, 1, 4, MPI_COMM_WORLD, &requests[0]);
        while (!flag)
            MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE);
        break;
    }
}

/* Rank 0 has started a collective, 3 makes a communicator, for which the library has one of its own. */
static void collectives(void)
{
    int one = 1, sum = 0;
    MPI_Request request;
    MPI_Comm pair = MPI_COMM_NULL, made;
    MPI_Comm_split(MPI_COMM_WORLD, rank == 2 || rank == 3, rank, &pair);
    ready();
    if (rank == 1 || rank == 2)
        sleep_outside();
    if (rank < 2) {
        MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, pair, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
        MPI_Comm_dup(pair, &made);
        MPI_Comm_free(&made);
    }
    MPI_Comm_free(&pair);
}

/* Rank 1 owes everybody something: 0 a post, 2 a completion, 3 a lock. */
static void windows(void)
{
    MPI_Win win;
    MPI_Group all, one, two;
    void *memory;
    MPI_Win_allocate(8, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    MPI_Win_set_name(win, "halo");
    MPI_Win_get_group(win, &all);
    MPI_Group_incl(all, 1, (int[]){1}, &one);
    MPI_Group_incl(all, 1, (int[]){rank == 1 ? 2 : 0}, &two);
    if (rank == 1)
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 2, 0, win);
    MPI_Barrier(MPI_COMM_WORLD);
    ready();
    if (rank == 0) {
        MPI_Win_start(one, 0, win);
        MPI_Win_complete(win);
    } else if (rank == 1) {
        sleep_outside();
        MPI_Win_unlock(2, win);
        MPI_Group_free(&one);
        MPI_Group_incl(all, 1, (int[]){0}, &one);
        MPI_Win_post(one, 0, win);
        MPI_Win_start(two, 0, win);
        MPI_Win_complete(win);
        MPI_Win_wait(win);
    } else if (rank == 2) {
        MPI_Win_post(one, 0, win);
        MPI_Win_wait(win);
    } else {
        MPI_Win_lock(MPI_LOCK_SHARED, 2, 0, win);
        MPI_Win_unlock(2, win);
    }
    MPI_Group_free(&all);
    MPI_Group_free(&one);
    MPI_Group_free(&two);
    MPI_Win_free(&win);
}

static void threads(void)
{
    static int tag = 7;
    int values[2] = {0};
    MPI_Request requests[2];
    pthread_t other;
    if (rank == 0) {
        pthread_create(&other, NULL, receive_run, &tag);
        for (int i = 0; i < 2; i++)
            MPI_Irecv(&values[i], 1, MPI_INT, 1, 8 + i, MPI_COMM_WORLD, &requests[i]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        pthread_join(other, NULL);
        return;
    }
    sleep_outside();
    for (int sent = 9; sent >= 7; sent--)
        MPI_Send(&values[0], 1, MPI_INT, 0, sent, MPI_COMM_WORLD);
}

static void ends(const char *kind)
{
    if (rank == 1 && strcmp(kind, "stopped") == 0)
        raise(SIGSTOP);
    if (rank == 1)
        sleep_outside();
}

int main(int argc, char **argv)
{
    const char *kind = argc > 1 ? argv[1] : "";
    int level = strcmp(kind, "threads") == 0 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, given;
    const char *late = getenv("TOMBOLO_RANK");
    signal(SIGUSR1, release);
    if (strcmp(kind, "before") == 0 && late != NULL && strcmp(late, "1") == 0) {
        ready();
        sleep_outside();
    }
    MPI_Init_thread(&argc, &argv, level, &given);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (strcmp(kind, "before") == 0 && rank == 0) /* who makes a communicator waits for the others */
        ready();
    MPI_Comm_dup(MPI_COMM_WORLD, &halo);
    MPI_Comm_set_name(halo, "halo");
    if (strcmp(kind, "collectives") != 0 && strcmp(kind, "windows") != 0 && strcmp(kind, "before") != 0)
        ready();
    if (strcmp(kind, "messages") == 0)
        messages();
    else if (strcmp(kind, "others") == 0)
        others();
    else if (strcmp(kind, "collectives") == 0)
        collectives();
    else if (strcmp(kind, "windows") == 0)
        windows();
    else if (strcmp(kind, "threads") == 0)
        threads();
    else
        ends(kind);
    MPI_Comm_free(&halo);
    MPI_Finalize();
    return 0;
}
