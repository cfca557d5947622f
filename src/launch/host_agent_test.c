/* A host's agent as the launcher sees it, with a socketpair in place of a shell, and in virtual time. */
#include "launch/agent_shell_test.h"

#include <stdio.h>
#include <string.h>

#include "remote/virtual_loop_test.h"

#define SECOND UINT64_C(1000000000)

/* The launcher's side, and what it was told. */
struct world {
    struct virtual_loop loop;
    struct tb_host_agents agents;
    struct tb_host_agent_events events;
    struct tb_control_stream far; /* the agent's side of host 0 */
    int errors;                   /* where the shell says something on standard error */
    uint32_t frames, kind, missed, damaged, lost;
    uint32_t field; /* the first of the last frame */
    bool exited;
    char story[1024], said[64];
};

static void take_frame(void *context, struct tb_host_agent *agent, struct tb_control_frame *frame)
{
    struct world *w = context;
    w->frames++;
    w->kind = frame->kind;
    w->field = frame->fields.length >= 4 ? tb_get_u32(&frame->fields) : 0;
}

static void take_errors(void *context, const char *bytes, size_t length)
{
    struct world *w = context;
    snprintf(w->said, sizeof w->said, "%.*s", (int)length, bytes);
}

static void take_missed(void *context, struct tb_host_agent *agent, const char *story)
{
    struct world *w = context;
    w->missed++;
    snprintf(w->story, sizeof w->story, "%s", story);
}

static void take_damaged(void *context, struct tb_host_agent *agent)
{
    ((struct world *)context)->damaged++;
}

static void take_lost(void *context, struct tb_host_agent *agent, bool exited, int status)
{
    struct world *w = context;
    w->lost++;
    w->exited = exited;
    snprintf(w->story, sizeof w->story, "%s", agent->tail != NULL ? agent->tail : "");
}

/* Two agents: the first has a shell, the second is behind it. */
static void make(struct world *w)
{
    memset(w, 0, sizeof *w);
    virtual_loop_open(&w->loop);
    w->events = (struct tb_host_agent_events){.context = w,
                                              .frame = take_frame,
                                              .errors = take_errors,
                                              .missed = take_missed,
                                              .damaged = take_damaged,
                                              .lost = take_lost};
    assert_int_equal(tb_host_agents_open(&w->agents, &w->loop.loop, 2, &w->events), TB_OK);
    for (uint32_t i = 0; i < 2; i++) {
        w->agents.all[i].target = (struct tb_shell_target){.host = i == 0 ? "near" : "far", .program = "/tombolo"};
        w->agents.all[i].window = 4096;
    }
    w->agents.all[1].parent = &w->agents.all[0];
    tb_control_stream_keep(&w->agents.all[1].control);
    tb_host_agents_sort(&w->agents);
    w->errors = agent_shell_open(&w->agents, &w->far);
}

static void unmake(struct world *w)
{
    close(w->errors);
    for (uint32_t i = 2; i-- > 0;)
        if (w->agents.all[i].phase != TB_HOST_AGENT_GONE)
            tb_host_agent_give_up(&w->agents.all[i]);
    for (uint32_t i = 0; i < 2; i++) {
        if (w->agents.all[i].errors.descriptor >= 0)
            tb_host_agent_collect(&w->agents.all[i], 0);
        tb_timer_clear(&w->agents.all[i].patience);
    }
    tb_control_stream_close(&w->far);
    tb_host_agents_close(&w->agents);
    virtual_loop_close(&w->loop);
}

static void say(struct world *w, const char *text)
{
    assert_int_equal(write(w->far.out, text, strlen(text)), strlen(text));
    virtual_loop_turn(&w->loop);
}

static void say_preamble(struct world *w)
{
    char text[128];
    snprintf(text, sizeof text, "%s%s wire %d\n", TB_AGENT_PREAMBLE, TB_VERSION, TB_WIRE_VERSION);
    say(w, text);
}

/* The next frame that the agent's side of host 0 has received; 0: none. */
static uint32_t hear(struct world *w, struct tb_control_frame *frame)
{
    tb_host_agents_flush(&w->agents);
    tb_control_stream_fill(&w->far);
    return tb_control_stream_next(&w->far, frame) == TB_OK ? frame->kind : 0;
}

