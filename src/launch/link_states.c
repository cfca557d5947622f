#include "launch/link_states.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS           UINT64_C(1000000)
#define SECOND       (1000 * MS)
#define BURST_NS     (100 * MS)    /* so long others are waited for who complain of the same */
#define TICK_NS      (250 * MS)    /* while there is something to be judged */
#define FRESH_NS     (2 * SECOND)  /* a complaint that counts */
#define STALE_NS     (5 * SECOND)  /* who says other things for so long, but not this, complains no more */
#define ALIVE_NS     (2 * SECOND)  /* during the silence the other end must have been heard for so long */
#define PAUSE_NS     (1500 * MS)   /* after such a silence of its own it counts anew */
#define HOLD_NS      (2 * SECOND)  /* a healed way answers for so long before it is used again */
#define HOLD_MOST_NS (32 * SECOND) /* after relapses */
#define RELAPSE_NS   (60 * SECOND) /* what is cut again within this time has had a relapse */
#define REPORTS_MOST 256u          /* of one way; the others are heard when these are content */
#define WHY_BYTES    320u

#define FORGOTTEN ": a firewall or a NAT may have forgotten their connection, or the MTU on the way loses large packets"

enum way_state { UP, SUSPECT, CUT, HEALING };

struct tb_heard_host {
    uint64_t heard, resumed; /* the last time, and the first one after a silence */
};

/* Somebody's complaint. */
struct complaint {
    uint32_t from, to;
    uint64_t since, at; /* when the silence began, when that was told last */
    char why[WHY_BYTES];
};

/* All ways of one number. */
struct watched_way {
    struct tb_list node;
    uint64_t number;
    const char *link;
    enum way_state state;
    bool around; /* messages go around it */
    bool retry;  /* they do not, but something has changed since that was tried */
    bool told;   /* that it is cut, and not yet that it is up again */
    uint32_t a, b;
    char why[WHY_BYTES];
    uint64_t since;  /* when the silence began */
    uint64_t healed; /* when the last complaint was over */
    uint64_t hold;
    uint32_t report_count, report_room;
    struct complaint *reports;
};

/* ---- what the user reads ----------------------------------------------------------------------------------------- */

static const char *cluster_of(const struct tb_link_states *states, uint32_t host)
{
    return tb_address_book_cluster(states->book, host);
}

/* "w0 (cluster west)" */
static void print_host(const struct tb_link_states *states, uint32_t host, char *text, size_t size)
{
    const char *cluster = cluster_of(states, host);
    bool known = *cluster != 0;
    snprintf(text, size, "%s%s%s%s", states->book->hosts[host].name, known ? " (cluster " : "", cluster,
             known ? ")" : "");
}

/* "hosts a1 and a2 of cluster west" */
static void print_hosts(const struct tb_link_states *states, const struct watched_way *way, char *text, size_t size)
{
    const char *cluster = cluster_of(states, way->a);
    char a[400], b[400];
    if (strcmp(cluster, cluster_of(states, way->b)) == 0) {
        snprintf(text, size, "hosts %s and %s%s%s", states->book->hosts[way->a].name, states->book->hosts[way->b].name,
                 *cluster != 0 ? " of cluster " : "", cluster);
        return;
    }
    print_host(states, way->a, a, sizeof a);
    print_host(states, way->b, b, sizeof b);
    snprintf(text, size, "hosts %s and %s", a, b);
}

static double seconds(uint64_t ns)
{
    return (double)ns / 1e9;
}

static void say_cut(struct tb_link_states *states, struct watched_way *way)
{
    char text[2048], hosts[900], rest[200] = "messages go around it";
    if (!way->around)
        snprintf(rest, sizeof rest, "%swaiting for up to %.10g s (--set link_patience=TIME)",
                 way->link != NULL ? "there is no way around it; " : "", seconds(tb_param.link_patience));
    if (way->link != NULL) {
        snprintf(text, sizeof text, "link %s is cut (host %s gets no answer from host %s)%s %s", way->link,
                 states->book->hosts[way->a].name, states->book->hosts[way->b].name, way->around ? ";" : " and", rest);
    } else if (states->events.connections) {
        snprintf(text, sizeof text, "nothing passes between %s, though their hosts reach each other" FORGOTTEN "; %s",
                 way->why, rest);
    } else {
        print_hosts(states, way, hosts, sizeof hosts);
        snprintf(text, sizeof text, "%s cannot reach each other, though the launcher reaches both (%s); %s", hosts,
                 way->why, rest);
    }
    way->told = true;
    states->events.say(states->events.context, text);
}

