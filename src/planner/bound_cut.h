/* What passes into and out of parts of a group, private to this folder. */
#ifndef TB_PLANNER_BOUND_CUT_H
#define TB_PLANNER_BOUND_CUT_H

#include "planner/bound_state.h"

#define TB_BOUND_UNLIMITED UINT64_MAX

/* Bytes a second that a wire passes at most, in messages of whatever length; TB_BOUND_UNLIMITED. */
uint64_t tb_bound_wire_rate(const struct tb_cost_table *table, const struct tb_wire *wire);
/* How long so many bytes take at such a rate. */
uint64_t tb_bound_bytes_time(uint64_t bytes, uint64_t rate);

/* Who on one side of a boundary has, or must get, what passes it: anybody, unless it is said. */
struct tb_bound_side {
    bool all;      /* each rank all of it */
    uint32_t only; /* or those of one spot; TB_BOUND_NONE */
};

/* A part of the group, and what must pass between it and the rest. */
struct tb_bound_cut {
    uint32_t host;  /* it is one host; TB_BOUND_NONE */
    uint32_t place; /* or a place, */
    uint32_t parts; /* or some of those that are its parts, by bits in their order; 0: all of it */
    bool in;        /* into it; else out of it */
    uint64_t bytes;
    struct tb_bound_side inside, outside;
    uint32_t groups; /* of the places beside it each must get all of it, or give to all of it; 0: nothing of that */
    uint64_t rate;   /* bytes a second that who must get it, or has it, gets or gives at most; 0: any number */
    uint64_t burst;  /* and bytes that it gets or gives at once */
    uint64_t spent;  /* what its ranks spend on a message may differ by so much from one way to another */
};

/* Whether a place, one of those of the shape that have no parts, is in a cut of places. */
bool tb_bound_cut_has(const struct tb_bound_state *s, const struct tb_bound_cut *cut, uint32_t place);
/* How long it takes at least; *latency is the part without load. */
uint64_t tb_bound_cut_time(struct tb_bound_state *s, const struct tb_bound_cut *cut, uint64_t *latency);
/* The same for what must pass into the places that are the parts of one, whichever of them. */
uint64_t tb_bound_children_time(struct tb_bound_state *s, uint32_t parent, uint64_t bytes, uint64_t *latency);

/* Bytes a second that pass into a host, or out of it, at most; 0: any number. *spent: what ranks spend on a message. */
uint64_t tb_bound_host_rate(struct tb_bound_state *s, uint32_t host, bool in, uint64_t *spent);

#endif
