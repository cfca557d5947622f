/* The registry of a job in the launcher, asked by agents that the test plays, in virtual time. */
#include "launch/job_registry.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "remote/virtual_loop_test.h"

#define HOSTS 2u
#define MS    1000000u

struct world {
    struct virtual_loop t;
    struct tb_host_agents agents;
    struct tb_host_agent_events agent_events;
    struct tb_job_registry registry;
    struct tb_host hosts[HOSTS];
    struct tb_rank_range ranges[HOSTS];
    struct tb_address_book book;
    struct tb_control_stream heard[HOSTS]; /* what the agents get */
    uint32_t asked;
    char said[256];
};

static void take_say(void *context, const char *text)
{
    struct world *w = context;
    snprintf(w->said, sizeof w->said, "%s", text);
}

/* Ranks 0 and 1 are on the first host, 2 and 3 on the second. */
static void make(struct world *w)
{
    memset(w, 0, sizeof *w);
    virtual_loop_open(&w->t);
    assert_int_equal(tb_host_agents_open(&w->agents, &w->t.loop, HOSTS, &w->agent_events), TB_OK);
    for (uint32_t i = 0; i < HOSTS; i++) {
        w->agents.all[i].phase = TB_HOST_AGENT_STARTED;
        w->hosts[i].rank_count = 2;
        w->ranges[i] = (struct tb_rank_range){.first_rank = 2 * i, .count = 2, .host = i};
        tb_control_stream_open(&w->heard[i], -1, -1);
    }
    w->book = (struct tb_address_book){
        .ranks = 4, .host_count = HOSTS, .range_count = HOSTS, .hosts = w->hosts, .ranges = w->ranges};
    tb_job_registry_init(&w->registry, &w->t.loop, &w->agents,
                         &(struct tb_job_registry_events){.context = w, .say = take_say});
    tb_job_registry_begin(&w->registry, &w->book);
}

static void unmake(struct world *w)
{
    tb_job_registry_begin(&w->registry, &w->book); /* nothing is left of what was there */
    for (uint32_t i = HOSTS; i-- > 0;) {
        tb_host_agent_give_up(&w->agents.all[i]);
        tb_control_stream_close(&w->heard[i]);
    }
    tb_host_agents_close(&w->agents);
    virtual_loop_close(&w->t);
}

static void take(struct world *w, uint32_t host, uint32_t rank, const void *bytes, size_t length)
{
    tb_job_registry_take(&w->registry, &w->agents.all[host], &(struct tb_agent_wish){rank, ++w->asked, bytes, length});
}

/* A rank asks, as the agent of that host says. */
static void ask(struct world *w, uint32_t host, uint32_t rank, enum tb_registry_kind kind, const char *name,
                uint64_t patience)
{
    struct tb_registry_question question = {.kind = kind, .patience = patience};
    struct tb_writer fields;
    snprintf(question.name, sizeof question.name, "%s", name);
    tb_writer_open(&fields);
    tb_registry_question_put(&fields, &question);
    take(w, host, rank, fields.bytes, fields.length);
    tb_writer_close(&fields);
}

/* The next answer to a rank of a host; false: there is none. Only an answer without an error has more to it. */
static bool answered(struct world *w, uint32_t host, uint32_t rank, int error, struct tb_registry_answer *answer)
{
    static uint32_t members[16];
    struct tb_control_frame frame;
    size_t length;
    const void *bytes = tb_control_stream_take(&w->agents.all[host].control, 1u << 20, &length);
    assert_int_equal(tb_control_stream_feed(&w->heard[host], bytes, length), TB_OK);
    if (tb_control_stream_next(&w->heard[host], &frame) != TB_OK)
        return false;
    assert_int_equal(frame.kind, TB_CONTROL_ANSWER);
    assert_int_equal(tb_get_u32(&frame.fields), rank);
    uint32_t number = tb_get_u32(&frame.fields);
    assert_int_equal((int)tb_get_u32(&frame.fields), error);
    tb_get_bytes(&frame.fields, &length);
    assert_true((length > 0) == (error != TB_OK)); /* why */
    bytes = tb_get_bytes(&frame.fields, &length);
    *answer = (struct tb_registry_answer){.member_count = 0};
    if (error == TB_OK) {
        assert_int_equal(tb_registry_answer_unpack(bytes, length, answer), TB_OK);
        assert_true(answer->member_count <= 16);
        for (uint32_t i = 0; i < answer->member_count; i++)
            members[i] = answer->members[i];
        free(answer->members);
    }
    answer->members = members;
    answer->number = number;
    return true;
}

static void expect(struct world *w, uint32_t host, uint32_t rank, enum tb_registry_result result)
{
    struct tb_registry_answer answer = {.member_count = 0};
    assert_true(answered(w, host, rank, TB_OK, &answer));
    assert_int_equal(answer.result, result);
}

static void expect_nothing(struct world *w)
{
    struct tb_registry_answer answer;
    for (uint32_t i = 0; i < HOSTS; i++)
        assert_false(answered(w, i, 0, TB_OK, &answer));
}

