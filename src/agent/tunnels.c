#include "agent/tunnels.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define READ_BYTES 65536u
/* For one shell: what links cost, and an address book; output of ours is bounded by windows. */
#define QUEUED_LIMIT  (TB_COST_TABLE_LIMIT + 2 * TB_CONTROL_LIMIT)
#define ROOM_LIMIT    (256u << 20) /* for all together */
#define AHEAD_LIMIT   (1u << 20)   /* of what waits for the launcher; beyond it tunnels are not read */
#define PATIENCE_NS   1000000000u  /* between the end of a stream and the end of its shell */
#define TUNNELS_LIMIT TB_JOB_HOSTS_LIMIT
#define ARRIVING_MOST 64u /* at once; the oldest goes when there are more */
#define ARRIVING_NS   5000000000u
#define NUMBER_BYTES  4u         /* of the frame that an agent expects */
#define LAST_READS    64         /* of what a shell has left in a stream: more than one holds */
#define KEPT_BYTES    (1u << 20) /* of memory for what waits, when nothing does */

struct tunnel {
    struct tb_list node;
    struct tb_tunnels *tunnels;
    uint32_t number;
    pid_t pid;
    bool killed;     /* by us */
    bool awaited;    /* an adopted one: what comes is for one before it, until the launcher answers to this */
    uint32_t coming; /* the how manieth */
    struct tb_watch stream, errors;
    int descriptor;            /* of the stream; -1: closed */
    struct tb_tls_socket *tls; /* has it, if it is an agent that has come */
    bool arriving;             /* in the other list, until these are there: */
    uint32_t have;
    uint8_t expected[NUMBER_BYTES];
    struct tb_timer patience;
    uint8_t *bytes; /* for its standard input */
    size_t start, end, room;
};

static struct tunnel *find(struct tb_tunnels *tunnels, uint32_t number)
{
    struct tunnel *tunnel;
    TB_LIST_EACH (tunnel, &tunnels->all, struct tunnel, node)
        if (tunnel->number == number)
            return tunnel;
    return NULL;
}

static void tell_bytes(struct tb_uplink *uplink, enum tb_control kind, uint32_t number, const void *bytes,
                       size_t length)
{
    struct tb_writer *w = tb_uplink_begin(uplink, kind);
    tb_put_u32(w, number);
    tb_put_bytes(w, bytes, length);
    tb_uplink_end(uplink);
}

static void tell_end(struct tb_uplink *uplink, uint32_t number, bool exited, int status)
{
    struct tb_writer *w = tb_uplink_begin(uplink, TB_CONTROL_TUNNEL_END);
    tb_put_u32(w, number);
    tb_put_u8(w, exited);
    tb_put_u32(w, (uint32_t)status);
    tb_uplink_end(uplink);
}

static void close_stream(struct tunnel *tunnel)
{
    tb_loop_unwatch(tunnel->tunnels->loop, &tunnel->stream);
    if (tunnel->tls != NULL)
        tb_tls_socket_close(tunnel->tls);
    else if (tunnel->descriptor >= 0)
        close(tunnel->descriptor);
    tunnel->tls = NULL;
    tunnel->descriptor = -1;
    tunnel->start = tunnel->end = 0;
}

static void close_errors(struct tunnel *tunnel)
{
    int descriptor = tunnel->errors.descriptor;
    tb_loop_unwatch(tunnel->tunnels->loop, &tunnel->errors);
    if (descriptor >= 0)
        close(descriptor);
}

static void kill_shell(struct tunnel *tunnel)
{
    tunnel->killed = true;
    if (tunnel->pid > 0)
        kill(-tunnel->pid, SIGKILL);
}

static void set_room(struct tunnel *tunnel, uint8_t *bytes, size_t room)
{
    tunnel->tunnels->room += room - tunnel->room;
    tunnel->bytes = bytes;
    tunnel->room = room;
}

static void free_room(struct tunnel *tunnel)
{
    free(tunnel->bytes);
    set_room(tunnel, NULL, 0);
}

static void free_tunnel(struct tunnel *tunnel)
{
    tunnel->tunnels->arriving_count -= tunnel->arriving;
    close_stream(tunnel);
    close_errors(tunnel);
    tb_timer_clear(&tunnel->patience);
    tb_list_remove(&tunnel->node);
    free_room(tunnel);
    free(tunnel);
}

static void patience_over(struct tb_timer *timer)
{
    struct tunnel *tunnel = TB_CONTAINER(timer, struct tunnel, patience);
    if (tunnel->arriving)
        free_tunnel(tunnel);
    else
        kill_shell(tunnel);
}

