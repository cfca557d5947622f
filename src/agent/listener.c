#include "agent/listener.h"

#include "agent/codec.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <unistd.h>

#define PATIENCE_NS 5000000000u
#define HURRY_NS    200000000u /* what a stranger gets when others wait for his place */
#define PAUSE_NS    100000000u
#define ACCEPT_MOST 16 /* at a time, so that a flood does not keep us from our ranks */

/* A connection that is being proved by whoever opened it. */
struct tb_incoming {
    struct tb_list node;
    struct tb_watch watch;
    struct tb_listener *listener;
    uint64_t since;
    bool proved; /* its hello has proved the key */
    struct tb_handshake handshake;
};

/* Those who have proved the key are of this job and cannot be more than its streams; only they get a place that nobody
 * else can take away. */
static bool is_crowded(const struct tb_listener *listener)
{
    const struct tb_address_book *book = listener->member->book;
    uint64_t streams = (uint64_t)book->ranks * TB_STREAM_COUNT;
    return listener->proved_count >= streams + (uint64_t)book->host_count * TB_STREAM_COUNT * TB_STRIPES_LIMIT;
}

static void resume(struct tb_listener *listener)
{
    tb_loop_change(listener->member->loop, &listener->watch, EPOLLIN);
}

static void pause_for(struct tb_listener *listener, uint64_t time)
{
    tb_loop_change(listener->member->loop, &listener->watch, 0);
    tb_timer_set(listener->member->loop, &listener->patience, time);
}

/* Its socket is the caller's. */
static int end_incoming(struct tb_incoming *incoming)
{
    struct tb_listener *listener = incoming->listener;
    int socket = incoming->watch.descriptor;
    tb_loop_unwatch(listener->member->loop, &incoming->watch);
    if (incoming->proved)
        listener->proved_count--;
    else
        listener->unproved_count--;
    tb_list_remove(&incoming->node);
    free(incoming);
    resume(listener);
    return socket;
}

/* ---- one connection ---------------------------------------------------------------------------------------------- */

/* Is there whom the hello asks for? */
static bool has_destination(const struct tb_listener *listener, const struct tb_hello *hello)
{
    const struct tb_member *member = listener->member;
    uint32_t stream = hello->stream & TB_STREAM_MASK, stripe = hello->stream >> TB_STREAM_STRIPE_SHIFT;
    if (hello->destination.job != member->self.job)
        return false;
    bool for_agent = hello->destination.index == member->self.index;
    if (hello->stream == TB_STREAM_CONTROL && (hello->features & TB_FEATURE_TLS) == 0)
        return false; /* whoever can change packets would speak as the launcher */
    if (hello->stream == TB_STREAM_CONTROL || hello->stream == TB_STREAM_PROBE)
        return for_agent && tb_proc_is_agent(hello->source);
    if (stream >= TB_STREAM_COUNT || stripe >= TB_STRIPES_LIMIT)
        return false;
    return for_agent || (listener->events.has_rank(listener->events.context, hello->destination.index) && stripe == 0);
}

/* The hello proves the key: says yes or no. */
static int answer(struct tb_incoming *incoming)
{
    struct tb_listener *listener = incoming->listener;
    const struct tb_member *member = listener->member;
    const struct tb_hello *hello = &incoming->handshake.hello;
    bool probing = hello->stream == TB_STREAM_PROBE;
    enum tb_welcome_status status = TB_WELCOME_OK;
    /* The others may have got the address book a moment before us. */
    if (!probing && (member->book->host_count == 0 || is_crowded(listener)))
        status = TB_WELCOME_BUSY;
    else if (!has_destination(listener, hello))
        status = TB_WELCOME_NO_SUCH_PROCESS;
    uint32_t features = 0;
    if (hello->stream == TB_STREAM_CONTROL)
        features = TB_FEATURE_TLS; /* whatever gateway_tls says */
    else if (hello->destination.index == member->self.index && !probing)
        features = tb_codec_features(member, hello->source);
    features = status == TB_WELCOME_OK ? hello->features & features : 0;
    int rc = tb_handshake_answer(&incoming->handshake, status, features, probing);
    if (rc == TB_OK)
        rc = tb_handshake_socket_send(&incoming->handshake, incoming->watch.descriptor);
    if (rc != TB_OK || incoming->handshake.verdict != TB_HANDSHAKE_MORE)
        return TB_ERR_PEER; /* that was all */
    incoming->proved = true;
    listener->unproved_count--;
    listener->proved_count++;
    resume(listener);
    return TB_OK;
}

