/* A job from its start to its verdict. */
#include "launch/state.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define WINDOW_TOTAL    (16u << 20) /* output of all hosts that may be under way */
#define WINDOW_MOST     (256u << 10)
#define WINDOW_LEAST    (8u << 10)
#define HOLD_TERMINAL   100000000u  /* an unfinished line waits this long for its end, */
#define HOLD_ELSEWHERE  1000000000u /* or this long, where nobody waits for a prompt */
#define END_PATIENCE_NS 1200000000u /* beyond kill_grace; then agents that have not answered are given up */
#define SCREEN_PATIENCE 1000000000u /* for whoever reads our output, once a hurried job is over */
#define EXIT_TIMEOUT    124

struct tb_host_agent *tb_launch_agent_of(struct tb_launch *launch, uint32_t rank)
{
    return &launch->agents[tb_address_book_host_of(&launch->placement.book, rank)];
}

/* ---- saying
 * ----------------------------------------------------------------------------------------------------------------- */

static void say(struct tb_launch *launch, const char *text)
{
    struct tb_screen *screen = &launch->screens[1];
    char line[4400];
    bool begun = screen->mid_line || (launch->screens[0].mid_line && isatty(1) && isatty(2));
    int n = snprintf(line, sizeof line, "%s%s: %s\n", begun ? "\n" : "", launch->options->name, text);
    tb_screen_text(screen, line, (size_t)n < sizeof line ? (size_t)n : sizeof line - 1);
}

void tb_launch_say(struct tb_launch *launch, const char *format, ...)
{
    char text[4096];
    va_list rest;
    va_start(rest, format);
    vsnprintf(text, sizeof text, format, rest);
    va_end(rest);
    say(launch, text);
}

/* ---- ending
 * ----------------------------------------------------------------------------------------------------------------- */

static void end_job(struct tb_launch *launch, bool now)
{
    if (launch->killing || (launch->ending && !now))
        return;
    launch->ending = true;
    launch->killing = now;
    tb_timer_clear(&launch->start_timer);
    if (!launch->again) /* the time of the job is that of all its attempts */
        tb_timer_clear(&launch->job_timer);
    tb_timer_clear(&launch->unfinalized_timer);
    tb_timer_clear(&launch->survey_timer);
    tb_host_agents_stop(launch, now);
    tb_timer_set(&launch->loop, &launch->end_timer, (now ? 0 : tb_param.kill_grace) + END_PATIENCE_NS);
    tb_launch_check_done(launch);
}

void tb_launch_fail(struct tb_launch *launch, enum tb_verdict_weight weight, int code, const char *format, ...)
{
    struct tb_verdict *verdict = &launch->verdict;
    /* The first failure counts; but a process that died for a reason of its own explains those who merely noticed. */
    bool better = verdict->weight == TB_VERDICT_NONE ||
                  (weight > verdict->weight && verdict->weight == TB_VERDICT_ABORT && weight == TB_VERDICT_CAUSE);
    if (better) {
        va_list rest;
        va_start(rest, format);
        vsnprintf(verdict->text, sizeof verdict->text, format, rest);
        va_end(rest);
        verdict->weight = weight;
        verdict->code = code != 0 ? code : 1;
    }
    if (weight != TB_VERDICT_LATE)
        end_job(launch, false);
}

/* ---- who does not come
 * --------------------------------------------------------------------------------------------------- */

static bool is_behind(const struct tb_host_agent *agent, const struct tb_host_agent *parent)
{
    while (agent != NULL && agent != parent)
        agent = agent->parent;
    return agent != NULL;
}

/* Whether the job can do without a host: because it was allowed, or because it only was a gateway in reserve. */
static bool can_miss(const struct tb_host_agent *agent)
{
    const struct tb_launch *launch = agent->launch;
    if (launch->plan == NULL || agent->target.local)
        return false;
    uint32_t host = (uint32_t)launch->placement.entries[agent->host];
    return launch->options->allow_missing ||
           (launch->placement.book.hosts[agent->host].rank_count == 0 &&
            tb_grid_plan_spares(launch->plan, launch->options, &launch->placement, host));
}

