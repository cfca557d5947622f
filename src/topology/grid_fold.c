#include "topology/grid_fold.h"
#include "topology/class.h"
#include "topology/reach.h"

#include <stdlib.h>
#include <string.h>

static uint64_t mix(uint64_t hash)
{
    hash = (hash ^ (hash >> 31)) * UINT64_C(0x9e3779b97f4a7c15);
    hash = (hash ^ (hash >> 29)) * UINT64_C(0xbf58476d1ce4e5b9);
    return hash ^ (hash >> 32);
}

/* ---- who is like nobody ------------------------------------------------------------------------------------------ */

static bool stops(const struct tb_grid_link *link)
{
    return link->blocked || link->said;
}

/* The cluster that is left or entered by a link between it and the one around it; TB_GRID_NONE: it is no such link. */
static uint32_t inner_end(const struct tb_grid *grid, const struct tb_grid_link *link)
{
    if (link->from == TB_GRID_NONE || link->to == TB_GRID_NONE)
        return TB_GRID_NONE;
    if (grid->clusters[link->from].parent == link->to)
        return link->from;
    return grid->clusters[link->to].parent == link->from ? link->to : TB_GRID_NONE;
}

/* At links that stop something, or say that they do not. One between siblings replaces their links to the cluster
 * around them, so that it matters, too, where these do. */
static void note_links(const struct tb_grid *grid, bool *apart, bool *steps, bool *sites)
{
    for (uint32_t i = 0; i < grid->link_count; i++) {
        const struct tb_grid_link *link = &grid->links[i];
        if (!stops(link))
            continue;
        const uint32_t ends[2][2] = {{link->from, link->from_site}, {link->to, link->to_site}};
        for (size_t k = 0; k < 2; k++) {
            if (ends[k][0] != TB_GRID_NONE)
                apart[ends[k][0]] = true;
            if (ends[k][1] != TB_GRID_NONE)
                sites[ends[k][1]] = true;
        }
        if (inner_end(grid, link) != TB_GRID_NONE)
            steps[inner_end(grid, link)] = true;
    }
    for (uint32_t i = 0; i < grid->link_count; i++) {
        const struct tb_grid_link *link = &grid->links[i];
        if (link->from != TB_GRID_NONE && link->to != TB_GRID_NONE && (steps[link->from] || steps[link->to]))
            apart[link->from] = apart[link->to] = true;
    }
    for (uint32_t i = 0; i < grid->cluster_count; i++)
        if (grid->clusters[i].site != TB_GRID_NONE && sites[grid->clusters[i].site])
            apart[i] = true;
}

static void note_feet(const struct tb_grid *grid, bool *apart)
{
    for (uint32_t i = 0; i < grid->host_count; i++)
        for (uint32_t k = 0; k < grid->hosts[i].cluster_count && grid->hosts[i].cluster_count > 1; k++)
            apart[grid->hosts[i].clusters[k]] = true;
}

/* ---- who is like whom -------------------------------------------------------------------------------------------- */

/* What a cluster itself looks like, whatever is inside of it. */
static uint64_t look_of(const struct tb_grid *grid, const struct tb_grid_cluster *cluster)
{
    uint32_t slotted = 0, gates = 0;
    for (uint32_t i = 0; i < cluster->host_count; i++)
        slotted += grid->hosts[cluster->hosts[i]].slots > 0;
    for (uint32_t i = 0; i < cluster->gateway_count; i++)
        gates += grid->hosts[cluster->gateways[i]].slots > 0;
    uint32_t inner = cluster->host_count - cluster->gateway_count, inner_slotted = slotted - gates;
    const bool facts[] = {
        cluster->gated,    cluster->nat,         cluster->said, gates > 0, cluster->gateway_count > gates,
        inner_slotted > 0, inner > inner_slotted};
    uint64_t look = cluster->ip;
    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++)
        look = 2 * look + facts[i];
    return look;
}

/* From inside to outside; sums stand for what is in a cluster, as its order does not count. */
static void make_looks(const struct tb_grid *grid, const bool *apart, uint64_t *looks)
{
    for (uint32_t i = grid->cluster_count; i-- > 0;) { /* a parent stands before its children */
        const struct tb_grid_cluster *cluster = &grid->clusters[i];
        uint64_t own = apart[i] ? (uint64_t)1 << 32 | i : look_of(grid, cluster);
        looks[i] = mix(mix(own) ^ looks[i]);
        if (cluster->parent != TB_GRID_NONE)
            looks[cluster->parent] += mix(looks[i] + 1);
    }
}

