/* tombolo explain: what each algorithm of a collective is predicted to take, cheapest first; of the one that runs, who
 * sends what to whom (explain_tree.c). */
#include "command.h"
#include "command_words.h"
#include "explain_planning.h"
#include "explain_price.h"
#include "explain_tree.h"
#include "help_texts.h"
#include "json_text.h"
#include "scene_plan.h"

#include "planner/planner.h"
#include "transport/transport.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] = TB_HELP_TOMBOLO_EXPLAIN;

#define ROWS_USUAL  12   /* algorithms that are shown unless all are asked for */
#define BYTES_USUAL 1024 /* of a call, unless it is said */

struct query {
    enum tb_operation operation;
    uint64_t bytes, root;
    struct scene_wish where;
    const char *svg;
    bool ordered, in_place, json, all, lab, tree, planning;
};

/* ---- what is asked ----------------------------------------------------------------------------------------------- */

/* One option; `value` is the word behind it, which `*took` says was used. */
static int option_parse(struct query *q, const char *word, const char *value, bool *took)
{
    *took = false;
    if (strcmp(word, "--json") == 0)
        q->json = true;
    else if (strcmp(word, "--all") == 0)
        q->all = true;
    else if (strcmp(word, "--ordered") == 0)
        q->ordered = true;
    else if (strcmp(word, "--in-place") == 0)
        q->in_place = true;
    else if (strcmp(word, "--deal") == 0)
        q->where.deal = true;
    else if (strcmp(word, "--lab") == 0)
        q->lab = true;
    else if (strcmp(word, "--tree") == 0)
        q->tree = true;
    else if (strcmp(word, "--planning") == 0)
        q->planning = true;
    else
        *took = true;
    if (!*took)
        return TB_OK;
    static const char *const known[] = {"--bytes", "--ranks", "--hosts", "--root", "--grid", "--svg", "--set"};
    uint64_t *const numbers[] = {&q->bytes, &q->where.ranks, &q->where.hosts, &q->root};
    static const uint64_t least[] = {0, 1, 1, 0}, most[] = {1ull << 40, 1u << 20, 1u << 16, 1u << 20};
    for (int i = 0; i < 7; i++) {
        if (strcmp(word, known[i]) != 0)
            continue;
        if (value == NULL)
            return tb_error(TB_ERR_ARGUMENT, "%s: its value is missing", word);
        if (i < 4)
            return tb_command_number(word, value, least[i], most[i], numbers[i]);
        if (i == 6)
            return tb_command_set(value);
        *(i == 4 ? &q->where.grid : &q->svg) = value;
        return TB_OK;
    }
    return tb_error(TB_ERR_ARGUMENT, "\"%s\" is no option", word);
}

static int query_parse(struct query *q, char **words)
{
    *q = (struct query){.operation = TB_OPERATION_COUNT, .bytes = SCENE_BYTES_NONE, .where.hosts = 1};
    for (; *words != NULL; words++) {
        bool took = false;
        int error = TB_OK;
        if (words[0][0] != '-' && q->operation == TB_OPERATION_COUNT) {
            q->operation = tb_operation_read(*words, strlen(*words));
            if (q->operation == TB_OPERATION_COUNT)
                error = tb_error(TB_ERR_ARGUMENT, "there is no operation \"%s\"", *words);
        } else {
            error = option_parse(q, *words, words[1], &took);
        }
        if (error != TB_OK)
            return error;
        words += took;
    }
    return q->operation == TB_OPERATION_COUNT ? tb_error(TB_ERR_ARGUMENT, "which operation?")
                                              : tb_scene_bytes(q->operation, BYTES_USUAL, &q->bytes);
}

/* ---- the answer -------------------------------------------------------------------------------------------------- */

