#include "topology/class.h"
#include "topology/grid_file.h"

#include <stdlib.h>
#include <string.h>

/* `gates` has a bit for each foot. */
struct kind {
    uint32_t host;
    const struct tb_grid *grid;
    uint64_t gates;
    bool alone; /* a link ends at this very host, or it has too many feet: nobody is like it */
};

static int order(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

/* Of what two hosts say of their ports; NULL: nothing. */
static int ports_order(const struct tb_grid_wire *a, const struct tb_grid_wire *b)
{
    if (a == NULL || b == NULL)
        return (a != NULL) - (b != NULL);
    int by_rate = order(a->bandwidth, b->bandwidth), by_queue = order(a->queue, b->queue);
    return by_rate != 0 ? by_rate : by_queue != 0 ? by_queue : order(a->duplex, b->duplex);
}

static int kind_order(const struct kind *a, const struct kind *b)
{
    const struct tb_grid_host *x = &a->grid->hosts[a->host], *y = &b->grid->hosts[b->host];
    if (x->cluster_count != y->cluster_count)
        return x->cluster_count < y->cluster_count ? -1 : 1;
    int by_feet = memcmp(x->clusters, y->clusters, x->cluster_count * sizeof *x->clusters);
    if (by_feet != 0)
        return by_feet;
    if (a->gates != b->gates)
        return a->gates < b->gates ? -1 : 1;
    if (a->alone != b->alone)
        return (int)a->alone - (int)b->alone;
    return ports_order(x->wire, y->wire);
}

static int kind_compare(const void *left, const void *right)
{
    const struct kind *a = left, *b = right;
    int by_kind = kind_order(a, b);
    return by_kind != 0 ? by_kind : (a->host > b->host) - (a->host < b->host);
}

/* Which of its feet each host has as a gateway; one walk over all gateways instead of a search for each host. `kinds`
 * are those of all hosts. */
static void note_gates(const struct tb_grid *grid, struct kind *kinds)
{
    for (uint32_t c = 0; c < grid->cluster_count; c++) {
        const struct tb_grid_cluster *cluster = &grid->clusters[c];
        for (uint32_t g = 0; g < cluster->gateway_count; g++) {
            struct kind *kind = &kinds[cluster->gateways[g]];
            const struct tb_grid_host *host = &grid->hosts[kind->host];
            for (uint32_t foot = 0; foot < host->cluster_count && foot < 64; foot++) {
                if (host->clusters[foot] == c)
                    kind->gates |= UINT64_C(1) << foot;
            }
        }
    }
}

/* Equal kinds stand together, in each the first host first; every host is given that one for a name. */
static void name_by_first(struct tb_host_classes *classes, const struct kind *kinds, uint32_t count)
{
    for (uint32_t i = 0, first = 0; i < count; i++) {
        if (i > 0 && (kinds[i].alone || kind_order(&kinds[i - 1], &kinds[i]) != 0))
            first = i;
        classes->of[kinds[i].host] = kinds[first].host;
    }
}

/* From the first host of the class to its number, in ascending order, and the members. */
static void number(struct tb_host_classes *classes)
{
    uint32_t n = classes->host_count;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t first = classes->of[i];
        if (first == TB_GRID_NONE)
            continue;
        classes->of[i] = first == i ? classes->class_count++ : classes->of[first];
        classes->first[classes->of[i] + 1]++;
    }
    for (uint32_t c = 0; c < classes->class_count; c++)
        classes->first[c + 1] += classes->first[c];
    for (uint32_t i = 0; i < n; i++)
        if (classes->of[i] != TB_GRID_NONE)
            classes->members[classes->first[classes->of[i]]++] = i;
    for (uint32_t c = classes->class_count; c > 0; c--)
        classes->first[c] = classes->first[c - 1];
    classes->first[0] = 0;
}

int tb_host_classes_open(struct tb_host_classes *classes, const struct tb_grid *grid)
{
    return tb_host_classes_open_part(classes, grid, NULL);
}

int tb_host_classes_open_part(struct tb_host_classes *classes, const struct tb_grid *grid, const bool *part)
{
    uint32_t n = grid->host_count, count = 0;
    struct kind *kinds = calloc(n + 1u, sizeof *kinds);
    *classes = (struct tb_host_classes){.host_count = n,
                                        .of = calloc(n + 1u, sizeof(uint32_t)),
                                        .first = calloc(n + 2u, sizeof(uint32_t)),
                                        .members = calloc(n + 1u, sizeof(uint32_t))};
    if (kinds == NULL || classes->of == NULL || classes->first == NULL || classes->members == NULL) {
        free(kinds);
        tb_host_classes_close(classes);
        return tb_error(TB_ERR_MEMORY, "no memory for the classes of %u hosts", n);
    }
    for (uint32_t i = 0; i < n; i++)
        kinds[i] = (struct kind){
            .host = i, .grid = grid, .alone = tb_grid_ends_at(grid, i) || grid->hosts[i].cluster_count > 64};
    note_gates(grid, kinds);
    for (uint32_t i = 0; i < n; i++) {
        classes->of[i] = TB_GRID_NONE;
        if (part == NULL || part[i])
            kinds[count++] = kinds[i];
    }
    qsort(kinds, count, sizeof *kinds, kind_compare);
    name_by_first(classes, kinds, count);
    number(classes);
    free(kinds);
    return TB_OK;
}

int tb_host_classes_split(struct tb_host_classes *classes, const uint32_t *labels, uint32_t *origins)
{
    uint32_t n = classes->host_count;
    struct tb_host_classes split = {.host_count = n,
                                    .of = calloc(n + 1u, sizeof(uint32_t)),
                                    .first = calloc(n + 2u, sizeof(uint32_t)),
                                    .members = calloc(n + 1u, sizeof(uint32_t))};
    if (split.of == NULL || split.first == NULL || split.members == NULL) {
        tb_host_classes_close(&split);
        return tb_error(TB_ERR_MEMORY, "no memory for the classes of %u hosts", n);
    }
    for (uint32_t i = 0; i < n; i++)
        split.of[i] = TB_GRID_NONE;
    /* The first with this label gives its name, as when they were made. A class has few labels, found near its head. */
    for (uint32_t c = 0; c < classes->class_count; c++)
        for (uint32_t i = 0; i < tb_host_classes_size(classes, c); i++) {
            uint32_t host = tb_host_classes_member(classes, c, i), k = 0;
            while (labels[tb_host_classes_member(classes, c, k)] != labels[host])
                k++;
            split.of[host] = tb_host_classes_member(classes, c, k);
        }
    number(&split);
    for (uint32_t c = 0; c < split.class_count; c++)
        origins[c] = classes->of[tb_host_classes_member(&split, c, 0)];
    tb_host_classes_close(classes);
    *classes = split;
    return TB_OK;
}

void tb_host_classes_close(struct tb_host_classes *classes)
{
    free(classes->of);
    free(classes->first);
    free(classes->members);
    *classes = (struct tb_host_classes){0};
}
