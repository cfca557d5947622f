/* Gather, scatter and allgather with equal blocks and with different ones: every root, several lengths, none at all, in
 * place, types that differ between the sides. */
#include "test.h"

static const int lengths[] = {0, 1, 7, 1000, 30000};
#define LENGTHS (int)(sizeof lengths / sizeof lengths[0])
#define LARGEST 30000

static int *mine, *all;

/* Element `i` of the block that `rank` gives in this call. */
static int element(int rank, int call, int i)
{
    return (int)(test_word((uint64_t)(rank * 1000 + call), (uint64_t)i) & 0x7fffffff);
}

static void block_fill(int *block, int rank, int call, int count)
{
    for (int i = 0; i < count; i++)
        block[i] = element(rank, call, i);
}

static bool block_right(const int *block, int rank, int call, int count)
{
    for (int i = 0; i < count; i++)
        if (block[i] != element(rank, call, i))
            return false;
    return true;
}

static void all_clear(int count)
{
    test_clear(all, (size_t)count * sizeof(int));
}

static void all_check(int call, int count)
{
    for (int rank = 0; rank < test_size; rank++)
        CHECK(block_right(all + rank * count, rank, call, count), "call %d: the block of rank %d is wrong", call, rank);
    CHECK(test_untouched(all + test_size * count, TEST_GUARD), "call %d: bytes behind the buffer were changed", call);
}

static void gather(int root, int count, int call)
{
    bool in_place = call % 2 == 1 && test_rank == root;
    all_clear(count * test_size);
    block_fill(mine, test_rank, call, count);
    if (in_place)
        block_fill(all + root * count, root, call, count);
    MPI_Gather(in_place ? MPI_IN_PLACE : mine, count, MPI_INT, test_rank == root ? all : NULL, count, MPI_INT, root,
               MPI_COMM_WORLD);
    if (test_rank == root)
        all_check(call, count);
}

static void scatter(int root, int count, int call)
{
    bool in_place = call % 2 == 1 && test_rank == root;
    all_clear(count * test_size);
    test_clear(mine, (size_t)count * sizeof(int));
    for (int rank = 0; rank < test_size && test_rank == root; rank++)
        block_fill(all + rank * count, rank, call, count);
    MPI_Scatter(test_rank == root ? all : NULL, count, MPI_INT, in_place ? MPI_IN_PLACE : mine, count, MPI_INT, root,
                MPI_COMM_WORLD);
    CHECK(in_place || block_right(mine, test_rank, call, count), "call %d: the block is wrong", call);
    CHECK(test_untouched(mine + (in_place ? 0 : count), TEST_GUARD), "call %d: too much was changed", call);
}

static void allgather(int count, int call)
{
    bool in_place = call % 2 == 1;
    all_clear(count * test_size);
    block_fill(in_place ? all + test_rank * count : mine, test_rank, call, count);
    MPI_Allgather(in_place ? MPI_IN_PLACE : mine, count, MPI_INT, all, count, MPI_INT, MPI_COMM_WORLD);
    all_check(call, count);
}

/* ---- blocks of different sizes ----------------------------------------------------------------------------------- */

/* Rank r has (3 r + 1) % 5 times `unit` elements: some have none. Blocks lie in reverse order with gaps of 2. */
static int counts[64], displs[64], end;

static void vector_make(int unit)
{
    end = 0;
    for (int rank = test_size - 1; rank >= 0; rank--) {
        counts[rank] = (3 * rank + 1) % 5 * unit;
        displs[rank] = end;
        end += counts[rank] + 2;
    }
}

static void vector_check(int call)
{
    for (int rank = 0; rank < test_size; rank++) {
        CHECK(block_right(all + displs[rank], rank, call, counts[rank]), "call %d: the block of rank %d is wrong", call,
              rank);
        CHECK(test_untouched(all + displs[rank] + counts[rank], 8), "call %d: bytes behind block %d were changed", call,
              rank);
    }
}

static void vectors(int root, int unit, int call)
{
    bool in_place = call % 2 == 1;
    vector_make(unit);
    int count = counts[test_rank];
    test_clear(all, (size_t)end * sizeof(int));
    block_fill(mine, test_rank, call, count);
    if (in_place && test_rank == root)
        block_fill(all + displs[root], root, call, count);
    MPI_Gatherv(in_place && test_rank == root ? MPI_IN_PLACE : mine, count, MPI_INT, all, counts, displs, MPI_INT, root,
                MPI_COMM_WORLD);
    if (test_rank == root)
        vector_check(call);
    test_clear(mine, (size_t)count * sizeof(int));
    bool keep = in_place && test_rank == root;
    MPI_Scatterv(all, counts, displs, MPI_INT, keep ? MPI_IN_PLACE : mine, count, MPI_INT, root, MPI_COMM_WORLD);
    CHECK(keep || block_right(mine, test_rank, call, count), "call %d: the block is wrong", call);
    CHECK(test_untouched(mine + (keep ? 0 : count), TEST_GUARD), "call %d: too much was changed", call);
    test_clear(all, (size_t)end * sizeof(int));
    block_fill(in_place ? all + displs[test_rank] : mine, test_rank, call, count);
    MPI_Allgatherv(in_place ? MPI_IN_PLACE : mine, count, MPI_INT, all, counts, displs, MPI_INT, MPI_COMM_WORLD);
    vector_check(call);
}

