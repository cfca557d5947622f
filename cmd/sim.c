/* tombolo sim: what planners make of a grid, a matrix of bandwidths or random grids, how long it would take, and how
 * far that is from the best. */
#include "sim.h"
#include "command.h"
#include "command_words.h"
#include "help_texts.h"

#include "planner/planner.h"
#include "transport/transport.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char usage[] = TB_HELP_TOMBOLO_SIM;

#define BYTES_USUAL (1u << 20)

/* ---- what is asked ----------------------------------------------------------------------------------------------- */

/* Takes what is before the next comma into `word`; the text behind it, or NULL at the end. */
static const char *word_take(const char *text, char *word, size_t size)
{
    size_t length = strcspn(text, ",");
    snprintf(word, size, "%.*s", (int)length, text);
    return text[length] == ',' ? text + length + 1 : NULL;
}

/* What one planner may take: a time, or so many trees. */
static int limit_parse(struct sim_query *q, enum tb_searcher searcher, char *text)
{
    static const char unit[] = "trees";
    size_t length = strlen(text), word = sizeof unit - 1;
    if (length < word || strcmp(text + length - word, unit) != 0)
        return tb_command_time("--planner", text, &q->times[searcher]);
    text[length - word] = 0;
    return tb_command_number("--planner", text, 1, 1ull << 40, &q->evaluations[searcher]);
}

/* Names with commas between them, each with or without what it may take: lpbf,own:50ms,gadt:1000trees */
static int planners_parse(struct sim_query *q, const char *text)
{
    char word[64], known[256] = "";
    q->planners = 0;
    for (uint32_t i = 0; i < TB_SEARCH_COUNT; i++)
        snprintf(known + strlen(known), sizeof known - strlen(known), ", %s", tb_searcher_name((enum tb_searcher)i));
    while (text != NULL) {
        enum tb_searcher searcher;
        text = word_take(text, word, sizeof word);
        char *colon = strchr(word, ':');
        if (colon != NULL)
            *colon = 0;
        if (strcmp(word, "all") == 0 && colon != NULL)
            return tb_error(TB_ERR_ARGUMENT, "--planner: a limit for all of them is --time %s or --evaluations",
                            colon + 1);
        if (strcmp(word, "all") == 0)
            q->planners |= (1u << TB_SEARCH_COUNT) - 1;
        else if (tb_searcher_find(word, &searcher))
            q->planners |= 1u << searcher;
        else
            return tb_error(TB_ERR_ARGUMENT, "--planner: there is no planner \"%s\"; there are all%s", word, known);
        if (colon != NULL && limit_parse(q, searcher, colon + 1) != TB_OK)
            return TB_ERR_ARGUMENT;
    }
    return TB_OK;
}

static int clusters_parse(struct sim_query *q, const char *text)
{
    char word[64];
    q->cluster_counts = 0;
    while (text != NULL) {
        uint64_t number;
        text = word_take(text, word, sizeof word);
        int error = tb_command_number("--clusters", word, 2, 32, &number);
        if (error == TB_OK && number != 2 && number != 4 && number != 8 && number != 16 && number != 32)
            error = tb_error(TB_ERR_ARGUMENT, "--clusters %s: the thesis has grids of 2, 4, 8, 16 and 32", word);
        if (error == TB_OK && q->cluster_counts == SIM_CLUSTERS_MOST)
            error = tb_error(TB_ERR_ARGUMENT, "--clusters: at most %u numbers", SIM_CLUSTERS_MOST);
        if (error != TB_OK)
            return error;
        q->clusters[q->cluster_counts++] = (uint32_t)number;
    }
    return TB_OK;
}

static int model_parse(struct sim_query *q, const char *text)
{
    static const char *const names[SIM_MODELS] = {
        [SIM_GRID] = "grid", [SIM_THESIS] = "thesis", [SIM_LATENCY] = "latency", [SIM_POSTAL] = "postal"};
    for (uint32_t i = 0; i < SIM_MODELS; i++) {
        if (strcmp(text, names[i]) == 0) {
            q->model = (enum sim_model)i;
            q->model_said = true;
            return TB_OK;
        }
    }
    return tb_error(TB_ERR_ARGUMENT, "--model %s: there are grid, thesis, latency and postal", text);
}

static int operation_parse(struct sim_query *q, const char *text)
{
    q->operation = tb_operation_read(text, strlen(text));
    return q->operation == TB_OPERATION_COUNT ? tb_error(TB_ERR_ARGUMENT, "there is no operation \"%s\"", text) : TB_OK;
}

/* Options without a value. */
static bool flag_parse(struct sim_query *q, const char *word)
{
    bool *const flags[] = {&q->json, &q->whole, &q->lab, &q->where.deal, &q->symmetric, &q->asymmetric};
    static const char *const names[] = {"--json", "--whole", "--lab", "--deal", "--symmetric", "--asymmetric"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(word, names[i]) == 0) {
            *flags[i] = true;
            return true;
        }
    }
    return false;
}

