/* What `tombolo explain` shows of one algorithm with --tree and --svg: who sends what to whom, level by level. */
#ifndef TB_CMD_EXPLAIN_TREE_H
#define TB_CMD_EXPLAIN_TREE_H

#include "planner/planner.h"

struct explain_tree {
    const struct tb_algorithm *algorithm;
    struct tb_collective call; /* of its class of sizes, with the argument */
    uint64_t bytes;            /* that were asked for, or are assumed */
    uint64_t bound;            /* ps */
    uint64_t rated;            /* what the table says of it; TB_COST_NEVER: nothing */
    const struct tb_places *places;
    const struct tb_grid *grid; /* where hosts have their names; NULL: they have none */
    const uint32_t *slots;      /* host of the grid of each slot; ranks go round them */
    uint32_t slot_count;
    bool print, json, all;
    const char *svg; /* file; "-": standard output; NULL: none */

    /* Filled in by tb_explain_tree. */
    struct tb_traffic traffic;
    char (*names)[TB_GRID_NAME_BYTES + 32u]; /* of the shape's hosts */
    char title[128];                         /* of the algorithm */
};

/* Prints it, draws it, or both. JSON goes on behind what was printed before, and begins with a comma. */
int tb_explain_tree(struct explain_tree *tree);

/* explain_print.c: what is printed. */
int tb_explain_tree_print(const struct explain_tree *tree);
void tb_explain_tree_json(const struct explain_tree *tree);
/* "argument", and "wide" where pieces of wide stages have another length. */
void tb_explain_argument_json(uint64_t argument);

#endif
