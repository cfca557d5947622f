/* Tombolo_Multicast: each of the chosen ranks gets the message by an ordinary receive or probe, in order with the other
 * sends of that rank, whatever its length and type; the others get nothing. Arguments: `multiple` has several threads
 * call it, `brief` sends less. */
#include "test.h"

#include <pthread.h>
#include <tombolo.h>

#define RANKS   64
#define TAG     5
#define THREADS 2

static int longest = (1 << 20) + 7, rounds = 3;
static int lengths[] = {0, 1, 100, 8192, 65536, 65537, 200000, (1 << 20) + 7};
#define LENGTHS ((int)(sizeof lengths / sizeof lengths[0]))

static uint64_t name(int root, int index)
{
    return (uint64_t)root * 1000 + (uint64_t)index;
}

/* All ranks but one, in an order of its own; how many. */
static int others_of(int root, int ranks[RANKS])
{
    int n = 0;
    for (int i = test_size - 1; i > 0; i--)
        ranks[n++] = (root + i) % test_size;
    return n;
}

static void multicast_data(int length, uint64_t seed, const int ranks[], int n, int tag, MPI_Comm comm)
{
    unsigned char *data = test_memory((size_t)length);
    test_fill(data, (size_t)length, seed);
    CHECK_EQUAL(Tombolo_Multicast(data, length, MPI_BYTE, ranks, n, tag, comm), MPI_SUCCESS);
    memset(data, 0, (size_t)length); /* it may be used again */
    free(data);
}

/* ---- ways to receive --------------------------------------------------------------------------------------------- */

