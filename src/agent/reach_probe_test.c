/* The reach probe against a real listener of another agent, inside of one loop whose time the test moves on. */
#include "agent/listener.h"
#include "agent/reach_probe.h"
#include "remote/virtual_loop_test.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

#define JOB    9u
#define SECOND 1000000000u
#define MOST   8u

static struct world {
    struct virtual_loop time;
    struct tb_key key, other_key;
    struct tb_address_book book;
    struct tb_host_routes routes;
    struct tb_member here, there; /* hosts 0 and 1 */
    struct tb_listener listener;  /* of host 1 */
    struct tb_reach_probe probe;
    uint32_t answers, count;
    struct tb_reach_report reports[MOST];
} w;

static bool has_rank(void *context, uint32_t rank)
{
    return false;
}

static void connected(void *context, const struct tb_connected *end)
{
    fail(); /* nothing is kept of a probe */
}

static void answered(void *context, const struct tb_reach_report *reports, uint32_t count)
{
    w.answers++;
    w.count = count;
    memcpy(w.reports, reports, count * sizeof *reports);
}

static int open_world(void **state)
{
    const struct tb_listener_events events = {.has_rank = has_rank, .connected = connected};
    memset(&w, 0, sizeof w);
    memset(w.key.bytes, 3, sizeof w.key.bytes);
    w.here = (struct tb_member){
        .loop = &w.time.loop, .key = &w.key, .self = {JOB, TB_PROC_AGENT}, .book = &w.book, .routes = &w.routes};
    w.there = w.here;
    w.there.self.index |= w.there.host = 1;
    w.there.name = "there";
    tb_reach_probe_open(&w.probe, &w.here, NULL, answered);
    if (virtual_loop_open(&w.time) != TB_OK)
        return -1;
    return tb_listener_open(&w.listener, &w.there, "0", NULL, &events) == TB_OK ? 0 : -1;
}

static int close_world(void **state)
{
    tb_reach_probe_close(&w.probe);
    tb_listener_close(&w.listener);
    virtual_loop_close(&w.time);
    return 0;
}

/* One host that is asked for, at these ports of 127.0.0.1. */
static void put_target(struct tb_writer *fields, uint32_t host, const uint16_t *ports, uint32_t count)
{
    tb_put_u32(fields, host);
    tb_put_u32(fields, count);
    for (uint32_t i = 0; i < count; i++)
        tb_address_put(fields, &(struct tb_address){.family = 4, .bytes = {127, 0, 0, 1}, .port = ports[i]});
}

static void begin(struct tb_writer *fields)
{
    struct tb_reader r;
    assert_int_equal(fields->error, TB_OK);
    tb_reader_open(&r, fields->bytes, fields->length);
    tb_reach_probe_begin(&w.probe, &r);
    tb_writer_close(fields);
}

static void open_fields(struct tb_writer *fields, uint32_t count)
{
    tb_writer_open(fields);
    tb_put_u64(fields, 2ull * SECOND);
    tb_put_u32(fields, count);
}

static void until_answered(void)
{
    for (int i = 0; i < 2000 && w.answers == 0; i++) {
        struct pollfd more = {.fd = w.time.loop.epoll, .events = POLLIN};
        virtual_loop_turn(&w.time);
        poll(&more, 1, 1);
    }
    assert_int_equal(w.answers, 1);
}

/* A port that was free a moment ago, and a listener who never accepts. */
static int make_silent(uint16_t *port)
{
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof name;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0 && bind(fd, (struct sockaddr *)&name, length) == 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&name, &length), 0);
    *port = ntohs(name.sin_port);
    return fd;
}

static void who_answers_is_reached(void **state)
{
    struct tb_writer fields;
    uint16_t dead, ports[2];
    int fd = make_silent(&dead); /* bound, but nobody listens: refused */
    open_fields(&fields, 4);
    ports[0] = dead;
    ports[1] = w.listener.port;
    put_target(&fields, 1, ports, 2); /* one of its addresses is enough */
    put_target(&fields, 2, &dead, 1);
    put_target(&fields, 3, &w.listener.port, 1); /* the agent of host 1 is there in its place */
    put_target(&fields, 4, NULL, 0);
    begin(&fields);
    until_answered();
    assert_int_equal(w.count, 4);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(w.reports[i].host, i + 1);
    assert_true(w.reports[0].reached);
    assert_string_equal(w.reports[0].story, "");
    assert_false(w.reports[1].reached || w.reports[2].reached || w.reports[3].reached);
    assert_non_null(strstr(w.reports[1].story, "refused"));
    assert_non_null(strstr(w.reports[2].story, "the agent of another host"));
    assert_string_equal(w.reports[3].story, "it has told no address");
    close(fd);
}

static void strangers_are_not_reached(void **state)
{
    struct tb_writer fields;
    w.there.key = &w.other_key;
    open_fields(&fields, 1);
    put_target(&fields, 1, &w.listener.port, 1);
    begin(&fields);
    until_answered();
    assert_false(w.reports[0].reached);
    assert_non_null(strstr(w.reports[0].story, "closed the connection without a word: no agent of this job"));
}

/* Somebody takes connections and says nothing: after the time that was given, this is the answer. */
static void silence_is_an_answer(void **state)
{
    struct tb_writer fields;
    uint16_t port;
    int fd = make_silent(&port);
    assert_int_equal(listen(fd, 8), 0);
    open_fields(&fields, 1);
    put_target(&fields, 1, &port, 1);
    begin(&fields);
    for (int i = 0; i < 19; i++)
        virtual_loop_pass(&w.time, SECOND / 10);
    assert_int_equal(w.answers, 0);
    virtual_loop_pass(&w.time, SECOND / 10);
    assert_int_equal(w.answers, 1);
    assert_false(w.reports[0].reached);
    assert_string_equal(w.reports[0].story, "no answer within 2 s");
    close(fd);
}

static void one_at_a_time_and_none_of_nonsense(void **state)
{
    struct tb_writer fields;
    uint16_t port;
    int fd = make_silent(&port);
    assert_int_equal(listen(fd, 8), 0);
    open_fields(&fields, 2); /* but there is only one */
    put_target(&fields, 1, &port, 1);
    begin(&fields);
    open_fields(&fields, 1);
    put_target(&fields, 1, &port, 1);
    begin(&fields);
    open_fields(&fields, 0);
    begin(&fields); /* too early */
    assert_int_equal(w.answers, 0);
    tb_reach_probe_close(&w.probe);
    virtual_loop_pass(&w.time, 9ull * SECOND);
    assert_int_equal(w.answers, 0); /* nobody waits for it */
    open_fields(&fields, 0);
    begin(&fields);
    assert_int_equal(w.answers, 1);
    assert_int_equal(w.count, 0);
    close(fd);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(who_answers_is_reached),
        TEST(strangers_are_not_reached),
        TEST(silence_is_an_answer),
        TEST(one_at_a_time_and_none_of_nonsense),
    };
    tb_param_load();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
