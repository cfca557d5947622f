/* Where the ranks of a call are, for commands that predict: on the hosts of a grid file, or on hosts of one cluster. */
#ifndef TB_CMD_SCENE_H
#define TB_CMD_SCENE_H

#include "collectives/collectives.h"
#include "topology/topology.h"

#define SCENE_BYTES_NONE UINT64_MAX /* of a call, that was not said */

struct scene_wish {
    const char *grid;      /* file; NULL: hosts in one cluster that has no name */
    uint64_t ranks, hosts; /* 0 ranks: all slots of the grid, or 8; becomes how many there are */
    bool deal;             /* ranks are dealt to clusters in turn, without a grid to hosts */
};

/* Where the ranks are and what their network costs, as a job would find it. */
struct scene {
    struct tb_grid grid;
    struct tb_places places;
    uint32_t *cluster_places, *site_places;
    struct tb_connectivity connectivity; /* of too many kinds of hosts these alone */
    struct tb_routes routes;
    void *bytes; /* of the table */
    struct tb_cost_table table;
    uint32_t *hosts; /* of each slot of the grid: ranks fill them, host after host, and go round again */
    uint32_t slots;
    bool *casts; /* by cluster of the grid: one datagram reaches all of its hosts that have ranks; NULL: nowhere */
    const struct tb_group_shape *shape;
};

/* Close it also after an error. */
int tb_scene_open(struct scene *scene, struct scene_wish *wish);
void tb_scene_close(struct scene *scene);

/* Where multicast works, as a job would find it, as far as the grid file and the parameters say: `ranked` are the hosts
 * with ranks. Sets scene->casts (scene_casts.c). */
int tb_scene_cast(struct scene *scene, const bool *ranked);
/* The same of so many hosts of one cluster. */
bool tb_scene_casts_among(uint64_t hosts);

/* How large a call is, if it was said; SCENE_BYTES_NONE becomes what is usual. Where ranks do not know sizes, it is
 * what a job assumes, and what was said is to be assumed. */
int tb_scene_bytes(enum tb_operation operation, uint64_t usual, uint64_t *bytes);
/* "bcast of 64 bytes", as titles have it. */
void tb_scene_call_print(enum tb_operation operation, uint64_t bytes, char *text, size_t size);

#endif
