/* Collectives among neighbours (MPI-5.0, sections 8.6 to 8.9): each rank of a communicator with a topology exchanges
 * blocks with those that are next to it, in the order in which the topology names them.
 *
 * A pair of ranks can be neighbours several times over. So that both know which block is which, every message has an
 * edge number, the same at both ends. In a grid it is the place among the receiver's blocks: what goes out in the
 * negative direction comes in from the positive one. In graphs the k-th edge from one rank to another is the k-th in
 * the lists of both. */
#include <stdlib.h>

#include "mpi/collective.h"
#include "mpi/binding_decls.h"
#include "mpi/topo.h"

/* The neighbours of this rank, as algorithms are told about them. */
struct tb_neighbours {
    uint32_t source_count, target_count;
    uint32_t *sources, *targets;
    uint16_t *source_edges, *target_edges;
    uint32_t storage[]; /* that the pointers point into */
};

static struct tb_neighbours *neighbours_new(uint32_t sources, uint32_t targets)
{
    size_t ends = (size_t)sources + targets;
    struct tb_neighbours *n = malloc(sizeof *n + ends * (sizeof *n->sources + sizeof *n->source_edges));
    if (n == NULL)
        return NULL;
    n->source_count = sources;
    n->target_count = targets;
    n->sources = n->storage;
    n->targets = n->sources + sources;
    n->source_edges = (uint16_t *)(n->targets + targets);
    n->target_edges = n->source_edges + sources;
    return n;
}

static int neighbours_of_cart(const struct tb_comm *c, struct tb_neighbours **made)
{
    uint32_t count = 2 * (uint32_t)c->topo->cart.ndims;
    struct tb_neighbours *n = neighbours_new(count, count);
    if (n == NULL || count > UINT16_MAX) {
        free(n);
        return tb_error(TB_ERR_MEMORY, "out of memory for %u neighbours", count);
    }
    for (uint32_t i = 0; i < count; i++) {
        int found = tb_cart_neighbour(c->topo, (int)c->rank, (int)(i / 2), i % 2 == 0 ? -1 : 1);
        n->sources[i] = n->targets[i] = found == MPI_PROC_NULL ? TB_NOBODY : (uint32_t)found;
        n->source_edges[i] = (uint16_t)i;
        n->target_edges[i] = (uint16_t)(i ^ 1);
    }
    *made = n;
    return TB_OK;
}

/* One side of a graph. `seen`: zeros, one for each rank. */
static int fill_side(uint32_t *ranks, uint16_t *edges, const int *from, uint32_t count, uint32_t *seen)
{
    for (uint32_t i = 0; i < count; i++) {
        if (seen[from[i]] > UINT16_MAX)
            return tb_error(TB_ERR_LIMIT, "there are more than %d edges between this rank and rank %d", UINT16_MAX + 1,
                            from[i]);
        ranks[i] = (uint32_t)from[i];
        edges[i] = (uint16_t)seen[from[i]]++;
    }
    for (uint32_t i = 0; i < count; i++)
        seen[from[i]] = 0;
    return TB_OK;
}

static int neighbours_of_graph(const struct tb_comm *c, struct tb_neighbours **made)
{
    const struct tb_topo *topo = c->topo;
    const int *sources, *targets;
    uint32_t in, out;
    if (topo->kind == MPI_GRAPH) {
        int begin = c->rank > 0 ? topo->graph.index[c->rank - 1] : 0;
        sources = targets = topo->graph.edges + begin;
        in = out = (uint32_t)(topo->graph.index[c->rank] - begin);
    } else {
        sources = topo->dist.sources;
        targets = topo->dist.destinations;
        in = (uint32_t)topo->dist.indegree;
        out = (uint32_t)topo->dist.outdegree;
    }
    uint32_t *seen = calloc(c->size, sizeof *seen);
    struct tb_neighbours *n = seen != NULL ? neighbours_new(in, out) : NULL;
    int error = n != NULL ? fill_side(n->sources, n->source_edges, sources, in, seen)
                          : tb_error(TB_ERR_MEMORY, "out of memory for %u neighbours", in + out);
    if (error == TB_OK)
        error = fill_side(n->targets, n->target_edges, targets, out, seen);
    free(seen);
    if (error < 0)
        free(n);
    else
        *made = n;
    return error;
}

