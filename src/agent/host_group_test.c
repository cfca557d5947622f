/* The multicast group of a host, with a launcher, other hosts and sockets that the test plays, in virtual time. */
#include "agent/host_group.h"

#include "remote/virtual_loop_test.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HOSTS 4u
#define JOB   77u
#define MS    UINT64_C(1000000)
#define PLACE 3u

static struct world {
    struct virtual_loop loop;
    struct tb_setup setup;
    struct tb_host hosts[HOSTS];
    struct tb_address_book book;
    struct tb_host_group group;
    /* The port. */
    bool open, held;
    int open_result, send_result, hold_result;
    uint32_t opened, sent, closed, holds, other_count, piece;
    struct tb_multicast_group where;
    struct tb_group_word word;
    /* What was told. */
    uint32_t states, reports, troubles, verdicts;
    uint32_t attempt, test, version;
    struct tb_multicast_fit fit;
    enum tb_multicast_state state;
    enum tb_multicast_trouble trouble;
    uint64_t heard, longest;
    char why[256];
} w;

/* ---- the port ---------------------------------------------------------------------------------------------------- */

static int port_open(struct tb_group_port *port, struct tb_multicast_group *where, uint32_t job, uint32_t host,
                     struct tb_multicast_fit *fit)
{
    assert_int_equal(job, JOB);
    assert_int_equal(host, 1);
    assert_false(w.open);
    w.opened++;
    if (w.open_result < 0)
        tb_error(w.open_result, "there is no such thing here");
    if (w.open_result != TB_OK)
        return w.open_result;
    where->interface = 5;
    w.where = *where;
    w.open = true;
    *fit = (struct tb_multicast_fit){1420, 425984};
    return TB_OK;
}

static int port_send(struct tb_group_port *port, const struct tb_group_word *word, uint32_t piece)
{
    assert_true(w.open);
    w.sent++;
    w.word = *word;
    w.piece = piece;
    return w.send_result == TB_OK ? TB_OK : tb_error(w.send_result, "the interface is gone");
}

static int port_hold(struct tb_group_port *port, const struct tb_address *others, uint32_t count)
{
    assert_true(w.open);
    w.holds++;
    w.other_count = count;
    for (uint32_t i = 0; i < count; i++)
        assert_int_not_equal(others[i].bytes[3], 2); /* itself */
    if (w.hold_result != TB_OK)
        return tb_error(w.hold_result, "too many groups");
    w.open = false;
    w.held = true;
    return TB_OK;
}

static void port_close(struct tb_group_port *port)
{
    assert_true(w.open || w.held);
    w.open = w.held = false;
    w.closed++;
}

static const struct tb_group_port_calls calls = {
    .open = port_open, .send = port_send, .hold = port_hold, .close = port_close};

/* ---- the launcher and the ranks ---------------------------------------------------------------------------------- */

static void take_state(void *context, uint32_t attempt, enum tb_multicast_state state,
                       const struct tb_multicast_fit *fit, const char *why)
{
    w.states++;
    w.attempt = attempt;
    w.state = state;
    w.fit = *fit;
    snprintf(w.why, sizeof w.why, "%s", why);
}

static void take_heard(void *context, uint32_t test, uint64_t heard, uint64_t longest)
{
    w.reports++;
    w.test = test;
    w.heard = heard;
    w.longest = longest;
}

static void take_trouble(void *context, uint32_t version, enum tb_multicast_trouble what)
{
    w.troubles++;
    w.version = version;
    w.trouble = what;
}

static void take_verdict(void *context)
{
    w.verdicts++;
}

static int give(enum tb_control kind, struct tb_writer *fields)
{
    struct tb_reader r;
    tb_reader_open(&r, fields->bytes, fields->length);
    int rc = tb_host_group_take(&w.group, kind, &r);
    tb_writer_close(fields);
    return rc;
}

static int order(uint32_t attempt)
{
    struct tb_writer fields;
    struct tb_multicast_order o = {.attempt = attempt,
                                   .place = PLACE,
                                   .address = {.family = 4, .port = 12000, .bytes = {239, 1, 2, (uint8_t)attempt}},
                                   .local = w.hosts[1].addresses[0],
                                   .ttl = 1};
    tb_writer_open(&fields);
    tb_multicast_order_put(&fields, &o);
    return give(TB_CONTROL_GROUP, &fields);
}

static int test(uint32_t attempt, uint32_t number, uint32_t piece)
{
    struct tb_writer fields;
    tb_writer_open(&fields);
    tb_put_u32(&fields, attempt);
    tb_put_u32(&fields, number);
    tb_put_u32(&fields, piece);
    return give(TB_CONTROL_GROUP_TEST, &fields);
}

