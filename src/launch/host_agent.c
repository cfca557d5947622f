/* The hosts of a job, as the launcher sees them: shells that lead to agents. */
#include "launch/state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define STARTING_LIMIT   64u         /* shells that may be starting at once */
#define ERRORS_LIMIT     (32u << 20) /* what may wait for standard error before shells are not heard any more */
#define HEARD_FRAMES     16u         /* after so many an agent is told that they have come */
#define EXIT_PATIENCE_NS 1000000000u /* between the end of a stream and the end of its shell */

static void patience_over(struct tb_timer *timer);

static bool is_this_host(const char *name)
{
    static const char *const names[] = {"localhost", "127.0.0.1", "::1"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    char own[256] = "";
    if (gethostname(own, sizeof own - 1) < 0)
        return false;
    size_t length = strcspn(own, ".");
    return strcmp(name, own) == 0 || (strlen(name) == length && memcmp(name, own, length) == 0);
}

static void open_grid_agent(struct tb_host_agent *agent)
{
    struct tb_launch *launch = agent->launch;
    const struct tb_grid_plan *plan = launch->plan;
    tb_grid_plan_target(plan, launch->options, launch->program, &launch->placement, agent->host, &agent->target);
    uint32_t parent = plan->parents[agent->host];
    agent->manual = plan->manual[launch->placement.entries[agent->host]] && !agent->target.local;
    agent->parent = parent != TB_GRID_NONE ? &launch->agents[parent] : NULL;
    tb_control_stream_keep(&agent->pipe);
}

/* By depth, the deepest first, in as many passes as there are depths, which are few. */
void tb_host_agents_sort(struct tb_launch *launch)
{
    uint32_t deepest = 0, count = 0;
    for (uint32_t i = 0; i < launch->host_count; i++) {
        launch->agents[i].depth = 0;
        for (const struct tb_host_agent *at = launch->agents[i].parent; at != NULL; at = at->parent)
            launch->agents[i].depth++;
    }
    for (uint32_t i = 0; i < launch->host_count; i++)
        deepest = launch->agents[i].depth > deepest ? launch->agents[i].depth : deepest;
    for (uint32_t depth = deepest + 1; depth-- > 0;)
        for (uint32_t i = 0; i < launch->host_count; i++)
            if (launch->agents[i].depth == depth)
                launch->order[count++] = i;
}

const char *tb_host_agent_cluster(const struct tb_host_agent *agent)
{
    return agent->launch->plan != NULL ? agent->launch->placement.book.hosts[agent->host].place.cluster : "";
}

int tb_host_agents_open(struct tb_launch *launch)
{
    struct tb_options *options = launch->options;
    launch->agents = calloc(launch->host_count, sizeof *launch->agents);
    launch->order = calloc(launch->host_count, sizeof *launch->order);
    if (launch->agents == NULL || launch->order == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for %u hosts", launch->host_count);
    for (uint32_t i = 0; i < launch->host_count; i++) {
        struct tb_host_agent *agent = &launch->agents[i];
        int entry = launch->placement.entries[i];
        const struct tb_host_entry *from = entry >= 0 ? &options->hosts.entries[entry] : NULL;
        *agent = (struct tb_host_agent){.launch = launch, .host = i, .watch.descriptor = -1, .errors.descriptor = -1};
        tb_timer_init(&agent->patience, patience_over);
        tb_control_stream_open(&agent->pipe, -1, -1);
        if (launch->plan != NULL) {
            open_grid_agent(agent);
            continue;
        }
        agent->target =
            (struct tb_shell_target){.host = launch->placement.book.hosts[i].name,
                                     .command = options->launcher,
                                     .program = options->program != NULL ? options->program : launch->program,
                                     .local = from == NULL || (options->launcher == NULL && from->user == NULL &&
                                                               from->port == 0 && is_this_host(from->name))};
        if (from != NULL) {
            agent->target.user = from->user;
            agent->target.port = from->port;
        }
    }
    tb_host_agents_sort(launch);
    return TB_OK;
}

/* ---- hearing
 * ---------------------------------------------------------------------------------------------------------------- */

/* Closes everything that leads to the agent; an agent that still lives sees that and ends. */
void tb_host_agent_give_up(struct tb_host_agent *agent)
{
    struct tb_launch *launch = agent->launch;
    bool silent = agent->phase == TB_HOST_AGENT_SILENT, started = agent->phase > TB_HOST_AGENT_WAITING;
    if (silent)
        launch->silent_count--;
    agent->phase = TB_HOST_AGENT_GONE;
    if (agent->parent != NULL && started)
        tb_tunnel_close(agent, silent);
    tb_line_close(agent);
    tb_loop_unwatch(&launch->loop, &agent->watch);
    tb_control_stream_close(&agent->pipe);
    if (agent->pid > 0)
        tb_timer_set(&launch->loop, &agent->patience, EXIT_PATIENCE_NS);
}

static void take_preamble(struct tb_host_agent *agent)
{
    char version[64], ours[64];
    int rc = tb_control_stream_preamble(&agent->pipe, version, sizeof version);
    if (rc == TB_AGAIN)
        return;
    snprintf(ours, sizeof ours, "%s wire %d", TB_VERSION, TB_WIRE_VERSION);
    if (rc != TB_OK) {
        char text[1024];
        snprintf(text, sizeof text, "host %s: %s", agent->target.host, tb_error_story());
        tb_launch_miss(agent, text);
        tb_host_agent_give_up(agent);
        return;
    }
    agent->phase = TB_HOST_AGENT_SPOKEN;
    agent->launch->silent_count--;
    free(agent->tail);
    agent->tail = NULL;
    agent->tail_length = 0;
    if (strcmp(version, ours) != 0) {
        char text[1024];
        snprintf(text, sizeof text,
                 "mixed versions: Tombolo here is %s, on host %s (%s) it is %s; install the same version on all "
                 "hosts, or name it with --tombolo PATH",
                 ours, agent->target.host, agent->target.program, version);
        tb_launch_miss(agent, text);
        tb_host_agent_give_up(agent);
    }
}

/* What was received. */
static int understand(struct tb_host_agent *agent)
{
    agent->heard = tb_clock_now_real();
    if (agent->phase == TB_HOST_AGENT_SILENT)
        take_preamble(agent);
    struct tb_control_frame frame;
    while (agent->phase > TB_HOST_AGENT_SILENT && agent->phase < TB_HOST_AGENT_GONE) {
        int rc = tb_control_stream_next(&agent->pipe, &frame);
        if (rc == TB_AGAIN)
            return TB_OK;
        if (rc != TB_OK)
            return rc;
        agent->returning = false;
        tb_host_agent_take_frame(agent, &frame);
    }
    return TB_OK;
}

/* TB_OK, TB_AGAIN: nothing more now; TB_ERR_CLOSED: the stream has ended; other errors: it makes no sense. */
static int hear(struct tb_host_agent *agent)
{
    int rc = tb_control_stream_fill(&agent->pipe);
    return rc == TB_OK ? understand(agent) : rc;
}

static void complain_damaged(struct tb_host_agent *agent)
{
    tb_launch_fail(agent->launch, TB_VERDICT_CAUSE, 1, "the stream from the agent on host %s is damaged: %s",
                   agent->target.host, tb_error_story());
    tb_host_agent_give_up(agent);
}

void tb_host_agent_digest(struct tb_host_agent *agent, int rc)
{
    if (rc == TB_OK)
        rc = understand(agent);
    if (rc < 0)
        complain_damaged(agent);
}

/* Those whose streams went through this one are gone with it. */
static void give_up_behind(struct tb_host_agent *parent)
{
    struct tb_launch *launch = parent->launch;
    for (uint32_t i = 0; i < launch->host_count; i++) {
        struct tb_host_agent *agent = &launch->agents[i];
        if (agent->parent != parent || agent->phase == TB_HOST_AGENT_GONE)
            continue;
        tb_host_agent_give_up(agent);
        give_up_behind(agent);
    }
}

static void lose(struct tb_host_agent *agent, bool exited, int status)
{
    if (tb_launch_spare(agent)) {
        tb_host_agent_give_up(agent);
        return;
    }
    tb_ending_agent(agent, exited, status);
    /* Its ranks have died with it, but not what they had started; here at least we can reach that. */
    uint32_t count = agent->launch->placement.book.hosts[agent->host].rank_count;
    for (uint32_t i = 0; agent->pids != NULL && i < count; i++)
        if (agent->pids[i] > 1)
            kill(-(pid_t)agent->pids[i], SIGKILL);
    if (agent->phase < TB_HOST_AGENT_GONE)
        tb_host_agent_give_up(agent);
    give_up_behind(agent);
}

static void agent_ready(struct tb_watch *watch, uint32_t events)
{
    struct tb_host_agent *agent = TB_CONTAINER(watch, struct tb_host_agent, watch);
    struct tb_launch *launch = agent->launch;
    int rc = hear(agent);
    if (rc == TB_ERR_CLOSED) {
        /* Why it ended is known when the shell has ended too, which should be now. */
        tb_loop_unwatch(&launch->loop, watch);
        tb_timer_set(&launch->loop, &agent->patience, EXIT_PATIENCE_NS);
        tb_host_agents_reap(launch);
    } else if (rc < 0) {
        complain_damaged(agent);
    }
    tb_launch_check_done(launch);
}

/* Keeps the last of what a shell says on standard error, on one line; once an agent speaks, it is passed on instead. */
void tb_host_agent_add_errors(struct tb_host_agent *agent, const char *bytes, size_t length)
{
    struct tb_launch *launch = agent->launch;
    if (agent->phase >= TB_HOST_AGENT_SPOKEN) {
        /* A shell has no window; when nobody reads for long, what it says is dropped. */
        if (launch->screens[1].queued < ERRORS_LIMIT)
            tb_screen_text(&launch->screens[1], bytes, length);
        return;
    }
    if (agent->tail == NULL)
        agent->tail = calloc(1, TB_LAUNCH_TAIL_BYTES + 1);
    if (agent->tail == NULL)
        return;
    if (length > TB_LAUNCH_TAIL_BYTES) {
        bytes += length - TB_LAUNCH_TAIL_BYTES;
        length = TB_LAUNCH_TAIL_BYTES;
    }
    size_t keep =
        agent->tail_length + length > TB_LAUNCH_TAIL_BYTES ? TB_LAUNCH_TAIL_BYTES - length : agent->tail_length;
    memmove(agent->tail, agent->tail + agent->tail_length - keep, keep);
    memcpy(agent->tail + keep, bytes, length);
    agent->tail_length = keep + length;
    agent->tail[agent->tail_length] = 0;
}

static void errors_ready(struct tb_watch *watch, uint32_t events)
{
    struct tb_host_agent *agent = TB_CONTAINER(watch, struct tb_host_agent, errors);
    struct tb_launch *launch = agent->launch;
    char bytes[1024];
    ssize_t n = read(watch->descriptor, bytes, sizeof bytes);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        int descriptor = watch->descriptor;
        tb_loop_unwatch(&launch->loop, watch);
        close(descriptor);
        return;
    }
    tb_host_agent_add_errors(agent, bytes, (size_t)n);
}

/* What the shell said last, before a message quotes it: all of it, and without line ends. */
static void finish_tail(struct tb_host_agent *agent)
{
    while (agent->errors.descriptor >= 0 && agent->phase < TB_HOST_AGENT_SPOKEN) {
        size_t before = agent->tail_length;
        int descriptor = agent->errors.descriptor;
        errors_ready(&agent->errors, EPOLLIN);
        if (agent->errors.descriptor == descriptor && agent->tail_length == before)
            break;
    }
    char *to = agent->tail;
    for (const char *c = agent->tail; c != NULL && *c != 0; c++)
        if (*c == '\n' || *c == '\r') {
            if (to > agent->tail && to[-1] != ' ' && c[1] != 0)
                *to++ = ' ';
        } else {
            *to++ = *c;
        }
    while (to != NULL && to > agent->tail && (to[-1] == ' ' || to[-1] == '.'))
        to--;
    if (to != NULL)
        *to = 0;
    if (agent->tail != NULL && *agent->tail == 0) {
        free(agent->tail);
        agent->tail = NULL;
    }
}

static void patience_over(struct tb_timer *timer)
{
    struct tb_host_agent *agent = TB_CONTAINER(timer, struct tb_host_agent, patience);
    if (agent->phase < TB_HOST_AGENT_GONE) {
        finish_tail(agent);
        lose(agent, false, 0);
    }
    if (agent->pid > 0)
        kill(-agent->pid, SIGKILL);
    tb_launch_check_done(agent->launch);
}

/* ---- starting
 * ----------------------------------------------------------------------------------------------------------------- */

static void send_setup(struct tb_host_agent *agent)
{
    const struct tb_launch *launch = agent->launch;
    struct tb_setup setup = launch->setup;
    int rc = TB_OK;
    setup.host = agent->host;
    setup.flags = (agent->target.local ? TB_SETUP_LOCAL : 0) | (launch->plan != NULL ? TB_SETUP_GRID : 0);
    if (launch->plan != NULL)
        rc = tb_grid_plan_setup(launch->plan, &launch->placement, agent->host, &setup);
    if (rc == TB_OK)
        rc = tb_setup_encode(&setup, tb_control_stream_begin(&agent->pipe, TB_CONTROL_SETUP));
    if (launch->plan != NULL)
        tb_grid_plan_setup_close(&setup);
    if (rc == TB_OK)
        rc = tb_control_stream_end(&agent->pipe);
    if (rc != TB_OK)
        tb_launch_fail(agent->launch, TB_VERDICT_CAUSE, 1, "cannot tell host %s what to start: %s", agent->target.host,
                       tb_error_story());
}

static int start_shell(struct tb_host_agent *agent)
{
    struct tb_launch *launch = agent->launch;
    struct tb_shell shell;
    int rc = tb_shell_start(&agent->target, &launch->mask, &shell);
    if (rc != TB_OK)
        return rc;
    agent->pid = shell.pid;
    agent->pipe.in = agent->pipe.out = shell.stream;
    rc = tb_loop_watch(&launch->loop, &agent->watch, shell.stream, EPOLLIN, agent_ready);
    if (rc == TB_OK && shell.errors >= 0)
        rc = tb_loop_watch(&launch->loop, &agent->errors, shell.errors, EPOLLIN, errors_ready);
    return rc;
}

void tb_host_agents_start(struct tb_launch *launch)
{
    while (launch->next_start < launch->host_count && launch->agents[launch->next_start].phase != TB_HOST_AGENT_WAITING)
        launch->next_start++;
    for (uint32_t i = launch->next_start; i < launch->host_count; i++) {
        struct tb_host_agent *agent = &launch->agents[i];
        if (launch->ending || launch->silent_count >= STARTING_LIMIT)
            return;
        if (agent->phase != TB_HOST_AGENT_WAITING ||
            (agent->parent != NULL && agent->parent->phase < TB_HOST_AGENT_READY))
            continue;
        int rc = TB_OK;
        if (agent->parent != NULL)
            tb_tunnel_start(agent);
        else if (agent->manual)
            rc = tb_door_expect(agent);
        else
            rc = start_shell(agent);
        agent->phase = TB_HOST_AGENT_SILENT;
        agent->heard = tb_clock_now_real();
        launch->silent_count++;
        if (rc == TB_OK) {
            send_setup(agent);
        } else {
            tb_launch_miss(agent, tb_error_story());
            tb_host_agent_give_up(agent);
            give_up_behind(agent);
        }
    }
}

/* ---- ending
 * -------------------------------------------------------------------------------------------------------------------
 */

void tb_host_agent_ended(struct tb_host_agent *agent, bool exited, int status)
{
    if (agent->phase >= TB_HOST_AGENT_GONE)
        return;
    finish_tail(agent);
    lose(agent, exited, status);
}

static void collect(struct tb_host_agent *agent, int status)
{
    struct tb_launch *launch = agent->launch;
    tb_timer_clear(&agent->patience);
    if (agent->phase < TB_HOST_AGENT_GONE) {
        /* Its last words may still be in the stream. */
        while (agent->phase < TB_HOST_AGENT_GONE && hear(agent) == TB_OK)
            ;
        finish_tail(agent);
        if (agent->phase < TB_HOST_AGENT_GONE)
            lose(agent, true, status);
    }
    agent->pid = 0;
    tb_timer_clear(&agent->patience);
    if (agent->errors.descriptor >= 0) {
        int descriptor = agent->errors.descriptor;
        tb_loop_unwatch(&launch->loop, &agent->errors);
        close(descriptor);
    }
}

void tb_host_agents_reap(struct tb_launch *launch)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        for (uint32_t i = 0; i < launch->host_count; i++)
            if (launch->agents[i].pid == pid) {
                collect(&launch->agents[i], status);
                break;
            }
}

