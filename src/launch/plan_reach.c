/* What the agents of a grid plan are to try, and what follows from what they have found out. */
#include "launch/grid_plan.h"

#include <stdlib.h>
#include <string.h>

#define EACH    2u   /* where there are more hosts than TB_REACH_RESULTS_HOSTS, so many of each class stand for it, */
#define CLASSES 512u /* and one of each, if there are more classes than this */

static uint32_t class_of(const struct tb_grid_plan *plan, const struct tb_placement *placement, uint32_t host)
{
    return plan->connectivity.classes.of[placement->entries[host]];
}

static bool is_open(const struct tb_grid_plan *plan, uint32_t from, uint32_t to)
{
    const struct tb_connectivity *c = &plan->connectivity;
    return from != to && tb_connectivity_reaches(c, from, to) &&
           tb_grid_supposes(plan->grid, tb_host_classes_member(&c->classes, from, 0),
                            tb_host_classes_member(&c->classes, to, 0));
}

/* Chooses who tries and is tried: hosts of the address book, ascending. `sizes` has the number of hosts in the address
 * book of each class, and becomes 0 for those about which the file says everything. */
static void choose(const struct tb_grid_plan *plan, const struct tb_placement *placement, uint32_t *sizes,
                   struct tb_reach_results *results)
{
    uint32_t n = plan->connectivity.classes.class_count, hosts = 0, classes = 0;
    for (uint32_t i = 0; i < n; i++) {
        bool tried = false;
        for (uint32_t k = 0; k < n && sizes[i] > 0 && !tried; k++)
            tried = sizes[k] > 0 && (is_open(plan, i, k) || is_open(plan, k, i));
        hosts += tried ? sizes[i] : 0;
        classes += tried;
        sizes[i] = tried ? sizes[i] : 0; /* nobody is left out by this about whom it does not: it is about two */
    }
    uint32_t most = hosts <= TB_REACH_RESULTS_HOSTS ? TB_REACH_RESULTS_HOSTS : classes <= CLASSES ? EACH : 1;
    for (uint32_t i = 0; i < n; i++)
        sizes[i] = sizes[i] < most ? sizes[i] : most;
    results->all = hosts <= TB_REACH_RESULTS_HOSTS;
    for (uint32_t i = 0; i < placement->book.host_count; i++) {
        uint32_t class = class_of(plan, placement, i);
        if (sizes[class] == 0)
            continue;
        sizes[class]--;
        results->hosts[results->count++] = i;
    }
}

int tb_grid_plan_ask(const struct tb_grid_plan *plan, const struct tb_placement *placement,
                     struct tb_reach_results *results)
{
    uint32_t host_count = placement->book.host_count;
    uint32_t *sizes = calloc(plan->connectivity.classes.class_count + 1u, sizeof *sizes);
    *results = (struct tb_reach_results){.hosts = calloc(host_count + 1u, sizeof *results->hosts)};
    bool enough = sizes != NULL && results->hosts != NULL;
    for (uint32_t i = 0; enough && i < host_count; i++)
        sizes[class_of(plan, placement, i)]++;
    if (enough)
        choose(plan, placement, sizes, results);
    free(sizes);
    uint32_t n = results->count;
    results->results = enough ? calloc((size_t)n * n + 1, sizeof *results->results) : NULL;
    results->stories = enough ? calloc((size_t)n * n + 1, sizeof *results->stories) : NULL;
    if (results->results == NULL || results->stories == NULL) {
        results->count = 0;
        tb_reach_results_close(results);
        return tb_error(TB_ERR_MEMORY, "no memory for the hosts of %s", plan->grid->file);
    }
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < n; k++)
            if (is_open(plan, class_of(plan, placement, results->hosts[i]),
                        class_of(plan, placement, results->hosts[k])))
                results->results[(size_t)i * n + k] = TB_REACH_NO;
    return TB_OK;
}

