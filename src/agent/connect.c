/* Connections to processes of other hosts, made for ranks of this one or for the agent itself. A dial tries the
 * addresses of the other agent, likely ones first, a little apart but side by side; the first that proves the key is
 * it. Where only the other side can connect, it is called through the launcher, and the dial waits for it.
 *
 * A dial for a rank to another cluster goes on for as long as the link may be down; how long that is, crossing.c
 * decides. */
#include "agent/state.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define STAGGER_NS     250000000u
#define PAUSE_NS       20000000u  /* before the addresses are tried again; doubled each time, */
#define PAUSE_MOST_NS  640000000u /* up to this */
#define ROUNDS_DOUBLED 5u
/* Of a dial for the agent itself, who tries again; of one round to another cluster, whatever that one finds: after a
 * link was down, a new connection is there sooner than one that the kernel repeats ever more seldom. */
#define ROUND_NS         4000000000u
#define DIALS_LIMIT      4096u
#define LOOPBACK_TRIES   4096 /* strangers that may be in the way */
#define LOOPBACK_WAIT_MS 200

struct dial;

struct attempt {
    struct tb_watch watch;
    struct dial *dial;
    struct tb_address address;
    bool greeted;   /* hello was sent */
    bool confirmed; /* confirm was sent */
    size_t have;    /* bytes of welcome or accepted */
    struct tb_hello hello;
    struct tb_welcome welcome;
    struct tb_accepted accepted;
};

struct dial {
    struct tb_list node;
    struct tb_agent *agent;
    struct tb_rank *rank; /* for whom; NULL: the agent itself, */
    bool asking;          /* who only wants to know whether he is there */
    bool wan_watch;       /* to another cluster */
    struct tb_proc to;
    enum tb_stream stream;
    uint32_t stripe;
    uint32_t host;
    bool calling;            /* the other side is to connect */
    bool called;             /* the other side has asked for it: nobody here waits for bad news */
    bool gone;               /* that process has ended */
    uint32_t started, count; /* attempts */
    uint32_t running;
    uint32_t rounds;         /* how often all addresses have been tried */
    bool worth_another;      /* some attempt of this round may succeed if it is repeated */
    bool cut;                /* some attempt of this round has met a link that is down */
    bool refused;            /* the right agent has said no */
    uint64_t since;          /* this round began */
    struct tb_timer pace;    /* the next attempt or round */
    struct tb_timer overdue; /* set once, whatever happens */
    char story[512];         /* why the attempts so far have failed */
    struct attempt *attempts;
};

static void start_next(struct dial *dial);
static void call_other_side(struct dial *dial);

static void end_dial(struct dial *dial)
{
    struct tb_agent *agent = dial->agent;
    for (uint32_t i = 0; i < dial->started; i++) {
        int socket = dial->attempts[i].watch.descriptor;
        if (socket >= 0) {
            tb_loop_unwatch(&agent->loop, &dial->attempts[i].watch);
            close(socket);
        }
    }
    tb_timer_clear(&dial->pace);
    tb_timer_clear(&dial->overdue);
    tb_list_remove(&dial->node);
    free(dial->attempts);
    free(dial);
}

static void give_up(struct dial *dial, int error)
{
    struct tb_agent *agent = dial->agent;
    char from[32] = "its agent", to[32] = "the agent";
    if (dial->rank != NULL)
        snprintf(from, sizeof from, "rank %u", dial->rank->rank);
    if (!(dial->to.index & TB_PROC_AGENT))
        snprintf(to, sizeof to, "rank %u", dial->to.index);
    error = dial->gone && dial->rank == NULL ? TB_ERR_CLOSED : error;
    tb_error(error, "host %s cannot connect %s to %s on host %s:%s", agent->host, from, to,
             agent->book.hosts[dial->host].name, dial->story);
    if (dial->asking)
        tb_wan_watch_lost(agent, dial->host, dial->since, dial->story);
    else if (!dial->called && dial->rank != NULL)
        tb_rank_port_connection(&agent->rank_port, dial->rank->local, dial->to, dial->stream, error, -1);
    else if (!dial->called)
        tb_forward_refused(agent, dial->to, dial->stream, dial->stripe, error);
    end_dial(dial);
}

