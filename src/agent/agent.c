/* The life of an agent: it opens its parts, tells each what the others report, does what the launcher says, and ends.
 *
 * Longer than 600 lines because each frame of the launcher, and each report of a part, has its few lines here. */
#include "agent/agent.h"

#include "agent/border.h"
#include "agent/early_frames.h"
#include "agent/host_network.h"
#include "agent/host_worlds.h"
#include "agent/process.h"
#include "agent/tunnels.h"
#include "agent/uplink_frames.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define LINGER_NS       250000000u  /* for output that is held by somebody after all ranks have ended, */
#define LINGER_GROUP_NS 2000000000u /* or by a process of a rank's own group; both since the last byte */
#define LAST_NS         1000000000u /* for processes to be gone after SIGKILL */

enum tb_agent_phase {
    TB_AGENT_NEW,
    TB_AGENT_READY,
    TB_AGENT_TOLD, /* knows everything, and waits for the word to start its ranks */
    TB_AGENT_RUNNING,
    TB_AGENT_STOPPING,
    TB_AGENT_KILLING,
    TB_AGENT_DONE
};

struct tb_agent {
    struct tb_loop loop;
    enum tb_agent_phase phase;
    int exit_code;
    bool idle_told, gone_told;
    struct tb_early_frames early;
    bool orderly; /* the ranks have ended by themselves; what they left running goes on, as without us */
    struct tb_timer grace, linger;
    struct tb_process process;
    struct tb_watch signals;
    struct tb_guardian *guardian;

    struct tb_setup setup;
    struct tb_address_book book;
    struct tb_host_routes routes; /* of this host; empty without a grid */
    const char *host;             /* our name in the address book, or "this host" */

    struct tb_uplink uplink;
    struct tb_local_ranks local;
    struct tb_host_worlds worlds; /* these, and those that were started since */
    struct tb_tunnels tunnels;
    struct tb_member member; /* who we are, for the network, */
    struct tb_host_network network;
    struct tb_border border; /* to other jobs */
};

static void stop(struct tb_agent *agent, bool now);
static void uplink_frame(void *context, struct tb_control_frame *frame);

/* ---- telling the launcher ---------------------------------------------------------------------------------------- */

static void note(void *context, const char *text)
{
    struct tb_agent *agent = context;
    tb_put_text(tb_uplink_begin(&agent->uplink, TB_CONTROL_NOTE), text);
    tb_uplink_end(&agent->uplink);
}

static void trouble(struct tb_agent *agent, int exit_code, const char *format, ...)
    __attribute__((format(printf, 3, 4), cold));

/* The job cannot go on. What runs here is ended; the launcher ends the rest. */
static void trouble(struct tb_agent *agent, int exit_code, const char *format, ...)
{
    char text[2048];
    va_list rest;
    va_start(rest, format);
    vsnprintf(text, sizeof text, format, rest);
    va_end(rest);
    struct tb_writer *w = tb_uplink_begin(&agent->uplink, TB_CONTROL_TROUBLE);
    tb_put_u32(w, (uint32_t)exit_code);
    tb_put_text(w, text);
    tb_uplink_end(&agent->uplink);
    stop(agent, false);
}

/* ---- ending ------------------------------------------------------------------------------------------------------ */

static void finish(struct tb_agent *agent)
{
    if (agent->gone_told)
        return;
    tb_host_worlds_drain(&agent->worlds);
    tb_uplink_send(&agent->uplink, TB_CONTROL_GONE);
    tb_uplink_make_final(&agent->uplink);
    agent->gone_told = true;
    agent->orderly = agent->idle_told || agent->phase < TB_AGENT_STOPPING;
    agent->phase = TB_AGENT_DONE;
    agent->member.running = false;
    tb_host_worlds_stop(&agent->worlds);
}

