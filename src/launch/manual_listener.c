/* Clusters that are started by hand: somebody types a command there, which connects to us and proves that it knows the
 * secret that we have shown here. Its control stream then runs over TLS with a key that comes from that proof. A
 * stranger gets no answer, and one of few places for a short time. */
#include "launch/state.h"
#include "link/link.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CALLERS_LIMIT 16u
#define PATIENCE_NS   10000000000u /* for a caller to prove the secret */
#define READ_BYTES    65536
#define QUEUED_LIMIT  (256u << 20)
#define SECRET_CHARS  24 /* of 32 letters each: 120 bits */

/* Somebody who has connected and not proved anything yet. */
struct caller {
    struct tb_list node;
    struct tb_watch watch;
    struct tb_timer patience;
    struct tb_launch *launch;
    struct tb_host_agent *agent; /* whose secret the hello has proved; NULL: none yet */
    size_t have;
    struct tb_hello hello;
    struct tb_welcome welcome;
    struct tb_confirm confirm;
};

struct tb_door {
    struct tb_launch *launch;
    struct tb_watch listener;
    struct tb_list callers;
    uint32_t caller_count;
    uint16_t port;
    char addresses[512];
};

/* The stream to an agent that has come by the door. */
struct tb_line {
    struct tb_tls *tls;
    bool shaken; /* hands */
    uint8_t *bytes;
    size_t start, end, room;
};

/* ---- lines
 * ---------------------------------------------------------------------------------------------------------------- */

static int put(void *context, const void *bytes, size_t length)
{
    struct tb_line *line = context;
    if (line->start == line->end)
        line->start = line->end = 0;
    if (line->room - line->end < length && line->start > 0) {
        memmove(line->bytes, line->bytes + line->start, line->end - line->start);
        line->end -= line->start;
        line->start = 0;
    }
    if (line->room - line->end < length) {
        size_t wanted = line->end + length > 2 * line->room ? line->end + length : 2 * line->room;
        uint8_t *grown = wanted <= QUEUED_LIMIT ? realloc(line->bytes, wanted) : NULL;
        if (grown == NULL)
            return tb_error(TB_ERR_MEMORY, "no memory for what an agent is told");
        line->bytes = grown;
        line->room = wanted;
    }
    memcpy(line->bytes + line->end, bytes, length);
    line->end += length;
    return TB_OK;
}

void tb_line_close(struct tb_host_agent *agent)
{
    struct tb_line *line = agent->line;
    int socket = agent->watch.descriptor;
    if (line == NULL)
        return;
    if (line->shaken && tb_tls_end(line->tls) == TB_OK)
        tb_line_flush(agent);
    tb_loop_unwatch(&agent->launch->loop, &agent->watch);
    if (socket >= 0)
        close(socket);
    tb_tls_close(line->tls);
    free(line->bytes);
    free(line);
    agent->line = NULL;
}

