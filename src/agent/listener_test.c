/* The listener, with real connections inside of one loop whose time the test moves on. The test plays whoever connects:
 * friends, strangers, and those who repeat what they have overheard. */
#include "agent/listener.h"
#include "remote/virtual_loop_test.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/resource.h>
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
    struct tb_rank_range ranges[2];
    struct tb_host_route host_routes[2];
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
    w.book = (struct tb_address_book){
        .job = JOB, .ranks = 3, .host_count = 2, .range_count = 2, .hosts = w.hosts, .ranges = w.ranges};
    w.ranges[0] = (struct tb_rank_range){.count = 2};
    w.ranges[1] = (struct tb_rank_range){.first_rank = 2, .count = 1, .host = 1};
    w.hosts[1].kind = 1;
    w.member = (struct tb_member){.loop = &w.time.loop,
                                  .key = &w.key,
                                  .self = self,
                                  .name = "host0",
                                  .running = true,
                                  .book = &w.book,
                                  .routes = &w.routes};
    if (virtual_loop_open(&w.time) != TB_OK)
        return -1;
    return tb_listener_open(&w.listener, &w.member, "0", NULL, &events) == TB_OK ? 0 : -1;
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
    assert_int_equal(w.listener.callers.count, 0);
}

/* The whole of it; what follows is the owner's. */
static int befriend(struct tb_handshake *h, struct tb_proc from, struct tb_proc to, uint32_t stream)
{
    uint32_t before = w.connected;
    int fd = call();
    assert_int_equal(greet(h, fd, from, to, stream), TB_HANDSHAKE_WELCOMED);
    assert_int_equal(w.listener.callers.count, 1);
    assert_int_equal(tb_handshake_confirm(h), TB_OK);
    say(h, fd);
    assert_int_equal(send(fd, "x", 1, 0), 1); /* nobody takes more than belongs to the handshake */
    assert_int_equal(hear(h, fd), TB_HANDSHAKE_DONE);
    assert_int_equal(w.connected, before + 1);
    char byte = 0;
    UNTIL(is_readable(w.end.socket));
    assert_int_equal(recv(w.end.socket, &byte, 1, MSG_DONTWAIT), 1);
    assert_int_equal(byte, 'x');
    assert_int_equal(w.listener.callers.count, 0);
    return fd;
}

/* Likewise with the agent, while others stand around. */
static int befriend_among(struct tb_handshake *h, uint32_t others)
{
    uint32_t before = w.connected;
    int fd = call();
    assert_int_equal(greet(h, fd, other, self, TB_STREAM_SHORT), TB_HANDSHAKE_WELCOMED);
    assert_in_range(w.listener.callers.count, 1, others + 1);
    assert_int_equal(tb_handshake_confirm(h), TB_OK);
    say(h, fd);
    assert_int_equal(hear(h, fd), TB_HANDSHAKE_DONE);
    assert_int_equal(w.connected, before + 1);
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
    assert_refused((struct tb_proc){JOB, TB_PROC_AGENT | 1}, TB_STREAM_PROBE, TB_WELCOME_OTHER_HOST);
    assert_refused((struct tb_proc){JOB, TB_PROC_AGENT | 1}, TB_STREAM_SHORT, TB_WELCOME_OTHER_HOST);
    assert_refused((struct tb_proc){JOB, TB_PROC_AGENT | 2}, TB_STREAM_SHORT, TB_WELCOME_NO_SUCH_PROCESS);
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

/* From a host to which only agents connect, nobody comes to a rank and no rank to the agent; agents come. */
static void ranks_do_not_cross_borders(void **state)
{
    const struct {
        struct tb_proc from, to;
        bool open, refused;
    } cases[] = {{rank_there, rank_here, true, false}, {rank_there, rank_here, false, true},
                 {other, rank_here, false, true},      {rank_there, self, false, true},
                 {other, self, false, false},          {{JOB, 3}, rank_here, true, true}};
    w.routes = (struct tb_host_routes){.kind_count = 2, .routes = w.host_routes};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tb_handshake h;
        int fd = call();
        w.host_routes[1].open = cases[i].open;
        assert_int_equal(greet(&h, fd, cases[i].from, cases[i].to, TB_STREAM_SHORT),
                         cases[i].refused ? TB_HANDSHAKE_REFUSED : TB_HANDSHAKE_WELCOMED);
        if (cases[i].refused)
            assert_int_equal(h.welcome.status, TB_WELCOME_BORDER);
        close(fd);
    }
}