static void an_agent_speaks(void **state)
{
    struct world w;
    make(&w);
    say(&w, "Welcome to near!"); /* as some shells do */
    assert_int_equal(w.agents.all[0].phase, TB_HOST_AGENT_SILENT);
    say_preamble(&w);
    assert_int_equal(w.agents.all[0].phase, TB_HOST_AGENT_SPOKEN);
    assert_int_equal(w.agents.counts.silent, 0);
    tb_put_u32(tb_control_stream_begin(&w.far, TB_CONTROL_NOTE), 77);
    tb_control_stream_end(&w.far);
    tb_control_stream_send(&w.far, TB_CONTROL_IDLE);
    assert_int_equal(tb_control_stream_flush(&w.far), TB_OK);
    w.loop.now += 5;
    virtual_loop_turn(&w.loop);
    assert_int_equal(w.frames, 2);
    assert_int_equal(w.kind, TB_CONTROL_IDLE);
    assert_int_equal(w.agents.all[0].heard, w.loop.now);
    assert_int_equal(write(w.errors, "oops", 4), 4);
    virtual_loop_turn(&w.loop);
    assert_string_equal(w.said, "oops");
    assert_int_equal(w.missed + w.damaged + w.lost, 0);
    unmake(&w);
}

static void another_version_is_missed(void **state)
{
    struct world w;
    struct tb_control_frame frame;
    make(&w);
    say(&w, TB_AGENT_PREAMBLE "0.0.0 wire 1\n");
    assert_int_equal(w.missed, 1);
    assert_non_null(strstr(w.story, "mixed versions"));
    assert_non_null(strstr(w.story, "near"));
    assert_int_equal(w.agents.all[0].phase, TB_HOST_AGENT_GONE);
    assert_int_equal(hear(&w, &frame), 0);
    assert_int_equal(tb_control_stream_fill(&w.far), TB_ERR_CLOSED);
    unmake(&w);
}

static void nonsense_is_damage(void **state)
{
    struct world w;
    make(&w);
    say_preamble(&w);
    say(&w, "this is no frame at all, whatever else it may be");
    assert_int_equal(w.damaged, 1);
    assert_int_equal(w.frames, 0);
    assert_int_equal(w.agents.all[0].phase, TB_HOST_AGENT_GONE);
    assert_true(w.agents.all[0].watch.descriptor < 0);
    unmake(&w);
}

/* Why a stream has ended is told by the shell, for which we wait a little. */
static void the_end_of_a_stream_is_told_late(void **state)
{
    struct world w;
    make(&w);
    assert_int_equal(write(w.errors, "ssh: there is\nno way.\n", 22), 22);
    tb_control_stream_close(&w.far);
    virtual_loop_turn(&w.loop);
    virtual_loop_pass(&w.loop, SECOND / 2);
    assert_int_equal(w.lost, 0);
    virtual_loop_pass(&w.loop, SECOND);
    assert_int_equal(w.lost, 1);
    assert_false(w.exited);
    assert_string_equal(w.story, "ssh: there is no way");
    assert_int_equal(w.agents.all[0].phase, TB_HOST_AGENT_GONE);
    assert_int_equal(w.agents.counts.silent, 0);
    tb_control_stream_open(&w.far, -1, -1);
    unmake(&w);
}

static void windows_are_told_when_worth_it(void **state)
{
    struct world w;
    struct tb_control_frame frame;
    make(&w);
    say_preamble(&w);
    w.agents.all[0].phase = TB_HOST_AGENT_READY;
    w.agents.all[0].written = 1023;
    assert_int_equal(hear(&w, &frame), 0);
    w.agents.all[0].written++;
    assert_int_equal(hear(&w, &frame), TB_CONTROL_WINDOW);
    assert_int_equal(tb_get_u32(&frame.fields), 1024);
    assert_int_equal(w.agents.all[0].written, 0);
    assert_int_equal(hear(&w, &frame), 0);
    unmake(&w);
}

