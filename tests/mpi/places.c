/* What programs see of where ranks are: attributes with depths, levels and colours, and splitting by site, cluster and
 * host, which say the same. With an argument, rank 0 also prints what it sees: `print`. */
#include "test.h"

#include <tombolo.h>

#define RANKS 64
#define TEXT  128
#define KIND  48 /* of the name of a type of resource */

struct view {
    int *depths, **colors, **levels;
};

static struct view view_of(MPI_Comm comm)
{
    struct view v = {NULL, NULL, NULL}, again = v;
    int flags[3] = {-1, -1, -1};
    for (int i = 0; i < 2; i++) {
        MPI_Comm_get_attr(comm, TOMBOLO_TOPOLOGY_DEPTHS, &v.depths, &flags[0]);
        MPI_Comm_get_attr(comm, TOMBOLO_TOPOLOGY_COLORS, &v.colors, &flags[1]);
        MPI_Comm_get_attr(comm, TOMBOLO_TOPOLOGY_LEVELS, &v.levels, &flags[2]);
        CHECK(flags[0] == 1 && flags[1] == 1 && flags[2] == 1, "flags %d, %d, %d", flags[0], flags[1], flags[2]);
        CHECK(i == 0 || memcmp(&v, &again, sizeof v) == 0, "other arrays at time %d", i);
        again = v;
    }
    return v;
}

/* The level of a rank that is of this kind: the last one, or one by its number from 1; -1: there is none. */
static int level_of(const struct view *v, int rank, int kind, int number)
{
    int found = -1, count = 0;
    for (int i = 0; i < v->depths[rank]; i++)
        if (v->levels[rank][i] == kind && (number == 0 || ++count == number))
            found = i;
    return found;
}

/* ---- attributes -------------------------------------------------------------------------------------------------- */

/* What holds for every communicator; `size` ranks of its (local) group. */
static void check_view(const struct view *v, int size, const char *what)
{
    int met[32] = {0};
    for (int rank = 0; rank < size; rank++) {
        int depth = v->depths[rank], hosts = 0;
        CHECK(depth >= 2 && depth <= 24, "depth %d in %s", depth, what);
        CHECK_EQUAL(v->levels[rank][0], TOMBOLO_LEVEL_WORLD);
        for (int i = 0; i < depth; i++) {
            CHECK(i == 0 || v->levels[rank][i] > v->levels[rank][i - 1] ||
                      (v->levels[rank][i] == TOMBOLO_LEVEL_CLUSTER && v->levels[rank][i - 1] == TOMBOLO_LEVEL_CLUSTER),
                  "level %d is %d in %s", i, v->levels[rank][i], what);
            hosts += v->levels[rank][i] == TOMBOLO_LEVEL_HOST;
            int color = v->colors[rank][i];
            CHECK(color >= 0 && color <= met[i], "colour %d behind %d at level %d of %s", color, met[i], i, what);
            met[i] += color == met[i];
        }
        CHECK_EQUAL(hosts, 1);
    }
    CHECK_EQUAL(met[0], 1);
}

/* All ranks see the same. */
static void check_agreed(MPI_Comm comm, const struct view *v)
{
    int size, rank;
    MPI_Comm_size(comm, &size);
    MPI_Comm_rank(comm, &rank);
    for (int r = 0; r < size; r++) {
        int mine[2 * 24 + 1] = {0}, first[2 * 24 + 1];
        mine[0] = v->depths[r];
        for (int i = 0; i < v->depths[r]; i++) {
            mine[1 + 2 * i] = v->levels[r][i];
            mine[2 + 2 * i] = v->colors[r][i];
        }
        memcpy(first, mine, sizeof mine);
        MPI_Bcast(first, 2 * 24 + 1, MPI_INT, 0, comm);
        CHECK(memcmp(first, mine, sizeof mine) == 0, "rank %d sees rank %d elsewhere", rank, r);
    }
}

/* A communicator of some ranks of the world says of them what the world says. */
static void check_part(MPI_Comm comm, const struct view *world, const char *what)
{
    int size, ranks[RANKS];
    struct view v = view_of(comm);
    MPI_Comm_size(comm, &size);
    MPI_Allgather(&test_rank, 1, MPI_INT, ranks, 1, MPI_INT, comm);
    check_view(&v, size, what);
    check_agreed(comm, &v);
    for (int a = 0; a < size; a++) {
        CHECK_EQUAL(v.depths[a], world->depths[ranks[a]]);
        for (int b = 0; b < size; b++)
            for (int i = 0; i < v.depths[a] && i < v.depths[b]; i++)
                CHECK((v.colors[a][i] == v.colors[b][i]) == (world->colors[ranks[a]][i] == world->colors[ranks[b]][i]),
                      "ranks %d and %d at level %d of %s", ranks[a], ranks[b], i, what);
    }
}