/* The confirm was right: only now may the other side use the connection. */
static int admit(struct tb_incoming *incoming)
{
    struct tb_handshake *h = &incoming->handshake;
    if (!has_destination(incoming->listener, &h->hello))
        return TB_ERR_CLOSED; /* it ended meanwhile; whoever asks again is told so */
    tb_handshake_admit(h);
    return tb_handshake_socket_send(h, incoming->watch.descriptor);
}

/* What has come is a new verdict. TB_OK: more is to come, or the connection is made. */
static int go_on(struct tb_incoming *incoming)
{
    struct tb_handshake *h = &incoming->handshake;
    switch (h->verdict) {
    case TB_HANDSHAKE_ASKED:
        return answer(incoming);
    case TB_HANDSHAKE_CONFIRMED:
        return admit(incoming);
    default:
        tb_handshake_socket_send(h,
                                 incoming->watch.descriptor); /* to whom proves the key, that we have another version */
        return h->error;
    }
}

static void incoming_ready(struct tb_watch *watch, uint32_t events)
{
    struct tb_incoming *incoming = TB_CONTAINER(watch, struct tb_incoming, watch);
    struct tb_listener *listener = incoming->listener;
    struct tb_handshake *h = &incoming->handshake;
    int rc;
    do {
        rc = tb_handshake_socket_receive(h, watch->descriptor);
        if (rc == TB_OK)
            rc = go_on(incoming);
    } while (rc == TB_OK && h->verdict == TB_HANDSHAKE_MORE);
    if (rc == TB_AGAIN)
        return;
    const struct tb_handshake shaken = *h;
    int socket = end_incoming(incoming);
    if (rc != TB_OK) {
        if (shaken.hello.stream != TB_STREAM_PROBE)
            tb_log(TB_LOG_DEBUG, "agent", "an incoming connection was not accepted: %s", tb_error_name(rc));
        close(socket);
        return;
    }
    struct tb_connected connected = {.self = shaken.hello.destination,
                                     .proc = shaken.hello.source,
                                     .stream = (enum tb_stream)(shaken.hello.stream & TB_STREAM_MASK),
                                     .stripe = shaken.hello.stream >> TB_STREAM_STRIPE_SHIFT,
                                     .socket = socket,
                                     .hello = &shaken.hello,
                                     .welcome = &shaken.welcome};
    listener->events.connected(listener->events.context, &connected);
}

/* ---- who is let in ----------------------------------------------------------------------------------------------- */

/* Makes room for one more who has proved nothing yet: the oldest of them has to go, but not before a friend would have
 * spoken. False: nobody can be let in for now; callers wait in the queue of the listener. */
static bool make_place(struct tb_listener *listener)
{
    if (listener->unproved_count < TB_LISTENER_UNPROVED_LIMIT)
        return true;
    uint64_t now = tb_loop_now(listener->member->loop);
    struct tb_incoming *incoming;
    TB_LIST_EACH (incoming, &listener->incoming, struct tb_incoming, node) {
        if (incoming->proved)
            continue;
        uint64_t age = now - incoming->since;
        if (age >= HURRY_NS) {
            close(end_incoming(incoming));
            return true;
        }
        pause_for(listener, HURRY_NS - age);
        return false;
    }
    return false;
}

static bool take_in(struct tb_listener *listener, int socket)
{
    int on = 1;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    struct tb_incoming *incoming = calloc(1, sizeof *incoming);
    if (incoming == NULL)
        return false;
    incoming->listener = listener;
    incoming->since = tb_loop_now(listener->member->loop);
    tb_handshake_accept(&incoming->handshake, listener->member->key);
    if (tb_loop_watch(listener->member->loop, &incoming->watch, socket, EPOLLIN, incoming_ready) != TB_OK) {
        free(incoming);
        return false;
    }
    tb_list_append(&listener->incoming, &incoming->node);
    listener->unproved_count++;
    if (!tb_timer_is_set(&listener->patience))
        tb_timer_set(listener->member->loop, &listener->patience, PATIENCE_NS);
    return true;
}

