/* What an engine keeps of processes that were started later than those with which the job has begun: all of it while
 * they live or some channel has them, nothing afterwards. */
#include "engine/channel.h"
#include "engine/loopback_test.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MANY 300000u /* so many that nothing may be looked for by walking over all, for each of them */

static bool knows(void *context, uint32_t index)
{
    return index < MANY;
}

static struct tb_engine *open_engine(struct loop_net *net)
{
    struct tb_engine *engine;
    loop_net_init(net, 1);
    net->table = tb_transport_sim;
    net->transports[0] = &net->table;
    const struct tb_engine_config config = {.transport = {.self = {7, 0}, .local_count = 1, .sim = &net->sim},
                                            .processes = 2,
                                            .transports = net->transports,
                                            .knows = knows,
                                            .context = net,
                                            .control = -1};
    assert_int_equal(tb_engine_open(&config, &engine), TB_OK);
    return engine;
}

static void close_engine(struct loop_net *net, struct tb_engine *engine)
{
    tb_engine_close(engine);
    tb_sim_destroy(&net->sim);
}

/* Number `number` of those that have this process and another one. */
static struct tb_channel *open_with(struct tb_engine *engine, uint32_t number, uint32_t index)
{
    struct tb_channel *channel;
    const uint32_t procs[] = {0, index};
    const struct tb_channel_config config = {
        .context = tb_context_make(0, 2 + number, TB_PLANE_POINT), .size = 2, .procs = procs};
    assert_int_equal(tb_channel_open(engine, &config, &channel), TB_OK);
    return channel;
}

static void lose(struct tb_engine *engine, uint32_t index)
{
    tb_engine_lost(engine, (struct tb_proc){7, index}, tb_error(TB_ERR_PEER, "it was killed"));
    tb_engine_progress(engine);
}

static bool is_kept(const struct tb_engine *engine, uint32_t index)
{
    return index < engine->peers.count && engine->peers.by_index[index] != NULL;
}

static void with_its_last_channel(void **state)
{
    struct loop_net net;
    struct tb_engine *engine = open_engine(&net);
    struct tb_channel *a = open_with(engine, 0, 9), *b = open_with(engine, 1, 9);
    assert_non_null(tb_peer_of(engine, 9));
    lose(engine, 9);
    assert_true(a->lost != NULL && b->lost != NULL);
    tb_channel_close(a);
    tb_engine_progress(engine);
    assert_true(is_kept(engine, 9)); /* the other one tells why it is lost */
    assert_int_equal(tb_channel_mourn(b), TB_ERR_PEER);
    tb_channel_close(b);
    tb_engine_progress(engine);
    assert_false(is_kept(engine, 9));
    close_engine(&net, engine);
}

static void who_goes_after_that(void **state)
{
    struct loop_net net;
    struct tb_engine *engine = open_engine(&net);
    struct tb_channel *a = open_with(engine, 0, 9);
    assert_non_null(tb_peer_of(engine, 9));
    tb_channel_close(a);
    tb_engine_progress(engine);
    assert_true(is_kept(engine, 9)); /* it may still send something */
    struct tb_channel *b = open_with(engine, 1, 9);
    lose(engine, 9);
    assert_true(is_kept(engine, 9)); /* they have met again */
    tb_channel_close(b);
    tb_engine_progress(engine);
    assert_false(is_kept(engine, 9));
    close_engine(&net, engine);
}

/* A communicator that is being made may have it. */
static void who_was_never_known(void **state)
{
    struct loop_net net;
    struct tb_engine *engine = open_engine(&net);
    lose(engine, 9);
    assert_false(is_kept(engine, 9)); /* nor does it cost anything before */
    struct tb_channel *a = open_with(engine, 0, 9);
    assert_non_null(a->lost);
    assert_int_equal(tb_channel_mourn(a), TB_ERR_PEER);
    assert_non_null(strstr(tb_error_story(), "it was killed"));
    tb_channel_close(a);
    tb_engine_progress(engine);
    assert_false(is_kept(engine, 9));
    close_engine(&net, engine);
}

