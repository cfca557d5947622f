/* Links between clusters that ranks cross by themselves, with a connection straight to a rank of another cluster. TCP
 * keeps what it was given through any cut, but nobody hears of it. So the agent keeps a descriptor of each such socket
 * and looks now and then whether what was sent is acknowledged. If it is not, it asks the agent over there, again and
 * again: that decides whether the link is down, since a connection may also be slow to notice that it is up, or have a
 * receiver who does not read.
 *
 * The kernel itself is told not to give up. Its own limit, TCP_USER_TIMEOUT, also ends connections whose receiver
 * answers, but has been computing for too long to have room. */
#include "agent/state.h"

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

#define TICK_NS      500000000u
#define NOTE_NS      5000000000u /* then the user is told */
#define ASK_AGAIN_NS 2000000000u /* after an answer, while a connection still waits */
#define LOOKS_MOST   1024u       /* connections a tick; a microsecond each */
#define REPEATS_MOST 3           /* of the kernel, in a row, unanswered; about a second */
#define PROBES_MOST  2           /* likewise, of a receiver without room */
#define REPEAT_MS    4000        /* what waits after a cut is repeated as often as this */
#define NO_LIMIT_MS  (7 * 24 * 3600 * 1000)
#define KEEPALIVE_S  60 /* so that firewalls remember who is silent, and who is not known any more hears of it */
#define WHY_BYTES    320
#define SPANS_MOST   (1u << 20)    /* and half of the descriptors that the agent may have */
#define FORGOTTEN_NS 120000000000u /* beyond link_patience; older kernels repeat as seldom as that */

/* One connection. It stays after the end of its rank until everything has arrived. */
struct span {
    struct tb_list node;
    struct wan_watch *wan_watch;
    const struct tb_rank *rank; /* NULL: it has ended */
    int socket;
    uint64_t stalled_since; /* 0: it is not */
};

/* All of them with one host. */
struct wan_watch {
    struct tb_list node;
    uint32_t host;
    uint32_t stalled;    /* connections */
    uint64_t down_since; /* 0: it is up, as far as we know */
    uint64_t ask_after;
    bool noted;
    char why[WHY_BYTES];
};

struct tb_wan_watches {
    struct tb_agent *agent;
    struct tb_list all, spans; /* spans: whose turn it is to be looked at comes first */
    uint32_t span_count, span_limit;
    struct tb_timer tick;
};

static void tick(struct tb_timer *timer);

bool tb_wan_watch_is(const struct tb_agent *agent, uint32_t host)
{
    return host != agent->setup.host && !tb_host_routes_to(&agent->routes, &agent->book, host)->near;
}

/* NULL: no memory. */
static struct wan_watch *wan_watch_get(struct tb_agent *agent, uint32_t host)
{
    struct tb_wan_watches *c = agent->wan_watches;
    if (c == NULL) {
        c = calloc(1, sizeof *c);
        if (c == NULL)
            return NULL;
        struct rlimit limit;
        c->agent = agent;
        c->span_limit = getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur / 2 < SPANS_MOST
                            ? (uint32_t)(limit.rlim_cur / 2)
                            : SPANS_MOST;
        tb_list_init(&c->all);
        tb_list_init(&c->spans);
        tb_timer_init(&c->tick, tick);
        agent->wan_watches = c;
    }
    struct wan_watch *wan_watch;
    TB_LIST_EACH (wan_watch, &c->all, struct wan_watch, node)
        if (wan_watch->host == host)
            return wan_watch;
    wan_watch = calloc(1, sizeof *wan_watch);
    if (wan_watch == NULL)
        return NULL;
    wan_watch->host = host;
    tb_list_append(&c->all, &wan_watch->node);
    return wan_watch;
}

static void start_tick(struct tb_wan_watches *c)
{
    if (!tb_timer_is_set(&c->tick))
        tb_timer_set(&c->agent->loop, &c->tick, TICK_NS);
}

/* ---- what is known of a link ------------------------------------------------------------------------------------- */

static void wan_watch_up(struct tb_agent *agent, struct wan_watch *wan_watch)
{
    if (wan_watch->noted)
        tb_agent_note(agent, "the link to host %s is up again", agent->book.hosts[wan_watch->host].name);
    wan_watch->noted = false;
    wan_watch->down_since = 0;
}

