#include "topology/measure_plan.h"

#include <stdlib.h>

#define ENDS 4u /* hosts of a cluster that are looked at */

static const char nobody_two[] = "there are no two hosts to do it";
static const char nobody_outside[] = "no host of the one and of the other speak straight to each other";

/* ---- tasks ------------------------------------------------------------------------------------------------------- */

static int task_add(struct tb_measure_plan *plan, const struct tb_measure_task *task)
{
    if (plan->count == plan->room) {
        uint32_t room = plan->room == 0 ? 64 : 2 * plan->room;
        void *more = realloc(plan->tasks, room * sizeof *plan->tasks);
        if (more == NULL)
            return tb_error(TB_ERR_MEMORY, "no memory for what is to be measured");
        plan->tasks = more;
        plan->room = room;
    }
    plan->tasks[plan->count++] = *task;
    return TB_OK;
}

static uint32_t count_kind(const struct tb_measure_plan *plan, enum tb_measure_kind kind)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < plan->count; i++)
        count += plan->tasks[i].kind == kind;
    return count;
}

/* Adds it, or counts what is left out. */
static int task_add_limited(struct tb_measure_plan *plan, const struct tb_measure_task *task, uint32_t limit)
{
    if (count_kind(plan, task->kind) < limit)
        return task_add(plan, task);
    plan->left_out++;
    return TB_OK;
}

static bool is_inside(const struct tb_measure_plan *plan, struct tb_measure_scope scope, uint32_t cluster)
{
    uint32_t outermost = tb_grid_outermost(plan->grid, cluster);
    return scope.cluster != TB_GRID_NONE ? outermost == scope.cluster
                                         : plan->grid->clusters[outermost].site == scope.site;
}

bool tb_measure_task_leaves(const struct tb_measure_plan *plan, const struct tb_measure_task *task,
                            struct tb_measure_scope scope)
{
    return task->kind == TB_MEASURE_LINK && is_inside(plan, scope, task->from) != is_inside(plan, scope, task->to);
}

int tb_measure_task_way(const struct tb_measure_plan *plan, const struct tb_measure_task *task,
                        struct tb_measure_scope scope, bool inward)
{
    return is_inside(plan, scope, task->from) == inward ? 1 : 0;
}

static uint32_t find_link(const struct tb_grid *grid, uint32_t from, uint32_t to)
{
    const struct tb_grid_link *link = tb_grid_link_find(grid, from, TB_GRID_NONE, to, TB_GRID_NONE);
    return link != NULL ? (uint32_t)(link - grid->links) : TB_GRID_NONE;
}

static bool is_outermost(const struct tb_grid *grid, uint32_t cluster)
{
    return grid->clusters[cluster].parent == TB_GRID_NONE;
}

/* Of links of sites: the first two clusters for which it holds. */
static bool find_clusters(const struct tb_grid *grid, uint32_t link, uint32_t *from, uint32_t *to)
{
    const struct tb_grid_link *l = &grid->links[link];
    *from = l->from;
    *to = l->to;
    if (l->from_site == TB_GRID_NONE && l->to_site == TB_GRID_NONE)
        return true;
    for (uint32_t a = 0; a < grid->cluster_count; a++) {
        if (l->from != TB_GRID_NONE ? a != l->from : !is_outermost(grid, a) || grid->clusters[a].site != l->from_site)
            continue;
        for (uint32_t b = 0; b < grid->cluster_count; b++) {
            *from = a;
            *to = b;
            if ((l->to != TB_GRID_NONE ? b == l->to : is_outermost(grid, b) && grid->clusters[b].site == l->to_site) &&
                find_link(grid, a, b) == link)
                return true;
        }
    }
    return false;
}

static int add_links_of_file(struct tb_measure_plan *plan)
{
    const struct tb_grid *grid = plan->grid;
    int rc = TB_OK;
    for (uint32_t i = 0; i + 1 < grid->link_count && rc == TB_OK; i += 2) {
        struct tb_measure_task task = {.kind = TB_MEASURE_LINK, .link = i};
        if (find_clusters(grid, i, &task.from, &task.to))
            rc = task_add_limited(plan, &task, TB_MEASURE_LINKS);
    }
    return rc;
}

