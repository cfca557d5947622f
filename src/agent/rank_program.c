#include "agent/rank_program.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

extern char **environ;

#define OWN TB_RANK_PROGRAM_OWN

void tb_start_failure_set(struct tb_start_failure *failure, int exit_code, const char *format, ...)
{
    va_list rest;
    va_start(rest, format);
    vsnprintf(failure->text, sizeof failure->text, format, rest);
    va_end(rest);
    failure->exit_code = exit_code;
}

/* ---- environment ------------------------------------------------------------------------------------------------- */

static const char *value_in(char *const *environment, const char *name)
{
    size_t length = strlen(name);
    for (; *environment != NULL; environment++)
        if (strncmp(*environment, name, length) == 0 && (*environment)[length] == '=')
            return *environment + length + 1;
    return NULL;
}

static bool is_own(const char *variable)
{
    static const char *const names[OWN] = {TB_AGENT_VARIABLE, "TOMBOLO_RANK", "TOMBOLO_LOCAL_RANK", "TOMBOLO_SIZE",
                                           "TOMBOLO_LOCAL_SIZE"};
    for (size_t i = 0; i < OWN; i++) {
        size_t length = strlen(names[i]);
        if (strncmp(variable, names[i], length) == 0 && variable[length] == '=')
            return true;
    }
    return false;
}

static bool is_among(char *const *variables, uint32_t variable_count, const char *variable)
{
    size_t length = strcspn(variable, "=") + 1;
    for (uint32_t i = 0; i < variable_count; i++)
        if (strncmp(variables[i], variable, length) == 0)
            return true;
    return false;
}

/* What a program cannot be found or run without, even where nothing is passed on. */
static bool is_essential(const char *variable)
{
    return strncmp(variable, "PATH=", 5) == 0 || strncmp(variable, "HOME=", 5) == 0;
}