/* "cluster venus is missing: " when it was the last way in, else "". */
static void name_missing(const struct tb_host_agent *agent, char *text, size_t size)
{
    const struct tb_launch *launch = agent->launch;
    *text = 0;
    if (launch->plan == NULL)
        return;
    uint32_t host = (uint32_t)launch->placement.entries[agent->host];
    const struct tb_grid *grid = launch->plan->grid;
    const struct tb_grid_cluster *cluster = &grid->clusters[grid->hosts[host].cluster];
    const uint32_t *doors = cluster->gateway_count > 0 ? cluster->gateways : cluster->hosts;
    uint32_t count = cluster->gateway_count > 0 ? cluster->gateway_count : cluster->host_count, left = 0;
    bool is_door = false;
    for (uint32_t i = 0; i < count; i++) {
        is_door = is_door || doors[i] == host;
        left += doors[i] != host && !launch->missing[doors[i]];
    }
    if (is_door && left == 0)
        snprintf(text, size, "cluster %s is missing: ", cluster->name);
}

void tb_launch_miss(struct tb_host_agent *agent, const char *why)
{
    struct tb_launch *launch = agent->launch;
    char prefix[128];
    if (launch->ending)
        return;
    name_missing(agent, prefix, sizeof prefix);
    if (!can_miss(agent)) {
        tb_launch_fail(launch, TB_VERDICT_CAUSE, 1, "%s%s", prefix, why);
        return;
    }
    size_t length = strlen(why);
    tb_launch_say(launch, "%s%s%s The job %s without it.", prefix, why, length > 0 && why[length - 1] == '.' ? "" : ".",
                  launch->options->allow_missing ? "starts" : "can do");
    launch->missing[launch->placement.entries[agent->host]] = true;
    for (uint32_t i = 0; i < launch->host_count; i++)
        launch->missed_count += launch->agents[i].phase < TB_HOST_AGENT_READY && is_behind(&launch->agents[i], agent);
    tb_launch_check_start(launch);
}

/* A gateway that carries no ranks, when everything can go by others: the routes of all, and the streams of those behind
 * it.
 */
static bool can_spare(const struct tb_host_agent *agent)
{
    const struct tb_launch *launch = agent->launch;
    if (launch->plan == NULL || launch->ending || agent->target.local ||
        launch->placement.book.hosts[agent->host].rank_count > 0)
        return false;
    for (uint32_t i = 0; i < launch->host_count; i++)
        if (launch->agents[i].phase <
            (is_behind(&launch->agents[i], agent) ? TB_HOST_AGENT_STARTED : TB_HOST_AGENT_READY))
            return false; /* who comes by another one must have begun; the others will */
    if (tb_grid_plan_lose(launch->plan, &launch->placement, agent->host) != TB_OK)
        return false;
    for (uint32_t i = 0; i < launch->host_count; i++) {
        uint32_t anchor;
        if (launch->agents[i].parent == agent && launch->agents[i].phase == TB_HOST_AGENT_STARTED &&
            tb_grid_plan_anchors(launch->plan, &launch->placement, i, 1, &anchor) == 0)
            return false;
    }
    return true;
}

bool tb_launch_spare(struct tb_host_agent *agent)
{
    struct tb_launch *launch = agent->launch;
    if (!can_spare(agent))
        return false;
    tb_launch_say(launch, "the agent on gateway %s of cluster %s is gone; the job goes on without it",
                  launch->placement.book.hosts[agent->host].name, tb_host_agent_cluster(agent));
    for (uint32_t i = 0; i < launch->host_count; i++) {
        struct tb_host_agent *behind = &launch->agents[i];
        if (behind->parent != agent || behind->phase != TB_HOST_AGENT_STARTED)
            continue;
        behind->detached = true;
        tb_timer_set(&launch->loop, &behind->patience, tb_param.link_patience);
    }
    agent->phase = TB_HOST_AGENT_GONE; /* so that it is told nothing */
    tb_launch_send_routes(launch);
    for (uint32_t i = 0; i < launch->host_count; i++)
        tb_host_agent_send_anchors(&launch->agents[i]);
    if (!agent->idle && ++launch->idle_count == launch->host_count)
        tb_launch_finish(launch);
    agent->idle = true;
    return true;
}

