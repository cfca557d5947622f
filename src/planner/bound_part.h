/* What an operation asks of parts of a group, private to this folder. */
#ifndef TB_PLANNER_BOUND_PART_H
#define TB_PLANNER_BOUND_PART_H

#include "collectives/collectives.h"

/* Who must get something of whom. */
enum tb_bound_reach {
    TB_BOUND_REACH_NONE,
    TB_BOUND_REACH_FROM_ROOT,
    TB_BOUND_REACH_TO_ROOT,
    TB_BOUND_REACH_ALL,
    TB_BOUND_REACH_UP
};

enum tb_bound_reach tb_bound_reach_of(enum tb_operation operation);

/* A part of the ranks, and what of the operation concerns it. */
struct tb_bound_part {
    uint32_t ranks;          /* how many */
    bool root;               /* the root is one of them */
    uint32_t enters, leaves; /* of prefixes: ranks of it after one outside, and before one */
};

/* What must pass between a part and the rest, and who on both sides has to do with all of it. */
struct tb_bound_load {
    uint64_t bytes;
    bool inside_all, outside_all;
};

/* `bytes`: of the message, or of a block. */
struct tb_bound_load tb_bound_part_load(const struct tb_collective *c, uint64_t bytes, const struct tb_bound_part *p,
                                        bool in);

static inline uint64_t tb_bound_times(uint64_t bytes, uint64_t count)
{
    uint64_t all;
    return __builtin_mul_overflow(bytes, count, &all) ? UINT64_MAX : all;
}

#endif
