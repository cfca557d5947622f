/* The table from kinds of control frames to what reads them. */
#include "launch/agent_frames.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "remote/virtual_loop_test.h"

/* What was reported last, as text. */
struct world {
    struct virtual_loop loop;
    struct tb_host_agents agents;
    struct tb_host_agent_events agent_events;
    struct tb_agent_frame_events events;
    struct tb_control_stream stream; /* on which frames are written and read */
    uint32_t over;                   /* the last rank that was */
    char told[512];
};

static void told_ready(void *context, struct tb_host_agent *agent, const struct tb_agent_ready *ready)
{
    struct world *w = context;
    int used = snprintf(w->told, sizeof w->told, "ready %u %s %s %s %u %x", agent->host, ready->name, ready->where.site,
                        ready->where.cluster, ready->address_count, ready->machine);
    for (uint32_t i = 0; i < ready->seat_count; i++)
        used += snprintf(w->told + used, sizeof w->told - (size_t)used, " %llx",
                         (unsigned long long)tb_seat_pack(&ready->seats[i]));
}

static void told_started(void *context, struct tb_host_agent *agent, struct tb_reader *pids)
{
    struct world *w = context;
    snprintf(w->told, sizeof w->told, "started %u %u", agent->host, tb_get_u32(pids));
}

static void told_output(void *context, struct tb_host_agent *agent, uint32_t rank, unsigned stream, const char *bytes,
                        size_t length)
{
    struct world *w = context;
    snprintf(w->told, sizeof w->told, "output %u %u %u %.*s", agent->host, rank, stream, (int)length, bytes);
}

static void told_over(void *context, const struct tb_ended *ended, bool unborn)
{
    struct world *w = context;
    assert_false(unborn); /* there are no spawns that could have wanted it */
    w->over = ended->rank;
}

static void told_ended(void *context, struct tb_host_agent *agent, const struct tb_ended *ended)
{
    struct world *w = context;
    assert_int_equal(w->over, ended->rank); /* which comes first */
    snprintf(w->told, sizeof w->told, "ended %u %u %d", ended->rank, ended->pid, ended->status);
}

static void told_aborted(void *context, struct tb_host_agent *agent, const struct tb_agent_abort *abort)
{
    struct world *w = context;
    int n = snprintf(w->told, sizeof w->told, "aborted %u %u %u %d %.*s", abort->rank, abort->pid, abort->code,
                     (int)abort->reason, (int)abort->length, abort->text);
    for (uint32_t i = 0; i < abort->group.count; i++)
        n += snprintf(w->told + n, sizeof w->told - (size_t)n, " %u+%u", abort->group.ranges[i].first,
                      abort->group.ranges[i].count);
}

static void told_trouble(void *context, struct tb_host_agent *agent, uint32_t code, const char *text, size_t length)
{
    struct world *w = context;
    snprintf(w->told, sizeof w->told, "trouble %u %.*s", code, (int)length, text);
}

static void told_told(void *context, struct tb_host_agent *agent)
{
    struct world *w = context;
    snprintf(w->told, sizeof w->told, "told %u", agent->host);
}

static void told_note(void *context, const char *text, size_t length)
{
    struct world *w = context;
    snprintf(w->told, sizeof w->told, "note %.*s", (int)length, text);
}

static void told_input_window(void *context, uint32_t bytes)
{
    struct world *w = context;
    snprintf(w->told, sizeof w->told, "window %u", bytes);
}

static void told_idle(void *context, struct tb_host_agent *agent)
{
    struct world *w = context;
    snprintf(w->told, sizeof w->told, "idle %u", agent->host);
}

static void told_gone(void *context, struct tb_host_agent *agent)
{
    struct world *w = context;
    snprintf(w->told, sizeof w->told, "gone %u %d", agent->host, (int)agent->phase);
}

static void told_call(void *context, uint32_t host, struct tb_reader *rest)
{
    struct world *w = context;
    snprintf(w->told, sizeof w->told, "call %u %u", host, tb_get_u32(rest));
}

static void told_probed(void *context, struct tb_host_agent *agent, struct tb_reader *results)
{
    struct world *w = context;
    snprintf(w->told, sizeof w->told, "probed %u", tb_get_u32(results));
}

static void told_attach(void *context, struct tb_host_agent *agent, uint32_t host, uint32_t coming)
{
    struct world *w = context;
    snprintf(w->told, sizeof w->told, "attach %u %u %u", agent->host, host, coming);
}

