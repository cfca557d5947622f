/* Graphs, whole and distributed: what goes in comes out, whoever named the edges. */
#include "test.h"

#define LIMIT 64

/* A ring in which rank 0 knows everyone. */
static void whole(int nodes)
{
    int index[LIMIT], edges[4 * LIMIT], count = 0, mapped = -1;
    MPI_Comm comm, dup;
    for (int i = 0; i < nodes; i++) {
        edges[count++] = (i + 1) % nodes;
        edges[count++] = (i + nodes - 1) % nodes;
        for (int k = 0; i == 0 && k < nodes; k++)
            edges[count++] = k;
        index[i] = count;
    }
    MPI_Graph_map(MPI_COMM_WORLD, nodes, index, edges, &mapped);
    CHECK(test_peer() || mapped == (test_rank < nodes ? test_rank : MPI_UNDEFINED), "rank %d is mapped to %d",
          test_rank, mapped);
    MPI_Graph_create(MPI_COMM_WORLD, nodes, index, edges, 0, &comm);
    CHECK((comm == MPI_COMM_NULL) == (test_rank >= nodes), "rank %d of %d nodes", test_rank, nodes);
    if (comm == MPI_COMM_NULL)
        return;
    MPI_Comm_dup(comm, &dup);
    MPI_Comm_free(&comm);
    int kind = -1, got_nodes = -1, got_count = -1, got_index[LIMIT], got_edges[4 * LIMIT], neighbors[LIMIT + 2];
    MPI_Topo_test(dup, &kind);
    MPI_Graphdims_get(dup, &got_nodes, &got_count);
    CHECK(kind == MPI_GRAPH && got_nodes == nodes && got_count == count, "kind %d, %d nodes, %d edges", kind, got_nodes,
          got_count);
    MPI_Graph_get(dup, LIMIT, 4 * LIMIT, got_index, got_edges);
    CHECK(memcmp(got_index, index, sizeof(int) * (size_t)nodes) == 0, "another index of %d nodes", nodes);
    CHECK(memcmp(got_edges, edges, sizeof(int) * (size_t)count) == 0, "other edges of %d nodes", nodes);
    for (int i = 0; i < nodes; i++) {
        int first = i > 0 ? index[i - 1] : 0, n = -1;
        MPI_Graph_neighbors_count(dup, i, &n);
        CHECK_EQUAL(n, index[i] - first);
        MPI_Graph_neighbors(dup, i, n, neighbors);
        CHECK(memcmp(neighbors, edges + first, sizeof(int) * (size_t)n) == 0, "other neighbours of %d", i);
    }
    MPI_Comm_set_errhandler(dup, MPI_ERRORS_RETURN);
    CHECK_CLASS(MPI_Graph_neighbors_count(dup, nodes, &kind), MPI_ERR_RANK);
    CHECK_CLASS(MPI_Cartdim_get(dup, &kind), MPI_ERR_TOPOLOGY);
    edges[0] = nodes;
    if (!test_peer())
        CHECK_CLASS(MPI_Graph_create(dup, nodes, index, edges, 0, &comm), MPI_ERR_ARG);
    CHECK_CLASS(MPI_Graph_create(dup, nodes + 1, index, edges, 0, &comm), MPI_ERR_ARG);
    MPI_Barrier(dup);
    MPI_Comm_free(&dup);
}

/* The edges of this test: from i to each of (i * k + 1) for k up to i % 4, so that some have none, some go to the rank
 * itself, and some are there several times. The weight says which. */
static int degree(int i)
{
    return i % 4;
}

static int target(int i, int k)
{
    return (i * k + 1) % test_size;
}

static int compare_pairs(const void *a, const void *b)
{
    return memcmp(a, b, 2 * sizeof(int));
}

/* Neighbours and weights, as pairs in any order. */
static void expect_side(const int *ranks, const int *weights, int n, int (*expected)[2], int count, const char *what)
{
    int got[LIMIT * 4][2];
    CHECK(n == count, "%d %s instead of %d", n, what, count);
    for (int i = 0; i < n && i < LIMIT * 4; i++) {
        got[i][0] = ranks[i];
        got[i][1] = weights != NULL ? weights[i] : 0;
    }
    qsort(got, (size_t)n, sizeof got[0], compare_pairs);
    qsort(expected, (size_t)count, sizeof expected[0], compare_pairs);
    for (int i = 0; i < n && i < count; i++)
        CHECK(got[i][0] == expected[i][0] && got[i][1] == expected[i][1], "%d (%d) instead of %d (%d) among %s",
              got[i][0], got[i][1], expected[i][0], expected[i][1], what);
}

