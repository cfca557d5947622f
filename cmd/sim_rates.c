/* A grid as TreeSim sees it: hosts are nodes, and there is a rate, and a latency, from cluster to cluster. Of large
 * grids from site to site: all clusters of a site are taken to be as far from other sites as the first of them. */
#include "sim.h"

#include <stdlib.h>
#include <string.h>

#define CLUSTERS_MOST 512u         /* of more than these, rates are those between sites */
#define RATE_ANY      (1ull << 40) /* bytes a second of a way that no wire limits */

/* What is made for a source, and freed after it was used. */
struct rates {
    const struct tb_group_shape *shape;
    struct tb_ways ways;
    uint32_t *clusters;       /* of each node */
    uint32_t *first, *second; /* hosts of each cluster: the first, and another one or UINT32_MAX */
    uint32_t *sites;          /* of each cluster; NULL: rates are those between clusters */
    uint32_t site_count;
    uint32_t *site_first, *site_second; /* clusters of each site, likewise */
    uint64_t *rates, *latencies;
    uint64_t *inside_rates, *inside_latencies;
};

static int no_memory(void)
{
    return tb_error(TB_ERR_MEMORY, "no memory for the rates between clusters");
}

static void rates_close(struct rates *r)
{
    void *all[] = {r->clusters,    r->first, r->second,    r->sites,        r->site_first,
                   r->site_second, r->rates, r->latencies, r->inside_rates, r->inside_latencies};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(all[i]);
    if (r->ways.table != NULL)
        tb_ways_close(&r->ways);
}

/* Notes one more in a pair of which the first two are kept. */
static void pair_note(uint32_t *first, uint32_t *second, uint32_t value)
{
    if (*first == UINT32_MAX)
        *first = value;
    else if (*second == UINT32_MAX)
        *second = value;
}

static uint32_t *numbers_make(uint32_t count)
{
    uint32_t *numbers = malloc(((size_t)count + 1) * sizeof *numbers);
    if (numbers != NULL)
        memset(numbers, 0xff, ((size_t)count + 1) * sizeof *numbers);
    return numbers;
}

static int clusters_fill(struct rates *r)
{
    const struct tb_group_shape *s = r->shape;
    r->clusters = numbers_make(s->host_count);
    r->first = numbers_make(s->cluster_count);
    r->second = numbers_make(s->cluster_count);
    if (r->clusters == NULL || r->first == NULL || r->second == NULL)
        return no_memory();
    for (uint32_t i = 0; i < s->host_count; i++) {
        uint32_t cluster = s->places[s->hosts[i].place].cluster;
        r->clusters[i] = cluster;
        pair_note(&r->first[cluster], &r->second[cluster], i);
    }
    return TB_OK;
}

/* The site of each cluster, numbered as they are met. */
static int sites_fill(struct rates *r)
{
    const struct tb_group_shape *s = r->shape;
    uint32_t *number = numbers_make(s->place_count);
    r->sites = numbers_make(s->cluster_count);
    r->site_first = numbers_make(s->cluster_count);
    r->site_second = numbers_make(s->cluster_count);
    int error =
        number == NULL || r->sites == NULL || r->site_first == NULL || r->site_second == NULL ? no_memory() : TB_OK;
    for (uint32_t c = 0; c < s->cluster_count && error == TB_OK; c++) {
        uint32_t place = s->hosts[r->first[c]].place;
        while (place != TB_PLACE_NONE && s->places[place].level != TB_LEVEL_SITE)
            place = s->places[place].parent;
        if (place == TB_PLACE_NONE) {
            error = tb_error(TB_ERR_LIMIT,
                             "with more than %u clusters this model needs all of them at sites, and one is at none",
                             CLUSTERS_MOST);
            break;
        }
        if (number[place] == UINT32_MAX)
            number[place] = r->site_count++;
        r->sites[c] = number[place];
        pair_note(&r->site_first[r->sites[c]], &r->site_second[r->sites[c]], c);
    }
    if (error == TB_OK && r->site_count > CLUSTERS_MOST)
        error =
            tb_error(TB_ERR_LIMIT, "%u sites are too many for this model: %u at most", r->site_count, CLUSTERS_MOST);
    free(number);
    return error;
}

