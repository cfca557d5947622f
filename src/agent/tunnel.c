/* Tunnels: shells to hosts that the launcher does not reach but we do. What they read and write travels in our control
 * stream; we do not look into it. A shell dies with us, and the agent behind it with the shell. */
#include "agent/state.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define READ_BYTES    65536u
#define QUEUED_LIMIT  (64u << 20) /* for one shell: an address book, output of ours is bounded by windows */
#define AHEAD_LIMIT   (1u << 20)  /* of what waits for the launcher; beyond it tunnels are not read */
#define PATIENCE_NS   1000000000u /* between the end of a stream and the end of its shell */
#define TUNNELS_LIMIT TB_JOB_HOSTS_LIMIT

struct tunnel {
    struct tb_list node;
    struct tb_agent *agent;
    uint32_t number;
    pid_t pid;
    bool killed;     /* by us */
    bool awaited;    /* an adopted one: what comes is for one before it, until the launcher answers to this */
    uint32_t coming; /* the how manieth */
    struct tb_watch stream, errors;
    int descriptor; /* of the stream; -1: closed */
    struct tb_timer patience;
    uint8_t *bytes; /* for its standard input */
    size_t start, end, room;
};

static void errors_ready(struct tb_watch *watch, uint32_t events);

static struct tunnel *find(struct tb_agent *agent, uint32_t number)
{
    struct tunnel *tunnel;
    TB_LIST_EACH (tunnel, &agent->tunnels, struct tunnel, node)
        if (tunnel->number == number)
            return tunnel;
    return NULL;
}

static void tell_bytes(struct tb_agent *agent, enum tb_control kind, uint32_t number, const void *bytes, size_t length)
{
    struct tb_writer *w = tb_control_stream_begin(&agent->pipe, kind);
    tb_put_u32(w, number);
    tb_put_bytes(w, bytes, length);
    tb_control_stream_end(&agent->pipe);
}

static void tell_end(struct tb_agent *agent, uint32_t number, bool exited, int status)
{
    struct tb_writer *w = tb_control_stream_begin(&agent->pipe, TB_CONTROL_TUNNEL_END);
    tb_put_u32(w, number);
    tb_put_u8(w, exited);
    tb_put_u32(w, (uint32_t)status);
    tb_control_stream_end(&agent->pipe);
}

static void close_stream(struct tunnel *tunnel)
{
    tb_loop_unwatch(&tunnel->agent->loop, &tunnel->stream);
    if (tunnel->descriptor >= 0)
        close(tunnel->descriptor);
    tunnel->descriptor = -1;
    tunnel->start = tunnel->end = 0;
}

static void close_errors(struct tunnel *tunnel)
{
    int descriptor = tunnel->errors.descriptor;
    tb_loop_unwatch(&tunnel->agent->loop, &tunnel->errors);
    if (descriptor >= 0)
        close(descriptor);
}

static void kill_shell(struct tunnel *tunnel)
{
    tunnel->killed = true;
    if (tunnel->pid > 0)
        kill(-tunnel->pid, SIGKILL);
}

static void patience_over(struct tb_timer *timer)
{
    kill_shell(TB_CONTAINER(timer, struct tunnel, patience));
}

static void free_tunnel(struct tunnel *tunnel)
{
    close_stream(tunnel);
    close_errors(tunnel);
    tb_timer_clear(&tunnel->patience);
    tb_list_remove(&tunnel->node);
    free(tunnel->bytes);
    free(tunnel);
}

/* The stream of an agent that had come to us. */
static void end_adopted(struct tunnel *tunnel)
{
    struct tb_agent *agent = tunnel->agent;
    tell_end(agent, tunnel->number, false, 0);
    free_tunnel(tunnel);
    tb_agent_check_done(agent);
}

/* ---- from the shell
 * ------------------------------------------------------------------------------------------------------ */

/* One read of either stream: its bytes; 0: none now; -1: there are no more. */
static ssize_t read_stream(struct tunnel *tunnel, int descriptor, enum tb_control kind)
{
    static uint8_t bytes[READ_BYTES]; /* one thread, used up at once */
    ssize_t n = read(descriptor, bytes, sizeof bytes);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -1;
    if (n > 0)
        tell_bytes(tunnel->agent, kind, tunnel->number, bytes, (size_t)n);
    return n > 0 ? n : -1;
}

static void flush(struct tunnel *tunnel)
{
    struct tb_loop *loop = &tunnel->agent->loop;
    while (tunnel->descriptor >= 0 && tunnel->start < tunnel->end) {
        ssize_t n = write(tunnel->descriptor, tunnel->bytes + tunnel->start, tunnel->end - tunnel->start);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN) {
            tb_loop_change(loop, &tunnel->stream, tunnel->stream.events | EPOLLOUT);
            return;
        }
        if (n < 0)
            break; /* seen, and told, when reading */
        tunnel->start += (size_t)n;
    }
    tunnel->start = tunnel->end = 0;
    tb_loop_change(loop, &tunnel->stream, tunnel->stream.events & ~(uint32_t)EPOLLOUT);
}

