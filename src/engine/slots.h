/* Message ids, and the slots by which a request is found again when the other side answers. An id holds a number that
 * is never used twice and, in its low bits, a slot; an answer that comes after its request has ended finds another id
 * in the slot, or none, and is ignored. A message that needs no answer has an id without a slot. Where the engine has
 * lanes (laned.h), an id also says in which of them it was given.
 *
 * Part of the engine, touched with it locked. All zero is an empty one. */
#ifndef TB_ENGINE_SLOTS_H
#define TB_ENGINE_SLOTS_H

#include "engine/engine.h"

#define TB_SLOT_BITS      24
#define TB_SLOT_LANE_BITS 3 /* the upper ones of these, where there are lanes */
#define TB_SLOT_LANES     (1u << TB_SLOT_LANE_BITS)
#define TB_SLOT_LANE_LOW  (TB_SLOT_BITS - TB_SLOT_LANE_BITS)

struct tb_slot {
    struct tb_request *request; /* NULL: free */
    uint64_t id;
    uint32_t next; /* free slot */
};

struct tb_slots {
    struct tb_slot *slots;
    uint32_t room, free; /* free: the first one, 0: none; slot 0 is never used */
    uint64_t ids;        /* given so far */
    bool shares;         /* there are lanes */
    uint32_t lane;       /* which one this is, where it stands in an id */
};

/* An id without a slot. */
static inline uint64_t tb_slots_id(struct tb_slots *s)
{
    return ++s->ids << TB_SLOT_BITS | s->lane;
}

static inline uint32_t tb_slots_lane(uint64_t id)
{
    return (uint32_t)(id >> TB_SLOT_LANE_LOW) & (TB_SLOT_LANES - 1);
}

static inline void tb_slots_share(struct tb_slots *s, uint32_t lane)
{
    s->shares = true;
    s->lane = lane << TB_SLOT_LANE_LOW;
}

int tb_slots_take(struct tb_slots *s, struct tb_request *r); /* gives it a slot and an id, unless it has one */
void tb_slots_give(struct tb_slots *s, struct tb_request *r);
struct tb_request *tb_slots_find(const struct tb_slots *s, uint64_t id); /* NULL: stale */
void tb_slots_close(struct tb_slots *s);

#endif
