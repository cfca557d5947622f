#include "launch/job_plan.h"

#include "launch/host_names.h"
#include "launch/job_setup.h"
#include "launch/missing_hosts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Hosts that nobody can start are missing before anything has begun. Whether there were some. */
static bool leave_out(struct tb_grid_plan *grid_plan, void (*note)(void *context, const char *text), void *context)
{
    const struct tb_grid *grid = grid_plan->grid;
    bool news, any = false;
    for (uint32_t i = 0; (i = tb_missing_hosts_next(grid_plan, i, &news)) != TB_GRID_NONE; i++) {
        char text[512];
        any = true;
        snprintf(text, sizeof text,
                 "host %s of cluster %s is missing: nobody can start an agent there. The job starts without it.",
                 grid->hosts[i].name, grid->clusters[grid->hosts[i].cluster].name);
        if (news)
            note(context, text);
    }
    return any;
}

/* The user has named hosts of the grid: only these get ranks, so many as he says, unless they are missing. */
static int choose_hosts(struct tb_options *options, const bool *missing)
{
    struct tb_host_list *hosts = &options->hosts;
    const struct tb_host_list *chosen = &options->chosen;
    for (uint32_t i = 0; i < chosen->count; i++)
        if (tb_host_list_find(hosts, chosen->entries[i].name, NULL, 0) < 0)
            return tb_error(TB_ERR_ARGUMENT, "%s: there is no host %s in %s",
                            options->rank_file_name != NULL ? options->rank_file_name : "-H", chosen->entries[i].name,
                            options->grid->file);
    for (uint32_t i = 0; i < hosts->count && chosen->count > 0; i++) {
        int at = tb_host_list_find(chosen, hosts->entries[i].name, NULL, 0);
        if (hosts->entries[i].slots > 0 || at >= 0)
            hosts->entries[i].slots = at >= 0 && !missing[i] ? chosen->entries[at].slots : 0;
    }
    return TB_OK;
}

/* On which hosts of the grid ranks go. */
static int place_on_grid(struct tb_job_plan *plan)
{
    struct tb_options *options = plan->options;
    const struct tb_grid *grid = options->grid;
    tb_placement_close(&plan->placement);
    tb_host_list_close(&options->hosts);
    int rc = tb_host_list_take(&options->hosts, grid, plan->missing);
    if (rc == TB_OK)
        rc = choose_hosts(options, plan->missing);
    if (rc == TB_OK)
        rc = tb_placement_make(&plan->placement, options);
    memset(plan->ranked, 0, grid->host_count * sizeof *plan->ranked);
    for (uint32_t i = 0; i < plan->placement.book.host_count && rc == TB_OK; i++)
        if (plan->placement.entries[i] >= 0)
            plan->ranked[plan->placement.entries[i]] = true;
    return rc;
}