static int make_environment(struct tb_rank_program *program, const struct tb_rank_start *start)
{
    const struct tb_app *app = program->app;
    size_t count = 0, n = OWN;
    while (environ[count] != NULL)
        count++;
    program->environment = calloc(count + app->variable_count + start->given_count + OWN + 1, sizeof(char *));
    if (program->environment == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for the environment of the ranks");
    for (int i = 0; i < OWN; i++)
        program->environment[i] = program->own[i];
    for (size_t i = 0; i < count; i++)
        if ((!app->bare || is_essential(environ[i])) && !is_own(environ[i]) &&
            !is_among(app->variables, app->variable_count, environ[i]) &&
            !is_among(start->given, start->given_count, environ[i]))
            program->environment[n++] = environ[i];
    for (uint32_t i = 0; i < start->given_count; i++)
        if (!is_among(app->variables, app->variable_count, start->given[i]))
            program->environment[n++] = start->given[i];
    for (uint32_t i = 0; i < app->variable_count; i++)
        program->environment[n++] = app->variables[i];
    return TB_OK;
}

int tb_rank_program_describe(struct tb_rank_program *program, const struct tb_rank_start *start, uint32_t rank,
                             uint32_t local, uint32_t local_count, int control)
{
    const size_t size = TB_RANK_PROGRAM_OWN_BYTES;
    struct stat about;
    if (fstat(control, &about) < 0)
        return tb_error_errno("cannot look at a socket");
    snprintf(program->own[0], size, TB_AGENT_VARIABLE "=%d:%lu:%u:%s", TB_CHILD_KEPT, (unsigned long)about.st_ino,
             local_count, start->port_name);
    snprintf(program->own[1], size, "TOMBOLO_RANK=%u", rank);
    snprintf(program->own[2], size, "TOMBOLO_LOCAL_RANK=%u", local);
    snprintf(program->own[3], size, "TOMBOLO_SIZE=%u", start->book->ranks);
    snprintf(program->own[4], size, "TOMBOLO_LOCAL_SIZE=%u", local_count);
    return TB_OK;
}

/* ---- directory and executable ------------------------------------------------------------------------------------ */

void tb_rank_program_explain(const struct tb_rank_program *program, const struct tb_rank_start *start, int error,
                             struct tb_start_failure *failure)
{
    const char *name = program->app->arguments[0], *host = start->host;
    bool has_slash = strchr(name, '/') != NULL;
    char here[4096];
    snprintf(here, sizeof here, "%s/%s", program->directory, name);
    if (error == EACCES)
        tb_start_failure_set(
            failure, 126, "cannot start %s on host %s: no permission to execute it (chmod +x makes a file executable)",
            name, host);
    else if (error == EISDIR)
        tb_start_failure_set(failure, 126, "cannot start %s on host %s: it is a directory", name, host);
    else if (error != ENOENT)
        tb_start_failure_set(failure, 126, "cannot start %s on host %s: %s", name, host, strerror(error));
    else if (!has_slash && access(here, X_OK) == 0)
        tb_start_failure_set(failure, 127,
                             "cannot start %s on host %s: it is not in PATH, but in the working directory; write ./%s",
                             name, host, name);
    else if (!has_slash)
        tb_start_failure_set(failure, 127, "cannot start %s on host %s: there is no such program in PATH", name, host);
    else
        tb_start_failure_set(failure, 127, "cannot start %s on host %s: there is no such file%s%s", name, host,
                             *name != '/' ? " in the working directory " : "", *name != '/' ? program->directory : "");
}

/* 0, or why this directory cannot be entered. */
static int judge_directory(const char *path)
{
    struct stat about;
    if (stat(path, &about) < 0)
        return errno;
    return !S_ISDIR(about.st_mode) ? ENOTDIR : access(path, X_OK) < 0 ? errno : 0;
}

/* The working directory: what the user asked for must exist; the launcher's may be missing on another host, or
 * everywhere (then it has said so itself, and its name is empty). */
static int choose_directory(struct tb_rank_program *program, const struct tb_rank_start *start,
                            tb_rank_program_note *note, void *context, struct tb_start_failure *failure)
{
    const char *asked = program->app->directory, *launchers = start->setup->directory;
    program->directory = *asked != 0 ? asked : launchers;
    int error = judge_directory(program->directory);
    if (error == 0)
        return TB_OK;
    if (*asked != 0) {
        tb_start_failure_set(failure, 1, "cannot enter the working directory %s on host %s: %s", asked, start->host,
                             strerror(error));
        return TB_ERR_ARGUMENT;
    }
    const char *home = value_in(program->environment + OWN, "HOME");
    bool has_home = home != NULL && *home == '/' && judge_directory(home) == 0;
    program->directory = has_home ? home : "/";
    if (*launchers != 0) {
        char text[1024];
        snprintf(text, sizeof text,
                 "cannot enter directory %s on host %s: %s; the ranks there start in %s%s (--wdir chooses another)",
                 launchers, start->host, strerror(error), has_home ? "the home directory " : "", program->directory);
        note(context, text);
    }
    return TB_OK;
}

int tb_rank_program_open(struct tb_rank_program *program, const struct tb_rank_start *start, const struct tb_app *app,
                         tb_rank_program_note *note, void *context, struct tb_start_failure *failure)
{
    *program = (struct tb_rank_program){.app = app};
    int rc = make_environment(program, start);
    if (rc == TB_OK)
        rc = choose_directory(program, start, note, context, failure);
    if (rc != TB_OK)
        return rc;
    program->path =
        tb_program_find(app->arguments[0], value_in(program->environment + OWN, "PATH"), program->directory);
    if (program->path == NULL) {
        tb_rank_program_explain(program, start, errno, failure);
        return TB_ERR_ARGUMENT;
    }
    return TB_OK;
}

void tb_rank_program_close(struct tb_rank_program *program)
{
    free(program->path);
    free(program->environment);
    program->path = NULL;
    program->environment = NULL;
    program->app = NULL;
}
