/* Members of named groups come and go at random, while others meet: whoever gets a communicator of a generation gets
 * the same one as all of its members, and everything that waits ends. At the end all meet once more. In one world or in
 * several. */
#include "worlds.h"

#define NAMES  3
#define PARTLY 0.05 /* s: often too short for all members to come, */
#define LONG   120.0

static const char *const names[NAMES] = {"wind", "rain", "hail"};

static int class_of(int code)
{
    int class = -1;
    MPI_Error_class(code, &class);
    return class;
}

/* All who have met are in it, and nobody else. */
static void use(MPI_Comm comm)
{
    int rank = -1, size = -1, last = -1;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    CHECK_EQUAL(MPI_Scan(MPI_IN_PLACE, &(int){0}, 1, MPI_INT, MPI_SUM, comm), MPI_SUCCESS);
    int one = 1, count = 0;
    CHECK_EQUAL(MPI_Allreduce(&one, &count, 1, MPI_INT, MPI_SUM, comm), MPI_SUCCESS);
    CHECK_EQUAL(count, size);
    CHECK_EQUAL(MPI_Allreduce(&rank, &last, 1, MPI_INT, MPI_MAX, comm), MPI_SUCCESS);
    CHECK_EQUAL(last, size - 1);
    MPI_Comm_free(&comm);
}

static void meet(const char *name, int count)
{
    MPI_Comm comm = MPI_COMM_NULL;
    int code = Tombolo_Group_comm(name, count, PARTLY, &comm);
    if (code == MPI_SUCCESS)
        use(comm);
    else
        CHECK_EQUAL(class_of(code), TOMBOLO_ERR_TIMEOUT);
}

static void step(uint64_t *seed, bool member[NAMES])
{
    int which = (int)(test_random(seed) % NAMES), generation = -1, current = -1, code;
    const char *name = names[which];
    switch (test_random(seed) % 8) {
    case 0:
    case 1:
        code = Tombolo_Group_join(name, 0, 0, NULL);
        CHECK_EQUAL(class_of(code), member[which] ? TOMBOLO_ERR_MEMBER : MPI_SUCCESS);
        member[which] = true;
        break;
    case 2:
        code = Tombolo_Group_leave(name);
        if (member[which])
            CHECK_EQUAL(code, MPI_SUCCESS);
        else
            CHECK(class_of(code) == TOMBOLO_ERR_MEMBER || class_of(code) == TOMBOLO_ERR_NO_GROUP, "%d", class_of(code));
        member[which] = false;
        break;
    case 3:
    case 4:
    case 5:
        if (member[which])
            meet(name, 1 + (int)(test_random(seed) % 2));
        break;
    case 6:
        if (member[which]) {
            code = Tombolo_Group_barrier(name, TOMBOLO_GROUP_ALL, PARTLY);
            CHECK(code == MPI_SUCCESS || class_of(code) == TOMBOLO_ERR_TIMEOUT, "%d", class_of(code));
        }
        break;
    default:
        if (Tombolo_Group_members(name, &generation, NULL) == MPI_SUCCESS) {
            code = Tombolo_Group_watch(name, generation, PARTLY / 10, &current);
            CHECK(code != MPI_SUCCESS || current != generation, "generation %d twice", current);
        }
    }
}

int main(int argc, char **argv)
{
    bool member[NAMES] = {false};
    test_begin(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    worlds_begin(argc, argv);
    uint64_t seed = (argc > 1 ? strtoull(argv[1], NULL, 10) : 1) * 1000 + (uint64_t)test_rank;
    for (int i = 0; i < 60; i++)
        step(&seed, member);
    MPI_Comm comm = MPI_COMM_NULL;
    CHECK_EQUAL(Tombolo_Group_join("calm", test_size, LONG, &comm), MPI_SUCCESS);
    use(comm);
    return test_end();
}
