#include "explain_planning.h"
#include "explain_tree.h"

#include "planner/planner.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define ROOTS_MOST 64u /* that are tried on a rank: itself, and others that are spread over all */
#define RANKS      2u  /* whose programs are made: the first, and one in the middle */

/* Nanoseconds of the processor, so that it does not matter what else the machine does. */
struct times {
    uint64_t
        first; /* of the first call, or of a root unlike those before, for which algorithms are rated again: most */
    uint32_t unlike; /* how many roots were so */
    uint32_t others; /* other roots, */
    uint64_t other[RANKS * ROOTS_MOST];
};

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int times_compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* One call, which is then over. */
static int call_plan(struct tb_planner *planner, const struct tb_collective *call, uint64_t *time)
{
    const struct tb_program *program;
    uint64_t since = now();
    int error = tb_planner_program(planner, call, &program);
    *time = now() - since;
    if (error == TB_OK)
        tb_planner_release(planner, program);
    return error;
}

static void time_note(struct times *t, bool rated, uint64_t time)
{
    if (rated) {
        t->unlike++;
        t->first = time > t->first ? time : t->first;
    } else {
        t->other[t->others++] = time;
    }
}

/* Other roots than that of the call, on the call's rank. */
static int roots_plan(struct tb_plan_cache *cache, struct tb_planner *planner, const struct tb_collective *call,
                      struct times *t)
{
    struct tb_collective other = *call;
    uint32_t count = call->size < ROOTS_MOST ? call->size : ROOTS_MOST;
    int error = TB_OK;
    for (uint32_t i = 0; i < count && error == TB_OK && tb_choice_rooted(call->operation); i++) {
        uint64_t before = tb_plan_cache_ratings(cache), time;
        other.root = (uint32_t)((call->rank + (uint64_t)i * call->size / count) % call->size);
        if (other.root == call->root)
            continue;
        error = call_plan(planner, &other, &time);
        time_note(t, tb_plan_cache_ratings(cache) != before, time);
    }
    return error;
}

static void plan_print(const struct tb_choice *choice, struct times *t, bool json)
{
    uint64_t middle = 0, most = 0;
    qsort(t->other, t->others, sizeof t->other[0], times_compare);
    if (t->others > 0) {
        middle = t->other[t->others / 2];
        most = t->other[t->others - 1];
    }
    if (json) {
        printf("{\"algorithm\": \"%s\", ", choice->best.algorithm->name);
        tb_explain_argument_json(choice->best.argument);
        printf(", \"seconds\": %.12f, \"planning\": {\"first\": %.9f, \"unlike_roots\": %u, \"other_roots\": %u, "
               "\"median\": %.9f, \"most\": %.9f}}\n",
               choice->best.time == TB_COST_NEVER ? 0 : (double)choice->best.time / 1e12, (double)t->first / 1e9,
               t->unlike, t->others, (double)middle / 1e9, (double)most / 1e9);
        return;
    }
    printf("  The first call takes %.3f ms to plan", (double)t->first / 1e6);
    if (t->unlike > 0)
        printf(" (the longest of %u with roots in unlike places)", t->unlike + 1);
    if (t->others > 0)
        printf(";\n  one with another root %.1f us, %.1f at most of %u roots", (double)middle / 1e3, (double)most / 1e3,
               t->others);
    printf(". %s runs.\n", choice->best.algorithm->name);
}

/* A rank's first call, and others after it. */
static int rank_plan(struct tb_plan_cache *cache, const struct tb_collective *call, struct tb_choice *choice,
                     struct times *t)
{
    struct tb_planner *planner = NULL;
    uint64_t first = 0;
    int error = tb_planner_open(cache, call->shape, call->size, call->rank, &planner);
    if (error == TB_OK)
        error = call_plan(planner, call, &first);
    t->first = first > t->first ? first : t->first;
    if (error == TB_OK)
        error = tb_planner_choice(planner, call, choice);
    if (error == TB_OK)
        error = roots_plan(cache, planner, call, t);
    tb_planner_close(planner);
    return error;
}

int tb_explain_planning(const struct tb_collective *call, bool json)
{
    struct tb_plan_cache *cache = NULL;
    struct tb_collective mine = *call;
    struct times t = {.first = 0};
    struct tb_choice choice = {.best = {.algorithm = NULL}};
    int error = tb_plan_cache_open(&cache);
    for (uint32_t i = 0; i < RANKS && i < call->size && error == TB_OK; i++) {
        mine.rank = i * (call->size / RANKS);
        error = rank_plan(cache, &mine, &choice, &t);
    }
    if (error == TB_OK && choice.best.algorithm != NULL)
        plan_print(&choice, &t, json);
    tb_plan_cache_close(cache);
    return error;
}