static void parts(const struct view *world)
{
    MPI_Comm comm, again;
    for (int i = 0; i < 24; i++) {
        MPI_Comm_split(MPI_COMM_WORLD, i < world->depths[test_rank] ? world->colors[test_rank][i] : MPI_UNDEFINED,
                       -test_rank, &comm);
        CHECK((comm == MPI_COMM_NULL) == (i >= world->depths[test_rank]), "at level %d", i);
        if (comm == MPI_COMM_NULL)
            continue;
        struct view v = view_of(comm);
        for (int k = 0; k <= i; k++)
            CHECK_EQUAL(v.colors[0][k], 0);
        check_part(comm, world, "a level");
        MPI_Comm_free(&comm);
    }
    MPI_Comm_split(MPI_COMM_WORLD, test_rank % 3, -test_rank, &comm);
    check_part(comm, world, "a third");
    MPI_Comm_dup(comm, &again);
    MPI_Comm_free(&comm);
    check_part(again, world, "a duplicate of a third");
    MPI_Comm_free(&again);
    check_part(MPI_COMM_SELF, world, "MPI_COMM_SELF");
}

/* Each side sees its own group. */
/* By what MPI_COMM_TYPE_HW_UNGUIDED divides, "" if by nothing. */
static MPI_Comm unguided(MPI_Comm comm, char *kind)
{
    MPI_Comm part = MPI_COMM_WORLD;
    MPI_Info info;
    int flag;
    *kind = 0;
    MPI_Info_create(&info);
    MPI_Comm_split_type(comm, MPI_COMM_TYPE_HW_UNGUIDED, -test_rank, info, &part);
    MPI_Info_get(info, "mpi_hw_resource_type", KIND - 1, kind, &flag);
    MPI_Info_free(&info);
    return part;
}

static void between(const struct view *world)
{
    MPI_Comm half, inter, part, merged;
    char kind[KIND], of_world[KIND];
    int size, remote;
    if (test_size < 2)
        return;
    MPI_Comm_split(MPI_COMM_WORLD, test_rank % 2, 0, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - test_rank % 2, 5, &inter);
    MPI_Comm_size(inter, &size);
    MPI_Comm_remote_size(inter, &remote);
    struct view v = view_of(inter), w = view_of(half);
    check_view(&v, size, "one of two groups");
    for (int rank = 0; rank < size; rank++) {
        CHECK_EQUAL(v.depths[rank], w.depths[rank]);
        CHECK(memcmp(v.colors[rank], w.colors[rank], (size_t)w.depths[rank] * sizeof(int)) == 0, "rank %d", rank);
    }
    /* Both groups are divided alike, by what is known of both, who are all ranks. */
    part = unguided(MPI_COMM_WORLD, of_world);
    if (part != MPI_COMM_NULL)
        MPI_Comm_free(&part);
    part = unguided(inter, kind);
    CHECK(strcmp(kind, of_world) == 0, "two groups are divided by \"%s\", the same ranks as one by \"%s\"", kind,
          of_world);
    if (part != MPI_COMM_NULL) {
        int mine, theirs;
        MPI_Comm_size(part, &mine);
        MPI_Comm_remote_size(part, &theirs);
        CHECK(mine + theirs < size + remote, "%d and %d of %d and %d", mine, theirs, size, remote);
        MPI_Comm_free(&part);
    }
    MPI_Intercomm_merge(inter, test_rank % 2, &merged);
    check_part(merged, world, "both merged");
    MPI_Comm_free(&merged);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
}

/* ---- splitting --------------------------------------------------------------------------------------------------- */

static MPI_Comm guided(MPI_Comm comm, int type, const char *name)
{
    MPI_Comm part = MPI_COMM_WORLD;
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpi_hw_resource_type", name);
    MPI_Comm_split_type(comm, type, -test_rank, info, &part);
    MPI_Info_free(&info);
    return part;
}

