/* Connections between two processes of this host: two ranks, over TCP or through memory of their own, or a rank and the
 * agent. Part of the dialer; its one thread. */
#ifndef TB_AGENT_CONNECT_HERE_H
#define TB_AGENT_CONNECT_HERE_H

#include "agent/dialer.h"

/* Both are given their ends at once. */
int tb_connect_here(struct tb_dialer *dialer, struct tb_proc self, struct tb_proc to, enum tb_stream stream);

#endif
