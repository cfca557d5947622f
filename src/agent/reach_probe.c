#include "agent/reach_probe.h"

#include "agent/attempt.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define PROBES_MOST   256u /* at once */
#define TARGETS_LIMIT 8192u
#define WAVES         3u /* connections to an address that does not answer, since something may be lost on the way */
#define STORY_BYTES   120

struct tb_reach_target {
    uint32_t host, address_count;
    struct tb_address addresses[TB_HOST_ADDRESS_LIMIT];
    uint32_t failed; /* a bit for each address that will not answer */
    bool done, reached;
    char story[STORY_BYTES];
};

/* One connection to one address. */
struct probe {
    struct tb_list node;
    struct tb_attempt attempt;
    struct tb_reach_probe *all;
    struct tb_reach_target *target;
    uint32_t address;
};

static void end_probe(struct probe *probe)
{
    tb_attempt_close(&probe->attempt);
    tb_list_remove(&probe->node);
    probe->all->probe_count--;
    free(probe);
}

void tb_reach_probe_close(struct tb_reach_probe *all)
{
    struct probe *probe;
    TB_LIST_EACH (probe, &all->probes, struct probe, node)
        end_probe(probe);
    tb_timer_clear(&all->wave);
    tb_timer_clear(&all->overdue);
    free(all->targets);
    all->targets = NULL;
}

/* Each host has an answer, or there is no more time. */
static void answer(struct tb_reach_probe *all)
{
    struct tb_reach_report *reports = calloc(all->target_count + 1u, sizeof *reports);
    uint32_t count = all->target_count;
    for (uint32_t i = 0; reports != NULL && i < count; i++) {
        const struct tb_reach_target *target = &all->targets[i];
        struct tb_reach_report *report = &reports[i];
        report->host = target->host;
        report->reached = target->reached;
        if (!target->done)
            snprintf(report->story, sizeof report->story, "%s%sno answer within %.3g s", target->story,
                     *target->story != 0 ? "; " : "", (double)all->patience / 1e9);
        else if (!target->reached)
            snprintf(report->story, sizeof report->story, "%s", target->story);
    }
    tb_reach_probe_close(all);
    if (reports != NULL) /* else the launcher does not wait for ever */
        all->answered(all->context, reports, count);
    free(reports);
}

static void finish_target(struct tb_reach_probe *all, struct tb_reach_target *target, bool reached)
{
    struct probe *probe;
    target->done = true;
    target->reached = reached;
    all->open_count--;
    TB_LIST_EACH (probe, &all->probes, struct probe, node)
        if (probe->target == target)
            end_probe(probe);
}

/* Nobody whom we look for answers at this address. */
static void fail_address(struct tb_reach_probe *all, struct tb_reach_target *target, uint32_t address, const char *why)
{
    char text[80];
    size_t used = strlen(target->story);
    if (target->failed & 1u << address)
        return;
    target->failed |= 1u << address;
    tb_address_print(&target->addresses[address], text, sizeof text);
    snprintf(target->story + used, sizeof target->story - used, "%s%s: %s", used > 0 ? "; " : "", text, why);
    if (target->failed == (1u << target->address_count) - 1)
        finish_target(all, target, false);
}

static void pump(struct tb_reach_probe *all);

/* Why an attempt that ended like this was none. */
static const char *explain(const struct tb_attempt *attempt, enum tb_attempt_event event)
{
    switch (event) {
    case TB_ATTEMPT_FAILED:
    case TB_ATTEMPT_DROPPED:
        return strerror(attempt->error);
    case TB_ATTEMPT_CLOSED:
        return "closed the connection without a word: no agent of this job";
    case TB_ATTEMPT_REFUSED:
        return "the agent of another host";
    case TB_ATTEMPT_TROUBLE:
        return tb_error_story();
    default:
        return "no agent of this job";
    }
}

static void attempt_event(struct tb_attempt *attempt, enum tb_attempt_event event)
{
    struct probe *probe = TB_CONTAINER(attempt, struct probe, attempt);
    struct tb_reach_probe *all = probe->all;
    struct tb_reach_target *target = probe->target;
    uint32_t address = probe->address;
    const char *why = explain(attempt, event);
    end_probe(probe);
    if (event == TB_ATTEMPT_WELCOMED)
        finish_target(all, target, true);
    else
        fail_address(all, target, address, why);
    pump(all);
}

