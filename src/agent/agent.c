/* The life of an agent: what it hears from the launcher, and how it ends. */
#include "agent/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define LINGER_NS       250000000u  /* for output that is held by somebody after all ranks have ended, */
#define LINGER_GROUP_NS 2000000000u /* or by a process of a rank's own group; both since the last byte */
#define LAST_NS         1000000000u /* for processes to be gone after SIGKILL */
#define HEARD_FRAMES    16u         /* after so many the launcher is told that they have come */

/* ---- telling the launcher
 * ------------------------------------------------------------------------------------------------ */

static void tell_text(struct tb_agent *agent, enum tb_control kind, int code, const char *text)
{
    struct tb_writer *w = tb_control_stream_begin(&agent->pipe, kind);
    if (kind == TB_CONTROL_TROUBLE)
        tb_put_u32(w, (uint32_t)code);
    tb_put_text(w, text);
    tb_control_stream_end(&agent->pipe);
}

void tb_agent_note(struct tb_agent *agent, const char *format, ...)
{
    char text[1024];
    va_list rest;
    va_start(rest, format);
    vsnprintf(text, sizeof text, format, rest);
    va_end(rest);
    tell_text(agent, TB_CONTROL_NOTE, 0, text);
}

/* The job cannot go on. What runs here is ended; the launcher ends the rest. */
void tb_agent_trouble(struct tb_agent *agent, int exit_code, const char *format, ...)
{
    char text[2048];
    va_list rest;
    va_start(rest, format);
    vsnprintf(text, sizeof text, format, rest);
    va_end(rest);
    tell_text(agent, TB_CONTROL_TROUBLE, exit_code, text);
    tb_agent_stop(agent, false);
}

/* ---- ending
 * -------------------------------------------------------------------------------------------------------------- */

static void finish(struct tb_agent *agent)
{
    if (agent->gone_told)
        return;
    tb_output_drain(agent);
    tb_control_stream_send(&agent->pipe, TB_CONTROL_GONE);
    agent->gone_told = true;
    agent->phase = TB_AGENT_DONE;
    agent->member.running = false;
}

/* Nothing more will come from the ranks. In a grid others may still need us to pass something on. */
static void rest(struct tb_agent *agent)
{
    if (!(agent->setup.flags & TB_SETUP_GRID)) {
        finish(agent);
        return;
    }
    tb_output_drain(agent);
    tb_control_stream_send(&agent->pipe, TB_CONTROL_IDLE);
    agent->idle_told = true;
}

void tb_agent_check_done(struct tb_agent *agent)
{
    if (agent->gone_told || agent->phase < TB_AGENT_RUNNING)
        return;
    if (agent->phase >= TB_AGENT_STOPPING) {
        /* The agents behind us say their last words through us. */
        if ((agent->idle_told || !tb_ranks_alive(agent)) && tb_list_empty(&agent->tunnels))
            finish(agent);
        return;
    }
    if (agent->ended_count < agent->rank_count || agent->idle_told)
        return;
    if (!tb_output_open_any(agent))
        rest(agent);
    else if (!tb_timer_is_set(&agent->linger))
        tb_agent_linger(agent);
}

void tb_agent_linger(struct tb_agent *agent)
{
    tb_timer_set(&agent->loop, &agent->linger, tb_ranks_alive(agent) ? LINGER_GROUP_NS : LINGER_NS);
}

static void linger_over(struct tb_timer *timer)
{
    struct tb_agent *agent = TB_CONTAINER(timer, struct tb_agent, linger);
    if (agent->window > 0)
        rest(agent);
    else
        tb_agent_linger(agent); /* not they are silent, but the launcher takes nothing */
}

static void grace_over(struct tb_timer *timer)
{
    struct tb_agent *agent = TB_CONTAINER(timer, struct tb_agent, grace);
    if (agent->phase == TB_AGENT_STOPPING)
        tb_agent_stop(agent, true);
    else
        finish(agent); /* a process that even SIGKILL does not end; it dies with us or never */
}

