/* Point-to-point: peers that are lost or talk nonsense, contexts that are not known. */
#include "engine/message_test.h"

static void a_lost_peer_ends_its_requests(void **state)
{
    struct loop_net net;
    struct tb_request asked, from_lost, any, coming, other, stuck, later;
    loop_net_init(&net, 3);
    loop_net_open(&net, false);
    post_receive(&net, &coming, 0, 1, 8, EXACT, BIG);
    post_send(&net, &stuck, 1, 0, 8, 50000, TB_MODE_STANDARD);
    tb_engine_progress(net.engines[0]); /* matched: asked for, and never sent */
    post_send(&net, &asked, 0, 1, 5, 9000, TB_MODE_STANDARD);
    post_receive(&net, &from_lost, 0, 1, 5, EXACT, BIG);
    post_receive(&net, &any, 0, TB_ANY_RANK, 0, 0, BIG);
    post_receive(&net, &other, 0, 2, 5, EXACT, BIG);
    tb_error(TB_ERR_PEER, "rank 1 was killed by signal 9");
    tb_engine_lost(net.engines[0], (struct tb_proc){7, 1}, TB_ERR_PEER);
    tb_engine_progress(net.engines[0]);
    struct tb_request *ended[] = {&coming, &asked, &from_lost};
    for (int i = 0; i < 3; i++) {
        assert_true(tb_request_done(ended[i]));
        assert_int_equal(ended[i]->status.error, TB_ERR_PEER);
        tb_request_wait(ended[i]);
        assert_non_null(strstr(tb_error_story(), "signal 9"));
    }
    assert_false(tb_request_done(&any) || tb_request_done(&other));
    /* What is started later fails at once; others are served. */
    post_send(&net, &later, 0, 1, 5, 1, TB_MODE_STANDARD);
    assert_int_equal(later.status.error, TB_ERR_PEER);
    post_receive(&net, &later, 0, 1, 5, EXACT, 1);
    assert_int_equal(later.status.error, TB_ERR_PEER);
    struct tb_status status;
    assert_int_equal(tb_probe(net.channels[0], 1, 5, EXACT, &status, NULL), TB_ERR_PEER);
    post_send(&net, &later, 2, 0, 3, 100, TB_MODE_STANDARD);
    loop_net_settle(&net);
    assert_true(tb_request_done(&any));
    assert_int_equal(any.status.source, 2);
    tb_request_cancel(&other);
    tb_engine_flush(net.engines[0]);
    loop_net_close(&net);
}

/* A peer that takes nothing more may have sent something before; only `broken` says that this was all. */
static void what_was_sent_before_the_end_arrives(void **state)
{
    struct loop_net net;
    struct tb_request first, r, s, theirs, never;
    loop_net_init(&net, 2);
    loop_net_open(&net, false);
    post_send(&net, &first, 0, 1, 1, 10, TB_MODE_STANDARD);
    post_receive(&net, &r, 0, 1, 5, EXACT, 100);
    post_receive(&net, &never, 0, 1, 6, EXACT, 100);
    post_send(&net, &theirs, 1, 0, 5, 100, TB_MODE_STANDARD);
    net.sim.refusal = TB_ERR_PEER;
    post_send(&net, &s, 0, 1, 5, 100, TB_MODE_STANDARD);
    assert_false(tb_request_done(&s));
    tb_engine_progress(net.engines[0]);
    assert_true(tb_request_done(&r));
    assert_int_equal(r.status.error, TB_OK);
    assert_false(tb_request_done(&s) || tb_request_done(&never));
    assert_int_equal(net.sim.drops, 0);
    const struct tb_upcalls *up = tb_sim_upcalls(&net.sim, 0);
    up->sent(up->context, tb_sim_endpoint(&net.sim, 0, 1), NULL, TB_ERR_PEER);
    tb_error(TB_ERR_PEER, "the cable was cut");
    up->broken(up->context, tb_sim_endpoint(&net.sim, 0, 1), TB_ERR_PEER);
    tb_engine_progress(net.engines[0]);
    assert_int_equal(s.status.error, TB_ERR_PEER);
    assert_int_equal(never.status.error, TB_ERR_PEER);
    tb_request_wait(&s);
    assert_non_null(strstr(tb_error_story(), "the cable was cut"));
    assert_int_equal(net.sim.drops, 1);
    loop_net_close(&net);
}