static void ranks_are_answered_by_their_agents(void **state)
{
    struct world w;
    struct tb_registry_answer answer;
    make(&w);
    ask(&w, 0, 1, TB_REGISTRY_JOIN, "a", 0);
    expect(&w, 0, 1, TB_REGISTRY_DONE);
    ask(&w, 1, 3, TB_REGISTRY_JOIN, "a", 0);
    assert_true(answered(&w, 1, 3, TB_OK, &answer));
    assert_int_equal(answer.number, 2);
    assert_int_equal(answer.member_count, 2);
    assert_int_equal(answer.members[0], 1);
    assert_int_equal(answer.members[1], 3);
    ask(&w, 0, 1, TB_REGISTRY_MEET, "a", TB_REGISTRY_FOREVER);
    expect_nothing(&w);
    ask(&w, 1, 3, TB_REGISTRY_MEET, "a", TB_REGISTRY_FOREVER);
    expect(&w, 0, 1, TB_REGISTRY_DONE);
    expect(&w, 1, 3, TB_REGISTRY_DONE);
    unmake(&w);
}

static void expect_refusal(struct world *w, uint32_t host, uint32_t rank)
{
    struct tb_registry_answer answer;
    assert_true(answered(w, host, rank, TB_ERR_PROTOCOL, &answer));
    assert_int_equal(answer.number, w->asked);
}

/* An agent speaks for the ranks of its host alone. It is told so, as it is of bytes that make no sense: nobody waits in
 * vain. */
static void strangers_are_refused(void **state)
{
    static const struct {
        uint32_t host, rank;
    } wrong[] = {{1, 1}, {0, 2}, {0, 4}, {0, UINT32_MAX}};
    struct world w;
    make(&w);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ask(&w, wrong[i].host, wrong[i].rank, TB_REGISTRY_JOIN, "a", 0);
        expect_refusal(&w, wrong[i].host, wrong[i].rank);
    }
    ask(&w, 0, 0, TB_REGISTRY_KINDS, "a", 0);
    expect_refusal(&w, 0, 0);
    take(&w, 0, 0, "\1\2\3", 3);
    expect_refusal(&w, 0, 0);
    expect_nothing(&w);
    ask(&w, 0, 0, TB_REGISTRY_LOOK, "a", 0);
    expect(&w, 0, 0, TB_REGISTRY_NO_GROUP);
    unmake(&w);
}

static void waits_have_their_time(void **state)
{
    struct world w;
    make(&w);
    for (uint32_t rank = 0; rank < 2; rank++) {
        ask(&w, 0, rank, TB_REGISTRY_JOIN, "a", 0);
        expect(&w, 0, rank, TB_REGISTRY_DONE);
    }
    ask(&w, 0, 0, TB_REGISTRY_MEET, "a", 500 * MS);
    ask(&w, 0, 1, TB_REGISTRY_BARRIER, "a", 100 * MS);
    ask(&w, 1, 3, TB_REGISTRY_LOOKUP, "n", 300 * MS);
    virtual_loop_pass(&w.t, 90 * MS);
    expect_nothing(&w);
    virtual_loop_pass(&w.t, 20 * MS);
    expect(&w, 0, 1, TB_REGISTRY_LATE);
    expect_nothing(&w);
    virtual_loop_pass(&w.t, 200 * MS);
    expect(&w, 1, 3, TB_REGISTRY_LATE);
    ask(&w, 0, 1, TB_REGISTRY_MEET, "a", 500 * MS);
    expect(&w, 0, 0, TB_REGISTRY_DONE);
    expect(&w, 0, 1, TB_REGISTRY_DONE);
    virtual_loop_pass(&w.t, 1000 * MS);
    expect_nothing(&w);
    unmake(&w);
}

static void the_end_of_a_rank_is_told(void **state)
{
    struct world w;
    struct tb_registry_answer answer;
    make(&w);
    for (uint32_t rank = 0; rank < 4; rank++) {
        ask(&w, rank / 2, rank, TB_REGISTRY_JOIN, "a", 0);
        expect(&w, rank / 2, rank, TB_REGISTRY_DONE);
    }
    ask(&w, 1, 3, TB_REGISTRY_JOIN, "b", 0);
    expect(&w, 1, 3, TB_REGISTRY_DONE);
    ask(&w, 0, 0, TB_REGISTRY_BARRIER, "a", TB_REGISTRY_FOREVER);
    tb_job_registry_end(&w.registry, &(struct tb_ended){.rank = 2, .flags = TB_ENDED_INITIALIZED | TB_ENDED_FINALIZED},
                        false);
    assert_string_equal(w.said, "");
    expect_nothing(&w);
    tb_job_registry_end(&w.registry, &(struct tb_ended){.rank = 3, .status = 9, .flags = TB_ENDED_INITIALIZED}, false);
    assert_string_equal(w.said, "rank 3 was a member of the groups: a, b");
    assert_true(answered(&w, 0, 0, TB_OK, &answer));
    assert_int_equal(answer.result, TB_REGISTRY_DEAD);
    assert_int_equal(answer.who, 3);
    /* Nobody is left who could be told on a host whose agent is gone. */
    tb_job_registry_end(&w.registry, &(struct tb_ended){.rank = 1000, .flags = TB_ENDED_INITIALIZED}, false);
    /* Of one whose world has never begun the others hear, and nothing is said. */
    ask(&w, 0, 0, TB_REGISTRY_BARRIER, "a", TB_REGISTRY_FOREVER);
    w.said[0] = 0;
    tb_job_registry_end(&w.registry, &(struct tb_ended){.rank = 1, .status = 9, .flags = TB_ENDED_INITIALIZED}, true);
    expect(&w, 0, 0, TB_REGISTRY_DEAD);
    assert_string_equal(w.said, "");
    unmake(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_are_answered_by_their_agents),
        cmocka_unit_test(strangers_are_refused),
        cmocka_unit_test(waits_have_their_time),
        cmocka_unit_test(the_end_of_a_rank_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
