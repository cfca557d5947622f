/* Collectives with a request (MPI-5.0, sections 6.12 and 6.13): nonblocking and persistent ones. */
#include "mpi/flight.h"

#include <stdlib.h>

#include "mpi/collective.h"

/* Every buffer that the binding describes; false behind the last one. */
static bool flight_buffer(const struct tb_flight *f, uint32_t i, const struct tb_buffer **buffer)
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
static bool flight_shows(const struct tb_flight *f)
{
    return f->binding.op != NULL && f->binding.op->code == TB_OP_USER;
}

static void flight_hold(const struct tb_flight *f)
{
    const struct tb_buffer *buffer;
    for (uint32_t i = 0; flight_buffer(f, i, &buffer); i++)
        if (buffer->type != NULL && tb_type_keep(buffer->type) != NULL && flight_shows(f))
            tb_datatype_hold(buffer->type);
    if (f->binding.op != NULL)
        tb_op_hold(f->binding.op);
}

/* Types without users live forever; all others here have at least this one. */
static void flight_let_go(const struct tb_flight *f)
{
    const struct tb_buffer *buffer;
    for (uint32_t i = 0; flight_buffer(f, i, &buffer); i++)
        if (buffer->type != NULL && __atomic_load_n((const uint32_t *)&buffer->type->users, __ATOMIC_RELAXED) > 0) {
            if (flight_shows(f))
                tb_datatype_let_go(buffer->type);
            tb_type_release(buffer->type);
        }
    if (f->binding.op != NULL)
        tb_op_drop(f->binding.op);
}

void tb_flight_start(struct tb_pending *p)
{
    tb_program_post(p->comm->channel, &p->core, p->flight->program, &p->flight->binding);
}

void tb_flight_free(struct tb_flight *flight, struct tb_comm *comm)
{
    if (flight == NULL)
        return;
    flight_let_go(flight);
    tb_planner_release(comm->planner, flight->program);
    free(flight->tables);
    free(flight->offsets);
    free(flight);
}

/* Takes over what the call owns. */
static int flight_make(struct tb_call *call, struct tb_flight **made)
{
    struct tb_flight *f = malloc(sizeof *f);
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
    flight_hold(f);
    *made = f;
    return TB_OK;
}

int tb_call_keep(struct tb_call *call)
{
    const struct tb_form *form = call->form;
    struct tb_comm *comm = call->comm;
    struct tb_pending *p = tb_pending_new(TB_PENDING_COLLECTIVE, comm);
    if (p == NULL) {
        tb_call_drop(call);
        return tb_raise_below(comm, TB_ERR_MEMORY, form->call);
    }
    p->flight = NULL;
    call->binding.numbered = form->kind == TB_FORM_PERSISTENT; /* ranks may start it in different orders */
    int error = flight_make(call, &p->flight);
    if (error < 0) {
        MPI_Request unused;
        tb_call_drop(call);
        tb_pending_retire(p, &unused);
        return tb_raise_below(comm, error, form->call);
    }
    *form->request = tb_pending_handle(p);
    if (form->kind == TB_FORM_PERSISTENT) {
        p->persistent = true;
        p->active = false;
        tb_binding_number(comm->channel, &p->flight->binding);
    } else {
        tb_flight_start(p);
    }
    return MPI_SUCCESS;
}
