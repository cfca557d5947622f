#include "launch/job_start.h"

#include "launch/agent_loss.h"
#include "launch/agent_orders.h"
#include "launch/missing_hosts.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MANUAL_NS 600000000000u /* for somebody to type a command */

static void overdue(struct tb_timer *timer);
static void survey_finished(void *context);

void tb_job_start_init(struct tb_job_start *start, struct tb_loop *loop, struct tb_job_plan *plan,
                       struct tb_host_agents *agents, const struct tb_job_start_events *events)
{
    const struct tb_reach_survey_events survey = {.context = start, .finished = survey_finished};
    *start = (struct tb_job_start){.loop = loop, .events = *events, .plan = plan, .agents = agents};
    tb_timer_init(&start->timer, overdue);
    tb_reach_survey_init(&start->survey, loop, &survey);
    tb_group_tests_init(&start->groups, loop,
                        &(struct tb_group_tests_events){.context = events->context, .note = events->note});
}

__attribute__((format(printf, 2, 3), cold)) static void fail(struct tb_job_start *start, const char *format, ...)
{
    char text[4096];
    va_list rest;
    va_start(rest, format);
    vsnprintf(text, sizeof text, format, rest);
    va_end(rest);
    start->events.failed(start->events.context, text);
}

/* ---- when all are there ------------------------------------------------------------------------------------------ */

static void end_delivery(struct tb_job_start *start)
{
    start->agents->delivery = NULL;
    tb_delivery_close(&start->delivery);
    free(start->costs);
    start->costs = NULL;
}

/* Whether all who are there are told everything. In a grid their ranks are started when all have it: one whose stream
 * is lost from then on knows whom to turn to, and until then nothing has happened that cannot be done again. */
static void check_delivery(struct tb_job_start *start)
{
    if (start->agents->delivery == NULL)
        return;
    for (uint32_t i = 0; i < start->agents->count; i++)
        if (start->agents->all[i].phase < TB_HOST_AGENT_GONE && !tb_delivery_has_ended(&start->delivery, i))
            return;
    end_delivery(start);
    if (start->known)
        return;
    start->booked = true;
    start->begun = start->plan->grid == NULL;
    if (start->begun)
        tb_group_tests_begin(&start->groups);
}

void tb_job_start_take_told(struct tb_job_start *start)
{
    check_delivery(start);
    if (start->over || start->begun || !start->booked)
        return;
    for (uint32_t i = 0; i < start->agents->count; i++)
        if (start->agents->all[i].phase == TB_HOST_AGENT_READY && !start->agents->all[i].target.local)
            return;
    start->begun = true;
    tb_agent_orders_start(start->agents, start->plan->grid);
    tb_group_tests_begin(&start->groups);
}

/* An agent has what is long; with the book it has all that it needs. */
static void delivery_ended(void *context, struct tb_host_agent *agent, int error)
{
    struct tb_job_start *start = context;
    const struct tb_job_plan *plan = start->plan;
    int rc = error;
    if (rc == TB_OK)
        rc = tb_group_tests_order(&start->groups, agent);
    if (rc == TB_OK)
        rc = tb_agent_orders_address_book(agent, &plan->placement);
    tb_agent_orders_stand_ins(agent, plan->grid, &plan->placement);
    if (rc != TB_OK)
        fail(start, "cannot tell all hosts of each other: %s", tb_error_story());
    tb_job_start_take_told(start);
}

/* What ways cost, and a plan, go before the book. */
static void deliver(struct tb_job_start *start)
{
    struct tb_job_plan *plan = start->plan;
    const struct tb_delivery_events events = {.context = start, .ended = delivery_ended};
    int rc = tb_job_plan_make_costs(plan, &start->costs);
    if (rc == TB_OK)
        rc = tb_group_tests_choose(&start->groups, &plan->placement.book, plan->grid, start->agents);
    if (rc == TB_OK)
        rc = tb_delivery_open(&start->delivery, start->agents->count, &events);
    if (rc != TB_OK) {
        fail(start, "cannot tell all hosts of each other: %s", tb_error_story());
        return;
    }
    const struct tb_delivery_part costs = {TB_CONTROL_COSTS, start->costs->version, start->costs, start->costs->bytes},
                                  planned = {TB_CONTROL_PLAN, 1, plan->options->plan, plan->options->plan_bytes};
    tb_delivery_add(&start->delivery, &costs);
    tb_delivery_add(&start->delivery, &planned);
    start->agents->delivery = &start->delivery;
}

