#include "topology/shape.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int no_memory(uint32_t size)
{
    return tb_error(TB_ERR_MEMORY, "no memory for the shape of a group of %u ranks", size);
}

void tb_group_shape_close(struct tb_group_shape *shape)
{
    free(shape->hosts);
    free(shape->clusters);
    free(shape->names);
    *shape = (struct tb_group_shape){0};
}

static bool all_on_one(const struct tb_shape_source *source, uint32_t *highest)
{
    uint32_t first = source->host(source->context, 0);
    bool one = true;
    *highest = first;
    for (uint32_t rank = 1; rank < source->size; rank++) {
        uint32_t host = source->host(source->context, rank);
        one = one && host == first;
        *highest = host > *highest ? host : *highest;
    }
    return one;
}

/* The cluster of this name, which is added if it is new. */
static uint32_t cluster_number(struct tb_group_shape *shape, const char *name)
{
    uint32_t last = shape->cluster_count > 0 ? shape->cluster_count - 1 : 0;
    /* Hosts of a cluster mostly stand together. */
    for (uint32_t i = 0; i < shape->cluster_count; i++) {
        uint32_t at = (last + i) % shape->cluster_count;
        if (strncmp(shape->names[at], name, TB_SHAPE_NAME_BYTES - 1) == 0)
            return at;
    }
    snprintf(shape->names[shape->cluster_count], TB_SHAPE_NAME_BYTES, "%s", name);
    return shape->cluster_count++;
}

/* Numbers hosts and clusters; `numbers` has a place for every host number of the source. */
static void shape_fill(struct tb_group_shape *shape, const struct tb_shape_source *source, uint32_t *numbers,
                       uint32_t *counts)
{
    for (uint32_t rank = 0; rank < source->size; rank++) {
        uint32_t host = source->host(source->context, rank);
        if (numbers[host] == 0) {
            shape->clusters[shape->host_count] =
                cluster_number(shape, source->cluster != NULL ? source->cluster(source->context, host) : "");
            numbers[host] = ++shape->host_count;
        }
        uint32_t number = numbers[host] - 1;
        shape->hosts[rank] = number;
        counts[number]++;
        shape->most = counts[number] > shape->most ? counts[number] : shape->most;
    }
}

int tb_group_shape_make(struct tb_group_shape *shape, const struct tb_shape_source *source)
{
    uint32_t highest, size = source->size;
    TB_ASSERT(size > 0);
    *shape = (struct tb_group_shape){.size = size};
    if (all_on_one(source, &highest)) {
        shape->host_count = shape->cluster_count = 1;
        shape->most = size;
        return TB_OK;
    }
    uint32_t *numbers = calloc((size_t)highest + 1, sizeof *numbers), *counts = calloc(size, sizeof *counts);
    shape->hosts = calloc(size, sizeof *shape->hosts);
    shape->clusters = calloc(size, sizeof *shape->clusters);
    shape->names = calloc(size, sizeof *shape->names);
    bool whole =
        numbers != NULL && counts != NULL && shape->hosts != NULL && shape->clusters != NULL && shape->names != NULL;
    if (whole) {
        shape_fill(shape, source, numbers, counts);
        void *smaller = realloc(shape->names, shape->cluster_count * sizeof *shape->names);
        shape->names = smaller != NULL ? smaller : shape->names;
    } else {
        tb_group_shape_close(shape);
    }
    free(numbers);
    free(counts);
    return whole ? TB_OK : no_memory(size);
}

struct even {
    uint32_t size, hosts;
};

static uint32_t even_host(const void *context, uint32_t rank)
{
    const struct even *e = context;
    return (uint32_t)((uint64_t)rank * e->hosts / e->size);
}

int tb_group_shape_even(struct tb_group_shape *shape, uint32_t size, uint32_t hosts)
{
    const struct even even = {size, hosts < size ? hosts : size};
    return tb_group_shape_make(shape, &(struct tb_shape_source){.size = size, .host = even_host, .context = &even});
}

/* ---- a smaller one ----------------------------------------------------------------------------------------------- */

struct sample {
    const struct tb_group_shape *of;
    const uint32_t *ranks;
};

static uint32_t sample_host(const void *context, uint32_t rank)
{
    const struct sample *s = context;
    return tb_group_shape_host(s->of, s->ranks[rank]);
}

static const char *sample_cluster(const void *context, uint32_t host)
{
    const struct sample *s = context;
    return s->of->names != NULL ? s->of->names[s->of->clusters[host]] : "";
}

int tb_group_shape_sample(struct tb_group_shape *sample, const struct tb_group_shape *shape, uint32_t size,
                          uint32_t *ranks)
{
    TB_ASSERT(size > 0 && size <= shape->size);
    /* Neighbours on a host stay together. */
    uint32_t chunk = 1;
    while (chunk < size && tb_group_shape_host(shape, chunk) == tb_group_shape_host(shape, 0))
        chunk++;
    uint32_t chunks = (size + chunk - 1) / chunk, all = shape->size / chunk;
    for (uint32_t i = 0; i < size; i++) {
        uint64_t from = (uint64_t)(i / chunk) * all / chunks * chunk;
        ranks[i] = (uint32_t)(from + i % chunk);
    }
    const struct sample s = {shape, ranks};
    return tb_group_shape_make(
        sample, &(struct tb_shape_source){.size = size, .host = sample_host, .cluster = sample_cluster, .context = &s});
}

/* ---- comparing --------------------------------------------------------------------------------------------------- */

bool tb_group_shape_same(const struct tb_group_shape *a, const struct tb_group_shape *b)
{
    if (a->size != b->size || a->host_count != b->host_count || a->cluster_count != b->cluster_count)
        return false;
    if (a->hosts == NULL || b->hosts == NULL)
        return a->hosts == b->hosts;
    return memcmp(a->hosts, b->hosts, a->size * sizeof *a->hosts) == 0 &&
           memcmp(a->clusters, b->clusters, a->host_count * sizeof *a->clusters) == 0 &&
           memcmp(a->names, b->names, a->cluster_count * sizeof *a->names) == 0;
}

uint32_t tb_group_shape_kind(const struct tb_group_shape *shape, uint32_t rank)
{
    if (shape->hosts == NULL || (shape->most == 1 && shape->cluster_count == 1))
        return 0;
    bool first = rank == 0 || shape->hosts[rank - 1] != shape->hosts[rank];
    return 2 * tb_group_shape_cluster(shape, rank) + (first ? 0 : 1);
}

uint32_t tb_group_shape_of_kind(const struct tb_group_shape *shape, uint32_t kind)
{
    for (uint32_t rank = 0; kind > 0 && rank < shape->size; rank++)
        if (tb_group_shape_kind(shape, rank) == kind)
            return rank;
    return 0;
}
