/* What all agents are told at the start: in pieces, all of it, in order, never much at once, and nobody behind a
 * gateway waits for what is for the gateway itself. */
#include "launch/agent_shell_test.h"

#include <stdlib.h>
#include <string.h>

#include "launch/delivery.h"
#include "remote/virtual_loop_test.h"

#define HOSTS   4u /* the first has a shell, the others are behind it */
#define PIECE   65536u
#define AHEAD   (1u << 20) /* that may be queued */
#define UNHEARD (1u << 22) /* that may be under way */

static const struct tb_delivery_part nothing = {TB_CONTROL_PLAN, 1, NULL, 0};

/* One side of a stream to which something is delivered. */
struct receiver {
    struct tb_control_stream stream;
    uint32_t part;
    uint64_t have; /* of that part */
    uint32_t frames;
};

struct world {
    struct virtual_loop loop;
    struct tb_host_agents agents;
    struct tb_host_agent_events events;
    struct tb_delivery delivery;
    uint8_t *bytes;
    struct receiver receivers[HOSTS];
    uint32_t ended[HOSTS]; /* how often */
    int errors;
};

static void take_frame(void *context, struct tb_host_agent *agent, struct tb_control_frame *frame) {}

static void take_lost(void *context, struct tb_host_agent *agent, bool exited, int status) {}

static void take_ended(void *context, struct tb_host_agent *agent, int error)
{
    struct world *w = context;
    assert_int_equal(error, TB_OK);
    w->ended[agent->host]++;
    tb_control_stream_send(&agent->control, TB_CONTROL_START); /* comes behind it */
}

/* `first` and `second` bytes are to be delivered. */
static void make(struct world *w, size_t first, size_t second)
{
    memset(w, 0, sizeof *w);
    virtual_loop_open(&w->loop);
    w->events = (struct tb_host_agent_events){.context = w, .frame = take_frame, .lost = take_lost};
    assert_int_equal(tb_host_agents_open(&w->agents, &w->loop.loop, HOSTS, &w->events), TB_OK);
    for (uint32_t i = 0; i < HOSTS; i++) {
        w->agents.all[i].target = (struct tb_shell_target){.host = "host", .program = "/tombolo"};
        w->agents.all[i].parent = i > 0 ? &w->agents.all[0] : NULL;
        assert_int_equal(tb_control_stream_keep(&w->agents.all[i].control), TB_OK);
    }
    tb_host_agents_sort(&w->agents);
    w->errors = agent_shell_open(&w->agents, &w->receivers[0].stream);
    for (uint32_t i = 0; i < HOSTS; i++) {
        w->agents.all[i].phase = TB_HOST_AGENT_READY;
        if (i > 0)
            tb_control_stream_open(&w->receivers[i].stream, -1, -1);
    }
    w->bytes = malloc(first + second + 1);
    assert_non_null(w->bytes);
    for (size_t i = 0; i < first + second; i++)
        w->bytes[i] = (uint8_t)(i * 7 + i / 1000);
    const struct tb_delivery_events events = {.context = w, .ended = take_ended};
    const struct tb_delivery_part parts[2] = {{TB_CONTROL_COSTS, 4, w->bytes, first},
                                              {TB_CONTROL_PLAN, 1, w->bytes + first, second}};
    assert_int_equal(tb_delivery_open(&w->delivery, HOSTS, &events), TB_OK);
    tb_delivery_add(&w->delivery, &parts[0]);
    tb_delivery_add(&w->delivery, &parts[1]);
}

static void unmake(struct world *w)
{
    close(w->errors);
    for (uint32_t i = HOSTS; i-- > 0;)
        tb_host_agent_give_up(&w->agents.all[i]);
    tb_host_agent_collect(&w->agents.all[0], 0);
    for (uint32_t i = 0; i < HOSTS; i++) {
        tb_timer_clear(&w->agents.all[i].patience);
        tb_control_stream_close(&w->receivers[i].stream);
    }
    tb_delivery_close(&w->delivery);
    tb_host_agents_close(&w->agents);
    virtual_loop_close(&w->loop);
    free(w->bytes);
}

/* A frame that has come: the next piece, or that behind the last one. */
static void take_piece(const struct world *w, struct receiver *r, struct tb_control_frame *frame)
{
    r->frames++;
    if (r->part == w->delivery.part_count) {
        assert_int_equal(frame->kind, TB_CONTROL_START);
        r->part++;
        return;
    }
    assert_true(r->part < w->delivery.part_count);
    const struct tb_delivery_part *part = &w->delivery.parts[r->part];
    size_t length = 0;
    assert_int_equal(frame->kind, part->kind);
    assert_int_equal(tb_get_u32(&frame->fields), part->version);
    assert_int_equal(tb_get_u64(&frame->fields), part->length);
    assert_int_equal(tb_get_u64(&frame->fields), r->have);
    const void *piece = tb_get_bytes(&frame->fields, &length);
    assert_int_equal(tb_reader_end(&frame->fields), TB_OK);
    assert_true(length > 0 && length <= PIECE && length <= part->length - r->have);
    assert_memory_equal(piece, (const char *)part->bytes + r->have, length);
    r->have += length;
    if (r->have == part->length) {
        r->part++;
        r->have = 0;
    }
}

