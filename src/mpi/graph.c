/* Graph topologies (MPI-5.0, 8.5.3): every rank knows the whole graph. */
#include <stdlib.h>
#include <string.h>

#include "mpi/binding_decls.h"
#include "mpi/subgroup.h"
#include "mpi/topo.h"

static int check_graph(const char *call, struct tb_comm *c, int nnodes, const int *index, const int *edges)
{
    if (nnodes < 0 || (uint32_t)nnodes > c->size)
        return tb_raise_argument(c, MPI_ERR_ARG, call, 2, "nnodes", "%d nodes, but %s has %u ranks", nnodes,
                                 tb_comm_name(c), c->size);
    if (nnodes > 0 && index == NULL)
        return tb_raise_null(c, call, 3, "indx");
    int before = 0;
    for (int i = 0; i < nnodes; i++) {
        if (index[i] < before)
            return tb_raise_argument(c, MPI_ERR_ARG, call, 3, "indx", "entry %d is %d, but the numbers cannot fall", i,
                                     index[i]);
        before = index[i];
    }
    if (before > 0 && edges == NULL)
        return tb_raise_null(c, call, 4, "edges");
    for (int i = 0; i < before; i++)
        if (edges[i] < 0 || edges[i] >= nnodes)
            return tb_raise_argument(c, MPI_ERR_ARG, call, 4, "edges", "entry %d is %d, which is none of %d nodes", i,
                                     edges[i], nnodes);
    return MPI_SUCCESS;
}

static struct tb_topo *graph_new(int nnodes, const int *index, const int *edges)
{
    size_t nodes = (size_t)nnodes, nedges = nnodes > 0 ? (size_t)index[nnodes - 1] : 0;
    struct tb_topo *topo = tb_topo_new(MPI_GRAPH, nodes + nedges);
    if (topo == NULL)
        return NULL;
    topo->graph.nnodes = nnodes;
    topo->graph.nedges = (int)nedges;
    topo->graph.index = topo->storage;
    topo->graph.edges = topo->storage + nodes;
    if (nodes > 0)
        memcpy(topo->graph.index, index, nodes * sizeof *index);
    if (nedges > 0)
        memcpy(topo->graph.edges, edges, nedges * sizeof *edges);
    return topo;
}

int tb_mpi_Graph_create(MPI_Comm comm_old, int nnodes, const int indx[], const int edges[], int reorder,
                        MPI_Comm *comm_graph)
{
    static const char call[] = "MPI_Graph_create";
    struct tb_comm *c;
    int code = tb_topo_parent(call, comm_old, "comm_old", &c);
    if (code == MPI_SUCCESS)
        code = check_graph(call, c, nnodes, indx, edges);
    if (code != MPI_SUCCESS)
        return code;
    if (comm_graph == NULL)
        return tb_raise_null(c, call, 6, "comm_graph");
    return tb_topo_arrange(call, c, graph_new(nnodes, indx, edges), (uint32_t)nnodes, comm_graph);
}

/* Ranks are not reordered, so each goes where it is. */
int tb_mpi_Graph_map(MPI_Comm comm, int nnodes, const int indx[], const int edges[], int *newrank)
{
    static const char call[] = "MPI_Graph_map";
    struct tb_comm *c;
    int code = tb_topo_parent(call, comm, "comm", &c);
    if (code == MPI_SUCCESS)
        code = check_graph(call, c, nnodes, indx, edges);
    if (code != MPI_SUCCESS)
        return code;
    if (newrank == NULL)
        return tb_raise_null(c, call, 5, "newrank");
    *newrank = c->rank < (uint32_t)nnodes ? (int)c->rank : MPI_UNDEFINED;
    return MPI_SUCCESS;
}

