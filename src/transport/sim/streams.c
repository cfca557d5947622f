#include "transport/sim/streams.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define PIECE_BYTES (64u << 10)
#define HELD_BYTES  (4u << 20) /* under way in one direction; then no more is taken */

struct piece {
    struct piece *next;
    uint64_t due;
    size_t length, at;
    char bytes[];
};

/* From one end to the other. */
struct direction {
    struct piece *first, **last;
    size_t held;
    uint64_t free_at; /* when the last byte has left */
    bool ended;       /* nothing more will be written */
    uint64_t end_due;
    bool over; /* and the other end has been told */
};

struct stream {
    struct tb_list of_streams;
    uint32_t route;
    int sockets[2];             /* the network's; each is connected to an end */
    struct direction onward[2]; /* what has been read from the socket of the same number */
};

struct listener {
    struct tb_list of_streams;
    uint32_t route;
    uint16_t target;
    int socket;
};

/* ---- sockets ----------------------------------------------------------------------------------------------------- */

static struct sockaddr_in address_of(uint16_t port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static int listener_open(uint16_t *port)
{
    struct sockaddr_in address = address_of(0);
    socklen_t size = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, size) < 0 || listen(fd, 64) < 0 ||
        getsockname(fd, (struct sockaddr *)&address, &size) < 0) {
        tb_error_errno("cannot listen for the simulated network");
        if (fd >= 0)
            close(fd);
        return -1;
    }
    *port = ntohs(address.sin_port);
    return fd;
}

/* -1: nobody listens there. On this machine it does not take time. */
static int connect_to(uint16_t port)
{
    struct sockaddr_in address = address_of(port);
    int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    TB_ASSERT(fd >= 0);
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
        close(fd);
        return -1;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    fcntl(fd, F_SETFL, O_NONBLOCK);
    return fd;
}

/* As a machine that does not know the connection. */
static void close_hard(int fd)
{
    struct linger hard = {.l_onoff = 1};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
    close(fd);
}

/* ---- streams ----------------------------------------------------------------------------------------------------- */

static void stream_make(struct tb_sim_streams *s, uint32_t route, int one, int other)
{
    struct stream *t = calloc(1, sizeof(*t));
    TB_ASSERT(t != NULL);
    t->route = route;
    t->sockets[0] = one;
    t->sockets[1] = other;
    for (int i = 0; i < 2; i++)
        t->onward[i].last = &t->onward[i].first;
    tb_list_append(&s->streams, &t->of_streams);
    s->count++;
}

static void stream_close(struct tb_sim_streams *s, struct stream *t, void (*how)(int fd))
{
    for (int i = 0; i < 2; i++) {
        how(t->sockets[i]);
        while (t->onward[i].first != NULL) {
            struct piece *p = t->onward[i].first;
            t->onward[i].first = p->next;
            free(p);
        }
    }
    tb_list_remove(&t->of_streams);
    free(t);
    s->count--;
}

/* TB_ERR_CLOSED: the end has reset the connection. */
static int direction_take(struct tb_sim_streams *s, struct stream *t, int i, int *count)
{
    static char bytes[PIECE_BYTES];
    struct direction *d = &t->onward[i];
    const struct tb_sim_route *route = &s->sim->route[t->route];
    while (!d->ended && d->held < HELD_BYTES) {
        ssize_t n = read(t->sockets[i], bytes, sizeof(bytes));
        if (n < 0)
            return errno == EAGAIN || errno == EINTR ? TB_OK : TB_ERR_CLOSED;
        uint64_t now = s->sim->now;
        d->free_at = (d->free_at > now ? d->free_at : now) + (uint64_t)n * route->byte_time;
        (*count)++;
        if (n == 0) {
            d->ended = true;
            d->end_due = d->free_at + route->delay;
            break;
        }
        struct piece *p = malloc(sizeof(*p) + (size_t)n);
        TB_ASSERT(p != NULL);
        *p = (struct piece){.due = d->free_at + route->delay, .length = (size_t)n};
        memcpy(p->bytes, bytes, (size_t)n);
        *d->last = p;
        d->last = &p->next;
        d->held += p->length;
    }
    return TB_OK;
}

