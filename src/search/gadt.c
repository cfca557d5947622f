#include "search/gadt.h"

#include <stdlib.h>

#include "search/genetic.h"
#include "search/quick.h"

#define PRIORITIES 1000001u
#define PENALTY    1000u /* times the longest possible time, for a broken tree; once more for each loop and lost point */

/* Points of the search: nodes, or clusters that have nodes; the root is point 0. */
struct gadt {
    struct tb_search_run *run;
    uint32_t count;
    uint32_t *nodes;             /* of each point: itself, or which stands for the cluster */
    struct tb_search_tree tree;  /* of points */
    struct tb_search_tree whole; /* of nodes */
    uint64_t longest;
    uint32_t *seen;                      /* of points: in which walk it was met first */
    struct tb_cluster_list list;         /* of clusters */
    const struct tb_search_tree *inside; /* trees inside all clusters, with the root of each in front */
    int (*grow)(struct gadt *g, const uint32_t *priorities); /* makes the whole tree */
};

/* Puts a point into the list of its parent, by priority and number. */
static void point_put(struct gadt *g, const uint32_t *priorities, uint32_t point, uint32_t parent)
{
    uint32_t before = TB_NO_NODE, at = g->tree.child[parent];
    while (at != TB_NO_NODE && priorities[at - 1] <= priorities[point - 1]) {
        before = at;
        at = g->tree.next[at];
    }
    tb_search_tree_put(&g->tree, point, parent, before);
}

/* Points that the root does not lead to, and loops among them: the thesis's node detection, which counts both. */
static void lost_count(struct gadt *g, uint64_t *lost, uint64_t *loops)
{
    *lost = *loops = 0;
    for (uint32_t i = 0; i < g->count; i++)
        g->seen[i] = 0;
    g->seen[0] = UINT32_MAX;
    for (uint32_t i = 1; i < g->count; i++) {
        uint32_t at = i;
        for (; g->seen[at] == 0; at = g->tree.parent[at])
            g->seen[at] = i;
        bool reached = g->seen[at] == UINT32_MAX;
        if (!reached && g->seen[at] == i) /* this walk closed it */
            ++*loops;
        for (at = i; reached && g->seen[at] == i; at = g->tree.parent[at])
            g->seen[at] = UINT32_MAX;
    }
    for (uint32_t i = 1; i < g->count; i++)
        *lost += g->seen[i] != UINT32_MAX;
}

/* A string is the parents of all points but the root, then their priorities. */
static int string_value(void *context, const uint32_t *genes, uint64_t *value)
{
    struct gadt *g = context;
    const uint32_t *priorities = genes + g->count - 1;
    uint64_t lost, loops;
    tb_search_tree_clear(&g->tree);
    for (uint32_t i = 1; i < g->count; i++)
        g->tree.parent[i] = genes[i - 1];
    lost_count(g, &lost, &loops);
    if (lost > 0) {
        *value = g->longest * PENALTY + (lost + loops) * g->longest;
        g->run->evaluations++;
        return TB_OK;
    }
    for (uint32_t i = 1; i < g->count; i++)
        point_put(g, priorities, i, genes[i - 1]);
    int error = g->grow(g, priorities);
    return error == TB_OK ? tb_search_run_rate(g->run, &g->whole, value) : error;
}

static bool search_over(void *context)
{
    struct gadt *g = context;
    return tb_search_run_over(g->run);
}

static int nodes_grow(struct gadt *g, const uint32_t *priorities)
{
    tb_search_tree_clear(&g->whole);
    for (uint32_t i = 0; i < g->count; i++)
        for (uint32_t k = g->tree.child[i], before = TB_NO_NODE; k != TB_NO_NODE; k = g->tree.next[k]) {
            tb_search_tree_put(&g->whole, g->nodes[k], g->nodes[i], before);
            before = g->nodes[k];
        }
    return TB_OK;
}

/* Behind the node that stands for a cluster come its own nodes as the schedule inside has them, and the clusters
 * that it serves; where these come is a gene of its own: the number of its own that it serves before the first, and
 * before each of the others. */
static int clusters_grow(struct gadt *g, const uint32_t *priorities)
{
    const uint32_t *places = priorities + g->count - 1;
    tb_search_tree_copy(&g->whole, g->inside);
    for (uint32_t i = 0; i < g->count; i++) {
        uint32_t before = TB_NO_NODE, node = g->nodes[i];
        for (uint32_t k = g->tree.child[i]; k != TB_NO_NODE; k = g->tree.next[k]) {
            uint32_t at = before == TB_NO_NODE ? g->whole.child[node] : g->whole.next[before];
            for (uint32_t n = 0; n < places[k - 1] && at != TB_NO_NODE; n++) {
                before = at;
                at = g->whole.next[at];
            }
            tb_search_tree_put(&g->whole, g->nodes[k], node, before);
            before = g->nodes[k];
        }
    }
    return TB_OK;
}

/* The longest possible time, as the thesis has it: the slowest of all ways, once for each node but one. */
static void longest_find(struct gadt *g)
{
    struct tb_problem *problem = g->run->problem;
    uint64_t longest = 1;
    for (uint32_t i = 0; i < g->count; i++)
        for (uint32_t k = 0; k < g->count; k++) {
            uint64_t time = i == k ? 0 : problem->arrive(problem, g->nodes[i], g->nodes[k]);
            longest = time > longest ? time : longest;
        }
    /* So that all penalties can be counted: there are no more loops than lost points. */
    uint64_t most = UINT64_MAX / (PENALTY + 2 * (uint64_t)g->count);
    g->longest = longest > most / problem->nodes ? most : longest * (problem->nodes - 1);
}

