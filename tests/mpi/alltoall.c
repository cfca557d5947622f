/* Everyone to everyone: equal blocks, different ones, different types; in place; many without any data. */
#include "test.h"

#define LARGEST 5000

static int *in, *out;

/* Element `i` of what `from` gives to `to` in this call. */
static int element(int from, int to, int call, int i)
{
    return (int)(test_word((uint64_t)(from * 10000 + to * 100 + call), (uint64_t)i) & 0x7fffffff);
}

static void block_fill(int *block, int to, int call, int count)
{
    for (int i = 0; i < count; i++)
        block[i] = element(test_rank, to, call, i);
}

static void block_check(const int *block, int from, int call, int count)
{
    for (int i = 0; i < count; i++)
        if (block[i] != element(from, test_rank, call, i)) {
            CHECK(false, "call %d: element %d of the block from rank %d is %d", call, i, from, block[i]);
            return;
        }
}

static void equal_blocks(int count, int call)
{
    bool in_place = call % 2 == 1;
    int *given = in_place ? out : in;
    test_clear(out, (size_t)(count * test_size) * sizeof(int));
    for (int rank = 0; rank < test_size; rank++)
        block_fill(given + rank * count, rank, call, count);
    MPI_Alltoall(in_place ? MPI_IN_PLACE : in, count, MPI_INT, out, count, MPI_INT, MPI_COMM_WORLD);
    for (int rank = 0; rank < test_size; rank++)
        block_check(out + rank * count, rank, call, count);
    CHECK(test_untouched(out + count * test_size, TEST_GUARD), "bytes behind the buffer were changed");
}

/* How much `from` gives to `to`; in place it must be the same in both directions. */
static int amount(int from, int to, int unit, bool in_place)
{
    return in_place ? (from + to) % 4 * unit : (2 * from + 3 * to) % 4 * unit;
}

struct vector {
    int counts[64], displs[64], end;
};

static struct vector send_vector, receive_vector;

/* Blocks in reverse order, with gaps. */
static void vectors_make(int unit, bool in_place)
{
    send_vector.end = receive_vector.end = 0;
    for (int rank = test_size - 1; rank >= 0; rank--) {
        send_vector.counts[rank] = amount(test_rank, rank, unit, in_place);
        receive_vector.counts[rank] = amount(rank, test_rank, unit, in_place);
        send_vector.displs[rank] = send_vector.end;
        receive_vector.displs[rank] = receive_vector.end;
        send_vector.end += send_vector.counts[rank] + 2;
        receive_vector.end += receive_vector.counts[rank] + 2;
    }
}

static void vectors_check(int call)
{
    for (int rank = 0; rank < test_size; rank++) {
        int *block = out + receive_vector.displs[rank], count = receive_vector.counts[rank];
        block_check(block, rank, call, count);
        CHECK(test_untouched(block + count, 8), "call %d: bytes behind block %d were changed", call, rank);
    }
}

static void vectors(int unit, int call)
{
    bool in_place = call % 2 == 1;
    vectors_make(unit, in_place);
    const struct vector *s = &send_vector, *r = &receive_vector;
    MPI_Datatype types[64];
    int send_bytes[64], receive_bytes[64];
    for (int way = 0; way < 3; way++) {
        test_clear(out, (size_t)r->end * sizeof(int));
        for (int rank = 0; rank < test_size; rank++) {
            block_fill((in_place ? out : in) + s->displs[rank], rank, call, s->counts[rank]);
            types[rank] = MPI_INT;
            send_bytes[rank] = s->displs[rank] * (int)sizeof(int);
            receive_bytes[rank] = r->displs[rank] * (int)sizeof(int);
        }
        const void *given = in_place ? MPI_IN_PLACE : in;
        if (way == 0) {
            MPI_Alltoallv(given, s->counts, s->displs, MPI_INT, out, r->counts, r->displs, MPI_INT, MPI_COMM_WORLD);
        } else if (way == 1) {
            MPI_Alltoallw(given, s->counts, send_bytes, types, out, r->counts, receive_bytes, types, MPI_COMM_WORLD);
        } else {
            MPI_Count wide_send[64], wide_receive[64];
            MPI_Aint places_send[64], places_receive[64];
            for (int i = 0; i < test_size; i++) {
                wide_send[i] = s->counts[i];
                wide_receive[i] = r->counts[i];
                places_send[i] = s->displs[i];
                places_receive[i] = r->displs[i];
            }
            MPI_Alltoallv_c(given, wide_send, places_send, MPI_INT, out, wide_receive, places_receive, MPI_INT,
                            MPI_COMM_WORLD);
        }
        vectors_check(call);
    }
}

