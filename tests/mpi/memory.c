/* Out of memory: in each of these calls every allocation on the way fails once. The call returns MPI_ERR_NO_MEM (or
 * what it says of an error elsewhere), the same call works afterwards, and so does everything else.
 *
 * With several ranks only the last one has no memory, and then only the first; the others get the object or an error,
 * but do not wait for ever. A communicator all of its ranks get, or none.
 */
#include "test.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define OWN_MEMORY 0 /* these have their own malloc */
#else
#define OWN_MEMORY 1
#endif
#define MOST 400 /* allocations of one call */

static _Thread_local long countdown; /* the allocation of this thread that fails, counted from 1; 0: none */
static _Thread_local bool ran_out;   /* it has */

#if OWN_MEMORY
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);

static bool fails(void)
{
    if (countdown == 0 || --countdown > 0)
        return false;
    ran_out = true;
    return true;
}

void *malloc(size_t bytes)
{
    return fails() ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    return fails() ? NULL : __libc_calloc(count, bytes);
}

void *realloc(void *memory, size_t bytes)
{
    return fails() ? NULL : __libc_realloc(memory, bytes);
}
#endif

/* ---- the calls --------------------------------------------------------------------------------------------------- */

static int data[8], dims[1], zero;
static MPI_Group group, everyone, backwards, same_half;
static MPI_Comm half = MPI_COMM_NULL, grid = MPI_COMM_NULL, slice = MPI_COMM_NULL, inter = MPI_COMM_NULL;

/* What a call has made, of the ranks of `mates`: all have it, or none. It works, and is freed. */
static int used(int code, MPI_Comm *made, MPI_Comm mates)
{
    countdown = 0;
    int good = code == MPI_SUCCESS, all = -1, have = -1, size = 0;
    if (mates != MPI_COMM_NULL) {
        CHECK_CLASS(MPI_Allreduce(&good, &have, 1, MPI_INT, MPI_SUM, mates), MPI_SUCCESS);
        MPI_Comm_size(mates, &size);
        CHECK(have == 0 || have == size, "%d of %d ranks have it", have, size);
        if (have != size && code == MPI_SUCCESS)
            return MPI_SUCCESS; /* nobody can use it */
    }
    if (code != MPI_SUCCESS || *made == MPI_COMM_NULL)
        return code;
    good = 1;
    MPI_Comm_set_errhandler(*made, MPI_ERRORS_RETURN);
    CHECK_CLASS(MPI_Allreduce(&good, &all, 1, MPI_INT, MPI_SUM, *made), MPI_SUCCESS);
    CHECK(all > 0, "a sum of %d", all);
    return MPI_Comm_free(made);
}

static int call_dup(void)
{
    MPI_Comm made = MPI_COMM_NULL;
    int code = MPI_Comm_dup(MPI_COMM_WORLD, &made);
    return used(code, &made, MPI_COMM_WORLD);
}

static int call_idup(void)
{
    MPI_Comm made = MPI_COMM_NULL;
    MPI_Request request = MPI_REQUEST_NULL;
    int size, code = MPI_Comm_idup(MPI_COMM_WORLD, &made, &request);
    if (code == MPI_SUCCESS)
        code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    countdown = 0;
    if (code != MPI_SUCCESS && made != MPI_COMM_NULL)
        CHECK_CLASS(MPI_Comm_size(made, &size), MPI_ERR_COMM); /* it is no communicator */
    return used(code, &made, MPI_COMM_WORLD);
}

static int call_split(void)
{
    MPI_Comm made = MPI_COMM_NULL;
    int code = MPI_Comm_split(MPI_COMM_WORLD, 0, -test_rank, &made);
    return used(code, &made, MPI_COMM_WORLD);
}

static int call_split_halves(void)
{
    MPI_Comm made = MPI_COMM_NULL;
    int code = MPI_Comm_split(MPI_COMM_WORLD, test_rank % 2, 0, &made);
    return used(code, &made, half);
}