/* Nothing more will come from the ranks. Others may still need what they have said, or us to pass something on. */
static void rest(struct tb_agent *agent)
{
    if (!(agent->setup.flags & (TB_SETUP_STAYS | TB_SETUP_SPARE)) && !tb_border_is_used(&agent->border)) {
        finish(agent);
        return;
    }
    tb_host_worlds_drain(&agent->worlds);
    tb_uplink_send(&agent->uplink, TB_CONTROL_IDLE);
    agent->idle_told = true;
}

/* All ranks have ended, but somebody still holds their output. */
static void linger(struct tb_agent *agent)
{
    tb_timer_set(&agent->loop, &agent->linger, tb_host_worlds_alive(&agent->worlds) ? LINGER_GROUP_NS : LINGER_NS);
}

static void linger_over(struct tb_timer *timer)
{
    struct tb_agent *agent = TB_CONTAINER(timer, struct tb_agent, linger);
    if (agent->local.outputs.window > 0)
        rest(agent);
    else
        linger(agent); /* not they are silent, but the launcher takes nothing */
}

static void check_done(void *context)
{
    struct tb_agent *agent = context;
    if (agent->gone_told || agent->phase < TB_AGENT_RUNNING)
        return;
    if (agent->phase >= TB_AGENT_STOPPING) {
        /* The agents behind us say their last words through us. */
        if ((agent->idle_told || !tb_host_worlds_left(&agent->worlds)) && tb_tunnels_empty(&agent->tunnels))
            finish(agent);
        return;
    }
    if (!tb_host_worlds_all_ended(&agent->worlds) || agent->idle_told)
        return;
    if (!tb_host_worlds_any_open(&agent->worlds))
        rest(agent);
    else if (!tb_timer_is_set(&agent->linger))
        linger(agent);
}

/* Orphans of our ranks become our children too (we are their reaper) and are collected here without a word. */
static void collect_children(struct tb_agent *agent)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        tb_host_worlds_reap(&agent->worlds, pid, status);
        tb_tunnels_reap(&agent->tunnels, pid, status);
    }
    tb_host_worlds_forget_groups(&agent->worlds);
}

static void stop(struct tb_agent *agent, bool now)
{
    if (agent->phase >= (now ? TB_AGENT_KILLING : TB_AGENT_STOPPING))
        return;
    agent->phase = now ? TB_AGENT_KILLING : TB_AGENT_STOPPING;
    agent->member.running = false;
    tb_host_worlds_stop(&agent->worlds);
    tb_uplink_make_final(&agent->uplink);
    tb_timer_clear(&agent->linger);
    if (!agent->idle_told) /* what ranks that have ended in good order left running goes on, as without us */
        tb_host_worlds_end(&agent->worlds, now ? SIGKILL : SIGTERM);
    uint64_t last = tb_host_worlds_dumping(&agent->worlds) ? TB_DUMP_PATIENCE_NS : LAST_NS;
    tb_timer_set(&agent->loop, &agent->grace, now ? last : tb_param.kill_grace);
    collect_children(agent);
    check_done(agent);
}

static void grace_over(struct tb_timer *timer)
{
    struct tb_agent *agent = TB_CONTAINER(timer, struct tb_agent, grace);
    if (agent->phase == TB_AGENT_STOPPING) {
        stop(agent, true);
    } else if (tb_host_worlds_dumping(&agent->worlds)) {
        tb_host_worlds_kill(&agent->worlds);
        tb_timer_set(&agent->loop, timer, LAST_NS);
    } else {
        finish(agent); /* a process that even SIGKILL does not end; the guardian tries once more */
    }
}

/* ---- what the parts report --------------------------------------------------------------------------------------- */

/* The launcher is gone: nobody is left to tell anything. */
static void uplink_lost(void *context, const char *why)
{
    struct tb_agent *agent = context;
    tb_log(TB_LOG_INFO, "agent", "ends: %s", why);
    agent->exit_code = agent->gone_told ? 0 : 1;
    agent->loop.stop = true;
}