/* They are told everything. */
static void send_books(struct tb_job_start *start)
{
    const struct tb_job_plan *plan = start->plan;
    char remark[512];
    if (tb_job_plan_remark(plan, remark, sizeof remark))
        start->events.note(start->events.context, remark);
    if (tb_agent_orders_routes(start->agents, plan->grid, &plan->placement) != TB_OK)
        fail(start, "%s", tb_error_story());
    else
        deliver(start);
}

static void survey_finished(void *context)
{
    struct tb_job_start *start = context;
    struct tb_job_plan *plan = start->plan;
    if (start->over)
        return;
    int rc = tb_grid_plan_learn(plan->grid, &plan->placement, &start->survey.results);
    if (rc == TB_OK) {
        send_books(start);
    } else if (rc == TB_ERR_UNSUPPORTED && !plan->with_helpers && tb_grid_plan_has_more(plan->grid)) {
        tb_log(TB_LOG_INFO, "launch", "hosts without ranks are taken in: %s", tb_error_story());
        plan->with_helpers = true;
        start->events.again(start->events.context);
    } else {
        fail(start, "%s", tb_error_story());
    }
}

/* Nobody has to answer before the address book is whole: there is one host, whose ranks are not bound, and which is
 * this machine or has its place from the list of hosts. */
static bool is_known(const struct tb_job_start *start)
{
    return start->agents->count == 1 && start->plan->grid == NULL && !tb_setup_binds(&start->plan->setup) &&
           tb_job_plan_knows_places(start->plan, start->agents);
}

/* Whether all have answered that will; then the job begins, or the next attempt. */
static void check(struct tb_job_start *start)
{
    const struct tb_job_plan *plan = start->plan;
    struct tb_host_agents *agents = start->agents;
    if (start->over || start->survey.running || agents->counts.ready + start->missed_count < agents->count)
        return;
    tb_timer_clear(&start->timer);
    if (start->missed_count > 0) {
        start->events.again(start->events.context);
        return;
    }
    if (start->known)
        return; /* it has the address book already */
    if (plan->grid != NULL && tb_param.try_timeout > 0 &&
        tb_reach_survey_begin(&start->survey, plan->grid, &plan->placement, agents) != TB_OK)
        fail(start, "cannot ask who reaches whom: %s", tb_error_story());
    else if (!start->survey.running)
        send_books(start);
}

/* ---- who does not come ------------------------------------------------------------------------------------------- */

static bool can_miss(const struct tb_job_start *start, const struct tb_host_agent *agent)
{
    const struct tb_job_plan *plan = start->plan;
    return plan->grid != NULL && !agent->target.local &&
           tb_missing_hosts_allow(plan->grid, plan->options, &plan->placement, agent->host);
}

/* The job does without it. */
static bool is_missed(const struct tb_job_start *start, const struct tb_host_agent *agent)
{
    const struct tb_job_plan *plan = start->plan;
    return plan->grid != NULL && plan->missing[plan->placement.entries[agent->host]];
}

bool tb_job_start_go_around(struct tb_job_start *start, const struct tb_host_agent *agent)
{
    struct tb_job_plan *plan = start->plan;
    if (start->over || start->begun || plan->grid == NULL)
        return false;
    uint32_t to = (uint32_t)plan->placement.entries[agent->host];
    uint32_t from = agent->parent != NULL ? (uint32_t)plan->placement.entries[agent->parent->host] : plan->grid->here;
    const char *link = from != TB_GRID_NONE ? tb_job_plan_avoid(plan, from, to) : NULL;
    if (link == NULL)
        return false;
    char text[1024];
    snprintf(text, sizeof text, "link %s is cut (host %s gets no answer from host %s); the job is started around it",
             link, plan->grid->grid->hosts[from].name, agent->name);
    start->events.note(start->events.context, text);
    start->events.again(start->events.context);
    return true;
}

bool tb_job_start_lose(struct tb_job_start *start, const struct tb_host_agent *agent)
{
    /* It has not heard us for as long, and has ended for that. Its last words may have come all at once before. */
    uint64_t now = tb_loop_now(start->loop);
    bool was_silent = now - agent->heard > tb_param.heartbeat / 2 ||
                      (agent->resumed > 0 && now - agent->resumed < tb_param.heartbeat / 2);
    return tb_param.heartbeat > 0 && was_silent && agent->phase > TB_HOST_AGENT_SILENT &&
           tb_job_start_go_around(start, agent);
}

