#include "search/search_run.h"

#include "search/treesim.h"

#define TOLD_NODES 256u /* nodes that are rated between two looks at the clock */

int tb_search_run_open(struct tb_search_run *run, struct tb_problem *problem, const struct tb_search_wish *wish,
                       uint64_t limit)
{
    *run = (struct tb_search_run){.problem = problem,
                                  .wish = wish,
                                  .treesim = tb_treesim_is(problem),
                                  .limit = wish->evaluations != 0 ? wish->evaluations : limit,
                                  .deadline = wish->time == 0 ? TB_NEVER : tb_clock_now_real() + wish->time,
                                  .best_time = UINT64_MAX};
    run->part = run->deadline;
    return tb_search_tree_open(&run->best, problem->nodes, problem->root);
}

void tb_search_run_close(struct tb_search_run *run)
{
    tb_search_tree_close(&run->best);
    tb_forest_close(run->forest);
    run->forest = NULL;
}

static int forest_rate(struct tb_search_run *run, const struct tb_forest *forest, uint64_t *time)
{
    struct tb_problem *problem = run->problem;
    if (run->deadline == TB_NEVER)
        return problem->rate(problem, forest, time);
    uint64_t now = tb_clock_now_real(), least = now + 2 * run->first;
    problem->deadline = run->first == 0 ? 0 : least > run->part ? least : run->part;
    int error = problem->rate(problem, forest, time);
    problem->deadline = 0;
    if (run->first == 0)
        run->first = tb_clock_now_real() - now + 1;
    return error;
}

static int tree_rate(struct tb_search_run *run, const struct tb_search_tree *tree, uint64_t *time)
{
    struct tb_forest *forest;
    if (run->treesim) {
        *time = tb_treesim_time(run->problem, tree);
        return TB_OK;
    }
    int error = tb_search_tree_forest(tree, &forest);
    if (error == TB_OK)
        error = forest_rate(run, forest, time);
    tb_forest_close(forest);
    return error;
}

int tb_search_run_rate(struct tb_search_run *run, const struct tb_search_tree *tree, uint64_t *time)
{
    int error = tree_rate(run, tree, time);
    if (error != TB_OK)
        return error;
    *time = *time > TB_SEARCH_ENDLESS ? TB_SEARCH_ENDLESS : *time;
    run->evaluations++;
    if (*time < run->best_time) {
        run->best_time = *time;
        tb_search_tree_copy(&run->best, tree);
        tb_forest_close(run->forest);
        run->forest = NULL;
    }
    return TB_OK;
}

int tb_search_run_rate_forest(struct tb_search_run *run, struct tb_forest *forest, uint64_t *time)
{
    int error = forest_rate(run, forest, time);
    run->evaluations++;
    *time = *time > TB_SEARCH_ENDLESS ? TB_SEARCH_ENDLESS : *time;
    if (error == TB_OK && *time < run->best_time) {
        tb_forest_close(run->forest);
        run->best_time = *time;
        run->forest = forest;
    } else {
        tb_forest_close(forest);
    }
    return error;
}

bool tb_search_run_over(struct tb_search_run *run)
{
    if (run->limit != 0 && run->evaluations >= run->limit)
        run->stopped = true;
    if (run->stopped || run->evaluations < run->told)
        return run->stopped;
    run->told = run->evaluations + (run->treesim ? 1 + TOLD_NODES / run->problem->nodes : 1);
    if (run->deadline != TB_NEVER && tb_clock_now_real() >= run->deadline)
        run->stopped = true;
    if (run->wish->progress != NULL && run->wish->progress(run->wish->context, run->evaluations, run->best_time))
        run->stopped = true;
    return run->stopped;
}