static void row_print(const struct query *q, const struct tb_candidate *row, bool runs, bool last)
{
    char argument[64] = ":";
    tb_argument_print(row->argument, false, argument + 1, sizeof argument - 1);
    if (q->json) {
        printf("    {\"algorithm\": \"%s\", ", row->algorithm->name);
        tb_explain_argument_json(row->argument);
        if (row->time != TB_COST_NEVER)
            printf(", \"seconds\": %.12f", (double)row->time / 1e12);
        printf(", \"runs\": %s}%s\n", runs ? "true" : "false", last ? "" : ",");
        return;
    }
    char name[128], time[32] = "not rated";
    snprintf(name, sizeof name, "%s%s", row->algorithm->name, row->argument > 0 ? argument : "");
    if (row->time != TB_COST_NEVER)
        snprintf(time, sizeof time, "%.3f us", (double)row->time / 1e6);
    printf("%c %-28s %18s\n", runs ? '*' : ' ', name, time);
}

/* Of each algorithm the best argument, among the first few; the rest is for those who ask. */
static bool is_worth_a_row(const struct tb_candidate *rows, uint32_t at)
{
    uint32_t algorithms = 0;
    for (uint32_t i = 0; i <= at; i++) {
        bool is_first = true;
        for (uint32_t k = 0; k < i && is_first; k++)
            is_first = rows[k].algorithm != rows[i].algorithm;
        algorithms += is_first ? 1 : 0;
        if (i == at && !is_first)
            return false;
    }
    return algorithms <= ROWS_USUAL;
}

static void head_print(const struct query *q, const struct tb_group_shape *shape, const struct tb_choice *choice)
{
    char word[64], call[128];
    bool unsized = tb_operation_unsized(q->operation);
    tb_operation_word(q->operation, word, sizeof word);
    tb_scene_call_print(q->operation, q->bytes, call, sizeof call);
    if (q->json)
        printf(
            "{\"operation\": \"%s\", \"bytes\": %llu, \"assumed\": %s, \"ranks\": %u, \"hosts\": %u, \"clusters\": %u, "
            "\"because\": \"%s\", ",
            word, (unsigned long long)q->bytes, unsized ? "true" : "false", shape->size, shape->host_count,
            shape->cluster_count, tb_reason_text(choice->reason));
    else
        printf("%s, %u rank%s on %u host%s in %u cluster%s; * runs (%s)\n", call, shape->size, tb_plural(shape->size),
               shape->host_count, tb_plural(shape->host_count), shape->cluster_count, tb_plural(shape->cluster_count),
               tb_reason_text(choice->reason));
    if (unsized && !q->json)
        printf("  Ranks do not know each other's sizes: every block is taken for %llu byte%s, as a job does with the\n"
               "  parameter assumed_block.\n",
               (unsigned long long)q->bytes, tb_plural(q->bytes));
}

static int bound_find(const struct scene *s, const struct tb_collective *call, struct tb_bound *bound)
{
    struct tb_ways ways;
    int error = tb_ways_open(&ways, &s->table, s->shape);
    if (error == TB_OK) {
        error = tb_bound_find(&ways, call, bound);
        tb_ways_close(&ways);
    }
    return error;
}

/* Below what no algorithm gets, and where that is decided. */
static void bound_print(const struct query *q, const struct scene *s, const struct tb_bound *bound)
{
    char where[96] = "latencies";
    if (bound->host != TB_BOUND_NONE)
        snprintf(where, sizeof where, "a host");
    else if (bound->place == 0)
        snprintf(where, sizeof where, "the grid");
    else if (bound->place != TB_BOUND_NONE)
        snprintf(where, sizeof where, "%s", tb_places_name(&s->places, s->shape->places[bound->place].place));
    if (q->json) {
        printf("\"bound\": {\"seconds\": %.12f, \"latency\": %.12f, \"decided_by\": ", (double)bound->time / 1e12,
               (double)bound->latency / 1e12);
        tb_json_text(where);
        printf("}, ");
        return;
    }
    printf("  at least %36.3f us, by %s%s\n\n", (double)bound->time / 1e6,
           bound->host != TB_BOUND_NONE || bound->place != TB_BOUND_NONE ? "the wires of " : "", where);
}