/* They are told of again, as often as others are started. */
static void who_was_never_known_is_noted_once(void **state)
{
    struct loop_net net;
    struct tb_engine *engine = open_engine(&net);
    for (int i = 0; i < 3; i++)
        for (uint32_t index = 9; index < 12; index++)
            lose(engine, index);
    assert_int_equal(engine->peers.unborn.count, 3);
    tb_engine_lost_all(engine, (struct tb_proc){7, 10}, 3, TB_ERR_PEER); /* of one it is new */
    assert_int_equal(engine->peers.unborn.count, 4);
    assert_non_null(tb_unborn_find(&engine->peers.unborn, 12));
    close_engine(&net, engine);
}

/* Those with which the job has begun are few, and stay. */
static void the_first_ones_stay(void **state)
{
    struct loop_net net;
    struct tb_engine *engine = open_engine(&net);
    struct tb_channel *a = open_with(engine, 0, 1);
    lose(engine, 1);
    tb_channel_close(a);
    tb_engine_progress(engine);
    assert_true(is_kept(engine, 1));
    close_engine(&net, engine);
}

/* What waits in a channel of other processes, as an inbox may be for those that were started later, is of it all the
 * same, even if it is empty. */
static void until_its_messages_are_received(void **state)
{
    struct loop_net net;
    struct tb_engine *engine = open_engine(&net);
    struct tb_channel *inbox = open_with(engine, 0, 1), *a = open_with(engine, 1, 9);
    struct tb_peer *p = tb_peer_of(engine, 9);
    struct tb_message m = {.kind = TB_KIND_EAGER, .context = inbox->point->id, .match = 4, .source_rank = 9};
    assert_non_null(p);
    m.representation = engine->representation;
    tb_receive_eager(p, &m, NULL, 0);
    tb_receive_eager(p, &m, NULL, 0);
    tb_channel_close(a);
    lose(engine, 9);
    assert_true(is_kept(engine, 9));
    for (int i = 0; i < 2; i++) {
        struct tb_request request = {.complete = NULL};
        const struct tb_buffer nothing = {.type = &tb_type_byte};
        assert_true(is_kept(engine, 9));
        tb_receive_post(inbox, &request, &nothing, TB_ANY_RANK, 4, UINT64_MAX);
        assert_true(tb_request_done(&request));
        assert_int_equal(request.status.error, TB_OK);
        assert_int_equal(request.status.source, 9);
        tb_engine_progress(engine);
    }
    assert_false(is_kept(engine, 9));
    tb_channel_close(inbox);
    close_engine(&net, engine);
}

/* As an inbox: it has those that there are when it is made, and leads to all that are started later. */
static struct tb_channel *open_inbox(struct tb_engine *engine)
{
    struct tb_channel *channel;
    const struct tb_channel_config config = {.context = tb_context_make(0, 2, TB_PLANE_POINT), .size = 2};
    assert_int_equal(tb_channel_open(engine, &config, &channel), TB_OK);
    return channel;
}

static void explains(const struct tb_request *request)
{
    assert_true(tb_request_done(request));
    assert_int_equal(request->status.error, TB_ERR_PEER);
    tb_error(TB_ERR_MEMORY, "something else");
    assert_int_equal(tb_request_explain(request), TB_ERR_PEER);
    assert_non_null(strstr(tb_error_story(), "(process 9) failed: "));
    assert_non_null(strstr(tb_error_story(), "it was killed"));
}

