/* Parents and children that share a host, whose messages pass through memory of each two of them: messages of all
 * lengths and many of them, both ways; collectives of all; accesses to windows of one that computes; what is counted,
 * and that nothing is left when the children have gone. With "threads" several threads do so; with "killed" and
 * "survived" a child dies in the middle of it. Those who share no host do the same over the network. */
#include "test.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#define CHILDREN 2
#define MANY     1500 /* short messages, one after the other */
#define ROUNDS   40   /* accesses to one that computes, each at another moment */
#define THREADS  3
#define SERVED   2.0  /* seconds: how late an access may be, */
#define SLACK    8.0  /* and so much more where others use the cores */
#define PATIENT  30.0 /* seconds without MPI, for what should come by itself */

static MPI_Comm all;         /* parents, then children */
static int rank, size;       /* there */
static bool is_child, alone; /* all of them are on one host */
static int parents;
static bool *near; /* of another world, on this host */

static bool is_other(int other)
{
    return (other < parents) != (rank < parents);
}

static void find_near(void)
{
    MPI_Comm host;
    MPI_Group here, everybody;
    int *numbers = test_memory((size_t)size * sizeof *numbers), *there = test_memory((size_t)size * sizeof *there);
    near = test_memory((size_t)size * sizeof *near);
    MPI_Comm_split_type(all, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
    MPI_Comm_group(host, &here);
    MPI_Comm_group(all, &everybody);
    for (int i = 0; i < size; i++)
        numbers[i] = i;
    MPI_Group_translate_ranks(everybody, size, numbers, here, there);
    alone = true;
    for (int i = 0; i < size; i++) {
        near[i] = there[i] != MPI_UNDEFINED && is_other(i);
        alone = alone && there[i] != MPI_UNDEFINED;
    }
    MPI_Group_free(&here);
    MPI_Group_free(&everybody);
    MPI_Comm_disconnect(&host);
    free(numbers);
    free(there);
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

static uint64_t seed_of(int from, int to, int what)
{
    return (uint64_t)from * 1000003 + (uint64_t)to * 1009 + (uint64_t)what;
}

static void exchange(int other, size_t bytes, int tag)
{
    char *out = test_memory(bytes), *in = test_memory(bytes);
    MPI_Request requests[2];
    MPI_Status statuses[2];
    test_fill(out, bytes, seed_of(rank, other, tag));
    MPI_Irecv(in, (int)bytes, MPI_BYTE, other, tag, all, &requests[0]);
    MPI_Isend(out, (int)bytes, MPI_BYTE, other, tag, all, &requests[1]);
    MPI_Waitall(2, requests, statuses);
    CHECK_STATUS(&statuses[0], other, tag, bytes);
    CHECK_DATA(in, bytes, seed_of(other, rank, tag));
    CHECK(test_untouched(in + bytes, TEST_GUARD), "more than %zu bytes were written", bytes);
    free(out);
    free(in);
}

static void exchange_all(void)
{
    static const size_t sizes[] = {0, 1, 7, 16, 17, 199, 200, 201, 4096, 8191, 8192, 8193, 16384, 65536, 65537, 300007};
    for (int i = 0; i < size; i++) {
        for (size_t k = 0; is_other(i) && k < sizeof sizes / sizeof sizes[0]; k++)
            exchange(i, sizes[k], (int)k);
        if (near[i])
            exchange(i, (3u << 20) + 5, 99);
    }
}

/* All of them at once, so that rings are full again and again; and in order. */
static void send_many(int tag)
{
    int per = 0, *numbers = test_memory(MANY * sizeof *numbers);
    MPI_Request *requests = test_memory((size_t)size * MANY * sizeof *requests);
    for (int k = 0; k < MANY; k++)
        numbers[k] = k * size + rank;
    for (int i = 0; i < size; i++)
        for (int k = 0; near[i] && k < MANY; k++)
            MPI_Isend(&numbers[k], 1, MPI_INT, i, tag, all, &requests[per++]);
    for (int i = 0; i < size; i++)
        for (int k = 0, got = -1; near[i] && k < MANY; k++) {
            MPI_Recv(&got, 1, MPI_INT, i, tag, all, MPI_STATUS_IGNORE);
            if (!CHECK_EQUAL(got, k * size + i))
                break;
        }
    MPI_Waitall(per, requests, MPI_STATUSES_IGNORE);
    free(requests);
    free(numbers);
}

static void combine(void)
{
    static const int counts[] = {1, 1000, 40001};
    for (size_t k = 0; k < sizeof counts / sizeof counts[0]; k++) {
        int n = counts[k], *in = test_memory((size_t)n * sizeof *in), *out = test_memory((size_t)n * sizeof *out);
        for (int i = 0; i < n; i++)
            in[i] = rank + i;
        MPI_Allreduce(in, out, n, MPI_INT, MPI_SUM, all);
        CHECK_EQUAL(out[0], size * (size - 1) / 2);
        CHECK_EQUAL(out[n - 1], size * (size - 1) / 2 + size * (n - 1));
        for (int root = 0; root < size; root++) {
            if (rank == root)
                test_fill(in, (size_t)n * sizeof *in, (uint64_t)root);
            MPI_Bcast(in, n, MPI_INT, root, all);
            CHECK_DATA(in, (size_t)n * sizeof *in, (uint64_t)root);
        }
        free(in);
        free(out);
    }
    int *in = test_memory((size_t)size * sizeof *in), *out = test_memory((size_t)size * sizeof *out);
    for (int i = 0; i < size; i++)
        out[i] = rank * size + i;
    MPI_Alltoall(out, 1, MPI_INT, in, 1, MPI_INT, all);
    for (int i = 0; i < size; i++)
        CHECK_EQUAL(in[i], i * size + rank);
    free(in);
    free(out);
}

/* ---- windows ----------------------------------------------------------------------------------------------------- */

static void pause_for(uint64_t *random)
{
    static const double pauses[] = {0, 0, 0.00005, 0.0003, 0.0012, 0.003};
    double pause = pauses[test_random(random) % (sizeof pauses / sizeof pauses[0])];
    if (pause > 0)
        test_sleep(pause);
}

/* Computes until the others have written that into its memory, without MPI. */
static bool compute(const volatile int *word, int expected)
{
    double end = test_now() + (test_failures == 0 ? PATIENT : 0);
    while (*word != expected && test_now() < end)
        test_sleep(0.00005);
    return *word == expected;
}

static void be_accessed(int origin, volatile int *words, uint64_t random)
{
    for (int k = 1; k <= ROUNDS; k++) {
        int token = 0, flag;
        if (k % 3 == 0)
            test_sleep(0.001);
        MPI_Recv(&token, 1, MPI_INT, origin, 5, all, MPI_STATUS_IGNORE);
        CHECK_EQUAL(token, k);
        if (k % 4 == 0)
            MPI_Iprobe(origin, 6, all, &flag, MPI_STATUS_IGNORE);
        pause_for(&random);
        CHECK(compute(&words[0], k), "%d in round %d: accesses wait until the target is in a call", words[0], k);
        MPI_Send(&k, 1, MPI_INT, origin, 7, all);
    }
}

static void access_one(int target, MPI_Win window, uint64_t random)
{
    for (int k = 1; k <= ROUNDS; k++) {
        int got[2] = {-1, -1};
        MPI_Send(&k, 1, MPI_INT, target, 5, all);
        pause_for(&random);
        double before = test_now();
        MPI_Win_lock(MPI_LOCK_SHARED, target, 0, window);
        MPI_Get(got, 2, MPI_INT, target, 0, 2, MPI_INT, window);
        MPI_Win_unlock(target, window);
        CHECK_EQUAL(got[0], k - 1);
        CHECK_EQUAL(got[1], 4711);
        double took = test_now() - before;
        CHECK(took < SERVED + SLACK, "%.2f s to read from one that computes", took);
        pause_for(&random);
        MPI_Win_lock(k % 2 ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, target, 0, window);
        MPI_Put(&k, 1, MPI_INT, target, 0, 1, MPI_INT, window);
        MPI_Win_unlock(target, window);
        MPI_Recv(got, 1, MPI_INT, target, 7, all, MPI_STATUS_IGNORE);
    }
}

/* Each child by a parent, and each parent by a child, of its host if there is one; the others are in a call. */
static void access_all(void)
{
    int *words;
    MPI_Win window;
    MPI_Win_allocate(2 * sizeof *words, sizeof *words, MPI_INFO_NULL, all, &words, &window);
    words[0] = 0;
    words[1] = 4711;
    MPI_Barrier(all);
    for (int target = 0; target < size; target++) {
        int origin = target < parents ? parents : 0, wish = is_other(target) && near[target] ? rank : size;
        MPI_Allreduce(MPI_IN_PLACE, &wish, 1, MPI_INT, MPI_MIN, all);
        origin = wish < size ? wish : origin;
        if (rank == target)
            be_accessed(origin, words, (uint64_t)target * 7919);
        if (rank == origin)
            access_one(target, window, (uint64_t)target * 104729 + 1);
        MPI_Barrier(all);
    }
    MPI_Win_free(&window);
}

/* ---- several threads --------------------------------------------------------------------------------------------- */

static void *thread_run(void *context)
{
    int tag = 200 + *(int *)context;
    for (int round = 0; round < 20; round++)
        for (int i = 0; i < size; i++)
            if (near[i])
                exchange(i, (size_t)(round * 1537 % 30011), tag);
    return NULL;
}

static void exchange_in_threads(void)
{
    pthread_t threads[THREADS];
    int numbers[THREADS];
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        test_need(pthread_create(&threads[i], NULL, thread_run, &numbers[i]) == 0, "there are no threads");
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

/* ---- what is counted, and what is left --------------------------------------------------------------------------- */

static unsigned long long counted(const char *name)
{
    unsigned long long value = 0;
    int provided, index, count;
    MPI_T_pvar_session session;
    MPI_T_pvar_handle handle;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    CHECK_EQUAL(MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index), MPI_SUCCESS);
    MPI_T_pvar_session_create(&session);
    MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count);
    CHECK_EQUAL(MPI_T_pvar_read(session, handle, &value), MPI_SUCCESS);
    MPI_T_pvar_handle_free(session, &handle);
    MPI_T_pvar_session_free(&session);
    MPI_T_finalize();
    return value;
}

/* Sockets of this process that lead to a network. */
static int network_sockets(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        int domain = 0;
        socklen_t length = sizeof domain;
        if (getsockopt(atoi(entry->d_name), SOL_SOCKET, SO_DOMAIN, &domain, &length) == 0 && domain != AF_UNIX)
            count++;
    }
    if (folder != NULL)
        closedir(folder);
    return count;
}