/* What the agent of host 1 says comes as bytes of its parent's frames. `far` is its own side. */
static void pass_on(struct world *w, struct tb_control_stream *far)
{
    size_t length;
    const void *bytes = tb_control_stream_take(far, 65536, &length);
    tb_host_agent_take_bytes(&w->agents.all[1], bytes, length);
}

/* Everything that host 0 hears for host 1 goes there; how many frames that were. */
static uint32_t pass_down(struct world *w, struct tb_control_stream *far)
{
    struct tb_control_frame frame;
    uint32_t count = 0;
    for (; hear(w, &frame) == TB_CONTROL_TUNNEL; count++) {
        size_t length;
        assert_int_equal(tb_get_u32(&frame.fields), 1);
        const void *bytes = tb_get_bytes(&frame.fields, &length);
        assert_int_equal(tb_control_stream_feed(far, bytes, length), TB_OK);
    }
    return count;
}

static void streams_go_through_a_parent(void **state)
{
    struct world w;
    struct tb_control_stream far;
    struct tb_control_frame frame;
    struct tb_host_agent *parent, *agent;
    char text[128];
    make(&w);
    say_preamble(&w);
    parent = &w.agents.all[0];
    agent = &w.agents.all[1];
    parent->phase = TB_HOST_AGENT_STARTED;
    assert_int_equal(tb_host_agent_start(agent, NULL), TB_OK);
    assert_int_equal(hear(&w, &frame), TB_CONTROL_SHELL);
    assert_int_equal(tb_get_u32(&frame.fields), 1);
    tb_control_stream_open(&far, -1, -1);
    tb_control_stream_keep(&far);
    int length = snprintf(text, sizeof text, "%s%s wire %d\n", TB_AGENT_PREAMBLE, TB_VERSION, TB_WIRE_VERSION);
    tb_host_agent_take_bytes(agent, (const uint8_t *)text, (size_t)length);
    assert_int_equal(agent->phase, TB_HOST_AGENT_SPOKEN);
    tb_control_stream_send(&far, TB_CONTROL_IDLE);
    pass_on(&w, &far);
    assert_int_equal(w.kind, TB_CONTROL_IDLE);
    agent->phase = TB_HOST_AGENT_STARTED;
    tb_control_stream_send(&agent->control, TB_CONTROL_PING);
    assert_int_equal(pass_down(&w, &far), 1);
    assert_int_equal(tb_control_stream_next(&far, &frame), TB_OK);
    assert_int_equal(frame.kind, TB_CONTROL_PING);
    tb_host_agent_take_end(agent, true, 256); /* and its shell has ended */
    assert_int_equal(w.lost, 1);
    assert_true(w.exited);
    assert_int_equal(hear(&w, &frame), TB_CONTROL_TUNNEL_END);
    tb_control_stream_close(&far);
    unmake(&w);
}

/* It comes again by a parent, and both sides go on where they were: nothing is lost and nothing comes twice. */
static void a_stream_resumes(void **state)
{
    struct world w;
    struct tb_control_stream far;
    struct tb_control_frame frame;
    make(&w);
    say_preamble(&w);
    struct tb_host_agent *agent = &w.agents.all[1];
    w.agents.all[0].phase = agent->phase = TB_HOST_AGENT_STARTED;
    tb_control_stream_open(&far, -1, -1);
    tb_control_stream_keep(&far);
    tb_control_stream_send(&far, TB_CONTROL_NOTE);
    pass_on(&w, &far);
    tb_host_agent_detach(agent);
    tb_control_stream_send(&agent->control, TB_CONTROL_PING); /* waits */
    assert_int_equal(hear(&w, &frame), 0);
    tb_control_stream_send(&far, TB_CONTROL_IDLE);
    pass_on(&w, &far); /* is lost */
    assert_int_equal(w.frames, 1);
    assert_null(tb_host_agents_attach(&w.agents, &w.agents.all[0], 1, 3, false));
    assert_int_equal(hear(&w, &frame), TB_CONTROL_TUNNEL_END);
    assert_ptr_equal(tb_host_agents_attach(&w.agents, &w.agents.all[0], 1, 4, true), agent);
    assert_int_equal(hear(&w, &frame), TB_CONTROL_ATTACH);
    assert_int_equal(hear(&w, &frame), TB_CONTROL_TUNNEL);
    tb_get_u32(&frame.fields);
    size_t length;
    const uint8_t *next = tb_get_bytes(&frame.fields, &length);
    assert_int_equal(length, 4);
    assert_int_equal(next[0], 1); /* it has got the first frame, and wants the second */
    assert_int_equal(tb_control_stream_resume(&far, -1, -1, next[0]), TB_OK);
    tb_host_agent_take_bytes(agent, (const uint8_t[]){0, 0}, 2); /* the agent has got none, which comes in pieces */
    assert_int_equal(hear(&w, &frame), 0);
    tb_host_agent_take_bytes(agent, (const uint8_t[]){0, 0}, 2);
    pass_on(&w, &far);
    assert_int_equal(w.frames, 2);
    assert_int_equal(w.kind, TB_CONTROL_IDLE);
    assert_int_equal(pass_down(&w, &far), 1);
    assert_int_equal(tb_control_stream_next(&far, &frame), TB_OK);
    assert_int_equal(frame.kind, TB_CONTROL_PING);
    tb_control_stream_close(&far);
    unmake(&w);
}

