/* Communicators (MPI-5.0, chapter 7): making, freeing, naming and asking them. */
#include "mpi/comm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/agreement.h"
#include "mpi/bond.h"
#include "mpi/buffered.h"
#include "mpi/binding_decls.h"
#include "mpi/foreign.h"
#include "mpi/pairing.h"
#include "mpi/plan.h"
#include "mpi/request.h"
#include "mpi/topo.h"

const char *tb_comm_name(const struct tb_comm *comm)
{
    return comm->name[0] != 0 ? comm->name : "the communicator";
}

/* NULL for the identity, so that nothing need be kept for it. */
static uint32_t *compact(uint32_t size, uint32_t *procs)
{
    for (uint32_t i = 0; procs != NULL && i < size; i++)
        if (procs[i] != i)
            return procs;
    free(procs);
    return NULL;
}

static void comm_begin(struct tb_comm *comm, uint32_t size, uint32_t rank, uint32_t *procs)
{
    comm->size = comm->peers = size;
    comm->rank = rank;
    comm->procs = compact(size, procs);
    comm->references = 1;
}

/* The channels of an inter-communicator. */
static struct tb_channel_config inter_config(struct tb_comm *comm)
{
    return (struct tb_channel_config){
        .context = comm->context, .size = comm->peers, .rank = comm->rank, .procs = comm->procs, .owner = comm};
}

static struct tb_channel_config local_config(struct tb_comm *local)
{
    TB_ASSERT(local != NULL);
    return (struct tb_channel_config){.context = local->context,
                                      .size = local->size,
                                      .rank = local->rank,
                                      .procs = local->procs,
                                      .owner = local,
                                      .local = true};
}

static struct tb_channel_config intra_config(struct tb_comm *comm)
{
    return (struct tb_channel_config){.context = comm->context,
                                      .size = comm->size,
                                      .rank = comm->rank,
                                      .procs = comm->procs,
                                      .owner = comm,
                                      .common = !comm->mixed};
}

/* Whether some of these processes were not started with this one. */
static bool is_mixed(uint32_t size, const uint32_t *procs)
{
    const struct tb_job *job = &tb_self.job;
    for (uint32_t i = 0; procs != NULL && i < size; i++)
        if (!tb_job_in_world(job, procs[i]))
            return true;
    return procs == NULL && (job->first > 0 || size > job->size);
}

static int comm_prepare_inter(struct tb_comm *comm)
{
    struct tb_channel_config remote = inter_config(comm), local = local_config(comm->local);
    int error = tb_channel_prepare(tb_self.engine, &remote, &comm->channel);
    return error == TB_OK ? tb_channel_prepare(tb_self.engine, &local, &comm->local->channel) : error;
}

/* Everything that needs memory. What is part of a communicator that does not span hosts does not, either. */
static int comm_prepare(struct tb_comm *comm, const struct tb_comm *parent)
{
    if (comm->inter)
        return comm_prepare_inter(comm);
    comm->mixed = comm->grows || is_mixed(comm->size, comm->procs);
    struct tb_channel_config config = intra_config(comm);
    bool may_span = parent == NULL || parent->inter || parent->mixed || parent->spans;
    int error = may_span ? tb_comm_spans(comm, &comm->spans) : TB_OK;
    if (error < 0)
        return error;
    uint32_t *locals = tb_comm_locals(comm, &config.local_count);
    config.locals = locals;
    error = tb_channel_prepare(tb_self.engine, &config, &comm->channel);
    free(locals);
    return error;
}

/* ---- what connects with other worlds ----------------------------------------------------------------------------- */

static void groups_of(const struct tb_comm *comm, struct tb_bond_group groups[static 2])
{
    groups[0] = (struct tb_bond_group){comm->procs, comm->peers};
    groups[1] = (struct tb_bond_group){0};
    if (comm->inter && comm->local != NULL)
        groups[1] = (struct tb_bond_group){comm->local->procs, comm->local->size};
}