void tb_agent_stop(struct tb_agent *agent, bool now)
{
    if (agent->phase >= (now ? TB_AGENT_KILLING : TB_AGENT_STOPPING))
        return;
    agent->phase = now ? TB_AGENT_KILLING : TB_AGENT_STOPPING;
    agent->member.running = false;
    tb_timer_clear(&agent->linger);
    if (!agent->idle_told) { /* what ranks that have ended in good order left running goes on, as without us */
        tb_ranks_signal(agent, now ? SIGKILL : SIGTERM);
        tb_ranks_signal(agent, SIGCONT); /* a stopped process would not notice */
    }
    tb_timer_set(&agent->loop, &agent->grace, now ? LAST_NS : tb_param.kill_grace);
    tb_output_resume(agent);
    tb_ranks_reap(agent);
    tb_agent_check_done(agent);
}

void tb_agent_die(struct tb_agent *agent, const char *why)
{
    tb_log(TB_LOG_INFO, "agent", "ends: %s", why);
    tb_ranks_signal(agent, SIGKILL);
    agent->exit_code = agent->gone_told ? 0 : 1;
    agent->loop.stop = true;
}

/* ---- starting
 * ------------------------------------------------------------------------------------------------------------ */

/* "name=value\n" lines, for rows that this host's own environment does not set. */
static int take_own_parameters(struct tb_agent *agent, char *lines)
{
    char *rest = NULL;
    for (char *line = strtok_r(lines, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
        char *equals = strchr(line, '=');
        if (equals == NULL)
            continue;
        *equals = 0;
        const struct tb_param_row *row = tb_param_find(line);
        if (row == NULL || tb_param_origin(row) != TB_PARAM_DEFAULT)
            continue;
        int rc = tb_param_set(line, equals + 1, TB_PARAM_LAUNCHER);
        if (rc != TB_OK)
            return rc;
        /* The ranks read what belongs to a host from their environment; agents that we start know nothing of it. */
        if (agent->given_count == TB_AGENT_GIVEN_LIMIT ||
            asprintf(&agent->given[agent->given_count], "TOMBOLO_%s=%s", row->name, equals + 1) < 0)
            return tb_error(TB_ERR_MEMORY, "no memory for parameters");
        for (char *c = agent->given[agent->given_count++]; *c != '='; c++)
            *c = (char)(*c >= 'a' && *c <= 'z' ? *c - 32 : *c);
    }
    return TB_OK;
}

/* The stream to the launcher has ended. */
static void lose_launcher(struct tb_agent *agent, const char *why)
{
    if (!tb_attach_begin(agent)) {
        tb_agent_die(agent, why);
        return;
    }
    tb_loop_unwatch(&agent->loop, &agent->pipe_in);
    tb_loop_unwatch(&agent->loop, &agent->pipe_out);
}

static void set_beat(struct tb_agent *agent)
{
    agent->beat_due = tb_clock_now_real() + tb_param.heartbeat / 3;
    tb_timer_set(&agent->loop, &agent->beat, tb_param.heartbeat / 3);
}

static void tell_ready(struct tb_agent *agent)
{
    char name[256] = "";
    const char *site = getenv("TOMBOLO_SITE"), *cluster = getenv("TOMBOLO_CLUSTER");
    gethostname(name, sizeof name - 1);
    struct tb_writer *w = tb_control_stream_begin(&agent->pipe, TB_CONTROL_READY);
    tb_put_text(w, TB_VERSION);
    tb_put_text(w, name);
    tb_put_text(w, site != NULL ? site : "");
    tb_put_text(w, cluster != NULL ? cluster : "");
    tb_put_u32(w, (uint32_t)sysconf(_SC_NPROCESSORS_ONLN));
    tb_put_u32(w, agent->member.addresses.count);
    for (uint32_t i = 0; i < agent->member.addresses.count; i++)
        tb_address_put(w, &agent->member.addresses.at[i]);
    tb_control_stream_end(&agent->pipe);
}

static void take_setup(struct tb_agent *agent, struct tb_reader *r)
{
    if (agent->phase != TB_AGENT_NEW)
        return;
    int rc = tb_setup_decode(&agent->setup, r);
    if (rc == TB_OK && strcmp(agent->setup.version, TB_VERSION) != 0)
        rc = tb_error(TB_ERR_PROTOCOL,
                      "mixed versions: mpiexec is Tombolo %s, the agent is %s; install the same version "
                      "on all hosts",
                      agent->setup.version, TB_VERSION);
    if (rc == TB_OK)
        rc = tb_param_import(agent->setup.parameters, strlen(agent->setup.parameters));
    if (rc == TB_OK) {
        agent->parameters = strdup(agent->setup.parameters);
        rc = agent->parameters != NULL ? take_own_parameters(agent, agent->setup.own_parameters)
                                       : tb_error(TB_ERR_MEMORY, "no memory for parameters");
    }
    agent->window = agent->setup.window;
    if (rc == TB_OK && (agent->setup.flags & TB_SETUP_GRID))
        tb_control_stream_keep(&agent->pipe);
    agent->member.self = tb_agent_proc(agent);
    agent->member.host = agent->setup.host;
    if (rc == TB_OK && agent->setup.host_count > 1)
        rc = tb_network_listen(&agent->network);
    if (rc == TB_OK)
        rc = tb_rank_port_open(agent);
    if (rc != TB_OK) {
        tb_agent_trouble(agent, 1, "%s", tb_error_story());
        return;
    }
    if (!(agent->setup.flags & TB_SETUP_LOCAL) && tb_param.heartbeat > 0)
        set_beat(agent);
    agent->phase = TB_AGENT_READY;
    tell_ready(agent);
}

static void take_book(struct tb_agent *agent, struct tb_reader *r)
{
    if (agent->phase != TB_AGENT_READY)
        return;
    int rc = tb_address_book_decode(&agent->book, r);
    if (rc == TB_OK && (agent->book.job != agent->setup.job || agent->setup.host >= agent->book.host_count))
        rc = tb_error(TB_ERR_PROTOCOL, "the address book is of another job");
    if (rc != TB_OK) {
        tb_agent_trouble(agent, 1, "%s", tb_error_story());
        return;
    }
    tb_reach_probe_close(&agent->network.reach_probe);
    agent->host = agent->member.name = agent->book.hosts[agent->setup.host].name;
    char who[300];
    snprintf(who, sizeof who, "agent %s", agent->host);
    tb_log_identify(who);
    agent->phase = TB_AGENT_RUNNING;
    agent->member.running = true;
    rc = tb_ranks_start(agent);
    if (rc != TB_OK) {
        /* Without a trouble told already, the story is the trouble. */
        if (agent->phase == TB_AGENT_RUNNING)
            tb_agent_trouble(agent, 1, "host %s: %s", agent->host, tb_error_story());
        return;
    }
    struct tb_writer *w = tb_control_stream_begin(&agent->pipe, TB_CONTROL_STARTED);
    tb_put_u32(w, agent->rank_count);
    for (uint32_t i = 0; i < agent->rank_count; i++)
        tb_put_u32(w, (uint32_t)agent->ranks[i].pid);
    tb_control_stream_end(&agent->pipe);
    tb_agent_check_done(agent); /* without ranks there is nothing to wait for */
}

/* Before the address book: how things begin. Later: a gateway is gone, or has come back. */
static void take_routes(struct tb_agent *agent, struct tb_reader *r)
{
    struct tb_host_routes routes;
    if (agent->phase < TB_AGENT_READY || agent->phase > TB_AGENT_RUNNING)
        return;
    int descriptor = -1, rc = tb_host_routes_decode(&routes, r, agent->setup.host_count);
    if (rc == TB_OK && agent->phase == TB_AGENT_RUNNING)
        rc = tb_host_routes_share(&routes, &descriptor);
    if (rc != TB_OK) {
        tb_agent_trouble(agent, 1, "host %s: %s", agent->host, tb_error_story());
        return;
    }
    tb_host_routes_close(&agent->routes);
    agent->routes = routes;
    if (descriptor < 0)
        return;
    close(agent->routes_descriptor);
    agent->routes_descriptor = descriptor;
    tb_rank_port_routes(agent);
    tb_network_reroute(&agent->network);
}

/* ---- hearing
 * ------------------------------------------------------------------------------------------------------------- */

static void take_signal(struct tb_agent *agent, int signal)
{
    if (signal == SIGTSTP) {
        agent->suspended = true;
        tb_ranks_signal(agent, SIGSTOP);
    } else if (signal == SIGCONT) {
        agent->suspended = false;
        tb_ranks_signal(agent, SIGCONT);
    } else if (signal > 0 && signal < NSIG) {
        tb_ranks_signal(agent, signal);
    }
}

static void take_frame(struct tb_agent *agent, struct tb_control_frame *frame)
{
    struct tb_reader *r = &frame->fields;
    size_t length = 0;
    switch (frame->kind) {
    case TB_CONTROL_SETUP:
        take_setup(agent, r);
        break;
    case TB_CONTROL_ADDRESS_BOOK:
        take_book(agent, r);
        break;
    case TB_CONTROL_ROUTES:
        take_routes(agent, r);
        break;
    case TB_CONTROL_INPUT: {
        const void *bytes = tb_get_bytes(r, &length);
        if (r->error == TB_OK && tb_input_add(agent, bytes, length) != TB_OK)
            tb_agent_trouble(agent, 1, "host %s: %s", agent->host, tb_error_story());
        break;
    }
    case TB_CONTROL_WINDOW:
        agent->window += tb_get_u32(r);
        tb_output_resume(agent);
        break;
    case TB_CONTROL_SIGNAL:
        take_signal(agent, (int)tb_get_u32(r));
        break;
    case TB_CONTROL_STOP:
        tb_agent_stop(agent, tb_get_u8(r) != 0);
        break;
    case TB_CONTROL_CALL:
        tb_network_called(&agent->network, r);
        break;
    case TB_CONTROL_HEARD:
        tb_control_stream_heard(&agent->pipe, tb_get_u32(r));
        break;
    case TB_CONTROL_ANCHORS:
        tb_attach_anchors(agent, r);
        break;
    case TB_CONTROL_PROBE:
        if (agent->phase == TB_AGENT_READY)
            tb_reach_probe_begin(&agent->network.reach_probe, r);
        break;
    case TB_CONTROL_ATTACH:
        tb_tunnel_answer(agent, r);
        break;
    case TB_CONTROL_SHELL:
        tb_tunnel_shell(agent, r);
        break;
    case TB_CONTROL_TUNNEL:
        tb_tunnel_bytes(agent, r);
        break;
    case TB_CONTROL_TUNNEL_END:
        tb_tunnel_end(agent, r);
        break;
    default:
        break;
    }
}

static void pipe_ready(struct tb_watch *watch, uint32_t events)
{
    struct tb_agent *agent = TB_CONTAINER(watch, struct tb_agent, pipe_in);
    struct tb_control_frame frame;
    int rc = tb_control_stream_fill(&agent->pipe);
    if (rc == TB_AGAIN)
        return;
    agent->heard = tb_clock_now_real();
    while (rc == TB_OK && (rc = tb_control_stream_next(&agent->pipe, &frame)) == TB_OK)
        take_frame(agent, &frame);
    if (rc == TB_ERR_PROTOCOL)
        fprintf(stderr, "tombolo agent %s: %s\n", TB_VERSION, tb_error_story());
    if (rc == TB_ERR_CLOSED)
        lose_launcher(agent, "the launcher is gone");
    else if (rc < 0)
        tb_agent_die(agent, tb_error_story());
}

void tb_agent_attached(struct tb_agent *agent)
{
    agent->heard = tb_clock_now_real();
    if (tb_loop_watch(&agent->loop, &agent->pipe_in, agent->pipe.in, EPOLLIN, pipe_ready) != TB_OK)
        tb_agent_die(agent, tb_error_story());
}

static void beat(struct tb_timer *timer)
{
    struct tb_agent *agent = TB_CONTAINER(timer, struct tb_agent, beat);
    uint64_t now = tb_clock_now_real();
    /* If we are late ourselves, what the launcher has said meanwhile is still to be read; the next beat judges. */
    bool late = now > agent->beat_due + tb_param.heartbeat / 3;
    if (!agent->suspended && !late && !tb_attach_lost(agent) && now - agent->heard > tb_param.heartbeat) {
        lose_launcher(agent, "the launcher is silent");
        if (agent->loop.stop)
            return;
    }
    tb_control_stream_tell_heard(&agent->pipe, 1);
    /* One that has not left yet says as much as another. */
    if (!tb_attach_lost(agent) && tb_control_stream_queued(&agent->pipe) == 0)
        tb_control_stream_send(&agent->pipe, TB_CONTROL_PING);
    set_beat(agent);
}

static void signals_ready(struct tb_watch *watch, uint32_t events)
{
    struct tb_agent *agent = TB_CONTAINER(watch, struct tb_agent, signals);
    struct signalfd_siginfo info;
    while (read(watch->descriptor, &info, sizeof info) == (ssize_t)sizeof info)
        if (info.ssi_signo != SIGCHLD && agent->phase < TB_AGENT_STOPPING)
            tb_agent_trouble(agent, 128 + (int)info.ssi_signo, "the agent on host %s was ended by signal %u (%s)",
                             agent->host, info.ssi_signo, strsignal((int)info.ssi_signo));
    tb_ranks_reap(agent);
    tb_agent_check_done(agent);
}

static void out_ready(struct tb_watch *watch, uint32_t events)
{
    /* Only wakes the loop, which flushes before it sleeps. */
}

/* Before each sleep: everything gathered goes out with as few system calls as possible. */
static void settle(struct tb_loop *loop)
{
    struct tb_agent *agent = TB_CONTAINER(loop, struct tb_agent, loop);
    tb_tunnels_settle(agent);
    if (tb_attach_lost(agent))
        return;
    tb_control_stream_tell_heard(&agent->pipe, HEARD_FRAMES);
    int rc = tb_control_stream_flush(&agent->pipe);
    if (rc < 0) {
        lose_launcher(agent, "the launcher does not listen any more");
    } else if (rc == TB_AGAIN && agent->pipe_out.descriptor < 0) {
        if (tb_loop_watch(loop, &agent->pipe_out, agent->pipe.out, EPOLLOUT, out_ready) != TB_OK)
            tb_agent_die(agent, tb_error_story());
    } else if (rc == TB_OK) {
        tb_loop_unwatch(loop, &agent->pipe_out);
    }
    if (rc == TB_OK && agent->gone_told)
        loop->stop = true;
}

/* ---- the network
 * ---------------------------------------------------------------------------------------------------------- */

static bool has_rank(void *context, uint32_t number)
{
    const struct tb_rank *rank = tb_ranks_find(context, number);
    return rank != NULL && !rank->ended;
}

static bool is_gone(void *context, uint32_t number)
{
    const struct tb_rank *rank = tb_ranks_find(context, number);
    return rank != NULL && rank->joined > 0 && kill(rank->joined, 0) < 0 && errno == ESRCH;
}

static void take_connection(void *context, uint32_t number, struct tb_proc proc, enum tb_stream stream, int error,
                            int descriptor)
{
    tb_rank_port_connection(tb_ranks_find(context, number), proc, stream, error, descriptor);
}

static void take_control_stream(void *context, struct tb_proc from, int socket)
{
    tb_tunnel_adopt(context, from, socket);
}

static void tell_call(void *context, uint32_t host, struct tb_proc there, struct tb_proc here, uint32_t stream)
{
    struct tb_agent *agent = context;
    struct tb_writer *w = tb_control_stream_begin(&agent->pipe, TB_CONTROL_CALL);
    tb_put_u32(w, host);
    tb_put_u32(w, there.job);
    tb_put_u32(w, there.index);
    tb_put_u32(w, here.job);
    tb_put_u32(w, here.index);
    tb_put_u32(w, stream);
    tb_control_stream_end(&agent->pipe);
}

static void tell_probed(void *context, const struct tb_reach_result *results, uint32_t count)
{
    struct tb_agent *agent = context;
    struct tb_writer *w = tb_control_stream_begin(&agent->pipe, TB_CONTROL_PROBED);
    tb_put_u32(w, count);
    for (uint32_t i = 0; i < count; i++) {
        tb_put_u32(w, results[i].host);
        tb_put_u8(w, results[i].reached);
        tb_put_text(w, results[i].story);
    }
    tb_control_stream_end(&agent->pipe);
}

static void take_note(void *context, const char *text)
{
    tb_agent_note(context, "%s", text);
}

static void take_trouble(void *context, const char *text)
{
    tb_agent_trouble(context, 1, "%s", text);
}

static void open_network(struct tb_agent *agent)
{
    static const struct tb_network_calls calls = {.has_rank = has_rank,
                                                  .is_gone = is_gone,
                                                  .connection = take_connection,
                                                  .control_stream = take_control_stream,
                                                  .call = tell_call,
                                                  .probed = tell_probed,
                                                  .note = take_note,
                                                  .trouble = take_trouble};
    struct tb_network_calls mine = calls;
    mine.context = agent;
    agent->member = (struct tb_member){.loop = &agent->loop,
                                       .key = &agent->setup.key,
                                       .name = agent->host,
                                       .book = &agent->book,
                                       .routes = &agent->routes};
    tb_network_open(&agent->network, &agent->member, &mine);
}

/* ---- the whole
 * ------------------------------------------------------------------------------------------------------------ */

/* Standard input and output become the control stream; what takes their numbers can be written to without harm. */
static int take_streams(struct tb_agent *agent)
{
    int in = fcntl(0, F_DUPFD_CLOEXEC, 3), out = fcntl(1, F_DUPFD_CLOEXEC, 3);
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (in < 0 || out < 0 || nothing < 0)
        return tb_error_errno("an agent needs its launcher at standard input and output");
    dup2(nothing, 0);
    dup2(nothing, 1);
    if (nothing > 2)
        close(nothing);
    fcntl(in, F_SETFL, fcntl(in, F_GETFL) | O_NONBLOCK);
    fcntl(out, F_SETFL, fcntl(out, F_GETFL) | O_NONBLOCK);
    tb_control_stream_open(&agent->pipe, in, out);
    return TB_OK;
}

static int say_preamble(struct tb_agent *agent)
{
    char text[128];
    int n = snprintf(text, sizeof text, TB_AGENT_PREAMBLE "%s wire %d\n", TB_VERSION, TB_WIRE_VERSION);
    if (write(agent->pipe.out, text, (size_t)n) != n)
        return tb_error_errno("cannot speak to the launcher");
    return TB_OK;
}

static int open_all(struct tb_agent *agent)
{
    agent->host = "this host";
    agent->segment = agent->book_descriptor = agent->routes_descriptor = -1;
    agent->input = (struct tb_input){.agent = agent, .descriptor = -1, .watch.descriptor = -1};
    agent->pipe_out.descriptor = agent->rank_port.descriptor = -1;
    tb_list_init(&agent->tunnels);
    tb_timer_init(&agent->beat, beat);
    tb_timer_init(&agent->grace, grace_over);
    tb_timer_init(&agent->linger, linger_over);
    tb_timer_init(&agent->sweep, tb_output_sweep);
    tb_timer_init(&agent->retry, NULL);
    /* What our launcher's command gave us for itself does not concern our ranks. */
    prctl(PR_SET_PDEATHSIG, 0);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGCHLD, SIG_DFL); /* ignored, it would take the exit codes away */
    getrlimit(RLIMIT_NOFILE, &agent->descriptors);
    struct rlimit most = {agent->descriptors.rlim_max, agent->descriptors.rlim_max};
    setrlimit(RLIMIT_NOFILE, &most);
    open_network(agent);
    int rc = take_streams(agent);
    if (rc == TB_OK)
        rc = tb_loop_open(&agent->loop, &tb_clock_real);
    agent->loop.settle = settle;
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < 5; i++)
        sigaddset(&set, (int[]){SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT}[i]);
    int signals = -1;
    if (rc == TB_OK)
        rc = tb_signals_open(&set, &agent->mask, &signals);
    if (rc == TB_OK)
        rc = tb_loop_watch(&agent->loop, &agent->signals, signals, EPOLLIN, signals_ready);
    if (rc == TB_OK)
        rc = tb_loop_watch(&agent->loop, &agent->pipe_in, agent->pipe.in, EPOLLIN, pipe_ready);
    if (rc == TB_OK)
        rc = tb_param_load();
    agent->heard = tb_clock_now_real();
    return rc == TB_OK ? say_preamble(agent) : rc;
}

int tb_agent_run(void)
{
    struct tb_agent *agent = calloc(1, sizeof *agent);
    if (agent == NULL)
        return 1;
    int rc = open_all(agent);
    if (rc == TB_OK)
        rc = tb_loop_run(&agent->loop);
    if (rc != TB_OK) {
        fprintf(stderr, "tombolo agent: %s\n", tb_error_story());
        tb_ranks_signal(agent, SIGKILL);
        return 1;
    }
    tb_network_close(&agent->network);
    /* Everything else goes with the process. */
    return agent->exit_code;
}