static int verdict(uint32_t version, bool works, uint32_t piece)
{
    struct tb_writer fields;
    const uint8_t bits = works ? 1u << PLACE : 0;
    tb_writer_open(&fields);
    tb_put_u32(&fields, version);
    tb_put_bytes(&fields, &bits, 1);
    tb_put_u32(&fields, piece);
    tb_put_u32(&fields, piece > 0 ? 212992 : 0);
    return give(TB_CONTROL_GROUP_VERDICT, &fields);
}

static void hear(uint32_t host, uint32_t number, uint32_t length, uint64_t heard)
{
    const struct tb_group_word word = {
        .host = host, .test = number, .length = length, .heard = heard, .longest = heard};
    w.group.port.events.word(w.group.port.events.context, &word);
}

/* ---- worlds ------------------------------------------------------------------------------------------------------ */

static int open_world(void **state)
{
    const struct tb_host_group_events events = {
        .state = take_state, .heard = take_heard, .trouble = take_trouble, .verdict = take_verdict};
    memset(&w, 0, sizeof w);
    w.setup = (struct tb_setup){.job = JOB, .host = 1, .host_count = HOSTS};
    w.book = (struct tb_address_book){.host_count = HOSTS, .hosts = w.hosts};
    for (uint32_t i = 0; i < HOSTS; i++)
        w.hosts[i] =
            (struct tb_host){.place = PLACE,
                             .rank_count = 1,
                             .address_count = 1,
                             .addresses = {{.family = 4, .prefix = 24, .bytes = {10, 0, 0, (uint8_t)(i + 1)}}}};
    if (virtual_loop_open(&w.loop) != TB_OK)
        return -1;
    tb_host_group_init(&w.group, &w.loop.loop, &calls, &events);
    return 0;
}

static int close_world(void **state)
{
    tb_host_group_close(&w.group);
    assert_false(w.open || w.held); /* nothing is left open, whatever happened */
    virtual_loop_close(&w.loop);
    return 0;
}

static void open_group(void)
{
    assert_int_equal(order(1), TB_OK);
    assert_int_equal(w.opened, 0); /* the address book is not here */
    assert_true(w.group.known.expected);
    tb_host_group_begin(&w.group, &w.setup, &w.book);
    assert_int_equal(w.states, 1);
}

