/* A job from its start to its verdict: puts the parts together, and decides what follows from what they report.
 *
 * Longer than 600 lines because each report of each part has its few lines here, and nowhere else. */
#include "launch/launch.h"

#include "launch/agent_frames.h"
#include "launch/agent_loss.h"
#include "launch/agent_orders.h"
#include "launch/detours.h"
#include "launch/first_remarks.h"
#include "launch/heartbeat.h"
#include "launch/input.h"
#include "launch/job_registry.h"
#include "launch/job_report.h"
#include "launch/job_start.h"
#include "launch/launch_signals.h"
#include "launch/name_client.h"
#include "launch/spawns.h"
#include "launch/stand_ins.h"
#include "launch/wait_report.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define END_PATIENCE_NS 1200000000u /* beyond kill_grace; then agents that have not answered are given up */
#define EXIT_TIMEOUT    124

struct tb_launch {
    struct tb_loop loop;
    struct tb_options *options;
    struct tb_launch_signals signals;
    struct tb_job_plan plan;
    struct tb_host_agents agents;
    struct tb_host_agent_events agent_events;
    struct tb_agent_frame_events frame_events;
    struct tb_job_start start;
    struct tb_heartbeat heartbeat;
    struct tb_detours detours;
    struct tb_rank_ends ends;
    struct tb_job_registry registry;
    struct tb_name_client names; /* beyond the job */
    struct tb_spawns spawns;
    struct tb_job_report report;
    struct tb_input input;
    struct tb_wait_report waits;
    struct tb_timer job_timer, end_timer;
    bool again; /* this attempt is ended to be made again, without those that are missing or with more */
    bool ending, killing;
    bool parting;   /* all ranks have ended, and other jobs may still need what they have said */
    bool dumping;   /* some rank writes a core file */
    bool overdue;   /* --timeout: the job ends when it is known what its ranks wait for */
    bool hurried;   /* a signal or --timeout ends the job, so readers of its output get little time */
    int interrupts; /* SIGINT and the like so far */
};

static struct tb_host_agent *agent_of(struct tb_launch *launch, uint32_t rank)
{
    return &launch->agents.all[tb_address_book_host_of(&launch->plan.placement.book, rank)];
}

/* ---- ending ------------------------------------------------------------------------------------------------------ */

static void end_job(struct tb_launch *launch, bool now)
{
    if (launch->killing || (launch->ending && !now))
        return;
    launch->ending = true;
    launch->killing = now;
    if (!launch->again) /* the time of the job is that of all its attempts */
        tb_timer_clear(&launch->job_timer);
    tb_job_start_stop(&launch->start);
    tb_rank_ends_stop(&launch->ends);
    tb_wait_report_stop(&launch->waits);
    tb_detours_stop(&launch->detours);
    tb_host_agents_stop(&launch->agents, now);
    uint64_t grace = now ? 0 : tb_param.kill_grace + (launch->dumping ? TB_DUMP_PATIENCE_NS : 0);
    tb_timer_set(&launch->loop, &launch->end_timer, grace + END_PATIENCE_NS);
}

static void judge(void *context, enum tb_verdict_weight weight, int code, const char *text)
{
    struct tb_launch *launch = context;
    tb_verdict_add(&launch->report.verdict, weight, code, text);
    if (weight > TB_VERDICT_LOST)
        end_job(launch, false);
}

/* Ends the job with this verdict, unless there is a weightier one. */
__attribute__((format(printf, 3, 4), cold)) static void fail(struct tb_launch *launch, int code, const char *format,
                                                             ...)
{
    char text[sizeof launch->report.verdict.text];
    va_list rest;
    va_start(rest, format);
    vsnprintf(text, sizeof text, format, rest);
    va_end(rest);
    judge(launch, TB_VERDICT_CAUSE, code, text);
}

static void check_done(struct tb_launch *launch)
{
    if (!tb_host_agents_gone(&launch->agents))
        return;
    if (launch->again && launch->report.verdict.weight == TB_VERDICT_NONE)
        launch->loop.stop = true;
    else
        tb_job_report_finish(&launch->report, launch->hurried);
}

static void end_overdue(struct tb_timer *timer)
{
    tb_host_agents_abandon(&TB_CONTAINER(timer, struct tb_launch, end_timer)->agents);
}

static void end_late(struct tb_launch *launch)
{
    launch->hurried = true;
    fail(launch, EXIT_TIMEOUT, "the job did not end within the %.10g s of %s", (double)launch->options->timeout / 1e9,
         launch->options->timeout_name);
}

