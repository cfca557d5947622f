/* tombolo plan: thinks about the collectives of a grid for as long as it is told to, and writes a plan, which
 * mpiexec --plan follows. */
#include "command.h"
#include "command_file.h"
#include "command_words.h"
#include "help_texts.h"
#include "plan_cells.h"
#include "scene_plan.h"

#include "transport/transport.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char usage[] = TB_HELP_TOMBOLO_PLAN;

#define TIME_USUAL 10000000000ull /* ns, unless evaluations are counted */
#define GAIN_USUAL 10u            /* percent; predictions are not so exact that less would say much */
#define GAIN_MOST  1000u

/* ---- what is asked ----------------------------------------------------------------------------------------------- */

/* Calls `take` with each word of a list with commas. */
static int list_parse(struct plan_wish *wish, const char *option, const char *text,
                      int (*take)(struct plan_wish *wish, const char *word))
{
    char *copy = strdup(text), *rest = copy;
    int error = copy != NULL ? TB_OK : tb_error(TB_ERR_MEMORY, "no memory for %s", option);
    for (char *word; error == TB_OK && (word = strsep(&rest, ",")) != NULL;)
        error = take(wish, word);
    free(copy);
    return error;
}

static int operation_take(struct plan_wish *wish, const char *word)
{
    enum tb_operation operation = tb_operation_read(word, strlen(word));
    if (operation == TB_OPERATION_COUNT)
        return tb_error(TB_ERR_ARGUMENT, "--op: there is no operation \"%s\"; one is called bcast, for example", word);
    struct tb_collective call = {.operation = operation, .size = 2};
    if (!tb_rating_possible(&call))
        return tb_error(TB_ERR_ARGUMENT, "--op: what %s takes cannot be predicted", tb_operation_name(operation));
    wish->operations |= 1u << operation;
    return TB_OK;
}

static int size_take(struct plan_wish *wish, const char *word)
{
    uint64_t size;
    const char *end = tb_number_read(word, &size);
    if (end == NULL || *end != 0 || size > 1ull << 40)
        return tb_error(TB_ERR_ARGUMENT, "--bytes: \"%s\" should be a number up to 1024g", word);
    if (wish->size_count == PLAN_SIZES)
        return tb_error(TB_ERR_LIMIT, "--bytes: there are more than %u sizes", PLAN_SIZES);
    wish->sizes[wish->size_count++] = size;
    return TB_OK;
}

static int planner_parse(struct plan_wish *wish, const char *name)
{
    if (tb_searcher_find(name, &wish->planner))
        return TB_OK;
    return tb_error(TB_ERR_ARGUMENT, "--planner: there is no planner \"%s\"; one is called lpbf, for example", name);
}

static int option_parse(struct plan_wish *wish, const char *word, const char *value)
{
    static const char *const known[] = {"--op",   "--bytes", "--time",    "--evaluations", "--seed",
                                        "--gain", "--set",   "--planner", "--roots",       "-o"};
    size_t i = 0, count = sizeof known / sizeof known[0];
    while (i < count && strcmp(word, known[i]) != 0)
        i++;
    if (i == count)
        return tb_error(TB_ERR_ARGUMENT, "\"%s\" is no option", word);
    if (value == NULL)
        return tb_error(TB_ERR_ARGUMENT, "%s: its value is missing", word);
    if (strcmp(word, "--op") == 0)
        return list_parse(wish, word, value, operation_take);
    if (strcmp(word, "--bytes") == 0)
        return list_parse(wish, word, value, size_take);
    if (strcmp(word, "--time") == 0)
        return tb_command_time(word, value, &wish->time);
    if (strcmp(word, "--evaluations") == 0)
        return tb_command_number(word, value, 1, UINT64_MAX, &wish->evaluations);
    if (strcmp(word, "--seed") == 0)
        return tb_command_number(word, value, 0, UINT64_MAX, &wish->seed);
    if (strcmp(word, "--gain") == 0)
        return tb_command_number(word, value, 0, GAIN_MOST, &wish->gain);
    if (strcmp(word, "--set") == 0)
        return tb_command_set(value);
    if (strcmp(word, "--planner") == 0)
        return planner_parse(wish, value);
    *(strcmp(word, "--roots") == 0 ? &wish->roots : &wish->output) = value;
    return TB_OK;
}

static int wish_parse(struct plan_wish *wish, char **words)
{
    *wish = (struct plan_wish){.roots = "clusters", .seed = 1, .gain = GAIN_USUAL, .planner = TB_SEARCH_COUNT};
    for (int error = TB_OK; *words != NULL; words++) {
        if (strcmp(*words, "--lab") == 0) {
            wish->lab = true;
        } else if (strcmp(*words, "--deal") == 0) {
            wish->deal = true;
        } else if (words[0][0] != '-') {
            if (wish->grid != NULL)
                return tb_error(TB_ERR_ARGUMENT, "\"%s\" is too much: the grid is %s", *words, wish->grid);
            wish->grid = *words;
        } else {
            error = option_parse(wish, words[0], words[1]);
            words++;
        }
        if (error != TB_OK)
            return error;
    }
    if (wish->grid == NULL || wish->output == NULL)
        return tb_error(TB_ERR_ARGUMENT,
                        wish->grid == NULL ? "for which grid?" : "-o: which file is the plan to go to?");
    static const uint64_t usual[] = {16, 1024, 65536, 1 << 20};
    if (wish->size_count == 0) {
        memcpy(wish->sizes, usual, sizeof usual);
        wish->size_count = sizeof usual / sizeof usual[0];
    }
    if (wish->operations == 0)
        wish->operations = 1u << TB_OPERATION_BCAST | 1u << TB_OPERATION_REDUCE;
    if (wish->time == 0 && wish->evaluations == 0)
        wish->time = TIME_USUAL;
    return TB_OK;
}

