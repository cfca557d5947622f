/* Threads of a process that use the same objects: attributes and names of communicators and datatypes, persistent
 * requests that one starts while another looks at them, buffers of buffered sends, and error handlers. */
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

/* ---- buffers ----------------------------------------------------------------------------------------------------- */

enum { LONG = 1 << 20, TRIES = 8 };

static _Atomic int flushing, flushed;

static void *flushes(void *out)
{
    MPI_Bsend(out, LONG, MPI_BYTE, test_rank, 20, MPI_COMM_WORLD);
    flushing = 1;
    MPI_Buffer_flush();
    flushed = 1;
    return NULL;
}

/* Flushing ends when the messages that were there have left, whatever becomes of one that comes later. Whether it has
 * begun before that one came cannot be seen; so there are several tries, and one is enough. */
static void flush(void)
{
    unsigned char *out = test_memory(LONG), *in = test_memory(LONG);
    pthread_t thread;
    int early = 0;
    for (int i = 0; i < TRIES && early == 0; i++) {
        flushing = flushed = 0;
        test_need(pthread_create(&thread, NULL, flushes, out) == 0, "a thread cannot be started");
        while (!flushing)
            sched_yield();
        test_sleep(0.02 * (i + 1));
        MPI_Bsend(out, LONG, MPI_BYTE, test_rank, 21, MPI_COMM_WORLD);
        MPI_Recv(in, LONG, MPI_BYTE, test_rank, 20, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int wait = 0; wait < 20 * (i + 1) && !flushed; wait++)
            test_sleep(0.01);
        early += flushed;
        MPI_Recv(in, LONG, MPI_BYTE, test_rank, 21, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        pthread_join(thread, NULL);
    }
    CHECK_EQUAL(early, 1);
    free(out);
    free(in);
}

/* One detaches while others flush, and cancel what they have put in. */
static void *detaches(void *argument)
{
    int number = *(int *)argument;
    for (int i = 0; i < 400; i++) {
        pthread_barrier_wait(&meeting);
        if (number == 0)
            MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0);
        pthread_barrier_wait(&meeting);
        MPI_Request request;
        MPI_Status status;
        int cancelled = 0, got = -1, tag = 30 + number;
        MPI_Ibsend(&i, 1, MPI_INT, test_rank, tag, MPI_COMM_WORLD, &request);
        pthread_barrier_wait(&meeting);
        if (number == 0) {
            void *address;
            int size;
            MPI_Buffer_detach(&address, &size);
        } else if (number == 1) {
            MPI_Buffer_flush();
        } else {
            MPI_Cancel(&request);
        }
        MPI_Wait(&request, &status);
        MPI_Test_cancelled(&status, &cancelled);
        if (!cancelled)
            MPI_Recv(&got, 1, MPI_INT, test_rank, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK_EQUAL(got, cancelled ? -1 : i);
        MPI_Iprobe(test_rank, tag, MPI_COMM_WORLD, &cancelled, MPI_STATUS_IGNORE);
        CHECK_EQUAL(cancelled, 0);
    }
    return NULL;
}

static void buffers(void)
{
    MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0);
    flush();
    void *address;
    int size;
    MPI_Buffer_detach(&address, &size);
    in_threads(detaches);
}

/* ---- error handlers ---------------------------------------------------------------------------------------------- */

static _Atomic int handled;

static void handle(MPI_Comm *comm, int *code, ...)
{
    CHECK(*comm == MPI_COMM_SELF, "it is not that of MPI_COMM_SELF");
    handled++;
}

/* Some set one that nobody else has, others use whatever there is. */
static void *errhandlers(void *argument)
{
    int number = *(int *)argument;
    pthread_barrier_wait(&meeting);
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Errhandler handler;
        if (number < 2) {
            MPI_Comm_create_errhandler(handle, &handler);
            MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
        } else {
            MPI_Comm_call_errhandler(MPI_COMM_SELF, MPI_ERR_OTHER);
            MPI_Comm_get_errhandler(MPI_COMM_SELF, &handler);
        }
        CHECK_EQUAL(MPI_Errhandler_free(&handler), MPI_SUCCESS);
    }
    return NULL;
}

static void replaced(void)
{
    MPI_Errhandler first;
    MPI_Comm_create_errhandler(handle, &first);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, first);
    MPI_Errhandler_free(&first);
    in_threads(errhandlers);
    CHECK_EQUAL(handled, 2 * ROUNDS);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char **argv)
{
    test_begin_threads(&argc, &argv, MPI_THREAD_MULTIPLE);
    attributes();
    starts();
    buffers();
    replaced();
    return test_end();
}
