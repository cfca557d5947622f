/* A tree of clusters is searched for; in each there is a binomial tree behind the node that stands for it. Every
 * cluster serves the longest branch first, which its own nodes may be, too; so a tree of clusters has one time, as if
 * no link were shared, and only what leads from a change to the root is computed anew. In the end the whole tree is
 * made and rated, once. Memory and time grow with the nodes, and with the changes that are tried. */
#include "search/own_large.h"

#include <stdlib.h>

#include "search/edge_cost.h"
#include "search/quick.h"

#define CHANGES      200000u /* that are tried */
#define CHANGES_EACH 500u    /* for each cluster */
#define CHECKED      256u    /* changes between two looks at the clock */
#define ORDERS       32u     /* of binomial trees */

struct branch_end {
    uint64_t branch, arrive, send;
    uint32_t cluster; /* TB_NO_NODE: nodes of its own */
};

struct large {
    struct tb_search_run *run;
    struct tb_cluster_list list;
    uint32_t count;               /* clusters that have nodes */
    uint32_t *nodes, *sizes;      /* of each: which stands for it, how many it has */
    uint32_t *numbers;            /* in the problem */
    struct tb_search_tree tree;   /* of clusters, in no order */
    uint64_t *branches;           /* from when a cluster has the message until all behind it have */
    uint32_t *latest;             /* of its children: whose branch ends last; itself: its own nodes do */
    struct branch_end *ends;      /* of the children of one */
    uint32_t *chain, chain_count; /* clusters that the whole waits for */
    uint32_t *sites;              /* of each; all 0 where nobody says */
    uint32_t *neighbours, *first; /* clusters site by site */
    struct tb_random random;
};

/* The branches of a node of a binomial tree with so many nodes, the longest first; how many. */
static uint32_t inside_ends(const struct large *l, uint32_t cluster, struct branch_end *ends)
{
    const struct tb_problem *problem = l->run->problem;
    uint64_t branches[ORDERS] = {0};
    uint32_t orders = 0;
    if (l->sizes[cluster] < 2)
        return 0;
    const uint32_t *nodes = l->list.nodes + l->list.first[l->numbers[cluster]];
    uint64_t arrive = tb_edge_arrive(problem, nodes[0], nodes[1]), send = tb_edge_send(problem, nodes[0], nodes[1]);
    while (1ull << orders < l->sizes[cluster])
        orders++;
    for (uint32_t i = 1; i < orders; i++) {
        uint64_t start = 0;
        for (uint32_t k = i; k-- > 0; start += send) {
            uint64_t end = start + arrive + branches[k];
            branches[i] = end > branches[i] ? end : branches[i];
        }
    }
    for (uint32_t i = 0; i < orders; i++)
        ends[i] = (struct branch_end){branches[orders - 1 - i], arrive, send, TB_NO_NODE};
    return orders;
}

static int ends_compare(const void *a, const void *b)
{
    const struct branch_end *x = a, *y = b;
    if (x->branch != y->branch)
        return x->branch > y->branch ? -1 : 1;
    return x->cluster < y->cluster ? -1 : x->cluster > y->cluster;
}

/* What a cluster takes, from those of its children. True: it is not what it was. */
static bool branch_compute(struct large *l, uint32_t cluster)
{
    const struct tb_problem *problem = l->run->problem;
    uint32_t count = inside_ends(l, cluster, l->ends);
    uint64_t start = 0, last = 0, old = l->branches[cluster];
    for (uint32_t k = l->tree.child[cluster]; k != TB_NO_NODE; k = l->tree.next[k])
        l->ends[count++] = (struct branch_end){l->branches[k], tb_edge_arrive(problem, l->nodes[cluster], l->nodes[k]),
                                               tb_edge_send(problem, l->nodes[cluster], l->nodes[k]), k};
    qsort(l->ends, count, sizeof *l->ends, ends_compare);
    l->latest[cluster] = cluster;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t end = start + l->ends[i].arrive + l->ends[i].branch;
        start += l->ends[i].send;
        if (end >= last) {
            last = end;
            l->latest[cluster] = l->ends[i].cluster == TB_NO_NODE ? cluster : l->ends[i].cluster;
        }
    }
    l->branches[cluster] = last;
    return last != old;
}

