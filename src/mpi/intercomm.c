/* Inter-communicators (MPI-5.0, 7.6): making them, and making one communicator of their two groups. */
#include <stdlib.h>
#include <string.h>

#include "mpi/binding_decls.h"
#include "mpi/creation.h"
#include "mpi/foreign.h"
#include "mpi/group.h"
#include "mpi/hint.h"
#include "mpi/subgroup.h"

/* The leader's own arguments. A code that is not raised. */
static int check_peer(const char *call, MPI_Comm peer_comm, int remote_leader, struct tb_comm **peer)
{
    struct tb_comm *p = tb_comm_find(peer_comm);
    if (p == NULL)
        return tb_error_code(MPI_ERR_COMM, call, "argument 3 (peer_comm): this is no communicator");
    if (!((uint32_t)remote_leader < p->peers))
        return tb_error_code(MPI_ERR_RANK, call,
                             "argument 4 (remote_leader): rank %d is outside %s, which has ranks 0 to %u",
                             remote_leader, tb_comm_name(p), p->peers - 1);
    if (tb_comm_proc(p, (uint32_t)remote_leader) == tb_self.job.self.index)
        return tb_error_code(MPI_ERR_RANK, call, "argument 4 (remote_leader): rank %d is this process itself",
                             remote_leader);
    *peer = p;
    return MPI_SUCCESS;
}

static bool disjoint(const uint32_t *procs, uint32_t count, const uint32_t *others, uint32_t other_count)
{
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < other_count; k++)
            if (procs[i] == others[k])
                return false;
    return true;
}

/* One that both groups know of; without a context so far. Takes what the other group has sent. */
static int inter_new(struct tb_comm *local, struct tb_comm_shape *shape, struct tb_news *theirs, bool *overlap,
                     struct tb_comm **made)
{
    shape->inter = true;
    shape->remote_size = (uint32_t)(theirs->bytes / sizeof(uint32_t));
    shape->remote_procs = theirs->data;
    *overlap = !disjoint(shape->procs, shape->size, shape->remote_procs, shape->remote_size);
    if (!*overlap) {
        shape->first = tb_group_decides(shape->procs[0], shape->remote_procs[0]);
        return tb_comm_new(shape, local, made);
    }
    free(shape->procs);
    free(shape->remote_procs);
    return tb_error(TB_ERR_ARGUMENT, "a process is in both groups");
}

/* Only leaders know that of the other group. */
static int check_context(const struct tb_comm *made, uint64_t context, const struct tb_comm *local, uint32_t leader)
{
    uint32_t own = tb_comm_proc(local, leader);
    return tb_foreign_makes(own, context) ? tb_foreign_check_context(made, context, &own, 1)
                                          : tb_foreign_check_context(made, context, made->procs, made->peers);
}

static int connect_groups(const char *call, struct tb_comm *local, uint32_t leader, struct tb_comm *peer,
                          uint32_t remote, uint64_t match, struct tb_comm **made)
{
    struct tb_comm_shape shape;
    struct tb_news theirs;
    uint64_t context;
    bool overlap = false;
    struct tb_news mine = {0};
    int error = tb_shape_copy(local, &shape);
    bool copied = error == TB_OK;
    if (error == TB_OK)
        error = tb_foreign_names_put(shape.procs, local->size, peer != NULL ? tb_comm_proc(peer, remote) : 0, &mine);
    error = tb_agree_across(error, local, leader, peer, remote, match, &mine, &theirs, &context);
    bool told = error == TB_OK;
    if (told)
        error = tb_foreign_names_get(&theirs);
    if (error == TB_OK && theirs.bytes == 0)
        error = tb_error(TB_ERR_PROTOCOL, "the leader of the other group, of another job, says that nobody is in it");
    if (told && error != TB_OK)
        free(theirs.data);
    if (error == TB_OK)
        error = inter_new(local, &shape, &theirs, &overlap, made);
    else if (copied)
        free(shape.procs);
    free(mine.data);
    if (error == TB_OK)
        error = check_context(*made, context, local, leader);
    error = tb_agree_across(error, local, leader, peer, remote, match, NULL, NULL, NULL);
    if (error == TB_OK)
        tb_comm_enter(*made, context);
    else
        tb_context_put_back(context);
    if (overlap)
        return tb_raise(local, MPI_ERR_COMM, call, "a process is in both groups");
    return tb_comm_given(error, made) < 0 ? tb_raise_below(local, error, call) : MPI_SUCCESS;
}

