#include "agent/link_watch.h"

#include <stdio.h>
#include <stdlib.h>

#define TICK_NS    250000000u
#define LATE_NS    1000000000u  /* a tick that comes so much later means that we were stopped */
#define ASK_NS     1000000000u  /* how often one is asked who is not heard of, */
#define SILENT_NS  3000000000u  /* and how long an answer may take, besides the way there and back */
#define REPORT_NS  1000000000u  /* how often the launcher is told */
#define USED_NS    3000000000u  /* so long somebody is needed whom something was sent to */
#define HEALING_NS 5000000000u  /* so long all connections must show after a silence that they live */
#define WISH_NS    12000000000u /* so long a rank waits that does not say so again, */
#define PASSED_NS  5000000000u  /* or somebody behind another agent */

#define NO_RANK UINT32_MAX
#define NO_HOST UINT32_MAX

/* Hosts that somebody waits for. */
struct wish {
    struct tb_list node;
    uint32_t rank;   /* of this host; NO_RANK: an agent before us has passed it on, */
    uint32_t passed; /* which so many did before it */
    uint64_t until;
    uint32_t count;
    uint32_t hosts[TB_WAITING_HOSTS];
};

/* A host whose agent we need to hear. */
struct link {
    struct tb_list node;
    uint32_t host;
    bool wanted;          /* for its own sake or that of hosts behind it */
    uint32_t first, next; /* of those: the one of the least number, and the least that comes after `told`; NO_HOST */
    uint32_t first_passed, next_passed;
    uint32_t told;        /* whom it was asked about last */
    uint64_t used, heard; /* for the last time; 0: never */
    uint64_t asked;       /* the first question since then; 0: none */
    uint64_t asked_last;
    const char *stuck; /* it answers, and nothing else passes: why; NULL: not so */
    bool silent;
    uint64_t since; /* when the silence began */
    uint64_t reported;
    uint64_t healed; /* when the last silence ended; 0: there was none */
    char why[TB_LINK_WATCH_STORY];
};

static uint64_t now_of(const struct tb_link_watch *watch)
{
    return tb_loop_now(watch->member->loop);
}

static void start_tick(struct tb_link_watch *watch)
{
    if (tb_timer_is_set(&watch->tick))
        return;
    watch->looked_at = now_of(watch);
    tb_timer_set(watch->member->loop, &watch->tick, TICK_NS);
}

/* ---- links and wishes -------------------------------------------------------------------------------------------- */

static struct link *link_find(const struct tb_link_watch *watch, uint32_t host)
{
    struct link *link;
    TB_LIST_EACH (link, &watch->links, struct link, node)
        if (link->host == host)
            return link;
    return NULL;
}

/* NULL: this host itself, none of the address book, or too many. */
static struct link *link_get(struct tb_link_watch *watch, uint32_t host)
{
    struct link *link = link_find(watch, host);
    if (link != NULL || host == watch->member->host || host >= watch->member->book->host_count ||
        watch->link_count == TB_LINK_WATCH_MOST)
        return link;
    link = calloc(1, sizeof *link);
    if (link == NULL)
        return NULL;
    link->host = host;
    link->told = link->first = link->next = NO_HOST;
    tb_list_append(&watch->links, &link->node);
    watch->link_count++;
    start_tick(watch);
    return link;
}

static void link_free(struct tb_link_watch *watch, struct link *link)
{
    tb_list_remove(&link->node);
    watch->link_count--;
    free(link);
}

static void wish_free(struct wish *wish)
{
    tb_list_remove(&wish->node);
    free(wish);
}

static struct wish *wish_make(struct tb_link_watch *watch, uint32_t rank, uint64_t time)
{
    struct wish *wish = calloc(1, sizeof *wish);
    if (wish == NULL)
        return NULL;
    wish->rank = rank;
    wish->until = now_of(watch) + time;
    tb_list_append(&watch->wishes, &wish->node);
    start_tick(watch);
    return wish;
}

void tb_link_watch_want(struct tb_link_watch *watch, uint32_t rank, const uint32_t *hosts, uint32_t count)
{
    struct wish *wish;
    TB_LIST_EACH (wish, &watch->wishes, struct wish, node)
        if (wish->rank == rank)
            wish_free(wish);
    wish = count > 0 ? wish_make(watch, rank, WISH_NS) : NULL;
    if (wish == NULL)
        return;
    wish->count = count < TB_WAITING_HOSTS ? count : TB_WAITING_HOSTS;
    memcpy(wish->hosts, hosts, wish->count * sizeof hosts[0]);
}