/* Whether the same was found out about two hosts, in both directions. */
static bool are_alike(const struct tb_reach_results *results, uint32_t a, uint32_t b)
{
    uint32_t n = results->count;
    if (memcmp(results->results + (size_t)a * n, results->results + (size_t)b * n, n) != 0)
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (results->results[(size_t)i * n + a] != results->results[(size_t)i * n + b])
            return false;
    return true;
}

/* Those of a class that are alike get the number of the first of them; those who were not asked take no part, or stand
 * with the first of their class. */
static int split(struct tb_grid_plan *plan, const struct tb_placement *placement,
                 const struct tb_reach_results *results)
{
    const struct tb_host_classes *classes = &plan->connectivity.classes;
    uint32_t host_count = plan->grid->host_count, old = classes->class_count;
    uint32_t *labels = calloc(host_count + 1u, sizeof *labels), *origins = calloc(host_count + 1u, sizeof *origins);
    uint32_t *firsts = calloc(old + 1u, sizeof *firsts), *values = calloc(2 * (host_count + 1u), sizeof *values);
    int rc = labels != NULL && origins != NULL && firsts != NULL && values != NULL
                 ? TB_OK
                 : tb_error(TB_ERR_MEMORY, "no memory for the hosts of %s", plan->grid->file);
    for (uint32_t i = results->count; rc == TB_OK && i-- > 0;)
        firsts[class_of(plan, placement, results->hosts[i])] = i;
    for (uint32_t i = 0; rc == TB_OK && i < host_count; i++)
        labels[i] = classes->of[i] != TB_GRID_NONE ? firsts[classes->of[i]] : 0;
    for (uint32_t i = 0; rc == TB_OK && i < results->count; i++) {
        uint32_t k = 0;
        while (class_of(plan, placement, results->hosts[k]) != class_of(plan, placement, results->hosts[i]) ||
               !are_alike(results, i, k))
            k++;
        labels[placement->entries[results->hosts[i]]] = k;
    }
    if (rc == TB_OK)
        rc = tb_connectivity_split(&plan->connectivity, labels, origins);
    uint32_t n = rc == TB_OK ? classes->class_count : 0;
    for (uint32_t i = 0; i < n; i++) {
        values[i] = plan->manual_clusters[origins[i]];
        values[n + i] = plan->depths[origins[i]];
    }
    uint32_t *manual_clusters =
        n > old ? reallocarray(plan->manual_clusters, n + 1u, sizeof *manual_clusters) : plan->manual_clusters;
    plan->manual_clusters = manual_clusters != NULL ? manual_clusters : plan->manual_clusters;
    uint32_t *depths = n > old ? reallocarray(plan->depths, n + 1u, sizeof *depths) : plan->depths;
    plan->depths = depths != NULL ? depths : plan->depths;
    if (rc == TB_OK && (manual_clusters == NULL || depths == NULL))
        rc = tb_error(TB_ERR_MEMORY, "no memory for the hosts of %s", plan->grid->file);
    for (uint32_t i = 0; i < n && rc == TB_OK; i++) {
        plan->manual_clusters[i] = values[i];
        plan->depths[i] = values[n + i];
    }
    free(labels);
    free(origins);
    free(firsts);
    free(values);
    return rc;
}

int tb_grid_plan_learn(struct tb_grid_plan *plan, struct tb_placement *placement,
                       const struct tb_reach_results *results)
{
    uint32_t n = results->count;
    int rc = results->all ? split(plan, placement, results) : TB_OK;
    if (rc != TB_OK)
        return rc;
    for (int yes = 0; yes <= 1; yes++) /* one that reaches another stands for its class */
        for (size_t i = 0; i < (size_t)n * n; i++)
            if (results->results[i] == (yes ? TB_REACH_YES : TB_REACH_NO))
                tb_connectivity_set(&plan->connectivity, class_of(plan, placement, results->hosts[i / n]),
                                    class_of(plan, placement, results->hosts[i % n]), yes != 0);
    for (uint32_t i = 0; i < placement->book.host_count; i++)
        placement->book.hosts[i].kind = class_of(plan, placement, i);
    plan->results = results;
    return tb_grid_plan_reroute(plan, placement);
}