static void stream_ready(struct tb_watch *watch, uint32_t events)
{
    struct tunnel *tunnel = TB_CONTAINER(watch, struct tunnel, stream);
    struct tb_agent *agent = tunnel->agent;
    if (events & EPOLLOUT)
        flush(tunnel);
    if (!(events & ~(uint32_t)EPOLLOUT))
        return;
    if (tb_control_stream_queued(&agent->pipe) > AHEAD_LIMIT) {
        agent->tunnels_paused = true;
        tb_loop_change(&agent->loop, watch, watch->events & ~(uint32_t)EPOLLIN);
        return;
    }
    if (read_stream(tunnel, tunnel->descriptor, TB_CONTROL_TUNNEL) < 0) {
        close_stream(tunnel);
        /* Why it ended is known when the shell has ended too, which should be now. */
        if (tunnel->pid > 0)
            tb_timer_set(&agent->loop, &tunnel->patience, PATIENCE_NS);
        else
            end_adopted(tunnel);
    }
}

static void errors_ready(struct tb_watch *watch, uint32_t events)
{
    struct tunnel *tunnel = TB_CONTAINER(watch, struct tunnel, errors);
    if (read_stream(tunnel, watch->descriptor, TB_CONTROL_TUNNEL_ERRORS) < 0)
        close_errors(tunnel);
}

void tb_tunnels_settle(struct tb_agent *agent)
{
    if (!agent->tunnels_paused || tb_control_stream_queued(&agent->pipe) > AHEAD_LIMIT / 2)
        return;
    struct tunnel *tunnel;
    agent->tunnels_paused = false;
    TB_LIST_EACH (tunnel, &agent->tunnels, struct tunnel, node)
        tb_loop_change(&agent->loop, &tunnel->stream, tunnel->stream.events | EPOLLIN);
}

/* ---- from the launcher
 * --------------------------------------------------------------------------------------------------- */

