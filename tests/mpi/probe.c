/* Probe and matched probe: what they say about a message, wildcards, MPI_PROC_NULL; a matched message is nobody else's.
 */
#include "test.h"

#define LARGEST 200000

static const int lengths[] = {0, 1, 500, 9000, 50000, LARGEST};
#define LENGTHS (int)(sizeof lengths / sizeof lengths[0])

static unsigned char out[LENGTHS][LARGEST], in[LARGEST + TEST_GUARD];
static MPI_Request sends[LENGTHS];

static void send_all(int tag)
{
    for (int i = 0; i < LENGTHS; i++) {
        test_fill(out[i], (size_t)lengths[i], (uint64_t)(test_rank * 10 + i));
        MPI_Isend(out[i], lengths[i], MPI_BYTE, test_next(), tag + i, MPI_COMM_WORLD, &sends[i]);
    }
}

static void check_message(int i, int tag, const MPI_Status *status)
{
    CHECK_STATUS(status, test_previous(), tag + i, (size_t)lengths[i]);
    CHECK_DATA(in, (size_t)lengths[i], (uint64_t)(test_previous() * 10 + i));
}

/* Probes without and with wildcards; a probe may be repeated and says the same. */
static void plain(bool blocking)
{
    send_all(10);
    for (int i = 0; i < LENGTHS; i++) {
        int source = i % 2 ? MPI_ANY_SOURCE : test_previous(), tag = i % 3 ? MPI_ANY_TAG : 10 + i;
        MPI_Status status;
        for (int again = 0; again < 2; again++) {
            int flag = blocking;
            if (blocking)
                MPI_Probe(source, tag, MPI_COMM_WORLD, &status);
            while (!flag)
                MPI_Iprobe(source, tag, MPI_COMM_WORLD, &flag, &status);
            CHECK_STATUS(&status, test_previous(), 10 + i, (size_t)lengths[i]);
        }
        test_clear(in, (size_t)lengths[i]);
        MPI_Recv(in, lengths[i], MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, MPI_COMM_WORLD, &status);
        check_message(i, 10, &status);
    }
    MPI_Waitall(LENGTHS, sends, MPI_STATUSES_IGNORE);
}

