/* picture: what Tombolo knows, drawn as SVG. Each function writes one whole document; one thread. */
#ifndef TB_PICTURE_PICTURE_H
#define TB_PICTURE_PICTURE_H

#include "base/base.h"
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

#endif