static void told_link(void *context, struct tb_host_agent *agent, const struct tb_agent_link *link)
{
    struct world *w = context;
    snprintf(w->told, sizeof w->told, "link %u %u %d %llu %s", agent->host, link->host, (int)link->state,
             (unsigned long long)link->time, link->why);
}

static void told_waits(void *context, struct tb_host_agent *agent, struct tb_reader *answers)
{
    struct world *w = context;
    snprintf(w->told, sizeof w->told, "waits %u %u", agent->host, tb_get_u32(answers));
}

static void told_registry(void *context, struct tb_host_agent *agent, const struct tb_agent_wish *wish)
{
    struct world *w = context;
    snprintf(w->told, sizeof w->told, "registry %u %u %u %.*s", agent->host, wish->rank, wish->number,
             (int)wish->length, (const char *)wish->bytes);
}

static void told_group(void *context, struct tb_host_agent *agent, enum tb_control kind, struct tb_reader *fields)
{
    struct world *w = context;
    snprintf(w->told, sizeof w->told, "group %u %d %u", agent->host, (int)kind, tb_get_u32(fields));
}

static void told_errors(void *context, const char *bytes, size_t length)
{
    struct world *w = context;
    snprintf(w->told, sizeof w->told, "errors %.*s", (int)length, bytes);
}

static void told_lost(void *context, struct tb_host_agent *agent, bool exited, int status)
{
    struct world *w = context;
    snprintf(w->told, sizeof w->told, "lost %u %d %d", agent->host, exited, status);
}

static void told_damaged(void *context, struct tb_host_agent *agent)
{
    struct world *w = context;
    snprintf(w->told, sizeof w->told, "damaged %u", agent->host);
}

/* Two agents that have spoken, the second behind the first. */
static void make(struct world *w)
{
    memset(w, 0, sizeof *w);
    virtual_loop_open(&w->loop);
    w->agent_events =
        (struct tb_host_agent_events){.context = w, .errors = told_errors, .lost = told_lost, .damaged = told_damaged};
    w->events = (struct tb_agent_frame_events){.context = w,
                                               .agents = &w->agents,
                                               .ready = told_ready,
                                               .told = told_told,
                                               .started = told_started,
                                               .output = told_output,
                                               .over = told_over,
                                               .ended = told_ended,
                                               .aborted = told_aborted,
                                               .trouble = told_trouble,
                                               .note = told_note,
                                               .input_window = told_input_window,
                                               .idle = told_idle,
                                               .gone = told_gone,
                                               .call = told_call,
                                               .probed = told_probed,
                                               .attach = told_attach,
                                               .link = told_link,
                                               .group = told_group,
                                               .waits = told_waits,
                                               .registry = told_registry};
    assert_int_equal(tb_host_agents_open(&w->agents, &w->loop.loop, 2, &w->agent_events), TB_OK);
    w->agents.all[0].phase = w->agents.all[1].phase = TB_HOST_AGENT_SPOKEN;
    w->agents.all[0].rank_count = 1;
    w->agents.all[1].parent = &w->agents.all[0];
    tb_control_stream_open(&w->stream, -1, -1);
}

static void unmake(struct world *w)
{
    for (uint32_t i = 2; i-- > 0;)
        tb_host_agent_give_up(&w->agents.all[i]);
    tb_host_agents_close(&w->agents);
    tb_control_stream_close(&w->stream);
    virtual_loop_close(&w->loop);
}

/* A frame of host 0 with so many of the bytes of `fields` arrives; what was reported. */
static const char *dispatch(struct world *w, uint32_t kind, const struct tb_writer *fields, size_t length)
{
    struct tb_control_frame frame = {.kind = kind};
    tb_reader_open(&frame.fields, fields->bytes, length);
    *w->told = 0;
    tb_agent_frames_dispatch(&w->events, &w->agents.all[0], &frame);
    return w->told;
}

/* The whole frame is reported like this, and no beginning of it is. */
static void expect(struct world *w, uint32_t kind, struct tb_writer *fields, const char *told)
{
    for (size_t length = 0; length < fields->length; length++)
        if (*dispatch(w, kind, fields, length) != 0)
            fail_msg("kind %u is reported with %zu of %zu bytes: %s", kind, length, fields->length, w->told);
    assert_string_equal(dispatch(w, kind, fields, fields->length), told);
    tb_writer_close(fields);
    tb_writer_open(fields);
}

