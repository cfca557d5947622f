/* MPI_THREAD_MULTIPLE on several communicators: each thread has its own and does all kinds of calls on it, makes and
 * frees others, and has a window; one thread waits for requests of all of them, asleep, while others send; memory is
 * accessed while nobody is in a call; one rank refuses a collective. With the argument `apart` (where nothing is
 * multicast): a thread that is long in one communicator does not hold up another one. */
#include "test.h"

#include <pthread.h>
#include <sched.h>

#define THREADS 4
#define ROUNDS  12
#define MIXED   8 /* communicators of one wait */
#define LARGEST 70000
#define PATIENT 60.0 /* s, for what must not take long, on a machine that may be crowded */

static const int lengths[] = {0, 8, 3000, 40000, LARGEST};
#define LENGTHS (int)(sizeof lengths / sizeof lengths[0])

struct worker {
    int number;
    MPI_Comm comm;
    pthread_t thread;
    unsigned char *out, *in;
};

static struct worker workers[THREADS];
static MPI_Comm mixed[MIXED];
static int before, after; /* ranks of a ring */

static void in_threads(void *(*work)(void *))
{
    for (int i = 0; i < THREADS; i++)
        test_need(pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0, "a thread cannot be started");
    for (int i = 0; i < THREADS; i++)
        pthread_join(workers[i].thread, NULL);
}

static uint32_t seed_of(int thread, int round, int from)
{
    return (uint32_t)(thread * 1000003 + round * 101 + from);
}

/* ---- each thread on a communicator of its own -------------------------------------------------------------------- */

static void exchange(struct worker *w, MPI_Comm comm, int round)
{
    int bytes = lengths[(round + w->number) % LENGTHS];
    int from = round % 3 == 1 ? MPI_ANY_SOURCE : before, tag = round % 3 == 2 ? MPI_ANY_TAG : round;
    MPI_Request requests[2];
    MPI_Status statuses[2];
    test_fill(w->out, (size_t)bytes, seed_of(w->number, round, test_rank));
    MPI_Irecv(w->in, LARGEST, MPI_BYTE, from, tag, comm, &requests[0]);
    if (round % 4 == 3)
        MPI_Issend(w->out, bytes, MPI_BYTE, after, round, comm, &requests[1]);
    else
        MPI_Isend(w->out, bytes, MPI_BYTE, after, round, comm, &requests[1]);
    MPI_Waitall(2, requests, statuses);
    CHECK_STATUS(&statuses[0], before, round, (size_t)bytes);
    CHECK_DATA(w->in, (size_t)bytes, seed_of(w->number, round, before));
}

