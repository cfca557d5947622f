/* What the driver for common memory has on a channel, struct tb_common: calls of its table (driver.h). A channel whose
 * ranks are all on this host shares a board, if one was claimed. */
#ifndef TB_ENGINE_COMMON_CHANNEL_H
#define TB_ENGINE_COMMON_CHANNEL_H

#include "engine/common_drive.h"

void tb_common_claim(struct tb_engine *e, uint64_t context, bool first);
void tb_common_unclaim(struct tb_engine *e, uint64_t context);
int tb_common_open(struct tb_engine *e, const struct tb_channel_config *config, void **state);
void tb_common_close(void *state);

#endif