/* Whether links between gateways join the two. */
static bool are_joined(const struct tb_measure_plan *plan, uint32_t a, uint32_t b)
{
    for (uint32_t i = 0; i < plan->count; i++)
        if (tb_measure_task_leaves(plan, &plan->tasks[i], tb_measure_scope_of(a)) &&
            tb_measure_task_leaves(plan, &plan->tasks[i], tb_measure_scope_of(b)))
            return true;
    return false;
}

static int add_pairs(struct tb_measure_plan *plan)
{
    const struct tb_grid *grid = plan->grid;
    uint32_t outermost = 0;
    int rc = TB_OK;
    for (uint32_t i = 0; i < grid->cluster_count; i++)
        outermost += is_outermost(grid, i);
    for (uint32_t a = 0; a < grid->cluster_count && rc == TB_OK; a++)
        for (uint32_t b = a + 1, seen = 0; is_outermost(grid, a) && b < grid->cluster_count && rc == TB_OK; b++) {
            struct tb_measure_task task = {.kind = TB_MEASURE_LINK, .from = a, .to = b, .link = TB_GRID_NONE};
            if (!is_outermost(grid, b) || find_link(grid, a, b) != TB_GRID_NONE || are_joined(plan, a, b))
                continue;
            if (outermost > TB_MEASURE_PAIRS && seen++ > 0)
                break;
            rc = task_add_limited(plan, &task, TB_MEASURE_LINKS);
        }
    return rc;
}

static int add_nested(struct tb_measure_plan *plan)
{
    const struct tb_grid *grid = plan->grid;
    int rc = TB_OK;
    for (uint32_t i = 0; i < grid->cluster_count && rc == TB_OK; i++) {
        struct tb_measure_task task = {
            .kind = TB_MEASURE_NESTED, .from = i, .to = grid->clusters[i].parent, .link = TB_GRID_NONE};
        if (!is_outermost(grid, i) && grid->clusters[i].uplink.given)
            rc = task_add_limited(plan, &task, TB_MEASURE_LINKS);
    }
    return rc;
}

/* From each closed cluster to the next outermost one, also if that is the first. */
static int add_through(struct tb_measure_plan *plan)
{
    const struct tb_grid *grid = plan->grid;
    int rc = TB_OK;
    for (uint32_t a = 0; a < grid->cluster_count && rc == TB_OK; a++) {
        struct tb_measure_task task = {.kind = TB_MEASURE_THROUGH_GATEWAYS, .from = a, .link = TB_GRID_NONE};
        if (!is_outermost(grid, a) || grid->clusters[a].gateway_count == 0)
            continue;
        for (task.to = (a + 1) % grid->cluster_count; !is_outermost(grid, task.to);)
            task.to = (task.to + 1) % grid->cluster_count;
        bool known = task.to == a;
        for (uint32_t i = 0; i < plan->count; i++)
            known = known || (plan->tasks[i].kind == task.kind && plan->tasks[i].from == task.to &&
                              plan->tasks[i].to == task.from);
        if (!known)
            rc = task_add_limited(plan, &task, TB_MEASURE_THROUGH);
    }
    return rc;
}

int tb_measure_plan_open(struct tb_measure_plan *plan, const struct tb_grid_costs *costs)
{
    const struct tb_grid *grid = costs->grid;
    *plan = (struct tb_measure_plan){.costs = costs, .grid = grid};
    plan->unusable = calloc(grid->host_count + 1u, sizeof *plan->unusable);
    int rc = plan->unusable != NULL ? TB_OK : tb_error(TB_ERR_MEMORY, "no memory for the hosts of %s", grid->file);
    for (uint32_t i = 0; i < grid->cluster_count && rc == TB_OK; i++) {
        struct tb_measure_task task = {.kind = TB_MEASURE_INSIDE, .from = i, .to = i, .link = TB_GRID_NONE};
        if (grid->clusters[i].host_count > 1)
            rc = task_add_limited(plan, &task, TB_MEASURE_CLUSTERS);
    }
    if (rc == TB_OK)
        rc = add_links_of_file(plan);
    if (rc == TB_OK)
        rc = add_pairs(plan);
    if (rc == TB_OK)
        rc = add_nested(plan);
    if (rc == TB_OK)
        rc = add_through(plan);
    if (rc != TB_OK)
        tb_measure_plan_close(plan);
    return rc;
}

