#include "planner/choice.h"
#include "planner/item_bytes.h"

#include <string.h>

#define REACH 4u /* what is predicted to take longer than the best one by this factor is not tried */

uint64_t tb_candidate_argument(const struct tb_candidate *candidate)
{
    return tb_argument_piece(candidate->argument) * tb_argument_narrow(candidate->argument);
}

int tb_candidate_argument_print(const struct tb_candidate *candidate, char *text, size_t size)
{
    return tb_argument_print(candidate->argument, false, text, size);
}

const char *tb_reason_text(enum tb_reason reason)
{
    static const char *const texts[TB_REASON_COUNT] = {
        [TB_REASON_ONLY] = "no other fits",     [TB_REASON_MODEL] = "predicted",
        [TB_REASON_REFERENCE] = "first to fit", [TB_REASON_RULE] = "a rule",
        [TB_REASON_PARAMETER] = "a parameter",  [TB_REASON_INFO] = "an info key",
        [TB_REASON_PLAN] = "the plan",          [TB_REASON_TRIAL] = "being tried",
        [TB_REASON_MEASURED] = "measured",
    };
    return texts[reason];
}

/* Of an algorithm's arguments that are about as good as the best one, the first: those with the fewest messages stand
 * there, and what is not in the model is mostly a price for each message. */
static struct tb_candidate first_alike(const struct tb_candidate *rows, uint32_t count, const struct tb_candidate *best)
{
    for (uint32_t i = 0; i < count; i++)
        if (rows[i].algorithm == best->algorithm && rows[i].time <= tb_cost_add(best->time, best->time / TB_ALIKE))
            return rows[i];
    return *best;
}

bool tb_choice_rooted(enum tb_operation o)
{
    return o == TB_OPERATION_BCAST || o == TB_OPERATION_GATHER || o == TB_OPERATION_GATHERV ||
           o == TB_OPERATION_SCATTER || o == TB_OPERATION_SCATTERV || o == TB_OPERATION_REDUCE;
}

/* The best row follows levels, if one that does is as good: it takes as long with every root of a place, while one that
 * goes by ranks alone may suit only the root that stands for them. `rows` are sorted. */
static void levels_first(struct tb_candidate *rows, uint32_t count)
{
    uint32_t i = 0;
    uint64_t most = tb_cost_add(rows[0].time, rows[0].time / TB_ALIKE);
    while (i < count && rows[i].time <= most && !tb_algorithm_levels(rows[i].algorithm))
        i++;
    if (i == count || rows[i].time > most)
        return;
    struct tb_candidate best = rows[i];
    memmove(rows + 1, rows, i * sizeof rows[0]);
    rows[0] = best;
}

const struct tb_correction *tb_corrections_find(const struct tb_corrections *corrections,
                                                const struct tb_algorithm *algorithm)
{
    for (uint32_t i = 0; i < corrections->count; i++)
        if (corrections->rows[i].algorithm == algorithm)
            return &corrections->rows[i];
    return NULL;
}

/* Replaces predictions by what they should have been, so that the cheapest row is the right one: while there is
 * something to be tried, rows that have been tried are out of the question; after that, those that have not. */
static enum tb_reason rows_correct(struct tb_candidate *rows, uint32_t count, const struct tb_corrections *corrections)
{
    uint64_t least = TB_COST_NEVER;
    for (uint32_t i = 0; i < count; i++)
        least = rows[i].time < least ? rows[i].time : least;
    uint64_t reach = least > TB_COST_NEVER / REACH ? TB_COST_NEVER - 1 : least * REACH;
    bool trial = false;
    for (uint32_t i = 0; i < count && corrections->count < TB_CORRECTIONS_LIMIT; i++)
        trial = trial || (rows[i].time <= reach && tb_corrections_find(corrections, rows[i].algorithm) == NULL);
    for (uint32_t i = 0; i < count; i++) {
        const struct tb_correction *c = tb_corrections_find(corrections, rows[i].algorithm);
        bool out = trial ? c != NULL || rows[i].time > reach : c == NULL;
        if (out || rows[i].time == TB_COST_NEVER) {
            rows[i].time = TB_COST_NEVER;
        } else if (!trial) {
            unsigned __int128 time = (unsigned __int128)rows[i].time * c->factor / TB_FACTOR_ONE;
            rows[i].time = time >= TB_COST_NEVER ? TB_COST_NEVER - 1 : (uint64_t)time;
        }
    }
    return trial ? TB_REASON_TRIAL : TB_REASON_MEASURED;
}

