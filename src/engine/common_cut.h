/* How long data of composite steps is cut into fragments, and how far members are with them, which is counted on the
 * board. All but the last of a step are equally long. Of a step of several items fragments end where items do; all
 * items have as many, so that some may be empty. Called with the engine locked; an error stands in the drive. */
#ifndef TB_ENGINE_COMMON_CUT_H
#define TB_ENGINE_COMMON_CUT_H

#include "engine/common_drive.h"

/* Of the items of a step: all together, and the longest of them. */
struct tb_common_lengths {
    uint64_t all, longest;
};
struct tb_common_lengths tb_common_cut_measure(const struct tb_common_drive *s);
/* At the start, of long data that is not about blocks. */
void tb_common_cut(struct tb_common_drive *s);
/* More items are ready. */
void tb_common_cut_allow(struct tb_common_drive *s);
/* Where a fragment of what this rank gives, or gets, stands; `room` is for a buffer that the part may refer to. */
void tb_common_cut_find(const struct tb_common_drive *s, bool get, uint32_t fragment, struct tb_part *part,
                        struct tb_buffer *room);
uint32_t tb_common_cut_bytes(const struct tb_common_drive *s, uint32_t fragment);

/* Says that this rank has done one fragment more. */
void tb_common_cut_count(struct tb_common_drive *s, enum tb_board_counter which);
/* How many all others have counted; an error where one has given up and is needed. */
uint32_t tb_common_cut_least(struct tb_common_drive *s, enum tb_board_counter which, bool needed);
/* So many fragments that this rank has written nobody needs any more. */
uint32_t tb_common_cut_free(struct tb_common_drive *s);
/* How many items, where there are several, this rank has given and got. */
uint32_t tb_common_cut_items(const struct tb_common_drive *s);

#endif