/* One that our own shell has started comes by another agent, since our stream to it passes nothing: the stream is left,
 * and how the shell ends does not matter. In a job without a grid nobody can, nor one that was not told of the other.
 */
static void one_with_a_shell_may_move(void **state)
{
    static const struct {
        bool keeps, moves;
        enum tb_host_agent_phase phase;
    } cases[] = {{false, false, TB_HOST_AGENT_STARTED},
                 {true, false, TB_HOST_AGENT_READY},
                 {true, true, TB_HOST_AGENT_TOLD},
                 {true, true, TB_HOST_AGENT_STARTED}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct world w;
        struct tb_control_frame frame;
        char byte;
        make(&w);
        struct tb_host_agent *agent = &w.agents.all[0], *other = &w.agents.all[1];
        if (cases[i].keeps)
            assert_int_equal(tb_control_stream_keep(&agent->control), TB_OK);
        say_preamble(&w);
        agent->phase = other->phase = cases[i].phase;
        agent->pid = 1 << 30; /* nobody's */
        other->parent = NULL;
        tb_control_stream_send(&agent->control, TB_CONTROL_PING);
        assert_int_equal(hear(&w, &frame), TB_CONTROL_PING);
        tb_control_stream_send(&agent->control, TB_CONTROL_WINDOW);
        struct tb_host_agent *moved = tb_host_agents_attach(&w.agents, other, 0, 4, true);
        assert_ptr_equal(moved, cases[i].moves ? agent : NULL);
        if (cases[i].moves) {
            assert_int_equal(read(w.far.in, &byte, 1), 0); /* nobody is at its other end any more */
            tb_host_agent_collect(agent, 255 << 8);
            assert_int_equal(w.lost, 0);
            assert_ptr_equal(agent->parent, other);
            tb_host_agent_take_bytes(agent, (const uint8_t[]){1, 0, 0, 0}, 4); /* it has had the PING */
            tb_host_agents_flush(&w.agents);
            assert_int_equal(other->control.sequence_out, 3); /* ATTACH, the number, and what has waited */
        }
        agent->pid = 0;
        unmake(&w);
    }
}

/* Nobody carries its stream for too long. One that came, but got no answer in time, gets all of the time again. */
static void a_detached_agent_is_lost_in_the_end(void **state)
{
    struct world w;
    make(&w);
    say_preamble(&w);
    struct tb_host_agent *agent = &w.agents.all[1];
    w.agents.all[0].phase = agent->phase = TB_HOST_AGENT_STARTED;
    tb_host_agent_detach(agent);
    virtual_loop_pass(&w.loop, tb_param.link_patience - 1);
    assert_ptr_equal(tb_host_agents_attach(&w.agents, &w.agents.all[0], 1, 4, true), agent);
    virtual_loop_pass(&w.loop, tb_param.link_patience);
    tb_host_agent_take_end(agent, false, 0);
    assert_true(agent->detached);
    virtual_loop_pass(&w.loop, tb_param.link_patience - 1);
    assert_int_equal(w.lost, 0);
    virtual_loop_pass(&w.loop, 1);
    assert_int_equal(w.lost, 1);
    assert_int_equal(agent->phase, TB_HOST_AGENT_GONE);
    unmake(&w);
}

