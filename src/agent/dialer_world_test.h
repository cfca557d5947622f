/* A dialer with real connections inside of one loop whose time the test moves on. The test plays the other agents: it
 * listens at their addresses, and answers as they would, or not. Included by the tests of the dialer, each of which has
 * a world of its own. */
#ifndef TB_AGENT_DIALER_WORLD_TEST_H
#define TB_AGENT_DIALER_WORLD_TEST_H

#include "agent/dialer.h"
#include "remote/virtual_loop_test.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#define JOB        9u
#define RANKS      4u /* 0 and 1 are here, 2 and 3 on the other host */
#define SECOND     1000000000u
#define RANK_HERE  ((struct tb_proc){JOB, 0})
#define RANK_THERE ((struct tb_proc){JOB, 2})

static const struct tb_proc self = {JOB, TB_PROC_AGENT | 0}, other = {JOB, TB_PROC_AGENT | 1};

/* What the dialer has said. */
struct heard {
    uint32_t connected, refused, events, found, lost;
    struct tb_connected ends[2]; /* the last two connections, the later one last */
    struct tb_hello hello;
    int error;
    char story[800];
    uint32_t called_host, called_stream;
    struct tb_proc called_there, called_here;
};

static struct world {
    struct virtual_loop time;
    struct tb_key key;
    struct tb_host hosts[2];
    struct tb_rank_range ranges[2];
    struct tb_address_book book;
    struct tb_host_route host_routes[2];
    struct tb_host_routes routes;
    struct tb_member member;
    struct tb_dialer dialer;
    bool ended; /* rank 1 */
    int listener;
    struct heard heard;
} w;

/* ---- the owner of the dialer ------------------------------------------------------------------------------------- */

static inline bool has_rank(void *context, uint32_t rank)
{
    return rank == 0 || (rank == 1 && !w.ended);
}

static inline void connected(void *context, const struct tb_connected *end)
{
    w.heard.connected++;
    w.heard.ends[0] = w.heard.ends[1];
    w.heard.ends[1] = *end;
    if (end->hello != NULL)
        w.heard.hello = *end->hello;
}

static inline void refused(void *context, struct tb_proc from, struct tb_proc to, enum tb_stream stream,
                           uint32_t stripe, int error)
{
    w.heard.refused++;
    w.heard.error = error;
    snprintf(w.heard.story, sizeof w.heard.story, "%s", tb_error_story());
}

static inline void call(void *context, uint32_t host, struct tb_proc there, struct tb_proc here, uint32_t stream)
{
    w.heard.events++;
    w.heard.called_host = host;
    w.heard.called_there = there;
    w.heard.called_here = here;
    w.heard.called_stream = stream;
}

static inline void link_found(void *context, uint32_t host)
{
    w.heard.found++;
}

static inline void link_lost(void *context, uint32_t host, const char *why)
{
    w.heard.lost++;
    snprintf(w.heard.story, sizeof w.heard.story, "%s", why);
}

/* ---- the other agent --------------------------------------------------------------------------------------------- */

static inline int listen_at(struct tb_address *address)
{
    struct sockaddr_storage name;
    *address = (struct tb_address){.family = 4, .prefix = 8, .bytes = {127, 0, 0, 1}};
    socklen_t length = tb_address_socket(address, &name);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_in ours = {.sin_port = 0};
    assert_true(fd >= 0 && bind(fd, (struct sockaddr *)&name, length) == 0 && listen(fd, 64) == 0);
    length = sizeof ours;
    assert_int_equal(getsockname(fd, (struct sockaddr *)&ours, &length), 0);
    address->port = ntohs(ours.sin_port);
    return fd;
}

static inline bool is_readable(int fd)
{
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    return poll(&wait, 1, 0) > 0;
}

/* The kernel takes its time to carry bytes, even inside of a host: the loop turns until something has come true. Time
 * passes meanwhile, but so slowly that it does not matter. */
#define UNTIL(condition)                                                                                               \
    do {                                                                                                               \
        for (int turns = 0; turns < 2000 && !(condition); turns++) {                                                   \
            struct pollfd more = {.fd = w.time.loop.epoll, .events = POLLIN};                                          \
            virtual_loop_pass(&w.time, 100000);                                                                        \
            poll(&more, 1, 1);                                                                                         \
        }                                                                                                              \
        assert_true(condition);                                                                                        \
    } while (0)

/* The next connection to the other agent, on which hello was said. */
static inline int answer_call(int listener)
{
    UNTIL(is_readable(listener));
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    assert_true(fd >= 0);
    UNTIL(is_readable(fd));
    return fd;
}

