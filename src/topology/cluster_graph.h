/* Virtual clusters: the largest groups of hosts that can all connect to each other, in both directions (maximal cliques
 * of the direct connectivity graph); and their graph, in which two are neighbours if they have hosts in common, who can
 * pass messages from one to the other. As in the MPITH thesis (Vorakosit 2006). Routes do not need them; they are how
 * people understand routes. Made once, then constant; whoever made it owns it; the connectivity graph must outlive it.
 */
#ifndef TB_TOPOLOGY_CLUSTER_GRAPH_H
#define TB_TOPOLOGY_CLUSTER_GRAPH_H

#include "topology/clique.h"
#include "topology/route.h"

#define TB_CLUSTER_GRAPH_LIMIT 4096u

struct tb_cluster_graph {
    const struct tb_connectivity *connectivity;
    /* Virtual clusters, numbered from 0 by their first hosts, and the classes in them. */
    struct tb_clique_list clusters;
    uint32_t *first; /* of each class, and one more: where its virtual clusters begin in `homes` */
    uint32_t *homes; /* ascending within a class */
};

int tb_cluster_graph_open(struct tb_cluster_graph *graph, const struct tb_connectivity *connectivity);
void tb_cluster_graph_close(struct tb_cluster_graph *graph);

bool tb_cluster_graph_has(const struct tb_cluster_graph *graph, uint32_t cluster, uint32_t class);
/* How many hosts it has. */
uint32_t tb_cluster_graph_size(const struct tb_cluster_graph *graph, uint32_t cluster);
/* Classes that are in both; at most `room` are written, and their number is returned: 0 if they are no neighbours. */
uint32_t tb_cluster_graph_shared(const struct tb_cluster_graph *graph, uint32_t a, uint32_t b, uint32_t room,
                                 uint32_t *classes);
/* The virtual cluster in which both classes are, or TB_GRID_NONE. */
uint32_t tb_cluster_graph_around(const struct tb_cluster_graph *graph, uint32_t a, uint32_t b);

/* The routing table: which virtual cluster comes next on the way from the hosts that are in few others than `from` to
 * those that are in few others than `to`. It is read off the hosts' routes; TB_GRID_NONE: there is none. */
uint32_t tb_cluster_graph_next(const struct tb_cluster_graph *graph, const struct tb_routes *routes, uint32_t from,
                               uint32_t to);

#endif
