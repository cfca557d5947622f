/* The uplink with a launcher that the test plays: frames, and the heartbeat. */
#include "agent/uplink_world_test.h"

/* ---- a stream ---------------------------------------------------------------------------------------------------- */

static void frames_go_both_ways(void **state)
{
    struct world w;
    world_open(&w);
    tell(&w, &w.launcher, TB_CONTROL_WINDOW, 17);
    assert_int_equal(w.frames, 1);
    assert_int_equal(w.kind, TB_CONTROL_WINDOW);
    assert_int_equal(w.number, 17);
    send_up(&w, TB_CONTROL_TUNNEL, 4);
    expect(&w.launcher, TB_CONTROL_TUNNEL, 4);
    tell(&w, &w.launcher, TB_CONTROL_HEARD, 1);
    assert_int_equal(w.frames, 1); /* that is between the two ends of the stream */
    world_close(&w);
}

static void a_slow_launcher_is_waited_for(void **state)
{
    struct world w;
    world_open(&w);
    static const char bytes[1000];
    uint32_t count = 0, kind, number;
    for (; tb_uplink_queued(&w.uplink) == 0 && count < 10000; count++) {
        struct tb_writer *frame = tb_uplink_begin(&w.uplink, TB_CONTROL_OUTPUT);
        tb_put_u32(frame, count);
        tb_put_bytes(frame, bytes, sizeof bytes);
        tb_uplink_end(&w.uplink);
        virtual_loop_turn(&w.t);
    }
    assert_in_range(count, 2, 9999);
    assert_int_equal(tb_uplink_settle(&w.uplink), TB_AGAIN);
    uint32_t next = 0;
    for (int i = 0; i < 10000 && next < count; i++) {
        while (hear(&w.launcher, &kind, &number))
            assert_int_equal(number, next++);
        virtual_loop_turn(&w.t);
    }
    assert_int_equal(next, count);
    assert_int_equal(tb_uplink_settle(&w.uplink), TB_OK);
    world_close(&w);
}

static void its_end_is_told(void **state)
{
    struct world w;
    world_open(&w);
    tb_control_stream_close(&w.launcher);
    virtual_loop_turn(&w.t);
    assert_int_equal(w.lost, 1);
    assert_string_equal(w.why, "the launcher is gone");
    send_up(&w, TB_CONTROL_TUNNEL, 4); /* does no harm */
    virtual_loop_pass(&w.t, 10 * (uint64_t)HEARTBEAT);
    assert_int_equal(w.lost, 1);
    world_close(&w);
}

static void nonsense_ends_it(void **state)
{
    struct world w;
    world_open(&w);
    static const char nonsense[256] = "this is no frame";
    assert_int_equal(write(w.launcher.out, nonsense, sizeof nonsense), sizeof nonsense);
    virtual_loop_turn(&w.t);
    assert_int_equal(w.lost, 1);
    assert_int_equal(w.frames, 0);
    world_close(&w);
}

/* ---- heartbeat --------------------------------------------------------------------------------------------------- */

static void a_heart_beats(void **state)
{
    struct world w;
    world_open(&w);
    virtual_loop_pass(&w.t, HEARTBEAT);
    assert_int_equal(count_pings(&w), 0); /* not asked for */
    tell(&w, &w.launcher, TB_CONTROL_PING, 0);
    tb_uplink_start_heartbeat(&w.uplink, true);
    for (int i = 0; i < 100; i++) {
        pass(&w, 2 * BEAT);
        assert_int_equal(count_pings(&w), 1);
        tell(&w, &w.launcher, TB_CONTROL_PING, 0);
    }
    send_up(&w, TB_CONTROL_TUNNEL, 4); /* says as much */
    expect(&w.launcher, TB_CONTROL_TUNNEL, 4);
    pass(&w, 2 * BEAT);
    assert_int_equal(count_pings(&w), 0);
    assert_int_equal(w.lost, 0);
    world_close(&w);
}

