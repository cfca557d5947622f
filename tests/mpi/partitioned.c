/* Partitioned messages: partitions of both sides that do not meet, types, order, threads, partitions that arrive before
 * others are ready, and what goes wrong. Each rank sends to the next of a ring and receives from the one before it. */
#include "test.h"

#include <pthread.h>

#define ROUNDS  5
#define THREADS 4

static MPI_Request psend(const void *data, int partitions, MPI_Count count, MPI_Datatype type, int tag)
{
    MPI_Request request = MPI_REQUEST_NULL;
    CHECK_EQUAL(
        MPI_Psend_init_c(data, partitions, count, type, test_next(), tag, MPI_COMM_WORLD, MPI_INFO_NULL, &request),
        MPI_SUCCESS);
    return request;
}

static MPI_Request precv(void *data, int partitions, MPI_Count count, MPI_Datatype type, int tag)
{
    MPI_Request request = MPI_REQUEST_NULL;
    CHECK_EQUAL(
        MPI_Precv_init_c(data, partitions, count, type, test_previous(), tag, MPI_COMM_WORLD, MPI_INFO_NULL, &request),
        MPI_SUCCESS);
    return request;
}

static void start_both(MPI_Request requests[2])
{
    CHECK_EQUAL(MPI_Startall(2, requests), MPI_SUCCESS);
}

static void free_both(MPI_Request requests[2])
{
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
}

/* All that may be asked of a finished one, and that its status is right. */
static void finish_both(MPI_Request requests[2], size_t bytes, int tag)
{
    MPI_Status status[2];
    int flag = -1;
    CHECK_EQUAL(MPI_Waitall(2, requests, status), MPI_SUCCESS);
    CHECK_STATUS(&status[1], test_previous(), tag, bytes);
    CHECK_EQUAL(MPI_Parrived(requests[1], 0, &flag), MPI_SUCCESS);
    CHECK_EQUAL(flag, 1);
}

/* Partitions of bytes, made ready from the last to the first. */
static void unequal(int sent, int received, int bytes)
{
    unsigned char *out = test_memory((size_t)bytes), *in = test_memory((size_t)bytes);
    MPI_Request both[2] = {psend(out, sent, bytes / sent, MPI_BYTE, 3),
                           precv(in, received, bytes / received, MPI_BYTE, 3)};
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t seed = (uint64_t)(round * 100);
        test_clear(in, (size_t)bytes);
        test_fill(out, (size_t)bytes, seed + (uint64_t)test_rank);
        start_both(both);
        for (int i = sent; i-- > 0;)
            CHECK_EQUAL(MPI_Pready(i, both[0]), MPI_SUCCESS);
        for (int i = 0; i < received; i++) {
            int flag = 0, last = bytes / received * (i + 1);
            while (!flag)
                MPI_Parrived(both[1], i, &flag);
            if (round == 0 && i == received - 1)
                CHECK_DATA(in, (size_t)last, seed + (uint64_t)test_previous());
        }
        finish_both(both, (size_t)bytes, 3);
        CHECK_DATA(in, (size_t)bytes, seed + (uint64_t)test_previous());
        CHECK(test_untouched(in + bytes, TEST_GUARD), "bytes behind the buffer were written");
    }
    free_both(both);
    free(in);
    free(out);
}

/* Every other int of the receiver; its items, of three ints, do not end where partitions of the sender do. */
static void strided(void)
{
    enum { ITEMS = 12, INTS = 3 * ITEMS };
    int out[INTS], in[2 * INTS];
    MPI_Datatype type;
    MPI_Type_vector(3, 1, 2, MPI_INT, &type);
    MPI_Type_create_resized(type, 0, 6 * (MPI_Aint)sizeof(int), &type);
    MPI_Type_commit(&type);
    MPI_Request both[2] = {psend(out, 9, INTS / 9, MPI_INT, 1), precv(in, 4, ITEMS / 4, type, 1)};
    MPI_Type_free(&type); /* requests keep it */
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < INTS; i++)
            out[i] = test_rank * 1000 + round * 100 + i;
        memset(in, -1, sizeof in);
        start_both(both);
        MPI_Pready_range(3, 8, both[0]);
        MPI_Pready_list(3, (int[]){2, 0, 1}, both[0]);
        finish_both(both, sizeof out, 1);
        for (int i = 0; i < 2 * INTS; i++)
            CHECK_EQUAL(in[i], i % 2 == 0 ? test_previous() * 1000 + round * 100 + i / 2 : -1);
    }
    free_both(both);
}

