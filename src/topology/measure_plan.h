/* What is to be measured on a grid, by which hosts, and what has come of it. Made of a grid file, filled with what the
 * ranks that measure report (measure_lines.h); measure_write.h puts it into the file. Owned by whoever opened it, one
 * thread; the grid and its costs must outlive it.
 *
 * There are two rounds. The first has the inside of each cluster, the links, and one way through gateways for each
 * closed cluster. Links are measured between the outermost ends: gateways, or hosts of open clusters. The second finds
 * out which links of a cluster share its line to the outside: the fastest and each of some others are used at the same
 * time. That needs the rates of the first. */
#ifndef TB_TOPOLOGY_MEASURE_PLAN_H
#define TB_TOPOLOGY_MEASURE_PLAN_H

#include "topology/cost_curve.h"
#include "topology/grid_costs.h"
#include "topology/measure_fit.h"

/* So that an end is in sight. */
#define TB_MEASURE_CLUSTERS 128u /* insides */
#define TB_MEASURE_LINKS    128u
#define TB_MEASURE_PAIRS                                                                                               \
    16u /* so many outermost clusters: each two that have no link in the file; of more, neighbours */
#define TB_MEASURE_THROUGH  16u
#define TB_MEASURE_SHARING  64u
#define TB_MEASURE_PARTNERS 3u /* of a cluster's fastest link, in each direction */
#define TB_MEASURE_ROUNDS   2u

enum tb_measure_kind {
    TB_MEASURE_INSIDE, /* of cluster `from` */
    TB_MEASURE_LINK,   /* between `from` and `to` */
    TB_MEASURE_NESTED, /* the uplink of `from`, which nests in `to` */
    TB_MEASURE_THROUGH_GATEWAYS,
    TB_MEASURE_SHARED /* whether two links of a cluster or site share its line */
};

/* What has a line to the outside: an outermost cluster, or a site of several. */
struct tb_measure_scope {
    uint32_t cluster; /* TB_GRID_NONE: a site */
    uint32_t site;
};

struct tb_measure_task {
    enum tb_measure_kind kind;
    uint32_t from, to;             /* clusters of the grid; of SHARED `from` is where the first link leaves */
    struct tb_measure_scope scope; /* SHARED */
    uint32_t link;                 /* of the grid, in this direction; TB_GRID_NONE: the file has none */
    uint32_t hosts[2];             /* of the grid, at `from` and at `to`; of SHARED those of the first link */
    uint32_t others[2];            /* SHARED: those of the second */
    uint32_t links[2];             /* SHARED: tasks, the faster one first */
    bool inward;                   /* SHARED: from outside */
    bool staffed;                  /* hosts for it were found */
    bool done;
    const char *why; /* it was not; NULL: nothing is known of that */
    /* What was measured, ns and Mbit/s as on the wire; [0] from `from` to `to`, [1] back. */
    double one_way, send, receive; /* an empty message: half a round trip, and what of that the two calls took */
    double rates[2];
    double low[2], high[2]; /* of parts of the time */
    uint32_t point_count[2];
    struct tb_measured_point points[2][TB_COST_POINTS];
    struct tb_sharing_round rounds[TB_MEASURE_ROUNDS];
};

struct tb_measure_plan {
    const struct tb_grid_costs *costs;
    const struct tb_grid *grid;
    bool *unusable; /* by host of the grid: no rank can be started there */
    struct tb_measure_task *tasks;
    uint32_t count, room;
    uint32_t left_out; /* for which there was no room in the plan */
};

/* The first round. */
int tb_measure_plan_open(struct tb_measure_plan *plan, const struct tb_grid_costs *costs);
void tb_measure_plan_close(struct tb_measure_plan *plan);
/* Adds the second round, after the first. */
int tb_measure_plan_add_sharing(struct tb_measure_plan *plan);
/* Finds hosts for all tasks that are not done, without unusable ones; the number of tasks that have some. */
uint32_t tb_measure_plan_staff(struct tb_measure_plan *plan);
/* Whether a link has one end in there, and the other one not. */
bool tb_measure_task_leaves(const struct tb_measure_plan *plan, const struct tb_measure_task *task,
                            struct tb_measure_scope scope);
/* The way of the link that leads out of there, or inward: 0 from its `from` to its `to`, 1 back. */
int tb_measure_task_way(const struct tb_measure_plan *plan, const struct tb_measure_task *task,
                        struct tb_measure_scope scope, bool inward);

static inline struct tb_measure_scope tb_measure_scope_of(uint32_t outermost_cluster)
{
    return (struct tb_measure_scope){.cluster = outermost_cluster, .site = TB_GRID_NONE};
}

#endif
