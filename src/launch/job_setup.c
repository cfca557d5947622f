#include "launch/job_setup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define WINDOW_TOTAL   (16u << 20) /* output of all hosts that may be under way */
#define WINDOW_MOST    (256u << 10)
#define WINDOW_LEAST   (8u << 10)
#define HOLD_TERMINAL  100000000u  /* an unfinished line waits this long for its end, */
#define HOLD_ELSEWHERE 1000000000u /* or this long, where nobody waits for a prompt */

static char *export_parameters(void)
{
    size_t length = tb_param_export(NULL, 0);
    char *text = malloc(length + 1);
    if (text != NULL) {
        tb_param_export(text, length + 1);
        text[length] = 0;
    }
    return text;
}

/* Those that belong to a host and were set here: other hosts use them unless they know better. */
static char *export_own_parameters(void)
{
    char *text = NULL;
    size_t length = 0;
    FILE *to = open_memstream(&text, &length);
    if (to == NULL)
        return NULL;
    for (size_t i = 0; i < tb_param_count(); i++) {
        const struct tb_param_row *row = tb_param_row(i);
        char value[1024], where[128];
        if (!(row->flags & TB_PARAM_LOCAL) || tb_param_origin(row) == TB_PARAM_DEFAULT)
            continue;
        tb_param_print(row, value, sizeof value);
        tb_param_print_origin(row, where, sizeof where);
        fprintf(to, "#%s of mpiexec\n%s=%s\n", where, row->name, value);
    }
    return fclose(to) == 0 ? text : NULL;
}

static char *export_rank_cpus(const struct tb_rank_file *file)
{
    char *text = NULL;
    size_t length = 0;
    FILE *to = open_memstream(&text, &length);
    if (to == NULL)
        return NULL;
    for (uint32_t i = 0; i < file->count; i++)
        if (file->places[i].cpus != NULL)
            fprintf(to, "%u=%s\n", i, file->places[i].cpus);
    return fclose(to) == 0 ? text : NULL;
}

/* Of the terminal that our output goes to: 65536 * lines + columns, or 0. */
static uint32_t terminal_size(void)
{
    struct winsize size;
    return ioctl(1, TIOCGWINSZ, &size) == 0 ? (uint32_t)size.ws_row << 16 | size.ws_col : 0;
}

int tb_job_setup_make(struct tb_setup *setup, const struct tb_options *options, struct tb_placement *placement)
{
    uint32_t window = WINDOW_TOTAL / placement->book.host_count;
    *setup = (struct tb_setup){.version = (char *)TB_VERSION,
                               .host_count = placement->book.host_count,
                               .flags = (options->pty ? TB_SETUP_PTY : 0) | (options->own_program ? TB_SETUP_OWN : 0),
                               .bind = options->bind,
                               .bind_width = options->bind_width > 0 ? options->bind_width : 1,
                               .bind_cpus = strdup(options->bind_cpus != NULL ? options->bind_cpus : ""),
                               .rank_cpus = export_rank_cpus(&options->rank_file),
                               .input_rank = options->input_rank,
                               .window = window > WINDOW_MOST    ? WINDOW_MOST
                                         : window < WINDOW_LEAST ? WINDOW_LEAST
                                                                 : window,
                               .hold = isatty(1) ? HOLD_TERMINAL : HOLD_ELSEWHERE,
                               .terminal = terminal_size(),
                               .parameters = export_parameters(),
                               .own_parameters = export_own_parameters(),
                               .directory = getcwd(NULL, 0), /* NULL: there is none any more */
                               .app_count = placement->app_count,
                               .apps = placement->apps};
    if (setup->parameters == NULL || setup->own_parameters == NULL || setup->bind_cpus == NULL ||
        setup->rank_cpus == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for the parameters");
    if (setup->directory == NULL)
        setup->directory = strdup("");
    int rc = tb_key_make(&setup->key);
    while (rc == TB_OK && setup->job == 0)
        rc = tb_random_secret(&setup->job, sizeof setup->job);
    placement->book.job = setup->job;
    return rc;
}

void tb_job_setup_forget(struct tb_setup *setup)
{
    free(setup->parameters);
    free(setup->own_parameters);
    free(setup->bind_cpus);
    free(setup->rank_cpus);
    free(setup->directory);
    explicit_bzero(setup, sizeof *setup);
}
