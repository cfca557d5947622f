/* Lanes: messages of several contexts between engines with and without lanes, by all protocols; what is shared by the
 * lanes of a process (credit, news of those that are gone); that a lane hears the answers to its questions; and that
 * one lane does not wait for another. */
#include "engine/message_test.h"

#include <pthread.h>
#include <unistd.h>

#define CHANNELS 6u
#define FLOOD    3000u

static struct tb_channel *channels[2][CHANNELS]; /* of each of two engines, each of another context */

static void open_all(struct loop_net *net, uint32_t lanes, uint32_t others)
{
    loop_net_init(net, 2);
    net->lanes[0] = lanes;
    net->lanes[1] = others;
}

static void open_channels(struct loop_net *net)
{
    loop_net_open(net, false);
    for (uint32_t i = 0; i < 2; i++)
        for (uint32_t c = 0; c < CHANNELS; c++) {
            struct tb_channel_config config = {
                .context = tb_context_make(0, 10 + c, TB_PLANE_POINT), .size = 2, .rank = i};
            assert_int_equal(tb_channel_open(net->engines[i], &config, &channels[i][c]), TB_OK);
            assert_true(tb_channel_exists(net->engines[i], config.context));
        }
}

static void close_all(struct loop_net *net)
{
    for (uint32_t i = 0; i < 2; i++)
        for (uint32_t c = 0; c < CHANNELS; c++)
            tb_channel_close(channels[i][c]);
    loop_net_close(net);
}

static void settle(struct loop_net *net)
{
    for (int i = 0; i < 6; i++)
        loop_net_settle(net);
}

static void send_in(struct tb_request *r, uint32_t from, uint32_t c, uint64_t length, enum tb_mode mode)
{
    struct tb_buffer b = bytes_of(out, length);
    r->complete = NULL;
    tb_send_post(channels[from][c], r, &b, 1 - from, 5, mode);
}