static inline void assert_nobody_calls(int listener)
{
    virtual_loop_turn(&w.time);
    assert_int_equal(accept4(listener, NULL, NULL, SOCK_CLOEXEC), -1);
}

/* Hears the hello on a new connection and answers it with this status. */
static inline int greet(int listener, struct tb_handshake *h, const struct tb_key *key, enum tb_welcome_status status)
{
    int fd = answer_call(listener);
    tb_handshake_accept(h, key);
    assert_int_equal(tb_handshake_socket_receive(h, fd), TB_OK);
    assert_int_equal(h->verdict, TB_HANDSHAKE_ASKED);
    assert_int_equal(tb_handshake_answer(h, status, 0, false), TB_OK);
    assert_int_equal(tb_handshake_socket_send(h, fd), TB_OK);
    UNTIL(is_readable(fd)); /* it confirms, or closes */
    return fd;
}

/* Goes on to the end: then the dialer has its connection. */
static inline void accept_finally(int fd, struct tb_handshake *h)
{
    uint32_t before = w.heard.connected;
    assert_int_equal(tb_handshake_socket_receive(h, fd), TB_OK);
    assert_int_equal(h->verdict, TB_HANDSHAKE_CONFIRMED);
    tb_handshake_admit(h);
    assert_int_equal(tb_handshake_socket_send(h, fd), TB_OK);
    UNTIL(w.heard.connected > before);
}

static inline void assert_same_connection(int fd, int socket)
{
    char byte = 0;
    assert_int_equal(send(fd, "x", 1, MSG_NOSIGNAL), 1);
    UNTIL(is_readable(socket));
    assert_int_equal(recv(socket, &byte, 1, MSG_DONTWAIT), 1);
    assert_int_equal(byte, 'x');
}

static inline bool is_closed(int fd)
{
    char byte;
    UNTIL(is_readable(fd));
    return recv(fd, &byte, 1, MSG_DONTWAIT) == 0;
}

/* ---- each test --------------------------------------------------------------------------------------------------- */

static inline int open_world(void **state)
{
    const struct tb_dialer_events events = {.has_rank = has_rank,
                                            .connected = connected,
                                            .refused = refused,
                                            .call = call,
                                            .link_found = link_found,
                                            .link_lost = link_lost};
    memset(&w, 0, sizeof w);
    memset(w.key.bytes, 3, sizeof w.key.bytes);
    for (uint32_t i = 0; i < 2; i++) {
        snprintf(w.hosts[i].name, sizeof w.hosts[i].name, "host%u", i);
        w.hosts[i].kind = i;
        w.hosts[i].first_rank = 2 * i;
        w.hosts[i].rank_count = 2;
        w.ranges[i] = (struct tb_rank_range){.first_rank = 2 * i, .count = 2, .host = i};
        w.host_routes[i] = (struct tb_host_route){.means = TB_HOST_ROUTE_DIRECT, .near = true, .open = true};
    }
    w.book = (struct tb_address_book){
        .job = JOB, .ranks = RANKS, .host_count = 2, .range_count = 2, .hosts = w.hosts, .ranges = w.ranges};
    w.routes = (struct tb_host_routes){.kind_count = 2, .routes = w.host_routes};
    w.listener = listen_at(&w.hosts[1].addresses[0]);
    w.hosts[1].address_count = 1;
    w.member = (struct tb_member){.loop = &w.time.loop,
                                  .key = &w.key,
                                  .self = self,
                                  .name = "host0",
                                  .running = true,
                                  .book = &w.book,
                                  .routes = &w.routes};
    tb_dialer_open(&w.dialer, &w.member, &events);
    return virtual_loop_open(&w.time) == TB_OK ? 0 : -1;
}

static inline int close_world(void **state)
{
    tb_dialer_close(&w.dialer);
    for (int i = 0; i < 2; i++)
        if (w.heard.ends[i].proc.job != 0)
            close(w.heard.ends[i].socket);
    close(w.listener);
    virtual_loop_close(&w.time);
    return 0;
}

static inline void dial(struct tb_proc from, struct tb_proc to)
{
    assert_int_equal(tb_dialer_connect(&w.dialer, from, to, TB_STREAM_BULK, 0), TB_OK);
}

/* Nobody was told anything, or once, and nothing is left of it. */
static inline void assert_over(uint32_t good, uint32_t bad)
{
    assert_int_equal(w.heard.connected, good);
    assert_int_equal(w.heard.refused, bad);
    assert_true(tb_list_empty(&w.dialer.dials));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)

#endif
