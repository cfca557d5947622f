/* What an agent says to the launcher, changed on the way: its preamble and every kind of frame. */
#include "base/changed_bytes_test.h"
#include "launch/agent_frames.h"

#include <stdio.h>

#include "remote/virtual_loop_test.h"

#define AGENTS 3u /* each behind the one before it; the second is the one that speaks */

struct world {
    struct virtual_loop loop;
    struct tb_host_agents agents;
    struct tb_host_agent_events agent_events;
    struct tb_agent_frame_events events;
    int error; /* that was reported */
    char recording[8192];
    size_t length;
};

static void take_frame(void *context, struct tb_host_agent *agent, struct tb_control_frame *frame)
{
    struct world *w = context;
    tb_agent_frames_dispatch(&w->events, agent, frame);
}

static void take_errors(void *context, const char *bytes, size_t length) {}

static void take_missed(void *context, struct tb_host_agent *agent, const char *story)
{
    struct world *w = context;
    w->error = tb_error(TB_ERR_PEER, "%s", story);
}

static void take_damaged(void *context, struct tb_host_agent *agent)
{
    ((struct world *)context)->error = TB_ERR_PROTOCOL; /* with the story that there is */
}

static void take_lost(void *context, struct tb_host_agent *agent, bool exited, int status) {}
static void take_ready(void *context, struct tb_host_agent *agent, const struct tb_agent_ready *ready)
{
    assert_true(ready->address_count <= TB_HOST_ADDRESS_LIMIT);
}

static void take_told(void *context, struct tb_host_agent *agent) {}

static void take_started(void *context, struct tb_host_agent *agent, struct tb_reader *pids)
{
    tb_host_agent_take_started(agent);
}

static void take_output(void *context, struct tb_host_agent *agent, uint32_t rank, unsigned stream, const char *bytes,
                        size_t length)
{
    assert_true(stream == 1 || stream == 2);
}

static void take_over(void *context, const struct tb_ended *ended, bool unborn) {}
static void take_ended(void *context, struct tb_host_agent *agent, const struct tb_ended *ended) {}
static void take_aborted(void *context, struct tb_host_agent *agent, const struct tb_agent_abort *abort) {}
static void take_trouble(void *context, struct tb_host_agent *agent, uint32_t code, const char *text, size_t length) {}
static void take_note(void *context, const char *text, size_t length) {}
static void take_window(void *context, uint32_t bytes) {}
static void take_idle(void *context, struct tb_host_agent *agent) {}
static void take_link(void *context, struct tb_host_agent *agent, const struct tb_agent_link *link) {}
static void take_waits(void *context, struct tb_host_agent *agent, struct tb_reader *answers) {}

static void take_registry(void *context, struct tb_host_agent *agent, const struct tb_agent_wish *wish) {}
static void take_group(void *context, struct tb_host_agent *agent, enum tb_control kind, struct tb_reader *fields) {}
static void take_gone(void *context, struct tb_host_agent *agent)
{
    tb_host_agent_give_up(agent);
}

static void take_call(void *context, uint32_t host, struct tb_reader *rest) {}
static void take_probed(void *context, struct tb_host_agent *agent, struct tb_reader *results) {}
static void take_attach(void *context, struct tb_host_agent *agent, uint32_t host, uint32_t coming)
{
    struct world *w = context;
    tb_host_agents_attach(&w->agents, agent, host, coming, true);
}

