/* picture: what Tombolo knows, drawn as SVG. Each function writes one whole document; one thread. */
#ifndef TB_PICTURE_PICTURE_H
#define TB_PICTURE_PICTURE_H

#include "base/base.h"
#include "topology/topology.h"

#include <stdio.h>

/* Sites, clusters with their hosts, gateways, NAT, and the links between them. */
int tb_picture_grid(FILE *to, const struct tb_grid *grid);

#endif
