/* Datatypes end in every order: while messages of all kinds and reductions are in flight, before the types made of
 * them, before their duplicates; wrong handles and types that are not committed are refused; many types made and freed
 * do not grow. */
#include "test.h"

#include <malloc.h>

#define ROWS 3000

/* A column of a matrix of ROWS rows of `width` ints, committed; its parts are freed at once. */
static MPI_Datatype column(int width)
{
    MPI_Datatype element, one, many;
    MPI_Type_dup(MPI_INT, &element);
    MPI_Type_contiguous(1, element, &one);
    MPI_Type_free(&element);
    MPI_Type_vector(ROWS, 1, width, one, &many);
    MPI_Type_free(&one);
    MPI_Type_commit(&many);
    return many;
}

static void fill_column(int *matrix, int width, int base)
{
    for (int i = 0; i < ROWS * width; i++)
        matrix[i] = i % width == 0 ? base + i / width : -1;
}

static void check_column(const int *matrix, int width, int base, const char *how)
{
    for (int i = 0; i < ROWS * width; i++)
        if (matrix[i] != (i % width == 0 ? base + i / width : -1)) {
            CHECK(false, "%s: element %d is %d", how, i, matrix[i]);
            return;
        }
}

enum how { ISEND, ISSEND, IBSEND, PERSISTENT, ISENDRECV, REPLACE, MATCHED, HOWS };
static const char *const names[] = {"isend", "issend", "ibsend", "persistent", "isendrecv", "isendrecv_replace",
                                    "imrecv"};