/* Begins a call: there are neighbours, and a block for each. */
static int open_call(struct tb_call *call, const struct tb_form *form, const struct tb_names *names,
                     enum tb_operation operation, MPI_Comm comm)
{
    int code = tb_call_open(call, form, names, operation, comm);
    if (code != MPI_SUCCESS)
        return code;
    struct tb_comm *c = call->comm;
    if (c->topo == NULL)
        return tb_raise_argument(c, MPI_ERR_TOPOLOGY, form->call, names->comm_at, names->comm,
                                 "%s has no topology, so there are no neighbours", tb_comm_name(c));
    int error = TB_OK;
    if (c->neighbours == NULL)
        error =
            c->topo->kind == MPI_CART ? neighbours_of_cart(c, &c->neighbours) : neighbours_of_graph(c, &c->neighbours);
    if (error < 0)
        return tb_raise_below(c, error, form->call);
    const struct tb_neighbours *n = c->neighbours;
    TB_ASSERT(n != NULL);
    call->blocks[TB_SYMBOL_IN] = n->target_count;
    call->blocks[TB_SYMBOL_OUT] = n->source_count;
    call->what.sources = n->sources;
    call->what.targets = n->targets;
    call->what.source_edges = n->source_edges;
    call->what.target_edges = n->target_edges;
    call->what.source_count = n->source_count;
    call->what.target_count = n->target_count;
    return MPI_SUCCESS;
}

/* How the arguments are called: buffer, count and datatype of one side; or arrays of them. */
#define SIDE(side, at, comm_at)                                                                                        \
    {                                                                                                                  \
        NULL, side "buf", side "count", side "type", NULL, NULL, "comm", at, at + 1, at + 2, 0, 0, comm_at             \
    }
#define SIDES(side, types, at, comm_at)                                                                                \
    {                                                                                                                  \
        NULL, side "buf", side "counts", side types, NULL, NULL, "comm", at, at + 1, at + 3, 0, 0, comm_at             \
    }

/* Whether this rank both gives and takes: only then its buffers can be in each other's way. */
static bool exchanges(const struct tb_call *call)
{
    return call->blocks[TB_SYMBOL_IN] > 0 && call->blocks[TB_SYMBOL_OUT] > 0;
}

/* Equal blocks on both sides. */
static int exchange(const struct tb_form *form, enum tb_operation operation, const void *sendbuf, MPI_Count sendcount,
                    MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
    static const struct tb_names send = SIDE("send", 1, 7), receive = SIDE("recv", 4, 7);
    struct tb_call call;
    int code = open_call(&call, form, &send, operation, comm);
    if (code == MPI_SUCCESS)
        code = tb_call_data(&call, &send, TB_SYMBOL_IN, sendbuf, sendcount, sendtype);
    if (code == MPI_SUCCESS)
        code = tb_call_data(&call, &receive, TB_SYMBOL_OUT, recvbuf, recvcount, recvtype);
    const struct tb_buffer *buffers = call.binding.buffers;
    if (code == MPI_SUCCESS && exchanges(&call))
        code = tb_call_distinct(&call, &send, &buffers[TB_SYMBOL_IN], &buffers[TB_SYMBOL_OUT]);
    return tb_call_end(&call, code);
}

int tb_mpi_Neighbor_allgather(const struct tb_form *form, const void *sendbuf, MPI_Count sendcount,
                              MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype,
                              MPI_Comm comm)
{
    return exchange(form, TB_OPERATION_NEIGHBOR_ALLGATHER, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype,
                    comm);
}

int tb_mpi_Neighbor_alltoall(const struct tb_form *form, const void *sendbuf, MPI_Count sendcount,
                             MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype,
                             MPI_Comm comm)
{
    return exchange(form, TB_OPERATION_NEIGHBOR_ALLTOALL, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype,
                    comm);
}

