/* Changing numbers in a grid file as its owner would with an editor: comments, order and layout stay as they are. The
 * text is read again after each change, so that what is written is always a grid file. One thread; whoever opened it
 * closes it. */
#ifndef TB_TOPOLOGY_GRID_EDIT_H
#define TB_TOPOLOGY_GRID_EDIT_H

#include "topology/grid.h"

struct tb_grid_edit {
    char *file;
    char *text; /* as it would be written */
    char *read; /* as it was read */
};

#define TB_GRID_TABLE_BYTES 800

/* What was measured of one direction. */
struct tb_grid_measure {
    double bandwidth;                /* Mbit/s; 0: not measured, what the file has stays */
    double latency;                  /* ms one way; negative: not measured */
    char table[TB_GRID_TABLE_BYTES]; /* by size of messages, as `table` has it; "": none, and the file keeps none */
};

int tb_grid_edit_open(struct tb_grid_edit *edit, const char *file);
/* The `ethernet` of a cluster. TB_ERR_UNSUPPORTED: the file is written in a way that is not understood here; nothing
 * has changed. */
int tb_grid_edit_ethernet(struct tb_grid_edit *edit, const char *cluster, const struct tb_grid_measure *measure);
/* The `uplink` of a cluster or site, and its `downlink` if it has one or if the two differ. Errors as above. */
int tb_grid_edit_uplink(struct tb_grid_edit *edit, const char *place, const struct tb_grid_measure *up,
                        const struct tb_grid_measure *down);
/* The link between two ends: clusters, gateways, sites. A direction that is not in the file gets a line of its own if
 * it differs from the other one. Errors as above. */
int tb_grid_edit_link(struct tb_grid_edit *edit, const char *from, const char *to, const struct tb_grid_measure *there,
                      const struct tb_grid_measure *back);
/* Replaces the file, or leaves it as it was, also if somebody else has changed it since it was opened. */
int tb_grid_edit_save(const struct tb_grid_edit *edit);
void tb_grid_edit_close(struct tb_grid_edit *edit);

#endif
