#include "launch/agent_frames.h"

#include "launch/spawns.h"

#include "launch/told_places.h"

#include <stdio.h>

typedef void take(const struct tb_agent_frame_events *events, struct tb_host_agent *agent, struct tb_reader *r);

static void get_text(struct tb_reader *r, char *text, size_t size)
{
    size_t length = 0;
    const char *bytes = tb_get_bytes(r, &length);
    *text = 0;
    if (r->error == TB_OK && length > 0 && length < size)
        snprintf(text, size, "%.*s", (int)length, bytes);
}

static void get_place(struct tb_reader *r, char *text, size_t size)
{
    size_t length = 0;
    const char *bytes = tb_get_bytes(r, &length);
    if (r->error == TB_OK && length > 0)
        tb_told_places_keep(text, size, bytes, length);
}

static void take_ready(const struct tb_agent_frame_events *events, struct tb_host_agent *agent, struct tb_reader *r)
{
    struct tb_agent_ready ready = {0};
    char version[64];
    get_text(r, version, sizeof version); /* the same as ours, or the preamble would have told */
    get_text(r, ready.name, sizeof ready.name);
    get_place(r, ready.where.site, sizeof ready.where.site);
    get_place(r, ready.where.cluster, sizeof ready.where.cluster);
    tb_get_u32(r); /* processors */
    uint32_t count = tb_get_u32(r);
    if (agent->phase != TB_HOST_AGENT_SPOKEN)
        return;
    for (uint32_t i = 0; i < count && i < TB_HOST_ADDRESS_LIMIT && r->error == TB_OK; i++)
        tb_address_get(r, &ready.addresses[i]);
    ready.machine = tb_get_u32(r);
    ready.seat_count = tb_get_u32(r);
    bool seated =
        ready.seat_count == 0 || (ready.seat_count == agent->rank_count && ready.seat_count <= TB_HOST_RANKS_LIMIT);
    for (uint32_t i = 0; i < ready.seat_count && seated && r->error == TB_OK; i++)
        ready.seats[i] = tb_seat_unpack(tb_get_u64(r));
    if (r->error != TB_OK || count > TB_HOST_ADDRESS_LIMIT || !seated) {
        tb_error(TB_ERR_PROTOCOL, "what it says of itself makes no sense");
        tb_host_agent_complain_damaged(agent);
        return;
    }
    ready.address_count = count;
    tb_host_agent_take_ready(agent);
    events->ready(events->context, agent, &ready);
}

static void take_told(const struct tb_agent_frame_events *events, struct tb_host_agent *agent, struct tb_reader *r)
{
    if (agent->phase != TB_HOST_AGENT_READY)
        return;
    tb_host_agent_take_told(agent);
    events->told(events->context, agent);
}

static void take_started(const struct tb_agent_frame_events *events, struct tb_host_agent *agent, struct tb_reader *r)
{
    uint32_t count = tb_get_u32(r);
    if (r->error == TB_OK && count == agent->rank_count - agent->later_count && agent->phase >= TB_HOST_AGENT_READY &&
        agent->phase < TB_HOST_AGENT_STARTED)
        events->started(events->context, agent, r);
}

static void take_output(const struct tb_agent_frame_events *events, struct tb_host_agent *agent, struct tb_reader *r)
{
    uint32_t rank = tb_get_u32(r);
    uint8_t stream = tb_get_u8(r);
    size_t length = 0;
    const char *bytes = tb_get_bytes(r, &length);
    if (r->error == TB_OK && (stream == 1 || stream == 2))
        events->output(events->context, agent, rank, stream, bytes, length);
}

static void take_ended(const struct tb_agent_frame_events *events, struct tb_host_agent *agent, struct tb_reader *r)
{
    struct tb_ended ended;
    if (tb_ended_get(r, &ended) != TB_OK)
        return;
    bool unborn = events->spawns != NULL && tb_spawns_take_ended(events->spawns, agent, &ended);
    events->over(events->context, &ended, unborn);
    if (!unborn)
        events->ended(events->context, agent, &ended);
}

