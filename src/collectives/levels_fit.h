/* A tree and a length of messages for one stage, fitted to what messages cost there: how many parts it has, how far
 * they are from each other, how fast what lies between them is, and what a rank spends on a message. All kinds of trees
 * and all lengths are compared by closed formulas (LogGP, and the postal model for its own tree), so that all ranks of
 * a stage find the same without a message, in a time that hardly grows with its parts. Which rates are taken says
 * tb_stage_cost; the simulator rates what comes out of it beside all other candidates. Pure functions; any thread. */
#ifndef TB_COLLECTIVES_LEVELS_FIT_H
#define TB_COLLECTIVES_LEVELS_FIT_H

#include "collectives/levels_steps.h"

/* What messages of a stage cost. Rates are bit/s, 0 being no limit. */
struct tb_stage_cost {
    uint32_t parts;
    uint64_t latency;                   /* from the first part to another, the longest; ps */
    uint64_t rate;                      /* of the slowest wire between two of them, */
    uint64_t shared;                    /* and of the slowest that all messages of one part have in common */
    uint64_t come;                      /* what comes to the stage comes no faster */
    const struct tb_cost_ends *ends;    /* what the two ranks spend on a message; NULL: nothing is known */
    const struct tb_cost_curve *reduce; /* of what a rank spends on combining it; NULL: it does not */
    bool mixed;                         /* that one is no port: what leaves for several parts shares it all the time */
    bool unlike;                        /* some ways are much slower or longer than others */
    uint32_t looks;                     /* ways that were looked at to find all this */
};

/* A message of so many pieces, of which up to `join`, a power of two, may go as one. */
struct tb_fit_pieces {
    uint64_t bytes; /* of a piece */
    uint32_t count;
    uint32_t join;
};

struct tb_stage_fit {
    enum tb_level_tree tree;
    uint32_t argument; /* of trees that have one: children, or the latency in gaps */
    uint32_t join;     /* pieces that go as one message */
    uint64_t time;     /* until all parts have everything, ps */
};

/* The best tree for a stage. */
struct tb_stage_fit tb_fit_find(const struct tb_stage_cost *cost, const struct tb_fit_pieces *pieces);
/* How a call's message is cut: by its argument, which, if it comes from tb_candidates_fitted, says how many pieces the
 * whole message is, also where only part of it is simulated. Of many pieces some may go as one message, or as many as
 * two lengths in the argument say. */
struct tb_fit_pieces tb_fit_pieces(const struct tb_collective *c);

/* What a stage of this rank costs, of which other ranks find the same. */
struct tb_stage_cost tb_stage_cost(const struct tb_levels *l, const struct tb_stage *s, const struct tb_level_kinds *k);
/* Parts of a stage that LPBF is for: a program must be made for another root in less than 50 us. Where places have
 * links of their own a way is looked at between each two parts, elsewhere between each two kinds of them. */
uint32_t tb_lpbf_most(const struct tb_collective *c);
/* This rank's place in the tree of a stage by LPBF, for messages of so many pieces each. How long it takes until all
 * parts of it have everything, 0 if nothing is known; *looks grows by the ways that were looked at. */
uint64_t tb_stage_lpbf(struct tb_tree *t, const struct tb_levels *l, const struct tb_stage *s, uint32_t join,
                       uint32_t *looks);
/* How long a place takes itself with the best trees for it and for the places in it, once who stands for it has the
 * data; *looks grows by the ways that were looked at. */
uint64_t tb_place_time(const struct tb_collective *c, uint32_t place, const struct tb_fit_pieces *pieces,
                       uint32_t *looks);

#define TB_FIT_PS_PER_SECOND 1000000000000ull

/* What so many bytes take at a rate of bit/s, in ps. */
static inline uint64_t tb_rate_time(uint64_t bytes, uint64_t rate)
{
    uint64_t all;
    if (rate == 0)
        return 0;
    if (!__builtin_mul_overflow(bytes, 8 * TB_FIT_PS_PER_SECOND, &all)) /* which is quicker */
        return all / rate;
    unsigned __int128 time = (unsigned __int128)bytes * 8 * TB_FIT_PS_PER_SECOND / rate;
    return time < TB_COST_NEVER ? (uint64_t)time : TB_COST_NEVER;
}

/* Where a rank is. */
static inline struct tb_spot tb_rank_spot(const struct tb_group_shape *s, uint32_t rank)
{
    return tb_group_shape_spot(s, tb_group_shape_host(s, rank));
}

/* Whether the group's cost table says anything of wires. */
static inline bool tb_costs_known(const struct tb_collective *c)
{
    return c->shape->table != NULL && c->shape->table->head->wire_count > 0;
}

#endif
