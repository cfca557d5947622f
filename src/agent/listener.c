#include "agent/listener.h"

#include "agent/codec.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <unistd.h>

#define PATIENCE_NS 5000000000u

/* A connection that is being proved by whoever opened it. */
struct tb_incoming {
    struct tb_caller caller;
    struct tb_handshake handshake;
};

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

/* Whom the hello asks for is on another host: somebody has sent it here, or an address is used twice. */
static bool is_elsewhere(const struct tb_member *member, const struct tb_hello *hello)
{
    uint32_t host;
    return tb_member_find_host(member, hello->destination, &host) == TB_OK && host != member->host;
}

/* Whether a rank is to cross a border that is only for agents; or whoever calls is nobody. */
static bool crosses_border(const struct tb_member *member, const struct tb_hello *hello)
{
    uint32_t host;
    if (tb_proc_is_agent(hello->source) && tb_proc_is_agent(hello->destination))
        return false;
    return tb_member_find_host(member, hello->source, &host) != TB_OK || !tb_member_lets_ranks(member, host);
}

/* The hello proves the key, and nobody has said it before: says yes or no. */
static int answer(struct tb_listener *listener, struct tb_incoming *incoming)
{
    const struct tb_member *member = listener->member;
    const struct tb_hello *hello = &incoming->handshake.hello;
    bool probing = hello->stream == TB_STREAM_PROBE;
    enum tb_welcome_status status = TB_WELCOME_OK;
    /* The others may have got the address book a moment before us. */
    if (!probing && member->book->host_count == 0)
        status = TB_WELCOME_BUSY;
    else if (!has_destination(listener, hello))
        status = is_elsewhere(member, hello) ? TB_WELCOME_OTHER_HOST : TB_WELCOME_NO_SUCH_PROCESS;
    else if (crosses_border(member, hello))
        status = TB_WELCOME_BORDER;
    uint32_t features = 0;
    if (hello->stream == TB_STREAM_CONTROL)
        features = TB_FEATURE_TLS; /* whatever gateway_tls says */
    else if (hello->destination.index == member->self.index && !probing)
        features = tb_codec_features(member, hello->source);
    features = status == TB_WELCOME_OK ? hello->features & features : 0;
    int rc = tb_handshake_answer(&incoming->handshake, status, features, probing);
    if (rc == TB_OK)
        rc = tb_handshake_socket_send(&incoming->handshake, incoming->caller.watch.descriptor);
    if (rc != TB_OK || incoming->handshake.verdict != TB_HANDSHAKE_MORE)
        return TB_ERR_PEER; /* that was all */
    tb_caller_heard(&incoming->caller);
    return TB_OK;
}

/* The confirm was right: only now may the other side use the connection. */
static int admit(const struct tb_listener *listener, struct tb_incoming *incoming)
{
    struct tb_handshake *h = &incoming->handshake;
    if (!has_destination(listener, &h->hello))
        return TB_ERR_CLOSED; /* it ended meanwhile; whoever asks again is told so */
    tb_handshake_admit(h);
    return tb_handshake_socket_send(h, incoming->caller.watch.descriptor);
}

/* What has come is a new verdict. TB_OK: more is to come, or the connection is made. */
static int go_on(struct tb_listener *listener, struct tb_incoming *incoming)
{
    struct tb_handshake *h = &incoming->handshake;
    int rc;
    switch (h->verdict) {
    case TB_HANDSHAKE_ASKED:
        rc = tb_nonces_add(&listener->nonces, h->hello.nonce);
        return rc == TB_OK ? answer(listener, incoming) : rc;
    case TB_HANDSHAKE_CONFIRMED:
        return admit(listener, incoming);
    default:
        /* Who proves the key is told once that we have another version. */
        if (h->error == TB_ERR_PROTOCOL && tb_nonces_add(&listener->nonces, h->hello.nonce) == TB_OK)
            tb_handshake_socket_send(h, incoming->caller.watch.descriptor);
        return h->error;
    }
}

