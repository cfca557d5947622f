/* tombolo run, mpiexec, mpirun: starts a job, with --lab in a lab that lives as long as the job. */
#include "command.h"

#include "lab/lab.h"
#include "launch/launch.h"

#include <limits.h>
#include <stdio.h>
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

/* Messages through gateways are not there yet, so everybody must reach everybody. */
static int check_reach(const struct tb_grid *grid)
{
    uint32_t from, to;
    if (!tb_grid_first_unreachable(grid, &from, &to))
        return TB_OK;
    const struct tb_grid_host *a = &grid->hosts[from], *b = &grid->hosts[to];
    bool there = tb_grid_reaches(grid, from, to), back = tb_grid_reaches(grid, to, from);
    return tb_error(TB_ERR_UNSUPPORTED,
                    "%s:%u: hosts %s and %s both carry ranks, but %s cannot connect to %s%s. Tombolo does not pass "
                    "messages through gateways yet: give slots only to hosts that reach each other",
                    grid->file, b->line, a->name, b->name, there ? b->name : a->name, there ? a->name : b->name,
                    there || back ? "" : ", nor the other way round");
}

/* The launcher itself runs on the console of the lab. */
static int run_in_lab(struct job *job)
{
    struct tb_options *options = job->options;
    struct tb_grid grid;
    char name[TB_LAB_NAME_BYTES], launcher[PATH_MAX + 16];
    int code = 1;
    int rc = tb_grid_load(&grid, options->lab);
    if (rc == TB_OK)
        rc = check_reach(&grid);
    if (rc == TB_OK)
        rc = tb_host_list_take(&options->hosts, &grid);
    if (rc == TB_OK)
        rc = tb_command_collectives(&grid);
    if (rc == TB_OK)
        rc = tb_lab_up(&grid, NULL, false, name);
    /* The command is split at spaces, which the path may have. */
    snprintf(launcher, sizeof launcher, "%s lab exec",
             strpbrk(job->program, " \t") == NULL ? job->program : "/proc/self/exe");
    options->launcher = launcher;
    bool is_up = rc == TB_OK;
    if (is_up)
        rc = tb_lab_enter(name, TB_LAB_CONSOLE, launch, job, false, &code);
    if (rc != TB_OK)
        fprintf(stderr, "%s: %s\n", options->name, tb_error_story());
    if (is_up)
        (void)tb_lab_down(name); /* it ends with us, but its name should be free when we are gone */
    options->launcher = NULL;
    return code;
}

int tb_command_run(const char *name, char **words)
{
    struct tb_options options = {.name = name};
    char program[PATH_MAX];
    struct job job = {.options = &options, .program = program};
    tb_log_identify("launcher");
    int rc = tb_param_load();
    if (rc == TB_OK)
        rc = tb_options_parse(&options, words);
    if (rc == TB_OK && options.action == TB_OPTIONS_HELP) {
        fputs(tb_options_help, stdout);
        return 0;
    }
    if (rc == TB_OK && options.action == TB_OPTIONS_VERSION) {
        printf("%s (Tombolo) %s\n", name, TB_VERSION);
        return 0;
    }
    if (rc == TB_OK && options.lab == NULL)
        rc = tb_command_collectives(NULL);
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
    int code = options.lab != NULL ? run_in_lab(&job) : launch(&job);
    tb_options_close(&options);
    return code;
}