static int option_parse(struct sim_query *q, const char *word, const char *value)
{
    static const struct {
        const char *name;
        size_t at;
    } texts[] = {{"--matrix", offsetof(struct sim_query, matrix)},
                 {"--schedule", offsetof(struct sim_query, schedule)},
                 {"--draw", offsetof(struct sim_query, draw)},
                 {"--root", offsetof(struct sim_query, root)}};
    if (value == NULL)
        return tb_error(TB_ERR_ARGUMENT, "%s: its value is missing", word);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (strcmp(word, texts[i].name) == 0) {
            *(const char **)((char *)q + texts[i].at) = value;
            return TB_OK;
        }
    }
    if (strcmp(word, "--op") == 0)
        return operation_parse(q, value);
    if (strcmp(word, "--bytes") == 0)
        return tb_command_number(word, value, 0, 1ull << 40, &q->bytes);
    if (strcmp(word, "--planner") == 0)
        return planners_parse(q, value);
    if (strcmp(word, "--seed") == 0)
        return tb_command_number(word, value, 0, UINT64_MAX, &q->wish.seed);
    if (strcmp(word, "--time") == 0)
        return tb_command_time(word, value, &q->wish.time);
    if (strcmp(word, "--evaluations") == 0)
        return tb_command_number(word, value, 1, 1ull << 40, &q->wish.evaluations);
    if (strcmp(word, "--random") == 0)
        return tb_command_number(word, value, 1, 1u << 14, &q->random);
    if (strcmp(word, "--grids") == 0)
        return tb_command_number(word, value, 1, 1u << 20, &q->grids);
    if (strcmp(word, "--clusters") == 0)
        return clusters_parse(q, value);
    if (strcmp(word, "--model") == 0)
        return model_parse(q, value);
    return tb_command_set(value);
}

static bool takes_value(const char *word)
{
    static const char *const names[] = {"--op",          "--bytes",    "--planner", "--seed",     "--time",
                                        "--evaluations", "--random",   "--grids",   "--clusters", "--model",
                                        "--matrix",      "--schedule", "--draw",    "--root",     "--set"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(word, names[i]) == 0)
            return true;
    return false;
}

/* What does not go together. */
static int query_settle(struct sim_query *q)
{
    bool trees = tb_plan_has_trees(q->operation), grid = q->where.grid != NULL;
    uint32_t sources = (grid ? 1 : 0) + (q->matrix != NULL ? 1 : 0) + (q->random > 0 ? 1 : 0);
    if (sources != 1)
        return tb_error(TB_ERR_ARGUMENT, "%s: a grid file, --matrix FILE or --random NODES",
                        sources == 0 ? "on what" : "only one of them");
    if (!q->model_said)
        q->model = grid ? SIM_GRID : SIM_THESIS;
    if (!grid && q->model != SIM_THESIS)
        return tb_error(TB_ERR_ARGUMENT, "a matrix says nothing of latencies: --model thesis is what there is of it");
    if (!trees && q->model != SIM_GRID)
        return tb_error(TB_ERR_ARGUMENT,
                        "trees are searched for bcast, reduce, allreduce, barrier, gather and scatter; "
                        "other operations need a grid file and --model grid");
    if (q->random == 0 && (q->grids > 0 || q->cluster_counts > 0 || q->symmetric || q->asymmetric))
        return tb_error(TB_ERR_ARGUMENT, "--grids, --clusters, --symmetric and --asymmetric go with --random");
    if (!grid && (q->where.deal || q->lab))
        return tb_error(TB_ERR_ARGUMENT, "--deal and --lab go with a grid file");
    if (q->matrix != NULL && strcmp(q->matrix, "-") == 0 && q->schedule != NULL && strcmp(q->schedule, "-") == 0)
        return tb_error(TB_ERR_ARGUMENT, "--matrix and --schedule cannot both be standard input");
    if (q->schedule != NULL && q->random > 0)
        return tb_error(TB_ERR_ARGUMENT, "--schedule goes with a grid file or --matrix");
    if ((q->draw != NULL || q->schedule != NULL) && !trees)
        return tb_error(TB_ERR_ARGUMENT, "--draw and --schedule are for operations whose trees are searched");
    if (q->cluster_counts == 0)
        for (uint32_t count = 2; count <= 32; count *= 2)
            q->clusters[q->cluster_counts++] = count;
    if (!q->symmetric && !q->asymmetric)
        q->symmetric = q->asymmetric = true;
    q->grids = q->grids > 0 ? q->grids : 1;
    return tb_scene_bytes(q->operation, BYTES_USUAL, &q->bytes);
}