static void goodbye_hurts_only_who_waits(void **state)
{
    struct loop_net net;
    struct tb_request s, r;
    loop_net_init(&net, 2);
    loop_net_open(&net, false);
    fill(out, 100, 0);
    post_send(&net, &s, 1, 0, 5, 100, TB_MODE_STANDARD);
    loop_net_settle(&net);
    const struct tb_upcalls *up = tb_sim_upcalls(&net.sim, 0);
    up->broken(up->context, tb_sim_endpoint(&net.sim, 0, 1), TB_ERR_CLOSED);
    loop_net_settle(&net);
    post_receive(&net, &r, 0, 1, 5, EXACT, BIG); /* came before it left */
    check_received(&r, 1, 5, 100);
    post_receive(&net, &r, 0, 1, 5, EXACT, BIG);
    assert_int_equal(r.status.error, TB_ERR_PEER);
    loop_net_close(&net);
}

/* Between the first two of three, who have talked. */
static void talk(struct loop_net *net)
{
    struct tb_request s, r;
    loop_net_init(net, 3);
    loop_net_open(net, false);
    post_receive(net, &r, 1, 0, 5, EXACT, 10);
    post_send(net, &s, 0, 1, 5, 10, TB_MODE_STANDARD);
    loop_net_settle(net);
    check_received(&r, 0, 5, 10);
}

static void break_connection(struct loop_net *net, int error)
{
    const struct tb_upcalls *up = tb_sim_upcalls(&net->sim, 0);
    tb_error(error, "as this test wants it");
    up->broken(up->context, tb_sim_endpoint(&net->sim, 0, 1), error);
    loop_net_settle(net);
}

static void lose(struct loop_net *net)
{
    tb_engine_lost(net->engines[0], (struct tb_proc){7, 1}, tb_error(TB_ERR_PEER, "it was killed"));
    loop_net_settle(net);
}

static void a_lost_connection_is_told_once(void **state)
{
    static const int errors[] = {TB_ERR_PEER, TB_ERR_PROTOCOL, TB_ERR_MEMORY};
    static const int told[] = {TB_ERR_PEER, TB_ERR_PEER, TB_ERR_MEMORY};
    for (int i = 0; i < 3; i++) {
        struct loop_net net;
        struct tb_request r;
        talk(&net);
        break_connection(&net, errors[i]);
        break_connection(&net, TB_ERR_PEER);
        lose(&net);
        assert_int_equal(net.losses, 1);
        assert_int_equal(net.lost.index, 1);
        assert_int_equal(net.lost_error, told[i]);
        post_receive(&net, &r, 0, 1, 5, EXACT, 1);
        assert_int_equal(r.status.error, told[i]);
        loop_net_close(&net);
    }
}

static void who_has_left_or_is_gone_has_lost_no_connection(void **state)
{
    struct loop_net net;
    talk(&net);
    break_connection(&net, TB_ERR_CLOSED);
    lose(&net);
    assert_int_equal(net.losses, 0);
    loop_net_close(&net);
    talk(&net);
    lose(&net);
    break_connection(&net, TB_ERR_PEER);
    assert_int_equal(net.losses, 0);
    loop_net_close(&net);
}

