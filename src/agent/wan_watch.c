#include "agent/wan_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#ifndef TCP_RTO_MAX_MS
#define TCP_RTO_MAX_MS 44 /* Linux 6.15; others repeat after up to two minutes */
#endif

#define TICK_NS          500000000u
#define NOTE_NS          5000000000u /* then the user is told */
#define ASK_AGAIN_NS     2000000000u /* after an answer, while a connection still waits */
#define LOOKS_MOST       1024u       /* connections a tick; a microsecond each */
#define REPEATS_MOST     3           /* of the kernel, in a row, unanswered; about a second */
#define PROBES_MOST      2           /* likewise, of a receiver without room */
#define REPEAT_MS        4000        /* what waits after a cut is repeated as often as this */
#define NO_LIMIT_MS      (7 * 24 * 3600 * 1000)
#define KEEPALIVE_S      60 /* so that firewalls remember who is silent, and who is not known any more hears of it */
#define WHY_BYTES        320
#define CONNECTIONS_MOST (1u << 20)    /* and half of the descriptors that the agent may have */
#define FORGOTTEN_NS     120000000000u /* beyond link_patience; older kernels repeat as seldom as that */

#define NO_RANK UINT32_MAX

/* It stays after the end of its rank until everything has arrived. */
struct connection {
    struct tb_list node;
    struct link *link;
    uint32_t rank; /* NO_RANK: it has ended */
    int socket;
    uint64_t stalled_since; /* 0: it is not */
};

/* All connections with one host. */
struct link {
    struct tb_list node;
    uint32_t host;
    uint32_t stalled;    /* connections */
    uint64_t down_since; /* 0: it is up, as far as we know */
    uint64_t ask_after;
    bool noted;
    char why[WHY_BYTES];
};

/* NULL: no memory. */
static struct link *link_get(struct tb_wan_watch *watch, uint32_t host)
{
    struct link *link;
    TB_LIST_EACH (link, &watch->links, struct link, node)
        if (link->host == host)
            return link;
    link = calloc(1, sizeof *link);
    if (link == NULL)
        return NULL;
    link->host = host;
    tb_list_append(&watch->links, &link->node);
    return link;
}

static void start_tick(struct tb_wan_watch *watch)
{
    if (!tb_timer_is_set(&watch->tick))
        tb_timer_set(watch->member->loop, &watch->tick, TICK_NS);
}

/* ---- what is known of a link ------------------------------------------------------------------------------------- */

static void link_up(struct tb_wan_watch *watch, struct link *link)
{
    bool noted = link->noted;
    link->noted = false;
    link->down_since = 0;
    if (noted)
        watch->events.up(watch->events.context, link->host);
}

void tb_wan_watch_found(struct tb_wan_watch *watch, uint32_t host)
{
    struct link *link = link_get(watch, host);
    if (link == NULL)
        return;
    link->ask_after = tb_loop_now(watch->member->loop) + ASK_AGAIN_NS;
    link_up(watch, link);
}

void tb_wan_watch_lost(struct tb_wan_watch *watch, uint32_t host, uint64_t since, const char *why)
{
    struct link *link = link_get(watch, host);
    if (link == NULL)
        return;
    if (link->down_since == 0)
        link->down_since = since;
    while (*why == ' ')
        why++;
    snprintf(link->why, sizeof link->why, "%s", why);
    start_tick(watch); /* which judges: here somebody is in the midst of something */
}

static void judge(struct tb_wan_watch *watch, struct link *link, uint64_t now)
{
    uint64_t down = now > link->down_since ? now - link->down_since : 0;
    bool at_last = down > tb_param.link_patience;
    if (!at_last && (down <= NOTE_NS || link->noted))
        return;
    link->noted = true;
    watch->events.down(watch->events.context, link->host, down, link->why, at_last);
}

/* ---- connections ------------------------------------------------------------------------------------------------- */

void tb_wan_watch_prepare(int socket)
{
    int on = 1, repeat = REPEAT_MS, no_limit = NO_LIMIT_MS, idle = KEEPALIVE_S;
    setsockopt(socket, IPPROTO_TCP, TCP_RTO_MAX_MS, &repeat, sizeof repeat);
    setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &no_limit, sizeof no_limit);
    setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &idle, sizeof idle);
    setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

/* Half of the descriptors that the process may have now, which is more than when it began. */
static bool has_room(const struct tb_wan_watch *watch)
{
    struct rlimit limit;
    bool few = getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur / 2 < CONNECTIONS_MOST;
    return watch->connection_count < (few ? (uint32_t)(limit.rlim_cur / 2) : CONNECTIONS_MOST);
}

void tb_wan_watch_add(struct tb_wan_watch *watch, uint32_t rank, uint32_t host, int socket)
{
    struct link *link = link_get(watch, host);
    struct connection *connection = link != NULL ? calloc(1, sizeof *connection) : NULL;
    bool room = connection != NULL && has_room(watch);
    int copy = room ? fcntl(socket, F_DUPFD_CLOEXEC, 3) : -1;
    if (copy < 0) {
        free(connection);
        tb_log(TB_LOG_WARN, "agent", "a connection of rank %u with host %s is not watched: %s", rank,
               watch->member->book->hosts[host].name, room ? strerror(errno) : "too many");
        return;
    }
    tb_wan_watch_prepare(socket);
    *connection = (struct connection){.link = link, .rank = rank, .socket = copy};
    tb_list_append(&watch->connections, &connection->node);
    watch->connection_count++;
    tb_wan_watch_found(watch, host);
    start_tick(watch);
}

