/* Windows and those who do not play by the rules: frames that make no sense, windows that are gone, processes that go.
 */
#include "engine/window_test.h"

/* ---- what makes no sense ----------------------------------------------------------------------------------------- */

/* As if process 1 had sent it to process 0; whether that has had enough of it. */
static bool give(const struct tb_message *m, const void *payload, size_t length)
{
    const struct tb_upcalls *up = tb_sim_upcalls(&net.sim, 0);
    up->frame(up->context, tb_sim_endpoint(&net.sim, 0, 1), NULL, m, payload, length);
    return tb_peer_of(net.engines[0], 1)->error == TB_ERR_PROTOCOL;
}

/* Process 0 knows process 1. */
static void begin_heard(void)
{
    struct tb_request s, r;
    begin(variants[2]);
    post_receive(&net, &r, 0, 1, 3, EXACT, 10);
    post_send(&net, &s, 1, 0, 3, 10, TB_MODE_STANDARD);
    loop_net_settle(&net);
    assert_true(tb_request_done(&r));
}

static void end_broken(void)
{
    loop_net_settle(&net);
    end();
}

struct forged {
    struct tb_message m;
    struct tb_access_head head;
    struct tb_access_run run;
    uint64_t data;
    bool senseless;
};

static size_t forge(const struct forged *f, uint8_t *to)
{
    tb_wire_put_access_head(to, &f->head);
    to[offsetof(struct tb_access_head, zero)] = (uint8_t)f->head.zero;
    tb_wire_put_access_run(to + TB_ACCESS_HEAD_BYTES, &f->run);
    return TB_ACCESS_HEAD_BYTES + TB_ACCESS_RUN_BYTES + f->data;
}

static void frames_are_checked(void **state)
{
    static uint8_t frame[1000];
    const struct forged all[] = {
        {{.kind = TB_KIND_ACCUMULATE, .length = 8, .source_rank = 1}, {0, 0x58, 0, 1, 0}, {0, 0, 8, 1}, 8, false},
        {{.kind = TB_KIND_ACCUMULATE, .length = 8, .source_rank = 2}, {0, 0x58, 0, 1, 0}, {0, 0, 8, 1}, 8, true},
        {{.kind = TB_KIND_ACCUMULATE, .length = 8, .source_rank = 77}, {0, 0x58, 0, 1, 0}, {0, 0, 8, 1}, 8, true},
        {{.kind = TB_KIND_ACCUMULATE, .length = 8, .source_rank = 1}, {200, 0x58, 0, 1, 0}, {0, 0, 8, 1}, 8, true},
        {{.kind = TB_KIND_ACCUMULATE, .length = 8, .source_rank = 1}, {0, 0x06, 0, 1, 0}, {0, 0, 8, 1}, 8, true},
        {{.kind = TB_KIND_ACCUMULATE, .length = 8, .source_rank = 1}, {0, 0x58, 1, 1, 0}, {0, 0, 8, 1}, 8, true},
        {{.kind = TB_KIND_ACCUMULATE, .length = 8, .source_rank = 1}, {0, 0x58, 0, 2, 0}, {0, 0, 8, 1}, 8, true},
        {{.kind = TB_KIND_ACCUMULATE, .length = 8, .source_rank = 1}, {0, 0x58, 0, 0, 0}, {0, 0, 8, 1}, 8, true},
        {{.kind = TB_KIND_ACCUMULATE, .length = 8, .source_rank = 1}, {0, 0x58, 0, 1, 0}, {0, 0, 4, 2}, 8, true},
        {{.kind = TB_KIND_ACCUMULATE, .length = 8, .source_rank = 1}, {0, 0x58, 0, 1, 0}, {0, 0, 8, 1}, 7, true},
        {{.kind = TB_KIND_ACCUMULATE, .length = 8, .source_rank = 1},
         {TB_OP_BAND, 0x14, 0, 1, 0},
         {0, 0, 8, 1},
         8,
         true},
        {{.kind = TB_KIND_PUT_RUNS, .length = 8, .source_rank = 1}, {0, 0, 0, 1, 0}, {0, 0, 8, 1}, 8, false},
        {{.kind = TB_KIND_PUT_RUNS, .length = 8, .source_rank = 1}, {0, 1, 0, 1, 0}, {0, 0, 8, 1}, 8, true},
        {{.kind = TB_KIND_PUT_RUNS, .length = 9, .source_rank = 1}, {0, 0, 0, 1, 0}, {0, 0, 8, 1}, 9, true},
        {{.kind = TB_KIND_PUT_RUNS, .length = 8, .source_rank = 1, .offset = 1},
         {0, 0, 0, 1, 0},
         {0, 0, 8, 1},
         8,
         true},
        {{.kind = TB_KIND_GET, .length = 8, .match = 5, .source_rank = 1}, {0, 0, 0, 1, 0}, {0, 0, 8, 1}, 0, false},
        {{.kind = TB_KIND_GET, .length = 8, .source_rank = 1}, {0, 0, 0, 1, 0}, {0, 0, 8, 1}, 0, true},
        {{.kind = TB_KIND_GET, .length = 200000, .match = 5, .source_rank = 1},
         {0, 0, 0, 1, 0},
         {0, 0, 200000, 1},
         0,
         true},
        {{.kind = TB_KIND_COMPARE, .length = 8, .match = 5, .source_rank = 1},
         {0, 0x58, 0, 1, 0},
         {0, 0, 8, 1},
         16,
         false},
        {{.kind = TB_KIND_COMPARE, .length = 8, .match = 5, .source_rank = 1},
         {0, 0x58, 0, 1, 0},
         {0, 0, 8, 1},
         8,
         true},
        {{.kind = TB_KIND_COMPARE, .length = 6, .match = 5, .source_rank = 1},
         {0, 0x2c, 0, 1, 0},
         {0, 0, 8, 1},
         12,
         true},
        {{.kind = TB_KIND_LOCK, .length = 2, .source_rank = 1}, {0}, {0}, 0, false},
        {{.kind = TB_KIND_LOCK, .length = 3, .source_rank = 1}, {0}, {0}, 0, true},
        {{.kind = TB_KIND_APPLIED, .length = 1000, .source_rank = 1}, {0}, {0}, 0, false},
        {{.kind = TB_KIND_COMPLETE, .length = 3, .source_rank = 1}, {0}, {0}, 0, false},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        begin_heard();
        struct tb_message m = all[i].m;
        bool word = m.kind >= TB_KIND_FLUSH;
        m.context = windows[0]->context;
        memset(frame, 0, sizeof frame);
        size_t length = forge(&all[i], frame);
        assert_int_equal(give(&m, frame, word ? 0 : length), all[i].senseless);
        end_broken();
    }
}

