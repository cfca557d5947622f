/* Wait and Test in all their forms, with null, active and finished requests mixed; statuses; errors in statuses;
 * looking at a request without ending it; giving requests away. */
#include "test.h"

#define COUNT 12

static int out[COUNT], in[COUNT];
static MPI_Request sends[COUNT], receives[COUNT];

/* The neighbour's messages i are expected in in[i], each with tag i; places in `gaps` (bits) hold null requests. */
static void begin(unsigned gaps)
{
    for (int i = 0; i < COUNT; i++) {
        sends[i] = receives[i] = MPI_REQUEST_NULL;
        out[i] = test_rank * 100 + i;
        in[i] = -1;
        if ((gaps >> i & 1) == 0)
            MPI_Irecv(&in[i], 1, MPI_INT, test_previous(), i, MPI_COMM_WORLD, &receives[i]);
    }
}

static void send_from(int first, int last, unsigned gaps)
{
    for (int i = first; i < last; i++)
        if ((gaps >> i & 1) == 0)
            MPI_Isend(&out[i], 1, MPI_INT, test_next(), i, MPI_COMM_WORLD, &sends[i]);
}

static void check_one(int i, const MPI_Status *status)
{
    CHECK_EQUAL(in[i], test_previous() * 100 + i);
    CHECK(receives[i] == MPI_REQUEST_NULL, "the handle of request %d is still there", i);
    if (status != NULL)
        CHECK_STATUS(status, test_previous(), i, sizeof(int));
}

static void check_empty(const MPI_Status *status)
{
    int cancelled = -1;
    CHECK_STATUS(status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0);
    MPI_Test_cancelled(status, &cancelled);
    CHECK_EQUAL(cancelled, 0);
}

static void one_by_one(void)
{
    MPI_Status status;
    begin(0);
    send_from(0, COUNT, 0);
    for (int i = COUNT - 1; i >= 0; i--) {
        if (i % 2) {
            MPI_Wait(&receives[i], &status);
        } else {
            int flag = 0;
            while (!flag)
                MPI_Test(&receives[i], &flag, &status);
        }
        check_one(i, &status);
    }
    MPI_Waitall(COUNT, sends, MPI_STATUSES_IGNORE);
    int flag = 0;
    MPI_Request null = MPI_REQUEST_NULL;
    MPI_Wait(&null, &status);
    check_empty(&status);
    MPI_Test(&null, &flag, &status);
    CHECK_EQUAL(flag, 1);
    check_empty(&status);
}

static void all(void)
{
    unsigned gaps = 0x124;
    MPI_Status statuses[COUNT];
    int flag = 1;
    begin(gaps);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Testall(COUNT, receives, &flag, statuses);
    CHECK_EQUAL(flag, 0);
    for (int i = 0; i < COUNT; i++)
        if ((gaps >> i & 1) == 0)
            CHECK(receives[i] != MPI_REQUEST_NULL, "MPI_Testall without success took request %d", i);
    MPI_Barrier(MPI_COMM_WORLD);
    send_from(0, COUNT, gaps);
    while (!flag)
        MPI_Testall(COUNT, receives, &flag, statuses);
    for (int i = 0; i < COUNT; i++) {
        if (gaps >> i & 1)
            check_empty(&statuses[i]);
        else
            check_one(i, &statuses[i]);
    }
    MPI_Waitall(COUNT, sends, statuses);
    MPI_Waitall(COUNT, sends, statuses);
    for (int i = 0; i < COUNT; i++)
        check_empty(&statuses[i]);
    MPI_Waitall(0, NULL, MPI_STATUSES_IGNORE);
    MPI_Testall(0, NULL, &flag, MPI_STATUSES_IGNORE);
    CHECK_EQUAL(flag, 1);
}

static void any(bool test)
{
    unsigned gaps = 0x41, left = ~gaps & ((1u << COUNT) - 1);
    MPI_Status status;
    int index = 0, flag = 1;
    begin(gaps);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Testany(COUNT, receives, &index, &flag, &status);
    CHECK(!flag && index == MPI_UNDEFINED, "flag %d, index %d before anything was sent", flag, index);
    MPI_Barrier(MPI_COMM_WORLD);
    send_from(0, COUNT, gaps);
    while (left != 0) {
        flag = !test;
        while (!flag)
            MPI_Testany(COUNT, receives, &index, &flag, &status);
        if (!test)
            MPI_Waitany(COUNT, receives, &index, &status);
        test_need(index >= 0 && index < COUNT && (left >> index & 1), "a request ended that was none");
        check_one(index, &status);
        left &= ~(1u << index);
    }
    MPI_Waitany(COUNT, receives, &index, &status);
    CHECK_EQUAL(index, MPI_UNDEFINED);
    check_empty(&status);
    MPI_Testany(COUNT, receives, &index, &flag, &status);
    CHECK(flag && index == MPI_UNDEFINED, "flag %d, index %d when all was done", flag, index);
    check_empty(&status);
    MPI_Waitall(COUNT, sends, MPI_STATUSES_IGNORE);
}

