/* Frames that no right process sends: whatever a peer says, what it costs here is bounded, and the peer is given up
 * with a story. */
#include "engine/message_test.h"

#include <malloc.h>

static struct loop_net net;
static const struct tb_upcalls *up;
static struct tb_endpoint *from;

/* Process 0 has heard of process 1, whose frames the test makes up from now on. */
static struct tb_peer *begin(struct tb_request *r)
{
    struct tb_request s;
    loop_net_init(&net, 2);
    loop_net_open(&net, false);
    post_receive(&net, r, 0, 1, 3, EXACT, 10);
    post_send(&net, &s, 1, 0, 3, 10, TB_MODE_STANDARD);
    loop_net_settle(&net);
    assert_true(tb_request_done(r));
    post_receive(&net, r, 0, 1, 4, EXACT, 10);
    up = tb_sim_upcalls(&net.sim, 0);
    from = tb_sim_endpoint(&net.sim, 0, 1);
    return tb_peer_of(net.engines[0], 1);
}

static void frame(enum tb_kind kind, uint64_t context, uint64_t length)
{
    struct tb_message m = {
        .kind = (uint8_t)kind, .context = context, .match = 77, .length = length, .offset = 0, .source_rank = 1};
    up->frame(up->context, from, NULL, &m, out, kind == TB_KIND_EAGER ? length : 0);
}

static void given_up(struct tb_peer *p, struct tb_request *r, const char *story)
{
    assert_int_equal(p->error, TB_ERR_PROTOCOL);
    assert_non_null(strstr(p->story, story));
    loop_net_settle(&net);
    assert_true(tb_request_done(r));
    assert_int_equal(r->status.error, TB_ERR_PEER);
    loop_net_close(&net);
}

/* As much as was granted is kept, and not a byte more, also when the peer goes on and on. */
static void payload_beyond_the_grant(void **state)
{
    struct tb_request r;
    struct tb_peer *p = begin(&r);
    uint64_t grant = net.engines[0]->peers.grant, sent = 0;
    for (; sent + 1000 <= grant; sent += 1000)
        frame(TB_KIND_EAGER, LOOP_CONTEXT, 1000);
    frame(TB_KIND_EAGER, LOOP_CONTEXT, grant - sent);
    frame(TB_KIND_EAGER, LOOP_CONTEXT, 0);
    assert_int_equal(p->error, TB_OK);
    size_t before = mallinfo2().uordblks;
    for (int i = 0; i < 10000; i++)
        frame(TB_KIND_EAGER, LOOP_CONTEXT, 1000);
    assert_true(mallinfo2().uordblks < before + 65536);
    given_up(p, &r, "more than it was allowed");
}

/* What is received makes room again, for as much as was granted. */
static void received_payload_is_not_counted(void **state)
{
    struct tb_request r, other;
    struct tb_peer *p = begin(&r);
    uint64_t grant = net.engines[0]->peers.grant;
    for (int i = 0; i < 3; i++) {
        uint64_t sent = 0;
        for (; sent + 1000 <= grant; sent += 1000)
            frame(TB_KIND_EAGER, LOOP_CONTEXT, 1000);
        assert_int_equal(p->error, TB_OK);
        for (uint64_t left = sent; left > 0; left -= 1000) {
            post_receive(&net, &other, 0, 1, 77, EXACT, 1000);
            assert_true(tb_request_done(&other));
        }
        assert_int_equal(p->kept, 0);
    }
    tb_request_cancel(&r);
    loop_net_close(&net);
}

static void credit_that_was_never_used(void **state)
{
    struct tb_request r, s;
    struct tb_peer *p = begin(&r);
    uint64_t grant = net.engines[0]->peers.grant;
    post_send(&net, &s, 0, 1, 5, 1000, TB_MODE_STANDARD);
    assert_int_equal(p->credit, grant - 1000);
    frame(TB_KIND_CREDIT, 0, 400);
    assert_int_equal(p->credit, grant - 600);
    frame(TB_KIND_CREDIT, 0, UINT64_MAX);
    frame(TB_KIND_CREDIT, 0, UINT64_MAX - 5);
    frame(TB_KIND_CREDIT, 0, grant);
    assert_int_equal(p->credit, grant);
    assert_int_equal(p->error, TB_OK);
    tb_request_cancel(&r);
    loop_net_settle(&net);
    loop_net_close(&net);
}

