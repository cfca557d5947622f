/* The listener, with real connections inside of one loop whose time the test moves on. The test plays whoever connects:
 * friends, strangers, and those who repeat what they have overheard. */
#include "agent/listener.h"
#include "remote/virtual_loop_test.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#define JOB    9u
#define SECOND 1000000000u

static const struct tb_proc self = {JOB, TB_PROC_AGENT | 0}, other = {JOB, TB_PROC_AGENT | 1};
static const struct tb_proc rank_here = {JOB, 0}, rank_there = {JOB, 2};

static struct world {
    struct virtual_loop time;
    struct tb_key key;
    struct tb_host hosts[2];
    struct tb_address_book book;
    struct tb_host_routes routes;
    struct tb_member member;
    struct tb_listener listener;
    bool ended;       /* rank 0, the only one */
    uint32_t offered; /* features, by whoever says hello */
    uint32_t connected;
    struct tb_connected end; /* the last one */
    struct tb_hello hello;
    struct tb_welcome welcome;
} w;

/* The kernel takes its time to carry bytes, even inside of a host: the loop turns until something has come true. */
#define UNTIL(condition)                                                                                               \
    do {                                                                                                               \
        for (int turns = 0; turns < 2000 && !(condition); turns++) {                                                   \
            struct pollfd more = {.fd = w.time.loop.epoll, .events = POLLIN};                                          \
            virtual_loop_turn(&w.time);                                                                                \
            poll(&more, 1, 1);                                                                                         \
        }                                                                                                              \
        assert_true(condition);                                                                                        \
    } while (0)

/* ---- the owner of the listener ----------------------------------------------------------------------------------- */

static bool has_rank(void *context, uint32_t rank)
{
    return rank == 0 && !w.ended;
}

static void connected(void *context, const struct tb_connected *end)
{
    if (w.connected++ > 0)
        close(w.end.socket);
    w.end = *end;
    w.hello = *end->hello;
    w.welcome = *end->welcome;
}

static int open_world(void **state)
{
    const struct tb_listener_events events = {.has_rank = has_rank, .connected = connected};
    memset(&w, 0, sizeof w);
    memset(w.key.bytes, 3, sizeof w.key.bytes);
    w.book = (struct tb_address_book){.job = JOB, .ranks = 1, .host_count = 2, .hosts = w.hosts};
    w.member = (struct tb_member){.loop = &w.time.loop,
                                  .key = &w.key,
                                  .self = self,
                                  .name = "host0",
                                  .running = true,
                                  .book = &w.book,
                                  .routes = &w.routes};
    if (virtual_loop_open(&w.time) != TB_OK)
        return -1;
    return tb_listener_open(&w.listener, &w.member, "0", &events) == TB_OK ? 0 : -1;
}

static int close_world(void **state)
{
    tb_listener_close(&w.listener);
    if (w.connected > 0)
        close(w.end.socket);
    virtual_loop_close(&w.time);
    return 0;
}

/* ---- whoever connects -------------------------------------------------------------------------------------------- */

static int call(void)
{
    struct tb_address address = {.family = 4, .bytes = {127, 0, 0, 1}, .port = w.listener.port};
    struct sockaddr_storage name;
    socklen_t length = tb_address_socket(&address, &name);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0 && connect(fd, (struct sockaddr *)&name, length) == 0);
    return fd;
}

static bool is_readable(int fd)
{
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    return poll(&wait, 1, 0) > 0;
}

/* Closed by the listener, without another byte. */
static void assert_closed(int fd)
{
    char byte;
    UNTIL(is_readable(fd));
    assert_true(recv(fd, &byte, 1, MSG_DONTWAIT) <= 0);
    close(fd);
}

static void say(struct tb_handshake *h, int fd)
{
    assert_int_equal(tb_handshake_socket_send(h, fd), TB_OK);
}