/* It was posted before the loss. */
static void while_a_receive_names_it(void **state)
{
    struct loop_net net;
    struct tb_engine *engine = open_engine(&net);
    struct tb_channel *inbox = open_inbox(engine), *a = open_with(engine, 1, 9);
    struct tb_request request = {.complete = NULL};
    const struct tb_buffer nothing = {.type = &tb_type_byte};
    tb_receive_post(inbox, &request, &nothing, 9, 4, UINT64_MAX);
    assert_false(tb_request_done(&request));
    tb_channel_close(a);
    lose(engine, 9);
    assert_true(is_kept(engine, 9)); /* what explains it may be read at any time */
    tb_engine_progress(engine);
    assert_true(is_kept(engine, 9));
    explains(&request);
    tb_channel_close(inbox);
    close_engine(&net, engine);
}

/* They were announced before the loss, with their data on the way or to be asked for, and are wanted after it. */
static void while_a_message_that_is_missing_names_it(void **state)
{
    for (int ahead = 0; ahead < 2; ahead++) {
        struct loop_net net;
        struct tb_engine *engine = open_engine(&net);
        struct tb_channel *inbox = open_inbox(engine), *a = open_with(engine, 1, 9);
        struct tb_peer *p = tb_peer_of(engine, 9);
        struct tb_message m = {
            .kind = TB_KIND_REQUEST, .context = inbox->point->id, .match = 4, .source_rank = 9, .length = 5000};
        char bytes[5000];
        struct tb_request request = {.complete = NULL};
        const struct tb_buffer buffer = {.base = bytes, .count = sizeof bytes, .type = &tb_type_byte};
        assert_non_null(p);
        m.representation = engine->representation;
        m.flags = ahead ? TB_MESSAGE_AHEAD : 0;
        m.offset = 1;
        tb_receive_asked(p, &m, NULL, 0);
        assert_int_equal(p->error, TB_OK);
        tb_channel_close(a);
        lose(engine, 9);
        assert_true(is_kept(engine, 9));
        tb_receive_post(inbox, &request, &buffer, TB_ANY_RANK, 4, UINT64_MAX);
        tb_engine_progress(engine);
        assert_true(is_kept(engine, 9));
        explains(&request);
        tb_channel_close(inbox);
        close_engine(&net, engine);
    }
}

/* Whoever asks why it has failed still has the channel, and then nothing of it is left all the same. */
static void not_while_its_own_requests_have_failed(void **state)
{
    struct loop_net net;
    struct tb_engine *engine = open_engine(&net);
    struct tb_channel *a = open_with(engine, 1, 9);
    struct tb_request request = {.complete = NULL};
    const struct tb_buffer nothing = {.type = &tb_type_byte};
    tb_receive_post(a, &request, &nothing, 1, 4, UINT64_MAX);
    lose(engine, 9);
    explains(&request);
    tb_channel_close(a);
    tb_engine_progress(engine);
    assert_false(is_kept(engine, 9));
    close_engine(&net, engine);
}

/* It is there no more to be asked to forget the message. */
static void cancelling_what_has_gone_to_it(void **state)
{
    struct loop_net net;
    struct tb_engine *engine = open_engine(&net);
    struct tb_channel *inbox = open_inbox(engine), *a = open_with(engine, 1, 9);
    struct tb_request request = {.complete = NULL};
    tb_request_begin(&request, inbox->point, TB_REQUEST_SEND);
    engine->sends++;
    request.peer = tb_peer_of(engine, 9);
    request.rank = 9;
    request.message_id = 1;
    tb_request_finish(&request, TB_OK); /* eager, as it would */
    tb_channel_close(a);
    lose(engine, 9);
    assert_false(is_kept(engine, 9));
    tb_request_cancel(&request);
    assert_true(tb_request_done(&request));
    assert_false(request.status.cancelled);
    tb_channel_close(inbox);
    close_engine(&net, engine);
}

static void thousands_in_turn(void **state)
{
    struct loop_net net;
    struct tb_engine *engine = open_engine(&net);
    for (uint32_t i = 2; i < 4000; i++) {
        struct tb_channel *channel = open_with(engine, i, i);
        assert_non_null(tb_peer_of(engine, i));
        if (i % 2 == 0)
            tb_channel_close(channel);
        lose(engine, i);
        if (i % 2 == 1)
            tb_channel_close(channel);
        tb_engine_progress(engine);
        assert_false(is_kept(engine, i));
    }
    for (uint32_t i = 0; i < engine->peers.count - engine->peers.begun; i++)
        assert_int_equal(engine->peers.uses[i], 0);
    close_engine(&net, engine);
}

