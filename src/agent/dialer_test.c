/* The dialer, with real connections inside of one loop whose time the test moves on. The test plays the other agents:
 * it listens at their addresses, and answers as they would, or not. */
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

static bool has_rank(void *context, uint32_t rank)
{
    return rank == 0 || (rank == 1 && !w.ended);
}

static void connected(void *context, const struct tb_connected *end)
{
    w.heard.connected++;
    w.heard.ends[0] = w.heard.ends[1];
    w.heard.ends[1] = *end;
    if (end->hello != NULL)
        w.heard.hello = *end->hello;
}

static void refused(void *context, struct tb_proc from, struct tb_proc to, enum tb_stream stream, uint32_t stripe,
                    int error)
{
    w.heard.refused++;
    w.heard.error = error;
    snprintf(w.heard.story, sizeof w.heard.story, "%s", tb_error_story());
}

static void call(void *context, uint32_t host, struct tb_proc there, struct tb_proc here, uint32_t stream)
{
    w.heard.events++;
    w.heard.called_host = host;
    w.heard.called_there = there;
    w.heard.called_here = here;
    w.heard.called_stream = stream;
}

static void link_found(void *context, uint32_t host)
{
    w.heard.found++;
}

static void link_lost(void *context, uint32_t host, const char *why)
{
    w.heard.lost++;
    snprintf(w.heard.story, sizeof w.heard.story, "%s", why);
}

/* ---- the other agent --------------------------------------------------------------------------------------------- */

static int listen_at(struct tb_address *address)
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

static bool is_readable(int fd)
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
static int answer_call(int listener)
{
    UNTIL(is_readable(listener));
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    assert_true(fd >= 0);
    UNTIL(is_readable(fd));
    return fd;
}

static void assert_nobody_calls(int listener)
{
    virtual_loop_turn(&w.time);
    assert_int_equal(accept4(listener, NULL, NULL, SOCK_CLOEXEC), -1);
}

/* Hears the hello on a new connection and answers it with this status. */
static int greet(int listener, struct tb_handshake *h, const struct tb_key *key, enum tb_welcome_status status)
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
static void accept_finally(int fd, struct tb_handshake *h)
{
    uint32_t before = w.heard.connected;
    assert_int_equal(tb_handshake_socket_receive(h, fd), TB_OK);
    assert_int_equal(h->verdict, TB_HANDSHAKE_CONFIRMED);
    tb_handshake_admit(h);
    assert_int_equal(tb_handshake_socket_send(h, fd), TB_OK);
    UNTIL(w.heard.connected > before);
}

static void assert_same_connection(int fd, int socket)
{
    char byte = 0;
    assert_int_equal(send(fd, "x", 1, MSG_NOSIGNAL), 1);
    UNTIL(is_readable(socket));
    assert_int_equal(recv(socket, &byte, 1, MSG_DONTWAIT), 1);
    assert_int_equal(byte, 'x');
}

static bool is_closed(int fd)
{
    char byte;
    UNTIL(is_readable(fd));
    return recv(fd, &byte, 1, MSG_DONTWAIT) == 0;
}

/* ---- each test --------------------------------------------------------------------------------------------------- */

static int open_world(void **state)
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

static int close_world(void **state)
{
    tb_dialer_close(&w.dialer);
    for (int i = 0; i < 2; i++)
        if (w.heard.ends[i].proc.job != 0)
            close(w.heard.ends[i].socket);
    close(w.listener);
    virtual_loop_close(&w.time);
    return 0;
}

static void dial(struct tb_proc from, struct tb_proc to)
{
    assert_int_equal(tb_dialer_connect(&w.dialer, from, to, TB_STREAM_BULK, 0), TB_OK);
}

/* Nobody was told anything, or once, and nothing is left of it. */
static void assert_over(uint32_t good, uint32_t bad)
{
    assert_int_equal(w.heard.connected, good);
    assert_int_equal(w.heard.refused, bad);
    assert_true(tb_list_empty(&w.dialer.dials));
}