/* A matrix is transposed: everyone has some rows, and takes columns of them as another type for each rank. */
static void transpose(int rows)
{
    int n = rows * test_size, counts[64], send_displs[64], receive_displs[64];
    MPI_Datatype block, turned, column, send_types[64], receive_types[64];
    MPI_Type_vector(rows, rows, n, MPI_INT, &block);
    MPI_Type_commit(&block);
    /* One received row becomes a column. */
    MPI_Type_vector(rows, 1, n, MPI_INT, &column);
    MPI_Type_create_hvector(rows, 1, sizeof(int), column, &turned);
    MPI_Type_commit(&turned);
    for (int rank = 0; rank < test_size; rank++) {
        counts[rank] = 1;
        send_displs[rank] = receive_displs[rank] = rank * rows * (int)sizeof(int);
        send_types[rank] = block;
        receive_types[rank] = turned;
    }
    for (int i = 0; i < rows; i++)
        for (int k = 0; k < n; k++)
            in[i * n + k] = (test_rank * rows + i) * 10000 + k;
    test_clear(out, (size_t)(rows * n) * sizeof(int));
    MPI_Alltoallw(in, counts, send_displs, send_types, out, counts, receive_displs, receive_types, MPI_COMM_WORLD);
    for (int i = 0; i < rows; i++)
        for (int k = 0; k < n; k++)
            CHECK_EQUAL(out[i * n + k], k * 10000 + test_rank * rows + i);
    MPI_Type_free(&block);
    MPI_Type_free(&column);
    MPI_Type_free(&turned);
}

/* Only neighbours have anything for each other. */
static void sparse(int call)
{
    int counts[64] = {0}, displs[64] = {0};
    counts[test_next()] += 3;
    block_fill(in, test_next(), call, 3);
    test_clear(out, 3 * sizeof(int));
    int receive[64] = {0};
    receive[test_previous()] = 3;
    MPI_Alltoallv(in, counts, displs, MPI_INT, out, receive, displs, MPI_INT, MPI_COMM_WORLD);
    block_check(out, test_previous(), call, 3);
}

static void errors(void)
{
    MPI_Comm comm;
    int counts[64] = {0}, displs[64] = {0};
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    CHECK_CLASS(MPI_Alltoall(in, -1, MPI_INT, out, 1, MPI_INT, comm), MPI_ERR_COUNT);
    CHECK_CLASS(MPI_Alltoall(in, 1, MPI_INT, in, 1, MPI_INT, comm), MPI_ERR_BUFFER);
    CHECK_CLASS(MPI_Alltoall(in, 1, MPI_DATATYPE_NULL, out, 1, MPI_INT, comm), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_Alltoallv(in, NULL, displs, MPI_INT, out, counts, displs, MPI_INT, comm), MPI_ERR_ARG);
    counts[0] = -1;
    CHECK_CLASS(MPI_Alltoallv(in, counts, displs, MPI_INT, out, counts, displs, MPI_INT, comm), MPI_ERR_COUNT);
    MPI_Comm_free(&comm);
}

int main(int argc, char **argv)
{
    static const int lengths[] = {0, 1, 13, 2000, LARGEST};
    int call = 0;
    test_begin(&argc, &argv);
    in = test_memory((size_t)LARGEST * (size_t)(test_size + 1) * sizeof(int));
    out = test_memory((size_t)LARGEST * (size_t)(test_size + 1) * sizeof(int));
    for (int i = 0; i < 5; i++, call += 2) {
        equal_blocks(lengths[i], call);
        equal_blocks(lengths[i], call + 1);
    }
    for (int unit = 0; unit <= 1000; unit = unit * 10 + 1, call += 2) {
        vectors(unit, call);
        vectors(unit, call + 1);
    }
    for (int rows = 1; rows < 8; rows += 3)
        transpose(rows);
    for (int i = 0; i < 20; i++)
        sparse(call++);
    if (!test_peer())
        errors();
    free(in);
    free(out);
    return test_end();
}
