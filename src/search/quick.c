#include "search/quick.h"

#include <stdlib.h>
#include <string.h>

#include "search/edge_cost.h"
#include "search/ecef.h"

void tb_quick_binomial_of(struct tb_search_tree *tree, const uint32_t *nodes, uint32_t count)
{
    uint32_t last = TB_NO_NODE, step = 1;
    for (uint32_t k = tree->child[nodes[0]]; k != TB_NO_NODE; k = tree->next[k])
        last = k;
    while (step < count)
        step *= 2;
    /* Behind all: the one that is half of the rest away comes first. */
    for (uint32_t half = step / 2; half > 0; half /= 2) {
        tb_search_tree_put(tree, nodes[half], nodes[0], last);
        last = nodes[half];
    }
    for (uint32_t i = 1; i < count; i++) {
        uint32_t low = i & (0u - i); /* its parent has this bit not */
        last = TB_NO_NODE;
        for (uint32_t half = low / 2; half > 0; half /= 2)
            if (i + half < count) {
                tb_search_tree_put(tree, nodes[i + half], nodes[i], last);
                last = nodes[i + half];
            }
    }
}

int tb_quick_binomial(const struct tb_problem *problem, struct tb_search_tree *tree)
{
    uint32_t *nodes = malloc(problem->nodes * sizeof *nodes);
    if (nodes == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for %u nodes", problem->nodes);
    for (uint32_t i = 0; i < problem->nodes; i++)
        nodes[i] = (uint32_t)(((uint64_t)problem->root + i) % problem->nodes);
    tb_quick_binomial_of(tree, nodes, problem->nodes);
    free(nodes);
    return TB_OK;
}

int tb_quick_ecef(const struct tb_problem *problem, struct tb_search_tree *tree)
{
    uint32_t *points = malloc(problem->nodes * sizeof *points);
    if (points == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for %u points", problem->nodes);
    points[0] = problem->root;
    for (uint32_t i = 0, count = 1; i < problem->nodes; i++)
        if (i != problem->root)
            points[count++] = i;
    int error = tb_ecef(problem, points, problem->nodes, tree);
    free(points);
    return error;
}

int tb_cluster_list_make(struct tb_cluster_list *list, const struct tb_problem *problem)
{
    const uint32_t nodes = problem->nodes, clusters = problem->cluster_count;
    uint32_t *first = calloc((size_t)clusters + 2 + nodes, sizeof *first);
    *list = (struct tb_cluster_list){first, first + clusters + 2};
    if (first == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for the nodes of %u clusters", clusters);
    /* Counted two places further on, so that each is at its place when all nodes stand at theirs. */
    for (uint32_t i = 0; i < nodes; i++)
        first[problem->clusters[i] + 2]++;
    for (uint32_t c = 2; c < clusters + 2; c++)
        first[c] += first[c - 1];
    list->nodes[first[problem->clusters[problem->root] + 1]++] = problem->root;
    for (uint32_t i = 0; i < nodes; i++)
        if (i != problem->root)
            list->nodes[first[problem->clusters[i] + 1]++] = i;
    return TB_OK;
}

/* Clusters that have nodes, in groups of which each is told by its first: all as one group, or the clusters of each
 * site, or where there are no sites, as many groups as each has clusters. */
struct groups {
    uint32_t count;
    uint32_t *first, *points; /* as of tb_cluster_list; the points are nodes that stand for clusters */
};

static uint32_t group_of(const struct tb_problem *problem, uint32_t cluster, uint32_t count)
{
    if (count == 1)
        return 0;
    if (count == problem->site_count)
        return problem->sites[cluster];
    return (uint32_t)((uint64_t)cluster * count / problem->cluster_count);
}

static int groups_make(struct groups *groups, const struct tb_problem *problem, const struct tb_cluster_list *list)
{
    const uint32_t clusters = problem->cluster_count, own = problem->clusters[problem->root];
    uint32_t count = 1;
    if (clusters > TB_ECEF_POINTS / 2)
        while (count < TB_ECEF_POINTS && (uint64_t)count * count < clusters)
            count++;
    if (clusters > TB_ECEF_POINTS / 2 && problem->site_count > 1)
        count = problem->site_count;
    *groups = (struct groups){count, calloc((size_t)count + 2 + clusters, sizeof(uint32_t)), NULL};
    uint32_t *first = groups->first;
    if (first == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for %u clusters", clusters);
    groups->points = first + count + 2;
    for (uint32_t c = 0; c < clusters; c++)
        if (list->first[c] < list->first[c + 1])
            first[group_of(problem, c, count) + 2]++;
    for (uint32_t g = 2; g < count + 2; g++)
        first[g] += first[g - 1];
    groups->points[first[group_of(problem, own, count) + 1]++] = problem->root;
    for (uint32_t c = 0; c < clusters; c++)
        if (c != own && list->first[c] < list->first[c + 1])
            groups->points[first[group_of(problem, c, count) + 1]++] = list->nodes[list->first[c]];
    return TB_OK;
}

/* ECEF between the groups, then in each of them. */
static int groups_join(const struct tb_problem *problem, const struct groups *groups, struct tb_search_tree *tree)
{
    uint32_t *points = malloc(groups->count * sizeof *points), count = 1;
    if (points == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for %u groups of clusters", groups->count);
    points[0] = problem->root;
    for (uint32_t g = 0; g < groups->count; g++)
        if (groups->first[g] < groups->first[g + 1] && groups->points[groups->first[g]] != problem->root)
            points[count++] = groups->points[groups->first[g]];
    int error = tb_ecef(problem, points, count, tree);
    free(points);
    for (uint32_t g = 0; error == TB_OK && g < groups->count; g++)
        error = tb_ecef(problem, groups->points + groups->first[g], groups->first[g + 1] - groups->first[g], tree);
    return error;
}

int tb_quick_clusters(const struct tb_problem *problem, struct tb_search_tree *tree)
{
    struct tb_cluster_list list;
    struct groups groups = {0};
    int error = tb_cluster_list_make(&list, problem);
    if (error == TB_OK)
        error = groups_make(&groups, problem, &list);
    if (error == TB_OK)
        error = groups_join(problem, &groups, tree);
    for (uint32_t c = 0; error == TB_OK && c < problem->cluster_count; c++)
        if (list.first[c] < list.first[c + 1])
            tb_quick_binomial_of(tree, list.nodes + list.first[c], list.first[c + 1] - list.first[c]);
    free(list.first);
    free(groups.first);
    return error;
}

struct branch {
    uint64_t time;
    uint32_t node;
};

static int branches_compare(const void *a, const void *b)
{
    const struct branch *x = a, *y = b;
    if (x->time != y->time)
        return x->time > y->time ? -1 : 1;
    return x->node < y->node ? -1 : x->node > y->node;
}

/* Sorts the children of a node, whose branches are known; its own. */
static uint64_t children_sort(const struct tb_problem *problem, struct tb_search_tree *tree, uint32_t node,
                              const uint64_t *branches, struct branch *work)
{
    uint32_t count = 0;
    uint64_t start = 0, last = 0;
    for (uint32_t k = tree->child[node]; k != TB_NO_NODE; k = tree->next[k])
        work[count++] = (struct branch){branches[k], k};
    qsort(work, count, sizeof *work, branches_compare);
    tree->child[node] = TB_NO_NODE;
    for (uint32_t i = count; i-- > 0;)
        tb_search_tree_put(tree, work[i].node, node, TB_NO_NODE);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t end = start + tb_edge_arrive(problem, node, work[i].node) + work[i].time;
        last = end > last ? end : last;
        start += tb_edge_send(problem, node, work[i].node);
    }
    return start > last ? start : last;
}

/* Sorts what is behind `top`; how long that takes. */
static int behind_sort(const struct tb_problem *problem, struct tb_search_tree *tree, uint32_t top, uint64_t *time)
{
    uint32_t *list = malloc(problem->nodes * sizeof *list), count = 1;
    uint64_t *branches = malloc(problem->nodes * sizeof *branches);
    struct branch *work = malloc(problem->nodes * sizeof *work);
    int error = TB_OK;
    if (list == NULL || branches == NULL || work == NULL) {
        error = tb_error(TB_ERR_MEMORY, "no memory for the branches of %u nodes", problem->nodes);
    } else {
        list[0] = top;
        for (uint32_t i = 0; i < count; i++)
            for (uint32_t k = tree->child[list[i]]; k != TB_NO_NODE; k = tree->next[k])
                list[count++] = k;
        while (count-- > 0)
            branches[list[count]] = children_sort(problem, tree, list[count], branches, work);
        if (time != NULL)
            *time = branches[top];
    }
    free(list);
    free(branches);
    free(work);
    return error;
}

int tb_quick_sort(const struct tb_problem *problem, struct tb_search_tree *tree, uint64_t *time)
{
    return behind_sort(problem, tree, tree->root, time);
}

/* Takes everything behind nodes[0] out. */
static void inside_clear(struct tb_search_tree *tree, const uint32_t *nodes, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        tree->child[nodes[i]] = TB_NO_NODE;
        if (i > 0)
            tree->parent[nodes[i]] = tree->next[nodes[i]] = TB_NO_NODE;
    }
}

int tb_quick_inside(const struct tb_problem *problem, struct tb_search_tree *tree, const uint32_t *nodes,
                    uint32_t count)
{
    uint64_t ecef = UINT64_MAX, binomial = 0;
    int error = TB_OK;
    if (count <= TB_ECEF_POINTS) {
        error = tb_ecef(problem, nodes, count, tree);
        if (error == TB_OK)
            error = behind_sort(problem, tree, nodes[0], &ecef);
        inside_clear(tree, nodes, count);
    }
    if (error != TB_OK)
        return error;
    tb_quick_binomial_of(tree, nodes, count);
    error = behind_sort(problem, tree, nodes[0], &binomial);
    if (error != TB_OK || binomial <= ecef)
        return error;
    inside_clear(tree, nodes, count);
    error = tb_ecef(problem, nodes, count, tree);
    return error == TB_OK ? behind_sort(problem, tree, nodes[0], NULL) : error;
}

int tb_quick_lpbf(const struct tb_problem *problem, struct tb_search_tree *tree)
{
    int error = tb_quick_clusters(problem, tree);
    return error == TB_OK ? tb_quick_sort(problem, tree, NULL) : error;
}

/* Clusters with nodes in the order in which a line goes through them, each to the nearest that is left; how many. Where
 * there are too many to compare them all, as they are numbered. */
static uint32_t line_order(const struct tb_problem *problem, const struct tb_cluster_list *list, uint32_t *order)
{
    const uint32_t clusters = problem->cluster_count, own = problem->clusters[problem->root];
    uint32_t count = 0;
    for (uint32_t c = 0; c < clusters; c++)
        if (list->first[c] < list->first[c + 1])
            order[count++] = c;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t best = i;
        uint64_t nearest = UINT64_MAX;
        for (uint32_t k = i; k < count && (i == 0 || count <= TB_ECEF_POINTS); k++) {
            uint32_t from = i == 0 ? 0 : list->nodes[list->first[order[i - 1]]];
            uint64_t far = i == 0 ? order[k] != own : tb_edge_arrive(problem, from, list->nodes[list->first[order[k]]]);
            if (far < nearest) {
                nearest = far;
                best = k;
            }
        }
        uint32_t cluster = order[best];
        order[best] = order[i];
        order[i] = cluster;
    }
    return count;
}

int tb_quick_line(const struct tb_problem *problem, struct tb_search_tree *tree, uint32_t fan_out)
{
    struct tb_cluster_list list;
    uint32_t *order = malloc(((size_t)problem->cluster_count + problem->nodes) * sizeof *order), count = 0;
    int error = tb_cluster_list_make(&list, problem);
    if (error == TB_OK && order == NULL)
        error = tb_error(TB_ERR_MEMORY, "no memory for a line of %u nodes", problem->nodes);
    if (error == TB_OK) {
        uint32_t clusters = line_order(problem, &list, order), *line = order + problem->cluster_count;
        for (uint32_t c = 0; c < clusters; c++)
            for (uint32_t i = list.first[order[c]]; i < list.first[order[c] + 1]; i++)
                line[count++] = list.nodes[i];
        for (uint32_t i = 1; i < count; i++)
            tb_search_tree_put(tree, line[i], line[(i - 1) / fan_out],
                               (i - 1) % fan_out == 0 ? TB_NO_NODE : line[i - 1]);
    }
    free(order);
    free(list.first);
    return error;
}
