/* Ways between hosts that are cut while a job runs, and routes that go around them. */
#include "launch/grid_plan.h"

#include <stdlib.h>
#include <string.h>

#define WAY_LINK    (UINT64_C(1) << 63) /* number of a way: by a link of the file, */
#define WAY_CLASSES (UINT64_C(1) << 62) /* or between two classes; else between two hosts */

static uint32_t class_of(const struct tb_grid_plan *plan, const struct tb_placement *placement, uint32_t host)
{
    return plan->connectivity.classes.of[placement->entries[host]];
}

/* Both directions of a link are one. */
static uint32_t pair_of(const struct tb_grid_plan *plan, const struct tb_grid_link *link)
{
    return (uint32_t)(link - plan->grid->links) / 2;
}

uint64_t tb_grid_plan_way(const struct tb_grid_plan *plan, const struct tb_placement *placement, uint32_t a, uint32_t b,
                          const char **link)
{
    uint32_t low = a < b ? a : b, high = a < b ? b : a;
    uint32_t from = class_of(plan, placement, low), to = class_of(plan, placement, high);
    const struct tb_grid_link *crossed = tb_connectivity_link(&plan->connectivity, from, to);
    *link = crossed != NULL && from != to ? crossed->name : NULL;
    if (*link != NULL)
        return WAY_LINK | pair_of(plan, crossed);
    if (from != to)
        return WAY_CLASSES | (uint64_t)(from < to ? from : to) << 31 | (from < to ? to : from);
    return (uint64_t)low << 31 | high;
}

/* Whether the way between two classes has this number, too. */
static bool is_same_way(const struct tb_grid_plan *plan, uint32_t i, uint32_t k, uint64_t way)
{
    if (!(way & WAY_LINK))
        return way == (WAY_CLASSES | (uint64_t)i << 31 | k);
    const struct tb_grid_link *there = tb_connectivity_link(&plan->connectivity, i, k);
    const struct tb_grid_link *back = tb_connectivity_link(&plan->connectivity, k, i);
    uint32_t pair = (uint32_t)(way & UINT32_MAX);
    return (there != NULL && pair_of(plan, there) == pair) || (back != NULL && pair_of(plan, back) == pair);
}

/* Ranks that have connected to each other stay connected, whatever the routes are; so their ways stay as they are. */
static bool is_for_ranks(const struct tb_grid_plan *plan, const bool *ranked, uint32_t i, uint32_t k)
{
    return ranked[i] && ranked[k] && tb_grid_plan_is_open(plan, i, k);
}

/* Whether something has changed. */
static bool mark(struct tb_grid_plan *plan, const bool *ranked, uint64_t way, bool cut)
{
    uint32_t n = plan->connectivity.classes.class_count;
    bool changed = false;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = i + 1; k < n; k++) {
            if (!is_same_way(plan, i, k, way) || (cut && is_for_ranks(plan, ranked, i, k)))
                continue;
            uint8_t *there = &plan->cuts[(size_t)i * n + k], *back = &plan->cuts[(size_t)k * n + i];
            changed = changed || *there != cut;
            *there = *back = cut;
        }
    return changed;
}

/* Which classes have hosts with ranks; allocated. */
static bool *find_ranked(const struct tb_grid_plan *plan, const struct tb_placement *placement)
{
    bool *ranked = calloc(plan->connectivity.classes.class_count + 1u, sizeof *ranked);
    for (uint32_t i = 0; ranked != NULL && i < placement->book.host_count; i++)
        if (tb_placement_carries(placement, i))
            ranked[class_of(plan, placement, i)] = true;
    return ranked;
}

int tb_grid_plan_cut(struct tb_grid_plan *plan, const struct tb_placement *placement, uint32_t a, uint32_t b, bool cut)
{
    uint32_t n = plan->connectivity.classes.class_count, from = class_of(plan, placement, a);
    uint32_t to = class_of(plan, placement, b);
    const char *link;
    uint64_t way = tb_grid_plan_way(plan, placement, a, b, &link);
    if (from == to)
        return tb_error(TB_ERR_UNSUPPORTED, "hosts of one kind have no way but the straight one");
    if (plan->cuts == NULL)
        plan->cuts = calloc((size_t)n * n + 1, sizeof *plan->cuts);
    bool *ranked = find_ranked(plan, placement);
    uint8_t *before = malloc((size_t)n * n + 1);
    int rc = TB_OK;
    if (plan->cuts == NULL || ranked == NULL || before == NULL) {
        rc = tb_error(TB_ERR_MEMORY, "no memory for the ways between %u kinds of hosts", n);
        goto out;
    }
    memcpy(before, plan->cuts, (size_t)n * n);
    bool changed = mark(plan, ranked, way, cut);
    if (cut && !plan->cuts[(size_t)from * n + to])
        rc = tb_error(TB_ERR_UNSUPPORTED, "what ranks say to each other there cannot go another way");
    else if (changed)
        rc = tb_grid_plan_reroute(plan, placement);
    if (rc != TB_OK) {
        char *story = strdup(tb_error_story());
        memcpy(plan->cuts, before, (size_t)n * n);
        int again = changed ? tb_grid_plan_reroute(plan, placement) : TB_OK;
        rc = again == TB_OK ? tb_error(rc, "%s", story != NULL ? story : "there is no way around it") : again;
        free(story);
    } else if (changed) {
        plan->version++;
    }
out:
    free(ranked);
    free(before);
    return rc;
}
