/* Times and counts of broadcasts, for bench/multicast: compiled and run under each library alike. Rank 0 is the root.
 *
 * usage: multicast WHAT:BYTES:COUNT:ARGUMENT ...
 *   an operation   COUNT calls, which all ranks begin at an instant (instants.h). Rows "OPERATION BYTES SLOWEST
 *                  FASTEST": the times of the rank that ends last and of the first one that is not the root
 *   stop           broadcasts, in each of which the last rank is stopped for ARGUMENT milliseconds. Rows as above
 *   chosen         messages of Tombolo_Multicast to all other ranks, which receive them. Rows as above
 *   frames         how many frames the root's port sends for a broadcast, until ARGUMENT milliseconds after its
 *                  beginning, more than in as long a time before it, in which nobody does anything. Rows "frames BYTES
 *                  FRAMES TCP": all, and how many of them are segments of TCP
 *   pong           broadcasts that one rank answers, each rank in turn, COUNT times. Rows "pong BYTES RANK TIME": the
 *                  median time until the root has the answer, less the median of half a round trip of it
 *   skew           ranks come at random within ARGUMENT microseconds and ask the library for nothing before. Rows "skew
 *                  BYTES TIME": from the last arrival to the last end
 *   flow           broadcasts after each other, for ARGUMENT seconds; COUNT means nothing. A row "begin BYTES INSTANT"
 *                  when they begin, and at the end rows "flow BYTES INSTANT", at which each had come to all, seconds
 * Times are microseconds; one call more, the first, does not count, nor does one for which a rank came too late. Data
 * differs from call to call, and every byte is checked. After each of them come rows "counter WHAT BYTES NAME SUM
 * MOST", what the library counts of multicast, all ranks together and on the rank that has most of it. The end is a
 * line "done". */
#define _GNU_SOURCE
#include "instants.h"

#include <signal.h>
#include <unistd.h>

#if __has_include(<tombolo.h>)
#include <tombolo.h>
#else /* another library */
static int Tombolo_Multicast(const void *bytes, int count, MPI_Datatype type, const int *ranks, int n, int tag,
                             MPI_Comm whom)
{
    return MPI_ERR_OTHER;
}
#endif

#define COUNT_MOST 200000
#define LAST_SALT  255   /* of the data that ends a flow */
#define LATE_SHARE 0.005 /* of a call's time: so late a rank may come */
#define COUNTERS   8

static const char usage[] = "usage: multicast WHAT:BYTES:COUNT:ARGUMENT ...";
static const char *const counter_names[COUNTERS] = {"sent",     "used",     "early",   "late",
                                                    "repaired", "rejected", "control", "skew"};
static double times[COUNT_MOST], all[COUNT_MOST];

/* ---- counters ---------------------------------------------------------------------------------------------------- */

/* Libraries other than Tombolo have none: returns how many there are. */
static int counters_read(unsigned long long values[COUNTERS])
{
    MPI_T_pvar_session session;
    int found = 0, provided;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_T_pvar_session_create(&session);
    for (int i = 0; i < COUNTERS; i++) {
        char name[64];
        int index, count, class = i < COUNTERS - 1 ? MPI_T_PVAR_CLASS_COUNTER : MPI_T_PVAR_CLASS_LEVEL;
        MPI_T_pvar_handle handle;
        snprintf(name, sizeof name, "tombolo_engine_multicast_%s", counter_names[i]);
        values[i] = 0;
        if (MPI_T_pvar_get_index(name, class, &index) != MPI_SUCCESS)
            continue;
        MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count);
        MPI_T_pvar_read(session, handle, &values[i]);
        MPI_T_pvar_handle_free(session, &handle);
        found++;
    }
    MPI_T_pvar_session_free(&session);
    MPI_T_finalize();
    return found;
}