static enum tb_handshake_verdict hear(struct tb_handshake *h, int fd)
{
    UNTIL(is_readable(fd));
    assert_int_equal(tb_handshake_socket_receive(h, fd), TB_OK);
    return h->verdict;
}

/* Says hello, and hears the answer. */
static enum tb_handshake_verdict greet(struct tb_handshake *h, int fd, struct tb_proc from, struct tb_proc to,
                                       uint32_t stream)
{
    assert_int_equal(tb_handshake_connect(h, &w.key, from, to, stream, w.offered), TB_OK);
    say(h, fd);
    return hear(h, fd);
}

static void assert_refused(struct tb_proc to, uint32_t stream, enum tb_welcome_status status)
{
    struct tb_handshake h;
    int fd = call();
    assert_int_equal(greet(&h, fd, other, to, stream), TB_HANDSHAKE_REFUSED);
    assert_int_equal(h.welcome.status, status);
    assert_closed(fd);
    assert_int_equal(w.connected, 0);
    assert_int_equal(w.listener.unproved_count + w.listener.proved_count, 0);
}

/* The whole of it; what follows is the owner's. */
static int befriend(struct tb_handshake *h, struct tb_proc from, struct tb_proc to, uint32_t stream)
{
    uint32_t before = w.connected;
    int fd = call();
    assert_int_equal(greet(h, fd, from, to, stream), TB_HANDSHAKE_WELCOMED);
    assert_int_equal(w.listener.proved_count, 1);
    assert_int_equal(tb_handshake_confirm(h), TB_OK);
    say(h, fd);
    assert_int_equal(send(fd, "x", 1, 0), 1); /* nobody takes more than belongs to the handshake */
    assert_int_equal(hear(h, fd), TB_HANDSHAKE_DONE);
    assert_int_equal(w.connected, before + 1);
    char byte = 0;
    UNTIL(is_readable(w.end.socket));
    assert_int_equal(recv(w.end.socket, &byte, 1, MSG_DONTWAIT), 1);
    assert_int_equal(byte, 'x');
    assert_int_equal(w.listener.unproved_count + w.listener.proved_count, 0);
    return fd;
}

/* ---- friends ----------------------------------------------------------------------------------------------------- */

static void friends_are_connected(void **state)
{
    struct tb_handshake h;
    int fd = befriend(&h, rank_there, rank_here, TB_STREAM_BULK);
    assert_int_equal(w.end.self.index, 0);
    assert_int_equal(w.end.proc.index, 2);
    assert_int_equal(w.end.stream, TB_STREAM_BULK);
    assert_false(w.end.dialed);
    assert_memory_equal(&w.hello, &h.hello, sizeof h.hello);
    assert_memory_equal(&w.welcome, &h.welcome, sizeof h.welcome);
    close(fd);
    close(befriend(&h, other, self, TB_STREAM_SHORT | 5u << TB_STREAM_STRIPE_SHIFT));
    assert_int_equal(w.end.self.index, self.index);
    assert_int_equal(w.end.stripe, 5);
    w.offered = TB_FEATURE_TLS | TB_FEATURE_LZ4;
    close(befriend(&h, other, self, TB_STREAM_CONTROL));
    assert_int_equal((uint32_t)w.end.stream, TB_STREAM_CONTROL);
    assert_int_equal(w.welcome.features, TB_FEATURE_TLS);
    tb_param.gateway_tls = false; /* which is about the frames of ranks */
    close(befriend(&h, other, self, TB_STREAM_CONTROL));
    tb_param.gateway_tls = true;
    assert_int_equal(w.welcome.features, TB_FEATURE_TLS);
}

