#include "topology/measure_uplinks.h"
#include "topology/measure_lines.h"

#include <stdlib.h>

#define PORT_SHARE   0.9 /* of the rate of a port: more than that may be its limit, and not a line's */
#define NS_PER_MS    1e6
#define TOLERANCE_MS 0.2 /* of latencies, beside a tenth */

/* ---- what was seen ----------------------------------------------------------------------------------------------- */

/* Mbit/s of the port by which one host sent both streams, or got both; 0: it has no limit that is known. */
static double common_port(const struct tb_measure_plan *plan, const struct tb_measure_task *task)
{
    const struct tb_grid_host *host = &plan->grid->hosts[task->hosts[0]];
    if (task->hosts[0] != task->others[0])
        return 0;
    if (host->wire != NULL && host->wire->bandwidth != 0)
        return (double)host->wire->bandwidth / 1e6;
    if (tb_grid_is_gateway(&plan->grid->clusters[task->from], task->hosts[0]))
        return 0;
    for (uint32_t i = 0; i < plan->count; i++)
        if (plan->tasks[i].kind == TB_MEASURE_INSIDE && plan->tasks[i].from == task->from && plan->tasks[i].done)
            return plan->tasks[i].rates[0];
    return (double)plan->grid->clusters[task->from].ethernet.bandwidth / 1e6;
}

static double both_at_once(const struct tb_measure_task *task)
{
    struct tb_sharing_round best = tb_sharing_best(task->rounds, TB_MEASURE_ROUNDS);
    return best.together[0] + best.together[1];
}

static enum tb_sharing judge(const struct tb_measure_plan *plan, const struct tb_measure_task *task, FILE *words)
{
    struct tb_sharing_round best = tb_sharing_best(task->rounds, TB_MEASURE_ROUNDS);
    enum tb_sharing sharing = tb_sharing_judge(&best);
    double port = common_port(plan, task);
    char name[4 * TB_GRID_NAME_BYTES];
    bool blind = port > 0 && sharing != TB_SHARING_SEPARATE && both_at_once(task) > PORT_SHARE * port;
    tb_measure_lines_name(plan, task, name, sizeof name);
    fprintf(words, "# %s: %.4g and %.4g Mbit/s alone, %.4g and %.4g at the same time: ", name, best.alone[0],
            best.alone[1], best.together[0], best.together[1]);
    if (blind)
        fprintf(words, "not found out, as the port of %s is as slow\n", plan->grid->hosts[task->hosts[0]].name);
    else
        fprintf(words, "%s\n", tb_sharing_name(sharing));
    return blind ? TB_SHARING_UNCLEAR : sharing;
}

static bool is_of(const struct tb_measure_task *task, struct tb_measure_scope scope, bool inward)
{
    return task->kind == TB_MEASURE_SHARED && task->done && task->inward == inward &&
           task->scope.cluster == scope.cluster && task->scope.site == scope.site;
}

/* All tasks of one line and direction together. */
static enum tb_measured_line line_of(const struct tb_measure_plan *plan, struct tb_measure_scope scope, bool inward,
                                     FILE *words, double *rate)
{
    uint32_t seen[TB_SHARING_SHARED + 1] = {0}, count = 0;
    for (uint32_t i = 0; i < plan->count; i++) {
        const struct tb_measure_task *task = &plan->tasks[i];
        if (!is_of(task, scope, inward))
            continue;
        enum tb_sharing sharing = judge(plan, task, words);
        double sum = both_at_once(task);
        seen[sharing]++;
        count++;
        if ((sharing == TB_SHARING_SHARED || sharing == TB_SHARING_SEPARATE) && sum > *rate)
            *rate = sum;
    }
    if (seen[TB_SHARING_SHARED] > 0 && seen[TB_SHARING_SEPARATE] > 0)
        return TB_LINE_MIXED;
    if (count > 0 && seen[TB_SHARING_SHARED] == count)
        return TB_LINE_SHARED;
    return count > 0 && seen[TB_SHARING_SEPARATE] == count ? TB_LINE_SEPARATE : TB_LINE_UNKNOWN;
}

/* The fastest link that leads out, and that leads in. */
static void find_fastest(const struct tb_measure_plan *plan, struct tb_measure_scope scope,
                         struct tb_measured_uplink *uplink)
{
    for (int inward = 0; inward < 2; inward++) {
        double best = 0;
        uplink->fastest[inward] = TB_GRID_NONE;
        for (uint32_t i = 0; i < plan->count; i++) {
            const struct tb_measure_task *task = &plan->tasks[i];
            double rate = task->rates[tb_measure_task_way(plan, task, scope, inward)];
            if (task->done && tb_measure_task_leaves(plan, task, scope) && rate > best) {
                best = rate;
                uplink->fastest[inward] = i;
            }
        }
        if (best > uplink->rates[inward])
            uplink->rates[inward] = best;
    }
}

