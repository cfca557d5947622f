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
#define LOOKS_MOST       1024u /* connections a tick; a microsecond each */
#define REPEATS_MOST     3     /* of the kernel, in a row, unanswered; about a second */
#define PROBES_MOST      2     /* likewise, of a receiver without room */
#define REPEAT_MS        4000  /* what waits after a cut is repeated as often as this */
#define NO_LIMIT_MS      (7 * 24 * 3600 * 1000)
#define KEEPALIVE_S      60 /* so that firewalls remember who is silent, and who is not known any more hears of it */
#define CONNECTIONS_MOST (1u << 20) /* and half of the descriptors that the agent may have */

#define NO_RANK UINT32_MAX

/* It stays after the end of its rank until everything has arrived. */
struct connection {
    struct tb_list node;
    uint32_t host;
    uint32_t rank; /* NO_RANK: it has ended */
    int socket;
    bool stalled;
};

static void start_tick(struct tb_wan_watch *watch)
{
    if (!tb_timer_is_set(&watch->tick))
        tb_timer_set(watch->member->loop, &watch->tick, TICK_NS);
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
    struct connection *connection = calloc(1, sizeof *connection);
    bool room = connection != NULL && has_room(watch);
    int copy = room ? fcntl(socket, F_DUPFD_CLOEXEC, 3) : -1;
    if (copy < 0) {
        free(connection);
        tb_log(TB_LOG_WARN, "agent", "a connection of rank %u with host %s is not watched: %s", rank,
               watch->member->book->hosts[host].name, room ? strerror(errno) : "too many");
        return;
    }
    tb_wan_watch_prepare(socket);
    *connection = (struct connection){.host = host, .rank = rank, .socket = copy};
    tb_list_append(&watch->connections, &connection->node);
    watch->connection_count++;
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

/* False: nothing more will be sent there. */
static bool look(struct connection *connection)
{
    struct tcp_info info = {0};
    socklen_t length = sizeof info;
    int waiting = 0; /* bytes that are not acknowledged: else what is repeated only keeps the connection alive */
    int rc = getsockopt(connection->socket, IPPROTO_TCP, TCP_INFO, &info, &length);
    bool sending = info.tcpi_state == TCP_ESTABLISHED || info.tcpi_state == TCP_CLOSE_WAIT ||
                   info.tcpi_state == TCP_FIN_WAIT1 || info.tcpi_state == TCP_LAST_ACK ||
                   info.tcpi_state == TCP_CLOSING;
    connection->stalled = rc == 0 && sending && ioctl(connection->socket, SIOCOUTQ, &waiting) == 0 && waiting > 0 &&
                          (info.tcpi_retransmits >= REPEATS_MOST || info.tcpi_probes >= PROBES_MOST);
    return rc == 0 && sending;
}

/* ---- now and then ------------------------------------------------------------------------------------------------ */

static void look_at_connections(struct tb_wan_watch *watch)
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
        if (look(connection)) {
            if (connection->stalled)
                events->stalled(events->context, connection->host);
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
    look_at_connections(watch);
    if (watch->connection_count > 0)
        start_tick(watch);
}

void tb_wan_watch_open(struct tb_wan_watch *watch, const struct tb_member *member,
                       const struct tb_wan_watch_events *events)
{
    *watch = (struct tb_wan_watch){.member = member, .events = *events};
    tb_list_init(&watch->connections);
    tb_timer_init(&watch->tick, tick);
}

void tb_wan_watch_close(struct tb_wan_watch *watch)
{
    struct connection *connection;
    tb_timer_clear(&watch->tick);
    TB_LIST_EACH (connection, &watch->connections, struct connection, node)
        drop(watch, connection);
}
