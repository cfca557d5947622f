/* Broadcasts by multicast, many of them: of any size, from any root, on communicators that come and go, with ranks that
 * come late. Every byte is checked; at the end rank 0 prints what multicast has done, as the counters of all ranks have
 * it.
 *
 *   casts COUNT MOST SEED [late]      MOST: bytes of the longest; late: ranks come to some of them a second too late
 *   casts COUNT MOST SEED one         all of MOST bytes, from rank 0
 *   casts COUNT MOST SEED die         a rank is killed in the middle, and the others are told
 *   casts COUNT MOST SEED mourn       the same, of broadcasts of MOST bytes; with --keep-going they say what they are
 *                                     told
 *   casts COUNT MOST SEED compute     the root of each computes afterwards, and calls nothing meanwhile
 *   casts COUNT MOST SEED turns       allgather and allgatherv of blocks of MOST bytes in all instead */
#include <mpi.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COUNTERS   10
#define COMM_MOST  64 /* ranks */
#define COMPUTED_S 3.0

static const char *const names[COUNTERS] = {"sent",     "used",        "early",       "late",    "repaired",
                                            "rejected", "repairs_one", "repairs_all", "control", "skew"};

static uint64_t state;

/* The same numbers on all ranks. */
static uint64_t draw(uint64_t below)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (state >> 33) % below;
}

static unsigned char byte_at(uint64_t message, uint64_t at)
{
    return (unsigned char)((message * 131 + at * 7 + (at >> 8)) & 255);
}

static size_t length_draw(uint64_t most)
{
    uint64_t bits = 0;
    while (bits < 63 && UINT64_C(1) << bits <= most)
        bits++;
    uint64_t length = draw((UINT64_C(1) << draw(bits + 1)) + 1);
    return (size_t)(length < most ? length : most);
}

static void cast(MPI_Comm comm, unsigned char *bytes, size_t length, int root, uint64_t message)
{
    int rank;
    MPI_Comm_rank(comm, &rank);
    for (size_t i = 0; i < length; i++)
        bytes[i] = rank == root ? byte_at(message, i) : 0;
    int code = MPI_Bcast(bytes, (int)length, MPI_UNSIGNED_CHAR, root, comm);
    if (code != MPI_SUCCESS) {
        char text[MPI_MAX_ERROR_STRING];
        int count;
        MPI_Error_string(code, text, &count);
        printf("told: %s\n", text);
        fflush(stdout);
        _exit(0);
    }
    for (size_t i = 0; i < length; i++)
        if (bytes[i] != byte_at(message, i)) {
            fprintf(stderr, "message %llu of %zu bytes from %d: byte %zu is wrong on rank %d\n",
                    (unsigned long long)message, length, root, i, rank);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
}

/* Blocks of all ranks, of one length or of many (some of them empty), in place or not, with or without waiting. */
static void gather_all(MPI_Comm comm, unsigned char *bytes, size_t most, uint64_t message)
{
    int rank, size, kind = (int)draw(8), at = 0, counts[COMM_MOST], starts[COMM_MOST];
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    size_t length = length_draw(most / (size_t)(size + 1));
    for (int i = 0; i < size; i++, at += counts[i - 1]) {
        counts[i] = (kind & 1) != 0 ? (int)((length * (size_t)(i * i + 3)) % (length + 1)) : (int)length;
        starts[i] = at;
    }
    unsigned char *block = bytes + at; /* `most` is enough for one more */
    memset(bytes, 0, (size_t)at);
    for (int i = 0; i < counts[rank]; i++)
        block[i] = bytes[starts[rank] + i] = byte_at(message + (uint64_t)rank, (uint64_t)i);
    const void *given = (kind & 2) != 0 ? MPI_IN_PLACE : block;
    MPI_Request request = MPI_REQUEST_NULL;
    if (kind == 0 || kind == 2)
        MPI_Allgather(given, (int)length, MPI_UNSIGNED_CHAR, bytes, (int)length, MPI_UNSIGNED_CHAR, comm);
    else if (kind == 4 || kind == 6)
        MPI_Iallgather(given, (int)length, MPI_UNSIGNED_CHAR, bytes, (int)length, MPI_UNSIGNED_CHAR, comm, &request);
    else
        MPI_Allgatherv(given, counts[rank], MPI_UNSIGNED_CHAR, bytes, counts, starts, MPI_UNSIGNED_CHAR, comm);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < size; i++)
        for (int k = 0; k < counts[i]; k++)
            if (bytes[starts[i] + k] != byte_at(message + (uint64_t)i, (uint64_t)k)) {
                fprintf(stderr, "allgather %llu of kind %d, %d bytes of rank %d: byte %d is wrong on rank %d\n",
                        (unsigned long long)message, kind, counts[i], i, k, rank);
                MPI_Abort(MPI_COMM_WORLD, 1);
            }
}

