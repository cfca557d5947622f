/* Duplicates of communicators (MPI-5.0, 7.4.2). */
#include <stdatomic.h>
#include <stdlib.h>

#include "mpi/binding_decls.h"
#include "mpi/hint.h"
#include "mpi/plan.h"
#include "mpi/request.h"
#include "mpi/subgroup.h"
#include "mpi/topo.h"

/* A duplicate without a channel, with everything but the attributes. */
static int prepare(const char *call, struct tb_comm *parent, const struct tb_info *info, struct tb_comm **made)
{
    struct tb_comm_shape shape;
    int error = tb_shape_copy(parent, &shape);
    if (error == TB_OK) {
        error = tb_comm_new(&shape, parent, made);
        if (error < 0) {
            free(shape.procs);
            free(shape.remote_procs);
        }
    }
    if (error < 0) {
        if (!parent->inter)
            tb_comm_refuse(parent, TB_OPERATION_BCAST, error);
        return tb_raise_below(parent, error, call);
    }
    TB_ASSERT(*made != NULL);
    (*made)->topo = tb_topo_hold(parent->topo);
    if (info != NULL) {
        tb_hints_take(&(*made)->hints, info);
        tb_comm_prefer(*made, info);
    }
    return MPI_SUCCESS;
}

/* Copies the attributes; a function of the program that fails undoes the duplicate. */
static int copy_attributes(struct tb_comm *parent, struct tb_comm *made)
{
    struct tb_bearer from = tb_comm_bearer(parent);
    int code = tb_attributes_copy(&from, &made->attributes);
    if (code == MPI_SUCCESS)
        return MPI_SUCCESS;
    tb_comm_undo(made);
    return tb_raise_code(parent, code);
}

static int duplicate(const char *call, MPI_Comm handle, MPI_Info info_handle, int info_at, MPI_Comm *newcomm)
{
    struct tb_comm *parent = tb_comm_find(handle), *made = NULL;
    const struct tb_info *info;
    if (parent == NULL)
        return tb_raise_comm(call, 1, "comm", handle);
    int code = tb_hints_check(parent, call, info_at, info_handle, &info);
    if (code != MPI_SUCCESS)
        return code;
    if (newcomm == NULL)
        return tb_raise_null(parent, call, info_at > 0 ? 3 : 2, "newcomm");
    int error = tb_comm_settle(parent); /* before anything here can fail for itself */
    if (error < 0)
        return tb_raise_below(parent, error, call);
    code = prepare(call, parent, info, &made);
    if (code != MPI_SUCCESS || made == NULL) {
        tb_comm_settle_parts(parent, TB_ERR_MEMORY, &made);
        return code;
    }
    uint64_t context;
    error = tb_agree_context(parent, &context);
    if (error == TB_OK)
        error = tb_comm_enter(made, context);
    error = tb_comm_settle_parts(parent, error, &made);
    if (error < 0)
        return tb_raise_below(parent, error, call);
    *newcomm = MPI_COMM_NULL;
    code = copy_attributes(parent, made);
    if (code == MPI_SUCCESS)
        *newcomm = tb_comm_handle(made);
    return code;
}

int tb_mpi_Comm_dup(MPI_Comm comm, MPI_Comm *newcomm)
{
    return duplicate("MPI_Comm_dup", comm, MPI_INFO_NULL, 0, newcomm);
}

int tb_mpi_Comm_dup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm *newcomm)
{
    return duplicate("MPI_Comm_dup_with_info", comm, info, 2, newcomm);
}

/* ---- without waiting --------------------------------------------------------------------------------------------- */

/* A broadcast of the context id that is on its way. */
struct broadcast {
    struct tb_request request;
    struct tb_comm *comm; /* NULL: not needed */
    const struct tb_program *program;
};

/* An MPI_Comm_idup on its way. Of an inter-communicator, the group that decides has two broadcasts: to the other group,
 * and inside itself; the other group has only the first. */
struct idup {
    struct tb_pending *pending;
    uint64_t context;
    _Atomic uint32_t left; /* broadcasts that are not done, and one until all are started */
    int error;
    struct broadcast broadcasts[2];
};

/* The last broadcast is done: the communicator gets its channel. */
static void idup_finish(struct idup *d)
{
    struct tb_pending *p = d->pending;
    int error = d->error;
    if (error == TB_OK && d->context == 0)
        error = tb_error(TB_ERR_LIMIT, "the rank that decides has made too many communicators");
    if (error == TB_OK)
        error = tb_comm_enter(p->duplicate.comm, d->context);
    free(d);
    if (error < 0) {
        p->duplicate.code = tb_error_code_below(error, "MPI_Comm_idup");
        tb_comm_invalidate(p->duplicate.comm);
    }
    tb_pending_set_done(p, true);
}

static void broadcast_complete(struct tb_request *request)
{
    struct broadcast *b = TB_CONTAINER(request, struct broadcast, request);
    struct idup *d = request->user;
    if (d->error == TB_OK && request->status.error != TB_OK)
        d->error = tb_request_explain(request);
    tb_planner_release(b->comm->planner, b->program);
    if (atomic_fetch_sub(&d->left, 1) == 1)
        idup_finish(d);
}

