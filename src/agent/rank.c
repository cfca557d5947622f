/* Starting the ranks of this host, and knowing when they end. */
#include "agent/state.h"
#include "transport/transport.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

#define OWN_VARIABLES 5
#define OWN_BYTES     160

/* What the ranks of one program have in common. */
struct recipe {
    const struct tb_app *app;
    char *path; /* of the executable */
    const char *directory;
    char **environment; /* its first OWN_VARIABLES entries are made for each rank */
    char own[OWN_VARIABLES][OWN_BYTES];
};

struct tb_rank *tb_ranks_find(struct tb_agent *agent, uint32_t rank)
{
    if (rank >= agent->book.ranks || tb_address_book_host_of(&agent->book, rank) != agent->setup.host)
        return NULL;
    return &agent->ranks[tb_address_book_local_index(&agent->book, rank)];
}

/* ---- what the host provides
 * ------------------------------------------------------------------------------------------ */

static int make_segment(struct tb_agent *agent)
{
    agent->segment_bytes = tb_shm_segment_bytes(agent->rank_count);
    agent->segment = memfd_create("tombolo-segment", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (agent->segment < 0 || ftruncate(agent->segment, (off_t)agent->segment_bytes) < 0 ||
        fcntl(agent->segment, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
        return tb_error_errno("cannot make %llu bytes of shared memory", (unsigned long long)agent->segment_bytes);
    return TB_OK;
}

/* Whatever fails afterwards, all ranks can be asked and closed: there are none, or all are as if they had ended. */
static int make_ranks(struct tb_agent *agent, uint32_t count)
{
    agent->doorbells = malloc((count + 1u) * sizeof *agent->doorbells);
    agent->ranks = calloc(count + 1u, sizeof *agent->ranks);
    if (agent->doorbells == NULL || agent->ranks == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for %u ranks", count);
    for (uint32_t i = 0; i < count; i++) {
        struct tb_rank *rank = &agent->ranks[i];
        agent->doorbells[i] = -1;
        rank->agent = agent;
        rank->local = i;
        rank->control.descriptor = -1;
        tb_list_init(&rank->parcels);
        for (int k = 0; k < 2; k++)
            rank->outputs[k].descriptor = rank->outputs[k].watch.descriptor = -1;
    }
    uint32_t local = 0;
    for (uint32_t i = 0; i < agent->book.range_count; i++) {
        const struct tb_rank_range *range = &agent->book.ranges[i];
        for (uint32_t k = 0; range->host == agent->setup.host && k < range->count; k++)
            agent->ranks[local++].rank = range->first_rank + k;
    }
    agent->rank_count = count;
    return TB_OK;
}

static int make_services(struct tb_agent *agent)
{
    for (uint32_t i = 0; i < agent->rank_count; i++) {
        agent->doorbells[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (agent->doorbells[i] < 0)
            return tb_error_errno("cannot make doorbells for %u ranks; try a higher `ulimit -n`", agent->rank_count);
    }
    int rc = agent->rank_count > 0 ? make_segment(agent) : TB_OK;
    if (rc == TB_OK)
        rc = tb_address_book_share(&agent->book, &agent->book_descriptor);
    return rc == TB_OK ? tb_host_routes_share(&agent->routes, &agent->routes_descriptor) : rc;
}

/* ---- recipes
 * ---------------------------------------------------------------------------------------------------------- */

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
    static const char *const names[OWN_VARIABLES] = {TB_AGENT_VARIABLE, "TOMBOLO_RANK", "TOMBOLO_LOCAL_RANK",
                                                     "TOMBOLO_SIZE", "TOMBOLO_LOCAL_SIZE"};
    for (size_t i = 0; i < OWN_VARIABLES; i++) {
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

static int make_environment(const struct tb_agent *agent, struct recipe *recipe)
{
    const struct tb_app *app = recipe->app;
    size_t count = 0, n = OWN_VARIABLES;
    while (environ[count] != NULL)
        count++;
    recipe->environment = calloc(count + app->variable_count + agent->given_count + OWN_VARIABLES + 1, sizeof(char *));
    if (recipe->environment == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for the environment of the ranks");
    for (int i = 0; i < OWN_VARIABLES; i++)
        recipe->environment[i] = recipe->own[i];
    for (size_t i = 0; i < count; i++)
        if (!is_own(environ[i]) && !is_among(app->variables, app->variable_count, environ[i]) &&
            !is_among(agent->given, agent->given_count, environ[i]))
            recipe->environment[n++] = environ[i];
    for (uint32_t i = 0; i < agent->given_count; i++)
        if (!is_among(app->variables, app->variable_count, agent->given[i]))
            recipe->environment[n++] = agent->given[i];
    for (uint32_t i = 0; i < app->variable_count; i++)
        recipe->environment[n++] = app->variables[i];
    return TB_OK;
}

static void explain_missing(struct tb_agent *agent, const struct recipe *recipe, int error)
{
    const char *name = recipe->app->arguments[0];
    bool has_slash = strchr(name, '/') != NULL;
    char here[4096];
    snprintf(here, sizeof here, "%s/%s", recipe->directory, name);
    if (error == EACCES)
        tb_agent_trouble(agent, 126,
                         "cannot start %s on host %s: no permission to execute it (chmod +x makes a file executable)",
                         name, agent->host);
    else if (error == EISDIR)
        tb_agent_trouble(agent, 126, "cannot start %s on host %s: it is a directory", name, agent->host);
    else if (error != ENOENT)
        tb_agent_trouble(agent, 126, "cannot start %s on host %s: %s", name, agent->host, strerror(error));
    else if (!has_slash && access(here, X_OK) == 0)
        tb_agent_trouble(agent, 127,
                         "cannot start %s on host %s: it is not in PATH, but in the working directory; write ./%s",
                         name, agent->host, name);
    else if (!has_slash)
        tb_agent_trouble(agent, 127, "cannot start %s on host %s: there is no such program in PATH", name, agent->host);
    else
        tb_agent_trouble(agent, 127, "cannot start %s on host %s: there is no such file%s%s", name, agent->host,
                         *name != '/' ? " in the working directory " : "", *name != '/' ? recipe->directory : "");
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
static int choose_directory(struct tb_agent *agent, struct recipe *recipe)
{
    const char *asked = recipe->app->directory;
    recipe->directory = *asked != 0 ? asked : agent->setup.directory;
    int error = judge_directory(recipe->directory);
    if (error == 0)
        return TB_OK;
    if (*asked != 0) {
        tb_agent_trouble(agent, 1, "cannot enter the working directory %s on host %s: %s", asked, agent->host,
                         strerror(error));
        return TB_ERR_ARGUMENT;
    }
    const char *home = value_in(recipe->environment + OWN_VARIABLES, "HOME");
    bool has_home = home != NULL && *home == '/' && judge_directory(home) == 0;
    recipe->directory = has_home ? home : "/";
    if (*agent->setup.directory != 0)
        tb_agent_note(
            agent, "cannot enter directory %s on host %s: %s; the ranks there start in %s%s (--wdir chooses another)",
            agent->setup.directory, agent->host, strerror(error), has_home ? "the home directory " : "",
            recipe->directory);
    return TB_OK;
}

static int prepare(struct tb_agent *agent, struct recipe *recipe, const struct tb_app *app)
{
    recipe->app = app;
    int rc = make_environment(agent, recipe);
    if (rc == TB_OK)
        rc = choose_directory(agent, recipe);
    if (rc != TB_OK)
        return rc;
    recipe->path =
        tb_program_find(app->arguments[0], value_in(recipe->environment + OWN_VARIABLES, "PATH"), recipe->directory);
    if (recipe->path == NULL) {
        explain_missing(agent, recipe, errno);
        return TB_ERR_ARGUMENT;
    }
    return TB_OK;
}

/* ---- starting
 * ----------------------------------------------------------------------------------------------------------- */

struct streams {
    int control[2]; /* ours, the rank's */
    int input[2], output[2], errors[2];
};

static void close_ends(struct streams *s, int end)
{
    int *all[] = {s->control, s->input, s->output, s->errors};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (all[i][end] >= 0) {
            close(all[i][end]);
            all[i][end] = -1;
        }
}

/* End 0 is the agent's, end 1 the rank's. */
static int make_streams(struct tb_rank *rank, struct streams *s)
{
    *s = (struct streams){{-1, -1}, {-1, -1}, {-1, -1}, {-1, -1}};
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, s->control) < 0 || pipe2(s->output, O_CLOEXEC) < 0 ||
        pipe2(s->errors, O_CLOEXEC) < 0)
        return tb_error_errno("cannot make the streams of rank %u; try a higher `ulimit -n`", rank->rank);
    if (rank->rank == 0) {
        if (pipe2(ends, O_CLOEXEC) < 0)
            return tb_error_errno("cannot make the input of rank 0");
        s->input[0] = ends[1];
        s->input[1] = ends[0];
        fcntl(ends[1], F_SETFL, O_NONBLOCK);
    } else {
        s->input[1] = open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (s->input[1] < 0)
            return tb_error_errno("cannot open /dev/null as the input of rank %u", rank->rank);
    }
    return TB_OK;
}

static int describe(struct tb_agent *agent, struct tb_rank *rank, struct recipe *recipe, int control)
{
    struct stat about;
    if (fstat(control, &about) < 0)
        return tb_error_errno("cannot look at a socket");
    snprintf(recipe->own[0], OWN_BYTES, TB_AGENT_VARIABLE "=%d:%lu:%u:%s", TB_CHILD_KEPT, (unsigned long)about.st_ino,
             agent->rank_count, agent->rank_port_name);
    snprintf(recipe->own[1], OWN_BYTES, "TOMBOLO_RANK=%u", rank->rank);
    snprintf(recipe->own[2], OWN_BYTES, "TOMBOLO_LOCAL_RANK=%u", rank->local);
    snprintf(recipe->own[3], OWN_BYTES, "TOMBOLO_SIZE=%u", agent->book.ranks);
    snprintf(recipe->own[4], OWN_BYTES, "TOMBOLO_LOCAL_SIZE=%u", agent->rank_count);
    return TB_OK;
}

static void explain_failed(struct tb_agent *agent, const struct tb_rank *rank, const struct recipe *recipe,
                           enum tb_child_stage stage, int error)
{
    const char *name = recipe->app->arguments[0];
    if (stage == TB_CHILD_FORK)
        tb_agent_trouble(agent, 1,
                         "cannot start rank %u on host %s: no new process: %s; fewer ranks a host, or a higher "
                         "`ulimit -u`, may help",
                         rank->rank, agent->host, strerror(error));
    else if (stage == TB_CHILD_BIND)
        tb_agent_trouble(agent, 1, "cannot bind rank %u on host %s to its processors: %s; try --bind none", rank->rank,
                         agent->host, strerror(error));
    else if (stage == TB_CHILD_DIRECTORY)
        tb_agent_trouble(agent, 1, "cannot enter directory %s on host %s: %s", recipe->directory, agent->host,
                         strerror(error));
    else if (error == ENOENT)
        tb_agent_trouble(agent, 127, "cannot start %s on host %s: the interpreter that it names does not exist there",
                         name, agent->host);
    else
        explain_missing(agent, recipe, error);
}

static int spawn(struct tb_agent *agent, struct tb_rank *rank, struct recipe *recipe, struct tb_child *child)
{
    enum tb_child_stage stage;
    int rc = tb_child_start(child, &rank->pid, &stage);
    if (rc != TB_OK && stage == TB_CHILD_EXEC && errno == ENOEXEC) {
        /* A script without a first line that names its interpreter: for the shell, as everywhere. */
        uint32_t count = recipe->app->argument_count;
        char **words = calloc((size_t)count + 2, sizeof *words);
        if (words == NULL)
            return tb_error(TB_ERR_MEMORY, "no memory for a command line");
        words[0] = (char *)"sh";
        words[1] = (char *)child->path;
        memcpy(words + 2, recipe->app->arguments + 1, (count - 1) * sizeof *words);
        child->path = "/bin/sh";
        child->arguments = words;
        rc = tb_child_start(child, &rank->pid, &stage);
        free(words);
    }
    if (rc != TB_OK)
        explain_failed(agent, rank, recipe, stage, errno);
    return rc;
}

static int start_rank(struct tb_agent *agent, struct tb_rank *rank, struct recipe *recipe,
                      const struct tb_cpu_binding *binding)
{
    struct streams s;
    int rc = make_streams(rank, &s);
    if (rc == TB_OK)
        rc = describe(agent, rank, recipe, s.control[1]);
    if (rc == TB_OK)
        rc = tb_rank_port_watch(rank, s.control[0]);
    if (rc != TB_OK) {
        close_ends(&s, 0);
        close_ends(&s, 1);
        return rc;
    }
    s.control[0] = -1;
    tb_rank_port_welcome(rank); /* what does not fit now follows when the rank asks by name */
    struct tb_child child = {.path = recipe->path,
                             .arguments = recipe->app->arguments,
                             .environment = recipe->environment,
                             .directory = recipe->directory,
                             .streams = {s.input[1], s.output[1], s.errors[1]},
                             .keep = s.control[1],
                             .death_signal = SIGKILL,
                             .mask = &agent->mask,
                             .descriptors = &agent->descriptors};
    cpu_set_t *cpus = NULL;
    if (binding != NULL) {
        tb_cpu_binding_choose(binding, rank->local, &cpus, &child.cpus_bytes);
        child.cpus = cpus;
    }
    rc = spawn(agent, rank, recipe, &child);
    if (cpus != NULL)
        CPU_FREE(cpus);
    close_ends(&s, 1);
    if (rc != TB_OK) {
        close_ends(&s, 0);
        return rc;
    }
    if (rank->rank == 0) {
        agent->input.descriptor = s.input[0];
        agent->input.agent = agent;
        agent->input.watch.descriptor = -1;
    }
    rc = tb_output_open(&rank->outputs[0], rank, s.output[0]);
    return rc == TB_OK ? tb_output_open(&rank->outputs[1], rank, s.errors[0]) : rc;
}

static void report_binding(struct tb_agent *agent, const struct tb_cpu_binding *binding)
{
    for (uint32_t i = 0; i < agent->rank_count; i++) {
        char text[256] = "not bound";
        if (binding != NULL)
            tb_cpu_binding_print(binding, i, text, sizeof text);
        tb_agent_note(agent, "rank %u on host %s: %s", agent->ranks[i].rank, agent->host, text);
    }
}

/* The ranks of this host run one after the other through the programs of the job. */
static int start_all(struct tb_agent *agent, const struct tb_cpu_binding *binding)
{
    struct recipe *recipe = calloc(1, sizeof *recipe);
    if (recipe == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory to start ranks");
    int rc = TB_OK;
    uint32_t started = 0;
    for (uint32_t a = 0; a < agent->setup.app_count && rc == TB_OK; a++) {
        const struct tb_app *app = &agent->setup.apps[a];
        for (; started < agent->rank_count && rc == TB_OK; started++) {
            struct tb_rank *rank = &agent->ranks[started];
            if (rank->rank < app->first_rank || rank->rank - app->first_rank >= app->ranks)
                break;
            rank->app = a;
            if (recipe->app != app)
                rc = prepare(agent, recipe, app);
            if (rc == TB_OK)
                rc = start_rank(agent, rank, recipe, binding);
        }
        free(recipe->path);
        free(recipe->environment);
        *recipe = (struct recipe){0};
    }
    free(recipe);
    if (rc == TB_OK && started < agent->rank_count)
        rc = tb_error(TB_ERR_PROTOCOL, "no program is named for rank %u", agent->ranks[started].rank);
    return rc;
}

int tb_ranks_start(struct tb_agent *agent)
{
    struct tb_cpu_binding *binding = NULL;
    int rc = make_ranks(agent, agent->book.hosts[agent->setup.host].rank_count);
    if (rc == TB_OK)
        rc = make_services(agent);
    if (rc == TB_OK && agent->setup.bind != TB_BIND_NONE)
        rc = tb_cpu_binding_open(&binding, agent->setup.bind);
    if (rc == TB_OK)
        rc = start_all(agent, binding);
    if (rc == TB_OK && tb_param.bind_report)
        report_binding(agent, binding);
    tb_cpu_binding_close(binding);
    return rc;
}

/* ---- ending
 * ------------------------------------------------------------------------------------------------------------- */

static void end_rank(struct tb_rank *rank, int status)
{
    struct tb_agent *agent = rank->agent;
    tb_rank_port_read(rank); /* its last words */
    rank->ended = true;
    agent->ended_count++;
    struct tb_ended ended = {.rank = rank->rank, .pid = (uint32_t)rank->pid, .status = status};
    ended.flags = (rank->initialized ? TB_ENDED_INITIALIZED : 0) | (rank->finalized ? TB_ENDED_FINALIZED : 0) |
                  (agent->phase >= TB_AGENT_STOPPING ? TB_ENDED_STOPPED : 0);
    tb_ended_put(tb_control_stream_begin(&agent->pipe, TB_CONTROL_ENDED), &ended);
    tb_control_stream_end(&agent->pipe);
    tb_network_forget(&agent->network, rank->rank);
    tb_rank_port_close(rank);
}

/* The number of a group that is gone may come again as somebody else's, so it is not used any more. Nearly always we
 * are who collects the last process of a group, and notice at once. */
static void forget_groups(struct tb_agent *agent)
{
    for (uint32_t i = 0; i < agent->rank_count; i++) {
        struct tb_rank *rank = &agent->ranks[i];
        if (rank->ended && rank->pid > 0 && kill(-rank->pid, 0) < 0 && errno == ESRCH)
            rank->pid = 0;
    }
}

/* Orphans of our ranks become our children too (we are their reaper) and are collected here without a word. */
void tb_ranks_reap(struct tb_agent *agent)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        for (uint32_t i = 0; i < agent->rank_count; i++)
            if (agent->ranks[i].pid == pid && !agent->ranks[i].ended) {
                end_rank(&agent->ranks[i], status);
                break;
            }
        tb_tunnels_reap(agent, pid, status);
    }
    forget_groups(agent);
}

void tb_ranks_signal(struct tb_agent *agent, int signal)
{
    for (uint32_t i = 0; i < agent->rank_count; i++)
        if (agent->ranks[i].pid > 0)
            kill(-agent->ranks[i].pid, signal);
}

bool tb_ranks_alive(struct tb_agent *agent)
{
    forget_groups(agent);
    for (uint32_t i = 0; i < agent->rank_count; i++)
        if (agent->ranks[i].pid > 0)
            return true;
    return false;
}
