/* What the bound is computed of, private to this folder: the spots of a group, and how far they are from each other.
 * Lives for one call of tb_bound_find. */
#ifndef TB_PLANNER_BOUND_STATE_H
#define TB_PLANNER_BOUND_STATE_H

#include "planner/bound.h"
#include "planner/bound_windows.h"

#define TB_BOUND_SPOTS 256u /* of more nothing is found */

/* Hosts that nothing tells apart. */
struct tb_bound_spot {
    uint32_t host;        /* the first */
    uint32_t hosts;       /* how many */
    uint32_t few, many;   /* those with the fewest and the most ranks */
    uint32_t first, last; /* rank */
    uint64_t around;      /* from one of them to another; TB_COST_NEVER: there is one */
};

/* A wire into a part of the group, or several that are alike, or out of it. */
struct tb_bound_entrance {
    uint64_t rate;           /* bytes a second */
    uint64_t before, behind; /* nothing can pass it so early, nor so shortly before the end */
    uint64_t apart;          /* the one of the two that is outside, of what goes by way of another group there */
    uint64_t latency;        /* both */
    struct tb_bound_windows windows; /* by each way */
};

/* Of a wire: in which search it was counted, and as what. */
struct tb_bound_mark {
    uint32_t search, entrance;
};

struct tb_bound_state {
    struct tb_ways *ways;
    const struct tb_group_shape *shape;
    struct tb_bound_spot *spots;
    uint32_t spot_count;
    uint32_t *spot_of; /* of each host */
    uint32_t *members; /* hosts, those of a spot together */
    uint32_t *firsts;  /* in `members`, of each spot, and the end */
    uint64_t *far;     /* from spot to spot at least, with what ranks spend: [from * spot_count + to], */
    uint64_t *step;    /* and without others between them, which are behind it in the same memory */
    uint64_t *outer;   /* of each spot outside of a part: from who has it, or to who must get it, past that part */
    uint64_t *near;    /* of each spot, while one part of the group is looked at: to the boundary, or from there */
    uint8_t *inside;   /* of each spot: whether it is in it, */
    uint8_t *within;   /* and of each place of the table; 2: it is one of those that the part consists of */
    uint64_t *aside;   /* of each spot outside: to the nearest one of another group, or from there */
    uint32_t *group;   /* of each spot outside; TB_BOUND_NONE: it is in none */
    struct tb_bound_mark *taken; /* two for the ports of each spot, then by wire */
    struct tb_bound_entrance *entrances;
    uint32_t taken_room, entrance_count, search;
    bool thorough;  /* there is time to look at hosts and the places around them together */
    uint64_t burst; /* bytes that the wires across the boundary pass at once */
    uint64_t spent; /* on a message by a rank, at most, of those that pass the boundary */
    uint64_t looks; /* at ways, and what takes as long, so far */
    int error;
};

/* Close it also after an error. Without spots if there are too many, or they take more than `limit` looks. */
int tb_bound_state_open(struct tb_bound_state *s, struct tb_ways *ways, uint64_t limit);
void tb_bound_state_close(struct tb_bound_state *s);
/* Ways that were found meanwhile may have brought wires; marks and entrances for them. False: there is no memory. */
bool tb_bound_marks_grow(struct tb_bound_state *s);

/* Pairs of hosts of two spots whose ways may differ. */
struct tb_bound_pairs {
    uint32_t from, to; /* spots */
    uint32_t only;     /* the one host of the second that counts; TB_BOUND_NONE: all */
    uint32_t count;    /* all that are looked at */
    uint32_t at;
    bool alike; /* no gateways are dealt out, either way: one stands for all */
};

struct tb_bound_pairs tb_bound_pairs_of(struct tb_bound_state *s, uint32_t from, uint32_t to, uint32_t only);
/* The next one. False: there is none, or an error. */
bool tb_bound_pairs_next(struct tb_bound_state *s, struct tb_bound_pairs *pairs, uint32_t *a, uint32_t *b);

/* The spot at the other end of the longest way that counts; they may be the same. */
static inline uint64_t tb_bound_far(const struct tb_bound_state *s, uint32_t from, uint32_t to)
{
    return s->far[(size_t)from * s->spot_count + to];
}

#endif
