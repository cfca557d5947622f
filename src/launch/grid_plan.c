#include "launch/grid_plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CANDIDATES     16u /* agents that can start another one, of which one is chosen */
#define CHILDREN_BLOCK 64u /* so many are given to one agent before the next one gets some */

/* ---- who can be started ------------------------------------------------------------------------------------------ */

/* The outermost cluster around this one that is started by hand. */
static uint32_t find_manual_cluster(const struct tb_grid_plan *plan, const struct tb_options *options, uint32_t cluster)
{
    uint32_t found = TB_GRID_NONE;
    for (; cluster != TB_GRID_NONE; cluster = plan->grid->clusters[cluster].parent)
        for (uint32_t i = 0; i < options->manual_count; i++)
            if (strcmp(options->manual[i], plan->grid->clusters[cluster].name) == 0)
                found = cluster;
    return found;
}

/* One host of each cluster that is started by hand: its first gateway, or its first host. */
static int choose_manual(struct tb_grid_plan *plan, const struct tb_options *options)
{
    const struct tb_grid *grid = plan->grid;
    for (uint32_t i = 0; i < plan->connectivity.classes.class_count; i++) {
        uint32_t host = tb_host_classes_member(&plan->connectivity.classes, i, 0);
        plan->manual_clusters[i] = find_manual_cluster(plan, options, grid->hosts[host].cluster);
    }
    for (uint32_t i = 0; i < options->manual_count; i++) {
        uint32_t cluster = tb_grid_cluster_find(grid, options->manual[i]);
        if (cluster == TB_GRID_NONE)
            return tb_error(TB_ERR_ARGUMENT, "--manual %s: there is no such cluster in %s", options->manual[i],
                            grid->file);
        const struct tb_grid_cluster *c = &grid->clusters[cluster];
        const uint32_t *list = c->gateway_count > 0 ? c->gateways : c->hosts;
        uint32_t count = c->gateway_count > 0 ? c->gateway_count : c->host_count, k = 0;
        while (k < count && plan->missing[list[k]])
            k++;
        if (k < count)
            plan->manual[list[k]] = true;
    }
    return TB_OK;
}

static bool is_alive(const struct tb_grid_plan *plan, uint32_t class)
{
    const struct tb_host_classes *classes = &plan->connectivity.classes;
    for (uint32_t i = 0; i < tb_host_classes_size(classes, class); i++)
        if (!plan->missing[tb_host_classes_member(classes, class, i)])
            return true;
    return false;
}

/* The link that is crossed from one class to another, if the file has one. */
static const struct tb_grid_link *crossed_link(const struct tb_grid_plan *plan, uint32_t from, uint32_t to)
{
    return from != to ? tb_connectivity_link(&plan->connectivity, from, to) : NULL;
}

static bool is_avoided(const struct tb_grid_plan *plan, uint32_t from, uint32_t to)
{
    const struct tb_grid_link *link = plan->avoided != NULL ? crossed_link(plan, from, to) : NULL;
    return link != NULL && plan->avoided[(link - plan->grid->links) / 2];
}

/* Whether an agent on a host of one class can start one on a host of another. */
static bool can_start(const struct tb_grid_plan *plan, uint32_t from, uint32_t to)
{
    return tb_connectivity_reaches(&plan->connectivity, from, to) && !is_avoided(plan, from, to) &&
           (plan->manual_clusters[to] == TB_GRID_NONE || plan->manual_clusters[to] == plan->manual_clusters[from]);
}

static bool can_launch(const struct tb_grid_plan *plan, uint32_t class)
{
    const struct tb_host_classes *classes = &plan->connectivity.classes;
    if (plan->here != TB_GRID_NONE)
        return can_start(plan, classes->of[plan->here], class);
    return plan->manual_clusters[class] == TB_GRID_NONE &&
           tb_grid_outsider_reaches(plan->grid, tb_host_classes_member(classes, class, 0));
}