void tb_job_start_miss(struct tb_job_start *start, struct tb_host_agent *agent, const char *why)
{
    const struct tb_job_plan *plan = start->plan;
    struct tb_host_agents *agents = start->agents;
    char prefix[128] = "", text[4096];
    if (start->over || (tb_agent_loss_is_of_network(agent) && tb_job_start_go_around(start, agent)))
        return;
    if (plan->grid != NULL)
        tb_missing_hosts_name(plan->grid, &plan->placement, agent->host, prefix, sizeof prefix);
    if (!can_miss(start, agent)) {
        fail(start, "%s%s", prefix, why);
        return;
    }
    if (is_missed(start, agent))
        return;
    size_t length = strlen(why);
    snprintf(text, sizeof text, "%s%s%s The job %s without it.", prefix, why,
             length > 0 && why[length - 1] == '.' ? "" : ".", plan->options->allow_missing ? "starts" : "can do");
    start->events.note(start->events.context, text);
    plan->missing[plan->placement.entries[agent->host]] = true;
    for (uint32_t i = 0; i < agents->count; i++)
        start->missed_count +=
            agents->all[i].phase < TB_HOST_AGENT_READY && tb_host_agent_is_behind(&agents->all[i], agent);
    check(start);
}

/* It, or whoever is before it, waits for somebody to type something. */
static bool is_by_hand(const struct tb_host_agent *agent)
{
    while (agent != NULL && !agent->manual)
        agent = agent->parent;
    return agent != NULL;
}

/* It has not answered in time, or one that leads to it was silent for a while before it did. */
static bool go_around_late(struct tb_job_start *start, const struct tb_host_agent *agent)
{
    bool around = tb_job_start_go_around(start, agent);
    for (const struct tb_host_agent *at = agent->parent; at != NULL && !around; at = at->parent)
        around = at->resumed > 0 && tb_job_start_go_around(start, at);
    return around;
}

/* When it should have answered. Who has come by hand answers as fast as others do. */
static uint64_t due_of(const struct tb_job_start *start, const struct tb_host_agent *agent)
{
    if (agent->manual && tb_tls_stream_is_open(&agent->tls))
        return agent->heard + tb_param.start_timeout;
    return start->began + (is_by_hand(agent) ? MANUAL_NS : tb_param.start_timeout);
}

static void look_at(struct tb_job_start *start, uint64_t due)
{
    uint64_t now = tb_loop_now(start->loop);
    if (!tb_timer_is_set(&start->timer) || start->timer.due > due)
        tb_timer_set(start->loop, &start->timer, due > now ? due - now : 0);
}

static void overdue(struct tb_timer *timer)
{
    struct tb_job_start *start = TB_CONTAINER(timer, struct tb_job_start, timer);
    char names[1024] = "", why[1024];
    size_t used = 0;
    uint64_t now = tb_loop_now(start->loop), waited = now - start->began;
    for (uint32_t i = 0; i < start->agents->count && used < sizeof names; i++) {
        struct tb_host_agent *agent = &start->agents->all[i];
        bool in_cluster = *agent->cluster != 0;
        if (tb_host_agent_is_ready(agent) || agent->phase == TB_HOST_AGENT_WAITING || is_missed(start, agent))
            continue; /* nobody has asked these, or waits for them any more */
        if (due_of(start, agent) > now) {
            look_at(start, due_of(start, agent));
            continue;
        }
        if (go_around_late(start, agent))
            return;
        if (can_miss(start, agent)) {
            snprintf(why, sizeof why, "no answer within %.3g s from host %s of cluster %s.", (double)waited / 1e9,
                     agent->target.host, agent->cluster);
            tb_job_start_miss(start, agent, why);
            continue;
        }
        used +=
            (size_t)snprintf(names + used, sizeof names - used, "%s%s%s%s%s", used > 0 ? ", " : "", agent->target.host,
                             in_cluster ? " (cluster " : "", agent->cluster, in_cluster ? ")" : "");
    }
    if (used > 0)
        fail(start,
             "no answer within %.10g s from: %s; can they be reached by hand? (--set start_timeout=60s waits longer)",
             (double)tb_param.start_timeout / 1e9, names);
    else if (start->missed_count > 0 && !start->over)
        /* Those that nobody has asked, since too many did not answer, have their turn in the next attempt. */
        start->events.again(start->events.context);
}

