/* Distributed graph topologies (MPI-5.0, 8.5.4): every rank knows its own neighbours. */
#include <stdlib.h>
#include <string.h>

#include "mpi/binding_decls.h"
#include "mpi/hint.h"
#include "mpi/subgroup.h"
#include "mpi/topo.h"

/* ---- making them ------------------------------------------------------------------------------------------------- */

static struct tb_topo *dist_new(int indegree, int outdegree, bool weighted)
{
    struct tb_topo *topo = tb_topo_new(MPI_DIST_GRAPH, 2 * ((size_t)indegree + (size_t)outdegree));
    if (topo == NULL)
        return NULL;
    topo->dist.indegree = indegree;
    topo->dist.outdegree = outdegree;
    topo->dist.weighted = weighted;
    topo->dist.sources = topo->storage;
    topo->dist.source_weights = topo->dist.sources + indegree;
    topo->dist.destinations = topo->dist.source_weights + indegree;
    topo->dist.destination_weights = topo->dist.destinations + outdegree;
    return topo;
}

/* A communicator of the same ranks, which are settled, with this topology (whose reference it takes; NULL: no memory)
 * and hints. `error` is what has kept this rank from the topology already. */
static int connect_all(const char *call, struct tb_comm *c, int error, struct tb_topo *topo, const struct tb_info *info,
                       MPI_Comm *newcomm)
{
    struct tb_comm_shape shape = {.procs = NULL};
    struct tb_comm *made = NULL;
    if (error == TB_OK && topo == NULL)
        error = tb_error(TB_ERR_MEMORY, "out of memory for the neighbours of rank %u", c->rank);
    if (error == TB_OK)
        error = tb_shape_copy(c, &shape);
    if (error == TB_OK)
        error = tb_comm_new(&shape, c, &made);
    error = tb_comm_agree_new(c, error, &made);
    if (error < 0) {
        tb_topo_release(topo);
        return tb_raise_below(c, error, call);
    }
    TB_ASSERT(made != NULL);
    made->topo = topo;
    if (info != NULL)
        tb_hints_take(&made->hints, info);
    *newcomm = tb_comm_handle(made);
    return MPI_SUCCESS;
}

/* One side of a rank's own neighbours: degree, ranks and weights stand at `position` and behind it. */
static int check_side(const char *call, struct tb_comm *c, int position, const char *const names[3], int degree,
                      const int *ranks, const int *weights)
{
    if (degree < 0)
        return tb_raise_argument(c, MPI_ERR_ARG, call, position, names[0], "%d is negative", degree);
    if (degree > 0 && ranks == NULL)
        return tb_raise_null(c, call, position + 1, names[1]);
    for (int i = 0; i < degree; i++)
        if ((uint32_t)ranks[i] >= c->size)
            return tb_raise_argument(c, MPI_ERR_RANK, call, position + 1, names[1],
                                     "entry %d is %d, but %s has ranks 0 to %u", i, ranks[i], tb_comm_name(c),
                                     c->size - 1);
    if (degree > 0 && (weights == NULL || weights == MPI_WEIGHTS_EMPTY))
        return tb_raise_argument(c, MPI_ERR_ARG, call, position + 2, names[2], "%s, but there are %d edges",
                                 weights == NULL ? "the pointer is null" : "it is MPI_WEIGHTS_EMPTY", degree);
    for (int i = 0; i < degree && weights != MPI_UNWEIGHTED; i++)
        if (weights[i] < 0)
            return tb_raise_argument(c, MPI_ERR_ARG, call, position + 2, names[2], "entry %d is %d, which is negative",
                                     i, weights[i]);
    return MPI_SUCCESS;
}

static void fill_side(int *ranks, int *weights, int degree, const int *from, const int *from_weights)
{
    for (int i = 0; i < degree; i++) {
        ranks[i] = from[i];
        weights[i] = from_weights != MPI_UNWEIGHTED ? from_weights[i] : 1;
    }
}

int tb_mpi_Dist_graph_create_adjacent(MPI_Comm comm_old, int indegree, const int sources[], const int *sourceweights,
                                      int outdegree, const int destinations[], const int *destweights, MPI_Info info,
                                      int reorder, MPI_Comm *comm_dist_graph)
{
    static const char call[] = "MPI_Dist_graph_create_adjacent";
    static const char *const in[] = {"indegree", "sources", "sourceweights"};
    static const char *const out[] = {"outdegree", "destinations", "destweights"};
    struct tb_comm *c;
    const struct tb_info *hints;
    int code = tb_topo_parent(call, comm_old, "comm_old", &c);
    if (code == MPI_SUCCESS)
        code = check_side(call, c, 2, in, indegree, sources, sourceweights);
    if (code == MPI_SUCCESS)
        code = check_side(call, c, 5, out, outdegree, destinations, destweights);
    if (code == MPI_SUCCESS && (sourceweights == MPI_UNWEIGHTED) != (destweights == MPI_UNWEIGHTED))
        code = tb_raise_argument(c, MPI_ERR_ARG, call, 7, "destweights", "either both or none are MPI_UNWEIGHTED");
    if (code == MPI_SUCCESS)
        code = tb_hints_check(c, call, 8, info, &hints);
    if (code != MPI_SUCCESS)
        return code;
    if (comm_dist_graph == NULL)
        return tb_raise_null(c, call, 10, "comm_dist_graph");
    int error = tb_comm_settle(c); /* before anything here can fail for itself */
    if (error < 0)
        return tb_raise_below(c, error, call);
    struct tb_topo *topo = dist_new(indegree, outdegree, sourceweights != MPI_UNWEIGHTED);
    if (topo != NULL) {
        fill_side(topo->dist.sources, topo->dist.source_weights, indegree, sources, sourceweights);
        fill_side(topo->dist.destinations, topo->dist.destination_weights, outdegree, destinations, destweights);
    }
    return connect_all(call, c, TB_OK, topo, hints, comm_dist_graph);
}

