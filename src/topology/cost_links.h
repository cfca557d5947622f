/* The parameter `links`: what the user says of links by name, over everything else. With commas between: A:MBIT:MS
 * inside a cluster (and :hub if there is no switch), A^:MBIT:MS its uplink, A/B:MBIT:MS both ways between two,
 * A>B:MBIT:MS one way. Names of clusters and sites that the job does not have are warned of, since they may be another
 * job's. */
#ifndef TB_TOPOLOGY_COST_LINKS_H
#define TB_TOPOLOGY_COST_LINKS_H

#include "topology/cost_build.h"

/* `builder` NULL: only looks whether it makes sense. */
int tb_cost_links_take(struct tb_cost_builder *builder, const char *text);

#endif