static void make(struct world *w)
{
    w->error = TB_OK;
    virtual_loop_open(&w->loop);
    w->agent_events = (struct tb_host_agent_events){.context = w,
                                                    .frame = take_frame,
                                                    .errors = take_errors,
                                                    .missed = take_missed,
                                                    .damaged = take_damaged,
                                                    .lost = take_lost};
    w->events = (struct tb_agent_frame_events){.context = w,
                                               .agents = &w->agents,
                                               .ready = take_ready,
                                               .told = take_told,
                                               .started = take_started,
                                               .output = take_output,
                                               .over = take_over,
                                               .ended = take_ended,
                                               .aborted = take_aborted,
                                               .trouble = take_trouble,
                                               .note = take_note,
                                               .input_window = take_window,
                                               .idle = take_idle,
                                               .gone = take_gone,
                                               .link = take_link,
                                               .group = take_group,
                                               .waits = take_waits,
                                               .registry = take_registry,
                                               .call = take_call,
                                               .probed = take_probed,
                                               .attach = take_attach};
    assert_int_equal(tb_host_agents_open(&w->agents, &w->loop.loop, AGENTS, &w->agent_events), TB_OK);
    for (uint32_t i = 0; i < AGENTS; i++) {
        struct tb_host_agent *agent = &w->agents.all[i];
        agent->target = (struct tb_shell_target){.host = "somewhere", .program = "/tombolo"};
        agent->rank_count = 2;
        agent->parent = i > 0 ? &w->agents.all[i - 1] : NULL;
        assert_int_equal(tb_control_stream_keep(&agent->control), TB_OK);
        agent->phase = TB_HOST_AGENT_STARTED;
        tb_control_stream_send(&agent->control, TB_CONTROL_PING);
    }
    w->agents.all[1].phase = TB_HOST_AGENT_SILENT;
    w->agents.counts.silent = 1;
    tb_host_agents_sort(&w->agents);
    size_t length;
    tb_control_stream_take(&w->agents.all[1].control, SIZE_MAX, &length); /* so that there is something to be heard */
}

static void unmake(struct world *w)
{
    for (uint32_t i = AGENTS; i-- > 0;) {
        if (w->agents.all[i].phase < TB_HOST_AGENT_GONE)
            tb_host_agent_give_up(&w->agents.all[i]);
        tb_timer_clear(&w->agents.all[i].patience);
    }
    tb_host_agents_close(&w->agents);
    virtual_loop_close(&w->loop);
}

static int take(void *context, const uint8_t *bytes, size_t length, size_t piece)
{
    struct world *w = context;
    make(w);
    for (size_t at = 0; at < length && w->agents.all[1].phase < TB_HOST_AGENT_GONE; at += piece)
        tb_host_agent_take_bytes(&w->agents.all[1], bytes + at, piece < length - at ? piece : length - at);
    tb_host_agents_flush(&w->agents);
    int error = w->error;
    unmake(w);
    return error;
}

static void put_numbers(struct tb_control_stream *s, enum tb_control kind, uint32_t count, const uint32_t *numbers)
{
    struct tb_writer *f = tb_control_stream_begin(s, kind);
    for (uint32_t i = 0; i < count; i++)
        tb_put_u32(f, numbers[i]);
    assert_int_equal(tb_control_stream_end(s), TB_OK);
}

static void put_text(struct tb_control_stream *s, enum tb_control kind, uint32_t number, int byte, const char *text)
{
    struct tb_writer *f = tb_control_stream_begin(s, kind);
    if (kind != TB_CONTROL_NOTE)
        tb_put_u32(f, number);
    if (byte >= 0)
        tb_put_u8(f, (uint8_t)byte);
    tb_put_text(f, text);
    assert_int_equal(tb_control_stream_end(s), TB_OK);
}

static void put_ready(struct tb_control_stream *s)
{
    struct tb_writer *f = tb_control_stream_begin(s, TB_CONTROL_READY);
    for (int i = 0; i < 4; i++)
        tb_put_text(f, "text");
    tb_put_u32(f, 8);
    tb_put_u32(f, 2);
    tb_address_put(f, &(struct tb_address){.family = 4, .port = 1, .bytes = {10, 0, 0, 1}});
    tb_address_put(f, &(struct tb_address){.family = 6, .port = 2, .bytes = {0xfd, 1, 2, 3}});
    tb_put_u32(f, tb_wire_machine());
    tb_put_u32(f, 0); /* seats */
    tb_put_u32(f, 0); /* what later versions add does no harm */
    assert_int_equal(tb_control_stream_end(s), TB_OK);
    f = tb_control_stream_begin(s, TB_CONTROL_LINK);
    tb_put_u32(f, 1);
    tb_put_u8(f, 1);
    tb_put_u64(f, 1000);
    tb_put_text(f, "no answer");
    assert_int_equal(tb_control_stream_end(s), TB_OK);
}

