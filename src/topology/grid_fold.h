/* The fold of a grid: which clusters stand for others when it is asked who reaches whom. Siblings are alike if nobody
 * can tell them apart by that: gateways, NAT, addresses, hosts with and without slots, and alike clusters inside of
 * them; none of their hosts stands elsewhere, too, and of no link that could stop something there `blocked` is said. To
 * exchange two of them changes nothing for anybody else. So three of them (one that sends, one that gets it, one
 * between) show what holds for all, and questions about all pairs take as long as there are sorts of clusters.
 *
 * Made once in a time that grows with hosts and links, then constant; whoever made it owns it. */
#ifndef TB_TOPOLOGY_GRID_FOLD_H
#define TB_TOPOLOGY_GRID_FOLD_H

#include "topology/grid.h"

#define TB_GRID_FOLD_MOST 3u

struct tb_grid_fold {
    const struct tb_grid *grid;
    uint32_t *first;     /* of each cluster: the first sibling that is like it, or itself */
    uint32_t *order;     /* how many siblings before it are like it */
    uint32_t *alike;     /* of those that are the first: how many are like it, itself counted; of the others: 0 */
    bool *stays;         /* it, and everything around it, is among the first TB_GRID_FOLD_MOST of those like it */
    uint32_t stay_count; /* clusters that stay */
};

/* Clusters that are `apart` (one for each cluster; NULL: none) are like no other. */
int tb_grid_fold_open(struct tb_grid_fold *fold, const struct tb_grid *grid, const bool *apart);
void tb_grid_fold_close(struct tb_grid_fold *fold);
/* The hosts that are to be looked at for a job with ranks on those of `ranked`: these, and of the clusters that stay
 * the gateways, the hosts that stand in other clusters, too, and some more. None that is `missing` (NULL: none is). All
 * three have an element for each host. Clusters with ranks should have been apart. */
void tb_grid_fold_part(const struct tb_grid_fold *fold, const bool *ranked, const bool *missing, bool *part);
/* How many pairs of clusters are only supposed to reach each other (tb_grid_supposes, in either direction); about the
 * square of those that stay is looked at. */
uint64_t tb_grid_fold_supposed(const struct tb_grid_fold *fold);

#endif
