/* Places and slots of the driver for common memory: which places this rank has taken and not finished, and which of its
 * slots hold fragments that somebody may still need.
 *
 * A rank's slots are for all of its drives. So that none of them holds up another for ever, a drive takes one only if
 * as many are left as there are places without one, of its own collective and of those before it: these never depend on
 * what comes later. */
#ifndef TB_ENGINE_COMMON_PLACE_H
#define TB_ENGINE_COMMON_PLACE_H

#include "engine/common_drive.h"
#include "engine/likely.h"

void tb_common_reserve(struct tb_common *c, struct tb_reserved *r, uint32_t places);
/* A place is finished, which stands in `r`, or, if that is NULL, in none, since it was over at once. */
void tb_common_finish_slow(struct tb_common *c, struct tb_reserved *r, uint64_t place);
static inline void tb_common_finish(struct tb_common *c, struct tb_reserved *r, uint64_t place)
{
    if (TB_LIKELY(r == NULL && tb_list_empty(&c->reserved))) { /* nothing else is on its way */
        tb_board_settle(c->board, place);
        tb_board_done(c->board, place + 1);
    } else {
        tb_common_finish_slow(c, r, place);
    }
}

/* Tells in its cell, before others read it, in which slots the fragments of a drive will be if nothing comes between:
 * they need not read the cell again for each. */
static inline void tb_common_slots_foresee(struct tb_common_drive *s, struct tb_board_cell *cell)
{
    s->slots = tb_board_slots_from(s->common->slot);
    atomic_store_explicit(tb_common_slots(s, cell), s->slots, memory_order_relaxed);
}

/* Whether a drive is not alone, so that it must not take all slots there are. */
static inline bool tb_common_crowded(const struct tb_common_drive *s)
{
    const struct tb_list *all = &s->common->reserved;
    if (s->drive.reserved == NULL)
        return !tb_list_empty(all);
    return all->next->next != all || (s->drive.reserved->left & (s->drive.reserved->left - 1)) != 0;
}

/* Whether all ranks, this one included, have finished what is in a slot, as far as can be seen without looking: its own
 * operands a rank may read there, too. */
static inline bool tb_common_slot_over(const struct tb_common_drive *s, const struct tb_common_slot *slot)
{
    return slot->filled <= s->board->least && slot->filled <= s->board->done;
}

/* Where the next one is not free at first sight: one that may be taken, or -1. */
int tb_common_slot_find(struct tb_common_drive *s);
/* It is not as was foreseen. */
void tb_common_slot_tell(struct tb_common_drive *s, uint32_t fragment, uint32_t slot);
/* A slot for the next fragment that a drive writes, which it tells in its cell; -1: there is none now. */
static inline int tb_common_slot_take(struct tb_common_drive *s)
{
    struct tb_common *c = s->common;
    uint32_t fragment = s->counts[TB_BOARD_WROTE];
    int slot = (int)c->slot;
    if (TB_UNLIKELY(!tb_common_slot_over(s, &c->slots[slot]) || tb_common_crowded(s)))
        slot = tb_common_slot_find(s);
    if (slot < 0)
        return -1;
    c->slots[slot] = (struct tb_common_slot){s->drive.place + 1, fragment};
    c->slot = ((uint32_t)slot + 1) % TB_BOARD_SLOTS;
    if (TB_UNLIKELY(tb_board_slots_get(s->slots, fragment) != (uint32_t)slot))
        tb_common_slot_tell(s, fragment, (uint32_t)slot);
    return slot;
}

#endif
