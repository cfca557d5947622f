#include "agent/stuck_watch.h"

#include <stdio.h>
#include <stdlib.h>

#define TICK_NS  500000000u   /* while somebody complains */
#define PROOF_NS 1500000000u  /* so long a complaint must hold: it takes a while to notice that a host is silent */
#define TELL_NS  1000000000u  /* how often the launcher is told */
#define STALE_NS 12000000000u /* so long a complaint holds that is not repeated */

/* One rank's, about its connections with another. */
struct stuck_pair {
    struct tb_list node;
    uint32_t here, there;
    uint64_t since; /* the first time that it was said of a host that answers; 0: never */
    uint64_t at;    /* the last time */
    bool again;     /* it was said just now */
};

struct stuck_host {
    struct tb_list node;
    uint32_t host;
    struct tb_list pairs;
    uint64_t told; /* the launcher, the last time; 0: never */
};

static uint64_t now_of(const struct tb_stuck_watch *watch)
{
    return tb_loop_now(watch->member->loop);
}

/* NULL: no memory. */
static struct stuck_host *get_host(struct tb_stuck_watch *watch, uint32_t host)
{
    struct stuck_host *h;
    TB_LIST_EACH (h, &watch->hosts, struct stuck_host, node)
        if (h->host == host)
            return h;
    h = calloc(1, sizeof *h);
    if (h == NULL)
        return NULL;
    h->host = host;
    tb_list_init(&h->pairs);
    tb_list_append(&watch->hosts, &h->node);
    return h;
}

static struct stuck_pair *get_pair(struct stuck_host *h, uint32_t here, uint32_t there)
{
    struct stuck_pair *pair;
    TB_LIST_EACH (pair, &h->pairs, struct stuck_pair, node)
        if (pair->here == here && pair->there == there)
            return pair;
    pair = calloc(1, sizeof *pair);
    if (pair == NULL)
        return NULL;
    pair->here = here;
    pair->there = there;
    tb_list_append(&h->pairs, &pair->node);
    return pair;
}

static void drop_pair(struct stuck_pair *pair)
{
    tb_list_remove(&pair->node);
    free(pair);
}

/* Hosts of which nobody complains any more. */
static void drop_hosts(struct tb_stuck_watch *watch)
{
    struct stuck_host *h;
    TB_LIST_EACH (h, &watch->hosts, struct stuck_host, node) {
        if (!tb_list_empty(&h->pairs))
            continue;
        if (h->told != 0)
            watch->events.report(watch->events.context, h->host, false, 0, "");
        tb_list_remove(&h->node);
        free(h);
    }
}

static void complain(struct tb_stuck_watch *watch, uint32_t rank, uint32_t other, uint64_t tried)
{
    uint32_t host;
    struct tb_proc there = {watch->member->self.job, other};
    uint64_t now = now_of(watch), answers_since = 0;
    if (tb_member_find_host(watch->member, there, &host) != TB_OK || host == watch->member->host)
        return;
    struct stuck_host *h = get_host(watch, host);
    struct stuck_pair *pair = h != NULL ? get_pair(h, rank, other) : NULL;
    if (pair == NULL)
        return;
    pair->at = now;
    pair->again = true;
    bool counts = watch->events.answers(watch->events.context, host, &answers_since) &&
                  (answers_since == 0 || now - answers_since > tried);
    if (!counts && h->told == 0)
        pair->since = 0;
    else if (pair->since == 0)
        pair->since = now;
}

/* What the rank has said before and has not said again. */
static void drop_unsaid(struct stuck_host *h, uint32_t rank)
{
    struct stuck_pair *pair;
    TB_LIST_EACH (pair, &h->pairs, struct stuck_pair, node) {
        if (pair->here == rank && !pair->again)
            drop_pair(pair);
        else
            pair->again = false;
    }
}

void tb_stuck_watch_take(struct tb_stuck_watch *watch, uint32_t rank, const struct tb_job_waiting *waiting)
{
    struct stuck_host *h;
    for (uint32_t i = 0; i < waiting->stuck_count; i++)
        complain(watch, rank, waiting->stuck[i].rank, waiting->stuck[i].tried);
    TB_LIST_EACH (h, &watch->hosts, struct stuck_host, node)
        drop_unsaid(h, rank);
    drop_hosts(watch);
    if (!tb_list_empty(&watch->hosts) && !tb_timer_is_set(&watch->tick))
        tb_timer_set(watch->member->loop, &watch->tick, TICK_NS);
}

/* "rank 3 on w1 and rank 7 on w2 (and 2 other pairs there)" */
static void print_pairs(const struct tb_stuck_watch *watch, const struct stuck_host *h, const struct stuck_pair *first,
                        char *text, size_t size)
{
    uint32_t others = 0;
    char rest[64] = "";
    struct stuck_pair *pair;
    // NOLINTNEXTLINE(clang-analyzer-unix.Malloc): a pair that was freed is in no list
    TB_LIST_EACH (pair, &h->pairs, struct stuck_pair, node)
        others += pair != first;
    if (others > 0)
        snprintf(rest, sizeof rest, " (and %u other pair%s there)", others, tb_plural(others));
    snprintf(text, size, "rank %u on %s and rank %u on %s%s", first->here, watch->member->name, first->there,
             watch->member->book->hosts[h->host].name, rest);
}

static void judge(struct tb_stuck_watch *watch, struct stuck_host *h, uint64_t now)
{
    struct stuck_pair *pair, *first = NULL;
    uint64_t answers_since;
    char text[640];
    TB_LIST_EACH (pair, &h->pairs, struct stuck_pair, node) {
        if (now - pair->at > STALE_NS)
            drop_pair(pair);
        else if (pair->since != 0 && (first == NULL || pair->since < first->since))
            first = pair;
    }
    if (first == NULL || !watch->member->running)
        return;
    if (h->told == 0 &&
        (first->at < first->since + PROOF_NS || !watch->events.answers(watch->events.context, h->host, &answers_since)))
        return;
    if (h->told != 0 && now - h->told < TELL_NS)
        return;
    h->told = now;
    print_pairs(watch, h, first, text, sizeof text);
    watch->events.report(watch->events.context, h->host, true, now - first->since, text);
}

static void tick(struct tb_timer *timer)
{
    struct tb_stuck_watch *watch = TB_CONTAINER(timer, struct tb_stuck_watch, tick);
    struct stuck_host *h;
    TB_LIST_EACH (h, &watch->hosts, struct stuck_host, node)
        judge(watch, h, now_of(watch));
    drop_hosts(watch);
    if (!tb_list_empty(&watch->hosts))
        tb_timer_set(watch->member->loop, timer, TICK_NS);
}

void tb_stuck_watch_open(struct tb_stuck_watch *watch, const struct tb_member *member,
                         const struct tb_stuck_watch_events *events)
{
    *watch = (struct tb_stuck_watch){.member = member, .events = *events};
    tb_list_init(&watch->hosts);
    tb_timer_init(&watch->tick, tick);
}

void tb_stuck_watch_close(struct tb_stuck_watch *watch)
{
    struct stuck_host *h;
    tb_timer_clear(&watch->tick);
    TB_LIST_EACH (h, &watch->hosts, struct stuck_host, node) {
        while (!tb_list_empty(&h->pairs))
            // NOLINTNEXTLINE(clang-analyzer-unix.Malloc): a pair that was freed is in no list
            drop_pair(TB_CONTAINER(h->pairs.next, struct stuck_pair, node));
        tb_list_remove(&h->node);
        free(h);
    }
}