/* Byte for byte, it comes to the same. */
static void slow_friends_are_friends(void **state)
{
    struct tb_handshake h;
    int fd = call();
    size_t length;
    assert_int_equal(tb_handshake_connect(&h, &w.key, rank_there, rank_here, TB_STREAM_SHORT, 0), TB_OK);
    const char *bytes = tb_handshake_output(&h, &length);
    for (size_t i = 0; i < length; i++) {
        assert_int_equal(send(fd, bytes + i, 1, 0), 1);
        virtual_loop_turn(&w.time);
    }
    assert_int_equal(hear(&h, fd), TB_HANDSHAKE_WELCOMED);
    assert_int_equal(tb_handshake_confirm(&h), TB_OK);
    bytes = tb_handshake_output(&h, &length);
    for (size_t i = 0; i < length; i++) {
        assert_int_equal(w.connected, 0);
        assert_int_equal(send(fd, bytes + i, 1, 0), 1);
        virtual_loop_turn(&w.time);
    }
    assert_int_equal(hear(&h, fd), TB_HANDSHAKE_DONE);
    assert_int_equal(w.connected, 1);
    close(fd);
}

/* Whether somebody is there is answered even before the address book has come; nothing becomes of it. */
static void questions_are_answered(void **state)
{
    for (int i = 0; i < 2; i++) {
        struct tb_handshake h;
        int fd = call();
        w.book.host_count = i == 0 ? 2 : 0;
        assert_int_equal(greet(&h, fd, other, self, TB_STREAM_PROBE), TB_HANDSHAKE_WELCOMED);
        assert_closed(fd);
    }
    assert_int_equal(w.connected, 0);
}

static void the_wrong_ones_are_told(void **state)
{
    assert_refused((struct tb_proc){JOB, 1}, TB_STREAM_SHORT, TB_WELCOME_NO_SUCH_PROCESS);
    assert_refused((struct tb_proc){JOB + 1, 0}, TB_STREAM_SHORT, TB_WELCOME_NO_SUCH_PROCESS);
    assert_refused((struct tb_proc){JOB, TB_PROC_AGENT | 1}, TB_STREAM_PROBE, TB_WELCOME_NO_SUCH_PROCESS);
    assert_refused(rank_here, TB_STREAM_COUNT, TB_WELCOME_NO_SUCH_PROCESS);
    assert_refused(self, TB_STREAM_CONTROL, TB_WELCOME_NO_SUCH_PROCESS); /* never without TLS */
    w.offered = TB_FEATURE_TLS;
    assert_refused(rank_here, TB_STREAM_CONTROL, TB_WELCOME_NO_SUCH_PROCESS);
    w.offered = 0;
    assert_refused(rank_here, 1u << TB_STREAM_STRIPE_SHIFT, TB_WELCOME_NO_SUCH_PROCESS); /* only agents have them */
    assert_refused(self, TB_STRIPES_LIMIT << TB_STREAM_STRIPE_SHIFT, TB_WELCOME_NO_SUCH_PROCESS);
    w.ended = true;
    assert_refused(rank_here, TB_STREAM_SHORT, TB_WELCOME_NO_SUCH_PROCESS);
}

static void before_the_address_book_it_is_busy(void **state)
{
    w.book = (struct tb_address_book){0};
    assert_refused(rank_here, TB_STREAM_SHORT, TB_WELCOME_BUSY);
    assert_refused(self, TB_STREAM_CONTROL, TB_WELCOME_BUSY);
}

/* Not more can be in the midst of it than the job has streams. */
static void a_crowd_of_friends_waits(void **state)
{
    enum { MOST = TB_STREAM_COUNT + 2 * TB_STREAM_COUNT * TB_STRIPES_LIMIT };
    struct tb_handshake h;
    int fds[MOST];
    for (int i = 0; i < MOST; i++) {
        fds[i] = call();
        assert_int_equal(greet(&h, fds[i], other, self, TB_STREAM_SHORT), TB_HANDSHAKE_WELCOMED);
    }
    assert_int_equal(w.listener.proved_count, MOST);
    int fd = call();
    assert_int_equal(greet(&h, fd, other, self, TB_STREAM_SHORT), TB_HANDSHAKE_REFUSED);
    assert_int_equal(h.welcome.status, TB_WELCOME_BUSY);
    assert_closed(fd);
    for (int i = 0; i < MOST; i++)
        close(fds[i]);
    UNTIL(w.listener.proved_count == 0);
}