void tb_launch_repeat(struct tb_launch *launch)
{
    launch->again = true;
    end_job(launch, true);
}

void tb_launch_check_start(struct tb_launch *launch)
{
    if (launch->ending || launch->trying || launch->ready_count + launch->missed_count < launch->host_count)
        return;
    tb_timer_clear(&launch->start_timer);
    if (launch->missed_count > 0)
        tb_launch_repeat(launch);
    else if ((launch->host_count > 1 || launch->plan != NULL) && !tb_reach_survey_begin(launch))
        tb_launch_send_books(launch);
}

void tb_launch_finish(struct tb_launch *launch)
{
    end_job(launch, false);
}

/* ---- the verdict
 * ------------------------------------------------------------------------------------------------------------------ */

static void give_verdict(struct tb_launch *launch)
{
    const struct tb_ended *ended = &launch->unfinalized;
    launch->flushing = true;
    if (launch->verdict.weight != TB_VERDICT_NONE && *launch->verdict.text != 0)
        say(launch, launch->verdict.text);
    else if (launch->verdict.weight == TB_VERDICT_NONE && launch->unfinalized_count > 0)
        tb_launch_say(launch, "warning: %u rank%s ended without calling MPI_Finalize, the first was rank %u on host %s",
                      launch->unfinalized_count, launch->unfinalized_count > 1 ? "s" : "", ended->rank,
                      tb_launch_agent_of(launch, ended->rank)->target.host);
}

/* All hosts are done: what is left to show is shown, then the verdict, then it is over. */
void tb_launch_check_done(struct tb_launch *launch)
{
    if (launch->agents == NULL || !tb_host_agents_gone(launch))
        return;
    if (launch->again && launch->verdict.weight == TB_VERDICT_NONE) {
        launch->loop.stop = true;
        return;
    }
    if (launch->hurried && !tb_timer_is_set(&launch->screen_timer))
        tb_timer_set(&launch->loop, &launch->screen_timer, SCREEN_PATIENCE);
    if (!tb_screens_empty(launch))
        return;
    if (!launch->flushing)
        give_verdict(launch);
    if (tb_screens_empty(launch))
        launch->loop.stop = true;
}

/* Nobody reads. The verdict may get through on standard error, if that is somewhere else. */
static void screens_overdue(struct tb_timer *timer)
{
    struct tb_launch *launch = TB_CONTAINER(timer, struct tb_launch, screen_timer);
    if (!launch->flushing)
        give_verdict(launch);
    launch->loop.stop = true;
}

static void end_overdue(struct tb_timer *timer)
{
    struct tb_launch *launch = TB_CONTAINER(timer, struct tb_launch, end_timer);
    tb_host_agents_abandon(launch);
    tb_launch_check_done(launch);
}

static void job_overdue(struct tb_timer *timer)
{
    struct tb_launch *launch = TB_CONTAINER(timer, struct tb_launch, job_timer);
    launch->hurried = true;
    tb_launch_fail(launch, TB_VERDICT_CAUSE, EXIT_TIMEOUT, "the job did not end within the %.10g s of %s",
                   (double)launch->options->timeout / 1e9, launch->options->timeout_name);
    tb_launch_check_done(launch);
}

/* It, or whoever is before it, waits for somebody to type something. */
static bool is_by_hand(const struct tb_host_agent *agent)
{
    while (agent != NULL && !agent->manual)
        agent = agent->parent;
    return agent != NULL;
}