void tb_line_flush(struct tb_host_agent *agent)
{
    struct tb_line *line = agent->line;
    while (line->shaken && tb_control_stream_queued(&agent->pipe) > 0 && line->end - line->start < READ_BYTES) {
        size_t length;
        const void *bytes = tb_control_stream_take(&agent->pipe, READ_BYTES, &length);
        if (tb_tls_write(line->tls, bytes, length) != TB_OK)
            break; /* seen when reading */
    }
    bool full = false;
    while (line->start < line->end && !full) {
        ssize_t n = send(agent->watch.descriptor, line->bytes + line->start, line->end - line->start,
                         MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n > 0)
            line->start += (size_t)n;
        else
            full = errno != EINTR;
    }
    bool more = line->start < line->end || (line->shaken && tb_control_stream_queued(&agent->pipe) > 0);
    tb_loop_change(&agent->launch->loop, &agent->watch, more ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

/* What was fed; TB_AGAIN: all of it is understood. */
static int understand(struct tb_host_agent *agent)
{
    static uint8_t plain[READ_BYTES];
    struct tb_line *line = agent->line;
    size_t got;
    int rc = TB_OK;
    if (!line->shaken) {
        rc = tb_tls_handshake(line->tls);
        line->shaken = rc == TB_OK;
    }
    while (rc == TB_OK && agent->line == line && (rc = tb_tls_read(line->tls, plain, sizeof plain, &got)) == TB_OK)
        tb_host_agent_digest(agent, tb_control_stream_feed(&agent->pipe, plain, got));
    return rc;
}

static void line_ready(struct tb_watch *watch, uint32_t events)
{
    static uint8_t bytes[READ_BYTES];
    struct tb_host_agent *agent = TB_CONTAINER(watch, struct tb_host_agent, watch);
    struct tb_launch *launch = agent->launch;
    if (events & ~(uint32_t)EPOLLOUT) {
        ssize_t n = recv(watch->descriptor, bytes, sizeof bytes, MSG_DONTWAIT);
        int rc = TB_AGAIN;
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
            rc = TB_ERR_CLOSED;
        } else if (n > 0) {
            tb_tls_feed(agent->line->tls, bytes, (size_t)n);
            rc = understand(agent);
        }
        if (rc != TB_AGAIN && rc != TB_OK)
            tb_host_agent_ended(agent, false, 0);
    }
    if (agent->line != NULL)
        tb_line_flush(agent);
    tb_launch_check_done(launch);
}

static int open_line(struct caller *caller)
{
    struct tb_host_agent *agent = caller->agent;
    struct tb_line *line = calloc(1, sizeof *line);
    struct tb_key secret;
    int rc = line != NULL ? tb_stream_secret(&secret, &agent->key, &caller->hello, &caller->welcome) : TB_ERR_MEMORY;
    if (rc == TB_OK)
        rc = tb_tls_open(&line->tls, &secret, false, put, line);
    if (rc != TB_OK) {
        free(line);
        return rc;
    }
    agent->line = line;
    agent->heard = tb_clock_now_real();
    return TB_OK;
}

/* ---- callers
 * ------------------------------------------------------------------------------------------------------------------ */

/* Returns the socket, which is the caller's of this. */
static int end_caller(struct caller *caller)
{
    struct tb_launch *launch = caller->launch;
    int socket = caller->watch.descriptor;
    tb_loop_unwatch(&launch->loop, &caller->watch);
    tb_timer_clear(&caller->patience);
    tb_list_remove(&caller->node);
    launch->door->caller_count--;
    tb_loop_change(&launch->loop, &launch->door->listener, EPOLLIN);
    free(caller);
    return socket;
}

static void caller_overdue(struct tb_timer *timer)
{
    close(end_caller(TB_CONTAINER(timer, struct caller, patience)));
}

void tb_door_forget(struct tb_launch *launch)
{
    struct caller *caller;
    if (launch->door == NULL)
        return;
    TB_LIST_EACH (caller, &launch->door->callers, struct caller, node)
        close(end_caller(caller));
}

/* The hello is there: whose secret is it? */
static int answer(struct caller *caller)
{
    struct tb_launch *launch = caller->launch;
    uint8_t bytes[sizeof caller->welcome];
    tb_wire_get_hello(&caller->hello, &caller->hello);
    for (uint32_t i = 0; i < launch->host_count && caller->agent == NULL; i++) {
        struct tb_host_agent *agent = &launch->agents[i];
        if (agent->manual && agent->line == NULL && agent->phase == TB_HOST_AGENT_SILENT &&
            tb_hello_verify(&caller->hello, &agent->key) == TB_OK)
            caller->agent = agent;
    }
    if (caller->agent == NULL)
        return TB_ERR_FORBIDDEN; /* not a byte for a stranger */
    int rc = tb_welcome_make(&caller->welcome, &caller->agent->key, &caller->hello, TB_WELCOME_OK);
    if (rc != TB_OK)
        return rc;
    tb_wire_put_welcome(bytes, &caller->welcome);
    caller->have = 0;
    return send(caller->watch.descriptor, bytes, sizeof bytes, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof bytes
               ? TB_OK
               : TB_ERR_CLOSED;
}

static int confirm(struct caller *caller)
{
    struct tb_host_agent *agent = caller->agent;
    struct tb_accepted accepted = {TB_ACCEPTED};
    int rc = tb_confirm_verify(&caller->confirm, &agent->key, &caller->hello, &caller->welcome);
    if (rc == TB_OK && (agent->line != NULL || agent->phase != TB_HOST_AGENT_SILENT))
        rc = TB_ERR_FORBIDDEN; /* a secret is good for one */
    if (rc == TB_OK && send(caller->watch.descriptor, &accepted, sizeof accepted, MSG_NOSIGNAL | MSG_DONTWAIT) !=
                           (ssize_t)sizeof accepted)
        rc = TB_ERR_CLOSED;
    return rc == TB_OK ? open_line(caller) : rc;
}

static void caller_ready(struct tb_watch *watch, uint32_t events)
{
    struct caller *caller = TB_CONTAINER(watch, struct caller, watch);
    struct tb_launch *launch = caller->launch;
    int rc = TB_OK;
    if (caller->agent == NULL) {
        rc = tb_receive_exactly(caller->watch.descriptor, &caller->hello, sizeof caller->hello, &caller->have);
        if (rc == TB_OK)
            rc = answer(caller);
    }
    if (rc == TB_OK)
        rc = tb_receive_exactly(caller->watch.descriptor, &caller->confirm, sizeof caller->confirm, &caller->have);
    if (rc == TB_OK)
        rc = confirm(caller);
    if (rc == TB_AGAIN)
        return;
    struct tb_host_agent *agent = caller->agent;
    int socket = end_caller(caller);
    if (rc == TB_OK && tb_loop_watch(&launch->loop, &agent->watch, socket, EPOLLIN, line_ready) == TB_OK)
        return;
    close(socket);
    if (rc == TB_OK)
        tb_host_agent_ended(agent, false, 0);
    else if (rc == TB_ERR_UNSUPPORTED)
        tb_launch_miss(agent, tb_error_story());
}

static void listener_ready(struct tb_watch *watch, uint32_t events)
{
    struct tb_door *door = TB_CONTAINER(watch, struct tb_door, listener);
    struct tb_launch *launch = door->launch;
    int socket = accept4(watch->descriptor, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (socket < 0)
        return;
    struct caller *caller = calloc(1, sizeof *caller);
    if (caller == NULL || tb_loop_watch(&launch->loop, &caller->watch, socket, EPOLLIN, caller_ready) != TB_OK) {
        free(caller);
        close(socket);
        return;
    }
    caller->launch = launch;
    tb_list_append(&door->callers, &caller->node);
    tb_timer_init(&caller->patience, caller_overdue);
    tb_timer_set(&launch->loop, &caller->patience, PATIENCE_NS);
    if (++door->caller_count == CALLERS_LIMIT)
        tb_loop_change(&launch->loop, watch, 0);
}

/* ---- opening
 * ------------------------------------------------------------------------------------------------------------------ */

/* "192.0.2.1:4711,[2001:db8::1]:4711": all addresses that others could know. */
static void list_addresses(struct tb_door *door)
{
    struct ifaddrs *all = NULL;
    size_t used = 0;
    if (getifaddrs(&all) < 0)
        return;
    for (const struct ifaddrs *i = all; i != NULL && used < sizeof door->addresses; i = i->ifa_next) {
        struct tb_address address = {.port = door->port};
        char text[80];
        if (i->ifa_addr == NULL || !(i->ifa_flags & IFF_UP) || (i->ifa_flags & IFF_LOOPBACK))
            continue;
        if (i->ifa_addr->sa_family == AF_INET) {
            address.family = 4;
            memcpy(address.bytes, &((const struct sockaddr_in *)i->ifa_addr)->sin_addr, 4);
        } else if (i->ifa_addr->sa_family == AF_INET6 &&
                   !IN6_IS_ADDR_LINKLOCAL(&((const struct sockaddr_in6 *)i->ifa_addr)->sin6_addr)) {
            address.family = 6;
            memcpy(address.bytes, &((const struct sockaddr_in6 *)i->ifa_addr)->sin6_addr, 16);
        } else {
            continue;
        }
        tb_address_print(&address, text, sizeof text);
        used +=
            (size_t)snprintf(door->addresses + used, sizeof door->addresses - used, "%s%s", used > 0 ? "," : "", text);
    }
    freeifaddrs(all);
}

/* On the first free port of the parameter `ports`, in both families where there are two. */
static int listen_somewhere(struct tb_door *door)
{
    unsigned low = 0, high = 0;
    int off = 0, on = 1;
    if (sscanf(tb_param.ports, "%u-%u", &low, &high) < 2)
        high = low;
    for (unsigned port = low; port <= high && port <= 65535; port++) {
        struct tb_address any = {.family = 6, .port = (uint16_t)port};
        struct sockaddr_storage name;
        int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0 || setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) < 0) {
            if (fd >= 0)
                close(fd);
            any.family = 4;
            fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        }
        socklen_t length = tb_address_socket(&any, &name);
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        if (fd >= 0 && bind(fd, (struct sockaddr *)&name, length) == 0 && listen(fd, 16) == 0 &&
            getsockname(fd, (struct sockaddr *)&name, &(socklen_t){sizeof name}) == 0) {
            door->port = ntohs(name.ss_family == AF_INET ? ((struct sockaddr_in *)&name)->sin_port
                                                         : ((struct sockaddr_in6 *)&name)->sin6_port);
            return fd;
        }
        if (fd >= 0)
            close(fd);
    }
    return -1;
}

static int open_door(struct tb_launch *launch)
{
    struct tb_door *door = calloc(1, sizeof *door);
    int fd = door != NULL ? listen_somewhere(door) : -1;
    if (fd < 0) {
        free(door);
        return tb_error_errno("cannot listen for clusters that are started by hand (ports=%s)", tb_param.ports);
    }
    door->launch = launch;
    tb_list_init(&door->callers);
    launch->door = door;
    list_addresses(door);
    return tb_loop_watch(&launch->loop, &door->listener, fd, EPOLLIN, listener_ready);
}

static int make_secret(char *text)
{
    uint8_t bytes[SECRET_CHARS];
    int rc = tb_random_secret(bytes, sizeof bytes);
    for (size_t i = 0; rc == TB_OK && i < SECRET_CHARS; i++) {
        *text++ = "abcdefghijkmnpqrstuvwxyz23456789"[bytes[i] & 31];
        if (i % 4 == 3 && i + 1 < SECRET_CHARS)
            *text++ = '-';
    }
    *text = 0;
    return rc;
}

int tb_door_expect(struct tb_host_agent *agent)
{
    struct tb_launch *launch = agent->launch;
    char secret[2 * SECRET_CHARS];
    int rc = launch->door != NULL ? TB_OK : open_door(launch);
    if (rc == TB_OK)
        rc = make_secret(secret);
    if (rc == TB_OK)
        rc = tb_key_derive(&agent->key, secret);
    if (rc != TB_OK)
        return rc;
    tb_launch_say(launch,
                  "cluster %s is to be started by hand, within %u minutes. On its host %s, type\n\n"
                  "    %s agent --join %s\n\nand when it asks for the secret:\n\n    %s\n",
                  tb_host_agent_cluster(agent), (unsigned)(TB_LAUNCH_MANUAL_NS / 60000000000u), agent->target.host,
                  agent->target.program, launch->door->addresses, secret);
    explicit_bzero(secret, sizeof secret);
    return TB_OK;
}
