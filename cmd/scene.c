#include "scene.h"

#include "job/job.h"
#include "planner/planner.h"

#include <stdio.h>
#include <stdlib.h>

void tb_scene_close(struct scene *s)
{
    tb_group_shape_release(s->shape);
    free(s->hosts);
    free(s->casts);
    free(s->bytes);
    tb_routes_close(&s->routes);
    tb_connectivity_close(&s->connectivity);
    free(s->cluster_places);
    free(s->site_places);
    tb_places_close(&s->places);
    tb_grid_close(&s->grid);
}

static int no_memory(const char *file)
{
    return tb_error(TB_ERR_MEMORY, "%s: no memory for its places", file);
}

/* Hosts with ranks between which no messages can go are no place for a call. */
static int ways_check(const struct scene *s, const bool *ranked)
{
    uint32_t count = s->routes.class_count, *examples = malloc((count + 1u) * sizeof *examples);
    if (examples == NULL)
        return no_memory(s->grid.file);
    for (uint32_t i = 0; i < count; i++)
        examples[i] = TB_GRID_NONE;
    for (uint32_t i = s->grid.host_count; i-- > 0;)
        if (ranked[i])
            examples[s->connectivity.classes.of[i]] = i;
    int error = TB_OK;
    for (uint64_t i = 0; i < (uint64_t)count * count && error == TB_OK; i++) {
        uint32_t from = examples[i / count], to = examples[i % count];
        if (from == TB_GRID_NONE || to == TB_GRID_NONE || i / count == i % count ||
            tb_routes_between(&s->routes, (uint32_t)(i / count), (uint32_t)(i % count))->cost != TB_ROUTE_COST_NONE)
            continue;
        error = tb_error(TB_ERR_UNSUPPORTED,
                         "%s:%u: hosts %s and %s both have ranks, but there is no way for messages between them; "
                         "`tombolo grid check %s` says what to do",
                         s->grid.file, s->grid.hosts[to].line, s->grid.hosts[from].name, s->grid.hosts[to].name,
                         s->grid.file);
    }
    free(examples);
    return error;
}

/* Who reaches whom, and by whom messages go, as far as the hosts with ranks need it; and by multicast. */
static int grid_routes(struct scene *s, const struct scene_wish *q)
{
    bool *ranked = calloc((size_t)s->grid.host_count + 1, sizeof *ranked);
    if (ranked == NULL)
        return no_memory(q->grid);
    for (uint64_t i = 0; i < s->slots && i < q->ranks; i++)
        ranked[s->hosts[i]] = true;
    int error = tb_connectivity_open_for(&s->connectivity, &s->grid, ranked, NULL, NULL);
    if (error == TB_ERR_LIMIT) { /* then ways are as places and gateways say */
        error = tb_host_classes_open(&s->connectivity.classes, &s->grid);
    } else if (error == TB_OK) {
        error = tb_routes_open(&s->routes, &s->connectivity);
        if (error == TB_OK)
            error = ways_check(s, ranked);
    }
    if (error == TB_OK)
        error = tb_scene_cast(s, ranked);
    free(ranked);
    return error;
}

static int grid_table(struct scene *s, const struct scene_wish *q)
{
    const char *file = q->grid;
    size_t length;
    s->cluster_places = calloc((size_t)s->grid.cluster_count + 1, sizeof *s->cluster_places);
    s->site_places = calloc((size_t)s->grid.site_count + 1, sizeof *s->site_places);
    if (s->cluster_places == NULL || s->site_places == NULL)
        return no_memory(file);
    int error = tb_places_from_grid(&s->places, &s->grid, s->cluster_places, s->site_places);
    if (error == TB_OK)
        error = grid_routes(s, q);
    if (error == TB_OK)
        error = tb_cost_table_make(&(struct tb_cost_source){.places = &s->places,
                                                            .grid = &s->grid,
                                                            .cluster_places = s->cluster_places,
                                                            .site_places = s->site_places,
                                                            .classes = &s->connectivity.classes,
                                                            .routes = s->routes.class_count > 0 ? &s->routes : NULL,
                                                            .host_count = s->grid.host_count,
                                                            .version = 1},
                                   &s->bytes, &length);
    return error == TB_OK ? tb_cost_table_view(&s->table, s->bytes, length) : error;
}

