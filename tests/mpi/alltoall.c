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

/* Given and taken in one array: in two halves, and in turns, by types that have each other's gaps. */
static void one_array(int call)
{
    int counts[64], given[64], taken[64], given_bytes[64], taken_bytes[64], one = 1;
    MPI_Datatype even, odd, second, types[64];
    MPI_Type_create_indexed_block(1, 1, &one, MPI_INT, &second);
    MPI_Type_create_resized(second, 0, 2 * sizeof(int), &odd);
    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &even);
    MPI_Type_commit(&odd);
    MPI_Type_commit(&even);
    for (int rank = 0; rank < test_size; rank++) {
        counts[rank] = 1;
        given[rank] = rank;
        taken[rank] = test_size + rank;
        given_bytes[rank] = given[rank] * (int)sizeof(int);
        taken_bytes[rank] = taken[rank] * (int)sizeof(int);
        types[rank] = MPI_INT;
    }
    for (int way = 0; way < 3; way++, call++) {
        int stride = way == 2 ? 2 : 1, first = way == 2 ? 1 : test_size;
        for (int rank = 0; rank < test_size; rank++) {
            block_fill(in + rank * stride, rank, call, 1);
            in[first + rank * stride] = -7;
        }
        if (way == 0)
            MPI_Alltoallv(in, counts, given, MPI_INT, in, counts, taken, MPI_INT, MPI_COMM_WORLD);
        else if (way == 1)
            MPI_Alltoallw(in, counts, given_bytes, types, in, counts, taken_bytes, types, MPI_COMM_WORLD);
        else
            MPI_Alltoall(in, 1, even, in, 1, odd, MPI_COMM_WORLD);
        for (int rank = 0; rank < test_size; rank++) {
            block_check(in + first + rank * stride, rank, call, 1);
            CHECK_EQUAL(in[rank * stride], element(test_rank, rank, call, 0));
        }
    }
    MPI_Type_free(&second);
    MPI_Type_free(&odd);
    MPI_Type_free(&even);
}

/* Displacements that are addresses. */
static void absolute_displacements(int call)
{
    MPI_Count counts[64];
    MPI_Aint given[64], taken[64];
    MPI_Datatype types[64];
    for (int rank = 0; rank < test_size; rank++) {
        counts[rank] = 2;
        types[rank] = MPI_INT;
        block_fill(in + 3 * rank, rank, call, 2);
        MPI_Get_address(in + 3 * rank, &given[rank]);
        MPI_Get_address(out + 3 * rank, &taken[rank]);
    }
    test_clear(out, (size_t)test_size * 3 * sizeof(int));
    MPI_Alltoallw_c(MPI_BOTTOM, counts, given, types, MPI_BOTTOM, counts, taken, types, MPI_COMM_WORLD);
    for (int rank = 0; rank < test_size; rank++)
        block_check(out + 3 * rank, rank, call, 2);
}

/* An int at an address; the next one stands behind it. */
static MPI_Datatype absolute_type(const int *at)
{
    MPI_Datatype bare, type;
    MPI_Aint place;
    MPI_Get_address(at, &place);
    MPI_Type_create_hindexed_block(1, 1, &place, MPI_INT, &bare);
    MPI_Type_create_resized(bare, 0, sizeof(int), &type);
    MPI_Type_commit(&type);
    MPI_Type_free(&bare);
    return type;
}

/* Types with addresses, so that both buffers are MPI_BOTTOM and yet not the same. */
static void absolute_types(int call)
{
    MPI_Datatype given = absolute_type(in), taken = absolute_type(out);
    for (int rank = 0; rank < test_size; rank++)
        block_fill(in + rank, rank, call, 1);
    test_clear(out, (size_t)test_size * sizeof(int));
    MPI_Alltoall(MPI_BOTTOM, 1, given, MPI_BOTTOM, 1, taken, MPI_COMM_WORLD);
    for (int rank = 0; rank < test_size; rank++)
        block_check(out + rank, rank, call, 1);
    MPI_Type_free(&given);
    MPI_Type_free(&taken);
}

/* The same blocks on both sides, and blocks that are nowhere. */
static void errors_of_blocks(MPI_Comm comm)
{
    int counts[64], displs[64], bytes[64];
    MPI_Datatype types[64];
    for (int rank = 0; rank < test_size; rank++) {
        counts[rank] = 1;
        displs[rank] = rank;
        bytes[rank] = rank * (int)sizeof(int);
        types[rank] = MPI_INT;
    }
    CHECK_CLASS(MPI_Alltoallv(in, counts, displs, MPI_INT, in, counts, displs, MPI_INT, comm), MPI_ERR_BUFFER);
    CHECK_CLASS(MPI_Alltoallw(in, counts, bytes, types, in, counts, bytes, types, comm), MPI_ERR_BUFFER);
    CHECK_CLASS(MPI_Alltoallv(NULL, counts, displs, MPI_INT, out, counts, displs, MPI_INT, comm), MPI_ERR_BUFFER);
    counts[0] = 0;
    if (test_size > 1)
        CHECK_CLASS(MPI_Alltoallw(in, counts, bytes, types, NULL, counts, bytes, types, comm), MPI_ERR_BUFFER);
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
    errors_of_blocks(comm);
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
    one_array(call);
    absolute_displacements(call + 3);
    absolute_types(call + 4);
    if (!test_peer())
        errors();
    free(in);
    free(out);
    return test_end();
}
