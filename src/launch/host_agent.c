#include "launch/host_agent.h"

#include "launch/host_tunnel.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define TAIL_BYTES       2048u       /* of a shell's standard error, for the message when it fails */
#define HEARD_FRAMES     16u         /* after so many an agent is told that they have come */
#define EXIT_PATIENCE_NS 1000000000u /* between the end of a stream and the end of its shell */
#define RETURN_NS        5000000000u /* for one that has come by another agent to come again when that stream ends */
#define WAKE_PATIENCE_NS 3000000000u /* that a guardian gets which was stopped */

static void patience_over(struct tb_timer *timer);

void tb_host_agent_open(struct tb_host_agent *agent, struct tb_loop *loop, uint32_t host,
                        const struct tb_host_agent_events *events, struct tb_host_agent_counts *counts)
{
    *agent = (struct tb_host_agent){.loop = loop,
                                    .events = events,
                                    .counts = counts,
                                    .host = host,
                                    .name = "",
                                    .cluster = "",
                                    .watch.descriptor = -1,
                                    .errors.descriptor = -1,
                                    .tls.watch.descriptor = -1};
    tb_timer_init(&agent->patience, patience_over);
    tb_control_stream_open(&agent->control, -1, -1);
}

void tb_host_agent_close(struct tb_host_agent *agent)
{
    free(agent->tail);
    agent->tail = NULL;
}

/* ---- hearing ----------------------------------------------------------------------------------------------------- */

void tb_host_agent_give_up(struct tb_host_agent *agent)
{
    const struct tb_host_agent *parent = agent->parent;
    bool silent = agent->phase == TB_HOST_AGENT_SILENT, started = agent->phase > TB_HOST_AGENT_WAITING;
    if (silent)
        agent->counts->silent--;
    agent->phase = TB_HOST_AGENT_GONE;
    if (parent != NULL && started && parent->phase >= TB_HOST_AGENT_SPOKEN && parent->phase < TB_HOST_AGENT_GONE)
        tb_host_tunnel_end(&agent->parent->control, agent->host, silent ? TB_TUNNEL_END_NOW : TB_TUNNEL_END_SOON);
    tb_tls_stream_close(&agent->tls);
    tb_loop_unwatch(agent->loop, &agent->watch);
    tb_control_stream_close(&agent->control);
    if (agent->pid > 0)
        tb_timer_set(agent->loop, &agent->patience, EXIT_PATIENCE_NS);
}

void tb_host_agent_kill(struct tb_host_agent *agent)
{
    if (agent->pid > 0)
        kill(-agent->pid, SIGKILL);
}

static void miss(struct tb_host_agent *agent, const char *story)
{
    agent->events->missed(agent->events->context, agent, story);
    tb_host_agent_give_up(agent);
}

static void forget_tail(struct tb_host_agent *agent)
{
    free(agent->tail);
    agent->tail = NULL;
    agent->tail_length = 0;
}

static void take_preamble(struct tb_host_agent *agent)
{
    char version[64], ours[64], text[1024];
    int rc = tb_control_stream_preamble(&agent->control, version, sizeof version);
    if (rc == TB_AGAIN)
        return;
    snprintf(ours, sizeof ours, "%s wire %d", TB_VERSION, TB_WIRE_VERSION);
    if (rc != TB_OK) {
        snprintf(text, sizeof text, "host %s: %s", agent->target.host, tb_error_story());
        miss(agent, text);
        return;
    }
    agent->phase = TB_HOST_AGENT_SPOKEN;
    agent->counts->silent--;
    forget_tail(agent);
    if (strcmp(version, ours) != 0) {
        snprintf(text, sizeof text,
                 "mixed versions: Tombolo here is %s, on host %s (%s) it is %s; install the same version on all "
                 "hosts, or name it with --tombolo PATH",
                 ours, agent->target.host, agent->target.program, version);
        miss(agent, text);
    }
}

/* What was received. */
static int understand(struct tb_host_agent *agent)
{
    uint64_t now = tb_loop_now(agent->loop);
    if (now - agent->heard > tb_param.heartbeat / 2)
        agent->resumed = now;
    agent->heard = now;
    agent->silence.heard = true;
    if (agent->phase == TB_HOST_AGENT_SILENT)
        take_preamble(agent);
    struct tb_control_frame frame;
    while (agent->phase > TB_HOST_AGENT_SILENT && agent->phase < TB_HOST_AGENT_GONE) {
        int rc = tb_control_stream_next(&agent->control, &frame);
        if (rc == TB_AGAIN)
            return TB_OK;
        if (rc != TB_OK)
            return rc;
        agent->returning = false;
        agent->events->frame(agent->events->context, agent, &frame);
    }
    return TB_OK;
}