static void matched(int way)
{
    send_all(20);
    for (int i = LENGTHS - 1; i >= 0; i--) {
        MPI_Message message = MPI_MESSAGE_NULL;
        MPI_Status status;
        int flag = 0;
        if (way % 2)
            MPI_Mprobe(test_previous(), 20 + i, MPI_COMM_WORLD, &message, &status);
        while (way % 2 == 0 && !flag)
            MPI_Improbe(MPI_ANY_SOURCE, 20 + i, MPI_COMM_WORLD, &flag, &message, &status);
        CHECK_STATUS(&status, test_previous(), 20 + i, (size_t)lengths[i]);
        CHECK(message != MPI_MESSAGE_NULL && message != MPI_MESSAGE_NO_PROC, "there is no message");
        /* Nobody else sees it now. */
        MPI_Iprobe(MPI_ANY_SOURCE, 20 + i, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        CHECK_EQUAL(flag, 0);
        test_clear(in, (size_t)lengths[i]);
        if (way < 2) {
            MPI_Mrecv(in, lengths[i], MPI_BYTE, &message, &status);
        } else {
            MPI_Request request;
            MPI_Imrecv(in, lengths[i], MPI_BYTE, &message, &request);
            MPI_Wait(&request, &status);
        }
        CHECK(message == MPI_MESSAGE_NULL, "the message is still there");
        check_message(i, 20, &status);
    }
    MPI_Waitall(LENGTHS, sends, MPI_STATUSES_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD); /* so that the neighbour's next messages are not seen by these probes */
}

/* Several messages of one tag: one is taken by a matched probe, a receive gets the next, and only then the first is
 * read; a receive that was posted when the message was taken already does not get it. */
static void hidden(int bytes)
{
    unsigned char *data = test_memory(3 * (size_t)bytes), *got = test_memory(3 * (size_t)bytes);
    MPI_Request own[3], late;
    MPI_Message first, second;
    MPI_Status status;
    for (int i = 0; i < 3; i++) {
        test_fill(data + i * bytes, (size_t)bytes, (uint64_t)(test_rank * 10 + i));
        MPI_Isend(data + i * bytes, bytes, MPI_BYTE, test_next(), 30, MPI_COMM_WORLD, &own[i]);
    }
    MPI_Mprobe(test_previous(), 30, MPI_COMM_WORLD, &first, MPI_STATUS_IGNORE);
    MPI_Mprobe(test_previous(), MPI_ANY_TAG, MPI_COMM_WORLD, &second, &status);
    CHECK_STATUS(&status, test_previous(), 30, (size_t)bytes);
    MPI_Irecv(got + 2 * bytes, bytes, MPI_BYTE, test_previous(), 30, MPI_COMM_WORLD, &late);
    MPI_Wait(&late, MPI_STATUS_IGNORE);
    CHECK_DATA(got + 2 * bytes, (size_t)bytes, (uint64_t)(test_previous() * 10 + 2));
    MPI_Mrecv(got + bytes, bytes, MPI_BYTE, &second, MPI_STATUS_IGNORE);
    CHECK_DATA(got + bytes, (size_t)bytes, (uint64_t)(test_previous() * 10 + 1));
    MPI_Mrecv(got, bytes, MPI_BYTE, &first, MPI_STATUS_IGNORE);
    CHECK_DATA(got, (size_t)bytes, (uint64_t)(test_previous() * 10));
    MPI_Waitall(3, own, MPI_STATUSES_IGNORE);
    free(data);
    free(got);
}

/* A message that was sent synchronously is received when it is matched: its sender may go on then. */
static void synchronous(void)
{
    MPI_Request request;
    MPI_Message message;
    int in_value = -1, flag = 0;
    MPI_Issend(&test_rank, 1, MPI_INT, test_next(), 40, MPI_COMM_WORLD, &request);
    MPI_Status status;
    MPI_Probe(test_previous(), 40, MPI_COMM_WORLD, &status);
    MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    MPI_Mprobe(test_previous(), 40, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
    MPI_Mrecv(&in_value, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
    CHECK_EQUAL(in_value, test_previous());
    if (!flag)
        MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void nothing(void)
{
    int flag = 1;
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &status);
    CHECK_EQUAL(flag, 0);
    MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &message, &status);
    CHECK_EQUAL(flag, 0);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void nowhere(void)
{
    int flag = 0, value = 7;
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Request request;
    MPI_Status status;
    MPI_Probe(MPI_PROC_NULL, 5, MPI_COMM_WORLD, &status);
    CHECK_STATUS(&status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
    MPI_Iprobe(MPI_PROC_NULL, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &status);
    CHECK_EQUAL(flag, 1);
    CHECK_STATUS(&status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
    for (int way = 0; way < 2; way++) {
        if (way == 0)
            MPI_Mprobe(MPI_PROC_NULL, 5, MPI_COMM_WORLD, &message, &status);
        else
            MPI_Improbe(MPI_PROC_NULL, 5, MPI_COMM_WORLD, &flag, &message, &status);
        CHECK_EQUAL(flag, 1);
        CHECK_STATUS(&status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
        CHECK(message == MPI_MESSAGE_NO_PROC, "the message is not MPI_MESSAGE_NO_PROC");
        if (way == 0) {
            MPI_Mrecv(&value, 1, MPI_INT, &message, &status);
        } else {
            MPI_Imrecv(&value, 1, MPI_INT, &message, &request);
            MPI_Wait(&request, &status);
        }
        CHECK(message == MPI_MESSAGE_NULL, "the message is still there");
        CHECK_STATUS(&status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
        CHECK_EQUAL(value, 7);
    }
}

/* A probe waits for a message that comes later. */
static void late(void)
{
    MPI_Request request;
    MPI_Status status;
    if (test_size == 1)
        return;
    if (test_rank == 0)
        test_sleep(0.02);
    MPI_Isend(&test_rank, 1, MPI_INT, test_next(), 60, MPI_COMM_WORLD, &request);
    int value = -1;
    MPI_Probe(MPI_ANY_SOURCE, 60, MPI_COMM_WORLD, &status);
    MPI_Recv(&value, 1, MPI_INT, status.MPI_SOURCE, 60, MPI_COMM_WORLD, &status);
    CHECK_EQUAL(value, test_previous());
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    test_begin(&argc, &argv);
    for (int i = 0; i < 3; i++) {
        plain(true);
        plain(false);
        for (int way = 0; way < 4; way++)
            matched(way);
    }
    hidden(8);
    hidden(5000);
    hidden(100000);
    synchronous();
    nothing();
    nowhere();
    late();
    return test_end();
}
