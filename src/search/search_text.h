/* What people write by hand: a tree with its order, and a matrix of bandwidths. Errors begin with name and line. In
 * both, what follows a # is a comment, and lines with nothing else are passed over. */
#ifndef TB_SEARCH_SEARCH_TEXT_H
#define TB_SEARCH_SEARCH_TEXT_H

#include "collectives/collectives.h"

/* A schedule: a line for each node that sends, "0: 7 1 4": it serves these in this order. The root is the node that
 * nobody serves. `nodes` 0: as many as the highest number says. `name` is for errors. */
int tb_schedule_parse(struct tb_forest **forest, const char *text, const char *name, uint32_t nodes);

/* A matrix: a line for each row, numbers in Mbit/s between blanks or commas, from the cluster of the row to that of the
 * column. On the diagonal, what holds within a cluster: "-" where it has one node. "clusters: 0 0 1" in a line of its
 * own says for each node which row is its cluster; without it each row is a node. */
struct tb_matrix {
    uint32_t count;     /* of rows, and of columns */
    uint64_t *rates;    /* bytes a second */
    uint32_t nodes;     /* as many as rows where `clusters` is NULL */
    uint32_t *clusters; /* of each node; NULL: each is a cluster of its own */
};
int tb_matrix_parse(struct tb_matrix *matrix, const char *text, const char *name);
void tb_matrix_close(struct tb_matrix *matrix); /* may be all zeros */

/* Both from a file, "-" being standard input. */
int tb_schedule_read(struct tb_forest **forest, const char *path, uint32_t nodes);
int tb_matrix_read(struct tb_matrix *matrix, const char *path);

#endif
