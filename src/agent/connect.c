/* Connections to processes of other hosts, made for ranks of this one or for the agent itself. An errand tries the
 * addresses of the other agent, likely ones first, a little apart but side by side; the first that proves the key is
 * it. Where only the other side can connect, it is called through the launcher, and the errand waits for it.
 *
 * An errand for a rank to another cluster goes on for as long as the link may be down; how long that is, crossing.c
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
/* Of an errand for the agent itself, who tries again; of one round to another cluster, whatever that one finds: after a
 * link was down, a new connection is there sooner than one that the kernel repeats ever more seldom. */
#define ROUND_NS         4000000000u
#define ERRANDS_LIMIT    4096u
#define LOOPBACK_TRIES   4096 /* strangers that may be in the way */
#define LOOPBACK_WAIT_MS 200

struct errand;

struct attempt {
    struct tb_watch watch;
    struct errand *errand;
    struct tb_address address;
    bool greeted;   /* hello was sent */
    bool confirmed; /* confirm was sent */
    size_t have;    /* bytes of welcome or accepted */
    struct tb_hello hello;
    struct tb_welcome welcome;
    struct tb_accepted accepted;
};

struct errand {
    struct tb_list node;
    struct tb_agent *agent;
    struct tb_rank *rank; /* for whom; NULL: the agent itself, */
    bool asking;          /* who only wants to know whether he is there */
    bool crossing;        /* to another cluster */
    struct tb_proc to;
    enum tb_stream stream;
    uint32_t lane;
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

static void start_next(struct errand *errand);
static void call_other_side(struct errand *errand);

static void end_errand(struct errand *errand)
{
    struct tb_agent *agent = errand->agent;
    for (uint32_t i = 0; i < errand->started; i++) {
        int socket = errand->attempts[i].watch.descriptor;
        if (socket >= 0) {
            tb_loop_unwatch(&agent->loop, &errand->attempts[i].watch);
            close(socket);
        }
    }
    tb_timer_clear(&errand->pace);
    tb_timer_clear(&errand->overdue);
    tb_list_remove(&errand->node);
    free(errand->attempts);
    free(errand);
}

static void give_up(struct errand *errand, int error)
{
    struct tb_agent *agent = errand->agent;
    char from[32] = "its agent", to[32] = "the agent";
    if (errand->rank != NULL)
        snprintf(from, sizeof from, "rank %u", errand->rank->rank);
    if (!(errand->to.index & TB_PROC_AGENT))
        snprintf(to, sizeof to, "rank %u", errand->to.index);
    error = errand->gone && errand->rank == NULL ? TB_ERR_CLOSED : error;
    tb_error(error, "host %s cannot connect %s to %s on host %s:%s", agent->host, from, to,
             agent->book.hosts[errand->host].name, errand->story);
    if (errand->asking)
        tb_crossing_lost(agent, errand->host, errand->since, errand->story);
    else if (!errand->called && errand->rank != NULL)
        tb_desk_connection(errand->rank, errand->to, errand->stream, error, -1);
    else if (!errand->called)
        tb_forward_refused(agent, errand->to, errand->stream, errand->lane, error);
    end_errand(errand);
}

/* Ends only by success, or if the other side answers that it cannot be. */
static bool is_steadfast(const struct errand *errand)
{
    return errand->crossing && !errand->called && (errand->rank != NULL || errand->asking);
}

/* What a link that is down looks like, where routers say so. */
static bool is_cut(const struct errand *errand, int error)
{
    return is_steadfast(errand) && (error == EHOSTUNREACH || error == ENETUNREACH || error == ETIMEDOUT ||
                                    error == EHOSTDOWN || error == ENETDOWN);
}

static void close_attempt(struct attempt *attempt)
{
    struct errand *errand = attempt->errand;
    int socket = attempt->watch.descriptor;
    if (socket >= 0) {
        tb_loop_unwatch(&errand->agent->loop, &attempt->watch);
        close(socket);
    }
    errand->running--;
}

/* Closed without a word, or busy: a flooded agent does that. It is asked again after a while; so is who cannot be
 * reached because of a link that is down. */
static void pause_errand(struct errand *errand)
{
    if (errand->cut)
        tb_crossing_lost(errand->agent, errand->host, errand->since, errand->story);
    uint64_t pause = errand->rounds < ROUNDS_DOUBLED ? PAUSE_NS << errand->rounds : PAUSE_MOST_NS;
    errand->rounds++;
    tb_timer_set(&errand->agent->loop, &errand->pace, pause);
}

/* May end the errand. */
static void end_attempt(struct attempt *attempt, bool worth_another, const char *why)
{
    struct errand *errand = attempt->errand;
    char text[80];
    close_attempt(attempt);
    tb_address_print(&attempt->address, text, sizeof text);
    size_t used = strlen(errand->story);
    snprintf(errand->story + used, sizeof errand->story - used, "%s %s: %s", used > 0 ? ";" : "", text, why);
    errand->worth_another = errand->worth_another || worth_another;
    if (errand->started < errand->count)
        start_next(errand);
    else if (errand->running == 0 && errand->worth_another && !errand->refused)
        pause_errand(errand);
    else if (errand->running == 0)
        give_up(errand, TB_ERR_PEER);
}

/* As above, when the kernel says why. */
static void fail_attempt(struct attempt *attempt, int error, bool worth_another)
{
    bool cut = is_cut(attempt->errand, error);
    attempt->errand->cut = attempt->errand->cut || cut;
    end_attempt(attempt, worth_another || cut, strerror(error));
}

/* The other agent has answered. The first one that does is it: two confirms would make two connections. */
static void confirm(struct attempt *attempt)
{
    struct errand *errand = attempt->errand;
    struct tb_agent *agent = errand->agent;
    struct tb_confirm confirm;
    int rc = tb_welcome_verify(&attempt->welcome, &agent->setup.key, &attempt->hello);
    if (rc == TB_OK && errand->crossing)
        tb_crossing_found(agent, errand->host);
    if (rc != TB_OK || attempt->welcome.status != TB_WELCOME_OK) {
        bool busy = rc == TB_OK && attempt->welcome.status == TB_WELCOME_BUSY;
        errand->gone = errand->gone || (rc == TB_OK && attempt->welcome.status == TB_WELCOME_NO_SUCH_PROCESS);
        errand->refused = errand->refused || (rc == TB_OK && !busy);
        end_attempt(attempt, busy,
                    rc == TB_ERR_FORBIDDEN                                         ? "is no agent of this job"
                    : rc != TB_OK || attempt->welcome.status == TB_WELCOME_VERSION ? "has another version of Tombolo"
                    : busy                                                         ? "is too busy"
                                                                                   : "that rank has ended");
        return;
    }
    if (errand->asking) {
        end_errand(errand);
        return;
    }
    for (uint32_t i = 0; i < errand->started; i++)
        if (&errand->attempts[i] != attempt && errand->attempts[i].watch.descriptor >= 0)
            close_attempt(&errand->attempts[i]);
    tb_timer_clear(&errand->pace);
    errand->started = errand->count;
    rc = tb_confirm_make(&confirm, &agent->setup.key, &attempt->hello, &attempt->welcome);
    if (rc != TB_OK || send(attempt->watch.descriptor, &confirm, sizeof confirm, MSG_NOSIGNAL | MSG_DONTWAIT) !=
                           (ssize_t)sizeof confirm) {
        end_attempt(attempt, true, "closed the connection");
        return;
    }
    attempt->confirmed = true;
    attempt->have = 0;
    if (errand->crossing && errand->rank != NULL)
        tb_crossing_prepare(attempt->watch.descriptor);
}

static void finish(struct attempt *attempt)
{
    struct errand *errand = attempt->errand;
    int socket = attempt->watch.descriptor;
    if (attempt->accepted.word != TB_ACCEPTED) {
        end_attempt(attempt, false, "does not speak as an agent should");
        return;
    }
    tb_loop_unwatch(&errand->agent->loop, &attempt->watch);
    struct tb_connected connected = {.proc = errand->to,
                                     .stream = errand->stream,
                                     .lane = errand->lane,
                                     .socket = socket,
                                     .dialed = true,
                                     .hello = &attempt->hello,
                                     .welcome = &attempt->welcome};
    if (errand->rank != NULL)
        tb_connect_give(errand->rank, errand->to, errand->stream, socket);
    else
        tb_forward_adopt(errand->agent, &connected);
    end_errand(errand);
}

static struct tb_proc self_of(const struct errand *errand)
{
    const struct tb_agent *agent = errand->agent;
    return errand->rank != NULL ? (struct tb_proc){agent->setup.job, errand->rank->rank} : tb_agent_proc(agent);
}

/* The connection is there (or not): say hello. */
static bool greet(struct attempt *attempt)
{
    struct errand *errand = attempt->errand;
    struct tb_agent *agent = errand->agent;
    int error = 0, on = 1;
    socklen_t length = sizeof error;
    getsockopt(attempt->watch.descriptor, SOL_SOCKET, SO_ERROR, &error, &length);
    if (error != 0) {
        fail_attempt(attempt, error, error == ECONNRESET);
        return false;
    }
    setsockopt(attempt->watch.descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    enum tb_stream stream = (enum tb_stream)(errand->stream | errand->lane << TB_STREAM_LANE_SHIFT);
    uint32_t features = errand->rank == NULL && !errand->asking ? tb_codec_features(agent, errand->to) : 0;
    if (tb_hello_make(&attempt->hello, &agent->setup.key, self_of(errand), errand->to, stream) != TB_OK ||
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

static void start_next(struct errand *errand)
{
    struct tb_agent *agent = errand->agent;
    struct attempt *attempt = &errand->attempts[errand->started++];
    *attempt = (struct attempt){.errand = errand, .address = attempt->address, .watch.descriptor = -1};
    errand->running++;
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
    if (errand->started < errand->count)
        tb_timer_set(&agent->loop, &errand->pace, STAGGER_NS);
}

static uint64_t patience_of(const struct errand *errand)
{
    bool own = errand->rank == NULL && tb_param.connect_timeout > ROUND_NS;
    return own || errand->crossing ? ROUND_NS : tb_param.connect_timeout;
}

static void begin_round(struct errand *errand)
{
    errand->started = 0;
    errand->worth_another = errand->cut = false;
    errand->story[0] = 0;
    errand->since = tb_clock_now_real();
    if (is_steadfast(errand))
        tb_timer_set(&errand->agent->loop, &errand->overdue, patience_of(errand));
    start_next(errand);
}

/* The next address; or, when all have been tried and are worth it, the first one again. */
static void errand_next(struct tb_timer *timer)
{
    struct errand *errand = TB_CONTAINER(timer, struct errand, pace);
    if (errand->started == errand->count && errand->running == 0)
        begin_round(errand);
    else if (errand->started < errand->count)
        start_next(errand);
}

static bool is_confirmed(const struct errand *errand)
{
    for (uint32_t i = 0; i < errand->started; i++)
        if (errand->attempts[i].confirmed && errand->attempts[i].watch.descriptor >= 0)
            return true;
    return false;
}

/* Nobody has answered in this round. */
static void try_again(struct errand *errand)
{
    tb_timer_set(&errand->agent->loop, &errand->overdue, patience_of(errand));
    if (is_confirmed(errand)) {
        /* Not given up: the rank over there may be using the connection already. */
        errand->story[0] = 0;
        tb_connect_ask_agent(errand->agent, errand->host);
        return;
    }
    tb_crossing_lost(errand->agent, errand->host, errand->since, errand->story);
    if (errand->calling) {
        errand->story[0] = 0;
        errand->since = tb_clock_now_real();
        call_other_side(errand);
        return;
    }
    for (uint32_t i = 0; i < errand->started; i++)
        if (errand->attempts[i].watch.descriptor >= 0)
            close_attempt(&errand->attempts[i]);
    tb_timer_clear(&errand->pace);
    begin_round(errand);
}

static void errand_overdue(struct tb_timer *timer)
{
    struct errand *errand = TB_CONTAINER(timer, struct errand, overdue);
    size_t used = strlen(errand->story);
    const char *advice = "; is a firewall between the hosts? (--set ports=LOW-HIGH chooses the ports)";
    snprintf(errand->story + used, sizeof errand->story - used, "%s no answer within %.10g s%s", used > 0 ? ";" : "",
             (double)patience_of(errand) / 1e9, errand->asking ? "" : advice);
    if (is_steadfast(errand) && !errand->refused) {
        try_again(errand);
    } else if (errand->called && errand->crossing && errand->rank != NULL && is_confirmed(errand)) {
        errand->story[0] = 0; /* as there: who has called may be using it already */
        tb_timer_set(&errand->agent->loop, timer, patience_of(errand));
    } else {
        give_up(errand, TB_ERR_TIMEOUT);
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

static int list_attempts(struct errand *errand)
{
    struct tb_agent *agent = errand->agent;
    const struct tb_host *host = &agent->book.hosts[errand->host];
    if (host->address_count == 0)
        return tb_error(TB_ERR_PEER, "host %s has told no address", host->name);
    errand->attempts = calloc(host->address_count, sizeof *errand->attempts);
    if (errand->attempts == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for a connection");
    for (int far = 0; far <= 1; far++)
        for (uint32_t i = 0; i < host->address_count; i++)
            if (is_near(agent, &host->addresses[i]) == !far) {
                struct attempt *attempt = &errand->attempts[errand->count++];
                attempt->errand = errand;
                attempt->address = host->addresses[i];
                attempt->watch.descriptor = -1;
                tb_address_fix_scope(agent, &attempt->address);
            }
    return TB_OK;
}

/* Only the other side can connect: the launcher tells it to. */
static void call_other_side(struct errand *errand)
{
    struct tb_proc self = self_of(errand);
    struct tb_writer *w = tb_pipe_begin(&errand->agent->pipe, TB_CONTROL_CALL);
    errand->calling = true;
    tb_put_u32(w, errand->host);
    tb_put_u32(w, errand->to.job);
    tb_put_u32(w, errand->to.index);
    tb_put_u32(w, self.job);
    tb_put_u32(w, self.index);
    tb_put_u32(w, errand->stream | errand->lane << TB_STREAM_LANE_SHIFT);
    tb_pipe_end(&errand->agent->pipe);
}

/* `wish` says for whom, to whom, and which stream. */
static int send_errand(struct tb_agent *agent, const struct errand *wish)
{
    uint32_t running = 0;
    const struct tb_way *way = tb_ways_to(&agent->ways, &agent->book, wish->host);
    for (const struct tb_list *l = agent->errands.next; l != &agent->errands; l = l->next)
        running++;
    if (running >= ERRANDS_LIMIT)
        return tb_error(TB_ERR_LIMIT, "host %s is making too many connections at once", agent->host);
    if (!wish->called && way->means != TB_WAY_DIRECT && way->means != TB_WAY_CALLED)
        return tb_error(TB_ERR_PEER, "host %s has no direct way to host %s", agent->host,
                        agent->book.hosts[wish->host].name);
    struct errand *errand = calloc(1, sizeof *errand);
    if (errand == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for a connection");
    *errand = *wish;
    errand->agent = agent;
    errand->crossing = tb_crossing_is(agent, wish->host);
    errand->since = tb_clock_now_real();
    tb_timer_init(&errand->pace, errand_next);
    tb_timer_init(&errand->overdue, errand_overdue);
    bool call = !wish->called && way->means == TB_WAY_CALLED;
    int rc = call ? TB_OK : list_attempts(errand);
    if (rc != TB_OK) {
        free(errand->attempts);
        free(errand);
        return rc;
    }
    tb_list_append(&agent->errands, &errand->node);
    tb_timer_set(&agent->loop, &errand->overdue, patience_of(errand));
    if (call)
        call_other_side(errand);
    else
        start_next(errand);
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
        *host = tb_book_host_of(&agent->book, proc.index);
    return TB_OK;
}

void tb_connect_arrived(struct tb_agent *agent, struct tb_rank *rank, struct tb_proc from, enum tb_stream stream,
                        uint32_t lane)
{
    struct errand *errand;
    TB_LIST_EACH (errand, &agent->errands, struct errand, node)
        if (errand->calling && errand->rank == rank && errand->to.index == from.index && errand->stream == stream &&
            errand->lane == lane) {
            if (errand->crossing)
                tb_crossing_found(agent, errand->host);
            end_errand(errand);
        }
}

void tb_connect_give(struct tb_rank *rank, struct tb_proc from, enum tb_stream stream, int socket)
{
    uint32_t host;
    bool of_rank = (from.index & TB_PROC_AGENT) == 0; /* agents look after their connections themselves */
    if (of_rank && find_host(rank->agent, from, &host) == TB_OK && tb_crossing_is(rank->agent, host))
        tb_crossing_watch(rank->agent, rank, host, socket);
    tb_desk_connection(rank, from, stream, TB_OK, socket);
}

void tb_connect_forget(struct tb_rank *rank)
{
    struct errand *errand;
    TB_LIST_EACH (errand, &rank->agent->errands, struct errand, node)
        if (errand->rank == rank)
            end_errand(errand);
    tb_crossing_forget(rank);
}

static struct errand *find_question(const struct tb_agent *agent, uint32_t host)
{
    struct errand *errand;
    TB_LIST_EACH (errand, &agent->errands, struct errand, node)
        if (errand->asking && errand->host == host)
            return errand;
    return NULL;
}

void tb_connect_ask_agent(struct tb_agent *agent, uint32_t host)
{
    if (find_question(agent, host) != NULL)
        return;
    bool call = tb_ways_to(&agent->ways, &agent->book, host)->means == TB_WAY_CALLED;
    struct errand wish = {.asking = true,
                          .to = {agent->setup.job, TB_PROC_AGENT | host},
                          .stream = call ? TB_STREAM_SHORT : (enum tb_stream)TB_STREAM_QUESTION,
                          .host = host};
    if (send_errand(agent, &wish) != TB_OK)
        tb_crossing_lost(agent, host, tb_clock_now_real(), tb_error_story());
}

void tb_connect_ask_no_more(struct tb_agent *agent, uint32_t host)
{
    struct errand *errand = find_question(agent, host);
    if (errand != NULL)
        end_errand(errand);
}

bool tb_connect_is_waited_for(const struct tb_agent *agent, uint32_t host)
{
    const struct errand *errand;
    TB_LIST_EACH (errand, &agent->errands, struct errand, node)
        if (errand->rank != NULL && errand->host == host && is_steadfast(errand))
            return true;
    return false;
}

void tb_connect_stop(struct tb_agent *agent)
{
    struct errand *errand;
    TB_LIST_EACH (errand, &agent->errands, struct errand, node)
        if (errand->rank == NULL)
            end_errand(errand);
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
    struct tb_rank *other = to_agent ? NULL : tb_ranks_find(agent, to.index);
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
            tb_desk_connection(sides[k], procs[k], stream, TB_OK, pair[k]);
        else
            tb_forward_adopt(agent, &connected);
    }
    return TB_OK;
}

int tb_connect_open(struct tb_agent *agent, struct tb_rank *rank, struct tb_proc to, enum tb_stream stream,
                    uint32_t lane)
{
    uint32_t host;
    int rc = find_host(agent, to, &host);
    if (rc != TB_OK)
        return rc;
    struct errand wish = {.rank = rank, .to = to, .stream = stream, .lane = lane, .host = host};
    return host == agent->setup.host ? connect_here(agent, rank, to, stream) : send_errand(agent, &wish);
}

void tb_connect_ask(struct tb_rank *rank, struct tb_proc to, enum tb_stream stream)
{
    int rc = tb_connect_open(rank->agent, rank, to, stream, 0);
    if (rc != TB_OK)
        tb_desk_connection(rank, to, stream, rc, -1);
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
    struct errand wish = {.to = there,
                          .rank = for_agent ? NULL : tb_ranks_find(agent, here.index),
                          .stream = (enum tb_stream)(stream & TB_STREAM_MASK),
                          .lane = stream >> TB_STREAM_LANE_SHIFT,
                          .called = true};
    int rc = find_host(agent, there, &far);
    wish.host = far;
    if (rc == TB_OK && (wish.stream >= TB_STREAM_COUNT || wish.lane >= TB_BUNDLE_LANES || far == host ||
                        (!for_agent && (wish.rank == NULL || wish.rank->ended))))
        rc = tb_error(TB_ERR_PROTOCOL, "a call for a connection that makes no sense");
    if (rc == TB_OK)
        rc = send_errand(agent, &wish);
    if (rc != TB_OK)
        tb_log(TB_LOG_INFO, "agent", "called for a connection, in vain: %s", tb_error_story());
}