static int broadcast_plan(struct broadcast *b, struct tb_comm *comm, uint32_t root, struct tb_binding *binding)
{
    struct tb_collective what = {
        .operation = TB_OPERATION_BCAST, .root = root, .elements = sizeof(uint64_t), .element_bytes = 1};
    *binding = (struct tb_binding){.elements = sizeof(uint64_t), .element_bytes = 1};
    int error = tb_comm_plan(comm, &what, binding, &b->program);
    b->comm = error == TB_OK ? comm : NULL;
    return error;
}

/* Starts all broadcasts at once, so that they are numbered in the same order on all ranks. */
static int idup_start(struct idup *d, struct tb_comm *parent)
{
    struct tb_binding bindings[2];
    int error = TB_OK;
    bool decides = !parent->inter || parent->first;
    if (parent->rank == 0 && decides)
        d->context = tb_context_take();
    if (parent->inter)
        error = broadcast_plan(&d->broadcasts[0], parent,
                               !decides            ? 0
                               : parent->rank == 0 ? TB_ROOT_HERE
                                                   : TB_ROOT_BESIDE,
                               &bindings[0]);
    struct tb_comm *local = parent->inter ? parent->local : parent;
    if (error == TB_OK && decides && local->size > 1)
        error = broadcast_plan(&d->broadcasts[1], local, 0, &bindings[1]);
    if (error < 0) {
        if (d->broadcasts[0].comm != NULL)
            tb_planner_release(parent->planner, d->broadcasts[0].program);
        return error;
    }
    atomic_store(&d->left, 1u + (d->broadcasts[0].comm != NULL) + (d->broadcasts[1].comm != NULL));
    for (int i = 0; i < 2; i++) {
        struct broadcast *b = &d->broadcasts[i];
        if (b->comm == NULL)
            continue;
        b->request.complete = broadcast_complete;
        b->request.user = d;
        bindings[i].buffers[TB_SYMBOL_OUT] =
            (struct tb_buffer){.base = &d->context, .count = sizeof d->context, .type = &tb_type_byte};
        tb_program_post(b->comm->channel, &b->request, b->program, &bindings[i]);
    }
    if (atomic_fetch_sub(&d->left, 1) == 1)
        idup_finish(d);
    return TB_OK;
}

static int begin(const char *call, struct tb_comm *parent, struct tb_comm *made, struct tb_pending **pending)
{
    struct tb_pending *p = tb_pending_new(TB_PENDING_DUPLICATE, parent);
    struct idup *d = calloc(1, sizeof *d);
    if (p != NULL) {
        p->duplicate.comm = made;
        p->duplicate.code = MPI_SUCCESS;
    }
    int error = p == NULL || d == NULL ? tb_error(TB_ERR_MEMORY, "out of memory for a duplicate") : TB_OK;
    if (error == TB_OK) {
        tb_pending_set_done(p, false);
        d->pending = p;
        error = idup_start(d, parent);
    }
    if (error == TB_OK) {
        *pending = p;
        return MPI_SUCCESS;
    }
    free(d);
    if (p != NULL) {
        MPI_Request unused;
        tb_pending_retire(p, &unused);
    }
    return tb_raise_below(parent, error, call);
}

static int idup(const char *call, MPI_Comm handle, MPI_Info info_handle, int info_at, MPI_Comm *newcomm,
                MPI_Request *request)
{
    struct tb_comm *parent = tb_comm_find(handle), *made = NULL;
    const struct tb_info *info;
    struct tb_pending *pending = NULL;
    if (parent == NULL)
        return tb_raise_comm(call, 1, "comm", handle);
    int code = tb_hints_check(parent, call, info_at, info_handle, &info);
    if (code != MPI_SUCCESS)
        return code;
    if (newcomm == NULL || request == NULL)
        return tb_raise_null(parent, call, (info_at > 0 ? 3 : 2) + (newcomm != NULL),
                             newcomm == NULL ? "newcomm" : "request");
    code = prepare(call, parent, info, &made);
    if (code != MPI_SUCCESS || made == NULL)
        return code;
    code = begin(call, parent, made, &pending);
    if (code != MPI_SUCCESS || pending == NULL) {
        tb_comm_release(made);
        return code;
    }
    *newcomm = MPI_COMM_NULL;
    *request = MPI_REQUEST_NULL;
    tb_comm_hold(made); /* while it is on its way, whatever becomes of its attributes */
    code = copy_attributes(parent, made);
    if (code != MPI_SUCCESS) {
        tb_pending_wait(pending, call, NULL);
        pending->duplicate.code = MPI_SUCCESS; /* its hold was given up with the attributes */
        tb_pending_retire(pending, request);
    } else {
        *newcomm = tb_comm_handle(made);
        *request = tb_pending_handle(pending);
    }
    tb_comm_release(made);
    return code;
}

int tb_mpi_Comm_idup(MPI_Comm comm, MPI_Comm *newcomm, MPI_Request *request)
{
    return idup("MPI_Comm_idup", comm, MPI_INFO_NULL, 0, newcomm, request);
}

int tb_mpi_Comm_idup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm *newcomm, MPI_Request *request)
{
    return idup("MPI_Comm_idup_with_info", comm, info, 2, newcomm, request);
}
