/* Which hosts and places of a shape are alike. */
#ifndef TB_TOPOLOGY_SHAPE_ALIKE_H
#define TB_TOPOLOGY_SHAPE_ALIKE_H

#include "topology/shape.h"

/* Fills in `alike` of all of them; `hosts` and `places` are those of the shape, of which all the rest is made. */
int tb_shape_alike_find(const struct tb_group_shape *shape, struct tb_shape_host *hosts, struct tb_shape_place *places);

#endif