/* Memory that this process has in common with others, each once. */
static int shared_memories(void)
{
    char line[512];
    int count = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL)
        count += strstr(line, "memfd:tombolo-pair") != NULL;
    if (maps != NULL)
        fclose(maps);
    return count;
}

/* `before`: frames that went through memory of two with those who were started earlier. */
static void look_at_counters(unsigned long long before)
{
    unsigned long long frames = counted("tombolo_engine_paired") - before;
    int others = 0;
    for (int i = 0; i < size; i++)
        others += near[i];
    CHECK_EQUAL(shared_memories(), others);
    CHECK(others > 0 ? frames > MANY : frames == 0, "%llu frames with %d others", frames, others);
    if (alone) {
        CHECK_EQUAL(counted("tombolo_engine_direct"), 0);
        CHECK_EQUAL(counted("tombolo_engine_relayed"), 0);
        CHECK_EQUAL(network_sockets(), 0);
    }
}

/* The children have parted, and end. */
static void look_what_is_left(int descriptors)
{
    double end = test_now() + PATIENT;
    int flag;
    while (shared_memories() > 0 && test_now() < end) {
        MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        test_sleep(0.001);
    }
    CHECK_EQUAL(shared_memories(), 0);
    CHECK(descriptors < 0 || network_sockets() == descriptors, "%d sockets more than before",
          network_sockets() - descriptors);
}