/* One that grows is made by each process for itself, and connects with nobody. */
static void comm_bond(struct tb_comm *comm)
{
    struct tb_bond_group groups[2];
    groups_of(comm, groups);
    comm->bonded = !comm->grows && tb_bonds_hold(groups);
}

void tb_comm_unbond(struct tb_comm *comm, bool freed)
{
    struct tb_bond_group groups[2];
    if (!comm->bonded)
        return;
    groups_of(comm, groups);
    comm->bonded = false;
    tb_bonds_drop(groups, freed);
}

/* ------------------------------------------------------------------------------------------------------------------ */

void tb_comm_enter(struct tb_comm *comm, uint64_t context)
{
    comm->context = context;
    struct tb_channel_config config = comm->inter ? inter_config(comm) : intra_config(comm);
    tb_channel_enter(comm->channel, &config);
    if (comm->inter) {
        comm->local->context = context;
        config = local_config(comm->local);
        tb_channel_enter(comm->local->channel, &config);
    }
    tb_channel_screen(comm->channel); /* nobody has received anything of it yet */
    if (comm->inter)
        tb_channel_screen(comm->local->channel);
    comm->unsettled = comm->spans;
    comm->common = tb_channel_meets(comm->channel);
    comm_bond(comm);
    tb_foreign_begin(comm);
}

static int open_one(MPI_Comm handle, const char *name, uint64_t context, uint32_t size, uint32_t rank, uint32_t *procs,
                    struct tb_comm **opened)
{
    struct tb_comm *comm = calloc(1, sizeof *comm);
    if (comm == NULL) {
        free(procs);
        return tb_error(TB_ERR_MEMORY, "out of memory for a communicator");
    }
    comm_begin(comm, size, rank, procs);
    comm->errhandler = tb_errhandler_initial();
    comm->predefined = handle;
    snprintf(comm->name, sizeof comm->name, "%s", name);
    int error = comm_prepare(comm, NULL);
    if (error < 0) {
        tb_comm_destroy(comm);
        return error;
    }
    tb_comm_enter(comm, context);
    *opened = comm;
    return TB_OK;
}

int tb_comm_open_predefined(void)
{
    const struct tb_job *job = &tb_self.job;
    uint64_t world = tb_context_make(job->first, TB_CONTEXT_WORLD, TB_PLANE_POINT);
    uint64_t self = tb_context_make(job->self.index, TB_CONTEXT_SELF, TB_PLANE_POINT);
    uint32_t *procs = malloc(sizeof *procs), *all = job->first > 0 ? malloc(job->size * sizeof *all) : NULL;
    if (procs == NULL || (all == NULL && job->first > 0)) {
        free(procs);
        free(all);
        return tb_error(TB_ERR_MEMORY, "out of memory for a communicator");
    }
    procs[0] = job->self.index;
    for (uint32_t i = 0; all != NULL && i < job->size; i++)
        all[i] = job->first + i;
    int error = open_one(MPI_COMM_SELF, "MPI_COMM_SELF", self, 1, 0, procs, &tb_self.alone);
    if (error < 0) {
        free(all);
        return error;
    }
    tb_engine_claim(tb_self.engine, world, true);
    error = open_one(MPI_COMM_WORLD, "MPI_COMM_WORLD", world, job->size, job->self.index - job->first, all,
                     &tb_self.everyone);
    return error == TB_OK ? tb_world_settle() : error;
}

void tb_comm_close_predefined(void)
{
    if (tb_self.universe != NULL)
        tb_comm_release(tb_self.universe);
    if (tb_self.everyone != NULL)
        tb_comm_release(tb_self.everyone);
    if (tb_self.alone != NULL)
        tb_comm_release(tb_self.alone);
    tb_self.universe = tb_self.everyone = tb_self.alone = NULL;
}

static bool same_procs(const uint32_t *a, const uint32_t *b, uint32_t count)
{
    return a == b || (a != NULL && b != NULL && memcmp(a, b, count * sizeof *a) == 0);
}

