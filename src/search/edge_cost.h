/* What an edge of a tree takes, from parent to child as the operation uses it: what flows up goes the other way, and of
 * an allreduce or a barrier both ways count. */
#ifndef TB_SEARCH_EDGE_COST_H
#define TB_SEARCH_EDGE_COST_H

#include "search/problem.h"

static inline bool tb_edge_goes_down(const struct tb_problem *problem)
{
    return problem->operation != TB_OPERATION_REDUCE && problem->operation != TB_OPERATION_GATHER;
}

static inline bool tb_edge_goes_up(const struct tb_problem *problem)
{
    return problem->operation == TB_OPERATION_REDUCE || problem->operation == TB_OPERATION_GATHER ||
           problem->operation == TB_OPERATION_ALLREDUCE || problem->operation == TB_OPERATION_BARRIER;
}

/* Until it has arrived. */
static inline uint64_t tb_edge_arrive(const struct tb_problem *problem, uint32_t parent, uint32_t child)
{
    return (tb_edge_goes_down(problem) ? problem->arrive(problem, parent, child) : 0) +
           (tb_edge_goes_up(problem) ? problem->arrive(problem, child, parent) : 0);
}

/* Until the parent can go on with its next child. */
static inline uint64_t tb_edge_send(const struct tb_problem *problem, uint32_t parent, uint32_t child)
{
    return (tb_edge_goes_down(problem) ? problem->send(problem, parent, child) : 0) +
           (tb_edge_goes_up(problem) ? problem->send(problem, child, parent) : 0);
}

#endif
