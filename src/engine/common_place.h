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
void tb_common_slots_foresee(const struct tb_common_drive *s, struct tb_board_cell *cell);
/* A slot for the next fragment that a drive writes, which it tells in its cell; -1: there is none now. */
int tb_common_slot_take(struct tb_common_drive *s);
/* It is over: others may still need what is in its slots. */
void tb_common_slots_leave(struct tb_common_drive *s);

#endif