static int call_split_type(void)
{
    MPI_Comm made = MPI_COMM_NULL;
    int code = MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &made);
    return used(code, &made, MPI_COMM_NULL);
}

static int call_split_unguided(void)
{
    MPI_Comm made = MPI_COMM_NULL;
    int code = MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_UNGUIDED, 0, MPI_INFO_NULL, &made);
    return used(code, &made, MPI_COMM_NULL);
}

static int call_create(void)
{
    MPI_Comm made = MPI_COMM_NULL;
    int code = MPI_Comm_create(MPI_COMM_WORLD, backwards, &made);
    return used(code, &made, MPI_COMM_WORLD);
}

static int call_create_halves(void)
{
    MPI_Comm made = MPI_COMM_NULL;
    int code = MPI_Comm_create(MPI_COMM_WORLD, same_half, &made);
    return used(code, &made, half);
}

static int call_create_group(void)
{
    MPI_Comm made = MPI_COMM_NULL;
    int code = MPI_Comm_create_group(MPI_COMM_WORLD, same_half, 3, &made);
    return used(code, &made, half);
}

static int call_create_from_group(void)
{
    MPI_Comm made = MPI_COMM_NULL;
    int code = MPI_Comm_create_from_group(everyone, "memory", MPI_INFO_NULL, MPI_ERRORS_RETURN, &made);
    return used(code, &made, MPI_COMM_WORLD);
}

static int call_cart(void)
{
    int periods[2] = {1, 0}, lengths[2] = {test_size, 1};
    MPI_Comm made = MPI_COMM_NULL;
    int code = MPI_Cart_create(MPI_COMM_WORLD, 2, lengths, periods, 0, &made);
    return used(code, &made, MPI_COMM_WORLD);
}

static int call_cart_sub(void)
{
    int remain[2] = {1, 0};
    MPI_Comm made = MPI_COMM_NULL;
    int code = MPI_Cart_sub(grid, remain, &made);
    return used(code, &made, slice);
}

static int call_graph(void)
{
    int index[64], edges[64];
    MPI_Comm made = MPI_COMM_NULL;
    for (int i = 0; i < test_size; i++) {
        index[i] = i + 1;
        edges[i] = (i + 1) % test_size;
    }
    int code = MPI_Graph_create(MPI_COMM_WORLD, test_size, index, edges, 0, &made);
    return used(code, &made, MPI_COMM_WORLD);
}

static int call_dist_graph(void)
{
    int degree = 2, ends[2] = {(test_rank + 1) % test_size, 0};
    MPI_Comm made = MPI_COMM_NULL;
    int code =
        MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &test_rank, &degree, ends, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &made);
    return used(code, &made, MPI_COMM_WORLD);
}

static int call_dist_graph_adjacent(void)
{
    int before[1] = {(test_rank + test_size - 1) % test_size}, after[1] = {(test_rank + 1) % test_size};
    MPI_Comm made = MPI_COMM_NULL;
    int code = MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, before, MPI_UNWEIGHTED, 1, after, MPI_UNWEIGHTED,
                                              MPI_INFO_NULL, 0, &made);
    return used(code, &made, MPI_COMM_WORLD);
}

/* Of two groups, which one rank has not. */
static int call_intercomm(void)
{
    MPI_Comm made = MPI_COMM_NULL;
    if (test_size == 1)
        return MPI_SUCCESS;
    int code = MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - test_rank % 2, 5, &made);
    return used(code, &made, MPI_COMM_WORLD);
}

static int call_merge(void)
{
    MPI_Comm made = MPI_COMM_NULL;
    if (test_size == 1)
        return MPI_SUCCESS;
    int code = MPI_Intercomm_merge(inter, test_rank % 2, &made);
    return used(code, &made, MPI_COMM_WORLD);
}

static int call_inter_dup(void)
{
    MPI_Comm made = MPI_COMM_NULL;
    if (test_size == 1)
        return MPI_SUCCESS;
    int code = MPI_Comm_dup(inter, &made);
    return used(code, &made, MPI_COMM_WORLD);
}

