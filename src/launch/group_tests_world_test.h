/* Multicast groups of a job with agents that the test plays, in virtual time. Included by the tests of groups. */
#ifndef TB_LAUNCH_GROUP_TESTS_WORLD_TEST_H
#define TB_LAUNCH_GROUP_TESTS_WORLD_TEST_H

#include "launch/group_tests.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "remote/virtual_loop_test.h"

#define HOSTS_MOST 100u
#define MS         UINT64_C(1000000)
#define SECOND     (1000 * MS)
#define FITS       1420u

/* What a host has been told. */
struct told {
    uint32_t orders, tests, verdicts; /* frames */
    struct tb_multicast_order order;
    uint32_t attempt, test, piece; /* of the last test */
    struct tb_multicast_facts known;
    uint32_t own_piece, own_buffer;
};

static struct world {
    struct virtual_loop loop;
    struct tb_host hosts[HOSTS_MOST];
    struct tb_address_book book;
    struct tb_host_agents agents;
    struct tb_host_agent_events agent_events;
    struct tb_group_tests tests;
    struct tb_control_stream ends[HOSTS_MOST]; /* of the agents */
    struct told told[HOSTS_MOST];
    uint32_t said;
    char text[1024];
} w;

static inline void note(void *context, const char *text)
{
    w.said++;
    snprintf(w.text, sizeof w.text, "%s", text);
}

/* ---- agents ------------------------------------------------------------------------------------------------------ */

static inline void take_frame(struct told *told, struct tb_control_frame *frame)
{
    struct tb_reader *r = &frame->fields;
    if (frame->kind == TB_CONTROL_GROUP) {
        told->orders++;
        assert_int_equal(tb_multicast_order_get(r, &told->order), TB_OK);
    } else if (frame->kind == TB_CONTROL_GROUP_TEST) {
        told->tests++;
        told->attempt = tb_get_u32(r);
        told->test = tb_get_u32(r);
        told->piece = tb_get_u32(r);
        assert_int_equal(tb_reader_end(r), TB_OK);
    } else {
        assert_int_equal(frame->kind, TB_CONTROL_GROUP_VERDICT);
        size_t length = 0;
        uint32_t version = tb_get_u32(r);
        const uint8_t *bits = tb_get_bytes(r, &length);
        told->verdicts++;
        told->own_piece = tb_get_u32(r);
        told->own_buffer = tb_get_u32(r);
        assert_int_equal(tb_reader_end(r), TB_OK);
        assert_int_equal(version, told->known.version + 1);
        assert_int_equal(tb_multicast_learn(&told->known, version, bits, length), TB_OK);
    }
}

/* All read what they were sent. */
static inline void deliver(void)
{
    for (uint32_t i = 0; i < w.agents.count; i++) {
        struct tb_control_frame frame;
        size_t length = 0;
        const void *bytes = tb_control_stream_take(&w.agents.all[i].control, SIZE_MAX, &length);
        assert_int_equal(tb_control_stream_feed(&w.ends[i], bytes, length), TB_OK);
        while (tb_control_stream_next(&w.ends[i], &frame) == TB_OK)
            take_frame(&w.told[i], &frame);
    }
}

static inline void send_fields(uint32_t host, enum tb_control kind, struct tb_writer *fields)
{
    struct tb_reader r;
    tb_reader_open(&r, fields->bytes, fields->length);
    tb_group_tests_take(&w.tests, host, kind, &r);
    tb_writer_close(fields);
    deliver();
}

static inline void say_state(uint32_t host, uint32_t attempt, enum tb_multicast_state state, uint32_t fits,
                             const char *why)
{
    struct tb_writer fields;
    tb_writer_open(&fields);
    tb_put_u32(&fields, attempt);
    tb_put_u8(&fields, (uint8_t)state);
    tb_put_u32(&fields, fits);
    tb_put_u32(&fields, 100000 + 1000 * ((host + 2) % 4));
    tb_put_text(&fields, why);
    send_fields(host, TB_CONTROL_GROUP_STATE, &fields);
}

static inline void say_heard(uint32_t host, uint32_t test, uint64_t heard, uint64_t longest)
{
    struct tb_writer fields;
    tb_writer_open(&fields);
    tb_put_u32(&fields, test);
    tb_put_u64(&fields, heard);
    tb_put_u64(&fields, longest);
    send_fields(host, TB_CONTROL_GROUP_HEARD, &fields);
}