void tb_host_agents_stop(struct tb_launch *launch, bool now)
{
    for (uint32_t i = 0; i < launch->host_count; i++) {
        struct tb_host_agent *agent = &launch->agents[i];
        if (agent->phase == TB_HOST_AGENT_WAITING) {
            agent->phase = TB_HOST_AGENT_GONE;
        } else if (agent->phase == TB_HOST_AGENT_SILENT && !agent->target.local) {
            if (agent->pid > 0)
                kill(-agent->pid, SIGKILL);
            tb_host_agent_give_up(agent);
        } else if (agent->phase < TB_HOST_AGENT_GONE) {
            tb_put_u8(tb_control_stream_begin(&agent->pipe, TB_CONTROL_STOP), now);
            tb_control_stream_end(&agent->pipe);
        }
    }
}

void tb_host_agents_abandon(struct tb_launch *launch)
{
    for (uint32_t i = 0; i < launch->host_count; i++) {
        struct tb_host_agent *agent = &launch->agents[i];
        if (agent->phase < TB_HOST_AGENT_GONE)
            tb_host_agent_give_up(agent);
        /* A local agent sees the end of its stream and kills its ranks; killing it would leave their children. */
        if (agent->pid > 0 && !agent->target.local)
            kill(-agent->pid, SIGKILL);
    }
}

