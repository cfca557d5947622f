#include "agent/rank_program.h"
#include "agent/foreign_mpi.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

extern char **environ;

#define OWN              TB_RANK_PROGRAM_OWN
#define FORTRAN_VARIABLE "GFORTRAN_UNBUFFERED_PRECONNECTED"

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

/* The numbers that each rank is told, and under which names: ours, and those that scripts for Open MPI, MPICH and their
 * relatives look for. Not those that their libraries and launchers act on: PMI_FD and PMIX_RANK would
 * mean a server that can be asked, and with OMPI_UNIVERSE_SIZE Open MPI's mpiexec refuses to run below us. */
enum number { RANK, SIZE, LOCAL_RANK, LOCAL_SIZE };
static const struct {
    const char *name;
    enum number number;
} numbers[] = {
    {"TOMBOLO_RANK", RANK},
    {"TOMBOLO_SIZE", SIZE},
    {"TOMBOLO_LOCAL_RANK", LOCAL_RANK},
    {"TOMBOLO_LOCAL_SIZE", LOCAL_SIZE},
    {"OMPI_COMM_WORLD_RANK", RANK},
    {"OMPI_COMM_WORLD_SIZE", SIZE},
    {"OMPI_COMM_WORLD_LOCAL_RANK", LOCAL_RANK},
    {"OMPI_COMM_WORLD_LOCAL_SIZE", LOCAL_SIZE},
    {"OMPI_COMM_WORLD_NODE_RANK", LOCAL_RANK},
    {"PMI_RANK", RANK},
    {"PMI_SIZE", SIZE},
    {"MPI_LOCALRANKID", LOCAL_RANK},
    {"MPI_LOCALNRANKS", LOCAL_SIZE},
};
#define NUMBERS       (sizeof numbers / sizeof numbers[0])
#define HOST_VARIABLE "TOMBOLO_HOST" /* where it is, as the grid file or the list of hosts calls it */
_Static_assert(NUMBERS + 3 == OWN, "and three that are no numbers");

static bool is_called(const char *variable, const char *name)
{
    size_t length = strlen(name);
    return strncmp(variable, name, length) == 0 && variable[length] == '=';
}

static bool is_own(const char *variable)
{
    /* Nobody may be taken for a shell to another agent, which would be spared. */
    if (is_called(variable, TB_AGENT_VARIABLE) || is_called(variable, TB_OUTPUT_VARIABLE) ||
        is_called(variable, TB_SHELL_MARK_NAME) || is_called(variable, HOST_VARIABLE))
        return true;
    for (size_t i = 0; i < NUMBERS; i++)
        if (is_called(variable, numbers[i].name))
            return true;
    return false;
}

bool tb_rank_program_has_variable(char *const *variables, uint32_t variable_count, const char *variable)
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
    program->environment = calloc(count + app->variable_count + start->given_count + OWN + 2, sizeof(char *));
    if (program->environment == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for the environment of the ranks");
    for (int i = 0; i < OWN; i++)
        program->environment[i] = program->own[i];
    for (size_t i = 0; i < count; i++)
        if ((!app->bare || is_essential(environ[i])) && !is_own(environ[i]) && !tb_foreign_mpi_binds(environ[i]) &&
            !tb_rank_program_has_variable(app->variables, app->variable_count, environ[i]) &&
            !tb_rank_program_has_variable(start->given, start->given_count, environ[i]))
            program->environment[n++] = environ[i];
    for (uint32_t i = 0; i < start->given_count; i++)
        if (!tb_rank_program_has_variable(app->variables, app->variable_count, start->given[i]))
            program->environment[n++] = start->given[i];
    for (uint32_t i = 0; i < app->variable_count; i++)
        if (!is_own(app->variables[i]))
            program->environment[n++] = app->variables[i];
    /* gfortran keeps what is written to a pipe back; this is how it is told not to. */
    if (program->buffering != TB_BUFFERING_FULL && value_in(program->environment + OWN, FORTRAN_VARIABLE) == NULL)
        program->environment[n++] = (char *)FORTRAN_VARIABLE "=y";
    return TB_OK;
}

int tb_rank_program_describe(struct tb_rank_program *program, const struct tb_rank_start *start,
                             const struct tb_rank_place *place, int control, int output)
{
    const size_t size = TB_RANK_PROGRAM_OWN_BYTES;
    const uint32_t values[] = {
        [RANK] = place->rank, [SIZE] = place->size, [LOCAL_RANK] = place->local, [LOCAL_SIZE] = place->local_count};
    struct stat about, pipe;
    if (fstat(control, &about) < 0 || fstat(output, &pipe) < 0)
        return tb_error_errno("cannot look at the streams of a rank");
    snprintf(program->own[0], size, TB_AGENT_VARIABLE "=%d:%lu:%u:%s", TB_CHILD_KEPT, (unsigned long)about.st_ino,
             place->local_count, start->port_name);
    if (program->buffering != TB_BUFFERING_FULL && S_ISFIFO(pipe.st_mode))
        snprintf(program->own[1], size, TB_OUTPUT_VARIABLE "=%d:%llx:%llx", program->buffering,
                 (unsigned long long)pipe.st_dev, (unsigned long long)pipe.st_ino);
    else
        snprintf(program->own[1], size, TB_OUTPUT_VARIABLE "=");
    snprintf(program->own[2], size, HOST_VARIABLE "=%s", start->book->hosts[start->setup->host].name);
    for (size_t i = 0; i < NUMBERS; i++)
        snprintf(program->own[i + 3], size, "%s=%u", numbers[i].name, values[numbers[i].number]);
    return TB_OK;
}

/* ---- directory and executable ------------------------------------------------------------------------------------ */