static void counters_print(const char *what, int n, const unsigned long long before[COUNTERS])
{
    unsigned long long values[COUNTERS], sum[COUNTERS], most[COUNTERS];
    int found = counters_read(values);
    for (int i = 0; i < COUNTERS - 1; i++) /* the last one is a level */
        values[i] -= before[i];
    MPI_Reduce(values, sum, COUNTERS, MPI_UNSIGNED_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Reduce(values, most, COUNTERS, MPI_UNSIGNED_LONG_LONG, MPI_MAX, 0, MPI_COMM_WORLD);
    for (int i = 0; rank == 0 && i < COUNTERS && found > 0; i++)
        printf("counter %s %d %s %llu %llu\n", what, n, counter_names[i], sum[i], most[i]);
    fflush(stdout);
}

/* ---- one message to chosen ranks --------------------------------------------------------------------------------- */

/* In place of a broadcast; the data are the same. */
static void do_chosen(int n)
{
    if (rank != root) {
        MPI_Recv(out, n, MPI_CHAR, root, 6, comm, MPI_STATUS_IGNORE);
        return;
    }
    int *others = malloc(sizeof *others * (size_t)size), count = 0;
    for (int i = 0; others && i < size; i++)
        if (i != root)
            others[count++] = i;
    if (!others || Tombolo_Multicast(out, n, MPI_CHAR, others, count, 6, comm) != MPI_SUCCESS)
        fail("no message to chosen ranks");
    free(others);
}

static void (*instead)(int n); /* of an operation's own call; or NULL */

/* ---- calls that begin at an instant ------------------------------------------------------------------------------ */

/* Stops this process soon after the instant, for so long. */
static void stop_later(double instant, double seconds)
{
    pid_t whom = getpid();
    if (fork() != 0)
        return;
    while (now() < instant + 1e-3)
        usleep(200);
    kill(whom, SIGSTOP);
    usleep((useconds_t)(seconds * 1e6));
    kill(whom, SIGCONT);
    _exit(0);
}

/* When all have it: who is first must not take the cores from those who are not. */
static void check_together(const struct operation *op, int n)
{
    MPI_Barrier(comm);
    check(op, n);
}

/* Returns its time; DROPPED if this rank came too late. */
static double call(const struct operation *op, int n, double stopped)
{
    salt = (salt + 1) % LAST_SALT;
    fill(op, n);
    double instant = ack_barrier(ahead);
    double late = now() - instant;
    if (stopped > 0 && rank == size - 1)
        stop_later(instant, stopped);
    wait_until(instant);
    (instead ? instead : op->run)(n);
    double took = now() - instant;
    check_together(op, n);
    return late > LATE_SHARE * took ? DROPPED : took;
}

static void measure_calls(const char *what, const struct operation *op, int n, int count, double stopped)
{
    static double fastest[COUNT_MOST], first[COUNT_MOST];
    call(op, n, stopped); /* warms the connections */
    for (int i = 0; i < count; i++) {
        times[i] = call(op, n, stopped);
        fastest[i] = rank == root ? DROPPED : times[i];
    }
    MPI_Reduce(times, all, count, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Reduce(fastest, first, count, MPI_DOUBLE, MPI_MIN, 0, MPI_COMM_WORLD);
    for (int i = 0; rank == 0 && i < count; i++)
        if (all[i] < DROPPED)
            printf("%s %d %.6g %.6g\n", what, n, all[i] * 1e6, first[i] * 1e6);
}

/* ---- frames ------------------------------------------------------------------------------------------------------ */

/* That the first interface beside the loopback has sent. */
static unsigned long long frames_sent(void)
{
    char line[512];
    unsigned long long frames = 0;
    FILE *file = fopen("/proc/net/dev", "r");
    while (file && fgets(line, sizeof line, file)) {
        char *colon = strchr(line, ':');
        if (!colon || strstr(line, " lo:"))
            continue;
        if (sscanf(colon + 1, "%*u %*u %*u %*u %*u %*u %*u %*u %*u %llu", &frames) == 1)
            break;
    }
    if (file)
        fclose(file);
    return frames;
}

/* Segments of TCP that this host has sent. */
static unsigned long long segments_sent(void)
{
    char line[1024];
    unsigned long long segments = 0;
    FILE *file = fopen("/proc/net/snmp", "r");
    while (file && fgets(line, sizeof line, file)) /* the second line of TCP has the numbers */
        if (sscanf(line, "Tcp: %*u %*u %*u %*d %*u %*u %*u %*u %*u %*u %llu", &segments) == 1)
            break;
    if (file)
        fclose(file);
    return segments;
}

/* What this host sends in the time from `begin` on, all and TCP; with a call or without. */
static void frames_count(const struct operation *op, int n, double begin, double seconds, long long counted[2])
{
    wait_until(begin);
    long long frames = (long long)frames_sent(), segments = (long long)segments_sent();
    if (op)
        op->run(n);
    wait_until(begin + seconds);
    counted[0] = (long long)frames_sent() - frames;
    counted[1] = (long long)segments_sent() - segments;
}

static void measure_frames(const struct operation *op, int n, int count, double quiet)
{
    for (int i = 0; i <= count; i++) {
        long long idle[2], busy[2];
        salt = (salt + 1) % LAST_SALT;
        fill(op, n);
        double instant = ack_barrier(ahead);
        frames_count(NULL, n, instant, 0.9 * quiet, idle);
        frames_count(op, n, instant + quiet, 0.9 * quiet, busy);
        double late = now() - instant;
        wait_until(instant + 2 * quiet);
        check(op, n);
        if (rank == 0 && i > 0 && late < 2 * quiet)
            printf("frames %d %lld %lld\n", n, busy[0] - idle[0], busy[1] - idle[1]);
    }
}

/* ---- the ways of the ipmc thesis --------------------------------------------------------------------------------- */

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, ascending);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

/* Half a round trip of the answer between the root and this rank, on the root. */
static double half_trip(int who, int count)
{
    for (int i = 0; i <= count && (rank == root || rank == who); i++) {
        double begin = now();
        if (rank == root) {
            MPI_Send(NULL, 0, MPI_CHAR, who, 3, comm);
            MPI_Recv(NULL, 0, MPI_CHAR, who, 4, comm, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(NULL, 0, MPI_CHAR, root, 3, comm, MPI_STATUS_IGNORE);
            MPI_Send(NULL, 0, MPI_CHAR, root, 4, comm);
        }
        times[i > 0 ? i - 1 : 0] = (now() - begin) / 2;
    }
    return rank == root ? median(times, count) : 0;
}

static void measure_pong(const struct operation *op, int n, int count)
{
    for (int who = 1; who < size; who++) {
        double trip = half_trip(who, count);
        for (int i = 0; i <= count; i++) {
            salt = (salt + 1) % LAST_SALT;
            fill(op, n);
            wait_until(ack_barrier(ahead));
            double begin = now();
            op->run(n);
            if (rank == who)
                MPI_Send(NULL, 0, MPI_CHAR, root, 5, comm);
            if (rank == root)
                MPI_Recv(NULL, 0, MPI_CHAR, who, 5, comm, MPI_STATUS_IGNORE);
            times[i > 0 ? i - 1 : 0] = now() - begin;
            check_together(op, n);
        }
        if (rank == root)
            printf("pong %d %d %.6g\n", n, who, (median(times, count) - trip) * 1e6);
    }
}

static void measure_skew(const struct operation *op, int n, int count, double spread)
{
    static double arrivals[COUNT_MOST], last[COUNT_MOST];
    srand((unsigned)rank + 1);
    for (int i = 0; i < count; i++) {
        salt = (salt + 1) % LAST_SALT;
        fill(op, n);
        double begin = ack_barrier(ahead) + spread * rand() / RAND_MAX, rest = begin - now();
        if (rest > 0)
            usleep((useconds_t)(rest * 1e6));
        arrivals[i] = now();
        op->run(n);
        times[i] = now();
        check_together(op, n);
    }
    MPI_Reduce(times, all, count, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Reduce(arrivals, last, count, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    for (int i = 1; rank == 0 && i < count; i++)
        printf("skew %d %.6g\n", n, (all[i] - last[i]) * 1e6);
}

/* ---- broadcasts after each other --------------------------------------------------------------------------------- */

/* Was this the last one? Its data says so, and is right whatever it is. */
static int flow_check(const struct operation *op, int n, int number)
{
    uint64_t begin;
    memcpy(&begin, out, sizeof begin);
    salt = LAST_SALT;
    int is_last = begin == content(root, 0, 0);
    salt = is_last ? LAST_SALT : number % LAST_SALT;
    check(op, n);
    return is_last;
}

static void measure_flow(const struct operation *op, int n, double seconds)
{
    int count = 0, over = 0;
    if (n < (int)sizeof(uint64_t))
        fail("a flow needs eight bytes");
    double instant = ack_barrier(ahead);
    wait_until(instant);
    if (rank == 0)
        printf("begin %d %.6f\n", n, instant);
    fflush(stdout);
    while (!over) {
        salt = count == COUNT_MOST - 1 || now() > instant + seconds ? LAST_SALT
                                                                    : count % LAST_SALT; /* the root's counts */
        fill(op, n);
        op->run(n);
        times[count] = now();
        over = flow_check(op, n, count++);
    }
    MPI_Reduce(times, all, count, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    for (int i = 0; rank == 0 && i < count; i++)
        printf("flow %d %.6f\n", n, all[i]);
}

/* ------------------------------------------------------------------------------------------------------------------ */

static void measure_cell(char *what)
{
    char *bytes = next_field(what, usage), *times_text = next_field(bytes, usage),
         *more = next_field(times_text, usage);
    unsigned long long before[COUNTERS];
    int n = atoi(bytes), count = atoi(times_text);
    double argument = atof(more);
    const char *own[] = {"stop", "frames", "pong", "skew", "flow", "chosen"};
    const struct operation *op = NULL;
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        if (strcmp(what, own[i]) == 0)
            op = operation_of("bcast");
    op = op ? op : operation_of(what);
    if (count < 1 || count >= COUNT_MOST)
        fail("too few calls or too many");
    room_open(op, n);
    instead = strcmp(what, "chosen") == 0 ? do_chosen : NULL;
    counters_read(before);
    if (strcmp(what, "frames") == 0)
        measure_frames(op, n, count, argument * 1e-3);
    else if (strcmp(what, "pong") == 0)
        measure_pong(op, n, count);
    else if (strcmp(what, "skew") == 0)
        measure_skew(op, n, count + 1, argument * 1e-6);
    else if (strcmp(what, "flow") == 0)
        measure_flow(op, n, argument);
    else
        measure_calls(what, op, n, count, strcmp(what, "stop") == 0 ? argument * 1e-3 : 0);
    counters_print(what, n, before);
    room_close();
}

int main(int argc, char **argv)
{
    signal(SIGCHLD, SIG_IGN);
    bench_open(&argc, &argv);
    find_ahead();
    for (int i = 1; i < argc; i++)
        measure_cell(argv[i]);
    bench_close();
    return 0;
}