static void frames_are_read(void **state)
{
    struct world w;
    struct tb_writer f;
    make(&w);
    tb_writer_open(&f);
    tb_put_u32(&f, 5);
    tb_put_u8(&f, 2);
    tb_put_text(&f, "hello");
    expect(&w, TB_CONTROL_OUTPUT, &f, "output 0 5 2 hello");
    tb_ended_put(&f, &(struct tb_ended){.rank = 3, .pid = 44, .status = 256});
    expect(&w, TB_CONTROL_ENDED, &f, "ended 3 44 256");
    tb_put_u32(&f, 3);
    tb_put_u32(&f, 44);
    tb_put_u32(&f, 9);
    tb_put_u8(&f, TB_ABORT_LOST);
    tb_put_text(&f, "why");
    tb_put_u32(&f, 0);
    expect(&w, TB_CONTROL_ABORTED, &f, "aborted 3 44 9 2 why");
    tb_put_u32(&f, 3);
    tb_put_u32(&f, 44);
    tb_put_u32(&f, 9);
    tb_put_u8(&f, TB_ABORT_CALLED);
    tb_put_text(&f, "");
    tb_put_u32(&f, 2);
    for (uint32_t i = 1; i <= 4; i++)
        tb_put_u32(&f, i);
    expect(&w, TB_CONTROL_ABORTED, &f, "aborted 3 44 9 0  1+2 3+4");
    tb_put_u32(&f, 9);
    tb_put_text(&f, "why");
    expect(&w, TB_CONTROL_TROUBLE, &f, "trouble 9 why");
    tb_put_text(&f, "look");
    expect(&w, TB_CONTROL_NOTE, &f, "note look");
    tb_put_u32(&f, 1);
    tb_put_u32(&f, 6);
    expect(&w, TB_CONTROL_ATTACH, &f, "attach 0 1 6");
    tb_put_u32(&f, 1);
    tb_put_u32(&f, 7);
    assert_string_equal(dispatch(&w, TB_CONTROL_CALL, &f, f.length), "call 1 7");
    assert_string_equal(dispatch(&w, TB_CONTROL_WINDOW, &f, f.length), "window 1");
    assert_string_equal(dispatch(&w, TB_CONTROL_PROBED, &f, f.length), "probed 1");
    assert_string_equal(dispatch(&w, TB_CONTROL_STARTED, &f, f.length), ""); /* it was not told to start them */
    w.agents.all[0].phase = TB_HOST_AGENT_READY;
    assert_string_equal(dispatch(&w, TB_CONTROL_STARTED, &f, f.length), "started 0 7");
    w.agents.all[0].phase = TB_HOST_AGENT_TOLD;
    assert_string_equal(dispatch(&w, TB_CONTROL_STARTED, &f, f.length), "started 0 7");
    w.agents.all[0].rank_count = 2; /* of which one is not told */
    assert_string_equal(dispatch(&w, TB_CONTROL_STARTED, &f, f.length), "");
    w.agents.all[0].later_count = 1; /* nor is it of those with which the job begins */
    assert_string_equal(dispatch(&w, TB_CONTROL_STARTED, &f, f.length), "started 0 7");
    tb_writer_close(&f);
    unmake(&w);
}

