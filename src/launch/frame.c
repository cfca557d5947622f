/* What agents tell the launcher. */
#include "launch/state.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ANCHORS_MOST 16u

void tb_launch_send_routes(struct tb_launch *launch)
{
    for (uint32_t i = 0; i < launch->host_count && launch->plan != NULL; i++) {
        struct tb_host_agent *agent = &launch->agents[i];
        struct tb_host_routes routes;
        if (agent->phase < TB_HOST_AGENT_READY || agent->phase >= TB_HOST_AGENT_GONE)
            continue;
        int rc = tb_grid_plan_routes(launch->plan, &launch->placement, i, &routes);
        if (rc == TB_OK) {
            rc = tb_host_routes_encode(&routes, tb_control_stream_begin(&agent->pipe, TB_CONTROL_ROUTES));
            tb_host_routes_close(&routes);
        }
        if (rc == TB_OK)
            rc = tb_control_stream_end(&agent->pipe);
        if (rc != TB_OK)
            tb_launch_fail(launch, TB_VERDICT_CAUSE, 1, "cannot tell host %s its ways to the others: %s",
                           agent->target.host, tb_error_story());
    }
}

void tb_launch_send_books(struct tb_launch *launch)
{
    tb_launch_send_routes(launch);
    for (uint32_t i = 0; i < launch->host_count; i++) {
        struct tb_control_stream *pipe = &launch->agents[i].pipe;
        int rc =
            tb_address_book_encode(&launch->placement.book, tb_control_stream_begin(pipe, TB_CONTROL_ADDRESS_BOOK));
        if (rc == TB_OK)
            rc = tb_control_stream_end(pipe);
        if (rc != TB_OK)
            tb_launch_fail(launch, TB_VERDICT_CAUSE, 1, "the address book is too long: %s", tb_error_story());
    }
    for (uint32_t i = 0; i < launch->host_count; i++)
        tb_host_agent_send_anchors(&launch->agents[i]);
}

/* Only those hear it whose streams go through somebody; the others have nobody to go to. */
void tb_host_agent_send_anchors(struct tb_host_agent *agent)
{
    const struct tb_launch *launch = agent->launch;
    uint32_t anchors[ANCHORS_MOST];
    if (agent->parent == NULL || agent->phase < TB_HOST_AGENT_READY || agent->phase >= TB_HOST_AGENT_GONE)
        return;
    uint32_t count = tb_grid_plan_anchors(launch->plan, &launch->placement, agent->host, ANCHORS_MOST, anchors);
    struct tb_writer *w = tb_control_stream_begin(&agent->pipe, TB_CONTROL_ANCHORS);
    tb_put_u32(w, count);
    for (uint32_t i = 0; i < count; i++)
        tb_put_u32(w, anchors[i]);
    tb_control_stream_end(&agent->pipe);
}

static void take_place(struct tb_reader *r, char *place, size_t size)
{
    size_t length = 0;
    const char *text = tb_get_bytes(r, &length);
    if (r->error == TB_OK && length > 0 && length < size && *place == 0)
        snprintf(place, size, "%.*s", (int)length, text);
}

/* What the grid file says about the address of a host may be known to nobody there, such as that of a router in front
 * of it. The agents try what they see themselves first. */
static void add_known_address(struct tb_host_agent *agent, struct tb_host *host)
{
    const struct tb_launch *launch = agent->launch;
    const char *text = launch->plan->grid->hosts[launch->placement.entries[agent->host]].address;
    struct addrinfo wanted = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG}, *found = NULL;
    if (text == NULL || launch->options->lab != NULL || host->address_count == 0 ||
        getaddrinfo(text, NULL, &wanted, &found) != 0)
        return;
    for (const struct addrinfo *at = found; at != NULL && host->address_count < TB_HOST_ADDRESS_LIMIT;
         at = at->ai_next) {
        struct tb_address address = {.port = host->addresses[0].port};
        if (at->ai_family == AF_INET) {
            address.family = 4;
            address.prefix = 32;
            memcpy(address.bytes, &((const struct sockaddr_in *)at->ai_addr)->sin_addr, 4);
        } else if (at->ai_family == AF_INET6) {
            address.family = 6;
            address.prefix = 128;
            memcpy(address.bytes, &((const struct sockaddr_in6 *)at->ai_addr)->sin6_addr, 16);
        } else {
            continue;
        }
        bool known = false;
        for (uint32_t i = 0; i < host->address_count; i++)
            known = known || (host->addresses[i].family == address.family &&
                              memcmp(host->addresses[i].bytes, address.bytes, sizeof address.bytes) == 0);
        if (!known)
            host->addresses[host->address_count++] = address;
    }
    freeaddrinfo(found);
}