static int sort_out(struct tb_grid_fold *fold, const uint64_t *looks)
{
    const struct tb_grid *grid = fold->grid;
    struct tb_hash_table known = {0};
    int rc = TB_OK;
    for (uint32_t i = 0; i < grid->cluster_count && rc == TB_OK; i++) {
        uint32_t parent = grid->clusters[i].parent, hash = tb_hash_fold(tb_hash_number(looks[i], parent));
        uint32_t at = hash, found;
        while ((found = tb_hash_table_next(&known, hash, &at)) != TB_HASH_NONE)
            if (looks[found] == looks[i] && grid->clusters[found].parent == parent)
                break;
        if (found == TB_HASH_NONE)
            rc = tb_hash_table_add(&known, hash, found = i);
        fold->first[i] = found;
        fold->order[i] = fold->alike[found]++;
        fold->stays[i] = fold->order[i] < TB_GRID_FOLD_MOST && (parent == TB_GRID_NONE || fold->stays[parent]);
        fold->stay_count += fold->stays[i];
    }
    tb_hash_table_close(&known);
    return rc;
}

int tb_grid_fold_open(struct tb_grid_fold *fold, const struct tb_grid *grid, const bool *apart)
{
    size_t clusters = (size_t)grid->cluster_count + 1, sites = (size_t)grid->site_count + 1;
    uint64_t *looks = calloc(clusters, sizeof *looks);
    bool *marks = calloc(2 * clusters + sites, sizeof *marks); /* apart, steps, sites */
    *fold = (struct tb_grid_fold){.grid = grid,
                                  .first = calloc(clusters, sizeof *fold->first),
                                  .order = calloc(clusters, sizeof *fold->order),
                                  .alike = calloc(clusters, sizeof *fold->alike),
                                  .stays = calloc(clusters, sizeof *fold->stays)};
    bool enough = looks != NULL && marks != NULL && fold->first != NULL && fold->order != NULL && fold->alike != NULL &&
                  fold->stays != NULL;
    int rc = enough ? TB_OK : tb_error(TB_ERR_MEMORY, "no memory for the clusters of %s", grid->file);
    if (rc == TB_OK) {
        if (apart != NULL)
            memcpy(marks, apart, grid->cluster_count * sizeof *marks);
        note_links(grid, marks, marks + clusters, marks + 2 * clusters);
        note_feet(grid, marks);
        make_looks(grid, marks, looks);
        rc = sort_out(fold, looks);
    }
    free(looks);
    free(marks);
    if (rc != TB_OK)
        tb_grid_fold_close(fold);
    return rc;
}

void tb_grid_fold_close(struct tb_grid_fold *fold)
{
    free(fold->first);
    free(fold->order);
    free(fold->alike);
    free(fold->stays);
    *fold = (struct tb_grid_fold){0};
}

/* ---- a part of the hosts ----------------------------------------------------------------------------------------- */

void tb_grid_fold_part(const struct tb_grid_fold *fold, const bool *ranked, const bool *missing, bool *part)
{
    const struct tb_grid *grid = fold->grid;
    memcpy(part, ranked, grid->host_count * sizeof *part);
    for (uint32_t i = 0; i < grid->cluster_count; i++) {
        const struct tb_grid_cluster *cluster = &grid->clusters[i];
        uint32_t more = 0;
        for (uint32_t k = 0; k < cluster->gateway_count && fold->stays[i]; k++)
            part[cluster->gateways[k]] = true;
        for (uint32_t k = 0; k < cluster->host_count && fold->stays[i]; k++) {
            uint32_t host = cluster->hosts[k];
            if (part[host] || (missing != NULL && missing[host]))
                continue;
            part[host] = grid->hosts[host].cluster_count > 1 || more < TB_GRID_FOLD_MOST;
            more += part[host];
        }
    }
    for (uint32_t i = 0; i < grid->host_count && missing != NULL; i++)
        part[i] = part[i] && !missing[i];
}

/* ---- pairs ------------------------------------------------------------------------------------------------------- */

/* How many clusters the rungs of a ladder from `low` to `high` stand for; 0: not the first of those like them do. */
static uint64_t count_rungs(const struct tb_grid_fold *fold, const struct tb_ladder *ladder, uint32_t low,
                            uint32_t high)
{
    uint64_t count = 1;
    for (uint32_t i = low; i < high; i++) {
        uint32_t rung = ladder->rungs[i];
        count *= fold->order[rung] == 0 ? fold->alike[rung] : 0;
    }
    return count;
}

