/* Splitting by colour and key, by host and hardware, and making communicators from groups. */
#include "test.h"

/* Everyone sends its rank in the world round the ring; the members must be the expected ones, in order. */
static void check_members(MPI_Comm comm, const int *members, int count, const char *what)
{
    int rank = -1, size = -1;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    CHECK(size == count, "%d ranks instead of %d in %s", size, count, what);
    if (size != count)
        return;
    CHECK(members[rank] == test_rank, "rank %d is not the expected %d in %s", test_rank, members[rank], what);
    int next = (rank + 1) % size, before = (rank + size - 1) % size, got = -1;
    MPI_Sendrecv(&test_rank, 1, MPI_INT, next, 3, &got, 1, MPI_INT, before, 3, comm, MPI_STATUS_IGNORE);
    CHECK(got == members[before], "%d instead of %d before rank %d in %s", got, members[before], rank, what);
    int sum = 0, expected = 0;
    MPI_Allreduce(&test_rank, &sum, 1, MPI_INT, MPI_SUM, comm);
    for (int i = 0; i < count; i++)
        expected += members[i];
    CHECK_EQUAL(sum, expected);
}

/* Colours 0 to colors - 1; the keys turn the order round in every other colour, and are all the same in the third. */
static void by_color(MPI_Comm parent, int colors)
{
    MPI_Comm comm;
    int members[64], count = 0, color = test_rank % colors;
    int key = color % 3 == 1 ? -test_rank : color % 3 == 2 ? 7 : test_rank * 1000;
    MPI_Comm_split(parent, color, key, &comm);
    for (int i = 0; i < test_size; i++)
        if (i % colors == color)
            members[count++] = i;
    for (int i = 0; color % 3 == 1 && i < count / 2; i++) {
        int swap = members[i];
        members[i] = members[count - 1 - i];
        members[count - 1 - i] = swap;
    }
    check_members(comm, members, count, "a colour");
    MPI_Comm_free(&comm);
}

static void undefined(void)
{
    MPI_Comm comm = MPI_COMM_WORLD;
    int members[64], count = 0;
    MPI_Comm_split(MPI_COMM_WORLD, test_rank % 2 ? MPI_UNDEFINED : 2147483647, 0, &comm);
    for (int i = 0; i < test_size; i += 2)
        members[count++] = i;
    CHECK((comm == MPI_COMM_NULL) == (test_rank % 2 == 1), "MPI_UNDEFINED on rank %d", test_rank);
    if (comm == MPI_COMM_NULL)
        return;
    check_members(comm, members, count, "those with a colour");
    MPI_Comm_free(&comm);
}

/* Halves of halves down to single ranks. */
static void again_and_again(void)
{
    MPI_Comm comm, next;
    int size = test_size, rank = test_rank;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    while (size > 1) {
        MPI_Comm_split(comm, rank >= (size + 1) / 2, 0, &next);
        MPI_Comm_free(&comm);
        comm = next;
        MPI_Comm_size(comm, &size);
        MPI_Comm_rank(comm, &rank);
    }
    check_members(comm, &test_rank, 1, "the last half");
    MPI_Comm_free(&comm);
}

static void by_host(void)
{
    char name[MPI_MAX_PROCESSOR_NAME] = "", other[MPI_MAX_PROCESSOR_NAME];
    MPI_Comm shared, guided = MPI_COMM_NULL, none = MPI_COMM_WORLD;
    MPI_Info info;
    int length, result = -1, size = 0;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, -test_rank, MPI_INFO_NULL, &shared);
    MPI_Comm_size(shared, &size);
    MPI_Get_processor_name(name, &length);
    for (int root = 0; root < size; root++) {
        memcpy(other, name, sizeof name);
        MPI_Bcast(other, sizeof other, MPI_CHAR, root, shared);
        CHECK(strcmp(name, other) == 0, "%s and %s share memory", name, other);
    }
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpi_hw_resource_type", "mpi_shared_memory");
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_GUIDED, -test_rank, info, &guided);
    if (!test_peer()) {
        CHECK(guided != MPI_COMM_NULL, "no communicator for %s", "mpi_shared_memory");
        MPI_Comm_compare(shared, guided, &result);
        CHECK_EQUAL(result, MPI_CONGRUENT);
    }
    if (guided != MPI_COMM_NULL)
        MPI_Comm_free(&guided);
    MPI_Info_set(info, "mpi_hw_resource_type", "a teapot");
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_GUIDED, 0, info, &none);
    CHECK(none == MPI_COMM_NULL, "a communicator for %s", "a teapot");
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_GUIDED, 0, MPI_INFO_NULL, &none);
    CHECK(none == MPI_COMM_NULL, "a communicator for %s", "nothing");
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_UNDEFINED, 0, MPI_INFO_NULL, &none);
    CHECK(none == MPI_COMM_NULL, "a communicator for %s", "MPI_UNDEFINED");
    MPI_Info_free(&info);
    MPI_Comm_free(&shared);
}

