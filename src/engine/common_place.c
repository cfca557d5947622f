#include "engine/common_place.h"

#include "engine/common_cut.h"

_Static_assert(TB_PROGRAM_PLACES_LIMIT <= TB_BOARD_SLOTS, "each place of a program can have a slot");
_Static_assert(TB_PROGRAM_PLACES_LIMIT < 32, "places are bits of a word");

/* ---- places ------------------------------------------------------------------------------------------------------ */

void tb_common_reserve(struct tb_common *c, struct tb_reserved *r, uint32_t places)
{
    TB_ASSERT(places > 0 && places <= TB_PROGRAM_PLACES_LIMIT);
    r->first = c->next;
    r->left = (1u << places) - 1;
    c->next += places;
    tb_list_append(&c->reserved, &r->in_order);
}

static uint64_t place_first(const struct tb_reserved *r)
{
    return r->first + (uint32_t)__builtin_ctz(r->left);
}

/* Whether this rank has finished it. */
static bool place_is_finished(const struct tb_common *c, uint64_t place)
{
    const struct tb_reserved *r;
    if (place < c->board->done || place >= c->next)
        return place < c->board->done;
    TB_LIST_EACH (r, &c->reserved, const struct tb_reserved, in_order)
        if (place >= r->first && place < r->first + TB_PROGRAM_PLACES_LIMIT && (r->left >> (place - r->first) & 1) != 0)
            return false;
    return true;
}

void tb_common_finish_slow(struct tb_common *c, struct tb_reserved *r, uint64_t place)
{
    struct tb_board *b = c->board;
    if (r != NULL) {
        r->left &= ~(1u << (place - r->first));
        if (r->left == 0)
            tb_list_remove(&r->in_order);
    }
    if (TB_LIKELY(tb_list_empty(&c->reserved))) {
        tb_board_settle(b, place);
        tb_board_done(b, c->next);
        return;
    }
    uint64_t done = place_first(TB_CONTAINER(c->reserved.next, const struct tb_reserved, in_order));
    if (done != b->done)
        tb_board_done(b, done);
    /* Others are told of a column's places one after the other. */
    for (; place_is_finished(c, place) && (place < TB_BOARD_COLUMNS || place_is_finished(c, place - TB_BOARD_COLUMNS));
         place += TB_BOARD_COLUMNS) {
        tb_board_settle(b, place);
        if (place >= b->done)
            tb_board_finish(b, place);
    }
}

/* ---- slots ------------------------------------------------------------------------------------------------------- */

/* The drive of a place that is not over; NULL: it is. */
static struct tb_common_drive *drive_find(struct tb_common_drive *s, uint64_t place)
{
    struct tb_common_drive *other;
    if (s->drive.place == place)
        return s;
    TB_LIST_EACH (other, &s->common->line, struct tb_common_drive, in_line)
        if (other->drive.place == place)
            return other;
    return NULL;
}

/* Whether nobody needs what is in it. */
static bool slot_is_free(struct tb_common_drive *s, const struct tb_common_slot *slot)
{
    if (tb_common_slot_over(s, slot))
        return true;
    struct tb_common_drive *holder = drive_find(s, slot->filled - 1);
    if (holder == NULL)
        return tb_board_all_passed(s->board, slot->filled - 1);
    if (slot->fragment >= holder->free)
        holder->free = tb_common_cut_free(holder);
    return slot->fragment < holder->free;
}

static bool drive_holds(const struct tb_common_drive *s)
{
    for (uint32_t i = 0; i < TB_BOARD_SLOTS; i++)
        if (s->common->slots[i].filled == s->drive.place + 1 && s->common->slots[i].fragment >= s->free)
            return true;
    return false;
}

/* Places that are not finished and hold no slot, this one not counted, of its collective and those before it. */
static uint32_t places_waiting(const struct tb_common_drive *s)
{
    const struct tb_common *c = s->common;
    const struct tb_reserved *r;
    const struct tb_common_drive *other;
    uint32_t open = s->drive.reserved == NULL;
    TB_LIST_EACH (r, &c->reserved, const struct tb_reserved, in_order) {
        open += (uint32_t)__builtin_popcount(r->left);
        if (r == s->drive.reserved)
            break;
    }
    open--;
    TB_LIST_EACH (other, &c->line, const struct tb_common_drive, in_line)
        if (open > 0 && other != s && other->drive.reserved->first <= s->drive.place)
            open -= drive_holds(other);
    return open;
}

/* Where they are not taken in turn: any that is free, if enough are. */
static int slot_find(struct tb_common_drive *s)
{
    uint32_t free = 0, found = 0;
    for (uint32_t i = 0; i < TB_BOARD_SLOTS; i++)
        if (slot_is_free(s, &s->common->slots[i])) {
            free++;
            found = i;
        }
    return free > places_waiting(s) ? (int)found : -1;
}

int tb_common_slot_find(struct tb_common_drive *s)
{
    struct tb_common *c = s->common;
    int slot = (int)c->slot;
    bool free = slot_is_free(s, &c->slots[slot]);
    if (tb_common_crowded(s) || (!free && c->slots[slot].filled != s->drive.place + 1))
        slot = slot_find(s);
    else if (!free)
        slot = -1; /* others will need no less of what comes behind it */
    return s->drive.error == TB_OK ? slot : -1;
}

void tb_common_slot_tell(struct tb_common_drive *s, uint32_t fragment, uint32_t slot)
{
    s->slots = tb_board_slots_put(s->slots, fragment, slot);
    atomic_store_explicit(tb_common_slots(s, tb_common_cell(s, s->rank)), s->slots, memory_order_relaxed);
}
