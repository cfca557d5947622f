/* What the kinds of topologies share. */
#include "mpi/topo.h"

#include <stdlib.h>

#include "mpi/binding_decls.h"
#include "mpi/subgroup.h"

struct tb_topo *tb_topo_new(int kind, size_t count)
{
    struct tb_topo *topo = calloc(1, sizeof *topo + count * sizeof topo->storage[0]);
    if (topo == NULL)
        return NULL;
    topo->kind = kind;
    topo->references = 1;
    return topo;
}

struct tb_topo *tb_topo_hold(struct tb_topo *topo)
{
    if (topo != NULL)
        __atomic_add_fetch(&topo->references, 1, __ATOMIC_RELAXED);
    return topo;
}

void tb_topo_release(struct tb_topo *topo)
{
    if (topo != NULL && __atomic_sub_fetch(&topo->references, 1, __ATOMIC_ACQ_REL) == 0)
        free(topo);
}

int tb_topo_find(const char *call, MPI_Comm handle, int kind, struct tb_comm **comm)
{
    struct tb_comm *c = tb_comm_find(handle);
    if (c == NULL)
        return tb_raise_comm(call, 1, "comm", handle);
    *comm = c;
    if (c->topo != NULL && c->topo->kind == kind)
        return MPI_SUCCESS;
    const char *wanted = kind == MPI_CART ? "Cartesian" : kind == MPI_GRAPH ? "graph" : "distributed graph";
    return tb_raise_argument(c, MPI_ERR_TOPOLOGY, call, 1, "comm", "%s has no %s topology", tb_comm_name(c), wanted);
}

int tb_topo_parent(const char *call, MPI_Comm handle, const char *name, struct tb_comm **comm)
{
    struct tb_comm *c = tb_comm_find(handle);
    if (c == NULL)
        return tb_raise_comm(call, 1, name, handle);
    *comm = c;
    if (c->inter)
        return tb_raise_argument(c, MPI_ERR_COMM, call, 1, name, "%s is an inter-communicator, which has no topology",
                                 tb_comm_name(c));
    return MPI_SUCCESS;
}

int tb_topo_arrange(const char *call, struct tb_comm *c, struct tb_topo *topo, uint32_t nodes, MPI_Comm *newcomm)
{
    *newcomm = MPI_COMM_NULL;
    int error = topo == NULL ? tb_error(TB_ERR_MEMORY, "out of memory for a topology of %u ranks", nodes) : TB_OK;
    struct tb_comm *made = NULL;
    if (c->rank < nodes)
        error = tb_subgroup_first(c, error, nodes, tb_topic_match(TB_TOPIC_CREATE, 0), &made);
    if (made == NULL) {
        tb_topo_release(topo);
        return error < 0 ? tb_raise_below(c, error, call) : MPI_SUCCESS;
    }
    made->topo = topo;
    *newcomm = tb_comm_handle(made);
    return MPI_SUCCESS;
}

int tb_mpi_Topo_test(MPI_Comm comm, int *status)
{
    struct tb_comm *c = tb_comm_find(comm);
    if (c == NULL)
        return tb_raise_comm("MPI_Topo_test", 1, "comm", comm);
    if (status == NULL)
        return tb_raise_null(c, "MPI_Topo_test", 2, "status");
    *status = c->topo != NULL ? c->topo->kind : MPI_UNDEFINED;
    return MPI_SUCCESS;
}