void tb_wan_watch_found(struct tb_agent *agent, uint32_t host)
{
    struct wan_watch *wan_watch = wan_watch_get(agent, host);
    if (wan_watch == NULL)
        return;
    wan_watch->ask_after = tb_clock_now_real() + ASK_AGAIN_NS;
    wan_watch_up(agent, wan_watch);
}

void tb_wan_watch_lost(struct tb_agent *agent, uint32_t host, uint64_t since, const char *why)
{
    struct wan_watch *wan_watch = wan_watch_get(agent, host);
    if (wan_watch == NULL)
        return;
    if (wan_watch->down_since == 0)
        wan_watch->down_since = since;
    while (*why == ' ')
        why++;
    snprintf(wan_watch->why, sizeof wan_watch->why, "%s", why);
    start_tick(agent->wan_watches); /* which judges: here somebody is in the midst of something */
}

static void describe(const struct tb_agent *agent, uint32_t host, char *text, size_t size)
{
    const struct tb_host *h = &agent->book.hosts[host];
    if (h->place.cluster[0] != 0)
        snprintf(text, size, "%s (cluster %s)", h->name, h->place.cluster);
    else
        snprintf(text, size, "%s", h->name);
}

void tb_agent_link_down(struct tb_agent *agent, uint32_t host, uint64_t down, const char *why, bool at_last)
{
    char here[400], there[400];
    describe(agent, agent->setup.host, here, sizeof here);
    describe(agent, host, there, sizeof there);
    if (at_last)
        tb_agent_trouble(agent, 1,
                         "the link between host %s and host %s has been down for %.0f s, and there is no way around "
                         "it: %s (--set link_patience=TIME waits longer)",
                         here, there, (double)down / 1e9, why);
    else
        tb_agent_note(agent, "the link between host %s and host %s is down, waiting for up to %.0f s: %s", here, there,
                      (double)tb_param.link_patience / 1e9, why);
}

