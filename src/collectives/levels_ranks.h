/* The ranks of all parts of a stage, for operations in which every rank has something for every other: there each rank
 * looks at all places that it is in, whether or not it stands for them. Pure functions; any thread. */
#ifndef TB_COLLECTIVES_LEVELS_RANKS_H
#define TB_COLLECTIVES_LEVELS_RANKS_H

#include "collectives/levels.h"

/* The stages of all places that this rank is in, the widest first: it stands for each of them itself. They are the same
 * for all ranks of a place, but for `mine` and `root`. */
static inline int tb_levels_open_all(struct tb_levels *l, const struct tb_collective *c)
{
    return tb_levels_open(l, c, c->rank);
}

struct tb_stage_ranks {
    uint32_t count;    /* parts */
    uint32_t mine;     /* this rank's, */
    uint32_t position; /* and its place in that */
    uint32_t *starts;  /* where each part begins in `ranks`, and where the last one ends */
    uint32_t *ranks;   /* of each part ascending */
    uint32_t *others;  /* ranks outside of this rank's part, ascending, */
    uint32_t other_count;
};

/* Close it also after an error. */
int tb_stage_ranks_open(struct tb_stage_ranks *r, const struct tb_collective *c, const struct tb_stage *s);
void tb_stage_ranks_close(struct tb_stage_ranks *r);

static inline uint32_t tb_stage_size(const struct tb_stage_ranks *r, uint32_t part)
{
    return r->starts[part + 1] - r->starts[part];
}

static inline const uint32_t *tb_stage_part(const struct tb_stage_ranks *r, uint32_t part)
{
    return r->ranks + r->starts[part];
}

/* Ranks outside of a part are shared out among its ranks, in order: where in `others` the share of the one at a
 * position of this rank's part begins; and who of another part has `rank`. */
uint32_t tb_stage_share(const struct tb_stage_ranks *r, uint32_t position);
uint32_t tb_stage_sharer(const struct tb_stage_ranks *r, uint32_t part, uint32_t rank);
/* How many ranks of a part come before `rank`. */
uint32_t tb_stage_before(const struct tb_stage_ranks *r, uint32_t part, uint32_t rank);
/* Whether all ranks of a part come before those of the next one. */
bool tb_stage_in_order(const struct tb_stage_ranks *r);
/* Whether ranks follow each other without a gap. */
bool tb_ranks_follow(const uint32_t *ranks, uint32_t count);
/* Whether the ranks of each place and of each host that counts do. */
bool tb_levels_in_order(const struct tb_collective *c);

#endif