/* Large-count twins, with arrays of 64 bits. */
static void twins(int call)
{
    MPI_Count wide[64];
    MPI_Aint places[64];
    vector_make(11);
    for (int i = 0; i < test_size; i++) {
        wide[i] = counts[i];
        places[i] = displs[i];
    }
    test_clear(all, (size_t)end * sizeof(int));
    block_fill(mine, test_rank, call, counts[test_rank]);
    MPI_Allgatherv_c(mine, wide[test_rank], MPI_INT, all, wide, places, MPI_INT, MPI_COMM_WORLD);
    vector_check(call);
    test_clear(all, (size_t)end * sizeof(int));
    MPI_Gatherv_c(mine, wide[test_rank], MPI_INT, all, wide, places, MPI_INT, 0, MPI_COMM_WORLD);
    if (test_rank == 0)
        vector_check(call);
}

/* ---- types ------------------------------------------------------------------------------------------------------- */

/* The blocks are columns of the root's matrix, and rows of single elements elsewhere. */
static void columns(int root, int rows, int call)
{
    MPI_Datatype column, spaced;
    MPI_Type_vector(rows, 1, test_size, MPI_INT, &column);
    MPI_Type_create_resized(column, 0, sizeof(int), &spaced);
    MPI_Type_commit(&spaced);
    all_clear(rows * test_size);
    block_fill(mine, test_rank, call, rows);
    MPI_Gather(mine, rows, MPI_INT, all, 1, spaced, root, MPI_COMM_WORLD);
    for (int i = 0; i < rows * test_size && test_rank == root; i++)
        CHECK_EQUAL(all[i], element(i % test_size, call, i / test_size));
    test_clear(mine, (size_t)rows * sizeof(int));
    MPI_Scatter(all, 1, spaced, mine, rows, MPI_INT, root, MPI_COMM_WORLD);
    CHECK(block_right(mine, test_rank, call, rows), "call %d: the column is wrong", call);
    all_clear(rows * test_size);
    MPI_Allgather(mine, rows, MPI_INT, all, 1, spaced, MPI_COMM_WORLD);
    for (int i = 0; i < rows * test_size; i++)
        CHECK_EQUAL(all[i], element(i % test_size, call, i / test_size));
    /* Everyone gives a column of its own matrix: a relay must not need the gaps. */
    all_clear(rows * test_size);
    block_fill(mine, test_rank, call, rows);
    int *matrix = test_memory((size_t)(rows * test_size) * sizeof(int));
    for (int i = 0; i < rows; i++)
        matrix[i * test_size] = mine[i];
    MPI_Gather(matrix, 1, spaced, all, rows, MPI_INT, root, MPI_COMM_WORLD);
    if (test_rank == root)
        all_check(call, rows);
    free(matrix);
    MPI_Type_free(&column);
    MPI_Type_free(&spaced);
}

/* ---- errors ------------------------------------------------------------------------------------------------------ */

/* Displacements that are addresses, and a block that stands between those that are taken. */
static void absolute(int root, int call)
{
    MPI_Count wide[64];
    MPI_Aint places[64];
    for (int rank = 0; rank < test_size; rank++) {
        wide[rank] = 2 * sizeof(int);
        MPI_Get_address(all + 3 * rank, &places[rank]);
    }
    for (int way = 0; way < 3; way++, call++) {
        all_clear(3 * test_size);
        test_clear(mine, 2 * sizeof(int));
        block_fill(mine, test_rank, call, 2);
        if (way == 0)
            MPI_Gatherv_c(mine, 2, MPI_INT, MPI_BOTTOM, wide, places, MPI_BYTE, root, MPI_COMM_WORLD);
        else
            MPI_Allgatherv_c(mine, 2, MPI_INT, MPI_BOTTOM, wide, places, MPI_BYTE, MPI_COMM_WORLD);
        if (way == 2) {
            test_clear(mine, 2 * sizeof(int));
            MPI_Scatterv_c(MPI_BOTTOM, wide, places, MPI_BYTE, mine, 2, MPI_INT, root, MPI_COMM_WORLD);
            CHECK(block_right(mine, test_rank, call, 2), "the block scattered from an address is wrong");
        }
        for (int rank = 0; rank < test_size && (way > 0 || test_rank == root); rank++)
            CHECK(block_right(all + 3 * rank, rank, call, 2), "way %d: the block from rank %d is wrong", way, rank);
    }
}

