/* Point-to-point over the loopback transport: protocols, credit, probes, cancelling, failures. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "engine/loopback_test.h"

#define EXACT UINT64_MAX
#define BIG   100000u

static char out[BIG], in[BIG];

static struct tb_buffer bytes_of(void *base, uint64_t count)
{
    return (struct tb_buffer){base, count, &tb_type_byte};
}

static void fill(char *to, size_t length, uint32_t seed)
{
    for (size_t i = 0; i < length; i++)
        to[i] = (char)(seed + i * 7 + i / 251);
}

static struct tb_request *post_send(struct loop_net *net, struct tb_request *r, uint32_t from, uint32_t to,
                                    uint64_t tag, uint64_t length, enum tb_mode mode)
{
    struct tb_buffer b = bytes_of(out, length);
    r->complete = NULL;
    tb_send_post(net->channels[from], r, &b, to, tag, mode);
    return r;
}

static struct tb_request *post_receive(struct loop_net *net, struct tb_request *r, uint32_t at, uint32_t from,
                                       uint64_t tag, uint64_t mask, uint64_t room)
{
    struct tb_buffer b = bytes_of(in, room);
    r->complete = NULL;
    tb_receive_post(net->channels[at], r, &b, from, tag, mask);
    return r;
}

static void check_received(const struct tb_request *r, uint32_t source, uint64_t tag, uint64_t length)
{
    assert_true(tb_request_done(r));
    assert_int_equal(r->status.error, TB_OK);
    assert_int_equal(r->status.source, source);
    assert_int_equal(r->status.match, tag);
    assert_int_equal(r->status.bytes, length);
    assert_memory_equal(in, out, length);
}

static struct tb_counters count_of(struct loop_net *net, uint32_t i)
{
    struct tb_counters c;
    tb_engine_count(net->engines[i], &c);
    return c;
}

/* Every length around the limits, posted before and after, in every mode. */
static void lengths_and_modes(void **state)
{
    static const uint64_t lengths[] = {0, 1, 127, 128, 129, 1023, 1024, 1025, 4095, 4096, 4097, 8192, 65537, BIG};
    for (int variant = 0; variant < 24; variant++) {
        struct loop_net net;
        loop_net_init(&net, 2);
        net.remote = variant >= 12;
        net.again = variant % 2 * 30;
        net.pending = variant % 2 * 30;
        net.remote_read = variant % 4 >= 2;
        net.remote_minimum = 2000;
        net.forbidden = variant % 12 >= 8;
        loop_net_open(&net, false);
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
            for (int mode = TB_MODE_STANDARD; mode <= TB_MODE_READY; mode++) {
                struct tb_request s, r;
                bool early = variant / 4 % 2 == 0;
                fill(out, lengths[i], (uint32_t)i);
                memset(in, 0, sizeof in);
                if (early)
                    post_receive(&net, &r, 1, 0, 5, EXACT, BIG);
                post_send(&net, &s, 0, 1, 5, lengths[i], (enum tb_mode)mode);
                loop_net_settle(&net);
                if (!early) {
                    if (mode == TB_MODE_SYNCHRONOUS)
                        assert_false(tb_request_done(&s));
                    post_receive(&net, &r, 1, 0, 5, EXACT, BIG);
                    loop_net_settle(&net);
                }
                assert_true(tb_request_done(&s));
                assert_int_equal(s.status.error, TB_OK);
                check_received(&r, 0, 5, lengths[i]);
            }
        struct tb_counters c = count_of(&net, 1);
        assert_int_equal(c.unexpected_bytes, 0);
        assert_int_equal(c.remote_reads > 0, net.remote_read && !net.forbidden);
        loop_net_close(&net);
    }
}

