/* Virtual topologies: how the ranks of a communicator are arranged (MPI-5.0, chapter 8). A struct tb_topo never changes
 * once it is made; it is counted by the communicators that have it, since duplicates share it. Any thread may read. */
#ifndef TB_MPI_TOPO_H
#define TB_MPI_TOPO_H

#include "mpi/comm.h"

struct tb_topo {
    int kind; /* MPI_CART, MPI_GRAPH or MPI_DIST_GRAPH */
    uint32_t references;
    union {
        struct {
            int ndims;
            int *dims, *periods;
        } cart;
        struct {
            int nnodes, nedges;
            int *index, *edges; /* as the standard has them: index[i] is the number of edges of nodes 0 to i */
        } graph;
        struct {
            int indegree, outdegree;
            bool weighted;
            int *sources, *source_weights, *destinations, *destination_weights;
        } dist;
    };
    int storage[]; /* that the pointers point into */
};

/* A topology with `count` integers of storage, all zero; NULL: no memory. */
struct tb_topo *tb_topo_new(int kind, size_t count);
struct tb_topo *tb_topo_hold(struct tb_topo *topo); /* NULL stays NULL */
void tb_topo_release(struct tb_topo *topo);         /* NULL is allowed */

/* The rank so far along one dimension of a Cartesian topology, or MPI_PROC_NULL. */
int tb_cart_neighbour(const struct tb_topo *topo, int rank, int dimension, int64_t distance);

/* The communicator of a handle if it has a topology of this kind; otherwise raises what is wrong. The code. */
int tb_topo_find(const char *call, MPI_Comm handle, int kind, struct tb_comm **comm);
/* An intracommunicator, for the calls that arrange one anew; position 1. The code. */
int tb_topo_parent(const char *call, MPI_Comm handle, const char *name, struct tb_comm **comm);
/* The communicator of the first `nodes` ranks, in their order, with this topology, whose reference it takes (NULL: it
 * could not be made). Collective. Raises errors; the code. */
int tb_topo_arrange(const char *call, struct tb_comm *comm, struct tb_topo *topo, uint32_t nodes, MPI_Comm *newcomm);

#endif