/* First it is said what the ranks wait for, if there are any. */
static void job_overdue(struct tb_timer *timer)
{
    struct tb_launch *launch = TB_CONTAINER(timer, struct tb_launch, job_timer);
    launch->overdue = true;
    if (!tb_wait_report_is_open(&launch->waits) && !tb_wait_report_ask(&launch->waits))
        end_late(launch);
}

static void waits_line(void *context, const char *text)
{
    tb_job_report_answer(&((struct tb_launch *)context)->report, text);
}

static void waits_said(void *context)
{
    struct tb_launch *launch = context;
    if (launch->overdue)
        end_late(launch);
}

/* ---- what the start and the output report ------------------------------------------------------------------------ */

static void take_remark(void *context, const char *text)
{
    tb_job_report_say(&((struct tb_launch *)context)->report, "%s", text);
}

static void job_failed(void *context, const char *text)
{
    judge(context, TB_VERDICT_CAUSE, 1, text);
}

static void start_again(void *context)
{
    struct tb_launch *launch = context;
    launch->again = true;
    end_job(launch, true);
}

static void output_written(void *context, uint32_t host, uint32_t bytes)
{
    ((struct tb_launch *)context)->agents.all[host].written += bytes;
}

static void output_failed(void *context, int code, const char *story)
{
    judge(context, TB_VERDICT_CAUSE, code, story);
}

static const char *host_name(void *context, uint32_t host)
{
    return ((struct tb_launch *)context)->plan.placement.book.hosts[host].name;
}

static void job_succeeded(void *context)
{
    tb_rank_ends_warn(&((struct tb_launch *)context)->ends, take_remark, context);
}

static void input_bytes(void *context, const char *bytes, size_t length)
{
    struct tb_launch *launch = context;
    tb_agent_orders_input(agent_of(launch, launch->options->input_rank), bytes, length);
}

/* ---- what agents report ------------------------------------------------------------------------------------------ */

static void agent_frame(void *context, struct tb_host_agent *agent, struct tb_control_frame *frame)
{
    struct tb_launch *launch = context;
    tb_detours_heard(&launch->detours, agent->host);
    tb_agent_frames_dispatch(&launch->frame_events, agent, frame);
}

static void agent_errors(void *context, const char *bytes, size_t length)
{
    tb_job_report_pass_errors(&((struct tb_launch *)context)->report, bytes, length);
}

static void agent_missed(void *context, struct tb_host_agent *agent, const char *story)
{
    tb_job_start_miss(&((struct tb_launch *)context)->start, agent, story);
}

static void agent_damaged(void *context, struct tb_host_agent *agent)
{
    fail(context, 1, "the stream from the agent on host %s is damaged: %s", agent->target.host, tb_error_story());
}

/* Agents that have not left by themselves stay for others: those of the job, and other jobs that it has met. */
static void check_idle(struct tb_launch *launch)
{
    bool any = false;
    for (uint32_t i = 0; i < launch->agents.count; i++) {
        const struct tb_host_agent *agent = &launch->agents.all[i];
        if (!agent->idle && agent->phase < TB_HOST_AGENT_GONE)
            return;
        any = any || agent->phase < TB_HOST_AGENT_GONE;
    }
    launch->parting = any && !launch->ending && tb_foreign_jobs_part(&launch->spawns.meetings.foreign);
    if (any && !launch->parting)
        end_job(launch, false);
}

/* An agent is gone while the job runs, or has said why it cannot go on. True: the job does, by other ways. */
static bool go_on_without(struct tb_launch *launch, struct tb_host_agent *agent, const char *why)
{
    tb_spawns_lose(&launch->spawns, agent->host);
    tb_meetings_lose(&launch->spawns.meetings, agent->host);
    if (launch->ending || !tb_stand_ins_exist(&launch->plan, &launch->agents, agent))
        return false;
    tb_job_report_say(&launch->report, "the agent on %s %s of cluster %s is gone%s%s%s; the job goes on without it",
                      agent->spare ? "host" : "gateway", agent->name, agent->cluster, why != NULL ? " (" : "",
                      why != NULL ? why : "", why != NULL ? ")" : "");
    if (tb_stand_ins_take_over(&launch->plan, &launch->agents, agent) != TB_OK)
        fail(launch, 1, "%s", tb_error_story());
    tb_detours_forget(&launch->detours, agent->host);
    tb_job_start_take_told(&launch->start);
    if (!agent->idle) {
        tb_host_agent_take_idle(agent);
        check_idle(launch);
    }
    return true;
}