static void whom_he_asks_for_ends_meanwhile(void **state)
{
    struct tb_handshake h;
    int fd = call();
    assert_int_equal(greet(&h, fd, other, rank_here, TB_STREAM_SHORT), TB_HANDSHAKE_WELCOMED);
    w.ended = true;
    assert_int_equal(tb_handshake_confirm(&h), TB_OK);
    say(&h, fd);
    assert_closed(fd);
    assert_int_equal(w.connected, 0);
}

/* ---- strangers --------------------------------------------------------------------------------------------------- */

static void strangers_get_no_answer(void **state)
{
    struct tb_handshake h;
    struct tb_key wrong = {{4}};
    int fd = call();
    assert_int_equal(tb_handshake_connect(&h, &wrong, other, self, TB_STREAM_SHORT, 0), TB_OK);
    say(&h, fd);
    assert_closed(fd);
    static const char web[sizeof(struct tb_hello)] = "GET / HTTP/1.1\r\n";
    fd = call();
    assert_int_equal(send(fd, web, sizeof web, 0), sizeof web);
    assert_closed(fd);
    assert_int_equal(w.connected, 0);
    assert_int_equal(w.listener.unproved_count + w.listener.proved_count, 0);
}

/* Who has the key but another version hears so, and that is all. */
static void another_version_is_answered(void **state)
{
    struct tb_handshake h;
    struct tb_hello hello;
    uint8_t bytes[sizeof hello];
    int fd = call();
    assert_int_equal(tb_hello_make(&hello, &w.key, other, self, TB_STREAM_SHORT), TB_OK);
    hello.version = TB_WIRE_VERSION + 1;
    assert_int_equal(tb_hello_offer(&hello, &w.key, 0), TB_OK); /* proves it anew */
    tb_wire_put_hello(bytes, &hello);
    assert_int_equal(send(fd, bytes, sizeof bytes, 0), sizeof bytes);
    assert_int_equal(tb_handshake_connect(&h, &w.key, other, self, TB_STREAM_SHORT, 0), TB_OK);
    h.hello = hello;
    assert_int_equal(hear(&h, fd), TB_HANDSHAKE_REFUSED);
    assert_int_equal(h.welcome.status, TB_WELCOME_VERSION);
    assert_closed(fd);
    assert_int_equal(w.connected, 0);
}

/* What was overheard of one connection does not make another. */
static void a_replay_is_noticed(void **state)
{
    struct tb_handshake h;
    uint8_t hello[sizeof(struct tb_hello)], confirm[sizeof(struct tb_confirm)], welcome[sizeof(struct tb_welcome)];
    size_t length;
    int fd = call();
    assert_int_equal(tb_handshake_connect(&h, &w.key, other, self, TB_STREAM_SHORT, 0), TB_OK);
    memcpy(hello, tb_handshake_output(&h, &length), sizeof hello);
    assert_int_equal(send(fd, hello, sizeof hello, 0), sizeof hello);
    assert_int_equal(hear(&h, fd), TB_HANDSHAKE_WELCOMED);
    assert_int_equal(tb_handshake_confirm(&h), TB_OK);
    memcpy(confirm, tb_handshake_output(&h, &length), sizeof confirm);
    assert_int_equal(send(fd, confirm, sizeof confirm, 0), sizeof confirm);
    assert_int_equal(hear(&h, fd), TB_HANDSHAKE_DONE);
    assert_int_equal(w.connected, 1);
    int again = call();
    assert_int_equal(send(again, hello, sizeof hello, 0), sizeof hello);
    UNTIL(is_readable(again));
    assert_int_equal(recv(again, welcome, sizeof welcome, MSG_WAITALL), sizeof welcome);
    assert_int_equal(send(again, confirm, sizeof confirm, 0), sizeof confirm);
    assert_closed(again);
    assert_int_equal(w.connected, 1);
    close(fd);
}