/* The sender waits for an answer to its first partition before the second is ready. */
static void one_by_one(int bytes)
{
    unsigned char *out = test_memory(2 * (size_t)bytes), *in = test_memory(2 * (size_t)bytes);
    MPI_Request both[2] = {psend(out, 2, bytes, MPI_BYTE, 7), precv(in, 2, bytes, MPI_BYTE, 7)};
    int flag = 0, answer = -1;
    test_fill(out, 2 * (size_t)bytes, (uint64_t)test_rank);
    start_both(both);
    MPI_Pready(0, both[0]);
    while (!flag)
        MPI_Parrived(both[1], 0, &flag);
    CHECK_DATA(in, (size_t)bytes, (uint64_t)test_previous());
    MPI_Parrived(both[1], 1, &flag);
    CHECK_EQUAL(flag, 0);
    MPI_Test(&both[0], &flag, MPI_STATUS_IGNORE);
    CHECK_EQUAL(flag, 0);
    MPI_Sendrecv(&test_rank, 1, MPI_INT, test_previous(), 7, &answer, 1, MPI_INT, test_next(), 7, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE); /* the same tag, and nothing is confused */
    CHECK_EQUAL(answer, test_next());
    MPI_Pready(1, both[0]);
    finish_both(both, 2 * (size_t)bytes, 7);
    CHECK_DATA(in, 2 * (size_t)bytes, (uint64_t)test_previous());
    free_both(both);
    free(in);
    free(out);
}

/* Of the same tag the first send belongs to the first receive, whichever is started first, and also if some never are.
 */
static void in_order(void)
{
    int out[4] = {0, 10, 20, 30}, in[4] = {-1, -1, -1, -1};
    MPI_Request sends[4], receives[4];
    for (int i = 0; i < 4; i++) {
        sends[i] = psend(&out[i], 1, 1, MPI_INT, 9);
        receives[i] = precv(&in[i], 1, 1, MPI_INT, 9);
    }
    MPI_Request_free(&sends[0]);
    MPI_Request_free(&receives[0]);
    for (int i = 3; i > 0; i--) {
        MPI_Start(&sends[i]);
        MPI_Pready(0, sends[i]);
    }
    for (int i = 1; i < 4; i++)
        MPI_Start(&receives[i]);
    for (int i = 1; i < 4; i++) {
        MPI_Wait(&receives[i], MPI_STATUS_IGNORE);
        MPI_Wait(&sends[i], MPI_STATUS_IGNORE);
        CHECK_EQUAL(in[i], 10 * i);
        MPI_Request_free(&sends[i]);
        MPI_Request_free(&receives[i]);
    }
    CHECK_EQUAL(in[0], -1);
}