/* The stream of an agent that had come to us. */
static void end_adopted(struct tunnel *tunnel)
{
    struct tb_tunnels *tunnels = tunnel->tunnels;
    tell_end(tunnels->uplink, tunnel->number, false, 0);
    free_tunnel(tunnel);
    tunnels->events.ended(tunnels->events.context);
}

/* ---- from the shell ---------------------------------------------------------------------------------------------- */

/* It has said which frame it expects. False: a shell leads there meanwhile. */
static bool arrive(struct tunnel *tunnel)
{
    struct tb_tunnels *tunnels = tunnel->tunnels;
    struct tunnel *before = find(tunnels, tunnel->number);
    if (before != NULL && before->pid != 0)
        return false;
    tb_timer_clear(&tunnel->patience);
    if (before != NULL)
        free_tunnel(before); /* it had come, and has lost that stream too */
    tb_list_remove(&tunnel->node);
    tb_list_append(&tunnels->all, &tunnel->node);
    tunnels->arriving_count--;
    tunnel->arriving = false;
    tunnel->coming = ++tunnels->adopted_count;
    struct tb_writer *w = tb_uplink_begin(tunnels->uplink, TB_CONTROL_ATTACH);
    tb_put_u32(w, tunnel->number);
    tb_put_u32(w, tunnel->coming);
    tb_uplink_end(tunnels->uplink);
    tell_bytes(tunnels->uplink, TB_CONTROL_TUNNEL, tunnel->number, tunnel->expected, tunnel->have);
    return true;
}

/* What an agent that has come says: as read_stream. */
static ssize_t read_encrypted(struct tunnel *tunnel)
{
    static uint8_t bytes[READ_BYTES]; /* one thread, used up at once */
    size_t got = 0;
    int rc = tb_tls_socket_receive(tunnel->tls);
    if (rc != TB_OK)
        return rc == TB_AGAIN ? 0 : -1;
    do {
        void *to = tunnel->arriving ? tunnel->expected + tunnel->have : bytes;
        rc = tb_tls_socket_read(tunnel->tls, to, tunnel->arriving ? NUMBER_BYTES - tunnel->have : READ_BYTES, &got);
        if (!tunnel->arriving && got > 0)
            tell_bytes(tunnel->tunnels->uplink, TB_CONTROL_TUNNEL, tunnel->number, bytes, got);
        tunnel->have += tunnel->arriving ? (uint32_t)got : 0;
        if (tunnel->arriving && tunnel->have == NUMBER_BYTES && !arrive(tunnel))
            return -1;
    } while (rc == TB_OK);
    return rc == TB_AGAIN ? 0 : -1;
}

/* One read of either stream: its bytes; 0: none now; -1: there are no more. */
static ssize_t read_stream(struct tunnel *tunnel, int descriptor, enum tb_control kind)
{
    static uint8_t bytes[READ_BYTES]; /* one thread, used up at once */
    ssize_t n = read(descriptor, bytes, sizeof bytes);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -1;
    if (n > 0)
        tell_bytes(tunnel->tunnels->uplink, kind, tunnel->number, bytes, (size_t)n);
    return n > 0 ? n : -1;
}

/* TB_OK: something has left what waits; TB_AGAIN: there is no room. */
static int write_some(struct tunnel *tunnel)
{
    ssize_t n = write(tunnel->descriptor, tunnel->bytes + tunnel->start, tunnel->end - tunnel->start);
    if (n < 0 && errno == EAGAIN)
        return TB_AGAIN;
    if (n < 0 && errno != EINTR)
        return TB_ERR_CLOSED;
    tunnel->start += n > 0 ? (size_t)n : 0;
    return TB_OK;
}

static int encrypt_some(struct tunnel *tunnel)
{
    size_t length = tunnel->end - tunnel->start < READ_BYTES ? tunnel->end - tunnel->start : READ_BYTES;
    int rc = tb_tls_socket_has_room(tunnel->tls) ? TB_OK : tb_tls_socket_flush(tunnel->tls);
    if (rc == TB_OK)
        rc = tb_tls_socket_write(tunnel->tls, tunnel->bytes + tunnel->start, length);
    tunnel->start += rc == TB_OK ? length : 0;
    return rc;
}

