/* Local search with a threshold: a change is kept if the trees are not worse by more than that, and the threshold falls
 * to nothing in the course of a round. Rounds begin with the best that is known, every second one with some changes of
 * it. Everything depends on the seed and the number of evaluations alone, unless there is a limit of time.
 *
 * Where messages may be cut, pieces are tried on the trees found so far and on lines and binary trees, which suit many
 * pieces better; then two trees that share the message. Each gets a part of the budget. */
#include "search/own.h"

#include "search/own_large.h"
#include "search/own_moves.h"
#include "search/quick.h"

#define TREES        2u         /* that are searched for at once, at most */
#define ALL_NODES    (1u << 24) /* that are rated in all where nobody says how many evaluations */
#define MOST         400000u    /* evaluations then */
#define MOST_UNKNOWN 4000u      /* the same where rating takes long */
#define ROUND        25u        /* evaluations of a round, for each node */
#define THRESHOLD    16u        /* the first threshold is one part in nodes * nodes / THRESHOLD of the time */
#define ECEF_AT_MOST 1024u      /* nodes */
#define MANY         64u        /* from so many nodes on, clusters are planned as wholes first, */
#define LARGE        (1u << 15) /* and from so many on they are all that is planned */
#define SHAKEN       16u        /* nodes up to which a second round changes as many places */
#define LOOK         8u         /* changes between two looks at where the time goes */
#define PIECE_LEAST  4096u

struct own {
    struct tb_search_run *run;
    struct tb_own_moves moves;
    uint32_t trees;
    uint64_t piece;                                /* 0: whole messages */
    struct tb_search_tree now[TREES], next[TREES]; /* where the search is, and a change of it */
    uint64_t time;                                 /* of `now` */
    struct tb_search_tree best[TREES];             /* of these trees and pieces */
    uint64_t best_time;
    uint64_t limit; /* of this part of the search; the run has its own */
};

uint64_t tb_own_evaluations(const struct tb_problem *problem, bool treesim)
{
    uint64_t evaluations = ALL_NODES / problem->nodes + 1, most = treesim ? MOST : MOST_UNKNOWN;
    return evaluations < most ? evaluations : most;
}

/* This part of the search is over, or all of it. */
static bool part_over(struct own *own)
{
    if (tb_search_run_over(own->run))
        return true;
    if (own->limit != 0 && own->run->evaluations >= own->limit)
        return true;
    return own->run->part != TB_NEVER && tb_clock_now_real() >= own->run->part;
}

/* The next part may take one in `parts` of what is left of the budget. */
static void part_begin(struct own *own, uint64_t parts)
{
    struct tb_search_run *run = own->run;
    uint64_t now = run->deadline == TB_NEVER ? 0 : tb_clock_now_real();
    own->limit = 0;
    run->part = run->deadline;
    if (parts > 1 && run->limit > run->evaluations)
        own->limit = run->evaluations + (run->limit - run->evaluations) / parts;
    if (parts > 1 && run->deadline != TB_NEVER && run->deadline > now)
        run->part = now + (run->deadline - now) / parts;
}

static int trees_rate(struct own *own, const struct tb_search_tree *trees, uint64_t *time)
{
    struct tb_forest *forest;
    if (own->trees == 1 && own->piece == 0)
        return tb_search_run_rate(own->run, trees, time);
    int error = tb_search_tree_forests(trees, own->trees, own->piece, &forest);
    return error == TB_OK ? tb_search_run_rate_forest(own->run, forest, time) : error;
}

static void best_note(struct own *own, const struct tb_search_tree *trees, uint64_t time)
{
    if (time >= own->best_time)
        return;
    own->best_time = time;
    for (uint32_t i = 0; i < own->trees; i++)
        tb_search_tree_copy(&own->best[i], &trees[i]);
}

/* A tree that is made, as a start. */
static int start_from(struct own *own, int (*make)(const struct tb_problem *, struct tb_search_tree *))
{
    uint64_t time;
    if (own->best_time != UINT64_MAX && part_over(own))
        return TB_OK;
    tb_search_tree_clear(&own->next[0]);
    int error = make(own->run->problem, &own->next[0]);
    if (error == TB_OK)
        error = trees_rate(own, own->next, &time);
    if (error == TB_OK)
        best_note(own, own->next, time);
    return error;
}

