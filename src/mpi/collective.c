/* Collective calls (MPI-5.0, chapter 6): arguments are checked, the planner gives a program, the executor runs it. */
#include "mpi/collective.h"

#include <stdlib.h>

#include "mpi/agreement.h"
#include "mpi/binding_decls.h"
#include "mpi/hint.h"
#include "mpi/plan.h"

/* ---- running ----------------------------------------------------------------------------------------------------- */

/* Elements of the type signature, on which all ranks agree, and the bytes of one. Where elements are of different sizes
 * it is the mean, and bytes count as elements if there is none. */
static uint64_t basic_elements(const struct tb_buffer *buffer, uint64_t *bytes)
{
    const struct tb_type *type = buffer->type;
    if (__builtin_expect(type->elements == 1, 1)) {
        *bytes = type->size;
        return buffer->count;
    }
    bool even = type->elements > 0 && type->size % type->elements == 0;
    *bytes = even ? type->size / type->elements : 1;
    return even ? buffer->count * type->elements : tb_buffer_bytes(buffer);
}

/* Whether elements are short enough to go through common memory. */
static bool common_possible(const struct tb_collective *what)
{
    bool row = what->operation == TB_OPERATION_REDUCE_SCATTER || what->operation == TB_OPERATION_REDUCE_SCATTER_BLOCK;
    return what->element_bytes <= TB_COMMON_ELEMENT && (!row || what->element_bytes * what->size <= TB_COMMON_ROW);
}

int tb_comm_plan(struct tb_comm *comm, struct tb_collective *what, struct tb_binding *binding,
                 const struct tb_program **program)
{
    int error = TB_OK;
    if (__builtin_expect(binding->operation < TB_OPERATION_COUNT, 1)) /* else it says what it is for */
        binding->operation = (uint8_t)what->operation;
    if (__builtin_expect(comm->inter, 0)) {
        what->inter = true;
        what->remote_size = comm->remote_size;
        what->first = comm->first;
        binding->local = comm->local->channel;
    }
    if (__builtin_expect(comm->planner == NULL, 0))
        error = tb_comm_open_planner(comm);
    if (error < 0)
        return error;
    what->size = comm->size;
    what->rank = comm->rank;
    what->common = !binding->numbered && comm->common && common_possible(what);
    what->connected |=
        binding->call == NULL; /* the library's own: all have its result or none, and who lacks memory? */
    error = tb_planner_program(comm->planner, what, program);
    if (error == TB_OK && (*program)->pieces > 0)
        binding->piece = (binding->elements + (*program)->pieces - 1) / (*program)->pieces;
    return error;
}

void tb_comm_refuse(struct tb_comm *comm, unsigned operation, int error)
{
    struct tb_binding binding = {.operation = (uint8_t)operation, .local = comm->inter ? comm->local->channel : NULL};
    tb_collective_refuse(comm->channel, &binding, error);
}

int tb_comm_execute(struct tb_comm *comm, struct tb_collective *what, struct tb_binding *binding)
{
    const struct tb_program *program = NULL;
    int error = __builtin_expect(comm->unsettled, 0) ? tb_comm_settle(comm) : TB_OK;
    if (error < 0)
        return error;
    error = tb_comm_plan(comm, what, binding, &program);
    if (error < 0) {
        tb_comm_refuse(comm, binding->operation < TB_OPERATION_COUNT ? (unsigned)what->operation : binding->operation,
                       error);
        return error;
    }
    if (__builtin_expect(comm->measures, 0))
        return tb_comm_measure(comm, what, binding, program);
    error = tb_program_run(comm->channel, program, binding);
    tb_planner_release(comm->planner, program);
    return error;
}

int tb_comm_run(struct tb_comm *comm, enum tb_operation operation, uint32_t root, const struct tb_buffer *buffer,
                const char *call)
{
    struct tb_collective what = {.operation = operation, .root = root};
    struct tb_binding binding = {.call = call};
    what.elements = binding.elements = basic_elements(buffer, &what.element_bytes);
    binding.element_bytes = what.element_bytes;
    binding.buffers[TB_SYMBOL_OUT] = *buffer;
    return tb_comm_execute(comm, &what, &binding);
}

int tb_comm_meet(struct tb_comm *comm, enum tb_window_meeting purpose, const char *call)
{
    struct tb_collective what = {.operation = TB_OPERATION_BARRIER};
    struct tb_binding binding = {
        .call = call, .operation = (uint8_t)purpose, .buffers[TB_SYMBOL_OUT] = {.type = &tb_type_byte}};
    what.elements = binding.elements = basic_elements(&binding.buffers[TB_SYMBOL_OUT], &what.element_bytes);
    binding.element_bytes = what.element_bytes;
    return comm->size == 1 ? TB_OK : tb_comm_execute(comm, &what, &binding);
}

