/* What communicators know of where their ranks are: the info key tombolo_shape, of all ways of making one. */
#include "test.h"

#define TEXT 256

static int hosts[64]; /* of each rank of the world: the lowest rank on its host */
static int apart;     /* ranks have no memory in common: each is a host of its own */
static int bound;     /* each rank to a core */

struct shape {
    int ranks, others, hosts, clusters, sites;
    char text[TEXT];
};

static struct shape shape_of(MPI_Comm comm)
{
    struct shape s = {.ranks = -1};
    MPI_Info info;
    int flag = 0, at = 0;
    MPI_Comm_get_info(comm, &info);
    MPI_Info_get(info, "tombolo_shape", sizeof s.text - 1, s.text, &flag);
    MPI_Info_free(&info);
    CHECK(flag, "no tombolo_shape");
    const char *rest = s.text;
    if (sscanf(rest, "%d and %d ranks, %n", &s.ranks, &s.others, &at) < 2 || at == 0) {
        s.others = 0;
        CHECK(sscanf(rest, "%d rank%*[s,] %n", &s.ranks, &at) >= 1 && at > 0, "%s", rest);
    }
    CHECK(sscanf(rest + at, "%d host%*[s,] %d cluster%*[s,] %d site", &s.hosts, &s.clusters, &s.sites) >= 2, "%s",
          rest);
    return s;
}

/* How many hosts these ranks of the world are on. */
static int hosts_of(const int *ranks, int count)
{
    int all = 0;
    for (int i = 0; i < count; i++) {
        int before = 0;
        for (int k = 0; k < i; k++)
            before += hosts[ranks[k]] == hosts[ranks[i]];
        all += before == 0;
    }
    return apart ? count : all;
}

/* Where ranks are bound, the shape goes down to cores: as many as the kernel says they are on. */
static void check_cores(MPI_Comm comm, const struct shape *s)
{
    const char *at = s->text, *found = NULL;
    int cores = 0, first = 0, told = 0;
    MPI_Comm core;
    MPI_Info info;
    while ((at = strstr(at, " core")) != NULL)
        found = at++;
    if (!bound) {
        CHECK(found == NULL, "\"%s\", though nobody is bound", s->text);
        return;
    }
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpi_hw_resource_type", "hwloc://Core");
    MPI_Comm_split_type(comm, MPI_COMM_TYPE_HW_GUIDED, 0, info, &core);
    MPI_Info_free(&info);
    if (core != MPI_COMM_NULL) {
        MPI_Comm_rank(core, &first);
        first = first == 0;
        MPI_Comm_free(&core);
    }
    MPI_Allreduce(&first, &cores, 1, MPI_INT, MPI_SUM, comm);
    while (found != NULL && found > s->text && found[-1] >= '0' && found[-1] <= '9')
        found--;
    CHECK(found != NULL && sscanf(found, "%d core", &told) == 1 && told == cores, "\"%s\" on %d cores", s->text, cores);
}

static void check_shape(MPI_Comm comm, const int *ranks, int count, const char *what)
{
    struct shape s = shape_of(comm);
    int on = hosts_of(ranks, count);
    CHECK(s.ranks == count && s.others == 0 && s.hosts == on && s.clusters >= 1 && s.clusters <= on,
          "\"%s\" of %s, which has %d ranks on %d hosts", s.text, what, count, on);
    check_cores(comm, &s);
    int sum = 0;
    MPI_Allreduce(&test_rank, &sum, 1, MPI_INT, MPI_SUM, comm);
    for (int i = 0; i < count; i++)
        sum -= ranks[i];
    CHECK_EQUAL(sum, 0);
}

static void check_same(MPI_Comm comm, const char *expected, const char *what)
{
    struct shape s = shape_of(comm);
    CHECK(strcmp(s.text, expected) == 0, "\"%s\" of %s instead of \"%s\"", s.text, what, expected);
}

