/* Broadcasts, reductions, gathers, scatters and barriers of several sizes, from and to every rank, on MPI_COMM_WORLD, a
 * duplicate, the same ranks in another order, and a part of them. What comes out must be right, whatever runs. */
#include <mpi.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define LONGEST  20000 /* ints */
#define SIZES    6
#define NO_VALUE 255

static int wrong;

/* Byte `at` of what a rank has for a call with this root; never NO_VALUE. */
static unsigned char value(int rank, int root, int at)
{
    return (unsigned char)((31 * rank + 7 * root + at % 241) % NO_VALUE);
}

static void bcast_check(MPI_Comm comm, int root, int bytes)
{
    static unsigned char data[4 * LONGEST];
    int rank;
    MPI_Comm_rank(comm, &rank);
    for (int i = 0; i < bytes; i++)
        data[i] = rank == root ? value(0, root, i) : NO_VALUE;
    MPI_Bcast(data, bytes, MPI_BYTE, root, comm);
    for (int i = 0; i < bytes; i++)
        wrong += data[i] != value(0, root, i);
}

/* Gathers a block of each rank, and scatters what was gathered: everybody gets its own back, but from another call. */
static void blocks_check(MPI_Comm comm, int root, int bytes)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    size_t block = (size_t)bytes, all = block * (size_t)size + 1;
    unsigned char *mine = malloc(block + 1), *everyones = malloc(all);
    if (mine == NULL || everyones == NULL)
        MPI_Abort(MPI_COMM_WORLD, 3);
    for (size_t i = 0; i < block; i++)
        mine[i] = value(rank, root, (int)i);
    for (size_t i = 0; i < all; i++)
        everyones[i] = NO_VALUE;
    MPI_Gather(mine, bytes, MPI_BYTE, everyones, bytes, MPI_BYTE, root, comm);
    for (size_t i = 0; i < all; i++) {
        bool inside = rank == root && i < all - 1;
        wrong += everyones[i] != (inside ? value((int)(i / block), root, (int)(i % block)) : NO_VALUE);
    }
    for (size_t i = 0; i < block; i++)
        mine[i] = NO_VALUE;
    MPI_Scatter(everyones, bytes, MPI_BYTE, mine, bytes, MPI_BYTE, root, comm);
    for (size_t i = 0; i < block; i++)
        wrong += mine[i] != value(rank, root, (int)i);
    free(mine);
    free(everyones);
}

static void reduce_check(MPI_Comm comm, int root, int count, MPI_Op op)
{
    static int data[LONGEST], sums[LONGEST];
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (int i = 0; i < count; i++)
        data[i] = rank + i;
    MPI_Reduce(data, sums, count, MPI_INT, op, root, comm);
    for (int i = 0; i < count && rank == root; i++)
        wrong += sums[i] != size * (size - 1) / 2 + i * size;
    MPI_Allreduce(data, sums, count, MPI_INT, op, comm);
    for (int i = 0; i < count; i++)
        wrong += sums[i] != size * (size - 1) / 2 + i * size;
}

static void add(void *from, void *to, int *count, MPI_Datatype *type)
{
    for (int i = 0; i < *count; i++)
        ((int *)to)[i] += ((int *)from)[i];
}

static void use(MPI_Comm comm, MPI_Op op)
{
    static const int bytes[SIZES] = {0, 1, 5, 1024, 1027, 4 * LONGEST - 1}, blocks[SIZES] = {0, 1, 7, 1024, 1027, 9001},
                     counts[SIZES] = {0, 1, 4, 256, 300, LONGEST - 1};
    int size;
    MPI_Comm_size(comm, &size);
    for (int root = 0; root < size; root++)
        for (int i = 0; i < SIZES; i++) {
            bcast_check(comm, root, bytes[i]);
            reduce_check(comm, root, counts[i], op);
            blocks_check(comm, root, blocks[i]);
            MPI_Barrier(comm);
        }
}

int main(int argc, char **argv)
{
    MPI_Comm copy, turned, part;
    MPI_Op ordered;
    int rank, size, all;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Comm_split(MPI_COMM_WORLD, 0, size - rank, &turned);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &part);
    MPI_Op_create(add, 0, &ordered);
    use(MPI_COMM_WORLD, MPI_SUM);
    use(copy, MPI_SUM);
    use(turned, MPI_SUM);
    use(part, MPI_SUM);
    if (argc > 1) /* anything */
        use(copy, ordered);
    MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%d wrong\n", all);
    MPI_Op_free(&ordered);
    MPI_Comm_free(&copy);
    MPI_Comm_free(&turned);
    MPI_Comm_free(&part);
    MPI_Finalize();
    return all != 0;
}
