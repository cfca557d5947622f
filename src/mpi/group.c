/* Groups (MPI-5.0, 7.3). */
#include "mpi/group.h"

#include <stdlib.h>
#include <string.h>

#include "mpi/binding_decls.h"

static const struct tb_group empty;

struct tb_group *tb_group_find(MPI_Group handle)
{
    if (handle == MPI_GROUP_EMPTY)
        return (struct tb_group *)&empty;
    return tb_table_find(&tb_self.tables[TB_OBJECT_GROUP], TB_OBJECT_GROUP, sizeof(struct tb_group), handle);
}

int tb_raise_group(struct tb_comm *comm, const char *call, int position, const char *name, MPI_Group handle)
{
    tb_require_active(call);
    const char *what = "this is no handle of a group, or it has been freed";
    if (handle == MPI_GROUP_NULL)
        what = "it is MPI_GROUP_NULL";
    return tb_raise_argument(comm, MPI_ERR_GROUP, call, position, name, "%s", what);
}

struct tb_group *tb_group_new(uint32_t size, struct tb_session *session)
{
    struct tb_group *group = tb_handle_take(TB_OBJECT_GROUP, sizeof *group);
    if (group == NULL)
        return NULL;
    group->procs = malloc((size > 0 ? size : 1) * sizeof *group->procs);
    if (group->procs == NULL) {
        tb_handle_give(TB_OBJECT_GROUP, group);
        return NULL;
    }
    group->size = size;
    group->session = tb_session_hold(session);
    return group;
}

static void group_give(struct tb_group *group)
{
    free(group->procs);
    tb_session_release(group->session);
    tb_handle_give(TB_OBJECT_GROUP, group);
}

MPI_Group tb_group_publish(struct tb_group *group)
{
    if (group->size > 0)
        return (MPI_Group)(uintptr_t)group->head.value;
    group_give(group);
    return MPI_GROUP_EMPTY;
}

static int out_of_memory(const char *call)
{
    return tb_raise(NULL, MPI_ERR_NO_MEM, call, "out of memory for a group");
}

/* The rank of a process, MPI_UNDEFINED if it is not in the group. */
static int group_rank(const struct tb_group *group, uint32_t proc)
{
    for (uint32_t i = 0; i < group->size; i++)
        if (group->procs[i] == proc)
            return (int)i;
    return MPI_UNDEFINED;
}

/* ---- asking ------------------------------------------------------------------------------------------------------ */

/* The group of an intracommunicator. */
static int group_of(const char *call, const struct tb_comm *c, MPI_Group *group)
{
    struct tb_group *made = tb_group_new(c->peers, c->session);
    if (made == NULL)
        return out_of_memory(call);
    for (uint32_t i = 0; i < c->peers; i++)
        made->procs[i] = tb_comm_proc(c, i);
    *group = tb_group_publish(made);
    return MPI_SUCCESS;
}

int tb_mpi_Comm_group(MPI_Comm comm, MPI_Group *group)
{
    static const char call[] = "MPI_Comm_group";
    struct tb_comm *c = tb_comm_find(comm);
    if (c == NULL)
        return tb_raise_comm(call, 1, "comm", comm);
    if (group == NULL)
        return tb_raise_null(c, call, 2, "group");
    return group_of(call, c->inter ? c->local : c, group);
}

int tb_mpi_Comm_remote_group(MPI_Comm comm, MPI_Group *group)
{
    static const char call[] = "MPI_Comm_remote_group";
    struct tb_comm *c = tb_comm_find(comm);
    if (c == NULL)
        return tb_raise_comm(call, 1, "comm", comm);
    if (!c->inter)
        return tb_raise_argument(c, MPI_ERR_COMM, call, 1, "comm", "%s is not an inter-communicator", tb_comm_name(c));
    if (group == NULL)
        return tb_raise_null(c, call, 2, "group");
    return group_of(call, c, group);
}