static void start_overdue(struct tb_timer *timer)
{
    struct tb_launch *launch = TB_CONTAINER(timer, struct tb_launch, start_timer);
    char names[1024] = "", why[1024];
    size_t used = 0;
    uint64_t waited = tb_clock_now_real() - launch->began;
    uint64_t hand_time = waited < TB_LAUNCH_MANUAL_NS ? TB_LAUNCH_MANUAL_NS - waited : 0;
    for (uint32_t i = 0; i < launch->host_count && used < sizeof names; i++) {
        struct tb_host_agent *agent = &launch->agents[i];
        const char *cluster = tb_host_agent_cluster(agent);
        if (agent->phase >= TB_HOST_AGENT_READY || agent->phase == TB_HOST_AGENT_WAITING)
            continue; /* nobody has asked these */
        if (hand_time > 0 && is_by_hand(agent)) {
            tb_timer_set(&launch->loop, timer, hand_time);
            continue;
        }
        if (can_miss(agent)) {
            snprintf(why, sizeof why, "no answer within %.3g s from host %s of cluster %s.", (double)waited / 1e9,
                     agent->target.host, cluster);
            tb_launch_miss(agent, why);
            continue;
        }
        used +=
            (size_t)snprintf(names + used, sizeof names - used, "%s%s%s%s%s", used > 0 ? ", " : "", agent->target.host,
                             *cluster != 0 ? " (cluster " : "", cluster, *cluster != 0 ? ")" : "");
    }
    if (used == 0) {
        /* Those that nobody has asked, since too many did not answer, have their turn in the next attempt. */
        if (launch->missed_count > 0 && !launch->ending)
            tb_launch_repeat(launch);
        return;
    }
    tb_launch_fail(
        launch, TB_VERDICT_CAUSE, 1,
        "no answer within %.10g s from: %s; can they be reached by hand? (--set start_timeout=60s waits longer)",
        (double)tb_param.start_timeout / 1e9, names);
}

/* ---- heartbeat
 * ----------------------------------------------------------------------------------------------------------------- */

static void set_beat(struct tb_launch *launch)
{
    launch->beat_due = tb_clock_now_real() + tb_param.heartbeat / 3;
    tb_timer_set(&launch->loop, &launch->beat, tb_param.heartbeat / 3);
}

static void beat(struct tb_timer *timer)
{
    struct tb_launch *launch = TB_CONTAINER(timer, struct tb_launch, beat);
    uint64_t now = tb_clock_now_real();
    /* If we are late ourselves, what the agents have said meanwhile is still to be read; the next beat judges. */
    bool late = now > launch->beat_due + tb_param.heartbeat / 3;
    for (uint32_t i = 0; i < launch->host_count; i++) {
        struct tb_host_agent *agent = &launch->agents[i];
        if (agent->target.local || agent->phase < TB_HOST_AGENT_READY || agent->phase == TB_HOST_AGENT_GONE)
            continue;
        tb_control_stream_tell_heard(&agent->pipe, 1);
        if (agent->detached)
            continue;
        /* One behind another is only judged by the time in which that one has said something. */
        uint64_t until = agent->parent != NULL ? agent->parent->heard : now;
        bool silent = until > agent->heard && until - agent->heard > tb_param.heartbeat;
        if (silent && !late) {
            if (!tb_launch_spare(agent))
                tb_launch_fail(
                    launch, TB_VERDICT_CAUSE, 1,
                    "the agent on host %s%s%s has been silent for %.10g s: the host or the network to it is down",
                    agent->target.host, launch->plan != NULL ? " of cluster " : "", tb_host_agent_cluster(agent),
                    (double)tb_param.heartbeat / 1e9);
            tb_host_agent_give_up(agent);
            if (agent->pid > 0)
                kill(-agent->pid, SIGKILL);
            continue;
        }
        if (tb_control_stream_queued(&agent->pipe) == 0)
            tb_control_stream_send(&agent->pipe, TB_CONTROL_PING);
    }
    set_beat(launch);
    tb_launch_check_done(launch);
}

