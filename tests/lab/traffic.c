/* Traffic whose every byte is checked, for faults that come from outside. In each round every rank exchanges a message
 * with another one; who it is, how long the message is and what it says differs from round to round. Now and then a
 * collective. When the time is over, rank 0 says how many rounds there were and how long the longest took.
 *
 * usage: traffic SECONDS [LARGEST]
 *        traffic told SECONDS      the same; rank 0 also says how often each rank was told at least that routes have
 * changed traffic abort SECONDS     after so long the last rank calls MPI_Abort with 7 traffic stopped BYTES     rank 0
 * sends to rank 2, which stops itself in the midst of it traffic first SECONDS     rank 0 stops itself before the first
 * message of all; then as above
 *
 * Before that stop and twice after it, rank 1 and rank 3 exchange short messages for two seconds and say how many. Then
 * somebody has to let rank 2 go on. */
#include "../mpi/test.h"

#include <signal.h>

#define LARGEST     300000
#define TAG         5
#define TAGS        30000
#define COLLECTIVE  8 /* every so many rounds */
#define OTHERS_S    2.0
#define FIRST       (1 << 20) /* bytes that come before the receiver stops */
#define SHORT_BYTES 1000

static size_t largest = LARGEST;

static size_t length_of(uint64_t round, int from)
{
    static const size_t lengths[] = {0, 8, 100, 1000, 8193, 32769, 70000};
    uint64_t state = round * 64 + (uint64_t)from;
    uint64_t number = test_random(&state);
    size_t length = number % 8 == 7 ? number / 8 % (largest + 1) : lengths[number % 8];
    return length < largest ? length : largest;
}

static uint64_t name_of(uint64_t round, int from)
{
    return round * 1024 + (uint64_t)from;
}

/* Everybody sends to the one `shift` further on. */
static void exchange(uint64_t round, unsigned char *out, unsigned char *in)
{
    uint64_t state = round * 977;
    int shift = 1 + (int)(test_random(&state) % (uint64_t)(test_size - 1));
    int to = (test_rank + shift) % test_size, from = (test_rank + test_size - shift) % test_size;
    size_t mine = length_of(round, test_rank), theirs = length_of(round, from);
    int tag = (int)(round % TAGS); /* whoever is ahead is not taken for who is meant */
    MPI_Status status;
    test_fill(out, mine, name_of(round, test_rank));
    test_clear(in, theirs);
    MPI_Sendrecv(out, (int)mine, MPI_BYTE, to, tag, in, (int)largest, MPI_BYTE, round % 2 ? MPI_ANY_SOURCE : from, tag,
                 MPI_COMM_WORLD, &status);
    CHECK_STATUS(&status, from, tag, theirs);
    CHECK_DATA(in, theirs, name_of(round, from));
    CHECK(test_untouched(in + theirs, TEST_GUARD), "bytes behind the message of round %llu", (unsigned long long)round);
}

