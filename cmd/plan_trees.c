#include "plan_trees.h"

#define RATE_RANKS  (1u << 16) /* of an algorithm that is simulated as a whole, at most, */
#define RATE_EVENTS (1u << 24) /* and events */

/* Whether trees can be planned for a call. */
static bool is_possible(const struct tb_collective *call, enum tb_searcher planner)
{
    return tb_grid_problem_algorithm(call->operation) != NULL && !call->reproducible && call->shape->host_count > 1 &&
           call->shape->host_count <= tb_searcher_limit(planner);
}

int tb_plan_rate(const struct tb_collective *call, struct tb_candidate *row)
{
    struct tb_grid_problem grid;
    if (!is_possible(call, TB_SEARCH_OWN) || call->size > RATE_RANKS)
        return TB_OK;
    int error = tb_grid_problem_open(&grid, call);
    grid.limit = RATE_EVENTS;
    if (error == TB_OK)
        error = tb_grid_problem_rate(&grid, row);
    else if (error == TB_ERR_UNSUPPORTED) /* no trees for blocks of this size */
        error = TB_OK;
    tb_grid_problem_close(&grid);
    return error;
}

int tb_plan_trees(const struct tb_collective *call, enum tb_searcher planner, const struct tb_search_wish *wish,
                  struct tb_forest **forest, uint64_t *time)
{
    struct tb_grid_problem grid;
    struct tb_search_result result = {.forest = NULL};
    *forest = NULL;
    if (!is_possible(call, planner))
        return TB_OK;
    int error = tb_grid_problem_open(&grid, call);
    if (error == TB_ERR_UNSUPPORTED) { /* none for blocks of this size */
        tb_grid_problem_close(&grid);
        return TB_OK;
    }
    if (error == TB_OK)
        error = tb_search(&grid.problem, planner, wish, &result);
    tb_grid_problem_close(&grid);
    if (error == TB_ERR_LIMIT) /* ranks or pieces that are too many to be simulated */
        return TB_OK;
    *forest = result.forest;
    *time = result.time;
    return error;
}
