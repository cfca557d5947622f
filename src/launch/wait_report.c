#include "launch/wait_report.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATIENCE_NS  1500000000u /* for the agents, who have theirs with the ranks */
#define TENTH_NS     100000000u
#define LINES_LIMIT  64u
#define GROUPS_LIMIT 4096u
#define LIST_ROOM    200u /* bytes for the numbers of ranks in a line */

/* ---- what comes in ----------------------------------------------------------------------------------------------- */

static struct tb_wait_group *group_find(struct tb_wait_report *report, enum tb_wait_answer what, const char *text)
{
    uint64_t hash = 14695981039346656037u;
    for (const char *c = text; *c != 0; c++)
        hash = (hash ^ (unsigned char)*c) * 1099511628211u;
    for (uint32_t i = 0; i < report->group_count; i++) {
        struct tb_wait_group *g = &report->groups[i];
        if (g->what == what && g->hash == hash && strcmp(g->text, text) == 0)
            return g;
    }
    if (report->group_count == report->group_room) {
        uint32_t room = report->group_room > 0 ? 2 * report->group_room : 16;
        struct tb_wait_group *more =
            room <= GROUPS_LIMIT ? realloc(report->groups, room * sizeof *report->groups) : NULL;
        if (more == NULL)
            return NULL;
        report->groups = more;
        report->group_room = room;
    }
    struct tb_wait_group *g = &report->groups[report->group_count++];
    *g = (struct tb_wait_group){.what = what, .hash = hash, .least = UINT64_MAX};
    snprintf(g->text, sizeof g->text, "%s", text);
    return g;
}

/* Threads of a rank that wait for the same count once. */
static bool group_add(struct tb_wait_group *g, uint32_t rank)
{
    if (g->count > 0 && g->ranks[g->count - 1] == rank)
        return true;
    if (g->count == g->room) {
        uint32_t room = g->room > 0 ? 2 * g->room : 4;
        uint32_t *more = realloc(g->ranks, room * sizeof *more);
        if (more == NULL)
            return false;
        g->ranks = more;
        g->room = room;
    }
    g->ranks[g->count++] = rank;
    return true;
}

static void take_one(struct tb_wait_report *report, uint32_t host, struct tb_reader *r)
{
    uint32_t rank = tb_get_u32(r), pid = tb_get_u32(r);
    uint8_t what = tb_get_u8(r);
    uint64_t time = tb_get_u64(r);
    size_t length = 0;
    const char *bytes = tb_get_bytes(r, &length);
    char text[TB_WAIT_TEXT];
    if (r->error != TB_OK || what >= TB_WAIT_ANSWERS || length >= sizeof text)
        return;
    for (size_t i = 0; i < length; i++) /* names of communicators are the program's */
        text[i] = (unsigned char)bytes[i] < ' ' || bytes[i] == 127 ? '?' : bytes[i];
    text[length] = 0;
    struct tb_wait_group *g = group_find(report, (enum tb_wait_answer)what, text);
    if (g == NULL || !group_add(g, rank)) {
        report->left_out++;
        return;
    }
    if (g->count == 1) {
        g->host = host;
        g->pid = pid;
    }
    g->least = time < g->least ? time : g->least;
    g->longest = time > g->longest ? time : g->longest;
}

/* ---- what is said ------------------------------------------------------------------------------------------------ */

/* A line that is written bit by bit and cut off at its end. */
struct line {
    char text[1024];
    size_t at;
};

static void add(struct line *l, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct line *l, const char *format, ...)
{
    va_list rest;
    va_start(rest, format);
    int n = vsnprintf(l->text + l->at, sizeof l->text - l->at, format, rest);
    va_end(rest);
    l->at += n > 0 ? (size_t)n : 0;
    l->at = l->at < sizeof l->text ? l->at : sizeof l->text - 1;
}

