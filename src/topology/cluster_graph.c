#include "topology/cluster_graph.h"

#include <stdlib.h>

/* Which virtual clusters each class is in. */
static int find_homes(struct tb_cluster_graph *graph)
{
    const struct tb_clique_list *list = &graph->clusters;
    uint32_t n = graph->connectivity->classes.class_count, total = list->first[list->count];
    graph->first = calloc(n + 2u, sizeof *graph->first);
    graph->homes = calloc(total + 1u, sizeof *graph->homes);
    if (graph->first == NULL || graph->homes == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for %u virtual clusters", list->count);
    for (uint32_t i = 0; i < total; i++)
        graph->first[list->members[i] + 2]++;
    for (uint32_t i = 0; i < n; i++)
        graph->first[i + 1] += graph->first[i];
    for (uint32_t c = 0; c < list->count; c++) {
        for (uint32_t i = list->first[c]; i < list->first[c + 1]; i++)
            graph->homes[graph->first[list->members[i] + 1]++] = c;
    }
    return TB_OK;
}

int tb_cluster_graph_open(struct tb_cluster_graph *graph, const struct tb_connectivity *connectivity)
{
    uint32_t n = connectivity->classes.class_count;
    size_t words = tb_clique_words(n);
    uint64_t *neighbours = calloc(n * words + 1, sizeof *neighbours);
    *graph = (struct tb_cluster_graph){.connectivity = connectivity};
    if (neighbours == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for who reaches whom among %u kinds of hosts", n);
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t j = 0; j < n; j++) {
            if (i != j && tb_connectivity_tie(connectivity, i, j) == TB_TIE_DIRECT)
                neighbours[i * words + j / 64] |= UINT64_C(1) << (j % 64);
        }
    }
    int rc = tb_clique_list_open(&graph->clusters, n, neighbours, TB_CLUSTER_GRAPH_LIMIT);
    free(neighbours);
    if (rc == TB_OK)
        rc = find_homes(graph);
    if (rc != TB_OK)
        tb_cluster_graph_close(graph);
    return rc;
}

void tb_cluster_graph_close(struct tb_cluster_graph *graph)
{
    tb_clique_list_close(&graph->clusters);
    free(graph->first);
    free(graph->homes);
    *graph = (struct tb_cluster_graph){0};
}

bool tb_cluster_graph_has(const struct tb_cluster_graph *graph, uint32_t cluster, uint32_t class)
{
    uint32_t low = graph->first[class], high = graph->first[class + 1];
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (graph->homes[middle] < cluster)
            low = middle + 1;
        else
            high = middle;
    }
    return low < graph->first[class + 1] && graph->homes[low] == cluster;
}

uint32_t tb_cluster_graph_size(const struct tb_cluster_graph *graph, uint32_t cluster)
{
    const struct tb_clique_list *list = &graph->clusters;
    uint32_t sum = 0;
    for (uint32_t i = list->first[cluster]; i < list->first[cluster + 1]; i++)
        sum += tb_host_classes_size(&graph->connectivity->classes, list->members[i]);
    return sum;
}

uint32_t tb_cluster_graph_shared(const struct tb_cluster_graph *graph, uint32_t a, uint32_t b, uint32_t room,
                                 uint32_t *classes)
{
    const struct tb_clique_list *list = &graph->clusters;
    uint32_t count = 0, i = list->first[a], j = list->first[b];
    while (i < list->first[a + 1] && j < list->first[b + 1]) {
        uint32_t x = list->members[i], y = list->members[j];
        i += x <= y;
        j += y <= x;
        if (x != y)
            continue;
        if (count < room)
            classes[count] = x;
        count++;
    }
    return count;
}

uint32_t tb_cluster_graph_around(const struct tb_cluster_graph *graph, uint32_t a, uint32_t b)
{
    for (uint32_t i = graph->first[a]; i < graph->first[a + 1]; i++) {
        if (tb_cluster_graph_has(graph, graph->homes[i], b))
            return graph->homes[i];
    }
    return TB_GRID_NONE;
}

/* The class that is most at home there. */
static uint32_t typical(const struct tb_cluster_graph *graph, uint32_t cluster)
{
    const struct tb_clique_list *list = &graph->clusters;
    uint32_t best = list->members[list->first[cluster]];
    for (uint32_t i = list->first[cluster]; i < list->first[cluster + 1]; i++) {
        uint32_t class = list->members[i];
        if (graph->first[class + 1] - graph->first[class] < graph->first[best + 1] - graph->first[best])
            best = class;
    }
    return best;
}

uint32_t tb_cluster_graph_next(const struct tb_cluster_graph *graph, const struct tb_routes *routes, uint32_t from,
                               uint32_t to)
{
    uint32_t at = typical(graph, from), end = typical(graph, to);
    if (from == to)
        return to;
    while (at != end) {
        const struct tb_route *route = tb_routes_between(routes, at, end);
        if (route->cost == TB_ROUTE_COST_NONE)
            return TB_GRID_NONE;
        uint32_t next = routes->nexts[route->first];
        if (tb_cluster_graph_has(graph, to, at) && tb_cluster_graph_has(graph, to, next))
            return to;
        if (!tb_cluster_graph_has(graph, from, next)) {
            uint32_t around = tb_cluster_graph_around(graph, at, next);
            /* No virtual cluster is around a connection that one end only can open. */
            return around != TB_GRID_NONE                  ? around
                   : tb_cluster_graph_has(graph, to, next) ? to
                                                           : graph->homes[graph->first[next]];
        }
        at = next;
    }
    return to;
}