/* Whoever asks about a window that is gone is told, and does not wait. */
static void a_window_that_is_gone_is_told(void **state)
{
    static char bytes[10];
    const struct tb_buffer buffer = bytes_of(bytes, 10);
    struct tb_access_target target = target_of(0, 0, 10, &tb_type_byte);
    struct tb_request request = {.complete = NULL};
    begin(variants[2]);
    tb_window_close(windows[0]);
    tb_access_put(windows[1], &buffer, &target, NULL);
    tb_access_get(windows[1], &buffer, &target, &request);
    loop_net_settle(&net);
    assert_true(tb_request_done(&request));
    assert_int_equal(request.status.error, TB_ERR_ARGUMENT);
    assert_int_equal(tb_window_flush(windows[1], 0, "flush"), TB_ERR_ARGUMENT);
    tb_window_tell(&windows[1]->ranks[0], TB_KIND_LOCK, 0, TB_LOCK_SHARED);
    windows[1]->ranks[0].locking = TB_LOCK_SHARED;
    loop_net_settle(&net);
    assert_int_equal(windows[1]->ranks[0].locking, TB_LOCK_NONE);
    const struct tb_window_config config = {.channel = net.channels[0], .base = memory[0], .size = BYTES};
    assert_int_equal(tb_window_open(net.engines[0], &config, &windows[0]), TB_OK);
    tb_window_flush(windows[1], TB_ANY_RANK, "flush");
    end();
}

/* Data that a transport is about to read into a window, or into the buffer of a get, is for that memory alone as long
 * as it is one's. */
