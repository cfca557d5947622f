/* Cancelling: a receive that nothing has matched is always cancelled; a send is either cancelled and never received, or
 * not cancelled and received whole. */
#include "test.h"

#define LARGEST 150000

static unsigned char out[LARGEST], in[LARGEST + TEST_GUARD];

/* The sender goes on when the receiver has looked, so that the next message is not taken for this one. */
static void looked(int partner)
{
    MPI_Sendrecv(NULL, 0, MPI_BYTE, partner, 10, NULL, 0, MPI_BYTE, partner, 10, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static int cancelled(const MPI_Status *status)
{
    int flag = -1;
    MPI_Test_cancelled(status, &flag);
    return flag;
}

static void receive(bool wild)
{
    MPI_Request requests[3];
    MPI_Status status;
    int value[3] = {-1, -1, -1};
    for (int i = 0; i < 3; i++)
        MPI_Irecv(&value[i], 1, MPI_INT, wild ? MPI_ANY_SOURCE : test_previous(), 5, MPI_COMM_WORLD, &requests[i]);
    MPI_Cancel(&requests[0]);
    CHECK(requests[0] != MPI_REQUEST_NULL, "MPI_Cancel took the handle");
    MPI_Wait(&requests[0], &status);
    CHECK_EQUAL(cancelled(&status), 1);
    CHECK(requests[0] == MPI_REQUEST_NULL, "the handle is still there");
    int flag = 0;
    MPI_Cancel(&requests[2]);
    while (!flag)
        MPI_Test(&requests[2], &flag, &status);
    CHECK_EQUAL(cancelled(&status), 1);
    /* What comes now goes to the one that is left. */
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Request send;
    MPI_Isend(&test_rank, 1, MPI_INT, test_next(), 5, MPI_COMM_WORLD, &send);
    MPI_Wait(&requests[1], &status);
    CHECK_EQUAL(cancelled(&status), 0);
    CHECK_STATUS(&status, test_previous(), 5, sizeof(int));
    CHECK_EQUAL(value[1], test_previous());
    CHECK(value[0] == -1 && value[2] == -1, "a cancelled receive was given %d or %d", value[0], value[2]);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* A receive that is done already cannot be cancelled. */
static void too_late(void)
{
    MPI_Request request, send;
    MPI_Status status;
    int value = -1, flag = 0;
    MPI_Irecv(&value, 1, MPI_INT, test_previous(), 6, MPI_COMM_WORLD, &request);
    MPI_Isend(&test_rank, 1, MPI_INT, test_next(), 6, MPI_COMM_WORLD, &send);
    while (!flag)
        MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    CHECK_EQUAL(cancelled(&status), 0);
    CHECK_STATUS(&status, test_previous(), 6, sizeof(int));
    CHECK_EQUAL(value, test_previous());
    MPI_Wait(&send, MPI_STATUS_IGNORE);
}

typedef int isend_function(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);

/* Even ranks try to cancel a send to the next; they say how it went; the message must be there or not accordingly. The
 * caller keeps the ranks in step, so that a look for this message does not see the next. */
static void try_send(isend_function *isend, int bytes, bool posted)
{
    int partner = test_rank ^ 1;
    if (partner >= test_size)
        return;
    if (test_rank % 2 == 0) {
        MPI_Request request;
        MPI_Status status;
        test_fill(out, (size_t)bytes, (uint64_t)bytes);
        if (posted)
            MPI_Recv(NULL, 0, MPI_BYTE, partner, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        isend(out, bytes, MPI_BYTE, partner, 7, MPI_COMM_WORLD, &request);
        MPI_Cancel(&request);
        MPI_Wait(&request, &status);
        int gone = cancelled(&status);
        memset(out, 0, (size_t)bytes);
        MPI_Send(&gone, 1, MPI_INT, partner, 8, MPI_COMM_WORLD);
    } else {
        MPI_Request request;
        MPI_Status status;
        int gone = -1, flag = 0;
        test_clear(in, (size_t)bytes);
        if (posted) {
            MPI_Irecv(in, bytes, MPI_BYTE, partner, 7, MPI_COMM_WORLD, &request);
            MPI_Send(NULL, 0, MPI_BYTE, partner, 9, MPI_COMM_WORLD);
        }
        MPI_Recv(&gone, 1, MPI_INT, partner, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(gone == 0 || gone == 1, "MPI_Test_cancelled said %d", gone);
        if (!posted) {
            MPI_Iprobe(partner, 7, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
            CHECK_EQUAL(flag, !gone);
            if (!gone)
                MPI_Irecv(in, bytes, MPI_BYTE, partner, 7, MPI_COMM_WORLD, &request);
        } else if (gone) {
            MPI_Cancel(&request);
        }
        if (posted || !gone) {
            MPI_Wait(&request, &status);
            CHECK_EQUAL(cancelled(&status), gone);
        }
        if (gone)
            CHECK(test_untouched(in, (size_t)bytes), "a cancelled send of %d bytes has written to the receiver", bytes);
        else
            CHECK_DATA(in, (size_t)bytes, (uint64_t)bytes);
    }
    looked(partner);
}

/* Many sends, every second one cancelled: those that were not cancelled arrive, in order and whole. */
static void many(int bytes)
{
    enum { COUNT = 30 };
    int partner = test_rank ^ 1, gone[COUNT];
    if (partner >= test_size)
        return;
    if (test_rank % 2 == 0) {
        MPI_Request requests[COUNT];
        MPI_Status statuses[COUNT];
        int data[COUNT][2500];
        for (int i = 0; i < COUNT; i++) {
            test_fill(data[i], (size_t)bytes, (uint64_t)i);
            MPI_Isend(data[i], bytes, MPI_BYTE, partner, 7, MPI_COMM_WORLD, &requests[i]);
        }
        for (int i = 1; i < COUNT; i += 2)
            MPI_Cancel(&requests[i]);
        /* Those that are not cancelled may wait for their receives. */
        MPI_Request told;
        for (int i = 0; i < COUNT; i++)
            gone[i] = 0;
        for (int i = 1; i < COUNT; i += 2) {
            MPI_Wait(&requests[i], &statuses[i]);
            gone[i] = cancelled(&statuses[i]);
        }
        MPI_Isend(gone, COUNT, MPI_INT, partner, 8, MPI_COMM_WORLD, &told);
        MPI_Waitall(COUNT, requests, MPI_STATUSES_IGNORE);
        MPI_Wait(&told, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(gone, COUNT, MPI_INT, partner, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < COUNT; i++) {
            if (gone[i])
                continue;
            MPI_Recv(in, LARGEST, MPI_BYTE, partner, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            CHECK_DATA(in, (size_t)bytes, (uint64_t)i);
        }
        int flag = 1;
        MPI_Iprobe(partner, 7, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        CHECK_EQUAL(flag, 0);
    }
    looked(partner);
}

/* A persistent receive can be cancelled and started again. */
static void persistent(void)
{
    int value = -1;
    MPI_Request request, send_request;
    MPI_Status status;
    MPI_Recv_init(&value, 1, MPI_INT, test_previous(), 12, MPI_COMM_WORLD, &request);
    for (int i = 0; i < 3; i++) {
        MPI_Start(&request);
        MPI_Cancel(&request);
        MPI_Wait(&request, &status);
        CHECK_EQUAL(cancelled(&status), 1);
        CHECK(request != MPI_REQUEST_NULL, "the handle is gone");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Start(&request);
    MPI_Isend(&test_rank, 1, MPI_INT, test_next(), 12, MPI_COMM_WORLD, &send_request);
    MPI_Wait(&request, &status);
    CHECK_EQUAL(cancelled(&status), 0);
    CHECK_EQUAL(value, test_previous());
    MPI_Wait(&send_request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
}

int main(int argc, char **argv)
{
    static const int lengths[] = {0, 4, 3000, 30000, LARGEST};
    test_begin(&argc, &argv);
    for (int i = 0; i < 5; i++) {
        receive(false);
        receive(true);
        too_late();
    }
    /* A wait for a send that is to be cancelled ends whatever the receiver does; others do not always keep to that. */
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0] && !test_peer(); i++)
        for (int posted = 0; posted < 2; posted++) {
            try_send(MPI_Isend, lengths[i], posted);
            MPI_Barrier(MPI_COMM_WORLD);
            try_send(MPI_Issend, lengths[i], posted);
            MPI_Barrier(MPI_COMM_WORLD);
        }
    many(4);
    MPI_Barrier(MPI_COMM_WORLD);
    if (!test_peer())
        many(10000);
    MPI_Barrier(MPI_COMM_WORLD);
    persistent();
    return test_end();
}