static void judge_loss(struct tb_launch *launch, struct tb_host_agent *agent, bool exited, int status)
{
    char story[sizeof launch->report.verdict.text];
    if (agent->phase <= TB_HOST_AGENT_SILENT && !agent->target.local) {
        tb_agent_loss_unreached(agent, exited, status, story, sizeof story);
        agent_missed(launch, agent, story);
        return;
    }
    if (agent->idle && launch->ending && launch->report.verdict.weight == TB_VERDICT_NONE)
        return; /* all is over and told, and nobody needs it any more */
    tb_agent_loss_gone(agent, exited, status, story, sizeof story);
    if (agent->phase < TB_HOST_AGENT_READY && launch->plan.grid != NULL)
        agent_missed(launch, agent, story);
    else
        fail(launch, exited && WIFSIGNALED(status) ? 128 + WTERMSIG(status) : 1, "%s", story);
}

static void agent_lost(void *context, struct tb_host_agent *agent, bool exited, int status)
{
    struct tb_launch *launch = context;
    if (go_on_without(launch, agent, NULL))
        return;
    if (!launch->again && !tb_job_start_lose(&launch->start, agent))
        judge_loss(launch, agent, exited, status);
    if (agent->phase < TB_HOST_AGENT_GONE)
        tb_host_agent_give_up(agent);
    tb_host_agents_give_up_behind(&launch->agents, agent);
}

static void agent_silent(void *context, struct tb_host_agent *agent)
{
    struct tb_launch *launch = context;
    if (!go_on_without(launch, agent, NULL)) {
        if (!launch->again && !tb_job_start_go_around(&launch->start, agent))
            fail(launch, 1,
                 "the agent on host %s%s%s has been silent for %.10g s: the host or the network to it is down",
                 agent->target.host, *agent->cluster != 0 ? " of cluster " : "", agent->cluster,
                 (double)tb_param.heartbeat / 1e9);
        tb_host_agent_give_up(agent);
    }
    tb_host_agent_kill(agent);
}

/* ---- what their frames say --------------------------------------------------------------------------------------- */

static void take_ready(void *context, struct tb_host_agent *agent, const struct tb_agent_ready *ready)
{
    struct tb_launch *launch = context;
    if (tb_job_plan_take_ready(&launch->plan, agent->host, ready) == TB_OK)
        tb_job_start_take_ready(&launch->start);
    else
        fail(launch, 1, "%s", tb_error_story());
}

static void take_told(void *context, struct tb_host_agent *agent)
{
    tb_job_start_take_told(&((struct tb_launch *)context)->start);
}

static void take_started(void *context, struct tb_host_agent *agent, struct tb_reader *pids)
{
    struct tb_launch *launch = context;
    tb_host_agent_take_started(agent);
    uint32_t reader = launch->options->input_rank;
    if (reader < launch->plan.placement.book.ranks && agent == agent_of(launch, reader))
        tb_input_open(&launch->input);
}

static void take_output(void *context, struct tb_host_agent *agent, uint32_t rank, unsigned stream, const char *bytes,
                        size_t length)
{
    struct tb_launch *launch = context;
    if (tb_address_book_knows(&launch->plan.placement.book, rank))
        tb_job_report_add(&launch->report, stream, rank, agent->host, bytes, length);
}

/* What it has left in the registry goes with it. */
static void take_over(void *context, const struct tb_ended *ended, bool unborn)
{
    struct tb_launch *launch = context;
    tb_job_registry_end(&launch->registry, ended, unborn);
    tb_name_client_end(&launch->names, ended->rank);
}

static void take_ended(void *context, struct tb_host_agent *agent, const struct tb_ended *ended)
{
    struct tb_launch *launch = context;
    launch->dumping = launch->dumping || (ended->flags & TB_ENDED_DUMPING);
    if (tb_rank_ends_add(&launch->ends, ended) && agent == agent_of(launch, ended->rank))
        agent->ended += !launch->ending || (ended->flags & TB_ENDED_STOPPED) == 0;
}

static void take_aborted(void *context, struct tb_host_agent *agent, const struct tb_agent_abort *abort)
{
    tb_rank_ends_abort(&((struct tb_launch *)context)->ends, abort);
}

static void tell_lost(struct tb_launch *launch, uint32_t rank, const char *text)
{
    tb_agent_orders_lost(&launch->agents, (struct tb_proc){launch->plan.placement.book.job, rank}, 1, text);
    tb_spawns_note_lost(&launch->spawns, rank, text);
    tb_foreign_jobs_lost(&launch->spawns.meetings.foreign, rank, 1, text);
}

