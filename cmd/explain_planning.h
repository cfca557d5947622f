/* How long calls take to be planned on this machine. */
#ifndef TB_CMD_EXPLAIN_PLANNING_H
#define TB_CMD_EXPLAIN_PLANNING_H

#include "collectives/collectives.h"

/* Plans the call as the first one on its communicator, and then with other roots, and prints what that took, and what
 * was chosen. Before anything else is rated, so that it is as in a process that begins. */
int tb_explain_planning(const struct tb_collective *call, bool json);

#endif
