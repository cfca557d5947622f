#include "search/own_walk.h"

#define ROUND     25u  /* evaluations of a round, for each node, */
#define SHORT     8u   /* and of a short one */
#define THRESHOLD 16u  /* the first threshold is one part in nodes * nodes / THRESHOLD of the time */
#define CUT_PARTS 400u /* but one in so many at most, where messages are cut, and good trees are known at first */
#define SHAKEN    16u  /* nodes up to which a second round changes as many places */
#define LOOK      8u   /* changes between two looks at where the time goes */
#define TRIES     64u  /* for a change, which may turn out to be none */

int tb_own_walk_open(struct tb_own_walk *walk, struct tb_search_run *run, uint32_t trees)
{
    const struct tb_problem *problem = run->problem;
    *walk = (struct tb_own_walk){.run = run, .best_time = UINT64_MAX};
    int error = tb_own_moves_open(&walk->moves, problem, run->wish->seed);
    if (error == TB_OK)
        error = tb_search_forest_open(&walk->now, problem->nodes, problem->root, trees);
    if (error == TB_OK)
        error = tb_search_forest_open(&walk->next, problem->nodes, problem->root, trees);
    if (error == TB_OK)
        error = tb_search_forest_open(&walk->best, problem->nodes, problem->root, trees);
    return error;
}

void tb_own_walk_close(struct tb_own_walk *walk)
{
    tb_own_moves_close(&walk->moves);
    tb_search_forest_close(&walk->now);
    tb_search_forest_close(&walk->next);
    tb_search_forest_close(&walk->best);
}

void tb_own_walk_part(struct tb_own_walk *walk, uint64_t parts)
{
    struct tb_search_run *run = walk->run;
    uint64_t now = run->deadline == TB_NEVER ? 0 : tb_clock_now_real();
    walk->limit = 0;
    run->part = run->deadline;
    if (parts > 1 && run->limit > run->evaluations)
        walk->limit = run->evaluations + (run->limit - run->evaluations) / parts;
    if (parts > 1 && run->deadline != TB_NEVER && run->deadline > now)
        run->part = now + (run->deadline - now) / parts;
}

bool tb_own_walk_over(struct tb_own_walk *walk)
{
    if (tb_search_run_over(walk->run))
        return true;
    if (walk->limit != 0 && walk->run->evaluations >= walk->limit)
        return true;
    if (walk->run->part == TB_NEVER || tb_clock_now_real() < walk->run->part)
        return false;
    walk->run->stopped = walk->run->part == walk->run->deadline; /* the last part */
    return true;
}

static void best_note(struct tb_own_walk *walk, const struct tb_search_forest *forest, uint64_t time)
{
    if (time >= walk->best_time)
        return;
    walk->best_time = time;
    tb_search_forest_copy(&walk->best, forest);
}

/* One tree of whole messages is what the run is told of as a tree. */
static int forest_rate(struct tb_own_walk *walk, const struct tb_search_forest *from, uint64_t *time)
{
    struct tb_forest *forest;
    if (from->trees == 1 && from->piece == 0)
        return tb_search_run_rate(walk->run, &from->tree[0], time);
    int error = tb_search_forest_make(from, &forest);
    return error == TB_OK ? tb_search_run_rate_forest(walk->run, forest, time) : error;
}

int tb_own_walk_rate(struct tb_own_walk *walk, uint64_t *time)
{
    int error = forest_rate(walk, &walk->next, time);
    if (error == TB_OK)
        best_note(walk, &walk->next, *time);
    return error;
}

static void change_make(struct tb_own_walk *walk)
{
    tb_search_forest_copy(&walk->next, &walk->now);
    for (uint32_t tries = 0; tries < TRIES && !tb_own_moves_change(&walk->moves, &walk->next);)
        tries++;
}

static void change_keep(struct tb_own_walk *walk, uint64_t time)
{
    struct tb_search_forest forest = walk->now;
    walk->now = walk->next;
    walk->next = forest;
    walk->time = time;
}

/* One round of so many evaluations, of which the first may be worse by `threshold`. */
static int round_run(struct tb_own_walk *walk, uint64_t length, uint64_t threshold)
{
    for (uint64_t n = 0; n < length && !tb_own_walk_over(walk); n++) {
        if (n % LOOK == 0)
            tb_own_moves_look(&walk->moves, &walk->now.tree[n / LOOK % walk->now.trees]);
        uint64_t time, more = threshold / length * (length - n) / (1 + 3 * n / length);
        change_make(walk);
        int error = tb_own_walk_rate(walk, &time);
        if (error != TB_OK)
            return error;
        if (time <= walk->time || time - walk->time <= more)
            change_keep(walk, time);
    }
    return TB_OK;
}

/* The threshold is one part in so many of the time. */
static uint64_t threshold_parts(const struct tb_own_walk *walk)
{
    const uint64_t nodes = walk->run->problem->nodes, least = walk->moves.cuts ? CUT_PARTS : 2;
    return nodes * nodes / THRESHOLD > least ? nodes * nodes / THRESHOLD : least;
}

int tb_own_walk_round(struct tb_own_walk *walk, const struct tb_search_forest *from, uint64_t time)
{
    tb_search_forest_copy(&walk->now, from);
    walk->time = time;
    return round_run(walk, (uint64_t)SHORT * walk->run->problem->nodes, time / threshold_parts(walk));
}

int tb_own_walk_rounds(struct tb_own_walk *walk)
{
    static const uint32_t factors[] = {4, 8, 2}; /* of thresholds, in quarters */
    const uint64_t nodes = walk->run->problem->nodes, parts = threshold_parts(walk);
    int error = TB_OK;
    for (uint32_t round = 0; error == TB_OK && nodes > 2 && !tb_own_walk_over(walk); round++) {
        tb_search_forest_copy(&walk->now, &walk->best);
        walk->time = walk->best_time;
        uint64_t threshold = walk->time / parts / 4 * factors[round % 3];
        if (round % 2 == 1) {
            tb_search_forest_copy(&walk->next, &walk->now);
            for (uint64_t i = 0; i < (nodes <= SHAKEN ? nodes : 3); i++)
                tb_own_moves_change(&walk->moves, &walk->next);
            uint64_t time;
            error = tb_own_walk_rate(walk, &time);
            if (error != TB_OK)
                return error;
            change_keep(walk, time);
        }
        error = round_run(walk, ROUND * nodes, threshold);
    }
    return error;
}
