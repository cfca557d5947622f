/* Threads of a process that use the same objects: attributes and names of communicators and datatypes, and persistent
 * requests that one starts while another looks at them. */
#include "test.h"

#include <pthread.h>
#include <sched.h>

#define THREADS 4
#define ROUNDS  5000

/* They begin their work together. */
static pthread_barrier_t meeting;

static void in_threads(void *(*work)(void *))
{
    static int numbers[THREADS];
    pthread_t threads[THREADS];
    pthread_barrier_init(&meeting, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        test_need(pthread_create(&threads[i], NULL, work, &numbers[i]) == 0, "a thread cannot be started");
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&meeting);
}

/* ---- attributes -------------------------------------------------------------------------------------------------- */

static _Atomic int deleted[THREADS * ROUNDS]; /* values of the common key: how often each was deleted */
static _Atomic int set_count;
static int comm_key, type_key;

static int delete_value(MPI_Comm comm, int keyval, void *value, void *state)
{
    ++*(_Atomic int *)value;
    sched_yield();
    return MPI_SUCCESS;
}

/* Each with a key of its own, as libraries do, and all with a common one. */
static void *comm_attributes(void *argument)
{
    int number = *(int *)argument, own, flag;
    void *value;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &own, NULL);
    pthread_barrier_wait(&meeting);
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Comm_set_attr(MPI_COMM_WORLD, own, &deleted[i]);
        MPI_Comm_set_attr(MPI_COMM_WORLD, comm_key, &deleted[number * ROUNDS + i]);
        MPI_Comm_get_attr(MPI_COMM_WORLD, own, &value, &flag);
        CHECK(flag && value == &deleted[i], "thread %d, round %d: flag %d, value %p", number, i, flag, value);
        if (i % 3 == 0)
            MPI_Comm_delete_attr(MPI_COMM_WORLD, comm_key);
        if (i % 2 == 0)
            MPI_Comm_delete_attr(MPI_COMM_WORLD, own);
        MPI_Comm_get_attr(MPI_COMM_WORLD, own, &value, &flag);
        CHECK_EQUAL(flag, i % 2);
    }
    MPI_Comm_delete_attr(MPI_COMM_WORLD, own);
    MPI_Comm_free_keyval(&own);
    set_count += ROUNDS;
    return NULL;
}

/* Duplicates of what others attach to and name. */
static void *type_attributes(void *argument)
{
    int number = *(int *)argument, own, flag, length;
    char name[MPI_MAX_OBJECT_NAME], mine[41];
    void *value;
    memset(mine, 'a' + number, sizeof mine - 1);
    mine[sizeof mine - 1 - number] = 0;
    MPI_Type_create_keyval(MPI_TYPE_DUP_FN, MPI_TYPE_NULL_DELETE_FN, &own, NULL);
    pthread_barrier_wait(&meeting);
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Datatype copy;
        MPI_Type_set_attr(MPI_INT, own, &deleted[i]);
        MPI_Type_set_attr(MPI_INT, type_key, &deleted[i]);
        MPI_Type_dup(MPI_INT, &copy);
        MPI_Type_get_attr(copy, own, &value, &flag);
        CHECK(flag && value == &deleted[i], "thread %d, round %d: flag %d, value %p", number, i, flag, value);
        MPI_Type_free(&copy);
        MPI_Type_delete_attr(MPI_INT, own);
        MPI_Comm_set_name(MPI_COMM_SELF, mine);
        MPI_Comm_get_name(MPI_COMM_SELF, name, &length);
        CHECK(strspn(name, (char[]){name[0], 0}) == (size_t)length && length == 40 - (name[0] - 'a'),
              "thread %d, round %d: %d letters in the name %s", number, i, length, name);
    }
    MPI_Type_free_keyval(&own);
    return NULL;
}

