/* The hosts that pass on what goes between two hosts, as the cost table knows them: the detour that it lists, else the
 * gateways of the clusters in which they are confined, up the tree and down again. */
#ifndef TB_TOPOLOGY_HOPS_H
#define TB_TOPOLOGY_HOPS_H

#include "topology/cost_table.h"

#define TB_HOPS_LIMIT (2 * TB_PLACES_DEPTH_LIMIT) /* hosts between two others */

/* In the order of the way, without the two ends, at most TB_HOPS_LIMIT; their number. Of several gateways of a cluster
 * the `deal`-th, counted around. */
uint32_t tb_cost_hops(const struct tb_cost_table *table, const struct tb_spot *from, const struct tb_spot *to,
                      uint32_t deal, struct tb_spot *hops);
/* The same without looking at detours. */
uint32_t tb_cost_climb(const struct tb_cost_table *table, const struct tb_spot *from, const struct tb_spot *to,
                       uint32_t deal, struct tb_spot *hops);
/* How many different ways there are between the two for different deals, of which the first so many lead to all; 1
 * where no gateway is dealt. */
uint32_t tb_cost_variants(const struct tb_cost_table *table, const struct tb_spot *from, const struct tb_spot *to);

#endif