/* If the same ranks are in both, in the same order, what is known of where they are holds for the new one. */
static void comm_inherit(struct tb_comm *comm, const struct tb_comm *from)
{
    const struct tb_group_shape *shape = __atomic_load_n(&from->shape, __ATOMIC_ACQUIRE);
    if (shape == NULL || comm->grows || comm->inter != from->inter || comm->first != from->first ||
        comm->size != from->size || comm->peers != from->peers || !same_procs(comm->procs, from->procs, comm->peers))
        return;
    TB_ASSERT(!comm->inter || (comm->local != NULL && from->local != NULL));
    if (!comm->inter || same_procs(comm->local->procs, from->local->procs, comm->size))
        comm->shape = tb_group_shape_hold(shape);
}

/* The struct, and that of an inter-communicator's local side. */
static struct tb_comm *comm_take(const struct tb_comm *parent, bool inter)
{
    struct tb_comm *comm = tb_handle_take(TB_OBJECT_COMM, sizeof *comm);
    if (comm == NULL)
        return NULL;
    comm->local = inter ? calloc(1, sizeof *comm->local) : NULL;
    if (inter && comm->local == NULL) {
        tb_handle_give(TB_OBJECT_COMM, comm);
        return NULL;
    }
    if (inter)
        comm->local->side = true;
    comm->errhandler = tb_errhandler_at(&parent->errhandler);
    comm->session = tb_session_hold(parent->session);
    return comm;
}

static int given(int error, struct tb_comm *comm, struct tb_comm **made)
{
    if (error < 0)
        tb_comm_destroy(comm);
    else
        *made = comm;
    return error;
}

int tb_comm_new(const struct tb_comm_shape *shape, struct tb_comm *parent, struct tb_comm **made)
{
    struct tb_comm *comm = comm_take(parent, shape->inter);
    if (comm == NULL) {
        free(shape->procs);
        free(shape->remote_procs);
        return tb_error(TB_ERR_MEMORY, "out of memory for a communicator of %u ranks", shape->size);
    }
    comm_begin(comm, shape->size, shape->rank, shape->inter ? NULL : shape->procs);
    comm->grows = shape->grows;
    if (shape->inter) {
        comm_begin(comm->local, shape->size, shape->rank, shape->procs);
        comm->local->errhandler = &tb_errhandler_fatal;
        comm->local->session = tb_session_hold(parent->session);
        comm->inter = true;
        comm->first = shape->first;
        comm->procs = compact(shape->remote_size, shape->remote_procs);
        comm->peers = comm->remote_size = shape->remote_size;
        comm_inherit(comm->local, parent->inter ? parent->local : parent);
    }
    comm_inherit(comm, parent);
    return given(comm_prepare(comm, parent), comm, made);
}

int tb_comm_reserve(struct tb_comm *parent, const uint32_t *procs, struct tb_comm **made)
{
    TB_ASSERT(!parent->inter && !parent->spans);
    struct tb_comm *comm = comm_take(parent, false);
    if (comm == NULL)
        return tb_error(TB_ERR_MEMORY, "out of memory for a communicator of %u ranks", parent->size);
    comm_begin(comm, parent->size, parent->rank, NULL);
    comm->mixed = parent->mixed;
    struct tb_channel_config config = intra_config(comm);
    config.procs = procs;
    return given(tb_channel_prepare(tb_self.engine, &config, &comm->channel), comm, made);
}

void tb_comm_narrow(struct tb_comm *comm, const struct tb_comm_shape *shape, const struct tb_comm *parent)
{
    comm_begin(comm, shape->size, shape->rank, shape->procs);
    comm_inherit(comm, parent);
}

void tb_comm_abandon(uint64_t context, const struct tb_comm_shape *shape)
{
    const struct tb_channel_config config = {.context = context,
                                             .size = shape->size,
                                             .rank = shape->rank,
                                             .procs = shape->procs,
                                             .common = !is_mixed(shape->size, shape->procs)};
    tb_channel_abandon(tb_self.engine, &config);
}