/* More than was ever granted is not believed. */
static void growth_beyond_all_bounds(void **state)
{
    struct tb_request r;
    struct tb_peer *p = begin(&r);
    struct tb_message m = {.kind = TB_KIND_CREDIT, .offset = UINT64_MAX - 3};
    p->allowed = p->credit = 50000;
    up->frame(up->context, from, NULL, &m, NULL, 0);
    up->frame(up->context, from, NULL, &m, NULL, 0);
    assert_int_equal(p->allowed, TB_GRANT_HIGH);
    assert_int_equal(p->credit, TB_GRANT_HIGH);
    tb_request_cancel(&r);
    loop_net_close(&net);
}

/* A message that was not asked for, or a piece of it. */
static void ahead(enum tb_kind kind, uint64_t id, uint64_t length, uint64_t offset, size_t payload)
{
    struct tb_message m = {.kind = (uint8_t)kind,
                           .context = LOOP_CONTEXT,
                           .match = kind == TB_KIND_DATA ? id : 77,
                           .length = length,
                           .offset = kind == TB_KIND_DATA ? offset : id,
                           .flags = TB_MESSAGE_AHEAD,
                           .source_rank = 1};
    void *room = kind == TB_KIND_DATA ? up->place(up->context, from, &m, payload) : NULL;
    if (room != NULL)
        memcpy(room, out, payload);
    up->frame(up->context, from, NULL, &m, room != NULL ? room : out, payload);
}

/* Envelopes whose data never comes, data whose envelope never comes, and messages that nobody receives. */
static void unasked_beyond_the_grant(void **state)
{
    for (int variant = 0; variant < 3; variant++) {
        struct tb_request r;
        struct tb_peer *p = begin(&r);
        uint64_t grant = net.engines[0]->peers.grant, id = 1;
        size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
        for (int i = 0; i < 10000; i++, id++) {
            assert_int_equal(p->error, id * 5000 <= grant + 5000 ? TB_OK : TB_ERR_PROTOCOL);
            if (variant != 1)
                ahead(TB_KIND_REQUEST, id, 5000, 0, 0);
            if (variant != 0)
                ahead(TB_KIND_DATA, id, 5000, 0, variant == 1 ? 1 : 5000);
        }
        assert_true(mallinfo2().uordblks + mallinfo2().hblkhd < before + grant + (1 << 20));
        assert_true(p->kept <= grant);
        given_up(p, &r, "more than it was allowed");
    }
}

/* Each of these gives the sender up, and what was right before is right. */
static void unasked_without_sense(void **state)
{
    for (int variant = 0; variant < 6; variant++) {
        struct tb_request r, other;
        struct tb_peer *p = begin(&r);
        post_receive(&net, &other, 0, 1, 77, EXACT, BIG);
        ahead(TB_KIND_REQUEST, 5, 50000, 0, 0);
        ahead(TB_KIND_DATA, 5, 50000, 0, 4000);
        assert_int_equal(p->error, TB_OK);
        assert_memory_equal(in, out, 4000);
        if (variant == 0)
            ahead(TB_KIND_REQUEST, 5, 50000, 0, 0); /* twice */
        if (variant == 1)
            ahead(TB_KIND_DATA, 5, 50001, 4000, 4000); /* another length */
        if (variant == 2)
            ahead(TB_KIND_DATA, 5, 50000, 49000, 4000); /* beyond its end */
        for (int i = 0; i < 12 && variant == 3; i++)
            ahead(TB_KIND_DATA, 5, 50000, 0, 4000); /* more than is missing */
        if (variant == 4)
            ahead(TB_KIND_REQUEST, 6, 100, 0, 0); /* too short for it */
        if (variant == 5) {
            ahead(TB_KIND_DATA, 7, 50000, 0, 4000);
            ahead(TB_KIND_REQUEST, 7, 50001, 0, 0); /* another length than its data says */
        }
        assert_int_equal(p->error, TB_ERR_PROTOCOL);
        loop_net_settle(&net);
        assert_true(tb_request_done(&r) && tb_request_done(&other));
        assert_int_equal(other.status.error, TB_ERR_PEER);
        loop_net_close(&net);
    }
}