static void say_up(struct tb_link_states *states, struct watched_way *way)
{
    char text[2048], hosts[900];
    double time = seconds(way->healed - way->since);
    print_hosts(states, way, hosts, sizeof hosts);
    if (way->link != NULL)
        snprintf(text, sizeof text, "link %s is up again after %.0f s", way->link, time);
    else if (states->events.connections)
        snprintf(text, sizeof text, "messages pass between %s again after %.0f s", way->why, time);
    else
        snprintf(text, sizeof text, "%s reach each other again after %.0f s", hosts, time);
    way->told = false;
    states->events.say(states->events.context, text);
}

static void end_job(struct tb_link_states *states, const struct watched_way *way, uint64_t time)
{
    char text[2048], hosts[900], a[400], b[400];
    print_hosts(states, way, hosts, sizeof hosts);
    print_host(states, way->a, a, sizeof a);
    print_host(states, way->b, b, sizeof b);
    if (way->link != NULL)
        snprintf(
            text, sizeof text,
            "link %s between host %s and host %s has been cut for %.0f s, and there is no way around it: %s (--set "
            "link_patience=TIME waits longer)",
            way->link, a, b, seconds(time), way->why);
    else if (states->events.connections)
        snprintf(text, sizeof text,
                 "nothing has passed between %s for %.0f s, though their hosts reach each other" FORGOTTEN
                 " (--set link_patience=TIME waits longer)",
                 way->why, seconds(time));
    else
        snprintf(text, sizeof text,
                 "%s have not reached each other for %.0f s: %s (--set link_patience=TIME waits longer)", hosts,
                 seconds(time), way->why);
    tb_link_states_stop(states);
    states->events.fail(states->events.context, text);
}

/* ---- complaints -------------------------------------------------------------------------------------------------- */

static struct complaint *report_find(struct watched_way *way, uint32_t from, uint32_t to)
{
    for (uint32_t i = 0; i < way->report_count; i++)
        if (way->reports[i].from == from && way->reports[i].to == to)
            return &way->reports[i];
    return NULL;
}

static void report_drop(struct watched_way *way, struct complaint *report)
{
    *report = way->reports[--way->report_count];
}

/* NULL: there is no room, and another time will do. */
static struct complaint *report_add(struct watched_way *way, uint32_t from, uint32_t to)
{
    if (way->report_count == REPORTS_MOST)
        return NULL;
    if (way->report_count == way->report_room) {
        uint32_t room = way->report_room > 0 ? 2 * way->report_room : 4;
        struct complaint *grown = reallocarray(way->reports, room, sizeof *grown);
        if (grown == NULL)
            return NULL;
        way->reports = grown;
        way->report_room = room;
    }
    way->reports[way->report_count] = (struct complaint){.from = from, .to = to};
    return &way->reports[way->report_count++];
}

static void drop_stale(const struct tb_link_states *states, struct watched_way *way)
{
    for (uint32_t i = way->report_count; i-- > 0;)
        if (states->hosts[way->reports[i].from].heard > way->reports[i].at + STALE_NS)
            report_drop(way, &way->reports[i]);
}

/* The way has begun to be silent, as the first of those who complain saw it. */
static void begin_silence(struct watched_way *way)
{
    const struct complaint *first = &way->reports[0];
    for (uint32_t i = 1; i < way->report_count; i++)
        if (way->reports[i].since < first->since)
            first = &way->reports[i];
    way->a = first->from;
    way->b = first->to;
    way->since = first->since;
    memcpy(way->why, first->why, sizeof way->why);
}

