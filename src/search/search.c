#include "search/problem.h"

#include <string.h>

#include "search/ecef.h"
#include "search/gadt.h"
#include "search/optimum.h"
#include "search/own.h"
#include "search/quick.h"
#include "search/search_run.h"

#define FIRST_EVALUATIONS 1000u /* for each node, before the search of the optimum */

/* A tree that is made, and rated once. */
static int made_tree(struct tb_search_run *run, int (*make)(const struct tb_problem *, struct tb_search_tree *))
{
    struct tb_search_tree tree;
    uint64_t time;
    int error = tb_search_tree_open(&tree, run->problem->nodes, run->problem->root);
    if (error != TB_OK)
        return error;
    error = make(run->problem, &tree);
    if (error == TB_OK)
        error = tb_search_run_rate(run, &tree, &time);
    tb_search_tree_close(&tree);
    return error;
}

static int binomial_search(struct tb_search_run *run)
{
    return made_tree(run, tb_quick_binomial);
}

static int ecef_search(struct tb_search_run *run)
{
    return made_tree(run, tb_quick_ecef);
}

static int clusters_search(struct tb_search_run *run)
{
    return made_tree(run, tb_quick_clusters);
}

static int lpbf_search(struct tb_search_run *run)
{
    return made_tree(run, tb_quick_lpbf);
}

static int own_search(struct tb_search_run *run)
{
    if (run->limit == 0 && run->deadline == TB_NEVER)
        run->limit = tb_own_evaluations(run->problem, run->treesim);
    return tb_own(run);
}

/* A good tree of whole messages first, so that little is left to try. */
static int optimum_search(struct tb_search_run *run)
{
    struct tb_search_run first = *run;
    bool whole = run->problem->whole;
    first.limit = FIRST_EVALUATIONS * run->problem->nodes;
    if (run->limit != 0 && run->limit < first.limit)
        first.limit = run->limit;
    run->problem->whole = true;
    int error = tb_own(&first);
    run->problem->whole = whole;
    run->evaluations = first.evaluations;
    run->best = first.best;
    run->best_time = first.best_time;
    return error == TB_OK ? tb_optimum(run) : error;
}

struct searcher {
    const char *name;
    int (*search)(struct tb_search_run *run);
    uint32_t nodes;       /* at most */
    uint64_t evaluations; /* at most, unless more are wished for; 0: it ends by itself */
};

static const struct searcher searchers[TB_SEARCH_COUNT] = {
    [TB_SEARCH_BINOMIAL] = {"binomial", binomial_search, TB_SEARCH_NODES, 0},
    [TB_SEARCH_ECEF] = {"ecef", ecef_search, TB_ECEF_POINTS, 0},
    [TB_SEARCH_ECEF_CLUSTERS] = {"ecef-clusters", clusters_search, TB_SEARCH_NODES, 0},
    [TB_SEARCH_LPBF] = {"lpbf", lpbf_search, TB_SEARCH_NODES, 0},
    [TB_SEARCH_GADT] = {"gadt", tb_gadt, TB_GADT_NODES, 0},
    [TB_SEARCH_GADT_CLUSTERS] = {"gadt-clusters", tb_gadt_clusters, TB_GADT_NODES, 0},
    [TB_SEARCH_OPTIMUM] = {"optimum", optimum_search, TB_OPTIMUM_NODES, 0},
    [TB_SEARCH_OWN] = {"own", own_search, TB_SEARCH_NODES, 0},
};

const char *tb_searcher_name(enum tb_searcher searcher)
{
    return searchers[searcher].name;
}

bool tb_searcher_find(const char *name, enum tb_searcher *searcher)
{
    for (uint32_t i = 0; i < TB_SEARCH_COUNT; i++)
        if (strcmp(name, searchers[i].name) == 0) {
            *searcher = (enum tb_searcher)i;
            return true;
        }
    return false;
}

uint32_t tb_searcher_limit(enum tb_searcher searcher)
{
    return searchers[searcher].nodes;
}

int tb_search(struct tb_problem *problem, enum tb_searcher searcher, const struct tb_search_wish *wish,
              struct tb_search_result *result)
{
    const struct searcher *s = &searchers[searcher];
    struct tb_search_run run;
    *result = (struct tb_search_result){0};
    if (problem->nodes == 0 || problem->root >= problem->nodes)
        return tb_error(TB_ERR_ARGUMENT, "root %u of %u nodes", problem->root, problem->nodes);
    if (problem->nodes > s->nodes)
        return tb_error(TB_ERR_LIMIT, "%u nodes are too many for %s; at most %u", problem->nodes, s->name, s->nodes);
    int error = tb_search_run_open(&run, problem, wish, s->evaluations);
    if (error == TB_OK)
        error = s->search(&run);
    if (error == TB_OK && run.best_time >= TB_SEARCH_ENDLESS)
        error = tb_error(TB_ERR_LIMIT, "no tree of %s ends within what can be counted, 213 days", s->name);
    if (error == TB_OK && run.forest != NULL) {
        result->forest = run.forest;
        run.forest = NULL;
    } else if (error == TB_OK) {
        error = tb_search_tree_forest(&run.best, &result->forest);
    }
    result->time = run.best_time;
    result->evaluations = run.evaluations;
    result->complete = !run.stopped;
    tb_search_run_close(&run);
    return error;
}