static void branches_up(struct large *l, uint32_t cluster)
{
    while (branch_compute(l, cluster) && cluster != l->tree.root)
        cluster = l->tree.parent[cluster];
}

static void cluster_move(struct large *l, uint32_t cluster, uint32_t parent)
{
    uint32_t old = l->tree.parent[cluster];
    tb_search_tree_take(&l->tree, cluster);
    tb_search_tree_put(&l->tree, cluster, parent, TB_NO_NODE);
    branches_up(l, old);
    branches_up(l, parent);
}

/* From the root to whom the whole waits for, with all that is served there: who takes longest is not always to blame.
 */
static void chain_find(struct large *l)
{
    uint32_t at = l->tree.root;
    l->chain_count = 0;
    for (;;) {
        for (uint32_t k = l->tree.child[at]; k != TB_NO_NODE; k = l->tree.next[k])
            l->chain[l->chain_count++] = k;
        if (l->latest[at] == at)
            return;
        at = l->latest[at];
    }
}

/* A parent at random. Each site is told once by another one, so that no link between sites is shared: who was told from
 * elsewhere stays so, and all others are told by a cluster of their site. */
static uint32_t parent_choose(struct large *l, uint32_t cluster)
{
    uint32_t site = l->sites[cluster], old = l->tree.parent[cluster], parent;
    if (l->sites[old] == site) {
        uint32_t first = l->first[site], count = l->first[site + 1] - first;
        return l->neighbours[first + tb_random_below(&l->random, count)];
    }
    parent = (uint32_t)tb_random_below(&l->random, l->count);
    return l->sites[parent] == site ? old : parent;
}

/* Another parent for one of the chain; it stays there if the whole takes no longer. */
static void change_try(struct large *l)
{
    uint32_t cluster = l->chain[tb_random_below(&l->random, l->chain_count)];
    uint32_t old = l->tree.parent[cluster], parent = parent_choose(l, cluster);
    uint64_t time = l->branches[l->tree.root];
    if (parent == old || tb_search_tree_behind(&l->tree, parent, cluster))
        return;
    cluster_move(l, cluster, parent);
    if (l->branches[l->tree.root] > time)
        cluster_move(l, cluster, old);
    else
        chain_find(l);
}