static void take_aborted(const struct tb_agent_frame_events *events, struct tb_host_agent *agent, struct tb_reader *r)
{
    struct tb_agent_abort abort;
    abort.rank = tb_get_u32(r);
    abort.pid = tb_get_u32(r);
    abort.code = tb_get_u32(r);
    uint8_t reason = tb_get_u8(r);
    abort.reason = (enum tb_abort_reason)reason;
    abort.text = tb_get_bytes(r, &abort.length);
    tb_abort_group_get(r, &abort.group);
    if (r->error == TB_OK && reason <= TB_ABORT_FOLLOWS &&
        (events->spawns == NULL || !tb_spawns_take_aborted(events->spawns, &abort)))
        events->aborted(events->context, agent, &abort);
}

static void take_trouble(const struct tb_agent_frame_events *events, struct tb_host_agent *agent, struct tb_reader *r)
{
    uint32_t code = tb_get_u32(r);
    size_t length = 0;
    const char *text = tb_get_bytes(r, &length);
    if (r->error == TB_OK)
        events->trouble(events->context, agent, code, text, length);
}

static void take_note(const struct tb_agent_frame_events *events, struct tb_host_agent *agent, struct tb_reader *r)
{
    size_t length = 0;
    const char *text = tb_get_bytes(r, &length);
    if (r->error == TB_OK)
        events->note(events->context, text, length);
}

static void take_window(const struct tb_agent_frame_events *events, struct tb_host_agent *agent, struct tb_reader *r)
{
    events->input_window(events->context, tb_get_u32(r));
}

static void take_gone(const struct tb_agent_frame_events *events, struct tb_host_agent *agent, struct tb_reader *r)
{
    if (agent->phase < TB_HOST_AGENT_GONE)
        events->gone(events->context, agent);
}

static void take_idle(const struct tb_agent_frame_events *events, struct tb_host_agent *agent, struct tb_reader *r)
{
    if (agent->idle || agent->phase != TB_HOST_AGENT_STARTED || (agent->spare && agent->ended < agent->rank_count))
        return;
    tb_host_agent_take_idle(agent);
    events->idle(events->context, agent);
}

static void take_heard(const struct tb_agent_frame_events *events, struct tb_host_agent *agent, struct tb_reader *r)
{
    if (tb_control_stream_heard(&agent->control, tb_get_u32(r)) != TB_OK)
        tb_host_agent_complain_damaged(agent);
}

static void take_call(const struct tb_agent_frame_events *events, struct tb_host_agent *agent, struct tb_reader *r)
{
    uint32_t host = tb_get_u32(r);
    if (r->error == TB_OK)
        events->call(events->context, host, r);
}

static void take_probed(const struct tb_agent_frame_events *events, struct tb_host_agent *agent, struct tb_reader *r)
{
    events->probed(events->context, agent, r);
}

static void take_attach(const struct tb_agent_frame_events *events, struct tb_host_agent *agent, struct tb_reader *r)
{
    uint32_t host = tb_get_u32(r), coming = tb_get_u32(r);
    if (r->error == TB_OK)
        events->attach(events->context, agent, host, coming);
}

static void take_link(const struct tb_agent_frame_events *events, struct tb_host_agent *agent, struct tb_reader *r)
{
    struct tb_agent_link link = {.host = tb_get_u32(r)};
    uint8_t state = tb_get_u8(r);
    link.time = tb_get_u64(r);
    link.state = (enum tb_link_report)state;
    size_t length = 0;
    const char *why = tb_get_bytes(r, &length);
    if (r->error != TB_OK || state >= TB_LINK_REPORTS || agent->phase != TB_HOST_AGENT_STARTED)
        return;
    snprintf(link.why, sizeof link.why, "%.*s", (int)(length < sizeof link.why ? length : sizeof link.why - 1), why);
    events->link(events->context, agent, &link);
}

static void take_waits(const struct tb_agent_frame_events *events, struct tb_host_agent *agent, struct tb_reader *r)
{
    events->waits(events->context, agent, r);
}

static void take_registry(const struct tb_agent_frame_events *events, struct tb_host_agent *agent, struct tb_reader *r)
{
    struct tb_agent_wish wish = {.rank = tb_get_u32(r)};
    wish.number = tb_get_u32(r);
    wish.bytes = tb_get_bytes(r, &wish.length);
    if (r->error == TB_OK)
        events->registry(events->context, agent, &wish);
}

static void take_group_state(const struct tb_agent_frame_events *events, struct tb_host_agent *agent,
                             struct tb_reader *r)
{
    events->group(events->context, agent, TB_CONTROL_GROUP_STATE, r);
}

