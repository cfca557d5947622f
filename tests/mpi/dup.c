/* Duplicates of communicators: worlds of their own, also before the other side has made them; many of them, freed in
 * any order; names. */
#include "test.h"

#define MANY 200

static void separate(void)
{
    MPI_Comm comms[3] = {MPI_COMM_WORLD, MPI_COMM_NULL, MPI_COMM_NULL};
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
    MPI_Comm_dup(comms[1], &comms[2]);
    MPI_Request requests[3];
    int values[3], rank = -1, size = -1, result = -1;
    for (int i = 0; i < 3; i++) {
        MPI_Comm_rank(comms[i], &rank);
        MPI_Comm_size(comms[i], &size);
        CHECK(rank == test_rank && size == test_size, "rank %d of %d in duplicate %d", rank, size, i);
        MPI_Comm_compare(comms[0], comms[i], &result);
        CHECK_EQUAL(result, i == 0 ? MPI_IDENT : MPI_CONGRUENT);
        values[i] = test_rank * 10 + i;
        MPI_Isend(&values[i], 1, MPI_INT, test_next(), 1, comms[i], &requests[i]);
    }
    for (int i = 2; i >= 0; i--) {
        int got = -1;
        MPI_Status status;
        MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comms[i], &status);
        CHECK_EQUAL(got, test_previous() * 10 + i);
        CHECK_STATUS(&status, test_previous(), 1, sizeof(int));
    }
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    MPI_Comm_free(&comms[1]);
    CHECK(comms[1] == MPI_COMM_NULL, "the freed handle is not null");
    MPI_Barrier(comms[2]); /* the duplicate of a freed one lives on */
    MPI_Comm_free(&comms[2]);
}

/* Whoever has the duplicate sends on it at once, to all; some are slow to make it. */
static void at_once(int round, int bytes)
{
    MPI_Comm comm;
    MPI_Request *requests = test_memory((size_t)test_size * sizeof *requests);
    unsigned char *out = test_memory((size_t)bytes), *in = test_memory((size_t)bytes);
    if (round % test_size == test_rank)
        test_sleep(0.002);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    test_fill(out, (size_t)bytes, (uint64_t)(round * 100 + test_rank));
    for (int i = 0; i < test_size; i++)
        MPI_Isend(out, bytes, MPI_BYTE, (test_rank + i) % test_size, round, comm, &requests[i]);
    for (int i = 0; i < test_size; i++) {
        MPI_Status status;
        test_clear(in, (size_t)bytes);
        MPI_Recv(in, bytes, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &status);
        CHECK_STATUS(&status, status.MPI_SOURCE, round, (size_t)bytes);
        CHECK_DATA(in, (size_t)bytes, (uint64_t)(round * 100 + status.MPI_SOURCE));
    }
    MPI_Waitall(test_size, requests, MPI_STATUSES_IGNORE);
    MPI_Comm_free(&comm);
    free(requests);
    free(out);
    free(in);
}

/* Ranks free in different orders; what is still in use works. */
static void many(void)
{
    static MPI_Comm comms[MANY];
    MPI_Request send;
    for (int i = 0; i < MANY; i++)
        MPI_Comm_dup(i % 3 == 2 ? comms[i - 1] : MPI_COMM_WORLD, &comms[i]);
    for (int i = 0; i < MANY; i++)
        for (int j = 0; j < i && i % 50 == 0; j++)
            CHECK(comms[i] != comms[j], "duplicates %d and %d have the same handle", i, j);
    for (int i = MANY - 1; i >= 0; i--) {
        int value = i * 100 + test_rank, got = -1;
        MPI_Isend(&value, 1, MPI_INT, test_next(), 0, comms[i], &send);
        MPI_Recv(&got, 1, MPI_INT, test_previous(), 0, comms[i], MPI_STATUS_IGNORE);
        CHECK_EQUAL(got, i * 100 + test_previous());
        MPI_Wait(&send, MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < MANY; i++)
        MPI_Comm_free(&comms[test_rank % 2 ? i : MANY - 1 - i]);
}

/* A communicator that is freed while messages are under way: they arrive. */
static void freed_early(int bytes)
{
    MPI_Comm comm;
    MPI_Request requests[2];
    unsigned char *out = test_memory((size_t)bytes), *in = test_memory((size_t)bytes);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    test_fill(out, (size_t)bytes, (uint64_t)test_rank);
    MPI_Irecv(in, bytes, MPI_BYTE, test_previous(), 4, comm, &requests[0]);
    MPI_Isend(out, bytes, MPI_BYTE, test_next(), 4, comm, &requests[1]);
    MPI_Comm_free(&comm);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    CHECK_DATA(in, (size_t)bytes, (uint64_t)test_previous());
    free(out);
    free(in);
}

static void expect_name(MPI_Comm comm, const char *expected)
{
    char name[MPI_MAX_OBJECT_NAME] = "?";
    int length = -1;
    MPI_Comm_get_name(comm, name, &length);
    CHECK(strcmp(name, expected) == 0 && length == (int)strlen(expected), "the name is \"%s\" of length %d, not \"%s\"",
          name, length, expected);
}

static void names(void)
{
    MPI_Comm comm;
    expect_name(MPI_COMM_WORLD, "MPI_COMM_WORLD");
    expect_name(MPI_COMM_SELF, "MPI_COMM_SELF");
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    expect_name(comm, "");
    MPI_Comm_set_name(comm, "mine");
    expect_name(comm, "mine");
    MPI_Comm_free(&comm);
    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    int size = -1;
    MPI_Comm_size(comm, &size);
    CHECK_EQUAL(size, 1);
    MPI_Barrier(comm);
    MPI_Comm_free(&comm);
}

int main(int argc, char **argv)
{
    test_begin(&argc, &argv);
    separate();
    for (int round = 0; round < 30; round++)
        at_once(round, round % 5 == 4 ? 70000 : 100 * round);
    many();
    for (int i = 0; i < 5; i++) {
        freed_early(8);
        freed_early(200000);
    }
    names();
    return test_end();
}