static void drop(struct tb_wan_watch *watch, struct connection *connection)
{
    tb_list_remove(&connection->node);
    watch->connection_count--;
    close(connection->socket);
    free(connection);
}

void tb_wan_watch_forget(struct tb_wan_watch *watch, uint32_t rank)
{
    struct connection *connection;
    TB_LIST_EACH (connection, &watch->connections, struct connection, node)
        if (connection->rank == rank) {
            connection->rank = NO_RANK;
            shutdown(connection->socket, SHUT_WR); /* as the end of a process does */
        }
}

static void mark(struct connection *connection, bool stalled, uint64_t now)
{
    connection->link->stalled += (uint32_t)stalled - (uint32_t)(connection->stalled_since != 0);
    connection->stalled_since = !stalled ? 0 : connection->stalled_since != 0 ? connection->stalled_since : now;
}

static void judge_connection(struct tb_wan_watch *watch, const struct connection *connection, uint64_t now)
{
    uint64_t stalled = connection->stalled_since != 0 ? now - connection->stalled_since : 0;
    if (stalled > tb_param.link_patience + FORGOTTEN_NS && connection->link->down_since == 0 && watch->member->running)
        watch->events.stuck(watch->events.context, connection->link->host, stalled);
}

/* False: nothing more will be sent there. */
static bool look(struct connection *connection, uint64_t now)
{
    struct tcp_info info = {0};
    socklen_t length = sizeof info;
    int waiting = 0; /* bytes that are not acknowledged: else what is repeated only keeps the connection alive */
    int rc = getsockopt(connection->socket, IPPROTO_TCP, TCP_INFO, &info, &length);
    bool sending = info.tcpi_state == TCP_ESTABLISHED || info.tcpi_state == TCP_CLOSE_WAIT ||
                   info.tcpi_state == TCP_FIN_WAIT1 || info.tcpi_state == TCP_LAST_ACK ||
                   info.tcpi_state == TCP_CLOSING;
    bool stalled = rc == 0 && sending && ioctl(connection->socket, SIOCOUTQ, &waiting) == 0 && waiting > 0 &&
                   (info.tcpi_retransmits >= REPEATS_MOST || info.tcpi_probes >= PROBES_MOST);
    mark(connection, stalled, now);
    return rc == 0 && sending;
}

/* ---- now and then ------------------------------------------------------------------------------------------------ */

static void look_after(struct tb_wan_watch *watch, struct link *link, uint64_t now)
{
    const struct tb_wan_watch_events *events = &watch->events;
    bool matters = link->stalled > 0 || events->is_awaited(events->context, link->host);
    if (!matters)
        events->ask_no_more(events->context, link->host);
    else if (link->stalled > 0 && now >= link->ask_after)
        events->ask(events->context, link->host);
    if (link->down_since == 0)
        return;
    if (!matters)
        link_up(watch, link);
    else if (watch->member->running)
        judge(watch, link, now);
}

static void look_at_connections(struct tb_wan_watch *watch, uint64_t now)
{
    const struct tb_wan_watch_events *events = &watch->events;
    uint32_t looks = 0;
    struct connection *connection;
    struct tb_list looked;
    tb_list_init(&looked);
    TB_LIST_EACH (connection, &watch->connections, struct connection, node) {
        if (looks++ == LOOKS_MOST)
            break;
        if (connection->rank != NO_RANK && events->is_gone(events->context, connection->rank))
            shutdown(connection->socket, SHUT_WR); /* what has started it may live on */
        if (look(connection, now)) {
            judge_connection(watch, connection, now);
            tb_list_remove(&connection->node);
            tb_list_append(&looked, &connection->node);
        } else {
            drop(watch, connection);
        }
    }
    TB_LIST_EACH (connection, &looked, struct connection, node) {
        tb_list_remove(&connection->node);
        tb_list_append(&watch->connections, &connection->node);
    }
}

static void tick(struct tb_timer *timer)
{
    struct tb_wan_watch *watch = TB_CONTAINER(timer, struct tb_wan_watch, tick);
    uint64_t now = tb_loop_now(watch->member->loop);
    look_at_connections(watch, now);
    bool busy = watch->connection_count > 0;
    struct link *link;
    TB_LIST_EACH (link, &watch->links, struct link, node) {
        look_after(watch, link, now);
        busy = busy || link->down_since != 0;
    }
    if (busy)
        start_tick(watch);
}

void tb_wan_watch_open(struct tb_wan_watch *watch, const struct tb_member *member,
                       const struct tb_wan_watch_events *events)
{
    *watch = (struct tb_wan_watch){.member = member, .events = *events};
    tb_list_init(&watch->links);
    tb_list_init(&watch->connections);
    tb_timer_init(&watch->tick, tick);
}

void tb_wan_watch_close(struct tb_wan_watch *watch)
{
    struct connection *connection;
    struct link *link;
    tb_timer_clear(&watch->tick);
    TB_LIST_EACH (connection, &watch->connections, struct connection, node)
        drop(watch, connection);
    TB_LIST_EACH (link, &watch->links, struct link, node) {
        tb_list_remove(&link->node);
        free(link);
    }
}
