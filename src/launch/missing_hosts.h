/* Hosts of a grid that a job may have to do without. Functions on plan, options and placement, without input or output.
 */
#ifndef TB_LAUNCH_MISSING_HOSTS_H
#define TB_LAUNCH_MISSING_HOSTS_H

#include "launch/grid_plan.h"

/* Whether the job can do without a host of the address book: because it was allowed, or because it only was a gateway
 * in reserve. */
bool tb_missing_hosts_allow(const struct tb_grid_plan *plan, const struct tb_options *options,
                            const struct tb_placement *placement, uint32_t host);
/* "cluster venus is missing: " when this host of the address book was the last way in, else "". */
void tb_missing_hosts_name(const struct tb_grid_plan *plan, const struct tb_placement *placement, uint32_t host,
                           char *text, size_t size);
/* The next host of the grid that nobody can start, from `from` on; it is missing from now on. TB_GRID_NONE: no more.
 * *news: nobody has heard of its cluster yet. */
uint32_t tb_missing_hosts_next(struct tb_grid_plan *plan, uint32_t from, bool *news);

#endif
