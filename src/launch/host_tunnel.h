/* What is said about a tunnel in the control stream of a parent: the standard streams of an agent that only another
 * agent reaches travel in the control stream of that one, at any depth. Functions on streams; they own nothing. */
#ifndef TB_LAUNCH_HOST_TUNNEL_H
#define TB_LAUNCH_HOST_TUNNEL_H

#include "job/job.h"
#include "remote/remote.h"

/* The parent is to start an agent on `host` (of the address book). */
void tb_host_tunnel_start(struct tb_control_stream *parent, uint32_t host, const struct tb_shell_target *target);
/* Nothing more goes through. */
void tb_host_tunnel_end(struct tb_control_stream *parent, uint32_t host, enum tb_tunnel_end how);
/* Whether there is so much in the stream of a parent that what is behind it waits. */
bool tb_host_tunnel_is_full(const struct tb_control_stream *parent);
/* Moves a piece of what is queued for the agent into the stream of its parent, unless that is full. True: something was
 * moved. */
bool tb_host_tunnel_move(struct tb_control_stream *parent, uint32_t host, struct tb_control_stream *from);
/* The agent that has come to this parent with the number `coming` is let in, and is to go on with frame `next`. */
void tb_host_tunnel_admit(struct tb_control_stream *parent, uint32_t host, uint32_t coming, uint32_t next);

#endif