int tb_mpi_Neighbor_allgatherv(const struct tb_form *form, const void *sendbuf, MPI_Count sendcount,
                               MPI_Datatype sendtype, void *recvbuf, struct tb_ints recvcounts, struct tb_ints displs,
                               MPI_Datatype recvtype, MPI_Comm comm)
{
    static const struct tb_names send = SIDE("send", 1, 8), receive = SIDES("recv", "type", 4, 8);
    const struct tb_vector blocks = {recvbuf, recvcounts, displs, recvtype, NULL, false, "displs"};
    struct tb_call call;
    int code = open_call(&call, form, &send, TB_OPERATION_NEIGHBOR_ALLGATHERV, comm);
    if (code == MPI_SUCCESS)
        code = tb_call_data(&call, &send, TB_SYMBOL_IN, sendbuf, sendcount, sendtype);
    if (code == MPI_SUCCESS)
        code = tb_call_vector(&call, &receive, TB_SYMBOL_OUT, &blocks, NULL);
    for (uint32_t i = 0; code == MPI_SUCCESS && exchanges(&call) && i < call.blocks[TB_SYMBOL_OUT]; i++)
        code =
            tb_call_distinct(&call, &send, &call.binding.buffers[TB_SYMBOL_IN], &call.binding.tables[TB_SYMBOL_OUT][i]);
    return tb_call_end(&call, code);
}

/* Blocks of different sizes on both sides, often in one array: what comes in are the borders of what goes out. */
static int exchange_vectors(const struct tb_form *form, const struct tb_names *send_names,
                            const struct tb_names *receive_names, enum tb_operation operation,
                            const struct tb_vector *send, const struct tb_vector *receive, MPI_Comm comm)
{
    struct tb_call call;
    int code = open_call(&call, form, send_names, operation, comm);
    if (code == MPI_SUCCESS)
        code = tb_call_vector(&call, send_names, TB_SYMBOL_IN, send, NULL);
    if (code == MPI_SUCCESS)
        code = tb_call_vector(&call, receive_names, TB_SYMBOL_OUT, receive, NULL);
    if (code == MPI_SUCCESS && send->buffer == receive->buffer)
        code = tb_call_distinct_blocks(&call, send_names);
    return tb_call_end(&call, code);
}

int tb_mpi_Neighbor_alltoallv(const struct tb_form *form, const void *sendbuf, struct tb_ints sendcounts,
                              struct tb_ints sdispls, MPI_Datatype sendtype, void *recvbuf, struct tb_ints recvcounts,
                              struct tb_ints rdispls, MPI_Datatype recvtype, MPI_Comm comm)
{
    static const struct tb_names send_names = SIDES("send", "type", 1, 9), receive_names = SIDES("recv", "type", 5, 9);
    const struct tb_vector send = {sendbuf, sendcounts, sdispls, sendtype, NULL, false, "sdispls"};
    const struct tb_vector receive = {recvbuf, recvcounts, rdispls, recvtype, NULL, false, "rdispls"};
    return exchange_vectors(form, &send_names, &receive_names, TB_OPERATION_NEIGHBOR_ALLTOALLV, &send, &receive, comm);
}

/* Displacements are addresses in both widths of the call. */
int tb_mpi_Neighbor_alltoallw(const struct tb_form *form, const void *sendbuf, struct tb_ints sendcounts,
                              const MPI_Aint sdispls[], const MPI_Datatype sendtypes[], void *recvbuf,
                              struct tb_ints recvcounts, const MPI_Aint rdispls[], const MPI_Datatype recvtypes[],
                              MPI_Comm comm)
{
    static const struct tb_names send_names = SIDES("send", "types", 1, 9),
                                 receive_names = SIDES("recv", "types", 5, 9);
    const struct tb_vector send = {sendbuf, sendcounts, tb_ints_wide(sdispls), MPI_DATATYPE_NULL, sendtypes,
                                   true,    "sdispls"};
    const struct tb_vector receive = {recvbuf, recvcounts, tb_ints_wide(rdispls), MPI_DATATYPE_NULL, recvtypes,
                                      true,    "rdispls"};
    return exchange_vectors(form, &send_names, &receive_names, TB_OPERATION_NEIGHBOR_ALLTOALLW, &send, &receive, comm);
}
