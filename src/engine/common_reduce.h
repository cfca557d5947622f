/* Reductions of composite steps, from what ranks have put into cells and slots. All reduce along the fixed tree
 * (tb_fixed_split), so that order matters, all have the same result, and messages can give it, too. */
#ifndef TB_ENGINE_COMMON_REDUCE_H
#define TB_ENGINE_COMMON_REDUCE_H

#include "engine/common_drive.h"

/* The reduction of everyone's short data, or of a fragment, where it belongs. */
int tb_common_reduce_whole(struct tb_common_drive *s, uint32_t fragment, uint32_t length);
/* This rank's range of a fragment, which is `length` bytes in all, in the slot of the last member: nobody else reads
 * that range of its operand. */
int tb_common_reduce_range(struct tb_common_drive *s, uint32_t fragment, uint32_t length);

#endif