/* How many pairs these two clusters stand for: each that can be told from others by more than exchanging clusters that
 * are alike is represented once. */
static uint64_t count_pairs(const struct tb_grid_fold *fold, uint32_t a, uint32_t b)
{
    struct tb_ladder up, down;
    tb_ladders_make(fold->grid, a, b, &up, &down);
    uint64_t around = count_rungs(fold, &up, up.steps, up.count);
    if (up.steps == 0 || down.steps == 0)
        return around * count_rungs(fold, &up, 0, up.steps) * count_rungs(fold, &down, 0, down.steps);
    uint32_t x = up.rungs[up.steps - 1], y = down.rungs[down.steps - 1], first = fold->first[x];
    uint64_t inside = count_rungs(fold, &up, 0, up.steps - 1) * count_rungs(fold, &down, 0, down.steps - 1);
    if (first != fold->first[y])
        return around * inside * count_rungs(fold, &up, up.steps - 1, up.steps) *
               count_rungs(fold, &down, down.steps - 1, down.steps);
    /* Two that are alike: the first and the second stand for all. */
    return fold->order[x] + fold->order[y] == 1 ? around * inside * fold->alike[first] * (fold->alike[first] - 1) / 2
                                                : 0;
}

/* In one direction or the other: a host that stands in several clusters may lead on in one alone. */
static bool is_supposed(const struct tb_grid *grid, uint32_t a, uint32_t b)
{
    uint32_t from = grid->clusters[a].hosts[0], to = grid->clusters[b].hosts[0];
    return tb_grid_supposes(grid, from, to) || tb_grid_supposes(grid, to, from);
}

uint64_t tb_grid_fold_supposed(const struct tb_grid_fold *fold)
{
    const struct tb_grid *grid = fold->grid;
    uint64_t pairs = 0;
    for (uint32_t i = 0; i < grid->cluster_count; i++)
        for (uint32_t k = i + 1; k < grid->cluster_count && fold->stays[i] && grid->clusters[i].host_count > 0; k++) {
            uint64_t count = fold->stays[k] && grid->clusters[k].host_count > 0 ? count_pairs(fold, i, k) : 0;
            if (count > 0 && is_supposed(grid, i, k))
                pairs += count;
        }
    return pairs;
}

/* The first host with slots of each class in clusters that stay, ascending; their number. */
static uint32_t list_firsts(const struct tb_grid_fold *fold, const struct tb_host_classes *classes, uint32_t *examples)
{
    const struct tb_grid *grid = fold->grid;
    bool *seen = calloc(classes->class_count + 1u, sizeof *seen);
    uint32_t count = 0;
    for (uint32_t i = 0; i < grid->host_count && seen != NULL; i++) {
        if (grid->hosts[i].slots == 0 || !fold->stays[grid->hosts[i].cluster] || seen[classes->of[i]])
            continue;
        seen[classes->of[i]] = true;
        examples[count++] = i;
    }
    free(seen);
    return count;
}

static uint32_t find_examples(const struct tb_grid *grid, uint32_t *examples)
{
    struct tb_host_classes classes;
    struct tb_grid_fold fold;
    uint32_t count = 0;
    if (tb_host_classes_open(&classes, grid) != TB_OK)
        return 0;
    if (tb_grid_fold_open(&fold, grid, NULL) == TB_OK) {
        count = list_firsts(&fold, &classes, examples);
        tb_grid_fold_close(&fold);
    }
    tb_host_classes_close(&classes);
    return count;
}

bool tb_grid_first_unreachable(const struct tb_grid *grid, uint32_t *from, uint32_t *to)
{
    /* Without memory for the classes all hosts are asked, which is slow but right. */
    uint32_t *examples = malloc((grid->host_count + 1u) * sizeof *examples);
    uint32_t count = examples != NULL ? find_examples(grid, examples) : 0;
    bool found = false, all = count == 0;
    count = all ? grid->host_count : count;
    for (uint32_t i = 0; i < count && !found; i++) {
        for (uint32_t j = i + 1; j < count && !found; j++) {
            uint32_t a = all ? i : examples[i], b = all ? j : examples[j];
            if (grid->hosts[a].slots == 0 || grid->hosts[b].slots == 0)
                continue;
            bool forth = tb_grid_reaches(grid, a, b);
            if (forth && tb_grid_reaches(grid, b, a))
                continue;
            found = true;
            *from = forth ? b : a;
            *to = forth ? a : b;
        }
    }
    free(examples);
    return found;
}
