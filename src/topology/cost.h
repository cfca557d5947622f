/* What it costs to get data across: the cost table that the simulator reads. Times are picoseconds in 64 bits, which
 * saturate. A table is made for a shape from that shape's cost table, which is the same on all ranks. Constant once
 * made; any thread may read it; whoever made it closes it.
 *
 * A message of m bytes takes the sending rank send(m), of which send(0) passes before its first byte leaves; then the
 * port of its host is busy for gap(m); latency later it begins to arrive and keeps the other host's port busy for as
 * long; and the receiving rank spends receive(m), of which receive(0) comes after the last byte. Within a host there
 * is no port: the two ranks copy at the same time, if there are cores for both. */
#ifndef TB_TOPOLOGY_COST_H
#define TB_TOPOLOGY_COST_H

#include "topology/cost_curve.h"
#include "topology/grid.h"
#include "topology/shape.h"

#define TB_COST_CLUSTERS_LIMIT 256u /* among more, all links are taken for equal */

struct tb_cost_link {
    struct tb_cost_curve send, receive; /* of the ranks' time */
    struct tb_cost_curve gap;           /* of the ports' time */
    uint64_t latency;
    bool hub; /* all hosts of the cluster share one wire, instead of a port each */
};

struct tb_costs {
    struct tb_cost_link host;
    /* From one cluster to another, or to other hosts of the same one: links[pairs[from * cluster_count + to]]; without
     * pairs the first link is that of every cluster and the second that between any two. What goes between clusters
     * also keeps the ports of the hosts' own clusters busy. */
    uint32_t cluster_count, link_count, link_room;
    struct tb_cost_link *links;
    uint32_t *pairs;
    struct tb_cost_curve copy, reduce; /* of a rank's time, inside itself */
    struct tb_cost_curve memory;       /* of the time of its host's memory, for whatever is copied */
    uint64_t change;                   /* until a core that ran one rank runs another */
    uint32_t cores;                    /* of a host */
    uint64_t short_bytes;              /* messages up to here overtake longer ones on a port */
    uint64_t queue;                    /* bytes that wait in front of a port of a switch at most; 0: any number */
    uint64_t loss;                     /* until what did not fit there is sent again */
};

/* From the cost table of the shape, as far as links between clusters go, and the parameters; the story of an error
 * names the parameter. */
int tb_costs_open(struct tb_costs *costs, const struct tb_group_shape *shape);
void tb_costs_close(struct tb_costs *costs);
/* Puts what a grid file says into the parameter `links`, so that it reaches all ranks, unless the user has set it. */
int tb_costs_pass_grid(const struct tb_grid *grid);

static inline const struct tb_cost_link *tb_costs_link(const struct tb_costs *c, uint32_t from, uint32_t to)
{
    uint32_t link = c->pairs != NULL ? c->pairs[(uint64_t)from * c->cluster_count + to] : from != to;
    return &c->links[link];
}

#endif
