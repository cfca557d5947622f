/* Collectives with a request (MPI-5.0, sections 6.12 and 6.13): nonblocking and persistent ones. */
#include "mpi/collective_request.h"

#include <stdlib.h>

#include "mpi/agreement.h"
#include "mpi/collective.h"

/* Every buffer that the binding describes; false behind the last one. */
static bool collective_request_buffer(const struct tb_collective_request *f, uint32_t i,
                                      const struct tb_buffer **buffer)
{
    if (i < TB_SYMBOL_COUNT)
        *buffer = &f->binding.buffers[i];
    else if (i - TB_SYMBOL_COUNT < f->table_size)
        *buffer = &f->tables[i - TB_SYMBOL_COUNT];
    else
        return false;
    return true;
}

/* Whether a function of the program will be given handles of its types. */
static bool collective_request_shows(const struct tb_collective_request *f)
{
    return f->binding.op != NULL && f->binding.op->code == TB_OP_USER;
}

static void collective_request_hold(const struct tb_collective_request *f)
{
    const struct tb_buffer *buffer;
    for (uint32_t i = 0; collective_request_buffer(f, i, &buffer); i++)
        if (buffer->type != NULL && tb_type_keep(buffer->type) != NULL && collective_request_shows(f))
            tb_datatype_hold(buffer->type);
    if (f->binding.op != NULL)
        tb_op_hold(f->binding.op);
}

/* Types without users live forever; all others here have at least this one. */
static void collective_request_let_go(const struct tb_collective_request *f)
{
    const struct tb_buffer *buffer;
    for (uint32_t i = 0; collective_request_buffer(f, i, &buffer); i++)
        if (buffer->type != NULL && __atomic_load_n((const uint32_t *)&buffer->type->users, __ATOMIC_RELAXED) > 0) {
            if (collective_request_shows(f))
                tb_datatype_let_go(buffer->type);
            tb_type_release(buffer->type);
        }
    if (f->binding.op != NULL)
        tb_op_drop(f->binding.op);
}

void tb_collective_request_start(struct tb_pending *p)
{
    p->collective_request->binding.start++;
    tb_program_post(p->comm->channel, &p->core, p->collective_request->program, &p->collective_request->binding);
}

void tb_collective_request_free(struct tb_collective_request *collective_request, struct tb_comm *comm)
{
    if (collective_request == NULL)
        return;
    collective_request_let_go(collective_request);
    if (collective_request->kept != NULL)
        tb_channel_kept_close(collective_request->kept);
    tb_planner_release(comm->planner, collective_request->program);
    free(collective_request->tables);
    free(collective_request->offsets);
    free(collective_request);
}

/* Takes over what the call owns. */
static int collective_request_make(struct tb_call *call, struct tb_collective_request **made)
{
    struct tb_collective_request *f = malloc(sizeof *f);
    if (f == NULL)
        return tb_error(TB_ERR_MEMORY, "out of memory for a collective operation");
    call->what.connected = call->form->kind == TB_FORM_PERSISTENT;
    int error = call->what.connected ? tb_comm_settle(call->comm) : TB_OK;
    if (error == TB_OK)
        error = tb_comm_plan(call->comm, &call->what, &call->binding, &f->program);
    if (error < 0) {
        free(f);
        return error;
    }
    f->kept = NULL;
    f->binding = call->binding;
    f->tables = call->tables;
    f->offsets = call->offsets;
    f->table_size = call->tables != NULL ? call->blocks[TB_SYMBOL_IN] + call->blocks[TB_SYMBOL_OUT] : 0;
    call->tables = NULL;
    call->offsets = NULL;
    collective_request_hold(f);
    *made = f;
    return TB_OK;
}

/* There is no request. */
static int call_refuse(struct tb_call *call, struct tb_pending *p, int error)
{
    MPI_Request unused;
    int code = tb_call_refuse(call, error);
    tb_call_drop(call);
    if (p != NULL)
        tb_pending_retire(p, &unused);
    return code;
}

/* A persistent one may be started in another order than elsewhere, so it has a number and common memory of its own, or
 * a program that goes without. */
static int collective_request_number(struct tb_collective_request *f, struct tb_comm *comm, struct tb_collective *what)
{
    tb_binding_number(comm->channel, &f->binding);
    if (!tb_comm_keeps(comm, what->operation))
        return TB_OK;
    bool wanted = f->program->places > 0;
    int error = tb_comm_keep(comm, f->binding.numbers[0], wanted, &f->kept);
    f->binding.kept = f->kept;
    if (error < 0 || !wanted || f->kept != NULL)
        return error;
    const struct tb_program *program = NULL;
    error = tb_comm_plan(comm, what, &f->binding, &program);
    if (error < 0)
        return error;
    tb_planner_release(comm->planner, f->program);
    f->program = program;
    return TB_OK;
}

int tb_call_keep(struct tb_call *call)
{
    const struct tb_form *form = call->form;
    struct tb_comm *comm = call->comm;
    struct tb_pending *p = tb_pending_new(TB_PENDING_COLLECTIVE, comm);
    int error = p == NULL ? TB_ERR_MEMORY : TB_OK;
    if (p != NULL) {
        p->collective_request = NULL;
        error = collective_request_make(call, &p->collective_request);
    }
    if (error < 0)
        return call_refuse(call, p, error);
    if (form->kind == TB_FORM_PERSISTENT) {
        error = collective_request_number(p->collective_request, comm, &call->what);
        if (error < 0) {
            MPI_Request unused;
            tb_pending_retire(p, &unused);
            return tb_raise_below(comm, error, form->call);
        }
        p->persistent = true;
        p->active = false;
        *form->request = tb_pending_handle(p);
    } else {
        *form->request = tb_pending_handle(p);
        tb_collective_request_start(p);
    }
    return MPI_SUCCESS;
}