static void a_rank_is_connected(void **state)
{
    struct tb_handshake h;
    dial(RANK_HERE, RANK_THERE);
    int fd = greet(w.listener, &h, &w.key, TB_WELCOME_OK);
    assert_int_equal(h.hello.source.index, 0);
    assert_int_equal(h.hello.destination.index, 2);
    assert_int_equal(h.hello.stream, TB_STREAM_BULK);
    assert_int_equal(w.heard.connected, 0); /* not before it is accepted */
    accept_finally(fd, &h);
    assert_over(1, 0);
    const struct tb_connected *end = &w.heard.ends[1];
    assert_int_equal(end->self.index, 0);
    assert_int_equal(end->proc.index, 2);
    assert_int_equal(end->stream, TB_STREAM_BULK);
    assert_true(end->dialed);
    assert_memory_equal(&w.heard.hello, &h.hello, sizeof h.hello);
    assert_same_connection(fd, end->socket);
    close(fd);
}

static void the_agent_itself_is_connected(void **state)
{
    struct tb_handshake h;
    assert_int_equal(tb_dialer_connect(&w.dialer, self, other, TB_STREAM_BULK, 3), TB_OK);
    int fd = greet(w.listener, &h, &w.key, TB_WELCOME_OK);
    assert_int_equal(h.hello.stream, TB_STREAM_BULK | 3u << TB_STREAM_STRIPE_SHIFT);
    accept_finally(fd, &h);
    assert_over(1, 0);
    assert_int_equal(w.heard.ends[1].stripe, 3);
    close(fd);
}

/* A stranger listens at the address: he closes, as an agent of another job would, or answers with another key. */
static void strangers_are_recognised(void **state)
{
    struct tb_handshake h;
    struct tb_key wrong = {{4}};
    dial(RANK_HERE, RANK_THERE);
    int fd = answer_call(w.listener);
    tb_handshake_accept(&h, &wrong);
    assert_int_equal(tb_handshake_socket_receive(&h, fd), TB_OK);
    assert_int_equal(h.verdict, TB_HANDSHAKE_FAILED);
    assert_int_equal(h.error, TB_ERR_FORBIDDEN);
    close(fd);
    virtual_loop_turn(&w.time);
    assert_int_equal(w.heard.refused, 0); /* a flooded agent does that too */
    virtual_loop_pass(&w.time, SECOND);
    fd = answer_call(w.listener); /* so it is asked again */
    struct tb_hello hello;
    struct tb_welcome welcome;
    uint8_t bytes[sizeof hello];
    assert_int_equal(recv(fd, bytes, sizeof bytes, 0), sizeof bytes);
    tb_wire_get_hello(bytes, &hello);
    assert_int_equal(tb_welcome_make(&welcome, &wrong, &hello, TB_WELCOME_OK), TB_OK);
    tb_wire_put_welcome(bytes, &welcome);
    assert_int_equal(send(fd, bytes, sizeof welcome, 0), sizeof welcome);
    assert_true(is_closed(fd));
    assert_over(0, 1);
    assert_int_equal(w.heard.error, TB_ERR_PEER);
    assert_non_null(strstr(w.heard.story, "host host0 cannot connect rank 0 to rank 2 on host host1:"));
    assert_non_null(strstr(w.heard.story, "is no agent of this job"));
    close(fd);
}

static void another_version_is_told(void **state)
{
    struct tb_handshake h;
    dial(RANK_HERE, RANK_THERE);
    int fd = greet(w.listener, &h, &w.key, TB_WELCOME_VERSION);
    assert_over(0, 1);
    assert_int_equal(w.heard.error, TB_ERR_PEER);
    assert_non_null(strstr(w.heard.story, "has another version of Tombolo"));
    close(fd);
}

static void who_is_busy_is_asked_again(void **state)
{
    struct tb_handshake h;
    dial(RANK_HERE, RANK_THERE);
    int fd = greet(w.listener, &h, &w.key, TB_WELCOME_BUSY);
    close(fd);
    assert_nobody_calls(w.listener); /* not at once */
    virtual_loop_pass(&w.time, SECOND);
    fd = greet(w.listener, &h, &w.key, TB_WELCOME_OK);
    accept_finally(fd, &h);
    assert_over(1, 0);
    close(fd);
}

/* A rank hears that the connection cannot be, the forwarder that the process has ended. */
static void who_has_ended_is_told(void **state)
{
    static const int errors[] = {TB_ERR_PEER, TB_ERR_CLOSED};
    for (int i = 0; i < 2; i++) {
        struct tb_handshake h;
        dial(i == 0 ? RANK_HERE : self, RANK_THERE);
        close(greet(w.listener, &h, &w.key, TB_WELCOME_NO_SUCH_PROCESS));
        assert_over(0, 1 + (uint32_t)i);
        assert_int_equal(w.heard.error, errors[i]);
        assert_non_null(strstr(w.heard.story, "that rank has ended"));
    }
}

