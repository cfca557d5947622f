/* Collectives of 2 GiB and one byte: neither counts nor places nor sums of them are cut to 32 bits anywhere. */
#include "test.h"

#define COUNT ((MPI_Count)1 << 31 | 1)

/* Byte `i` of what rank gives; a few bytes are looked at, all over the buffer. */
static unsigned char byte(int rank, MPI_Count i)
{
    return (unsigned char)(1u << ((unsigned)rank + (unsigned)(i % 5)));
}

static void fill(unsigned char *data, int rank)
{
    for (MPI_Count i = 0; i < COUNT; i++)
        data[i] = byte(rank, i);
}

#define CHECK_BYTES(data, expected)                                                                                    \
    for (MPI_Count i = 0; i < COUNT; i += i < 100 || i > COUNT - 100 ? 1 : 9973)                                       \
        if ((data)[i] != (expected)) {                                                                                 \
            CHECK(false, "byte %lld is %d", (long long)i, (data)[i]);                                                  \
            break;                                                                                                     \
        }

int main(int argc, char **argv)
{
    test_begin(&argc, &argv);
    test_need(test_size == 2, "this takes two ranks");
    unsigned char *data = test_memory((size_t)COUNT + 100), *all = NULL;
    fill(data, test_rank);
    MPI_Allreduce_c(MPI_IN_PLACE, data, COUNT, MPI_BYTE, MPI_BOR, MPI_COMM_WORLD);
    CHECK_BYTES(data, byte(0, i) | byte(1, i));
    if (test_rank == 1)
        fill(data, 1);
    MPI_Bcast_c(data, COUNT, MPI_BYTE, 1, MPI_COMM_WORLD);
    CHECK_BYTES(data, byte(1, i));
    /* The second block begins behind the first 2 GiB. */
    MPI_Count counts[] = {COUNT, 100};
    MPI_Aint places[] = {0, COUNT};
    if (test_rank == 0)
        all = test_memory((size_t)COUNT + 100);
    MPI_Gatherv_c(data, counts[test_rank], MPI_BYTE, all, counts, places, MPI_BYTE, 0, MPI_COMM_WORLD);
    if (test_rank == 0) {
        CHECK_BYTES(all, byte(1, i));
        CHECK(memcmp(all + COUNT, data, 100) == 0, "the second block is wrong");
    }
    MPI_Scatterv_c(all, counts, places, MPI_BYTE, data, counts[test_rank], MPI_BYTE, 0, MPI_COMM_WORLD);
    CHECK(data[99] == byte(1, 99), "the block is wrong");
    free(data);
    free(all);
    return test_end();
}