/* ---- a child dies ------------------------------------------------------------------------------------------------ */

/* The last child dies in the middle of long messages. */
static void die(MPI_Comm inter, bool survived)
{
    int other = is_child ? 0 : CHILDREN - 1, error = MPI_SUCCESS, sum = 0;
    char *out = test_memory(300007), *in = test_memory(300007);
    MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
    test_fill(out, 300007, 1);
    bool exchanges = is_child ? test_rank == CHILDREN - 1 : test_rank == 0;
    for (int round = 0; exchanges && error == MPI_SUCCESS && round < 100000; round++) {
        MPI_Request request;
        MPI_Isend(out, 300007, MPI_BYTE, other, 1, inter, &request);
        if (is_child && round == 20)
            raise(SIGKILL);
        error = MPI_Recv(in, 300007, MPI_BYTE, other, 1, inter, MPI_STATUS_IGNORE);
        if (error == MPI_SUCCESS)
            error = MPI_Wait(&request, MPI_STATUS_IGNORE);
        else
            MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    if (!survived)
        test_sleep(60); /* the job is ended before */
    if (exchanges)
        CHECK_CLASS(error, MPI_ERR_PROC_ABORTED);
    if (test_rank == 0) /* those who are left go on */
        MPI_Sendrecv(out, 9000, MPI_BYTE, 0, 2, in, 9000, MPI_BYTE, 0, 2, inter, MPI_STATUS_IGNORE);
    if (!is_child)
        MPI_Reduce(&(int){test_failures}, &sum, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (!is_child && test_rank == 0 && sum == 0)
        printf("those who are left are well\n");
    free(out);
    free(in);
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static void together(MPI_Comm *inter, bool threads, int round)
{
    unsigned long long before = round > 0 ? counted("tombolo_engine_paired") : 0;
    MPI_Intercomm_merge(*inter, is_child, &all);
    MPI_Comm_rank(all, &rank);
    MPI_Comm_size(all, &size);
    parents = size - CHILDREN;
    find_near();
    exchange_all();
    send_many(50);
    MPI_Bcast(&round, 1, MPI_INT, 0, all);
    if (round == 0) {
        combine();
        access_all();
    }
    if (threads)
        exchange_in_threads();
    MPI_Barrier(all);
    look_at_counters(before);
    MPI_Barrier(all);
    free(near);
    MPI_Comm_disconnect(&all);
    MPI_Comm_disconnect(inter);
}

int main(int argc, char **argv)
{
    MPI_Comm inter;
    const char *how = argc > 1 ? argv[1] : "";
    bool threads = strcmp(how, "threads") == 0, dies = strcmp(how, "killed") == 0 || strcmp(how, "survived") == 0;
    test_begin_threads(&argc, &argv, threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE);
    MPI_Comm_get_parent(&inter);
    is_child = inter != MPI_COMM_NULL;
    int before = network_sockets();
    for (int round = 0; round < (is_child || dies ? 1 : 2); round++) {
        if (!is_child)
            MPI_Comm_spawn(argv[0], argc > 1 ? argv + 1 : MPI_ARGV_NULL, CHILDREN, MPI_INFO_NULL, 0, MPI_COMM_WORLD,
                           &inter, MPI_ERRCODES_IGNORE);
        if (dies) {
            die(inter, strcmp(how, "survived") == 0);
            break;
        }
        together(&inter, threads, round);
        if (!is_child)
            look_what_is_left(alone ? before : -1);
    }
    return test_end();
}