/* Where two hosts have the same address, each finds itself there. What that one says of the other does not count. */
static void another_host_at_its_address(void **state)
{
    struct tb_handshake h;
    int second = listen_at(&w.hosts[1].addresses[1]);
    w.hosts[1].address_count = 2;
    dial(RANK_HERE, RANK_THERE);
    close(greet(w.listener, &h, &w.key, TB_WELCOME_OTHER_HOST));
    close(greet(second, &h, &w.key, TB_WELCOME_BUSY));
    assert_nobody_calls(second);
    assert_int_equal(w.heard.refused, 0);
    virtual_loop_pass(&w.time, SECOND);
    close(greet(w.listener, &h, &w.key, TB_WELCOME_OTHER_HOST));
    int fd = greet(second, &h, &w.key, TB_WELCOME_OK);
    accept_finally(fd, &h);
    assert_over(1, 0);
    close(fd);
    close(second);
    w.hosts[1].address_count = 1;
    dial(self, RANK_THERE);
    close(greet(w.listener, &h, &w.key, TB_WELCOME_OTHER_HOST));
    assert_over(1, 1);
    assert_int_equal(w.heard.error, TB_ERR_PEER); /* it has not ended */
    assert_non_null(strstr(w.heard.story, "leads to another host"));
}

/* Each address is named with what it did; and, without a grid, what one can do about it. */
static void silence_is_not_waited_for_too_long(void **state)
{
    char wanted[256], silent[64], deaf[64];
    close(listen_at(&w.hosts[1].addresses[1]));
    w.hosts[1].address_count = 2;
    w.routes.kind_count = 0;
    tb_address_print(&w.hosts[1].addresses[0], silent, sizeof silent);
    tb_address_print(&w.hosts[1].addresses[1], deaf, sizeof deaf);
    dial(RANK_HERE, RANK_THERE);
    int fd = answer_call(w.listener);
    virtual_loop_pass(&w.time, tb_param.connect_timeout - SECOND);
    assert_int_equal(w.heard.refused, 0);
    virtual_loop_pass(&w.time, SECOND);
    assert_over(0, 1);
    assert_int_equal(w.heard.error, TB_ERR_TIMEOUT);
    snprintf(wanted, sizeof wanted, "%s: Connection refused; %s: took the connection, then no answer within 20 s; ",
             deaf, silent);
    assert_non_null(strstr(w.heard.story, wanted));
    assert_non_null(strstr(w.heard.story, "--grid: docs/guide/grid.md"));
    char bytes[sizeof(struct tb_hello)];
    assert_int_equal(recv(fd, bytes, sizeof bytes, 0), sizeof bytes);
    assert_true(is_closed(fd));
    close(fd);
}

static void nobody_listens(void **state)
{
    close(w.listener);
    w.listener = -1;
    dial(RANK_HERE, RANK_THERE);
    UNTIL(w.heard.refused > 0);
    assert_over(0, 1);
    assert_int_equal(w.heard.error, TB_ERR_PEER);
    assert_non_null(strstr(w.heard.story, "refused"));
    assert_null(strstr(w.heard.story, "--grid")); /* there is one */
}

/* Of two addresses that answer only one is confirmed; that the first one is slow costs little. */
static void addresses_are_tried_side_by_side(void **state)
{
    struct tb_handshake slow, quick;
    int second = listen_at(&w.hosts[1].addresses[1]);
    w.hosts[1].address_count = 2;
    dial(RANK_HERE, RANK_THERE);
    int first_fd = answer_call(w.listener);
    assert_nobody_calls(second);
    virtual_loop_pass(&w.time, SECOND / 2);
    int fd = greet(second, &quick, &w.key, TB_WELCOME_OK);
    accept_finally(fd, &quick);
    assert_over(1, 0);
    tb_handshake_accept(&slow, &w.key);
    assert_int_equal(tb_handshake_socket_receive(&slow, first_fd), TB_OK);
    assert_true(is_closed(first_fd));
    close(first_fd);
    close(fd);
    close(second);
}