/* Everything that an agent may say, in an order that makes sense. */
static void record(struct world *w)
{
    struct tb_control_stream s;
    size_t length;
    tb_control_stream_open(&s, -1, -1);
    put_ready(&s);
    put_numbers(&s, TB_CONTROL_PROBED, 1, (const uint32_t[]){0});
    put_numbers(&s, TB_CONTROL_STARTED, 3, (const uint32_t[]){2, 1000000001, 1000000002});
    put_numbers(&s, TB_CONTROL_WAITS, 2, (const uint32_t[]){1, 0});
    put_numbers(&s, TB_CONTROL_GROUP_STATE, 5, (const uint32_t[]){1, 0, 1420, 425984, 0});
    put_numbers(&s, TB_CONTROL_GROUP_HEARD, 5, (const uint32_t[]){1, 7, 0, 7, 0});
    put_numbers(&s, TB_CONTROL_GROUP_TROUBLE, 2, (const uint32_t[]){1, 0});
    put_numbers(&s, TB_CONTROL_HEARD, 1, (const uint32_t[]){1});
    put_numbers(&s, TB_CONTROL_PING, 0, NULL);
    for (int i = 0; i < 4; i++)
        put_text(&s, TB_CONTROL_OUTPUT, 1, 1 + i % 2, "some lines of output that a rank has written\n");
    put_text(&s, TB_CONTROL_NOTE, 0, -1, "a note for the user");
    put_numbers(&s, TB_CONTROL_WINDOW, 1, (const uint32_t[]){4096});
    put_numbers(&s, TB_CONTROL_CALL, 6, (const uint32_t[]){2, 1, 1, 1, 0, 0});
    put_text(&s, TB_CONTROL_TUNNEL_ERRORS, 2, -1, "a warning of a shell");
    put_text(&s, TB_CONTROL_TUNNEL, 2, -1, "");
    put_numbers(&s, TB_CONTROL_ATTACH, 2, (const uint32_t[]){2, 1});
    put_text(&s, TB_CONTROL_TUNNEL, 2, -1, "\1"); /* less than the number of a frame */
    struct tb_writer *f = tb_control_stream_begin(&s, TB_CONTROL_TUNNEL_END);
    tb_put_u32(f, 2);
    tb_put_u8(f, 1);
    tb_put_u32(f, 256);
    assert_int_equal(tb_control_stream_end(&s), TB_OK);
    tb_ended_put(tb_control_stream_begin(&s, TB_CONTROL_ENDED),
                 &(struct tb_ended){.rank = 3, .pid = 44, .status = 256});
    assert_int_equal(tb_control_stream_end(&s), TB_OK);
    put_text(&s, TB_CONTROL_TROUBLE, 1, -1, "why this agent cannot go on");
    put_numbers(&s, TB_CONTROL_IDLE, 0, NULL);
    put_numbers(&s, TB_CONTROL_GONE, 0, NULL);
    int preamble = snprintf(w->recording, sizeof w->recording, "welcome to this machine\n%s%s wire %d\n",
                            TB_AGENT_PREAMBLE, TB_VERSION, TB_WIRE_VERSION);
    const void *bytes = tb_control_stream_take(&s, SIZE_MAX, &length);
    assert_true((size_t)preamble + length <= sizeof w->recording);
    memcpy(w->recording + preamble, bytes, length);
    w->length = (size_t)preamble + length;
    tb_control_stream_close(&s);
}

static void control_of_an_agent(void **state)
{
    static struct world w;
    record(&w);
    const struct changed_bytes c = {.kind = "control, agent to launcher",
                                    .take = take,
                                    .context = &w,
                                    .bytes = (const uint8_t *)w.recording,
                                    .length = w.length};
    changed_bytes_sweep(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(control_of_an_agent),
    };
    tb_param_load();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
