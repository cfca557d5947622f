/* The bound: a time below which no schedule can end, whatever algorithm there may be. Every rank that must get
 * something is at least as far from who has it as the shortest chain of ways says; and what must pass into or out of a
 * host or a place passes the wires that lead there, each of which counts once however many ways share it, and from when
 * on it can have something to pass; and so what must pass into or out of several places of a few, taken as one. What
 * several places get leaves that of the root once for each of them, or so early that one can pass it on to another; and
 * of an allreduce each element crosses 2 (n - 1) times between n places. Of more than 256 kinds of hosts in their
 * places not every two are looked at: there it is how far those who are farthest are, and what must pass the one port
 * of a host, the one uplink of a place, or all links of a cluster. Exact in neither direction: it does not know that
 * cores, memory and other messages stand in the way. A pure function; it is not for two threads at once with the same
 * ways, which grow. */
#ifndef TB_PLANNER_BOUND_H
#define TB_PLANNER_BOUND_H

#include "collectives/collectives.h"

#define TB_BOUND_NONE UINT32_MAX
#define TB_BOUND_THOROUGH                                                                                              \
    (1u << 24) /* looks from which on it is also found out what hosts get of what comes near them */

struct tb_bound {
    uint64_t time;    /* ps */
    uint64_t latency; /* the part of it that is latency, and what ranks spend on a message */
    uint32_t host;    /* of the shape: whose boundary decides; TB_BOUND_NONE: no host's */
    uint32_t place;   /* of the shape, likewise, or between its parts; 0: those of the world. Without either it is a
                       * path without load */
};

/* Ranks, root and lengths are those of `c`. Of what has no data, but for a barrier, 0. Of an intercommunicator
 * everything crosses once between the two groups; who is beside the root does not know it, and gets 0. Of neighbours it
 * is the time of this rank with its own, which are in `c`. */
int tb_bound_find(struct tb_ways *ways, const struct tb_collective *c, struct tb_bound *bound);
/* The same with about so many looks at ways at most: where more would be needed it may be less. *looks: how many it
 * took. */
int tb_bound_find_within(struct tb_ways *ways, const struct tb_collective *c, uint64_t limit, struct tb_bound *bound,
                         uint64_t *looks);

#endif
