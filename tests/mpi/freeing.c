/* Freeing things while operations with them are in flight: the operations go on, in whatever order things are freed. */
#include "test.h"

#define COMMS 6

static void put(unsigned char *data, int bytes, int seed)
{
    test_fill(data, (size_t)bytes, (uint64_t)seed);
}

/* Messages in several communicators; each rank frees them in its own order, some before and some after completion, and
 * waits in another order. */
static void messages(int bytes, int round)
{
    MPI_Comm comms[COMMS];
    MPI_Request sends[COMMS], receives[COMMS];
    unsigned char *out[COMMS], *in[COMMS];
    uint64_t random = (uint64_t)(round * 100 + test_rank);
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[0]);
    for (int i = 1; i < COMMS; i++)
        if (i % 2)
            MPI_Comm_dup(comms[i - 1], &comms[i]);
        else
            MPI_Comm_split(comms[i - 1], 0, test_rank, &comms[i]);
    for (int i = 0; i < COMMS; i++) {
        out[i] = test_memory((size_t)bytes);
        in[i] = test_memory((size_t)bytes);
        put(out[i], bytes, test_rank * 10 + i);
    }
    for (int i = 0; i < COMMS; i++) {
        bool late = test_random(&random) % 2; /* the receive comes after the message */
        if (!late)
            MPI_Irecv(in[i], bytes, MPI_BYTE, test_previous(), i, comms[i], &receives[i]);
        if (i % 3 == 2)
            MPI_Issend(out[i], bytes, MPI_BYTE, test_next(), i, comms[i], &sends[i]);
        else
            MPI_Isend(out[i], bytes, MPI_BYTE, test_next(), i, comms[i], &sends[i]);
        if (late)
            MPI_Irecv(in[i], bytes, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, comms[i], &receives[i]);
    }
    int first = (int)(test_random(&random) % COMMS);
    for (int i = 0; i < COMMS; i++) {
        int k = (first + i * 5) % COMMS;
        MPI_Comm old = comms[k];
        if (i == COMMS / 2)
            MPI_Wait(&receives[k], MPI_STATUS_IGNORE);
        MPI_Comm_free(&comms[k]);
        int size;
        MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
        if (!test_peer())
            CHECK_CLASS(MPI_Comm_size(old, &size), MPI_ERR_COMM); /* gone for the program at once */
        MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
    }
    for (int i = 0; i < COMMS; i++) {
        int k = (first + COMMS - i) % COMMS;
        MPI_Wait(&sends[k], MPI_STATUS_IGNORE);
        MPI_Wait(&receives[k], MPI_STATUS_IGNORE);
        CHECK_DATA(in[k], (size_t)bytes, (uint64_t)(test_previous() * 10 + k));
        free(out[k]);
        free(in[k]);
    }
}

static int errors_seen;
static MPI_Comm error_comm;

static void note_error(MPI_Comm *comm, int *code, ...)
{
    errors_seen++;
    error_comm = *comm;
}

/* A receive fails after its communicator and its error handler were freed: the handler is still called. */
static void failure(void)
{
    MPI_Comm comm;
    MPI_Errhandler handler;
    MPI_Request request;
    char out[8] = "1234567", in[2];
    errors_seen = 0;
    MPI_Comm_create_errhandler(note_error, &handler);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, handler);
    MPI_Errhandler_free(&handler);
    MPI_Irecv(in, sizeof in, MPI_CHAR, test_previous(), 0, comm, &request);
    MPI_Send(out, sizeof out, MPI_CHAR, test_next(), 0, comm);
    MPI_Comm_free(&comm);
    int code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK_CLASS(code, MPI_ERR_TRUNCATE);
    CHECK(errors_seen == 1 && error_comm != MPI_COMM_NULL, "the handler was called %d times", errors_seen);
}

/* Duplicates under way: of a communicator that is freed, several at once, while messages flow in the old one. */
static void duplicates(void)
{
    MPI_Comm parent, dups[4];
    MPI_Request requests[4], message;
    int got = -1, sum = -1, one = 1;
    MPI_Comm_dup(MPI_COMM_WORLD, &parent);
    MPI_Irecv(&got, 1, MPI_INT, test_previous(), 2, parent, &message);
    for (int i = 0; i < 4; i++)
        MPI_Comm_idup(parent, &dups[i], &requests[i]);
    MPI_Send(&test_rank, 1, MPI_INT, test_next(), 2, parent);
    MPI_Comm_free(&parent);
    for (int i = 3; i >= 0; i--) {
        MPI_Status status;
        MPI_Wait(&requests[i], &status);
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, dups[i]);
        CHECK_EQUAL(sum, test_size);
    }
    MPI_Wait(&message, MPI_STATUS_IGNORE);
    CHECK_EQUAL(got, test_previous());
    for (int i = 0; i < 4; i++)
        MPI_Comm_free(&dups[i]);
}

