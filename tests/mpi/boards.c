/* More communicators and persistent collectives than hosts have common memory for, made in every way and freed in any
 * order: whether one has some makes no difference, and all ranks know it alike. */
#include "test.h"

#define MANY   100 /* more than there are boards on a host */
#define ROUNDS 2
#define LONG   5000

static int value(int from, int i)
{
    return from * 31 + i * 7;
}

/* A few collectives, short and long, on a communicator. */
static void use(MPI_Comm comm, int number)
{
    static int data[LONG];
    int rank, size, count = number % 5 == 0 ? LONG : 3, sum = -1;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int root = number % size;
    for (int i = 0; i < count; i++)
        data[i] = rank == root ? value(number, i) : -1;
    MPI_Bcast(data, count, MPI_INT, root, comm);
    for (int i = 0; i < count; i++)
        if (!CHECK_EQUAL(data[i], value(number, i)))
            break;
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
    CHECK_EQUAL(sum, size * (size - 1) / 2);
    MPI_Barrier(comm);
}

/* The ways in turn, some of which leave ranks out, or put them in another order. */
static MPI_Comm make(int number)
{
    MPI_Comm made = MPI_COMM_NULL;
    MPI_Request request;
    MPI_Group group, some;
    int dims[1] = {test_size}, periods[1] = {0}, last = test_size - 1, next = test_next(), previous = test_previous();
    switch (number % 7) {
    case 0:
        MPI_Comm_dup(MPI_COMM_WORLD, &made);
        break;
    case 1:
        MPI_Comm_split(MPI_COMM_WORLD, test_rank % 2, -test_rank, &made);
        break;
    case 2:
        MPI_Comm_idup(MPI_COMM_WORLD, &made, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        break;
    case 3:
        MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &made);
        break;
    case 4:
        MPI_Comm_group(MPI_COMM_WORLD, &group);
        MPI_Group_excl(group, test_size > 1, &last, &some);
        MPI_Comm_create(MPI_COMM_WORLD, some, &made);
        MPI_Group_free(&group);
        MPI_Group_free(&some);
        break;
    case 5:
        MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &previous, MPI_UNWEIGHTED, 1, &next, MPI_UNWEIGHTED,
                                       MPI_INFO_NULL, 0, &made);
        break;
    default:
        MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &made);
        break;
    }
    return made;
}

static void communicators(int round)
{
    static MPI_Comm comms[MANY];
    for (int i = 0; i < MANY; i++)
        comms[i] = make(i + round);
    for (int i = 0; i < MANY; i++)
        if (comms[i] != MPI_COMM_NULL)
            use(comms[i], i);
    for (int i = 0; i < MANY; i++) {
        MPI_Comm *one = &comms[i * 37 % MANY];
        if (*one != MPI_COMM_NULL)
            MPI_Comm_free(one);
    }
}

/* What MPI_Comm_idup has made is used without waiting first. */
static void idle(void)
{
    MPI_Comm comm;
    MPI_Request requests[2];
    int one = 1, sum = -1, data = test_rank == 0 ? 77 : -1;
    MPI_Comm_idup(MPI_COMM_WORLD, &comm, &requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm, &requests[0]);
    MPI_Ibcast(&data, 1, MPI_INT, 0, comm, &requests[1]);
    use(comm, 1);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    CHECK_EQUAL(sum, test_size);
    CHECK_EQUAL(data, 77);
    use(comm, 5);
    MPI_Comm_free(&comm);
}

/* All at once, each rank in an order of its own, with others between them. */
static void persistent(MPI_Comm comm)
{
    static MPI_Request requests[MANY];
    static int in[MANY], out[MANY], data[MANY][64];
    for (int i = 0; i < MANY; i++)
        if (i % 2 == 0)
            MPI_Allreduce_init(&in[i], &out[i], 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &requests[i]);
        else
            MPI_Bcast_init(data[i], 64, MPI_INT, i % test_size, comm, MPI_INFO_NULL, &requests[i]);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < MANY; i++) {
            in[i] = i + round;
            for (int k = 0; k < 64; k++)
                data[i][k] = test_rank == i % test_size ? value(i + round, k) : -1;
        }
        for (int i = 0; i < MANY; i++)
            MPI_Start(&requests[(i * (test_rank % 3 == 0 ? 1 : test_rank % 3 == 1 ? 3 : 7) + test_rank) % MANY]);
        MPI_Barrier(comm);
        MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < MANY; i++)
            if (i % 2 == 0)
                CHECK_EQUAL(out[i], (i + round) * test_size);
            else
                CHECK(data[i][0] == value(i + round, 0) && data[i][63] == value(i + round, 63), "%d in number %d",
                      data[i][63], i);
    }
    for (int i = 0; i < MANY; i++)
        MPI_Request_free(&requests[i * 37 % MANY]);
}

int main(int argc, char **argv)
{
    test_begin(&argc, &argv);
    for (int round = 0; round < ROUNDS; round++) {
        communicators(round);
        idle();
        persistent(MPI_COMM_WORLD);
    }
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    persistent(comm);
    MPI_Comm_free(&comm);
    return test_end();
}
