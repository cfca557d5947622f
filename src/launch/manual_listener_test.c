/* The listener for agents that are started by hand, with callers of each sort, in virtual time. */
#include "launch/manual_listener.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "remote/virtual_loop_test.h"

#define STEPS  1000
#define SECOND UINT64_C(1000000000)

struct world {
    struct virtual_loop loop;
    struct tb_manual_listener listener;
    bool refuses; /* nobody is wanted any more */
    uint32_t came, host;
    int socket;
    struct tb_key secret;
};

static bool is_wanted(void *context, uint32_t host)
{
    return !((struct world *)context)->refuses;
}

static void take_socket(void *context, uint32_t host, int socket, const struct tb_key *secret)
{
    struct world *w = context;
    w->came++;
    w->host = host;
    w->socket = socket;
    w->secret = *secret;
}

static void make(struct world *w)
{
    memset(w, 0, sizeof *w);
    w->socket = -1;
    virtual_loop_open(&w->loop);
    const struct tb_manual_listener_events events = {.context = w, .wanted = is_wanted, .came = take_socket};
    assert_int_equal(tb_manual_listener_open(&w->listener, &w->loop.loop, &events), TB_OK);
    assert_int_not_equal(w->listener.port, 0);
}

static void unmake(struct world *w)
{
    if (w->socket >= 0)
        close(w->socket);
    tb_manual_listener_close(&w->listener);
    virtual_loop_close(&w->loop);
}

static int call(const struct world *w)
{
    struct tb_address address = {.family = 4, .port = w->listener.port, .bytes = {127, 0, 0, 1}};
    struct sockaddr_storage name;
    socklen_t length = tb_address_socket(&address, &name);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&name, length), 0);
    return fd;
}

/* Until the caller has something to read. False: it is closed. */
static bool wait_for_answer(struct world *w, int fd)
{
    struct pollfd about = {.fd = fd, .events = POLLIN};
    char byte;
    for (int i = 0; i < STEPS; i++) {
        virtual_loop_turn(&w->loop);
        if (poll(&about, 1, 1) == 1)
            return recv(fd, &byte, 1, MSG_PEEK) == 1;
    }
    fail_msg("there is no answer");
    return false;
}

static void begin(struct tb_handshake *h, int fd, const struct tb_key *key)
{
    struct tb_proc nobody = {0};
    assert_int_equal(tb_handshake_connect(h, key, nobody, nobody, 0, 0), TB_OK);
    assert_int_equal(tb_handshake_socket_send(h, fd), TB_OK);
}

/* Up to the confirm, which is sent. */
static void prove(struct world *w, struct tb_handshake *h, int fd, const struct tb_key *key)
{
    begin(h, fd, key);
    assert_true(wait_for_answer(w, fd));
    assert_int_equal(tb_handshake_socket_receive(h, fd), TB_OK);
    assert_int_equal(h->verdict, TB_HANDSHAKE_WELCOMED);
    assert_int_equal(tb_handshake_confirm(h), TB_OK);
    assert_int_equal(tb_handshake_socket_send(h, fd), TB_OK);
}

/* Agents of two hosts are expected; the key of the second, made from what the user was shown. */
static struct tb_key expect_two(struct world *w)
{
    char secret[TB_MANUAL_SECRET_BYTES];
    struct tb_key key;
    assert_int_equal(tb_manual_listener_expect(&w->listener, 4, secret), TB_OK);
    assert_int_equal(tb_manual_listener_expect(&w->listener, 7, secret), TB_OK);
    assert_int_equal(strlen(secret), 29);
    assert_int_equal(tb_key_derive(&key, secret), TB_OK);
    return key;
}

static void who_knows_the_secret_comes_in(void **state)
{
    struct world w;
    struct tb_handshake h;
    struct tb_key secret;
    make(&w);
    struct tb_key key = expect_two(&w);
    int fd = call(&w);
    prove(&w, &h, fd, &key);
    assert_int_equal(w.came, 0);
    assert_true(wait_for_answer(&w, fd));
    assert_int_equal(tb_handshake_socket_receive(&h, fd), TB_OK);
    assert_int_equal(h.verdict, TB_HANDSHAKE_DONE);
    assert_int_equal(w.came, 1);
    assert_int_equal(w.host, 7);
    assert_int_equal(tb_stream_secret(&secret, &key, &h.hello, &h.welcome), TB_OK);
    assert_memory_equal(&w.secret, &secret, sizeof secret);
    assert_int_equal(w.listener.callers.count, 0);
    assert_int_equal(send(w.socket, "x", 1, 0), 1); /* it is the same connection, and open */
    assert_true(wait_for_answer(&w, fd));
    close(fd);
    unmake(&w);
}

static void a_stranger_gets_not_a_byte(void **state)
{
    struct world w;
    struct tb_handshake h;
    struct tb_key wrong;
    make(&w);
    expect_two(&w);
    assert_int_equal(tb_key_make(&wrong), TB_OK);
    int fd = call(&w);
    begin(&h, fd, &wrong);
    assert_false(wait_for_answer(&w, fd));
    assert_int_equal(w.listener.callers.count, 0);
    close(fd);
    fd = call(&w);
    static const char request[sizeof(struct tb_hello)] = "GET / HTTP/1.1\r\n";
    assert_int_equal(send(fd, request, sizeof request, MSG_NOSIGNAL), sizeof request);
    assert_false(wait_for_answer(&w, fd));
    close(fd);
    assert_int_equal(w.came, 0);
    unmake(&w);
}