void tb_comm_destroy(struct tb_comm *comm)
{
    bool foreign = comm->counted;
    tb_comm_unbond(comm, false);
    tb_foreign_end(comm);
    if (comm->local != NULL)
        tb_comm_destroy(comm->local);
    if (comm->channel != NULL)
        tb_channel_close(comm->channel);
    if (comm->planner != NULL)
        tb_planner_close(comm->planner);
    tb_group_shape_release(comm->shape);
    tb_errhandler_release(comm->errhandler);
    tb_session_release(comm->session);
    tb_topo_release(comm->topo);
    free(comm->neighbours);
    tb_pairings_free(comm->pairings);
    free(comm->levels);
    free(comm->procs);
    if (comm->freed != 0)
        comm->head.value = comm->freed;
    if (comm->head.value == 0)
        free(comm); /* a predefined one, or the local side of an inter-communicator */
    else
        tb_handle_give(TB_OBJECT_COMM, comm);
    if (foreign) /* also after MPI_Comm_disconnect, if a window or a request has kept it */
        tb_foreign_leave();
}

void tb_comm_invalidate(struct tb_comm *comm)
{
    comm->freed = comm->head.value;
    comm->head.value = 0;
}

void tb_comm_undo(struct tb_comm *comm)
{
    struct tb_bearer bearer = tb_comm_bearer(comm);
    tb_attributes_delete(&bearer);
    tb_comm_release(comm);
}

/* ---- freeing them ------------------------------------------------------------------------------------------------ */

/* All ranks come to this, and from then on none is connected with the others by the communicator, as the launcher
 * knows: whoever ends, however, ends nobody else because of it. Who has ended already is not waited for. Those of
 * another job need not be connected among themselves, but come here, too. */
static void disconnect(const char *call, struct tb_comm *comm)
{
    const struct tb_buffer nothing = {.type = &tb_type_byte};
    if (!comm->bonded && !comm->foreign)
        return;
    if (comm->bonded) {
        tb_comm_unbond(comm, false);
        tb_bonds_settle(call);
    }
    tb_comm_run(comm, TB_OPERATION_BARRIER, 0, &nothing, call);
}

/* Checked already. */
static int drop(const char *call, struct tb_comm *c, bool disconnects)
{
    struct tb_bearer bearer = tb_comm_bearer(c);
    int code = tb_attributes_delete(&bearer);
    if (code != MPI_SUCCESS)
        return tb_raise_code(c, code);
    if (tb_self.parent == c)
        tb_self.parent = NULL;
    if (disconnects)
        tb_pending_wait_orphans(TB_ORPHANS_COMM, c, call);
    tb_bsend_close(&c->bsend);
    if (disconnects)
        disconnect(call, c);
    tb_comm_unbond(c, true);
    tb_comm_invalidate(c); /* requests in flight keep it */
    tb_comm_release(c);
    return MPI_SUCCESS;
}

int tb_comm_drop(const char *call, struct tb_comm *comm)
{
    return drop(call, comm, false);
}

static int comm_give_up(const char *call, MPI_Comm *comm, bool disconnects)
{
    if (comm == NULL)
        return tb_raise_null(NULL, call, 1, "comm");
    struct tb_comm *c = tb_comm_find(*comm);
    if (c == NULL)
        return tb_raise_comm(call, 1, "comm", *comm);
    if (c->predefined != NULL)
        return tb_raise_argument(c, MPI_ERR_COMM, call, 1, "comm", "%s cannot be freed", c->name);
    if (c->grows)
        return tb_raise_argument(c, MPI_ERR_COMM, call, 1, "comm",
                                 "%s is the inbox of a group, which belongs to the library and must not be freed; "
                                 "Tombolo_Group_leave ends it",
                                 tb_comm_name(c));
    int code = drop(call, c, disconnects);
    if (code == MPI_SUCCESS)
        *comm = MPI_COMM_NULL;
    return code;
}