static void nobody_writes_to_what_was_given_back(void **state)
{
    static char bytes[100];
    begin_heard();
    const struct tb_upcalls *up = tb_sim_upcalls(&net.sim, 0);
    struct tb_endpoint *from = tb_sim_endpoint(&net.sim, 0, 1);
    struct tb_message m = {
        .kind = TB_KIND_PUT, .context = windows[0]->context, .source_rank = 1, .offset = 8, .length = 100};
    assert_ptr_equal(up->place(up->context, from, &m, 100), memory[0] + 8);
    assert_null(up->place(up->context, from, &m, 100)); /* one at a time */
    memset(memory[0] + 8, 5, 100);
    up->frame(up->context, from, NULL, &m, memory[0] + 8, 100);
    assert_int_equal(windows[0]->ranks[1].applied, 1);
    m.offset = BYTES - 99;
    assert_null(up->place(up->context, from, &m, 100));
    m.offset = 8;
    m.source_rank = 2;
    assert_null(up->place(up->context, from, &m, 100));
    m.source_rank = 1;
    assert_non_null(up->place(up->context, from, &m, 100));
    tb_window_close(windows[0]);
    assert_int_equal(tb_peer_of(net.engines[0], 1)->error, TB_ERR_PROTOCOL);
    const struct tb_window_config config = {.channel = net.channels[0], .base = memory[0], .size = BYTES};
    assert_int_equal(tb_window_open(net.engines[0], &config, &windows[0]), TB_OK);
    const struct tb_buffer buffer = bytes_of(bytes, 100);
    struct tb_access_target target = target_of(2, 0, 100, &tb_type_byte);
    tb_access_get(windows[0], &buffer, &target, NULL);
    loop_net_settle(&net);
    assert_int_equal(tb_window_flush_local(windows[0], 2, "get"), TB_OK);
    end_broken();
}

/* Two windows have the same memory. Who is just writing there by one of them may go on when the other one is closed. */
static void whose_memory_is_in_another_window(void **state)
{
    begin_heard();
    struct tb_channel *channel;
    struct tb_window *other;
    const struct tb_channel_config others = {
        .context = tb_context_make(0, 77, TB_PLANE_POINT), .size = RANKS, .rank = 0};
    assert_int_equal(tb_channel_open(net.engines[0], &others, &channel), TB_OK);
    const struct tb_window_config config = {.channel = channel, .base = memory[0], .size = BYTES};
    assert_int_equal(tb_window_open(net.engines[0], &config, &other), TB_OK);
    const struct tb_upcalls *up = tb_sim_upcalls(&net.sim, 0);
    struct tb_endpoint *from = tb_sim_endpoint(&net.sim, 0, 1);
    struct tb_message m = {.kind = TB_KIND_PUT, .context = other->context, .source_rank = 1, .length = 4};
    up->frame(up->context, from, NULL, &m, "abc", 4);
    m = (struct tb_message){
        .kind = TB_KIND_PUT, .context = windows[0]->context, .source_rank = 1, .offset = 8, .length = 100};
    assert_ptr_equal(up->place(up->context, from, &m, 100), memory[0] + 8);
    tb_window_close(other);
    assert_int_equal(tb_peer_of(net.engines[0], 1)->error, TB_OK);
    up->frame(up->context, from, NULL, &m, memory[0] + 8, 100);
    assert_int_equal(windows[0]->ranks[1].applied, 1);
    tb_channel_close(channel);
    end_broken();
}

/* The memory that is detached is the second half of what is being written: both were one while they were attached. */
static void nobody_writes_to_a_part_that_was_given_back(void **state)
{
    dynamic = true;
    begin_heard();
    assert_int_equal(tb_window_attach(windows[0], memory[0], 1000), TB_OK);
    assert_int_equal(tb_window_attach(windows[0], memory[0] + 1000, 1000), TB_OK);
    assert_int_equal(tb_window_attach(windows[0], memory[0] + 3000, 1000), TB_OK);
    const struct tb_upcalls *up = tb_sim_upcalls(&net.sim, 0);
    struct tb_endpoint *from = tb_sim_endpoint(&net.sim, 0, 1);
    struct tb_message m = {.kind = TB_KIND_PUT,
                           .context = windows[0]->context,
                           .source_rank = 1,
                           .offset = (uintptr_t)memory[0] + 900,
                           .length = 200};
    assert_ptr_equal(up->place(up->context, from, &m, 200), memory[0] + 900);
    assert_int_equal(tb_window_detach(windows[0], memory[0] + 3000), TB_OK);
    assert_int_equal(tb_peer_of(net.engines[0], 1)->error, TB_OK);
    assert_int_equal(tb_window_detach(windows[0], memory[0] + 1000), TB_OK);
    assert_int_equal(tb_peer_of(net.engines[0], 1)->error, TB_ERR_PROTOCOL);
    end_broken();
    dynamic = false;
}