static int call_inter_idup(void)
{
    MPI_Comm made = MPI_COMM_NULL;
    MPI_Request request = MPI_REQUEST_NULL;
    if (test_size == 1)
        return MPI_SUCCESS;
    int code = MPI_Comm_idup(inter, &made, &request);
    if (code == MPI_SUCCESS)
        code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    return used(code, &made, MPI_COMM_WORLD);
}

static int call_inter_split(void)
{
    MPI_Comm made = MPI_COMM_NULL;
    if (test_size == 1)
        return MPI_SUCCESS;
    int code = MPI_Comm_split(inter, 4, -test_rank, &made);
    return used(code, &made, MPI_COMM_WORLD);
}

static int call_inter_create(void)
{
    MPI_Comm made = MPI_COMM_NULL;
    if (test_size == 1)
        return MPI_SUCCESS;
    int code = MPI_Comm_create(inter, same_half, &made);
    return used(code, &made, MPI_COMM_WORLD);
}

static int call_allreduce(void)
{
    return MPI_Allreduce(MPI_IN_PLACE, data, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
}

static int call_alltoallv(void)
{
    int counts[64] = {0}, places[64] = {0}, from[8] = {0}, to[8];
    for (int i = 0; i < test_size && i < 8; i++) {
        counts[i] = 1;
        places[i] = i;
    }
    return MPI_Alltoallv(from, counts, places, MPI_INT, to, counts, places, MPI_INT, MPI_COMM_WORLD);
}

static int call_igather(void)
{
    int all[64];
    MPI_Request request = MPI_REQUEST_NULL;
    int code = MPI_Igather(data, 1, MPI_INT, all, 1, MPI_INT, 0, MPI_COMM_WORLD, &request);
    return code == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE) : code;
}

/* Of one rank alone: nothing is agreed upon. */
static int call_self_create(void)
{
    MPI_Comm made = MPI_COMM_NULL;
    int code = MPI_Comm_create(MPI_COMM_SELF, group, &made);
    countdown = 0;
    return code == MPI_SUCCESS ? MPI_Comm_free(&made) : code;
}

static int call_self_cart(void)
{
    MPI_Comm made = MPI_COMM_NULL;
    int code = MPI_Cart_create(MPI_COMM_SELF, 1, dims, &zero, 0, &made);
    countdown = 0;
    return code == MPI_SUCCESS ? MPI_Comm_free(&made) : code;
}

static int call_self_graph(void)
{
    MPI_Comm made = MPI_COMM_NULL;
    int index[1] = {1}, edges[1] = {0};
    int code = MPI_Graph_create(MPI_COMM_SELF, 1, index, edges, 0, &made);
    countdown = 0;
    return code == MPI_SUCCESS ? MPI_Comm_free(&made) : code;
}

static int call_self_dist_graph(void)
{
    MPI_Comm made = MPI_COMM_NULL;
    int neighbour[1] = {0};
    int code = MPI_Dist_graph_create_adjacent(MPI_COMM_SELF, 1, neighbour, MPI_UNWEIGHTED, 1, neighbour, MPI_UNWEIGHTED,
                                              MPI_INFO_NULL, 0, &made);
    countdown = 0;
    return code == MPI_SUCCESS ? MPI_Comm_free(&made) : code;
}

static int call_type(void)
{
    MPI_Datatype made = MPI_DATATYPE_NULL;
    int lengths[2] = {1, 2}, places[2] = {0, 3};
    int code = MPI_Type_indexed(2, lengths, places, MPI_INT, &made);
    if (code == MPI_SUCCESS)
        code = MPI_Type_commit(&made);
    countdown = 0;
    if (made != MPI_DATATYPE_NULL)
        MPI_Type_free(&made);
    return code;
}