/* The ranks of the world that share a level with this one come into the part, and no others. */
static void check_guided(const struct view *world, const char *name, int kind, int number)
{
    int mine = level_of(world, test_rank, kind, number), count = 0, size = -1, rank = -1;
    for (int r = 0; r < test_size && mine >= 0; r++) {
        int theirs = level_of(world, r, kind, number);
        count += theirs == mine && world->colors[r][mine] == world->colors[test_rank][mine];
    }
    for (int i = 0; i < 2; i++) {
        MPI_Comm part = guided(MPI_COMM_WORLD, i == 0 ? MPI_COMM_TYPE_HW_GUIDED : MPI_COMM_TYPE_RESOURCE_GUIDED, name);
        CHECK((part == MPI_COMM_NULL) == (mine < 0), "%s of rank %d, whose level is %d", name, test_rank, mine);
        if (part == MPI_COMM_NULL)
            continue;
        MPI_Comm_size(part, &size);
        MPI_Comm_rank(part, &rank);
        CHECK(size == count, "%d ranks instead of %d share %s", size, count, name);
        struct view v = view_of(part);
        CHECK(v.colors[rank][mine] == 0 && v.depths[rank] == world->depths[test_rank], "%s is divided", name);
        check_part(part, world, name);
        MPI_Comm_free(&part);
    }
}

static void check_names(void)
{
    static const char *const unknown[] = {"tombolo://",
                                          "tombolo://planet",
                                          "tombolo://site/1",
                                          "tombolo://cluster/",
                                          "tombolo://cluster/0",
                                          "tombolo://cluster/x",
                                          "tombolo://cluster/17",
                                          "tombolo://cluster/1 ",
                                          "tombolo://clusters",
                                          "site",
                                          "tombolo://cluster/99999999999999999999"};
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        MPI_Comm part = guided(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_GUIDED, unknown[i]);
        CHECK(part == MPI_COMM_NULL, "a communicator for %s", unknown[i]);
    }
    MPI_Comm part = guided(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_GUIDED, "Tombolo://CLUSTER");
    MPI_Comm same = guided(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_GUIDED, "tombolo://cluster");
    CHECK((part == MPI_COMM_NULL) == (same == MPI_COMM_NULL), "%s", "large letters are others");
    if (part != MPI_COMM_NULL)
        MPI_Comm_free(&part);
    if (same != MPI_COMM_NULL)
        MPI_Comm_free(&same);
}

/* How wide a type is, from the site down. */
static int width_of(const char *name)
{
    static const char *const below[] = {"mpi_shared_memory", "hwloc://Package", "hwloc://NUMANode", "hwloc://L3Cache",
                                        "hwloc://L2Cache",   "hwloc://L1Cache", "hwloc://Core",     "hwloc://PU"};
    if (strcmp(name, "tombolo://site") == 0)
        return 0;
    if (strncmp(name, "tombolo://cluster", 17) == 0)
        return name[17] == '/' ? atoi(name + 18) : 20;
    for (int i = 0; i < 8; i++)
        if (strcmp(name, below[i]) == 0)
            return 21 + i;
    return -1;
}

/* Down all levels: each part is smaller, of a narrower kind, and what the kind alone gives. What was gone through is in
 * `text`. */
static void walk(char *text)
{
    MPI_Comm comm, next, same;
    int size = test_size, before = -1;
    *text = 0;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (;;) {
        char kind[KIND];
        int smaller = 0, result = -1;
        next = unguided(comm, kind);
        if (*kind != 0) {
            same = guided(comm, MPI_COMM_TYPE_HW_GUIDED, kind);
            CHECK((same == MPI_COMM_NULL) == (next == MPI_COMM_NULL), "%s alone", kind);
            if (same != MPI_COMM_NULL) {
                MPI_Comm_compare(same, next, &result);
                CHECK_EQUAL(result, MPI_CONGRUENT);
                MPI_Comm_free(&same);
            }
        }
        MPI_Comm_free(&comm);
        if (next == MPI_COMM_NULL)
            return;
        MPI_Comm_size(next, &smaller);
        CHECK(*kind != 0 && smaller < size, "%d ranks of %d share %s", smaller, size, kind);
        CHECK(width_of(kind) > before, "%s behind one of width %d", kind, before);
        before = width_of(kind);
        size = smaller;
        comm = next;
        snprintf(text + strlen(text), TEXT - strlen(text), " %s", kind);
    }
}

/* ---- the rest ---------------------------------------------------------------------------------------------------- */