/* `kinds` of genes: parents, priorities, and of clusters places. */
static int strings_search(struct gadt *g, uint32_t kinds, uint32_t places)
{
    const uint32_t others = g->count - 1;
    uint64_t time;
    if (others == 0) { /* there is one tree */
        int error = g->grow(g, NULL);
        return error == TB_OK ? tb_search_run_rate(g->run, &g->whole, &time) : error;
    }
    uint32_t *limits = malloc((size_t)kinds * others * sizeof *limits);
    if (limits == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for the genes of %u points", g->count);
    for (uint32_t i = 0; i < kinds * others; i++)
        limits[i] = i < others ? g->count : i < 2 * others ? PRIORITIES : places;
    longest_find(g);
    const struct tb_genetic genetic = {kinds * others, limits, g->run->wish->seed, string_value, search_over, g};
    int error = tb_genetic_search(&genetic);
    /* Nothing but broken trees: the whole takes any. */
    if (error == TB_OK && g->run->best_time == UINT64_MAX) {
        tb_search_tree_clear(&g->tree);
        for (uint32_t i = others; i > 0; i--)
            tb_search_tree_put(&g->tree, i, 0, TB_NO_NODE);
        for (uint32_t i = 0; i < kinds * others; i++)
            limits[i] = 0;
        error = g->grow(g, limits);
        if (error == TB_OK)
            error = tb_search_run_rate(g->run, &g->whole, &time);
    }
    free(limits);
    return error;
}

static int gadt_open(struct gadt *g, struct tb_search_run *run, uint32_t count)
{
    const struct tb_problem *problem = run->problem;
    TB_ASSERT(count > 0);
    g->run = run;
    g->count = count;
    g->nodes = malloc(2 * (size_t)count * sizeof *g->nodes);
    if (g->nodes == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for %u points", count);
    g->seen = g->nodes + count;
    int error = tb_search_tree_open(&g->tree, count, 0);
    return error == TB_OK ? tb_search_tree_open(&g->whole, problem->nodes, problem->root) : error;
}

static void gadt_close(struct gadt *g)
{
    free(g->nodes);
    free(g->list.first);
    tb_search_tree_close(&g->tree);
    tb_search_tree_close(&g->whole);
}

/* The root is in front, and others stand as they are numbered, so that of equal priorities the lower node is first. */
static int nodes_open(struct gadt *g, struct tb_search_run *run)
{
    const uint32_t root = run->problem->root;
    *g = (struct gadt){.grow = nodes_grow};
    int error = gadt_open(g, run, run->problem->nodes);
    for (uint32_t i = 0; error == TB_OK && i < g->count; i++)
        g->nodes[i] = i == 0 ? root : i <= root ? i - 1 : i;
    return error;
}

int tb_gadt(struct tb_search_run *run)
{
    struct gadt g;
    int error = nodes_open(&g, run);
    if (error == TB_OK)
        error = strings_search(&g, 2, 0);
    gadt_close(&g);
    return error;
}

int tb_gadt_value(struct tb_search_run *run, const uint32_t *genes, uint64_t *value)
{
    struct gadt g;
    int error = nodes_open(&g, run);
    if (error == TB_OK) {
        longest_find(&g);
        error = string_value(&g, genes, value);
    }
    gadt_close(&g);
    return error;
}

/* The schedule inside each cluster: a binomial tree, or what ECEF finds and the longest branch first, whichever is
 * shorter when nothing is shared; inside a cluster nothing is. Between nodes that are alike the first is the best. */
static int inside_make(struct gadt *g, struct tb_search_tree *inside)
{
    const struct tb_problem *problem = g->run->problem;
    int error = tb_search_tree_open(inside, problem->nodes, problem->root);
    for (uint32_t c = 0; error == TB_OK && c < problem->cluster_count; c++)
        if (g->list.first[c] < g->list.first[c + 1])
            error = tb_quick_inside(problem, inside, g->list.nodes + g->list.first[c],
                                    g->list.first[c + 1] - g->list.first[c]);
    return error;
}

int tb_gadt_clusters(struct tb_search_run *run)
{
    const struct tb_problem *problem = run->problem;
    struct tb_search_tree inside = {0};
    struct gadt g = {.grow = clusters_grow, .inside = &inside};
    struct tb_cluster_list list;
    uint32_t count = 0, places = 1, own = problem->clusters[problem->root];
    int error = tb_cluster_list_make(&list, problem);
    for (uint32_t c = 0; error == TB_OK && c < problem->cluster_count; c++)
        count += list.first[c] < list.first[c + 1];
    if (error == TB_OK)
        error = gadt_open(&g, run, count);
    g.list = list;
    if (error == TB_OK)
        error = inside_make(&g, &inside);
    if (error == TB_OK) {
        g.nodes[0] = problem->root;
        for (uint32_t c = 0, at = 1; c < problem->cluster_count; c++)
            if (c != own && list.first[c] < list.first[c + 1])
                g.nodes[at++] = list.nodes[list.first[c]];
        for (uint32_t i = 0; i < g.count; i++) { /* as many places as somebody has children of its own */
            uint32_t children = 1;
            for (uint32_t k = inside.child[g.nodes[i]]; k != TB_NO_NODE; k = inside.next[k])
                children++;
            places = children > places ? children : places;
        }
        error = strings_search(&g, 3, places);
    }
    tb_search_tree_close(&inside);
    gadt_close(&g);
    return error;
}