static inline void say_trouble(uint32_t host, uint32_t version, unsigned what)
{
    struct tb_writer fields;
    tb_writer_open(&fields);
    tb_put_u32(&fields, version);
    tb_put_u8(&fields, (uint8_t)what);
    send_fields(host, TB_CONTROL_GROUP_TROUBLE, &fields);
}

/* All that are in a group open the one that they know of. */
static inline void open_all(void)
{
    for (uint32_t i = 0; i < w.agents.count; i++)
        if (w.told[i].order.attempt > 0)
            say_state(i, w.told[i].order.attempt, TB_MULTICAST_OPEN, FITS, "");
}

/* All report all; of one cluster of up to 64 hosts. */
static inline void hear_all(void)
{
    for (uint32_t i = 0; i < w.agents.count; i++)
        if (w.told[i].order.attempt > 0)
            say_heard(i, w.told[i].test, UINT64_MAX & ~(UINT64_C(1) << i), UINT64_MAX & ~(UINT64_C(1) << i));
}

/* ---- worlds ------------------------------------------------------------------------------------------------------ */

static inline void make_places(const char *const *clusters)
{
    struct tb_places_builder *builder;
    uint32_t handle, numbers[8];
    assert_int_equal(tb_places_builder_open(&builder), TB_OK);
    for (; *clusters != NULL; clusters++)
        assert_int_equal(tb_places_builder_add(builder, 0, TB_LEVEL_CLUSTER, *clusters, &handle), TB_OK);
    assert_int_equal(tb_places_builder_seal(builder, &w.book.places, numbers), TB_OK);
    tb_places_builder_close(builder);
}

/* Hosts h1, h2... in these places; begun. */
static inline void open_world(uint32_t count, uint32_t (*place)(uint32_t host), const char *const *clusters)
{
    memset(&w, 0, sizeof w);
    assert_int_equal(tb_param_load(), TB_OK);
    tb_param.explain = true;
    assert_int_equal(virtual_loop_open(&w.loop), TB_OK);
    w.book = (struct tb_address_book){.host_count = count, .hosts = w.hosts};
    make_places(clusters);
    for (uint32_t i = 0; i < count; i++) {
        struct tb_host *host = &w.hosts[i];
        snprintf(host->name, sizeof host->name, "h%u", i + 1);
        host->place = place(i);
        host->rank_count = 2;
        host->address_count = 1;
        host->addresses[0] =
            (struct tb_address){.family = 4, .prefix = 24, .bytes = {10, 0, (uint8_t)host->place, (uint8_t)(i + 1)}};
    }
    assert_int_equal(tb_host_agents_open(&w.agents, &w.loop.loop, count, &w.agent_events), TB_OK);
    for (uint32_t i = 0; i < count; i++) {
        w.agents.all[i].phase = TB_HOST_AGENT_READY;
        tb_control_stream_open(&w.ends[i], -1, -1);
        w.told[i].known.expected = true;
    }
    tb_group_tests_init(&w.tests, &w.loop.loop, &(struct tb_group_tests_events){.note = note});
    assert_int_equal(tb_group_tests_choose(&w.tests, &w.book, NULL, &w.agents), TB_OK);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(tb_group_tests_order(&w.tests, &w.agents.all[i]), TB_OK);
    tb_group_tests_begin(&w.tests);
    deliver();
}

static inline uint32_t in_the_world(uint32_t host)
{
    return 0;
}

static inline void open_hosts(uint32_t count)
{
    open_world(count, in_the_world, (const char *const[]){NULL});
}

static inline void close_world(void)
{
    tb_group_tests_close(&w.tests);
    for (uint32_t i = 0; i < w.agents.count; i++) {
        tb_host_agent_give_up(&w.agents.all[i]);
        tb_control_stream_close(&w.ends[i]);
    }
    tb_host_agents_close(&w.agents);
    tb_places_close(&w.book.places);
    virtual_loop_close(&w.loop);
}

static inline void pass(uint64_t ns)
{
    virtual_loop_pass(&w.loop, ns);
    deliver();
}

static inline void verdict_is(uint32_t version, uint32_t place, enum tb_multicast_verdict verdict)
{
    for (uint32_t i = 0; i < w.agents.count; i++) {
        assert_int_equal(w.told[i].known.version, version);
        assert_int_equal(tb_multicast_bit(w.told[i].known.newest, place), verdict == TB_MULTICAST_WORKS);
        assert_int_equal(w.told[i].own_piece > 0, w.hosts[i].place == place && verdict == TB_MULTICAST_WORKS);
    }
}

#endif