/* ---- the answer -------------------------------------------------------------------------------------------------- */

static int text_save(const struct tb_plan *plan, const char *title, const char *file)
{
    FILE *to;
    int error = tb_command_file_open(file, &to);
    return error == TB_OK ? tb_command_file_close(to, file, tb_plan_write(plan, title, to)) : error;
}

/* Written beside the file and then renamed, so that there is never half a plan. What is there and is no file, a device,
 * a pipe or a link to something, stays what it is: it is written to. */
static int file_save(const struct tb_plan *plan, const char *title, const char *file)
{
    struct stat about;
    char *beside = NULL;
    if (lstat(file, &about) == 0 && !S_ISREG(about.st_mode))
        return text_save(plan, title, file);
    if (asprintf(&beside, "%s.new", file) < 0)
        return tb_error(TB_ERR_MEMORY, "no memory for the name of the plan");
    int error = text_save(plan, title, beside);
    if (error == TB_OK && rename(beside, file) != 0)
        error = tb_error_errno("cannot write %s", file);
    if (error != TB_OK)
        unlink(beside);
    free(beside);
    return error;
}

/* Whether the plan can be written, as far as that is known before there is one: nobody should think for an hour and
 * have nowhere to put it. */
static int output_check(const char *file, const char *grid)
{
    struct stat about, read;
    if (stat(file, &about) == 0 && stat(grid, &read) == 0 && about.st_dev == read.st_dev && about.st_ino == read.st_ino)
        return tb_error(TB_ERR_ARGUMENT, "cannot write %s: it is the grid", file);
    bool there = lstat(file, &about) == 0, beside = !there || S_ISREG(about.st_mode);
    if (strcmp(file, "-") == 0 || (there && S_ISLNK(about.st_mode)))
        return TB_OK;
    if (there && S_ISDIR(about.st_mode))
        return tb_error(TB_ERR_ARGUMENT, "cannot write %s: it is a directory", file);
    const char *slash = strrchr(file, '/');
    char *folder = slash == NULL ? strdup(".") : strndup(file, (size_t)(slash - file) + 1);
    if (folder == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for the name of the plan");
    bool can = access(beside ? folder : file, beside ? W_OK | X_OK : W_OK) == 0;
    int error = can ? TB_OK : tb_error_errno("cannot write %s", file);
    free(folder);
    return error;
}

static int plan_save(const struct tb_plan *plan, const struct plan_wish *wish)
{
    char title[512];
    snprintf(title, sizeof title,
             "A plan for %.200s, made by tombolo plan. `mpiexec --plan FILE` follows it.\n"
             "docs/guide/planning.md describes what stands here, and how it can be changed.",
             wish->grid);
    return strcmp(wish->output, "-") == 0 ? text_save(plan, title, "-") : file_save(plan, title, wish->output);
}

static int answer(const struct plan_wish *wish)
{
    struct scene scene;
    struct tb_plan plan = {0};
    struct scene_wish where = {.grid = wish->grid, .deal = wish->deal};
    int error = tb_scene_open(&scene, &where);
    if (error == TB_OK)
        error = output_check(wish->output, wish->grid);
    if (error == TB_OK)
        error = tb_scene_plan_hosts(&scene, &plan);
    if (error == TB_OK)
        error = tb_plan_cells(&scene, wish, &plan);
    if (error == TB_OK)
        error = tb_plan_check(&plan, wish->output);
    if (error == TB_OK)
        error = plan_save(&plan, wish);
    tb_plan_close(&plan);
    tb_scene_close(&scene);
    return error;
}

int tb_command_plan(char **words)
{
    struct plan_wish wish;
    if (tb_command_help(words, usage))
        return 0;
    int error = tb_transports_load_params();
    if (error == TB_OK)
        error = wish_parse(&wish, words);
    if (error == TB_OK)
        error = tb_command_collectives(wish.lab);
    if (error != TB_OK) {
        fprintf(stderr, "tombolo plan: %s\n%s", tb_error_story(), usage);
        return 2;
    }
    if (!tb_param_shares_memory()) {
        fputs("tombolo plan: a plan is for hosts, and ranks of a host would have no memory in common (the parameter "
              "transports)\n",
              stderr);
        return 2;
    }
    error = answer(&wish);
    if (error != TB_OK)
        fprintf(stderr, "tombolo plan: %s\n", tb_error_story());
    return error == TB_OK ? 0 : 1;
}
