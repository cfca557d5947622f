/* MPI_THREAD_MULTIPLE: several threads of each rank exchange messages at the same time, on one communicator and on
 * their own, with every kind of wait; a thread that waits does not hold up one that sends. */
#include "test.h"

#include <pthread.h>

#define THREADS 4
#define ROUNDS  60
#define LARGEST 50000
#define MANY    64

static const int lengths[] = {0, 8, 1000, 9000, LARGEST};
#define LENGTHS (int)(sizeof lengths / sizeof lengths[0])

struct worker {
    int number;
    MPI_Comm comm;
    pthread_t thread;
    unsigned char *out, *in;
};

static struct worker workers[THREADS];
static _Atomic int seen[THREADS * ROUNDS]; /* by shared_tag: how often each message was received */

static void in_threads(void *(*work)(void *))
{
    for (int i = 0; i < THREADS; i++)
        test_need(pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0, "a thread cannot be started");
    for (int i = 0; i < THREADS; i++)
        pthread_join(workers[i].thread, NULL);
}

/* Ends both requests in one of several ways; the status of the first goes to *status. */
static void end_both(MPI_Request requests[2], MPI_Status *status, int way)
{
    MPI_Status statuses[2];
    int flag = 0, index, count, indices[2], left = 2;
    switch (way % 5) {
    case 0:
        MPI_Wait(&requests[0], status);
        MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
        return;
    case 1:
        MPI_Waitall(2, requests, statuses);
        *status = statuses[0];
        return;
    case 2:
        while (left-- > 0) {
            MPI_Waitany(2, requests, &index, &statuses[0]);
            if (index == 0)
                *status = statuses[0];
        }
        return;
    case 3:
        while (left > 0) {
            MPI_Waitsome(2, requests, &count, indices, statuses);
            for (int i = 0; i < count; i++)
                if (indices[i] == 0)
                    *status = statuses[i];
            left -= count;
        }
        return;
    default:
        while (!flag)
            MPI_Testall(2, requests, &flag, statuses);
        *status = statuses[0];
    }
}

/* Round the ring, each thread with a tag of its own on MPI_COMM_WORLD, or with wildcards on a communicator of its own.
 */
static void exchange(struct worker *w, MPI_Comm comm, bool wild)
{
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Request requests[2];
        MPI_Status status = {.MPI_TAG = -5};
        int bytes = lengths[(i + w->number) % LENGTHS], tag = wild ? i : w->number;
        uint64_t name = (uint64_t)(w->number * 1000 + i);
        test_fill(w->out, (size_t)bytes, name + (uint64_t)test_rank * 100000);
        test_clear(w->in, (size_t)bytes);
        MPI_Irecv(w->in, bytes, MPI_BYTE, wild ? MPI_ANY_SOURCE : test_previous(), wild ? MPI_ANY_TAG : tag, comm,
                  &requests[0]);
        MPI_Isend(w->out, bytes, MPI_BYTE, test_next(), tag, comm, &requests[1]);
        end_both(requests, &status, i + w->number);
        CHECK_STATUS(&status, test_previous(), tag, (size_t)bytes);
        CHECK_DATA(w->in, (size_t)bytes, name + (uint64_t)test_previous() * 100000);
    }
}

static void *own_tag(void *worker)
{
    exchange(worker, MPI_COMM_WORLD, false);
    return NULL;
}

static void *own_comm(void *worker)
{
    struct worker *w = worker;
    exchange(w, w->comm, true);
    return NULL;
}

/* Blocking calls at the same time: collectives on the thread's communicator, messages on it, duplicates of it. */
static void *collectives(void *worker)
{
    struct worker *w = worker;
    for (int i = 0; i < 10; i++) {
        MPI_Comm copy;
        int value = test_rank == i % test_size ? i * 10 + w->number : -1, got = -1;
        MPI_Barrier(w->comm);
        MPI_Bcast(&value, 1, MPI_INT, i % test_size, w->comm);
        CHECK_EQUAL(value, i * 10 + w->number);
        MPI_Comm_dup(w->comm, &copy);
        MPI_Sendrecv(&test_rank, 1, MPI_INT, test_next(), i, &got, 1, MPI_INT, test_previous(), i, copy,
                     MPI_STATUS_IGNORE);
        CHECK_EQUAL(got, test_previous());
        MPI_Comm_free(&copy);
    }
    return NULL;
}