/* Of the others, all that is needed. */
static void hear_all(uint32_t number, uint32_t piece)
{
    for (uint32_t i = 0; i < HOSTS; i++)
        if (i != 1) {
            hear(i, number, 16, 0);
            hear(i, number, piece, 0xf);
        }
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

static void a_host_in_no_group(void **state)
{
    assert_int_equal(order(0), TB_OK);
    tb_host_group_begin(&w.group, &w.setup, &w.book);
    assert_true(w.group.known.expected);
    assert_int_equal(tb_multicast_first(&w.group.known, PLACE), TB_MULTICAST_UNKNOWN);
    assert_int_equal(test(1, 1, 1420), TB_OK); /* not for us */
    assert_int_equal(verdict(1, true, 0), TB_OK);
    assert_int_equal(tb_multicast_first(&w.group.known, PLACE), TB_MULTICAST_WORKS);
    assert_false(w.group.known.grouped);
    assert_int_equal(w.verdicts, 1);
    assert_int_equal(w.opened + w.states + w.reports, 0);
    tb_host_group_complain(&w.group, 1, TB_MULTICAST_UNHEARD);
    assert_int_equal(w.troubles, 0);
}

static void a_job_without_groups(void **state)
{
    tb_host_group_begin(&w.group, &w.setup, &w.book);
    assert_false(w.group.known.expected);
    assert_int_equal(w.opened, 0);
}

static void from_the_order_to_the_verdict(void **state)
{
    open_group();
    assert_int_equal(w.state, TB_MULTICAST_OPEN);
    assert_int_equal(w.attempt, 1);
    assert_true(w.fit.piece == 1420 && w.fit.buffer == 425984);
    virtual_loop_pass(&w.loop, 1000 * MS);
    assert_int_equal(w.sent, 0); /* nobody sends before all are there */
    assert_int_equal(test(1, 9, 1400), TB_OK);
    virtual_loop_pass(&w.loop, MS); /* it is the second of the probers */
    assert_int_equal(w.sent, 1);
    assert_int_equal(w.word.test, 9);
    assert_int_equal(w.piece, 1400);
    hear_all(9, 1400);
    assert_int_equal(w.reports, 1);
    assert_int_equal(w.test, 9);
    assert_int_equal(w.heard, 0xd);
    assert_int_equal(w.longest, 0xd);
    assert_int_equal(verdict(1, true, 1400), TB_OK);
    assert_int_equal(w.verdicts, 1);
    assert_true(w.group.known.grouped && w.held);
    assert_int_equal(w.other_count, 3);
    assert_int_equal(w.group.known.group.piece, 1400);
    assert_int_equal(w.group.known.group.buffer, 212992);
    assert_int_equal(w.group.known.group.interface, 5);
    assert_memory_equal(&w.group.known.group.key, &w.where.key, sizeof w.where.key);
    static const struct tb_siphash_key none;
    assert_memory_not_equal(&w.where.key, &none, sizeof none);
    uint32_t sent = w.sent;
    virtual_loop_pass(&w.loop, 1000 * MS);
    assert_int_equal(w.sent, sent);
    assert_int_equal(w.reports, 1);
}

static void only_long_ones_are_long(void **state)
{
    open_group();
    assert_int_equal(test(1, 9, 1400), TB_OK);
    for (uint32_t i = 0; i < HOSTS; i++)
        hear(i, 9, 1399, 0);
    hear(0, 8, 1400, 0); /* of another test */
    for (unsigned i = 0; i < 101; i++)
        virtual_loop_pass(&w.loop, MS);
    assert_int_equal(w.reports, 1);
    assert_int_equal(w.heard, 0xd);
    assert_int_equal(w.longest, 0);
    assert_int_equal(w.sent, 7);
    hear_all(9, 1400); /* late */
    assert_int_equal(w.reports, 2);
    assert_int_equal(w.longest, 0xd);
}

static void a_group_that_does_not_work_is_left(void **state)
{
    open_group();
    assert_int_equal(test(1, 9, 1400), TB_OK);
    assert_int_equal(verdict(1, false, 0), TB_OK);
    assert_false(w.open || w.held || w.group.known.grouped);
    assert_int_equal(w.closed, 1);
    virtual_loop_pass(&w.loop, 1000 * MS);
    assert_int_equal(w.reports, 0);
}

static void what_cannot_be_had_is_told(void **state)
{
    w.open_result = TB_ERR_SYSTEM;
    open_group();
    assert_int_equal(w.state, TB_MULTICAST_CLOSED);
    assert_string_equal(w.why, "there is no such thing here");
    assert_int_equal(verdict(1, false, 0), TB_OK);
    assert_int_equal(w.verdicts, 1);
}

static void a_port_that_somebody_has(void **state)
{
    w.open_result = TB_AGAIN;
    open_group();
    assert_int_equal(w.state, TB_MULTICAST_TAKEN);
    w.open_result = TB_OK;
    assert_int_equal(order(2), TB_OK);
    assert_int_equal(w.state, TB_MULTICAST_OPEN);
    assert_int_equal(w.attempt, 2);
    assert_int_equal(w.where.address.bytes[3], 2);
}

static void others_on_the_group_are_told_once(void **state)
{
    open_group();
    w.group.port.events.foreign(w.group.port.events.context);
    w.group.port.events.foreign(w.group.port.events.context);
    assert_int_equal(w.states, 2);
    assert_int_equal(w.state, TB_MULTICAST_TAKEN);
    assert_int_equal(order(2), TB_OK);
    assert_int_equal(w.closed, 1);
    assert_int_equal(w.state, TB_MULTICAST_OPEN);
    assert_int_equal(test(1, 3, 1400), TB_OK); /* of the one before */
    virtual_loop_pass(&w.loop, MS);
    assert_int_equal(w.sent, 0);
    w.group.port.events.foreign(w.group.port.events.context); /* here, too */
    assert_int_equal(w.states, 4);
    assert_int_equal(w.attempt, 2);
}

static void an_interface_that_goes_away(void **state)
{
    open_group();
    w.send_result = TB_ERR_SYSTEM;
    assert_int_equal(test(1, 9, 1400), TB_OK);
    virtual_loop_pass(&w.loop, MS);
    assert_int_equal(w.state, TB_MULTICAST_CLOSED);
    assert_string_equal(w.why, "the interface is gone");
    assert_false(w.open);
    uint32_t states = w.states;
    virtual_loop_pass(&w.loop, 1000 * MS);
    assert_int_equal(w.states, states);
}

static void a_later_test(void **state)
{
    open_group();
    assert_int_equal(test(1, 9, 1400), TB_OK);
    assert_int_equal(verdict(1, true, 1400), TB_OK);
    assert_true(w.held && !w.open);
    assert_int_equal(test(1, 10, 1400), TB_OK); /* it hears again */
    assert_true(w.open);
    hear_all(10, 1400);
    assert_int_equal(w.test, 10);
    assert_int_equal(verdict(2, false, 0), TB_OK);
    assert_false(w.group.known.grouped);
    assert_true(w.held && !w.open); /* it has worked, and may do so again */
    assert_int_equal(tb_multicast_first(&w.group.known, PLACE), TB_MULTICAST_WORKS);
    assert_false(tb_multicast_bit(w.group.known.newest, PLACE));
    assert_int_equal(test(1, 11, 1400), TB_OK);
    assert_int_equal(verdict(3, true, 1180), TB_OK);
    assert_true(w.group.known.grouped);
    assert_int_equal(w.group.known.group.piece, 1180);
    w.open_result = TB_ERR_UNSUPPORTED;
    assert_int_equal(test(1, 12, 1180), TB_OK);
    assert_int_equal(w.state, TB_MULTICAST_CLOSED);
}

static void a_membership_that_cannot_be_held(void **state)
{
    open_group();
    w.hold_result = TB_ERR_SYSTEM;
    assert_int_equal(verdict(1, true, 1400), TB_OK);
    assert_true(w.group.known.grouped && w.open); /* it goes on listening, and is a member so */
}

static void complaints_are_few(void **state)
{
    open_group();
    tb_host_group_complain(&w.group, 0, TB_MULTICAST_UNHEARD); /* there is no verdict yet */
    assert_int_equal(w.troubles, 0);
    assert_int_equal(verdict(1, true, 1400), TB_OK);
    tb_host_group_complain(&w.group, 2, TB_MULTICAST_UNHEARD);
    assert_int_equal(w.troubles, 0);
    for (unsigned i = 0; i < 25; i++) {
        tb_host_group_complain(&w.group, 1, TB_MULTICAST_OTHER_JOB);
        virtual_loop_pass(&w.loop, 100 * MS);
    }
    assert_int_equal(w.troubles, 3);
    assert_int_equal(w.version, 1);
    assert_int_equal(w.trouble, TB_MULTICAST_OTHER_JOB);
}

static void frames_that_make_no_sense(void **state)
{
    struct tb_writer fields;
    assert_int_equal(test(1, 1, 1400), TB_ERR_PROTOCOL); /* before the address book */
    assert_int_equal(verdict(1, true, 1400), TB_ERR_PROTOCOL);
    open_group();
    assert_int_equal(test(1, 0, 1400), TB_ERR_PROTOCOL);
    assert_int_equal(test(1, 1, 16), TB_ERR_PROTOCOL);
    assert_int_equal(test(1, 1, TB_DATAGRAM_PAYLOAD_LIMIT + 1), TB_ERR_PROTOCOL);
    assert_int_equal(verdict(0, true, 1400), TB_ERR_PROTOCOL);
    assert_int_equal(verdict(1, true, TB_DATAGRAM_PAYLOAD_LIMIT + 1), TB_ERR_PROTOCOL);
    static const enum tb_control kinds[] = {TB_CONTROL_GROUP, TB_CONTROL_GROUP_TEST, TB_CONTROL_GROUP_VERDICT};
    for (unsigned k = 0; k < 3; k++) {
        tb_writer_open(&fields);
        tb_put_u32(&fields, 7);
        tb_put_u8(&fields, 1);
        assert_int_equal(give(kinds[k], &fields), TB_ERR_PROTOCOL);
    }
    assert_int_equal(w.sent + w.verdicts, 0);
}

static void after_the_end_nothing_happens(void **state)
{
    open_group();
    assert_int_equal(test(1, 9, 1400), TB_OK);
    tb_host_group_close(&w.group);
    assert_int_equal(w.closed, 1);
    uint32_t sent = w.sent;
    virtual_loop_pass(&w.loop, 1000 * MS);
    assert_int_equal(order(2), TB_OK);
    assert_int_equal(verdict(1, true, 1400), TB_OK);
    assert_int_equal(w.opened, 1);
    assert_int_equal(w.sent, sent);
    assert_int_equal(w.reports + w.verdicts, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)
    const struct CMUnitTest tests[] = {
        TEST(a_host_in_no_group),
        TEST(a_job_without_groups),
        TEST(from_the_order_to_the_verdict),
        TEST(only_long_ones_are_long),
        TEST(a_group_that_does_not_work_is_left),
        TEST(what_cannot_be_had_is_told),
        TEST(a_port_that_somebody_has),
        TEST(others_on_the_group_are_told_once),
        TEST(an_interface_that_goes_away),
        TEST(a_later_test),
        TEST(a_membership_that_cannot_be_held),
        TEST(complaints_are_few),
        TEST(frames_that_make_no_sense),
        TEST(after_the_end_nothing_happens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
