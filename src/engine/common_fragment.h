/* Long data of composite steps, cut into fragments that go through the slots of a board. A broadcast's root fills its
 * slots as the slowest reader empties them. In reductions everyone fills its own slots. Whoever gets the result reduces
 * them alone, if that is little work; otherwise of each fragment every rank reduces a range into the slot of the last
 * member, from which the others copy it, which takes all of them twice.
 *
 * Only fragments of items that are ready are written and taken. Called with the engine locked; an error stands in the
 * drive. */
#ifndef TB_ENGINE_COMMON_FRAGMENT_H
#define TB_ENGINE_COMMON_FRAGMENT_H

#include "engine/common_drive.h"

#define TB_COMMON_TURN 16u /* dealt with before others get their turn */

/* Each of these does what can be done and returns how much that was. */
uint32_t tb_common_fragments_write(struct tb_common_drive *s);      /* fills slots that are free */
uint32_t tb_common_fragments_bcast(struct tb_common_drive *s);      /* writes as the root, else takes */
uint32_t tb_common_fragments_reduce(struct tb_common_drive *s);     /* writes, reduces and takes */
uint32_t tb_common_fragments_fold_alone(struct tb_common_drive *s); /* reduces whole ones */

#endif