/* TB_OK, TB_AGAIN: nothing more now; TB_ERR_CLOSED: the stream has ended; other errors: it makes no sense. */
static int hear(struct tb_host_agent *agent)
{
    int rc = tb_control_stream_fill(&agent->control);
    return rc == TB_OK ? understand(agent) : rc;
}

void tb_host_agent_complain_damaged(struct tb_host_agent *agent)
{
    agent->events->damaged(agent->events->context, agent);
    tb_host_agent_give_up(agent);
}

/* Bytes that have not come by a descriptor of the control stream. */
static void digest(struct tb_host_agent *agent, const void *bytes, size_t length)
{
    int rc = tb_control_stream_feed(&agent->control, bytes, length);
    if (rc == TB_OK)
        rc = understand(agent);
    if (rc < 0)
        tb_host_agent_complain_damaged(agent);
}

static void lose(struct tb_host_agent *agent, bool exited, int status)
{
    agent->events->lost(agent->events->context, agent, exited, status);
    if (agent->phase < TB_HOST_AGENT_GONE)
        tb_host_agent_give_up(agent);
}

static void stream_ready(struct tb_watch *watch, uint32_t events)
{
    struct tb_host_agent *agent = TB_CONTAINER(watch, struct tb_host_agent, watch);
    int rc = hear(agent), status;
    if (rc == TB_ERR_CLOSED) {
        /* Why it ended is known when the shell has ended too, which should be now. */
        tb_loop_unwatch(agent->loop, watch);
        tb_timer_set(agent->loop, &agent->patience, EXIT_PATIENCE_NS);
        if (agent->pid > 0 && waitpid(agent->pid, &status, WNOHANG) == agent->pid)
            tb_host_agent_collect(agent, status);
    } else if (rc < 0) {
        tb_host_agent_complain_damaged(agent);
    }
}

/* ---- what a shell says on standard error ------------------------------------------------------------------------- */

/* Keeps the last of it; once an agent speaks, it is passed on instead. */
void tb_host_agent_take_errors(struct tb_host_agent *agent, const char *bytes, size_t length)
{
    if (agent->phase >= TB_HOST_AGENT_SPOKEN) {
        agent->events->errors(agent->events->context, bytes, length);
        return;
    }
    if (agent->tail == NULL)
        agent->tail = calloc(1, TAIL_BYTES + 1);
    if (agent->tail == NULL)
        return;
    if (length > TAIL_BYTES) {
        bytes += length - TAIL_BYTES;
        length = TAIL_BYTES;
    }
    size_t keep = agent->tail_length + length > TAIL_BYTES ? TAIL_BYTES - length : agent->tail_length;
    memmove(agent->tail, agent->tail + agent->tail_length - keep, keep);
    memcpy(agent->tail + keep, bytes, length);
    agent->tail_length = keep + length;
    agent->tail[agent->tail_length] = 0;
}

static void close_errors(struct tb_host_agent *agent)
{
    int descriptor = agent->errors.descriptor;
    if (descriptor < 0)
        return;
    tb_loop_unwatch(agent->loop, &agent->errors);
    close(descriptor);
}

static void errors_ready(struct tb_watch *watch, uint32_t events)
{
    struct tb_host_agent *agent = TB_CONTAINER(watch, struct tb_host_agent, errors);
    char bytes[1024];
    ssize_t n = read(watch->descriptor, bytes, sizeof bytes);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0)
        close_errors(agent);
    else
        tb_host_agent_take_errors(agent, bytes, (size_t)n);
}

/* Before a message quotes it: all of it, and without line ends. */
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
    if (agent->tail != NULL && *agent->tail == 0)
        forget_tail(agent);
}

/* ---- starting ---------------------------------------------------------------------------------------------------- */

int tb_host_agent_take_shell(struct tb_host_agent *agent, const struct tb_shell *shell)
{
    agent->pid = shell->pid;
    agent->control.in = agent->control.out = shell->stream;
    int rc = tb_loop_watch(agent->loop, &agent->watch, shell->stream, EPOLLIN, stream_ready);
    if (rc == TB_OK && shell->errors >= 0)
        rc = tb_loop_watch(agent->loop, &agent->errors, shell->errors, EPOLLIN, errors_ready);
    return rc;
}

int tb_host_agent_start(struct tb_host_agent *agent, const sigset_t *mask)
{
    struct tb_shell shell;
    int rc = TB_OK;
    if (agent->parent != NULL)
        tb_host_tunnel_start(&agent->parent->control, agent->host, &agent->target);
    else if (!agent->manual)
        rc = tb_shell_start(&agent->target, mask, &shell);
    if (rc == TB_OK && agent->parent == NULL && !agent->manual)
        rc = tb_host_agent_take_shell(agent, &shell);
    agent->phase = TB_HOST_AGENT_SILENT;
    agent->heard = tb_loop_now(agent->loop);
    agent->counts->silent++;
    return rc;
}

