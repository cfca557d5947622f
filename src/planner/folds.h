/* Smaller groups that stand for a large one, each with its ways: of places and hosts that are alike only a few are left
 * (tb_group_shape_fold), first one of each, then two, four, eight and so on up to the whole, so that trees stay whole.
 * Of places all may stay instead: how much passes between clusters is not seen on few of them. Where there is so
 * little alike that even the smallest is large, some of its ranks stand for it; and, of messages from everyone to
 * everyone, two hosts of some of its clusters, if these are many. Made when they are
 * asked for; a pure function of the shape, the rank that must be in them and the flags. Whoever opened them closes
 * them; one thread at a time. */
#ifndef TB_PLANNER_FOLDS_H
#define TB_PLANNER_FOLDS_H

#include "topology/topology.h"

#define TB_FOLDS_LIMIT 48u
#define TB_FOLD_RANKS  32u /* that can be simulated for every candidate */

struct tb_fold_group {
    const struct tb_group_shape *shape;
    struct tb_ways ways;
    uint32_t root; /* the rank that stands for the one to be kept */
};

struct tb_folds {
    const struct tb_group_shape *shape;
    uint32_t keep;   /* a rank */
    bool places;     /* all places stay, however many are alike */
    bool pairs;      /* two hosts of some clusters stand for many clusters; set after it was opened */
    uint32_t most;   /* alike ones in the last fold; 0: there is none yet */
    uint32_t *ranks; /* room for those of a fold */
    uint32_t count;  /* of those that are made, in the order of their sizes, which all differ */
    struct tb_fold_group list[TB_FOLDS_LIMIT];
};

/* Close them also after an error. The shape must outlive them, and have a cost table. `places`: all places shall stay,
 * if then the smallest fold has about TB_FOLD_RANKS at most. */
int tb_folds_open(struct tb_folds *folds, const struct tb_group_shape *shape, uint32_t keep, bool places);
void tb_folds_close(struct tb_folds *folds);
/* Whether the last one is the whole. */
static inline bool tb_folds_are_whole(const struct tb_folds *folds)
{
    return folds->count > 0 && folds->list[folds->count - 1].shape->size == folds->shape->size;
}
/* Makes the next larger one; not if they are whole. */
int tb_folds_grow(struct tb_folds *folds);

#endif