static void slot_run(const void *context, uint32_t rank, struct tb_shape_run *run)
{
    const struct scene *s = context;
    uint32_t host = s->hosts[rank % s->slots], kind = s->connectivity.classes.of[host];
    bool apart = (s->table.kinds[kind].flags & TB_KIND_TOLD_APART) != 0;
    *run = (struct tb_shape_run){.host = tb_param_shares_memory() ? host : rank,
                                 .place = s->cluster_places[s->grid.hosts[host].cluster],
                                 .kind = kind,
                                 .who = apart ? host : TB_COST_NONE,
                                 .multicast = s->casts != NULL && s->casts[s->grid.hosts[host].cluster],
                                 .count = 1};
}

/* A slot: which one of its outermost cluster it is. */
struct slot {
    uint32_t number, cluster, host;
};

static int slot_compare(const void *a, const void *b)
{
    const struct slot *one = a, *other = b;
    uint64_t x = (uint64_t)one->number << 32 | one->cluster, y = (uint64_t)other->number << 32 | other->cluster;
    return x < y ? -1 : x > y;
}

/* The slots of the outermost clusters in turn. */
static int slots_deal(struct scene *s)
{
    uint32_t *seen = calloc((size_t)s->grid.cluster_count + 1, sizeof *seen);
    struct slot *slots = calloc(s->slots, sizeof *slots);
    int error = seen == NULL || slots == NULL ? no_memory("the ranks") : TB_OK;
    for (uint32_t i = 0; i < s->slots && error == TB_OK; i++) {
        uint32_t cluster = tb_grid_outermost(&s->grid, s->grid.hosts[s->hosts[i]].cluster);
        slots[i] = (struct slot){seen[cluster]++, cluster, s->hosts[i]};
    }
    if (error == TB_OK)
        qsort(slots, s->slots, sizeof *slots, slot_compare);
    for (uint32_t i = 0; i < s->slots && error == TB_OK; i++)
        s->hosts[i] = slots[i].host;
    free(seen);
    free(slots);
    return error;
}

/* No job has more ranks. */
static int slots_check(const struct tb_grid *grid, uint64_t slots)
{
    for (uint32_t i = 0; i < grid->host_count; i++)
        if (grid->hosts[i].slots > TB_HOST_RANKS_LIMIT)
            return tb_error(TB_ERR_LIMIT, "%s:%u: host %s has %u slots, and at most %u ranks of a job are on one host",
                            grid->file, grid->hosts[i].line, grid->hosts[i].name, grid->hosts[i].slots,
                            TB_HOST_RANKS_LIMIT);
    return slots <= TB_JOB_RANKS_LIMIT
               ? TB_OK
               : tb_error(TB_ERR_LIMIT, "%s: there are %llu slots, and a job has at most %u ranks", grid->file,
                          (unsigned long long)slots, TB_JOB_RANKS_LIMIT);
}

/* Which host each slot of the grid is on. */
static int grid_slots(struct scene *s, struct scene_wish *q)
{
    uint64_t slots = 0;
    for (uint32_t i = 0; i < s->grid.host_count; i++)
        slots += s->grid.hosts[i].slots;
    if (q->ranks == 0 && slots_check(&s->grid, slots) != TB_OK)
        return TB_ERR_LIMIT;
    s->hosts = calloc(slots + 1, sizeof *s->hosts);
    if (s->hosts == NULL)
        return no_memory(q->grid);
    for (uint32_t i = 0; i < s->grid.host_count; i++)
        for (uint32_t k = 0; k < s->grid.hosts[i].slots; k++)
            s->hosts[s->slots++] = i;
    if (s->slots == 0)
        return tb_error(TB_ERR_ARGUMENT, "%s: no host has slots", q->grid);
    if (q->deal && slots_deal(s) != TB_OK)
        return TB_ERR_MEMORY;
    q->ranks = q->ranks > 0 ? q->ranks : slots;
    return TB_OK;
}