/* ---- edges that any rank may name -------------------------------------------------------------------------------- */

static int check_edges(const char *call, struct tb_comm *c, int n, const int *sources, const int *degrees,
                       const int *destinations, const int *weights, int *total)
{
    if (n < 0)
        return tb_raise_argument(c, MPI_ERR_ARG, call, 2, "n", "%d is negative", n);
    if (n > 0 && (sources == NULL || degrees == NULL))
        return tb_raise_null(c, call, sources == NULL ? 3 : 4, sources == NULL ? "sources" : "degrees");
    int64_t edges = 0;
    for (int i = 0; i < n; i++) {
        if ((uint32_t)sources[i] >= c->size)
            return tb_raise_argument(c, MPI_ERR_RANK, call, 3, "sources", "entry %d is %d, but %s has ranks 0 to %u", i,
                                     sources[i], tb_comm_name(c), c->size - 1);
        if (degrees[i] < 0)
            return tb_raise_argument(c, MPI_ERR_ARG, call, 4, "degrees", "entry %d is %d, which is negative", i,
                                     degrees[i]);
        edges += degrees[i];
    }
    if (edges > INT32_MAX)
        return tb_raise_argument(c, MPI_ERR_ARG, call, 4, "degrees", "%lld edges are too many", (long long)edges);
    static const char *const names[] = {"degrees", "destinations", "weights"};
    *total = (int)edges;
    return check_side(call, c, 4, names, *total, destinations, weights);
}

/* Half of an edge, as it is told to the rank at one of its ends. */
struct half {
    int32_t out; /* 1: the receiver is its source, 0: its destination */
    int32_t other;
    int32_t weight;
};

/* The halves that this rank has for all others, sorted by the rank that they are for. */
struct halves {
    uint32_t *counts, *firsts; /* by rank */
    struct half *halves;
};

static void halves_free(struct halves *h)
{
    free(h->counts);
    free(h->firsts);
    free(h->halves);
}

static int halves_fill(struct halves *h, uint32_t size, int n, const int *sources, const int *degrees,
                       const int *destinations, const int *weights, int total)
{
    h->counts = calloc(size, sizeof *h->counts);
    h->firsts = calloc(size, sizeof *h->firsts);
    h->halves = malloc((2 * (size_t)total + 1) * sizeof *h->halves);
    if (h->counts == NULL || h->firsts == NULL || h->halves == NULL)
        return tb_error(TB_ERR_MEMORY, "out of memory for %d edges", total);
    for (int i = 0, e = 0; i < n; i++)
        for (int k = 0; k < degrees[i]; k++, e++) {
            h->counts[sources[i]]++;
            h->counts[destinations[e]]++;
        }
    for (uint32_t rank = 1; rank < size; rank++)
        h->firsts[rank] = h->firsts[rank - 1] + h->counts[rank - 1];
    memset(h->counts, 0, size * sizeof *h->counts);
    for (int i = 0, e = 0; i < n; i++)
        for (int k = 0; k < degrees[i]; k++, e++) {
            int from = sources[i], to = destinations[e], weight = weights != MPI_UNWEIGHTED ? weights[e] : 1;
            h->halves[h->firsts[from] + h->counts[from]++] = (struct half){1, to, weight};
            h->halves[h->firsts[to] + h->counts[to]++] = (struct half){0, from, weight};
        }
    return TB_OK;
}

static int half_compare(const void *a, const void *b)
{
    const struct half *x = a, *y = b;
    if (x->out != y->out)
        return x->out - y->out;
    return x->other != y->other ? (x->other < y->other ? -1 : 1) : (x->weight > y->weight) - (x->weight < y->weight);
}

/* The topology from this rank's half edges, in an order that does not depend on who named them. */
static struct tb_topo *dist_from(struct half *halves, uint32_t count, bool weighted)
{
    int in = 0;
    qsort(halves, count, sizeof *halves, half_compare);
    while ((uint32_t)in < count && !halves[in].out)
        in++;
    int out = (int)count - in;
    struct tb_topo *topo = dist_new(in, out, weighted);
    for (int i = 0; topo != NULL && i < in; i++) {
        topo->dist.sources[i] = halves[i].other;
        topo->dist.source_weights[i] = halves[i].weight;
    }
    for (int i = 0; topo != NULL && i < out; i++) {
        topo->dist.destinations[i] = halves[in + i].other;
        topo->dist.destination_weights[i] = halves[in + i].weight;
    }
    return topo;
}