/* More than are messages, and none with anything in it. */
static void many_and_empty(void)
{
    enum { MANY = 200000 };
    unsigned char *out = test_memory(MANY), *in = test_memory(MANY);
    MPI_Request both[2] = {psend(out, MANY, 1, MPI_BYTE, 4), precv(in, 1, MANY, MPI_BYTE, 4)};
    test_fill(out, MANY, (uint64_t)test_rank);
    start_both(both);
    CHECK_EQUAL(MPI_Pready_range(0, MANY - 1, both[0]), MPI_SUCCESS);
    finish_both(both, MANY, 4);
    CHECK_DATA(in, MANY, (uint64_t)test_previous());
    free_both(both);
    both[0] = psend(NULL, 3, 0, MPI_BYTE, 4);
    both[1] = precv(NULL, 2, 0, MPI_BYTE, 4);
    for (int round = 0; round < ROUNDS; round++) {
        start_both(both);
        MPI_Pready_range(0, 2, both[0]);
        finish_both(both, 0, 4);
    }
    free_both(both);
    free(in);
    free(out);
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

struct share {
    pthread_t thread;
    MPI_Request request;
    unsigned char *out;
    int first, bytes;
    uint64_t seed;
};

static void *fill_some(void *argument)
{
    struct share *s = argument;
    for (int i = s->first; i < s->first + 8; i++) {
        test_fill(s->out + i * s->bytes, (size_t)s->bytes, s->seed + (uint64_t)i);
        CHECK_EQUAL(MPI_Pready(i, s->request), MPI_SUCCESS);
    }
    return NULL;
}

/* The main thread waits while the others make partitions ready. */
static void in_threads(int bytes)
{
    enum { PARTITIONS = THREADS * 8 };
    size_t all = (size_t)PARTITIONS * (size_t)bytes;
    unsigned char *out = test_memory(all), *in = test_memory(all);
    MPI_Request both[2] = {psend(out, PARTITIONS, bytes, MPI_BYTE, 6), precv(in, PARTITIONS, bytes, MPI_BYTE, 6)};
    struct share shares[THREADS];
    for (int round = 0; round < ROUNDS; round++) {
        start_both(both);
        for (int i = 0; i < THREADS; i++) {
            shares[i] = (struct share){.request = both[0], .out = out, .first = 8 * i, .bytes = bytes};
            shares[i].seed = (uint64_t)(test_rank * 1000 + round * 100);
            pthread_create(&shares[i].thread, NULL, fill_some, &shares[i]);
        }
        finish_both(both, all, 6);
        for (int i = 0; i < THREADS; i++)
            pthread_join(shares[i].thread, NULL);
        for (int i = 0; i < PARTITIONS; i++)
            CHECK_DATA(in + i * bytes, (size_t)bytes, (uint64_t)(test_previous() * 1000 + round * 100 + i));
    }
    free_both(both);
    free(in);
    free(out);
}

/* ---- errors ------------------------------------------------------------------------------------------------------ */

static void nobody(void)
{
    int data = 5, flag = 0;
    MPI_Request send, receive;
    MPI_Status status;
    MPI_Psend_init(&data, 2, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &send);
    MPI_Precv_init(&data, 2, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &receive);
    MPI_Start(&send);
    MPI_Start(&receive);
    CHECK_EQUAL(MPI_Pready_range(0, 1, send), MPI_SUCCESS);
    MPI_Parrived(receive, 1, &flag);
    CHECK_EQUAL(flag, 1);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    MPI_Wait(&receive, &status);
    CHECK_STATUS(&status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
    MPI_Request_free(&send);
    MPI_Request_free(&receive);
    MPI_Parrived(MPI_REQUEST_NULL, 0, &flag);
    CHECK_EQUAL(flag, 1);
}

/* Of a receive nothing is said that is so of sends alone. */
static void no_wildcards(void)
{
    static const char *const needs[] = {"a partitioned receive needs one source",
                                        "a partitioned receive needs one tag"};
    MPI_Request r = MPI_REQUEST_NULL;
    int d = 0;
    for (int i = 0; i < 2; i++) {
        char text[MPI_MAX_ERROR_STRING] = "";
        int length, code = MPI_Precv_init(&d, 1, 1, MPI_INT, i == 0 ? MPI_ANY_SOURCE : 0, i == 0 ? 0 : MPI_ANY_TAG,
                                          MPI_COMM_WORLD, MPI_INFO_NULL, &r);
        CHECK_CLASS(code, i == 0 ? MPI_ERR_RANK : MPI_ERR_TAG);
        MPI_Error_string(code, text, &length);
        CHECK(strstr(text, needs[i]) != NULL, "%s", text);
    }
    CHECK(r == MPI_REQUEST_NULL, "a request was made");
}

static void wrong_arguments(void)
{
    MPI_Comm w = MPI_COMM_WORLD;
    MPI_Info i = MPI_INFO_NULL;
    MPI_Request r = MPI_REQUEST_NULL;
    int d = 0;
    CHECK_CLASS(MPI_Psend_init(&d, 0, 1, MPI_INT, 0, 0, w, i, &r), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Precv_init(&d, -1, 1, MPI_INT, 0, 0, w, i, &r), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Psend_init(&d, 1, -1, MPI_INT, 0, 0, w, i, &r), MPI_ERR_COUNT);
    CHECK_CLASS(MPI_Psend_init_c(&d, 1000, INT64_MAX / 400, MPI_BYTE, 0, 0, w, i, &r), MPI_ERR_COUNT);
    CHECK_CLASS(MPI_Psend_init(&d, 1, 1, MPI_DATATYPE_NULL, 0, 0, w, i, &r), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_Psend_init(&d, 1, 1, MPI_INT, test_size, 0, w, i, &r), MPI_ERR_RANK);
    CHECK_CLASS(MPI_Psend_init(&d, 1, 1, MPI_INT, MPI_ANY_SOURCE, 0, w, i, &r), MPI_ERR_RANK);
    CHECK_CLASS(MPI_Psend_init(&d, 1, 1, MPI_INT, 0, MPI_ANY_TAG, w, i, &r), MPI_ERR_TAG);
    CHECK_CLASS(MPI_Precv_init(&d, 1, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_NULL, i, &r), MPI_ERR_COMM);
    CHECK_CLASS(MPI_Psend_init(NULL, 1, 1, MPI_INT, 0, 0, w, i, &r), MPI_ERR_BUFFER);
    CHECK_CLASS(MPI_Psend_init(&d, 1, 1, MPI_INT, 0, 0, MPI_COMM_NULL, i, &r), MPI_ERR_COMM);
    CHECK_CLASS(MPI_Psend_init(&d, 1, 1, MPI_INT, 0, 0, w, i, NULL), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Pready(0, MPI_REQUEST_NULL), MPI_ERR_REQUEST);
    CHECK(r == MPI_REQUEST_NULL, "a request was made");
}

static void wrong_partitions(void)
{
    int out[3] = {1, 2, 3}, in[3], flag, code;
    MPI_Request both[2] = {psend(out, 3, 1, MPI_INT, 8), precv(in, 3, 1, MPI_INT, 8)}, plain;
    CHECK_CLASS(MPI_Pready(0, both[0]), MPI_ERR_REQUEST); /* not started */
    start_both(both);
    CHECK_CLASS(MPI_Start(&both[0]), MPI_ERR_REQUEST);
    CHECK_CLASS(MPI_Pready(3, both[0]), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Pready(-1, both[0]), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Pready_range(2, 1, both[0]), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Pready_range(0, 3, both[0]), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Pready_list(-1, out, both[0]), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Pready_list(2, (int[]){0, 5}, both[0]), MPI_ERR_ARG); /* and 0 is not ready either */
    CHECK_CLASS(MPI_Pready(0, both[1]), MPI_ERR_REQUEST);
    CHECK_CLASS(MPI_Parrived(both[0], 0, &flag), MPI_ERR_REQUEST);
    CHECK_CLASS(MPI_Parrived(both[1], 3, &flag), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Parrived(both[1], 0, NULL), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Cancel(&both[1]), MPI_ERR_REQUEST);
    CHECK_CLASS(MPI_Request_free(&both[0]), MPI_ERR_REQUEST);
    CHECK_EQUAL(MPI_Pready(0, both[0]), MPI_SUCCESS);
    CHECK_CLASS(MPI_Pready(0, both[0]), MPI_ERR_ARG);
    MPI_Pready_range(1, 2, both[0]);
    finish_both(both, sizeof in, 8);
    CHECK(in[0] == 1 && in[2] == 3, "%d %d %d has come", in[0], in[1], in[2]);
    free_both(both);
    MPI_Irecv(in, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &plain);
    code = MPI_Pready(0, plain);
    CHECK_CLASS(code, MPI_ERR_REQUEST);
    MPI_Wait(&plain, MPI_STATUS_IGNORE);
}

/* More than fits is an error of the receiver, and does no harm. */
static void too_long(void)
{
    unsigned char out[300], *in = test_memory(200);
    MPI_Request both[2] = {psend(out, 3, 100, MPI_BYTE, 2), precv(in, 4, 50, MPI_BYTE, 2)};
    test_fill(out, sizeof out, (uint64_t)test_rank);
    for (int round = 0; round < 2; round++) {
        test_clear(in, 200);
        start_both(both);
        MPI_Pready_range(0, 2, both[0]);
        CHECK_CLASS(MPI_Wait(&both[1], MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE);
        CHECK_EQUAL(MPI_Wait(&both[0], MPI_STATUS_IGNORE), MPI_SUCCESS);
        CHECK_DATA(in, 200, (uint64_t)test_previous());
        CHECK(test_untouched(in + 200, TEST_GUARD), "bytes behind the buffer were written");
    }
    free_both(both);
    free(in);
}

int main(int argc, char **argv)
{
    static const int cuts[][3] = {{1, 1, 64},      {8, 8, 64},    {1, 16, 6400},  {16, 1, 6400},  {3, 5, 15},
                                  {33, 17, 56100}, {17, 33, 561}, {2, 2, 400000}, {5, 4, 2000000}};
    test_begin_threads(&argc, &argv, MPI_THREAD_MULTIPLE);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    for (size_t i = 0; i < sizeof cuts / sizeof cuts[0]; i++)
        unequal(cuts[i][0], cuts[i][1], cuts[i][2]);
    strided();
    one_by_one(10);
    one_by_one(300000);
    in_order();
    many_and_empty();
    in_threads(100);
    in_threads(50000);
    nobody();
    wrong_arguments();
    no_wildcards();
    wrong_partitions();
    too_long();
    return test_end();
}