int tb_mpi_Graphdims_get(MPI_Comm comm, int *nnodes, int *nedges)
{
    static const char call[] = "MPI_Graphdims_get";
    struct tb_comm *c;
    int code = tb_topo_find(call, comm, MPI_GRAPH, &c);
    if (code != MPI_SUCCESS)
        return code;
    if (nnodes == NULL || nedges == NULL)
        return tb_raise_null(c, call, nnodes == NULL ? 2 : 3, nnodes == NULL ? "nnodes" : "nedges");
    *nnodes = c->topo->graph.nnodes;
    *nedges = c->topo->graph.nedges;
    return MPI_SUCCESS;
}

int tb_mpi_Graph_get(MPI_Comm comm, int maxindex, int maxedges, int indx[], int edges[])
{
    static const char call[] = "MPI_Graph_get";
    struct tb_comm *c;
    int code = tb_topo_find(call, comm, MPI_GRAPH, &c);
    if (code != MPI_SUCCESS)
        return code;
    const struct tb_topo *topo = c->topo;
    if (maxindex < topo->graph.nnodes)
        return tb_raise_argument(c, MPI_ERR_ARG, call, 2, "maxindex", "there are %d nodes, so %d is too few",
                                 topo->graph.nnodes, maxindex);
    if (maxedges < topo->graph.nedges)
        return tb_raise_argument(c, MPI_ERR_ARG, call, 3, "maxedges", "there are %d edges, so %d is too few",
                                 topo->graph.nedges, maxedges);
    if (indx == NULL || (edges == NULL && topo->graph.nedges > 0))
        return tb_raise_null(c, call, indx == NULL ? 4 : 5, indx == NULL ? "indx" : "edges");
    memcpy(indx, topo->graph.index, (size_t)topo->graph.nnodes * sizeof *indx);
    if (topo->graph.nedges > 0)
        memcpy(edges, topo->graph.edges, (size_t)topo->graph.nedges * sizeof *edges);
    return MPI_SUCCESS;
}

/* The edges of a node: how many, and where they begin. */
static int find_node(const char *call, MPI_Comm comm, int rank, struct tb_comm **c, int *count, const int **first)
{
    int code = tb_topo_find(call, comm, MPI_GRAPH, c);
    if (code != MPI_SUCCESS)
        return code;
    const struct tb_topo *topo = (*c)->topo;
    if (rank < 0 || rank >= topo->graph.nnodes)
        return tb_raise_argument(*c, MPI_ERR_RANK, call, 2, "rank", "rank %d is none of the graph's %d nodes", rank,
                                 topo->graph.nnodes);
    int begin = rank > 0 ? topo->graph.index[rank - 1] : 0;
    *count = topo->graph.index[rank] - begin;
    *first = topo->graph.edges + begin;
    return MPI_SUCCESS;
}

int tb_mpi_Graph_neighbors_count(MPI_Comm comm, int rank, int *nneighbors)
{
    static const char call[] = "MPI_Graph_neighbors_count";
    struct tb_comm *c;
    const int *first = NULL;
    int count = 0;
    int code = find_node(call, comm, rank, &c, &count, &first);
    if (code != MPI_SUCCESS)
        return code;
    if (nneighbors == NULL)
        return tb_raise_null(c, call, 3, "nneighbors");
    *nneighbors = count;
    return MPI_SUCCESS;
}

int tb_mpi_Graph_neighbors(MPI_Comm comm, int rank, int maxneighbors, int neighbors[])
{
    static const char call[] = "MPI_Graph_neighbors";
    struct tb_comm *c;
    const int *first = NULL;
    int count = 0;
    int code = find_node(call, comm, rank, &c, &count, &first);
    if (code != MPI_SUCCESS)
        return code;
    if (maxneighbors < count)
        return tb_raise_argument(c, MPI_ERR_ARG, call, 3, "maxneighbors", "node %d has %d neighbours, so %d is too few",
                                 rank, count, maxneighbors);
    if (count > 0 && neighbors == NULL)
        return tb_raise_null(c, call, 4, "neighbors");
    if (count > 0)
        memcpy(neighbors, first, (size_t)count * sizeof *neighbors);
    return MPI_SUCCESS;
}
