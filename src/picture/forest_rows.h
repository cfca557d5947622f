/* What both pictures of a planned tree have in common: which nodes there is room for, those nearest to the root; in
 * which order they stand, each before its children and these as they are served; colours and units. */
#ifndef TB_PICTURE_FOREST_ROWS_H
#define TB_PICTURE_FOREST_ROWS_H

#include "picture/picture.h"
#include "picture/svg.h"

#define TB_FOREST_NONE UINT32_MAX

/* A node that is drawn, or, with the node TB_FOREST_NONE, those below `parent` that are not. */
struct tb_forest_row {
    uint32_t node;
    uint32_t parent; /* its row; of the root TB_FOREST_NONE */
    uint32_t depth, order;
    uint32_t hidden; /* children that are not drawn, if none is; of TB_FOREST_NONE: how many it stands for */
};

struct tb_forest_rows {
    uint32_t count, nodes; /* rows; those that are nodes */
    struct tb_forest_row *rows;
    uint32_t *row_of; /* of each node; TB_FOREST_NONE: it is not drawn */
};

/* Close it also after an error. */
int tb_forest_rows_open(struct tb_forest_rows *rows, const struct tb_forest *forest, uint32_t tree, uint32_t most);
void tb_forest_rows_close(struct tb_forest_rows *rows);

/* Classes l0 to l3 are lines, b0 to b3 bars, t0 to t3 thin ones, by enum tb_span_kind. */
extern const char tb_forest_style[];
extern const char *const tb_forest_levels[]; /* what they stand for */

/* "12.5 ms", in the unit that suits `most`. Returns `text`. */
#define TB_FOREST_TIME_BYTES 48u
char *tb_forest_time(uint64_t time, uint64_t most, char text[TB_FOREST_TIME_BYTES]);
/* "0 to 12.5 ms", likewise. */
char *tb_forest_times(uint64_t from, uint64_t to, uint64_t most, char text[TB_FOREST_TIME_BYTES]);
/* Title, lines below it. */
void tb_forest_head(FILE *to, const struct tb_forest_picture *picture, double margin);
int tb_forest_finish(FILE *to);

#endif