/* Somebody's complaint is of now, and it is not the other host that is in trouble. */
static bool is_proved(const struct tb_link_states *states, struct watched_way *way, uint64_t now)
{
    for (uint32_t i = 0; i < way->report_count; i++) {
        const struct complaint *report = &way->reports[i], *back = report_find(way, report->to, report->from);
        const struct tb_heard_host *other = &states->hosts[report->to];
        uint64_t from = other->resumed > report->since ? other->resumed : report->since;
        if (now - report->at <= FRESH_NS &&
            ((back != NULL && now - back->at <= FRESH_NS) || other->heard >= from + ALIVE_NS))
            return true;
    }
    return false;
}

/* ---- ways -------------------------------------------------------------------------------------------------------- */

static struct watched_way *way_find(const struct tb_link_states *states, uint64_t number)
{
    for (struct tb_list *at = states->ways.next; at != &states->ways; at = at->next) {
        struct watched_way *way = TB_CONTAINER(at, struct watched_way, node);
        if (way->number == number)
            return way;
    }
    return NULL;
}

static void way_drop(struct tb_link_states *states, struct watched_way *way)
{
    tb_list_remove(&way->node);
    states->way_count--;
    free(way->reports);
    free(way);
}

static struct watched_way *way_make(struct tb_link_states *states, uint64_t number, const char *link)
{
    struct watched_way *way = states->way_count < TB_LINK_STATES_MOST ? calloc(1, sizeof *way) : NULL;
    if (way == NULL) {
        tb_log(TB_LOG_WARN, "launch", "there is no room to watch another way between hosts");
        return NULL;
    }
    way->number = number;
    way->link = link;
    tb_list_append(&states->ways, &way->node);
    states->way_count++;
    return way;
}

/* ---- judging ----------------------------------------------------------------------------------------------------- */

static void go_around(struct tb_link_states *states, struct watched_way *way)
{
    way->retry = false;
    int rc = states->events.reroute(states->events.context, way->a, way->b, true);
    way->around = rc == TB_OK;
    if (rc != TB_OK && rc != TB_ERR_UNSUPPORTED)
        tb_log(TB_LOG_WARN, "launch", "no routes around a way that is silent: %s", tb_error_story());
}

/* Others may be able to go around now what they could not go around before. */
static void encourage(struct tb_link_states *states)
{
    for (struct tb_list *at = states->ways.next; at != &states->ways; at = at->next) {
        struct watched_way *way = TB_CONTAINER(at, struct watched_way, node);
        // NOLINTNEXTLINE(clang-analyzer-unix.Malloc): a way that was dropped is in no list
        way->retry = !way->around && way->state != UP;
    }
}

static void go_back(struct tb_link_states *states, struct watched_way *way)
{
    if (!way->around)
        return;
    way->around = false;
    states->events.reroute(states->events.context, way->a, way->b, false);
    encourage(states);
}

static void suspect(struct tb_link_states *states, struct watched_way *way, uint64_t now)
{
    bool relapse = way->hold > 0 && now - way->healed < RELAPSE_NS;
    way->hold = !relapse ? HOLD_NS : 2 * way->hold < HOLD_MOST_NS ? 2 * way->hold : HOLD_MOST_NS;
    begin_silence(way);
    way->state = way->told ? CUT : SUSPECT;
    if (!way->around)
        go_around(states, way);
}

static void judge_silent(struct tb_link_states *states, struct watched_way *way, uint64_t now)
{
    if (way->state == UP || way->state == HEALING)
        suspect(states, way, now);
    else if (way->retry)
        go_around(states, way);
    if (!is_proved(states, way, now))
        return;
    if (way->state == SUSPECT) {
        way->state = CUT;
        say_cut(states, way);
    }
    if (!way->around && now - way->since >= tb_param.link_patience)
        end_job(states, way, now - way->since);
}

static void judge_answering(struct tb_link_states *states, struct watched_way *way, uint64_t now)
{
    if (way->state == SUSPECT || way->state == CUT) {
        way->state = HEALING;
        way->healed = now;
    }
    if (way->state == HEALING && now - way->healed >= way->hold) {
        way->state = UP;
        go_back(states, way);
        if (way->told)
            say_up(states, way);
    }
    if (way->state == UP && now - way->healed >= RELAPSE_NS)
        way_drop(states, way);
}