/* Ends only by success, or if the other side answers that it cannot be. */
static bool is_steadfast(const struct dial *dial)
{
    return dial->wan_watch && !dial->called && (dial->rank != NULL || dial->asking);
}

/* What a link that is down looks like, where routers say so. */
static bool is_cut(const struct dial *dial, int error)
{
    return is_steadfast(dial) && (error == EHOSTUNREACH || error == ENETUNREACH || error == ETIMEDOUT ||
                                  error == EHOSTDOWN || error == ENETDOWN);
}

static void close_attempt(struct attempt *attempt)
{
    struct dial *dial = attempt->dial;
    int socket = attempt->watch.descriptor;
    if (socket >= 0) {
        tb_loop_unwatch(&dial->agent->loop, &attempt->watch);
        close(socket);
    }
    dial->running--;
}

/* Closed without a word, or busy: a flooded agent does that. It is asked again after a while; so is who cannot be
 * reached because of a link that is down. */
static void pause_dial(struct dial *dial)
{
    if (dial->cut)
        tb_wan_watch_lost(dial->agent, dial->host, dial->since, dial->story);
    uint64_t pause = dial->rounds < ROUNDS_DOUBLED ? PAUSE_NS << dial->rounds : PAUSE_MOST_NS;
    dial->rounds++;
    tb_timer_set(&dial->agent->loop, &dial->pace, pause);
}

/* May end the dial. */
static void end_attempt(struct attempt *attempt, bool worth_another, const char *why)
{
    struct dial *dial = attempt->dial;
    char text[80];
    close_attempt(attempt);
    tb_address_print(&attempt->address, text, sizeof text);
    size_t used = strlen(dial->story);
    snprintf(dial->story + used, sizeof dial->story - used, "%s %s: %s", used > 0 ? ";" : "", text, why);
    dial->worth_another = dial->worth_another || worth_another;
    if (dial->started < dial->count)
        start_next(dial);
    else if (dial->running == 0 && dial->worth_another && !dial->refused)
        pause_dial(dial);
    else if (dial->running == 0)
        give_up(dial, TB_ERR_PEER);
}

/* As above, when the kernel says why. */
static void fail_attempt(struct attempt *attempt, int error, bool worth_another)
{
    bool cut = is_cut(attempt->dial, error);
    attempt->dial->cut = attempt->dial->cut || cut;
    end_attempt(attempt, worth_another || cut, strerror(error));
}

/* The other agent has answered. The first one that does is it: two confirms would make two connections. */
static void confirm(struct attempt *attempt)
{
    struct dial *dial = attempt->dial;
    struct tb_agent *agent = dial->agent;
    struct tb_confirm confirm;
    int rc = tb_welcome_verify(&attempt->welcome, &agent->setup.key, &attempt->hello);
    if (rc == TB_OK && dial->wan_watch)
        tb_wan_watch_found(agent, dial->host);
    if (rc != TB_OK || attempt->welcome.status != TB_WELCOME_OK) {
        bool busy = rc == TB_OK && attempt->welcome.status == TB_WELCOME_BUSY;
        dial->gone = dial->gone || (rc == TB_OK && attempt->welcome.status == TB_WELCOME_NO_SUCH_PROCESS);
        dial->refused = dial->refused || (rc == TB_OK && !busy);
        end_attempt(attempt, busy,
                    rc == TB_ERR_FORBIDDEN                                         ? "is no agent of this job"
                    : rc != TB_OK || attempt->welcome.status == TB_WELCOME_VERSION ? "has another version of Tombolo"
                    : busy                                                         ? "is too busy"
                                                                                   : "that rank has ended");
        return;
    }
    if (dial->asking) {
        end_dial(dial);
        return;
    }
    for (uint32_t i = 0; i < dial->started; i++)
        if (&dial->attempts[i] != attempt && dial->attempts[i].watch.descriptor >= 0)
            close_attempt(&dial->attempts[i]);
    tb_timer_clear(&dial->pace);
    dial->started = dial->count;
    rc = tb_confirm_make(&confirm, &agent->setup.key, &attempt->hello, &attempt->welcome);
    if (rc != TB_OK || send(attempt->watch.descriptor, &confirm, sizeof confirm, MSG_NOSIGNAL | MSG_DONTWAIT) !=
                           (ssize_t)sizeof confirm) {
        end_attempt(attempt, true, "closed the connection");
        return;
    }
    attempt->confirmed = true;
    attempt->have = 0;
    if (dial->wan_watch && dial->rank != NULL)
        tb_wan_watch_prepare(attempt->watch.descriptor);
}