/* A leader whose own arguments are wrong tells the others. */
static void give_up(struct tb_comm *local, uint32_t leader)
{
    struct tb_news nothing = {NULL, 0}, theirs;
    uint64_t context;
    int error = tb_agree_across(TB_OK, local, leader, NULL, 0, 0, &nothing, &theirs, &context);
    tb_agree_across(error, local, leader, NULL, 0, 0, NULL, NULL, NULL);
}

int tb_mpi_Intercomm_create(MPI_Comm local_comm, int local_leader, MPI_Comm peer_comm, int remote_leader, int tag,
                            MPI_Comm *newintercomm)
{
    static const char call[] = "MPI_Intercomm_create";
    struct tb_comm *local = tb_comm_find(local_comm), *peer = NULL, *made = NULL;
    if (local == NULL)
        return tb_raise_comm(call, 1, "local_comm", local_comm);
    if (local->inter)
        return tb_raise_argument(local, MPI_ERR_COMM, call, 1, "local_comm", "%s is an inter-communicator",
                                 tb_comm_name(local));
    if ((uint32_t)local_leader >= local->size)
        return tb_raise_argument(local, MPI_ERR_RANK, call, 2, "local_leader",
                                 "rank %d is outside %s, which has ranks 0 to %u", local_leader, tb_comm_name(local),
                                 local->size - 1);
    if (tag < 0)
        return tb_raise_argument(local, MPI_ERR_TAG, call, 5, "tag", "the tag %d is negative", tag);
    if (newintercomm == NULL)
        return tb_raise_null(local, call, 6, "newintercomm");
    uint32_t leader = (uint32_t)local_leader;
    if (local->rank == leader) {
        int code = check_peer(call, peer_comm, remote_leader, &peer);
        if (code != MPI_SUCCESS) {
            give_up(local, leader);
            return tb_raise_code(local, code);
        }
    }
    int code = connect_groups(call, local, leader, peer, (uint32_t)remote_leader,
                              tb_topic_match(TB_TOPIC_INTERCOMM, (uint32_t)tag), &made);
    if (code == MPI_SUCCESS && made != NULL)
        *newintercomm = tb_comm_handle(made);
    return code;
}

/* The process that leads the remote group; a code that is not raised. */
static int check_remote_group(const char *call, MPI_Group group, int leader, uint32_t *process)
{
    const struct tb_group *g = tb_group_find(group);
    if (g == NULL)
        return tb_error_code(MPI_ERR_GROUP, call, "argument 3 (remote_group): this is no group");
    if ((uint32_t)leader >= g->size)
        return tb_error_code(MPI_ERR_RANK, call,
                             "argument 4 (remote_leader): rank %d is not in the group, which has %u", leader, g->size);
    *process = g->procs[leader];
    if (*process == tb_self.job.self.index)
        return tb_error_code(MPI_ERR_RANK, call, "argument 4 (remote_leader): rank %d is this process itself", leader);
    if (tb_foreign_among(process, 1))
        return tb_error_code(MPI_ERR_GROUP, call,
                             "argument 3 (remote_group): its leader is of another job, and only a communicator leads "
                             "there");
    return MPI_SUCCESS;
}