static void rank_lost(void *context, uint32_t rank, const char *text)
{
    struct tb_launch *launch = context;
    tb_job_report_say(&launch->report, "%s; the job goes on without it", text);
    tell_lost(launch, rank, text);
}

static void rank_dropped(void *context, uint32_t rank, const char *text)
{
    struct tb_launch *launch = context;
    tb_agent_orders_end_rank(agent_of(launch, rank), rank);
    tell_lost(launch, rank, text);
}

/* Some are ended for the failure of one of them, and those that are not connected with it go on. */
static void worlds_parted(void *context, const uint32_t *worlds, uint32_t count, const char *text)
{
    struct tb_launch *launch = context;
    tb_job_report_say(&launch->report, "%s; processes that are connected with it are ended, and the others go on",
                      text);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t end, rank = tb_worlds_of(&launch->plan.placement.book, worlds[i], &end);
        tb_agent_orders_end_world(&launch->agents, worlds[i]);
        /* Other jobs, whose ends of links to this one stay, do not notice else. */
        tb_foreign_jobs_lost(&launch->spawns.meetings.foreign, rank, end - rank, text);
    }
}

static void take_registry(void *context, struct tb_host_agent *agent, const struct tb_agent_wish *wish)
{
    struct tb_launch *launch = context;
    if (!tb_name_client_take(&launch->names, wish))
        tb_job_registry_take(&launch->registry, agent, wish);
}

static void take_trouble(void *context, struct tb_host_agent *agent, uint32_t code, const char *text, size_t length)
{
    struct tb_launch *launch = context;
    char story[2600];
    tb_agent_loss_trouble(agent, text, length, story, sizeof story);
    if (agent->phase < TB_HOST_AGENT_READY)
        agent_missed(launch, agent, story);
    else if (!go_on_without(launch, agent, story))
        fail(launch, (int)(code & 255), "%s", story);
}

static void take_note(void *context, const char *text, size_t length)
{
    tb_job_report_say(&((struct tb_launch *)context)->report, "%.*s", (int)length, text);
}

static void take_input_window(void *context, uint32_t bytes)
{
    tb_input_allow(&((struct tb_launch *)context)->input, bytes);
}

/* It has ended in good order, which nobody has asked it to: something it needs is missing there, or somebody has. */
static void judge_leaving(struct tb_launch *launch, struct tb_host_agent *agent)
{
    char story[1024];
    tb_agent_loss_left(agent, story, sizeof story);
    if (agent->phase < TB_HOST_AGENT_READY)
        agent_missed(launch, agent, story);
    else if (story[0] != 0)
        fail(launch, 1, "%s", story);
}

static void take_gone(void *context, struct tb_host_agent *agent)
{
    struct tb_launch *launch = context;
    tb_group_tests_lose(&launch->start.groups, agent->host);
    if (!launch->ending && !go_on_without(launch, agent, NULL)) {
        judge_leaving(launch, agent);
        tb_host_agents_give_up_behind(&launch->agents, agent);
    }
    if (agent->phase < TB_HOST_AGENT_GONE)
        tb_host_agent_give_up(agent);
    if (!launch->ending)
        check_idle(launch);
}

static void take_idle(void *context, struct tb_host_agent *agent)
{
    tb_spawns_lose(&((struct tb_launch *)context)->spawns, agent->host);
    check_idle(context);
}

static void take_call(void *context, uint32_t host, struct tb_reader *rest)
{
    tb_agent_orders_call(&((struct tb_launch *)context)->agents, host, rest);
}

static void take_probed(void *context, struct tb_host_agent *agent, struct tb_reader *results)
{
    tb_reach_survey_take(&((struct tb_launch *)context)->start.survey, agent->host, results);
}

static void take_attach(void *context, struct tb_host_agent *parent, uint32_t host, uint32_t coming)
{
    struct tb_launch *launch = context;
    tb_stand_ins_take_attach(&launch->plan, &launch->agents, parent, host, coming, !launch->ending);
}

static void take_link(void *context, struct tb_host_agent *agent, const struct tb_agent_link *link)
{
    tb_detours_report(&((struct tb_launch *)context)->detours, agent->host, link);
}

static void take_waits(void *context, struct tb_host_agent *agent, struct tb_reader *answers)
{
    tb_wait_report_take(&((struct tb_launch *)context)->waits, agent, answers);
}

