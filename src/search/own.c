#include "search/own.h"

#include "search/own_cut.h"
#include "search/own_large.h"
#include "search/own_walk.h"
#include "search/quick.h"

#define ALL_NODES    (1u << 24) /* that are rated in all where nobody says how many evaluations */
#define MOST         400000u    /* evaluations then */
#define MOST_UNKNOWN 4000u      /* the same where rating takes long */
#define ECEF_AT_MOST 1024u      /* nodes */
#define MANY         64u        /* from so many nodes on, clusters are planned as wholes first, */
#define LARGE        (1u << 15) /* and from so many on they are all that is planned, and pieces of the best tree */
#define TREES        8u         /* that are searched for at once, at most, */
#define TREES_MANY   2u         /* of more nodes than can be packed */

uint64_t tb_own_evaluations(const struct tb_problem *problem, bool treesim)
{
    uint64_t evaluations = ALL_NODES / problem->nodes + 1, most = treesim ? MOST : MOST_UNKNOWN;
    return evaluations < most ? evaluations : most;
}

/* A tree that is made, as a start. */
static int start_from(struct tb_own_walk *walk, int (*make)(const struct tb_problem *, struct tb_search_tree *))
{
    uint64_t time;
    if (walk->best_time != UINT64_MAX && tb_own_walk_over(walk))
        return TB_OK;
    tb_search_tree_clear(&walk->next.tree[0]);
    int error = make(walk->run->problem, &walk->next.tree[0]);
    return error == TB_OK ? tb_own_walk_rate(walk, &time) : error;
}

static int ecef_sorted(const struct tb_problem *problem, struct tb_search_tree *tree)
{
    int error = tb_quick_ecef(problem, tree);
    return error == TB_OK ? tb_quick_sort(problem, tree, NULL) : error;
}

static int starts_rate(struct tb_own_walk *walk)
{
    int error = start_from(walk, tb_quick_lpbf);
    if (error == TB_OK)
        error = start_from(walk, tb_quick_clusters);
    if (walk->run->problem->nodes > ECEF_AT_MOST)
        return error;
    if (error == TB_OK)
        error = start_from(walk, tb_quick_ecef);
    if (error == TB_OK)
        error = start_from(walk, ecef_sorted);
    return error;
}

/* What was found with clusters as wholes. */
static int large_take(struct tb_own_walk *walk)
{
    int error = tb_own_large(walk->run);
    if (error == TB_OK && walk->run->best_time < walk->best_time) {
        walk->best_time = walk->run->best_time;
        tb_search_tree_copy(&walk->best.tree[0], &walk->run->best);
    }
    return error;
}

static int parts_run(struct tb_own_walk *walk)
{
    const struct tb_problem *problem = walk->run->problem;
    const bool cut = !problem->whole && problem->bytes > 2 * TB_OWN_PIECE && problem->nodes > 2;
    tb_own_walk_part(walk, cut && problem->nodes < LARGE ? 8 : 1);
    int error = starts_rate(walk);
    if (error == TB_OK && problem->nodes >= MANY && !tb_own_walk_over(walk))
        error = large_take(walk);
    if (error == TB_OK && problem->nodes < LARGE)
        error = tb_own_walk_rounds(walk);
    if (error != TB_OK || !cut)
        return error;
    if (problem->nodes >= LARGE)
        return tb_own_cut_large(walk);
    tb_own_walk_part(walk, 2);
    error = tb_own_cut(walk);
    tb_own_walk_part(walk, 1);
    walk->moves.cuts = true;
    return error == TB_OK ? tb_own_walk_rounds(walk) : error;
}

int tb_own(struct tb_search_run *run)
{
    struct tb_own_walk walk;
    uint32_t nodes = run->problem->nodes;
    int error = tb_own_walk_open(&walk, run, run->problem->whole ? 1 : nodes <= ECEF_AT_MOST ? TREES : TREES_MANY);
    if (error == TB_OK)
        error = parts_run(&walk);
    tb_own_walk_close(&walk);
    return error;
}