static int ecef_sorted(const struct tb_problem *problem, struct tb_search_tree *tree)
{
    int error = tb_quick_ecef(problem, tree);
    return error == TB_OK ? tb_quick_sort(problem, tree, NULL) : error;
}

static int starts_rate(struct own *own)
{
    int error = start_from(own, tb_quick_lpbf);
    if (error == TB_OK)
        error = start_from(own, tb_quick_clusters);
    if (own->run->problem->nodes > ECEF_AT_MOST)
        return error;
    if (error == TB_OK)
        error = start_from(own, tb_quick_ecef);
    if (error == TB_OK)
        error = start_from(own, ecef_sorted);
    return error;
}

/* A change of one of the trees, in `next`. */
static void change_make(struct own *own)
{
    uint32_t which = own->trees == 1 ? 0 : (uint32_t)tb_random_below(&own->moves.random, own->trees);
    for (uint32_t i = 0; i < own->trees; i++)
        tb_search_tree_copy(&own->next[i], &own->now[i]);
    for (uint32_t tries = 0; tries < 64 && !tb_own_moves_change(&own->moves, &own->next[which]);)
        tries++;
}

static void change_keep(struct own *own, uint64_t time)
{
    for (uint32_t i = 0; i < own->trees; i++) {
        struct tb_search_tree tree = own->now[i];
        own->now[i] = own->next[i];
        own->next[i] = tree;
    }
    own->time = time;
    best_note(own, own->now, time);
}

/* One round of so many evaluations, of which the first may be worse by `threshold`. */
static int round_run(struct own *own, uint64_t length, uint64_t threshold)
{
    TB_ASSERT(own->trees > 0);
    for (uint64_t n = 0; n < length && !part_over(own); n++) {
        if (n % LOOK == 0)
            tb_own_moves_look(&own->moves, &own->now[n / LOOK % own->trees]);
        uint64_t time, more = threshold / length * (length - n) / (1 + 3 * n / length);
        change_make(own);
        int error = trees_rate(own, own->next, &time);
        if (error != TB_OK)
            return error;
        if (time <= own->time || time - own->time <= more)
            change_keep(own, time);
    }
    return TB_OK;
}

/* Rounds until this part of the budget is used up. */
static int rounds_run(struct own *own)
{
    static const uint32_t factors[] = {4, 8, 2}; /* of thresholds, in quarters */
    const uint64_t nodes = own->run->problem->nodes;
    uint64_t parts = nodes * nodes / THRESHOLD > 2 ? nodes * nodes / THRESHOLD : 2;
    int error = TB_OK;
    for (uint32_t round = 0; error == TB_OK && nodes > 2 && !part_over(own); round++) {
        for (uint32_t i = 0; i < own->trees; i++)
            tb_search_tree_copy(&own->now[i], &own->best[i]);
        own->time = own->best_time;
        uint64_t threshold = own->time / parts / 4 * factors[round % 3];
        if (round % 2 == 1) {
            for (uint64_t i = 0; i < (nodes <= SHAKEN ? nodes : 3); i++)
                tb_own_moves_change(&own->moves, &own->now[0]);
            error = trees_rate(own, own->now, &own->time);
        }
        if (error == TB_OK)
            best_note(own, own->now, own->time);
        if (error == TB_OK)
            error = round_run(own, ROUND * nodes, threshold);
    }
    return error;
}

static int line_make(const struct tb_problem *problem, struct tb_search_tree *tree)
{
    return tb_quick_line(problem, tree, 1);
}

static int binary_make(const struct tb_problem *problem, struct tb_search_tree *tree)
{
    return tb_quick_line(problem, tree, 2);
}

/* Rates lengths of pieces on the best tree so far, on a line and on a binary tree; the best of all is where the search
 * goes on. The shorter pieces are, the longer it takes to rate them: they are left for last. */
