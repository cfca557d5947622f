/* Whether a frame may come from where it comes: a rank speaks for itself alone, an agent for the ranks of its host, and
 * only whoever stands between others for them. So nobody who has got hold of one process can speak for all, or make an
 * agent remember things about processes that do not exist. One thread. */
#ifndef TB_AGENT_FRAME_CHECK_H
#define TB_AGENT_FRAME_CHECK_H

#include "agent/hop_connection.h"
#include "agent/member.h"

/* `from` is the process at the other end of the connection. TB_ERR_PROTOCOL with a story: it may not. */
int tb_frame_check(const struct tb_member *member, struct tb_proc from, const struct tb_cargo *cargo);

#endif
