/* Bundles: the blocks of all ranks of a part, which go from one level to the next together. In a bundle blocks stand in
 * the order of the shape, host after host and place after place, so that the blocks of a part of it stand side by side
 * in it, whatever the order of ranks is. A bundle is one message, or its blocks, or pieces of them, are messages of
 * their own, which go on as they come. Whoever opened them closes them; one thread at a time. */
#ifndef TB_COLLECTIVES_BUNDLES_H
#define TB_COLLECTIVES_BUNDLES_H

#include "collectives/levels_steps.h"

#define TB_BUNDLE_LONG   65536u /* bytes of a block: longer ones gain nothing by waiting for each other */
#define TB_BUNDLE_PIECES 8u     /* of a block, where the prediction chooses, or nobody knows how long it is */
#define TB_BUNDLE_WINDOW 4u     /* of those who send to several: so that all get something from the beginning on */

/* A bundle: blocks that stand side by side in the order of the shape. */
struct tb_bundle {
    uint32_t first, count;
};

struct tb_bundles {
    const struct tb_levels *levels;
    struct tb_builder *builder;
    uint32_t *ranks; /* whose block stands where, */
    uint32_t *at;    /* and where each rank's block does */
    uint32_t parts;  /* pieces of a block */
    bool joined;     /* a bundle is one message */
    uint32_t window; /* messages to one rank that are on their way, where there are several to send to; 0: any number */
    uint32_t base;   /* the block with which WORK and SIZES begin */
    uint32_t bound;  /* the step that makes room in WORK; TB_STEP_NONE: it is there */
    uint32_t came_count;
    struct tb_bundle_came { /* blocks that are there after a step */
        struct tb_bundle blocks;
        uint32_t step;
    } * came;
};

/* How a call is cut: pieces of a block, and whether bundles stay whole. By its argument: 0 or more than a block leaves
 * them whole, unless these are more than the limit. */
uint32_t tb_bundle_parts(const struct tb_collective *c);
bool tb_bundle_joined(const struct tb_collective *c);
/* Arguments: whole bundles, single blocks, and pieces of blocks; of long ones pieces alone. */
uint32_t tb_candidates_bundles(const struct tb_collective *c, uint64_t *values, uint32_t room);
/* Whether the blocks of the largest part of the widest place are within the limit. */
bool tb_fits_bundles(const struct tb_collective *c);
/* The same between two groups. Who is beside the root does not know, and has no steps. */
bool tb_fits_bundles_inter(const struct tb_collective *c);
/* Such a call with an argument: nothing is rated there, so long blocks go in a few pieces. */
struct tb_collective tb_bundles_cut(const struct tb_collective *c);

/* Sets the parts of the builder's program, too. Without an order, for who has its own block alone: that is the bundle
 * {0, 1} then, and of the functions below only messages and notes are for it. Close them also after an error. */
int tb_bundles_open(struct tb_bundles *x, struct tb_builder *b, const struct tb_levels *l, uint32_t parts, bool joined,
                    bool order);
void tb_bundles_close(struct tb_bundles *x);

/* Blocks of a part; of all ranks of a stage; of one rank; of everyone who has one. */
struct tb_bundle tb_bundles_of_part(const struct tb_bundles *x, const struct tb_level_part *part);
struct tb_bundle tb_bundles_of_stage(const struct tb_bundles *x, const struct tb_stage *s);
struct tb_bundle tb_bundles_of_rank(const struct tb_bundles *x, uint32_t rank);
struct tb_bundle tb_bundles_of_all(const struct tb_bundles *x);

/* Their pieces: of IN or OUT, which has blocks in the order of ranks, or of WORK or SIZES. */
struct tb_slice tb_bundles_placed(const struct tb_bundles *x, enum tb_symbol symbol, struct tb_bundle blocks);
struct tb_slice tb_bundles_packed(const struct tb_bundles *x, enum tb_symbol symbol, struct tb_bundle blocks);
/* Either: packed in WORK. */
static inline struct tb_slice tb_bundles_slice(const struct tb_bundles *x, enum tb_symbol room, struct tb_bundle blocks)
{
    return room == TB_SYMBOL_WORK ? tb_bundles_packed(x, room, blocks) : tb_bundles_placed(x, room, blocks);
}
/* The sizes of the blocks of all other parts of these stages, each from who stands for it, to their places in SIZES. */
void tb_bundles_receive_sizes(struct tb_builder *b, const struct tb_bundles *x, uint32_t first, uint32_t end,
                              uint16_t edge);
/* Whether they stand side by side in the order of ranks, too. */
bool tb_bundles_in_order(const struct tb_bundles *x, struct tb_bundle blocks);

/* Blocks are there after a step. */
void tb_bundles_note(struct tb_bundles *x, struct tb_bundle blocks, uint32_t step);
/* The last added step, which is about these blocks, comes after those with which they come, piece by piece. */
void tb_bundles_after(const struct tb_bundles *x, struct tb_bundle blocks);
/* Messages of blocks that stand in `slice`. */
uint32_t tb_bundles_send(const struct tb_bundles *x, uint32_t peer, uint16_t edge, struct tb_slice slice,
                         struct tb_bundle blocks);
uint32_t tb_bundles_receive(struct tb_bundles *x, uint32_t peer, uint16_t edge, struct tb_slice slice,
                            struct tb_bundle blocks);

#endif