static void before_the_address_book_it_is_busy(void **state)
{
    w.book = (struct tb_address_book){0};
    assert_refused(rank_here, TB_STREAM_SHORT, TB_WELCOME_BUSY);
    assert_refused(self, TB_STREAM_CONTROL, TB_WELCOME_BUSY);
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
    assert_int_equal(w.listener.callers.count, 0);
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
    uint8_t hello[sizeof(struct tb_hello)], confirm[sizeof(struct tb_confirm)];
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
    assert_closed(again);
    again = call();
    assert_int_equal(send(again, hello, sizeof hello, 0), sizeof hello);
    assert_int_equal(send(again, confirm, sizeof confirm, 0), sizeof confirm);
    assert_closed(again);
    assert_int_equal(w.connected, 1);
    close(fd);
}

/* The same hello from many sides: one of them is answered, and they take nothing away from a friend. */
static void many_replays_are_one_hello(void **state)
{
    enum { REPLAYS = 1000 };
    static const uint32_t streams[] = {TB_STREAM_SHORT, TB_STREAM_PROBE, TB_STREAM_CONTROL};
    for (size_t k = 0; k < sizeof streams / sizeof streams[0]; k++) {
        struct tb_handshake h;
        uint8_t hello[sizeof(struct tb_hello)];
        size_t length;
        int fds[REPLAYS];
        assert_int_equal(tb_handshake_connect(&h, &w.key, other, self, streams[k], 0), TB_OK);
        memcpy(hello, tb_handshake_output(&h, &length), sizeof hello);
        uint32_t answered = 0;
        for (int i = 0; i < REPLAYS; i++) {
            fds[i] = call();
            assert_int_equal(send(fds[i], hello, sizeof hello, 0), sizeof hello);
        }
        for (int i = 0; i < REPLAYS; i++) {
            uint8_t welcome[sizeof(struct tb_welcome)];
            UNTIL(is_readable(fds[i]));
            answered += recv(fds[i], welcome, sizeof welcome, MSG_DONTWAIT) == (ssize_t)sizeof welcome;
        }
        assert_int_equal(answered, 1);
        assert_in_range(w.listener.callers.count, 0, 1);
        close(befriend_among(&h, w.listener.callers.count));
        for (int i = 0; i < REPLAYS; i++)
            close(fds[i]);
        UNTIL(w.listener.callers.count == 0);
    }
}

static void who_leaves_is_forgotten(void **state)
{
    struct tb_handshake h;
    int fd = call();
    UNTIL(w.listener.callers.count == 1);
    close(fd);
    UNTIL(w.listener.callers.count == 0);
    fd = call();
    assert_int_equal(greet(&h, fd, other, self, TB_STREAM_SHORT), TB_HANDSHAKE_WELCOMED);
    close(fd);
    UNTIL(w.listener.callers.count == 0);
    assert_int_equal(w.connected, 0);
}

static void silence_is_not_waited_for_too_long(void **state)
{
    struct tb_handshake h;
    int silent = call(), half = call();
    assert_int_equal(greet(&h, half, other, self, TB_STREAM_SHORT), TB_HANDSHAKE_WELCOMED);
    UNTIL(w.listener.callers.count == 2);
    virtual_loop_pass(&w.time, 4ull * SECOND);
    assert_int_equal(w.listener.callers.count, 2);
    virtual_loop_pass(&w.time, 2ull * SECOND);
    assert_int_equal(w.listener.callers.count, 0);
    assert_closed(silent);
    assert_closed(half);
}

/* Twice as many strangers as there are places: whoever has been silent for longest goes, at once, and a friend who
 * speaks gets through without a pause. */
static void a_flood_of_strangers(void **state)
{
    enum { STRANGERS = 2 * TB_LISTENER_CALLERS };
    static int fds[STRANGERS];
    struct tb_handshake h;
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    uint32_t places = w.listener.callers.most, strangers = 2 * places;
    if (limit.rlim_cur < strangers + places + 64) {
        print_message("not enough descriptors here (%lu)\n", (unsigned long)limit.rlim_cur);
        skip();
    }
    for (uint32_t i = 0; i < strangers; i++) {
        fds[i] = call();
        if (i % 64 == 63)
            virtual_loop_turn(&w.time);
    }
    UNTIL(w.listener.callers.count == places && is_readable(fds[places - 1]));
    for (uint32_t i = 0; i < places; i++)
        assert_closed(fds[i]);
    close(befriend_among(&h, places));
    assert_int_equal(w.listener.callers.count, places - 1);
    assert_closed(fds[places]);
    for (uint32_t i = places + 1; i < strangers; i++)
        close(fds[i]);
}

