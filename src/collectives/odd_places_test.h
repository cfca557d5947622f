/* For tests: a group of clusters of odd sizes, of which some may be left out. */
#ifndef TB_COLLECTIVES_ODD_PLACES_TEST_H
#define TB_COLLECTIVES_ODD_PLACES_TEST_H

#include "base/base.h"
#include "collectives/collectives.h"

/* Clusters of 1, 2, 3, 7 and 4 ranks, the second and the third in one site, on hosts of up to three ranks. */
#define ODD_CLUSTERS 5u
#define ODD_RANKS    17u

struct odd_world {
    struct tb_cost_place rows[1 + ODD_CLUSTERS + 1];
    struct tb_cost_kind kind;
    struct tb_cost_head head;
    struct tb_cost_table table;
    uint32_t cluster[ODD_RANKS], host[ODD_RANKS];
};

static void odd_run(const void *context, uint32_t rank, struct tb_shape_run *run)
{
    static const uint32_t places[ODD_CLUSTERS] = {1, 3, 4, 5, 6};
    const struct odd_world *w = context;
    *run = (struct tb_shape_run){.host = w->host[rank], .place = places[w->cluster[rank]], .count = 1};
    run->multicast = true;
    run->who = TB_COST_NONE;
}

/* Ranks in blocks, or dealt to the clusters as long as these have any left. */
static const struct tb_group_shape *odd_open(struct odd_world *w, bool dealt)
{
    static const uint32_t ranks[ODD_CLUSTERS] = {1, 2, 3, 7, 4}, each[ODD_CLUSTERS] = {1, 2, 1, 3, 1};
    static const uint32_t parents[] = {TB_PLACE_NONE, 0, 0, 2, 2, 0, 0};
    const struct tb_group_shape *shape;
    uint32_t made[ODD_CLUSTERS] = {0};
    *w = (struct odd_world){.kind = {.port = TB_COST_NONE, .gate_of = TB_COST_NONE}};
    w->head = (struct tb_cost_head){.place_count = 2 + ODD_CLUSTERS, .kind_count = 1, .version = 1};
    w->table = (struct tb_cost_table){.head = &w->head, .places = w->rows, .kinds = &w->kind};
    for (uint32_t i = 0; i < 2 + ODD_CLUSTERS; i++) {
        uint8_t depth = i == 0 ? 0 : parents[i] == 0 ? 1 : 2;
        w->rows[i] = (struct tb_cost_place){.parent = parents[i], .depth = depth, .look = i};
        w->rows[i].level = i == 0 ? TB_LEVEL_WORLD : i == 2 ? TB_LEVEL_SITE : TB_LEVEL_CLUSTER;
    }
    for (uint32_t rank = 0, c = 0; rank < ODD_RANKS; c = (c + 1) % ODD_CLUSTERS)
        for (uint32_t more = dealt ? 1 : ODD_RANKS; more > 0 && made[c] < ranks[c]; more--, made[c]++, rank++) {
            w->cluster[rank] = c;
            w->host[rank] = c * ODD_RANKS + made[c] / each[c];
        }
    const struct tb_shape_source source = {
        .size = ODD_RANKS, .host_limit = ODD_CLUSTERS * ODD_RANKS, .run = odd_run, .context = w, .table = &w->table};
    return tb_group_shape_make(&shape, &source) == TB_OK ? shape : NULL;
}

#endif
