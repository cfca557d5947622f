/* TreeSim, the simulator of the MPITH thesis (Vorakosit 2006): nodes stand in clusters, and a matrix says how fast data
 * goes from cluster to cluster, on its diagonal how fast inside each. There is no latency and no overhead, both ends of
 * a transfer are busy until it ends, and a node serves its children one after another as soon as it can. Transfers
 * within a cluster do not hinder each other; those between the same two clusters share their link evenly, and what each
 * of them gets changes whenever one begins or ends.
 *
 * The thesis does not say whether two directions share. Here it follows the matrix: if it is symmetric, two clusters
 * are joined by one link, and whatever goes between them shares it; if not, each direction has a rate of its own and so
 * is a link of its own. Beyond the thesis there may be latencies, the sender may be free as soon as it has sent, data
 * may flow up the tree, and clusters may stand at sites.
 *
 * Times are picoseconds. They are exact but for what sharing rounds off, less than a picosecond for each change. A
 * problem is used by one thread at a time. */
#ifndef TB_SEARCH_TREESIM_H
#define TB_SEARCH_TREESIM_H

#include "search/problem.h"
#include "search/search_tree.h"

struct tb_treesim_source {
    uint32_t nodes, root;
    uint32_t cluster_count;
    const uint32_t *clusters;    /* of each node; NULL: each node is a cluster of its own */
    const uint64_t *rates;       /* bytes a second, from cluster a to b at [a * cluster_count + b] */
    const uint64_t *latencies;   /* picoseconds, as `rates`; NULL: none */
    bool sender_free;            /* the sender is free when it has sent, before the latency; else both ends are busy */
    enum tb_operation operation; /* broadcast, reduce, allreduce, barrier, gather, scatter */
    uint64_t bytes;              /* of the message; of gather and scatter of each node */
    /* Clusters at sites: then `rates` and `latencies` are those between sites, on the diagonal between clusters of a
     * site, and these are of each cluster, inside it. All that goes between two sites shares a link. */
    uint32_t site_count;
    const uint32_t *sites; /* of each cluster; NULL: there are none */
    const uint64_t *inside_rates, *inside_latencies;
};

/* The problem, with copies of everything; its `rate` takes forests of one tree of whole messages. TB_ERR_ARGUMENT: a
 * rate of 0, or a time that no number holds, and the story says which. */
int tb_treesim_open(struct tb_problem **problem, const struct tb_treesim_source *source);
void tb_treesim_close(struct tb_problem *problem); /* NULL: nothing */
/* Whether the problem was made here. */
bool tb_treesim_is(const struct tb_problem *problem);
/* Whether two transfers of it can share a link at all. */
bool tb_treesim_shares(const struct tb_problem *problem);

/* How long a tree takes. */
uint64_t tb_treesim_time(struct tb_problem *problem, const struct tb_search_tree *tree);

/* A transfer as it went, for pictures; the level is 0 within a cluster, 1 within a site, 2 beyond. */
struct tb_treesim_transfer {
    uint32_t from, to, level;
    uint64_t start, end;
};
/* All transfers of a forest, in the order in which they ended; there are tb_treesim_transfers of them. */
int tb_treesim_timeline(struct tb_problem *problem, const struct tb_forest *forest, struct tb_treesim_transfer *list);
uint32_t tb_treesim_transfers(const struct tb_problem *problem);

/* The link that a transfer takes, and how long it takes alone; for searchers that simulate by themselves.
 * TB_TREESIM_ALONE: nothing shares with it. */
#define TB_TREESIM_ALONE UINT64_MAX
bool tb_treesim_has_latency(const struct tb_problem *problem, uint32_t from, uint32_t to);
uint64_t tb_treesim_link_key(const struct tb_problem *problem, uint32_t from, uint32_t to);

#endif