static uint32_t depth_of(const struct tb_grid_plan *plan, uint32_t host)
{
    uint32_t class = plan->connectivity.classes.of[host];
    if (plan->manual[host] || host == plan->here)
        return 0;
    return class != TB_GRID_NONE ? plan->depths[class] : TB_GRID_NONE;
}

/* The nearest first, level by level. */
static void measure_depths(struct tb_grid_plan *plan)
{
    const struct tb_host_classes *classes = &plan->connectivity.classes;
    uint32_t n = classes->class_count;
    for (uint32_t i = 0; i < n; i++)
        plan->depths[i] = is_alive(plan, i) && can_launch(plan, i) ? 0 : TB_GRID_NONE;
    for (uint32_t h = 0; h < plan->grid->host_count; h++)
        for (uint32_t i = 0; plan->manual[h] && i < n; i++)
            if (plan->depths[i] == TB_GRID_NONE && can_start(plan, classes->of[h], i))
                plan->depths[i] = 1;
    bool more = true;
    for (uint32_t depth = 0; more; depth++) {
        more = false;
        for (uint32_t i = 0; i < n; i++) {
            more = more || (plan->depths[i] == depth + 1);
            for (uint32_t k = 0; k < n && plan->depths[i] == depth; k++)
                if (plan->depths[k] == TB_GRID_NONE && is_alive(plan, k) && can_start(plan, i, k)) {
                    plan->depths[k] = depth + 1;
                    more = true;
                }
        }
    }
}