static void tls_received(void *context, const void *bytes, size_t length)
{
    digest(context, bytes, length);
}

static void tls_ended(void *context, int error)
{
    struct tb_host_agent *agent = context;
    char text[1024];
    if (error == TB_ERR_CLOSED) {
        tb_host_agent_end(agent);
    } else if (agent->phase >= TB_HOST_AGENT_READY) {
        tb_host_agent_complain_damaged(agent);
    } else {
        snprintf(text, sizeof text, "host %s: %s", agent->target.host, tb_error_story());
        miss(agent, text);
    }
}

int tb_host_agent_take_socket(struct tb_host_agent *agent, int socket, const struct tb_key *secret)
{
    struct tb_tls_stream_events events = {.context = agent, .received = tls_received, .ended = tls_ended};
    agent->heard = tb_loop_now(agent->loop);
    return tb_tls_stream_open(&agent->tls, agent->loop, socket, secret, false, &agent->control, &events);
}

void tb_host_agent_take_ready(struct tb_host_agent *agent)
{
    agent->phase = TB_HOST_AGENT_READY;
    agent->counts->ready++;
}

void tb_host_agent_take_told(struct tb_host_agent *agent)
{
    agent->phase = TB_HOST_AGENT_TOLD;
}

void tb_host_agent_take_started(struct tb_host_agent *agent)
{
    agent->phase = TB_HOST_AGENT_STARTED;
}

void tb_host_agent_take_idle(struct tb_host_agent *agent)
{
    agent->counts->idle += !agent->idle;
    agent->idle = true;
}

void tb_host_agent_wake(struct tb_host_agent *agent)
{
    TB_ASSERT(agent->spare);
    agent->counts->idle -= agent->idle;
    agent->idle = false;
}

/* ---- through a parent -------------------------------------------------------------------------------------------- */

void tb_host_agent_take_bytes(struct tb_host_agent *agent, const uint8_t *bytes, size_t length)
{
    if (agent->detached)
        return;
    for (; agent->resuming && length > 0; bytes++, length--) {
        agent->next |= (uint32_t)*bytes << 8 * agent->next_have++;
        if (agent->next_have < 4)
            continue;
        agent->resuming = false;
        if (tb_control_stream_is_past(&agent->control, agent->next)) {
            tb_host_agent_detach(agent); /* its old stream has spoken after all, and we have left it: it comes again */
            return;
        }
        if (tb_control_stream_resume(&agent->control, -1, -1, agent->next) < 0) {
            tb_host_agent_complain_damaged(agent);
            return;
        }
    }
    digest(agent, bytes, length);
}

static void detach_for(struct tb_host_agent *agent, uint64_t patience)
{
    agent->detached = true;
    agent->resuming = agent->returning = false;
    tb_timer_set(agent->loop, &agent->patience, patience);
}

void tb_host_agent_detach(struct tb_host_agent *agent)
{
    detach_for(agent, tb_param.link_patience);
}

/* Its old stream: whoever is at the other end of it finds that nobody is here any more. The shell is not killed: that
 * may be the agent itself. */
static void leave_stream(struct tb_host_agent *agent, const struct tb_host_agent *parent)
{
    struct tb_host_agent *before = agent->parent;
    if (before != NULL && before != parent && !agent->detached && before->phase < TB_HOST_AGENT_GONE)
        tb_host_tunnel_end(&before->control, agent->host, TB_TUNNEL_END_LEFT);
    if (before != NULL)
        return;
    agent->moved = true;
    tb_tls_stream_close(&agent->tls);
    tb_loop_unwatch(agent->loop, &agent->watch);
    if (agent->control.in >= 0)
        close(agent->control.in);
    agent->control.in = agent->control.out = -1;
}

void tb_host_agent_attach(struct tb_host_agent *agent, struct tb_host_agent *parent)
{
    leave_stream(agent, parent);
    tb_timer_clear(&agent->patience);
    agent->parent = parent;
    agent->adopted = true;
    agent->silence = (struct tb_silence){0};
    agent->detached = false;
    agent->resuming = agent->returning = true;
    agent->next = agent->next_have = 0;
    agent->heard = tb_loop_now(agent->loop);
}

static void end(struct tb_host_agent *agent, bool exited, int status)
{
    if (agent->phase >= TB_HOST_AGENT_GONE)
        return;
    finish_tail(agent);
    lose(agent, exited, status);
}