static bool is_choice(const struct tb_candidate *row, const struct tb_choice *choice)
{
    return row->algorithm == choice->best.algorithm &&
           tb_argument_written(row->argument) == tb_argument_written(choice->best.argument);
}

/* What the table says of the one that runs. */
static uint64_t choice_time(const struct tb_candidate *rows, uint32_t count, const struct tb_choice *choice)
{
    for (uint32_t i = 0; i < count; i++)
        if (is_choice(&rows[i], choice))
            return rows[i].time;
    return choice->best.time;
}

/* Why something cheaper than what runs stands in the table. */
static void cheaper_print(const struct tb_candidate *cheapest, uint64_t time, const struct tb_choice *choice)
{
    if (tb_param.mcast_priority != 100 &&
        tb_algorithm_casts(cheapest->algorithm) != tb_algorithm_casts(choice->best.algorithm))
        printf("\n  What runs is not the cheapest: multicast counts for %lld %% as much (mcast_priority).\n",
               (long long)tb_param.mcast_priority);
    else if (cheapest->algorithm == choice->best.algorithm &&
             time <= tb_cost_add(cheapest->time, cheapest->time / TB_ALIKE))
        printf("\n  What runs is not the cheapest: of arguments within %u %% of the best, that with the fewest "
               "messages is\n"
               "  taken.\n",
               100 / TB_ALIKE);
    else
        printf("\n  What runs is not the cheapest: a call, which must not take long to choose, simulates less of each\n"
               "  algorithm than this table, and predicts %.3f us for it.\n",
               (double)choice->best.time / 1e6);
}

/* `bound` is NULL where nothing is predicted. */
static void answer_print(const struct query *q, const struct scene *scene, const struct tb_candidate *rows,
                         uint32_t count, const struct tb_choice *choice, const struct tb_bound *bound)
{
    uint32_t left_out = 0;
    head_print(q, scene->shape, choice);
    if (bound != NULL)
        bound_print(q, scene, bound);
    else
        fputs(q->json ? "\"bound\": null, " : "  at least                                not known\n\n", stdout);
    if (q->json)
        puts("\"candidates\": [");
    for (uint32_t i = 0; i < count; i++) {
        bool runs = is_choice(&rows[i], choice);
        if (q->json || q->all || runs || is_worth_a_row(rows, i))
            row_print(q, &rows[i], runs, i + 1 == count);
        else
            left_out++;
    }
    if (q->json)
        puts("]");
    else if (left_out > 0)
        printf("\n  %u row%s more: --all\n", left_out, tb_plural(left_out));
    uint64_t time = choice_time(rows, count, choice);
    if (!q->json && choice->reason == TB_REASON_MODEL && count > 0 && rows[0].time < time)
        cheaper_print(&rows[0], time, choice);
}

static bool is_picture_only(const struct query *q)
{
    return q->svg != NULL && strcmp(q->svg, "-") == 0;
}

/* Who sends what to whom in the one that runs. */
static int tree_show(const struct query *q, const struct scene *s, const struct tb_collective *call, uint64_t bound,
                     const struct tb_candidate *runs, uint64_t rated)
{
    struct explain_tree tree = {.algorithm = runs->algorithm,
                                .call = *call,
                                .bytes = q->bytes,
                                .bound = bound,
                                .rated = rated,
                                .places = &s->places,
                                .grid = q->where.grid != NULL ? &s->grid : NULL,
                                .slots = s->hosts,
                                .slot_count = s->slots,
                                .print = q->tree && !is_picture_only(q),
                                .json = q->json,
                                .all = q->all,
                                .svg = q->svg};
    tree.call.argument = runs->argument;
    return tb_explain_tree(&tree);
}

