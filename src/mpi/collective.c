/* Collective calls (MPI-5.0, chapter 6): arguments are checked, the planner gives a program, the executor runs it. */
#include "mpi/check.h"
#include "mpi/comm.h"
#include "mpi/datatype.h"
#include "mpi/face_decls.h"

/* Elements of the type signature, on which all ranks agree, and the bytes of one. A pair of two equal members counts as
 * two, since another rank may describe it so. */
static uint64_t basic_elements(const struct tb_buffer *buffer, uint32_t *bytes)
{
    bool twins = buffer->type->basic == TB_BASIC_PAIR && tb_type_pair_value(buffer->type) * 2 == buffer->type->size;
    *bytes = (uint32_t)(twins ? buffer->type->size / 2 : buffer->type->size);
    return twins ? buffer->count * 2 : buffer->count;
}

int tb_comm_run(struct tb_comm *comm, enum tb_operation operation, uint32_t root, const struct tb_buffer *buffer)
{
    int error = TB_OK;
    if (__builtin_expect(comm->planner == NULL, 0))
        error = tb_planner_open(comm->size, comm->rank, &comm->planner);
    if (error < 0)
        return error;
    struct tb_collective c = {.operation = operation, .size = comm->size, .rank = comm->rank, .root = root};
    c.elements = basic_elements(buffer, &c.element_bytes);
    const struct tb_program *program = NULL;
    error = tb_planner_program(comm->planner, &c, &program);
    if (error < 0)
        return error;
    struct tb_binding binding = {
        .elements = c.elements, .element_bytes = c.element_bytes, .operation = (uint8_t)operation};
    binding.buffers[TB_SYMBOL_IN] = *buffer;
    binding.buffers[TB_SYMBOL_OUT] = *buffer;
    if (program->pieces > 0)
        binding.piece = (c.elements + program->pieces - 1) / program->pieces;
    error = tb_program_run(comm->channel, program, &binding);
    tb_planner_release(comm->planner, program);
    return error;
}

int tb_mpi_Barrier(MPI_Comm comm)
{
    struct tb_comm *c = tb_comm_find(comm);
    if (c == NULL)
        return tb_raise_comm("MPI_Barrier", 1, "comm", comm);
    struct tb_buffer nothing = {.type = &tb_type_byte};
    int error = c->size == 1 ? TB_OK : tb_comm_run(c, TB_OPERATION_BARRIER, 0, &nothing);
    return error < 0 ? tb_raise_below(c, error, "MPI_Barrier") : MPI_SUCCESS;
}

int tb_mpi_Bcast(void *buffer, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    static const struct tb_names names = {"MPI_Bcast", "buffer", "count", "datatype", "root", NULL, "comm",
                                          1,           2,        3,       4,          0,      5};
    struct tb_comm *c = tb_comm_find(comm);
    const struct tb_type *type = tb_type_find(datatype);
    if (c == NULL || !tb_check_data(type, buffer, count))
        return tb_raise_transfer(&names, c, comm, buffer, count, datatype);
    if ((uint32_t)root >= c->size)
        return tb_raise_argument(c, MPI_ERR_ROOT, names.call, 4, "root",
                                 "rank %d is outside %s, which has ranks 0 to %u", root, tb_comm_name(c), c->size - 1);
    struct tb_buffer data = {.base = buffer, .count = (uint64_t)count, .type = type};
    int error = c->size == 1 ? TB_OK : tb_comm_run(c, TB_OPERATION_BCAST, (uint32_t)root, &data);
    return error < 0 ? tb_raise_below(c, error, names.call) : MPI_SUCCESS;
}
