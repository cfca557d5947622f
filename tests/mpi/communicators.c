/* A thousand communicators at once, and very many made and freed, in every way that there is: memory must not grow.
 *
 *     communicators [MADE]       how many are made and freed (default 100000) */
#include "test.h"

#define ALIVE 1000

/* KiB of memory that this process has. */
static long memory(void)
{
    char line[256];
    long kib = -1;
    FILE *f = fopen("/proc/self/status", "r");
    while (f != NULL && fgets(line, sizeof line, f) != NULL)
        if (sscanf(line, "VmRSS: %ld", &kib) == 1)
            break;
    if (f != NULL)
        fclose(f);
    return kib;
}

static MPI_Group group_of(int first, int last)
{
    MPI_Group all, some;
    int range[1][3] = {{first, last, 1}};
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_range_incl(all, 1, range, &some);
    MPI_Group_free(&all);
    return some;
}

/* Makes the i-th one; MPI_COMM_NULL if this rank is not in it. */
static MPI_Comm make(int i)
{
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Request request;
    MPI_Group group;
    int dims[2] = {0, 0}, periods[2] = {0, 1}, next = 1 + i / 8 % (test_size > 1 ? test_size - 1 : 1);
    switch (i % 8) {
    case 0:
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        break;
    case 1:
        MPI_Comm_split(MPI_COMM_WORLD, (test_rank + i / 8) % 3, -test_rank, &comm);
        break;
    case 2:
        MPI_Comm_idup(MPI_COMM_WORLD, &comm, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        break;
    case 3: /* rank 0 with another one in turn: the others see none of its ids */
        MPI_Comm_split(MPI_COMM_WORLD, test_rank == 0 || test_rank == next ? 0 : MPI_UNDEFINED, 0, &comm);
        break;
    case 4:
        group = group_of(test_rank / 2 * 2, test_rank / 2 * 2 + 1 < test_size ? test_rank / 2 * 2 + 1 : test_size - 1);
        MPI_Comm_create_group(MPI_COMM_WORLD, group, i % 100, &comm);
        MPI_Group_free(&group);
        break;
    case 5:
        MPI_Dims_create(test_size, 2, dims);
        MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &comm);
        break;
    case 6:
        group = group_of(i / 8 % test_size, test_size - 1);
        MPI_Comm_create(MPI_COMM_WORLD, group, &comm);
        MPI_Group_free(&group);
        break;
    default:
        MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comm);
    }
    return comm;
}

static void use(MPI_Comm comm, int i)
{
    int sum = -1, size = -1, one = 1;
    if (comm == MPI_COMM_NULL)
        return;
    MPI_Comm_size(comm, &size);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
    CHECK(sum == size, "%d instead of %d in communicator %d", sum, size, i);
}

static void discard(MPI_Comm *comm)
{
    if (*comm != MPI_COMM_NULL)
        MPI_Comm_free(comm);
}

/* Two groups, connected, merged and taken apart again. */
static void inter(int i)
{
    if (test_size == 1)
        return;
    MPI_Comm local, both, merged;
    int left = 1 + i % (test_size - 1);
    MPI_Comm_split(MPI_COMM_WORLD, test_rank < left, 0, &local);
    MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, test_rank < left ? left : 0, i % 1000, &both);
    MPI_Intercomm_merge(both, test_rank < left, &merged);
    MPI_Comm_free(&local);
    MPI_Comm_free(&both);
    MPI_Comm_free(&merged);
}

static void alive(void)
{
    static MPI_Comm comms[ALIVE];
    for (int i = 0; i < ALIVE; i++)
        comms[i] = make(i);
    for (int i = 0; i < ALIVE; i += 7)
        use(comms[i], i);
    for (int i = 0; i < ALIVE; i++)
        discard(&comms[(i * 7 + test_rank) % ALIVE]); /* in another order on each rank */
}

int main(int argc, char **argv)
{
    test_begin(&argc, &argv);
    int made = argc > 1 ? atoi(argv[1]) : 100000;
    long before = 0;
    alive();
    for (int i = 0; i < made; i++) {
        MPI_Comm comm = make(i);
        if (i % 64 < 8)
            use(comm, i);
        discard(&comm);
        if (i % 100 == 0)
            inter(i);
        if (i == made / 5)
            before = memory();
    }
    alive();
    MPI_Barrier(MPI_COMM_WORLD);
    long after = memory();
    CHECK(after - before < 512, "memory has grown from %ld to %ld KiB", before, after);
    if (getenv("TEST_SHOW") != NULL)
        printf("rank %d: %ld KiB, then %ld KiB\n", test_rank, before, after);
    return test_end();
}