/* ---- signals
 * -------------------------------------------------------------------------------------------------------------------
 */

static void interrupt(struct tb_launch *launch, int number)
{
    launch->interrupts++;
    launch->hurried = true;
    if (launch->flushing || launch->interrupts > 2) {
        launch->loop.stop = true; /* nobody reads our output, and somebody is impatient */
        return;
    }
    const char *name = sigabbrev_np(number);
    tb_launch_fail(launch, TB_VERDICT_CAUSE, 128 + number, "ended by SIG%s", name != NULL ? name : "?");
    if (launch->interrupts > 1)
        end_job(launch, true);
    tb_launch_check_done(launch);
}

static void come_back(struct tb_launch *launch)
{
    for (uint32_t i = 0; i < launch->host_count; i++)
        launch->agents[i].heard = tb_clock_now_real();
    tb_host_agents_signal(launch, SIGCONT);
    tb_input_resume(launch);
}

static void take_signal(struct tb_launch *launch, int number)
{
    switch (number) {
    case SIGCHLD:
        tb_host_agents_reap(launch);
        tb_launch_check_done(launch);
        break;
    case SIGTSTP:
        tb_host_agents_signal(launch, SIGTSTP);
        tb_host_agents_flush(launch);
        kill(getpid(), SIGSTOP);
        break;
    case SIGCONT:
        come_back(launch);
        break;
    case SIGUSR1:
    case SIGUSR2:
        tb_host_agents_signal(launch, number);
        break;
    default:
        interrupt(launch, number);
        break;
    }
}

static void signals_ready(struct tb_watch *watch, uint32_t events)
{
    struct tb_launch *launch = TB_CONTAINER(watch, struct tb_launch, signals);
    struct signalfd_siginfo info;
    while (read(watch->descriptor, &info, sizeof info) == (ssize_t)sizeof info)
        take_signal(launch, (int)info.ssi_signo);
}

static int open_signals(struct tb_launch *launch)
{
    static const int numbers[] = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT, SIGCHLD, SIGUSR1,
                                  SIGUSR2, SIGTSTP, SIGCONT, SIGTTIN, SIGTTOU};
    sigset_t set;
    int descriptor;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        sigaddset(&set, numbers[i]);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGCHLD, SIG_DFL); /* ignored, it would take the exit codes away */
    int rc = tb_signals_open(&set, &launch->mask, &descriptor);
    if (rc != TB_OK)
        return rc;
    return tb_loop_watch(&launch->loop, &launch->signals, descriptor, EPOLLIN, signals_ready);
}

/* ---- the whole
 * --------------------------------------------------------------------------------------------------------------------
 */

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
        char value[1024];
        if (!(row->flags & TB_PARAM_LOCAL) || tb_param_origin(row) == TB_PARAM_DEFAULT)
            continue;
        tb_param_print(row, value, sizeof value);
        fprintf(to, "%s=%s\n", row->name, value);
    }
    return fclose(to) == 0 ? text : NULL;
}