static void find_hosts(void)
{
    MPI_Comm host;
    int lowest = 0, count = 0;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
    MPI_Allreduce(&test_rank, &lowest, 1, MPI_INT, MPI_MIN, host);
    MPI_Allgather(&lowest, 1, MPI_INT, hosts, 1, MPI_INT, MPI_COMM_WORLD);
    MPI_Comm_size(host, &count);
    apart = count > 1 && shape_of(host).hosts == count;
    MPI_Allreduce(MPI_IN_PLACE, &apart, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    MPI_Comm_free(&host);
}

/* Who shares the group shares the shape. */
static void same_groups(const char *world)
{
    MPI_Comm comms[5];
    MPI_Request request;
    int one = test_size, no = 0, next = (test_rank + 1) % test_size;
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[0]);
    MPI_Comm_idup(MPI_COMM_WORLD, &comms[1], &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Cart_create(comms[0], 1, &one, &no, 0, &comms[2]);
    MPI_Dist_graph_create_adjacent(comms[1], 0, NULL, MPI_UNWEIGHTED, 1, &next, MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                   &comms[3]);
    MPI_Comm_split(MPI_COMM_WORLD, 0, 0, &comms[4]);
    static const char *const names[] = {"a duplicate", "a nonblocking one", "a line", "a graph", "a split of all"};
    for (int i = 0; i < 5; i++) {
        check_same(comms[i], world, names[i]);
        MPI_Barrier(comms[i]);
        MPI_Comm_free(&comms[i]);
    }
}

static void parts(void)
{
    MPI_Comm comm, created;
    MPI_Group group, half;
    int ranks[64], count = 0, all[64];
    for (int i = 0; i < test_size; i++)
        if (i % 3 == test_rank % 3)
            ranks[count++] = i;
    MPI_Comm_split(MPI_COMM_WORLD, test_rank % 3, -test_rank, &comm);
    check_shape(comm, ranks, count, "a third in reverse");
    MPI_Comm_free(&comm);
    for (int i = 0; i < test_size; i++)
        all[i] = i;
    MPI_Comm_group(MPI_COMM_WORLD, &group);
    MPI_Group_incl(group, (test_size + 1) / 2, all, &half);
    MPI_Comm_create(MPI_COMM_WORLD, half, &created);
    if (created != MPI_COMM_NULL) {
        check_shape(created, all, (test_size + 1) / 2, "the first half");
        MPI_Comm_create_group(created, half, 3, &comm);
        check_shape(comm, all, (test_size + 1) / 2, "a group");
        MPI_Comm_free(&comm);
        MPI_Comm_free(&created);
    }
    MPI_Group_free(&group);
    MPI_Group_free(&half);
    check_shape(MPI_COMM_SELF, &test_rank, 1, "MPI_COMM_SELF");
}

/* Both sides say the same of both groups. */
static void two_groups(void)
{
    MPI_Comm half, inter, twice, merged;
    int evens = (test_size + 1) / 2, all[64], ranks[64];
    char text[TEXT], theirs[TEXT];
    if (test_size < 2)
        return;
    MPI_Comm_split(MPI_COMM_WORLD, test_rank % 2, 0, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - test_rank % 2, 5, &inter);
    struct shape s = shape_of(inter);
    memcpy(text, s.text, TEXT);
    for (int i = 0; i < test_size; i++) {
        all[i] = i;
        ranks[i] = i < evens ? 2 * i : 2 * (i - evens) + 1;
    }
    CHECK(s.ranks + s.others == test_size && (s.ranks == evens || s.others == evens), "\"%s\"", text);
    CHECK(s.hosts == hosts_of(ranks, test_size), "\"%s\" of both groups", text);
    memcpy(theirs, text, TEXT);
    MPI_Bcast(theirs, TEXT, MPI_CHAR, 0, MPI_COMM_WORLD);
    CHECK(strcmp(text, theirs) == 0, "\"%s\", and \"%s\" on the other side", text, theirs);
    MPI_Comm_dup(inter, &twice);
    check_same(twice, text, "a duplicate of both");
    MPI_Barrier(twice);
    MPI_Intercomm_merge(twice, test_rank % 2, &merged);
    check_shape(merged, all, test_size, "both merged");
    MPI_Comm_free(&merged);
    MPI_Comm_free(&twice);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
}

int main(int argc, char **argv)
{
    int all[64];
    test_begin(&argc, &argv);
    if (test_peer())
        return test_end();
    for (int i = 0; i < test_size; i++)
        all[i] = i;
    bound = argc > 1 && strcmp(argv[1], "bound") == 0;
    find_hosts();
    struct shape world = shape_of(MPI_COMM_WORLD);
    check_shape(MPI_COMM_WORLD, all, test_size, "the world");
    same_groups(world.text);
    parts();
    two_groups();
    return test_end();
}
