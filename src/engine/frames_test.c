/* Kinds of frames: each one that the engine knows has a handler, and whoever sends another one is given up. */
#include "engine/message_test.h"

static struct loop_net net;

/* Process 0 has heard of process 1, whose frames the test makes up from now on, and waits for a message of it. */
static struct tb_peer *begin(struct tb_request *r)
{
    struct tb_request s;
    loop_net_init(&net, 2);
    loop_net_open(&net, false);
    post_send(&net, &s, 1, 0, 3, 10, TB_MODE_STANDARD);
    loop_net_settle(&net);
    post_receive(&net, r, 0, 1, 4, EXACT, 10);
    return tb_peer_of(net.engines[0], 1);
}

static void give(const struct tb_message *m)
{
    const struct tb_upcalls *up = tb_sim_upcalls(&net.sim, 0);
    up->frame(up->context, tb_sim_endpoint(&net.sim, 0, 1), NULL, m, out, 0);
}

static bool is_known(uint32_t kind)
{
    static const uint8_t kinds[] = {TB_KIND_EAGER,     TB_KIND_REQUEST,      TB_KIND_CLEAR,       TB_KIND_DATA,
                                    TB_KIND_DONE,      TB_KIND_CANCEL,       TB_KIND_CANCELLED,   TB_KIND_CREDIT,
                                    TB_KIND_FAILED,    TB_MULTICAST_CONFIRM, TB_MULTICAST_REPORT, TB_MULTICAST_ASK,
                                    TB_MULTICAST_REST, TB_MULTICAST_POLL,    TB_KIND_CAST};
    return memchr(kinds, (int)kind, sizeof kinds) != NULL || (kind >= TB_KIND_PUT_RUNS && kind < TB_KIND_ACCESS_END);
}

static void known_kinds_have_a_handler(void **state)
{
    for (uint32_t kind = 0; kind < TB_FRAME_KINDS; kind++)
        assert_int_equal(tb_frame_kinds[kind].handle != NULL, is_known(kind));
}

/* Of one-sided access some cannot be empty. */
static bool is_right(uint32_t kind)
{
    static const uint8_t filled[] = {TB_KIND_PUT_RUNS, TB_KIND_GET, TB_KIND_ACCUMULATE, TB_KIND_COMPARE, TB_KIND_PUT,
                                     TB_KIND_LOCK,     TB_KIND_GOT, TB_KIND_REFUSED,    TB_KIND_ASK};
    return is_known(kind) && memchr(filled, (int)kind, sizeof filled) == NULL;
}

/* Whatever its number is: beyond the table, too. */
static void other_kinds_break_the_peer(void **state)
{
    for (uint32_t kind = 0; kind <= UINT8_MAX; kind++) {
        struct tb_request r;
        struct tb_peer *p = begin(&r);
        const struct tb_message m = {.kind = (uint8_t)kind,
                                     .context = tb_context_plane(LOOP_CONTEXT, TB_PLANE_COLLECTIVE),
                                     .match = tb_match_collective(77, 0, 0),
                                     .source_rank = 1};
        give(&m);
        assert_int_equal(p->error, is_right(kind) ? TB_OK : TB_ERR_PROTOCOL);
        loop_net_settle(&net);
        assert_int_equal(tb_request_done(&r), !is_right(kind));
        if (is_right(kind))
            tb_request_cancel(&r);
        else
            assert_int_equal(r.status.error, TB_ERR_PEER);
        loop_net_close(&net);
    }
}

/* Of a kind that the wire knows and the engine does not: LINK, which a decorator should have kept. */
static void stray_frames_of_link_are_named(void **state)
{
    struct tb_request r;
    struct tb_peer *p = begin(&r);
    const struct tb_message m = {.kind = TB_KIND_LINK};
    give(&m);
    assert_non_null(strstr(p->story, "a frame of unknown kind 9"));
    loop_net_settle(&net);
    loop_net_close(&net);
}

/* Only data has a place before it is there, whatever the transport asks. */
static void only_data_is_placed(void **state)
{
    for (uint32_t kind = 0; kind <= UINT8_MAX; kind++) {
        struct tb_request s, r;
        loop_net_init(&net, 2);
        net.sim.eager_limit = 16;
        loop_net_open(&net, false);
        post_receive(&net, &r, 0, 1, 5, EXACT, 100);
        post_send(&net, &s, 1, 0, 5, 100, TB_MODE_STANDARD);
        assert_int_equal(tb_engine_progress(net.engines[0]), 1); /* it is asked, and says where to */
        const struct tb_upcalls *up = tb_sim_upcalls(&net.sim, 0);
        const struct tb_message m = {.kind = (uint8_t)kind, .match = r.message_id, .offset = 40, .length = 60};
        void *place = up->place(up->context, tb_sim_endpoint(&net.sim, 0, 1), &m, 60);
        assert_ptr_equal(place, kind == TB_KIND_DATA ? in + 40 : NULL);
        if (place != NULL)
            up->frame(up->context, tb_sim_endpoint(&net.sim, 0, 1), NULL, &m, place, 60);
        loop_net_settle(&net);
        assert_true(tb_request_done(&r));
        loop_net_close(&net);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_kinds_have_a_handler),
        cmocka_unit_test(other_kinds_break_the_peer),
        cmocka_unit_test(stray_frames_of_link_are_named),
        cmocka_unit_test(only_data_is_placed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