static void tick(struct tb_timer *timer)
{
    struct tb_link_states *states = TB_CONTAINER(timer, struct tb_link_states, tick);
    uint64_t now = tb_loop_now(states->loop);
    for (struct tb_list *at = states->ways.next, *next; at != &states->ways && !states->over; at = next) {
        struct watched_way *way = TB_CONTAINER(at, struct watched_way, node);
        next = at->next;
        drop_stale(states, way);
        if (way->report_count > 0)
            judge_silent(states, way, now);
        else
            judge_answering(states, way, now);
    }
    if (!states->over && !tb_list_empty(&states->ways))
        tb_timer_set(states->loop, &states->tick, TICK_NS);
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

int tb_link_states_open(struct tb_link_states *states, struct tb_loop *loop, const struct tb_address_book *book,
                        const struct tb_link_states_events *events)
{
    *states = (struct tb_link_states){
        .loop = loop, .book = book, .events = *events, .hosts = calloc(book->host_count + 1u, sizeof *states->hosts)};
    tb_list_init(&states->ways);
    tb_timer_init(&states->tick, tick);
    return states->hosts != NULL ? TB_OK : tb_error(TB_ERR_MEMORY, "no memory for %u hosts", book->host_count);
}

void tb_link_states_close(struct tb_link_states *states)
{
    if (states->loop == NULL)
        return;
    tb_link_states_stop(states);
    while (!tb_list_empty(&states->ways))
        // NOLINTNEXTLINE(clang-analyzer-unix.Malloc): a way that was dropped is in no list
        way_drop(states, TB_CONTAINER(states->ways.next, struct watched_way, node));
    free(states->hosts);
    *states = (struct tb_link_states){0};
}

void tb_link_states_stop(struct tb_link_states *states)
{
    states->over = true;
    tb_timer_clear(&states->tick);
}

void tb_link_states_heard(struct tb_link_states *states, uint32_t host)
{
    struct tb_heard_host *h = &states->hosts[host];
    uint64_t now = tb_loop_now(states->loop);
    if (now - h->heard > PAUSE_NS)
        h->resumed = now;
    h->heard = now;
}

void tb_link_states_report(struct tb_link_states *states, uint32_t from, uint32_t to, bool silent, uint64_t time,
                           const char *why)
{
    if (states->over || from >= states->book->host_count || to >= states->book->host_count || from == to)
        return;
    const char *link = NULL;
    uint64_t now = tb_loop_now(states->loop), number = states->events.way(states->events.context, from, to, &link);
    struct watched_way *way = way_find(states, number);
    if (way == NULL && silent)
        way = way_make(states, number, link);
    if (way == NULL)
        return;
    struct complaint *report = report_find(way, from, to);
    if (!silent && report != NULL)
        report_drop(way, report);
    if (silent && report == NULL)
        report = report_add(way, from, to);
    if (silent && report != NULL) {
        report->at = now;
        report->since = now - (time < now ? time : now);
        snprintf(report->why, sizeof report->why, "%s", why);
    }
    if (!tb_timer_is_set(&states->tick))
        tb_timer_set(states->loop, &states->tick, BURST_NS);
}

void tb_link_states_forget(struct tb_link_states *states, uint32_t host)
{
    for (struct tb_list *at = states->ways.next, *next; at != &states->ways; at = next) {
        struct watched_way *way = TB_CONTAINER(at, struct watched_way, node);
        uint32_t before = way->report_count;
        next = at->next;
        for (uint32_t i = way->report_count; i-- > 0;)
            if (way->reports[i].from == host || way->reports[i].to == host)
                report_drop(way, &way->reports[i]);
        if (before > 0 && way->report_count == 0) { /* nobody else complains: it was that host */
            go_back(states, way);
            way_drop(states, way);
            continue;
        }
        if (way->report_count > 0 && (way->a == host || way->b == host))
            begin_silence(way);
        way->around = false; /* of the routes that were made for this we know nothing */
    }
    encourage(states);
}
