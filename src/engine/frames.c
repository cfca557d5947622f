#include "engine/frames.h"

#include "engine/engine_state.h"

static void failure_heard(struct tb_peer *p, const struct tb_message *m, const void *payload, size_t length)
{
    struct tb_failure f;
    struct tb_channel *channel = tb_channel_hear(p, m, &f);
    if (channel == NULL)
        return;
    tb_channel_drives_give_up(channel, &f);
    tb_runs_give_up(&p->engine->runs, channel->collective, &f);
}

const struct tb_frame_kind tb_frame_kinds[TB_FRAME_KINDS] = {
    [TB_KIND_EAGER] = {.handle = tb_receive_eager},
    [TB_KIND_REQUEST] = {.handle = tb_receive_asked},
    [TB_KIND_CLEAR] = {.handle = tb_send_cleared},
    [TB_KIND_DATA] = {.handle = tb_receive_data, .place = tb_receive_place},
    [TB_KIND_DONE] = {.handle = tb_send_matched},
    [TB_KIND_CANCEL] = {.handle = tb_receive_forget},
    [TB_KIND_CANCELLED] = {.handle = tb_send_cancelled},
    [TB_KIND_CREDIT] = {.handle = tb_peer_credited},
    [TB_KIND_PUT_RUNS] = {.handle = tb_serve_runs},
    [TB_KIND_GET] = {.handle = tb_serve_runs},
    [TB_KIND_ACCUMULATE] = {.handle = tb_serve_runs},
    [TB_KIND_COMPARE] = {.handle = tb_serve_runs},
    [TB_KIND_PUT] = {.handle = tb_serve_put, .place = tb_serve_place},
    [TB_KIND_FLUSH] = {.handle = tb_serve_word},
    [TB_KIND_LOCK] = {.handle = tb_serve_word},
    [TB_KIND_UNLOCK] = {.handle = tb_serve_word},
    [TB_KIND_COMPLETE] = {.handle = tb_serve_word},
    [TB_KIND_GOT] = {.handle = tb_access_got, .place = tb_access_place},
    [TB_KIND_APPLIED] = {.handle = tb_serve_word},
    [TB_KIND_LOCKED] = {.handle = tb_serve_word},
    [TB_KIND_POST] = {.handle = tb_serve_word},
    [TB_KIND_REFUSED] = {.handle = tb_access_refused},
    [TB_KIND_ASK] = {.handle = tb_deadlock_asked},
    [TB_KIND_ANSWER] = {.handle = tb_deadlock_answered},
    [TB_KIND_FAILED] = {.handle = failure_heard},
    [TB_KIND_CAST] = {.handle = tb_cast_invited},
    [TB_MULTICAST_CONFIRM] = {.handle = tb_multicast_port_hear},
    [TB_MULTICAST_REPORT] = {.handle = tb_multicast_port_hear},
    [TB_MULTICAST_ASK] = {.handle = tb_multicast_port_hear},
    [TB_MULTICAST_REST] = {.handle = tb_multicast_port_hear},
    [TB_MULTICAST_POLL] = {.handle = tb_multicast_port_hear},
};