static void take_group(void *context, struct tb_host_agent *agent, enum tb_control kind, struct tb_reader *fields)
{
    tb_group_tests_take(&((struct tb_launch *)context)->start.groups, agent->host, kind, fields);
}

/* ---- signals ----------------------------------------------------------------------------------------------------- */

static void interrupt(struct tb_launch *launch, int number)
{
    launch->interrupts++;
    launch->hurried = true;
    if (launch->report.given || launch->interrupts > 2) {
        launch->loop.stop = true; /* nobody reads our output, and somebody is impatient */
        return;
    }
    const char *name = sigabbrev_np(number);
    fail(launch, 128 + number, "ended by SIG%s", name != NULL ? name : "?");
    if (launch->interrupts > 1)
        end_job(launch, true);
}

/* Ctrl-\ asks what the ranks wait for, and the job goes on. Who asks again before there is an answer wants its end. */
static void question(struct tb_launch *launch)
{
    if (launch->ending || tb_wait_report_is_open(&launch->waits) || !tb_wait_report_ask(&launch->waits))
        interrupt(launch, SIGQUIT);
}

static void take_signal(void *context, int number)
{
    struct tb_launch *launch = context;
    switch (number) {
    case SIGQUIT:
        question(launch);
        break;
    case SIGCHLD:
        tb_host_agents_reap(&launch->agents);
        break;
    case SIGTSTP:
        tb_host_agents_signal(&launch->agents, SIGTSTP);
        tb_host_agents_flush(&launch->agents);
        kill(getpid(), SIGSTOP);
        break;
    case SIGCONT:
        tb_host_agents_excuse(&launch->agents, tb_loop_now(&launch->loop));
        tb_host_agents_signal(&launch->agents, SIGCONT);
        tb_input_resume(&launch->input);
        break;
    case SIGUSR1:
    case SIGUSR2:
        tb_host_agents_signal(&launch->agents, number);
        break;
    default:
        interrupt(launch, number);
        break;
    }
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

/* Before each sleep. */
static void settle(struct tb_loop *loop)
{
    struct tb_launch *launch = TB_CONTAINER(loop, struct tb_launch, loop);
    tb_input_pump(&launch->input);
    if (launch->parting)
        check_idle(launch);
    tb_name_client_settle(&launch->names);
    tb_host_agents_flush(&launch->agents);
    check_done(launch);
}

static void wire_agents(struct tb_launch *launch)
{
    launch->agent_events = (struct tb_host_agent_events){.context = launch,
                                                         .frame = agent_frame,
                                                         .errors = agent_errors,
                                                         .missed = agent_missed,
                                                         .damaged = agent_damaged,
                                                         .lost = agent_lost};
    launch->frame_events = (struct tb_agent_frame_events){.context = launch,
                                                          .agents = &launch->agents,
                                                          .spawns = &launch->spawns,
                                                          .ready = take_ready,
                                                          .told = take_told,
                                                          .started = take_started,
                                                          .output = take_output,
                                                          .over = take_over,
                                                          .ended = take_ended,
                                                          .aborted = take_aborted,
                                                          .trouble = take_trouble,
                                                          .note = take_note,
                                                          .input_window = take_input_window,
                                                          .idle = take_idle,
                                                          .gone = take_gone,
                                                          .call = take_call,
                                                          .probed = take_probed,
                                                          .attach = take_attach,
                                                          .link = take_link,
                                                          .group = take_group,
                                                          .waits = take_waits,
                                                          .registry = take_registry};
    tb_heartbeat_init(&launch->heartbeat, &launch->loop, &launch->agents,
                      &(struct tb_heartbeat_events){.context = launch, .silent = agent_silent});
    tb_job_start_init(&launch->start, &launch->loop, &launch->plan, &launch->agents,
                      &(struct tb_job_start_events){
                          .context = launch, .note = take_remark, .failed = job_failed, .again = start_again});
}

static void name_answered(void *context, uint32_t rank, const struct tb_registry_answer *answer)
{
    tb_job_registry_tell(&((struct tb_launch *)context)->registry, rank, answer);
}

static int open_all(struct tb_launch *launch)
{
    const struct tb_screen_events screen = {
        .context = launch, .written = output_written, .failed = output_failed, .host_name = host_name};
    int rc = tb_loop_open(&launch->loop, &tb_clock_real);
    launch->loop.settle = settle;
    tb_timer_init(&launch->job_timer, job_overdue);
    tb_timer_init(&launch->end_timer, end_overdue);
    wire_agents(launch);
    tb_rank_ends_init(
        &launch->ends, &launch->loop,
        &(struct tb_rank_ends_events){
            .context = launch, .failed = judge, .parted = worlds_parted, .lost = rank_lost, .dropped = rank_dropped});
    tb_job_registry_init(&launch->registry, &launch->loop, &launch->agents,
                         &(struct tb_job_registry_events){.context = launch, .say = take_remark});
    tb_spawns_init(&launch->spawns, &launch->plan.placement.book, &launch->agents, &launch->ends, &launch->report);
    tb_wait_report_init(&launch->waits, &launch->loop, &launch->agents,
                        &(struct tb_wait_report_events){.context = launch, .say = waits_line, .done = waits_said});
    tb_input_init(&launch->input, &launch->loop, &(struct tb_input_events){.context = launch, .bytes = input_bytes});
    tb_job_report_open(&launch->report, &launch->loop, launch->options->name, &launch->options->output,
                       &(struct tb_job_report_events){.context = launch, .screen = screen, .succeeded = job_succeeded});
    if (rc == TB_OK && launch->options->meet_file != NULL)
        rc = tb_name_client_open(&launch->names, &launch->loop, launch->options->meet_file,
                                 &(struct tb_name_client_events){.context = launch, .answered = name_answered});
    return rc == TB_OK ? tb_launch_signals_open(&launch->signals, &launch->loop, launch, take_signal) : rc;
}

/* Who takes part in an attempt, and what each is to do. */
static int plan(struct tb_launch *launch)
{
    int rc = tb_job_plan_open(&launch->plan, take_remark, launch);
    if (rc == TB_OK)
        rc = tb_rank_ends_begin(&launch->ends, &launch->plan.placement.book);
    tb_job_registry_begin(&launch->registry, &launch->plan.placement.book);
    if (rc == TB_OK)
        rc = tb_job_report_expect(&launch->report, launch->plan.placement.book.ranks);
    if (rc == TB_OK)
        rc = tb_job_plan_open_agents(&launch->plan, &launch->agents, &launch->loop, &launch->agent_events);
    return rc == TB_OK
               ? tb_detours_open(&launch->detours, &launch->loop, &launch->plan, &launch->agents,
                                 &(struct tb_detours_events){.context = launch, .say = take_remark, .fail = job_failed})
               : rc;
}

/* Before another attempt. Everything that was started has ended. */
static void forget(struct tb_launch *launch)
{
    tb_timer_clear(&launch->end_timer);
    tb_heartbeat_stop(&launch->heartbeat);
    tb_job_start_forget(&launch->start);
    tb_detours_close(&launch->detours);
    tb_host_agents_close(&launch->agents);
    tb_job_plan_close(&launch->plan);
    launch->loop.stop = launch->again = launch->ending = launch->killing = false;
}

static void start(struct tb_launch *launch)
{
    unsetenv(TB_AGENT_VARIABLE); /* we may have been started by a rank of another job */
    if (launch->options->timeout > 0 && !tb_timer_is_set(&launch->job_timer))
        tb_timer_set(&launch->loop, &launch->job_timer, launch->options->timeout);
    tb_heartbeat_start(&launch->heartbeat);
    tb_job_start_begin(&launch->start, &launch->signals.before);
}

int tb_launch_run(struct tb_options *options, const char *program)
{
    tb_core_forbid();
    struct tb_launch *launch = calloc(1, sizeof *launch);
    if (launch == NULL) {
        fprintf(stderr, "%s: no memory\n", options->name);
        return 1;
    }
    const struct tb_verdict *verdict = &launch->report.verdict;
    launch->options = options;
    launch->plan = (struct tb_job_plan){.options = options, .program = program};
    int rc = open_all(launch);
    if (rc == TB_OK)
        rc = plan(launch);
    if (rc == TB_OK)
        rc = tb_first_remarks_say(&launch->report, &launch->plan);
    if (rc == TB_OK && options->plans_only)
        return 0;
    while (rc == TB_OK) {
        start(launch);
        rc = tb_loop_run(&launch->loop);
        if (rc != TB_OK || !launch->again || verdict->weight != TB_VERDICT_NONE)
            break;
        forget(launch);
        rc = plan(launch);
    }
    if (rc != TB_OK) {
        fprintf(stderr, "%s: %s\n", options->name, tb_error_story());
        return 1;
    }
    tb_name_client_close(&launch->names);
    /* Everything else goes with the process. */
    return verdict->weight != TB_VERDICT_NONE ? verdict->code : 0;
}
