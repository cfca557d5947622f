/* Measuring blocking collectives for the planner's feedback (planner/feedback.h): which calls are measured follows from
 * counting them, so that all ranks of a communicator take part in the barriers and agreements, which are collectives of
 * their own. */
#include "mpi/agreement.h"
#include "mpi/datatype.h"
#include "mpi/op.h"

/* Everyone gets the largest of everyone's words. */
static int trial_agree(struct tb_comm *comm, struct tb_trial *trial)
{
    const struct tb_type *type = tb_type_find(MPI_UINT64_T);
    const uint64_t count = sizeof *trial / sizeof(uint64_t);
    struct tb_collective what = {.operation = TB_OPERATION_ALLREDUCE,
                                 .elements = count,
                                 .element_bytes = sizeof(uint64_t),
                                 .commutative = true,
                                 .in_place = true};
    struct tb_binding binding = {.elements = count, .element_bytes = sizeof(uint64_t), .op = tb_op_find(MPI_MAX)};
    binding.buffers[TB_SYMBOL_OUT] = (struct tb_buffer){(char *)trial, count, type};
    binding.buffers[TB_SYMBOL_WORK] = (struct tb_buffer){NULL, 0, type};
    return tb_comm_execute(comm, &what, &binding);
}

/* A barrier, the call, and perhaps the agreement. A call that fails still takes part, since the others wait. */
static int measure(struct tb_comm *comm, const struct tb_collective *what, struct tb_binding *binding,
                   const struct tb_program *program)
{
    const struct tb_buffer nothing = {.type = &tb_type_byte};
    struct tb_trial trial;
    int error = tb_comm_run(comm, TB_OPERATION_BARRIER, 0, &nothing, binding->call);
    uint64_t start = tb_clock_now_real();
    int ran = tb_program_run(comm->channel, program, binding);
    uint64_t time = ran == TB_OK && error == TB_OK ? tb_clock_now_real() - start : UINT64_MAX;
    if (tb_planner_note(comm->planner, what, time, &trial)) {
        int agreed = trial_agree(comm, &trial);
        if (agreed == TB_OK)
            agreed = tb_planner_learn(comm->planner, what, &trial);
        error = error < 0 ? error : agreed;
    }
    return ran < 0 ? ran : error;
}

int tb_comm_measure(struct tb_comm *comm, const struct tb_collective *what, struct tb_binding *binding,
                    const struct tb_program *program)
{
    int error;
    if (tb_planner_due(comm->planner, what)) {
        comm->measures = false; /* not the barrier and the agreement themselves */
        error = measure(comm, what, binding, program);
        comm->measures = true;
    } else {
        error = tb_program_run(comm->channel, program, binding);
    }
    tb_planner_release(comm->planner, program);
    return error;
}