static int pieces_try(struct own *own)
{
    const uint64_t bytes = own->run->problem->bytes, whole_time = own->best_time;
    uint64_t best_piece = 0, best_time = own->best_time, longest = PIECE_LEAST;
    struct tb_search_tree whole, *best = &own->now[0]; /* what is best of all stands there */
    int error = tb_search_tree_open(&whole, own->run->problem->nodes, own->run->problem->root);
    if (error != TB_OK)
        return error;
    tb_search_tree_copy(&whole, &own->best[0]);
    tb_search_tree_copy(best, &whole);
    while (longest <= (bytes - 1) / 2)
        longest *= 2;
    for (uint64_t piece = longest; error == TB_OK && piece >= PIECE_LEAST && !part_over(own); piece /= 2) {
        uint64_t time;
        own->piece = piece;
        own->best_time = UINT64_MAX;
        error = trees_rate(own, &whole, &time);
        if (error == TB_OK)
            best_note(own, &whole, time);
        if (error == TB_OK)
            error = start_from(own, line_make);
        if (error == TB_OK)
            error = start_from(own, binary_make);
        if (error == TB_OK && own->best_time < best_time) {
            best_time = own->best_time;
            best_piece = piece;
            tb_search_tree_copy(best, &own->best[0]);
        }
    }
    own->piece = best_piece;
    own->best_time = best_piece == 0 ? whole_time : best_time;
    tb_search_tree_copy(&own->best[0], best);
    tb_search_tree_close(&whole);
    return error;
}

/* A second tree in which whoever leads to many leads to few: nodes of each cluster change places, the first with the
 * last. It is kept if it helps. */
static int second_tree_try(struct own *own)
{
    const struct tb_problem *problem = own->run->problem;
    const uint64_t single_time = own->best_time;
    uint64_t time;
    tb_search_tree_copy(&own->now[0], &own->best[0]);
    tb_search_tree_copy(&own->now[1], &own->best[0]);
    for (uint32_t c = 0; c < problem->cluster_count; c++)
        for (uint32_t i = own->moves.first[c], k = own->moves.first[c + 1]; i + 1 < k; i++) {
            uint32_t a = own->moves.members[i], b = own->moves.members[--k];
            if (a != problem->root && b != problem->root)
                tb_search_tree_swap(&own->now[1], a, b);
        }
    own->trees = 2;
    int error = trees_rate(own, own->now, &time);
    if (error != TB_OK)
        return error;
    own->best_time = UINT64_MAX;
    best_note(own, own->now, time);
    part_begin(own, 2);
    error = rounds_run(own);
    if (error == TB_OK && own->best_time > single_time && own->run->forest != NULL) { /* which is the single one */
        own->trees = 1;
        own->best_time = single_time;
        tb_search_tree_read(&own->best[0], own->run->forest, 0);
    }
    return error;
}

static int parts_run(struct own *own)
{
    const struct tb_problem *problem = own->run->problem;
    const bool cut = !problem->whole && problem->bytes > PIECE_LEAST && problem->nodes > 2;
    part_begin(own, cut ? 4 : 1);
    int error = starts_rate(own);
    if (error == TB_OK && problem->nodes >= MANY && !part_over(own))
        error = tb_own_large(own->run);
    if (error == TB_OK)
        best_note(own, &own->run->best, own->run->best_time);
    if (error == TB_OK && problem->nodes < LARGE)
        error = rounds_run(own);
    if (error != TB_OK || !cut || problem->nodes >= LARGE)
        return error;
    part_begin(own, 2);
    error = pieces_try(own);
    part_begin(own, 3);
    if (error == TB_OK)
        error = rounds_run(own);
    if (error == TB_OK && own->piece != 0 && !tb_search_run_over(own->run))
        error = second_tree_try(own);
    part_begin(own, 1);
    return error == TB_OK ? rounds_run(own) : error;
}

int tb_own(struct tb_search_run *run)
{
    const struct tb_problem *problem = run->problem;
    const uint32_t trees = problem->whole ? 1 : TREES;
    struct own own = {.run = run, .trees = 1, .best_time = UINT64_MAX};
    int error = tb_own_moves_open(&own.moves, problem, run->wish->seed);
    for (uint32_t i = 0; error == TB_OK && i < trees; i++) {
        error = tb_search_tree_open(&own.now[i], problem->nodes, problem->root);
        if (error == TB_OK)
            error = tb_search_tree_open(&own.next[i], problem->nodes, problem->root);
        if (error == TB_OK)
            error = tb_search_tree_open(&own.best[i], problem->nodes, problem->root);
    }
    if (error == TB_OK)
        error = parts_run(&own);
    tb_own_moves_close(&own.moves);
    for (uint32_t i = 0; i < trees; i++) {
        tb_search_tree_close(&own.now[i]);
        tb_search_tree_close(&own.next[i]);
        tb_search_tree_close(&own.best[i]);
    }
    return error;
}