static void finish(struct attempt *attempt)
{
    struct dial *dial = attempt->dial;
    int socket = attempt->watch.descriptor;
    if (attempt->accepted.word != TB_ACCEPTED) {
        end_attempt(attempt, false, "does not speak as an agent should");
        return;
    }
    tb_loop_unwatch(&dial->agent->loop, &attempt->watch);
    struct tb_connected connected = {.proc = dial->to,
                                     .stream = dial->stream,
                                     .stripe = dial->stripe,
                                     .socket = socket,
                                     .dialed = true,
                                     .hello = &attempt->hello,
                                     .welcome = &attempt->welcome};
    if (dial->rank != NULL)
        tb_connect_give(dial->agent, dial->rank, dial->to, dial->stream, socket);
    else
        tb_forward_adopt(dial->agent, &connected);
    end_dial(dial);
}

static struct tb_proc self_of(const struct dial *dial)
{
    const struct tb_agent *agent = dial->agent;
    return dial->rank != NULL ? (struct tb_proc){agent->setup.job, dial->rank->rank} : tb_agent_proc(agent);
}

/* The connection is there (or not): say hello. */
static bool greet(struct attempt *attempt)
{
    struct dial *dial = attempt->dial;
    struct tb_agent *agent = dial->agent;
    int error = 0, on = 1;
    socklen_t length = sizeof error;
    getsockopt(attempt->watch.descriptor, SOL_SOCKET, SO_ERROR, &error, &length);
    if (error != 0) {
        fail_attempt(attempt, error, error == ECONNRESET);
        return false;
    }
    setsockopt(attempt->watch.descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    enum tb_stream stream = (enum tb_stream)(dial->stream | dial->stripe << TB_STREAM_STRIPE_SHIFT);
    uint32_t features = dial->rank == NULL && !dial->asking ? tb_codec_features(agent, dial->to) : 0;
    if (tb_hello_make(&attempt->hello, &agent->setup.key, self_of(dial), dial->to, stream) != TB_OK ||
        tb_hello_offer(&attempt->hello, &agent->setup.key, features) != TB_OK) {
        char why[256];
        snprintf(why, sizeof why, "%s", tb_error_story());
        end_attempt(attempt, false, why);
        return false;
    }
    uint8_t bytes[sizeof attempt->hello];
    tb_wire_put_hello(bytes, &attempt->hello);
    if (send(attempt->watch.descriptor, bytes, sizeof bytes, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)sizeof bytes) {
        end_attempt(attempt, true, "closed the connection");
        return false;
    }
    attempt->greeted = true;
    tb_loop_change(&agent->loop, &attempt->watch, EPOLLIN);
    return true;
}

/* Reads what is still missing of `size` bytes and not a byte more. True: all is there. Otherwise the attempt may be
 * over. */
static bool read_exactly(struct attempt *attempt, void *to, size_t size)
{
    int rc = tb_receive_exactly(attempt->watch.descriptor, to, size, &attempt->have);
    if (rc == TB_ERR_CLOSED)
        end_attempt(attempt, true,
                    "closed the connection without a word: no agent of this job, or it did not accept the job key");
    else if (rc == TB_ERR_SYSTEM)
        fail_attempt(attempt, errno, errno == ECONNRESET);
    return rc == TB_OK;
}

static void attempt_ready(struct tb_watch *watch, uint32_t events)
{
    struct attempt *attempt = TB_CONTAINER(watch, struct attempt, watch);
    if (!attempt->greeted && !greet(attempt))
        return;
    if (!attempt->confirmed) {
        if (read_exactly(attempt, &attempt->welcome, sizeof attempt->welcome)) {
            tb_wire_get_welcome(&attempt->welcome, &attempt->welcome);
            confirm(attempt);
        }
        return;
    }
    if (read_exactly(attempt, &attempt->accepted, sizeof attempt->accepted))
        finish(attempt);
}

static void start_next(struct dial *dial)
{
    struct tb_agent *agent = dial->agent;
    struct attempt *attempt = &dial->attempts[dial->started++];
    *attempt = (struct attempt){.dial = dial, .address = attempt->address, .watch.descriptor = -1};
    dial->running++;
    struct sockaddr_storage name;
    socklen_t length = tb_address_socket(&attempt->address, &name);
    int fd = socket(name.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        end_attempt(attempt, errno == EMFILE || errno == ENFILE, strerror(errno));
        return;
    }
    if (connect(fd, (struct sockaddr *)&name, length) < 0 && errno != EINPROGRESS) {
        int error = errno;
        close(fd);
        fail_attempt(attempt, error, false);
        return;
    }
    if (tb_loop_watch(&agent->loop, &attempt->watch, fd, EPOLLOUT, attempt_ready) != TB_OK) {
        close(fd);
        end_attempt(attempt, false, "cannot be waited for");
        return;
    }
    if (dial->started < dial->count)
        tb_timer_set(&agent->loop, &dial->pace, STAGGER_NS);
}

static uint64_t patience_of(const struct dial *dial)
{
    bool own = dial->rank == NULL && tb_param.connect_timeout > ROUND_NS;
    return own || dial->wan_watch ? ROUND_NS : tb_param.connect_timeout;
}

static void begin_round(struct dial *dial)
{
    dial->started = 0;
    dial->worth_another = dial->cut = false;
    dial->story[0] = 0;
    dial->since = tb_clock_now_real();
    if (is_steadfast(dial))
        tb_timer_set(&dial->agent->loop, &dial->overdue, patience_of(dial));
    start_next(dial);
}

/* The next address; or, when all have been tried and are worth it, the first one again. */
static void dial_next(struct tb_timer *timer)
{
    struct dial *dial = TB_CONTAINER(timer, struct dial, pace);
    if (dial->started == dial->count && dial->running == 0)
        begin_round(dial);
    else if (dial->started < dial->count)
        start_next(dial);
}

static bool is_confirmed(const struct dial *dial)
{
    for (uint32_t i = 0; i < dial->started; i++)
        if (dial->attempts[i].confirmed && dial->attempts[i].watch.descriptor >= 0)
            return true;
    return false;
}

/* Nobody has answered in this round. */
static void try_again(struct dial *dial)
{
    tb_timer_set(&dial->agent->loop, &dial->overdue, patience_of(dial));
    if (is_confirmed(dial)) {
        /* Not given up: the rank over there may be using the connection already. */
        dial->story[0] = 0;
        tb_connect_ask_agent(dial->agent, dial->host);
        return;
    }
    tb_wan_watch_lost(dial->agent, dial->host, dial->since, dial->story);
    if (dial->calling) {
        dial->story[0] = 0;
        dial->since = tb_clock_now_real();
        call_other_side(dial);
        return;
    }
    for (uint32_t i = 0; i < dial->started; i++)
        if (dial->attempts[i].watch.descriptor >= 0)
            close_attempt(&dial->attempts[i]);
    tb_timer_clear(&dial->pace);
    begin_round(dial);
}

static void dial_overdue(struct tb_timer *timer)
{
    struct dial *dial = TB_CONTAINER(timer, struct dial, overdue);
    size_t used = strlen(dial->story);
    const char *advice = "; is a firewall between the hosts? (--set ports=LOW-HIGH chooses the ports)";
    snprintf(dial->story + used, sizeof dial->story - used, "%s no answer within %.10g s%s", used > 0 ? ";" : "",
             (double)patience_of(dial) / 1e9, dial->asking ? "" : advice);
    if (is_steadfast(dial) && !dial->refused) {
        try_again(dial);
    } else if (dial->called && dial->wan_watch && dial->rank != NULL && is_confirmed(dial)) {
        dial->story[0] = 0; /* as there: who has called may be using it already */
        tb_timer_set(&dial->agent->loop, timer, patience_of(dial));
    } else {
        give_up(dial, TB_ERR_TIMEOUT);
    }
}

/* ---- which addresses, and in which order
 * ------------------------------------------------------------------------------ */

static bool same_subnet(const struct tb_address *a, const struct tb_address *b)
{
    if (a->family != b->family)
        return false;
    unsigned bits = a->prefix < b->prefix ? a->prefix : b->prefix;
    for (unsigned i = 0; i < bits; i++)
        if (((a->bytes[i / 8] ^ b->bytes[i / 8]) >> (7 - i % 8)) & 1)
            return false;
    return bits > 0;
}

static bool is_near(const struct tb_agent *agent, const struct tb_address *address)
{
    for (uint32_t i = 0; i < agent->address_count; i++)
        if (same_subnet(&agent->addresses[i], address))
            return true;
    return false;
}

/* Link-local addresses need the number of our own interface, not of theirs. */
void tb_address_fix_scope(const struct tb_agent *agent, struct tb_address *address)
{
    for (uint32_t i = 0; address->scope != 0 && i < agent->address_count; i++)
        if (agent->addresses[i].scope != 0) {
            address->scope = agent->addresses[i].scope;
            return;
        }
}

static int list_attempts(struct dial *dial)
{
    struct tb_agent *agent = dial->agent;
    const struct tb_host *host = &agent->book.hosts[dial->host];
    if (host->address_count == 0)
        return tb_error(TB_ERR_PEER, "host %s has told no address", host->name);
    dial->attempts = calloc(host->address_count, sizeof *dial->attempts);
    if (dial->attempts == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for a connection");
    for (int far = 0; far <= 1; far++)
        for (uint32_t i = 0; i < host->address_count; i++)
            if (is_near(agent, &host->addresses[i]) == !far) {
                struct attempt *attempt = &dial->attempts[dial->count++];
                attempt->dial = dial;
                attempt->address = host->addresses[i];
                attempt->watch.descriptor = -1;
                tb_address_fix_scope(agent, &attempt->address);
            }
    return TB_OK;
}

/* Only the other side can connect: the launcher tells it to. */
static void call_other_side(struct dial *dial)
{
    struct tb_proc self = self_of(dial);
    struct tb_writer *w = tb_control_stream_begin(&dial->agent->uplink.stream, TB_CONTROL_CALL);
    dial->calling = true;
    tb_put_u32(w, dial->host);
    tb_put_u32(w, dial->to.job);
    tb_put_u32(w, dial->to.index);
    tb_put_u32(w, self.job);
    tb_put_u32(w, self.index);
    tb_put_u32(w, dial->stream | dial->stripe << TB_STREAM_STRIPE_SHIFT);
    tb_control_stream_end(&dial->agent->uplink.stream);
}

/* `wish` says for whom, to whom, and which stream. */
static int send_dial(struct tb_agent *agent, const struct dial *wish)
{
    uint32_t running = 0;
    const struct tb_host_route *route = tb_host_routes_to(&agent->routes, &agent->book, wish->host);
    for (const struct tb_list *l = agent->dials.next; l != &agent->dials; l = l->next)
        running++;
    if (running >= DIALS_LIMIT)
        return tb_error(TB_ERR_LIMIT, "host %s is making too many connections at once", agent->host);
    if (!wish->called && route->means != TB_HOST_ROUTE_DIRECT && route->means != TB_HOST_ROUTE_CALLED)
        return tb_error(TB_ERR_PEER, "host %s has no direct way to host %s", agent->host,
                        agent->book.hosts[wish->host].name);
    struct dial *dial = calloc(1, sizeof *dial);
    if (dial == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for a connection");
    *dial = *wish;
    dial->agent = agent;
    dial->wan_watch = tb_wan_watch_is(agent, wish->host);
    dial->since = tb_clock_now_real();
    tb_timer_init(&dial->pace, dial_next);
    tb_timer_init(&dial->overdue, dial_overdue);
    bool call = !wish->called && route->means == TB_HOST_ROUTE_CALLED;
    int rc = call ? TB_OK : list_attempts(dial);
    if (rc != TB_OK) {
        free(dial->attempts);
        free(dial);
        return rc;
    }
    tb_list_append(&agent->dials, &dial->node);
    tb_timer_set(&agent->loop, &dial->overdue, patience_of(dial));
    if (call)
        call_other_side(dial);
    else
        start_next(dial);
    return TB_OK;
}

/* The host of a process of this job. */
static int find_host(const struct tb_agent *agent, struct tb_proc proc, uint32_t *host)
{
    bool is_agent = (proc.index & TB_PROC_AGENT) != 0;
    *host = proc.index & ~TB_PROC_AGENT;
    if (proc.job != agent->setup.job || *host >= (is_agent ? agent->book.host_count : agent->book.ranks))
        return tb_error(TB_ERR_PEER, "there is no %s %u in this job", is_agent ? "host" : "rank", *host);
    if (!is_agent)
        *host = tb_address_book_host_of(&agent->book, proc.index);
    return TB_OK;
}

void tb_connect_arrived(struct tb_agent *agent, struct tb_rank *rank, struct tb_proc from, enum tb_stream stream,
                        uint32_t stripe)
{
    struct dial *dial;
    TB_LIST_EACH (dial, &agent->dials, struct dial, node)
        if (dial->calling && dial->rank == rank && dial->to.index == from.index && dial->stream == stream &&
            dial->stripe == stripe) {
            if (dial->wan_watch)
                tb_wan_watch_found(agent, dial->host);
            end_dial(dial);
        }
}

void tb_connect_give(struct tb_agent *agent, struct tb_rank *rank, struct tb_proc from, enum tb_stream stream,
                     int socket)
{
    uint32_t host;
    bool of_rank = (from.index & TB_PROC_AGENT) == 0; /* agents look after their connections themselves */
    if (of_rank && find_host(agent, from, &host) == TB_OK && tb_wan_watch_is(agent, host))
        tb_wan_watch_watch(agent, rank, host, socket);
    tb_rank_port_connection(&agent->rank_port, rank->local, from, stream, TB_OK, socket);
}

void tb_connect_forget(struct tb_agent *agent, const struct tb_rank *rank)
{
    struct dial *dial;
    TB_LIST_EACH (dial, &agent->dials, struct dial, node)
        if (dial->rank == rank)
            end_dial(dial);
    tb_wan_watch_forget(agent, rank);
}

static struct dial *find_agent_dial(const struct tb_agent *agent, uint32_t host)
{
    struct dial *dial;
    TB_LIST_EACH (dial, &agent->dials, struct dial, node)
        if (dial->asking && dial->host == host)
            return dial;
    return NULL;
}

void tb_connect_ask_agent(struct tb_agent *agent, uint32_t host)
{
    if (find_agent_dial(agent, host) != NULL)
        return;
    bool call = tb_host_routes_to(&agent->routes, &agent->book, host)->means == TB_HOST_ROUTE_CALLED;
    struct dial wish = {.asking = true,
                        .to = {agent->setup.job, TB_PROC_AGENT | host},
                        .stream = call ? TB_STREAM_SHORT : (enum tb_stream)TB_STREAM_PROBE,
                        .host = host};
    if (send_dial(agent, &wish) != TB_OK)
        tb_wan_watch_lost(agent, host, tb_clock_now_real(), tb_error_story());
}

void tb_connect_ask_no_more(struct tb_agent *agent, uint32_t host)
{
    struct dial *dial = find_agent_dial(agent, host);
    if (dial != NULL)
        end_dial(dial);
}

bool tb_connect_is_waited_for(const struct tb_agent *agent, uint32_t host)
{
    const struct dial *dial;
    TB_LIST_EACH (dial, &agent->dials, struct dial, node)
        if (dial->rank != NULL && dial->host == host && is_steadfast(dial))
            return true;
    return false;
}

void tb_connect_stop(struct tb_agent *agent)
{
    struct dial *dial;
    TB_LIST_EACH (dial, &agent->dials, struct dial, node)
        if (dial->rank == NULL)
            end_dial(dial);
}

/* ---- between processes of this host
 * ----------------------------------------------------------------------------------------- */

static int open_loopback(struct tb_agent *agent)
{
    struct tb_address address = {.family = 4, .bytes = {127, 0, 0, 1}};
    struct sockaddr_storage name;
    socklen_t length = tb_address_socket(&address, &name);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&name, length) < 0 || listen(fd, SOMAXCONN) < 0) {
        int rc = tb_error_errno("cannot listen on 127.0.0.1");
        if (fd >= 0)
            close(fd);
        return rc;
    }
    agent->loopback = fd;
    return TB_OK;
}

/* Accepts until the caller has this name. Who else connects to our port is recognised by his own, and closed. -1: errno
 * says why. */
static int accept_from(int listener, const struct sockaddr_in *caller)
{
    for (int i = 0; i < LOOPBACK_TRIES;) {
        struct sockaddr_in theirs = {0};
        socklen_t length = sizeof theirs;
        int fd = accept4(listener, (struct sockaddr *)&theirs, &length, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0 && errno == EAGAIN) {
            struct pollfd wait = {.fd = listener, .events = POLLIN};
            if (poll(&wait, 1, LOOPBACK_WAIT_MS) > 0)
                continue;
            errno = ETIMEDOUT;
            return -1;
        }
        if (fd < 0 && errno != EINTR && errno != ECONNABORTED)
            return -1;
        if (fd < 0)
            continue;
        if (theirs.sin_port == caller->sin_port && theirs.sin_addr.s_addr == caller->sin_addr.s_addr)
            return fd;
        close(fd);
        i++;
    }
    errno = EBUSY;
    return -1;
}

/* Both ends of a TCP connection of ours. */
static int make_pair(struct tb_agent *agent, int pair[2])
{
    int rc = agent->loopback >= 0 ? TB_OK : open_loopback(agent);
    if (rc != TB_OK)
        return rc;
    struct sockaddr_in name = {0}, ours = {0};
    socklen_t length = sizeof name;
    getsockname(agent->loopback, (struct sockaddr *)&name, &length);
    /* Whoever waits there already is a stranger, and would fill the queue. */
    int stranger;
    for (int i = 0; i < LOOPBACK_TRIES && (stranger = accept4(agent->loopback, NULL, NULL, SOCK_CLOEXEC)) >= 0; i++)
        close(stranger);
    pair[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    length = sizeof ours;
    if (pair[0] >= 0 && (connect(pair[0], (struct sockaddr *)&name, sizeof name) == 0 || errno == EINPROGRESS) &&
        getsockname(pair[0], (struct sockaddr *)&ours, &length) == 0)
        pair[1] = accept_from(agent->loopback, &ours);
    if (pair[1] < 0) {
        rc = tb_error_errno("cannot connect two ranks of host %s over TCP", agent->host);
        if (pair[0] >= 0)
            close(pair[0]);
        return rc;
    }
    int on = 1;
    for (int k = 0; k < 2; k++)
        setsockopt(pair[k], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return TB_OK;
}

/* Between two processes of this host; one of them may be the agent: NULL. */
static int connect_here(struct tb_agent *agent, struct tb_rank *rank, struct tb_proc to, enum tb_stream stream)
{
    bool to_agent = to.index == tb_agent_proc(agent).index;
    struct tb_rank *other = to_agent ? NULL : tb_ranks_find(&agent->ranks, to.index);
    if (!to_agent && (other == NULL || other->ended))
        return tb_error(rank == NULL ? TB_ERR_CLOSED : TB_ERR_PEER, "rank %u on host %s has ended", to.index,
                        agent->host);
    int pair[2] = {-1, -1};
    int rc = make_pair(agent, pair);
    if (rc != TB_OK)
        return rc;
    struct tb_rank *sides[2] = {rank, other};
    struct tb_proc self = rank != NULL ? (struct tb_proc){to.job, rank->rank} : tb_agent_proc(agent);
    struct tb_proc procs[2] = {to, self};
    for (int k = 0; k < 2; k++) {
        struct tb_connected connected = {.proc = procs[k], .stream = stream, .socket = pair[k], .dialed = rank == NULL};
        if (sides[k] != NULL)
            tb_rank_port_connection(&agent->rank_port, sides[k]->local, procs[k], stream, TB_OK, pair[k]);
        else
            tb_forward_adopt(agent, &connected);
    }
    return TB_OK;
}

int tb_connect_open(struct tb_agent *agent, struct tb_rank *rank, struct tb_proc to, enum tb_stream stream,
                    uint32_t stripe)
{
    uint32_t host;
    int rc = find_host(agent, to, &host);
    if (rc != TB_OK)
        return rc;
    struct dial wish = {.rank = rank, .to = to, .stream = stream, .stripe = stripe, .host = host};
    return host == agent->setup.host ? connect_here(agent, rank, to, stream) : send_dial(agent, &wish);
}

void tb_connect_ask(struct tb_agent *agent, struct tb_rank *rank, struct tb_proc to, enum tb_stream stream)
{
    int rc = tb_connect_open(agent, rank, to, stream, 0);
    if (rc != TB_OK)
        tb_rank_port_connection(&agent->rank_port, rank->local, to, stream, rc, -1);
}

void tb_connect_called(struct tb_agent *agent, struct tb_reader *r)
{
    struct tb_proc here, there;
    uint32_t host = tb_get_u32(r);
    here.job = tb_get_u32(r);
    here.index = tb_get_u32(r);
    there.job = tb_get_u32(r);
    there.index = tb_get_u32(r);
    uint32_t stream = tb_get_u32(r), far = 0;
    if (tb_reader_end(r) != TB_OK || host != agent->setup.host || agent->phase != TB_AGENT_RUNNING)
        return;
    bool for_agent = here.index == tb_agent_proc(agent).index;
    struct dial wish = {.to = there,
                        .rank = for_agent ? NULL : tb_ranks_find(&agent->ranks, here.index),
                        .stream = (enum tb_stream)(stream & TB_STREAM_MASK),
                        .stripe = stream >> TB_STREAM_STRIPE_SHIFT,
                        .called = true};
    int rc = find_host(agent, there, &far);
    wish.host = far;
    if (rc == TB_OK && (wish.stream >= TB_STREAM_COUNT || wish.stripe >= TB_HOP_PEER_STRIPES || far == host ||
                        (!for_agent && (wish.rank == NULL || wish.rank->ended))))
        rc = tb_error(TB_ERR_PROTOCOL, "a call for a connection that makes no sense");
    if (rc == TB_OK)
        rc = send_dial(agent, &wish);
    if (rc != TB_OK)
        tb_log(TB_LOG_INFO, "agent", "called for a connection, in vain: %s", tb_error_story());
}