static void judge(struct tb_agent *agent, struct wan_watch *wan_watch, uint64_t now)
{
    uint64_t down = now > wan_watch->down_since ? now - wan_watch->down_since : 0;
    bool at_last = down > tb_param.link_patience;
    if (!at_last && (down <= NOTE_NS || wan_watch->noted))
        return;
    wan_watch->noted = true;
    tb_agent_link_down(agent, wan_watch->host, down, wan_watch->why, at_last);
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

void tb_wan_watch_watch(struct tb_agent *agent, const struct tb_rank *rank, uint32_t host, int socket)
{
    struct wan_watch *wan_watch = wan_watch_get(agent, host);
    struct span *span = wan_watch != NULL ? calloc(1, sizeof *span) : NULL;
    bool room = span != NULL && agent->wan_watches->span_count < agent->wan_watches->span_limit;
    int copy = room ? fcntl(socket, F_DUPFD_CLOEXEC, 3) : -1;
    if (copy < 0) {
        free(span);
        tb_log(TB_LOG_WARN, "agent", "a connection of rank %u with host %s is not watched: %s", rank->rank,
               agent->book.hosts[host].name, room ? strerror(errno) : "too many");
        return;
    }
    tb_wan_watch_prepare(socket);
    *span = (struct span){.wan_watch = wan_watch, .rank = rank, .socket = copy};
    tb_list_append(&agent->wan_watches->spans, &span->node);
    agent->wan_watches->span_count++;
    tb_wan_watch_found(agent, host);
    start_tick(agent->wan_watches);
}

static void mark(struct span *span, bool stalled, uint64_t now)
{
    span->wan_watch->stalled += (uint32_t)stalled - (uint32_t)(span->stalled_since != 0);
    span->stalled_since = !stalled ? 0 : span->stalled_since != 0 ? span->stalled_since : now;
}

/* The link is up, and yet nothing arrives: whatever is on the way does not know this connection any more. */
static void judge_span(struct tb_agent *agent, const struct span *span, uint64_t now)
{
    uint64_t stalled = span->stalled_since != 0 ? now - span->stalled_since : 0;
    if (stalled > tb_param.link_patience + FORGOTTEN_NS && span->wan_watch->down_since == 0 &&
        agent->phase == TB_AGENT_RUNNING)
        tb_agent_trouble(agent, 1,
                         "a connection between host %s and host %s has taken nothing for %.0f s, though the hosts can "
                         "reach each other: has a firewall forgotten it?",
                         agent->host, agent->book.hosts[span->wan_watch->host].name, (double)stalled / 1e9);
}

void tb_wan_watch_forget(struct tb_agent *agent, const struct tb_rank *rank)
{
    struct tb_wan_watches *c = agent->wan_watches;
    struct span *span;
    if (c == NULL)
        return;
    TB_LIST_EACH (span, &c->spans, struct span, node)
        if (span->rank == rank) {
            span->rank = NULL;
            shutdown(span->socket, SHUT_WR); /* as the end of a process does */
        }
}

/* False: nothing more will be sent there. */
static bool look(struct span *span, uint64_t now)
{
    struct tcp_info info = {0};
    socklen_t length = sizeof info;
    int waiting = 0; /* bytes that are not acknowledged: else what is repeated only keeps the connection alive */
    int rc = getsockopt(span->socket, IPPROTO_TCP, TCP_INFO, &info, &length);
    bool sending = info.tcpi_state == TCP_ESTABLISHED || info.tcpi_state == TCP_CLOSE_WAIT ||
                   info.tcpi_state == TCP_FIN_WAIT1 || info.tcpi_state == TCP_LAST_ACK ||
                   info.tcpi_state == TCP_CLOSING;
    bool stalled = rc == 0 && sending && ioctl(span->socket, SIOCOUTQ, &waiting) == 0 && waiting > 0 &&
                   (info.tcpi_retransmits >= REPEATS_MOST || info.tcpi_probes >= PROBES_MOST);
    mark(span, stalled, now);
    return rc == 0 && sending;
}

/* ---- now and then ------------------------------------------------------------------------------------------------ */

static void look_after(struct tb_wan_watches *c, struct wan_watch *wan_watch, uint64_t now)
{
    struct tb_agent *agent = c->agent;
    bool matters = wan_watch->stalled > 0 || tb_connect_is_waited_for(agent, wan_watch->host);
    if (!matters)
        tb_connect_ask_no_more(agent, wan_watch->host);
    else if (wan_watch->stalled > 0 && now >= wan_watch->ask_after)
        tb_connect_ask_agent(agent, wan_watch->host);
    if (wan_watch->down_since == 0)
        return;
    if (!matters)
        wan_watch_up(agent, wan_watch);
    else if (agent->phase == TB_AGENT_RUNNING)
        judge(agent, wan_watch, now);
}

static void tick(struct tb_timer *timer)
{
    struct tb_wan_watches *c = TB_CONTAINER(timer, struct tb_wan_watches, tick);
    uint64_t now = tb_clock_now_real();
    uint32_t looks = 0;
    struct span *span;
    struct tb_list looked;
    tb_list_init(&looked);
    TB_LIST_EACH (span, &c->spans, struct span, node) {
        if (looks++ == LOOKS_MOST)
            break;
        tb_list_remove(&span->node);
        pid_t joined = span->rank != NULL ? c->agent->rank_port.ranks[span->rank->local].joined : 0;
        if (joined > 0 && kill(joined, 0) < 0 && errno == ESRCH)
            shutdown(span->socket, SHUT_WR); /* what has started it may live on */
        if (look(span, now)) {
            judge_span(c->agent, span, now);
            tb_list_append(&looked, &span->node);
        } else {
            c->span_count--;
            close(span->socket);
            free(span);
        }
    }
    TB_LIST_EACH (span, &looked, struct span, node) {
        tb_list_remove(&span->node);
        tb_list_append(&c->spans, &span->node);
    }
    bool busy = c->span_count > 0;
    struct wan_watch *wan_watch;
    TB_LIST_EACH (wan_watch, &c->all, struct wan_watch, node) {
        look_after(c, wan_watch, now);
        busy = busy || wan_watch->down_since != 0;
    }
    if (busy)
        start_tick(c);
}

void tb_wan_watch_close(struct tb_agent *agent)
{
    struct tb_wan_watches *c = agent->wan_watches;
    if (c == NULL)
        return;
    tb_timer_clear(&c->tick);
    struct span *span;
    TB_LIST_EACH (span, &c->spans, struct span, node) {
        tb_list_remove(&span->node);
        close(span->socket);
        free(span);
    }
    struct wan_watch *wan_watch;
    TB_LIST_EACH (wan_watch, &c->all, struct wan_watch, node) {
        tb_list_remove(&wan_watch->node);
        free(wan_watch);
    }
    free(c);
    agent->wan_watches = NULL;
}