int tb_mpi_Dist_graph_create(MPI_Comm comm_old, int n, const int sources[], const int degrees[],
                             const int destinations[], const int *weights, MPI_Info info, int reorder,
                             MPI_Comm *comm_dist_graph)
{
    static const char call[] = "MPI_Dist_graph_create";
    struct tb_comm *c;
    const struct tb_info *hints;
    int total = 0;
    int code = tb_topo_parent(call, comm_old, "comm_old", &c);
    if (code == MPI_SUCCESS)
        code = check_edges(call, c, n, sources, degrees, destinations, weights, &total);
    if (code == MPI_SUCCESS)
        code = tb_hints_check(c, call, 7, info, &hints);
    if (code != MPI_SUCCESS)
        return code;
    if (comm_dist_graph == NULL)
        return tb_raise_null(c, call, 9, "comm_dist_graph");
    struct halves h = {NULL, NULL, NULL};
    struct half *mine = NULL;
    uint32_t count = 0;
    int error = tb_comm_settle(c); /* before anything here can fail for itself */
    if (error < 0)
        return tb_raise_below(c, error, call);
    error = halves_fill(&h, c->size, n, sources, degrees, destinations, weights, total);
    error = tb_comm_deliver(c, error, h.counts, h.halves, sizeof *h.halves, (void **)&mine, &count);
    struct tb_topo *topo = error == TB_OK ? dist_from(mine, count, weights != MPI_UNWEIGHTED) : NULL;
    halves_free(&h);
    free(mine);
    return connect_all(call, c, error, topo, hints, comm_dist_graph);
}

/* ---- asking them ------------------------------------------------------------------------------------------------- */

int tb_mpi_Dist_graph_neighbors_count(MPI_Comm comm, int *indegree, int *outdegree, int *weighted)
{
    static const char call[] = "MPI_Dist_graph_neighbors_count";
    struct tb_comm *c;
    int code = tb_topo_find(call, comm, MPI_DIST_GRAPH, &c);
    if (code != MPI_SUCCESS)
        return code;
    if (indegree == NULL || outdegree == NULL || weighted == NULL)
        return tb_raise_null(c, call,
                             indegree == NULL    ? 2
                             : outdegree == NULL ? 3
                                                 : 4,
                             indegree == NULL    ? "indegree"
                             : outdegree == NULL ? "outdegree"
                                                 : "weighted");
    *indegree = c->topo->dist.indegree;
    *outdegree = c->topo->dist.outdegree;
    *weighted = c->topo->dist.weighted;
    return MPI_SUCCESS;
}

/* Gives the first ones, as many as there is room for. */
static void give_side(const struct tb_topo *topo, int room, int degree, const int *from, const int *from_weights,
                      int *ranks, int *weights)
{
    size_t count = (size_t)(room < degree ? room : degree);
    if (count == 0)
        return;
    memcpy(ranks, from, count * sizeof *ranks);
    if (topo->dist.weighted && weights != MPI_UNWEIGHTED && weights != MPI_WEIGHTS_EMPTY)
        memcpy(weights, from_weights, count * sizeof *weights);
}

int tb_mpi_Dist_graph_neighbors(MPI_Comm comm, int maxindegree, int sources[], int *sourceweights, int maxoutdegree,
                                int destinations[], int *destweights)
{
    static const char call[] = "MPI_Dist_graph_neighbors";
    struct tb_comm *c;
    int code = tb_topo_find(call, comm, MPI_DIST_GRAPH, &c);
    if (code != MPI_SUCCESS)
        return code;
    const struct tb_topo *topo = c->topo;
    if (maxindegree < 0 || maxoutdegree < 0)
        return tb_raise_argument(c, MPI_ERR_ARG, call, maxindegree < 0 ? 2 : 5,
                                 maxindegree < 0 ? "maxindegree" : "maxoutdegree", "%d is negative",
                                 maxindegree < 0 ? maxindegree : maxoutdegree);
    if (maxindegree > 0 && topo->dist.indegree > 0 && sources == NULL)
        return tb_raise_null(c, call, 3, "sources");
    if (maxoutdegree > 0 && topo->dist.outdegree > 0 && destinations == NULL)
        return tb_raise_null(c, call, 6, "destinations");
    if (maxindegree > 0 && topo->dist.indegree > 0 && topo->dist.weighted && sourceweights == NULL)
        return tb_raise_null(c, call, 4, "sourceweights");
    if (maxoutdegree > 0 && topo->dist.outdegree > 0 && topo->dist.weighted && destweights == NULL)
        return tb_raise_null(c, call, 7, "destweights");
    give_side(topo, maxindegree, topo->dist.indegree, topo->dist.sources, topo->dist.source_weights, sources,
              sourceweights);
    give_side(topo, maxoutdegree, topo->dist.outdegree, topo->dist.destinations, topo->dist.destination_weights,
              destinations, destweights);
    return MPI_SUCCESS;
}