static void attributes(void)
{
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete_value, &comm_key, NULL);
    MPI_Type_create_keyval(MPI_TYPE_DUP_FN, MPI_TYPE_NULL_DELETE_FN, &type_key, NULL);
    in_threads(comm_attributes);
    MPI_Comm_delete_attr(MPI_COMM_WORLD, comm_key);
    CHECK_EQUAL(set_count, THREADS * ROUNDS);
    for (int i = 0; i < THREADS * ROUNDS; i++)
        CHECK(deleted[i] == 1, "value %d was deleted %d times", i, deleted[i]);
    in_threads(type_attributes);
    MPI_Type_delete_attr(MPI_INT, type_key);
    MPI_Comm_free_keyval(&comm_key);
    MPI_Type_free_keyval(&type_key);
}

/* ---- persistent requests ----------------------------------------------------------------------------------------- */

enum { STARTED, PARTITIONED, LAST, LOOKED_AT };

#define STARTS 3000

static MPI_Request looked_at[LOOKED_AT];
static int received[LOOKED_AT];
static _Atomic int completed; /* of the persistent ones */

/* Looks for whatever is done among requests of which one is inactive mostly. */
static void *looks(void *unused)
{
    bool ended = false;
    int some[LOOKED_AT], count = 0;
    while (!ended) {
        MPI_Status statuses[LOOKED_AT];
        MPI_Testsome(LOOKED_AT, looked_at, &count, some, statuses);
        for (int i = 0; i < count; i++) {
            if (some[i] == LAST) {
                ended = true;
                continue;
            }
            CHECK_EQUAL(received[some[i]], completed / 2);
            CHECK_EQUAL(statuses[i].MPI_TAG, 11 + some[i]);
            completed++;
        }
    }
    return NULL;
}

/* So that who starts has to wait for the engine. */
static void *disturbs(void *unused)
{
    while (completed < 2 * STARTS) {
        int flag;
        MPI_Iprobe(test_rank, 10, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    }
    return NULL;
}

static void starts(void)
{
    pthread_t looking, disturbing;
    MPI_Request partitioned;
    int sent = 0;
    MPI_Recv_init(&received[STARTED], 1, MPI_INT, test_rank, 11 + STARTED, MPI_COMM_WORLD, &looked_at[STARTED]);
    MPI_Precv_init(&received[PARTITIONED], 1, 1, MPI_INT, test_rank, 11 + PARTITIONED, MPI_COMM_WORLD, MPI_INFO_NULL,
                   &looked_at[PARTITIONED]);
    MPI_Psend_init(&sent, 1, 1, MPI_INT, test_rank, 11 + PARTITIONED, MPI_COMM_WORLD, MPI_INFO_NULL, &partitioned);
    MPI_Irecv(&received[LAST], 1, MPI_INT, test_rank, 11 + LAST, MPI_COMM_WORLD, &looked_at[LAST]);
    test_need(pthread_create(&looking, NULL, looks, NULL) == 0 &&
                  pthread_create(&disturbing, NULL, disturbs, NULL) == 0,
              "a thread cannot be started");
    for (int i = 0; i < STARTS; i++) {
        received[STARTED] = received[PARTITIONED] = -1;
        sent = i;
        MPI_Startall(2, looked_at);
        sched_yield();
        MPI_Send(&i, 1, MPI_INT, test_rank, 11 + STARTED, MPI_COMM_WORLD);
        MPI_Start(&partitioned);
        MPI_Pready(0, partitioned);
        MPI_Wait(&partitioned, MPI_STATUS_IGNORE);
        while (completed < 2 * i + 2)
            sched_yield();
    }
    MPI_Send(NULL, 0, MPI_INT, test_rank, 11 + LAST, MPI_COMM_WORLD);
    pthread_join(looking, NULL);
    pthread_join(disturbing, NULL);
    MPI_Request_free(&partitioned);
    MPI_Request_free(&looked_at[STARTED]);
    MPI_Request_free(&looked_at[PARTITIONED]);
}

int main(int argc, char **argv)
{
    test_begin_threads(&argc, &argv, MPI_THREAD_MULTIPLE);
    attributes();
    starts();
    return test_end();
}
