/* Classes of hosts: those with the same feet and rates of their ports that are gateways of the same clusters, and at
 * none of which a link of its own ends. The grid file treats the hosts of a class alike: they reach each other, and
 * what holds for one towards another class holds for all. So whatever asks who reaches whom asks classes, of which
 * there are a few a cluster. Made once, and split when hosts have turned out to differ; whoever made it owns it, and
 * any thread may read it meanwhile. */
#ifndef TB_TOPOLOGY_CLASS_H
#define TB_TOPOLOGY_CLASS_H

#include "topology/grid.h"

struct tb_host_classes {
    uint32_t host_count, class_count;
    uint32_t *of;      /* the class of each host; classes are numbered by their first hosts. TB_GRID_NONE: in none */
    uint32_t *first;   /* of each class, and one more: where its hosts begin in `members` */
    uint32_t *members; /* hosts, ascending within a class */
};

int tb_host_classes_open(struct tb_host_classes *classes, const struct tb_grid *grid);
/* Of some hosts alone: `part` has an element for each, NULL: all. The others are in no class. */
int tb_host_classes_open_part(struct tb_host_classes *classes, const struct tb_grid *grid, const bool *part);
/* Hosts of one class that have different labels (one for each host) come into different ones. `origins` has room for
 * as many as there are hosts, and gets for each class the one in which its hosts were. After an error nothing has
 * changed. */
int tb_host_classes_split(struct tb_host_classes *classes, const uint32_t *labels, uint32_t *origins);
void tb_host_classes_close(struct tb_host_classes *classes);

static inline uint32_t tb_host_classes_size(const struct tb_host_classes *classes, uint32_t class)
{
    return classes->first[class + 1] - classes->first[class];
}

/* The member at a place within its class. */
static inline uint32_t tb_host_classes_member(const struct tb_host_classes *classes, uint32_t class, uint32_t place)
{
    return classes->members[classes->first[class] + place];
}

#endif