int tb_mpi_Comm_free(MPI_Comm *comm)
{
    return comm_give_up("MPI_Comm_free", comm, false);
}

/* Every message of the communicator belongs to a request. Those that the program has freed are waited for, since it
 * cannot; it does that for the others, which keep what they need. */
int tb_mpi_Comm_disconnect(MPI_Comm *comm)
{
    return comm_give_up("MPI_Comm_disconnect", comm, true);
}

int tb_comm_check_own(struct tb_comm *comm, const char *call, int argument)
{
    if (!comm->foreign)
        return MPI_SUCCESS;
    return tb_raise_argument(comm, MPI_ERR_COMM, call, argument, "comm",
                             "some ranks of %s are of another job, and the new processes would be known in one alone",
                             tb_comm_name(comm));
}

/* ---- asking them ------------------------------------------------------------------------------------------------- */

int tb_mpi_Comm_size(MPI_Comm comm, int *size)
{
    const struct tb_comm *c = tb_comm_find(comm);
    if (c == NULL)
        return tb_raise_comm("MPI_Comm_size", 1, "comm", comm);
    if (size == NULL)
        return tb_raise_null((struct tb_comm *)c, "MPI_Comm_size", 2, "size");
    *size = (int)c->size;
    return MPI_SUCCESS;
}

int tb_mpi_Comm_rank(MPI_Comm comm, int *rank)
{
    const struct tb_comm *c = tb_comm_find(comm);
    if (c == NULL)
        return tb_raise_comm("MPI_Comm_rank", 1, "comm", comm);
    if (rank == NULL)
        return tb_raise_null((struct tb_comm *)c, "MPI_Comm_rank", 2, "rank");
    *rank = (int)c->rank;
    return MPI_SUCCESS;
}

int tb_mpi_Comm_test_inter(MPI_Comm comm, int *flag)
{
    struct tb_comm *c = tb_comm_find(comm);
    if (c == NULL)
        return tb_raise_comm("MPI_Comm_test_inter", 1, "comm", comm);
    if (flag == NULL)
        return tb_raise_null(c, "MPI_Comm_test_inter", 2, "flag");
    *flag = c->inter;
    return MPI_SUCCESS;
}

int tb_mpi_Comm_remote_size(MPI_Comm comm, int *size)
{
    static const char call[] = "MPI_Comm_remote_size";
    struct tb_comm *c = tb_comm_find(comm);
    if (c == NULL)
        return tb_raise_comm(call, 1, "comm", comm);
    if (!c->inter)
        return tb_raise_argument(c, MPI_ERR_COMM, call, 1, "comm", "%s is not an inter-communicator", tb_comm_name(c));
    if (size == NULL)
        return tb_raise_null(c, call, 2, "size");
    *size = (int)c->remote_size;
    return MPI_SUCCESS;
}

/* MPI_CONGRUENT, MPI_SIMILAR or MPI_UNEQUAL, for the groups that can be sent to. */
static int compare_peers(const struct tb_comm *a, const struct tb_comm *b)
{
    if (a->peers != b->peers)
        return MPI_UNEQUAL;
    bool same = true;
    for (uint32_t i = 0; i < a->peers && same; i++)
        same = tb_comm_proc(a, i) == tb_comm_proc(b, i);
    if (same)
        return MPI_CONGRUENT;
    for (uint32_t i = 0; i < a->peers; i++) {
        bool found = false;
        for (uint32_t j = 0; j < b->peers && !found; j++)
            found = tb_comm_proc(a, i) == tb_comm_proc(b, j);
        if (!found)
            return MPI_UNEQUAL;
    }
    return MPI_SIMILAR;
}