static void a_longer_message_is_cut(void **state)
{
    static const uint64_t lengths[] = {2, 500, 5000, 50000};
    for (int variant = 0; variant < 4; variant++)
        for (size_t i = 0; i < 4; i++) {
            struct loop_net net;
            struct tb_request s, r;
            uint64_t room = i == 3 && variant >= 2 ? 0 : lengths[i] / 2;
            loop_net_init(&net, 2);
            net.remote_read = variant % 2 != 0;
            net.remote_minimum = 2000;
            loop_net_open(&net, false);
            fill(out, lengths[i], 3);
            memset(in, 99, sizeof in);
            if (variant >= 2)
                post_receive(&net, &r, 1, 0, 5, EXACT, room);
            post_send(&net, &s, 0, 1, 5, lengths[i], TB_MODE_STANDARD);
            loop_net_settle(&net);
            if (variant < 2)
                post_receive(&net, &r, 1, 0, 5, EXACT, room);
            loop_net_settle(&net);
            assert_true(tb_request_done(&s) && tb_request_done(&r));
            assert_int_equal(s.status.error, TB_OK);
            assert_int_equal(r.status.error, TB_ERR_TRUNCATE);
            assert_int_equal(r.status.bytes, room);
            assert_memory_equal(in, out, room);
            assert_int_equal(in[room], 99);
            tb_request_wait(&r);
            assert_non_null(strstr(tb_error_story(), "does not fit"));
            loop_net_close(&net);
        }
}

static void payload_memory_is_bounded(void **state)
{
    enum { COUNT = 10000 };
    struct loop_net net;
    static struct tb_request sends[COUNT];
    loop_net_init(&net, 2);
    tb_param.eager_memory = 512 << 10; /* half of it for each */
    loop_net_open(&net, false);
    fill(out, 1024, 0);
    for (int i = 0; i < COUNT; i++)
        post_send(&net, &sends[i], 0, 1, (uint64_t)i, 1024, TB_MODE_STANDARD);
    loop_net_settle(&net);
    struct tb_counters c = count_of(&net, 1);
    assert_int_equal(c.unexpected, COUNT);
    assert_in_range(c.unexpected_peak, 200 << 10, 256 << 10);
    for (int i = COUNT - 1; i >= 0; i--) {
        struct tb_request r;
        post_receive(&net, &r, 1, 0, (uint64_t)i, EXACT, BIG);
        loop_net_settle(&net);
        check_received(&r, 0, (uint64_t)i, 1024);
    }
    for (int i = 0; i < COUNT; i++)
        assert_true(tb_request_done(&sends[i]));
    c = count_of(&net, 1);
    assert_int_equal(c.unexpected_bytes, 0);
    assert_true(c.credits > 0);
    /* Credit is back: messages go at once again. */
    struct tb_request r;
    post_receive(&net, &r, 1, 0, 1, EXACT, BIG);
    uint64_t asked = count_of(&net, 0).rendezvous;
    struct tb_buffer b = bytes_of(out, 1000);
    assert_int_equal(tb_send_now(net.channels[0], &b, 1, 1, TB_MODE_STANDARD), TB_OK);
    loop_net_settle(&net);
    assert_true(tb_request_done(&r));
    assert_int_equal(count_of(&net, 0).rendezvous, asked);
    loop_net_close(&net);
}

static void send_now_never_waits(void **state)
{
    struct loop_net net;
    struct tb_request s, r;
    loop_net_init(&net, 2);
    loop_net_open(&net, false);
    struct tb_buffer small = bytes_of(out, 8), large = bytes_of(out, 5000);
    /* The first message to a peer finds out how to reach it, so it is posted. */
    assert_int_equal(tb_send_now(net.channels[0], &small, 1, 1, TB_MODE_STANDARD), TB_AGAIN);
    post_send(&net, &s, 0, 1, 1, 8, TB_MODE_STANDARD);
    assert_int_equal(tb_send_now(net.channels[0], &small, 1, 1, TB_MODE_STANDARD), TB_OK);
    assert_int_equal(tb_send_now(net.channels[0], &large, 1, 1, TB_MODE_STANDARD), TB_AGAIN);
    assert_int_equal(tb_send_now(net.channels[0], &small, 1, 1, TB_MODE_SYNCHRONOUS), TB_AGAIN);
    net.again = 100;
    post_send(&net, &s, 0, 1, 2, 8, TB_MODE_STANDARD);
    net.again = 0;
    assert_int_equal(tb_send_now(net.channels[0], &small, 1, 2, TB_MODE_STANDARD), TB_AGAIN); /* not past the other */
    for (int i = 0; i < 3; i++) {
        loop_net_settle(&net);
        post_receive(&net, &r, 1, 0, i < 2 ? 1 : 2, EXACT, 8);
        loop_net_settle(&net);
        assert_true(tb_request_done(&r));
    }
    loop_net_close(&net);
}

