#include "mpi/universe.h"

#define NOBODY 0xffffffu /* makes up their contexts: no process of a job has this index */

_Static_assert(NOBODY >= TB_JOB_RANKS_LIMIT, "somebody is nobody");

/* The number of processes that were ever started. */
static uint32_t processes(void)
{
    return tb_self.job.source == TB_JOB_ALONE ? 1 : tb_worlds_processes(&tb_self.job.book);
}

int tb_universe_open(uint32_t number, struct tb_comm **made)
{
    const struct tb_comm_shape shape = {.size = processes(), .rank = tb_self.job.self.index, .grows = true};
    if (number >= TB_CONTEXT_LIMIT)
        return tb_error(TB_ERR_LIMIT, "the job has had %u groups, and there are no inboxes for more", number);
    int error = tb_comm_new(&shape, tb_self.everyone, made);
    if (error == TB_OK)
        tb_comm_enter(*made, tb_context_make(NOBODY, number, TB_PLANE_POINT));
    return error;
}

/* Others may look at it at the same time, or do the same: it never has fewer. */
static void lift(uint32_t *number, uint32_t to)
{
    uint32_t now = __atomic_load_n(number, __ATOMIC_RELAXED);
    while (now < to && !__atomic_compare_exchange_n(number, &now, to, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

int tb_universe_widen(struct tb_comm *comm)
{
    uint32_t size = processes();
    if (size <= __atomic_load_n(&comm->size, __ATOMIC_RELAXED))
        return TB_OK;
    int error = tb_engine_reach(tb_self.engine, size);
    if (error == TB_OK) {
        lift(&comm->peers, size);
        lift(&comm->size, size);
    }
    return error;
}

int tb_universe_own(struct tb_comm **comm)
{
    *comm = tb_self.universe;
    return tb_universe_widen(*comm);
}