void tb_host_agent_take_end(struct tb_host_agent *agent, bool exited, int status)
{
    if (agent->detached)
        return;
    if (agent->returning)
        tb_host_agent_detach(agent); /* it got no answer in time, and comes again */
    else if (agent->adopted)
        detach_for(agent, RETURN_NS); /* if it lives it comes again, and at once */
    else
        end(agent, exited, status);
}

/* ---- ending ------------------------------------------------------------------------------------------------------ */

void tb_host_agent_end(struct tb_host_agent *agent)
{
    end(agent, false, 0);
}

static bool is_stopped(pid_t child)
{
    siginfo_t info = {0};
    return child > 0 && waitid(P_PID, (id_t)child, &info, WSTOPPED | WNOHANG | WNOWAIT) == 0 && info.si_pid == child;
}

/* A guardian that was stopped goes on, and ends what its agent has left. */
static void patience_over(struct tb_timer *timer)
{
    struct tb_host_agent *agent = TB_CONTAINER(timer, struct tb_host_agent, patience);
    tb_host_agent_end(agent);
    if (is_stopped(agent->pid)) {
        kill(-agent->pid, SIGCONT);
        tb_timer_set(agent->loop, timer, WAKE_PATIENCE_NS);
    } else {
        tb_host_agent_kill(agent);
    }
}

void tb_host_agent_collect(struct tb_host_agent *agent, int status)
{
    /* Its last words may still be in the stream. */
    while (!agent->moved && agent->phase < TB_HOST_AGENT_GONE && hear(agent) == TB_OK)
        ;
    agent->pid = agent->moved ? 0 : agent->pid;
    if (!agent->moved) {
        tb_timer_clear(&agent->patience);
        end(agent, true, status);
        agent->pid = 0;
        tb_timer_clear(&agent->patience);
    }
    close_errors(agent);
}

void tb_host_agent_stop(struct tb_host_agent *agent, bool now)
{
    if (agent->phase == TB_HOST_AGENT_WAITING) {
        agent->phase = TB_HOST_AGENT_GONE;
    } else if (agent->phase == TB_HOST_AGENT_SILENT && !agent->target.local) {
        tb_host_agent_kill(agent);
        tb_host_agent_give_up(agent);
    } else if (agent->phase < TB_HOST_AGENT_GONE) {
        tb_put_u8(tb_control_stream_begin(&agent->control, TB_CONTROL_STOP), now);
        tb_control_stream_end(&agent->control);
    }
}

/* ---- sending ----------------------------------------------------------------------------------------------------- */

void tb_host_agent_gather(struct tb_host_agent *agent)
{
    if (!tb_host_agent_is_ready(agent))
        return;
    /* What an agent may send again is told when it is worth a message. */
    if (agent->written > 0 && agent->written >= agent->window / 4) {
        tb_put_u32(tb_control_stream_begin(&agent->control, TB_CONTROL_WINDOW), agent->written);
        tb_control_stream_end(&agent->control);
        agent->written = 0;
    }
    tb_control_stream_tell_heard(&agent->control, HEARD_FRAMES);
}

/* Moves a piece into the stream of its parent, unless others come first, or that is full. */
static bool take_turn(struct tb_host_agent *agent)
{
    struct tb_host_agent *parent = agent->parent;
    if (agent->served == parent->round) {
        parent->waited = true;
        return false;
    }
    bool moved = tb_host_tunnel_move(&parent->control, agent->host, &agent->control);
    agent->served = moved ? parent->round : agent->served;
    parent->refused = parent->refused || !moved;
    return moved;
}

bool tb_host_agent_begin_round(struct tb_host_agent *agent)
{
    bool begins = agent->waited && !agent->refused && !tb_host_tunnel_is_full(&agent->control);
    agent->waited = agent->refused = false;
    agent->round += begins;
    return begins;
}

bool tb_host_agent_flush(struct tb_host_agent *agent)
{
    if (agent->phase >= TB_HOST_AGENT_GONE || tb_control_stream_queued(&agent->control) == 0)
        return false;
    if (agent->parent != NULL)
        return agent->parent->phase < TB_HOST_AGENT_GONE && !agent->detached && !agent->resuming && take_turn(agent);
    bool full = tb_host_tunnel_is_full(&agent->control);
    if (tb_tls_stream_is_open(&agent->tls))
        tb_tls_stream_flush(&agent->tls);
    if (agent->control.out >= 0) {
        /* An error here is seen, and told, when reading. */
        int rc = tb_control_stream_flush(&agent->control);
        tb_loop_change(agent->loop, &agent->watch, rc == TB_AGAIN ? EPOLLIN | EPOLLOUT : EPOLLIN);
    }
    return full && !tb_host_tunnel_is_full(&agent->control);
}