/* What a way between two hosts does; of a host alone, UINT32_MAX, nobody asks. */
static int way_ask(struct rates *r, uint32_t from, uint32_t to, uint64_t *rate, uint64_t *latency)
{
    *rate = RATE_ANY;
    *latency = 0;
    if (from == UINT32_MAX || to == UINT32_MAX)
        return TB_OK;
    const struct tb_way *way = tb_ways_between(&r->ways, from, to);
    if (way == NULL)
        return no_memory();
    if (way->slowest > 0)
        *rate = way->slowest / 8 > 0 ? way->slowest / 8 : 1;
    *latency = way->latency;
    return TB_OK;
}

/* The host that stands for part i, and, for the diagonal, one of the same part that is not it. */
static uint32_t host_of(const struct rates *r, uint32_t part, bool other)
{
    if (r->sites == NULL)
        return other ? r->second[part] : r->first[part];
    uint32_t cluster = other ? r->site_second[part] : r->site_first[part];
    return cluster == UINT32_MAX ? UINT32_MAX : r->first[cluster];
}

static int matrix_fill(struct rates *r)
{
    uint32_t count = r->sites != NULL ? r->site_count : r->shape->cluster_count;
    r->rates = calloc((size_t)count * count, sizeof *r->rates);
    r->latencies = calloc((size_t)count * count, sizeof *r->latencies);
    int error = r->rates == NULL || r->latencies == NULL ? no_memory() : TB_OK;
    for (uint32_t a = 0; a < count; a++)
        for (uint32_t b = 0; b < count && error == TB_OK; b++)
            error = way_ask(r, host_of(r, a, false), host_of(r, b, a == b), &r->rates[a * count + b],
                            &r->latencies[a * count + b]);
    return error;
}

static int inside_fill(struct rates *r)
{
    uint32_t count = r->shape->cluster_count;
    r->inside_rates = calloc((size_t)count + 1, sizeof *r->inside_rates);
    r->inside_latencies = calloc((size_t)count + 1, sizeof *r->inside_latencies);
    int error = r->inside_rates == NULL || r->inside_latencies == NULL ? no_memory() : TB_OK;
    for (uint32_t c = 0; c < count && error == TB_OK; c++)
        error = way_ask(r, r->first[c], r->second[c], &r->inside_rates[c], &r->inside_latencies[c]);
    return error;
}

int tb_sim_rates(const struct sim_query *q, const struct scene *scene, uint32_t root, struct tb_problem **problem)
{
    struct rates r = {.shape = scene->shape};
    bool latencies = q->model != SIM_THESIS;
    int error = tb_ways_open(&r.ways, &scene->table, scene->shape);
    if (error == TB_OK)
        error = clusters_fill(&r);
    if (error == TB_OK && scene->shape->cluster_count > CLUSTERS_MOST)
        error = sites_fill(&r);
    if (error == TB_OK)
        error = matrix_fill(&r);
    if (error == TB_OK && r.sites != NULL)
        error = inside_fill(&r);
    if (error == TB_OK)
        error = tb_treesim_open(problem,
                                &(struct tb_treesim_source){.nodes = scene->shape->host_count,
                                                            .root = root,
                                                            .cluster_count = scene->shape->cluster_count,
                                                            .clusters = r.clusters,
                                                            .rates = r.rates,
                                                            .latencies = latencies ? r.latencies : NULL,
                                                            .sender_free = q->model == SIM_POSTAL,
                                                            .operation = q->operation,
                                                            .bytes = q->bytes,
                                                            .site_count = r.site_count,
                                                            .sites = r.sites,
                                                            .inside_rates = r.inside_rates,
                                                            .inside_latencies = latencies ? r.inside_latencies : NULL});
    rates_close(&r);
    return error;
}