static void silence_is_noticed(void **state)
{
    struct world w;
    world_open(&w);
    tb_uplink_start_heartbeat(&w.uplink, true);
    tell(&w, &w.launcher, TB_CONTROL_PING, 0);
    uint64_t begun = w.t.now;
    pass(&w, 2 * (uint64_t)HEARTBEAT);
    assert_int_equal(w.lost, 1);
    assert_in_range(w.t.now - begun, HEARTBEAT, HEARTBEAT + 3 * BEAT);
    assert_string_equal(w.why, "the launcher is silent");
    world_close(&w);
}

/* The launcher, or we, or both in turn, do nothing for 8 of the 9 parts of what is too long, again and again. */
static void who_is_stopped_is_not_dead(void **state)
{
    struct world w;
    world_open(&w);
    tb_uplink_start_heartbeat(&w.uplink, true);
    for (int i = 0; i < 30; i++) {
        if (i % 3 != 1)
            pass(&w, HEARTBEAT / 9 * 8 + 2 * BEAT); /* the launcher; it had spoken some time before */
        if (i % 3 != 0)
            virtual_loop_pass(&w.t, HEARTBEAT / 9 * 8); /* we */
        virtual_loop_turn(&w.t);
        assert_int_equal(w.lost, 0);
        if (i % 3 != 1)
            tell(&w, &w.launcher, TB_CONTROL_PING, 0);
    }
    world_close(&w);
}

/* Whenever we run, if only for a moment, the launcher hears something. */
static void who_hardly_runs_speaks(void **state)
{
    struct world w;
    world_open(&w);
    tb_uplink_start_heartbeat(&w.uplink, true);
    for (int i = 0; i < 20; i++) {
        tell(&w, &w.launcher, TB_CONTROL_PING, 0);
        virtual_loop_pass(&w.t, HEARTBEAT / 9 * 8);
        assert_int_equal(count_pings(&w), 1);
    }
    assert_int_equal(w.lost, 0);
    world_close(&w);
}

/* The launcher hears of it nevertheless. */
static void who_does_not_judge_only_speaks(void **state)
{
    struct world w;
    world_open(&w);
    tb_uplink_start_heartbeat(&w.uplink, false);
    for (int i = 0; i < 100; i++) {
        pass(&w, 2 * BEAT);
        assert_int_equal(count_pings(&w), 1);
    }
    assert_int_equal(w.lost, 0);
    assert_true(tb_uplink_is_sure(&w.uplink));
    world_close(&w);
}

/* It is stopped, and will be silent; or it is we who have slept. */
static void silence_can_be_excused(void **state)
{
    struct world w;
    world_open(&w);
    tb_uplink_start_heartbeat(&w.uplink, true);
    tb_uplink_suspend(&w.uplink, true);
    pass(&w, 4 * (uint64_t)HEARTBEAT);
    assert_int_equal(w.lost, 0);
    tell(&w, &w.launcher, TB_CONTROL_PING, 0);
    tb_uplink_suspend(&w.uplink, false);
    virtual_loop_pass(&w.t, 5 * (uint64_t)HEARTBEAT);
    assert_int_equal(w.lost, 0);
    pass(&w, HEARTBEAT + 2 * BEAT); /* it had its chance */
    assert_int_equal(w.lost, 1);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_go_both_ways),    cmocka_unit_test(a_slow_launcher_is_waited_for),
        cmocka_unit_test(its_end_is_told),        cmocka_unit_test(nonsense_ends_it),
        cmocka_unit_test(a_heart_beats),          cmocka_unit_test(silence_is_noticed),
        cmocka_unit_test(silence_can_be_excused), cmocka_unit_test(who_is_stopped_is_not_dead),
        cmocka_unit_test(who_hardly_runs_speaks), cmocka_unit_test(who_does_not_judge_only_speaks),
    };
    tb_param_load();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
