/* Where the picture of a traffic puts things: places as boxes in one another, hosts in them, ranks in these. Of many
 * ranks, hosts and places only some are drawn: those whose messages cross most, and then the first ones. */
#ifndef TB_PICTURE_TRAFFIC_LAYOUT_H
#define TB_PICTURE_TRAFFIC_LAYOUT_H

#include "picture/picture.h"
#include "picture/svg.h"

#define TB_DOT      24.0 /* a rank */
#define TB_DOT_STEP 34.0 /* to the next one */

struct tb_traffic_layout {
    const struct tb_group_shape *shape;
    struct tb_svg_rect *places; /* of the shape; w 0: it is not drawn */
    struct tb_svg_rect *hosts;
    struct tb_svg_rect *ranks;
    uint32_t *hidden_ranks; /* of each host */
    uint32_t *hidden_parts; /* of each place: hosts and inner places */
    uint32_t drawn;         /* ranks */
    double width, height;   /* of all, whose upper left corner is at 0, 0 */

    uint32_t *levels; /* of each rank: the widest that its messages cross; private */
};

/* Close it also after an error. */
int tb_traffic_layout_open(struct tb_traffic_layout *layout, const struct tb_traffic_picture *picture);
void tb_traffic_layout_close(struct tb_traffic_layout *layout);

#endif
