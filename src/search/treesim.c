#include "search/treesim.h"

#include <stdlib.h>
#include <string.h>

#include "search/treesim_run.h"

#define LONGEST (UINT64_MAX / 8) /* that anything may take, in picoseconds: 26 days */

static uint64_t treesim_send(const struct tb_problem *problem, uint32_t from, uint32_t to)
{
    const struct tb_treesim *s = problem->context;
    return tb_treesim_alone(s, from, to) + (s->sender_free ? 0 : tb_treesim_latency(s, from, to));
}

static uint64_t treesim_arrive(const struct tb_problem *problem, uint32_t from, uint32_t to)
{
    const struct tb_treesim *s = problem->context;
    return tb_treesim_alone(s, from, to) + tb_treesim_latency(s, from, to);
}

static int treesim_rate(struct tb_problem *problem, const struct tb_forest *forest, uint64_t *time)
{
    struct tb_search_tree tree;
    if (forest->nodes != problem->nodes || forest->root != problem->root || forest->trees != 1 || forest->piece != 0)
        return tb_error(TB_ERR_UNSUPPORTED, "TreeSim knows one tree of whole messages over its %u node%s from node %u",
                        problem->nodes, tb_plural(problem->nodes), problem->root);
    int error = tb_search_tree_open(&tree, forest->nodes, forest->root);
    if (error != TB_OK)
        return error;
    tb_search_tree_read(&tree, forest, 0);
    *time = tb_treesim_time(problem, &tree);
    tb_search_tree_close(&tree);
    return TB_OK;
}

bool tb_treesim_is(const struct tb_problem *problem)
{
    return problem->rate == treesim_rate;
}

uint64_t tb_treesim_link_key(const struct tb_problem *problem, uint32_t from, uint32_t to)
{
    return tb_treesim_key(problem->context, from, to);
}

bool tb_treesim_has_latency(const struct tb_problem *problem, uint32_t from, uint32_t to)
{
    return tb_treesim_latency(problem->context, from, to) != 0;
}

/* Two transfers at the same time between the same two of something take two nodes of each. */
static bool several_have_two(const uint32_t *of, uint32_t nodes, uint32_t count)
{
    uint8_t *seen = calloc(count, 1);
    uint32_t have_two = 0;
    for (uint32_t i = 0; seen != NULL && i < nodes; i++)
        if (seen[of[i]] < 2 && ++seen[of[i]] == 2)
            have_two++;
    bool several = seen == NULL || have_two > 1;
    free(seen);
    return several;
}

bool tb_treesim_shares(const struct tb_problem *problem)
{
    const struct tb_treesim *s = problem->context;
    return several_have_two(s->places, problem->nodes, s->place_count) ||
           (s->sites != NULL && several_have_two(s->clusters, problem->nodes, problem->cluster_count));
}

uint32_t tb_treesim_transfers(const struct tb_problem *problem)
{
    bool both = problem->operation == TB_OPERATION_ALLREDUCE || problem->operation == TB_OPERATION_BARRIER;
    return (problem->nodes - 1) * (both ? 2 : 1);
}

int tb_treesim_timeline(struct tb_problem *problem, const struct tb_forest *forest, struct tb_treesim_transfer *list)
{
    struct tb_treesim *s = problem->context;
    uint64_t time;
    s->timeline = list;
    int error = treesim_rate(problem, forest, &time);
    s->timeline = NULL;
    return error;
}