static void ordinary_probes(void **state)
{
    struct loop_net net;
    struct tb_request s, s2, r;
    struct tb_status status;
    struct tb_arrival *first = NULL;
    loop_net_init(&net, 3);
    loop_net_open(&net, false);
    assert_int_equal(tb_probe(net.channels[1], TB_ANY_RANK, 0, 0, &status, NULL), TB_AGAIN);
    fill(out, BIG, 1);
    post_send(&net, &s, 0, 1, 5, 100, TB_MODE_STANDARD);
    post_send(&net, &s2, 2, 1, 6, 20000, TB_MODE_STANDARD);
    assert_int_equal(tb_probe(net.channels[1], 2, 0, 0, &status, NULL), TB_OK);
    assert_int_equal(status.bytes, 20000);
    assert_int_equal(status.match, 6);
    assert_int_equal(tb_probe(net.channels[1], 0, 6, EXACT, &status, NULL), TB_AGAIN);
    assert_int_equal(tb_probe(net.channels[1], TB_ANY_RANK, 0, 0, &status, NULL), TB_OK);
    assert_int_equal(status.source, 0);
    /* A matched probe takes it out of matching. */
    assert_int_equal(tb_probe(net.channels[1], TB_ANY_RANK, 0, 0, &status, &first), TB_OK);
    post_receive(&net, &r, 1, TB_ANY_RANK, 0, 0, BIG);
    loop_net_settle(&net);
    check_received(&r, 2, 6, 20000);
    struct tb_buffer b = bytes_of(in, BIG);
    tb_receive_arrival(net.channels[1], &r, &b, first);
    loop_net_settle(&net);
    check_received(&r, 0, 5, 100);
    assert_true(tb_request_done(&s) && tb_request_done(&s2));
    /* The same with one that is only announced. */
    post_send(&net, &s, 0, 1, 5, 30000, TB_MODE_SYNCHRONOUS);
    loop_net_settle(&net);
    assert_int_equal(tb_probe_wait(net.channels[1], 0, 5, EXACT, &status, &first), TB_OK);
    assert_int_equal(tb_probe(net.channels[1], TB_ANY_RANK, 0, 0, &status, NULL), TB_AGAIN);
    tb_receive_arrival(net.channels[1], &r, &b, first);
    loop_net_settle(&net);
    check_received(&r, 0, 5, 30000);
    assert_true(tb_request_done(&s));
    loop_net_close(&net);
}

static void cancelling_receives(void **state)
{
    struct loop_net net;
    struct tb_request r, wild, s;
    loop_net_init(&net, 2);
    loop_net_open(&net, false);
    post_receive(&net, &r, 1, 0, 5, EXACT, 10);
    post_receive(&net, &wild, 1, TB_ANY_RANK, 0, 0, 10);
    tb_request_cancel(&r);
    tb_request_cancel(&wild);
    assert_true(tb_request_done(&r) && r.status.cancelled);
    assert_true(tb_request_done(&wild) && wild.status.cancelled);
    /* It gets nothing any more; a matched one cannot be cancelled. */
    post_receive(&net, &r, 1, 0, 5, EXACT, BIG);
    post_send(&net, &s, 0, 1, 5, 9000, TB_MODE_STANDARD);
    fill(out, 9000, 2);
    tb_engine_progress(net.engines[1]);
    tb_request_cancel(&r);
    loop_net_settle(&net);
    check_received(&r, 0, 5, 9000);
    assert_false(r.status.cancelled);
    loop_net_close(&net);
}

static void cancelling_sends(void **state)
{
    for (int variant = 0; variant < 16; variant++) {
        uint64_t length = variant % 2 != 0 ? 9000 : 50;
        bool late = variant % 4 >= 2, self = variant % 8 >= 4;
        enum tb_mode mode = variant >= 8 ? TB_MODE_SYNCHRONOUS : TB_MODE_STANDARD;
        struct loop_net net;
        struct tb_request s, r, other;
        uint32_t to = self ? 0 : 1;
        loop_net_init(&net, 2);
        loop_net_open(&net, false);
        fill(out, BIG, 4);
        post_send(&net, &s, 0, to, 5, length, mode);
        loop_net_settle(&net);
        if (late)
            post_receive(&net, &r, to, 0, 5, EXACT, BIG);
        if (late)
            loop_net_settle(&net);
        tb_request_cancel(&s);
        loop_net_settle(&net);
        assert_true(tb_request_done(&s));
        assert_int_equal(s.status.cancelled, !late);
        if (late)
            check_received(&r, 0, 5, length);
        /* What was cancelled is gone, and the next one is received. */
        if (!late)
            post_receive(&net, &r, to, 0, 5, EXACT, BIG);
        loop_net_settle(&net);
        post_send(&net, &other, 0, to, late ? 6 : 5, 77, TB_MODE_STANDARD);
        if (late)
            post_receive(&net, &r, to, 0, 6, EXACT, BIG);
        loop_net_settle(&net);
        check_received(&r, 0, late ? 6 : 5, 77);
        assert_int_equal(count_of(&net, to).unexpected_bytes, 0);
        loop_net_close(&net);
    }
}