static void take_ready(struct tb_host_agent *agent, struct tb_reader *r)
{
    struct tb_launch *launch = agent->launch;
    struct tb_host *host = &launch->placement.book.hosts[agent->host];
    char version[64] = "", own_name[256] = "";
    take_place(r, version, sizeof version); /* the same as ours, or the preamble would have told */
    take_place(r, own_name, sizeof own_name);
    take_place(r, host->place.site, sizeof host->place.site);
    take_place(r, host->place.cluster, sizeof host->place.cluster);
    tb_get_u32(r); /* processors */
    uint32_t count = tb_get_u32(r);
    if (r->error != TB_OK || count > TB_HOST_ADDRESS_LIMIT || agent->phase != TB_HOST_AGENT_SPOKEN)
        return;
    for (uint32_t i = 0; i < count && r->error == TB_OK; i++)
        tb_address_get(r, &host->addresses[i]);
    host->address_count = r->error == TB_OK ? count : 0;
    if (launch->plan != NULL)
        add_known_address(agent, host);
    agent->phase = TB_HOST_AGENT_READY;
    launch->ready_count++;
    tb_log(TB_LOG_INFO, "launch", "host %s (%s) is ready with %u addresses", host->name, own_name, count);
    tb_host_agents_start(launch);
    tb_launch_check_start(launch);
}

static void take_idle(struct tb_host_agent *agent)
{
    struct tb_launch *launch = agent->launch;
    if (agent->idle || agent->phase != TB_HOST_AGENT_STARTED)
        return;
    agent->idle = true;
    if (++launch->idle_count == launch->host_count)
        tb_launch_finish(launch);
}

/* An agent cannot connect where it wants to; the one there can. */
static void pass_call(struct tb_launch *launch, struct tb_reader *r)
{
    uint32_t host = tb_get_u32(r);
    if (r->error != TB_OK || host >= launch->host_count)
        return;
    struct tb_host_agent *agent = &launch->agents[host];
    if (agent->phase < TB_HOST_AGENT_READY || agent->phase >= TB_HOST_AGENT_GONE)
        return;
    struct tb_writer *w = tb_control_stream_begin(&agent->pipe, TB_CONTROL_CALL);
    tb_put_u32(w, host);
    while (r->length - r->at >= 4)
        tb_put_u32(w, tb_get_u32(r));
    tb_control_stream_end(&agent->pipe);
}

static void take_started(struct tb_host_agent *agent, struct tb_reader *r)
{
    struct tb_launch *launch = agent->launch;
    uint32_t count = tb_get_u32(r);
    if (r->error != TB_OK || count != launch->placement.book.hosts[agent->host].rank_count)
        return;
    agent->phase = TB_HOST_AGENT_STARTED;
    if (agent->target.local && agent->pids == NULL)
        agent->pids = calloc(count, sizeof *agent->pids);
    for (uint32_t i = 0; agent->pids != NULL && i < count; i++)
        agent->pids[i] = tb_get_u32(r);
    if (agent == tb_launch_agent_of(launch, 0))
        tb_input_open(launch);
}

static void take_output(struct tb_host_agent *agent, struct tb_reader *r)
{
    struct tb_launch *launch = agent->launch;
    uint32_t rank = tb_get_u32(r);
    uint8_t stream = tb_get_u8(r);
    size_t length = 0;
    const char *bytes = tb_get_bytes(r, &length);
    if (r->error == TB_OK && rank < launch->placement.book.ranks && (stream == 1 || stream == 2))
        tb_screen_add(&launch->screens[stream - 1], rank, agent->host, bytes, length);
}