static void a_wrong_confirm_is_closed(void **state)
{
    struct world w;
    struct tb_handshake h;
    make(&w);
    struct tb_key key = expect_two(&w);
    int fd = call(&w);
    begin(&h, fd, &key);
    assert_true(wait_for_answer(&w, fd));
    assert_int_equal(tb_handshake_socket_receive(&h, fd), TB_OK);
    static const struct tb_confirm nonsense;
    assert_int_equal(send(fd, &nonsense, sizeof nonsense, MSG_NOSIGNAL), sizeof nonsense);
    assert_false(wait_for_answer(&w, fd));
    assert_int_equal(w.came, 0);
    close(fd);
    unmake(&w);
}

static void a_secret_is_good_for_one(void **state)
{
    struct world w;
    struct tb_handshake first, second;
    make(&w);
    struct tb_key key = expect_two(&w);
    int a = call(&w), b = call(&w);
    prove(&w, &first, a, &key);
    begin(&second, b, &key);
    w.refuses = true; /* somebody else was quicker */
    assert_false(wait_for_answer(&w, a));
    assert_false(wait_for_answer(&w, b));
    assert_int_equal(w.came, 0);
    close(a);
    close(b);
    unmake(&w);
}

/* Until the listener has so many callers. */
static void wait_for_callers(struct world *w, uint32_t count)
{
    struct pollfd about = {.fd = w->listener.callers.doors[0].watch.descriptor, .events = 0};
    for (int i = 0; i < STEPS && w->listener.callers.count != count; i++) {
        virtual_loop_turn(&w->loop);
        poll(&about, 1, w->listener.callers.count != count);
    }
    assert_int_equal(w->listener.callers.count, count);
}

static void one_that_hangs_up_early_is_forgotten(void **state)
{
    struct world w;
    struct tb_handshake h;
    size_t length;
    make(&w);
    struct tb_key key = expect_two(&w);
    int fd = call(&w);
    assert_int_equal(tb_handshake_connect(&h, &key, (struct tb_proc){0}, (struct tb_proc){0}, 0, 0), TB_OK);
    const void *hello = tb_handshake_output(&h, &length);
    assert_int_equal(send(fd, hello, length / 2, MSG_NOSIGNAL), length / 2);
    wait_for_callers(&w, 1);
    close(fd);
    wait_for_callers(&w, 0);
    fd = call(&w); /* and the next is heard */
    begin(&h, fd, &key);
    assert_true(wait_for_answer(&w, fd));
    close(fd);
    unmake(&w);
}

/* A hello is answered once, however often it is said; and then the friend can still come. */
static void replays_are_not_answered(void **state)
{
    struct world w;
    struct tb_handshake h;
    struct tb_confirm nonsense = {{0}};
    uint8_t hello[sizeof(struct tb_hello)];
    size_t length;
    make(&w);
    struct tb_key key = expect_two(&w);
    assert_int_equal(tb_handshake_connect(&h, &key, (struct tb_proc){0}, (struct tb_proc){0}, 0, 0), TB_OK);
    memcpy(hello, tb_handshake_output(&h, &length), sizeof hello);
    for (int i = 0; i < 300; i++) {
        int fd = call(&w);
        assert_int_equal(send(fd, hello, sizeof hello, MSG_NOSIGNAL), sizeof hello);
        assert_int_equal(wait_for_answer(&w, fd), i == 0);
        if (i == 0)
            assert_int_equal(send(fd, &nonsense, sizeof nonsense, MSG_NOSIGNAL), sizeof nonsense);
        close(fd);
    }
    int fd = call(&w);
    prove(&w, &h, fd, &key);
    assert_true(wait_for_answer(&w, fd));
    assert_int_equal(w.came, 1);
    close(fd);
    unmake(&w);
}

/* Those who say nothing keep nobody out: the oldest of them goes when somebody comes; and all go in the end. */
static void silent_callers_lose_their_places(void **state)
{
    enum { CALLERS = TB_MANUAL_CALLERS };
    struct world w;
    struct tb_handshake h;
    int fds[CALLERS + 8];
    make(&w);
    struct tb_key key = expect_two(&w);
    for (int i = 0; i < CALLERS + 8; i++)
        fds[i] = call(&w);
    wait_for_callers(&w, CALLERS);
    for (int i = 0; i < 8; i++)
        assert_false(wait_for_answer(&w, fds[i]));
    int fd = call(&w);
    prove(&w, &h, fd, &key);
    assert_true(wait_for_answer(&w, fd));
    assert_int_equal(w.came, 1);
    assert_false(wait_for_answer(&w, fds[8]));
    virtual_loop_pass(&w.loop, 9 * SECOND);
    assert_int_equal(w.listener.callers.count, CALLERS - 1);
    virtual_loop_pass(&w.loop, SECOND);
    wait_for_callers(&w, 0);
    for (int i = 0; i < CALLERS + 8; i++)
        close(fds[i]);
    fds[0] = call(&w);
    wait_for_callers(&w, 1);
    tb_manual_listener_forget(&w.listener);
    assert_int_equal(w.listener.callers.count, 0);
    close(fds[0]);
    close(fd);
    unmake(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_knows_the_secret_comes_in),
        cmocka_unit_test(a_stranger_gets_not_a_byte),
        cmocka_unit_test(a_wrong_confirm_is_closed),
        cmocka_unit_test(a_secret_is_good_for_one),
        cmocka_unit_test(one_that_hangs_up_early_is_forgotten),
        cmocka_unit_test(replays_are_not_answered),
        cmocka_unit_test(silent_callers_lose_their_places),
    };
    tb_param_load();
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