int tb_group_check(const struct tb_group *group, struct tb_comm *comm, const char *call, int position)
{
    uint32_t guess = 0; /* members usually are in the communicator's order */
    for (uint32_t i = 0; i < group->size; i++) {
        uint32_t tried = 0;
        while (tried < comm->size && tb_comm_local_proc(comm, guess) != group->procs[i]) {
            guess = guess + 1 < comm->size ? guess + 1 : 0;
            tried++;
        }
        if (tried == comm->size)
            return tb_raise_argument(comm, MPI_ERR_GROUP, call, position, "group",
                                     "process %u of the job, rank %u of the group, is not in %s", group->procs[i], i,
                                     tb_comm_name(comm));
    }
    return MPI_SUCCESS;
}

int tb_mpi_Group_size(MPI_Group group, int *size)
{
    const struct tb_group *g = tb_group_find(group);
    if (g == NULL)
        return tb_raise_group(NULL, "MPI_Group_size", 1, "group", group);
    if (size == NULL)
        return tb_raise_null(NULL, "MPI_Group_size", 2, "size");
    *size = (int)g->size;
    return MPI_SUCCESS;
}

int tb_mpi_Group_rank(MPI_Group group, int *rank)
{
    const struct tb_group *g = tb_group_find(group);
    if (g == NULL)
        return tb_raise_group(NULL, "MPI_Group_rank", 1, "group", group);
    if (rank == NULL)
        return tb_raise_null(NULL, "MPI_Group_rank", 2, "rank");
    *rank = group_rank(g, tb_self.job.self.index);
    return MPI_SUCCESS;
}

int tb_mpi_Group_compare(MPI_Group group1, MPI_Group group2, int *result)
{
    static const char call[] = "MPI_Group_compare";
    const struct tb_group *a = tb_group_find(group1), *b = tb_group_find(group2);
    if (a == NULL || b == NULL)
        return a == NULL ? tb_raise_group(NULL, call, 1, "group1", group1)
                         : tb_raise_group(NULL, call, 2, "group2", group2);
    if (result == NULL)
        return tb_raise_null(NULL, call, 3, "result");
    *result = MPI_UNEQUAL;
    if (a->size != b->size)
        return MPI_SUCCESS;
    if (a->size == 0 || memcmp(a->procs, b->procs, a->size * sizeof *a->procs) == 0) {
        *result = MPI_IDENT;
        return MPI_SUCCESS;
    }
    for (uint32_t i = 0; i < a->size; i++)
        if (group_rank(b, a->procs[i]) == MPI_UNDEFINED)
            return MPI_SUCCESS;
    *result = MPI_SIMILAR;
    return MPI_SUCCESS;
}

static int raise_group_rank(const char *call, int position, const char *name, const struct tb_group *g, int rank)
{
    return tb_raise_argument(NULL, MPI_ERR_RANK, call, position, name, "rank %d is not in the group, which has %u",
                             rank, g->size);
}

int tb_mpi_Group_translate_ranks(MPI_Group group1, int n, const int ranks1[], MPI_Group group2, int ranks2[])
{
    static const char call[] = "MPI_Group_translate_ranks";
    const struct tb_group *a = tb_group_find(group1), *b = tb_group_find(group2);
    if (a == NULL || b == NULL)
        return a == NULL ? tb_raise_group(NULL, call, 1, "group1", group1)
                         : tb_raise_group(NULL, call, 4, "group2", group2);
    if (n < 0)
        return tb_raise_argument(NULL, MPI_ERR_ARG, call, 2, "n", "%d is negative", n);
    if (n > 0 && (ranks1 == NULL || ranks2 == NULL))
        return tb_raise_null(NULL, call, ranks1 == NULL ? 3 : 5, ranks1 == NULL ? "ranks1" : "ranks2");
    for (int i = 0; i < n; i++) {
        if (ranks1[i] == MPI_PROC_NULL) {
            ranks2[i] = MPI_PROC_NULL;
            continue;
        }
        if ((uint32_t)ranks1[i] >= a->size)
            return raise_group_rank(call, 3, "ranks1", a, ranks1[i]);
        ranks2[i] = group_rank(b, a->procs[ranks1[i]]);
    }
    return MPI_SUCCESS;
}