/* An agent comes by another one because its stream is silent; but that speaks again before the launcher hears of it,
 * and so does the agent: what it has said on its way is old. It has not broken anything, and comes again. */
static void one_that_has_come_in_vain_comes_again(void **state)
{
    struct world w;
    struct tb_control_stream far;
    make(&w);
    say_preamble(&w);
    struct tb_host_agent *agent = &w.agents.all[1], *parent = &w.agents.all[0];
    parent->phase = agent->phase = TB_HOST_AGENT_STARTED;
    tb_control_stream_open(&far, -1, -1);
    tb_control_stream_keep(&far);
    tb_control_stream_send(&agent->control, TB_CONTROL_PING);
    assert_int_equal(pass_down(&w, &far), 1);
    assert_int_equal(tb_control_stream_heard(&agent->control, 1), TB_OK);
    assert_ptr_equal(tb_host_agents_attach(&w.agents, parent, 1, 4, true), agent);
    tb_host_agent_take_bytes(agent, (const uint8_t[]){0, 0, 0, 0}, 4);
    assert_int_equal(w.damaged + w.lost, 0);
    assert_true(agent->detached);
    tb_host_agent_take_end(agent, false, 0); /* of that one */
    assert_ptr_equal(tb_host_agents_attach(&w.agents, parent, 1, 5, true), agent);
    tb_host_agent_take_bytes(agent, (const uint8_t[]){1, 0, 0, 0}, 4);
    assert_int_equal(tb_control_stream_resume(&far, -1, -1, 0), TB_OK);
    tb_control_stream_send(&far, TB_CONTROL_NOTE);
    pass_on(&w, &far);
    assert_int_equal(w.frames, 1);
    assert_int_equal(w.damaged + w.lost, 0);
    tb_control_stream_close(&far);
    unmake(&w);
}

/* The stream of one that has come by another agent breaks: it comes again at once, or it is gone. */
static void one_that_has_come_comes_again(void **state)
{
    struct world w;
    struct tb_control_stream far;
    make(&w);
    say_preamble(&w);
    struct tb_host_agent *agent = &w.agents.all[1], *parent = &w.agents.all[0];
    parent->phase = agent->phase = TB_HOST_AGENT_STARTED;
    tb_control_stream_open(&far, -1, -1);
    tb_control_stream_keep(&far);
    tb_host_agent_detach(agent);
    for (uint8_t i = 0; i < 3; i++) {
        assert_ptr_equal(tb_host_agents_attach(&w.agents, parent, 1, 4 + i, true), agent);
        tb_host_agent_take_bytes(agent, (const uint8_t[]){0, 0, 0, 0}, 4);
        assert_int_equal(tb_control_stream_resume(&far, -1, -1, i), TB_OK);
        tb_control_stream_send(&far, TB_CONTROL_NOTE);
        pass_on(&w, &far);
        assert_int_equal(w.frames, i + 1);
        tb_host_agent_take_end(agent, false, 0);
        assert_true(agent->detached);
        virtual_loop_pass(&w.loop, 4900000000u);
        assert_int_equal(w.lost, 0);
    }
    virtual_loop_pass(&w.loop, 100000000u);
    assert_int_equal(w.lost, 1);
    tb_control_stream_close(&far);
    unmake(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_agent_speaks),
        cmocka_unit_test(another_version_is_missed),
        cmocka_unit_test(nonsense_is_damage),
        cmocka_unit_test(the_end_of_a_stream_is_told_late),
        cmocka_unit_test(windows_are_told_when_worth_it),
        cmocka_unit_test(streams_go_through_a_parent),
        cmocka_unit_test(a_stream_resumes),
        cmocka_unit_test(one_with_a_shell_may_move),
        cmocka_unit_test(a_detached_agent_is_lost_in_the_end),
        cmocka_unit_test(one_that_has_come_comes_again),
        cmocka_unit_test(one_that_has_come_in_vain_comes_again),
    };
    tb_param_load();
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