/* The call that is asked about. */
static int call_find(const struct query *q, const struct tb_group_shape *shape, struct tb_collective *call)
{
    bool unsized = tb_operation_unsized(q->operation);
    *call = (struct tb_collective){.operation = q->operation,
                                   .size = shape->size,
                                   .root = (uint32_t)q->root,
                                   .elements = unsized ? 0 : q->bytes,
                                   .element_bytes = 1,
                                   .commutative = !q->ordered,
                                   .in_place = q->in_place,
                                   .common = shape->most > 1,
                                   .shape = shape,
                                   .costs = shape->table};
    if (q->root >= shape->size)
        return tb_error(TB_ERR_ARGUMENT, "--root %llu: there are ranks 0 to %u", (unsigned long long)q->root,
                        shape->size - 1);
    if ((q->tree || q->svg != NULL) && !tb_rating_possible(call))
        return tb_error(TB_ERR_ARGUMENT, "who sends what to whom among neighbours depends on who they are: there is "
                                         "nothing that --tree and --svg could show");
    *call = tb_size_class_call(call);
    if (tb_param.reproducible)
        tb_collective_reproduce(call);
    return tb_rules_load();
}

/* What runs, as a job would choose it. Trees of a plan become the call's, and are the caller's. */
static int choice_find(const struct scene *scene, const struct tb_choice_facts *facts, struct tb_collective *call,
                       struct tb_choice *choice, struct tb_forest **forest)
{
    if (tb_preference_find(facts->wish, call) == NULL) {
        int error = tb_scene_plan_choose(scene, call, choice, forest);
        call->forest = *forest;
        if (error != TB_OK || choice->best.algorithm != NULL)
            return error;
    }
    return tb_choice_make(facts, call, choice);
}

static int answer(const struct query *q, const struct scene *scene)
{
    const struct tb_group_shape *shape = scene->shape;
    struct tb_preference wishes[TB_OPERATION_COUNT];
    struct tb_rules rules;
    struct tb_candidate rows[TB_CANDIDATES_LIMIT];
    struct tb_choice choice;
    struct tb_bound bound;
    struct tb_collective call;
    struct tb_forest *forest = NULL;
    int error = call_find(q, shape, &call);
    if (error == TB_OK && q->planning)
        return tb_explain_planning(&call, q->json);
    if (error == TB_OK)
        error = tb_preferences_read(wishes, &rules);
    if (error == TB_OK)
        error = tb_levels_read(&call.skip);
    struct tb_choice_facts facts = {
        .shape = shape, .wish = &wishes[q->operation], .wish_reason = TB_REASON_PARAMETER, .rules = &rules};
    if (error == TB_OK)
        error = choice_find(scene, &facts, &call, &choice, &forest);
    uint32_t count = error == TB_OK ? tb_rating_list(&call, NULL, rows) : 0;
    if (error == TB_OK && tb_rating_possible(&call))
        error = tb_rating_rate(shape, &call, rows, count, true, NULL);
    if (error == TB_OK)
        error = bound_find(scene, &call, &bound);
    tb_rating_sort(rows, count);
    uint64_t time = error == TB_OK ? choice_time(rows, count, &choice) : 0;
    if (error == TB_OK && !is_picture_only(q)) {
        answer_print(q, scene, rows, count, &choice, tb_rating_possible(&call) ? &bound : NULL);
        error = tb_explain_price(&call, !q->ordered, q->json, time);
    }
    if (error == TB_OK && (q->tree || q->svg != NULL))
        error = tree_show(q, scene, &call, bound.time, &choice.best, time);
    if (error == TB_OK && q->json && !is_picture_only(q))
        puts("}");
    tb_forest_close(forest);
    return error;
}

int tb_command_explain(char **words)
{
    struct query q;
    struct scene scene;
    if (tb_command_help(words, usage))
        return 0;
    int error = tb_transports_load_params();
    if (error == TB_OK)
        error = query_parse(&q, words);
    if (error != TB_OK) {
        fprintf(stderr, "tombolo explain: %s\n%s", tb_error_story(), usage);
        return 2;
    }
    tb_command_assume(q.lab);
    error = tb_scene_open(&scene, &q.where);
    if (error == TB_OK)
        error = answer(&q, &scene);
    tb_scene_close(&scene);
    if (error != TB_OK)
        fprintf(stderr, "tombolo explain: %s\n", tb_error_story());
    return error == TB_OK ? 0 : 1;
}
