/* Communicators from groups (MPI-5.0, 7.4.2). */
#include "mpi/subgroup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/binding_decls.h"
#include "mpi/foreign.h"
#include "mpi/group.h"

uint32_t tb_subgroup_position(const uint32_t *ranks, uint32_t count, uint32_t rank)
{
    uint32_t at = 0;
    while (at < count && ranks[at] != rank)
        at++;
    return at;
}

static uint32_t *procs_copy(const struct tb_comm *comm)
{
    uint32_t *procs = malloc((comm->peers > 0 ? comm->peers : 1) * sizeof *procs);
    for (uint32_t i = 0; procs != NULL && i < comm->peers; i++)
        procs[i] = tb_comm_proc(comm, i);
    return procs;
}

int tb_shape_copy(const struct tb_comm *comm, struct tb_comm_shape *shape)
{
    const struct tb_comm *local = comm->inter ? comm->local : comm;
    *shape = (struct tb_comm_shape){.size = comm->size, .rank = comm->rank, .inter = comm->inter, .first = comm->first};
    shape->procs = procs_copy(local);
    if (comm->inter) {
        shape->remote_size = comm->remote_size;
        shape->remote_procs = procs_copy(comm);
    }
    if (shape->procs != NULL && (!comm->inter || shape->remote_procs != NULL))
        return TB_OK;
    free(shape->procs);
    free(shape->remote_procs);
    return tb_error(TB_ERR_MEMORY, "out of memory for a communicator of %u ranks", comm->size);
}

/* Everything that needs memory. */
static int subgroup_new(struct tb_comm *parent, const struct tb_members *members, struct tb_comm **made)
{
    struct tb_comm_shape shape = {
        .size = members->count, .rank = members->mine, .procs = malloc(members->count * sizeof *shape.procs)};
    if (shape.procs == NULL)
        return tb_error(TB_ERR_MEMORY, "out of memory for a communicator of %u ranks", members->count);
    for (uint32_t i = 0; i < members->count; i++)
        shape.procs[i] = members->proc(members, i);
    return tb_comm_new(&shape, parent, made);
}

/* It has its context; on several hosts they agree on the common memory, too. */
static int subgroup_settle(struct tb_comm *parent, const struct tb_members *members, uint64_t match,
                           struct tb_comm *made)
{
    TB_ASSERT(made != NULL);
    if (!made->unsettled)
        return TB_OK;
    struct tb_consent consent = {.all = tb_channel_provides(made->channel), .error = TB_OK};
    made->unsettled = false;
    int error = tb_agree_within(parent, members, match, &consent);
    return error == TB_OK ? tb_comm_agree(made, consent.all) : error;
}

static bool is_loss(int error)
{
    return error == TB_ERR_PEER || error == TB_ERR_CLOSED;
}

/* A process was lost over it, so that some may know nothing of that yet and have gone on to settle. */
static void subgroup_refuse(struct tb_comm *parent, int error, const struct tb_members *members, uint64_t match,
                            const struct tb_comm *made)
{
    struct tb_consent refusal = {.error = error, .proc = tb_self.job.self.index};
    char story[512];
    if (made == NULL || !made->spans)
        return;
    snprintf(story, sizeof story, "%s", tb_error_story());
    tb_agree_within(parent, members, match, &refusal);
    tb_error(error, "%s", story);
}

int tb_subgroup_make(struct tb_comm *parent, int error, const struct tb_members *members, uint64_t match,
                     struct tb_comm **made)
{
    struct tb_consent consent = {.all = UINT64_MAX, .proc = tb_self.job.self.index};
    if (error == TB_OK)
        error = subgroup_new(parent, members, made);
    if (error == TB_OK && members->mine == 0) {
        consent.context = tb_context_take();
        error = consent.context == 0 ? TB_ERR_LIMIT : TB_OK;
    }
    uint64_t taken = consent.context;
    consent.error = error;
    error = tb_agree_within(parent, members, match, &consent);
    if (error < 0) {
        if (is_loss(error) || is_loss(consent.error))
            subgroup_refuse(parent, error, members, match, *made);
        tb_context_put_back(taken);
        return tb_comm_given(error, made);
    }
    uint32_t first = members->proc(members, 0);
    error = tb_foreign_check_context(*made, consent.context, &first, 1);
    if (error < 0)
        return tb_comm_given(error, made);
    tb_comm_enter(*made, consent.context);
    return tb_comm_given(subgroup_settle(parent, members, match, *made), made);
}

/* Processes of a list, or the first ranks of a communicator. */
struct listed {
    struct tb_members members;
    const uint32_t *procs;
    const struct tb_comm *comm;
};

static uint32_t listed_proc(const struct tb_members *members, uint32_t at)
{
    const struct listed *l = TB_CONTAINER(members, const struct listed, members);
    return l->procs != NULL ? l->procs[at] : tb_comm_proc(l->comm, at);
}