/* What is given stands in a gap of what is taken: at the same address, by another type. */
static void in_gaps(int call)
{
    MPI_Datatype even, odd, second;
    int one = 1, *own = all + 2 * test_rank;
    MPI_Type_create_indexed_block(1, 1, &one, MPI_INT, &second);
    MPI_Type_create_resized(second, 0, 2 * sizeof(int), &odd);
    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &even);
    MPI_Type_commit(&odd);
    MPI_Type_commit(&even);
    all_clear(2 * test_size);
    block_fill(own + 1, test_rank, call, 1);
    MPI_Allgather(own, 1, odd, all, 1, even, MPI_COMM_WORLD);
    for (int rank = 0; rank < test_size; rank++)
        CHECK(block_right(all + 2 * rank, rank, call, 1), "the block from rank %d is wrong", rank);
    all_clear(2 * test_size);
    block_fill(own + 1, test_rank, ++call, 1);
    MPI_Gather(own, 1, odd, all, 1, even, 0, MPI_COMM_WORLD);
    for (int rank = 0; rank < test_size && test_rank == 0; rank++)
        CHECK(block_right(all + 2 * rank, rank, call, 1), "the block from rank %d is wrong", rank);
    MPI_Type_free(&second);
    MPI_Type_free(&odd);
    MPI_Type_free(&even);
}

static void errors(void)
{
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    CHECK_CLASS(MPI_Gather(mine, 1, MPI_INT, all, 1, MPI_INT, test_size, comm), MPI_ERR_ROOT);
    CHECK_CLASS(MPI_Gather(mine, 1, MPI_INT, all, 1, MPI_INT, MPI_ROOT, comm), MPI_ERR_ROOT);
    CHECK_CLASS(MPI_Gather(mine, -1, MPI_INT, all, 1, MPI_INT, 0, comm), MPI_ERR_COUNT);
    CHECK_CLASS(MPI_Scatter(all, 1, MPI_INT, mine, 1, MPI_DATATYPE_NULL, 0, comm), MPI_ERR_TYPE);
    CHECK_CLASS(MPI_Allgather(mine, 1, MPI_INT, NULL, 1, MPI_INT, comm), MPI_ERR_BUFFER);
    CHECK_CLASS(MPI_Allgather(mine, 1, MPI_INT, MPI_IN_PLACE, 1, MPI_INT, comm), MPI_ERR_BUFFER);
    CHECK_CLASS(MPI_Allgather(all + test_rank, 1, MPI_INT, all, 1, MPI_INT, comm), MPI_ERR_BUFFER);
    CHECK_CLASS(MPI_Allgather(all, 1, MPI_INT, all, 1, MPI_INT, comm), MPI_ERR_BUFFER);
    if (test_rank == test_size - 1) {
        CHECK_CLASS(MPI_Gather(all, 1, MPI_INT, all, 1, MPI_INT, test_rank, comm), MPI_ERR_BUFFER);
        CHECK_CLASS(MPI_Scatter(all, 1, MPI_INT, all, 1, MPI_INT, test_rank, comm), MPI_ERR_BUFFER);
    }
    CHECK_CLASS(MPI_Allgather(mine, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_NULL), MPI_ERR_COMM);
    if (test_rank != 0)
        CHECK_CLASS(MPI_Gather(MPI_IN_PLACE, 1, MPI_INT, all, 1, MPI_INT, 0, comm), MPI_ERR_BUFFER);
    vector_make(1);
    counts[test_size - 1] = -3;
    CHECK_CLASS(MPI_Allgatherv(mine, 1, MPI_INT, all, counts, displs, MPI_INT, comm), MPI_ERR_COUNT);
    /* The root expects less than it is given, and knows; nobody hangs, and the next call is in step. */
    int code = MPI_Gather(mine, 10, MPI_INT, all, 1, MPI_INT, 0, comm);
    if (test_rank == 0)
        CHECK_CLASS(code, MPI_ERR_TRUNCATE);
    MPI_Barrier(comm);
    MPI_Comm_free(&comm);
}

int main(int argc, char **argv)
{
    int call = 0;
    test_begin(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    mine = test_memory((size_t)LARGEST * sizeof(int));
    all = test_memory((size_t)LARGEST * (size_t)(test_size + 1) * sizeof(int));
    for (int i = 0; i < LENGTHS; i++) {
        for (int root = 0; root < test_size; root++, call += 2) {
            if (lengths[i] > 1000 && root > 1 && root < test_size - 1)
                continue;
            gather(root, lengths[i], call);
            gather(root, lengths[i], call + 1);
            scatter(root, lengths[i], call);
            scatter(root, lengths[i], call + 1);
        }
        allgather(lengths[i], call++);
        allgather(lengths[i], call++);
    }
    for (int root = 0; root < test_size; root++, call += 2) {
        vectors(root, root % 2 ? 1 : 300, call);
        vectors(root, root % 2 ? 17 : 0, call + 1);
        columns(root, root % 3 == 0 ? 500 : 3, call);
    }
    twins(call);
    absolute(test_size - 1, call + 10);
    in_gaps(call + 20);
    if (!test_peer())
        errors();
    free(mine);
    free(all);
    return test_end();
}