static void nonsense_after_the_proof(void **state)
{
    struct tb_handshake h;
    dial(RANK_HERE, RANK_THERE);
    int fd = greet(w.listener, &h, &w.key, TB_WELCOME_OK);
    assert_int_equal(tb_handshake_socket_receive(&h, fd), TB_OK);
    assert_int_equal(send(fd, "?", 1, 0), 1);
    assert_true(is_closed(fd));
    assert_over(0, 1);
    assert_non_null(strstr(w.heard.story, "does not speak as an agent should"));
    close(fd);
}

static void processes_of_this_host(void **state)
{
    dial(RANK_HERE, (struct tb_proc){JOB, 1});
    assert_over(2, 0);
    assert_int_equal(w.heard.ends[0].self.index, 0);
    assert_int_equal(w.heard.ends[1].self.index, 1);
    assert_same_connection(w.heard.ends[0].socket, w.heard.ends[1].socket);
    w.ended = true;
    assert_int_equal(tb_dialer_connect(&w.dialer, self, (struct tb_proc){JOB, 1}, TB_STREAM_SHORT, 0), TB_ERR_CLOSED);
    assert_non_null(strstr(tb_error_story(), "rank 1 on host host0 has ended"));
    assert_int_equal(tb_dialer_connect(&w.dialer, RANK_HERE, (struct tb_proc){JOB, RANKS}, TB_STREAM_SHORT, 0),
                     TB_ERR_PEER);
    assert_int_equal(tb_dialer_connect(&w.dialer, RANK_HERE, (struct tb_proc){JOB + 1, 2}, TB_STREAM_SHORT, 0),
                     TB_ERR_PEER);
    assert_over(2, 0);
}

static void who_is_forgotten_hears_nothing(void **state)
{
    dial(RANK_HERE, RANK_THERE);
    int fd = answer_call(w.listener);
    tb_dialer_forget(&w.dialer, (struct tb_proc){JOB, 1});
    assert_false(tb_list_empty(&w.dialer.dials));
    tb_dialer_forget(&w.dialer, RANK_HERE);
    assert_over(0, 0);
    close(fd);
}

/* Only the other side can connect: it is called, and what comes from there is what was asked for. */
static void the_other_side_is_called(void **state)
{
    w.host_routes[1].means = TB_HOST_ROUTE_CALLED;
    dial(RANK_HERE, RANK_THERE);
    assert_int_equal(w.heard.events, 1);
    assert_int_equal(w.heard.called_host, 1);
    assert_int_equal(w.heard.called_there.index, 2);
    assert_int_equal(w.heard.called_here.index, 0);
    assert_int_equal(w.heard.called_stream, TB_STREAM_BULK);
    struct tb_connected end = {.self = RANK_HERE, .proc = RANK_THERE, .stream = TB_STREAM_SHORT, .socket = -1};
    tb_dialer_arrived(&w.dialer, &end);
    assert_false(tb_list_empty(&w.dialer.dials)); /* another stream */
    end.stream = TB_STREAM_BULK;
    tb_dialer_arrived(&w.dialer, &end);
    assert_over(0, 0); /* whom it was given to knows it already */
    dial(RANK_HERE, RANK_THERE);
    virtual_loop_pass(&w.time, tb_param.connect_timeout + 1000000);
    assert_over(0, 1);
    assert_int_equal(w.heard.error, TB_ERR_TIMEOUT);
}

static void we_are_called(void **state)
{
    struct tb_handshake h;
    tb_dialer_called(&w.dialer, (struct tb_proc){JOB, 1}, RANK_THERE, TB_STREAM_SHORT);
    int fd = greet(w.listener, &h, &w.key, TB_WELCOME_OK);
    accept_finally(fd, &h);
    assert_over(1, 0);
    assert_int_equal(w.heard.ends[1].self.index, 1);
    close(fd);
    w.ended = true;
    tb_log_threshold = TB_LOG_ERROR;
    tb_dialer_called(&w.dialer, (struct tb_proc){JOB, 1}, RANK_THERE, TB_STREAM_SHORT); /* it has ended */
    tb_dialer_called(&w.dialer, RANK_HERE, (struct tb_proc){JOB, 1}, TB_STREAM_SHORT);  /* from this host */
    tb_dialer_called(&w.dialer, RANK_HERE, RANK_THERE, TB_STREAM_COUNT);
    assert_over(1, 0);
    tb_dialer_called(&w.dialer, RANK_HERE, RANK_THERE, TB_STREAM_SHORT);
    close(greet(w.listener, &h, &w.key, TB_WELCOME_NO_SUCH_PROCESS));
    assert_over(1, 0); /* nobody here waits for bad news */
}

