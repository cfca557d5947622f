/* Composite steps that are about blocks: gather, allgather, scatter, alltoall, reduce-scatter. Of short blocks a rank
 * puts them side by side into its cell, with a table of where each is; of long ones a stripe of each goes into every
 * slot, so that all read at the same time what they want of the same fragment. How wide a stripe is stands in the
 * giver's cell. A getter takes the fragments of all givers in step and counts them together; what is taken last it
 * counts as all, since it does not know how long the blocks are that are not for it. Its own block a rank moves without
 * the board.
 *
 * Called with the engine locked; an error stands in the state, unless it is returned. */
#ifndef TB_ENGINE_COMMON_EXCHANGE_H
#define TB_ENGINE_COMMON_EXCHANGE_H

#include "engine/common_drive.h"

/* At the start: how long the blocks of this rank are, and how they are cut. An error: that is more than can be counted.
 */
int tb_common_exchange_open(struct tb_common_drive *s);
/* Puts the blocks, if they are short, or what must be known about them into this rank's cell. */
void tb_common_exchange_call(struct tb_common_drive *s, struct tb_board_cell *cell);
/* Moves the block that this rank gives to itself, which must be as long as it expects. */
void tb_common_exchange_own(struct tb_common_drive *s);
/* A rank from which this one takes has called: its block is taken if it is there. */
void tb_common_exchange_hear(struct tb_common_drive *s, const struct tb_board_cell *cell, uint32_t rank);
/* Long blocks. How much was done. */
uint32_t tb_common_exchange_write(struct tb_common_drive *s);
uint32_t tb_common_exchange_take(struct tb_common_drive *s);
bool tb_common_exchange_complete(const struct tb_common_drive *s);

#endif
