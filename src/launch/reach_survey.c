#include "launch/reach_survey.h"

#include <stdlib.h>
#include <string.h>

#define STORIES_MOST 4096u

static void overdue(struct tb_timer *timer);

void tb_reach_survey_init(struct tb_reach_survey *survey, struct tb_loop *loop,
                          const struct tb_reach_survey_events *events)
{
    *survey = (struct tb_reach_survey){.loop = loop, .events = *events};
    tb_timer_init(&survey->timer, overdue);
}

static void log_results(const struct tb_reach_survey *survey)
{
    const struct tb_reach_results *results = &survey->results;
    uint32_t n = results->count, no = 0, yes = 0;
    for (size_t i = 0; i < (size_t)n * n; i++) {
        no += results->results[i] == TB_REACH_NO;
        yes += results->results[i] == TB_REACH_YES;
        if (results->stories[i] != NULL)
            tb_log(TB_LOG_DEBUG, "launch", "host %s cannot connect to host %s: %s",
                   survey->book->hosts[results->hosts[i / n]].name, survey->book->hosts[results->hosts[i % n]].name,
                   results->stories[i]);
    }
    tb_log(TB_LOG_INFO, "launch", "%u hosts have tried whom they reach: %u pairs do, %u do not, found out in %.3g s", n,
           yes, no, (double)(tb_loop_now(survey->loop) - survey->began) / 1e9);
}

static void finish(struct tb_reach_survey *survey)
{
    log_results(survey);
    tb_timer_clear(&survey->timer);
    survey->running = false;
    survey->events.finished(survey->events.context);
}

/* Whoever has not answered by now has reached nobody. */
static void overdue(struct tb_timer *timer)
{
    struct tb_reach_survey *survey = TB_CONTAINER(timer, struct tb_reach_survey, timer);
    if (survey->running)
        finish(survey);
}

static int ask(struct tb_reach_survey *survey, uint32_t row, struct tb_host_agents *agents)
{
    const struct tb_reach_results *all = &survey->results;
    const uint8_t *results = all->results + (size_t)row * all->count;
    struct tb_control_stream *control = &agents->all[all->hosts[row]].control;
    uint32_t count = 0;
    for (uint32_t i = 0; i < all->count; i++)
        count += results[i] != TB_REACH_SAID;
    if (count == 0)
        return TB_OK;
    struct tb_writer *w = tb_control_stream_begin(control, TB_CONTROL_PROBE);
    tb_put_u64(w, tb_param.try_timeout - tb_param.try_timeout / 8); /* so that the answer still comes in time */
    tb_put_u32(w, count);
    for (uint32_t i = 0; i < all->count; i++) {
        const struct tb_host *host = &survey->book->hosts[all->hosts[i]];
        if (results[i] == TB_REACH_SAID)
            continue;
        tb_put_u32(w, all->hosts[i]);
        tb_put_u32(w, host->address_count);
        for (uint32_t k = 0; k < host->address_count; k++)
            tb_address_put(w, &host->addresses[k]);
    }
    survey->asked[row] = true;
    survey->asked_count++;
    return tb_control_stream_end(control);
}

int tb_reach_survey_begin(struct tb_reach_survey *survey, const struct tb_grid_plan *plan,
                          const struct tb_placement *placement, struct tb_host_agents *agents)
{
    survey->book = &placement->book;
    int rc = tb_grid_plan_ask(plan, placement, &survey->results);
    if (rc != TB_OK || survey->results.count == 0)
        return rc;
    survey->asked = calloc(survey->results.count, sizeof *survey->asked);
    if (survey->asked == NULL)
        rc = tb_error(TB_ERR_MEMORY, "no memory for %u hosts", survey->results.count);
    for (uint32_t i = 0; i < survey->results.count && rc == TB_OK; i++)
        rc = ask(survey, i, agents);
    if (rc != TB_OK)
        return rc;
    survey->running = true;
    survey->began = tb_loop_now(survey->loop);
    tb_timer_set(survey->loop, &survey->timer, tb_param.try_timeout);
    return TB_OK;
}

static void note_answer(struct tb_reach_results *results, size_t at, bool reached, const char *story, size_t length)
{
    if (results->results[at] != TB_REACH_NO)
        return;
    if (reached) {
        results->results[at] = TB_REACH_YES;
    } else if (results->stories[at] == NULL && results->story_count < STORIES_MOST) {
        results->stories[at] = strndup(story, length);
        results->story_count++;
    }
}

void tb_reach_survey_take(struct tb_reach_survey *survey, uint32_t host, struct tb_reader *r)
{
    struct tb_reach_results *results = &survey->results;
    uint32_t row, column, count = tb_get_u32(r);
    if (!survey->running || !tb_reach_results_find(results, host, &row) || !survey->asked[row])
        return;
    for (uint32_t i = 0; i < count && r->error == TB_OK; i++) {
        uint32_t other = tb_get_u32(r);
        bool reached = tb_get_u8(r) != 0;
        size_t length = 0;
        const char *story = tb_get_bytes(r, &length);
        if (r->error == TB_OK && tb_reach_results_find(results, other, &column))
            note_answer(results, (size_t)row * results->count + column, reached, story, length);
    }
    survey->asked[row] = false;
    if (--survey->asked_count == 0)
        finish(survey);
}

void tb_reach_survey_cancel(struct tb_reach_survey *survey)
{
    tb_timer_clear(&survey->timer);
}

void tb_reach_survey_close(struct tb_reach_survey *survey)
{
    tb_timer_clear(&survey->timer);
    tb_reach_results_close(&survey->results);
    free(survey->asked);
    survey->asked = NULL;
    survey->asked_count = 0;
    survey->running = false;
}