bool tb_rank_program_is_text(const struct tb_rank_program *program)
{
    struct tb_executable x;
    return tb_executable_read(program->path, &x) == TB_OK && x.kind == TB_EXECUTABLE_TEXT;
}

/* The kernel does not know what to do with it. */
static void explain_unknown(const struct tb_rank_program *program, const struct tb_rank_start *start,
                            struct tb_start_failure *failure)
{
    const char *name = program->app->arguments[0];
    char why[512];
    tb_executable_explain(program->path, name, start->host, why, sizeof why);
    tb_start_failure_set(failure, 126, "cannot start %s on host %s: %s", name, start->host, why);
}

/* The kernel says of a script only that something is not there. */
static void explain_script(const char *path, const char *name, const char *host, struct tb_start_failure *failure)
{
    char line[256] = "";
    FILE *script = fopen(path, "re");
    bool named = script != NULL && fgets(line, sizeof line, script) != NULL && strncmp(line, "#!", 2) == 0;
    if (script != NULL)
        fclose(script);
    const char *interpreter = line + 2 + (named ? strspn(line + 2, " \t") : 0);
    int length = named ? (int)strcspn(interpreter, " \t\r\n") : 0;
    if (named && interpreter[length] == '\r')
        tb_start_failure_set(failure, 127,
                             "cannot start %s on host %s: its lines end in a carriage return, as Windows writes them, "
                             "and so there is no interpreter \"%.*s\\r\" (sed -i 's/\\r$//' %s takes them away)",
                             name, host, length, interpreter, name);
    else
        tb_start_failure_set(failure, 127,
                             "cannot start %s on host %s: the interpreter that it names%s%.*s%s does not exist there",
                             name, host, named ? ", " : "", length, interpreter, named ? "," : "");
}

void tb_rank_program_explain_missing(const struct tb_rank_program *program, const struct tb_rank_start *start,
                                     struct tb_start_failure *failure)
{
    const char *name = program->app->arguments[0], *host = start->host;
    struct tb_executable x;
    char why[512] = "";
    if (tb_executable_read(program->path, &x) != TB_OK || x.kind != TB_EXECUTABLE_ELF || *x.interpreter == 0) {
        explain_script(program->path, name, host, failure);
        return;
    }
    bool foreign = tb_executable_is_foreign(&x, name, host, why, sizeof why);
    tb_start_failure_set(failure, 127, "cannot start %s on host %s: it needs %s, which is not there%s%s%s", name, host,
                         x.interpreter, foreign ? " (" : "", why, foreign ? ")" : "");
}

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
    else if (error == ENOEXEC)
        explain_unknown(program, start, failure);
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

static int parse_buffering(const char *text, enum tb_buffering *buffering)
{
    static const char *const names[] = {
        [TB_BUFFERING_FULL] = "full", [TB_BUFFERING_LINE] = "line", [TB_BUFFERING_NONE] = "none"};
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(text, names[i]) == 0) {
            *buffering = (enum tb_buffering)i;
            return TB_OK;
        }
    return tb_error(TB_ERR_ARGUMENT, "stream_buffering=%s: should be line, full or none", text);
}

/* Whether we are the one who tells about this program: its first rank is here, and no earlier one is the same. */
static bool speaks_for(const struct tb_rank_start *start, const struct tb_app *app)
{
    const struct tb_setup *setup = start->setup;
    for (const struct tb_app *earlier = setup->apps; earlier < app; earlier++)
        if (strcmp(earlier->arguments[0], app->arguments[0]) == 0)
            return false;
    return tb_address_book_knows(start->book, app->first_rank) &&
           tb_address_book_host_of(start->book, app->first_rank) == setup->host;
}

/* A program of another MPI runs, but not as one job: said once, since a layer may translate its calls. */
static void note_foreign(const struct tb_rank_program *program, const struct tb_rank_start *start,
                         tb_rank_program_note *note, void *context)
{
    struct tb_executable x;
    struct tb_foreign_mpi mpi;
    char text[1024];
    const char *name = program->app->arguments[0];
    if (start->book->ranks < 2 || !speaks_for(start, program->app) || tb_executable_read(program->path, &x) != TB_OK ||
        !tb_foreign_mpi_find(&x, &mpi))
        return;
    snprintf(text, sizeof text,
             "%s was built with %s (it needs %s), not with Tombolo: each of its ranks will be alone in its "
             "MPI_COMM_WORLD. Compile it with Tombolo's mpicc, or start it with %s own mpiexec",
             name, mpi.name, mpi.needed, mpi.command);
    note(context, text);
}

int tb_rank_program_open(struct tb_rank_program *program, const struct tb_rank_start *start, const struct tb_app *app,
                         tb_rank_program_note *note, void *context, struct tb_start_failure *failure)
{
    *program = (struct tb_rank_program){.app = app};
    int rc = parse_buffering(tb_param.stream_buffering, &program->buffering);
    if (rc == TB_OK)
        rc = make_environment(program, start);
    if (rc == TB_OK)
        rc = choose_directory(program, start, note, context, failure);
    if (rc != TB_OK)
        return rc;
    if ((start->setup->flags & TB_SETUP_OWN) != 0) {
        char own[PATH_MAX];
        rc = tb_own_program_find(app->arguments[0], own, sizeof own);
        program->path = rc == TB_OK ? strdup(own) : NULL;
        return rc == TB_OK && program->path == NULL ? tb_error(TB_ERR_MEMORY, "no memory for a program's name") : rc;
    }
    program->path =
        tb_program_find(app->arguments[0], value_in(program->environment + OWN, "PATH"), program->directory);
    if (program->path == NULL) {
        tb_rank_program_explain(program, start, errno, failure);
        return TB_ERR_ARGUMENT;
    }
    note_foreign(program, start, note, context);
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
