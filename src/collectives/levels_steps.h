/* What passes along levels: trees in each stage, joined where stages meet, so that a piece goes on to the next level as
 * it arrives. Pure functions; any thread. */
#ifndef TB_COLLECTIVES_LEVELS_STEPS_H
#define TB_COLLECTIVES_LEVELS_STEPS_H

#include "collectives/algorithms.h"
#include "collectives/levels.h"

/* The shape of the trees of stages. */
enum tb_level_tree {
    TB_LEVEL_FLAT, /* who stands for the whole tells all others */
    TB_LEVEL_BINOMIAL,
    TB_LEVEL_CHAIN,
    TB_LEVEL_EVEN,   /* as many parts behind each of some children, or */
    TB_LEVEL_POSTAL, /* the postal model's: only as what fits a stage */
    /* In the widest stage: a tree for each other part, which gets its share of the pieces from the root and passes them
     * on to all others; and one in which the root tells all others the last share itself (levels_shares.c). Where parts
     * are joined pairwise, that uses all links at once. */
    TB_LEVEL_PACKED,
    TB_LEVEL_LPBF,  /* by what the ways between those who stand for parts cost (lpbf.h) */
    TB_LEVEL_FITTED /* for each stage the one of all others that fits it best, and how long messages are (levels_fit.h)
                     */
};

struct tb_level_kinds {
    enum tb_level_tree wide, narrow; /* of stages that leave clusters, and of others */
    bool cast;                       /* hosts of a cluster are told by multicast, where one datagram reaches them all */
};

#define TB_LEVEL_SHARES    8u  /* at most: each costs every rank some steps */
#define TB_LEVEL_FLAT_MOST 64u /* parts that one rank tells of something by itself */

/* Rows of an operation whose file has levels_make and `row_fits`: NAME is levels-WIDE-NARROW. Those that differ from
 * the first ones in wide stages alone are for groups that have some. */