int tb_call_run(struct tb_call *call)
{
    int error = tb_comm_execute(call->comm, &call->what, &call->binding);
    tb_call_drop(call);
    return error < 0 ? tb_raise_below(call->comm, error, call->form->call) : MPI_SUCCESS;
}

int tb_call_refuse(struct tb_call *call, int error)
{
    struct tb_comm *comm = call->comm;
    bool persistent = call->form->kind == TB_FORM_PERSISTENT;
    call->binding.local = comm->inter ? comm->local->channel : NULL;
    if (call->form->kind != TB_FORM_NONBLOCKING)
        tb_comm_settle(comm); /* as the others do; they do not hang if it fails */
    if (persistent)
        tb_binding_number(comm->channel, &call->binding);
    if (!persistent)
        tb_comm_refuse(comm, call->what.operation, error);
    else if (tb_comm_keeps(comm, call->what.operation))
        tb_comm_refuse(comm, TB_OPERATION_ALLREDUCE, error);
    return tb_raise_below(comm, error, call->form->call);
}

void tb_call_drop(struct tb_call *call)
{
    free(call->tables);
    free(call->offsets);
    call->tables = NULL;
    call->offsets = NULL;
}

/* ---- arguments --------------------------------------------------------------------------------------------------- */

/* The names with that of the call, for messages. */
static struct tb_names names_of(const struct tb_form *form, const struct tb_names *names)
{
    struct tb_names full = *names;
    full.call = form->call;
    return full;
}

static int form_check(const struct tb_form *form, struct tb_comm *comm)
{
    if (form->request == NULL)
        return tb_raise_null(comm, form->call, form->request_at, "request");
    const struct tb_info *info;
    return form->kind == TB_FORM_PERSISTENT ? tb_hints_check(comm, form->call, form->request_at - 1, form->info, &info)
                                            : MPI_SUCCESS;
}

int tb_call_open(struct tb_call *call, const struct tb_form *form, const struct tb_names *names,
                 enum tb_operation operation, MPI_Comm comm)
{
    *call = (struct tb_call){.comm = tb_comm_find(comm), .form = form, .binding.call = form->call};
    if (call->comm == NULL)
        return tb_raise_comm(form->call, names->comm_at, names->comm, comm);
    call->what.operation = operation;
    call->blocks[TB_SYMBOL_IN] = call->blocks[TB_SYMBOL_OUT] = call->comm->peers;
    return form->kind == TB_FORM_BLOCKING ? MPI_SUCCESS : form_check(form, call->comm);
}

/* The root as algorithms know it; false: there is no such rank. */
static bool root_find(const struct tb_comm *c, int root, uint32_t *found)
{
    *found = (uint32_t)root;
    if (!c->inter)
        return (uint32_t)root < c->size;
    if (root == MPI_ROOT)
        *found = TB_ROOT_HERE;
    else if (root == MPI_PROC_NULL)
        *found = TB_ROOT_BESIDE;
    else
        return (uint32_t)root < c->remote_size;
    return true;
}

static __attribute__((cold)) int raise_root(struct tb_comm *c, const struct tb_form *form, const struct tb_names *names,
                                            int root)
{
    if (c->inter)
        return tb_raise_argument(
            c, MPI_ERR_ROOT, form->call, names->rank_at, names->rank,
            "%d is neither a rank of the remote group of %s, which has ranks 0 to %u, nor MPI_ROOT "
            "or MPI_PROC_NULL",
            root, tb_comm_name(c), c->remote_size - 1);
    return tb_raise_argument(c, MPI_ERR_ROOT, form->call, names->rank_at, names->rank,
                             "rank %d is outside %s, which has ranks 0 to %u", root, tb_comm_name(c), c->size - 1);
}

int tb_call_root(struct tb_call *call, const struct tb_names *names, int root)
{
    return root_find(call->comm, root, &call->what.root) ? MPI_SUCCESS
                                                         : raise_root(call->comm, call->form, names, root);
}

int tb_call_in_place(struct tb_call *call, const struct tb_names *names, bool possible)
{
    call->what.in_place = true;
    if (possible && !call->comm->inter)
        return MPI_SUCCESS;
    return tb_raise_argument(call->comm, MPI_ERR_BUFFER, call->form->call, names->buffer_at, names->buffer,
                             "MPI_IN_PLACE is not possible %s",
                             call->comm->inter ? "on an intercommunicator" : "for this buffer on this rank");
}

static __attribute__((cold)) int raise_data(const struct tb_call *call, const struct tb_names *names,
                                            const void *buffer, MPI_Count count, MPI_Datatype datatype)
{
    const struct tb_names full = names_of(call->form, names);
    int code = tb_raise_data(&full, call->comm, buffer, count, datatype);
    return code != MPI_SUCCESS ? code : tb_raise_machines(&full, call->comm, tb_type_given(datatype, count));
}