static void cancelling_before_it_left(void **state)
{
    struct loop_net net;
    struct tb_request s;
    loop_net_init(&net, 2);
    net.again = 100;
    loop_net_open(&net, false);
    post_send(&net, &s, 0, 1, 5, 10, TB_MODE_STANDARD);
    assert_false(tb_request_done(&s));
    tb_request_cancel(&s);
    assert_true(tb_request_done(&s) && s.status.cancelled);
    net.again = 0;
    loop_net_settle(&net);
    assert_int_equal(net.frames[TB_KIND_EAGER], 0);
    loop_net_close(&net);
}

static void to_oneself(void **state)
{
    struct loop_net net;
    struct tb_request s, r;
    static const uint64_t lengths[] = {0, 1, 128, 129, 16384, 16385, BIG};
    loop_net_init(&net, 1);
    tb_param.eager_memory = 256 << 10;
    loop_net_open(&net, false);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (int variant = 0; variant < 4; variant++) {
            enum tb_mode mode = variant >= 2 ? TB_MODE_SYNCHRONOUS : TB_MODE_STANDARD;
            fill(out, lengths[i], (uint32_t)i);
            memset(in, 0, sizeof in);
            if (variant % 2 == 0)
                post_receive(&net, &r, 0, 0, 9, EXACT, BIG);
            post_send(&net, &s, 0, 0, 9, lengths[i], mode);
            if (variant % 2 != 0) {
                assert_int_equal(tb_request_done(&s), variant == 1 && lengths[i] <= 16384);
                post_receive(&net, &r, 0, TB_ANY_RANK, 0, 0, BIG);
            }
            assert_true(tb_request_done(&s));
            check_received(&r, 0, 9, lengths[i]);
        }
    post_send(&net, &s, 0, 0, 9, 40000, TB_MODE_STANDARD);
    post_receive(&net, &r, 0, 0, 9, EXACT, 100);
    assert_true(tb_request_done(&s) && tb_request_done(&r));
    assert_int_equal(r.status.error, TB_ERR_TRUNCATE);
    /* Kept payload is bounded here too. */
    struct tb_buffer b = bytes_of(out, 16384);
    int kept = 0;
    while (kept < 1000 && tb_send_now(net.channels[0], &b, 0, 1, TB_MODE_STANDARD) == TB_OK)
        kept++;
    assert_int_equal(kept, 16);
    tb_engine_flush(net.engines[0]);
    loop_net_close(&net);
}

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
    net.refusal = TB_ERR_PEER;
    post_send(&net, &s, 0, 1, 5, 100, TB_MODE_STANDARD);
    assert_false(tb_request_done(&s));
    tb_engine_progress(net.engines[0]);
    assert_true(tb_request_done(&r));
    assert_int_equal(r.status.error, TB_OK);
    assert_false(tb_request_done(&s) || tb_request_done(&never));
    assert_int_equal(net.drops, 0);
    struct loop_transport *t = net.transports[0];
    t->config.upcalls.sent(t->config.upcalls.context, &t->endpoints[1].endpoint, NULL, TB_ERR_PEER);
    tb_error(TB_ERR_PEER, "the cable was cut");
    t->config.upcalls.broken(t->config.upcalls.context, &t->endpoints[1].endpoint, TB_ERR_PEER);
    tb_engine_progress(net.engines[0]);
    assert_int_equal(s.status.error, TB_ERR_PEER);
    assert_int_equal(never.status.error, TB_ERR_PEER);
    tb_request_wait(&s);
    assert_non_null(strstr(tb_error_story(), "the cable was cut"));
    assert_int_equal(net.drops, 1);
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
    struct loop_transport *t = net.transports[0];
    t->config.upcalls.broken(t->config.upcalls.context, &t->endpoints[1].endpoint, TB_ERR_CLOSED);
    loop_net_settle(&net);
    post_receive(&net, &r, 0, 1, 5, EXACT, BIG); /* came before it left */
    check_received(&r, 1, 5, 100);
    post_receive(&net, &r, 0, 1, 5, EXACT, BIG);
    assert_int_equal(r.status.error, TB_ERR_PEER);
    loop_net_close(&net);
}

