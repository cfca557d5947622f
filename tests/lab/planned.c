/* Broadcasts, reductions and barriers of several sizes, from and to every rank, on MPI_COMM_WORLD, a duplicate, the
 * same ranks in another order, and a part of them. What comes out must be right, whatever runs. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define LONGEST 20000

static int wrong;

static void bcast_check(MPI_Comm comm, int root, int count)
{
    static int data[LONGEST];
    int rank;
    MPI_Comm_rank(comm, &rank);
    for (int i = 0; i < count; i++)
        data[i] = rank == root ? 3 * i + root : -1;
    MPI_Bcast(data, count, MPI_INT, root, comm);
    for (int i = 0; i < count; i++)
        wrong += data[i] != 3 * i + root;
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
    static const int counts[] = {0, 1, 4, 256, 300, LONGEST};
    int size;
    MPI_Comm_size(comm, &size);
    for (int root = 0; root < size; root++)
        for (int i = 0; i < 6; i++) {
            bcast_check(comm, root, counts[i]);
            reduce_check(comm, root, counts[i], op);
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