static void listener_ready(struct tb_watch *watch, uint32_t events)
{
    struct tb_listener *listener = TB_CONTAINER(watch, struct tb_listener, watch);
    for (int i = 0; i < ACCEPT_MOST && make_place(listener); i++) {
        int socket = accept4(watch->descriptor, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (socket < 0) {
            /* Without a free descriptor the caller stays in the queue and would wake us again and again. */
            if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
                pause_for(listener, PAUSE_NS);
            return;
        }
        if (!take_in(listener, socket)) {
            close(socket);
            return;
        }
    }
}

static void patience_over(struct tb_timer *timer)
{
    struct tb_listener *listener = TB_CONTAINER(timer, struct tb_listener, patience);
    uint64_t now = tb_loop_now(listener->member->loop);
    struct tb_incoming *incoming;
    resume(listener);
    TB_LIST_EACH (incoming, &listener->incoming, struct tb_incoming, node)
        if (now - incoming->since >= PATIENCE_NS)
            close(end_incoming(incoming));
    if (!tb_list_empty(&listener->incoming))
        tb_timer_set(listener->member->loop, timer, PATIENCE_NS / 5);
}

/* ---- the port ---------------------------------------------------------------------------------------------------- */

/* Both families with one socket where there is IPv6, else IPv4. */
static int make_socket(int *family)
{
    int off = 0, fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    *family = 6;
    if (fd >= 0 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    *family = 4;
    return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

static int bind_port(int fd, int family, uint16_t port)
{
    struct tb_address any = {.family = (uint8_t)family, .port = port};
    struct sockaddr_storage name;
    socklen_t length = tb_address_socket(&any, &name);
    return bind(fd, (struct sockaddr *)&name, length);
}

/* A listening socket at the first free port of the range; -1 with errno. */
static int listen_somewhere(uint16_t low, uint16_t high)
{
    int family, error = EADDRINUSE, on = 1;
    for (uint32_t port = low; port <= high; port++) {
        int fd = make_socket(&family);
        if (fd < 0)
            return -1;
        /* Connections of an earlier job that still linger do not make a port unusable. */
        if (port != 0)
            setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        int rc = bind_port(fd, family, (uint16_t)port);
        if (rc < 0 && family == 6 && errno == EADDRNOTAVAIL) { /* IPv6 is compiled in but switched off */
            close(fd);
            fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
            rc = fd >= 0 ? bind_port(fd, 4, (uint16_t)port) : -1;
        }
        if (rc == 0 && listen(fd, SOMAXCONN) == 0)
            return fd;
        error = errno;
        if (fd >= 0)
            close(fd);
        if (error != EADDRINUSE && error != EACCES)
            break;
    }
    errno = error;
    return -1;
}

int tb_listener_open(struct tb_listener *listener, const struct tb_member *member, const char *ports,
                     const struct tb_listener_events *events)
{
    *listener = (struct tb_listener){.member = member, .events = *events, .watch.descriptor = -1};
    tb_list_init(&listener->incoming);
    tb_timer_init(&listener->patience, patience_over);
    uint16_t low, high;
    int rc = tb_ports_parse(ports, &low, &high);
    if (rc != TB_OK)
        return rc;
    int fd = listen_somewhere(low, high);
    if (fd < 0 && errno == EADDRINUSE)
        return tb_error(TB_ERR_LIMIT,
                        "no free port: every TCP port of ports=%s is in use; choose another range with "
                        "--set ports=LOW-HIGH, or 0 for any port",
                        ports);
    if (fd < 0 && errno == EACCES)
        return tb_error(TB_ERR_FORBIDDEN,
                        "no permission to listen on a port of ports=%s; ports below 1024 are for root", ports);
    if (fd < 0)
        return tb_error_errno("cannot listen for other hosts on ports=%s", ports);
    struct sockaddr_in6 name = {0}; /* the port is at the same place in both families */
    socklen_t length = sizeof name;
    getsockname(fd, (struct sockaddr *)&name, &length);
    listener->port = ntohs(name.sin6_port);
    rc = tb_loop_watch(member->loop, &listener->watch, fd, EPOLLIN, listener_ready);
    if (rc != TB_OK)
        close(fd);
    return rc;
}

void tb_listener_close(struct tb_listener *listener)
{
    struct tb_incoming *incoming;
    if (listener->member == NULL)
        return;
    TB_LIST_EACH (incoming, &listener->incoming, struct tb_incoming, node)
        close(end_incoming(incoming));
    tb_timer_clear(&listener->patience);
    int socket = listener->watch.descriptor;
    tb_loop_unwatch(listener->member->loop, &listener->watch);
    if (socket >= 0)
        close(socket);
    listener->member = NULL;
}