/* To another cluster a rank's dial goes on through silence; the owner hears of each round and of the answer. */
static void a_wide_link_may_be_down(void **state)
{
    struct tb_handshake h;
    w.host_routes[1].near = false;
    dial(RANK_HERE, RANK_THERE);
    int fds[3];
    for (uint32_t i = 0; i < 3; i++) {
        fds[i] = answer_call(w.listener);
        virtual_loop_pass(&w.time, 5ull * SECOND);
        assert_int_equal(w.heard.lost, i + 1);
    }
    assert_non_null(strstr(w.heard.story, "no answer within 4 s"));
    int fd = greet(w.listener, &h, &w.key, TB_WELCOME_OK);
    assert_int_equal(w.heard.found, 1);
    accept_finally(fd, &h);
    assert_over(1, 0);
    for (uint32_t i = 0; i < 3; i++)
        close(fds[i]);
    close(fd);
}

/* Where only agents may connect, neither a rank that asks for it nor one of there for whom it is called does. */
static void ranks_stay_inside(void **state)
{
    w.host_routes[1].open = false;
    assert_int_equal(tb_dialer_connect(&w.dialer, RANK_HERE, RANK_THERE, TB_STREAM_SHORT, 0), TB_ERR_PEER);
    assert_non_null(strstr(tb_error_story(), "rank 0 may not connect to rank 2 itself: between host host0 and host"));
    tb_log_threshold = TB_LOG_ERROR;
    tb_dialer_called(&w.dialer, RANK_HERE, RANK_THERE, TB_STREAM_SHORT);
    assert_over(0, 0);
}

/* Routes lead around a cut: an agent tries that way nevertheless, from both ends, to hear when it is healed. A rank
 * does not. */
static void agents_try_what_is_cut(void **state)
{
    struct tb_handshake h;
    struct tb_proc agent = {JOB, TB_PROC_AGENT | 1};
    w.host_routes[1].means = TB_HOST_ROUTE_RELAYED;
    w.host_routes[1].open = false;
    assert_int_equal(tb_dialer_connect(&w.dialer, RANK_HERE, RANK_THERE, TB_STREAM_SHORT, 0), TB_ERR_PEER);
    dial(w.member.self, agent);
    assert_int_equal(w.heard.events, 1);
    assert_int_equal(w.heard.called_host, 1);
    int fd = greet(w.listener, &h, &w.key, TB_WELCOME_OK);
    accept_finally(fd, &h);
    assert_over(1, 0);
    close(fd);
}

static void a_flood_of_wishes_has_a_limit(void **state)
{
    int rc = TB_OK;
    uint32_t count = 0;
    w.host_routes[1].means = TB_HOST_ROUTE_CALLED; /* so that none needs a socket */
    for (; count < 10000 && rc == TB_OK; count++)
        rc = tb_dialer_connect(&w.dialer, RANK_HERE, RANK_THERE, TB_STREAM_SHORT, 0);
    assert_int_equal(rc, TB_ERR_LIMIT);
    assert_int_equal(count, 4097);
    w.host_routes[1].means = TB_HOST_ROUTE_RELAYED;
    tb_dialer_forget(&w.dialer, RANK_HERE);
    assert_int_equal(tb_dialer_connect(&w.dialer, RANK_HERE, RANK_THERE, TB_STREAM_SHORT, 0), TB_ERR_PEER);
    assert_non_null(strstr(tb_error_story(), "has no direct way to host host1"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_rank_is_connected),
        TEST(the_agent_itself_is_connected),
        TEST(strangers_are_recognised),
        TEST(another_version_is_told),
        TEST(who_is_busy_is_asked_again),
        TEST(who_has_ended_is_told),
        TEST(another_host_at_its_address),
        TEST(silence_is_not_waited_for_too_long),
        TEST(nobody_listens),
        TEST(addresses_are_tried_side_by_side),
        TEST(nonsense_after_the_proof),
        TEST(processes_of_this_host),
        TEST(who_is_forgotten_hears_nothing),
        TEST(the_other_side_is_called),
        TEST(we_are_called),
        TEST(a_wide_link_may_be_down),
        TEST(agents_try_what_is_cut),
        TEST(ranks_stay_inside),
        TEST(a_flood_of_wishes_has_a_limit),
    };
    tb_param_load();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
