#include "plan_trees.h"

int tb_plan_trees(const struct tb_collective *call, enum tb_searcher planner, const struct tb_search_wish *wish,
                  struct tb_forest **forest, uint64_t *time)
{
    struct tb_grid_problem grid;
    struct tb_search_result result = {.forest = NULL};
    *forest = NULL;
    if (tb_grid_problem_algorithm(call->operation) == NULL || call->reproducible || call->shape->host_count < 2 ||
        call->shape->host_count > tb_searcher_limit(planner))
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