int tb_call_data(struct tb_call *call, const struct tb_names *names, enum tb_symbol symbol, const void *buffer,
                 MPI_Count count, MPI_Datatype datatype)
{
    const struct tb_type *type = tb_type_given(datatype, count);
    if (!tb_check_data(type, buffer, count) || !tb_check_machines(call->comm, type, count))
        return raise_data(call, names, buffer, count, datatype);
    if (buffer == MPI_IN_PLACE && count > 0)
        return tb_call_in_place(call, names, false);
    call->binding.buffers[symbol] = (struct tb_buffer){(void *)buffer, (uint64_t)count, type};
    call->binding.cuts[symbol] = TB_CUT_BLOCKS;
    return MPI_SUCCESS;
}

static int call_tables(struct tb_call *call)
{
    if (call->tables != NULL)
        return MPI_SUCCESS;
    size_t blocks = (size_t)call->blocks[TB_SYMBOL_IN] + call->blocks[TB_SYMBOL_OUT];
    /* Those that are kept are looked through as a whole. */
    call->tables = call->form->kind == TB_FORM_BLOCKING ? malloc((blocks + 1) * sizeof *call->tables)
                                                        : calloc(blocks + 1, sizeof *call->tables);
    if (call->tables != NULL)
        return MPI_SUCCESS;
    return tb_call_refuse(call, tb_error(TB_ERR_MEMORY, "out of memory for tables of %zu blocks", blocks));
}

/* A block that is given with MPI_BOTTOM. NULL: its displacement and datatype together lead to no address. */
static const void *block_absolute(const struct tb_type *type, uint64_t from)
{
    int64_t first;
    bool leads = type != NULL && !__builtin_add_overflow((int64_t)from, type->true_lower_bound, &first) &&
                 first >= TB_ADDRESS_LEAST;
    return leads ? (const void *)(uintptr_t)from : NULL;
}

static int check_arrays(const struct tb_call *call, const struct tb_names *names, const struct tb_vector *vector)
{
    const char *name = call->form->call;
    if (vector->counts.base == NULL)
        return tb_raise_null(call->comm, name, names->count_at, names->count);
    if (vector->displs.base == NULL)
        return tb_raise_null(call->comm, name, names->count_at + 1, vector->displs_name);
    return vector->typed && vector->types == NULL ? tb_raise_null(call->comm, name, names->datatype_at, names->datatype)
                                                  : MPI_SUCCESS;
}

int tb_call_vector(struct tb_call *call, const struct tb_names *names, enum tb_symbol symbol,
                   const struct tb_vector *vector, uint64_t *bytes)
{
    uint32_t blocks = call->blocks[symbol];
    if (vector->buffer == MPI_IN_PLACE)
        return tb_call_in_place(call, names, false);
    int code = blocks > 0 ? check_arrays(call, names, vector) : MPI_SUCCESS;
    if (code == MPI_SUCCESS)
        code = call_tables(call);
    if (code != MPI_SUCCESS)
        return code;
    struct tb_buffer *table = call->tables + (symbol == TB_SYMBOL_IN ? 0 : call->blocks[TB_SYMBOL_IN]);
    uint64_t largest = 0;
    for (uint32_t i = 0; i < blocks; i++) {
        MPI_Datatype datatype = vector->typed ? vector->types[i] : vector->type;
        MPI_Count count = tb_ints_at(vector->counts, i);
        const struct tb_type *type = tb_type_given(datatype, count);
        uint64_t unit = vector->typed || type == NULL ? 1 : (uint64_t)type->extent;
        uint64_t from = (uint64_t)tb_ints_at(vector->displs, i) * unit;
        const void *checked = vector->buffer != NULL ? vector->buffer : block_absolute(type, from);
        if (!tb_check_data(type, checked, count) || !tb_check_machines(call->comm, type, count))
            return raise_data(call, names, checked, count, datatype);
        table[i] = (struct tb_buffer){(char *)((uintptr_t)vector->buffer + from), (uint64_t)count, type};
        largest = tb_buffer_bytes(&table[i]) > largest ? tb_buffer_bytes(&table[i]) : largest;
    }
    call->binding.tables[symbol] = table;
    call->binding.cuts[symbol] = TB_CUT_TABLE;
    if (bytes != NULL)
        *bytes = largest;
    return MPI_SUCCESS;
}

