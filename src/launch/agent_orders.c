#include "launch/agent_orders.h"

#include <stdlib.h>

#define STAND_INS_MOST 16u

/* Ranks that are bound have seats, which depend on who they are. */
static int list_runs(struct tb_setup *setup, const struct tb_address_book *book)
{
    if (!tb_setup_binds(setup))
        return TB_OK;
    uint32_t count = 0;
    for (uint32_t i = 0; i < book->range_count; i++)
        count += book->ranges[i].host == setup->host;
    setup->runs = calloc(count + 1u, sizeof *setup->runs);
    if (setup->runs == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for the ranks of a host");
    for (uint32_t i = 0; i < book->range_count; i++)
        if (book->ranges[i].host == setup->host)
            setup->runs[setup->run_count++] =
                (struct tb_rank_run){.first = book->ranges[i].first_rank, .count = book->ranges[i].count};
    return TB_OK;
}

int tb_agent_orders_setup(struct tb_host_agent *agent, const struct tb_setup *setup, const struct tb_grid_plan *plan,
                          const struct tb_placement *placement)
{
    struct tb_setup own = *setup;
    own.host = agent->host;
    int rc = list_runs(&own, &placement->book);
    if (rc != TB_OK)
        return rc;
    bool stays = plan != NULL || (setup->host_count > 1 && !tb_param_connects_ranks());
    own.flags |= (agent->target.local ? TB_SETUP_LOCAL : 0) | (plan != NULL ? TB_SETUP_GRID : 0) |
                 (stays ? TB_SETUP_STAYS : 0) | (tb_placement_is_spare(placement, agent->host) ? TB_SETUP_SPARE : 0);
    if (plan != NULL)
        rc = tb_grid_plan_setup(plan, placement, agent->host, &own);
    if (rc == TB_OK)
        rc = tb_setup_encode(&own, tb_control_stream_begin(&agent->control, TB_CONTROL_SETUP));
    if (plan != NULL)
        tb_grid_plan_setup_close(&own);
    free(own.runs);
    return rc == TB_OK ? tb_control_stream_end(&agent->control) : rc;
}

static int send_routes(struct tb_host_agent *agent, const struct tb_grid_plan *plan,
                       const struct tb_placement *placement)
{
    struct tb_host_routes routes;
    int rc = tb_grid_plan_routes(plan, placement, agent->host, &routes);
    if (rc != TB_OK)
        return rc;
    rc = tb_host_routes_encode(&routes, tb_control_stream_begin(&agent->control, TB_CONTROL_ROUTES));
    tb_host_routes_close(&routes);
    return rc == TB_OK ? tb_control_stream_end(&agent->control) : rc;
}

int tb_agent_orders_routes(struct tb_host_agents *agents, const struct tb_grid_plan *plan,
                           const struct tb_placement *placement)
{
    int first = TB_OK;
    for (uint32_t i = 0; i < agents->count && plan != NULL; i++)
        if (tb_host_agent_is_ready(&agents->all[i])) {
            int rc = send_routes(&agents->all[i], plan, placement);
            if (rc != TB_OK && first == TB_OK)
                first = tb_error(rc, "cannot tell host %s its ways to the others: %s", agents->all[i].target.host,
                                 tb_error_story());
        }
    return first;
}

int tb_agent_orders_address_book(struct tb_host_agent *agent, const struct tb_placement *placement)
{
    int rc =
        tb_address_book_encode(&placement->book, tb_control_stream_begin(&agent->control, TB_CONTROL_ADDRESS_BOOK));
    return rc == TB_OK ? tb_control_stream_end(&agent->control) : rc;
}

/* Unless it is there, or there are enough. */
static uint32_t add_stand_in(uint32_t *stand_ins, uint32_t count, uint32_t host)
{
    for (uint32_t i = 0; i < count; i++)
        if (stand_ins[i] == host)
            return count;
    if (count < STAND_INS_MOST)
        stand_ins[count++] = host;
    return count;
}

/* Whoever has come by another agent may come by the same one again, if only that stream breaks. */
void tb_agent_orders_stand_ins(struct tb_host_agent *agent, const struct tb_grid_plan *plan,
                               const struct tb_placement *placement)
{
    uint32_t stand_ins[STAND_INS_MOST];
    if (plan == NULL || agent->target.local || !tb_host_agent_is_ready(agent))
        return;
    uint32_t count = tb_grid_plan_stand_ins(plan, placement, agent->host, STAND_INS_MOST, stand_ins);
    if (agent->adopted && agent->parent->phase < TB_HOST_AGENT_GONE)
        count = add_stand_in(stand_ins, count, agent->parent->host);
    struct tb_writer *w = tb_control_stream_begin(&agent->control, TB_CONTROL_STAND_INS);
    tb_put_u32(w, count);
    for (uint32_t i = 0; i < count; i++)
        tb_put_u32(w, stand_ins[i]);
    tb_put_u8(w, agent->parent == NULL);
    tb_control_stream_end(&agent->control);
}

void tb_agent_orders_stand_ins_all(struct tb_host_agents *agents, const struct tb_grid_plan *plan,
                                   const struct tb_placement *placement)
{
    for (uint32_t i = 0; i < agents->count; i++)
        tb_agent_orders_stand_ins(&agents->all[i], plan, placement);
}

void tb_agent_orders_start(struct tb_host_agents *agents, const struct tb_grid_plan *plan)
{
    for (uint32_t i = 0; i < agents->count && plan != NULL; i++)
        if (tb_host_agent_is_ready(&agents->all[i]))
            tb_control_stream_send(&agents->all[i].control, TB_CONTROL_START);
}

void tb_agent_orders_call(struct tb_host_agents *agents, uint32_t host, struct tb_reader *rest)
{
    struct tb_host_agent *agent = host < agents->count ? &agents->all[host] : NULL;
    if (agent == NULL || !tb_host_agent_is_ready(agent))
        return;
    struct tb_writer *w = tb_control_stream_begin(&agent->control, TB_CONTROL_CALL);
    tb_put_u32(w, host);
    while (rest->length - rest->at >= 4)
        tb_put_u32(w, tb_get_u32(rest));
    tb_control_stream_end(&agent->control);
}

void tb_agent_orders_lost_to(struct tb_host_agent *agent, struct tb_proc proc, uint32_t count, const char *why)
{
    if (!tb_host_agent_is_ready(agent))
        return;
    struct tb_writer *w = tb_control_stream_begin(&agent->control, TB_CONTROL_LOST);
    tb_put_u32(w, proc.job);
    tb_put_u32(w, proc.index);
    tb_put_u32(w, count);
    tb_put_text(w, why);
    tb_control_stream_end(&agent->control);
}

void tb_agent_orders_lost(struct tb_host_agents *agents, struct tb_proc proc, uint32_t count, const char *why)
{
    for (uint32_t i = 0; i < agents->count; i++)
        tb_agent_orders_lost_to(&agents->all[i], proc, count, why);
}

void tb_agent_orders_end_rank(struct tb_host_agent *agent, uint32_t rank)
{
    if (!tb_host_agent_is_ready(agent))
        return;
    tb_put_u32(tb_control_stream_begin(&agent->control, TB_CONTROL_RANK_END), rank);
    tb_control_stream_end(&agent->control);
}

void tb_agent_orders_end_world(struct tb_host_agents *agents, uint32_t first)
{
    for (uint32_t i = 0; i < agents->count; i++) {
        struct tb_host_agent *agent = &agents->all[i];
        if (!tb_host_agent_is_ready(agent))
            continue;
        struct tb_writer *w = tb_control_stream_begin(&agent->control, TB_CONTROL_WORLD_END);
        tb_put_u32(w, first);
        tb_put_u8(w, true);
        tb_control_stream_end(&agent->control);
    }
}

void tb_agent_orders_reply(struct tb_host_agent *agent, uint32_t rank, const struct tb_agent_answer *answer)
{
    if (!tb_host_agent_is_ready(agent))
        return;
    struct tb_writer *w = tb_control_stream_begin(&agent->control, TB_CONTROL_ANSWER);
    tb_put_u32(w, rank);
    tb_put_u32(w, answer->number);
    tb_put_u32(w, (uint32_t)answer->error);
    tb_put_text(w, answer->text);
    tb_put_bytes(w, answer->bytes, answer->length);
    tb_control_stream_end(&agent->control);
}

void tb_agent_orders_answer(struct tb_host_agents *agents, const struct tb_address_book *book, uint32_t rank,
                            const struct tb_agent_answer *answer)
{
    tb_agent_orders_reply(&agents->all[tb_address_book_host_of(book, rank)], rank, answer);
}

void tb_agent_orders_input(struct tb_host_agent *agent, const char *bytes, size_t length)
{
    if (agent->phase >= TB_HOST_AGENT_GONE)
        return;
    tb_put_bytes(tb_control_stream_begin(&agent->control, TB_CONTROL_INPUT), bytes, length);
    tb_control_stream_end(&agent->control);
}
