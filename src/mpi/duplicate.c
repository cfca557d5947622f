/* Duplicates of communicators (MPI-5.0, 7.4.2). */
#include <stdatomic.h>
#include <stdlib.h>

#include "mpi/binding_decls.h"
#include "mpi/datatype.h"
#include "mpi/foreign.h"
#include "mpi/hint.h"
#include "mpi/op.h"
#include "mpi/plan.h"
#include "mpi/request.h"
#include "mpi/subgroup.h"
#include "mpi/topo.h"

/* A duplicate without a context, with everything but the attributes. */
static int prepare(struct tb_comm *parent, const struct tb_info *info, struct tb_comm **made)
{
    struct tb_comm_shape shape;
    int error = tb_shape_copy(parent, &shape);
    if (error == TB_OK)
        error = tb_comm_new(&shape, parent, made);
    if (error < 0)
        return error;
    TB_ASSERT(*made != NULL);
    (*made)->topo = tb_topo_hold(parent->topo);
    if (info != NULL) {
        tb_hints_take(&(*made)->hints, info);
        tb_comm_prefer(*made, info);
    }
    return TB_OK;
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
    error = tb_comm_agree_new(parent, prepare(parent, info, &made), &made);
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

/* A collective that is on its way. */
struct telling {
    struct tb_request request;
    struct tb_comm *comm; /* NULL: not needed */
    const struct tb_program *program;
};

/* An MPI_Comm_idup on its way. Ranks of one group combine their words, of which that of rank 0 is the context id, so
 * that all have it or none. Of an inter-communicator, the group that decides broadcasts it inside itself, and both
 * groups combine their words for each other: that nobody finishes before all ranks of both have begun it, so that one
 * that cannot leaves everyone without. */
struct idup {
    struct tb_pending *pending;
    uint64_t context;
    uint64_t given, heard; /* words for the other group, and of it */
    bool decides;          /* this group does */
    _Atomic uint32_t left; /* collectives that are not done, and one until all are started */
    _Atomic int error;
    struct telling tellings[2];
};

/* The last one is done: the communicator gets its context. */
static void idup_finish(struct idup *d)
{
    struct tb_pending *p = d->pending;
    int error = d->error;
    d->context = d->decides ? d->context : d->heard;
    if (error == TB_OK && d->context == 0)
        error = tb_error(TB_ERR_LIMIT, "the rank that decides has made too many communicators");
    if (error == TB_OK && tb_self.laned) {
        p->duplicate.context = d->context; /* this thread is in another part of the engine, maybe */
    } else {
        if (error == TB_OK) /* its groups are those of the old one */
            error = tb_foreign_check_first(p->duplicate.comm, d->context, p->duplicate.comm);
        if (error == TB_OK)
            tb_comm_enter(p->duplicate.comm, d->context);
    }
    free(d);
    if (error < 0) {
        p->duplicate.code = tb_error_code_below(error, "MPI_Comm_idup");
        tb_comm_invalidate(p->duplicate.comm);
    }
    tb_pending_set_done(p, true);
}

static void telling_complete(struct tb_request *request)
{
    struct telling *t = TB_CONTAINER(request, struct telling, request);
    struct idup *d = request->user;
    if (d->error == TB_OK && request->status.error != TB_OK)
        d->error = tb_request_explain(request);
    tb_planner_release(t->comm->planner, t->program);
    if (atomic_fetch_sub(&d->left, 1) == 1)
        idup_finish(d);
}

static int telling_plan(struct telling *t, struct tb_comm *comm, struct tb_collective *what, struct tb_binding *binding)
{
    what->elements = binding->elements;
    what->element_bytes = binding->element_bytes;
    int error = tb_comm_plan(comm, what, binding, &t->program);
    t->comm = error == TB_OK ? comm : NULL;
    return error;
}

static int broadcast_plan(struct telling *t, struct tb_comm *comm, uint32_t root, uint64_t *word,
                          struct tb_binding *binding)
{
    struct tb_collective what = {.operation = TB_OPERATION_BCAST, .root = root};
    *binding = (struct tb_binding){.elements = sizeof *word, .element_bytes = 1};
    binding->buffers[TB_SYMBOL_OUT] = (struct tb_buffer){word, sizeof *word, &tb_type_byte};
    return telling_plan(t, comm, &what, binding);
}

/* `given` is NULL: in place. */
static int combine_plan(struct telling *t, struct tb_comm *comm, uint64_t *given, uint64_t *word,
                        struct tb_binding *binding)
{
    const struct tb_type *type = tb_type_find(MPI_UINT64_T);
    struct tb_collective what = {.operation = TB_OPERATION_ALLREDUCE, .commutative = true, .in_place = given == NULL};
    *binding = (struct tb_binding){.elements = 1, .element_bytes = sizeof *word, .op = tb_op_find(MPI_BAND)};
    if (given != NULL)
        binding->buffers[TB_SYMBOL_IN] = (struct tb_buffer){given, 1, type};
    binding->buffers[TB_SYMBOL_OUT] = (struct tb_buffer){word, 1, type};
    binding->buffers[TB_SYMBOL_WORK] = (struct tb_buffer){NULL, 0, type};
    return telling_plan(t, comm, &what, binding);
}

/* Whether this group tells itself what it has decided. */
static bool tells_within(const struct tb_comm *parent)
{
    return parent->inter && parent->first && parent->size > 1;
}

/* This rank cannot take part in what the others start; in the same order. */
static void idup_refuse(struct tb_comm *parent, int error)
{
    if (tells_within(parent))
        tb_comm_refuse(parent->local, TB_OPERATION_BCAST, error);
    tb_comm_refuse(parent, TB_OPERATION_ALLREDUCE, error);
}

/* Finds all programs, or none. */
static int idup_plan(struct idup *d, struct tb_comm *parent, struct tb_binding *bindings)
{
    struct telling *within = &d->tellings[0], *across = &d->tellings[1];
    int error = TB_OK;
    if (!parent->inter)
        return parent->size > 1 ? combine_plan(within, parent, NULL, &d->context, &bindings[0]) : TB_OK;
    if (tells_within(parent))
        error = broadcast_plan(within, parent->local, 0, &d->context, &bindings[0]);
    if (error < 0)
        return error;
    error = combine_plan(across, parent, &d->given, &d->heard, &bindings[1]);
    if (error < 0 && within->comm != NULL)
        tb_planner_release(within->comm->planner, within->program);
    return error;
}

/* Starts all at once, so that they are numbered in the same order on all ranks. What both groups do comes last, and not
 * at all where this group's own has failed already. */
static int idup_start(struct idup *d, struct tb_comm *parent)
{
    struct tb_binding bindings[2];
    d->decides = !parent->inter || parent->first;
    uint64_t taken = parent->rank == 0 && d->decides ? tb_context_take() : 0;
    d->context = d->given = parent->rank == 0 && d->decides ? taken : UINT64_MAX;
    int error = idup_plan(d, parent, bindings);
    if (error < 0) {
        idup_refuse(parent, error);
        tb_context_put_back(taken);
        return error;
    }
    atomic_store(&d->left, 1u + (d->tellings[0].comm != NULL) + (d->tellings[1].comm != NULL));
    for (int i = 0; i < 2; i++) {
        struct telling *t = &d->tellings[i];
        if (t->comm == NULL)
            continue;
        t->request.complete = telling_complete;
        t->request.user = d;
        if (i == 1 && d->error != TB_OK) {
            tb_comm_refuse(t->comm, TB_OPERATION_ALLREDUCE, d->error);
            tb_planner_release(t->comm->planner, t->program);
            atomic_fetch_sub(&d->left, 1);
            continue;
        }
        tb_program_post(t->comm->channel, &t->request, t->program, &bindings[i]);
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
        p->duplicate.context = 0;
    }
    int error = p == NULL || d == NULL ? tb_error(TB_ERR_MEMORY, "out of memory for a duplicate") : TB_OK;
    if (error == TB_OK) {
        tb_pending_set_done(p, false);
        d->pending = p;
        error = idup_start(d, parent);
    } else {
        idup_refuse(parent, error);
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
    int error = prepare(parent, info, &made);
    if (error < 0 || made == NULL) {
        idup_refuse(parent, error);
        return tb_raise_below(parent, error, call);
    }
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