void tb_host_agents_signal(struct tb_launch *launch, int signal)
{
    for (uint32_t i = 0; i < launch->host_count; i++) {
        struct tb_host_agent *agent = &launch->agents[i];
        if (agent->phase <= TB_HOST_AGENT_SILENT || agent->phase == TB_HOST_AGENT_GONE)
            continue;
        tb_put_u32(tb_control_stream_begin(&agent->pipe, TB_CONTROL_SIGNAL), (uint32_t)signal);
        tb_control_stream_end(&agent->pipe);
    }
}

/* What an agent may send again is told when it is worth a message. */
static void tell_window(struct tb_host_agent *agent)
{
    if (agent->written < agent->launch->setup.window / 4 || agent->phase < TB_HOST_AGENT_READY ||
        agent->phase >= TB_HOST_AGENT_GONE)
        return;
    tb_put_u32(tb_control_stream_begin(&agent->pipe, TB_CONTROL_WINDOW), agent->written);
    tb_control_stream_end(&agent->pipe);
    agent->written = 0;
}

/* Before each sleep. From the deepest on, so that everything arrives where a descriptor is; and again while a pipe that
 * was full has got room for what is behind it. */
void tb_host_agents_flush(struct tb_launch *launch)
{
    for (uint32_t i = 0; i < launch->host_count; i++) {
        tell_window(&launch->agents[i]);
        if (launch->agents[i].phase >= TB_HOST_AGENT_READY && launch->agents[i].phase < TB_HOST_AGENT_GONE)
            tb_control_stream_tell_heard(&launch->agents[i].pipe, HEARD_FRAMES);
    }
    for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t i = 0; i < launch->host_count; i++) {
            struct tb_host_agent *agent = &launch->agents[launch->order[i]];
            if (agent->phase >= TB_HOST_AGENT_GONE || tb_control_stream_queued(&agent->pipe) == 0)
                continue;
            if (agent->parent != NULL) {
                moved = (agent->parent->phase < TB_HOST_AGENT_GONE && tb_tunnel_flush(agent)) || moved;
                continue;
            }
            if (agent->line != NULL)
                tb_line_flush(agent);
            if (agent->pipe.out < 0)
                continue;
            /* An error here is seen, and told, when reading. */
            int rc = tb_control_stream_flush(&agent->pipe);
            tb_loop_change(&launch->loop, &agent->watch, rc == TB_AGAIN ? EPOLLIN | EPOLLOUT : EPOLLIN);
        }
    }
}

bool tb_host_agents_gone(const struct tb_launch *launch)
{
    for (uint32_t i = 0; i < launch->host_count; i++)
        if (launch->agents[i].phase < TB_HOST_AGENT_GONE || launch->agents[i].pid > 0)
            return false;
    return true;
}