/* Requests that nobody will ask about any more, in communicators that are gone, and persistent ones. */
static void forgotten(void)
{
    static unsigned char out[3][70000];
    unsigned char *in = test_memory(sizeof out[0]);
    MPI_Comm comm;
    MPI_Request request, again;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Recv_init(in, sizeof out[0], MPI_BYTE, test_previous(), 1, comm, &again);
    for (int i = 0; i < 3; i++) {
        put(out[i], sizeof out[0], test_rank + i);
        MPI_Isend(out[i], sizeof out[0], MPI_BYTE, test_next(), 1, comm, &request);
        MPI_Request_free(&request);
    }
    MPI_Comm_free(&comm);
    for (int i = 0; i < 3; i++) {
        test_clear(in, sizeof out[0]);
        MPI_Start(&again);
        MPI_Wait(&again, MPI_STATUS_IGNORE);
        CHECK_DATA(in, sizeof out[0], (uint64_t)(test_previous() + i));
    }
    MPI_Request_free(&again);
    free(in);
}

/* A communicator outlives its group, the one it came from, and everything it was made with. */
static void offspring(void)
{
    MPI_Comm parent, child, grid, line, inter = MPI_COMM_NULL;
    MPI_Group group;
    int period = 0, remain = 1, sum = -1, one = 1, dims = test_size;
    MPI_Comm_dup(MPI_COMM_WORLD, &parent);
    MPI_Comm_group(parent, &group);
    MPI_Comm_create(parent, group, &child);
    MPI_Comm_free(&parent);
    MPI_Group_free(&group);
    MPI_Cart_create(child, 1, &dims, &period, 0, &grid);
    MPI_Comm_free(&child);
    MPI_Cart_sub(grid, &remain, &line);
    MPI_Comm_free(&grid);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, line);
    CHECK_EQUAL(sum, test_size);
    if (test_size > 1) {
        MPI_Comm half;
        int low = test_rank < test_size / 2, remote = -1;
        MPI_Comm_split(line, low, 0, &half);
        MPI_Intercomm_create(half, 0, line, low ? test_size / 2 : 0, 1, &inter);
        MPI_Comm_free(&half);
        MPI_Comm_free(&line);
        MPI_Comm_remote_size(inter, &remote);
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, inter);
        CHECK_EQUAL(sum, remote);
        MPI_Comm_free(&inter);
    } else {
        MPI_Comm_free(&line);
    }
}

/* The even ranks free what they have begun while it goes on. When MPI_Comm_disconnect has returned it has ended: the
 * memory may be used again, or has what has come. */
static void disconnected(int bytes, bool receives)
{
    MPI_Comm comm;
    MPI_Request request;
    int partner = test_rank ^ 1;
    unsigned char *data = test_memory((size_t)bytes);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    if (partner < test_size && test_rank % 2 == 0) {
        put(data, bytes, 70);
        if (receives)
            MPI_Irecv(data, bytes, MPI_BYTE, partner, 1, comm, &request);
        else
            MPI_Isend(data, bytes, MPI_BYTE, partner, 1, comm, &request);
        MPI_Request_free(&request);
        MPI_Comm_disconnect(&comm);
        if (receives)
            CHECK_DATA(data, (size_t)bytes, 71);
        else
            test_clear(data, (size_t)bytes);
    } else {
        put(data, bytes, 71);
        test_sleep(0.03); /* so that they would be through */
        if (partner < test_size && receives) {
            MPI_Send(data, bytes, MPI_BYTE, partner, 1, comm);
        } else if (partner < test_size) {
            MPI_Recv(data, bytes, MPI_BYTE, partner, 1, comm, MPI_STATUS_IGNORE);
            CHECK_DATA(data, (size_t)bytes, 70);
        }
        MPI_Comm_disconnect(&comm);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    free(data);
}

int main(int argc, char **argv)
{
    test_begin(&argc, &argv);
    for (int round = 0; round < 10; round++) {
        messages(round % 3 == 0 ? 100 : 100000, round);
        duplicates();
        offspring();
    }
    failure();
    forgotten();
    disconnected(1000000, false);
    disconnected(1000000, true);
    return test_end();
}
