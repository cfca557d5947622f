#include "mpi/multicast_print.h"

#include "mpi/collective.h"
#include "mpi/op.h"

#include <stdio.h>

/* Figures of a rank. */
enum { SENT, USED, EARLY, LATE, REPAIRED, REJECTED, CONTROL, SKEW, HEARERS, FIGURES };

static int figures_add(uint64_t n[FIGURES], const char *call)
{
    const struct tb_type *type = tb_type_find(MPI_UINT64_T);
    struct tb_collective what = {.operation = TB_OPERATION_ALLREDUCE,
                                 .elements = FIGURES,
                                 .element_bytes = sizeof n[0],
                                 .commutative = true,
                                 .in_place = true};
    struct tb_binding binding = {
        .elements = FIGURES, .element_bytes = sizeof n[0], .op = tb_op_find(MPI_SUM), .call = call};
    binding.buffers[TB_SYMBOL_OUT] = (struct tb_buffer){n, FIGURES, type};
    binding.buffers[TB_SYMBOL_WORK] = (struct tb_buffer){NULL, 0, type};
    return tb_self.world->size > 1 ? tb_comm_execute(tb_self.world, &what, &binding) : TB_OK;
}

void tb_multicast_print(const char *call)
{
    struct tb_counters c;
    if (!tb_param.mcast_statistics)
        return;
    tb_engine_count(tb_self.engine, &c);
    uint64_t n[FIGURES] = {
        [SENT] = c.multicast_sent,       [USED] = c.multicast_used,         [EARLY] = c.multicast_early,
        [LATE] = c.multicast_late,       [REPAIRED] = c.multicast_repaired, [REJECTED] = c.multicast_rejected,
        [CONTROL] = c.multicast_control, [SKEW] = c.multicast_skew,         [HEARERS] = c.multicast_used > 0};
    if (figures_add(n, call) != TB_OK || tb_self.job.self.index != 0)
        return;
    fprintf(stderr,
            "tombolo: multicast: %llu datagrams sent, %llu used, %llu early, %llu late, %llu repaired, %llu rejected; "
            "%llu bytes sent otherwise; mean skew %.3f ms\n",
            (unsigned long long)n[SENT], (unsigned long long)n[USED], (unsigned long long)n[EARLY],
            (unsigned long long)n[LATE], (unsigned long long)n[REPAIRED], (unsigned long long)n[REJECTED],
            (unsigned long long)n[CONTROL], n[HEARERS] > 0 ? (double)n[SKEW] / (double)n[HEARERS] / 1e6 : 0);
}