void tb_measure_plan_close(struct tb_measure_plan *plan)
{
    free(plan->unusable);
    free(plan->tasks);
    *plan = (struct tb_measure_plan){.costs = NULL};
}

/* ---- the second round -------------------------------------------------------------------------------------------- */

static double rate_of(const struct tb_measure_plan *plan, const struct tb_measure_task *link,
                      struct tb_measure_scope scope, bool inward)
{
    return link->rates[tb_measure_task_way(plan, link, scope, inward)];
}

/* The clusters of a link, inside and outside. */
static uint32_t end_of(const struct tb_measure_plan *plan, const struct tb_measure_task *link,
                       struct tb_measure_scope scope, bool outside)
{
    return is_inside(plan, scope, link->from) == outside ? link->to : link->from;
}

static bool site_has_more(const struct tb_grid *grid, uint32_t site)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < grid->cluster_count && site != TB_GRID_NONE; i++)
        count += grid->clusters[i].site == site && is_outermost(grid, i);
    return count > 1;
}

/* Whether a link tells something of this line, as the first of two or beside the first. What leaves a site of several
 * clusters passes its line, too: two such links say nothing of the line of their cluster. Of the line of the site two
 * links of different clusters to different ones do. */
static bool tells(const struct tb_measure_plan *plan, uint32_t link, struct tb_measure_scope scope, uint32_t first)
{
    const struct tb_grid *grid = plan->grid;
    const struct tb_measure_task *task = &plan->tasks[link],
                                 *other = first != TB_GRID_NONE ? &plan->tasks[first] : NULL;
    if (!task->done || !tb_measure_task_leaves(plan, task, scope))
        return false;
    if (scope.cluster == TB_GRID_NONE)
        return other == NULL || (end_of(plan, task, scope, false) != end_of(plan, other, scope, false) &&
                                 end_of(plan, task, scope, true) != end_of(plan, other, scope, true));
    uint32_t site = grid->clusters[scope.cluster].site;
    return other != NULL || !site_has_more(grid, site) ||
           !tb_measure_task_leaves(plan, task, (struct tb_measure_scope){TB_GRID_NONE, site});
}

/* The fastest link that is slower than (or as fast as, and behind) the one before. */
static uint32_t next_fastest(const struct tb_measure_plan *plan, struct tb_measure_scope scope, bool inward,
                             uint32_t first, uint32_t before)
{
    uint32_t best = TB_GRID_NONE;
    double limit = before != TB_GRID_NONE ? rate_of(plan, &plan->tasks[before], scope, inward) : 0;
    for (uint32_t i = 0; i < plan->count; i++) {
        if (i == first || !tells(plan, i, scope, first))
            continue;
        double rate = rate_of(plan, &plan->tasks[i], scope, inward);
        bool later = before == TB_GRID_NONE || rate < limit || (rate == limit && i > before);
        if (later && (best == TB_GRID_NONE || rate > rate_of(plan, &plan->tasks[best], scope, inward)))
            best = i;
    }
    return best;
}

static int add_scope(struct tb_measure_plan *plan, struct tb_measure_scope scope, bool inward)
{
    uint32_t first = next_fastest(plan, scope, inward, TB_GRID_NONE, TB_GRID_NONE), second = TB_GRID_NONE;
    int rc = TB_OK;
    for (uint32_t i = 0; i < TB_MEASURE_PARTNERS && first != TB_GRID_NONE && rc == TB_OK; i++) {
        second = next_fastest(plan, scope, inward, first, second);
        if (second == TB_GRID_NONE)
            break;
        uint32_t from = end_of(plan, &plan->tasks[first], scope, false);
        struct tb_measure_task task = {.kind = TB_MEASURE_SHARED,
                                       .from = from,
                                       .to = from,
                                       .scope = scope,
                                       .link = TB_GRID_NONE,
                                       .links = {first, second},
                                       .inward = inward};
        rc = task_add_limited(plan, &task, TB_MEASURE_SHARING);
    }
    return rc;
}

