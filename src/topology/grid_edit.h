/* Changing numbers in a grid file as its owner would with an editor: comments, order and layout stay as they are. The
 * text is read again after each change, so that what is written is always a grid file. One thread; whoever opened it
 * closes it. */
#ifndef TB_TOPOLOGY_GRID_EDIT_H
#define TB_TOPOLOGY_GRID_EDIT_H

#include "topology/grid.h"

struct tb_grid_edit {
    char *file;
    char *text; /* as it would be written */
};

/* What was measured of one direction. */
struct tb_grid_measure {
    double bandwidth; /* Mbit/s */
    double latency;   /* ms one way */
};

int tb_grid_edit_open(struct tb_grid_edit *edit, const char *file);
/* The `ethernet` of a cluster. TB_ERR_UNSUPPORTED: the file is written in a way that is not understood here; nothing
 * has changed. */
int tb_grid_edit_ethernet(struct tb_grid_edit *edit, const char *cluster, const struct tb_grid_measure *measure);
/* The link between two clusters. A direction that is not in the file gets a line of its own if it differs from the
 * other one. Errors as above. */
int tb_grid_edit_link(struct tb_grid_edit *edit, const char *from, const char *to, const struct tb_grid_measure *there,
                      const struct tb_grid_measure *back);
/* Replaces the file, or leaves it as it was. */
int tb_grid_edit_save(const struct tb_grid_edit *edit);
void tb_grid_edit_close(struct tb_grid_edit *edit);

#endif
