/* Looking at several requests without ending them, and reading statuses by calls (MPI 4.1). */
#include "test.h"

#define COUNT 6

static int out[COUNT], in[COUNT];
static MPI_Request sends[COUNT], receives[COUNT + 1];

static void send_one(int i)
{
    out[i] = test_rank * 10 + i;
    MPI_Isend(&out[i], 1, MPI_INT, test_next(), i, MPI_COMM_WORLD, &sends[i]);
}

static void check_status(const MPI_Status *status, int i)
{
    int source = -9, tag = -9;
    CHECK_STATUS(status, test_previous(), i, sizeof(int));
    MPI_Status_get_source((MPI_Status *)status, &source);
    MPI_Status_get_tag((MPI_Status *)status, &tag);
    CHECK(source == test_previous() && tag == i, "source %d and tag %d", source, tag);
    CHECK(receives[i] != MPI_REQUEST_NULL, "request %d was ended by looking", i);
}

static void expect_none(void)
{
    int flag = 1, index = 0, count = -1, indices[COUNT];
    MPI_Request_get_status_any(COUNT, receives, &index, &flag, MPI_STATUS_IGNORE);
    CHECK(!flag, "index %d is done before anything was sent", index);
    flag = 1;
    MPI_Request_get_status_all(COUNT, receives, &flag, MPI_STATUSES_IGNORE);
    CHECK_EQUAL(flag, 0);
    MPI_Request_get_status_some(COUNT, receives, &count, indices, MPI_STATUSES_IGNORE);
    CHECK_EQUAL(count, 0);
}

/* Only number 3 has been sent. */
static void expect_one(void)
{
    int flag = 0, index = -1, count = 0, indices[COUNT] = {-1};
    MPI_Status status, statuses[COUNT];
    while (!flag)
        MPI_Request_get_status_any(COUNT, receives, &index, &flag, &status);
    CHECK_EQUAL(index, 3);
    check_status(&status, 3);
    while (count == 0)
        MPI_Request_get_status_some(COUNT, receives, &count, indices, statuses);
    CHECK(count == 1 && indices[0] == 3, "%d requests are done, the first %d", count, indices[0]);
    check_status(&statuses[0], 3);
    MPI_Request_get_status_all(COUNT, receives, &flag, statuses);
    CHECK_EQUAL(flag, 0);
}

static void expect_all(void)
{
    int flag = 0, count = -1, indices[COUNT];
    MPI_Status statuses[COUNT];
    while (!flag)
        MPI_Request_get_status_all(COUNT, receives, &flag, statuses);
    for (int i = 0; i < COUNT; i++)
        check_status(&statuses[i], i);
    MPI_Request_get_status_some(COUNT, receives, &count, indices, statuses);
    CHECK_EQUAL(count, COUNT);
    MPI_Waitall(COUNT, receives, statuses);
    for (int i = 0; i < COUNT; i++) {
        CHECK_STATUS(&statuses[i], test_previous(), i, sizeof(int));
        CHECK_EQUAL(in[i], test_previous() * 10 + i);
    }
    MPI_Request_get_status_all(COUNT, receives, &flag, MPI_STATUSES_IGNORE);
    CHECK_EQUAL(flag, 1);
    MPI_Request_get_status_some(COUNT, receives, &count, indices, MPI_STATUSES_IGNORE);
    CHECK_EQUAL(count, MPI_UNDEFINED);
}

static void set_fields(void)
{
    MPI_Status status;
    int value = -1;
    memset(&status, 0, sizeof status);
    MPI_Status_set_source(&status, 4);
    MPI_Status_set_tag(&status, 5);
    MPI_Status_set_error(&status, MPI_ERR_TRUNCATE);
    MPI_Status_set_elements(&status, MPI_INT, 6);
    MPI_Status_set_cancelled(&status, 1);
    CHECK_STATUS(&status, 4, 5, 6 * sizeof(int));
    MPI_Status_get_error(&status, &value);
    CHECK_EQUAL(value, MPI_ERR_TRUNCATE);
    MPI_Test_cancelled(&status, &value);
    CHECK_EQUAL(value != 0, 1);
}

int main(int argc, char **argv)
{
    test_begin(&argc, &argv);
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < COUNT; i++) {
            in[i] = -1;
            MPI_Irecv(&in[i], 1, MPI_INT, test_previous(), i, MPI_COMM_WORLD, &receives[i]);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        expect_none();
        MPI_Barrier(MPI_COMM_WORLD);
        send_one(3);
        expect_one();
        MPI_Barrier(MPI_COMM_WORLD);
        for (int i = 0; i < COUNT; i++)
            if (i != 3)
                send_one(i);
        expect_all();
        MPI_Waitall(COUNT, sends, MPI_STATUSES_IGNORE);
    }
    set_fields();
    return test_end();
}