static int compare_ranks(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static int compare_groups(const void *a, const void *b)
{
    const struct tb_wait_group *x = a, *y = b;
    int order = compare_ranks(&x->ranks[0], &y->ranks[0]);
    return order != 0 ? order : strcmp(x->text, y->text);
}

/* "0-3, 6" */
static void add_ranks(struct line *l, const struct tb_wait_group *g)
{
    size_t begin = l->at;
    for (uint32_t i = 0; i < g->count;) {
        uint32_t last = i;
        while (last + 1 < g->count && g->ranks[last + 1] == g->ranks[last] + 1)
            last++;
        if (l->at - begin > LIST_ROOM) {
            add(l, " and %u more", g->count - i);
            return;
        }
        add(l, "%s%u", i > 0 ? ", " : "", g->ranks[i]);
        if (last > i)
            add(l, "%s%u", last > i + 1 ? "-" : ", ", g->ranks[last]);
        i = last + 1;
    }
}

static void add_who(struct line *l, const struct tb_wait_report *report, const struct tb_wait_group *g)
{
    add(l, g->count > 1 ? "ranks " : "rank ");
    add_ranks(l, g);
    if (g->count == 1)
        add(l, " on %s, process %u,", report->agents->all[g->host].name, g->pid);
}

static void add_time(struct line *l, const struct tb_wait_group *g)
{
    unsigned long long least = g->least / TENTH_NS, longest = g->longest / TENTH_NS;
    if (g->longest == 0) {
        add(l, g->count > 1 ? " wait in " : " waits in ");
        return;
    }
    add(l, " %s waited for ", g->count > 1 ? "have" : "has");
    if (longest > least)
        add(l, "%llu.%llu to ", least / 10, least % 10);
    add(l, "%llu.%llu s in ", longest / 10, longest % 10);
}

static void say_group(struct tb_wait_report *report, const struct tb_wait_group *g)
{
    static const char *const words[TB_WAIT_ANSWERS][2] = {
        [TB_WAIT_BUSY] = {"waits in no MPI call: it tests again and again, or computes",
                          "wait in no MPI call: they test again and again, or compute"},
        [TB_WAIT_OUTSIDE] = {"is outside of MPI: it computes", "are outside of MPI: they compute"},
        [TB_WAIT_SLEEPS] = {"is outside of MPI: it sleeps, or waits for something else",
                            "are outside of MPI: they sleep, or wait for something else"},
        [TB_WAIT_STOPPED] = {"is stopped", "are stopped"},
        [TB_WAIT_BEFORE] = {"has not called MPI_Init", "have not called MPI_Init"},
        [TB_WAIT_FINALIZED] = {"has left MPI_Finalize", "have left MPI_Finalize"},
        [TB_WAIT_ENDED] = {"has ended", "have ended"}};
    struct line l = {.at = 0};
    add_who(&l, report, g);
    if (g->what == TB_WAIT_TOLD) {
        add_time(&l, g);
        add(&l, "%s", g->text);
    } else {
        add(&l, " %s", words[g->what][g->count > 1]);
    }
    report->events.say(report->events.context, l.text);
}

static void say_groups(struct tb_wait_report *report)
{
    uint32_t more = report->left_out;
    struct line l = {.at = 0};
    for (uint32_t i = 0; i < report->group_count; i++)
        qsort(report->groups[i].ranks, report->groups[i].count, sizeof(uint32_t), compare_ranks);
    if (report->group_count > 0)
        qsort(report->groups, report->group_count, sizeof report->groups[0], compare_groups);
    for (uint32_t i = 0; i < report->group_count; i++) {
        if (i < LINES_LIMIT)
            say_group(report, &report->groups[i]);
        else
            more += report->groups[i].count;
    }
    if (more == 0)
        return;
    add(&l, "and %u more rank%s", more, more > 1 ? "s" : "");
    report->events.say(report->events.context, l.text);
}

static void say_silent(struct tb_wait_report *report)
{
    uint32_t said = 0;
    for (uint32_t i = 0; i < report->agents->count && said < LINES_LIMIT; i++) {
        struct line l = {.at = 0};
        if (!report->awaited[i])
            continue;
        said++;
        add(&l, "host %s does not answer: nothing is known of its ranks", report->agents->all[i].name);
        report->events.say(report->events.context, l.text);
    }
}

/* ---- the question ------------------------------------------------------------------------------------------------ */

void tb_wait_report_stop(struct tb_wait_report *report)
{
    tb_timer_clear(&report->timer);
    for (uint32_t i = 0; i < report->group_count; i++)
        free(report->groups[i].ranks);
    free(report->groups);
    free(report->awaited);
    report->groups = NULL;
    report->awaited = NULL;
    report->group_count = report->group_room = report->left_out = report->awaited_count = 0;
}

static void finish(struct tb_wait_report *report)
{
    say_groups(report);
    say_silent(report);
    tb_wait_report_stop(report);
    report->events.done(report->events.context);
}

static void patience_over(struct tb_timer *timer)
{
    finish(TB_CONTAINER(timer, struct tb_wait_report, timer));
}

void tb_wait_report_init(struct tb_wait_report *report, struct tb_loop *loop, struct tb_host_agents *agents,
                         const struct tb_wait_report_events *events)
{
    *report = (struct tb_wait_report){.loop = loop, .agents = agents, .events = *events};
    tb_timer_init(&report->timer, patience_over);
}

bool tb_wait_report_ask(struct tb_wait_report *report)
{
    tb_wait_report_stop(report);
    report->awaited = calloc(report->agents->count + 1u, sizeof *report->awaited);
    if (report->awaited == NULL)
        return false;
    report->number++;
    for (uint32_t i = 0; i < report->agents->count; i++) {
        struct tb_host_agent *agent = &report->agents->all[i];
        if (agent->phase != TB_HOST_AGENT_STARTED || agent->idle || agent->rank_count == 0)
            continue;
        tb_put_u32(tb_control_stream_begin(&agent->control, TB_CONTROL_ASK), report->number);
        tb_control_stream_end(&agent->control);
        report->awaited[i] = true;
        report->awaited_count++;
    }
    if (report->awaited_count == 0) {
        tb_wait_report_stop(report);
        return false;
    }
    tb_timer_set(report->loop, &report->timer, PATIENCE_NS);
    return true;
}

void tb_wait_report_take(struct tb_wait_report *report, const struct tb_host_agent *agent, struct tb_reader *answers)
{
    uint32_t number = tb_get_u32(answers), others = tb_get_u32(answers), count = tb_get_u32(answers);
    if (answers->error != TB_OK || number != report->number || report->awaited == NULL || !report->awaited[agent->host])
        return;
    report->awaited[agent->host] = others > 0;
    for (uint32_t i = 0; i < count && answers->error == TB_OK; i++)
        take_one(report, agent->host, answers);
    if (others == 0 && --report->awaited_count == 0)
        finish(report);
}