/* The routes between classes, by whom they reach and what is not cut. */
static int make_routes(struct tb_grid_plan *plan)
{
    size_t count = (size_t)plan->connectivity.classes.class_count * plan->connectivity.classes.class_count;
    uint8_t *reach = plan->connectivity.reach, *masked = plan->cuts != NULL ? malloc(count + 1) : reach;
    if (masked == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for routes that go around something");
    for (size_t i = 0; i < count && masked != reach; i++)
        masked[i] = reach[i] && !plan->cuts[i];
    tb_routes_close(&plan->routes);
    plan->connectivity.reach = masked;
    int rc = tb_routes_open(&plan->routes, &plan->connectivity);
    plan->connectivity.reach = reach;
    if (masked != reach)
        free(masked);
    return rc == TB_OK ? tb_grid_plan_find_relays(plan) : rc;
}

int tb_grid_plan_open(struct tb_grid_plan *plan, const struct tb_options *options, uint32_t here, bool *missing)
{
    return tb_grid_plan_open_for(plan, options, here, missing, NULL);
}

int tb_grid_plan_open_for(struct tb_grid_plan *plan, const struct tb_options *options, uint32_t here, bool *missing,
                          const bool *ranked)
{
    const struct tb_grid *grid = options->grid;
    *plan = (struct tb_grid_plan){.grid = grid, .here = here, .missing = missing, .ranked = ranked};
    int rc = tb_grid_plan_connect(plan, options);
    if (rc != TB_OK)
        return rc;
    uint32_t n = plan->connectivity.classes.class_count;
    plan->manual = calloc(grid->host_count + 1u, sizeof *plan->manual);
    plan->manual_clusters = calloc(n + 1u, sizeof *plan->manual_clusters);
    plan->depths = calloc(n + 1u, sizeof *plan->depths);
    plan->book = calloc(grid->host_count + 1u, sizeof *plan->book);
    plan->parents = calloc(grid->host_count + 1u, sizeof *plan->parents);
    if (plan->manual == NULL || plan->manual_clusters == NULL || plan->depths == NULL || plan->book == NULL ||
        plan->parents == NULL)
        rc = tb_error(TB_ERR_MEMORY, "no memory for the hosts of %s", grid->file);
    for (uint32_t i = 0; rc == TB_OK && i < grid->host_count; i++)
        plan->book[i] = TB_GRID_NONE;
    for (uint32_t i = 0; rc == TB_OK && i < n; i++)
        if (!is_alive(plan, i))
            tb_connectivity_cut(&plan->connectivity, i);
    if (rc == TB_OK)
        rc = make_routes(plan);
    if (rc == TB_OK)
        rc = choose_manual(plan, options);
    if (rc == TB_OK)
        measure_depths(plan);
    else
        tb_grid_plan_close(plan);
    return rc;
}

void tb_grid_plan_avoid(struct tb_grid_plan *plan, bool *avoided)
{
    plan->avoided = avoided;
    measure_depths(plan);
}

void tb_grid_plan_close(struct tb_grid_plan *plan)
{
    tb_routes_close(&plan->routes);
    tb_connectivity_close(&plan->connectivity);
    free(plan->manual);
    free(plan->manual_clusters);
    free(plan->depths);
    free(plan->book);
    free(plan->relays);
    free(plan->cuts);
    free(plan->parents);
    *plan = (struct tb_grid_plan){.here = TB_GRID_NONE};
}

/* ---- who takes part ---------------------------------------------------------------------------------------------- */

static uint32_t host_class(const struct tb_grid_plan *plan, const struct tb_placement *placement, uint32_t host)
{
    return plan->connectivity.classes.of[placement->entries[host]];
}

static void take_in(struct tb_grid_plan *plan, const struct tb_options *options, struct tb_placement *placement,
                    uint32_t grid_host)
{
    if (plan->book[grid_host] != TB_GRID_NONE || plan->missing[grid_host])
        return;
    tb_placement_add(placement, options, grid_host, &plan->book[grid_host]);
}

/* All that may be handed something on the way from one class to another. */
static void take_relays(struct tb_grid_plan *plan, const struct tb_options *options, struct tb_placement *placement,
                        uint32_t from, uint32_t to, bool *seen)
{
    const struct tb_host_classes *classes = &plan->connectivity.classes;
    const struct tb_route *route = tb_routes_between(&plan->routes, from, to);
    if (seen[from] || from == to)
        return;
    seen[from] = true;
    uint32_t taken = 0;
    for (uint32_t i = 0; i < route->count; i++) {
        uint32_t next = plan->routes.nexts[route->first + i];
        for (uint32_t k = 0; next != to && k < tb_host_classes_size(classes, next); k++) {
            uint32_t host = tb_host_classes_member(classes, next, k);
            if (!plan->missing[host] && taken++ < TB_HOST_ROUTES_HOPS_LIMIT)
                take_in(plan, options, placement, host);
        }
        take_relays(plan, options, placement, next, to, seen);
    }
}

/* Gateways in reserve too, for when another one is lost. */
static void take_gateways(struct tb_grid_plan *plan, const struct tb_options *options, struct tb_placement *placement,
                          uint32_t grid_host)
{
    const struct tb_grid_host *host = &plan->grid->hosts[grid_host];
    for (uint32_t i = 0; i < host->cluster_count; i++)
        for (uint32_t c = host->clusters[i]; c != TB_GRID_NONE; c = plan->grid->clusters[c].parent) {
            const struct tb_grid_cluster *cluster = &plan->grid->clusters[c];
            for (uint32_t k = 0; k < cluster->gateway_count && k < TB_HOST_ROUTES_HOPS_LIMIT; k++)
                if (depth_of(plan, cluster->gateways[k]) != TB_GRID_NONE)
                    take_in(plan, options, placement, cluster->gateways[k]);
        }
}

static bool can_take_part(const struct tb_grid_plan *plan, uint32_t grid_host)
{
    return plan->book[grid_host] == TB_GRID_NONE && !plan->missing[grid_host] &&
           depth_of(plan, grid_host) != TB_GRID_NONE;
}

/* So many of each class that all together can try each other. */
static void take_more(struct tb_grid_plan *plan, const struct tb_options *options, struct tb_placement *placement)
{
    const struct tb_host_classes *classes = &plan->connectivity.classes;
    bool more = true;
    for (uint32_t place = 0; more; place++) {
        more = false;
        for (uint32_t i = 0; i < classes->class_count; i++) {
            if (place >= tb_host_classes_size(classes, i))
                continue;
            uint32_t host = tb_host_classes_member(classes, i, place);
            more = true;
            if (placement->book.host_count >= TB_REACH_RESULTS_HOSTS)
                return;
            if (can_take_part(plan, host))
                take_in(plan, options, placement, host);
        }
    }
}

bool tb_grid_plan_has_more(const struct tb_grid_plan *plan)
{
    uint32_t count = 0;
    bool more = false;
    for (uint32_t i = 0; i < plan->grid->host_count; i++) {
        count += plan->book[i] != TB_GRID_NONE;
        more = more || can_take_part(plan, i);
    }
    return more && count < TB_REACH_RESULTS_HOSTS;
}

/* ---- who starts whom --------------------------------------------------------------------------------------------- */

static bool share_cluster(const struct tb_grid *grid, uint32_t a, uint32_t b)
{
    for (uint32_t i = 0; i < grid->hosts[a].cluster_count; i++)
        if (tb_grid_cluster_has(&grid->clusters[grid->hosts[a].clusters[i]], b))
            return true;
    return false;
}

/* Those who can start a host: of its own cluster if there are some, and of these whoever takes part anyway. */
static uint32_t list_candidates(const struct tb_grid_plan *plan, uint32_t host, uint32_t *candidates)
{
    const struct tb_host_classes *classes = &plan->connectivity.classes;
    uint32_t count = 0, depth = depth_of(plan, host), best = 0;
    for (uint32_t h = 0; h < plan->grid->host_count; h++) {
        if (h == host || plan->missing[h] || depth_of(plan, h) != depth - 1 ||
            !can_start(plan, classes->of[h], classes->of[host]))
            continue;
        uint32_t rating = 1 + (share_cluster(plan->grid, h, host) ? 2u : 0) + (plan->book[h] != TB_GRID_NONE);
        if (rating > best) {
            best = rating;
            count = 0;
        }
        if (rating == best && count < CANDIDATES)
            candidates[count++] = h;
    }
    return count;
}

/* The answer is the same for all hosts of a class, but for who has how much to do already. */
static int choose_parents(struct tb_grid_plan *plan, const struct tb_options *options, struct tb_placement *placement)
{
    uint32_t last_class = TB_GRID_NONE, count = 0, candidates[CANDIDATES];
    uint32_t *children = calloc(plan->grid->host_count + 1u, sizeof *children);
    if (children == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for the hosts of %s", plan->grid->file);
    for (uint32_t i = 0; i < placement->book.host_count; i++) { /* grows while we go */
        uint32_t host = (uint32_t)placement->entries[i], class = plan->connectivity.classes.of[host];
        plan->parents[i] = TB_GRID_NONE;
        if (depth_of(plan, host) == 0)
            continue;
        if (class != last_class)
            count = list_candidates(plan, host, candidates);
        last_class = class;
        TB_ASSERT(count > 0);
        uint32_t best = candidates[0];
        for (uint32_t k = 1; k < count; k++)
            if (children[candidates[k]] / CHILDREN_BLOCK < children[best] / CHILDREN_BLOCK)
                best = candidates[k];
        children[best]++;
        take_in(plan, options, placement, best);
        plan->parents[i] = plan->book[best];
    }
    free(children);
    return TB_OK;
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

static int complain_unstartable(const struct tb_grid_plan *plan, uint32_t grid_host)
{
    const struct tb_grid_host *host = &plan->grid->hosts[grid_host];
    const char *cluster = plan->grid->clusters[host->cluster].name;
    return tb_error(TB_ERR_UNSUPPORTED,
                    "%s:%u: nobody can start an agent on host %s of cluster %s: %s can connect to it, directly or "
                    "through gateways. Give the cluster a gateway, start the job on a host of the grid that reaches "
                    "it, or start the cluster by hand with --manual %s",
                    plan->grid->file, host->line, host->name, cluster,
                    plan->here != TB_GRID_NONE ? "from this host nobody" : "from outside of the grid nobody", cluster);
}

/* What was tried between two hosts, or, where that was not, by and with others. */
static void tell_results(const struct tb_grid_plan *plan, uint32_t a, uint32_t b, char *text, size_t size)
{
    const struct tb_reach_results *results = plan->results;
    uint32_t ends[2], hosts[2] = {a, b};
    size_t used = (size_t)snprintf(text, size, " The file does not say who can connect to whom, so this was tried");
    bool both = tb_reach_results_find(results, plan->book[a], &ends[0]) &&
                tb_reach_results_find(results, plan->book[b], &ends[1]);
    for (int i = 0; i < 2 && both && used < size; i++) {
        size_t at = (size_t)ends[i] * results->count + ends[1 - i];
        if (results->results[at] != TB_REACH_NO)
            continue;
        used += (size_t)snprintf(text + used, size - used, "; %s to %s: %s", plan->grid->hosts[hosts[i]].name,
                                 plan->grid->hosts[hosts[1 - i]].name,
                                 results->stories[at] != NULL ? results->stories[at] : "no answer in time");
    }
    if (used + 1 < size)
        snprintf(text + used, size - used, ".");
}

static int complain_wayless(const struct tb_grid_plan *plan, uint32_t a, uint32_t b)
{
    const struct tb_grid_host *from = &plan->grid->hosts[a], *to = &plan->grid->hosts[b];
    char tried[420] = "";
    if (plan->results != NULL)
        tell_results(plan, a, b, tried, sizeof tried);
    return tb_error(TB_ERR_UNSUPPORTED,
                    "%s:%u: hosts %s and %s both carry ranks, but there is no way for messages between them.%s One of "
                    "their clusters needs a gateway, `nat: true`, or a host with a foot in another; or take in a host "
                    "that reaches both, such as a laptop with `slots: 0` in a cluster of its own (docs/guide/grid.md). "
                    "`tombolo route %s` shows who reaches whom%s",
                    plan->grid->file, to->line, from->name, to->name, tried, plan->grid->file,
                    *tried != 0 ? " as the file has it" : "");
}

/* For each pair of classes with ranks: takes in who is between them. */
static int join_classes(struct tb_grid_plan *plan, const struct tb_options *options, struct tb_placement *placement,
                        const uint32_t *examples)
{
    uint32_t n = plan->routes.class_count;
    bool *seen = calloc(n + 1u, sizeof *seen);
    int rc = seen != NULL ? TB_OK : tb_error(TB_ERR_MEMORY, "no memory for the hosts of %s", plan->grid->file);
    for (uint32_t i = 0; i < n && rc == TB_OK; i++)
        for (uint32_t k = 0; k < n && rc == TB_OK; k++) {
            if (i == k || examples[i] == TB_GRID_NONE || examples[k] == TB_GRID_NONE)
                continue;
            if (tb_routes_between(&plan->routes, i, k)->cost == TB_ROUTE_COST_NONE) {
                rc = complain_wayless(plan, examples[i], examples[k]);
            } else if (placement != NULL) {
                memset(seen, 0, n * sizeof *seen);
                take_relays(plan, options, placement, i, k, seen);
            }
        }
    free(seen);
    return rc;
}

/* A host with ranks of each class, or TB_GRID_NONE; allocated. */
static uint32_t *list_examples(const struct tb_grid_plan *plan, const struct tb_placement *placement)
{
    uint32_t *examples = malloc((plan->routes.class_count + 1u) * sizeof *examples);
    for (uint32_t i = 0; examples != NULL && i < plan->routes.class_count; i++)
        examples[i] = TB_GRID_NONE;
    for (uint32_t i = placement->book.host_count; examples != NULL && i-- > 0;)
        if (tb_placement_carries(placement, i) && !plan->missing[placement->entries[i]])
            examples[host_class(plan, placement, i)] = (uint32_t)placement->entries[i];
    if (examples == NULL)
        tb_error(TB_ERR_MEMORY, "no memory for the hosts of %s", plan->grid->file);
    return examples;
}

int tb_grid_plan_settle(struct tb_grid_plan *plan, const struct tb_options *options, struct tb_placement *placement)
{
    uint32_t with_ranks = placement->book.host_count, *examples = list_examples(plan, placement);
    int rc = examples != NULL ? TB_OK : TB_ERR_MEMORY;
    for (uint32_t i = 0; i < with_ranks && rc == TB_OK; i++) {
        uint32_t host = (uint32_t)placement->entries[i];
        plan->book[host] = i;
        if (depth_of(plan, host) == TB_GRID_NONE)
            rc = complain_unstartable(plan, host);
    }
    if (rc == TB_OK)
        rc = join_classes(plan, options, placement, examples);
    if (rc == TB_OK && plan->with_helpers)
        take_more(plan, options, placement);
    for (uint32_t i = 0; i < placement->book.host_count && rc == TB_OK; i++) {
        uint32_t host = (uint32_t)placement->entries[i];
        take_gateways(plan, options, placement, host);
        if (depth_of(plan, host) == TB_GRID_NONE)
            rc = complain_unstartable(plan, host);
    }
    if (rc == TB_OK)
        rc = choose_parents(plan, options, placement);
    for (uint32_t i = 0; i < placement->book.host_count && rc == TB_OK; i++)
        placement->book.hosts[i].kind = host_class(plan, placement, i);
    if (rc == TB_OK && placement->book.host_count > TB_JOB_HOSTS_LIMIT)
        rc = tb_error(TB_ERR_LIMIT, "%s: with those between them, more than %u hosts would take part", plan->grid->file,
                      TB_JOB_HOSTS_LIMIT);
    free(examples);
    return rc;
}

static bool can_start_ranks(const struct tb_grid_plan *plan, const struct tb_placement *placement)
{
    for (uint32_t i = 0; i < placement->book.host_count; i++)
        if (tb_placement_carries(placement, i) &&
            (plan->missing[placement->entries[i]] || depth_of(plan, (uint32_t)placement->entries[i]) == TB_GRID_NONE))
            return false;
    return true;
}

const struct tb_grid_link *tb_grid_plan_avoidable(const struct tb_grid_plan *plan, const struct tb_options *options,
                                                  const struct tb_placement *placement, uint32_t from, uint32_t to)
{
    const uint32_t *classes = plan->connectivity.classes.of;
    const struct tb_grid_link *link = crossed_link(plan, classes[from], classes[to]);
    if (link == NULL || is_avoided(plan, classes[from], classes[to]))
        return NULL;
    struct tb_grid_plan without;
    bool *avoided = calloc(plan->grid->link_count / 2 + 1u, sizeof *avoided);
    bool possible =
        avoided != NULL && tb_grid_plan_open_for(&without, options, plan->here, plan->missing, plan->ranked) == TB_OK;
    if (possible) {
        if (plan->avoided != NULL)
            memcpy(avoided, plan->avoided, plan->grid->link_count / 2 * sizeof *avoided);
        avoided[(link - plan->grid->links) / 2] = true;
        tb_grid_plan_avoid(&without, avoided);
        possible = can_start_ranks(&without, placement);
        tb_grid_plan_close(&without);
    }
    free(avoided);
    return possible ? link : NULL;
}

bool tb_grid_plan_can_miss(const struct tb_grid_plan *plan, const struct tb_options *options,
                           const struct tb_placement *placement, uint32_t grid_host)
{
    struct tb_grid_plan without;
    bool *missing = malloc(plan->grid->host_count + 1u);
    if (missing == NULL)
        return false;
    memcpy(missing, plan->missing, plan->grid->host_count);
    missing[grid_host] = true;
    uint32_t here = plan->here != grid_host ? plan->here : TB_GRID_NONE;
    bool possible = tb_grid_plan_open_for(&without, options, here, missing, plan->ranked) == TB_OK;
    if (possible)
        tb_grid_plan_avoid(&without, plan->avoided);
    possible = possible && can_start_ranks(&without, placement);
    uint32_t *examples = possible ? list_examples(&without, placement) : NULL;
    possible = examples != NULL && join_classes(&without, options, NULL, examples) == TB_OK;
    free(examples);
    tb_grid_plan_close(&without);
    free(missing);
    return possible;
}

int tb_grid_plan_lose(struct tb_grid_plan *plan, const struct tb_placement *placement, uint32_t host)
{
    plan->missing[placement->entries[host]] = true;
    plan->version++;
    int rc = tb_grid_plan_reroute(plan, placement);
    if (rc != TB_OK && plan->cuts != NULL) {
        free(plan->cuts); /* better a way that may heal than none */
        plan->cuts = NULL;
        rc = tb_grid_plan_reroute(plan, placement);
    }
    return rc == TB_OK ? TB_OK : TB_ERR_PEER;
}

int tb_grid_plan_reroute(struct tb_grid_plan *plan, const struct tb_placement *placement)
{
    const struct tb_host_classes *classes = &plan->connectivity.classes;
    for (uint32_t i = 0; i < classes->class_count; i++) {
        bool used = false; /* agents are where they are by now, so only these can pass something on */
        for (uint32_t k = 0; k < tb_host_classes_size(classes, i) && !used; k++) {
            uint32_t member = tb_host_classes_member(classes, i, k);
            used = plan->book[member] != TB_GRID_NONE && !plan->missing[member];
        }
        if (!used)
            tb_connectivity_cut(&plan->connectivity, i);
    }
    int rc = make_routes(plan);
    uint32_t *examples = rc == TB_OK ? list_examples(plan, placement) : NULL;
    if (rc == TB_OK)
        rc = examples != NULL ? join_classes(plan, NULL, NULL, examples) : TB_ERR_MEMORY;
    free(examples);
    return rc;
}

/* Whether the control stream of a host of the address book goes through another one, or it is that one itself. */
static bool is_behind(const struct tb_grid_plan *plan, uint32_t host, uint32_t other)
{
    while (host != TB_GRID_NONE && host != other)
        host = plan->parents[host];
    return host != TB_GRID_NONE;
}

/* For one to which the launcher has a way of its own: whom it can connect to, some of each class, since the ways of a
 * class may all be cut at once. */
static uint32_t list_neighbours(const struct tb_grid_plan *plan, uint32_t host, uint32_t own, uint32_t room,
                                uint32_t *stand_ins)
{
    const struct tb_host_classes *classes = &plan->connectivity.classes;
    uint32_t count = 0;
    bool more = true;
    for (uint32_t place = 0; more; place++) {
        more = false;
        for (uint32_t i = 0; i < classes->class_count && count < room; i++) {
            if (place >= tb_host_classes_size(classes, i) ||
                !tb_connectivity_reaches(&plan->connectivity, classes->of[own], i))
                continue;
            uint32_t member = tb_host_classes_member(classes, i, place), there = plan->book[member];
            more = true;
            if (there != TB_GRID_NONE && !plan->missing[member] && there != plan->parents[host] &&
                !is_behind(plan, there, host))
                stand_ins[count++] = there;
        }
    }
    return count;
}

uint32_t tb_grid_plan_stand_ins(const struct tb_grid_plan *plan, const struct tb_placement *placement, uint32_t host,
                                uint32_t room, uint32_t *stand_ins)
{
    uint32_t own = (uint32_t)placement->entries[host], candidates[CANDIDATES], count = 0;
    uint32_t depth = depth_of(plan, own);
    if (depth == 0)
        return list_neighbours(plan, host, own, room, stand_ins);
    uint32_t found = depth != TB_GRID_NONE ? list_candidates(plan, own, candidates) : 0;
    for (uint32_t i = 0; i < found && count < room; i++) {
        uint32_t there = plan->book[candidates[i]];
        if (there != TB_GRID_NONE && there != plan->parents[host])
            stand_ins[count++] = there;
    }
    return count;
}
