/* Attributes of communicators (MPI-5.0, 7.7.2), with those that exist from the start (9.1.2, and tombolo.h). */
#include <limits.h>

#include "mpi/comm.h"
#include "mpi/binding_decls.h"
#include "mpi/levels.h"

int tb_mpi_Comm_set_attr(MPI_Comm comm, int comm_keyval, void *attribute_val)
{
    struct tb_comm *c = tb_comm_find(comm);
    if (c == NULL)
        return tb_raise_comm("MPI_Comm_set_attr", 1, "comm", comm);
    struct tb_bearer bearer = tb_comm_bearer(c);
    return tb_attribute_set(&bearer, "MPI_Comm_set_attr", comm_keyval, attribute_val);
}

/* What the hosts have room for, or what the user says, and never less than the processes that are known to have run
 * together: those of this world, and those who have started it. */
static int universe_size(void)
{
    const struct tb_job *job = &tb_self.job;
    uint32_t together = job->size + tb_self.starters;
    return (int)(job->book.universe > together ? job->book.universe : together);
}

/* The value of an attribute that exists from the start, or NULL. */
static int *predefined_value(int keyval)
{
    struct tb_facts *facts = &tb_self.facts;
    switch (keyval) {
    case MPI_TAG_UB:
        facts->tag_bound = INT_MAX;
        return &facts->tag_bound;
    case MPI_IO:
        facts->io = MPI_ANY_SOURCE;
        return &facts->io;
    case MPI_HOST:
        facts->host = MPI_PROC_NULL;
        return &facts->host;
    case MPI_WTIME_IS_GLOBAL:
        facts->global_time = 0;
        return &facts->global_time;
    case MPI_LASTUSEDCODE:
        facts->last_code = tb_error_last_used();
        return &facts->last_code;
    case MPI_UNIVERSE_SIZE:
        facts->universe = universe_size();
        return tb_self.job.book.universe != TB_UNIVERSE_INFINITE ? &facts->universe : NULL;
    case MPI_APPNUM:
        facts->app = (int)tb_self.job.app;
        return &facts->app;
    default:
        return NULL;
    }
}

int tb_mpi_Comm_get_attr(MPI_Comm comm, int comm_keyval, void *attribute_val, int *flag)
{
    static const char call[] = "MPI_Comm_get_attr";
    struct tb_comm *c = tb_comm_find(comm);
    if (c == NULL)
        return tb_raise_comm(call, 1, "comm", comm);
    if (comm_keyval >= MPI_TAG_UB && comm_keyval <= MPI_UNIVERSE_SIZE && attribute_val != NULL && flag != NULL) {
        int *value = predefined_value(comm_keyval);
        *flag = value != NULL;
        if (value != NULL)
            *(void **)attribute_val = value;
        return MPI_SUCCESS;
    }
    if (tb_levels_is_key(comm_keyval) && attribute_val != NULL && flag != NULL)
        return tb_levels_get(c, call, comm_keyval, attribute_val, flag);
    struct tb_bearer bearer = tb_comm_bearer(c);
    return tb_attribute_get(&bearer, call, comm_keyval, attribute_val, flag);
}

int tb_mpi_Comm_delete_attr(MPI_Comm comm, int comm_keyval)
{
    struct tb_comm *c = tb_comm_find(comm);
    if (c == NULL)
        return tb_raise_comm("MPI_Comm_delete_attr", 1, "comm", comm);
    struct tb_bearer bearer = tb_comm_bearer(c);
    return tb_attribute_delete(&bearer, "MPI_Comm_delete_attr", comm_keyval);
}