static void contexts_not_yet_known_wait(void **state)
{
    struct loop_net net;
    struct tb_request s, s2, r;
    struct tb_channel *early, *late;
    loop_net_init(&net, 2);
    loop_net_open(&net, false);
    struct tb_channel_config config = {.context = tb_context_make(0, 2, TB_PLANE_POINT), .size = 2, .rank = 0};
    assert_int_equal(tb_channel_open(net.engines[0], &config, &early), TB_OK);
    struct tb_buffer b = bytes_of(out, 200), large = bytes_of(out, 9000), room = bytes_of(in, BIG);
    s.complete = s2.complete = r.complete = NULL;
    fill(out, 9000, 0);
    tb_send_post(early, &s, &b, 1, 3, TB_MODE_STANDARD);
    tb_send_post(early, &s2, &large, 1, 4, TB_MODE_STANDARD);
    loop_net_settle(&net);
    config.rank = 1;
    assert_int_equal(tb_channel_open(net.engines[1], &config, &late), TB_OK);
    tb_receive_post(late, &r, &room, 0, 4, EXACT);
    loop_net_settle(&net);
    check_received(&r, 0, 4, 9000);
    tb_receive_post(late, &r, &room, TB_ANY_RANK, 0, 0);
    loop_net_settle(&net);
    check_received(&r, 0, 3, 200);
    tb_channel_close(early);
    tb_channel_close(late);
    loop_net_close(&net);
}

/* Messages for a channel that is gone are dropped, and their senders do not wait. */
static void contexts_that_are_gone_answer(void **state)
{
    struct loop_net net;
    struct tb_request before[3], after[3];
    loop_net_init(&net, 2);
    loop_net_open(&net, false);
    static const uint64_t lengths[] = {1000, 9000, 10};
    static const enum tb_mode modes[] = {TB_MODE_STANDARD, TB_MODE_STANDARD, TB_MODE_SYNCHRONOUS};
    for (int i = 0; i < 3; i++)
        post_send(&net, &before[i], 0, 1, 3, lengths[i], modes[i]);
    loop_net_settle(&net);
    tb_channel_close(net.channels[1]);
    net.channels[1] = NULL;
    for (int i = 0; i < 3; i++)
        post_send(&net, &after[i], 0, 1, 3, lengths[i], modes[i]);
    loop_net_settle(&net);
    for (int i = 0; i < 3; i++) {
        assert_true(tb_request_done(&before[i]) && tb_request_done(&after[i]));
        assert_int_equal(after[i].status.error, TB_OK);
    }
    assert_int_equal(count_of(&net, 1).dropped, 6);
    assert_int_equal(count_of(&net, 1).unexpected_bytes, 0);
    for (int i = 0; i < 1000; i++) /* more than the grant: credit comes back */
        post_send(&net, &after[0], 0, 1, 3, 1000, TB_MODE_STANDARD), loop_net_settle(&net);
    assert_int_equal(count_of(&net, 0).rendezvous, 2);
    loop_net_close(&net);
}

static void nonsense_breaks_the_peer(void **state)
{
    struct loop_net net;
    struct tb_request s, r;
    loop_net_init(&net, 2);
    loop_net_open(&net, false);
    post_send(&net, &s, 1, 0, 3, 10, TB_MODE_STANDARD);
    post_receive(&net, &r, 0, 1, 4, EXACT, 10);
    loop_net_settle(&net);
    const struct tb_upcalls *up = tb_sim_upcalls(&net.sim, 0);
    struct tb_endpoint *from = tb_sim_endpoint(&net.sim, 0, 1);
    struct tb_message m = {.kind = TB_KIND_DATA, .match = 12345, .length = 3};
    up->frame(up->context, from, NULL, &m, "abc", 3); /* stale: ignored */
    m.kind = TB_KIND_CLEAR;
    up->frame(up->context, from, NULL, &m, "", 0);
    loop_net_settle(&net);
    assert_false(tb_request_done(&r));
    m = (struct tb_message){.kind = TB_KIND_EAGER, .context = LOOP_CONTEXT, .length = 30, .source_rank = 1};
    up->frame(up->context, from, NULL, &m, "abc", 3);
    loop_net_settle(&net);
    assert_true(tb_request_done(&r));
    assert_int_equal(r.status.error, TB_ERR_PEER);
    assert_int_equal(net.losses, 1); /* given up by this side */
    loop_net_close(&net);
}

