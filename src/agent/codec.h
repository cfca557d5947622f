/* What a stream between the agents of two clusters has besides: compression, then encryption. Both sides have agreed on
 * it in hello and welcome, which their proofs cover, so nobody in between can talk them out of it. */
#ifndef TB_AGENT_CODEC_H
#define TB_AGENT_CODEC_H

#include "agent/connected.h"
#include "agent/hop_peer.h"
#include "agent/member.h"
#include "link/link.h"

/* Encryption and compression that streams with another agent are to have, as bits of hello and welcome; 0 for ranks,
 * and inside of a cluster. */
uint32_t tb_codec_features(const struct tb_member *member, struct tb_proc proc);
/* What hello and welcome agree on; *codec is NULL if that is nothing. Those of one `group` share the processor. */
int tb_codec_open(const struct tb_member *member, struct tb_squeeze_group *group, const struct tb_connected *connected,
                  struct tb_codec **codec);

#endif