/* ---- clusters that are started by hand --------------------------------------------------------------------------- */

static bool manual_wanted(void *context, uint32_t host)
{
    const struct tb_job_start *start = context;
    const struct tb_host_agent *agent = &start->agents->all[host];
    return agent->phase == TB_HOST_AGENT_SILENT && !tb_tls_stream_is_open(&agent->tls);
}

static void manual_came(void *context, uint32_t host, int socket, const struct tb_key *secret)
{
    struct tb_job_start *start = context;
    struct tb_host_agent *agent = &start->agents->all[host];
    int rc = tb_host_agent_take_socket(agent, socket, secret);
    if (rc == TB_OK) {
        look_at(start, due_of(start, agent));
        return;
    }
    close(socket);
    if (rc == TB_ERR_UNSUPPORTED)
        tb_job_start_miss(start, agent, tb_error_story());
    else if (rc == TB_ERR_SYSTEM) /* it cannot be waited for; otherwise it may come again */
        tb_host_agent_end(agent);
}

/* Tells the user what to type. */
static int expect_by_hand(struct tb_job_start *start, const struct tb_host_agent *agent)
{
    const struct tb_manual_listener_events events = {.context = start, .wanted = manual_wanted, .came = manual_came};
    char secret[TB_MANUAL_SECRET_BYTES], text[4096];
    int rc = start->manual.loop == NULL ? tb_manual_listener_open(&start->manual, start->loop, &events) : TB_OK;
    if (rc == TB_OK)
        rc = tb_manual_listener_expect(&start->manual, agent->host, secret);
    if (rc != TB_OK)
        return rc;
    snprintf(text, sizeof text,
             "cluster %s is to be started by hand, within %u minutes. On its host %s, type\n\n"
             "    %s agent --join %s\n\nand when it asks for the secret:\n\n    %s\n",
             agent->cluster, (unsigned)(MANUAL_NS / 60000000000u), agent->target.host, agent->target.program,
             start->manual.addresses, secret);
    start->events.note(start->events.context, text);
    explicit_bzero(secret, sizeof secret);
    explicit_bzero(text, sizeof text);
    return TB_OK;
}

/* ---- starting ---------------------------------------------------------------------------------------------------- */

static void start_agent(struct tb_job_start *start, struct tb_host_agent *agent)
{
    const struct tb_job_plan *plan = start->plan;
    int rc = agent->manual && agent->parent == NULL ? expect_by_hand(start, agent) : TB_OK;
    if (rc == TB_OK)
        rc = tb_host_agent_start(agent, start->mask);
    if (rc != TB_OK) {
        tb_job_start_miss(start, agent, tb_error_story());
        tb_host_agent_give_up(agent);
        tb_host_agents_give_up_behind(start->agents, agent);
    } else if (tb_agent_orders_setup(agent, &plan->setup, plan->grid, &plan->placement) != TB_OK) {
        fail(start, "cannot tell host %s what to start: %s", agent->target.host, tb_error_story());
    }
}

/* As many as may be starting at once. */
static void start_agents(struct tb_job_start *start)
{
    struct tb_host_agent *agent;
    for (uint32_t at = 0; !start->over && (agent = tb_host_agents_next(start->agents, &at)) != NULL;)
        start_agent(start, agent);
}

void tb_job_start_begin(struct tb_job_start *start, const sigset_t *mask)
{
    struct tb_host_agent *first = &start->agents->all[0];
    start->mask = mask;
    start->began = tb_loop_now(start->loop);
    start->known = is_known(start); /* and not what hosts say later */
    tb_timer_set(start->loop, &start->timer, tb_param.start_timeout);
    start_agents(start);
    /* With one host nobody needs an address, so it can start its ranks at once. */
    if (start->known && first->control.out >= 0)
        deliver(start);
}

void tb_job_start_take_ready(struct tb_job_start *start)
{
    start_agents(start);
    check(start);
}

void tb_job_start_stop(struct tb_job_start *start)
{
    start->over = true;
    end_delivery(start);
    tb_timer_clear(&start->timer);
    tb_reach_survey_cancel(&start->survey);
    tb_group_tests_stop(&start->groups);
}

void tb_job_start_forget(struct tb_job_start *start)
{
    tb_manual_listener_forget(&start->manual);
    tb_reach_survey_close(&start->survey);
    tb_group_tests_close(&start->groups);
    end_delivery(start);
    start->missed_count = 0;
    start->booked = start->begun = start->over = false;
}