int tb_call_distinct(struct tb_call *call, const struct tb_names *names, const struct tb_buffer *given,
                     const struct tb_buffer *taken)
{
    if (given->base != taken->base || given->type != taken->type || tb_buffer_bytes(given) == 0 ||
        tb_buffer_bytes(taken) == 0)
        return MPI_SUCCESS;
    bool other = call->comm->inter || call->what.operation >= TB_OPERATION_NEIGHBOR_ALLGATHER;
    return tb_raise_argument(call->comm, MPI_ERR_BUFFER, call->form->call, names->buffer_at, names->buffer,
                             "the other buffer of this call is the same: %s",
                             other ? "another one is needed" : "MPI_IN_PLACE was perhaps meant");
}

int tb_call_distinct_blocks(struct tb_call *call, const struct tb_names *names)
{
    const struct tb_buffer *given = call->binding.tables[TB_SYMBOL_IN], *taken = call->binding.tables[TB_SYMBOL_OUT];
    int code = MPI_SUCCESS;
    for (uint32_t i = 0; i < call->blocks[TB_SYMBOL_IN] && i < call->blocks[TB_SYMBOL_OUT] && code == MPI_SUCCESS; i++)
        code = tb_call_distinct(call, names, &given[i], &taken[i]);
    return code;
}

void tb_call_relay(struct tb_call *call, const struct tb_buffer *like)
{
    struct tb_buffer *work = &call->binding.buffers[TB_SYMBOL_WORK];
    *work = *like;
    work->base = NULL;
    if (!like->type->dense)
        *work = (struct tb_buffer){NULL, tb_buffer_bytes(like), &tb_type_byte};
    call->binding.cuts[TB_SYMBOL_WORK] = TB_CUT_BLOCKS;
}

void tb_call_measure(struct tb_call *call, uint64_t elements, uint64_t element_bytes)
{
    call->what.elements = call->binding.elements = elements;
    call->what.element_bytes = call->binding.element_bytes = element_bytes;
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

/* Of those two that have no other data than OUT: a form with a request. */
static int keep_simple(const struct tb_form *form, struct tb_comm *c, enum tb_operation operation, uint32_t root,
                       const struct tb_buffer *data)
{
    struct tb_call call = {
        .comm = c, .form = form, .what = {.operation = operation, .root = root}, .binding.call = form->call};
    uint64_t element_bytes;
    uint64_t elements = basic_elements(data, &element_bytes);
    call.binding.buffers[TB_SYMBOL_OUT] = *data;
    tb_call_measure(&call, elements, element_bytes);
    return tb_call_end(&call, form_check(form, c));
}

int tb_mpi_Barrier(const struct tb_form *form, MPI_Comm comm)
{
    struct tb_comm *c = tb_comm_find(comm);
    if (c == NULL)
        return tb_raise_comm(form->call, 1, "comm", comm);
    struct tb_buffer nothing = {.type = &tb_type_byte};
    if (form->kind != TB_FORM_BLOCKING)
        return keep_simple(form, c, TB_OPERATION_BARRIER, 0, &nothing);
    int error = c->size == 1 && !c->inter ? TB_OK : tb_comm_run(c, TB_OPERATION_BARRIER, 0, &nothing, form->call);
    return error < 0 ? tb_raise_below(c, error, form->call) : MPI_SUCCESS;
}

int tb_mpi_Bcast(const struct tb_form *form, void *buffer, MPI_Count count, MPI_Datatype datatype, int root,
                 MPI_Comm comm)
{
    static const struct tb_names names = {NULL, "buffer", "count", "datatype", "root", NULL, "comm", 1, 2, 3, 4, 0, 5};
    struct tb_comm *c = tb_comm_find(comm);
    const struct tb_type *type = tb_type_given(datatype, count);
    uint32_t found;
    if (c == NULL)
        return tb_raise_comm(form->call, names.comm_at, names.comm, comm);
    if (!root_find(c, root, &found))
        return raise_root(c, form, &names, root);
    if (found == TB_ROOT_BESIDE) {
        buffer = NULL;
        count = 0;
        type = &tb_type_byte;
    } else if (!tb_check_data(type, buffer, count)) {
        const struct tb_names full = names_of(form, &names);
        return tb_raise_data(&full, c, buffer, count, datatype);
    } else if (!tb_check_machines(c, type, count)) {
        const struct tb_names full = names_of(form, &names);
        return tb_raise_machines(&full, c, type);
    }
    struct tb_buffer data = {.base = buffer, .count = (uint64_t)count, .type = type};
    if (form->kind != TB_FORM_BLOCKING)
        return keep_simple(form, c, TB_OPERATION_BCAST, found, &data);
    int error = c->size == 1 && !c->inter ? TB_OK : tb_comm_run(c, TB_OPERATION_BCAST, found, &data, form->call);
    return error < 0 ? tb_raise_below(c, error, form->call) : MPI_SUCCESS;
}