static int direction_deliver(struct tb_sim_streams *s, struct stream *t, int i, int *count)
{
    struct direction *d = &t->onward[i];
    int to = t->sockets[1 - i];
    uint64_t now = s->sim->now;
    while (d->first != NULL && d->first->due <= now) {
        struct piece *p = d->first;
        ssize_t n = send(to, p->bytes + p->at, p->length - p->at, MSG_NOSIGNAL);
        if (n < 0)
            return errno == EAGAIN || errno == EINTR ? TB_OK : TB_ERR_CLOSED;
        (*count)++;
        p->at += (size_t)n;
        s->carried += (uint64_t)n;
        if (p->at < p->length)
            return TB_OK;
        d->held -= p->length;
        d->first = p->next;
        if (d->first == NULL)
            d->last = &d->first;
        free(p);
    }
    if (d->ended && !d->over && d->first == NULL && d->end_due <= now) {
        d->over = true;
        shutdown(to, SHUT_WR);
        (*count)++;
    }
    return TB_OK;
}

static void listener_accept(struct tb_sim_streams *s, const struct listener *l, int *count)
{
    for (;;) {
        int fd = accept4(l->socket, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
            return;
        (*count)++;
        s->accepted++;
        int other = connect_to(l->target);
        if (other < 0)
            close_hard(fd);
        else
            stream_make(s, l->route, fd, other);
    }
}

void tb_sim_streams_divert(struct tb_sim_streams *s, uint32_t route)
{
    struct listener *l;
    TB_LIST_EACH (l, &s->listeners, struct listener, of_streams)
        l->route = route;
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

void tb_sim_streams_init(struct tb_sim_streams *s, struct tb_sim *sim)
{
    *s = (struct tb_sim_streams){.sim = sim};
    tb_list_init(&s->streams);
    tb_list_init(&s->listeners);
}

static void close_softly(int fd)
{
    close(fd);
}

void tb_sim_streams_destroy(struct tb_sim_streams *s)
{
    while (!tb_list_empty(&s->streams))
        stream_close(s, TB_CONTAINER(s->streams.next, struct stream, of_streams), close_softly);
    struct listener *l;
    TB_LIST_EACH (l, &s->listeners, struct listener, of_streams) {
        tb_list_remove(&l->of_streams);
        close(l->socket);
        free(l);
    }
}

int tb_sim_streams_pair(struct tb_sim_streams *s, uint32_t route, int ends[2])
{
    int ours[2];
    for (int i = 0; i < 2; i++) {
        int pair[2];
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
            return tb_error_errno("cannot make sockets for the simulated network");
        ends[i] = pair[0];
        ours[i] = pair[1];
    }
    stream_make(s, route, ours[0], ours[1]);
    return TB_OK;
}

int tb_sim_streams_listen(struct tb_sim_streams *s, uint32_t route, uint16_t target, uint16_t *port)
{
    int fd = listener_open(port);
    if (fd < 0)
        return TB_ERR_SYSTEM;
    struct listener *l = calloc(1, sizeof(*l));
    TB_ASSERT(l != NULL);
    *l = (struct listener){.route = route, .target = target, .socket = fd};
    tb_list_append(&s->listeners, &l->of_streams);
    return TB_OK;
}

int tb_sim_streams_move(struct tb_sim_streams *s)
{
    int count = 0;
    struct listener *l;
    TB_LIST_EACH (l, &s->listeners, struct listener, of_streams)
        listener_accept(s, l, &count);
    struct stream *t;
    TB_LIST_EACH (t, &s->streams, struct stream, of_streams) {
        bool reset = false;
        if (s->sim->route[t->route].dead)
            continue;
        for (int i = 0; i < 2 && !reset; i++)
            reset = direction_take(s, t, i, &count) != TB_OK || direction_deliver(s, t, i, &count) != TB_OK;
        if (reset) {
            stream_close(s, t, close_hard);
            count++;
        } else if (t->onward[0].over && t->onward[1].over) {
            stream_close(s, t, close_softly);
        }
    }
    return count;
}

uint64_t tb_sim_streams_deadline(const struct tb_sim_streams *s)
{
    uint64_t next = TB_NEVER;
    const struct stream *t;
    TB_LIST_EACH (t, &s->streams, struct stream, of_streams) {
        if (s->sim->route[t->route].dead)
            continue;
        for (int i = 0; i < 2; i++) {
            const struct direction *d = &t->onward[i];
            uint64_t due = d->first != NULL ? d->first->due : d->ended && !d->over ? d->end_due : TB_NEVER;
            if (due > s->sim->now && due < next) /* what is due and lies here waits for its reader */
                next = due;
        }
    }
    return next;
}

void tb_sim_streams_reset(struct tb_sim_streams *s, uint32_t route)
{
    struct stream *t;
    TB_LIST_EACH (t, &s->streams, struct stream, of_streams)
        if (t->route == route)
            stream_close(s, t, close_hard);
}
