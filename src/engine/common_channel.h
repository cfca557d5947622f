/* What the driver for common memory has on a channel, struct tb_common: calls of its table (driver.h). Ranks of a
 * channel that are on this host share a board. Where all are on this host, that is there if it was claimed, and nobody
 * need be asked. */
#ifndef TB_ENGINE_COMMON_CHANNEL_H
#define TB_ENGINE_COMMON_CHANNEL_H

#include "engine/common_drive.h"

void tb_common_claim(struct tb_engine *e, uint64_t context, bool first);
void tb_common_unclaim(struct tb_engine *e, uint64_t context);
int tb_common_open(struct tb_engine *e, const struct tb_channel_config *config, void **state);
void tb_common_enter(struct tb_engine *e, const struct tb_channel_config *config, void **state);
void tb_common_pass(struct tb_engine *e, const struct tb_channel_config *config);
bool tb_common_proposed(const void *state);
bool tb_common_provides(const void *state);
int tb_common_agree(void *state, bool all);
void tb_common_close(void *state);

#endif