/* How long `bytes` take at each rate of a table; no sum of them may be longer than LONGEST. */
static int times_make(uint64_t **times, const uint64_t *rates, uint32_t rows, uint32_t columns, uint64_t bytes,
                      uint64_t sums)
{
    size_t count = (size_t)rows * columns;
    *times = malloc(count * sizeof **times);
    if (*times == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for %zu rates", count);
    for (size_t i = 0; i < count; i++) {
        if (rates[i] == 0)
            return tb_error(TB_ERR_ARGUMENT, "row %zu, column %zu of the rates is 0", i / columns, i % columns);
        unsigned __int128 time = ((unsigned __int128)bytes * 1000000000000u + rates[i] - 1) / rates[i];
        if (time > LONGEST / sums)
            return tb_error(TB_ERR_ARGUMENT, "%llu byte%s at %g Mbit/s take too long to count",
                            (unsigned long long)bytes, tb_plural(bytes), (double)rates[i] / 125000);
        (*times)[i] = (uint64_t)time;
    }
    return TB_OK;
}

static int latencies_make(uint64_t **to, const uint64_t *from, size_t count, uint64_t sums)
{
    TB_ASSERT(count > 0);
    *to = malloc(count * sizeof **to);
    if (*to == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for %zu latencies", count);
    for (size_t i = 0; i < count; i++) {
        (*to)[i] = from == NULL ? 0 : from[i];
        if ((*to)[i] > LONGEST / sums)
            return tb_error(TB_ERR_ARGUMENT, "a latency of %llu picoseconds is too long to count",
                            (unsigned long long)(*to)[i]);
    }
    return TB_OK;
}

static int costs_make(struct tb_treesim *s, const struct tb_treesim_source *source)
{
    const uint32_t count = s->place_count;
    bool all = source->operation == TB_OPERATION_GATHER || source->operation == TB_OPERATION_SCATTER;
    uint64_t sums = 2 * (uint64_t)source->nodes * (all ? source->nodes : 1);
    uint64_t bytes = source->operation == TB_OPERATION_BARRIER ? 0 : source->bytes;
    int error = times_make(&s->times, source->rates, count, count, bytes, sums);
    s->one_link = true;
    for (size_t i = 0; error == TB_OK && i < (size_t)count * count; i++)
        s->one_link = s->one_link && source->rates[i] == source->rates[i % count * count + i / count];
    bool sites = source->sites != NULL, latencies = source->latencies != NULL || source->inside_latencies != NULL;
    if (error == TB_OK && sites)
        error = times_make(&s->inside_times, source->inside_rates, source->cluster_count, 1, bytes, sums);
    if (error == TB_OK && latencies)
        error = latencies_make(&s->latencies, source->latencies, (size_t)count * count, sums);
    if (error == TB_OK && latencies && sites)
        error = latencies_make(&s->inside_latencies, source->inside_latencies, source->cluster_count, sums);
    return error;
}

static int places_make(struct tb_treesim *s, const struct tb_treesim_source *source)
{
    s->clusters = malloc(source->nodes * sizeof *s->clusters);
    s->places = malloc(source->nodes * sizeof *s->places);
    s->sites = source->sites == NULL ? NULL : malloc(source->cluster_count * sizeof *s->sites);
    if (s->clusters == NULL || s->places == NULL || (s->sites == NULL && source->sites != NULL))
        return tb_error(TB_ERR_MEMORY, "no memory for the places of %u nodes", source->nodes);
    for (uint32_t i = 0; s->sites != NULL && i < source->cluster_count; i++) {
        s->sites[i] = source->sites[i];
        if (s->sites[i] >= source->site_count)
            return tb_error(TB_ERR_ARGUMENT, "cluster %u is at site %u of %u", i, s->sites[i], source->site_count);
    }
    for (uint32_t i = 0; i < source->nodes; i++) {
        s->clusters[i] = source->clusters == NULL ? i : source->clusters[i];
        if (s->clusters[i] >= source->cluster_count)
            return tb_error(TB_ERR_ARGUMENT, "node %u is in cluster %u of %u", i, s->clusters[i],
                            source->cluster_count);
        s->places[i] = s->sites == NULL ? s->clusters[i] : s->sites[s->clusters[i]];
    }
    return TB_OK;
}

static int state_make(struct tb_treesim *s, const struct tb_treesim_source *source)
{
    const size_t nodes = source->nodes;
    size_t links = (size_t)s->place_count * s->place_count;
    if (s->sites != NULL || s->place_count > TB_TREESIM_PLACES) {
        for (s->link_slots = 2; s->link_slots < 2 * nodes;)
            s->link_slots *= 2;
        links = s->link_slots;
    }
    bool all = source->operation == TB_OPERATION_GATHER || source->operation == TB_OPERATION_SCATTER;
    s->links = calloc(links, sizeof *s->links);
    uint32_t *numbers = malloc(5 * nodes * sizeof *numbers);
    uint64_t *times = malloc(2 * nodes * sizeof *times);
    s->turn = numbers;
    s->end_work = times;
    if (s->links == NULL || numbers == NULL || times == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory to simulate %u nodes", source->nodes);
    s->missing = numbers + nodes;
    s->before = numbers + 2 * nodes;
    s->behind = numbers + 3 * nodes;
    s->weight = all ? numbers + 4 * nodes : NULL;
    s->starts = times + nodes;
    memset(times, 0, 2 * nodes * sizeof *times);
    return tb_event_heap_open(&s->heap, 2 * source->nodes, (uint32_t)(2 * nodes + links));
}

void tb_treesim_close(struct tb_problem *problem)
{
    struct tb_treesim *s = problem == NULL ? NULL : problem->context;
    if (s == NULL)
        return;
    free(s->clusters);
    free(s->sites);
    free(s->places);
    free(s->times);
    free(s->latencies);
    free(s->inside_times);
    free(s->inside_latencies);
    free(s->links);
    free(s->turn);
    free(s->end_work);
    tb_event_heap_close(&s->heap);
    free(s);
}

static int source_check(const struct tb_treesim_source *source)
{
    const enum tb_operation o = source->operation;
    if (source->nodes == 0 || source->nodes > UINT32_MAX / 8 || source->root >= source->nodes)
        return tb_error(TB_ERR_ARGUMENT, "root %u of %u nodes", source->root, source->nodes);
    if (source->cluster_count == 0 || (source->clusters == NULL && source->cluster_count != source->nodes))
        return tb_error(TB_ERR_ARGUMENT, "a matrix of %u clusters for %u nodes", source->cluster_count, source->nodes);
    if (source->sites != NULL && (source->site_count == 0 || source->inside_rates == NULL))
        return tb_error(TB_ERR_ARGUMENT, "clusters at sites need rates inside each of them");
    if (o != TB_OPERATION_BCAST && o != TB_OPERATION_REDUCE && o != TB_OPERATION_ALLREDUCE &&
        o != TB_OPERATION_BARRIER && o != TB_OPERATION_GATHER && o != TB_OPERATION_SCATTER)
        return tb_error(TB_ERR_UNSUPPORTED, "no tree carries this operation");
    return TB_OK;
}

int tb_treesim_open(struct tb_problem **problem, const struct tb_treesim_source *source)
{
    *problem = NULL;
    int error = source_check(source);
    if (error != TB_OK)
        return error;
    struct tb_treesim *s = calloc(1, sizeof *s);
    if (s == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for a problem of %u nodes", source->nodes);
    s->sender_free = source->sender_free;
    s->place_count = source->sites == NULL ? source->cluster_count : source->site_count;
    s->problem = (struct tb_problem){.nodes = source->nodes,
                                     .root = source->root,
                                     .cluster_count = source->cluster_count,
                                     .site_count = source->sites == NULL ? 0 : source->site_count,
                                     .operation = source->operation,
                                     .bytes = source->bytes,
                                     .whole = true,
                                     .arrive = treesim_arrive,
                                     .send = treesim_send,
                                     .rate = treesim_rate,
                                     .context = s};
    error = places_make(s, source);
    if (error == TB_OK)
        error = costs_make(s, source);
    if (error == TB_OK)
        error = state_make(s, source);
    if (error != TB_OK) {
        tb_treesim_close(&s->problem);
        return error;
    }
    s->problem.clusters = s->clusters;
    s->problem.sites = s->sites;
    *problem = &s->problem;
    return TB_OK;
}