int tb_measure_plan_add_sharing(struct tb_measure_plan *plan)
{
    const struct tb_grid *grid = plan->grid;
    int rc = TB_OK;
    for (uint32_t i = 0; i < 2 * grid->cluster_count && rc == TB_OK; i++)
        if (is_outermost(grid, i / 2))
            rc = add_scope(plan, tb_measure_scope_of(i / 2), i % 2 != 0);
    for (uint32_t i = 0; i < 2 * grid->site_count && rc == TB_OK; i++)
        if (site_has_more(grid, i / 2))
            rc = add_scope(plan, (struct tb_measure_scope){TB_GRID_NONE, i / 2}, i % 2 != 0);
    return rc;
}

/* ---- who does it ------------------------------------------------------------------------------------------------- */

/* The hosts of a cluster that others outside speak to: its gateways, or those with slots before those without. */
static uint32_t list_ends(const struct tb_measure_plan *plan, uint32_t cluster, uint32_t *hosts)
{
    const struct tb_grid_cluster *c = &plan->grid->clusters[cluster];
    uint32_t count = 0, all = c->gateway_count > 0 ? c->gateway_count : c->host_count;
    const uint32_t *list = c->gateway_count > 0 ? c->gateways : c->hosts;
    for (int slots = 1; slots >= 0; slots--)
        for (uint32_t i = 0; i < all && count < ENDS; i++)
            if (!plan->unusable[list[i]] && (plan->grid->hosts[list[i]].slots > 0) == (slots == 1))
                hosts[count++] = list[i];
    return count;
}

static bool is_straight(const struct tb_measure_plan *plan, uint32_t a, uint32_t b)
{
    return a != b && tb_grid_costs_hops(plan->costs, a, b) == 1 && tb_grid_costs_hops(plan->costs, b, a) == 1;
}

/* How good a host is for the inside of a cluster; 0: not at all. */
static int rate_inside(const struct tb_measure_plan *plan, uint32_t cluster, uint32_t host)
{
    const struct tb_grid_host *h = &plan->grid->hosts[host];
    if (plan->unusable[host])
        return 0;
    bool gateway = tb_grid_is_gateway(&plan->grid->clusters[cluster], host);
    return 1 + 4 * (h->wire == NULL) + 2 * (h->cluster == cluster) + (h->slots > 0 && !gateway);
}

static bool staff_inside(const struct tb_measure_plan *plan, struct tb_measure_task *task)
{
    const struct tb_grid_cluster *c = &plan->grid->clusters[task->from];
    uint32_t count = 0;
    for (int wanted = 8; wanted > 0 && count < 2; wanted--)
        for (uint32_t i = 0; i < c->host_count && count < 2; i++)
            if (rate_inside(plan, task->from, c->hosts[i]) == wanted)
                task->hosts[count++] = c->hosts[i];
    task->why = nobody_two;
    return count == 2;
}

static bool staff_link(const struct tb_measure_plan *plan, struct tb_measure_task *task)
{
    const struct tb_grid_link *link = task->link != TB_GRID_NONE ? &plan->grid->links[task->link] : NULL;
    uint32_t from[ENDS], to[ENDS], from_count = list_ends(plan, task->from, from), to_count;
    to_count = list_ends(plan, task->to, to);
    if (link != NULL && link->from_host != TB_GRID_NONE) {
        from[0] = link->from_host;
        from_count = !plan->unusable[from[0]];
    }
    if (link != NULL && link->to_host != TB_GRID_NONE) {
        to[0] = link->to_host;
        to_count = !plan->unusable[to[0]];
    }
    task->why = nobody_outside;
    for (uint32_t i = 0; i < from_count; i++)
        for (uint32_t k = 0; k < to_count; k++)
            if (is_straight(plan, from[i], to[k])) {
                task->hosts[0] = from[i];
                task->hosts[1] = to[k];
                return true;
            }
    return false;
}