static int grid_shape(struct scene *s, const struct scene_wish *q)
{
    uint32_t hosts = tb_param_shares_memory() ? s->grid.host_count : (uint32_t)q->ranks;
    return tb_group_shape_make(
        &s->shape,
        &(struct tb_shape_source){
            .size = (uint32_t)q->ranks, .host_limit = hosts, .table = &s->table, .run = slot_run, .context = s});
}

/* Hosts of one cluster that have ranks. */
static uint64_t used_hosts(const struct scene_wish *q)
{
    return q->hosts < q->ranks ? q->hosts : q->ranks;
}

static void dealt_run(const void *context, uint32_t rank, struct tb_shape_run *run)
{
    const struct scene_wish *q = context;
    *run = (struct tb_shape_run){.host = rank % (uint32_t)q->hosts,
                                 .who = TB_COST_NONE,
                                 .multicast = tb_scene_casts_among(used_hosts(q)),
                                 .count = 1};
}

/* Without a grid file: hosts in one cluster that has no name. */
static int plain_shape(struct scene *s, struct scene_wish *q)
{
    struct tb_places_builder *builder;
    uint32_t world;
    size_t length;
    int error = tb_places_builder_open(&builder);
    q->ranks = q->ranks > 0 ? q->ranks : 8;
    q->hosts = tb_param_shares_memory() ? q->hosts : q->ranks;
    if (error == TB_OK) {
        error = tb_places_builder_seal(builder, &s->places, &world);
        tb_places_builder_close(builder);
    }
    if (error == TB_OK)
        error = tb_cost_table_make_plain(&s->places, (uint32_t)q->hosts, &s->bytes, &length);
    if (error == TB_OK)
        error = tb_cost_table_view(&s->table, s->bytes, length);
    if (error == TB_OK && q->deal)
        return tb_group_shape_make(&s->shape, &(struct tb_shape_source){.size = (uint32_t)q->ranks,
                                                                        .host_limit = (uint32_t)q->hosts,
                                                                        .table = &s->table,
                                                                        .run = dealt_run,
                                                                        .context = q});
    return error == TB_OK ? tb_group_shape_even(&s->shape, (uint32_t)q->ranks, (uint32_t)q->hosts,
                                                tb_scene_casts_among(used_hosts(q)), &s->table)
                          : error;
}

int tb_scene_open(struct scene *s, struct scene_wish *q)
{
    *s = (struct scene){.slots = 0};
    int error = tb_multicast_check_parameters();
    if (error != TB_OK)
        return error;
    if (q->grid == NULL) {
        error = plain_shape(s, q);
    } else {
        error = tb_grid_load(&s->grid, q->grid);
        if (error == TB_OK)
            error = grid_slots(s, q);
        if (error == TB_OK)
            error = grid_table(s, q);
        if (error == TB_OK)
            error = grid_shape(s, q);
    }
    return error;
}

int tb_scene_bytes(enum tb_operation operation, uint64_t usual, uint64_t *bytes)
{
    char text[32];
    bool said = *bytes != SCENE_BYTES_NONE, unsized = tb_operation_unsized(operation);
    snprintf(text, sizeof text, "%llu", (unsigned long long)*bytes);
    if (said && unsized && tb_param_set("assumed_block", text, TB_PARAM_LAUNCHER) != TB_OK)
        return TB_ERR_ARGUMENT;
    if (unsized)
        *bytes = tb_param.assumed_block;
    else if (operation == TB_OPERATION_BARRIER)
        *bytes = 0;
    else if (!said)
        *bytes = usual;
    return TB_OK;
}

void tb_scene_call_print(enum tb_operation operation, uint64_t bytes, char *text, size_t size)
{
    char word[64];
    tb_operation_word(operation, word, sizeof word);
    if (operation == TB_OPERATION_BARRIER)
        snprintf(text, size, "%s", word);
    else
        snprintf(text, size, "%s of %llu byte%s", word, (unsigned long long)bytes, tb_plural(bytes));
}
