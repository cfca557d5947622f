/* What passes along a forest (forest.h): one rank's neighbours in its trees, and the steps of data that flows down or
 * up all of them at once, piece by piece. One rank of each host, its leader, exchanges messages with the leaders of
 * other hosts: the root on its own host, elsewhere the first rank. The others meet it in the host's memory, or are
 * behind it in a binomial tree. Found in a time that grows with a rank's neighbours, not with the group. Pure
 * functions; any thread. */
#ifndef TB_COLLECTIVES_PLANNED_H
#define TB_COLLECTIVES_PLANNED_H

#include "collectives/algorithms.h"
#include "collectives/levels_steps.h"

/* Whether the call has a forest that is one of its group, and of its root if it has one. */
bool tb_fits_planned(const struct tb_collective *c);

struct tb_planned {
    const struct tb_collective *call;
    struct tb_host_levels host;        /* who leads this rank's host */
    bool leads, common;                /* this rank does; the ranks of its host, which are several, meet in memory */
    struct tb_tree inside;             /* neighbours on this host, where these do not meet in memory */
    uint32_t pieces;                   /* that the message is cut into, */
    uint32_t join;                     /* and those that are one message */
    uint32_t low[TB_FOREST_TREES + 1]; /* the first piece of each tree, and the end */
};

void tb_planned_open(struct tb_planned *p, const struct tb_collective *c);

/* The rank that leads a host. */
uint32_t tb_planned_leader(const struct tb_planned *p, uint32_t node);
/* This rank's neighbours in a tree: those on other hosts, in the order of the forest, and behind them those on its own.
 * False: it has no parent. */
uint32_t tb_planned_children(const struct tb_planned *p, uint32_t tree);
uint32_t tb_planned_child(const struct tb_planned *p, uint32_t tree, uint32_t child);
bool tb_planned_parent(const struct tb_planned *p, uint32_t tree, uint32_t *parent);
/* Whether it has any, which those do not who only meet others in memory. */
static inline bool tb_planned_alone(const struct tb_planned *p)
{
    return p->common && !p->leads;
}

/* Passes the pieces of OUT that a tree carries down. They are at the root after `ready`; elsewhere they may be written
 * after it. Returns the step with which they come; at the root, `ready`. */
uint32_t tb_planned_down(struct tb_builder *b, const struct tb_planned *p, uint32_t tree, uint16_t edge,
                         uint32_t ready);
/* The rest of it, for all trees: to the ranks of this host through its memory. `come` has the step with which the
 * pieces of each tree are there; `before`, if not TB_STEP_NONE, must be done with each piece. */
void tb_planned_out(struct tb_builder *b, const struct tb_planned *p, uint16_t place, const uint32_t *come,
                    uint32_t before);

/* What this rank begins a reduction with: what the ranks of its host have, combined in memory, or its own data. `out`:
 * it may write to OUT. */
struct tb_level_sum tb_planned_sum(struct tb_builder *b, const struct tb_planned *p, uint16_t place, bool out);
/* Combines what comes from those behind this rank in a tree with its share of `whole` and sends it on. Returns that
 * share as it is then: at the root the result, elsewhere `ready` is the step with which it has left. */
struct tb_level_sum tb_planned_up(struct tb_builder *b, const struct tb_planned *p, uint32_t tree, uint16_t edge,
                                  const struct tb_level_sum *whole);

#endif
