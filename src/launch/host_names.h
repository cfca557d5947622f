/* Names and addresses of hosts, as this machine and its resolver know them. */
#ifndef TB_LAUNCH_HOST_NAMES_H
#define TB_LAUNCH_HOST_NAMES_H

#include "job/job.h"

/* Whether a name that the user wrote means this host. */
bool tb_host_names_is_here(const char *name);
/* The host of the grid on which we run, of those that are not missing; TB_GRID_NONE: we are outside. In a lab the
 * addresses of the file mean nothing. */
uint32_t tb_host_names_find_here(const struct tb_grid *grid, const bool *missing, bool in_lab);
/* What the grid file says about the address of a host may be known to nobody there, such as that of a router in front
 * of it: it is added to those that the host sees itself, which the agents try first. */
void tb_host_names_add_address(struct tb_host *host, const char *text);

#endif