/* An access of several frames that is refused at the first has ended; its others are on their way, and a flush asks
 * whether these have come. */
static void a_refused_access_has_frames_on_their_way(void **state)
{
    enum { COUNT = 20000 };
    static int64_t ones[COUNT], back[COUNT];
    const struct tb_buffer origin = {ones, COUNT, int64_type()}, result = {back, COUNT, int64_type()};
    dynamic = true;
    begin_heard();
    assert_int_equal(tb_window_attach(windows[1], memory[1] + 8, BYTES - 8), TB_OK);
    struct tb_access_target target = target_of(1, (uintptr_t)memory[1], COUNT, int64_type());
    tb_access_fetch(windows[0], &origin, &result, &target, tb_op_of_code(TB_OP_SUM), NULL);
    struct tb_window_rank *r = &windows[0]->ranks[1];
    const struct tb_access *a =
        TB_CONTAINER(tb_peer_of(net.engines[0], 1)->requests.next, struct tb_access, core.on_peer);
    const struct tb_message m = {.kind = TB_KIND_REFUSED,
                                 .context = windows[0]->context,
                                 .match = a->core.message_id,
                                 .source_rank = 0,
                                 .offset = 1,
                                 .length = TB_REFUSAL_RANGE};
    assert_true(r->sent > 1 && windows[1]->ranks[0].applied == 0);
    assert_false(give(&m, NULL, 0));
    assert_true(tb_list_empty(&r->open));
    assert_int_equal(r->silent, r->sent);
    loop_net_settle(&net);
    assert_int_equal(windows[1]->ranks[0].applied, r->sent);
    end_broken();
    dynamic = false;
}

/* Process 0 wants bytes of process 1: the frame in which the first hundred of them come. */
static struct tb_message begin_get(char *bytes, uint64_t count, struct tb_request *request)
{
    const struct tb_buffer buffer = bytes_of(bytes, count);
    struct tb_access_target target = target_of(1, 0, count, &tb_type_byte);
    begin_heard();
    net.sim.again = 0;
    tb_access_get(windows[0], &buffer, &target, request);
    const struct tb_access *a =
        TB_CONTAINER(tb_peer_of(net.engines[0], 1)->requests.next, struct tb_access, core.on_peer);
    return (struct tb_message){.kind = TB_KIND_GOT,
                               .context = windows[0]->context,
                               .match = a->core.message_id,
                               .source_rank = 1,
                               .length = 100};
}

/* A part of a get is refused while another part is being read to where it belongs, which has overtaken that. */
static void a_part_is_refused_while_another_comes(void **state)
{
    static char bytes[200];
    struct tb_request request = {.complete = NULL};
    const struct tb_message got = begin_get(bytes, 200, &request);
    const struct tb_upcalls *up = tb_sim_upcalls(&net.sim, 0);
    struct tb_endpoint *from = tb_sim_endpoint(&net.sim, 0, 1);
    struct tb_message third = got;
    const struct tb_message refused = {.kind = TB_KIND_REFUSED,
                                       .context = windows[0]->context,
                                       .match = got.match,
                                       .source_rank = 0,
                                       .offset = 1,
                                       .length = TB_REFUSAL_RANGE};
    assert_ptr_equal(up->place(up->context, from, &got, 100), bytes);
    up->frame(up->context, from, NULL, &refused, NULL, 0);
    assert_false(tb_request_done(&request));
    third.offset = 150; /* another one that was not refused */
    third.length = 50;
    up->frame(up->context, from, NULL, &third, memory[0], 50);
    assert_false(tb_request_done(&request));
    memset(bytes, 5, 100);
    up->frame(up->context, from, NULL, &got, bytes, 100);
    assert_true(tb_request_done(&request));
    assert_int_equal(request.status.error, TB_ERR_ARGUMENT);
    assert_int_equal(tb_peer_of(net.engines[0], 1)->error, TB_OK);
    loop_net_settle(&net); /* what it was answered otherwise comes for nobody */
    assert_int_equal(tb_peer_of(net.engines[0], 1)->error, TB_OK);
    end_broken();
}

