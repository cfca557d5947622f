/* Where our own search is, and how it goes on: local search with a threshold. A change is kept if the trees are not
 * worse by more than that, and the threshold falls to nothing in the course of a round. Rounds begin with the best that
 * is known, every second one with some changes of it. Everything depends on the seed and the number of evaluations
 * alone, unless there is a limit of time. One thread at a time. */
#ifndef TB_SEARCH_OWN_WALK_H
#define TB_SEARCH_OWN_WALK_H

#include "search/own_moves.h"
#include "search/search_run.h"

struct tb_own_walk {
    struct tb_search_run *run;
    struct tb_own_moves moves;
    struct tb_search_forest now, next; /* where the search is, and a change of it */
    struct tb_search_forest best;      /* valid if best_time is not UINT64_MAX */
    uint64_t time, best_time;          /* of `now` and `best` */
    uint64_t limit;                    /* of this part of the search; the run has its own */
};

/* With room for so many trees. Close it also after an error. */
int tb_own_walk_open(struct tb_own_walk *walk, struct tb_search_run *run, uint32_t trees);
void tb_own_walk_close(struct tb_own_walk *walk);

/* The next part may take one in `parts` of what is left of the budget. */
void tb_own_walk_part(struct tb_own_walk *walk, uint64_t parts);
/* This part of the search is over, or all of it. */
bool tb_own_walk_over(struct tb_own_walk *walk);
/* Rates `next`, and keeps it if it is the best. */
int tb_own_walk_rate(struct tb_own_walk *walk, uint64_t *time);
/* One short round from trees that take so long, which need not be the best. */
int tb_own_walk_round(struct tb_own_walk *walk, const struct tb_search_forest *from, uint64_t time);
/* Rounds from the best on, until this part of the budget is used up. */
int tb_own_walk_rounds(struct tb_own_walk *walk);

#endif