static void contexts_not_yet_known_wait(void **state)
{
    struct loop_net net;
    struct tb_request s, s2, r;
    struct tb_channel *early, *late;
    loop_net_init(&net, 2);
    loop_net_open(&net, false);
    struct tb_channel_config config = {.context = tb_context_make(0, 0, 2, TB_PLANE_POINT), .size = 2, .rank = 0};
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

static void requests_keep_their_channel(void **state)
{
    struct loop_net net;
    struct tb_request s, r;
    loop_net_init(&net, 2);
    loop_net_open(&net, false);
    post_receive(&net, &r, 1, 0, 3, EXACT, BIG);
    tb_channel_close(net.channels[1]);
    net.channels[1] = NULL;
    fill(out, 9000, 1);
    post_send(&net, &s, 0, 1, 3, 9000, TB_MODE_STANDARD);
    loop_net_settle(&net);
    check_received(&r, 0, 3, 9000);
    loop_net_close(&net);
}

static void flush_waits_for_everything(void **state)
{
    struct loop_net net;
    struct tb_request s[50];
    loop_net_init(&net, 2);
    net.again = 90;
    loop_net_open(&net, false);
    for (int i = 0; i < 50; i++)
        post_send(&net, &s[i], 0, 1, 3, 100, TB_MODE_STANDARD);
    tb_engine_flush(net.engines[0]);
    for (int i = 0; i < 50; i++)
        assert_true(tb_request_done(&s[i]));
    assert_int_equal(net.frames[TB_KIND_EAGER], 50);
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
    struct loop_transport *t = net.transports[0];
    struct tb_endpoint *from = &t->endpoints[1].endpoint;
    struct tb_message m = {.kind = TB_KIND_DATA, .match = 12345, .length = 3};
    t->config.upcalls.frame(t->config.upcalls.context, from, NULL, &m, "abc", 3); /* stale: ignored */
    m.kind = TB_KIND_CLEAR;
    t->config.upcalls.frame(t->config.upcalls.context, from, NULL, &m, "", 0);
    loop_net_settle(&net);
    assert_false(tb_request_done(&r));
    m = (struct tb_message){.kind = TB_KIND_EAGER, .context = LOOP_CONTEXT, .length = 30, .source_rank = 1};
    t->config.upcalls.frame(t->config.upcalls.context, from, NULL, &m, "abc", 3);
    loop_net_settle(&net);
    assert_true(tb_request_done(&r));
    assert_int_equal(r.status.error, TB_ERR_PEER);
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
        struct loop_transport *t = net.transports[0];
        struct tb_message m = bad[i].message;
        t->config.upcalls.frame(t->config.upcalls.context, &t->endpoints[1].endpoint, NULL, &m, "abc", bad[i].payload);
        assert_int_equal(tb_peer_of(net.engines[0], 1)->error, TB_ERR_PROTOCOL);
        loop_net_settle(&net);
        assert_int_equal(r.status.error, TB_ERR_PEER);
        loop_net_close(&net);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lengths_and_modes),
        cmocka_unit_test(a_longer_message_is_cut),
        cmocka_unit_test(payload_memory_is_bounded),
        cmocka_unit_test(send_now_never_waits),
        cmocka_unit_test(ordinary_probes),
        cmocka_unit_test(cancelling_receives),
        cmocka_unit_test(cancelling_sends),
        cmocka_unit_test(cancelling_before_it_left),
        cmocka_unit_test(to_oneself),
        cmocka_unit_test(a_lost_peer_ends_its_requests),
        cmocka_unit_test(what_was_sent_before_the_end_arrives),
        cmocka_unit_test(goodbye_hurts_only_who_waits),
        cmocka_unit_test(contexts_not_yet_known_wait),
        cmocka_unit_test(contexts_that_are_gone_answer),
        cmocka_unit_test(requests_keep_their_channel),
        cmocka_unit_test(flush_waits_for_everything),
        cmocka_unit_test(nonsense_breaks_the_peer),
        cmocka_unit_test(frames_are_checked_by_their_kind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