static void check_neighbors(MPI_Comm comm, bool weighted)
{
    int in[4 * LIMIT][2], out[4][2], in_count = 0, out_count = 0;
    for (int i = 0; i < test_size; i++)
        for (int k = 0; k < degree(i); k++) {
            int weight = weighted ? 100 * i + k : 0;
            if (target(i, k) == test_rank) {
                in[in_count][0] = i;
                in[in_count++][1] = weight;
            }
            if (i == test_rank) {
                out[out_count][0] = target(i, k);
                out[out_count++][1] = weight;
            }
        }
    int kind = -1, n_in = -1, n_out = -1, has_weights = -1;
    int sources[4 * LIMIT], source_weights[4 * LIMIT], destinations[4 * LIMIT], weights[4 * LIMIT];
    MPI_Topo_test(comm, &kind);
    MPI_Dist_graph_neighbors_count(comm, &n_in, &n_out, &has_weights);
    CHECK(kind == MPI_DIST_GRAPH && !has_weights == !weighted, "kind %d, weighted %d", kind, has_weights);
    MPI_Dist_graph_neighbors(comm, 4 * LIMIT, sources, weighted ? source_weights : MPI_UNWEIGHTED, 4 * LIMIT,
                             destinations, weighted ? weights : MPI_UNWEIGHTED);
    expect_side(sources, weighted ? source_weights : NULL, n_in, in, in_count, "sources");
    expect_side(destinations, weighted ? weights : NULL, n_out, out, out_count, "destinations");
}

/* Rank `teller` names all edges, or (-1) everyone those of the rank after it, one by one. */
static void distributed(int teller, bool weighted)
{
    int sources[4 * LIMIT], degrees[4 * LIMIT], destinations[4 * LIMIT], weights[4 * LIMIT], n = 0;
    MPI_Comm comm, dup;
    for (int i = 0; i < test_size; i++)
        for (int k = 0; k < degree(i); k++) {
            if (teller >= 0 ? teller != test_rank : i != test_next())
                continue;
            sources[n] = i;
            degrees[n] = 1;
            destinations[n] = target(i, k);
            weights[n++] = 100 * i + k;
        }
    const int *given = !weighted ? MPI_UNWEIGHTED : n == 0 ? MPI_WEIGHTS_EMPTY : weights;
    MPI_Dist_graph_create(MPI_COMM_WORLD, n, sources, degrees, destinations, given, MPI_INFO_NULL, 0, &comm);
    check_neighbors(comm, weighted);
    MPI_Comm_dup(comm, &dup);
    MPI_Comm_free(&comm);
    check_neighbors(dup, weighted);
    MPI_Comm_free(&dup);
}

/* As given, in the same order. */
static void adjacent(bool weighted)
{
    int sources[4 * LIMIT] = {0}, in_weights[4 * LIMIT], destinations[4] = {0}, out_weights[4] = {0}, n_in = 0,
                    n_out = 0;
    int got[4 * LIMIT], got_weights[4 * LIMIT], got_out[4], got_out_weights[4];
    MPI_Comm comm;
    for (int i = test_size - 1; i >= 0; i--)
        for (int k = 0; k < degree(i); k++)
            if (target(i, k) == test_rank) {
                sources[n_in] = i;
                in_weights[n_in++] = 100 * i + k;
            }
    for (; n_out < degree(test_rank); n_out++) {
        destinations[n_out] = target(test_rank, n_out);
        out_weights[n_out] = 100 * test_rank + n_out;
    }
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, n_in, sources,
                                   !weighted   ? MPI_UNWEIGHTED
                                   : n_in == 0 ? MPI_WEIGHTS_EMPTY
                                               : in_weights,
                                   n_out, destinations,
                                   !weighted    ? MPI_UNWEIGHTED
                                   : n_out == 0 ? MPI_WEIGHTS_EMPTY
                                                : out_weights,
                                   MPI_INFO_NULL, 0, &comm);
    check_neighbors(comm, weighted);
    MPI_Dist_graph_neighbors(comm, n_in, got, weighted ? got_weights : MPI_UNWEIGHTED, n_out, got_out,
                             weighted ? got_out_weights : MPI_UNWEIGHTED);
    for (int i = 0; i < n_in; i++)
        CHECK(got[i] == sources[i] && (!weighted || got_weights[i] == in_weights[i]), "source %d", i);
    for (int i = 0; i < n_out; i++)
        CHECK(got_out[i] == destinations[i] && (!weighted || got_out_weights[i] == out_weights[i]), "destination %d",
              i);
    MPI_Comm_free(&comm);
}

static void wrong(void)
{
    MPI_Comm world, comm;
    int outside = test_size, here = 0, one = 1, negative = -1;
    MPI_Comm_dup(MPI_COMM_WORLD, &world);
    MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
    CHECK_CLASS(MPI_Dist_graph_neighbors_count(world, &one, &here, &outside), MPI_ERR_TOPOLOGY);
    if (!test_peer()) {
        CHECK_CLASS(MPI_Dist_graph_create(world, 1, &outside, &one, &here, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm),
                    MPI_ERR_RANK);
        CHECK_CLASS(MPI_Dist_graph_create(world, 1, &here, &one, &outside, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm),
                    MPI_ERR_RANK);
        CHECK_CLASS(MPI_Dist_graph_create(world, 1, &here, &negative, &here, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm),
                    MPI_ERR_ARG);
        CHECK_CLASS(
            MPI_Dist_graph_create_adjacent(world, 1, &here, &one, 1, &here, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm),
            MPI_ERR_ARG);
    }
    MPI_Comm_free(&world);
}

int main(int argc, char **argv)
{
    test_begin(&argc, &argv);
    for (int nodes = 1; nodes <= test_size; nodes += test_size > 8 ? 5 : 1)
        whole(nodes);
    for (int weighted = 0; weighted < 2; weighted++) {
        distributed(-1, weighted);
        distributed(0, weighted);
        distributed(test_size - 1, weighted);
        adjacent(weighted);
    }
    wrong();
    return test_end();
}