static int call_group(void)
{
    MPI_Group made = MPI_GROUP_NULL;
    int code = MPI_Group_incl(group, 1, &zero, &made);
    countdown = 0;
    if (code == MPI_SUCCESS)
        MPI_Group_free(&made);
    return code;
}

static int call_info(void)
{
    MPI_Info made = MPI_INFO_NULL;
    int code = MPI_Info_create(&made);
    if (code == MPI_SUCCESS)
        code = MPI_Info_set(made, "key", "value");
    countdown = 0;
    if (made != MPI_INFO_NULL)
        MPI_Info_free(&made);
    return code;
}

static void nothing(void *in, void *inout, int *length, MPI_Datatype *type) {}

static int call_op(void)
{
    MPI_Op made = MPI_OP_NULL;
    int code = MPI_Op_create(nothing, 0, &made);
    countdown = 0;
    if (code == MPI_SUCCESS)
        MPI_Op_free(&made);
    return code;
}

static int call_persistent(void)
{
    MPI_Request request = MPI_REQUEST_NULL;
    int code = MPI_Send_init(data, 1, MPI_INT, 0, 5, MPI_COMM_SELF, &request);
    countdown = 0;
    if (code == MPI_SUCCESS)
        MPI_Request_free(&request);
    return code;
}

/* A window that a call has made: all ranks have it, or none. */
static int used_win(int code, MPI_Win *made)
{
    countdown = 0;
    int good = code == MPI_SUCCESS, have = -1;
    CHECK_CLASS(MPI_Allreduce(&good, &have, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD), MPI_SUCCESS);
    CHECK(have == 0 || have == test_size, "%d of %d ranks have it", have, test_size);
    return have == test_size ? MPI_Win_free(made) : code;
}

static int call_win_create(void)
{
    MPI_Win made = MPI_WIN_NULL;
    int code = MPI_Win_create(data, sizeof data, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &made);
    return used_win(code, &made);
}

static int call_win_allocate(void)
{
    MPI_Win made = MPI_WIN_NULL;
    int *base = NULL;
    int code = MPI_Win_allocate(1000, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &made);
    return used_win(code, &made);
}

static int call_win_dynamic(void)
{
    MPI_Win made = MPI_WIN_NULL;
    int code = MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &made);
    return used_win(code, &made);
}

static const struct row {
    const char *name;
    int (*call)(void);
    bool everybody; /* a call of all ranks together */
} rows[] = {
    {"MPI_Comm_dup", call_dup, true},
    {"MPI_Comm_idup", call_idup, true},
    {"MPI_Comm_split", call_split, true},
    {"MPI_Comm_split (halves)", call_split_halves, true},
    {"MPI_Comm_split_type", call_split_type, true},
    {"MPI_Comm_split_type (unguided)", call_split_unguided, true},
    {"MPI_Comm_create", call_create, true},
    {"MPI_Comm_create (halves)", call_create_halves, true},
    {"MPI_Comm_create_group", call_create_group, true},
    {"MPI_Comm_create_from_group", call_create_from_group, true},
    {"MPI_Cart_create", call_cart, true},
    {"MPI_Cart_sub", call_cart_sub, true},
    {"MPI_Graph_create", call_graph, true},
    {"MPI_Dist_graph_create", call_dist_graph, true},
    {"MPI_Dist_graph_create_adjacent", call_dist_graph_adjacent, true},
    {"MPI_Intercomm_create", call_intercomm, true},
    {"MPI_Intercomm_merge", call_merge, true},
    {"MPI_Comm_dup (inter)", call_inter_dup, true},
    {"MPI_Comm_idup (inter)", call_inter_idup, true},
    {"MPI_Comm_split (inter)", call_inter_split, true},
    {"MPI_Comm_create (inter)", call_inter_create, true},
    {"MPI_Win_create", call_win_create, true},
    {"MPI_Win_allocate", call_win_allocate, true},
    {"MPI_Win_create_dynamic", call_win_dynamic, true},
    {"MPI_Allreduce", call_allreduce, true},
    {"MPI_Alltoallv", call_alltoallv, true},
    {"MPI_Igather", call_igather, true},
    {"MPI_Comm_create", call_self_create, false},
    {"MPI_Cart_create", call_self_cart, false},
    {"MPI_Graph_create", call_self_graph, false},
    {"MPI_Dist_graph_create_adjacent", call_self_dist_graph, false},
    {"MPI_Type_indexed", call_type, false},
    {"MPI_Group_incl", call_group, false},
    {"MPI_Info_set", call_info, false},
    {"MPI_Op_create", call_op, false},
    {"MPI_Send_init", call_persistent, false},
};

