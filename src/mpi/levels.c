#include "mpi/levels.h"

#include "mpi/plan.h"

#include <stdlib.h>

_Static_assert(TOMBOLO_LEVEL_WORLD == TB_LEVEL_WORLD && TOMBOLO_LEVEL_SITE == TB_LEVEL_SITE &&
                   TOMBOLO_LEVEL_CLUSTER == TB_LEVEL_CLUSTER && TOMBOLO_LEVEL_HOST == TB_LEVEL_HOST &&
                   TOMBOLO_LEVEL_PACKAGE == TB_LEVEL_PACKAGE && TOMBOLO_LEVEL_NUMA == TB_LEVEL_NUMA &&
                   TOMBOLO_LEVEL_CACHE == TB_LEVEL_CACHE && TOMBOLO_LEVEL_CORE == TB_LEVEL_CORE,
               "programs are given the numbers of levels as they are");

static int levels_open(struct tb_comm *comm)
{
    struct tb_shape_levels *levels, *none = NULL;
    if (__atomic_load_n(&comm->levels, __ATOMIC_ACQUIRE) != NULL)
        return TB_OK;
    int error = tb_comm_open_shape(comm);
    if (error == TB_OK)
        error = tb_shape_levels_make(&levels, comm->shape);
    /* Another thread may have been faster. */
    if (error == TB_OK &&
        !__atomic_compare_exchange_n(&comm->levels, &none, levels, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        free(levels);
    return error;
}

int tb_levels_get(struct tb_comm *comm, const char *call, int keyval, void *attribute_val, int *flag)
{
    struct tb_comm *local = comm->inter ? comm->local : comm;
    int error = levels_open(local);
    if (error < 0)
        return tb_raise_below(comm, error, call);
    const struct tb_shape_levels *levels = local->levels;
    *(void **)attribute_val = keyval == TOMBOLO_TOPOLOGY_DEPTHS   ? (void *)levels->depths
                              : keyval == TOMBOLO_TOPOLOGY_COLORS ? (void *)levels->colors
                                                                  : (void *)levels->kinds;
    *flag = 1;
    return MPI_SUCCESS;
}