int tb_mpi_Intercomm_create_from_groups(MPI_Group local_group, int local_leader, MPI_Group remote_group,
                                        int remote_leader, const char *stringtag, MPI_Info info,
                                        MPI_Errhandler errhandler, MPI_Comm *newintercomm)
{
    static const char call[] = "MPI_Intercomm_create_from_groups";
    struct tb_creation creation = {.call = call, .result_name = "newintercomm"};
    const struct tb_group *group = tb_group_find(local_group);
    struct tb_comm *local = NULL, *made = NULL;
    uint32_t remote = 0, leader = (uint32_t)local_leader;
    int code = tb_creation_check(&creation, stringtag, 5, info, errhandler, newintercomm);
    if (code != MPI_SUCCESS)
        return code;
    *newintercomm = MPI_COMM_NULL;
    if (local_group == MPI_GROUP_EMPTY || remote_group == MPI_GROUP_EMPTY)
        return MPI_SUCCESS; /* whatever the others do */
    if (group != NULL && leader >= group->size)
        return tb_raise_creation(&creation,
                                 tb_error_code(MPI_ERR_RANK, call,
                                               "argument 2 (local_leader): rank %d is not in the group, which has %u",
                                               local_leader, group->size));
    uint64_t number = tb_stringtag_number(stringtag);
    code = tb_creation_make(&creation, local_group, "local_group", tb_topic_match(TB_TOPIC_INTERCOMM_GROUP, number),
                            &local);
    if (code != MPI_SUCCESS || local == NULL)
        return code;
    if (local->rank == leader)
        code = check_remote_group(call, remote_group, remote_leader, &remote);
    if (code != MPI_SUCCESS) {
        give_up(local, leader);
        code = tb_raise_creation(&creation, code);
    } else {
        code = connect_groups(call, local, leader, tb_self.universe, remote,
                              tb_topic_match(TB_TOPIC_INTERCOMM_BRIDGE, number), &made);
    }
    if (code == MPI_SUCCESS && made != NULL) {
        if (creation.hints != NULL)
            tb_hints_take(&made->hints, creation.hints);
        *newintercomm = tb_comm_handle(made);
    }
    tb_comm_release(local);
    return code;
}

/* Whether this group comes first in the merged one. When both or none say high, any order will do that both know. */
static bool comes_first(const struct tb_comm *c, bool high, bool their_high)
{
    return high == their_high ? c->first : !high;
}

static void append(struct tb_comm_shape *shape, const struct tb_comm *group)
{
    for (uint32_t i = 0; i < group->peers; i++)
        shape->procs[shape->size++] = tb_comm_proc(group, i);
}

/* The merged one, without a context so far. */
static int merged_new(struct tb_comm *c, bool high, bool their_high, struct tb_comm **made)
{
    struct tb_comm_shape shape = {.procs = malloc(((size_t)c->size + c->remote_size) * sizeof *shape.procs)};
    if (shape.procs == NULL)
        return tb_error(TB_ERR_MEMORY, "out of memory for %u ranks", c->size + c->remote_size);
    bool before = comes_first(c, high, their_high);
    append(&shape, before ? c->local : c);
    append(&shape, before ? c : c->local);
    shape.rank = before ? c->rank : c->remote_size + c->rank;
    return tb_comm_new(&shape, c, made);
}

int tb_mpi_Intercomm_merge(MPI_Comm intercomm, int high, MPI_Comm *newintracomm)
{
    static const char call[] = "MPI_Intercomm_merge";
    struct tb_comm *c = tb_comm_find(intercomm), *made = NULL;
    if (c == NULL)
        return tb_raise_comm(call, 1, "intercomm", intercomm);
    if (!c->inter)
        return tb_raise_argument(c, MPI_ERR_COMM, call, 1, "intercomm", "%s is not an inter-communicator",
                                 tb_comm_name(c));
    if (newintracomm == NULL)
        return tb_raise_null(c, call, 3, "newintracomm");
    uint8_t mine = high != 0;
    struct tb_news news = {&mine, sizeof mine}, theirs;
    uint64_t context;
    int error = tb_agree_inter(TB_OK, c, &news, &theirs, &context);
    /* Ranks of a group must say the same; if they do not, that of its leader counts for all. */
    if (error == TB_OK)
        error = tb_comm_spread(c->local, 0, &mine, sizeof mine);
    else
        tb_comm_refuse(c->local, TB_OPERATION_BCAST, error);
    if (error == TB_OK)
        error = merged_new(c, mine, theirs.bytes > 0 && *(const uint8_t *)theirs.data != 0, &made);
    free(theirs.data);
    if (error == TB_OK)
        error = tb_foreign_check_first(made, context, c);
    error = tb_agree_inter(error, c, NULL, NULL, NULL);
    if (error == TB_OK) {
        tb_comm_enter(made, context);
        error = tb_comm_settle(made);
    } else {
        tb_context_put_back(context);
    }
    if (tb_comm_given(error, &made) < 0)
        return tb_raise_below(c, error, call);
    *newintracomm = tb_comm_handle(made);
    return MPI_SUCCESS;
}