static int query_parse(struct sim_query *q, char **words)
{
    *q = (struct sim_query){
        .operation = TB_OPERATION_BCAST, .bytes = SCENE_BYTES_NONE, .where.hosts = 1, .wish.seed = 1};
    int error = planners_parse(q, "all");
    for (; *words != NULL && error == TB_OK; words++) {
        if (words[0][0] != '-' && q->where.grid == NULL) {
            q->where.grid = *words;
        } else if (takes_value(*words)) {
            error = option_parse(q, *words, words[1]);
            words += error == TB_OK ? 1 : 0;
        } else if (!flag_parse(q, *words)) {
            error = words[0][0] != '-'
                        ? tb_error(TB_ERR_ARGUMENT, "\"%s\" is too much: the grid is %s", *words, q->where.grid)
                        : tb_error(TB_ERR_ARGUMENT, "\"%s\" is no option", *words);
        }
    }
    return error == TB_OK ? query_settle(q) : error;
}

/* ---- planners ---------------------------------------------------------------------------------------------------- */

static uint64_t clock_read(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t tb_sim_clock(void)
{
    return clock_read(CLOCK_MONOTONIC);
}

struct sim_row *tb_sim_row(struct sim *sim)
{
    if (sim->row_count == sim->row_room) {
        uint32_t room = 2 * sim->row_room + 16;
        struct sim_row *rows = realloc(sim->rows, room * sizeof *rows);
        if (rows == NULL) {
            (void)tb_error(TB_ERR_MEMORY, "no memory for the table");
            return NULL;
        }
        sim->rows = rows;
        sim->row_room = room;
    }
    struct sim_row *row = &sim->rows[sim->row_count++];
    *row = (struct sim_row){.time = TB_COST_NEVER};
    return row;
}

static int planner_run(struct sim *sim, enum tb_searcher searcher)
{
    struct sim_row *row = tb_sim_row(sim);
    struct tb_search_result result = {.forest = NULL};
    uint32_t limit = tb_searcher_limit(searcher);
    if (row == NULL)
        return TB_ERR_MEMORY;
    snprintf(row->name, sizeof row->name, "%s", tb_searcher_name(searcher));
    memcpy(row->not_run, sim->unfit, sizeof row->not_run);
    if (*sim->unfit != 0)
        return TB_OK;
    if (sim->problem->nodes > limit) {
        snprintf(row->not_run, sizeof row->not_run, "more than %u nodes", limit);
        return TB_OK;
    }
    struct tb_search_wish wish = sim->query->wish;
    wish.time = sim->query->times[searcher] > 0 ? sim->query->times[searcher] : wish.time;
    wish.evaluations = sim->query->evaluations[searcher] > 0 ? sim->query->evaluations[searcher] : wish.evaluations;
    uint64_t since = tb_sim_clock(), processor = clock_read(CLOCK_THREAD_CPUTIME_ID);
    int error = tb_search(sim->problem, searcher, &wish, &result);
    row->planning = tb_sim_clock() - since;
    row->processor = clock_read(CLOCK_THREAD_CPUTIME_ID) - processor;
    if (error == TB_ERR_LIMIT || error == TB_ERR_UNSUPPORTED) {
        snprintf(row->not_run, sizeof row->not_run, "%s", tb_error_story());
        return TB_OK;
    }
    if (error != TB_OK)
        return error;
    row->time = result.time;
    row->evaluations = result.evaluations;
    row->limited = !result.complete;
    row->forest = result.forest;
    return TB_OK;
}

int tb_sim_plan(struct sim *sim)
{
    int error = TB_OK;
    for (uint32_t i = 0; i < TB_SEARCH_COUNT && error == TB_OK; i++)
        if ((sim->query->planners >> i & 1) != 0)
            error = planner_run(sim, (enum tb_searcher)i);
    return error;
}

void tb_sim_judge(struct sim *sim)
{
    sim->best = UINT32_MAX;
    for (uint32_t i = 0; i < sim->row_count; i++) {
        uint64_t least = sim->best == UINT32_MAX ? TB_COST_NEVER : sim->rows[sim->best].time;
        if (sim->rows[i].time < least)
            sim->best = i;
    }
}

void tb_sim_rows_close(struct sim *sim)
{
    for (uint32_t i = 0; i < sim->row_count; i++)
        tb_forest_close(sim->rows[i].forest);
    tb_forest_close(sim->schedule);
    sim->schedule = NULL;
    free(sim->rows);
    sim->rows = NULL;
    sim->row_count = sim->row_room = 0;
}

int tb_command_sim(char **words)
{
    struct sim_query q;
    if (tb_command_help(words, usage))
        return 0;
    int error = tb_transports_load_params();
    if (error == TB_OK)
        error = query_parse(&q, words);
    if (error == TB_OK)
        error = tb_command_collectives(q.lab);
    if (error != TB_OK) {
        fprintf(stderr, "tombolo sim: %s\n%s", tb_error_story(), usage);
        return 2;
    }
    error = q.random > 0 ? tb_sim_random(&q) : q.matrix != NULL ? tb_sim_matrix(&q) : tb_sim_grid(&q);
    if (error != TB_OK)
        fprintf(stderr, "tombolo sim: %s\n", tb_error_story());
    return error == TB_OK ? 0 : 1;
}