/* Who has lost something gets it while the root is in no call: within a time that is far shorter than it computes. */
static void compute(unsigned char *bytes, size_t length, uint64_t count)
{
    int rank, size;
    double longest = 0, of_all;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (uint64_t i = 0; i < count; i++) {
        int root = (int)(i % (uint64_t)size);
        MPI_Barrier(MPI_COMM_WORLD);
        double begin = MPI_Wtime();
        cast(MPI_COMM_WORLD, bytes, length, root, i);
        double took = MPI_Wtime() - begin;
        longest = took > longest ? took : longest;
        while (rank == root && MPI_Wtime() < begin + COMPUTED_S)
            ;
    }
    MPI_Allreduce(&longest, &of_all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 0 && of_all > COMPUTED_S / 2) {
        fprintf(stderr, "somebody had to wait %.3f s while a root computed for %.1f s\n", of_all, COMPUTED_S);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

static void counters_read(unsigned long long values[COUNTERS])
{
    MPI_T_pvar_session session;
    MPI_T_pvar_session_create(&session);
    for (int i = 0; i < COUNTERS; i++) {
        char name[64];
        int index, count;
        MPI_T_pvar_handle handle;
        snprintf(name, sizeof name, "tombolo_engine_multicast_%s", names[i]);
        int class = strcmp(names[i], "skew") == 0 ? MPI_T_PVAR_CLASS_LEVEL : MPI_T_PVAR_CLASS_COUNTER;
        if (MPI_T_pvar_get_index(name, class, &index) != MPI_SUCCESS)
            exit(2);
        MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count);
        MPI_T_pvar_read(session, handle, &values[i]);
        MPI_T_pvar_handle_free(session, &handle);
    }
    MPI_T_pvar_session_free(&session);
}

static void counters_print(void)
{
    unsigned long long values[COUNTERS], sums[COUNTERS];
    int rank;
    counters_read(values);
    MPI_Reduce(values, sums, COUNTERS, MPI_UNSIGNED_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; rank == 0 && i < COUNTERS; i++)
        printf("%s %llu\n", names[i], sums[i]);
}

int main(int argc, char **argv)
{
    int rank, size, provided, splits;
    MPI_Init(&argc, &argv);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 10) : 100,
             most = argc > 2 ? strtoull(argv[2], NULL, 10) : 65536;
    state = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
    int mourn = argc > 4 && strcmp(argv[4], "mourn") == 0, one = mourn || (argc > 4 && strcmp(argv[4], "one") == 0);
    int late = argc > 4 && strcmp(argv[4], "late") == 0, die = mourn || (argc > 4 && strcmp(argv[4], "die") == 0);
    int turns = argc > 4 && strcmp(argv[4], "turns") == 0 && size <= COMM_MOST;
    if (mourn)
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    unsigned char *bytes = malloc(most + 1);
    MPI_Comm part = MPI_COMM_NULL;
    if (argc > 4 && strcmp(argv[4], "compute") == 0 && bytes != NULL) {
        compute(bytes, most, count);
        count = 0;
    }
    MPI_Barrier(MPI_COMM_WORLD); /* who waits for what it has lost hears of later collectives meanwhile */
    for (uint64_t i = 0; i < count && bytes != NULL; i++) {
        size_t length = length_draw(most);
        int root = (int)draw((uint64_t)size), who = (int)draw((uint64_t)size), colors = 1 + (int)draw(3);
        int split = draw(8) == 0, comes_late = late && draw(50) == 0, dies = die && i == count / 2;
        if (one) {
            length = most;
            root = split = 0;
        }
        if (comes_late && rank == who)
            sleep(1);
        if (dies && rank == who)
            raise(SIGKILL);
        if (turns)
            gather_all(MPI_COMM_WORLD, bytes, most, i);
        else
            cast(MPI_COMM_WORLD, bytes, length, root, i);
        if (split) {
            if (part != MPI_COMM_NULL)
                MPI_Comm_free(&part);
            MPI_Comm_split(MPI_COMM_WORLD, rank % colors, rank, &part);
        }
        if (part != MPI_COMM_NULL && turns) {
            uint64_t here = state;
            gather_all(part, bytes, most / 2, i + count);
            state = here; /* parts of other sizes have drawn others */
        } else if (part != MPI_COMM_NULL) {
            MPI_Comm_size(part, &splits);
            cast(part, bytes, length / 2, root % splits, i + count);
        }
    }
    if (part != MPI_COMM_NULL)
        MPI_Comm_free(&part);
    counters_print();
    free(bytes);
    MPI_T_finalize();
    MPI_Finalize();
    return 0;
}
