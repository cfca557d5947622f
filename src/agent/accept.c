/* Connections from other hosts. Whoever connects speaks first and must prove the job key; a stranger gets no answer and
 * at most one of few places, for a short time. */
#include "agent/state.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <unistd.h>

#define PATIENCE_NS 5000000000u
#define HURRY_NS    200000000u /* what a stranger gets when others wait for his place */
#define PAUSE_NS    100000000u
#define ACCEPT_MOST 16 /* at a time, so that a flood does not keep us from our ranks */

/* Those who have proved the key are of this job and cannot be more than its streams; only they get a place that nobody
 * else can take away. */
static bool is_crowded(const struct tb_agent *agent)
{
    uint64_t streams = (uint64_t)agent->book.ranks * TB_STREAM_COUNT;
    return agent->proved_count >= streams + (uint64_t)agent->book.host_count * TB_STREAM_COUNT * TB_HOP_PEER_STRIPES;
}

static void end_pending(struct tb_pending *pending, bool close_socket)
{
    struct tb_agent *agent = pending->agent;
    int socket = pending->watch.descriptor;
    tb_loop_unwatch(&agent->loop, &pending->watch);
    if (close_socket)
        close(socket);
    if (pending->welcomed)
        agent->proved_count--;
    else
        agent->unproved_count--;
    tb_list_remove(&pending->node);
    free(pending);
    tb_loop_change(&agent->loop, &agent->listener, EPOLLIN);
}

/* Is there whom the hello asks for? *rank is NULL for the agent itself. */
static bool find_destination(const struct tb_pending *pending, struct tb_rank **rank)
{
    struct tb_agent *agent = pending->agent;
    const struct tb_hello *hello = &pending->hello;
    uint32_t stream = hello->stream & TB_STREAM_MASK, stripe = hello->stream >> TB_STREAM_STRIPE_SHIFT;
    *rank = NULL;
    if ((hello->stream == TB_STREAM_CONTROL || hello->stream == TB_STREAM_PROBE) &&
        (hello->source.index & TB_PROC_AGENT) && hello->destination.job == agent->setup.job &&
        hello->destination.index == tb_agent_proc(agent).index)
        return true;
    if (hello->destination.job != agent->setup.job || stream >= TB_STREAM_COUNT || stripe >= TB_HOP_PEER_STRIPES)
        return false;
    if (hello->destination.index == tb_agent_proc(agent).index)
        return true;
    *rank = tb_ranks_find(&agent->ranks, hello->destination.index);
    return *rank != NULL && !(*rank)->ended && stripe == 0;
}

/* The hello is complete. TB_OK: welcome was sent. */
static int answer(struct tb_pending *pending)
{
    struct tb_agent *agent = pending->agent;
    int rc = tb_hello_verify(&pending->hello, &agent->setup.key);
    if (rc == TB_ERR_FORBIDDEN)
        return rc; /* not a byte for a stranger */
    uint32_t status = TB_WELCOME_OK;
    struct tb_rank *rank = NULL;
    if (rc != TB_OK)
        status = TB_WELCOME_VERSION;
    /* The others may have got the address book a moment before us. */
    bool question = pending->hello.stream == TB_STREAM_PROBE;
    if (status == TB_WELCOME_OK && !question && (agent->phase < TB_AGENT_RUNNING || is_crowded(agent)))
        status = TB_WELCOME_BUSY;
    else if (status == TB_WELCOME_OK && !find_destination(pending, &rank))
        status = TB_WELCOME_NO_SUCH_PROCESS;
    uint32_t features = 0;
    if (status == TB_WELCOME_OK && rank == NULL && !question && pending->hello.stream != TB_STREAM_CONTROL)
        features = pending->hello.features & tb_codec_features(agent, pending->hello.source);
    rc = tb_welcome_make(&pending->welcome, &agent->setup.key, &pending->hello, status);
    if (rc == TB_OK)
        rc = tb_welcome_grant(&pending->welcome, &agent->setup.key, &pending->hello, features);
    if (rc != TB_OK)
        return rc;
    uint8_t bytes[sizeof pending->welcome];
    tb_wire_put_welcome(bytes, &pending->welcome);
    ssize_t n = send(pending->watch.descriptor, bytes, sizeof bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n != (ssize_t)sizeof bytes || status != TB_WELCOME_OK || question)
        return TB_ERR_PEER; /* a new connection always has room for it */
    pending->welcomed = true;
    pending->have = 0;
    agent->unproved_count--;
    agent->proved_count++;
    tb_loop_change(&agent->loop, &agent->listener, EPOLLIN);
    return TB_OK;
}

/* The confirm was right: only now may the other side use the connection. */
static int accept_finally(struct tb_pending *pending)
{
    struct tb_accepted accepted = {TB_ACCEPTED};
    struct tb_rank *rank;
    if (!find_destination(pending, &rank))
        return TB_ERR_CLOSED; /* it ended meanwhile; whoever asks again is told so */
    ssize_t n = send(pending->watch.descriptor, &accepted, sizeof accepted, MSG_NOSIGNAL | MSG_DONTWAIT);
    return n == (ssize_t)sizeof accepted ? TB_OK : TB_ERR_CLOSED;
}