/* What is multicast counts for less, or more, as the job wishes. */
static void rows_weigh(struct tb_candidate *rows, uint32_t count)
{
    uint64_t priority = tb_param.mcast_priority > 0 ? (uint64_t)tb_param.mcast_priority : 100;
    for (uint32_t i = 0; i < count && priority != 100; i++)
        if (tb_algorithm_casts(rows[i].algorithm) && rows[i].time != TB_COST_NEVER) {
            unsigned __int128 time = (unsigned __int128)rows[i].time * 100 / priority;
            rows[i].time = time >= TB_COST_NEVER ? TB_COST_NEVER - 1 : (uint64_t)time;
        }
}

static uint64_t time_of(const struct tb_candidate *rows, uint32_t count, const struct tb_candidate *row)
{
    for (uint32_t i = 0; i < count; i++)
        if (rows[i].algorithm == row->algorithm && rows[i].argument == row->argument)
            return rows[i].time;
    return row->time;
}

/* The cheapest of an algorithm's arguments, or of all algorithms. */
static int choice_rate(const struct tb_choice_facts *facts, const struct tb_collective *c,
                       const struct tb_algorithm *only, struct tb_choice *choice)
{
    struct tb_candidate rows[TB_CANDIDATES_LIMIT];
    uint32_t count = tb_rating_list(c, only, rows);
    int error = count > 1 ? tb_rating_rate(facts->shape, c, rows, count, false, NULL) : TB_OK;
    if (error != TB_OK || count == 0)
        return error;
    choice->rated += count > 1 ? count : 0;
    enum tb_reason reason = TB_REASON_MODEL;
    if (only == NULL && facts->corrections != NULL)
        reason = rows_correct(rows, count, facts->corrections);
    struct tb_candidate first[TB_CANDIDATES_LIMIT], rated[TB_CANDIDATES_LIMIT];
    memcpy(rated, rows, count * sizeof rows[0]);
    rows_weigh(rows, count);
    memcpy(first, rows, count * sizeof rows[0]);
    tb_rating_sort(rows, count);
    if (reason == TB_REASON_MODEL && tb_choice_rooted(c->operation))
        levels_first(rows, count);
    choice->best = first_alike(first, count, &rows[0]);
    choice->next.algorithm = NULL;
    /* Another argument of the same algorithm is no other choice. */
    for (uint32_t i = 1; i < count && choice->next.algorithm == NULL; i++)
        if (rows[i].algorithm != rows[0].algorithm && (reason == TB_REASON_MODEL || rows[i].time != TB_COST_NEVER))
            choice->next = rows[i];
    choice->best.time = time_of(rated, count, &choice->best);
    choice->next.time = choice->next.algorithm != NULL ? time_of(rated, count, &choice->next) : choice->next.time;
    if (only == NULL)
        choice->reason = reason == TB_REASON_MODEL && choice->next.algorithm == NULL ? TB_REASON_ONLY : reason;
    return TB_OK;
}

static int choice_wish(const struct tb_choice_facts *facts, const struct tb_collective *c,
                       const struct tb_preference *wish, enum tb_reason reason, struct tb_choice *choice)
{
    const struct tb_algorithm *row = tb_preference_find(wish, c);
    if (row == NULL)
        return TB_OK;
    *choice = (struct tb_choice){.best = {row, wish->argument, TB_COST_NEVER}, .reason = reason};
    if (row->argument == NULL || wish->argument != 0 || !tb_rating_possible(c))
        return TB_OK;
    return choice_rate(facts, c, row, choice);
}

int tb_choice_make(const struct tb_choice_facts *facts, const struct tb_collective *c, struct tb_choice *choice)
{
    int error = TB_OK;
    *choice = (struct tb_choice){.reason = TB_REASON_ONLY};
    if (facts->wish != NULL)
        error = choice_wish(facts, c, facts->wish, facts->wish_reason, choice);
    if (error == TB_OK && choice->best.algorithm == NULL && facts->rules != NULL) {
        const struct tb_preference *rule = tb_rules_find(facts->rules, c, facts->shape->host_count, tb_call_bytes(c));
        if (rule != NULL)
            error = choice_wish(facts, c, rule, TB_REASON_RULE, choice);
    }
    if (error != TB_OK || choice->best.algorithm != NULL)
        return error;
    if (tb_rating_possible(c))
        return choice_rate(facts, c, NULL, choice);
    struct tb_candidate rows[TB_CANDIDATES_LIMIT];
    uint32_t count = tb_rating_list(c, NULL, rows), first = 0;
    while (first < count && !tb_algorithm_levels(rows[first].algorithm))
        first++;
    if (count >
        0) /* between two groups, what follows levels if there are some: that is seldom worse, whatever the size */
        *choice = (struct tb_choice){.best = rows[first < count ? first : 0], .reason = TB_REASON_REFERENCE};
    return TB_OK;
}
