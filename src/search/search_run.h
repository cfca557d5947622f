/* A search on its way: what has been used of its budget, and the best tree so far. One thread at a time. */
#ifndef TB_SEARCH_SEARCH_RUN_H
#define TB_SEARCH_SEARCH_RUN_H

#include "search/problem.h"
#include "search/search_tree.h"

#define TB_SEARCH_ENDLESS (UINT64_MAX - 1)

struct tb_search_run {
    struct tb_problem *problem;
    const struct tb_search_wish *wish;
    bool treesim;                /* the problem is TreeSim's, which rates trees at once */
    uint64_t limit, evaluations; /* 0: no limit */
    uint64_t deadline, told;     /* of the clock, in nanoseconds; the next look at it, in evaluations */
    uint64_t part;               /* the deadline of the part of the search that goes on */
    uint64_t first;              /* nanoseconds that the first rating has taken; 0: not known */
    bool stopped;                /* by a limit, or by who is told of progress */
    struct tb_search_tree best;  /* valid if best_time is not UINT64_MAX */
    uint64_t best_time;
    struct tb_forest *forest; /* NULL, or what is better than the best tree, at best_time */
};

/* `limit` of evaluations where the wish has none. */
int tb_search_run_open(struct tb_search_run *run, struct tb_problem *problem, const struct tb_search_wish *wish,
                       uint64_t limit);
void tb_search_run_close(struct tb_search_run *run);
/* Rates a tree and keeps it if it is the best. What takes longer than can be counted is rated at
 * TB_SEARCH_ENDLESS, and so is what is not rated when its part of the search is over, unless it is the first, or has
 * not had twice as long as that. */
int tb_search_run_rate(struct tb_search_run *run, const struct tb_search_tree *tree, uint64_t *time);
/* The same of a forest, which is the run's from now on. */
int tb_search_run_rate_forest(struct tb_search_run *run, struct tb_forest *forest, uint64_t *time);
/* Whether a limit is reached; asked between evaluations. */
bool tb_search_run_over(struct tb_search_run *run);

#endif