static int make_setup(struct tb_launch *launch)
{
    struct tb_setup *setup = &launch->setup;
    uint32_t window = WINDOW_TOTAL / launch->host_count;
    *setup = (struct tb_setup){.version = (char *)TB_VERSION,
                               .host_count = launch->host_count,
                               .bind = launch->options->bind,
                               .window = window > WINDOW_MOST    ? WINDOW_MOST
                                         : window < WINDOW_LEAST ? WINDOW_LEAST
                                                                 : window,
                               .hold = isatty(1) ? HOLD_TERMINAL : HOLD_ELSEWHERE,
                               .parameters = export_parameters(),
                               .own_parameters = export_own_parameters(),
                               .directory = getcwd(NULL, 0), /* NULL: there is none any more */
                               .app_count = launch->placement.app_count,
                               .apps = launch->placement.apps};
    if (setup->parameters == NULL || setup->own_parameters == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for the parameters");
    if (setup->directory == NULL)
        setup->directory = strdup("");
    int rc = tb_key_make(&setup->key);
    while (rc == TB_OK && setup->job == 0)
        rc = tb_random_secret(&setup->job, sizeof setup->job);
    launch->placement.book.job = setup->job;
    return rc;
}

static void settle(struct tb_loop *loop)
{
    struct tb_launch *launch = TB_CONTAINER(loop, struct tb_launch, loop);
    tb_input_pump(launch);
    tb_host_agents_flush(launch);
}

static int open_all(struct tb_launch *launch)
{
    launch->input.descriptor = -1;
    int rc = tb_loop_open(&launch->loop, &tb_clock_real);
    launch->loop.settle = settle;
    tb_timer_init(&launch->start_timer, start_overdue);
    tb_timer_init(&launch->job_timer, job_overdue);
    tb_timer_init(&launch->beat, beat);
    tb_timer_init(&launch->unfinalized_timer, tb_ending_unfinalized);
    tb_timer_init(&launch->end_timer, end_overdue);
    tb_timer_init(&launch->screen_timer, screens_overdue);
    tb_timer_init(&launch->survey_timer, tb_reach_survey_overdue);
    for (int i = 0; i < 2; i++)
        tb_screen_open(&launch->screens[i], launch, i + 1);
    if (rc == TB_OK)
        rc = open_signals(launch);
    return rc;
}

/* Hosts that nobody can start are missing before anything has begun. */
static void leave_out(struct tb_launch *launch)
{
    const struct tb_grid_plan *plan = launch->plan;
    const struct tb_grid *grid = plan->grid;
    uint32_t told = TB_GRID_NONE;
    for (uint32_t i = 0; i < grid->host_count; i++) {
        if (launch->missing[i] || grid->hosts[i].slots == 0 || plan->manual[i] || i == plan->here ||
            plan->depths[plan->connectivity.classes.of[i]] != TB_GRID_NONE)
            continue;
        /* Of a cluster whose gateway was missed everybody has heard already. */
        const struct tb_grid_cluster *cluster = &grid->clusters[grid->hosts[i].cluster];
        for (uint32_t k = 0; k < cluster->host_count && grid->hosts[i].cluster != told; k++)
            if (launch->missing[cluster->hosts[k]])
                told = grid->hosts[i].cluster;
        launch->missing[i] = true;
        if (grid->hosts[i].cluster != told)
            tb_launch_say(launch, "host %s of cluster %s is missing: nobody can start an agent there%s",
                          grid->hosts[i].name, grid->clusters[grid->hosts[i].cluster].name,
                          ". The job starts without it.");
        told = grid->hosts[i].cluster;
    }
}

static int open_plan(struct tb_launch *launch)
{
    struct tb_options *options = launch->options;
    if (launch->missing == NULL)
        launch->missing = calloc(options->grid->host_count + 1u, sizeof *launch->missing);
    launch->plan = calloc(1, sizeof *launch->plan);
    if (launch->missing == NULL || launch->plan == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for the hosts of %s", options->grid->file);
    int rc = tb_grid_plan_open(launch->plan, options, launch->missing);
    launch->plan->wide = launch->wide;
    if (rc == TB_OK && options->allow_missing)
        leave_out(launch);
    tb_host_list_close(&options->hosts);
    return rc == TB_OK ? tb_host_list_take(&options->hosts, options->grid, launch->missing) : rc;
}

/* Who takes part, and what each is to do. */
static int plan(struct tb_launch *launch)
{
    int rc = launch->options->grid != NULL ? open_plan(launch) : TB_OK;
    if (rc == TB_OK)
        rc = tb_placement_make(&launch->placement, launch->options);
    if (rc == TB_OK && launch->plan != NULL)
        rc = tb_grid_plan_settle(launch->plan, launch->options, &launch->placement);
    if (rc != TB_OK)
        return rc;
    launch->host_count = launch->placement.book.host_count;
    launch->ranks = calloc(launch->placement.book.ranks, 1);
    if (launch->ranks == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for %u ranks", launch->placement.book.ranks);
    rc = make_setup(launch);
    return rc == TB_OK ? tb_host_agents_open(launch) : rc;
}

/* Before another attempt. Everything that was started has ended. */
static void forget(struct tb_launch *launch)
{
    tb_timer_clear(&launch->end_timer);
    tb_timer_clear(&launch->beat);
    tb_door_forget(launch);
    launch->loop.stop = launch->again = launch->ending = launch->killing = launch->trying = false;
    launch->asked_count = 0;
    launch->silent_count = launch->ready_count = launch->idle_count = launch->next_start = launch->missed_count = 0;
    for (uint32_t i = 0; i < launch->host_count; i++)
        free(launch->agents[i].tail);
    free(launch->agents);
    free(launch->order);
    free(launch->ranks);
    free(launch->setup.parameters);
    free(launch->setup.own_parameters);
    free(launch->setup.directory);
    explicit_bzero(&launch->setup, sizeof launch->setup);
    tb_placement_close(&launch->placement);
    tb_grid_plan_close(launch->plan);
    tb_reach_results_close(&launch->results);
    free(launch->plan);
    launch->agents = NULL;
    launch->order = NULL;
    launch->ranks = NULL;
    launch->plan = NULL;
}

static void start(struct tb_launch *launch)
{
    unsetenv(TB_AGENT_VARIABLE); /* we may have been started by a rank of another job */
    launch->began = tb_clock_now_real();
    tb_timer_set(&launch->loop, &launch->start_timer, tb_param.start_timeout);
    if (launch->options->timeout > 0 && !tb_timer_is_set(&launch->job_timer))
        tb_timer_set(&launch->loop, &launch->job_timer, launch->options->timeout);
    for (uint32_t i = 0; i < launch->host_count; i++)
        if (!launch->agents[i].target.local && tb_param.heartbeat > 0 && !tb_timer_is_set(&launch->beat))
            set_beat(launch);
    tb_host_agents_start(launch);
    /* With one host nobody needs an address, so it can start its ranks at once. */
    struct tb_control_stream *only = &launch->agents[0].pipe;
    if (launch->host_count == 1 && only->out >= 0 && launch->plan == NULL) {
        tb_address_book_encode(&launch->placement.book, tb_control_stream_begin(only, TB_CONTROL_ADDRESS_BOOK));
        tb_control_stream_end(only);
    }
    tb_launch_check_done(launch);
}

/* Each host has a home of its own, so the agents choose. */
static void note_directory(struct tb_launch *launch)
{
    bool needed = false;
    for (uint32_t i = 0; i < launch->options->section_count; i++)
        needed = needed || launch->options->sections[i].directory == NULL;
    char *here = getcwd(NULL, 0);
    if (here == NULL && needed)
        tb_launch_say(launch,
                      "the present directory has been removed, or has no name here; ranks start in the home directory, "
                      "or in / where there is none (--wdir chooses another)");
    free(here);
}

int tb_launch_run(struct tb_options *options, const char *program)
{
    struct tb_launch *launch = calloc(1, sizeof *launch);
    if (launch == NULL)
        return 1;
    launch->options = options;
    launch->program = program;
    int rc = open_all(launch);
    if (rc == TB_OK)
        rc = plan(launch);
    if (rc == TB_OK)
        note_directory(launch);
    while (rc == TB_OK) {
        start(launch);
        rc = tb_loop_run(&launch->loop);
        if (rc != TB_OK || !launch->again || launch->verdict.weight != TB_VERDICT_NONE)
            break;
        forget(launch);
        rc = plan(launch);
    }
    if (rc != TB_OK) {
        fprintf(stderr, "%s: %s\n", options->name, tb_error_story());
        return 1;
    }
    /* Everything else goes with the process. */
    return launch->verdict.weight != TB_VERDICT_NONE ? launch->verdict.code : 0;
}
