/* How far apart the places of a cost table are at least, private to this folder: a graph of their networks, in which
 * whatever way a message takes, through however many gateways and ranks, is a walk that is no longer than it. Its size
 * is that of the places and links, not of their pairs. */
#ifndef TB_PLANNER_BOUND_GRAPH_H
#define TB_PLANNER_BOUND_GRAPH_H

#include "topology/topology.h"

struct tb_bound_edge {
    uint32_t from, to;
    uint64_t time;
};

struct tb_bound_graph {
    const struct tb_cost_table *table;
    const struct tb_group_shape *shape;
    uint32_t node_count, edge_count, edge_room;
    struct tb_bound_edge *edges;
    uint32_t outermost;  /* places with hosts that are in no cluster */
    uint32_t *linked;    /* to how many of these each place has a link of its own */
    uint32_t *firsts;    /* of each node: its edges in `order`, and their end */
    uint32_t *order;     /* edges by their beginning, or, for the other direction, their end */
    uint32_t *heap, *at; /* nodes by time, and where each of them is, + 1 */
    uint64_t *times;     /* of each node: from the host that was asked about, or to it; the first two of place p are
                          * inside its network, and outside */
    bool bare;           /* no host passes anything on, or stands in several places, and all have ports that count */
};

/* Close it also after an error. */
int tb_bound_graph_open(struct tb_bound_graph *g, const struct tb_cost_table *table,
                        const struct tb_group_shape *shape);
void tb_bound_graph_close(struct tb_bound_graph *g);
/* From a host of the group to everywhere, or from everywhere to it; the answers are those of tb_bound_graph_time. */
void tb_bound_graph_walk(struct tb_bound_graph *g, uint32_t host, bool away);
/* Between the host that the walk was of and another one, at least; without what ranks spend. */
uint64_t tb_bound_graph_time(const struct tb_bound_graph *g, uint32_t host, uint32_t other);
/* What every message from a host, or to it, takes at its end of the way. */
uint64_t tb_bound_graph_end(const struct tb_bound_graph *g, uint32_t host);

/* The least of what two ranks of different hosts spend on a message. */
uint64_t tb_bound_graph_spent(const struct tb_cost_table *table);
/* Looks at ways in whose time the graph is made and walked. */
uint64_t tb_bound_graph_looks(const struct tb_cost_table *table, const struct tb_group_shape *shape);
/* Bytes a second that pass the port of such a host as is asked for below, or its hub; TB_BOUND_UNLIMITED. */
uint64_t tb_bound_graph_port_rate(const struct tb_bound_graph *g, const struct tb_spot *spot);

/* Hosts of the group, and those that may pass something on: the i-th; false: there are no more. */
bool tb_bound_graph_spot(const struct tb_bound_graph *g, uint32_t i, struct tb_spot *spot);
/* Whether hosts at it use the one port that they have in their place for all that they send and get. */
bool tb_bound_graph_is_plain(const struct tb_cost_table *table, const struct tb_spot *spot);

/* A place whose hosts meet those of others in the wide area, or in the site: no cluster is around it. */
static inline bool tb_bound_is_outermost(const struct tb_cost_table *t, uint32_t place)
{
    return t->places[place].level != TB_LEVEL_CLUSTER || t->places[t->places[place].parent].level != TB_LEVEL_CLUSTER;
}
/* Whether it, or its site, has an uplink: then nothing else is assumed between it and others. */
static inline bool tb_bound_has_uplink(const struct tb_cost_table *t, uint32_t place)
{
    uint32_t site = tb_cost_site_of(t, place);
    return t->places[place].up != TB_COST_NONE || (site != TB_PLACE_NONE && t->places[site].up != TB_COST_NONE);
}

#endif
