/* Finding out who can reach whom, where the grid file only supposes it: when all agents are there and before they are
 * told their ways, they try. */
#include "launch/state.h"

#include <stdlib.h>
#include <string.h>

#define STORIES_MOST 4096u

static void log_results(const struct tb_launch *launch)
{
    const struct tb_reach_results *reach_results = &launch->results;
    uint32_t n = reach_results->count, no = 0, yes = 0;
    for (size_t i = 0; i < (size_t)n * n; i++) {
        no += reach_results->results[i] == TB_REACH_RESULT_NO;
        yes += reach_results->results[i] == TB_REACH_RESULT_YES;
        if (reach_results->stories[i] != NULL)
            tb_log(TB_LOG_DEBUG, "launch", "host %s cannot connect to host %s: %s",
                   launch->placement.book.hosts[reach_results->hosts[i / n]].name,
                   launch->placement.book.hosts[reach_results->hosts[i % n]].name, reach_results->stories[i]);
    }
    tb_log(TB_LOG_INFO, "launch", "%u hosts have tried whom they reach: %u pairs do, %u do not, found out in %.3g s", n,
           yes, no, (double)(tb_clock_now_real() - launch->asked) / 1e9);
}

static void finish(struct tb_launch *launch)
{
    log_results(launch);
    tb_timer_clear(&launch->survey_timer);
    launch->trying = false;
    if (launch->ending)
        return;
    int rc = tb_grid_plan_learn(launch->plan, &launch->placement, &launch->results);
    if (rc == TB_OK) {
        tb_launch_send_books(launch);
    } else if (rc == TB_ERR_UNSUPPORTED && !launch->wide && tb_grid_plan_has_more(launch->plan)) {
        tb_log(TB_LOG_INFO, "launch", "hosts without ranks are taken in: %s", tb_error_story());
        launch->wide = true;
        tb_launch_repeat(launch);
    } else {
        tb_launch_fail(launch, TB_VERDICT_CAUSE, 1, "%s", tb_error_story());
    }
}

/* Whoever has not answered by now has reached nobody. */
void tb_reach_survey_overdue(struct tb_timer *timer)
{
    struct tb_launch *launch = TB_CONTAINER(timer, struct tb_launch, survey_timer);
    if (launch->trying)
        finish(launch);
}

static int ask(struct tb_launch *launch, uint32_t row)
{
    const struct tb_reach_results *reach_results = &launch->results;
    const uint8_t *results = reach_results->results + (size_t)row * reach_results->count;
    struct tb_host_agent *agent = &launch->agents[reach_results->hosts[row]];
    uint32_t count = 0;
    for (uint32_t i = 0; i < reach_results->count; i++)
        count += results[i] != TB_REACH_RESULT_SAID;
    if (count == 0)
        return TB_OK;
    struct tb_writer *w = tb_control_stream_begin(&agent->pipe, TB_CONTROL_PROBE);
    tb_put_u64(w, tb_param.try_timeout - tb_param.try_timeout / 8); /* so that the answer still comes in time */
    tb_put_u32(w, count);
    for (uint32_t i = 0; i < reach_results->count; i++) {
        const struct tb_host *host = &launch->placement.book.hosts[reach_results->hosts[i]];
        if (results[i] == TB_REACH_RESULT_SAID)
            continue;
        tb_put_u32(w, reach_results->hosts[i]);
        tb_put_u32(w, host->address_count);
        for (uint32_t k = 0; k < host->address_count; k++)
            tb_address_put(w, &host->addresses[k]);
    }
    agent->asked = true;
    launch->asked_count++;
    return tb_control_stream_end(&agent->pipe);
}

bool tb_reach_survey_begin(struct tb_launch *launch)
{
    struct tb_reach_results *reach_results = &launch->results;
    if (launch->plan == NULL || tb_param.try_timeout == 0)
        return false;
    int rc = tb_grid_plan_ask(launch->plan, &launch->placement, reach_results);
    if (rc == TB_OK && reach_results->count == 0)
        return false;
    for (uint32_t i = 0; i < reach_results->count && rc == TB_OK; i++)
        rc = ask(launch, i);
    if (rc != TB_OK) {
        tb_launch_fail(launch, TB_VERDICT_CAUSE, 1, "cannot ask who reaches whom: %s", tb_error_story());
        return true;
    }
    launch->trying = true;
    launch->asked = tb_clock_now_real();
    tb_timer_set(&launch->loop, &launch->survey_timer, tb_param.try_timeout);
    return true;
}

void tb_reach_survey_take(struct tb_host_agent *agent, struct tb_reader *r)
{
    struct tb_launch *launch = agent->launch;
    struct tb_reach_results *reach_results = &launch->results;
    uint32_t row, column, count = tb_get_u32(r);
    if (!launch->trying || !agent->asked || !tb_reach_results_find(reach_results, agent->host, &row))
        return;
    for (uint32_t i = 0; i < count && r->error == TB_OK; i++) {
        uint32_t host = tb_get_u32(r);
        bool reached = tb_get_u8(r) != 0;
        size_t length = 0;
        const char *story = tb_get_bytes(r, &length);
        if (r->error != TB_OK || !tb_reach_results_find(reach_results, host, &column))
            continue;
        size_t at = (size_t)row * reach_results->count + column;
        if (reach_results->results[at] == TB_REACH_RESULT_NO && reached)
            reach_results->results[at] = TB_REACH_RESULT_YES;
        else if (reach_results->results[at] == TB_REACH_RESULT_NO && reach_results->stories[at] == NULL &&
                 reach_results->story_count < STORIES_MOST) {
            reach_results->stories[at] = strndup(story, length);
            reach_results->story_count++;
        }
    }
    agent->asked = false;
    if (--launch->asked_count == 0)
        finish(launch);
}
