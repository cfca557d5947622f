/* picture: what Tombolo knows, drawn as SVG. Each function writes one whole document; one thread. */
#ifndef TB_PICTURE_PICTURE_H
#define TB_PICTURE_PICTURE_H

#include "base/base.h"
#include "topology/topology.h"

#include <stdio.h>

/* Sites, clusters with their hosts, gateways, NAT, and the links between them. */
int tb_picture_grid(FILE *to, const struct tb_grid *grid);
/* Virtual clusters, the hosts that join them, and a way from host to host (`count` 0: none). */
int tb_picture_routes(FILE *to, const struct tb_cluster_graph *graph, const uint32_t *path, uint32_t count);

#endif
