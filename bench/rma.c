/* Two ranks, one-sided: rank 0 accesses a window of rank 1.
 *
 * usage: rma put|get|accumulate|fetch fence|groups|lock|flush BYTES SECONDS
 *        rma rate THREADS SECONDS
 *        rma computing SECONDS
 *
 * The first prints microseconds of one access with its synchronisation: two fences; post, start, complete and wait;
 * lock and unlock; a flush within lock_all. Accumulates are sums of 64-bit integers; fetch is MPI_Fetch_and_op of one,
 * and MPI_Get_accumulate of more. rate prints million messages of 8 bytes a second of so many threads a rank, each with
 * a communicator of its own. computing prints milliseconds of the slowest lock, get and unlock while the target
 * computes for a second and calls nothing. Each checks what has arrived. */
#include "pair.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>

#define THREADS  8
#define MESSAGES 64

static MPI_Win win;
static MPI_Group other;
static int64_t *window, *out, *in;

static void fail(const char *story)
{
    fprintf(stderr, "rma: rank %d: %s\n", rank, story);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* ---- accesses ---------------------------------------------------------------------------------------------------- */

static void put(int bytes)
{
    MPI_Put(out, bytes / 8, MPI_INT64_T, 1, 0, bytes / 8, MPI_INT64_T, win);
}

static void get(int bytes)
{
    MPI_Get(in, bytes / 8, MPI_INT64_T, 1, 0, bytes / 8, MPI_INT64_T, win);
}

static void accumulate(int bytes)
{
    MPI_Accumulate(out, bytes / 8, MPI_INT64_T, 1, 0, bytes / 8, MPI_INT64_T, MPI_SUM, win);
}

static void fetch(int bytes)
{
    if (bytes == 8)
        MPI_Fetch_and_op(out, in, MPI_INT64_T, 1, 0, MPI_SUM, win);
    else
        MPI_Get_accumulate(out, bytes / 8, MPI_INT64_T, in, bytes / 8, MPI_INT64_T, 1, 0, bytes / 8, MPI_INT64_T,
                           MPI_SUM, win);
}

static const struct {
    const char *name;
    void (*make)(int bytes);
} ACCESSES[] = {{"put", put}, {"get", get}, {"accumulate", accumulate}, {"fetch", fetch}};

static void (*make_access)(int bytes);

/* ---- synchronisation --------------------------------------------------------------------------------------------- */

static void fence(int bytes, long count)
{
    MPI_Win_fence(0, win);
    for (long i = 0; i < count; i++) {
        if (rank == 0)
            make_access(bytes);
        MPI_Win_fence(0, win);
    }
}

static void groups(int bytes, long count)
{
    for (long i = 0; i < count; i++) {
        if (rank == 0) {
            MPI_Win_start(other, 0, win);
            make_access(bytes);
            MPI_Win_complete(win);
        } else {
            MPI_Win_post(other, 0, win);
            MPI_Win_wait(win);
        }
    }
}

/* The target waits in the exchange of times. */
static void lock(int bytes, long count)
{
    for (long i = 0; rank == 0 && i < count; i++) {
        MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
        make_access(bytes);
        MPI_Win_unlock(1, win);
    }
}

static void flush(int bytes, long count)
{
    if (rank != 0)
        return;
    MPI_Win_lock_all(0, win);
    for (long i = 0; i < count; i++) {
        make_access(bytes);
        MPI_Win_flush(1, win);
    }
    MPI_Win_unlock_all(win);
}

static const struct {
    const char *name;
    pair_work *work;
} SYNCHRONISATIONS[] = {{"fence", fence}, {"groups", groups}, {"lock", lock}, {"flush", flush}};

static pair_work *synchronisation(const char *name)
{
    for (size_t i = 0; i < sizeof SYNCHRONISATIONS / sizeof SYNCHRONISATIONS[0]; i++)
        if (strcmp(name, SYNCHRONISATIONS[i].name) == 0)
            return SYNCHRONISATIONS[i].work;
    fail("no such synchronisation");
    return NULL;
}

static void choose_access(const char *name)
{
    for (size_t i = 0; i < sizeof ACCESSES / sizeof ACCESSES[0]; i++)
        if (strcmp(name, ACCESSES[i].name) == 0)
            make_access = ACCESSES[i].make;
    if (!make_access)
        fail("no such access");
}

static void make_window(int bytes)
{
    MPI_Group all;
    int partner = 1 - rank;
    MPI_Win_allocate(bytes, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &window, &win);
    MPI_Win_get_group(win, &all);
    MPI_Group_incl(all, 1, &partner, &other);
    MPI_Group_free(&all);
    out = malloc((size_t)bytes);
    in = malloc((size_t)bytes);
    if (!out || !in)
        fail("no memory");
    for (int i = 0; i < bytes / 8; i++) {
        out[i] = i + 1;
        in[i] = window[i] = 0;
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* One access by itself: is what it has done right? */
static void check(const char *access, pair_work *work, int bytes)
{
    int last = bytes / 8 - 1;
    work(bytes, 1);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
    int64_t expected = strcmp(access, "get") == 0 ? 0 : last + 1;
    if (rank == 1 && window[last] != expected)
        fail("an access did not do what it should");
    if (rank == 0 && in[last] != 0)
        fail("an access fetched what it should not");
    MPI_Win_unlock(rank, win);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

struct talker {
    pthread_t thread;
    MPI_Comm comm;
    long count;
};

static struct talker talkers[THREADS];
static int talker_count;

static void *talk(void *argument)
{
    struct talker *t = argument;
    MPI_Request requests[MESSAGES];
    int64_t words[MESSAGES];
    char answer = 0;
    for (long i = 0; i < t->count; i++) {
        for (int k = 0; k < MESSAGES; k++) {
            words[k] = rank == 0 ? i + k : -1;
            if (rank == 0)
                MPI_Isend(&words[k], 8, MPI_CHAR, 1, 2, t->comm, &requests[k]);
            else
                MPI_Irecv(&words[k], 8, MPI_CHAR, 0, 2, t->comm, &requests[k]);
        }
        MPI_Waitall(MESSAGES, requests, MPI_STATUSES_IGNORE);
        if (words[MESSAGES - 1] != i + MESSAGES - 1)
            fail("another message arrived");
        if (rank == 0)
            MPI_Recv(&answer, 1, MPI_CHAR, 1, 3, t->comm, MPI_STATUS_IGNORE);
        else
            MPI_Send(&answer, 1, MPI_CHAR, 0, 3, t->comm);
    }
    return NULL;
}

/* So many windows of messages by each thread. */
static void messages(int bytes, long count)
{
    (void)bytes;
    for (int i = 0; i < talker_count; i++) {
        talkers[i].count = count;
        if (i > 0)
            pthread_create(&talkers[i].thread, NULL, talk, &talkers[i]);
    }
    talk(&talkers[0]);
    for (int i = 1; i < talker_count; i++)
        pthread_join(talkers[i].thread, NULL);
}

static void measure_rate(int threads, double seconds)
{
    talker_count = threads < 1 ? 1 : threads > THREADS ? THREADS : threads;
    for (int i = 0; i < talker_count; i++)
        MPI_Comm_dup(MPI_COMM_WORLD, &talkers[i].comm);
    double median = pair_median(messages, 8, seconds);
    if (rank == 0)
        printf("%.6g\n", (double)talker_count * MESSAGES / median / 1e6);
    for (int i = 0; i < talker_count; i++)
        MPI_Comm_free(&talkers[i].comm);
}

/* ---- a target that computes -------------------------------------------------------------------------------------- */

static void compute(double seconds)
{
    volatile double sum = 0;
    for (double begin = MPI_Wtime(); MPI_Wtime() - begin < seconds;)
        for (int i = 0; i < 1000; i++)
            sum += 1.0 / (i + 1);
}

static void measure_computing(double seconds)
{
    double slowest = 0;
    make_window(8);
    window[0] = 4711;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) {
        compute(seconds);
    } else {
        for (double begin = MPI_Wtime(); MPI_Wtime() - begin < 0.8 * seconds;) {
            double before = MPI_Wtime();
            MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
            MPI_Get(in, 1, MPI_INT64_T, 1, 0, 1, MPI_INT64_T, win);
            MPI_Win_unlock(1, win);
            double took = MPI_Wtime() - before;
            slowest = took > slowest ? took : slowest;
        }
        if (in[0] != 4711)
            fail("another value arrived");
        printf("%.6g\n", slowest * 1e3);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    int provided;
    int threads = argc > 1 && strcmp(argv[1], "rate") == 0;
    int computing = argc > 1 && strcmp(argv[1], "computing") == 0;
    MPI_Init_thread(&argc, &argv, threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
    pair_begin(argc == (threads     ? 4
                        : computing ? 3
                                    : 5),
               "rma ACCESS SYNCHRONISATION BYTES SECONDS, rate THREADS SECONDS "
               "or computing SECONDS");
    if (threads) {
        measure_rate(atoi(argv[2]), atof(argv[3]));
    } else if (computing) {
        measure_computing(atof(argv[2]));
    } else {
        int bytes = atoi(argv[3]);
        pair_work *work = synchronisation(argv[2]);
        choose_access(argv[1]);
        make_window(bytes);
        check(argv[1], work, bytes);
        double median = pair_median(work, bytes, atof(argv[4]));
        if (rank == 0)
            printf("%.6g\n", median * 1e6);
    }
    if (!threads) {
        MPI_Group_free(&other);
        MPI_Win_free(&win);
    }
    free(out);
    free(in);
    MPI_Finalize();
    return 0;
}