/* Messages, questions and failures for communicators that nobody has made. */
/* A message of which one frame is being read into the buffer comes whole by another one: the receive does not end well
 * before that frame is forgotten. The same with what was not asked for. */
static void parts_that_come_twice(void **state)
{
    for (int variant = 0; variant < 2; variant++) {
        struct tb_request r, other, s;
        struct tb_peer *p = begin(&r);
        post_receive(&net, &other, 0, 1, 77, EXACT, 50000);
        if (variant == 0)
            ahead(TB_KIND_REQUEST, 5, 50000, 0, 0);
        else
            post_send(&net, &s, 1, 0, 77, 50000, TB_MODE_STANDARD);
        if (variant == 1)
            assert_int_equal(tb_engine_progress(net.engines[0]), 1); /* it is asked, and says where to */
        struct tb_message m = {.kind = TB_KIND_DATA,
                               .match = variant == 0 ? 5 : other.message_id,
                               .length = variant == 0 ? 50000 : 4000,
                               .flags = variant == 0 ? TB_MESSAGE_AHEAD : 0};
        assert_ptr_equal(up->place(up->context, from, &m, 4000), in);
        assert_null(up->place(up->context, from, &m, 4000)); /* one at a time */
        m.length = 50000;
        up->frame(up->context, from, NULL, &m, out, 50000);
        assert_false(tb_request_done(&other));
        given_up(p, &other, "a part of a message twice");
    }
}

static void contexts_that_nobody_knows(void **state)
{
    static const enum tb_kind kinds[] = {TB_KIND_EAGER, TB_KIND_REQUEST, TB_KIND_FAILED};
    for (int k = 0; k < 3; k++) {
        struct tb_request r;
        struct tb_peer *p = begin(&r);
        uint32_t used = net.engines[0]->contexts.used;
        for (uint32_t i = 0; i < TB_UNKNOWN_LIMIT + 1000; i++) {
            assert_int_equal(p->error, i <= TB_UNKNOWN_LIMIT ? TB_OK : TB_ERR_PROTOCOL);
            frame(kinds[k], tb_context_make(1, 1000 + i, TB_PLANE_COLLECTIVE), 0);
        }
        assert_int_equal(net.engines[0]->contexts.used, used + TB_UNKNOWN_LIMIT);
        given_up(p, &r, "communicators that do not exist");
    }
}

/* A communicator that comes to be known does not count any more, however many there are one after the other. */
static void contexts_become_known(void **state)
{
    struct tb_request r;
    struct tb_peer *p = begin(&r);
    for (uint32_t i = 0; i < 100; i++) {
        struct tb_channel *channel;
        uint64_t context = tb_context_make(0, 1000 + i, TB_PLANE_POINT);
        frame(TB_KIND_EAGER, context, 10);
        assert_int_equal(p->unknown, 1);
        struct tb_channel_config config = {.context = context, .size = 2, .rank = 0};
        assert_int_equal(tb_channel_open(net.engines[0], &config, &channel), TB_OK);
        assert_int_equal(p->unknown, 0);
        tb_channel_close(channel);
    }
    assert_int_equal(p->kept, 0);
    tb_request_cancel(&r);
    loop_net_close(&net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(payload_beyond_the_grant),   cmocka_unit_test(received_payload_is_not_counted),
        cmocka_unit_test(credit_that_was_never_used), cmocka_unit_test(contexts_that_nobody_knows),
        cmocka_unit_test(contexts_become_known),      cmocka_unit_test(growth_beyond_all_bounds),
        cmocka_unit_test(unasked_beyond_the_grant),   cmocka_unit_test(unasked_without_sense),
        cmocka_unit_test(parts_that_come_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