static int open_grid(struct tb_job_plan *plan, void (*note)(void *context, const char *text), void *context)
{
    struct tb_options *options = plan->options;
    const struct tb_grid *grid = options->grid;
    if (plan->missing == NULL)
        plan->missing = calloc(grid->host_count + 1u, sizeof *plan->missing);
    if (plan->ranked == NULL)
        plan->ranked = calloc(grid->host_count + 1u, sizeof *plan->ranked);
    plan->grid = calloc(1, sizeof *plan->grid);
    if (plan->missing == NULL || plan->ranked == NULL || plan->grid == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for the hosts of %s", grid->file);
    uint32_t here = tb_host_names_find_here(grid, plan->missing, options->lab != NULL);
    int rc;
    do { /* where hosts are left out others get ranks, perhaps some that were not looked at */
        rc = place_on_grid(plan);
        if (rc != TB_OK || (plan->grid->grid != NULL && tb_grid_plan_covers(plan->grid, &plan->placement)))
            continue;
        tb_grid_plan_close(plan->grid);
        rc = tb_grid_plan_open_for(plan->grid, options, here, plan->missing, plan->ranked);
        plan->grid->with_helpers = plan->with_helpers;
        if (rc == TB_OK)
            tb_grid_plan_avoid(plan->grid, plan->avoided);
    } while (rc == TB_OK && options->allow_missing && leave_out(plan->grid, note, context));
    return rc;
}

int tb_job_plan_open(struct tb_job_plan *plan, void (*note)(void *context, const char *text), void *context)
{
    int rc = plan->options->grid != NULL ? open_grid(plan, note, context)
                                         : tb_placement_make(&plan->placement, plan->options);
    if (rc == TB_OK && plan->grid != NULL)
        rc = tb_grid_plan_settle(plan->grid, plan->options, &plan->placement);
    for (uint32_t i = 0; rc == TB_OK && i < plan->placement.book.host_count; i++)
        plan->placement.book.hosts[i].representation = TB_REP_UNKNOWN;
    return rc == TB_OK ? tb_job_setup_make(&plan->setup, plan->options, &plan->placement) : rc;
}

const char *tb_job_plan_avoid(struct tb_job_plan *plan, uint32_t from, uint32_t to)
{
    const struct tb_grid *grid = plan->options->grid;
    const struct tb_grid_link *link = tb_grid_plan_avoidable(plan->grid, plan->options, &plan->placement, from, to);
    if (link != NULL && plan->avoided == NULL) {
        plan->avoided = calloc(grid->link_count / 2 + 1u, sizeof *plan->avoided);
        plan->grid->avoided = plan->avoided;
    }
    if (link == NULL || plan->avoided == NULL)
        return NULL;
    plan->avoided[(link - grid->links) / 2] = true;
    return link->name;
}

void tb_job_plan_close(struct tb_job_plan *plan)
{
    tb_job_setup_forget(&plan->setup);
    tb_placement_close(&plan->placement);
    if (plan->grid != NULL)
        tb_grid_plan_close(plan->grid);
    free(plan->grid);
    free(plan->ranked);
    plan->grid = NULL;
    plan->ranked = NULL;
    plan->machine = 0;
    plan->told = (struct tb_told_places){0};
}

/* ---- agents ------------------------------------------------------------------------------------------------------ */

static void aim(const struct tb_job_plan *plan, struct tb_host_agent *agent)
{
    const struct tb_options *options = plan->options;
    int entry = plan->placement.entries[agent->host];
    const struct tb_host_entry *from = entry >= 0 ? &options->hosts.entries[entry] : NULL;
    agent->target = (struct tb_shell_target){.host = agent->name,
                                             .command = options->launcher,
                                             .program = options->program != NULL ? options->program : plan->program};
    agent->target.local = from == NULL || (options->launcher == NULL && from->user == NULL && from->port == 0 &&
                                           tb_host_names_is_here(from->name));
    if (from != NULL) {
        agent->target.user = from->user;
        agent->target.port = from->port;
    }
}

static void aim_on_grid(const struct tb_job_plan *plan, struct tb_host_agents *agents, struct tb_host_agent *agent)
{
    uint32_t parent = plan->grid->parents[agent->host];
    tb_grid_plan_target(plan->grid, plan->options, plan->program, &plan->placement, agent->host, &agent->target);
    agent->cluster = plan->placement.wheres[agent->host].cluster;
    agent->manual = plan->grid->manual[plan->placement.entries[agent->host]] && !agent->target.local;
    agent->parent = parent != TB_GRID_NONE ? &agents->all[parent] : NULL;
    tb_control_stream_keep(&agent->control);
}

/* One host that is this machine need not be asked: its agent is given our environment. */
static int tell_own_place(struct tb_job_plan *plan, const struct tb_host_agents *agents)
{
    struct tb_host_where own;
    if (agents->count != 1 || !agents->all[0].target.local)
        return TB_OK;
    tb_told_places_read_own(&own);
    return tb_told_places_take(&plan->placement.wheres[0], &own, plan->placement.book.hosts[0].name);
}

int tb_job_plan_open_agents(struct tb_job_plan *plan, struct tb_host_agents *agents, struct tb_loop *loop,
                            const struct tb_host_agent_events *events)
{
    int rc = tb_host_agents_open(agents, loop, plan->placement.book.host_count, events);
    for (uint32_t i = 0; i < agents->count && rc == TB_OK; i++) {
        struct tb_host_agent *agent = &agents->all[i];
        agent->name = plan->placement.book.hosts[i].name;
        agent->rank_count = plan->placement.book.hosts[i].rank_count;
        agent->spare = tb_placement_is_spare(&plan->placement, i);
        agent->window = plan->setup.window;
        int entry = plan->placement.entries[i];
        agent->origin = entry >= 0 ? plan->options->hosts.entries[entry].origin : NULL;
        if (plan->grid != NULL)
            aim_on_grid(plan, agents, agent);
        else
            aim(plan, agent);
    }
    if (rc == TB_OK)
        tb_host_agents_sort(agents);
    return rc == TB_OK && plan->grid == NULL ? tell_own_place(plan, agents) : rc;
}

bool tb_job_plan_knows_places(const struct tb_job_plan *plan, const struct tb_host_agents *agents)
{
    const struct tb_host_where *where = &plan->placement.wheres[0];
    return agents->count == 1 && (agents->all[0].target.local || *where->site != 0 || *where->cluster != 0);
}

bool tb_job_plan_remark(const struct tb_job_plan *plan, char *text, size_t size)
{
    const struct tb_told_places *told = &plan->told;
    char others[64] = " says of where it is";
    if (told->unheard == 0)
        return false;
    if (told->unheard > 1)
        snprintf(others, sizeof others, " and %u other%s say of where they are", told->unheard - 1,
                 tb_plural(told->unheard - 1));
    snprintf(text, size, "what host %s%s (%s) does not count: the grid file says something else",
             plan->placement.book.hosts[told->host].name, others, told->text);
    return true;
}

/* Data goes from memory to memory as it is. Only long double and the sign of char may differ: calls that would move the
 * one, or compare the other, say so. */
static int compare_machines(struct tb_job_plan *plan, uint32_t host, uint32_t machine)
{
    if (plan->machine == 0) {
        plan->machine = machine;
        plan->machine_host = host;
    }
    if (((machine ^ plan->machine) & ~(uint32_t)TB_REP_MAY_DIFFER) == 0)
        return TB_OK;
    char first[TB_MACHINE_BYTES], second[TB_MACHINE_BYTES];
    tb_wire_machine_print(plan->machine, first);
    tb_wire_machine_print(machine, second);
    return tb_error(TB_ERR_UNSUPPORTED,
                    "host %s (%s) and host %s (%s) write numbers differently; Tombolo cannot run one job on both",
                    plan->placement.book.hosts[plan->machine_host].name, first, plan->placement.book.hosts[host].name,
                    second);
}

int tb_job_plan_take_ready(struct tb_job_plan *plan, uint32_t host, const struct tb_agent_ready *ready)
{
    struct tb_host *to = &plan->placement.book.hosts[host];
    struct tb_host_where *where = &plan->placement.wheres[host];
    int rc = TB_OK;
    if (plan->grid != NULL)
        tb_told_places_pass_over(&plan->told, where, &ready->where, host);
    else
        rc = tb_told_places_take(where, &ready->where, to->name);
    if (rc != TB_OK)
        return rc;
    to->address_count = ready->address_count;
    memcpy(to->addresses, ready->addresses, sizeof to->addresses);
    const char *known = plan->grid != NULL ? plan->grid->grid->hosts[plan->placement.entries[host]].address : NULL;
    if (known != NULL && plan->options->lab == NULL)
        tb_host_names_add_address(to, known);
    to->representation = (uint8_t)ready->machine;
    tb_log(TB_LOG_INFO, "launch", "host %s (%s) is ready with %u addresses", to->name, ready->name,
           ready->address_count);
    rc = tb_address_book_seat(&plan->placement.book, host, ready->seats, ready->seat_count);
    return rc == TB_OK ? compare_machines(plan, host, ready->machine) : rc;
}
