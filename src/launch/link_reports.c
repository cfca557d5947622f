#include "launch/link_reports.h"

#include <stdio.h>
#include <stdlib.h>

#define TICK_NS    250000000u
#define FRESH_NS   2500000000u /* a report is repeated every second; an older one counts no more */
#define PERSIST_NS 2000000000u /* so long the other one must have been heard without an answer coming */
#define PAIRS_MOST 4096u

struct pair {
    struct tb_list node;
    uint32_t hosts[2];   /* the smaller number first */
    uint64_t told_at[2]; /* the last report of each; 0: none, or it gets answers */
    uint64_t since;      /* the first */
    bool said;
    char why[320];
};

static void tick(struct tb_timer *timer);

void tb_link_reports_open(struct tb_link_reports *reports, struct tb_loop *loop, struct tb_host_agents *agents,
                          const struct tb_link_reports_events *events)
{
    *reports = (struct tb_link_reports){.loop = loop, .agents = agents, .events = *events};
    tb_list_init(&reports->pairs);
    tb_timer_init(&reports->tick, tick);
}

static void pair_free(struct pair *pair)
{
    tb_list_remove(&pair->node);
    free(pair);
}

void tb_link_reports_stop(struct tb_link_reports *reports)
{
    struct pair *pair;
    tb_timer_clear(&reports->tick);
    TB_LIST_EACH (pair, &reports->pairs, struct pair, node)
        pair_free(pair);
}

static struct pair *pair_get(struct tb_link_reports *reports, const uint32_t *hosts, bool make)
{
    struct pair *pair;
    uint32_t count = 0;
    TB_LIST_EACH (pair, &reports->pairs, struct pair, node) {
        if (pair->hosts[0] == hosts[0] && pair->hosts[1] == hosts[1])
            return pair;
        count++;
    }
    pair = make && count < PAIRS_MOST ? calloc(1, sizeof *pair) : NULL;
    if (pair == NULL)
        return NULL;
    memcpy(pair->hosts, hosts, sizeof pair->hosts);
    tb_list_append(&reports->pairs, &pair->node);
    if (!tb_timer_is_set(&reports->tick))
        tb_timer_set(reports->loop, &reports->tick, TICK_NS);
    return pair;
}

void tb_link_reports_add(struct tb_link_reports *reports, uint32_t from, uint32_t to, bool silent, uint64_t time,
                         const char *why)
{
    uint32_t hosts[2] = {from < to ? from : to, from < to ? to : from};
    if (to >= reports->agents->count || from == to)
        return;
    struct pair *pair = pair_get(reports, hosts, silent);
    if (pair == NULL)
        return;
    uint64_t now = tb_loop_now(reports->loop), since = now > time ? now - time : 1;
    pair->told_at[from == hosts[1]] = silent ? now : 0;
    if (!silent)
        return;
    pair->since = pair->since == 0 || since < pair->since ? since : pair->since;
    snprintf(pair->why, sizeof pair->why, "%s", why);
}

static bool is_fresh(const struct pair *pair, int side, uint64_t now)
{
    return pair->told_at[side] != 0 && now - pair->told_at[side] < FRESH_NS;
}

/* Of a child of ours nothing is heard while it has nothing to say. */
static bool is_certain(const struct tb_link_reports *reports, const struct pair *pair, uint64_t now)
{
    const struct tb_host_agent *all = reports->agents->all;
    if (is_fresh(pair, 0, now) && is_fresh(pair, 1, now))
        return true;
    for (int side = 0; side < 2; side++) {
        const struct tb_host_agent *other = &all[pair->hosts[1 - side]];
        if (is_fresh(pair, side, now) && (other->target.local || other->heard > pair->since + PERSIST_NS))
            return true;
    }
    return false;
}

/* "hosts a and b of cluster c", or with the cluster of each. */
static void name(const struct tb_link_reports *reports, const struct pair *pair, char *text, size_t size)
{
    const struct tb_host_agent *a = &reports->agents->all[pair->hosts[0]], *b = &reports->agents->all[pair->hosts[1]];
    if (*a->cluster == 0 || *b->cluster == 0)
        snprintf(text, size, "hosts %s and %s", a->name, b->name);
    else if (strcmp(a->cluster, b->cluster) == 0)
        snprintf(text, size, "hosts %s and %s of cluster %s", a->name, b->name, a->cluster);
    else
        snprintf(text, size, "hosts %s (cluster %s) and %s (cluster %s)", a->name, a->cluster, b->name, b->cluster);
}

/* False: the job ends. */
static bool judge(struct tb_link_reports *reports, struct pair *pair, uint64_t now)
{
    const struct tb_link_reports_events *events = &reports->events;
    char who[800], text[1600];
    double silent = (double)(now - pair->since) / 1e9, patience = (double)tb_param.link_patience / 1e9;
    name(reports, pair, who, sizeof who);
    if (!is_fresh(pair, 0, now) && !is_fresh(pair, 1, now)) {
        snprintf(text, sizeof text, "%s reach each other again after %.0f s", who, silent);
        if (pair->said)
            events->say(events->context, text);
        pair_free(pair);
        return true;
    }
    if (!pair->said && is_certain(reports, pair, now)) {
        pair->said = true;
        snprintf(text, sizeof text,
                 "%s cannot reach each other, though the launcher reaches both (%s); waiting for up to %.0f s (--set "
                 "link_patience=TIME)",
                 who, pair->why, patience);
        events->say(events->context, text);
    }
    if (!pair->said || now - pair->since <= tb_param.link_patience)
        return true;
    snprintf(text, sizeof text, "%s have not reached each other for %.0f s: %s (--set link_patience=TIME waits longer)",
             who, silent, pair->why);
    events->fail(events->context, text);
    return false;
}

static void tick(struct tb_timer *timer)
{
    struct tb_link_reports *reports = TB_CONTAINER(timer, struct tb_link_reports, tick);
    uint64_t now = tb_loop_now(reports->loop);
    struct pair *pair;
    TB_LIST_EACH (pair, &reports->pairs, struct pair, node) {
        const struct tb_host_agent *a = &reports->agents->all[pair->hosts[0]];
        const struct tb_host_agent *b = &reports->agents->all[pair->hosts[1]];
        if (!tb_host_agent_is_ready(a) || !tb_host_agent_is_ready(b))
            pair_free(pair); /* that is known already, and told */
        else if (!judge(reports, pair, now))
            return;
    }
    if (!tb_list_empty(&reports->pairs))
        tb_timer_set(reports->loop, timer, TICK_NS);
}
