/* Connections that the dialer cannot have: what it hears instead, whom it asks again, and what it tells. */
#include "agent/dialer_world_test.h"

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

static void a_flood_of_wishes_has_a_limit(void **state)
{
    int rc = TB_OK;
    uint32_t count = 0;
    w.host_routes[1].means = TB_HOST_ROUTE_CALLED; /* so that none needs a socket */
    for (; count < 10000 && rc == TB_OK; count++)
        rc = tb_dialer_connect(&w.dialer, RANK_HERE, RANK_THERE, TB_STREAM_SHORT, 0);
    assert_int_equal(rc, TB_ERR_LIMIT);
    assert_int_equal(count, TB_DIAL_WISHES_RUNNING + 2 * (RANKS + 2) * (RANKS + 2) + 1);
    w.host_routes[1].means = TB_HOST_ROUTE_RELAYED;
    tb_dialer_forget(&w.dialer, RANK_HERE);
    assert_int_equal(tb_dialer_connect(&w.dialer, RANK_HERE, RANK_THERE, TB_STREAM_SHORT, 0), TB_ERR_PEER);
    assert_non_null(strstr(tb_error_story(), "has no direct way to host host1"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(strangers_are_recognised),
        TEST(another_version_is_told),
        TEST(who_is_busy_is_asked_again),
        TEST(who_has_ended_is_told),
        TEST(another_host_at_its_address),
        TEST(silence_is_not_waited_for_too_long),
        TEST(nobody_listens),
        TEST(nonsense_after_the_proof),
        TEST(ranks_stay_inside),
        TEST(a_flood_of_wishes_has_a_limit),
    };
    tb_param_load();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