static void start_probe(struct tb_reach_probe *all, struct tb_reach_target *target, uint32_t address)
{
    const struct tb_member *member = all->member;
    struct probe *probe = calloc(1, sizeof *probe);
    if (probe == NULL) {
        fail_address(all, target, address, strerror(ENOMEM));
        return;
    }
    probe->attempt = (struct tb_attempt){.source = member->self,
                                         .destination = {member->self.job, TB_PROC_AGENT | target->host},
                                         .stream = TB_STREAM_PROBE,
                                         .event = attempt_event};
    if (tb_attempt_open(&probe->attempt, member, &target->addresses[address]) != TB_OK) {
        const char *why = strerror(errno);
        free(probe);
        fail_address(all, target, address, why);
        return;
    }
    probe->all = all;
    probe->target = target;
    probe->address = address;
    tb_list_append(&all->probes, &probe->node);
    all->probe_count++;
}

/* As many as may be; may be the end of it. */
static void pump(struct tb_reach_probe *all)
{
    while (all->probe_count < PROBES_MOST && all->next_target < all->target_count) {
        struct tb_reach_target *target = &all->targets[all->next_target];
        uint32_t address = all->next_address++;
        if (target->done || address >= target->address_count) {
            all->next_target++;
            all->next_address = 0;
        } else if (!(target->failed & 1u << address)) {
            start_probe(all, target, address);
        }
    }
    if (all->open_count == 0)
        answer(all);
}

static void wave_due(struct tb_timer *timer)
{
    struct tb_reach_probe *all = TB_CONTAINER(timer, struct tb_reach_probe, wave);
    if (++all->waves < WAVES)
        tb_timer_set(all->member->loop, timer, all->patience / (WAVES + 1));
    if (all->next_target == all->target_count)
        all->next_target = all->next_address = 0;
    pump(all);
}

static void all_overdue(struct tb_timer *timer)
{
    answer(TB_CONTAINER(timer, struct tb_reach_probe, overdue));
}

static int take_targets(struct tb_reach_probe *all, struct tb_reader *r)
{
    all->patience = tb_get_u64(r);
    uint32_t count = tb_get_u32(r);
    if (r->error != TB_OK || count > TARGETS_LIMIT)
        return TB_ERR_PROTOCOL;
    all->targets = calloc(count + 1u, sizeof *all->targets);
    if (all->targets == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for %u hosts", count);
    for (uint32_t i = 0; i < count && r->error == TB_OK; i++) {
        struct tb_reach_target *target = &all->targets[i];
        target->host = tb_get_u32(r);
        uint32_t addresses = tb_get_u32(r);
        if (addresses > TB_HOST_ADDRESS_LIMIT)
            return TB_ERR_PROTOCOL;
        for (uint32_t k = 0; k < addresses && r->error == TB_OK; k++) {
            tb_address_get(r, &target->addresses[k]);
            tb_address_fix_scope(&all->member->addresses, &target->addresses[k]);
        }
        target->address_count = addresses;
        target->done = addresses == 0;
        all->open_count += addresses > 0;
        if (target->done)
            snprintf(target->story, sizeof target->story, "it has told no address");
    }
    all->target_count = count;
    return tb_reader_end(r);
}

void tb_reach_probe_open(struct tb_reach_probe *all, const struct tb_member *member, void *context,
                         void (*answered)(void *context, const struct tb_reach_report *reports, uint32_t count))
{
    *all = (struct tb_reach_probe){.member = member, .context = context, .answered = answered};
    tb_list_init(&all->probes);
    tb_timer_init(&all->wave, wave_due);
    tb_timer_init(&all->overdue, all_overdue);
}

void tb_reach_probe_begin(struct tb_reach_probe *all, struct tb_reader *r)
{
    if (all->targets != NULL)
        return;
    all->target_count = all->open_count = all->waves = all->next_target = all->next_address = 0;
    if (take_targets(all, r) != TB_OK) {
        tb_reach_probe_close(all);
        return;
    }
    tb_timer_set(all->member->loop, &all->overdue, all->patience);
    tb_timer_set(all->member->loop, &all->wave, all->patience / (WAVES + 1));
    pump(all);
}
