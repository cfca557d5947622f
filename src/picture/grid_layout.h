/* Where the boxes of a grid's picture go. Clusters stand in rows with bands between them, through which the links run;
 * a site is a frame around clusters that are neighbours in a row. Made and read by the two files of this picture. */
#ifndef TB_PICTURE_GRID_LAYOUT_H
#define TB_PICTURE_GRID_LAYOUT_H

#include "picture/svg.h"
#include "topology/topology.h"

#define CHIP_W    118.0
#define CHIP_H    36.0
#define CHIP_GAP  8.0
#define PAD       14.0
#define HEADER    54.0
#define CHIP_TOP  40u /* chips of a cluster at most */
#define FOLD      6u  /* so many alike hosts in a row are folded into first, ..., last */
#define BAND      170.0
#define SIDE      250.0 /* between two clusters that stand alone */
#define SITE_HEAD 30.0
#define LINE      16.0

/* One host, or several that are alike. */
struct tb_chip {
    uint32_t first, last; /* positions in the cluster's list */
};

struct tb_cluster_box {
    struct tb_svg_rect box;
    uint32_t chip_count, columns, more; /* more: hosts that are not shown */
    struct tb_chip *chips;
    uint32_t notes; /* lines about its uplink and, if it nests, its links */
    uint32_t row;   /* of outermost ones */
};

struct tb_grid_layout {
    const struct tb_grid *grid;
    struct tb_cluster_box *clusters;
    struct tb_svg_rect *sites; /* w 0: it has no cluster */
    uint32_t row_count, outermost;
    double width, height; /* of all boxes with the bands */
};

int tb_grid_layout_make(struct tb_grid_layout *layout, const struct tb_grid *grid);
void tb_grid_layout_close(struct tb_grid_layout *layout);
/* A link that is written into the box of the nested cluster where it begins, since no band is between its ends. */
bool tb_grid_layout_is_inner(const struct tb_grid *grid, const struct tb_grid_link *link);
/* Lines that are said about an uplink: one, or one for each direction. */
uint32_t tb_grid_layout_uplink_lines(const struct tb_grid_uplink *uplink);
/* The outermost cluster around this one. */
uint32_t tb_grid_layout_outer(const struct tb_grid *grid, uint32_t cluster);

#endif