static void rank_connects(void *context, uint32_t rank, struct tb_proc to, enum tb_stream stream)
{
    struct tb_agent *agent = context;
    tb_host_network_connect(&agent->network, rank, to, stream);
}

static void rank_waits(void *context, uint32_t rank, const struct tb_job_waiting *waiting)
{
    struct tb_agent *agent = context;
    tb_host_network_want(&agent->network, rank, waiting);
}

static void rank_ended(void *context, uint32_t rank)
{
    struct tb_agent *agent = context;
    tb_host_network_forget(&agent->network, rank);
}

static void output_heard(void *context)
{
    struct tb_agent *agent = context;
    if (tb_timer_is_set(&agent->linger))
        linger(agent);
}

/* ---- what the network reports ------------------------------------------------------------------------------------ */

static bool has_rank(void *context, uint32_t rank)
{
    const struct tb_agent *agent = context;
    const struct tb_local_ranks *local = tb_host_worlds_find(&agent->worlds, rank);
    return local != NULL ? tb_local_ranks_has(local, rank) : tb_border_has(&agent->border, rank);
}

static bool rank_is_gone(void *context, uint32_t rank)
{
    const struct tb_local_ranks *local = tb_host_worlds_find(&((const struct tb_agent *)context)->worlds, rank);
    return local != NULL && tb_local_ranks_is_gone(local, rank);
}

static void take_connection(void *context, uint32_t rank, struct tb_proc proc, enum tb_stream stream, int error,
                            int descriptor)
{
    struct tb_agent *agent = context;
    struct tb_local_ranks *local = tb_host_worlds_find(&agent->worlds, rank);
    if (local != NULL)
        tb_local_ranks_connection(local, rank, proc, stream, error, descriptor);
    else if (error == TB_OK && proc.index == agent->member.self.index)
        tb_border_connection(&agent->border, rank, stream, descriptor);
    else if (descriptor >= 0)
        close(descriptor); /* its world has ended, or it is of another job, with whom only agents speak */
}

static void border_connects(void *context, uint32_t rank, enum tb_stream stream)
{
    struct tb_agent *agent = context;
    tb_host_network_connect(&agent->network, rank, agent->member.self, stream);
}

static uint64_t border_kept(void *context, uint32_t rank)
{
    struct tb_agent *agent = context;
    return tb_forwarder_kept(&agent->network.forwarder, rank);
}

static void take_control_stream(void *context, const struct tb_connected *connected)
{
    struct tb_agent *agent = context;
    uint32_t host = connected->proc.index & ~TB_PROC_AGENT;
    struct tb_key secret;
    bool open = tb_uplink_is_sure(&agent->uplink) && host < agent->book.host_count && host != agent->setup.host &&
                agent->member.running;
    if (open && tb_stream_secret(&secret, &agent->setup.key, connected->hello, connected->welcome) == TB_OK) {
        tb_tunnels_adopt(&agent->tunnels, host, connected->socket, &secret);
        explicit_bzero(&secret, sizeof secret);
    } else {
        close(connected->socket);
    }
}

static void tell_call(void *context, uint32_t host, struct tb_proc there, struct tb_proc here, uint32_t stream)
{
    tb_uplink_tell_call(&((struct tb_agent *)context)->uplink, host, there, here, stream);
}

static void tell_probed(void *context, const struct tb_reach_report *reports, uint32_t count)
{
    tb_uplink_tell_probed(&((struct tb_agent *)context)->uplink, reports, count);
}

static void tell_link(void *context, uint32_t host, enum tb_link_report state, uint64_t time, const char *why)
{
    tb_uplink_tell_link(&((struct tb_agent *)context)->uplink, host, state, time, why);
}

/* ---- starting ---------------------------------------------------------------------------------------------------- */

