/* Kinds of roots: ranks of one kind are rated as one, as they are about as good a root as each other. */
#ifndef TB_PLANNER_ROOT_KIND_H
#define TB_PLANNER_ROOT_KIND_H

#include "topology/topology.h"

/* Of one cluster, and beside the rank before them on its host or not. Where all ranks are equal there is one kind. */
uint32_t tb_root_kind(const struct tb_group_shape *shape, uint32_t rank);
uint32_t tb_root_of_kind(const struct tb_group_shape *shape, uint32_t kind); /* the first one; 0: there is none */

#endif