/* All threads send and receive with one tag: which thread gets which message is open, but each is received once. */
static void *shared_tag(void *worker)
{
    struct worker *w = worker;
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Request request;
        int out = w->number * ROUNDS + i, in = -1;
        MPI_Isend(&out, 1, MPI_INT, test_next(), 77, MPI_COMM_WORLD, &request);
        if (i % 2) {
            MPI_Recv(&in, 1, MPI_INT, MPI_ANY_SOURCE, 77, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Message message;
            MPI_Mprobe(test_previous(), 77, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
            MPI_Mrecv(&in, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
        }
        if (in >= 0 && in < THREADS * ROUNDS)
            seen[in]++;
        else
            CHECK(false, "%d was received", in);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    return NULL;
}

/* Three threads wait, each in another way, for what the fourth sends only later, from the same process. */
static void *waiting(void *worker)
{
    struct worker *w = worker;
    int value = -1, index = -1;
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Status status;
    switch (w->number) {
    case 0:
        test_sleep(0.03);
        for (int i = 1; i < THREADS; i++)
            MPI_Send(&i, 1, MPI_INT, test_next(), 90 + i, MPI_COMM_WORLD);
        return NULL;
    case 1:
        MPI_Recv(&value, 1, MPI_INT, test_previous(), 91, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        break;
    case 2:
        MPI_Irecv(&value, 1, MPI_INT, test_previous(), 92, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE);
        CHECK_EQUAL(index, 1);
        break;
    default:
        MPI_Probe(test_previous(), 93, MPI_COMM_WORLD, &status);
        MPI_Recv(&value, 1, MPI_INT, test_previous(), 93, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    CHECK_EQUAL(value, w->number);
    return NULL;
}

/* To and fro between two threads of one process. */
static void *to_self(void *worker)
{
    struct worker *w = worker;
    int partner = w->number ^ 1;
    for (int i = 0; i < ROUNDS; i++) {
        int value = -1, bytes = lengths[i % LENGTHS];
        if (w->number < partner)
            MPI_Ssend(&i, 1, MPI_INT, test_rank, 100 + w->number, MPI_COMM_WORLD);
        MPI_Recv(&value, 1, MPI_INT, test_rank, 100 + partner, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK_EQUAL(value, i);
        if (w->number > partner)
            MPI_Send(&i, 1, MPI_INT, test_rank, 100 + w->number, MPI_COMM_WORLD);
        test_fill(w->out, (size_t)bytes, (uint64_t)(w->number + i));
        test_clear(w->in, (size_t)bytes);
        MPI_Sendrecv(w->out, bytes, MPI_BYTE, test_rank, 110 + w->number, w->in, bytes, MPI_BYTE, test_rank,
                     110 + partner, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK_DATA(w->in, (size_t)bytes, (uint64_t)(partner + i));
    }
    return NULL;
}

/* All threads send from one buffer, which forgets the messages of the others as they leave. */
static void *buffered(void *worker)
{
    struct worker *w = worker;
    for (int i = 0; i < 4 * ROUNDS; i++) {
        MPI_Request request;
        int value = -1, sent = w->number * 1000 + i;
        MPI_Ibsend(&sent, 1, MPI_INT, test_rank, 120 + w->number, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Recv(&value, 1, MPI_INT, test_rank, 120 + w->number, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK_EQUAL(value, sent);
    }
    return NULL;
}

/* Flush requests that are freed while a message waits in the buffer; the last when all is received, before the end. */
static void freed_flushes(void)
{
    enum { BYTES = 1 << 20 };
    static unsigned char out[BYTES], in[BYTES];
    MPI_Request request;
    test_fill(out, BYTES, (uint64_t)test_rank);
    MPI_Bsend(out, BYTES, MPI_BYTE, test_next(), 130, MPI_COMM_WORLD);
    for (int i = 0; i < 20; i++) {
        MPI_Buffer_iflush(&request);
        MPI_Request_free(&request);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Recv(in, BYTES, MPI_BYTE, test_previous(), 130, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK_DATA(in, BYTES, (uint64_t)test_previous());
}

static _Atomic int general_freed;

static int general_query(void *state, MPI_Status *status)
{
    return MPI_SUCCESS;
}

static int general_free(void *state)
{
    general_freed++;
    return MPI_SUCCESS;
}

static int general_cancel(void *state, int complete)
{
    return MPI_SUCCESS;
}

/* The first of each two threads frees what the second completes, at the same time. */
static void *generalized(void *worker)
{
    static MPI_Request shared[THREADS];
    static pthread_barrier_t meeting[THREADS];
    struct worker *w = worker;
    int pair = w->number / 2;
    if (w->number % 2 == 0)
        pthread_barrier_init(&meeting[pair], NULL, 2);
    MPI_Send(NULL, 0, MPI_BYTE, test_rank, 140 + w->number, MPI_COMM_WORLD);
    MPI_Recv(NULL, 0, MPI_BYTE, test_rank, 140 + (w->number ^ 1), MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < 20 * ROUNDS; i++) {
        if (w->number % 2 == 0)
            MPI_Grequest_start(general_query, general_free, general_cancel, NULL, &shared[pair]);
        pthread_barrier_wait(&meeting[pair]);
        MPI_Request mine = shared[pair];
        pthread_barrier_wait(&meeting[pair]);
        if (w->number % 2 == 0)
            MPI_Request_free(&mine);
        else
            MPI_Grequest_complete(mine);
        pthread_barrier_wait(&meeting[pair]);
    }
    return NULL;
}

/* The first thread polls, for a message that comes last; the second waits for many, which come one by one: the first
 * wakes it when they are all there, and not for each of them. */
static void *woken_once(void *worker)
{
    struct worker *w = worker;
    static MPI_Request requests[MANY];
    static int got[MANY];
    int last = -1;
    switch (w->number) {
    case 0:
        MPI_Recv(&last, 1, MPI_INT, test_previous(), 160, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK_EQUAL(last, MANY);
        break;
    case 1:
        test_sleep(0.02);
        for (int i = 0; i < MANY; i++)
            MPI_Irecv(&got[i], 1, MPI_INT, test_previous(), 161, MPI_COMM_WORLD, &requests[i]);
        MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < MANY; i++)
            CHECK_EQUAL(got[i], i);
        break;
    case 2:
        test_sleep(0.05);
        for (int i = 0; i <= MANY; i++) {
            test_sleep(0.001);
            MPI_Send(&i, 1, MPI_INT, test_next(), i < MANY ? 161 : 160, MPI_COMM_WORLD);
        }
        break;
    default:
        break;
    }
    return NULL;
}

static unsigned long long wakes(MPI_T_pvar_session session)
{
    int index = -1, count = 0;
    MPI_T_pvar_handle handle = MPI_T_PVAR_HANDLE_NULL;
    unsigned long long value = 0;
    CHECK_EQUAL(MPI_T_pvar_get_index("tombolo_engine_wakes", MPI_T_PVAR_CLASS_COUNTER, &index), MPI_SUCCESS);
    CHECK_EQUAL(MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count), MPI_SUCCESS);
    CHECK_EQUAL(MPI_T_pvar_read(session, handle, &value), MPI_SUCCESS);
    MPI_T_pvar_handle_free(session, &handle);
    return value;
}

static void count_wakes(void)
{
    int level;
    MPI_T_pvar_session session;
    CHECK_EQUAL(MPI_T_init_thread(MPI_THREAD_SINGLE, &level), MPI_SUCCESS);
    CHECK_EQUAL(MPI_T_pvar_session_create(&session), MPI_SUCCESS);
    unsigned long long before = wakes(session);
    in_threads(woken_once);
    unsigned long long woken = wakes(session) - before;
    CHECK(woken < MANY / 2, "%llu wakes for %d messages", woken, MANY);
    MPI_T_pvar_session_free(&session);
    MPI_T_finalize();
}

int main(int argc, char **argv)
{
    test_begin_threads(&argc, &argv, MPI_THREAD_MULTIPLE);
    for (int i = 0; i < THREADS; i++) {
        workers[i].number = i;
        workers[i].out = test_memory(LARGEST);
        workers[i].in = test_memory(LARGEST);
        MPI_Comm_dup(MPI_COMM_WORLD, &workers[i].comm);
    }
    in_threads(own_tag);
    in_threads(own_comm);
    in_threads(collectives);
    in_threads(shared_tag);
    for (int i = 0; i < THREADS * ROUNDS; i++)
        CHECK(seen[i] == 1, "message %d was received %d times", i, seen[i]);
    in_threads(waiting);
    in_threads(to_self);
    MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0);
    in_threads(buffered);
    freed_flushes();
    in_threads(generalized);
    CHECK_EQUAL(general_freed, THREADS / 2 * 20 * ROUNDS);
    if (test_peer())
        in_threads(woken_once);
    else
        count_wakes();
    for (int i = 0; i < THREADS; i++) {
        MPI_Comm_free(&workers[i].comm);
        free(workers[i].out);
        free(workers[i].in);
    }
    return test_end();
}
