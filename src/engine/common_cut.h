/* How long data of composite steps is cut into fragments, and how far members are with them, which is counted on the
 * board. All but the last of a step are equally long. Of a step of several items fragments end where items do; all
 * items have as many, so that some may be empty. Called with the engine locked; an error stands in the drive. */
#ifndef TB_ENGINE_COMMON_CUT_H
#define TB_ENGINE_COMMON_CUT_H

#include "engine/common_drive.h"
#include "engine/likely.h"

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
void tb_common_cut_find_item(const struct tb_common_drive *s, bool get, uint32_t fragment, struct tb_part *part,
                             struct tb_buffer *room);
static inline void tb_common_cut_find(const struct tb_common_drive *s, bool get, uint32_t fragment,
                                      struct tb_part *part, struct tb_buffer *room)
{
    if (TB_UNLIKELY(s->per_item > 0)) {
        tb_common_cut_find_item(s, get, fragment, part, room);
        return;
    }
    const struct tb_part *whole = get ? &s->get : &s->give;
    uint64_t at = (uint64_t)fragment * s->fragment, left = whole->length > at ? whole->length - at : 0;
    *part = (struct tb_part){whole->buffer, whole->from + at, left < s->fragment ? left : s->fragment};
}

static inline uint32_t tb_common_cut_bytes(const struct tb_common_drive *s, uint32_t fragment)
{
    struct tb_part part;
    struct tb_buffer room;
    if (TB_UNLIKELY(s->per_item > 0)) {
        tb_common_cut_find_item(s, s->drive.step->slice.count == 0, fragment, &part, &room);
        return (uint32_t)part.length;
    }
    uint64_t left = s->bytes - (uint64_t)fragment * s->fragment;
    return left < s->fragment ? (uint32_t)left : s->fragment;
}

/* Says that this rank has done one fragment more. */
static inline void tb_common_cut_count(struct tb_common_drive *s, enum tb_board_counter which)
{
    atomic_store_explicit(&s->counters[which].value, (s->drive.place + 1) << 32 | ++s->counts[which],
                          memory_order_release);
}
/* How many all others have counted; an error where one has given up and is needed. */
uint32_t tb_common_cut_least(struct tb_common_drive *s, enum tb_board_counter which, bool needed);
/* So many fragments that this rank has written nobody needs any more. */
uint32_t tb_common_cut_free(struct tb_common_drive *s);
/* How many items, where there are several, this rank has given and got. */
uint32_t tb_common_cut_items(const struct tb_common_drive *s);

#endif
