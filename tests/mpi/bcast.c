/* Broadcast: every root, all sizes, several types, with point-to-point messages in between that must not meet it. */
#include "test.h"

#define LARGEST ((1 << 20) + 1)

static const int lengths[] = {0, 1, 8, 63, 1000, 8191, 8193, 40000, 131073, LARGEST};
#define LENGTHS (int)(sizeof lengths / sizeof lengths[0])

static unsigned char *data;

static void one(MPI_Comm comm, int root, int bytes)
{
    uint64_t name = (uint64_t)(root * 1000 + bytes);
    test_clear(data, (size_t)bytes);
    if (test_rank == root)
        test_fill(data, (size_t)bytes, name);
    MPI_Bcast(data, bytes, MPI_BYTE, root, comm);
    CHECK_DATA(data, (size_t)bytes, name);
    CHECK(test_untouched(data + bytes, TEST_GUARD), "bytes behind the buffer were changed");
}

static void types(MPI_Comm comm, int root)
{
    int ints[100];
    double doubles[1000];
    struct {
        double value;
        int index;
    } pairs[300];
    for (int i = 0; i < 100; i++)
        ints[i] = test_rank == root ? i * root : -1;
    MPI_Bcast(ints, 100, MPI_INT, root, comm);
    for (int i = 0; i < 100; i++)
        CHECK_EQUAL(ints[i], i * root);
    for (int i = 0; i < 1000; i++)
        doubles[i] = test_rank == root ? i + 0.5 * root : -1;
    MPI_Bcast(doubles, 1000, MPI_DOUBLE, root, comm);
    for (int i = 0; i < 1000; i++)
        CHECK(doubles[i] == i + 0.5 * root, "element %d is %g", i, doubles[i]);
    for (int i = 0; i < 300; i++) {
        pairs[i].value = test_rank == root ? i + root : -1;
        pairs[i].index = test_rank == root ? i * root : -1;
    }
    MPI_Bcast(pairs, 300, MPI_DOUBLE_INT, root, comm);
    for (int i = 0; i < 300; i++)
        CHECK(pairs[i].value == i + root && pairs[i].index == i * root, "pair %d is %g, %d", i, pairs[i].value,
              pairs[i].index);
}

/* Many in a row without anything between: the fast ranks are ahead of the slow ones, and nothing is mixed up. */
static void in_a_row(MPI_Comm comm)
{
    for (int i = 0; i < 300; i++) {
        int root = i % 4 == 0 ? i % test_size : 0;
        long value = test_rank == root ? i * 7 : -1;
        MPI_Bcast(&value, 1, MPI_LONG, root, comm);
        CHECK_EQUAL(value, i * 7);
    }
}

/* Wildcard receives are posted while broadcasts run; only the neighbour's messages may match them. */
static void between(MPI_Comm comm)
{
    for (int i = 0; i < 40; i++) {
        MPI_Request send, receive;
        MPI_Status status;
        int out = test_rank * 1000 + i, in = -1, flag = 1, value = test_rank == i % test_size ? i : -1;
        MPI_Irecv(&in, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &receive);
        MPI_Bcast(&value, 1, MPI_INT, i % test_size, comm);
        CHECK_EQUAL(value, i);
        one(comm, (i + 1) % test_size, i * 1000);
        MPI_Test(&receive, &flag, MPI_STATUS_IGNORE);
        CHECK_EQUAL(flag, 0);
        MPI_Barrier(comm);
        MPI_Isend(&out, 1, MPI_INT, test_next(), 0, comm, &send);
        one(comm, i % test_size, 500);
        MPI_Wait(&receive, &status);
        CHECK_STATUS(&status, test_previous(), 0, sizeof(int));
        CHECK_EQUAL(in, test_previous() * 1000 + i);
        MPI_Wait(&send, MPI_STATUS_IGNORE);
        MPI_Barrier(comm);
    }
}

int main(int argc, char **argv)
{
    MPI_Comm comm;
    test_begin(&argc, &argv);
    data = test_memory(LARGEST);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int root = 0; root < test_size; root++)
        for (int i = 0; i < LENGTHS; i++)
            if (root < 3 || root == test_size - 1 || lengths[i] <= 40000)
                one((root + i) % 2 ? comm : MPI_COMM_WORLD, root, lengths[i]);
    for (int root = 0; root < test_size; root++)
        types(root % 2 ? comm : MPI_COMM_WORLD, root);
    in_a_row(MPI_COMM_WORLD);
    in_a_row(comm);
    MPI_Barrier(MPI_COMM_WORLD);
    between(MPI_COMM_WORLD);
    between(comm);
    MPI_Comm_free(&comm);
    free(data);
    return test_end();
}