static bool go_on(double end)
{
    int on = test_now() < end, sum = 0;
    MPI_Bcast(&on, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Allreduce(&test_rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK_EQUAL(sum, test_size * (test_size - 1) / 2);
    return on;
}

static bool listening;  /* for changes of routes */
static MPI_Count times; /* that they have changed, as the last one says */
static int told;        /* how many were told */

static void note_change(MPI_T_event_instance instance, MPI_T_event_registration registration, MPI_T_cb_safety safety,
                        void *user_data)
{
    MPI_Count now = -1;
    CHECK_EQUAL(MPI_T_event_copy(instance, &now), MPI_SUCCESS);
    CHECK(now > times, "%lld after %lld", (long long)now, (long long)times);
    times = now;
    told++;
}

static void listen_for_changes(void)
{
    int provided, index = -1;
    MPI_T_event_registration registration;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_T_event_get_index("tombolo_routes_changed", &index);
    MPI_T_event_handle_alloc(index, NULL, MPI_INFO_NULL, &registration);
    MPI_T_event_register_callback(registration, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL, NULL, note_change);
    listening = true;
}

static void say_told(void)
{
    int least = 0;
    MPI_Reduce(&told, &least, 1, MPI_INT, MPI_MIN, 0, MPI_COMM_WORLD);
    if (test_rank == 0)
        printf("told %d\n", least);
    MPI_T_finalize();
}

static void rounds(double seconds)
{
    unsigned char *out = test_memory(largest), *in = test_memory(largest);
    double end = test_now() + seconds, longest = 0, before = test_now();
    uint64_t round = 0;
    bool on = test_size > 1;
    if (test_rank == 0)
        puts("running");
    fflush(stdout);
    while (on) {
        exchange(round++, out, in);
        if (round % COLLECTIVE == 0)
            on = go_on(end);
        double now = test_now();
        longest = now - before > longest ? now - before : longest;
        before = now;
    }
    if (listening)
        say_told();
    if (test_rank == 0)
        printf("rounds %llu longest %.3f\n", (unsigned long long)round, longest);
    free(out);
    free(in);
}

/* A rank that ends the job while the others wait for it. */
static void give_up(double seconds)
{
    int word = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    if (test_rank == 0) {
        puts("running");
        fflush(stdout);
    }
    if (test_rank == test_size - 1) {
        test_sleep(seconds);
        MPI_Abort(MPI_COMM_WORLD, 7);
    }
    MPI_Recv(&word, 1, MPI_INT, test_size - 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void send_long(size_t bytes)
{
    unsigned char *data = test_memory(bytes);
    MPI_Request requests[2];
    test_fill(data, bytes, bytes);
    MPI_Isend(data, FIRST, MPI_BYTE, 2, TAG, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(data + FIRST, (int)(bytes - FIRST), MPI_BYTE, 2, TAG, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    free(data);
}

static void receive_long(size_t bytes)
{
    unsigned char *data = test_memory(bytes);
    MPI_Request requests[2];
    MPI_Irecv(data, FIRST, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(data + FIRST, (int)(bytes - FIRST), MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &requests[1]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    for (int to = 1; to <= 3; to += 2)
        MPI_Ssend(&to, 1, MPI_INT, to, TAG, MPI_COMM_WORLD);
    puts("stopping");
    fflush(stdout);
    raise(SIGSTOP);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    CHECK_DATA(data, bytes, bytes);
    free(data);
}

/* Rank 1 and rank 3 in turns; the first says how often. */
static void exchange_short(void)
{
    char data[SHORT_BYTES] = "";
    int peer = test_rank == 1 ? 3 : 1, on = 1;
    long count = 0;
    for (double end = test_now() + OTHERS_S; on != 0; count++) {
        if (test_rank == 1) {
            on = test_now() < end;
            memcpy(data, &on, sizeof on);
            MPI_Send(data, SHORT_BYTES, MPI_BYTE, peer, TAG, MPI_COMM_WORLD);
        }
        MPI_Recv(data, SHORT_BYTES, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        memcpy(&on, data, sizeof on);
        if (test_rank == 3)
            MPI_Send(data, SHORT_BYTES, MPI_BYTE, peer, TAG, MPI_COMM_WORLD);
    }
    if (test_rank == 1) {
        printf("short %ld\n", count);
        fflush(stdout);
    }
}

static void stop(size_t bytes)
{
    test_need(test_size >= 4, "four ranks are needed");
    if (test_rank == 1 || test_rank == 3)
        exchange_short(); /* nothing else on the way */
    MPI_Barrier(MPI_COMM_WORLD);
    if (test_rank == 0)
        send_long(bytes);
    else if (test_rank == 2)
        receive_long(bytes);
    else if (test_rank == 1 || test_rank == 3) {
        int word;
        MPI_Recv(&word, 1, MPI_INT, 2, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        test_sleep(1); /* by then whatever can be filled is full */
        exchange_short();
        exchange_short();
    }
    if (test_rank == 1) {
        puts("waiting");
        fflush(stdout);
    }
}

int main(int argc, char **argv)
{
    test_begin(&argc, &argv);
    if (argc > 2 && strcmp(argv[1], "first") == 0) {
        if (test_rank == 0) {
            puts("stopping");
            fflush(stdout);
            raise(SIGSTOP);
        }
        rounds(atof(argv[2]));
    } else if (argc > 2 && strcmp(argv[1], "told") == 0) {
        listen_for_changes();
        rounds(atof(argv[2]));
    } else if (argc > 2 && strcmp(argv[1], "abort") == 0)
        give_up(atof(argv[2]));
    else if (argc > 2 && strcmp(argv[1], "stopped") == 0)
        stop((size_t)atoll(argv[2]));
    else {
        largest = argc > 2 ? (size_t)atoll(argv[2]) : largest;
        rounds(argc > 1 ? atof(argv[1]) : 1);
    }
    return test_end();
}
