/* tombolo run, mpiexec, mpirun: starts a job, with --grid on the hosts of a grid file, with --lab in a lab that lives
 * as long as the job. */
#include "command.h"
#include "help_texts.h"

#include "lab/lab.h"
#include "launch/launch.h"
#include "planner/planner.h"
#include "transport/transport.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct job {
    struct tb_options *options;
    const char *program;
};

static int launch(void *context)
{
    struct job *job = context;
    return tb_launch_run(job->options, job->program);
}

/* The machine of the lab on which the launcher runs: the console, from where it reaches what outsiders reach; if a job
 * cannot be started from there, the host of the grid from which it can. */
static const char *choose_machine(const struct tb_grid *grid)
{
    struct tb_start_place start;
    bool inside = tb_grid_check(grid, true, &start) == TB_OK && start.host != TB_GRID_NONE;
    return inside ? grid->hosts[start.host].name : TB_LAB_CONSOLE;
}

static int run_in_lab(struct job *job)
{
    struct tb_options *options = job->options;
    struct tb_grid grid;
    char name[TB_LAB_NAME_BYTES], note[TB_LAB_NOTE_BYTES] = "", launcher[PATH_MAX + 16];
    int code = 1;
    int rc = tb_grid_load(&grid, options->lab);
    if (rc == TB_OK)
        rc = tb_command_collectives(true);
    if (rc == TB_OK)
        rc = tb_lab_up(&grid, &(struct tb_lab_wish){0}, name, note);
    /* The command is split at spaces, which the path may have. */
    snprintf(launcher, sizeof launcher, "%s lab exec",
             strpbrk(job->program, " \t") == NULL ? job->program : "/proc/self/exe");
    options->launcher = launcher;
    options->grid = &grid;
    bool is_up = rc == TB_OK;
    if (*note != 0)
        tb_log(TB_LOG_INFO, "lab", "%s", note);
    if (is_up)
        rc = tb_lab_enter(name, choose_machine(&grid), launch, job, false, &code);
    if (rc != TB_OK)
        fprintf(stderr, "%s: %s\n", options->name, tb_error_story());
    if (is_up)
        tb_command_leave_lab(options->name, name, rc == TB_OK ? code : 0);
    options->launcher = NULL;
    options->grid = NULL;
    return code;
}

static int run_on_grid(struct job *job)
{
    struct tb_grid grid;
    int rc = tb_grid_load(&grid, job->options->grid_file);
    if (rc == TB_OK)
        rc = tb_command_collectives(false);
    if (rc != TB_OK) {
        fprintf(stderr, "%s: %s\n", job->options->name, tb_error_story());
        return 1;
    }
    job->options->grid = &grid;
    int code = launch(job);
    job->options->grid = NULL;
    tb_grid_close(&grid);
    return code;
}

/* What collectives are to follow goes with the job; what is wrong with it is told before anything starts. */
static int read_plan(struct tb_options *options, void **image)
{
    struct tb_plan plan;
    if (*tb_param.plan == 0)
        return TB_OK;
    int rc = tb_plan_load(&plan, tb_param.plan);
    if (rc == TB_OK) {
        rc = tb_plan_image_make(&plan, image, &options->plan_bytes);
        if (rc != TB_OK)
            tb_error(rc, "%s: %s", tb_param.plan, tb_error_story());
    }
    options->plan = *image;
    tb_plan_close(&plan);
    return rc;
}

int tb_command_run(const char *name, char **words)
{
    struct tb_options options = {.name = name};
    char program[PATH_MAX];
    struct job job = {.options = &options, .program = program};
    void *plan = NULL;
    tb_log_identify("launcher");
    int rc = tb_transports_load_params();
    if (rc == TB_OK)
        rc = tb_options_parse(&options, words);
    if (rc == TB_OK && options.action == TB_OPTIONS_HELP) {
        fputs(TB_HELP_MPIEXEC, stdout);
        return 0;
    }
    if (rc == TB_OK && options.action == TB_OPTIONS_VERSION) {
        printf("%s (Tombolo) %s\n", name, TB_VERSION);
        return 0;
    }
    if (rc == TB_OK && options.lab == NULL && options.grid_file == NULL)
        rc = tb_command_collectives(false);
    if (rc == TB_OK)
        rc = read_plan(&options, &plan);
    if (rc != TB_OK) {
        fprintf(stderr, "%s: %s\n", name, tb_error_story());
        return 2;
    }
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length < 0) {
        fprintf(stderr, "%s: cannot find out where tombolo is: /proc/self/exe cannot be read\n", name);
        return 1;
    }
    program[length] = 0;
    int code = options.lab != NULL ? run_in_lab(&job) : options.grid_file != NULL ? run_on_grid(&job) : launch(&job);
    tb_options_close(&options);
    free(plan);
    return code;
}