static void receive_in(struct tb_request *r, uint32_t at, uint32_t c, void *room, uint64_t length)
{
    struct tb_buffer b = bytes_of(room, length);
    r->complete = NULL;
    tb_receive_post(channels[at][c], r, &b, c % 2 == 0 ? 1 - at : TB_ANY_RANK, 5, EXACT);
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

static void contexts_are_dealt_out(void **state)
{
    struct loop_net net;
    open_all(&net, 4, 0);
    open_channels(&net);
    for (uint32_t c = 0; c < CHANNELS; c++) {
        assert_int_equal(channels[0][c]->engine->lane, (10 + c) % 4);
        assert_ptr_equal(channels[0][c]->control->engine, channels[0][c]->engine);
        assert_ptr_equal(channels[1][c]->engine, net.engines[1]);
        assert_null(channels[1][c]->engine->lanes);
    }
    close_all(&net);
}

static void exchange_one(struct loop_net *net, uint32_t from, uint32_t c, uint64_t length, enum tb_mode mode,
                         bool early)
{
    struct tb_request s, r;
    fill(out, length, (uint32_t)length + c);
    memset(in, 0, sizeof in);
    if (early)
        receive_in(&r, 1 - from, c, in, BIG);
    send_in(&s, from, c, length, mode);
    settle(net);
    if (!early) {
        receive_in(&r, 1 - from, c, in, BIG);
        settle(net);
    }
    assert_true(tb_request_done(&s));
    assert_int_equal(s.status.error, TB_OK);
    check_received(&r, from, 5, length);
}

static void by_all_protocols(void **state)
{
    static const uint64_t lengths[] = {0, 8, 1024, 1025, 5000, BIG};
    for (int variant = 0; variant < 16; variant++) {
        struct loop_net net;
        open_all(&net, 4, variant % 2 != 0 ? 3 : 0);
        net.remote = variant % 4 >= 2;
        net.sim.again = variant >= 8 ? 30 * LOOP_PERCENT : 0;
        net.sim.pending = variant >= 8 ? 30 * LOOP_PERCENT : 0;
        net.far = (struct tb_distance){.latency = UINT64_C(10000000000), .out_rate = 1000000000, .in_rate = 1000000000};
        if (variant % 8 < 4)
            net.far = (struct tb_distance){0};
        open_channels(&net);
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
            for (uint32_t c = 0; c < CHANNELS; c++)
                for (uint32_t from = 0; from < 2; from++)
                    exchange_one(&net, from, c, lengths[i], (enum tb_mode)((i + c) % 2), (i + c + from) % 3 == 0);
        assert_int_equal(count_of(&net, 0).unexpected_bytes, 0);
        assert_int_equal(count_of(&net, 1).unexpected_bytes, 0);
        close_all(&net);
    }
}

/* Credit is that of the process, whatever the lane; who has none asks, and all arrive, in order. */
static void credit_is_shared(void **state)
{
    static struct tb_request sends[FLOOD], receives[FLOOD];
    static char room[FLOOD][64];
    for (int variant = 0; variant < 4; variant++) {
        struct loop_net net;
        open_all(&net, variant != 1 ? 4 : 0, variant >= 1 ? 4 : 0);
        tb_param.eager_memory = 1 << 16; /* little */
        net.remote = variant == 3;
        open_channels(&net);
        for (uint32_t i = 0; i < FLOOD; i++) {
            fill(out, 64, i);
            send_in(&sends[i], 0, i % CHANNELS, 64, TB_MODE_STANDARD);
            if (tb_request_done(&sends[i]))
                continue;
            tb_request_cancel(&sends[i]); /* the buffer is used again */
            settle(&net);
            assert_true(tb_request_done(&sends[i]));
        }
        settle(&net);
        assert_true(count_of(&net, 1).unexpected_bytes <= net.engines[1]->peers.grant);
        uint32_t sent = 0;
        for (uint32_t i = 0; i < FLOOD; i++) {
            if (sends[i].status.cancelled)
                continue;
            receive_in(&receives[i], 1, i % CHANNELS, room[i], 64);
            settle(&net);
            fill(out, 64, i);
            assert_true(tb_request_done(&receives[i]));
            assert_memory_equal(room[i], out, 64);
            sent++;
        }
        assert_true(sent > 100 && sent < FLOOD);
        for (uint32_t c = 0; c < CHANNELS; c++) /* all was given back */
            exchange_one(&net, 0, c, 1000, TB_MODE_STANDARD, true);
        close_all(&net);
    }
    tb_param_load();
}

static void all_lanes_hear_of_a_loss(void **state)
{
    struct tb_request receives[CHANNELS];
    struct loop_net net;
    open_all(&net, 4, 0);
    open_channels(&net);
    exchange_one(&net, 0, 0, 8, TB_MODE_STANDARD, true);
    for (uint32_t c = 0; c < CHANNELS; c++)
        receive_in(&receives[c], 0, c, in, 8);
    for (uint32_t c = 0; c < CHANNELS; c += 2)
        assert_false(tb_request_done(&receives[c]));
    tb_engine_lost(net.engines[0], (struct tb_proc){7, 1}, tb_error(TB_ERR_PEER, "it fell down the stairs"));
    settle(&net);
    for (uint32_t c = 0; c < CHANNELS; c += 2) {
        assert_true(tb_request_done(&receives[c]));
        assert_int_equal(receives[c].status.error, TB_ERR_PEER);
        tb_request_explain(&receives[c]);
        assert_non_null(strstr(tb_error_story(), "stairs"));
    }
    for (uint32_t c = 1; c < CHANNELS; c += 2) { /* anybody may still send these */
        tb_request_cancel(&receives[c]);
        assert_true(tb_request_done(&receives[c]));
    }
    close_all(&net);
}

/* Each lane finds it broken, and the owner hears of it once; not if it has said itself that the process is gone. */
static void a_lost_connection_is_told_once(void **state)
{
    for (int gone = 0; gone < 2; gone++) {
        struct tb_request receives[CHANNELS];
        struct loop_net net;
        open_all(&net, 4, 0);
        open_channels(&net);
        for (uint32_t c = 0; c < CHANNELS; c++)
            exchange_one(&net, 0, c, 8, TB_MODE_STANDARD, true);
        for (uint32_t c = 0; c < CHANNELS; c += 2)
            receive_in(&receives[c], 0, c, in, 8);
        tb_error(TB_ERR_PEER, "it fell down the stairs");
        if (gone)
            tb_engine_lost(net.engines[0], (struct tb_proc){7, 1}, TB_ERR_PEER);
        const struct tb_upcalls *up = tb_sim_upcalls(&net.sim, 0);
        up->broken(up->context, tb_sim_endpoint(&net.sim, 0, 1), TB_ERR_PEER);
        settle(&net);
        for (uint32_t c = 0; c < CHANNELS; c += 2)
            assert_int_equal(receives[c].status.error, TB_ERR_PEER);
        assert_int_equal(net.losses, !gone);
        assert_int_equal(net.lost.index, !gone);
        close_all(&net);
    }
}

/* Everybody was asked whether he has heard of it, and has answered, however many lanes that one has. */
static void all_hear_of_a_collective_that_was_given_up(void **state)
{
    for (uint32_t others = 0; others < 4; others += 3) {
        const struct tb_binding binding = {.operation = TB_OPERATION_BCAST, .call = "MPI_Bcast"};
        struct loop_net net;
        open_all(&net, 4, others);
        open_channels(&net);
        for (uint32_t c = 0; c < CHANNELS; c++)
            tb_collective_refuse(channels[c % 2][c], &binding, tb_error(TB_ERR_MEMORY, "no memory in this test"));
        settle(&net);
        for (uint32_t i = 0; i < 2; i++)
            for (uint32_t lane = 0; lane < tb_engine_lanes(net.engines[i]); lane++) {
                const struct tb_peer *p = tb_peer_of(tb_engine_lane(net.engines[i], lane), 1 - i);
                assert_int_equal(p->unanswered, 0);
            }
        close_all(&net);
    }
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

static _Atomic bool held, enough;

static void *hold(void *context)
{
    struct tb_engine *e = context;
    tb_engine_lock(e);
    held = true;
    while (!enough)
        usleep(100);
    tb_engine_unlock(e);
    return NULL;
}

/* What comes for it meanwhile is there when it is free again, without anybody else's doing. */
static void one_lane_does_not_hold_up_others(void **state)
{
    struct tb_request s, r;
    struct loop_net net;
    pthread_t thread;
    open_all(&net, 4, 0);
    open_channels(&net);
    exchange_one(&net, 1, 0, 8, TB_MODE_STANDARD, true);
    held = enough = false;
    receive_in(&r, 0, 0, in, 8);
    assert_int_equal(pthread_create(&thread, NULL, hold, channels[0][0]->engine), 0);
    while (!held)
        usleep(100);
    send_in(&s, 1, 0, 8, TB_MODE_STANDARD);
    for (int i = 0; i < 1000; i++) { /* another lane, which takes frames of all */
        tb_engine_progress(channels[0][1]->engine);
        tb_engine_progress(net.engines[1]);
    }
    assert_false(tb_request_done(&r));
    enough = true;
    pthread_join(thread, NULL);
    assert_true(tb_request_done(&r));
    close_all(&net);
}

struct sleeper {
    pthread_t thread;
    struct tb_request request;
    char got[8];
};

static void *sleep_for_it(void *context)
{
    struct sleeper *s = context;
    tb_request_wait(&s->request);
    return NULL;
}

/* Threads that sleep, each in a lane of its own, are woken by what is for them, whoever of them watches. */
static void each_sleeper_is_woken(void **state)
{
    struct sleeper sleepers[CHANNELS];
    struct loop_net net;
    open_all(&net, 4, 0);
    open_channels(&net);
    for (uint32_t round = 0; round < 12; round++) {
        for (uint32_t c = 0; c < CHANNELS; c++) {
            receive_in(&sleepers[c].request, 0, c, sleepers[c].got, 8);
            assert_int_equal(pthread_create(&sleepers[c].thread, NULL, sleep_for_it, &sleepers[c]), 0);
        }
        usleep(2000 * (round % 3));
        for (uint32_t i = 0; i < CHANNELS; i++) {
            uint32_t c = (i * 5 + round) % CHANNELS;
            struct tb_request s;
            fill(out, 8, c);
            send_in(&s, 1, c, 8, TB_MODE_STANDARD);
            tb_request_wait(&s);
            if (round % 2 == 0) {
                pthread_join(sleepers[c].thread, NULL);
                assert_memory_equal(sleepers[c].got, out, 8);
            }
        }
        for (uint32_t c = 0; c < CHANNELS && round % 2 != 0; c++)
            pthread_join(sleepers[c].thread, NULL);
    }
    close_all(&net);
}

static struct tb_window *windows[2][2]; /* of each of two engines, in different lanes of the first */
static _Atomic bool told;

/* Who has posted nothing is in another window when it is asked, and will never post afterwards. */
static void *start_in_vain(void *context)
{
    const uint32_t one = 1;
    if (tb_window_start(windows[0][0], &one, 1, "start") == TB_ERR_EPOCH)
        told = strstr(tb_error_story(), "never will") != NULL;
    held = false;
    return NULL;
}

static void *post_when_asked(void *context)
{
    struct tb_engine *e = channels[0][1]->engine;
    const uint32_t one = 1;
    bool answered = false;
    for (int i = 0; i < 30000 && !answered; i++) {
        usleep(1000);
        tb_engine_lock(e);
        answered = e->deadlock.round > 0 && tb_list_empty(&e->deadlock.questions);
        tb_engine_unlock(e);
    }
    tb_window_post(windows[0][1], &one, 1);
    return NULL;
}

static void who_waits_elsewhere_is_asked_again(void **state)
{
    struct loop_net net;
    pthread_t threads[2];
    const uint32_t zero = 0;
    open_all(&net, 4, 0);
    open_channels(&net);
    for (uint32_t i = 0; i < 2; i++)
        for (uint32_t w = 0; w < 2; w++) {
            const struct tb_window_config config = {.channel = channels[i][1 + w], .dynamic = true};
            assert_int_equal(tb_window_open(net.engines[i], &config, &windows[i][w]), TB_OK);
        }
    held = true;
    told = false;
    assert_int_equal(pthread_create(&threads[0], NULL, start_in_vain, NULL), 0);
    assert_int_equal(pthread_create(&threads[1], NULL, post_when_asked, NULL), 0);
    assert_int_equal(tb_window_start(windows[1][1], &zero, 1, "start"), TB_OK);
    tb_window_leave_for_good(windows[1][0]);
    for (int i = 0; i < 30000 && held; i++) {
        tb_engine_progress(net.engines[1]);
        usleep(1000);
    }
    assert_true(!held && told);
    for (uint32_t i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(tb_window_complete(windows[1][1], &zero, 1, "complete"), TB_OK);
    assert_int_equal(tb_window_wait(windows[0][1], "wait"), TB_OK);
    for (uint32_t i = 0; i < 2; i++)
        for (uint32_t w = 0; w < 2; w++)
            tb_window_close(windows[i][w]);
    close_all(&net);
}

/* Engines 1 and 2 are not threaded; each window is in another lane of engine 0. */
static struct tb_window *locked[3][2];
static _Atomic bool given;

static void *share_another(void *context)
{
    if (tb_window_lock(locked[0][1], 1, false, "lock") == TB_OK)
        given = true;
    return NULL;
}

static void *lock_alone(void *context)
{
    if (tb_window_lock(locked[2][1], 1, true, "lock") == TB_OK)
        tb_window_unlock(locked[2][1], 1, "unlock");
    held = false;
    return NULL;
}

static void poll_until(struct tb_engine *e, const _Atomic bool *what, bool value)
{
    for (int i = 0; i < 10000 && *what != value; i++) {
        tb_engine_progress(e);
        usleep(1000);
    }
}

static void open_locked(struct loop_net *net)
{
    loop_net_init(net, 3);
    net->lanes[0] = 4;
    loop_net_open(net, false);
    for (uint32_t i = 0; i < 3; i++)
        for (uint32_t w = 0; w < 2; w++) {
            struct tb_channel_config channel = {
                .context = tb_context_make(0, 11 + w, TB_PLANE_POINT), .size = 3, .rank = i};
            struct tb_window_config config = {.dynamic = true};
            assert_int_equal(tb_channel_open(net->engines[i], &channel, &config.channel), TB_OK);
            assert_int_equal(tb_window_open(net->engines[i], &config, &locked[i][w]), TB_OK);
        }
}

static void close_locked(struct loop_net *net)
{
    for (uint32_t i = 0; i < 3; i++)
        for (uint32_t w = 0; w < 2; w++) {
            struct tb_channel *channel = locked[i][w]->channel;
            tb_window_close(locked[i][w]);
            tb_channel_close(channel);
        }
    loop_net_close(net);
}

/* Who has a lock in one lane and asks for a shared one in another does not wait behind an exclusive one. */
static void locks_of_all_lanes_count(void **state)
{
    struct loop_net net;
    pthread_t threads[2];
    open_locked(&net);
    held = true;
    given = false;
    assert_int_equal(tb_window_lock(locked[0][0], 0, false, "lock"), TB_OK);
    assert_int_equal(tb_window_lock(locked[1][1], 1, false, "lock"), TB_OK);
    assert_int_equal(pthread_create(&threads[1], NULL, lock_alone, NULL), 0);
    for (int i = 0; i < 10000 && tb_list_empty(&locked[1][1]->lock.queue); i++) {
        tb_engine_progress(net.engines[1]);
        usleep(1000);
    }
    assert_int_equal(pthread_create(&threads[0], NULL, share_another, NULL), 0);
    poll_until(net.engines[1], &given, true);
    bool in_time = given;
    assert_int_equal(tb_window_unlock(locked[1][1], 1, "unlock"), TB_OK);
    poll_until(net.engines[1], &given, true);
    pthread_join(threads[0], NULL);
    assert_int_equal(net.engines[0]->lanes->held, 2);
    for (uint32_t w = 0; w < 2; w++)
        assert_int_equal(tb_window_unlock(locked[0][w], w, "unlock"), TB_OK);
    poll_until(net.engines[1], &held, false);
    pthread_join(threads[1], NULL);
    assert_int_equal(net.engines[0]->lanes->held, 0);
    assert_true(in_time);
    close_locked(&net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(contexts_are_dealt_out),
        cmocka_unit_test(by_all_protocols),
        cmocka_unit_test(credit_is_shared),
        cmocka_unit_test(all_lanes_hear_of_a_loss),
        cmocka_unit_test(a_lost_connection_is_told_once),
        cmocka_unit_test(all_hear_of_a_collective_that_was_given_up),
        cmocka_unit_test(one_lane_does_not_hold_up_others),
        cmocka_unit_test(each_sleeper_is_woken),
        cmocka_unit_test(who_waits_elsewhere_is_asked_again),
        cmocka_unit_test(locks_of_all_lanes_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