/* ---- trying them ------------------------------------------------------------------------------------------------- */

static void judge(const struct row *row, long nth, bool scarce, int code)
{
    int class = MPI_SUCCESS, length;
    char text[MPI_MAX_ERROR_STRING] = "";
    MPI_Error_class(code, &class);
    MPI_Error_string(code, text, &length);
    if (ran_out) /* where it can do without that memory, it may */
        CHECK(class == MPI_SUCCESS || class == MPI_ERR_NO_MEM || class == MPI_ERR_INTERN,
              "class %d (%s) of %s without allocation %ld", class, text, row->name, nth);
    else if (scarce || !row->everybody)
        CHECK(class == MPI_SUCCESS, "class %d (%s) of %s", class, text, row->name);
    else
        CHECK(class == MPI_SUCCESS || class == MPI_ERR_OTHER, "class %d (%s) of %s", class, text, row->name);
}

/* Rank `poor` has no memory. */
static void try_row(const struct row *row, int poor)
{
    bool scarce = test_rank == poor;
    int failed = 1;
    for (long nth = 1; failed && nth < MOST && test_failures == 0; nth++) {
        countdown = scarce ? nth : 0;
        ran_out = false;
        int code = row->call();
        countdown = 0;
        failed = ran_out;
        judge(row, nth, scarce, code);
        if (row->everybody)
            CHECK_CLASS(MPI_Bcast(&failed, 1, MPI_INT, poor, MPI_COMM_WORLD), MPI_SUCCESS);
    }
    CHECK_CLASS(row->call(), MPI_SUCCESS);
}

/* What the calls are given. */
static void prepare(void)
{
    int periods[2] = {0, 0}, remain[2] = {1, 0}, lengths[2] = {0, 0};
    int last_to_first[1][3] = {{test_size - 1, 0, -1}};
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_group(MPI_COMM_SELF, &group);
    MPI_Comm_group(MPI_COMM_WORLD, &everyone);
    MPI_Group_range_incl(everyone, 1, last_to_first, &backwards);
    MPI_Comm_split(MPI_COMM_WORLD, test_rank % 2, 0, &half);
    MPI_Comm_group(half, &same_half);
    dims[0] = 1;
    MPI_Dims_create(test_size, 2, lengths);
    MPI_Cart_create(MPI_COMM_WORLD, 2, lengths, periods, 0, &grid);
    MPI_Cart_sub(grid, remain, &slice);
    if (test_size > 1)
        MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - test_rank % 2, 0, &inter);
}

static void clean(void)
{
    MPI_Comm *comms[] = {&half, &grid, &slice, &inter};
    MPI_Group *groups[] = {&group, &everyone, &backwards, &same_half};
    for (int i = 0; i < 4; i++) {
        if (*comms[i] != MPI_COMM_NULL)
            MPI_Comm_free(comms[i]);
        MPI_Group_free(groups[i]);
    }
}

/* The name of a row may be given; else all are tried. */
int main(int argc, char **argv)
{
    test_begin(&argc, &argv);
    prepare();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (argc < 2 || strcmp(argv[1], rows[i].name) == 0)
            for (int poor = test_size - 1; poor >= 0; poor = poor > 0 ? 0 : -1)
                try_row(&rows[i], poor);
    clean();
    return test_end();
}