#define TB_LEVEL_ROW(OPERATION, operation, row_fits, wide, WIDE, narrow, NARROW, tried)                                \
    static bool fits_##wide##_##narrow(const struct tb_collective *c)                                                  \
    {                                                                                                                  \
        return tb_fits_level_tree(c, TB_LEVEL_##WIDE) && row_fits(c);                                                  \
    }                                                                                                                  \
    static int make_##wide##_##narrow(const struct tb_collective *c, struct tb_program **program)                      \
    {                                                                                                                  \
        static const struct tb_level_kinds kinds = {TB_LEVEL_##WIDE, TB_LEVEL_##NARROW, false};                        \
        return levels_make(c, &kinds, program);                                                                        \
    }                                                                                                                  \
    const struct tb_algorithm tb_##operation##_levels_##wide##_##narrow = {                                            \
        OPERATION, "levels-" #wide "-" #narrow, fits_##wide##_##narrow, make_##wide##_##narrow, "pieces", tried}
/* The same with multicast inside clusters; trees of narrow stages are for the way up, and where there is none. */
#define TB_LEVEL_CAST_ROW(OPERATION, operation, row_fits, wide, WIDE, narrow, NARROW, name)                            \
    static bool fits_##wide##_##narrow##_multicast(const struct tb_collective *c)                                      \
    {                                                                                                                  \
        return tb_fits_cast(c) && tb_fits_level_tree(c, TB_LEVEL_##WIDE) && row_fits(c);                               \
    }                                                                                                                  \
    static int make_##wide##_##narrow##_multicast(const struct tb_collective *c, struct tb_program **program)          \
    {                                                                                                                  \
        static const struct tb_level_kinds kinds = {TB_LEVEL_##WIDE, TB_LEVEL_##NARROW, true};                         \
        return levels_make(c, &kinds, program);                                                                        \
    }                                                                                                                  \
    const struct tb_algorithm tb_##operation##_##wide##_##narrow##_multicast = {                                       \
        OPERATION,         name, fits_##wide##_##narrow##_multicast, make_##wide##_##narrow##_multicast, "pieces",     \
        tb_candidates_cast}
#define TB_LEVEL_ROWS(OPERATION, operation, row_fits)                                                                  \
    TB_LEVEL_ROW(OPERATION, operation, row_fits, flat, FLAT, binomial, BINOMIAL, tb_candidates_levels);                \
    TB_LEVEL_ROW(OPERATION, operation, row_fits, flat, FLAT, chain, CHAIN, tb_candidates_pipelines);                   \
    TB_LEVEL_ROW(OPERATION, operation, row_fits, chain, CHAIN, chain, CHAIN, tb_candidates_pipelines);                 \
    TB_LEVEL_ROW(OPERATION, operation, row_fits, packed, PACKED, chain, CHAIN, tb_candidates_pipelines);               \
    TB_LEVEL_ROW(OPERATION, operation, row_fits, lpbf, LPBF, fitted, FITTED, tb_candidates_fitted);                    \
    TB_LEVEL_ROW(OPERATION, operation, row_fits, packed, PACKED, fitted, FITTED, tb_candidates_fitted);                \
    TB_LEVEL_ROW(OPERATION, operation, row_fits, fitted, FITTED, fitted, FITTED, tb_candidates_fitted)

/* Whether there are wide stages, in which trees of that kind may be another one than flat ones. */
bool tb_fits_level_tree(const struct tb_collective *c, enum tb_level_tree wide);
/* Whether there are levels, and so many parts of the widest place at most. */
bool tb_fits_level_parts(const struct tb_collective *c, uint32_t most);
uint32_t tb_candidates_levels(const struct tb_collective *c, uint64_t *values, uint32_t room);
/* The same, and where there are wide stages, also pieces of them that are longer or shorter than those of narrow ones.
 */
uint32_t tb_candidates_pipelines(const struct tb_collective *c, uint64_t *values, uint32_t room);
/* A few lengths of pieces, of which some may go as one message in stages where that is better. */
uint32_t tb_candidates_fitted(const struct tb_collective *c, uint64_t *values, uint32_t room);

/* Whether some cluster has hosts that are told by multicast, and ranks of hosts meet in memory, or have theirs alone.
 */
bool tb_fits_cast(const struct tb_collective *c);
/* The whole message, and where there is a next stage, pieces long enough that one is many datagrams. */
uint32_t tb_candidates_cast(const struct tb_collective *c, uint64_t *values, uint32_t room);

/* Shares of the pieces, each with trees of its own. */
struct tb_level_shares {
    uint32_t count;
    uint32_t low[TB_LEVEL_SHARES + 1]; /* their first pieces, and the end */
};

/* Whether the widest stage has several trees, as many as it has parts. */
bool tb_levels_packed(const struct tb_levels *l, const struct tb_level_kinds *k);
/* As many shares of so many pieces that are alike. */
struct tb_level_shares tb_shares_alike(uint32_t count, uint32_t pieces);
/* Those of the trees that are packed for l->root, the last being that of the tree in which the root tells everyone; or
 * one of all. *looks grows by the ways that were looked at. */
struct tb_level_shares tb_shares_packed(const struct tb_levels *l, const struct tb_level_kinds *k, uint32_t pieces,
                                        uint32_t *looks);
static inline struct tb_slice tb_share_slice(struct tb_slice whole, const struct tb_level_shares *shares,
                                             uint32_t share)
{
    return tb_slice_range(whole, shares->low[share], shares->low[share + 1]);
}

/* Whether ranks of a host meet in its memory, which is then in no tree. */
bool tb_levels_common(const struct tb_levels *l);
/* The stages in which messages are sent. */
uint32_t tb_levels_message_stages(const struct tb_levels *l);
/* This rank's place in the tree of a stage, its own rank and its neighbours' ones being those of the communicator. */
void tb_stage_tree(struct tb_tree *t, const struct tb_levels *l, const struct tb_stage *s,
                   const struct tb_level_kinds *k, uint32_t share);
/* The same of any kind, also those by costs, and how many pieces go as one message there. */
void tb_levels_tree(struct tb_builder *b, struct tb_tree *t, const struct tb_levels *l, const struct tb_stage *s,
                    const struct tb_level_kinds *k, uint32_t share);
/* A composite step of the ranks of this host, whose root stands for it. */
uint32_t tb_levels_meet(struct tb_builder *b, const struct tb_levels *l, enum tb_composite what, uint16_t place,
                        struct tb_slice give, struct tb_slice get);
/* Whether this rank stands for those whom it meets in memory, or meets none there. */
bool tb_levels_leads(const struct tb_levels *l);

/* Passes pieces from l->root, where they are there after `ready`, to everyone; elsewhere they may be written after
 * `ready`. Of one share, through all stages but the one of the host where that has common memory. Returns the step with
 * which they come; at the root, `ready`. */
uint32_t tb_levels_down(struct tb_builder *b, const struct tb_levels *l, const struct tb_level_kinds *k, uint32_t share,
                        uint16_t edge, struct tb_slice slice, uint32_t ready);
/* The stage of this rank that is a multicast; NULL: there is none. tb_levels_down leaves it out. */
const struct tb_stage *tb_levels_cast_stage(const struct tb_levels *l, const struct tb_level_kinds *k);
/* What who stands for such a stage has is then with all others of it, in one item: a composite step at a place of the
 * driver. */
uint32_t tb_stage_cast(struct tb_builder *b, const struct tb_stage *s, uint16_t place, struct tb_slice data);
/* Pieces of all shares to the other hosts of the cluster at once, at a place of the driver; `come` and `before` as
 * below. Where it is how they come, `come` and `shares` say so then: one share of all, and this step. */
void tb_levels_cast(struct tb_builder *b, const struct tb_levels *l, const struct tb_level_kinds *k, uint16_t place,
                    uint32_t *come, struct tb_level_shares *shares, uint32_t before);
/* The rest of it: to the ranks of this host through its memory. `come` has the step with which each share is there, or
 * TB_STEP_NONE; `before`, if not that, a step of the whole that must be done with each piece. */
void tb_levels_out(struct tb_builder *b, const struct tb_levels *l, uint16_t place, const uint32_t *come,
                   const struct tb_level_shares *shares, uint32_t before);

/* A reduction on its way up: of pieces that are one share. */
struct tb_level_sum {
    struct tb_slice at;    /* what this rank has of it so far, */
    uint32_t ready;        /* after this step, or at once: TB_STEP_NONE; */
    int32_t lag;           /* of that dependency */
    bool ours;             /* and may be written there */
    bool out;              /* OUT may be written, and has the result at the root */
    bool nothing;          /* it has none: the root is a guest, and takes what comes first */
    bool beside;           /* there are other shares, which must not wait until this one has left */
    uint32_t low;          /* number of its first piece in the whole */
    uint32_t room_free[2]; /* of the two copies of WORK: the step after which it may be written */
    uint32_t turn;         /* copy to be used next */
};

/* What this rank begins with: what the ranks of its host have, combined in its memory at `place`, or its own data.
 * `out`: it may write to OUT. Of the whole, */
struct tb_level_sum tb_levels_sum(struct tb_builder *b, const struct tb_levels *l, uint16_t place, bool out);
/* and of a share of it. */
struct tb_level_sum tb_levels_share(const struct tb_level_sum *whole, const struct tb_level_shares *shares,
                                    uint32_t share);
/* Combines what comes from a child with it, so many pieces a message; sends it on to the parent. */
void tb_level_sum_add(struct tb_builder *b, struct tb_level_sum *sum, uint32_t child, uint16_t edge, uint32_t join);
void tb_level_sum_send(struct tb_builder *b, struct tb_level_sum *sum, uint32_t parent, uint16_t edge, uint32_t join);
/* It is in OUT then, which may be written. */
void tb_levels_result(struct tb_builder *b, struct tb_level_sum *sum);
/* Combines what comes from those behind with `sum` and sends it on, up to the root, in all stages but the host's where
 * that has common memory. The operation is commutative. At the root the result is in `sum`, elsewhere sum->ready is the
 * step with which it has left. */
void tb_levels_up(struct tb_builder *b, const struct tb_levels *l, const struct tb_level_kinds *k, uint32_t share,
                  uint16_t edge, struct tb_level_sum *sum);

#endif