static void take_setup(struct tb_agent *agent, struct tb_reader *r)
{
    if (agent->phase != TB_AGENT_NEW)
        return;
    int rc = tb_host_parameters_read(&agent->local.parameters, &agent->setup, r);
    tb_outputs_allow(&agent->local.outputs, agent->setup.window);
    if (rc == TB_OK && (agent->setup.flags & TB_SETUP_GRID))
        rc = tb_uplink_keep(&agent->uplink);
    agent->member.self = (struct tb_proc){agent->setup.job, TB_PROC_AGENT | agent->setup.host};
    agent->member.host = agent->setup.host;
    if (rc == TB_OK && agent->setup.host_count > 1)
        rc = tb_host_network_listen(&agent->network, &agent->setup);
    if (rc == TB_OK)
        rc = tb_local_ranks_listen(&agent->local);
    if (rc != TB_OK) {
        trouble(agent, 1, "%s", tb_error_story());
        return;
    }
    /* A child of the launcher sees the end of its stream; but the launcher counts on hearing from it too. */
    bool local = (agent->setup.flags & TB_SETUP_LOCAL) != 0;
    if ((!local || agent->setup.host_count > 1) && tb_param.heartbeat > 0)
        tb_uplink_start_heartbeat(&agent->uplink, !local);
    agent->phase = TB_AGENT_READY;
    tb_local_ranks_tell_ready(&agent->local, &agent->setup, &agent->member.addresses);
}

static struct tb_rank_start start_of(const struct tb_agent *agent)
{
    return (struct tb_rank_start){.setup = &agent->setup,
                                  .book = &agent->book,
                                  .host = agent->host,
                                  .mask = &agent->process.mask,
                                  .descriptors = &agent->process.descriptors,
                                  .file_size = &agent->process.file_size};
}

/* The word to start the ranks. */
static void take_start(struct tb_agent *agent, struct tb_reader *r)
{
    struct tb_start_failure failure;
    const struct tb_rank_start start = start_of(agent);
    if (agent->phase != TB_AGENT_TOLD)
        return;
    agent->phase = TB_AGENT_RUNNING;
    if (tb_local_ranks_start(&agent->local, &start, &failure) != TB_OK)
        trouble(agent, failure.exit_code, "%s", failure.text);
    else
        check_done(agent); /* without ranks there is nothing to wait for */
}

static void take_book(struct tb_agent *agent, struct tb_reader *r)
{
    if (agent->phase != TB_AGENT_READY)
        return;
    int rc = tb_address_book_decode(&agent->book, r);
    if (rc == TB_OK && (agent->book.job != agent->setup.job || agent->setup.host >= agent->book.host_count))
        rc = tb_error(TB_ERR_PROTOCOL, "the address book is of another job");
    if (rc != TB_OK) {
        trouble(agent, 1, "%s", tb_error_story());
        return;
    }
    tb_reach_probe_close(&agent->network.reach_probe);
    agent->host = agent->member.name = agent->book.hosts[agent->setup.host].name;
    char who[300];
    snprintf(who, sizeof who, "agent %s", agent->host);
    tb_log_identify(who);
    agent->phase = TB_AGENT_TOLD;
    agent->member.running = true;
    if (tb_guardian_missing(agent->guardian, agent->host, who, sizeof who))
        note(agent, who);
    if (tb_local_ranks_make(&agent->local, &agent->setup, &agent->book, &agent->routes) != TB_OK) {
        trouble(agent, 1, "host %s: %s", agent->host, tb_error_story());
        return;
    }
    tb_early_frames_take(&agent->early, uplink_frame, agent);
    if (!(agent->setup.flags & TB_SETUP_GRID))
        take_start(agent, NULL);
}

/* Before the address book: how things begin. Later: a gateway is gone, or has come back. */
static void take_routes(struct tb_agent *agent, struct tb_reader *r)
{
    struct tb_host_routes routes = {0};
    if (agent->phase < TB_AGENT_READY || agent->phase > TB_AGENT_RUNNING)
        return;
    int rc = tb_host_routes_decode(&routes, r, agent->setup.host_count);
    if (rc == TB_OK && agent->member.running)
        rc = tb_host_worlds_reroute(&agent->worlds, &routes);
    if (rc != TB_OK) {
        trouble(agent, 1, "host %s: %s", agent->host, tb_error_story());
        tb_host_routes_close(&routes);
        return;
    }
    tb_host_routes_close(&agent->routes);
    agent->routes = routes;
    if (agent->member.running)
        tb_host_network_reroute(&agent->network);
}