/* Down the hierarchy: each level is a proper part of the one before, and it ends. */
static void unguided(void)
{
    MPI_Comm comm, next;
    MPI_Info info;
    int size = test_size, levels = 0;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (;;) {
        MPI_Info_create(&info);
        MPI_Comm_split_type(comm, MPI_COMM_TYPE_HW_UNGUIDED, 0, info, &next);
        MPI_Comm_free(&comm);
        if (next == MPI_COMM_NULL)
            break;
        int smaller = 0, flag = 0;
        char kind[MPI_MAX_INFO_VAL] = "";
        MPI_Comm_size(next, &smaller);
        MPI_Info_get(info, "mpi_hw_resource_type", sizeof kind - 1, kind, &flag);
        CHECK(smaller < size && ++levels < 10 && flag, "%d ranks of %d share the same %s", smaller, size, kind);
        MPI_Info_free(&info);
        size = smaller;
        comm = next;
    }
    MPI_Info_free(&info);
}

/* Every other rank, or all but the last one, asks; the others are in no part. Those who ask are split as if they were
 * alone: the answer is that of the communicator that they make up. */
static void some_undefined(int type, const char *key, const char *value, bool evens)
{
    bool asks = evens ? test_rank % 2 == 0 : test_rank < test_size - 1;
    MPI_Comm part = MPI_COMM_WORLD, asking, alone = MPI_COMM_NULL;
    MPI_Info info;
    int result = -1;
    MPI_Info_create(&info);
    if (key != NULL)
        MPI_Info_set(info, key, value);
    MPI_Comm_split_type(MPI_COMM_WORLD, asks ? type : MPI_UNDEFINED, -test_rank, info, &part);
    MPI_Comm_split(MPI_COMM_WORLD, asks ? 0 : MPI_UNDEFINED, 0, &asking);
    CHECK(asks || part == MPI_COMM_NULL, "MPI_UNDEFINED on rank %d has a communicator", test_rank);
    if (asks) {
        MPI_Comm_split_type(asking, type, -test_rank, info, &alone);
        CHECK((alone == MPI_COMM_NULL) == (part == MPI_COMM_NULL), "type %d: only one of them is there", type);
        MPI_Comm_free(&asking);
    }
    if (alone != MPI_COMM_NULL && part != MPI_COMM_NULL) {
        MPI_Comm_compare(alone, part, &result);
        CHECK_EQUAL(result, MPI_CONGRUENT);
        MPI_Barrier(part);
    }
    if (alone != MPI_COMM_NULL)
        MPI_Comm_free(&alone);
    if (part != MPI_COMM_NULL)
        MPI_Comm_free(&part);
    MPI_Info_free(&info);
    MPI_Barrier(MPI_COMM_WORLD);
}

static MPI_Group group_of(MPI_Comm comm, int first, int last, int stride)
{
    MPI_Group all, some;
    int range[1][3] = {{first, last, stride}};
    MPI_Comm_group(comm, &all);
    MPI_Group_range_incl(all, 1, range, &some);
    MPI_Group_free(&all);
    return some;
}

/* Evens in reverse order and odds at once, by one call with different groups. */
static void create(void)
{
    MPI_Comm comm;
    int members[64], count = 0, last = (test_size - 1) / 2 * 2;
    MPI_Group odds = test_size > 1 ? group_of(MPI_COMM_WORLD, 1, (test_size - 2) / 2 * 2 + 1, 2) : MPI_GROUP_EMPTY;
    MPI_Group evens = group_of(MPI_COMM_WORLD, last, 0, -2);
    MPI_Comm_create(MPI_COMM_WORLD, test_rank % 2 ? odds : evens, &comm);
    for (int i = test_rank % 2 ? 1 : last; i >= 0 && i < test_size; i += test_rank % 2 ? 2 : -2)
        members[count++] = i;
    check_members(comm, members, count, "every other rank");
    MPI_Comm_free(&comm);
    MPI_Comm_create(MPI_COMM_WORLD, MPI_GROUP_EMPTY, &comm);
    CHECK(comm == MPI_COMM_NULL, "a communicator of %s", "nobody");
    MPI_Comm_create(MPI_COMM_WORLD, evens, &comm);
    CHECK((comm == MPI_COMM_NULL) == (test_rank % 2 == 1), "of evens on rank %d", test_rank);
    if (comm != MPI_COMM_NULL)
        MPI_Comm_free(&comm);
    if (test_size > 1)
        MPI_Group_free(&odds);
    MPI_Group_free(&evens);
}