int tb_mpi_Group_free(MPI_Group *group)
{
    static const char call[] = "MPI_Group_free";
    if (group == NULL)
        return tb_raise_null(NULL, call, 1, "group");
    struct tb_group *g = tb_group_find(*group);
    if (g == NULL)
        return tb_raise_group(NULL, call, 1, "group", *group);
    if (g != &empty)
        group_give(g);
    *group = MPI_GROUP_NULL;
    return MPI_SUCCESS;
}

/* ---- making ------------------------------------------------------------------------------------------------------ */

/* The processes of `a` that are (or are not) in `b`, behind those that are in `made` already. */
static void append_filtered(struct tb_group *made, const struct tb_group *a, const struct tb_group *b, bool in_b)
{
    for (uint32_t i = 0; i < a->size; i++)
        if ((group_rank(b, a->procs[i]) != MPI_UNDEFINED) == in_b)
            made->procs[made->size++] = a->procs[i];
}

enum set { SET_UNION, SET_INTERSECTION, SET_DIFFERENCE };

static int combine(const char *call, enum set set, MPI_Group group1, MPI_Group group2, MPI_Group *newgroup)
{
    const struct tb_group *a = tb_group_find(group1), *b = tb_group_find(group2);
    if (a == NULL || b == NULL)
        return a == NULL ? tb_raise_group(NULL, call, 1, "group1", group1)
                         : tb_raise_group(NULL, call, 2, "group2", group2);
    if (newgroup == NULL)
        return tb_raise_null(NULL, call, 3, "newgroup");
    struct tb_group *made = tb_group_new(a->size + b->size, a->session != NULL ? a->session : b->session);
    if (made == NULL)
        return out_of_memory(call);
    made->size = 0;
    if (set == SET_UNION) {
        append_filtered(made, a, &empty, false);
        append_filtered(made, b, a, false);
    } else {
        append_filtered(made, a, b, set == SET_INTERSECTION);
    }
    *newgroup = tb_group_publish(made);
    return MPI_SUCCESS;
}

int tb_mpi_Group_union(MPI_Group group1, MPI_Group group2, MPI_Group *newgroup)
{
    return combine("MPI_Group_union", SET_UNION, group1, group2, newgroup);
}

int tb_mpi_Group_intersection(MPI_Group group1, MPI_Group group2, MPI_Group *newgroup)
{
    return combine("MPI_Group_intersection", SET_INTERSECTION, group1, group2, newgroup);
}

int tb_mpi_Group_difference(MPI_Group group1, MPI_Group group2, MPI_Group *newgroup)
{
    return combine("MPI_Group_difference", SET_DIFFERENCE, group1, group2, newgroup);
}

/* Marks the ranks of a list; MPI_SUCCESS if each is in the group and named once. */
static int mark_ranks(const char *call, const struct tb_group *g, int64_t n, const int *ranks, bool *chosen)
{
    for (int64_t i = 0; i < n; i++) {
        if ((uint32_t)ranks[i] >= g->size)
            return raise_group_rank(call, 3, "ranks", g, ranks[i]);
        if (chosen[ranks[i]])
            return tb_raise_argument(NULL, MPI_ERR_RANK, call, 3, "ranks", "rank %d is named twice", ranks[i]);
        chosen[ranks[i]] = true;
    }
    return MPI_SUCCESS;
}

/* The group of the ranks that are listed (or of those that are not). `ranks` is freed. */
static int select_ranks(const char *call, const struct tb_group *g, int64_t n, int *ranks, bool listed,
                        MPI_Group *newgroup)
{
    bool *chosen = calloc(g->size > 0 ? g->size : 1, sizeof *chosen);
    struct tb_group *made = chosen != NULL ? tb_group_new(g->size, g->session) : NULL;
    int code = made != NULL ? mark_ranks(call, g, n, ranks, chosen) : out_of_memory(call);
    if (made == NULL || code != MPI_SUCCESS) {
        if (made != NULL)
            group_give(made);
        goto out;
    }
    made->size = 0;
    for (int64_t i = 0; listed && i < n; i++)
        made->procs[made->size++] = g->procs[ranks[i]];
    for (uint32_t i = 0; !listed && i < g->size; i++)
        if (!chosen[i])
            made->procs[made->size++] = g->procs[i];
    *newgroup = tb_group_publish(made);
out:
    free(chosen);
    free(ranks);
    return code;
}