/* Who has proved something is not pushed out by those who have not. */
static void the_silent_go_first(void **state)
{
    struct tb_handshake h;
    w.listener.callers.most = 3;
    int half = call();
    assert_int_equal(greet(&h, half, other, self, TB_STREAM_SHORT), TB_HANDSHAKE_WELCOMED);
    for (int i = 0; i < 8; i++) {
        int fds[3] = {call(), call(), call()};
        assert_closed(fds[0]);
        UNTIL(w.listener.callers.count == 3);
        for (int k = 1; k < 3; k++)
            close(fds[k]);
        UNTIL(w.listener.callers.count == 1);
    }
    assert_int_equal(tb_handshake_confirm(&h), TB_OK);
    say(&h, half);
    assert_int_equal(hear(&h, half), TB_HANDSHAKE_DONE);
    assert_int_equal(w.connected, 1);
    close(half);
}

/* The descriptors of the process are used up: a stranger gives his. */
static void descriptors_are_taken_from_strangers(void **state)
{
    struct tb_handshake h;
    int silent = call();
    UNTIL(w.listener.callers.count == 1);
    int fd = call();
    assert_int_equal(tb_handshake_connect(&h, &w.key, other, self, TB_STREAM_SHORT, 0), TB_OK);
    say(&h, fd);
    struct rlimit before, now;
    getrlimit(RLIMIT_NOFILE, &before);
    now = before;
    int lowest = dup(0);
    close(lowest);
    now.rlim_cur = (rlim_t)lowest;
    setrlimit(RLIMIT_NOFILE, &now);
    enum tb_handshake_verdict verdict = hear(&h, fd);
    setrlimit(RLIMIT_NOFILE, &before);
    assert_int_equal(verdict, TB_HANDSHAKE_WELCOMED);
    assert_closed(silent);
    close(fd);
}

/* ---- the port ---------------------------------------------------------------------------------------------------- */

static void ports_can_be_chosen(void **state)
{
    const struct tb_listener_events events = {.has_rank = has_rank, .connected = connected};
    struct tb_listener second = {0};
    char ports[32];
    snprintf(ports, sizeof ports, "%u", w.listener.port);
    assert_int_equal(tb_listener_open(&second, &w.member, ports, NULL, &events), TB_ERR_LIMIT);
    assert_non_null(strstr(tb_error_story(), "no free port"));
    tb_listener_close(&second);
    assert_int_equal(tb_listener_open(&second, &w.member, "nonsense", NULL, &events), TB_ERR_ARGUMENT);
    tb_listener_close(&second);
}

/* At two of the addresses of this machine, which get one port; the third refuses. */
static void addresses_can_be_chosen(void **state)
{
    const struct tb_listener_events events = {.has_rank = has_rank, .connected = connected};
    struct tb_listener second = {0};
    struct tb_address_list at = {.count = 3,
                                 .at = {{.family = 4, .bytes = {127, 0, 0, 2}},
                                        {.family = 4, .bytes = {192, 0, 2, 1}}, /* is not here */
                                        {.family = 4, .bytes = {127, 0, 0, 3}}}};
    assert_int_equal(tb_listener_open(&second, &w.member, "0", &at, &events), TB_OK);
    assert_int_equal(at.count, 2);
    assert_int_equal(at.at[1].bytes[3], 3);
    for (uint8_t i = 1; i < 4; i++) {
        struct tb_address address = {
            .family = 4, .bytes = {127, 0, 0, i}, .port = i > 1 ? at.at[i - 2].port : second.port};
        struct sockaddr_storage name;
        struct tb_handshake h;
        socklen_t length = tb_address_socket(&address, &name);
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(connect(fd, (struct sockaddr *)&name, length), i == 1 ? -1 : 0);
        if (i > 1)
            assert_int_equal(greet(&h, fd, other, self, TB_STREAM_PROBE), TB_HANDSHAKE_WELCOMED);
        close(fd);
    }
    tb_listener_close(&second);
    at.at[0] = (struct tb_address){.family = 4, .bytes = {192, 0, 2, 1}};
    at.count = 1;
    assert_int_equal(tb_listener_open(&second, &w.member, "0", &at, &events), TB_ERR_SYSTEM);
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
        TEST(ranks_do_not_cross_borders),
        TEST(before_the_address_book_it_is_busy),
        TEST(whom_he_asks_for_ends_meanwhile),
        TEST(strangers_get_no_answer),
        TEST(another_version_is_answered),
        TEST(a_replay_is_noticed),
        TEST(many_replays_are_one_hello),
        TEST(who_leaves_is_forgotten),
        TEST(silence_is_not_waited_for_too_long),
        TEST(a_flood_of_strangers),
        TEST(the_silent_go_first),
        TEST(descriptors_are_taken_from_strangers),
        TEST(ports_can_be_chosen),
        TEST(addresses_can_be_chosen),
    };
    tb_param_load();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