static void take_costs(struct tb_agent *agent, struct tb_reader *r)
{
    if (agent->phase >= TB_AGENT_READY && agent->phase <= TB_AGENT_RUNNING &&
        tb_local_ranks_take_costs(&agent->local, r, agent->setup.host_count) != TB_OK)
        trouble(agent, 1, "host %s: %s", agent->host, tb_error_story());
}

static void take_plan(struct tb_agent *agent, struct tb_reader *r)
{
    if (agent->phase == TB_AGENT_READY && tb_local_ranks_take_plan(&agent->local, r) != TB_OK)
        trouble(agent, 1, "host %s: %s", agent->host, tb_error_story());
}

/* Others will be started. */
static void take_world(struct tb_agent *agent, struct tb_reader *r)
{
    if (!agent->member.running)
        return;
    if (tb_host_worlds_expect(&agent->worlds, r, &agent->book, agent->setup.host) != TB_OK)
        trouble(agent, 1, "host %s: %s", agent->host, tb_error_story());
    if (agent->idle_told && (agent->setup.flags & TB_SETUP_SPARE) && !tb_host_worlds_all_ended(&agent->worlds))
        agent->idle_told = false;
}

static void take_world_start(struct tb_agent *agent, struct tb_reader *r)
{
    const struct tb_rank_start start = start_of(agent);
    if (agent->phase == TB_AGENT_RUNNING)
        tb_host_worlds_start(&agent->worlds, r, &start);
}

/* ---- what else the launcher says --------------------------------------------------------------------------------- */

static void take_input(struct tb_agent *agent, struct tb_reader *r)
{
    size_t length = 0;
    const void *bytes = tb_get_bytes(r, &length);
    if (r->error == TB_OK && tb_rank_input_add(&agent->local.input, bytes, length) != TB_OK)
        trouble(agent, 1, "host %s: %s", agent->host, tb_error_story());
}

static void take_window(struct tb_agent *agent, struct tb_reader *r)
{
    tb_host_worlds_allow(&agent->worlds, tb_get_u32(r));
}

static void take_signal(struct tb_agent *agent, struct tb_reader *r)
{
    int signal = (int)tb_get_u32(r);
    if (signal == SIGTSTP || signal == SIGCONT)
        tb_uplink_suspend(&agent->uplink, signal == SIGTSTP);
    if (signal > 0 && signal < NSIG)
        tb_host_worlds_signal(&agent->worlds, signal == SIGTSTP ? SIGSTOP : signal);
}

static void take_ask(struct tb_agent *agent, struct tb_reader *r)
{
    if (agent->phase == TB_AGENT_RUNNING)
        tb_host_worlds_ask(&agent->worlds, tb_get_u32(r));
}

static void take_stop(struct tb_agent *agent, struct tb_reader *r)
{
    bool now = tb_get_u8(r) != 0;
    if (now && agent->phase < TB_AGENT_KILLING)
        tb_host_worlds_kill(&agent->worlds); /* core files do not matter any more */
    stop(agent, now);
}

static void take_stand_ins(struct tb_agent *agent, struct tb_reader *r)
{
    uint32_t count = tb_get_u32(r), hosts[TB_ATTACH_STAND_INS], known = 0;
    if (r->error != TB_OK || count > TB_ATTACH_STAND_INS || !agent->member.running)
        return;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t host = tb_get_u32(r);
        if (r->error == TB_OK && host < agent->book.host_count && host != agent->setup.host)
            hosts[known++] = host;
    }
    bool straight = tb_get_u8(r) != 0;
    if (r->error == TB_OK)
        tb_uplink_set_stand_ins(&agent->uplink, &agent->setup.key, agent->member.self, &agent->book, hosts, known,
                                straight);
    if (agent->phase == TB_AGENT_TOLD)
        tb_uplink_send(&agent->uplink, TB_CONTROL_TOLD);
}