static void who_leaves_is_forgotten(void **state)
{
    struct tb_handshake h;
    int fd = call();
    UNTIL(w.listener.unproved_count == 1);
    close(fd);
    UNTIL(w.listener.unproved_count == 0);
    fd = call();
    assert_int_equal(greet(&h, fd, other, self, TB_STREAM_SHORT), TB_HANDSHAKE_WELCOMED);
    close(fd);
    UNTIL(w.listener.proved_count == 0);
    assert_int_equal(w.connected, 0);
}

static void silence_is_not_waited_for_too_long(void **state)
{
    struct tb_handshake h;
    int silent = call(), half = call();
    assert_int_equal(greet(&h, half, other, self, TB_STREAM_SHORT), TB_HANDSHAKE_WELCOMED);
    UNTIL(w.listener.unproved_count == 1);
    virtual_loop_pass(&w.time, 4ull * SECOND);
    assert_int_equal(w.listener.unproved_count + w.listener.proved_count, 2);
    virtual_loop_pass(&w.time, 2ull * SECOND);
    assert_int_equal(w.listener.unproved_count + w.listener.proved_count, 0);
    assert_closed(silent);
    assert_closed(half);
}

/* Strangers take all places. The next one waits a moment, then the oldest of them has to go: a friend who speaks gets
 * through. */
static void a_flood_of_strangers(void **state)
{
    struct tb_handshake h;
    int fds[TB_LISTENER_UNPROVED_LIMIT];
    for (uint32_t i = 0; i < TB_LISTENER_UNPROVED_LIMIT; i++)
        fds[i] = call();
    UNTIL(w.listener.unproved_count == TB_LISTENER_UNPROVED_LIMIT);
    int fd = call();
    assert_int_equal(tb_handshake_connect(&h, &w.key, other, self, TB_STREAM_SHORT, 0), TB_OK);
    say(&h, fd);
    virtual_loop_turn(&w.time);
    assert_false(is_readable(fd));
    virtual_loop_pass(&w.time, SECOND / 4);
    assert_int_equal(hear(&h, fd), TB_HANDSHAKE_WELCOMED);
    assert_in_range(w.listener.unproved_count, TB_LISTENER_UNPROVED_LIMIT - 2, TB_LISTENER_UNPROVED_LIMIT - 1);
    assert_closed(fds[0]);
    for (uint32_t i = 1; i < TB_LISTENER_UNPROVED_LIMIT; i++)
        close(fds[i]);
    close(fd);
}

/* ---- the port ---------------------------------------------------------------------------------------------------- */

static void ports_can_be_chosen(void **state)
{
    const struct tb_listener_events events = {.has_rank = has_rank, .connected = connected};
    struct tb_listener second = {0};
    char ports[32];
    snprintf(ports, sizeof ports, "%u", w.listener.port);
    assert_int_equal(tb_listener_open(&second, &w.member, ports, &events), TB_ERR_LIMIT);
    assert_non_null(strstr(tb_error_story(), "no free port"));
    tb_listener_close(&second);
    assert_int_equal(tb_listener_open(&second, &w.member, "nonsense", &events), TB_ERR_ARGUMENT);
    tb_listener_close(&second);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(friends_are_connected),
        TEST(slow_friends_are_friends),
        TEST(questions_are_answered),
        TEST(the_wrong_ones_are_told),
        TEST(before_the_address_book_it_is_busy),
        TEST(a_crowd_of_friends_waits),
        TEST(whom_he_asks_for_ends_meanwhile),
        TEST(strangers_get_no_answer),
        TEST(another_version_is_answered),
        TEST(a_replay_is_noticed),
        TEST(who_leaves_is_forgotten),
        TEST(silence_is_not_waited_for_too_long),
        TEST(a_flood_of_strangers),
        TEST(ports_can_be_chosen),
    };
    tb_param_load();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