static void some(bool test)
{
    unsigned gaps = 0x810, left = ~gaps & ((1u << COUNT) - 1);
    MPI_Status statuses[COUNT];
    int done = -1, indices[COUNT];
    begin(gaps);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Testsome(COUNT, receives, &done, indices, statuses);
    CHECK_EQUAL(done, 0);
    MPI_Barrier(MPI_COMM_WORLD);
    send_from(0, COUNT, gaps);
    while (left != 0) {
        done = 0;
        while (test && done == 0)
            MPI_Testsome(COUNT, receives, &done, indices, statuses);
        if (!test)
            MPI_Waitsome(COUNT, receives, &done, indices, statuses);
        test_need(done >= 1 && done <= COUNT, "the number of finished requests is wrong");
        for (int i = 0; i < done; i++) {
            test_need(indices[i] >= 0 && indices[i] < COUNT && (left >> indices[i] & 1), "a request ended twice");
            check_one(indices[i], &statuses[i]);
            left &= ~(1u << indices[i]);
        }
    }
    MPI_Waitsome(COUNT, receives, &done, indices, statuses);
    CHECK_EQUAL(done, MPI_UNDEFINED);
    MPI_Testsome(COUNT, receives, &done, indices, statuses);
    CHECK_EQUAL(done, MPI_UNDEFINED);
    MPI_Waitall(COUNT, sends, MPI_STATUSES_IGNORE);
}

