/* What measured figures mean: whether two links share a wire, how latencies between places divide into those of their
 * uplinks, and a table of times by size. Arithmetic without state; any thread. */
#ifndef TB_TOPOLOGY_MEASURE_FIT_H
#define TB_TOPOLOGY_MEASURE_FIT_H

#include "topology/grid_edit.h"

enum tb_sharing {
    TB_SHARING_UNCLEAR,  /* the figures say neither */
    TB_SHARING_UNEQUAL,  /* one is so much slower than the other that nothing could be seen */
    TB_SHARING_SEPARATE, /* both at once carry what each carries alone */
    TB_SHARING_SHARED    /* both at once carry no more than the faster one alone */
};

/* Rates of two streams, in any unit: each alone, and both at the same time. */
struct tb_sharing_round {
    double alone[2], together[2];
};

enum tb_sharing tb_sharing_judge(const struct tb_sharing_round *round);
/* What comes in the way makes a round slower, never faster: the best of each counts. */
struct tb_sharing_round tb_sharing_best(const struct tb_sharing_round *rounds, uint32_t count);
const char *tb_sharing_name(enum tb_sharing sharing);

/* Divides latencies between each two of `count` places (count * count entries, symmetric; negative: not measured) into
 * parts, one of each place, so that each is the sum of two, within a tenth or `tolerance`. False: it cannot be done, as
 * fewer than three places say nothing, or some are missing, or they do not fit. */
bool tb_uplink_latencies_fit(uint32_t count, const double *latencies, double tolerance, double *parts);

/* Times in nanoseconds that messages of rising sizes were seen to take, made into the text of a table: a longer message
 * takes no less time, so what falls is levelled. At most TB_COST_POINTS points, the first for 0 bytes. */
struct tb_measured_point {
    double bytes, gap;
};
void tb_measured_table_print(const struct tb_measured_point *points, uint32_t count, double send, double receive,
                             char text[TB_GRID_TABLE_BYTES]);

#endif