/* What a get wants is read when there is room for it, if it is still there. */
static void a_result_waits_for_room(void **state)
{
    static char bytes[100];
    const struct tb_buffer buffer = bytes_of(bytes, 100);
    for (int gone = 0; gone < 2; gone++) {
        struct tb_request request = {.complete = NULL};
        dynamic = true;
        begin_heard();
        assert_int_equal(tb_window_attach(windows[1], memory[1], BYTES), TB_OK);
        struct tb_access_target target = target_of(1, (uintptr_t)memory[1] + 8, 100, &tb_type_byte);
        tb_access_get(windows[0], &buffer, &target, &request);
        net.sim.again = TB_SIM_MILLION;
        for (int i = 0; i < 1000 && tb_peer_of(net.engines[1], 0)->results_waiting == 0; i++)
            tb_engine_progress(net.engines[1]);
        assert_int_equal(tb_peer_of(net.engines[1], 0)->results_waiting, 1);
        memset(memory[1] + 8, 7, 100);
        if (gone)
            assert_int_equal(tb_window_detach(windows[1], memory[1]), TB_OK);
        net.sim.again = 0;
        loop_net_settle(&net);
        assert_true(tb_request_done(&request));
        assert_int_equal(request.status.error, gone ? TB_ERR_ARGUMENT : TB_OK);
        assert_true(gone || (bytes[0] == 7 && bytes[99] == 7));
        assert_int_equal(tb_peer_of(net.engines[1], 0)->results_waiting, 0);
        assert_int_equal(tb_peer_of(net.engines[0], 1)->error, TB_OK);
        end_broken();
        dynamic = false;
    }
}

/* The same process, which has asked for so much, reads nothing. */
static void deafen(uint32_t rounds)
{
    net.sim.again = TB_SIM_MILLION;
    for (uint32_t i = 0; i < rounds; i++)
        tb_engine_progress(net.engines[1]);
}

/* Whoever asks for ever so many small pieces, in several windows, has no more of them waiting than is kept for it. */
static void many_results_wait_for_room(void **state)
{
    enum { COUNT = 30000 };
    static char bytes[COUNT];
    struct tb_window *more[RANKS];
    begin_heard();
    net.sim.again = 0;
    for (uint32_t i = 0; i < RANKS; i++) {
        struct tb_window_config config = {.channel = net.channels[i], .base = memory[i], .size = BYTES};
        assert_int_equal(tb_window_open(net.engines[i], &config, &more[i]), TB_OK);
        for (uint32_t k = 0; k < COUNT; k++)
            memory[i][k] = (char)(k % 251);
    }
    for (uint32_t k = 0; k < COUNT; k++) {
        const struct tb_buffer buffer = bytes_of(&bytes[k], 1);
        const struct tb_access_target target = target_of(1, k, 1, &tb_type_byte);
        tb_access_get(k % 2 ? windows[0] : more[0], &buffer, &target, NULL);
    }
    deafen(COUNT);
    const struct tb_peer *origin = tb_peer_of(net.engines[1], 0);
    assert_int_equal(origin->error, TB_OK);
    assert_in_range(origin->results_waiting, 1000, TB_RESULTS_LIMIT - 1);
    net.sim.again = 0;
    loop_net_settle(&net);
    assert_int_equal(tb_window_flush_local(windows[0], 1, "get"), TB_OK);
    assert_int_equal(tb_window_flush_local(more[0], 1, "get"), TB_OK);
    for (uint32_t k = 0; k < COUNT; k++)
        assert_int_equal(bytes[k], (char)(k % 251));
    assert_int_equal(tb_peer_of(net.engines[0], 1)->wanted, 0);
    assert_int_equal(origin->results_bytes, 0);
    for (uint32_t i = 0; i < RANKS; i++)
        tb_window_close(more[i]);
    end_broken();
}

/* A long get is asked for in long pieces however short the frames are, and all of it takes the stream of long messages.
 */