static int sites_find(struct large *l)
{
    const struct tb_problem *problem = l->run->problem;
    const uint32_t count = problem->site_count == 0 ? 1 : problem->site_count;
    l->sites = malloc(2 * (size_t)l->count * sizeof *l->sites);
    l->first = calloc((size_t)count + 2, sizeof *l->first);
    if (l->sites == NULL || l->first == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for %u clusters at %u sites", l->count, count);
    l->neighbours = l->sites + l->count;
    for (uint32_t i = 0; i < l->count; i++) {
        l->sites[i] = problem->site_count == 0 ? 0 : problem->sites[l->numbers[i]];
        l->first[l->sites[i] + 2]++;
    }
    for (uint32_t i = 2; i < count + 2; i++)
        l->first[i] += l->first[i - 1];
    for (uint32_t i = 0; i < l->count; i++)
        l->neighbours[l->first[l->sites[i] + 1]++] = i;
    return TB_OK;
}

/* The tree of clusters that ECEF finds. */
static int clusters_join(struct large *l)
{
    struct tb_search_tree tree;
    const uint32_t nodes = l->run->problem->nodes;
    const uint32_t *clusters = l->run->problem->clusters;
    uint32_t *index = malloc(l->run->problem->cluster_count * sizeof *index);
    uint32_t *order = malloc(l->count * sizeof *order);
    int error = tb_search_tree_open(&tree, nodes, l->run->problem->root);
    if (error == TB_OK && (index == NULL || order == NULL))
        error = tb_error(TB_ERR_MEMORY, "no memory for %u clusters", l->count);
    if (error == TB_OK)
        error = tb_quick_clusters(l->run->problem, &tree);
    for (uint32_t i = 0; error == TB_OK && i < l->count; i++)
        index[l->numbers[i]] = i;
    for (uint32_t i = 0; error == TB_OK && i < nodes; i++) {
        uint32_t parent = tree.parent[i];
        if (i != tree.root && clusters[i] != clusters[parent])
            tb_search_tree_put(&l->tree, index[clusters[i]], index[clusters[parent]], TB_NO_NODE);
    }
    uint32_t count = error == TB_OK ? tb_search_tree_list(&l->tree, order) : 0;
    for (uint32_t i = count; i-- > 0;)
        branch_compute(l, order[i]);
    free(index);
    free(order);
    tb_search_tree_close(&tree);
    return error;
}

static int clusters_find(struct large *l)
{
    const struct tb_problem *problem = l->run->problem;
    const size_t clusters = problem->cluster_count;
    int error = tb_cluster_list_make(&l->list, problem);
    uint32_t *numbers = malloc(5 * clusters * sizeof *numbers), root = 0;
    l->branches = calloc(clusters, sizeof *l->branches);
    l->ends = malloc((clusters + ORDERS) * sizeof *l->ends);
    l->nodes = numbers;
    if (error == TB_OK && (numbers == NULL || l->branches == NULL || l->ends == NULL))
        error = tb_error(TB_ERR_MEMORY, "no memory for %zu clusters", clusters);
    if (error != TB_OK)
        return error;
    l->sizes = numbers + clusters;
    l->numbers = l->sizes + clusters;
    l->latest = l->numbers + clusters;
    l->chain = l->latest + clusters;
    for (uint32_t c = 0; c < clusters; c++) {
        uint32_t first = l->list.first[c], size = l->list.first[c + 1] - first;
        if (size == 0)
            continue;
        root = c == problem->clusters[problem->root] ? l->count : root;
        l->nodes[l->count] = l->list.nodes[first];
        l->sizes[l->count] = size;
        l->numbers[l->count++] = c;
    }
    return tb_search_tree_open(&l->tree, l->count, root);
}

/* The whole tree, in nodes. */
static int whole_rate(struct large *l)
{
    struct tb_search_tree tree;
    uint64_t time;
    int error = tb_search_tree_open(&tree, l->run->problem->nodes, l->run->problem->root);
    if (error != TB_OK)
        return error;
    for (uint32_t i = 0; i < l->count; i++)
        if (i != l->tree.root)
            tb_search_tree_put(&tree, l->nodes[i], l->nodes[l->tree.parent[i]], TB_NO_NODE);
    for (uint32_t i = 0; i < l->count; i++)
        tb_quick_binomial_of(&tree, l->list.nodes + l->list.first[l->numbers[i]], l->sizes[i]);
    error = tb_quick_sort(l->run->problem, &tree, NULL);
    if (error == TB_OK)
        error = tb_search_run_rate(l->run, &tree, &time);
    tb_search_tree_close(&tree);
    return error;
}

int tb_own_large(struct tb_search_run *run)
{
    struct large l = {.run = run};
    tb_random_seed(&l.random, run->wish->seed);
    int error = clusters_find(&l);
    if (error == TB_OK)
        error = sites_find(&l);
    if (error == TB_OK)
        error = clusters_join(&l);
    if (error == TB_OK && l.count > 2) {
        chain_find(&l);
        for (uint32_t n = 0; n < CHANGES && n < (uint64_t)l.count * CHANGES_EACH; n++) {
            if (n % CHECKED == 0 && run->part != TB_NEVER && tb_clock_now_real() >= run->part)
                break;
            change_try(&l);
        }
        error = whole_rate(&l);
    }
    tb_search_tree_close(&l.tree);
    free(l.list.first);
    free(l.nodes);
    free(l.sites);
    free(l.first);
    free(l.branches);
    free(l.ends);
    return error;
}
