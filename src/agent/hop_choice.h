/* Which hop a frame takes from here: the rank itself, the agent of its host, or one of several gateways. Keeps nothing.
 */
#ifndef TB_AGENT_HOP_CHOICE_H
#define TB_AGENT_HOP_CHOICE_H

#include "agent/far_host.h"
#include "agent/member.h"
#include "agent/neighbour.h"

/* `from` is the process that it came from, to which it does not go back; `far` (may be NULL) knows which gateways have
 * lost frames for that host. NULL: nowhere. */
struct tb_neighbour *tb_hop_choose(const struct tb_member *member, struct tb_neighbour_table *table,
                                   const struct tb_cargo *cargo, enum tb_stream stream, uint32_t from,
                                   const struct tb_far_host *far);

#endif