static void flush(struct tunnel *tunnel)
{
    struct tb_loop *loop = tunnel->tunnels->loop;
    int rc = TB_OK;
    while (rc == TB_OK && tunnel->descriptor >= 0 && tunnel->start < tunnel->end)
        rc = tunnel->tls != NULL ? encrypt_some(tunnel) : write_some(tunnel);
    if (tunnel->tls != NULL && rc == TB_OK)
        rc = tb_tls_socket_flush(tunnel->tls);
    if (rc == TB_AGAIN) {
        tb_loop_change(loop, &tunnel->stream, tunnel->stream.events | EPOLLOUT);
        return;
    }
    tunnel->start = tunnel->end = 0; /* an error is seen, and told, when reading */
    if (tunnel->room > KEPT_BYTES)
        free_room(tunnel);
    tb_loop_change(loop, &tunnel->stream, tunnel->stream.events & ~(uint32_t)EPOLLOUT);
}

/* A launcher that does not keep up: whoever speaks behind us waits, too. That he has hung up is said anyway, but once
 * is enough. */
static bool has_to_wait(struct tb_tunnels *tunnels, struct tb_watch *watch)
{
    if (tb_uplink_queued(tunnels->uplink) <= AHEAD_LIMIT)
        return false;
    tunnels->paused = true;
    tb_loop_change(tunnels->loop, watch, (watch->events & ~(uint32_t)EPOLLIN) | (uint32_t)EPOLLET);
    return true;
}

static void stream_ready(struct tb_watch *watch, uint32_t events)
{
    struct tunnel *tunnel = TB_CONTAINER(watch, struct tunnel, stream);
    struct tb_tunnels *tunnels = tunnel->tunnels;
    if (events & EPOLLOUT)
        flush(tunnel);
    if (!(events & ~(uint32_t)EPOLLOUT))
        return;
    if (has_to_wait(tunnels, watch))
        return;
    if (tunnel->tls != NULL ? read_encrypted(tunnel) >= 0
                            : read_stream(tunnel, tunnel->descriptor, TB_CONTROL_TUNNEL) >= 0)
        return;
    close_stream(tunnel);
    /* Why it ended is known when the shell has ended too, which should be now. */
    if (tunnel->pid > 0)
        tb_timer_set(tunnels->loop, &tunnel->patience, PATIENCE_NS);
    else
        end_adopted(tunnel);
}

/* One that has come, before it has said what it expects: TLS speaks. */
static void arriving_ready(struct tb_watch *watch, uint32_t events)
{
    struct tunnel *tunnel = TB_CONTAINER(watch, struct tunnel, stream);
    ssize_t n = read_encrypted(tunnel);
    if (tunnel->arriving) {
        if (n < 0 || tb_tls_socket_flush(tunnel->tls) < 0)
            free_tunnel(tunnel);
        return;
    }
    watch->ready = stream_ready;
    if (n < 0)
        end_adopted(tunnel);
    else
        flush(tunnel);
}

static void errors_ready(struct tb_watch *watch, uint32_t events)
{
    struct tunnel *tunnel = TB_CONTAINER(watch, struct tunnel, errors);
    if (!has_to_wait(tunnel->tunnels, watch) && read_stream(tunnel, watch->descriptor, TB_CONTROL_TUNNEL_ERRORS) < 0)
        close_errors(tunnel);
}

void tb_tunnels_settle(struct tb_tunnels *tunnels)
{
    if (!tunnels->paused || tb_uplink_queued(tunnels->uplink) > AHEAD_LIMIT / 2)
        return;
    struct tunnel *tunnel;
    tunnels->paused = false;
    TB_LIST_EACH (tunnel, &tunnels->all, struct tunnel, node) {
        tb_loop_change(tunnels->loop, &tunnel->stream, (tunnel->stream.events & ~(uint32_t)EPOLLET) | EPOLLIN);
        tb_loop_change(tunnels->loop, &tunnel->errors, EPOLLIN);
    }
}

/* ---- from the launcher ------------------------------------------------------------------------------------------- */