static void take(int way, int root, int length, uint64_t seed)
{
    unsigned char *data = test_memory(longest);
    MPI_Status status;
    MPI_Message message;
    MPI_Request request;
    if (way == 0) {
        MPI_Recv(data, longest, MPI_BYTE, root, TAG, MPI_COMM_WORLD, &status);
    } else if (way == 1) {
        MPI_Recv(data, longest, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    } else if (way == 2) {
        MPI_Probe(MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &status);
        CHECK_STATUS(&status, root, TAG, (size_t)length);
        MPI_Recv(data, length, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, MPI_COMM_WORLD, &status);
    } else if (way == 3) {
        MPI_Mprobe(root, MPI_ANY_TAG, MPI_COMM_WORLD, &message, &status);
        CHECK_STATUS(&status, root, TAG, (size_t)length);
        MPI_Mrecv(data, longest, MPI_BYTE, &message, &status);
    } else {
        MPI_Irecv(data, longest, MPI_BYTE, root, TAG, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, &status);
    }
    CHECK_STATUS(&status, root, TAG, (size_t)length);
    CHECK_DATA(data, (size_t)length, seed);
    CHECK(test_untouched(data + length, (size_t)(longest - length) + TEST_GUARD),
          "bytes behind the message have changed");
    free(data);
}

static void receives(int root)
{
    int ranks[RANKS];
    int n = others_of(root, ranks);
    for (int i = 0; i < LENGTHS; i++)
        if (test_rank == root)
            multicast_data(lengths[i], name(root, i), ranks, n, TAG, MPI_COMM_WORLD);
        else
            take((test_rank + i) % 5, root, lengths[i], name(root, i));
    MPI_Barrier(MPI_COMM_WORLD);
}

/* ---- order ------------------------------------------------------------------------------------------------------- */

/* Sends to one and to several in turn, long and short ones: each rank gets its own in this order. */
static void order(int root)
{
    enum { COUNT = 24 };
    int ranks[RANKS];
    int n = others_of(root, ranks), one = (root + 1) % test_size;
    for (int i = 0; i < COUNT && n > 0; i++) {
        bool to_one = i % 3 == 1;
        int length = lengths[(i * 5 + root) % LENGTHS];
        if (test_rank == root && to_one) {
            unsigned char *data = test_memory((size_t)length);
            test_fill(data, (size_t)length, name(root, i));
            MPI_Send(data, length, MPI_BYTE, one, TAG, MPI_COMM_WORLD);
            free(data);
        } else if (test_rank == root) {
            multicast_data(length, name(root, i), ranks, n, TAG, MPI_COMM_WORLD);
        } else if (test_rank == one || !to_one) {
            take(i % 2, root, length, name(root, i));
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* The receives are there before, in another order of lengths than the messages. */
static void posted(int root)
{
    unsigned char *data[LENGTHS];
    MPI_Request requests[LENGTHS];
    MPI_Status statuses[LENGTHS];
    int ranks[RANKS];
    int n = others_of(root, ranks);
    for (int i = 0; i < LENGTHS && test_rank != root; i++) {
        data[i] = test_memory(longest);
        MPI_Irecv(data[i], longest, MPI_BYTE, i % 2 ? MPI_ANY_SOURCE : root, TAG, MPI_COMM_WORLD, &requests[i]);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = LENGTHS; i-- > 0 && test_rank == root;)
        multicast_data(lengths[i], name(root, i), ranks, n, TAG, MPI_COMM_WORLD);
    if (test_rank != root)
        MPI_Waitall(LENGTHS, requests, statuses);
    for (int i = 0; i < LENGTHS && test_rank != root; i++) {
        int length = lengths[LENGTHS - 1 - i];
        CHECK_STATUS(&statuses[i], root, TAG, (size_t)length);
        CHECK_DATA(data[i], (size_t)length, name(root, LENGTHS - 1 - i));
        free(data[i]);
    }
    MPI_Barrier(MPI_COMM_WORLD); /* so that no receive with an open source meets what is sent next */
}

/* A rank that receives late holds up none of the others: it waits for a word of one that has its message already. */
static void late(int length)
{
    int ranks[RANKS], word = 0;
    int n = others_of(0, ranks), last = test_size - 1;
    if (test_size < 3)
        return;
    if (test_rank == last)
        MPI_Recv(&word, 1, MPI_INT, 1, TAG + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (test_rank == 0)
        multicast_data(length, 77, ranks, n, TAG, MPI_COMM_WORLD);
    else
        take(0, 0, length, 77);
    if (test_rank == 1)
        MPI_Send(&word, 1, MPI_INT, last, TAG + 1, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* ---- whom it reaches --------------------------------------------------------------------------------------------- */

/* Some of the ranks, the caller among them, one of them twice, and nobody. */
static void chosen(int length)
{
    int ranks[RANKS], n = 0, copies = test_rank % 2 == 0 ? 1 : 0;
    unsigned char *own = test_memory((size_t)length);
    MPI_Request request;
    for (int i = 0; i < test_size; i += 2)
        ranks[n++] = i;
    ranks[n++] = MPI_PROC_NULL;
    ranks[n++] = test_size - 1;
    copies += test_rank == test_size - 1;
    if (test_rank == 0) {
        unsigned char *second = test_memory((size_t)length);
        MPI_Request again = MPI_REQUEST_NULL;
        MPI_Irecv(own, length, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &request);
        if (copies == 2)
            MPI_Irecv(second, length, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &again);
        multicast_data(length, 99, ranks, n, TAG, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Wait(&again, MPI_STATUS_IGNORE);
        CHECK_DATA(own, (size_t)length, 99);
        if (copies == 2)
            CHECK_DATA(second, (size_t)length, 99);
        free(second);
    }
    for (int i = 0; i < copies && test_rank != 0; i++)
        take(i, 0, length, 99);
    MPI_Barrier(MPI_COMM_WORLD);
    int flag = -1;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    CHECK_EQUAL(flag, 0);
    free(own);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* One has room for a part of it, and one for nothing. */
static void truncated(void)
{
    int ranks[RANKS], room = test_rank == 1 ? longest - 1000 : test_rank == 2 ? 0 : longest;
    int n = others_of(0, ranks);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (test_rank == 0) {
        multicast_data(longest, 55, ranks, n, TAG, MPI_COMM_WORLD);
    } else {
        unsigned char *data = test_memory(longest);
        int code = MPI_Recv(data, room, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK_CLASS(code, room < longest ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
        CHECK_DATA(data, (size_t)room, 55);
        CHECK(test_untouched(data + room, TEST_GUARD), "bytes behind the room have changed");
        free(data);
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Every rank to all others at once. */
static void everyone(int length)
{
    unsigned char *data[RANKS];
    MPI_Request requests[RANKS];
    int ranks[RANKS];
    int n = others_of(test_rank, ranks);
    for (int i = 0; i < n; i++) {
        data[i] = test_memory((size_t)length);
        MPI_Irecv(data[i], length, MPI_BYTE, ranks[i], TAG, MPI_COMM_WORLD, &requests[i]);
    }
    multicast_data(length, name(test_rank, 0), ranks, n, TAG, MPI_COMM_WORLD);
    MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < n; i++) {
        CHECK_DATA(data[i], (size_t)length, name(ranks[i], 0));
        free(data[i]);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* To the remote group of an intercommunicator, of which the even ranks are one side. */
static void between(int length)
{
    MPI_Comm half, inter;
    int n = 0, rank, ranks[RANKS];
    if (test_size < 2)
        return;
    MPI_Comm_split(MPI_COMM_WORLD, test_rank % 2, 0, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - test_rank % 2, 3, &inter);
    MPI_Comm_remote_size(inter, &n);
    MPI_Comm_rank(inter, &rank);
    for (int i = 0; i < n; i++)
        ranks[i] = i;
    if (test_rank == 0) {
        multicast_data(length, 44, ranks, n, TAG, inter);
    } else if (test_rank % 2 == 1) {
        unsigned char *data = test_memory((size_t)length);
        MPI_Status status;
        MPI_Recv(data, length, MPI_BYTE, MPI_ANY_SOURCE, TAG, inter, &status);
        CHECK_STATUS(&status, 0, TAG, (size_t)length);
        CHECK_DATA(data, (size_t)length, 44);
        free(data);
    }
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
}

/* ---- types ------------------------------------------------------------------------------------------------------- */

/* Every second of so many doubles at the root, or at the receivers, or at both. */
static void types(int count, bool gaps_out, bool gaps_in)
{
    MPI_Datatype gaps;
    int ranks[RANKS];
    int n = others_of(0, ranks);
    bool with_gaps = test_rank == 0 ? gaps_out : gaps_in;
    int step = with_gaps ? 2 : 1;
    double *data = test_memory((size_t)count * 2 * sizeof *data);
    MPI_Type_vector(count, 1, 2, MPI_DOUBLE, &gaps);
    MPI_Type_commit(&gaps);
    for (int i = 0; i < count * 2; i++)
        data[i] = -1;
    if (test_rank == 0) {
        for (int i = 0; i < count; i++)
            data[i * step] = i;
        if (gaps_out)
            Tombolo_Multicast(data, 1, gaps, ranks, n, TAG, MPI_COMM_WORLD);
        else
            Tombolo_Multicast(data, count, MPI_DOUBLE, ranks, n, TAG, MPI_COMM_WORLD);
    } else {
        MPI_Recv(data, gaps_in ? 1 : count, gaps_in ? gaps : MPI_DOUBLE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        bool right = true;
        for (int i = 0; i < count * 2; i++)
            right = right && data[i] == (i % step == 0 && i / step < count ? i / step : -1);
        CHECK(right, "other elements than were sent, of %d", count);
    }
    MPI_Type_free(&gaps);
    free(data);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* ---- errors ------------------------------------------------------------------------------------------------------ */

static void errors(void)
{
    int ranks[] = {test_rank, test_size}, flag = -1, any[] = {MPI_ANY_SOURCE}, self[] = {test_rank}, data = 3;
    MPI_Comm freed, copy;
    MPI_Datatype raw;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    freed = copy;
    MPI_Comm_free(&copy);
    MPI_Type_contiguous(2, MPI_INT, &raw);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm w = MPI_COMM_WORLD;
    CHECK_CLASS(Tombolo_Multicast(&data, 1, MPI_INT, ranks, 2, TAG, w), MPI_ERR_RANK);
    CHECK_CLASS(Tombolo_Multicast(&data, 1, MPI_INT, any, 1, TAG, w), MPI_ERR_RANK);
    CHECK_CLASS(Tombolo_Multicast(&data, 1, MPI_INT, self, 1, -1, w), MPI_ERR_TAG);
    CHECK_CLASS(Tombolo_Multicast(&data, 1, MPI_INT, self, 1, MPI_ANY_TAG, w), MPI_ERR_TAG);
    CHECK_CLASS(Tombolo_Multicast(&data, 1, MPI_INT, self, 0, -1, w), MPI_ERR_TAG);
    CHECK_CLASS(Tombolo_Multicast(&data, 1, MPI_DATATYPE_NULL, self, 1, TAG, w), MPI_ERR_TYPE);
    CHECK_CLASS(Tombolo_Multicast(&data, 1, raw, self, 1, TAG, w), MPI_ERR_TYPE);
    CHECK_CLASS(Tombolo_Multicast(&data, -1, MPI_INT, self, 1, TAG, w), MPI_ERR_COUNT);
    CHECK_CLASS(Tombolo_Multicast(NULL, 1, MPI_INT, self, 1, TAG, w), MPI_ERR_BUFFER);
    CHECK_CLASS(Tombolo_Multicast(&data, 1, MPI_INT, NULL, 1, TAG, w), MPI_ERR_ARG);
    CHECK_CLASS(Tombolo_Multicast(&data, 1, MPI_INT, self, -1, TAG, w), MPI_ERR_ARG);
    CHECK_CLASS(Tombolo_Multicast(&data, 1, MPI_INT, self, 1, TAG, MPI_COMM_NULL), MPI_ERR_COMM);
    CHECK_CLASS(Tombolo_Multicast(&data, 1, MPI_INT, self, 1, TAG, freed), MPI_ERR_COMM);
    CHECK_CLASS(Tombolo_Multicast(&data, 1, MPI_INT, NULL, 0, TAG, w), MPI_SUCCESS);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, w, &flag, MPI_STATUS_IGNORE);
    CHECK_EQUAL(flag, 0);
    MPI_Type_free(&raw);
    MPI_Barrier(w);
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

static void *thread_main(void *argument)
{
    int tag = *(int *)argument, ranks[RANKS];
    int n = others_of(0, ranks);
    for (int i = 0; i < LENGTHS; i++) {
        if (test_rank == 0) {
            multicast_data(lengths[i], name(tag, i), ranks, n, tag, MPI_COMM_WORLD);
            continue;
        }
        unsigned char *data = test_memory((size_t)lengths[i]);
        MPI_Recv(data, lengths[i], MPI_BYTE, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK_DATA(data, (size_t)lengths[i], name(tag, i));
        free(data);
    }
    return NULL;
}

static void threads(void)
{
    pthread_t ids[THREADS];
    int tags[THREADS];
    for (int i = 0; i < THREADS; i++) {
        tags[i] = 100 + i;
        test_need(pthread_create(&ids[i], NULL, thread_main, &tags[i]) == 0, "there is no thread");
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(ids[i], NULL);
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    bool multiple = argc > 1 && strcmp(argv[1], "multiple") == 0;
    if (argc > 1 && strcmp(argv[1], "brief") == 0) {
        rounds = 1;
        longest = lengths[LENGTHS - 1] = lengths[LENGTHS - 2] = 70001;
    }
    test_begin_threads(&argc, &argv, multiple ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE);
    test_need(test_size <= RANKS, "there are too many ranks");
    for (int root = 0; root < test_size && root < rounds; root++) {
        receives(root);
        order(root);
        posted(root);
    }
    late(100);
    late(longest);
    chosen(1000);
    chosen(longest);
    truncated();
    everyone(1000);
    everyone(100000);
    between(10);
    between(longest);
    types(1000, true, false);
    types(20000, true, true);
    types(20000, false, true);
    errors();
    if (multiple)
        threads();
    return test_end();
}
