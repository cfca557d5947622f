/* The problem (search.h) of one call on a group of ranks of a described grid: nodes are the hosts of its shape,
 * clusters their innermost places. A forest is rated by simulation of all ranks' `planned` programs, as they would run,
 * on the ways of the cost table. Programs of hosts whose neighbours are those of the forest before are not made again.
 * Not part of the library that programs load. One thread at a time. */
#ifndef TB_SEARCH_GRID_PROBLEM_H
#define TB_SEARCH_GRID_PROBLEM_H

#include "planner/planner.h"
#include "search/problem.h"

struct tb_grid_problem {
    struct tb_problem problem; /* for searchers; `context` is this struct, which must not move */
    struct tb_collective call; /* of so many bytes; programs are made for the least of its class of sizes */
    uint64_t limit;            /* of events of a simulation; may be set. A forest that takes more, or longer than can be
                                * counted, is rated at TB_COST_NEVER */
    uint64_t looks;            /* at ways, for the bound; may be set */
    struct tb_ways ways;
    struct tb_simulator *simulator;
    struct tb_program **programs; /* of each rank, for `last`; all NULL without it */
    struct tb_forest *last;
    uint32_t *clusters;
    uint64_t made; /* programs so far */
};

/* The algorithm along planned trees. NULL: none can be planned for the operation. */
const struct tb_algorithm *tb_grid_problem_algorithm(enum tb_operation operation);

/* Of a call on a shape with a cost table, which must outlive it: `rank`, `argument` and `forest` of it are not looked
 * at. Trees of operations without a root begin at the host of `root`, too. TB_ERR_ARGUMENT: nothing can be planned for
 * it, as on one host. TB_ERR_UNSUPPORTED: no trees fit, which is for blocks so long that hosts would keep too many
 * bytes of others, and for operands that must stay in order; then the bound and what the library would choose can be
 * asked for, but nothing of forests. Close it also after an error. */
int tb_grid_problem_open(struct tb_grid_problem *p, const struct tb_collective *call);
void tb_grid_problem_close(struct tb_grid_problem *p);

/* Everyone's programs for a forest, in p->programs. TB_ERR_ARGUMENT: it is not one of these hosts and of this root. */
int tb_grid_problem_make(struct tb_grid_problem *p, const struct tb_forest *forest);
/* Simulates them; of `run` only the rooms for results are set before (ends, times, wire_bytes). */
int tb_grid_problem_run(struct tb_grid_problem *p, struct tb_simulation *run);

/* A time that no schedule of the call is below (planner/bound.h), found with so many looks. */
int tb_grid_problem_bound(struct tb_grid_problem *p, struct tb_bound *bound);

/* How long an algorithm of the catalogue with its argument takes, by a simulation of all of it, as forests are rated;
 * if that takes more events than the limit, the time that the row has already. */
int tb_grid_problem_rate(struct tb_grid_problem *p, struct tb_candidate *row);
/* The same of what the library itself would choose for the call: what a plan has to be better than. `facts` has what
 * users wish; NULL: nothing. */
int tb_grid_problem_library(struct tb_grid_problem *p, const struct tb_choice_facts *facts, struct tb_choice *choice);

#endif