static void frames_are_checked_by_their_kind(void **state)
{
    static const struct {
        struct tb_message message;
        size_t payload;
    } bad[] = {{{.kind = TB_KIND_EAGER, .length = 2}, 3},
               {{.kind = TB_KIND_REQUEST, .length = 3}, 3},
               {{.kind = TB_KIND_REQUEST, .flags = TB_MESSAGE_REMOTE}, 3},
               {{.kind = TB_KIND_DATA, .length = 4}, 3},
               {{.kind = TB_KIND_CLEAR}, 3},
               {{.kind = TB_KIND_CANCELLED, .length = 2}, 0},
               {{.kind = TB_KIND_CREDIT, .length = 9}, 3},
               {{.kind = TB_KIND_LINK}, 0},
               {{.kind = TB_KIND_COUNT}, 0}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct loop_net net;
        struct tb_request s, r;
        loop_net_init(&net, 2);
        loop_net_open(&net, false);
        post_send(&net, &s, 1, 0, 3, 10, TB_MODE_STANDARD);
        post_receive(&net, &r, 0, 1, 4, EXACT, 10);
        loop_net_settle(&net);
        assert_false(tb_request_done(&r));
        const struct tb_upcalls *up = tb_sim_upcalls(&net.sim, 0);
        struct tb_message m = bad[i].message;
        up->frame(up->context, tb_sim_endpoint(&net.sim, 0, 1), NULL, &m, "abc", bad[i].payload);
        assert_int_equal(tb_peer_of(net.engines[0], 1)->error, TB_ERR_PROTOCOL);
        loop_net_settle(&net);
        assert_int_equal(r.status.error, TB_ERR_PEER);
        loop_net_close(&net);
    }
}

/* The sender's machine writes long double in another way: the receive ends with an error, whether the message came at
 * once or was to be asked for, before or after it; the sender is free, and other data passes. */
static void long_double_of_another_machine(void **state)
{
    static const uint64_t counts[] = {1, 20, 5000};
    const struct tb_type *types[] = {tb_type_predefined(0x220), tb_type_predefined(0x214)};
    for (int variant = 0; variant < 12; variant++) {
        struct loop_net net;
        struct tb_request s, r;
        uint64_t count = counts[variant % 3];
        const struct tb_type *type = types[variant / 3 % 2];
        struct tb_buffer from = {out, count, type}, to = {in, count, type};
        bool first = variant >= 6;
        loop_net_init(&net, 2);
        loop_net_open(&net, false);
        net.engines[1]->representation ^= TB_REP_LDOUBLE_X87;
        fill(out, tb_buffer_bytes(&from), 3);
        memset(in, 99, sizeof in);
        s.complete = r.complete = NULL;
        if (first)
            tb_receive_post(net.channels[0], &r, &to, TB_ANY_RANK, 5, EXACT);
        tb_send_post(net.channels[1], &s, &from, 0, 5, TB_MODE_SYNCHRONOUS);
        loop_net_settle(&net);
        if (!first)
            tb_receive_post(net.channels[0], &r, &to, TB_ANY_RANK, 5, EXACT);
        loop_net_settle(&net);
        assert_true(tb_request_done(&s) && tb_request_done(&r));
        assert_int_equal(s.status.error, TB_OK);
        assert_int_equal(r.status.error, type == types[0] ? TB_ERR_UNSUPPORTED : TB_OK);
        if (type == types[0]) {
            assert_int_equal(in[0], 99);
            assert_int_equal(tb_request_explain(&r), TB_ERR_UNSUPPORTED);
            assert_non_null(strstr(tb_error_story(), "long double"));
        } else {
            assert_memory_equal(in, out, tb_buffer_bytes(&to));
        }
        loop_net_close(&net);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lost_peer_ends_its_requests),
        cmocka_unit_test(what_was_sent_before_the_end_arrives),
        cmocka_unit_test(goodbye_hurts_only_who_waits),
        cmocka_unit_test(contexts_not_yet_known_wait),
        cmocka_unit_test(a_lost_connection_is_told_once),
        cmocka_unit_test(who_has_left_or_is_gone_has_lost_no_connection),
        cmocka_unit_test(contexts_that_are_gone_answer),
        cmocka_unit_test(nonsense_breaks_the_peer),
        cmocka_unit_test(frames_are_checked_by_their_kind),
        cmocka_unit_test(long_double_of_another_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
