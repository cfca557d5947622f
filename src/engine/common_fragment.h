/* Long data of composite steps, cut into fragments that go through the slots of a board. A broadcast's root fills its
 * slots as the slowest reader empties them. In reductions everyone fills its own slots. Whoever gets the result reduces
 * them alone, if that is little work; otherwise of each fragment every rank reduces a range into the board's results,
 * from which the others copy it, which takes all of them twice.
 *
 * How far ranks are is counted on the board. Called with the engine locked; an error stands in the state. */
#ifndef TB_ENGINE_COMMON_FRAGMENT_H
#define TB_ENGINE_COMMON_FRAGMENT_H

#include "engine/common_drive.h"

#define TB_COMMON_TURN 16u /* dealt with before others get their turn */

/* At the start, of long data that is not about blocks. */
void tb_common_fragments_cut(struct tb_common_drive *s);
/* Each of these does what can be done and returns how much that was. */
uint32_t tb_common_fragments_write(struct tb_common_drive *s);      /* fills slots that are free */
uint32_t tb_common_fragments_bcast(struct tb_common_drive *s);      /* writes as the root, else takes */
uint32_t tb_common_fragments_reduce(struct tb_common_drive *s);     /* writes, reduces and takes */
uint32_t tb_common_fragments_fold_alone(struct tb_common_drive *s); /* reduces whole ones */

/* Says that this rank has done one fragment more. */
void tb_common_fragments_count(struct tb_common_drive *s, enum tb_board_counter which);
/* Whether the slot of the next fragment is free: nobody needs what an earlier collective has left there, and all others
 * have counted the fragment of this one. */
bool tb_common_fragments_slot_free(struct tb_common_drive *s);

#endif