/* One of several receives is too short: the others are all right and the call says which. */
static void error_in_status(bool some_form)
{
    int data[4] = {1, 2, 3, 4}, got[3][4] = {{0}}, done = 3, indices[3] = {0, 1, 2};
    MPI_Request requests[3], own[3];
    MPI_Status statuses[3];
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int i = 0; i < 3; i++)
        MPI_Irecv(got[i], i == 1 ? 2 : 4, MPI_INT, test_previous(), i, MPI_COMM_WORLD, &requests[i]);
    for (int i = 0; i < 3; i++)
        MPI_Isend(data, 4, MPI_INT, test_next(), i, MPI_COMM_WORLD, &own[i]);
    MPI_Waitall(3, own, MPI_STATUSES_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    int code = MPI_SUCCESS, errors = 0, total = 0;
    for (int i = 0; i < 3; i++)
        statuses[i].MPI_ERROR = MPI_SUCCESS;
    while (total < 3) {
        if (some_form)
            code = MPI_Waitsome(3, requests, &done, indices, statuses);
        else
            code = MPI_Waitall(3, requests, statuses);
        test_need(done > 0, "nothing was done");
        CHECK_CLASS(code, code == MPI_SUCCESS ? MPI_SUCCESS : MPI_ERR_IN_STATUS);
        for (int i = 0; i < done && code != MPI_SUCCESS; i++) {
            if (statuses[i].MPI_ERROR != MPI_SUCCESS && statuses[i].MPI_ERROR != MPI_ERR_PENDING) {
                CHECK_CLASS(statuses[i].MPI_ERROR, indices[i] == 1 ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
                errors++;
            }
        }
        total =
            (requests[0] == MPI_REQUEST_NULL) + (requests[1] == MPI_REQUEST_NULL) + (requests[2] == MPI_REQUEST_NULL);
    }
    CHECK_EQUAL(errors, 1);
    CHECK(memcmp(got[0], data, sizeof data) == 0 && memcmp(got[2], data, sizeof data) == 0, "whole messages are wrong");
    CHECK(got[1][2] == 0 && got[1][3] == 0, "a truncated message was written beyond its buffer");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

/* The calls with many statuses set the errors in them when one operation has failed, and then all of them. */
static void error_fields(int form, bool fails)
{
    enum { UNSET = 123456 };
    int data[2] = {1, 2}, got[3][2], indices[3], done = 0, flag = 0, total = 0;
    MPI_Request requests[3];
    for (int i = 0; i < 3; i++)
        MPI_Irecv(got[i], fails && i == 1 ? 1 : 2, MPI_INT, 0, i, MPI_COMM_SELF, &requests[i]);
    for (int i = 0; i < 3; i++)
        MPI_Send(data, 2, MPI_INT, 0, i, MPI_COMM_SELF);
    while (total < 3) {
        MPI_Status statuses[3] = {{.MPI_ERROR = UNSET}, {.MPI_ERROR = UNSET}, {.MPI_ERROR = UNSET}};
        int code = form == 0   ? MPI_Waitall(3, requests, statuses)
                   : form == 1 ? MPI_Testall(3, requests, &flag, statuses)
                   : form == 2 ? MPI_Waitsome(3, requests, &done, indices, statuses)
                               : MPI_Testsome(3, requests, &done, indices, statuses);
        if (form < 2)
            done = form == 0 || flag ? 3 : 0;
        for (int i = 0; i < done; i++) {
            int which = form < 2 ? i : indices[i];
            if (code == MPI_SUCCESS)
                CHECK_EQUAL(statuses[i].MPI_ERROR, UNSET);
            else
                CHECK_CLASS(statuses[i].MPI_ERROR, which == 1 ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
        }
        total += done;
    }
}

static void all_error_fields(void)
{
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    for (int form = 0; form < 4; form++) {
        error_fields(form, false);
        error_fields(form, true);
    }
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
}

/* MPI_Request_get_status looks and leaves the request as it is. */
static void get_status(void)
{
    int flag = 1;
    MPI_Status status;
    begin(0);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Request_get_status(receives[3], &flag, &status);
    CHECK_EQUAL(flag, 0);
    MPI_Barrier(MPI_COMM_WORLD);
    send_from(0, COUNT, 0);
    for (int i = 0; i < COUNT; i++) {
        flag = 0;
        while (!flag)
            MPI_Request_get_status(receives[i], &flag, &status);
        CHECK(receives[i] != MPI_REQUEST_NULL, "MPI_Request_get_status ended request %d", i);
        CHECK_STATUS(&status, test_previous(), i, sizeof(int));
        MPI_Request_get_status(receives[i], &flag, MPI_STATUS_IGNORE);
        CHECK_EQUAL(flag, 1);
        MPI_Wait(&receives[i], &status);
        check_one(i, &status);
    }
    MPI_Request_get_status(MPI_REQUEST_NULL, &flag, &status);
    CHECK_EQUAL(flag, 1);
    check_empty(&status);
    MPI_Waitall(COUNT, sends, MPI_STATUSES_IGNORE);
}

/* A send that is given away while active is carried out all the same. */
static void freed(int bytes)
{
    unsigned char *data = test_memory((size_t)bytes), *got = test_memory((size_t)bytes);
    MPI_Request request;
    test_fill(data, (size_t)bytes, (uint64_t)test_rank);
    MPI_Isend(data, bytes, MPI_BYTE, test_next(), 50, MPI_COMM_WORLD, &request);
    MPI_Request_free(&request);
    CHECK(request == MPI_REQUEST_NULL, "the freed handle is not null");
    MPI_Recv(got, bytes, MPI_BYTE, test_previous(), 50, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK_DATA(got, (size_t)bytes, (uint64_t)test_previous());
    MPI_Barrier(MPI_COMM_WORLD);
    free(data);
    free(got);
}

/* So is a receive; its end can only be seen in its buffer. */
static void freed_receive(void)
{
    volatile int got = -1;
    int flag;
    MPI_Request request;
    MPI_Irecv((void *)(uintptr_t)&got, 1, MPI_INT, test_previous(), 50, MPI_COMM_WORLD, &request);
    MPI_Request_free(&request);
    MPI_Request own;
    MPI_Isend(&test_rank, 1, MPI_INT, test_next(), 50, MPI_COMM_WORLD, &own);
    double end = test_now() + 20;
    while (got == -1 && test_now() < end)
        MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    CHECK_EQUAL(got, test_previous());
    MPI_Wait(&own, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    test_begin(&argc, &argv);
    for (int i = 0; i < 5; i++) {
        one_by_one();
        all();
        any(false);
        any(true);
        some(false);
        some(true);
        get_status();
    }
    error_in_status(false);
    error_in_status(true);
    all_error_fields();
    freed(8);
    freed(1000);
    freed(300000);
    freed_receive();
    return test_end();
}