int tb_subgroup_first(struct tb_comm *parent, int error, uint32_t count, uint64_t match, struct tb_comm **made)
{
    const struct listed first = {{count, parent->rank, listed_proc}, NULL, parent};
    return tb_subgroup_make(parent, error, &first.members, match, made);
}

int tb_subgroup_listed(struct tb_comm *parent, const uint32_t *procs, uint32_t count, uint32_t mine, uint64_t match,
                       struct tb_comm **made)
{
    const struct listed listed = {{count, mine, listed_proc}, procs, parent};
    return tb_subgroup_make(parent, TB_OK, &listed.members, match, made);
}

/* This rank's communicator of the two groups, if it is in it. */
static int inter_new(struct tb_comm *c, const struct tb_group *group, uint32_t mine, struct tb_news *theirs,
                     struct tb_comm **made)
{
    size_t bytes = group->size * sizeof *group->procs;
    struct tb_comm_shape shape = {.size = group->size,
                                  .rank = mine,
                                  .procs = malloc(bytes),
                                  .inter = true,
                                  .remote_size = (uint32_t)(theirs->bytes / sizeof(uint32_t)),
                                  .remote_procs = theirs->data};
    if (shape.procs == NULL)
        return tb_error(TB_ERR_MEMORY, "out of memory for a communicator of %u ranks", group->size);
    memcpy(shape.procs, group->procs, bytes);
    shape.first = tb_group_decides(shape.procs[0], shape.remote_procs[0]);
    theirs->data = NULL;
    return tb_comm_new(&shape, c, made);
}

/* What one group of an inter-communicator tells the other about a new one: who is in it. */
static int create_inter(struct tb_comm *c, const struct tb_group *group, uint32_t mine, struct tb_comm **made)
{
    struct tb_news members, theirs;
    uint64_t context;
    int error = tb_foreign_names_put(group->procs, group->size, tb_comm_proc(c, 0), &members);
    error = tb_agree_inter(error, c, &members, &theirs, &context);
    free(members.data);
    if (error == TB_OK)
        error = tb_foreign_names_get(&theirs);
    bool nobody = error == TB_OK && (group->size == 0 || theirs.bytes < sizeof(uint32_t));
    if (error == TB_OK && !nobody && mine < group->size)
        error = inter_new(c, group, mine, &theirs, made);
    if (error == TB_OK && *made != NULL)
        error = tb_foreign_check_first(*made, context, c);
    free(theirs.data);
    error = tb_agree_inter(error, c, NULL, NULL, NULL);
    if (error < 0 || nobody)
        tb_context_put_back(context);
    else if (*made != NULL)
        tb_comm_enter(*made, context);
    else
        tb_engine_unclaim(tb_self.engine, context); /* its leader may be here, and not in it */
    return tb_comm_given(error, made);
}

static int create(const char *call, struct tb_comm *c, MPI_Group group, uint64_t match, MPI_Comm *newcomm)
{
    const struct tb_group *g = tb_group_find(group);
    if (g == NULL)
        return tb_raise_group(c, call, 2, "group", group);
    int code = tb_group_check(g, c, call, 2);
    if (code != MPI_SUCCESS)
        return code;
    struct tb_comm *made = NULL;
    uint32_t mine = tb_subgroup_position(g->procs, g->size, tb_self.job.self.index);
    int error = TB_OK;
    if (c->inter)
        error = create_inter(c, g, mine, &made);
    else if (mine < g->size)
        error = tb_subgroup_listed(c, g->procs, g->size, mine, match, &made);
    if (error < 0)
        return tb_raise_below(c, error, call);
    *newcomm = made != NULL ? tb_comm_handle(made) : MPI_COMM_NULL;
    return MPI_SUCCESS;
}

int tb_mpi_Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm *newcomm)
{
    static const char call[] = "MPI_Comm_create";
    struct tb_comm *c = tb_comm_find(comm);
    if (c == NULL)
        return tb_raise_comm(call, 1, "comm", comm);
    if (newcomm == NULL)
        return tb_raise_null(c, call, 3, "newcomm");
    return create(call, c, group, tb_topic_match(TB_TOPIC_CREATE, 0), newcomm);
}

int tb_mpi_Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *newcomm)
{
    static const char call[] = "MPI_Comm_create_group";
    struct tb_comm *c = tb_comm_find(comm);
    if (c == NULL)
        return tb_raise_comm(call, 1, "comm", comm);
    if (c->inter)
        return tb_raise_argument(c, MPI_ERR_COMM, call, 1, "comm", "%s is an inter-communicator", tb_comm_name(c));
    if (tag < 0)
        return tb_raise_argument(c, MPI_ERR_TAG, call, 3, "tag", "the tag %d is negative", tag);
    if (newcomm == NULL)
        return tb_raise_null(c, call, 4, "newcomm");
    return create(call, c, group, tb_topic_match(TB_TOPIC_CREATE_GROUP, (uint32_t)tag), newcomm);
}
