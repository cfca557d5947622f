/* What an agent tells its launcher of other hosts and of itself: frames on the uplink, written in one place. */
#ifndef TB_AGENT_UPLINK_FRAMES_H
#define TB_AGENT_UPLINK_FRAMES_H

#include "agent/address.h"
#include "agent/reach_probe.h"
#include "agent/uplink.h"

/* TB_CONTROL_READY: this host can be reached at these addresses, and these are the seats of its ranks, by local index,
 * if they are bound. */
void tb_uplink_tell_ready(struct tb_uplink *uplink, const struct tb_address_list *addresses,
                          const struct tb_seat *seats, uint32_t seat_count);
/* TB_CONTROL_CALL: process `there` on that host is to connect to `here`. */
void tb_uplink_tell_call(struct tb_uplink *uplink, uint32_t host, struct tb_proc there, struct tb_proc here,
                         uint32_t stream);
void tb_uplink_tell_probed(struct tb_uplink *uplink, const struct tb_reach_report *reports, uint32_t count);
/* TB_CONTROL_LINK. What is wrong is said again and again: what cannot leave now is not kept. */
void tb_uplink_tell_link(struct tb_uplink *uplink, uint32_t host, enum tb_link_report state, uint64_t time,
                         const char *why);
/* TB_CONTROL_GROUP_STATE, _HEARD and _TROUBLE. */
void tb_uplink_tell_group_state(struct tb_uplink *uplink, uint32_t attempt, enum tb_multicast_state state,
                                const struct tb_multicast_fit *fit, const char *why);
void tb_uplink_tell_group_heard(struct tb_uplink *uplink, uint32_t test, uint64_t heard, uint64_t longest);
void tb_uplink_tell_group_trouble(struct tb_uplink *uplink, uint32_t version, enum tb_multicast_trouble what);

#endif