static int open_tunnel(struct tb_agent *agent, uint32_t number, const struct tb_shell_target *target)
{
    struct tb_shell shell;
    struct tunnel *tunnel = calloc(1, sizeof *tunnel);
    if (tunnel == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for a shell to host %s", target->host);
    int rc = tb_shell_start(target, &agent->mask, &shell);
    if (rc != TB_OK) {
        free(tunnel);
        return rc;
    }
    *tunnel = (struct tunnel){.agent = agent,
                              .number = number,
                              .pid = shell.pid,
                              .descriptor = shell.stream,
                              .stream.descriptor = -1,
                              .errors.descriptor = -1};
    tb_timer_init(&tunnel->patience, patience_over);
    tb_list_append(&agent->tunnels, &tunnel->node);
    rc = tb_loop_watch(&agent->loop, &tunnel->stream, shell.stream, EPOLLIN, stream_ready);
    if (rc == TB_OK && shell.errors >= 0)
        rc = tb_loop_watch(&agent->loop, &tunnel->errors, shell.errors, EPOLLIN, errors_ready);
    if (rc != TB_OK) {
        close_stream(tunnel);
        if (shell.errors >= 0 && tunnel->errors.descriptor < 0)
            close(shell.errors);
        kill_shell(tunnel); /* its end is told when it is collected */
    }
    return TB_OK;
}

/* "" stands for what was not given. */
static char *take_text(struct tb_reader *r)
{
    char *text = tb_get_text(r);
    if (text == NULL || *text != 0)
        return text;
    free(text);
    return NULL;
}

void tb_tunnel_shell(struct tb_agent *agent, struct tb_reader *r)
{
    uint32_t number = tb_get_u32(r);
    char *host = take_text(r), *user = take_text(r);
    uint32_t port = tb_get_u32(r);
    char *command = take_text(r), *program = take_text(r);
    if (tb_reader_end(r) == TB_OK && host != NULL && program != NULL && number < TUNNELS_LIMIT &&
        find(agent, number) == NULL) {
        struct tb_shell_target target = {
            .host = host, .user = user, .port = port, .command = command, .program = program};
        if (open_tunnel(agent, number, &target) != TB_OK) {
            const char *story = tb_error_story();
            tell_bytes(agent, TB_CONTROL_TUNNEL_ERRORS, number, story, strlen(story));
            tell_end(agent, number, false, 0);
        }
    }
    free(host);
    free(user);
    free(command);
    free(program);
}

static bool make_room(struct tunnel *tunnel, size_t more)
{
    if (tunnel->room - tunnel->end >= more)
        return true;
    if (tunnel->start > 0) {
        memmove(tunnel->bytes, tunnel->bytes + tunnel->start, tunnel->end - tunnel->start);
        tunnel->end -= tunnel->start;
        tunnel->start = 0;
    }
    if (tunnel->room - tunnel->end >= more)
        return true;
    size_t wanted = 2 * tunnel->room > tunnel->end + more ? 2 * tunnel->room : tunnel->end + more;
    uint8_t *grown = wanted <= QUEUED_LIMIT ? realloc(tunnel->bytes, wanted) : NULL;
    if (grown == NULL)
        return false;
    tunnel->bytes = grown;
    tunnel->room = wanted;
    return true;
}

void tb_tunnel_bytes(struct tb_agent *agent, struct tb_reader *r)
{
    size_t length = 0;
    struct tunnel *tunnel = find(agent, tb_get_u32(r));
    const void *bytes = tb_get_bytes(r, &length);
    if (r->error != TB_OK || tunnel == NULL || tunnel->descriptor < 0 || tunnel->awaited)
        return; /* it has ended, and the launcher will hear so */
    if (!make_room(tunnel, length)) {
        close_stream(tunnel);
        if (tunnel->pid > 0)
            kill_shell(tunnel);
        else
            end_adopted(tunnel);
        return;
    }
    memcpy(tunnel->bytes + tunnel->end, bytes, length);
    tunnel->end += length;
    flush(tunnel);
}

void tb_tunnel_end(struct tb_agent *agent, struct tb_reader *r)
{
    struct tunnel *tunnel = find(agent, tb_get_u32(r));
    bool now = tb_get_u8(r) != 0;
    if (r->error != TB_OK || tunnel == NULL)
        return;
    close_stream(tunnel);
    if (tunnel->pid == 0)
        end_adopted(tunnel);
    else if (now)
        kill_shell(tunnel);
    else
        tb_timer_set(&agent->loop, &tunnel->patience, PATIENCE_NS);
}

void tb_tunnel_adopt(struct tb_agent *agent, struct tb_proc from, int socket)
{
    uint32_t host = from.index & ~TB_PROC_AGENT;
    struct tunnel *old = find(agent, host), *tunnel = calloc(1, sizeof *tunnel);
    if (old != NULL && old->pid == 0)
        free_tunnel(old); /* it has lost that one too */
    bool good = tunnel != NULL && (old == NULL || find(agent, host) == NULL) && !tb_attach_lost(agent) &&
                host < agent->book.host_count && agent->phase == TB_AGENT_RUNNING;
    if (!good) {
        free(tunnel);
        close(socket);
        return;
    }
    *tunnel = (struct tunnel){.agent = agent,
                              .number = host,
                              .awaited = true,
                              .coming = ++agent->adopted_count,
                              .descriptor = socket,
                              .stream.descriptor = -1,
                              .errors.descriptor = -1};
    tb_timer_init(&tunnel->patience, patience_over);
    tb_list_append(&agent->tunnels, &tunnel->node);
    if (tb_loop_watch(&agent->loop, &tunnel->stream, socket, EPOLLIN, stream_ready) != TB_OK) {
        free_tunnel(tunnel);
        return;
    }
    struct tb_writer *w = tb_control_stream_begin(&agent->pipe, TB_CONTROL_ATTACH);
    tb_put_u32(w, host);
    tb_put_u32(w, tunnel->coming);
    tb_control_stream_end(&agent->pipe);
}

/* What the launcher sends from here on is for the one that has come; it may have come several times meanwhile. */
void tb_tunnel_answer(struct tb_agent *agent, struct tb_reader *r)
{
    struct tunnel *tunnel = find(agent, tb_get_u32(r));
    uint32_t coming = tb_get_u32(r);
    if (r->error == TB_OK && tunnel != NULL && tunnel->coming == coming)
        tunnel->awaited = false;
}

/* ---- ending
 * -------------------------------------------------------------------------------------------------------------- */

void tb_tunnels_reap(struct tb_agent *agent, pid_t pid, int status)
{
    struct tunnel *tunnel;
    TB_LIST_EACH (tunnel, &agent->tunnels, struct tunnel, node) {
        if (tunnel->pid != pid || pid == 0)
            continue;
        tunnel->pid = 0;
        /* Its last words may still be in the streams; whoever else holds their other ends is not waited for. */
        while (tunnel->descriptor >= 0 && read_stream(tunnel, tunnel->descriptor, TB_CONTROL_TUNNEL) > 0)
            ;
        while (tunnel->errors.descriptor >= 0 &&
               read_stream(tunnel, tunnel->errors.descriptor, TB_CONTROL_TUNNEL_ERRORS) > 0)
            ;
        tell_end(agent, tunnel->number, !tunnel->killed, status);
        free_tunnel(tunnel);
        return;
    }
}