void tb_link_watch_pass_on(struct tb_link_watch *watch, uint32_t host, uint32_t passed)
{
    struct wish *wish, *found = NULL;
    uint32_t count = 0;
    if (passed >= TB_HOP_PASSES_MOST || host >= watch->member->book->host_count || host == watch->member->host)
        return;
    TB_LIST_EACH (wish, &watch->wishes, struct wish, node)
        if (wish->rank == NO_RANK) {
            count++;
            found = wish->hosts[0] == host ? wish : found;
        }
    if (found == NULL && count < TB_LINK_WATCH_MOST)
        found = wish_make(watch, NO_RANK, PASSED_NS);
    if (found == NULL)
        return;
    found->until = now_of(watch) + PASSED_NS;
    found->passed = passed;
    found->count = 1;
    found->hosts[0] = host;
}

/* ---- what was sent and heard ------------------------------------------------------------------------------------- */

void tb_link_watch_used(struct tb_link_watch *watch, uint32_t host)
{
    struct link *link = link_get(watch, host);
    if (link != NULL)
        link->used = now_of(watch);
}

void tb_link_watch_heard(struct tb_link_watch *watch, uint32_t host)
{
    struct link *link = link_find(watch, host);
    if (link == NULL)
        return;
    link->heard = now_of(watch);
    link->asked = 0;
    if (link->stuck)
        return;
    link->why[0] = 0;
    if (!link->silent)
        return;
    link->silent = false;
    link->healed = link->heard;
    watch->events.suspect(watch->events.context, host, false);
    if (watch->member->running)
        watch->events.report(watch->events.context, host, false, 0, "");
}

void tb_link_watch_lost(struct tb_link_watch *watch, uint32_t host, const char *why)
{
    struct link *link = link_find(watch, host);
    if (link != NULL)
        snprintf(link->why, sizeof link->why, "%s", why);
}

bool tb_link_watch_answers(const struct tb_link_watch *watch, uint32_t host, uint64_t *since)
{
    const struct link *link = link_find(watch, host);
    *since = link != NULL ? link->healed : 0;
    return link == NULL || !link->silent;
}

/* ---- now and then ------------------------------------------------------------------------------------------------ */

/* The hop is to hear of a host behind it, each in its turn. */
static void mark_behind(struct link *link, uint32_t host, uint32_t passed)
{
    if (link->first == NO_HOST || host < link->first) {
        link->first = host;
        link->first_passed = passed;
    }
    if (link->told != NO_HOST && host > link->told && (link->next == NO_HOST || host < link->next)) {
        link->next = host;
        link->next_passed = passed;
    }
}

static void mark_host(struct tb_link_watch *watch, const struct wish *wish, uint32_t host)
{
    if (host >= watch->member->book->host_count || host == watch->member->host)
        return;
    const struct tb_host_route *route = tb_member_route(watch->member, host);
    bool relayed = route->means == TB_HOST_ROUTE_RELAYED;
    uint32_t count = relayed ? route->hop_count : route->means == TB_HOST_ROUTE_NONE ? 0 : 1;
    for (uint32_t i = 0; i < count; i++) {
        struct link *link = link_get(watch, relayed ? route->hops[i] : host);
        if (link == NULL)
            continue;
        link->wanted = true;
        if (relayed)
            mark_behind(link, host, wish->rank == NO_RANK ? wish->passed + 1 : 0);
    }
}

static void mark_wanted(struct tb_link_watch *watch, uint64_t now)
{
    struct link *link;
    struct wish *wish;
    TB_LIST_EACH (link, &watch->links, struct link, node) {
        link->wanted = false;
        link->first = link->next = NO_HOST;
    }
    TB_LIST_EACH (wish, &watch->wishes, struct wish, node) {
        for (uint32_t i = 0; i < wish->count; i++)
            mark_host(watch, wish, wish->hosts[i]);
        if (now >= wish->until)
            wish_free(wish);
    }
}

/* False: it has left. */
static bool ask(struct tb_link_watch *watch, struct link *link, uint64_t now)
{
    uint32_t about = 0;
    if (link->next != NO_HOST) {
        about = TB_HOP_ABOUT(link->next, link->next_passed);
        link->told = link->next;
    } else if (link->first != NO_HOST) {
        about = TB_HOP_ABOUT(link->first, link->first_passed);
        link->told = link->first;
    }
    link->asked_last = now;
    if (link->asked == 0)
        link->asked = now;
    return watch->events.ask(watch->events.context, link->host, about) == TB_OK;
}