static void take_border(struct tb_agent *agent, struct tb_reader *r)
{
    if (agent->member.running)
        tb_border_take(&agent->border, r);
}

static void take_call(struct tb_agent *agent, struct tb_reader *r)
{
    tb_host_network_called(&agent->network, r);
}

static void take_probe(struct tb_agent *agent, struct tb_reader *r)
{
    if (agent->phase == TB_AGENT_READY)
        tb_reach_probe_begin(&agent->network.reach_probe, r);
}

/* What an agent does when the launcher speaks. A kind that is not here is one of a later version, and nothing happens.
 */
static void uplink_frame(void *context, struct tb_control_frame *frame)
{
    static const struct {
        enum tb_control kind;
        void (*take)(struct tb_agent *agent, struct tb_reader *r);
    } table[] = {{TB_CONTROL_WINDOW, take_window},     {TB_CONTROL_INPUT, take_input},
                 {TB_CONTROL_CALL, take_call},         {TB_CONTROL_SETUP, take_setup},
                 {TB_CONTROL_PROBE, take_probe},       {TB_CONTROL_ROUTES, take_routes},
                 {TB_CONTROL_COSTS, take_costs},       {TB_CONTROL_PLAN, take_plan},
                 {TB_CONTROL_ADDRESS_BOOK, take_book}, {TB_CONTROL_STAND_INS, take_stand_ins},
                 {TB_CONTROL_START, take_start},       {TB_CONTROL_SIGNAL, take_signal},
                 {TB_CONTROL_STOP, take_stop},         {TB_CONTROL_ASK, take_ask},
                 {TB_CONTROL_WORLD, take_world},       {TB_CONTROL_WORLD_START, take_world_start},
                 {TB_CONTROL_BORDER, take_border}};
    struct tb_agent *agent = context;
    if (agent->phase == TB_AGENT_READY && tb_early_frames_concern(frame->kind)) {
        if (tb_early_frames_keep(&agent->early, frame) != TB_OK)
            trouble(agent, 1, "host %s: %s", agent->host, tb_error_story());
        return;
    }
    if (tb_tunnels_take(&agent->tunnels, frame) || tb_host_worlds_take(&agent->worlds, frame))
        return;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (table[i].kind == frame->kind) {
            table[i].take(agent, &frame->fields);
            return;
        }
    if (agent->phase >= TB_AGENT_READY && tb_local_ranks_take_group(&agent->local, frame) != TB_OK)
        trouble(agent, 1, "host %s: %s", agent->host, tb_error_story());
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

static void signals_ready(struct tb_watch *watch, uint32_t events)
{
    struct tb_agent *agent = TB_CONTAINER(watch, struct tb_agent, signals);
    struct signalfd_siginfo info;
    while (read(watch->descriptor, &info, sizeof info) == (ssize_t)sizeof info)
        if (info.ssi_signo != SIGCHLD && agent->phase < TB_AGENT_STOPPING)
            trouble(agent, 128 + (int)info.ssi_signo, "the agent on %s%s was ended by signal %u (%s)",
                    agent->phase == TB_AGENT_RUNNING ? "host " : "", agent->host, info.ssi_signo,
                    strsignal((int)info.ssi_signo));
    collect_children(agent);
    check_done(agent);
}

static void guardian_lost(void *context)
{
    struct tb_agent *agent = context;
    if (agent->phase < TB_AGENT_STOPPING)
        trouble(agent, 128 + SIGKILL, "the guardian of the agent on %s%s was killed",
                agent->phase == TB_AGENT_RUNNING ? "host " : "", agent->host);
}

/* Before each sleep: everything gathered goes out with as few system calls as possible. */
static void settle(struct tb_loop *loop)
{
    struct tb_agent *agent = TB_CONTAINER(loop, struct tb_agent, loop);
    tb_tunnels_settle(&agent->tunnels);
    tb_border_settle(&agent->border);
    tb_host_worlds_settle(&agent->worlds);
    if (tb_uplink_settle(&agent->uplink) == TB_OK && agent->gone_told)
        loop->stop = true;
}

static void open_parts(struct tb_agent *agent)
{
    const struct tb_local_ranks_events local = {.context = agent,
                                                .connect = rank_connects,
                                                .waiting = rank_waits,
                                                .ended = rank_ended,
                                                .output_heard = output_heard,
                                                .output_ended = check_done,
                                                .note = note};
    const struct tb_tunnels_events tunnels = {.context = agent, .ended = check_done};
    const struct tb_host_network_events network = {.context = agent,
                                                   .has_rank = has_rank,
                                                   .is_gone = rank_is_gone,
                                                   .connection = take_connection,
                                                   .control_stream = take_control_stream,
                                                   .call = tell_call,
                                                   .probed = tell_probed,
                                                   .link = tell_link,
                                                   .note = note};
    tb_local_ranks_open(&agent->local, &agent->loop, &agent->uplink, &local);
    tb_host_worlds_open(&agent->worlds, &agent->loop, &agent->uplink, &agent->local, &local);
    tb_tunnels_open(&agent->tunnels, &agent->loop, &agent->uplink, &agent->process.mask, &tunnels);
    agent->member = (struct tb_member){.loop = &agent->loop,
                                       .key = &agent->setup.key,
                                       .name = agent->host,
                                       .book = &agent->book,
                                       .routes = &agent->routes};
    tb_host_network_open(&agent->network, &agent->member, &network);
    tb_border_open(&agent->border, &agent->member, &agent->uplink,
                   &(struct tb_border_events){.context = agent, .connect = border_connects, .kept = border_kept});
}

static int open_all(struct tb_agent *agent)
{
    const struct tb_uplink_events events = {.context = agent, .frame = uplink_frame, .lost = uplink_lost};
    struct tb_process *process = &agent->process;
    agent->host = "this host";
    tb_timer_init(&agent->grace, grace_over);
    tb_timer_init(&agent->linger, linger_over);
    open_parts(agent);
    int rc = tb_process_prepare(process);
    if (rc == TB_OK)
        rc = tb_loop_open(&agent->loop, &tb_clock_real);
    agent->loop.settle = settle;
    if (rc == TB_OK)
        rc = tb_loop_watch(&agent->loop, &agent->signals, process->signals, EPOLLIN, signals_ready);
    if (rc == TB_OK)
        rc = tb_guardian_watch(agent->guardian, &agent->loop, guardian_lost, agent);
    if (rc == TB_OK)
        rc = tb_transports_load_params();
    return rc == TB_OK ? tb_uplink_open(&agent->uplink, &agent->loop, process->in, process->out, &events) : rc;
}

int tb_agent_run(struct tb_guardian *guardian)
{
    struct tb_agent *agent = calloc(1, sizeof *agent);
    if (agent == NULL) {
        fputs("tombolo agent: no memory\n", stderr);
        return 1;
    }
    agent->guardian = guardian;
    int rc = open_all(agent);
    if (rc == TB_OK)
        rc = tb_loop_run(&agent->loop);
    if (rc != TB_OK) {
        fprintf(stderr, "tombolo agent: %s\n", tb_error_story());
        agent->exit_code = 1;
    }
    if (!agent->orderly)
        tb_host_worlds_kill(&agent->worlds);
    tb_guardian_leave(agent->guardian, agent->orderly);
    tb_border_close(&agent->border);
    tb_host_network_close(&agent->network);
    /* Everything else goes with the process. */
    return agent->exit_code;
}
