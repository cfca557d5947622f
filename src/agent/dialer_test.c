/* Connections that the dialer makes, and who makes them where only one side can. */
#include "agent/dialer_world_test.h"

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

/* As many as may be in the making: calls, so that none needs a socket. One of them is for the bulk stream. */
static void fill(void)
{
    w.host_routes[1].means = TB_HOST_ROUTE_CALLED;
    dial(RANK_HERE, RANK_THERE);
    for (uint32_t i = 1; i < TB_DIAL_WISHES_RUNNING; i++)
        assert_int_equal(tb_dialer_connect(&w.dialer, RANK_HERE, RANK_THERE, TB_STREAM_SHORT, 0), TB_OK);
    assert_int_equal(w.heard.events, TB_DIAL_WISHES_RUNNING);
}

static void end_bulk(void)
{
    struct tb_connected end = {.self = RANK_HERE, .proc = RANK_THERE, .stream = TB_STREAM_BULK, .socket = -1};
    tb_dialer_arrived(&w.dialer, &end);
    virtual_loop_turn(&w.time);
}

/* Those beyond the limit begin when others have ended, and are refused only then, if they must be. */
static void very_many_wait(void **state)
{
    struct tb_proc second = {JOB, 1};
    fill();
    dial(second, RANK_THERE);
    dial(second, (struct tb_proc){JOB, 3});
    dial(RANK_HERE, (struct tb_proc){JOB, 3});
    assert_int_equal(w.heard.events, TB_DIAL_WISHES_RUNNING);
    assert_int_equal(w.dialer.wishes.lines[0].count, 3);
    end_bulk();
    assert_int_equal(w.heard.events, TB_DIAL_WISHES_RUNNING + 1);
    assert_int_equal(w.heard.called_here.index, 1);
    assert_int_equal(w.heard.called_there.index, 2);
    tb_dialer_forget(&w.dialer, second); /* also what waits for it */
    assert_int_equal(w.dialer.wishes.lines[0].count, 1);
    w.host_routes[1].means = TB_HOST_ROUTE_RELAYED;
    virtual_loop_turn(&w.time);
    assert_int_equal(w.heard.refused, 1);
    assert_int_equal(w.heard.error, TB_ERR_PEER);
    assert_int_equal(w.dialer.wishes.lines[0].count, 0);
    tb_dialer_forget(&w.dialer, RANK_HERE);
    assert_int_equal(w.dialer.wishes.lines[0].running, 0);
    assert_over(0, 1);
}

/* Agents that call each other in a circle would all wait for the next one. */
static void who_calls_does_not_wait_for_our_calls(void **state)
{
    struct tb_handshake h;
    fill();
    w.host_routes[1].means = TB_HOST_ROUTE_DIRECT;
    dial(RANK_HERE, RANK_THERE);
    tb_dialer_called(&w.dialer, (struct tb_proc){JOB, 1}, RANK_THERE, TB_STREAM_SHORT);
    int fd = greet(w.listener, &h, &w.key, TB_WELCOME_OK);
    accept_finally(fd, &h);
    assert_int_equal(w.heard.ends[1].self.index, 1);
    assert_int_equal(w.dialer.wishes.lines[0].count, 1);
    close(fd);
    tb_dialer_forget(&w.dialer, RANK_HERE);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_rank_is_connected),
        TEST(the_agent_itself_is_connected),
        TEST(addresses_are_tried_side_by_side),
        TEST(processes_of_this_host),
        TEST(who_is_forgotten_hears_nothing),
        TEST(the_other_side_is_called),
        TEST(very_many_wait),
        TEST(who_calls_does_not_wait_for_our_calls),
        TEST(we_are_called),
        TEST(a_wide_link_may_be_down),
        TEST(agents_try_what_is_cut),
    };
    tb_param_load();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