static void incoming_ready(void *context, struct tb_caller *caller)
{
    struct tb_listener *listener = context;
    struct tb_incoming *incoming = TB_CONTAINER(caller, struct tb_incoming, caller);
    struct tb_handshake *h = &incoming->handshake;
    int rc;
    do {
        rc = tb_handshake_socket_receive(h, caller->watch.descriptor);
        if (rc == TB_OK)
            rc = go_on(listener, incoming);
    } while (rc == TB_OK && h->verdict == TB_HANDSHAKE_MORE);
    if (rc == TB_AGAIN)
        return;
    if (rc == TB_ERR_FORBIDDEN)
        tb_stranger_log_unproved(&listener->strangers, &caller->name);
    const struct tb_handshake shaken = *h;
    int socket = tb_caller_end(caller);
    if (rc != TB_OK) {
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

static bool incoming_came(void *context, struct tb_caller *caller)
{
    const struct tb_listener *listener = context;
    int on = 1;
    setsockopt(caller->watch.descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    tb_handshake_accept(&TB_CONTAINER(caller, struct tb_incoming, caller)->handshake, listener->member->key);
    return true;
}

/* Who says nothing may be a friend behind a link that has failed, and who has only said hello one who has found another
 * way; strangers are those who come in crowds. */
static void incoming_leaves(void *context, struct tb_caller *caller)
{
    struct tb_listener *listener = context;
    bool crowded = listener->callers.count == listener->callers.most;
    if (crowded && TB_CONTAINER(caller, struct tb_incoming, caller)->handshake.hello.version == 0)
        tb_stranger_log_unproved(&listener->strangers, &caller->name);
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

static int bind_address(int fd, const struct tb_address *address, uint16_t port)
{
    struct tb_address there = *address;
    struct sockaddr_storage name;
    there.port = port;
    socklen_t length = tb_address_socket(&there, &name);
    return bind(fd, (struct sockaddr *)&name, length);
}

static uint16_t port_of(int fd)
{
    struct sockaddr_in6 name = {0}; /* the port is at the same place in both families */
    socklen_t length = sizeof name;
    getsockname(fd, (struct sockaddr *)&name, &length);
    return ntohs(name.sin6_port);
}

/* A socket for one address; for all, if it is NULL. -1 with errno. */
static int try_port(const struct tb_address *address, uint16_t port)
{
    int on = 1, family = address != NULL ? address->family : 0;
    struct tb_address any = {0};
    int fd = address != NULL ? socket(family == 4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)
                             : make_socket(&family);
    if (fd < 0)
        return -1;
    any.family = (uint8_t)family;
    /* Connections of an earlier job that still linger do not make a port unusable. */
    if (port != 0)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    int rc = bind_address(fd, address != NULL ? address : &any, port);
    if (rc < 0 && address == NULL && family == 6 && errno == EADDRNOTAVAIL) { /* compiled in but switched off */
        close(fd);
        any.family = 4;
        fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        rc = fd >= 0 ? bind_address(fd, &any, port) : -1;
    }
    if (rc == 0 && listen(fd, SOMAXCONN) == 0)
        return fd;
    int error = errno;
    if (fd >= 0)
        close(fd);
    errno = error;
    return -1;
}

/* At the first free port of the range. */
static int listen_somewhere(const struct tb_address *address, uint16_t low, uint16_t high)
{
    for (uint32_t port = low; port <= high; port++) {
        int fd = try_port(address, (uint16_t)port);
        if (fd >= 0 || (errno != EADDRINUSE && errno != EACCES))
            return fd;
    }
    return -1;
}

static int open_door(struct tb_listener *listener, int fd)
{
    int rc = tb_callers_listen(&listener->callers, fd);
    if (rc != TB_OK)
        close(fd);
    return rc;
}

/* One socket for each address, as far as they can be had. errno, if there is none at all. */
static int open_doors(struct tb_listener *listener, struct tb_address_list *at, uint16_t low, uint16_t high)
{
    uint32_t kept = 0;
    int rc = TB_OK;
    for (uint32_t i = 0; i < at->count && rc == TB_OK; i++) {
        struct tb_address address = at->at[i];
        int fd = listener->port != 0 ? try_port(&address, listener->port) : -1;
        if (fd < 0)
            fd = listen_somewhere(&address, low, high);
        if (fd < 0)
            continue;
        address.port = port_of(fd);
        listener->port = listener->port != 0 ? listener->port : address.port;
        at->at[kept++] = address;
        rc = open_door(listener, fd);
    }
    at->count = kept;
    return rc == TB_OK && kept == 0 ? TB_ERR_SYSTEM : rc;
}

static int open_everywhere(struct tb_listener *listener, uint16_t low, uint16_t high)
{
    int fd = listen_somewhere(NULL, low, high);
    if (fd < 0)
        return TB_ERR_SYSTEM;
    listener->port = port_of(fd);
    return open_door(listener, fd);
}

static int tell_errno(const char *ports)
{
    char where[512];
    tb_param_print_origin(tb_param_find("ports"), where, sizeof where);
    if (errno == EADDRINUSE)
        return tb_error(TB_ERR_LIMIT,
                        "no free port: every TCP port of ports=%s is in use; that comes from %s: choose others there "
                        "(LOW-HIGH is a range, 0 any port)",
                        ports, where);
    if (errno == EACCES)
        return tb_error(TB_ERR_FORBIDDEN,
                        "no permission to listen on a port of ports=%s, which comes from %s; ports below 1024 are for "
                        "root",
                        ports, where);
    return tb_error_errno("cannot listen for other hosts on ports=%s (from %s)", ports, where);
}

/* Strangers are to leave descriptors for us. */
static uint32_t places(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur / 4 >= TB_LISTENER_CALLERS)
        return TB_LISTENER_CALLERS;
    return limit.rlim_cur >= 8 ? (uint32_t)limit.rlim_cur / 4 : 2;
}

int tb_listener_open(struct tb_listener *listener, const struct tb_member *member, const char *ports,
                     struct tb_address_list *at, const struct tb_listener_events *events)
{
    const struct tb_callers_events heard = {.context = listener,
                                            .bytes = sizeof(struct tb_incoming),
                                            .came = incoming_came,
                                            .ready = incoming_ready,
                                            .leaves = incoming_leaves};
    *listener = (struct tb_listener){.member = member, .events = *events};
    tb_stranger_log_open(&listener->strangers, member, TB_STRANGER_UNPROVED);
    tb_callers_open(&listener->callers, member->loop, places(), PATIENCE_NS, &heard);
    uint16_t low, high;
    int rc = tb_ports_parse(ports, &low, &high);
    if (rc != TB_OK)
        return rc;
    rc = at != NULL ? open_doors(listener, at, low, high) : open_everywhere(listener, low, high);
    return rc == TB_ERR_SYSTEM ? tell_errno(ports) : rc;
}

void tb_listener_close(struct tb_listener *listener)
{
    tb_callers_close(&listener->callers);
    tb_nonces_close(&listener->nonces);
    tb_stranger_log_close(&listener->strangers);
    listener->member = NULL;
}