static void told_by_info(const struct view *world)
{
    MPI_Info info;
    char value[16], name[64];
    int flag;
    MPI_Get_hw_resource_info(&info);
    for (int number = -1; number <= 3; number++) {
        int kind = number == 0 ? TOMBOLO_LEVEL_SITE : TOMBOLO_LEVEL_CLUSTER;
        bool there = level_of(world, test_rank, kind, number > 0 ? number : 0) >= 0;
        bool nested = level_of(world, test_rank, TOMBOLO_LEVEL_CLUSTER, 2) >= 0;
        snprintf(name, sizeof name, number == 0 ? "tombolo://site" : "tombolo://cluster");
        if (number > 0)
            snprintf(name, sizeof name, "tombolo://cluster/%d", number);
        flag = 0;
        MPI_Info_get(info, name, sizeof value - 1, value, &flag);
        if (number > 0)
            CHECK(flag == (there && nested), "%s is told: %d", name, flag);
        else
            CHECK(flag && strcmp(value, there ? "true" : "false") == 0, "%s is %s", name, flag ? value : "not told");
    }
    MPI_Info_free(&info);
}

static void wrong(void)
{
    MPI_Comm self;
    MPI_Datatype type;
    void *value;
    int flag, key = TOMBOLO_TOPOLOGY_COLORS;
    MPI_Comm_dup(MPI_COMM_SELF, &self);
    MPI_Comm_set_errhandler(self, MPI_ERRORS_RETURN);
    CHECK_CLASS(MPI_Comm_set_attr(self, TOMBOLO_TOPOLOGY_DEPTHS, &flag), MPI_ERR_KEYVAL);
    CHECK_CLASS(MPI_Comm_delete_attr(self, TOMBOLO_TOPOLOGY_LEVELS), MPI_ERR_KEYVAL);
    CHECK_CLASS(MPI_Comm_get_attr(self, TOMBOLO_TOPOLOGY_DEPTHS, NULL, &flag), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Comm_get_attr(self, TOMBOLO_TOPOLOGY_DEPTHS, &value, NULL), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Comm_get_attr(self, TOMBOLO_TOPOLOGY_LEVELS + 1, &value, &flag), MPI_ERR_KEYVAL);
    CHECK_CLASS(MPI_Comm_get_attr(self, TOMBOLO_TOPOLOGY_DEPTHS - 1, &value, &flag), MPI_ERR_KEYVAL);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    CHECK_CLASS(MPI_Comm_free_keyval(&key), MPI_ERR_KEYVAL);
    MPI_Type_contiguous(2, MPI_INT, &type);
    CHECK_CLASS(MPI_Type_get_attr(type, TOMBOLO_TOPOLOGY_DEPTHS, &value, &flag), MPI_ERR_KEYVAL);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
    MPI_Type_free(&type);
    MPI_Comm_free(&self);
}

/* A line for each rank: what its levels are, by their first letters, and its colours. */
static void print_view(const struct view *world, const char *way)
{
    for (int rank = 0; rank < test_size; rank++) {
        printf("%d", rank);
        for (int i = 0; i < world->depths[rank]; i++)
            printf(" %c%d", "wschpnlk"[world->levels[rank][i]], world -> colors[rank][i]);
        printf("\n");
    }
    printf("rank 0:%s\n", way);
}

int main(int argc, char **argv)
{
    char way[TEXT];
    test_begin(&argc, &argv);
    if (test_peer())
        return test_end();
    struct view world = view_of(MPI_COMM_WORLD);
    check_view(&world, test_size, "the world");
    check_part(MPI_COMM_WORLD, &world, "the world");
    parts(&world);
    between(&world);
    check_guided(&world, "tombolo://site", TOMBOLO_LEVEL_SITE, 0);
    check_guided(&world, "tombolo://cluster", TOMBOLO_LEVEL_CLUSTER, 0);
    check_guided(&world, "tombolo://cluster/1", TOMBOLO_LEVEL_CLUSTER, 1);
    check_guided(&world, "tombolo://cluster/2", TOMBOLO_LEVEL_CLUSTER, 2);
    check_guided(&world, "tombolo://cluster/16", TOMBOLO_LEVEL_CLUSTER, 16);
    check_names();
    walk(way);
    told_by_info(&world);
    wrong();
    if (test_rank == 0 && argc > 1 && strcmp(argv[1], "print") == 0)
        print_view(&world, way);
    return test_end();
}