static void long_gets_stay_with_long_messages(void **state)
{
    static char bytes[BYTES];
    const struct tb_buffer buffer = bytes_of(bytes, BYTES);
    const struct tb_access_target target = target_of(1, 0, BYTES, &tb_type_byte);
    begin_heard();
    net.sim.again = 0;
    tb_access_get(windows[0], &buffer, &target, NULL);
    assert_int_equal(windows[0]->ranks[1].sent, (BYTES + TB_ACCESS_PIECE - 1) / TB_ACCESS_PIECE);
    deafen(100);
    const struct tb_peer *origin = tb_peer_of(net.engines[1], 0);
    const struct tb_access_result *result;
    assert_true(origin->results_waiting >= BYTES / net.sim.max_payload);
    TB_LIST_EACH (result, &origin->results, struct tb_access_result, queue)
        assert_int_equal(result->stream, result->message.offset < BYTES / TB_ACCESS_PIECE * TB_ACCESS_PIECE
                                             ? TB_STREAM_BULK
                                             : TB_STREAM_SHORT);
    net.sim.again = 0;
    loop_net_settle(&net);
    assert_int_equal(tb_window_flush_local(windows[0], 1, "get"), TB_OK);
    end_broken();
}

/* A get of several frames of which each is refused fails once. */
static void each_part_is_refused(void **state)
{
    static char bytes[BYTES];
    const struct tb_buffer buffer = bytes_of(bytes, BYTES);
    struct tb_request request = {.complete = NULL};
    dynamic = true;
    begin_heard();
    const struct tb_access_target target = target_of(1, (uintptr_t)memory[1], BYTES, &tb_type_byte);
    tb_access_get(windows[0], &buffer, &target, &request);
    loop_net_settle(&net);
    assert_true(windows[0]->ranks[1].sent > 1);
    assert_true(tb_request_done(&request));
    assert_int_equal(request.status.error, TB_ERR_ARGUMENT);
    assert_int_equal(windows[0]->ranks[1].error, TB_OK);
    assert_int_equal(tb_peer_of(net.engines[0], 1)->wanted, 0);
    end_broken();
    dynamic = false;
}

/* A result that comes twice, once while it is being read into the buffer, ends the connection and not the get. */
static void results_do_not_come_twice(void **state)
{
    static char bytes[100];
    struct tb_request request = {.complete = NULL};
    const struct tb_message m = begin_get(bytes, 100, &request);
    const struct tb_upcalls *up = tb_sim_upcalls(&net.sim, 0);
    struct tb_endpoint *from = tb_sim_endpoint(&net.sim, 0, 1);
    assert_ptr_equal(up->place(up->context, from, &m, 100), bytes);
    up->frame(up->context, from, NULL, &m, memory[1], 100);
    assert_false(tb_request_done(&request));
    loop_net_settle(&net);
    assert_true(tb_request_done(&request));
    assert_int_equal(request.status.error, TB_ERR_PEER);
    end_broken();
}

/* ---- processes that go ------------------------------------------------------------------------------------------- */

/* Process 0 goes while process 1 waits for a result of it and holds its lock, and 2 waits for that of 1, which 0 has.
 */