static void pending_ready(struct tb_watch *watch, uint32_t events)
{
    struct tb_pending *pending = TB_CONTAINER(watch, struct tb_pending, watch);
    struct tb_agent *agent = pending->agent;
    int rc = TB_OK;
    if (!pending->welcomed) {
        rc = tb_receive_exactly(watch->descriptor, &pending->hello, sizeof pending->hello, &pending->have);
        if (rc == TB_OK) {
            tb_wire_get_hello(&pending->hello, &pending->hello);
            rc = answer(pending);
        }
    }
    if (rc == TB_OK) {
        rc = tb_receive_exactly(watch->descriptor, &pending->confirm, sizeof pending->confirm, &pending->have);
        if (rc == TB_OK)
            rc = tb_confirm_verify(&pending->confirm, &agent->setup.key, &pending->hello, &pending->welcome);
        if (rc == TB_OK)
            rc = accept_finally(pending);
    }
    if (rc == TB_AGAIN)
        return;
    if (rc != TB_OK) {
        if (pending->hello.stream != TB_STREAM_PROBE)
            tb_log(TB_LOG_DEBUG, "agent", "an incoming connection was not accepted: %s", tb_error_name(rc));
        end_pending(pending, true);
        return;
    }
    struct tb_rank *rank;
    find_destination(pending, &rank);
    struct tb_hello hello = pending->hello;
    struct tb_welcome welcome = pending->welcome;
    struct tb_connected connected = {.proc = pending->hello.source,
                                     .stream = (enum tb_stream)(pending->hello.stream & TB_STREAM_MASK),
                                     .stripe = pending->hello.stream >> TB_STREAM_STRIPE_SHIFT,
                                     .socket = watch->descriptor,
                                     .hello = &hello,
                                     .welcome = &welcome};
    end_pending(pending, false);
    if (hello.stream == TB_STREAM_CONTROL) {
        tb_agent_adopt(agent, connected.proc, connected.socket);
        return;
    }
    tb_connect_arrived(agent, rank, connected.proc, connected.stream, connected.stripe);
    if (rank != NULL)
        tb_connect_give(agent, rank, connected.proc, connected.stream, connected.socket);
    else
        tb_forward_adopt(agent, &connected);
}

/* Makes room for one more who has proved nothing yet: the oldest of them has to go, but not before a friend would have
 * spoken. False: nobody can be let in for now; callers wait in the queue of the listener. */
static bool make_place(struct tb_agent *agent)
{
    if (agent->unproved_count < TB_AGENT_UNPROVED_LIMIT)
        return true;
    uint64_t now = tb_clock_now_real();
    struct tb_pending *pending;
    TB_LIST_EACH (pending, &agent->pending, struct tb_pending, node) {
        if (pending->welcomed)
            continue;
        uint64_t age = now - pending->since;
        if (age >= HURRY_NS) {
            end_pending(pending, true);
            return true;
        }
        tb_loop_change(&agent->loop, &agent->listener, 0);
        tb_timer_set(&agent->loop, &agent->patience, HURRY_NS - age);
        return false;
    }
    return false;
}

static bool take_in(struct tb_agent *agent, int socket)
{
    int on = 1;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    struct tb_pending *pending = calloc(1, sizeof *pending);
    if (pending == NULL)
        return false;
    pending->agent = agent;
    pending->since = tb_clock_now_real();
    if (tb_loop_watch(&agent->loop, &pending->watch, socket, EPOLLIN, pending_ready) != TB_OK) {
        free(pending);
        return false;
    }
    tb_list_append(&agent->pending, &pending->node);
    agent->unproved_count++;
    if (!tb_timer_is_set(&agent->patience))
        tb_timer_set(&agent->loop, &agent->patience, PATIENCE_NS);
    return true;
}

void tb_accept_ready(struct tb_watch *watch, uint32_t events)
{
    struct tb_agent *agent = TB_CONTAINER(watch, struct tb_agent, listener);
    for (int i = 0; i < ACCEPT_MOST && make_place(agent); i++) {
        int socket = accept4(watch->descriptor, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (socket < 0) {
            /* Without a free descriptor the caller stays in the queue and would wake us again and again. */
            if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
                tb_loop_change(&agent->loop, watch, 0);
                tb_timer_set(&agent->loop, &agent->patience, PAUSE_NS);
            }
            return;
        }
        if (!take_in(agent, socket)) {
            close(socket);
            return;
        }
    }
}

void tb_accept_expire(struct tb_timer *timer)
{
    struct tb_agent *agent = TB_CONTAINER(timer, struct tb_agent, patience);
    uint64_t now = tb_clock_now_real();
    struct tb_pending *pending;
    tb_loop_change(&agent->loop, &agent->listener, EPOLLIN);
    TB_LIST_EACH (pending, &agent->pending, struct tb_pending, node)
        if (now - pending->since >= PATIENCE_NS)
            end_pending(pending, true);
    if (!tb_list_empty(&agent->pending))
        tb_timer_set(&agent->loop, timer, PATIENCE_NS / 5);
}