static int check_selection(const char *call, MPI_Group group, int n, const void *list, const char *name,
                           MPI_Group *newgroup, const struct tb_group **g)
{
    *g = tb_group_find(group);
    if (*g == NULL)
        return tb_raise_group(NULL, call, 1, "group", group);
    if (n < 0)
        return tb_raise_argument(NULL, MPI_ERR_ARG, call, 2, "n", "%d is negative", n);
    if (n > 0 && list == NULL)
        return tb_raise_null(NULL, call, 3, name);
    if (newgroup == NULL)
        return tb_raise_null(NULL, call, 4, "newgroup");
    return MPI_SUCCESS;
}

static int from_list(const char *call, MPI_Group group, int n, const int ranks[], bool listed, MPI_Group *newgroup)
{
    const struct tb_group *g;
    int code = check_selection(call, group, n, ranks, "ranks", newgroup, &g);
    if (code != MPI_SUCCESS)
        return code;
    int *copy = malloc(((size_t)n + 1) * sizeof *copy);
    if (copy == NULL)
        return out_of_memory(call);
    if (n > 0)
        memcpy(copy, ranks, (size_t)n * sizeof *copy);
    return select_ranks(call, g, n, copy, listed, newgroup);
}

int tb_mpi_Group_incl(MPI_Group group, int n, const int ranks[], MPI_Group *newgroup)
{
    return from_list("MPI_Group_incl", group, n, ranks, true, newgroup);
}

int tb_mpi_Group_excl(MPI_Group group, int n, const int ranks[], MPI_Group *newgroup)
{
    return from_list("MPI_Group_excl", group, n, ranks, false, newgroup);
}

/* Writes out the ranks of the ranges (first, last, stride); each of them must be in the group, so that more than the
 * group has is an error. */
static int from_ranges(const char *call, MPI_Group group, int n, int ranges[][3], bool listed, MPI_Group *newgroup)
{
    const struct tb_group *g;
    int code = check_selection(call, group, n, ranges, "ranges", newgroup, &g);
    if (code != MPI_SUCCESS)
        return code;
    int *list = malloc(((size_t)g->size + 1) * sizeof *list);
    if (list == NULL)
        return out_of_memory(call);
    int64_t count = 0;
    for (int i = 0; i < n; i++) {
        int64_t first = ranges[i][0], last = ranges[i][1], stride = ranges[i][2], steps = -1;
        const char *what = NULL;
        if (stride > 0 ? last >= first : stride < 0 && last <= first) {
            steps = (last - first) / stride;
            last = first + steps * stride; /* the end itself need not be met, nor be in the group */
        }
        if (stride == 0)
            what = "its stride is 0";
        else if (first < 0 || first >= g->size || last < 0 || last >= g->size)
            what = "its ends are not in the group";
        else if (steps + 1 > g->size - count)
            what = "it names a rank twice";
        if (what != NULL) {
            free(list);
            return tb_raise_argument(NULL, stride == 0 ? MPI_ERR_ARG : MPI_ERR_RANK, call, 3, "ranges", "range %d: %s",
                                     i, what);
        }
        for (int64_t k = 0; k <= steps; k++)
            list[count++] = (int)(first + k * stride);
    }
    return select_ranks(call, g, count, list, listed, newgroup);
}

int tb_mpi_Group_range_incl(MPI_Group group, int n, int ranges[][3], MPI_Group *newgroup)
{
    return from_ranges("MPI_Group_range_incl", group, n, ranges, true, newgroup);
}

int tb_mpi_Group_range_excl(MPI_Group group, int n, int ranges[][3], MPI_Group *newgroup)
{
    return from_ranges("MPI_Group_range_excl", group, n, ranges, false, newgroup);
}

int tb_mpi_Group_toint(MPI_Group group)
{
    return tb_handle_to_int(group);
}

MPI_Group tb_mpi_Group_fromint(int group)
{
    return tb_handle_from_int(TB_OBJECT_GROUP, sizeof(struct tb_group), group, MPI_GROUP_NULL);
}
