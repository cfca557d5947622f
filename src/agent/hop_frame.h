/* A frame on a connection of the forwarder: its hop header is made anew for each connection. Between two agents it
 * carries the check of header and envelope, so that a byte that was changed on the way ends the connection and the
 * frame is sent again, instead of leading somewhere else. Owns nothing; the agent's loop thread. */
#ifndef TB_AGENT_HOP_FRAME_H
#define TB_AGENT_HOP_FRAME_H

#include "wire/wire.h"

/* For frames that go to an agent (`seal`) or to a rank: their number on that connection. */
void tb_hop_frame_number(char *bytes, uint32_t sequence, bool seal);
/* One more agent has the frame; false: too many have, since their routes do not agree yet and it runs in circles. It
 * is lost then, as on a wire. */
bool tb_hop_frame_count_pass(char *bytes);

/* The header of the next frame of `from`, which should have this number. */
int tb_hop_frame_look(const char *bytes, struct tb_proc from, uint32_t sequence, struct tb_hop *hop);
/* The same of header and envelope, TB_FRAME_BUFFER_HEAD bytes, before anything is made of what they say. */
int tb_hop_frame_is_whole(const char *bytes, struct tb_proc from, const struct tb_hop *hop);
int tb_hop_frame_nonsense(struct tb_proc from, const char *what);

#endif