static bool is_done(const struct world *w, const struct receiver *r)
{
    return r->part == w->delivery.part_count + 1;
}

/* Everything that is queued for one host has come there; nobody has said so yet. */
static void pass(struct world *w, uint32_t host)
{
    struct receiver *r = &w->receivers[host];
    struct tb_control_frame frame;
    size_t length;
    const void *bytes = tb_control_stream_take(&w->agents.all[host].control, SIZE_MAX, &length);
    assert_int_equal(tb_control_stream_feed(&r->stream, bytes, length), TB_OK);
    while (tb_control_stream_next(&r->stream, &frame) == TB_OK)
        take_piece(w, r, &frame);
}

/* Says so. */
static void acknowledge(struct world *w, uint32_t host)
{
    assert_int_equal(tb_control_stream_heard(&w->agents.all[host].control, w->receivers[host].stream.sequence_in),
                     TB_OK);
}

static void pieces_come_in_order(void **state)
{
    static const size_t sizes[][2] = {{24, 0}, {1, 1},          {PIECE, PIECE}, {PIECE + 1, 3 * PIECE - 1},
                                      {0, 5},  {3 * AHEAD, 17}, {100, AHEAD}};
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        struct world w;
        make(&w, sizes[k][0], sizes[k][1]);
        for (uint32_t i = 0; i < HOSTS; i += HOSTS - 1) {
            struct tb_host_agent *agent = &w.agents.all[i];
            for (int rounds = 0; w.ended[i] == 0 && rounds < 100; rounds++) {
                while (tb_delivery_go_on(&w.delivery, agent))
                    assert_true(tb_control_stream_queued(&agent->control) <= AHEAD + 2 * PIECE);
                pass(&w, i);
                acknowledge(&w, i);
            }
            assert_true(is_done(&w, &w.receivers[i]));
            assert_true(tb_delivery_has_ended(&w.delivery, i));
            assert_false(tb_delivery_go_on(&w.delivery, agent)); /* and that is all */
            assert_int_equal(w.ended[i], 1);
        }
        assert_false(tb_delivery_has_ended(&w.delivery, 1)); /* each by itself */
        unmake(&w);
    }
}

/* Without anything long what follows is told at once. */
static void nothing_is_soon_delivered(void **state)
{
    struct world w;
    make(&w, 0, 0);
    tb_delivery_add(&w.delivery, &nothing);
    assert_int_equal(w.delivery.part_count, 0);
    w.agents.delivery = &w.delivery;
    tb_host_agents_flush(&w.agents);
    for (uint32_t i = 0; i < HOSTS; i++)
        assert_int_equal(w.ended[i], 1);
    unmake(&w);
}

/* What a gateway has been sent for others waits in its memory, if those are slow. */
static void little_is_under_way(void **state)
{
    struct world w;
    make(&w, 0, 3 * UNHEARD);
    uint64_t before = 0;
    while (w.ended[1] == 0) {
        for (int i = 0; i < 100; i++) { /* it has left, but nobody says that it has come */
            while (tb_delivery_go_on(&w.delivery, &w.agents.all[1]))
                ;
            pass(&w, 1);
        }
        assert_in_range(tb_control_stream_unheard(&w.agents.all[1].control), 1, UNHEARD + 2 * PIECE);
        assert_true(w.ended[1] == 1 || w.receivers[1].have > before); /* that it has come lets more go */
        before = w.receivers[1].have;
        acknowledge(&w, 1);
    }
    assert_true(is_done(&w, &w.receivers[1]));
    unmake(&w);
}

/* Each of many hosts has less under way, so that together it is not more. */
static void many_share_what_is_under_way(void **state)
{
    static const struct {
        uint32_t hosts, piece;
    } sizes[] = {{1, PIECE}, {16, PIECE}, {17, PIECE * 16 / 17}, {100, PIECE * 16 / 100}, {5000, 4096}};
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        struct world w;
        make(&w, 0, UNHEARD + PIECE);
        const struct tb_delivery_events events = w.delivery.events;
        const struct tb_delivery_part part = w.delivery.parts[0];
        tb_delivery_close(&w.delivery);
        assert_int_equal(tb_delivery_open(&w.delivery, sizes[k].hosts, &events), TB_OK);
        tb_delivery_add(&w.delivery, &part);
        for (int i = 0; i < 100; i++) {
            while (tb_delivery_go_on(&w.delivery, &w.agents.all[0]))
                ;
            pass(&w, 0);
        }
        assert_int_equal(w.receivers[0].frames, 64);
        assert_int_equal(w.receivers[0].have, 64 * sizes[k].piece);
        unmake(&w);
    }
}