static int open_tunnel(struct tb_tunnels *tunnels, uint32_t number, const struct tb_shell_target *target)
{
    struct tb_shell shell;
    struct tunnel *tunnel = calloc(1, sizeof *tunnel);
    if (tunnel == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for a shell to host %s", target->host);
    int rc = tb_shell_start(target, tunnels->mask, &shell);
    if (rc != TB_OK) {
        free(tunnel);
        return rc;
    }
    *tunnel = (struct tunnel){.tunnels = tunnels,
                              .number = number,
                              .pid = shell.pid,
                              .descriptor = shell.stream,
                              .stream.descriptor = -1,
                              .errors.descriptor = -1};
    tb_timer_init(&tunnel->patience, patience_over);
    tb_list_append(&tunnels->all, &tunnel->node);
    rc = tb_loop_watch(tunnels->loop, &tunnel->stream, shell.stream, EPOLLIN, stream_ready);
    if (rc == TB_OK && shell.errors >= 0)
        rc = tb_loop_watch(tunnels->loop, &tunnel->errors, shell.errors, EPOLLIN, errors_ready);
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

void tb_tunnels_take_shell(struct tb_tunnels *tunnels, struct tb_reader *r)
{
    uint32_t number = tb_get_u32(r);
    char *host = take_text(r), *user = take_text(r);
    uint32_t port = tb_get_u32(r);
    char *command = take_text(r), *program = take_text(r);
    if (tb_reader_end(r) == TB_OK && host != NULL && program != NULL && number < TUNNELS_LIMIT &&
        find(tunnels, number) == NULL) {
        struct tb_shell_target target = {
            .host = host, .user = user, .port = port, .command = command, .program = program};
        if (open_tunnel(tunnels, number, &target) != TB_OK) {
            const char *story = tb_error_story();
            tell_bytes(tunnels->uplink, TB_CONTROL_TUNNEL_ERRORS, number, story, strlen(story));
            tell_end(tunnels->uplink, number, false, 0);
        }
    }
    free(host);
    free(user);
    free(command);
    free(program);
}

/* Up to the limit, however it is approached. */
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
    if (more > QUEUED_LIMIT - tunnel->end) /* there are never more than the limit */
        return false;
    size_t wanted = 2 * tunnel->room > tunnel->end + more ? 2 * tunnel->room : tunnel->end + more;
    wanted = wanted < QUEUED_LIMIT ? wanted : QUEUED_LIMIT;
    uint8_t *grown = realloc(tunnel->bytes, wanted);
    if (grown == NULL)
        return false;
    set_room(tunnel, grown, wanted);
    return true;
}

/* It does not read, and there is no room for more. */
static void drop(struct tunnel *tunnel)
{
    close_stream(tunnel);
    free_room(tunnel);
    if (tunnel->pid > 0)
        kill_shell(tunnel);
    else
        end_adopted(tunnel);
}

/* Together they may not hold too much either: those go that hold most. */
static void keep_bound(struct tb_tunnels *tunnels)
{
    while (tunnels->room > tunnels->room_limit) {
        struct tunnel *tunnel, *most = NULL;
        // NOLINTNEXTLINE(clang-analyzer-unix.Malloc): a tunnel that was freed is in no list
        TB_LIST_EACH (tunnel, &tunnels->all, struct tunnel, node)
            most = most == NULL || tunnel->room > most->room ? tunnel : most;
        if (most == NULL || most->room == 0)
            return;
        drop(most);
    }
}

void tb_tunnels_take_bytes(struct tb_tunnels *tunnels, struct tb_reader *r)
{
    size_t length = 0;
    struct tunnel *tunnel = find(tunnels, tb_get_u32(r));
    const void *bytes = tb_get_bytes(r, &length);
    if (r->error != TB_OK || tunnel == NULL || tunnel->descriptor < 0 || tunnel->awaited)
        return; /* it has ended, and the launcher will hear so */
    if (!make_room(tunnel, length)) {
        drop(tunnel);
        return;
    }
    memcpy(tunnel->bytes + tunnel->end, bytes, length);
    tunnel->end += length;
    flush(tunnel);
    keep_bound(tunnels);
}

void tb_tunnels_take_end(struct tb_tunnels *tunnels, struct tb_reader *r)
{
    struct tunnel *tunnel = find(tunnels, tb_get_u32(r));
    enum tb_tunnel_end how = tb_get_u8(r);
    if (r->error != TB_OK || tunnel == NULL)
        return;
    close_stream(tunnel);
    if (tunnel->pid == 0) {
        end_adopted(tunnel);
    } else if (how == TB_TUNNEL_END_LEFT) {
        tb_list_remove(&tunnel->node); /* the shell may be the agent itself */
        tb_list_append(&tunnels->left, &tunnel->node);
        tunnels->events.ended(tunnels->events.context);
    } else if (how == TB_TUNNEL_END_NOW) {
        kill_shell(tunnel);
    } else {
        tb_timer_set(tunnels->loop, &tunnel->patience, PATIENCE_NS);
    }
}

void tb_tunnels_adopt(struct tb_tunnels *tunnels, uint32_t host, int socket, const struct tb_key *secret)
{
    const struct tunnel *before = find(tunnels, host);
    bool open = before == NULL || before->pid == 0; /* one that a shell of ours leads to does not come this way */
    struct tunnel *tunnel = open ? calloc(1, sizeof *tunnel) : NULL;
    struct tb_tls_socket *tls = NULL;
    if (tunnel == NULL || tb_tls_socket_open(&tls, socket, secret, false) != TB_OK) {
        free(tunnel);
        close(socket);
        return;
    }
    *tunnel = (struct tunnel){.tunnels = tunnels,
                              .number = host,
                              .awaited = true,
                              .arriving = true,
                              .descriptor = socket,
                              .tls = tls,
                              .stream.descriptor = -1,
                              .errors.descriptor = -1};
    tb_timer_init(&tunnel->patience, patience_over);
    if (tunnels->arriving_count == ARRIVING_MOST)
        free_tunnel(TB_CONTAINER(tunnels->arriving.next, struct tunnel, node));
    tb_list_append(&tunnels->arriving, &tunnel->node);
    tunnels->arriving_count++;
    tb_timer_set(tunnels->loop, &tunnel->patience, ARRIVING_NS);
    if (tb_loop_watch(tunnels->loop, &tunnel->stream, socket, EPOLLIN, arriving_ready) != TB_OK)
        free_tunnel(tunnel);
}

/* What the launcher sends from here on is for the one that has come; it may have come several times meanwhile. */
void tb_tunnels_take_answer(struct tb_tunnels *tunnels, struct tb_reader *r)
{
    struct tunnel *tunnel = find(tunnels, tb_get_u32(r));
    uint32_t coming = tb_get_u32(r);
    if (r->error == TB_OK && tunnel != NULL && tunnel->coming == coming)
        tunnel->awaited = false;
}

bool tb_tunnels_take(struct tb_tunnels *tunnels, struct tb_control_frame *frame)
{
    switch (frame->kind) {
    case TB_CONTROL_TUNNEL:
        tb_tunnels_take_bytes(tunnels, &frame->fields);
        return true;
    case TB_CONTROL_TUNNEL_END:
        tb_tunnels_take_end(tunnels, &frame->fields);
        return true;
    case TB_CONTROL_SHELL:
        tb_tunnels_take_shell(tunnels, &frame->fields);
        return true;
    case TB_CONTROL_ATTACH:
        tb_tunnels_take_answer(tunnels, &frame->fields);
        return true;
    default:
        return false;
    }
}

/* ---- ending ------------------------------------------------------------------------------------------------------ */

/* Somebody else may write to it all the time. */
static void read_last(struct tunnel *tunnel, int descriptor, enum tb_control kind)
{
    for (int i = 0; i < LAST_READS && descriptor >= 0 && read_stream(tunnel, descriptor, kind) > 0; i++)
        ;
}

void tb_tunnels_reap(struct tb_tunnels *tunnels, pid_t pid, int status)
{
    struct tunnel *tunnel;
    TB_LIST_EACH (tunnel, &tunnels->left, struct tunnel, node)
        if (tunnel->pid == pid)
            free_tunnel(tunnel);
    TB_LIST_EACH (tunnel, &tunnels->all, struct tunnel, node) {
        if (tunnel->pid != pid || pid == 0)
            continue;
        tunnel->pid = 0;
        /* Its last words may still be in the streams; whoever else holds their other ends is not waited for. */
        read_last(tunnel, tunnel->descriptor, TB_CONTROL_TUNNEL);
        read_last(tunnel, tunnel->errors.descriptor, TB_CONTROL_TUNNEL_ERRORS);
        tell_end(tunnels->uplink, tunnel->number, !tunnel->killed, status);
        free_tunnel(tunnel);
        return;
    }
}

void tb_tunnels_open(struct tb_tunnels *tunnels, struct tb_loop *loop, struct tb_uplink *uplink, const sigset_t *mask,
                     const struct tb_tunnels_events *events)
{
    *tunnels =
        (struct tb_tunnels){.loop = loop, .uplink = uplink, .events = *events, .mask = mask, .room_limit = ROOM_LIMIT};
    tb_list_init(&tunnels->all);
    tb_list_init(&tunnels->arriving);
    tb_list_init(&tunnels->left);
}

void tb_tunnels_close(struct tb_tunnels *tunnels)
{
    struct tunnel *tunnel;
    TB_LIST_EACH (tunnel, &tunnels->all, struct tunnel, node) {
        kill_shell(tunnel);
        free_tunnel(tunnel);
    }
    TB_LIST_EACH (tunnel, &tunnels->left, struct tunnel, node) {
        kill_shell(tunnel);
        free_tunnel(tunnel);
    }
    TB_LIST_EACH (tunnel, &tunnels->arriving, struct tunnel, node)
        free_tunnel(tunnel);
}