static void phases_follow(void **state)
{
    struct world w;
    struct tb_writer f;
    make(&w);
    tb_writer_open(&f);
    assert_string_equal(dispatch(&w, TB_CONTROL_IDLE, &f, 0), ""); /* before it has started anything */
    assert_string_equal(dispatch(&w, TB_CONTROL_TOLD, &f, 0), "");
    tb_put_text(&f, "0.1");
    tb_put_text(&f, "venus1");
    tb_put_text(&f, "delft");
    tb_put_text(&f, "venus");
    tb_put_u32(&f, 8);
    tb_put_u32(&f, 1);
    tb_address_put(&f, &(struct tb_address){.family = 4, .port = 1, .bytes = {10, 0, 0, 1}});
    tb_put_u32(&f, 0x1234);
    tb_put_u32(&f, 0);
    assert_string_equal(dispatch(&w, TB_CONTROL_READY, &f, f.length), "ready 0 venus1 delft venus 1 1234");
    assert_int_equal(w.agents.all[0].phase, TB_HOST_AGENT_READY);
    assert_int_equal(w.agents.counts.ready, 1);
    assert_string_equal(dispatch(&w, TB_CONTROL_READY, &f, f.length), ""); /* once is enough */
    assert_string_equal(dispatch(&w, TB_CONTROL_TOLD, &f, 0), "told 0");
    assert_int_equal(w.agents.all[0].phase, TB_HOST_AGENT_TOLD);
    assert_string_equal(dispatch(&w, TB_CONTROL_TOLD, &f, 0), "");
    w.agents.all[0].phase = TB_HOST_AGENT_STARTED;
    assert_string_equal(dispatch(&w, TB_CONTROL_IDLE, &f, 0), "idle 0");
    assert_string_equal(dispatch(&w, TB_CONTROL_IDLE, &f, 0), "");
    assert_int_equal(w.agents.counts.idle, 1);
    tb_writer_close(&f);
    tb_writer_open(&f);
    tb_put_u32(&f, 1);
    tb_put_u32(&f, 9);
    tb_put_text(&f, "who");
    expect(&w, TB_CONTROL_REGISTRY, &f, "registry 0 1 9 who");
    tb_writer_close(&f);
    tb_writer_open(&f);
    tb_put_u32(&f, 1);
    tb_put_u8(&f, 1);
    tb_put_u64(&f, 3000000000u);
    tb_put_text(&f, "no answer");
    assert_string_equal(dispatch(&w, TB_CONTROL_WAITS, &f, f.length), "waits 0 1");
    assert_string_equal(dispatch(&w, TB_CONTROL_GROUP_STATE, &f, f.length), "group 0 163 1");
    assert_string_equal(dispatch(&w, TB_CONTROL_GROUP_HEARD, &f, f.length), "group 0 165 1");
    assert_string_equal(dispatch(&w, TB_CONTROL_GROUP_TROUBLE, &f, f.length), "group 0 167 1");
    assert_string_equal(dispatch(&w, TB_CONTROL_GROUP, &f, f.length), ""); /* no agent says that */
    expect(&w, TB_CONTROL_LINK, &f, "link 0 1 1 3000000000 no answer");
    for (int phase = TB_HOST_AGENT_SPOKEN; phase < TB_HOST_AGENT_GONE; phase++) {
        char expected[64];
        w.agents.all[0].phase = (enum tb_host_agent_phase)phase;
        snprintf(expected, sizeof expected, "gone 0 %d", phase);
        assert_string_equal(dispatch(&w, TB_CONTROL_GONE, &f, 0), expected); /* who owns it judges that */
    }
    tb_host_agent_give_up(&w.agents.all[0]);
    assert_string_equal(dispatch(&w, TB_CONTROL_GONE, &f, 0), "");
    tb_writer_close(&f);
    unmake(&w);
}

static void tunnels_lead_behind_their_owner(void **state)
{
    struct world w;
    struct tb_writer f;
    make(&w);
    tb_writer_open(&f);
    tb_put_u32(&f, 1);
    tb_put_text(&f, "warning");
    assert_string_equal(dispatch(&w, TB_CONTROL_TUNNEL_ERRORS, &f, f.length), "errors warning");
    w.agents.all[1].parent = NULL; /* is not behind it any more */
    assert_string_equal(dispatch(&w, TB_CONTROL_TUNNEL_ERRORS, &f, f.length), "");
    tb_writer_close(&f);
    w.agents.all[1].parent = &w.agents.all[0];
    for (uint32_t host = 3; host-- > 1;) {
        tb_writer_open(&f);
        tb_put_u32(&f, host); /* of which 2 does not exist */
        tb_put_u8(&f, 1);
        tb_put_u32(&f, 256);
        expect(&w, TB_CONTROL_TUNNEL_END, &f, host == 1 ? "lost 1 1 256" : "");
        tb_writer_close(&f);
    }
    assert_int_equal(w.agents.all[1].phase, TB_HOST_AGENT_GONE);
    unmake(&w);
}