static void take_ended(struct tb_host_agent *agent, struct tb_reader *r)
{
    struct tb_launch *launch = agent->launch;
    struct tb_ended ended;
    if (tb_ended_get(r, &ended) != TB_OK || ended.rank >= launch->placement.book.ranks ||
        (launch->ranks[ended.rank] & TB_RANK_ENDED))
        return;
    launch->ranks[ended.rank] |= TB_RANK_ENDED;
    /* A group that is gone may come again under its number as somebody else's. */
    uint32_t local = tb_address_book_local_index(&launch->placement.book, ended.rank);
    if (agent->pids != NULL && agent == tb_launch_agent_of(launch, ended.rank) && agent->pids[local] > 1 &&
        kill(-(pid_t)agent->pids[local], 0) < 0 && errno == ESRCH)
        agent->pids[local] = 0;
    tb_ending_rank(launch, &ended);
}

static void take_abort(struct tb_host_agent *agent, struct tb_reader *r)
{
    uint32_t rank = tb_get_u32(r), pid = tb_get_u32(r), code = tb_get_u32(r);
    size_t length = 0;
    const char *text = tb_get_bytes(r, &length);
    if (r->error == TB_OK && rank < agent->launch->placement.book.ranks)
        tb_ending_abort(agent->launch, rank, pid, code, text, (int)length);
}

static void take_text(struct tb_host_agent *agent, struct tb_reader *r, bool trouble)
{
    uint32_t code = trouble ? tb_get_u32(r) : 0;
    size_t length = 0;
    const char *text = tb_get_bytes(r, &length);
    if (r->error != TB_OK)
        return;
    if (trouble && agent->phase < TB_HOST_AGENT_READY) { /* it does not know its name in the job yet */
        char story[2600];
        snprintf(story, sizeof story, "host %s: %.*s", agent->target.host, (int)length, text);
        tb_launch_miss(agent, story);
    } else if (trouble) {
        tb_launch_fail(agent->launch, TB_VERDICT_CAUSE, (int)(code & 255), "%.*s", (int)length, text);
    } else {
        tb_launch_say(agent->launch, "%.*s", (int)length, text);
    }
}

void tb_host_agent_take_frame(struct tb_host_agent *agent, struct tb_control_frame *frame)
{
    struct tb_launch *launch = agent->launch;
    struct tb_reader *r = &frame->fields;
    switch (frame->kind) {
    case TB_CONTROL_READY:
        take_ready(agent, r);
        break;
    case TB_CONTROL_STARTED:
        take_started(agent, r);
        break;
    case TB_CONTROL_OUTPUT:
        take_output(agent, r);
        break;
    case TB_CONTROL_ENDED:
        take_ended(agent, r);
        break;
    case TB_CONTROL_ABORTED:
        take_abort(agent, r);
        break;
    case TB_CONTROL_TROUBLE:
        take_text(agent, r, true);
        break;
    case TB_CONTROL_NOTE:
        take_text(agent, r, false);
        break;
    case TB_CONTROL_WINDOW:
        tb_input_allow(launch, tb_get_u32(r));
        break;
    case TB_CONTROL_GONE:
        tb_host_agent_give_up(agent);
        break;
    case TB_CONTROL_IDLE:
        take_idle(agent);
        break;
    case TB_CONTROL_CALL:
        pass_call(launch, r);
        break;
    case TB_CONTROL_HEARD:
        tb_control_stream_heard(&agent->pipe, tb_get_u32(r));
        break;
    case TB_CONTROL_PROBED:
        tb_reach_survey_take(agent, r);
        break;
    case TB_CONTROL_ATTACH:
        tb_tunnel_take_attach(agent, r);
        break;
    case TB_CONTROL_TUNNEL:
        tb_tunnel_take(agent, r);
        break;
    case TB_CONTROL_TUNNEL_ERRORS:
        tb_tunnel_take_errors(agent, r);
        break;
    case TB_CONTROL_TUNNEL_END:
        tb_tunnel_take_end(agent, r);
        break;
    default:
        break;
    }
}