static int compare_groups(const struct tb_comm *a, const struct tb_comm *b)
{
    if (a->inter != b->inter)
        return MPI_UNEQUAL;
    int result = compare_peers(a, b);
    if (!a->inter || result == MPI_UNEQUAL)
        return result;
    int local = compare_peers(a->local, b->local);
    return local == MPI_CONGRUENT ? result : local;
}

int tb_mpi_Comm_compare(MPI_Comm comm1, MPI_Comm comm2, int *result)
{
    struct tb_comm *a = tb_comm_find(comm1), *b = tb_comm_find(comm2);
    if (a == NULL)
        return tb_raise_comm("MPI_Comm_compare", 1, "comm1", comm1);
    if (b == NULL)
        return tb_raise_comm("MPI_Comm_compare", 2, "comm2", comm2);
    if (result == NULL)
        return tb_raise_null(a, "MPI_Comm_compare", 3, "result");
    *result = a == b ? MPI_IDENT : compare_groups(a, b);
    return MPI_SUCCESS;
}

int tb_mpi_Comm_set_name(MPI_Comm comm, const char *comm_name)
{
    struct tb_comm *c = tb_comm_find(comm);
    if (c == NULL)
        return tb_raise_comm("MPI_Comm_set_name", 1, "comm", comm);
    if (comm_name == NULL)
        return tb_raise_null(c, "MPI_Comm_set_name", 2, "comm_name");
    tb_self_lock();
    snprintf(c->name, sizeof c->name, "%s", comm_name);
    tb_self_unlock();
    return MPI_SUCCESS;
}

int tb_mpi_Comm_get_name(MPI_Comm comm, char *comm_name, int *resultlen)
{
    static const char call[] = "MPI_Comm_get_name";
    struct tb_comm *c = tb_comm_find(comm);
    if (c == NULL && comm == MPI_COMM_NULL && tb_self_active() && comm_name != NULL && resultlen != NULL) {
        *resultlen = snprintf(comm_name, MPI_MAX_OBJECT_NAME, "MPI_COMM_NULL");
        return MPI_SUCCESS;
    }
    if (c == NULL)
        return tb_raise_comm(call, 1, "comm", comm);
    if (comm_name == NULL || resultlen == NULL)
        return tb_raise_null(c, call, comm_name == NULL ? 2 : 3, comm_name == NULL ? "comm_name" : "resultlen");
    tb_self_lock();
    memcpy(comm_name, c->name, sizeof c->name);
    tb_self_unlock();
    *resultlen = (int)strlen(comm_name);
    return MPI_SUCCESS;
}

int tb_mpi_Comm_toint(MPI_Comm comm)
{
    return tb_handle_to_int(comm);
}

MPI_Comm tb_mpi_Comm_fromint(int comm)
{
    return tb_handle_from_int(TB_OBJECT_COMM, sizeof(struct tb_comm), comm, MPI_COMM_NULL);
}

/* ---- ending its processes -------------------------------------------------------------------------------------- */

/* Those of the communicator, if the launcher can do without them and knows them: no other job does what ours says. Who
 * ends MPI_COMM_WORLD wants the end of all that is connected with it. */
static void find_group(const struct tb_comm *comm, struct tb_abort_group *group)
{
    group->count = 0;
    if (comm == NULL || comm == tb_self.world || !tb_param.keep_going || !tb_list_empty(&tb_self.foreign))
        return;
    bool whole = true;
    for (uint32_t rank = 0; rank < comm->peers && whole; rank++)
        whole = tb_abort_group_add(group, tb_comm_proc(comm, rank));
    for (uint32_t rank = 0; comm->inter && rank < comm->local->peers && whole; rank++)
        whole = tb_abort_group_add(group, tb_comm_proc(comm->local, rank));
}

_Noreturn void tb_comm_abort(const struct tb_comm *comm, int status, enum tb_abort_reason reason, const char *text)
{
    struct tb_abort_group group;
    find_group(comm, &group);
    tb_job_abort(&tb_self.job, status, reason, text, &group);
}