/* Groups that overlap, made at the same time by their members only: rank r and r + 1 for all r, evens first. */
static void create_group(void)
{
    MPI_Comm pairs[2] = {MPI_COMM_NULL, MPI_COMM_NULL}, all;
    for (int turn = 0; turn < 2; turn++) {
        int low = test_rank % 2 == turn ? test_rank : test_rank - 1;
        if (low < 0 || low + 1 >= test_size)
            continue;
        MPI_Group pair = group_of(MPI_COMM_WORLD, low + 1, low, -1);
        MPI_Comm_create_group(MPI_COMM_WORLD, pair, 5, &pairs[turn]);
        MPI_Group_free(&pair);
    }
    MPI_Group world = group_of(MPI_COMM_WORLD, test_size - 1, 0, -1);
    MPI_Comm_create_group(MPI_COMM_WORLD, world, test_peer() ? 1000 : 2147483647, &all);
    MPI_Group_free(&world);
    for (int turn = 0; turn < 2; turn++) {
        int low = test_rank % 2 == turn ? test_rank : test_rank - 1, members[2] = {low + 1, low};
        if (pairs[turn] == MPI_COMM_NULL)
            continue;
        check_members(pairs[turn], members, 2, "a pair");
        MPI_Comm_free(&pairs[turn]);
    }
    MPI_Barrier(all);
    MPI_Comm_free(&all);
    MPI_Comm_create_group(MPI_COMM_SELF, MPI_GROUP_EMPTY, 0, &all);
    CHECK(all == MPI_COMM_NULL, "a communicator of %s", "nobody");
}

/* The program's own messages in the parent, with any tag, are not disturbed and do not disturb. */
static void beside_messages(void)
{
    MPI_Comm comm;
    MPI_Request request;
    int got = -1;
    MPI_Irecv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &request);
    for (int i = 0; i < 5; i++) {
        MPI_Group world = group_of(MPI_COMM_WORLD, 0, test_size - 1, 1);
        MPI_Comm_create_group(MPI_COMM_WORLD, world, 0, &comm);
        MPI_Comm_free(&comm);
        MPI_Comm_create(MPI_COMM_WORLD, world, &comm);
        MPI_Comm_free(&comm);
        MPI_Comm_split(MPI_COMM_WORLD, 0, 0, &comm);
        MPI_Comm_free(&comm);
        MPI_Group_free(&world);
    }
    MPI_Send(&test_rank, 1, MPI_INT, test_next(), 9, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK_EQUAL(got, test_previous());
}

static void wrong(void)
{
    MPI_Comm comm, self;
    MPI_Group other = group_of(MPI_COMM_WORLD, test_next(), test_next(), 1);
    MPI_Comm_dup(MPI_COMM_SELF, &self);
    MPI_Comm_set_errhandler(self, MPI_ERRORS_RETURN);
    CHECK_CLASS(MPI_Comm_split(self, -5, 0, &comm), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Comm_split_type(self, 12345, 0, MPI_INFO_NULL, &comm), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Comm_create(self, MPI_GROUP_NULL, &comm), MPI_ERR_GROUP);
    CHECK_CLASS(MPI_Comm_create_group(self, other, -1, &comm), MPI_ERR_TAG);
    if (test_size > 1) {
        CHECK_CLASS(MPI_Comm_create(self, other, &comm), MPI_ERR_GROUP);
        CHECK_CLASS(MPI_Comm_create_group(self, other, 0, &comm), MPI_ERR_GROUP);
    }
    MPI_Group_free(&other);
    MPI_Comm_free(&self);
}

int main(int argc, char **argv)
{
    test_begin(&argc, &argv);
    for (int colors = 1; colors <= test_size; colors++)
        by_color(MPI_COMM_WORLD, colors);
    undefined();
    again_and_again();
    by_host();
    unguided();
    for (int evens = 0; evens < 2; evens++) {
        some_undefined(MPI_COMM_TYPE_HW_UNGUIDED, NULL, NULL, evens);
        some_undefined(MPI_COMM_TYPE_SHARED, NULL, NULL, evens);
        some_undefined(MPI_COMM_TYPE_HW_GUIDED, "mpi_hw_resource_type", "mpi_shared_memory", evens);
        some_undefined(MPI_COMM_TYPE_RESOURCE_GUIDED, "mpi_pset_name", "mpi://WORLD", evens);
    }
    create();
    create_group();
    beside_messages();
    wrong();
    return test_end();
}