static void probe(struct worker *w, MPI_Comm comm, int round)
{
    int bytes = lengths[round % LENGTHS], flag = 0;
    MPI_Request request;
    MPI_Message message;
    MPI_Status status;
    test_fill(w->out, (size_t)bytes, seed_of(w->number, round, test_rank));
    MPI_Isend(w->out, bytes, MPI_BYTE, after, 77, comm, &request);
    if (round % 2 == 0) {
        MPI_Mprobe(MPI_ANY_SOURCE, 77, comm, &message, &status);
    } else {
        while (flag == 0)
            MPI_Improbe(before, MPI_ANY_TAG, comm, &flag, &message, &status);
    }
    CHECK_STATUS(&status, before, 77, (size_t)bytes);
    MPI_Mrecv(w->in, LARGEST, MPI_BYTE, &message, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK_DATA(w->in, (size_t)bytes, seed_of(w->number, round, before));
}

static void persist(struct worker *w, MPI_Comm comm)
{
    MPI_Request requests[2];
    int flag = 0;
    MPI_Recv_init(w->in, 3000, MPI_BYTE, before, 5, comm, &requests[0]);
    MPI_Send_init(w->out, 3000, MPI_BYTE, after, 5, comm, &requests[1]);
    for (int i = 0; i < 3; i++) {
        test_fill(w->out, 3000, seed_of(w->number, i, test_rank));
        MPI_Startall(2, requests);
        if (i == 1)
            for (flag = 0; flag == 0;)
                MPI_Testall(2, requests, &flag, MPI_STATUSES_IGNORE);
        else
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        CHECK_DATA(w->in, 3000, seed_of(w->number, i, before));
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
}

/* A receive that nobody sends to, and a message that nobody receives, unless it comes too late. */
static void recall(struct worker *w, MPI_Comm comm)
{
    MPI_Request request;
    MPI_Status status;
    int cancelled = 0, tag = 900, taken = 0;
    MPI_Irecv(w->in, 8, MPI_BYTE, before, 901, comm, &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &cancelled);
    CHECK_EQUAL(cancelled, 1);
    MPI_Isend(w->out, 8, MPI_BYTE, after, tag, comm, &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &cancelled);
    MPI_Sendrecv(&cancelled, 1, MPI_INT, after, 902, &taken, 1, MPI_INT, before, 902, comm, MPI_STATUS_IGNORE);
    if (taken == 0)
        MPI_Recv(w->in, 8, MPI_BYTE, before, tag, comm, MPI_STATUS_IGNORE);
}

static void together(struct worker *w, MPI_Comm comm, int round)
{
    long one = test_rank + round, sum = 0, expected = (long)test_size * (test_size - 1) / 2 + (long)round * test_size;
    int root = round % test_size, told = test_rank == root ? round * 7 + w->number : -1;
    MPI_Request request;
    MPI_Allreduce(&one, &sum, 1, MPI_LONG, MPI_SUM, comm);
    CHECK_EQUAL(sum, expected);
    MPI_Ibcast(&told, 1, MPI_INT, root, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK_EQUAL(told, round * 7 + w->number);
    MPI_Barrier(comm);
}

static void windows(struct worker *w, MPI_Comm comm)
{
    long *memory, got = -1, one = 1;
    MPI_Win win;
    MPI_Win_allocate(2 * sizeof(long), sizeof(long), MPI_INFO_NULL, comm, &memory, &win);
    memory[0] = memory[1] = 0;
    MPI_Barrier(comm);
    for (int i = 0; i < 4; i++) {
        long mine = 1000 * w->number + 10 * test_rank + i;
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, after, 0, win);
        MPI_Put(&mine, 1, MPI_LONG, after, 0, 1, MPI_LONG, win);
        MPI_Win_flush(after, win);
        MPI_Get(&got, 1, MPI_LONG, after, 0, 1, MPI_LONG, win);
        MPI_Win_unlock(after, win);
        CHECK_EQUAL(got, mine);
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
        MPI_Accumulate(&one, 1, MPI_LONG, 0, 1, 1, MPI_LONG, MPI_SUM, win);
        MPI_Win_unlock(0, win);
    }
    MPI_Barrier(comm);
    if (test_rank == 0) {
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
        CHECK_EQUAL(memory[1], 4L * test_size);
        MPI_Win_unlock(0, win);
    }
    MPI_Win_free(&win);
}

static void *all_kinds(void *context)
{
    struct worker *w = context;
    for (int round = 0; round < ROUNDS; round++) {
        exchange(w, w->comm, round);
        probe(w, w->comm, round);
        together(w, w->comm, round);
        if (round % 4 == 0) {
            MPI_Comm made;
            MPI_Comm_dup(w->comm, &made);
            exchange(w, made, round);
            persist(w, made);
            together(w, made, round);
            recall(w, made);
            MPI_Comm_free(&made);
        }
        if (round % 6 == 5)
            windows(w, w->comm);
    }
    return NULL;
}

/* ---- one wait for requests of several communicators -------------------------------------------------------------- */

static void *send_late(void *context)
{
    const struct worker *w = context;
    for (int i = w->number; i < MIXED; i += THREADS) {
        test_sleep(0.002 * (i + 1));
        MPI_Send(&i, 1, MPI_INT, after, 3, mixed[i]);
    }
    return NULL;
}

/* Waits, in one of several ways, for as many requests as there are; this thread sleeps meanwhile. */
static void end_all(MPI_Request *requests, int way)
{
    int left = MIXED, index, count, flag, indices[MIXED];
    if (way == 0)
        MPI_Waitall(MIXED, requests, MPI_STATUSES_IGNORE);
    while (way != 0 && left > 0) {
        count = 1;
        if (way == 1)
            MPI_Waitany(MIXED, requests, &index, MPI_STATUS_IGNORE);
        else if (way == 2)
            MPI_Waitsome(MIXED, requests, &count, indices, MPI_STATUSES_IGNORE);
        else
            for (flag = 0; flag == 0;)
                MPI_Testany(MIXED, requests, &index, &flag, MPI_STATUS_IGNORE);
        left -= count;
    }
}

static void wait_mixed(int way)
{
    MPI_Request requests[MIXED];
    int got[MIXED];
    for (int i = 0; i < MIXED; i++) {
        got[i] = -1;
        MPI_Irecv(&got[i], 1, MPI_INT, i % 2 == 0 ? before : MPI_ANY_SOURCE, 3, mixed[i], &requests[i]);
    }
    for (int i = 0; i < THREADS; i++)
        test_need(pthread_create(&workers[i].thread, NULL, send_late, &workers[i]) == 0, "a thread cannot be started");
    end_all(requests, way);
    for (int i = 0; i < THREADS; i++)
        pthread_join(workers[i].thread, NULL);
    for (int i = 0; i < MIXED; i++)
        CHECK_EQUAL(got[i], i);
}

/* ---- while nobody is in a call ----------------------------------------------------------------------------------- */

static MPI_Win served[MIXED];
static _Atomic long *memory[MIXED];

/* Rank 0 computes until everybody has been in each of its windows, of which one after the other is used. */
static void access_idle(void)
{
    long one = 1;
    for (int i = 0; i < MIXED; i++) {
        MPI_Win_allocate(sizeof(long), sizeof(long), MPI_INFO_NULL, mixed[i], &memory[i], &served[i]);
        *memory[i] = 0;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    double began = test_now();
    for (int i = 0; i < MIXED; i++) {
        if (test_rank == 0) {
            while (*memory[i] < test_size - 1 && test_now() - began < PATIENT)
                sched_yield();
            CHECK_EQUAL(*memory[i], test_size - 1);
            continue;
        }
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, served[i]);
        MPI_Accumulate(&one, 1, MPI_LONG, 0, 0, 1, MPI_LONG, MPI_SUM, served[i]);
        MPI_Win_unlock(0, served[i]);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < MIXED; i++)
        MPI_Win_free(&served[i]);
}

/* ---- a collective that one rank refuses -------------------------------------------------------------------------- */

/* That one leaves MPI_Finalize when the others have heard of it. */
static void give_up(void)
{
    for (int i = 0; i < MIXED; i++) {
        int wrong = test_rank == i % test_size;
        MPI_Win win = MPI_WIN_NULL;
        MPI_Comm_set_errhandler(mixed[i], MPI_ERRORS_RETURN);
        CHECK_CLASS(MPI_Win_create(NULL, 0, wrong ? -1 : 1, MPI_INFO_NULL, mixed[i], &win),
                    wrong ? MPI_ERR_DISP : MPI_ERR_OTHER);
        CHECK_CLASS(MPI_Barrier(mixed[i]), MPI_SUCCESS);
    }
}

/* ---- not held up ------------------------------------------------------------------------------------------------- */

static _Atomic int exchanged;

/* Ends when the other thread has done all of its work, which it could not if it had to wait for this. */
static void slow_sum(void *in, void *inout, int *length, MPI_Datatype *type)
{
    double began = test_now();
    while (exchanged == 0 && test_now() - began < PATIENT)
        test_sleep(0.001);
    CHECK(exchanged != 0, "the other communicator was held up");
    for (int i = 0; i < *length; i++)
        ((int *)inout)[i] += ((int *)in)[i];
}

static void *reduce_slowly(void *context)
{
    int sum = 0;
    MPI_Op op;
    MPI_Op_create(slow_sum, 1, &op);
    MPI_Allreduce(&test_rank, &sum, 1, MPI_INT, op, mixed[0]);
    CHECK_EQUAL(sum, test_size * (test_size - 1) / 2);
    MPI_Op_free(&op);
    return NULL;
}

static void not_held_up(void)
{
    pthread_t thread;
    int token = 0;
    test_need(pthread_create(&thread, NULL, reduce_slowly, NULL) == 0, "a thread cannot be started");
    test_sleep(0.01);
    for (int i = 0; i < 100; i++)
        MPI_Sendrecv_replace(&token, 1, MPI_INT, after, i, before, i, mixed[1], MPI_STATUS_IGNORE);
    MPI_Barrier(mixed[2]);
    exchanged = 1;
    pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
    test_begin_threads(&argc, &argv, MPI_THREAD_MULTIPLE);
    before = test_previous();
    after = test_next();
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.number = i, .out = test_memory(LARGEST), .in = test_memory(LARGEST)};
        MPI_Comm_dup(MPI_COMM_WORLD, &workers[i].comm);
    }
    for (int i = 0; i < MIXED; i++)
        MPI_Comm_dup(MPI_COMM_WORLD, &mixed[i]);
    in_threads(all_kinds);
    for (int way = 0; way < 4; way++)
        wait_mixed(way);
    access_idle();
    if (argc > 1 && strcmp(argv[1], "apart") == 0 && !test_peer())
        not_held_up();
    give_up();
    for (int i = 0; i < MIXED; i++)
        MPI_Comm_free(&mixed[i]);
    for (int i = 0; i < THREADS; i++) {
        MPI_Comm_free(&workers[i].comm);
        free(workers[i].out);
        free(workers[i].in);
    }
    return test_end();
}