/* What the agent of the first host takes out of its stream, a little at a time: its own, and that for others. */
static bool hear(struct world *w)
{
    struct tb_control_frame frame, inner;
    size_t length;
    if (tb_control_stream_fill(&w->receivers[0].stream) != TB_OK)
        return false;
    while (tb_control_stream_next(&w->receivers[0].stream, &frame) == TB_OK) {
        if (frame.kind == TB_CONTROL_TUNNEL_END)
            continue;
        if (frame.kind != TB_CONTROL_TUNNEL) {
            take_piece(w, &w->receivers[0], &frame);
            continue;
        }
        uint32_t host = tb_get_u32(&frame.fields);
        assert_in_range(host, 1, HOSTS - 1);
        const void *bytes = tb_get_bytes(&frame.fields, &length);
        assert_int_equal(tb_control_stream_feed(&w->receivers[host].stream, bytes, length), TB_OK);
        while (tb_control_stream_next(&w->receivers[host].stream, &inner) == TB_OK)
            if (inner.kind == TB_CONTROL_PING)
                w->receivers[host].frames++;
            else
                take_piece(w, &w->receivers[host], &inner);
    }
    return true;
}

/* All of it is delivered, while the stream to the first host is slow; to whom nothing else is said, a ping goes.
 * Returns the most bytes that have passed there between two frames for one of those behind it. */
static uint64_t longest_silence(struct world *w)
{
    uint64_t passed = 0, longest = 0, since[HOSTS] = {0};
    uint32_t frames[HOSTS] = {0};
    bool done = false;
    w->agents.delivery = &w->delivery;
    for (int rounds = 0; !done && rounds < 10000; rounds++) {
        for (uint32_t i = 1; i < HOSTS; i++)
            if (w->agents.all[i].phase < TB_HOST_AGENT_GONE && tb_control_stream_queued(&w->agents.all[i].control) == 0)
                tb_control_stream_send(&w->agents.all[i].control, TB_CONTROL_PING);
        tb_host_agents_flush(&w->agents);
        passed += hear(w) ? PIECE : 0;
        done = true;
        for (uint32_t i = 0; i < HOSTS; i++) {
            if (w->agents.all[i].phase >= TB_HOST_AGENT_GONE)
                continue;
            done = done && is_done(w, &w->receivers[i]);
            acknowledge(w, i);
            if (w->receivers[i].frames != frames[i])
                since[i] = passed;
            frames[i] = w->receivers[i].frames;
            longest = i > 0 && passed - since[i] > longest ? passed - since[i] : longest;
        }
    }
    assert_true(done);
    return longest;
}

static void nobody_waits_for_what_a_gateway_gets(void **state)
{
    struct world w;
    make(&w, PIECE, 6 * AHEAD);
    assert_in_range(longest_silence(&w), 1, 3 * AHEAD);
    for (uint32_t i = 0; i < HOSTS; i++)
        assert_int_equal(w.ended[i], 1);
    unmake(&w);
}

/* Those behind it have all already, and only hear that somebody is there. */
static void nobody_waits_who_has_all(void **state)
{
    struct world w;
    make(&w, PIECE, 6 * AHEAD);
    for (uint32_t i = 1; i < HOSTS; i++) {
        w.delivery.places[i].part = w.delivery.part_count + 1;
        w.receivers[i].part = w.delivery.part_count + 1;
    }
    assert_in_range(longest_silence(&w), 1, 3 * AHEAD);
    unmake(&w);
}

static void who_is_gone_gets_nothing(void **state)
{
    struct world w;
    make(&w, 5 * PIECE, AHEAD);
    tb_host_agent_give_up(&w.agents.all[2]);
    longest_silence(&w);
    assert_int_equal(w.ended[2], 0);
    assert_int_equal(w.receivers[2].frames, 0);
    assert_int_equal(w.ended[1], 1);
    assert_int_equal(w.ended[3], 1);
    unmake(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_come_in_order),         cmocka_unit_test(nothing_is_soon_delivered),
        cmocka_unit_test(little_is_under_way),          cmocka_unit_test(nobody_waits_for_what_a_gateway_gets),
        cmocka_unit_test(nobody_waits_who_has_all),     cmocka_unit_test(who_is_gone_gets_nothing),
        cmocka_unit_test(many_share_what_is_under_way),
    };
    tb_param_load();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
