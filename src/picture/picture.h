/* picture: what Tombolo knows, drawn as SVG. Each function writes one whole document; one thread. */
#ifndef TB_PICTURE_PICTURE_H
#define TB_PICTURE_PICTURE_H

#include "base/base.h"
#include "collectives/collectives.h"
#include "planner/planner.h"
#include "topology/topology.h"

#include <stdio.h>

/* Sites, clusters with their hosts, gateways, NAT, and the links between them. */
int tb_picture_grid(FILE *to, const struct tb_grid *grid);
/* Virtual clusters, the hosts that join them, and a way from host to host (`count` 0: none). */
int tb_picture_routes(FILE *to, const struct tb_cluster_graph *graph, const uint32_t *path, uint32_t count);

struct tb_traffic_picture {
    const struct tb_traffic *traffic;
    const struct tb_places *places; /* that its shape is in */
    const char *const *hosts;       /* names of the shape's hosts */
    const char *title;
    const char *lines[2]; /* below it */
};
/* Ranks in their hosts, clusters and sites, and arrows from who sends to whom. Of large groups a part. */
int tb_picture_traffic(FILE *to, const struct tb_traffic_picture *picture);

/* A message, or several, from one node of a planned tree to another. */
struct tb_forest_bar {
    uint32_t from, to;
    uint64_t begin; /* when the sender begins, in picoseconds, */
    uint64_t sent;  /* can go on with something else, */
    uint64_t there; /* and when all of it has arrived */
};

struct tb_forest_picture {
    const struct tb_forest *forest;
    const char *const *names; /* of its nodes */
    enum tb_span_kind (*level)(const void *context, uint32_t from, uint32_t to);
    const void *context;
    const struct tb_forest_bar *bars; /* in any order; none where times are not known */
    uint32_t bar_count;
    uint64_t time; /* that all of it takes */
    const char *title;
    const char *lines[2]; /* below it */
};
/* The trees, from their root to the right, children from above in the order in which they are served, edges in the
 * colour of the level that they cross. And who sends when: a row a node, a bar a message. Of many nodes a part. */
int tb_picture_forest(FILE *to, const struct tb_forest_picture *picture);
int tb_picture_timeline(FILE *to, const struct tb_forest_picture *picture);

#endif