static void take_group_heard(const struct tb_agent_frame_events *events, struct tb_host_agent *agent,
                             struct tb_reader *r)
{
    events->group(events->context, agent, TB_CONTROL_GROUP_HEARD, r);
}

static void take_group_trouble(const struct tb_agent_frame_events *events, struct tb_host_agent *agent,
                               struct tb_reader *r)
{
    events->group(events->context, agent, TB_CONTROL_GROUP_TROUBLE, r);
}

/* Which agent behind this one a frame is about; NULL: it is over with it, or there is none. */
static struct tb_host_agent *find_behind(const struct tb_agent_frame_events *events, const struct tb_host_agent *parent,
                                         struct tb_reader *r)
{
    uint32_t host = tb_get_u32(r);
    return r->error == TB_OK ? tb_host_agents_find_behind(events->agents, parent, host) : NULL;
}

static void take_tunnel(const struct tb_agent_frame_events *events, struct tb_host_agent *agent, struct tb_reader *r)
{
    struct tb_host_agent *behind = find_behind(events, agent, r);
    size_t length = 0;
    const uint8_t *bytes = tb_get_bytes(r, &length);
    if (behind != NULL && r->error == TB_OK)
        tb_host_agent_take_bytes(behind, bytes, length);
}

static void take_tunnel_errors(const struct tb_agent_frame_events *events, struct tb_host_agent *agent,
                               struct tb_reader *r)
{
    struct tb_host_agent *behind = find_behind(events, agent, r);
    size_t length = 0;
    const char *bytes = tb_get_bytes(r, &length);
    if (behind != NULL && r->error == TB_OK)
        tb_host_agent_take_errors(behind, bytes, length);
}

static void take_tunnel_end(const struct tb_agent_frame_events *events, struct tb_host_agent *agent,
                            struct tb_reader *r)
{
    struct tb_host_agent *behind = find_behind(events, agent, r);
    bool exited = tb_get_u8(r) != 0;
    int status = (int)tb_get_u32(r);
    if (behind != NULL && r->error == TB_OK)
        tb_host_agent_take_end(behind, exited, status);
}

static take *const table[] = {
    [TB_CONTROL_READY] = take_ready,
    [TB_CONTROL_TOLD] = take_told,
    [TB_CONTROL_STARTED] = take_started,
    [TB_CONTROL_OUTPUT] = take_output,
    [TB_CONTROL_ENDED] = take_ended,
    [TB_CONTROL_ABORTED] = take_aborted,
    [TB_CONTROL_TROUBLE] = take_trouble,
    [TB_CONTROL_NOTE] = take_note,
    [TB_CONTROL_WINDOW] = take_window,
    [TB_CONTROL_GONE] = take_gone,
    [TB_CONTROL_IDLE] = take_idle,
    [TB_CONTROL_CALL] = take_call,
    [TB_CONTROL_HEARD] = take_heard,
    [TB_CONTROL_PROBED] = take_probed,
    [TB_CONTROL_ATTACH] = take_attach,
    [TB_CONTROL_LINK] = take_link,
    [TB_CONTROL_WAITS] = take_waits,
    [TB_CONTROL_GROUP_STATE] = take_group_state,
    [TB_CONTROL_GROUP_HEARD] = take_group_heard,
    [TB_CONTROL_GROUP_TROUBLE] = take_group_trouble,
    [TB_CONTROL_REGISTRY] = take_registry,
    [TB_CONTROL_TUNNEL] = take_tunnel,
    [TB_CONTROL_TUNNEL_ERRORS] = take_tunnel_errors,
    [TB_CONTROL_TUNNEL_END] = take_tunnel_end,
};

void tb_agent_frames_dispatch(const struct tb_agent_frame_events *events, struct tb_host_agent *agent,
                              struct tb_control_frame *frame)
{
    if (frame->kind >= TB_CONTROL_SPAWN && frame->kind <= TB_CONTROL_BOND && events->spawns != NULL) {
        tb_spawns_take(events->spawns, agent, (enum tb_control)frame->kind, &frame->fields);
        return;
    }
    take *handler = frame->kind < sizeof table / sizeof table[0] ? table[frame->kind] : NULL;
    if (handler != NULL)
        handler(events, agent, &frame->fields);
}