/* Starts a message to the next rank and from the one before, frees the types at once, then waits. */
static void test_flight(enum how how, int width)
{
    int base = 1000 * test_rank, before = 1000 * test_previous();
    int *out = malloc(sizeof(int) * ROWS * (size_t)width), *in = malloc(sizeof(int) * ROWS * (size_t)width);
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Datatype send = column(width), receive = column(width);
    int to = test_next(), from = test_previous();
    fill_column(out, width, base);
    fill_column(in, width, -5000);
    if (how != ISENDRECV && how != REPLACE && how != MATCHED && how != PERSISTENT)
        MPI_Irecv(in, 1, receive, from, how, MPI_COMM_WORLD, &requests[0]);
    switch (how) {
    case ISSEND:
        MPI_Issend(out, 1, send, to, how, MPI_COMM_WORLD, &requests[1]);
        break;
    case IBSEND:
        MPI_Ibsend(out, 1, send, to, how, MPI_COMM_WORLD, &requests[1]);
        break;
    case PERSISTENT:
        MPI_Recv_init(in, 1, receive, from, how, MPI_COMM_WORLD, &requests[0]);
        MPI_Send_init(out, 1, send, to, how, MPI_COMM_WORLD, &requests[1]);
        break;
    case ISENDRECV:
        MPI_Isendrecv(out, 1, send, to, how, in, 1, receive, from, how, MPI_COMM_WORLD, &requests[0]);
        break;
    case REPLACE:
        fill_column(in, width, base);
        MPI_Isendrecv_replace(in, 1, receive, to, how, from, how, MPI_COMM_WORLD, &requests[0]);
        break;
    default:
        MPI_Isend(out, 1, send, to, how, MPI_COMM_WORLD, &requests[1]);
        break;
    }
    if (how == MATCHED) {
        MPI_Message message;
        MPI_Mprobe(from, how, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
        MPI_Imrecv(in, 1, receive, &message, &requests[0]);
    }
    MPI_Type_free(&send);
    MPI_Type_free(&receive);
    MPI_Datatype other = column(width + 1); /* takes the place of the freed ones, if they are gone */
    for (int round = 0; round < (how == PERSISTENT ? 3 : 1); round++) {
        if (how == PERSISTENT)
            MPI_Startall(2, requests);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
    if (how == PERSISTENT) {
        MPI_Request_free(&requests[0]);
        MPI_Request_free(&requests[1]);
    }
    MPI_Type_free(&other);
    check_column(in, width, before, names[how]);
    free(out);
    free(in);
}

/* The request is freed too, and the message still arrives. */
static void test_both_freed(void)
{
    int width = 7, base = 1000 * test_rank;
    int *out = malloc(sizeof(int) * ROWS * (size_t)width), *in = malloc(sizeof(int) * ROWS * (size_t)width);
    MPI_Request request;
    MPI_Datatype send = column(width), receive = column(width);
    fill_column(out, width, base);
    fill_column(in, width, 0);
    MPI_Isend(out, 1, send, test_next(), 90, MPI_COMM_WORLD, &request);
    MPI_Type_free(&send);
    MPI_Request_free(&request);
    MPI_Recv(in, 1, receive, test_previous(), 90, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Type_free(&receive);
    check_column(in, width, 1000 * test_previous(), "a freed request");
    MPI_Barrier(MPI_COMM_WORLD); /* everybody has received, so what was sent may go */
    free(out);
    free(in);
}

static int pairs_wrong; /* times that the function was given something that is no pair */

static void pairs_add(void *in, void *inout, int *count, MPI_Datatype *type)
{
    int size = 0;
    MPI_Aint lower, extent = 0;
    const int *x = in;
    int *y = inout;
    if (MPI_Type_size(*type, &size) != MPI_SUCCESS || size != 2 * sizeof(int) ||
        MPI_Type_get_extent(*type, &lower, &extent) != MPI_SUCCESS)
        pairs_wrong++;
    int width = (int)extent / (int)sizeof(int);
    for (int i = 0; i < *count; i++) {
        y[i * width] += x[i * width];
        y[(i + 1) * width - 1] += x[(i + 1) * width - 1];
    }
}

enum form { IALLREDUCE, ALLREDUCE_INIT, ISCAN, IREDUCE_SCATTER, FORMS };

static void reduction_start(enum form form, int *out, int *in, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                            MPI_Request *request)
{
    switch (form) {
    case ALLREDUCE_INIT:
        MPI_Allreduce_init(out, in, count, type, op, comm, MPI_INFO_NULL, request);
        break;
    case ISCAN:
        MPI_Iscan(out, in, count, type, op, comm, request);
        break;
    case IREDUCE_SCATTER:
        MPI_Ireduce_scatter_block(out, in, count / test_size, type, op, comm, request);
        break;
    default:
        MPI_Iallreduce(out, in, count, type, op, comm, request);
        break;
    }
}

/* Reductions with a function of the program, whose type, operation and communicator are freed before they have come
 * far: the function is given a handle that is one. `gap`: ints between the two of a pair. `twin`: there is another
 * handle of the same type, which is freed, too. */
static void test_reduction(enum form form, int count, int gap, bool twin)
{
    int width = 2 + gap, ints = count * width, sum = test_size * (test_size + 1) / 2, size;
    int *out = calloc((size_t)ints, sizeof *out),
        *in[2] = {calloc((size_t)ints, sizeof *out), calloc((size_t)ints, sizeof *out)};
    MPI_Comm comm;
    MPI_Datatype pair, copy, outer, other;
    MPI_Op op;
    MPI_Request requests[2];
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Op_create(pairs_add, 1, &op);
    MPI_Type_vector(2, 1, width - 1, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    MPI_Type_contiguous(1, pair, &outer);
    if (twin) {
        int integer;
        MPI_Type_get_contents(outer, 1, 0, 1, &integer, NULL, &other);
    }
    for (int i = 0; i < ints; i++)
        out[i] = i % width == 0 || i % width == width - 1 ? test_rank + 1 : 0;
    reduction_start(form, out, in[0], count, pair, op, comm, &requests[0]);
    if (twin) {
        MPI_Type_commit(&other);
        copy = other;
        MPI_Type_free(&pair);
        reduction_start(form, out, in[1], count, other, op, comm, &requests[1]);
        MPI_Type_free(&other);
    } else {
        copy = pair;
        reduction_start(form, out, in[1], count, pair, op, comm, &requests[1]);
        MPI_Type_free(&pair);
    }
    MPI_Datatype again = copy;
    if (!test_peer())
        CHECK_CLASS(MPI_Type_free(&again), MPI_ERR_TYPE); /* also while the first reductions go on */
    MPI_Op_free(&op);
    MPI_Comm_free(&comm);
    MPI_Type_contiguous(7, MPI_INT, &other); /* takes the place of what is gone */
    for (int round = 0; round < (form == ALLREDUCE_INIT ? 3 : 1); round++) {
        if (form == ALLREDUCE_INIT)
            MPI_Startall(2, requests);
        CHECK_CLASS(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE), MPI_SUCCESS);
    }
    if (form == ALLREDUCE_INIT) {
        MPI_Request_free(&requests[0]);
        MPI_Request_free(&requests[1]);
    }
    if (!test_peer())
        CHECK_CLASS(MPI_Type_size(copy, &size), MPI_ERR_TYPE);
    int wrong = 0, items = form == IREDUCE_SCATTER ? count / test_size : count;
    int want = form == ISCAN ? (test_rank + 1) * (test_rank + 2) / 2 : sum;
    for (int i = 0; i < items * width; i++)
        for (int k = 0; k < 2; k++)
            wrong += in[k][i] != (i % width == 0 || i % width == width - 1 ? want : 0);
    CHECK(wrong == 0 && pairs_wrong == 0, "form %d of %d pairs: %d numbers are wrong, %d types", (int)form, count,
          wrong, pairs_wrong);
    MPI_Type_free(&other);
    MPI_Type_free(&outer);
    free(out);
    free(in[0]);
    free(in[1]);
}

static void test_reductions(void)
{
    for (int form = 0; form < FORMS; form++)
        for (int i = 0; i < 8; i++)
            test_reduction((enum form)form, i % 2 ? 9000 : 32, i / 2 % 2, i / 4 == 1);
}

static void test_wrong(void)
{
    int x[4] = {0, 0, 0, 0}, length = 1, size;
    MPI_Aint place = 0;
    MPI_Datatype type, freed, open, made;
    MPI_Request request;
    MPI_Type_contiguous(2, MPI_INT, &type);
    open = type;
    CHECK_CLASS(MPI_Send(x, 1, open, test_rank, 91, MPI_COMM_WORLD), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_Irecv(x, 1, open, test_rank, 91, MPI_COMM_WORLD, &request), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_Bcast(x, 1, open, 0, MPI_COMM_SELF), MPI_ERR_TYPE);
    freed = type;
    MPI_Type_free(&type);
    CHECK_CLASS(MPI_Type_commit(&freed), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_Type_size(freed, &size), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_Type_dup(freed, &made), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_Type_free(&freed), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_Send(x, 1, freed, test_rank, 91, MPI_COMM_WORLD), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_Type_create_struct(1, &length, &place, &freed, &made), MPI_ERR_TYPE);
    freed = MPI_INT;
    CHECK_CLASS(MPI_Type_free(&freed), MPI_ERR_TYPE);
    freed = MPI_DATATYPE_NULL;
    CHECK_CLASS(MPI_Type_free(&freed), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_Type_contiguous(-1, MPI_INT, &made), MPI_ERR_COUNT);
    CHECK_CLASS(MPI_Type_vector(1, -1, 1, MPI_INT, &made), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Type_contiguous(1, MPI_DATATYPE_NULL, &made), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_Type_contiguous(1, MPI_INT, NULL), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Type_indexed(1, NULL, NULL, MPI_INT, &made), MPI_ERR_ARG);
    int whole = 4, part = 3, start = 2;
    CHECK_CLASS(MPI_Type_create_subarray(1, &whole, &part, &start, MPI_ORDER_C, MPI_INT, &made), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Type_get_contents(MPI_INT, 0, 0, 0, NULL, NULL, NULL), MPI_ERR_TYPE);
    MPI_Type_vector(2, 1, 2, MPI_INT, &type);
    CHECK_CLASS(MPI_Type_get_contents(type, 2, 0, 1, x, NULL, &made), MPI_ERR_ARG);
    MPI_Type_commit(&type);
    MPI_Type_commit(&type);
    CHECK_CLASS(MPI_Send(NULL, 1, type, test_rank, 91, MPI_COMM_WORLD), MPI_ERR_BUFFER);
    MPI_Type_free(&type);
}

/* A receive type whose items share bytes is the program's mistake, and harms nobody but the program. */
static void test_overlapping(void)
{
    int out[40], in[64];
    MPI_Datatype twice;
    MPI_Type_vector(20, 2, 1, MPI_INT, &twice);
    MPI_Type_commit(&twice);
    for (int i = 0; i < 40; i++)
        out[i] = i;
    for (int i = 0; i < 64; i++)
        in[i] = -1;
    MPI_Sendrecv(out, 40, MPI_INT, test_next(), 92, in, 1, twice, test_previous(), 92, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    CHECK_EQUAL(in[21], -1);
    MPI_Type_free(&twice);
}

static void test_many(void)
{
    struct mallinfo2 before = mallinfo2();
    for (int i = 0; i < 20000; i++) {
        MPI_Datatype a, b;
        MPI_Type_vector(3, 1, 2, MPI_INT, &a);
        MPI_Type_contiguous(2, a, &b);
        MPI_Type_commit(&b);
        MPI_Type_free(i % 2 ? &a : &b);
        MPI_Type_free(i % 2 ? &b : &a);
    }
    struct mallinfo2 after = mallinfo2();
    CHECK(after.uordblks < before.uordblks + 100000, "%zu bytes more", after.uordblks - before.uordblks);
}

int main(int argc, char **argv)
{
    test_begin(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    static char room[200000 + MPI_BSEND_OVERHEAD];
    MPI_Buffer_attach(room, sizeof room);
    for (int how = 0; how < HOWS; how++) {
        test_flight((enum how)how, 1); /* side by side, which is another path */
        test_flight((enum how)how, 3);
        test_flight((enum how)how, 40);
    }
    void *detached;
    int size;
    MPI_Buffer_detach(&detached, &size);
    test_both_freed();
    test_reductions();
    test_wrong();
    test_overlapping();
    test_many();
    return test_end();
}
