/* Planners that look for the best trees of a collective, with more time than a call has. All of them produce
 * forests (collectives/forest.h), and all are deterministic: a budget counts evaluations, and the same seed gives the
 * same forest on every machine; only a limit of time, if there is one, makes it depend on the machine.
 *
 * A problem says who the nodes are, what one message costs between two of them, and how long a forest takes as a whole.
 * There are two kinds: a matrix of rates under TreeSim's assumptions (treesim.h), and hosts of a grid, rated by the
 * simulator of src/planner (grid_problem.h). Not part of the library that programs load. One thread at a time. */
#ifndef TB_SEARCH_PROBLEM_H
#define TB_SEARCH_PROBLEM_H

#include "collectives/collectives.h"

#define TB_SEARCH_NODES  (1u << 24) /* of a problem at most */
#define TB_PROBLEM_WIRES 128u       /* of a way at most */

/* What a message keeps busy on its way, and others may need as well: a wire, a port, a rank's processor. */
struct tb_problem_wire {
    uint32_t wire; /* their numbers are as dense as they may be, from 0 on */
    uint64_t time; /* for which the message keeps it busy, in picoseconds */
};

struct tb_problem {
    uint32_t nodes, root;
    uint32_t cluster_count;
    const uint32_t *clusters;    /* of each node, from 0 on */
    uint32_t site_count;         /* 0: not known, or all clusters are alike far from each other */
    const uint32_t *sites;       /* of each cluster, from 0 on; looked at where there are too many clusters at once */
    enum tb_operation operation; /* what flows along the trees */
    uint64_t bytes;              /* of the message; 0: nothing, or not known */
    bool whole;                  /* one tree of whole messages: what else a planner could do is not asked for */
    /* Of the whole message from one node to another that are both idle, in picoseconds: until it is there, and until
     * the sender can go on with the next. */
    uint64_t (*arrive)(const struct tb_problem *problem, uint32_t from, uint32_t to);
    uint64_t (*send)(const struct tb_problem *problem, uint32_t from, uint32_t to);
    /* NULL, or the wires that a message of so many bytes passes, at most TB_PROBLEM_WIRES; how many. *latency: for how
     * long it is under way beside that. */
    uint32_t (*wires)(const struct tb_problem *problem, uint32_t from, uint32_t to, uint64_t bytes,
                      struct tb_problem_wire *wires, uint64_t *latency);
    /* How long a forest takes, in picoseconds. The forest is valid. What is not known at the deadline is rated at
     * TB_COST_NEVER. */
    int (*rate)(struct tb_problem *problem, const struct tb_forest *forest, uint64_t *time);
    uint64_t deadline; /* of the clock, in nanoseconds; 0: none */
    void *context;
};

enum tb_searcher {
    TB_SEARCH_BINOMIAL,      /* by numbers of nodes */
    TB_SEARCH_ECEF,          /* the edge that completes earliest, again and again */
    TB_SEARCH_ECEF_CLUSTERS, /* the same between clusters, a binomial tree in each */
    TB_SEARCH_LPBF,
    TB_SEARCH_GADT,
    TB_SEARCH_GADT_CLUSTERS, /* over clusters, the shorter of two schedules inside each */
    TB_SEARCH_OPTIMUM,       /* over all trees and orders, without deliberate idling */
    TB_SEARCH_OWN,           /* from LPBF on, improved by local search */
    TB_SEARCH_COUNT
};

const char *tb_searcher_name(enum tb_searcher searcher); /* "gadt-clusters" */
bool tb_searcher_find(const char *name, enum tb_searcher *searcher);

struct tb_search_wish {
    uint64_t seed;
    uint64_t evaluations; /* at most so many; 0: the searcher's own limit */
    uint64_t time;        /* nanoseconds of wall clock; 0: no limit */
    /* NULL, or told often how far it is; true: stop with what there is. */
    bool (*progress)(void *context, uint64_t evaluations, uint64_t best);
    void *context;
};

struct tb_search_result {
    struct tb_forest *forest; /* free with tb_forest_close */
    uint64_t time;            /* that the problem rates it at */
    uint64_t evaluations;     /* that it took; of the optimum, states that it looked at as well */
    bool complete;            /* it ended by itself, not by a limit; of the optimum: it is proven */
};

/* TB_ERR_LIMIT: too many nodes for this searcher, told beforehand by tb_searcher_limit; or whatever it has tried takes
 * longer than can be counted. */
int tb_search(struct tb_problem *problem, enum tb_searcher searcher, const struct tb_search_wish *wish,
              struct tb_search_result *result);
uint32_t tb_searcher_limit(enum tb_searcher searcher); /* nodes */

#endif
