/* Collectives with a request (MPI-5.0, sections 6.12 and 6.13): nonblocking and persistent ones. */
#include "mpi/collective_request.h"

#include <stdlib.h>

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
    /* A persistent one may be started in another order than elsewhere; that must be known when it is planned. */
    call->binding.numbered = call->form->kind == TB_FORM_PERSISTENT;
    int error = tb_comm_plan(call->comm, &call->what, &call->binding, &f->program);
    if (error < 0) {
        free(f);
        return error;
    }
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
    *form->request = tb_pending_handle(p);
    if (form->kind == TB_FORM_PERSISTENT) {
        p->persistent = true;
        p->active = false;
        tb_binding_number(comm->channel, &p->collective_request->binding);
    } else {
        tb_collective_request_start(p);
    }
    return MPI_SUCCESS;
}
