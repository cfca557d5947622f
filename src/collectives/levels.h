/* Levels: a group seen as a tree of places. Every place (the world, a site, a cluster, a host) has parts, which are
 * places, hosts or ranks, and one rank stands for each of them: the root of the operation where it is in it, elsewhere
 * its first rank. Those who stand for the parts of one place are a stage: what concerns the place as a whole is done
 * among them. A rank takes part in the stage of its host, and, as far up as it stands for something, in wider ones; two
 * ranks meet in one stage at most, so that edge numbers of one stage do not disturb another.
 *
 * Places of one part have no stage, and levels that the call leaves out have none either: their parts are parts of the
 * next wider one. Found from the shape without a message, in a time that grows with the parts of the places in which
 * this rank stands for something. Pure functions; any thread. */
#ifndef TB_COLLECTIVES_LEVELS_H
#define TB_COLLECTIVES_LEVELS_H

#include "collectives/collectives.h"

#define TB_LEVELS_STAGES (TB_PLACES_DEPTH_LIMIT + 2u)

/* A part: a place or a host of the shape, or a rank. */
struct tb_level_part {
    enum tb_level_part_kind { TB_PART_PLACE, TB_PART_HOST, TB_PART_RANK } kind;
    uint32_t number;
    uint32_t first; /* its first rank */
    uint32_t rank;  /* who stands for it */
};

struct tb_stage {
    uint32_t place; /* of the shape; TB_PLACE_NONE: a host */
    bool wide;      /* some of its parts are places: messages of it leave a cluster */
    uint32_t count;
    uint32_t mine, root;               /* this rank, and who stands for the whole: numbers of parts */
    const struct tb_level_part *parts; /* in the order of their first ranks */
};

struct tb_levels {
    const struct tb_collective *call;
    uint32_t root;
    uint32_t stage_count; /* of this rank, the widest first */
    struct tb_stage stages[TB_LEVELS_STAGES];
    bool host;                             /* the last stage is that of this rank's host */
    uint32_t top;                          /* place of the widest stage that anyone has, */
    uint32_t parts;                        /* and how many parts it has; 0: there is only one rank */
    bool wide;                             /* some of those are places */
    const struct tb_level_part *top_parts; /* those, in no order */
    struct tb_level_part *room;
    uint32_t part_count;
    void (*visit)(void *context, const struct tb_level_part *part); /* of parts that are only counted; may be NULL */
    void *visit_context;
};

/* Whether there is more than one level: some stage is not of all ranks. Of intercommunicators there is none. */
bool tb_fits_levels(const struct tb_collective *c);
/* The same of all ranks of its shape, those of both groups of an intercommunicator. */
bool tb_levels_there(const struct tb_collective *c);
/* Close it also after an error. */
int tb_levels_open(struct tb_levels *l, const struct tb_collective *c, uint32_t root);
void tb_levels_close(struct tb_levels *l);
/* Whether this rank is in the widest stage; then that is stages[0]. */
static inline bool tb_levels_at_top(const struct tb_levels *l)
{
    return l->stage_count > 0 && l->stages[0].place == l->top;
}

/* The parts of the widest place that has several, which are the same for all ranks: calls `visit` (or NULL) for each,
 * in no order, and returns how many there are. Takes no memory, so that whether an algorithm fits is the same on all
 * ranks, however little of it one of them has. */
uint32_t tb_levels_widest(const struct tb_collective *c, void (*visit)(void *context, const struct tb_level_part *part),
                          void *context);

/* How many ranks a part has, and who they are, ascending. */
uint32_t tb_part_size(const struct tb_collective *c, const struct tb_level_part *part);
void tb_part_ranks(const struct tb_collective *c, const struct tb_level_part *part, uint32_t *ranks);

#endif
