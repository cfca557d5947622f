/* Which clusters have one line to the outside that their links share, as far as it was measured, and what it can do.
 * For measure_write.c. */
#ifndef TB_TOPOLOGY_MEASURE_UPLINKS_H
#define TB_TOPOLOGY_MEASURE_UPLINKS_H

#include "topology/measure_plan.h"

/* What was seen of the links of a cluster in one direction. */
enum tb_measured_line {
    TB_LINE_UNKNOWN,  /* not tried, or unclear */
    TB_LINE_SEPARATE, /* they have nothing in common */
    TB_LINE_MIXED,    /* some have, some have not: a grid file cannot say that */
    TB_LINE_SHARED
};

/* Of an outermost cluster or a site. [0] outward, [1] inward. */
struct tb_measured_uplink {
    enum tb_measured_line lines[2];
    bool found;      /* it has an uplink */
    double rates[2]; /* Mbit/s of it */
    double latency;  /* ms; what of the links' latency is its own, or what the file gives it if that cannot be told */
    uint32_t fastest[2]; /* the task of its fastest link; TB_GRID_NONE: it has none */
};

/* `middles` are ms between the ends of each task of a link, without the networks of the ends. There is one for each
 * cluster and for each site of the grid; what was seen is told to `words`. */
int tb_measure_uplinks_find(const struct tb_measure_plan *plan, const double *middles, FILE *words,
                            struct tb_measured_uplink *clusters, struct tb_measured_uplink *sites);

#endif