/* Of two groups one is lost: what the other one agrees on within itself ends, too, as not all of it may come to that.
 */
static void with_the_other_group(void **state)
{
    struct loop_net net;
    static const uint32_t own[] = {0, 1}, theirs[] = {9, 10};
    for (uint32_t before = 0; before < 2; before++) {
        struct tb_engine *engine = open_engine(&net);
        struct tb_channel *inter, *local;
        struct tb_channel_config config = {
            .context = tb_context_make(0, 5, TB_PLANE_POINT), .size = 2, .procs = theirs};
        if (before)
            lose(engine, 10);
        assert_int_equal(tb_channel_open(engine, &config, &inter), TB_OK);
        config.procs = own;
        config.local = true;
        assert_int_equal(tb_channel_open(engine, &config, &local), TB_OK);
        if (!before)
            lose(engine, 10);
        assert_true(inter->lost != NULL && local->lost != NULL);
        assert_int_equal(tb_channel_mourn(local), TB_ERR_PEER);
        local->users++; /* somebody still has it */
        tb_channel_close(local);
        tb_channel_close(inter);
        tb_engine_progress(engine);
        assert_true(!is_kept(engine, 10) && local->lost == NULL);
        tb_channel_close(local);
        close_engine(&net, engine);
    }
}

/* A whole job goes, of which this process has met some. */
static void very_many_at_once(void **state)
{
    struct loop_net net;
    struct tb_engine *engine = open_engine(&net);
    struct tb_channel *with, *before = open_with(engine, 0, 1);
    uint32_t *procs = malloc(MANY * sizeof *procs);
    for (uint32_t i = 0; i < MANY; i++)
        procs[i] = i;
    const struct tb_channel_config config = {
        .context = tb_context_make(0, 3, TB_PLANE_POINT), .size = MANY / 2, .procs = procs};
    assert_int_equal(tb_channel_open(engine, &config, &with), TB_OK);
    uint64_t begun = tb_clock_now_real();
    tb_engine_lost_all(engine, (struct tb_proc){7, 2}, MANY - 2, tb_error(TB_ERR_PEER, "it was killed"));
    tb_engine_progress(engine);
    assert_true(tb_clock_now_real() - begun < 3000000000u);
    assert_true(with->lost != NULL && before->lost == NULL);
    assert_int_equal(tb_peer_of(engine, MANY / 2 - 1)->error, TB_ERR_PEER);
    assert_false(is_kept(engine, MANY - 1));
    tb_engine_lost_all(engine, (struct tb_proc){7, MANY - 1}, 2, TB_ERR_PEER); /* who is not there */
    tb_channel_close(with);
    struct tb_channel *after = open_with(engine, 2, MANY - 1);
    assert_non_null(after->lost);
    tb_channel_close(after);
    tb_channel_close(before);
    tb_engine_progress(engine);
    close_engine(&net, engine);
    free(procs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(with_its_last_channel),
        cmocka_unit_test(who_goes_after_that),
        cmocka_unit_test(who_was_never_known),
        cmocka_unit_test(the_first_ones_stay),
        cmocka_unit_test(thousands_in_turn),
        cmocka_unit_test(very_many_at_once),
        cmocka_unit_test(with_the_other_group),
        cmocka_unit_test(until_its_messages_are_received),
        cmocka_unit_test(while_a_receive_names_it),
        cmocka_unit_test(while_a_message_that_is_missing_names_it),
        cmocka_unit_test(cancelling_what_has_gone_to_it),
        cmocka_unit_test(not_while_its_own_requests_have_failed),
        cmocka_unit_test(who_was_never_known_is_noted_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
