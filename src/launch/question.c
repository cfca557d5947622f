/* Finding out who can reach whom, where the grid file only supposes it: when all agents are there and before they are
 * told their ways, they try. */
#include "launch/state.h"

#include <stdlib.h>
#include <string.h>

#define STORIES_MOST 4096u

static void log_findings(const struct tb_launch *launch)
{
    const struct tb_findings *findings = &launch->findings;
    uint32_t n = findings->count, no = 0, yes = 0;
    for (size_t i = 0; i < (size_t)n * n; i++) {
        no += findings->results[i] == TB_FINDING_NO;
        yes += findings->results[i] == TB_FINDING_YES;
        if (findings->stories[i] != NULL)
            tb_log(TB_LOG_DEBUG, "launch", "host %s cannot connect to host %s: %s",
                   launch->placement.book.hosts[findings->hosts[i / n]].name,
                   launch->placement.book.hosts[findings->hosts[i % n]].name, findings->stories[i]);
    }
    tb_log(TB_LOG_INFO, "launch", "%u hosts have tried whom they reach: %u pairs do, %u do not, found out in %.3g s", n,
           yes, no, (double)(tb_clock_now_real() - launch->asked) / 1e9);
}

static void finish(struct tb_launch *launch)
{
    log_findings(launch);
    tb_timer_clear(&launch->question_timer);
    launch->trying = false;
    if (launch->ending)
        return;
    int rc = tb_realm_learn(launch->realm, &launch->placement, &launch->findings);
    if (rc == TB_OK) {
        tb_launch_send_books(launch);
    } else if (rc == TB_ERR_UNSUPPORTED && !launch->wide && tb_realm_has_more(launch->realm)) {
        tb_log(TB_LOG_INFO, "launch", "hosts without ranks are taken in: %s", tb_error_story());
        launch->wide = true;
        tb_launch_repeat(launch);
    } else {
        tb_launch_fail(launch, TB_VERDICT_CAUSE, 1, "%s", tb_error_story());
    }
}

/* Whoever has not answered by now has reached nobody. */
void tb_question_overdue(struct tb_timer *timer)
{
    struct tb_launch *launch = TB_CONTAINER(timer, struct tb_launch, question_timer);
    if (launch->trying)
        finish(launch);
}

static int ask(struct tb_launch *launch, uint32_t row)
{
    const struct tb_findings *findings = &launch->findings;
    const uint8_t *results = findings->results + (size_t)row * findings->count;
    struct tb_guest *guest = &launch->guests[findings->hosts[row]];
    uint32_t count = 0;
    for (uint32_t i = 0; i < findings->count; i++)
        count += results[i] != TB_FINDING_SAID;
    if (count == 0)
        return TB_OK;
    struct tb_writer *w = tb_pipe_begin(&guest->pipe, TB_CONTROL_TRY);
    tb_put_u64(w, tb_param.try_timeout - tb_param.try_timeout / 8); /* so that the answer still comes in time */
    tb_put_u32(w, count);
    for (uint32_t i = 0; i < findings->count; i++) {
        const struct tb_host *host = &launch->placement.book.hosts[findings->hosts[i]];
        if (results[i] == TB_FINDING_SAID)
            continue;
        tb_put_u32(w, findings->hosts[i]);
        tb_put_u32(w, host->address_count);
        for (uint32_t k = 0; k < host->address_count; k++)
            tb_address_put(w, &host->addresses[k]);
    }
    guest->asked = true;
    launch->asked_count++;
    return tb_pipe_end(&guest->pipe);
}

bool tb_question_begin(struct tb_launch *launch)
{
    struct tb_findings *findings = &launch->findings;
    if (launch->realm == NULL || tb_param.try_timeout == 0)
        return false;
    int rc = tb_realm_ask(launch->realm, &launch->placement, findings);
    if (rc == TB_OK && findings->count == 0)
        return false;
    for (uint32_t i = 0; i < findings->count && rc == TB_OK; i++)
        rc = ask(launch, i);
    if (rc != TB_OK) {
        tb_launch_fail(launch, TB_VERDICT_CAUSE, 1, "cannot ask who reaches whom: %s", tb_error_story());
        return true;
    }
    launch->trying = true;
    launch->asked = tb_clock_now_real();
    tb_timer_set(&launch->loop, &launch->question_timer, tb_param.try_timeout);
    return true;
}

void tb_question_take(struct tb_guest *guest, struct tb_reader *r)
{
    struct tb_launch *launch = guest->launch;
    struct tb_findings *findings = &launch->findings;
    uint32_t row, column, count = tb_get_u32(r);
    if (!launch->trying || !guest->asked || !tb_findings_find(findings, guest->host, &row))
        return;
    for (uint32_t i = 0; i < count && r->error == TB_OK; i++) {
        uint32_t host = tb_get_u32(r);
        bool reached = tb_get_u8(r) != 0;
        size_t length = 0;
        const char *story = tb_get_bytes(r, &length);
        if (r->error != TB_OK || !tb_findings_find(findings, host, &column))
            continue;
        size_t at = (size_t)row * findings->count + column;
        if (findings->results[at] == TB_FINDING_NO && reached)
            findings->results[at] = TB_FINDING_YES;
        else if (findings->results[at] == TB_FINDING_NO && findings->stories[at] == NULL &&
                 findings->story_count < STORIES_MOST) {
            findings->stories[at] = strndup(story, length);
            findings->story_count++;
        }
    }
    guest->asked = false;
    if (--launch->asked_count == 0)
        finish(launch);
}
