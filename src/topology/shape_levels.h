/* The levels of a group of ranks as a program sees them: of each rank how many it takes part in, from the world down to
 * what it is bound to, what each of them is, and its group there as a colour, as MPICH-G2 tells programs (Karonis
 * et al. 2002). Level 0 is the world, in which all have colour 0; then come the site, the clusters from the outermost
 * to the innermost, the host, and below it package, NUMA node, cache and core, as far as the rank is on one of them
 * alone. Two ranks are together at a level if both take part in it and have the same colour there. Colours of a level
 * count from 0 in the order in which ranks meet them.
 *
 * One block of memory, constant once made; whoever made it frees it. Any thread may read it. */
#ifndef TB_TOPOLOGY_SHAPE_LEVELS_H
#define TB_TOPOLOGY_SHAPE_LEVELS_H

#include "topology/shape.h"

#define TB_LEVELS_LIMIT (TB_PLACES_DEPTH_LIMIT + 1u + TB_SEAT_LEVELS) /* places, the host, and below it */

struct tb_shape_levels {
    uint32_t size;
    int *depths; /* of each rank: how many levels */
    int *
        *colors; /* of each rank: its colour at each of these; MPI's ints, since programs are handed them as they are */
    int **kinds; /* of each rank: which enum tb_level each of these is; ranks whose levels are alike share a row */
};

/* Of a group, not of two: shape->split is 0. */
int tb_shape_levels_make(struct tb_shape_levels **levels, const struct tb_group_shape *shape);

#endif