/* ms that the file gives to an uplink; 0: nothing. */
static double latency_given(const struct tb_grid *grid, struct tb_measure_scope scope)
{
    const struct tb_grid_uplink *given =
        scope.cluster == TB_GRID_NONE ? &grid->sites[scope.site].uplink : &grid->clusters[scope.cluster].uplink;
    return given->given && given->up.latency != UINT64_MAX ? (double)given->up.latency / NS_PER_MS : 0;
}

static void look_at(const struct tb_measure_plan *plan, struct tb_measure_scope scope, FILE *words,
                    struct tb_measured_uplink *uplink)
{
    const struct tb_grid *grid = plan->grid;
    bool site = scope.cluster == TB_GRID_NONE;
    const char *name = site ? grid->sites[scope.site].name : grid->clusters[scope.cluster].name;
    bool given = site ? grid->sites[scope.site].uplink.given : grid->clusters[scope.cluster].uplink.given;
    *uplink = (struct tb_measured_uplink){.found = false, .latency = latency_given(grid, scope)};
    for (int inward = 0; inward < 2; inward++)
        uplink->lines[inward] = line_of(plan, scope, inward, words, &uplink->rates[inward]);
    find_fastest(plan, scope, uplink);
    bool mixed = uplink->lines[0] == TB_LINE_MIXED || uplink->lines[1] == TB_LINE_MIXED;
    uplink->found = !mixed && (uplink->lines[0] == TB_LINE_SHARED || uplink->lines[1] == TB_LINE_SHARED);
    if (mixed)
        fprintf(words, "# %s: some of its links share a line and others do not, for which a grid file has no words\n",
                name);
    if (uplink->found && (uplink->lines[0] == TB_LINE_UNKNOWN || uplink->lines[1] == TB_LINE_UNKNOWN))
        fprintf(words, "# %s: whether its links share the way %s was not found out; that they do is taken for true\n",
                name, uplink->lines[0] == TB_LINE_UNKNOWN ? "out" : "in");
    if (!uplink->found && uplink->lines[0] == TB_LINE_SEPARATE && given)
        fprintf(words, "# %s: the file gives it an uplink, but its links do not share one; it is left as it is\n",
                name);
}

/* ---- latencies --------------------------------------------------------------------------------------------------- */

static double latency_between(const struct tb_measure_plan *plan, const double *middles, uint32_t a, uint32_t b)
{
    for (uint32_t i = 0; i < plan->count; i++)
        if (plan->tasks[i].done && tb_measure_task_leaves(plan, &plan->tasks[i], tb_measure_scope_of(a)) &&
            tb_measure_task_leaves(plan, &plan->tasks[i], tb_measure_scope_of(b)))
            return middles[i];
    return -1;
}

/* Latencies between clusters with uplinks are those of the uplinks, if they can be; else uplinks have what the file
 * gives them. */
static int divide_latencies(const struct tb_measure_plan *plan, const double *middles,
                            struct tb_measured_uplink *uplinks)
{
    uint32_t count = 0, clusters = plan->grid->cluster_count;
    uint32_t *list = calloc(clusters + 1u, sizeof *list);
    for (uint32_t i = 0; i < clusters && list != NULL; i++)
        if (uplinks[i].found)
            list[count++] = i;
    double *latencies = calloc((size_t)count * count + 1, sizeof *latencies),
           *parts = calloc(count + 1u, sizeof *parts);
    int rc = list != NULL && latencies != NULL && parts != NULL
                 ? TB_OK
                 : tb_error(TB_ERR_MEMORY, "no memory for what was measured");
    for (uint32_t i = 0; i < count && rc == TB_OK; i++)
        for (uint32_t k = 0; k < count; k++)
            latencies[(size_t)i * count + k] = i != k ? latency_between(plan, middles, list[i], list[k]) : 0;
    if (rc == TB_OK && tb_uplink_latencies_fit(count, latencies, TOLERANCE_MS, parts))
        for (uint32_t i = 0; i < count; i++)
            uplinks[list[i]].latency = parts[i];
    free(list);
    free(latencies);
    free(parts);
    return rc;
}

int tb_measure_uplinks_find(const struct tb_measure_plan *plan, const double *middles, FILE *words,
                            struct tb_measured_uplink *clusters, struct tb_measured_uplink *sites)
{
    for (uint32_t i = 0; i < plan->grid->cluster_count; i++)
        if (plan->grid->clusters[i].parent == TB_GRID_NONE)
            look_at(plan, tb_measure_scope_of(i), words, &clusters[i]);
        else
            clusters[i] = (struct tb_measured_uplink){.fastest = {TB_GRID_NONE, TB_GRID_NONE}};
    for (uint32_t i = 0; i < plan->grid->site_count; i++)
        look_at(plan, (struct tb_measure_scope){TB_GRID_NONE, i}, words, &sites[i]);
    return divide_latencies(plan, middles, clusters);
}
