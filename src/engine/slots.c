#include "engine/slots.h"

#include <stdlib.h>

#define SLOTS_FIRST 64u

static bool slots_grow(struct tb_slots *s)
{
    uint32_t room = s->room == 0 ? SLOTS_FIRST : s->room * 2;
    struct tb_slot *grown =
        room > 1u << (s->shares ? TB_SLOT_LANE_LOW : TB_SLOT_BITS) ? NULL : realloc(s->slots, sizeof *grown * room);
    if (grown == NULL)
        return false;
    for (uint32_t i = s->room; i < room; i++)
        grown[i] = (struct tb_slot){.next = i + 1 < room ? i + 1 : 0};
    s->free = s->room == 0 ? 1 : s->room;
    s->slots = grown;
    s->room = room;
    return true;
}

int tb_slots_take(struct tb_slots *s, struct tb_request *r)
{
    if (r->slot != 0)
        return TB_OK;
    if (s->free == 0 && !slots_grow(s))
        return tb_error(TB_ERR_MEMORY, "no memory for another message in transfer, there are %u", s->room);
    r->slot = s->free;
    s->free = s->slots[r->slot].next;
    r->message_id = tb_slots_id(s) | r->slot;
    s->slots[r->slot] = (struct tb_slot){.request = r, .id = r->message_id};
    return TB_OK;
}

void tb_slots_give(struct tb_slots *s, struct tb_request *r)
{
    s->slots[r->slot] = (struct tb_slot){.next = s->free};
    s->free = r->slot;
    r->slot = 0;
}

struct tb_request *tb_slots_find(const struct tb_slots *s, uint64_t id)
{
    uint32_t slot = (uint32_t)(id & ((1u << TB_SLOT_BITS) - 1)) ^ s->lane;
    return slot != 0 && slot < s->room && s->slots[slot].id == id ? s->slots[slot].request : NULL;
}

void tb_slots_close(struct tb_slots *s)
{
    free(s->slots);
    *s = (struct tb_slots){.room = 0};
}