static bool is_healing(const struct link *link, uint64_t now)
{
    return link->healed != 0 && now - link->healed < HEALING_NS;
}

static void begin_silence(struct tb_link_watch *watch, struct link *link, uint64_t since)
{
    link->silent = true;
    link->since = since;
    link->reported = 0;
    watch->events.suspect(watch->events.context, link->host, true);
}

static void look_if_stuck(struct tb_link_watch *watch, struct link *link)
{
    const char *why;
    uint64_t since = watch->events.stuck_since(watch->events.context, link->host, &why);
    bool over = link->stuck != NULL && since == 0;
    link->stuck = since != 0 ? why : NULL;
    if (link->stuck && !link->silent)
        begin_silence(watch, link, since);
    if (over && link->asked == 0)
        tb_link_watch_heard(watch, link->host);
}

static void judge(struct tb_link_watch *watch, struct link *link)
{
    const struct tb_link_watch_events *events = &watch->events;
    uint64_t progress = events->progress(events->context, link->host, is_healing(link, now_of(watch)));
    uint64_t since = progress > link->asked ? progress : link->asked;
    uint64_t now = now_of(watch); /* not before what has happened just now */
    uint64_t patience = SILENT_NS + 2 * tb_member_route(watch->member, link->host)->latency;
    look_if_stuck(watch, link);
    if (link->asked == 0 && !link->stuck)
        return;
    if (!link->silent && now - since > patience)
        begin_silence(watch, link, since);
    if (link->silent && watch->member->running && now - link->reported >= REPORT_NS) {
        link->reported = now;
        events->report(events->context, link->host, true, now - link->since,
                       link->stuck != NULL ? link->stuck
                       : link->why[0] != 0 ? link->why
                                           : "no answer");
    }
}

/* False: nobody needs it any more. */
static bool look_after(struct tb_link_watch *watch, struct link *link, uint64_t now)
{
    bool used = link->used != 0 && now - link->used < USED_NS;
    if (!link->wanted && !used && link->asked == 0 && !link->stuck && !is_healing(link, now))
        return false;
    bool quiet = link->heard == 0 || now - link->heard >= ASK_NS;
    bool again = link->asked_last == 0 || now - link->asked_last >= ASK_NS;
    if (again && (quiet || link->first != NO_HOST) && !ask(watch, link, now))
        return false;
    judge(watch, link);
    return true;
}

static void release(struct tb_link_watch *watch, struct link *link)
{
    link->stuck = NULL;
    tb_link_watch_heard(watch, link->host); /* one who has left is suspect no more */
    watch->events.ask_no_more(watch->events.context, link->host);
    link_free(watch, link);
}

static void tick(struct tb_timer *timer)
{
    struct tb_link_watch *watch = TB_CONTAINER(timer, struct tb_link_watch, tick);
    uint64_t now = now_of(watch);
    bool late = now - watch->looked_at > TICK_NS + LATE_NS;
    struct link *link;
    mark_wanted(watch, now);
    watch->events.listen(watch->events.context);
    TB_LIST_EACH (link, &watch->links, struct link, node) {
        if (late && link->asked != 0)
            link->asked = now; /* what has come meanwhile is not read yet */
        else if (!look_after(watch, link, now))
            release(watch, link);
    }
    watch->looked_at = now;
    if (!tb_list_empty(&watch->links) || !tb_list_empty(&watch->wishes))
        tb_timer_set(watch->member->loop, timer, TICK_NS);
}

void tb_link_watch_open(struct tb_link_watch *watch, const struct tb_member *member,
                        const struct tb_link_watch_events *events)
{
    *watch = (struct tb_link_watch){.member = member, .events = *events};
    tb_list_init(&watch->links);
    tb_list_init(&watch->wishes);
    tb_timer_init(&watch->tick, tick);
}

void tb_link_watch_close(struct tb_link_watch *watch)
{
    struct link *link;
    struct wish *wish;
    tb_timer_clear(&watch->tick);
    TB_LIST_EACH (link, &watch->links, struct link, node)
        link_free(watch, link);
    TB_LIST_EACH (wish, &watch->wishes, struct wish, node)
        wish_free(wish);
}