/* Whatever stands for a place is kept as it is; what has no room, or a zero byte, becomes something that is no name. */
static void places_are_told_as_they_are(void **state)
{
    static const char bytes[100] = "delft\0a";
    static const struct {
        size_t length;
        const char *told;
    } cases[] = {
        {5, "ready 0 venus1  delft 0 1"}, {6, "ready 0 venus1  delft ... 0 1"}, {100, "ready 0 venus1  delft ... 0 1"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct world w;
        struct tb_writer f;
        make(&w);
        tb_writer_open(&f);
        tb_put_text(&f, "0.1");
        tb_put_text(&f, "venus1");
        tb_put_text(&f, "");
        tb_put_bytes(&f, bytes, cases[i].length);
        tb_put_u32(&f, 8);
        tb_put_u32(&f, 0);
        tb_put_u32(&f, 1);
        tb_put_u32(&f, 0);
        assert_string_equal(dispatch(&w, TB_CONTROL_READY, &f, f.length), cases[i].told);
        tb_writer_close(&f);
        unmake(&w);
    }
}

/* What cannot be meant ends it with a story. */
/* All ranks of the host have seats, or none has. */
static void seats_are_those_of_all_ranks(void **state)
{
    for (uint32_t told = 1; told <= 3; told++) {
        struct world w;
        struct tb_writer f;
        make(&w);
        w.agents.all[0].rank_count = 2;
        tb_writer_open(&f);
        for (int i = 0; i < 4; i++)
            tb_put_text(&f, "text");
        tb_put_u32(&f, 8);
        tb_put_u32(&f, 0);
        tb_put_u32(&f, 0x1234);
        tb_put_u32(&f, told);
        for (uint32_t i = 0; i < told; i++)
            tb_put_u64(&f, UINT64_C(0x100020003ffff) + i);
        assert_string_equal(dispatch(&w, TB_CONTROL_READY, &f, f.length),
                            told == 2 ? "ready 0 text text text 0 1234 100020003ffff 1000200040000" : "damaged 0");
        tb_writer_close(&f);
        unmake(&w);
    }
}

static void nonsense_is_damage(void **state)
{
    struct world w;
    struct tb_writer f;
    make(&w);
    tb_writer_open(&f);
    for (int i = 0; i < 4; i++)
        tb_put_text(&f, "text");
    tb_put_u32(&f, 8);
    tb_put_u32(&f, TB_HOST_ADDRESS_LIMIT + 1);
    assert_string_equal(dispatch(&w, TB_CONTROL_READY, &f, f.length), "damaged 0");
    unmake(&w);
    make(&w);
    f.length -= 4;
    tb_put_u32(&f, 1); /* address, which is missing */
    assert_string_equal(dispatch(&w, TB_CONTROL_READY, &f, f.length), "damaged 0");
    unmake(&w);
    for (int keeps = 0; keeps < 2; keeps++) {
        make(&w);
        if (keeps)
            assert_int_equal(tb_control_stream_keep(&w.agents.all[0].control), TB_OK);
        for (int i = 0; i < 2000; i++) { /* so many that the first are moved away */
            size_t length;
            tb_control_stream_send(&w.agents.all[0].control, TB_CONTROL_PING);
            tb_control_stream_take(&w.agents.all[0].control, 13, &length);
        }
        f.length = 0;
        tb_put_u32(&f, 7);
        assert_string_equal(dispatch(&w, TB_CONTROL_HEARD, &f, f.length), "");
        f.length = 0;
        tb_put_u32(&f, 2001); /* of 2000 */
        assert_string_equal(dispatch(&w, TB_CONTROL_HEARD, &f, f.length), keeps ? "damaged 0" : "");
        unmake(&w);
    }
    tb_writer_close(&f);
}

static void others_are_left_out(void **state)
{
    static const uint32_t kinds[] = {0, TB_CONTROL_SETUP, TB_CONTROL_PING, TB_CONTROL_HELLO, TB_CONTROL_PROBE, 999999};
    struct world w;
    struct tb_writer f;
    make(&w);
    tb_writer_open(&f);
    tb_put_text(&f, "something long enough for any of them");
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        assert_string_equal(dispatch(&w, kinds[i], &f, f.length), "");
    assert_int_equal(w.agents.all[0].phase, TB_HOST_AGENT_SPOKEN);
    tb_writer_close(&f);
    unmake(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_are_read),
        cmocka_unit_test(phases_follow),
        cmocka_unit_test(tunnels_lead_behind_their_owner),
        cmocka_unit_test(places_are_told_as_they_are),
        cmocka_unit_test(seats_are_those_of_all_ranks),
        cmocka_unit_test(nonsense_is_damage),
        cmocka_unit_test(others_are_left_out),
    };
    tb_param_load();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