/* Between somebody who leads out of the inner cluster and somebody in the outer one alone. */
static bool staff_nested(const struct tb_measure_plan *plan, struct tb_measure_task *task)
{
    const struct tb_grid_cluster *outer = &plan->grid->clusters[task->to], *inner = &plan->grid->clusters[task->from];
    uint32_t from[ENDS], count = list_ends(plan, task->from, from);
    task->why = nobody_outside;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < outer->host_count; k++) {
            uint32_t host = outer->hosts[k];
            if (!plan->unusable[host] && !tb_grid_cluster_has(inner, host) && is_straight(plan, from[i], host)) {
                task->hosts[0] = from[i];
                task->hosts[1] = host;
                return true;
            }
        }
    return false;
}

/* Two with slots of which at least one needs somebody to pass on what it says. */
static bool staff_through(const struct tb_measure_plan *plan, struct tb_measure_task *task)
{
    const struct tb_grid *grid = plan->grid;
    const struct tb_grid_cluster *a = &grid->clusters[task->from], *b = &grid->clusters[task->to];
    task->why = "there are no two hosts with slots behind gateways";
    for (uint32_t i = 0; i < a->host_count; i++)
        for (uint32_t k = 0; k < b->host_count; k++) {
            uint32_t from = a->hosts[i], to = b->hosts[b->host_count - 1 - k];
            if (grid->hosts[from].slots > 0 && grid->hosts[to].slots > 0 && !plan->unusable[from] &&
                !plan->unusable[to] && from != to && tb_grid_costs_hops(plan->costs, from, to) > 1) {
                task->hosts[0] = from;
                task->hosts[1] = to;
                return true;
            }
        }
    return false;
}

/* The first link's own hosts; of the second another one inside if there is one, so that no port is shared. */
static bool staff_shared(const struct tb_measure_plan *plan, struct tb_measure_task *task)
{
    const struct tb_measure_task *first = &plan->tasks[task->links[0]], *second = &plan->tasks[task->links[1]];
    int in_first = tb_measure_task_way(plan, first, task->scope, false);
    int in_second = tb_measure_task_way(plan, second, task->scope, false);
    uint32_t ends[ENDS], count = list_ends(plan, task->from, ends);
    task->hosts[0] = first->hosts[in_first];
    task->hosts[1] = first->hosts[1 - in_first];
    task->others[0] = second->hosts[in_second];
    task->others[1] = second->hosts[1 - in_second];
    bool bound = second->link != TB_GRID_NONE && (plan->grid->links[second->link].from_host != TB_GRID_NONE ||
                                                  plan->grid->links[second->link].to_host != TB_GRID_NONE);
    for (uint32_t i = 0; i < count && !bound && task->others[0] == task->hosts[0]; i++)
        if (ends[i] != task->hosts[0] && is_straight(plan, ends[i], task->others[1]))
            task->others[0] = ends[i];
    task->why = "a host is missing";
    for (int i = 0; i < 2; i++)
        if (plan->unusable[task->hosts[i]] || plan->unusable[task->others[i]])
            return false;
    return task->hosts[1] != task->others[1] || task->hosts[0] != task->others[0];
}

uint32_t tb_measure_plan_staff(struct tb_measure_plan *plan)
{
    static bool (*const staff[])(const struct tb_measure_plan *, struct tb_measure_task *) = {
        [TB_MEASURE_INSIDE] = staff_inside, [TB_MEASURE_LINK] = staff_link,
        [TB_MEASURE_NESTED] = staff_nested, [TB_MEASURE_THROUGH_GATEWAYS] = staff_through,
        [TB_MEASURE_SHARED] = staff_shared,
    };
    uint32_t count = 0;
    for (uint32_t i = 0; i < plan->count; i++) {
        struct tb_measure_task *task = &plan->tasks[i];
        if (task->done || (task->staffed && task->why != NULL))
            continue;
        task->staffed = staff[task->kind](plan, task);
        if (task->staffed)
            task->why = NULL;
        count += task->staffed;
    }
    return count;
}
