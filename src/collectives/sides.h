/* Sides: the two groups of an intercommunicator, for algorithms by levels. What a group does by itself it does as a
 * communicator of its own, whose shape is a part of that of both. Where a root in one group has something for the other
 * one, or gets something from it, that other group does so together with the root, its guest, so that each place hears
 * from the root once, as of one group. Where both groups have something for each other, one rank of each leads it: two
 * that are as near to each other as any. Whoever opened a side closes it; any thread, one at a time. */
#ifndef TB_COLLECTIVES_SIDES_H
#define TB_COLLECTIVES_SIDES_H

#include "collectives/levels_steps.h"

struct tb_side {
    /* As a communicator of this group, or of the group without the root and, as its last rank, the root. Steps are made
     * for its ranks; those of the other group follow them as peers. */
    struct tb_collective call;
    const struct tb_collective *of; /* the intercommunicator's */
    uint32_t leader;                /* of this group, */
    uint32_t other;                 /* and of the other one, as a peer */
    const struct tb_group_shape *shape;
};

/* Messages longer than this are cut into pieces as long as it, and go along chains within clusters: nothing is rated
 * between two groups. */
#define TB_SIDE_PIECE 32768u

/* Whether it is an intercommunicator whose ranks, all in all, have levels; and with a commutative operation. */
bool tb_fits_sides(const struct tb_collective *c);
bool tb_fits_sides_commutative(const struct tb_collective *c);

/* This group by itself. Close it also after an error. */
int tb_side_open(struct tb_side *s, const struct tb_collective *c);
void tb_side_close(struct tb_side *s);
/* The peers of all steps so far, which are ranks of the side's call, become those of the intercommunicator. */
void tb_side_name(struct tb_builder *b, const struct tb_side *s);
/* The trees for a call of a side, by its bytes, and how many pieces its message is. */
struct tb_level_kinds tb_side_kinds(const struct tb_collective *c);
uint32_t tb_side_pieces(const struct tb_collective *c);

/* A program of steps that `steps` makes for a side's call, after it has opened the builder: of this group by itself; or
 * of the group without the root and its guest, while those beside the root have nothing to do. */
int tb_side_make(const struct tb_collective *c, int (*steps)(struct tb_builder *b, const struct tb_side *s),
                 struct tb_program **program);
int tb_side_make_rooted(const struct tb_collective *c,
                        int (*steps)(struct tb_builder *b, const struct tb_collective *c), struct tb_program **program);

#endif