static void nobody_waits_for_who_is_gone(void **state)
{
    static char bytes[10];
    const struct tb_buffer buffer = bytes_of(bytes, 10);
    struct tb_access_target target = target_of(0, 0, 10, &tb_type_byte);
    struct tb_request request = {.complete = NULL};
    begin(variants[2]);
    windows[0]->ranks[1].locking = TB_LOCK_EXCLUSIVE;
    tb_window_tell(&windows[0]->ranks[1], TB_KIND_LOCK, 0, TB_LOCK_EXCLUSIVE);
    loop_net_settle(&net);
    assert_int_equal(windows[0]->ranks[1].locked, TB_LOCK_EXCLUSIVE);
    windows[2]->ranks[1].locking = TB_LOCK_SHARED;
    tb_window_tell(&windows[2]->ranks[1], TB_KIND_LOCK, 0, TB_LOCK_SHARED);
    loop_net_settle(&net);
    assert_int_equal(windows[2]->ranks[1].locked, TB_LOCK_NONE);
    tb_access_put(windows[1], &buffer, &target, NULL);
    tb_access_get(windows[1], &buffer, &target, &request);
    uint32_t rank = 0;
    assert_int_equal(tb_window_post(windows[1], &rank, 1), TB_OK);
    tb_error(TB_ERR_PEER, "it was ended");
    tb_engine_lost(net.engines[1], (struct tb_proc){7, 0}, TB_ERR_PEER);
    for (int i = 0; i < 10; i++) {
        tb_engine_progress(net.engines[1]);
        tb_engine_progress(net.engines[2]);
    }
    assert_true(tb_request_done(&request));
    assert_int_equal(request.status.error, TB_ERR_PEER);
    assert_int_equal(tb_window_flush(windows[1], 0, "flush"), TB_ERR_PEER);
    assert_non_null(strstr(tb_error_story(), "it was ended"));
    assert_int_equal(tb_window_wait(windows[1], "wait"), TB_ERR_PEER);
    assert_int_equal(tb_window_lock(windows[1], 0, true, "lock"), TB_ERR_PEER);
    assert_int_equal(tb_window_start(windows[1], &rank, 1, "start"), TB_ERR_PEER);
    assert_int_equal(tb_window_post(windows[1], &rank, 1), TB_OK);
    assert_int_equal(tb_window_wait(windows[1], "wait"), TB_ERR_PEER);
    assert_non_null(strstr(tb_error_story(), "rank 0 (process 0) is gone: it was ended"));
    assert_int_equal(tb_window_wait(windows[1], "wait"), TB_OK);
    assert_int_equal(windows[2]->ranks[1].locked, TB_LOCK_SHARED); /* which is free now */
    tb_access_put(windows[1], &buffer, &target, NULL);
    assert_int_equal(tb_window_flush(windows[1], 0, "flush"), TB_ERR_PEER);
    assert_int_equal(tb_window_flush(windows[1], TB_ANY_RANK, "flush"), TB_OK);
    end();
}

/* Locks in memory of which only the places are counted. */
static int places;

static int count_queue(void *context, uint32_t rank, bool again, uint32_t *ticket)
{
    places++;
    return TB_OK;
}

static bool count_turn(void *context, uint32_t rank, uint32_t ticket, bool exclusive, bool joins, uint32_t *wake)
{
    places--;
    *wake = TB_ANY_RANK;
    return true;
}

static uint32_t count_pass(void *context, uint32_t rank, uint32_t ticket)
{
    places--;
    return TB_ANY_RANK;
}

static uint32_t no_joiner(void *context, uint32_t rank, uint32_t *from)
{
    return TB_ANY_RANK;
}

static uint32_t no_next(void *context, uint32_t rank, bool exclusive)
{
    return TB_ANY_RANK;
}

/* Who gets the locks of some of all has no place in the queue for another one. */
static void no_place_is_kept_in_vain(void **state)
{
    static const struct tb_window_near near = {
        .queue = count_queue, .turn = count_turn, .joiner = no_joiner, .pass = count_pass, .unlock = no_next};
    begin(variants[0]);
    places = 0;
    windows[0]->near = &near;
    tb_window_peer(&windows[0]->ranks[1]);
    tb_engine_lost(net.engines[0], (struct tb_proc){7, 1}, tb_error(TB_ERR_PEER, "it is gone"));
    for (int i = 0; i < 2; i++)
        assert_int_equal(tb_window_lock_all(windows[0], "lock_all"), TB_ERR_PEER);
    assert_int_equal(places, 0);
    windows[0]->near = NULL;
    end_broken();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_are_checked),
        cmocka_unit_test(a_window_that_is_gone_is_told),
        cmocka_unit_test(nobody_writes_to_what_was_given_back),
        cmocka_unit_test(whose_memory_is_in_another_window),
        cmocka_unit_test(nobody_writes_to_a_part_that_was_given_back),
        cmocka_unit_test(a_refused_access_has_frames_on_their_way),
        cmocka_unit_test(a_part_is_refused_while_another_comes),
        cmocka_unit_test(a_result_waits_for_room),
        cmocka_unit_test(many_results_wait_for_room),
        cmocka_unit_test(long_gets_stay_with_long_messages),
        cmocka_unit_test(each_part_is_refused),
        cmocka_unit_test(results_do_not_come_twice),
        cmocka_unit_test(nobody_waits_for_who_is_gone),
        cmocka_unit_test(no_place_is_kept_in_vain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
