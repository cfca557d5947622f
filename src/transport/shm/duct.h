/* A duct: the two rings between this process and another one, as this process uses them. What is in one of them is
 * handed up; who finds the other one full is put in a list of such, and is told when there is room again.
 *
 * Every payload is copied into the ring at once. Frames are delivered straight from the ring; `place` is never called,
 * since the one who is given the frame copies it where it belongs with the same effort.
 *
 * Part of the transports that share memory; the thread that owns the transport. */
#ifndef TB_TRANSPORT_SHM_DUCT_H
#define TB_TRANSPORT_SHM_DUCT_H

#include "transport/shm/ring.h"
#include "transport/transport.h"

struct tb_duct {
    struct tb_ring_writer writer;
    struct tb_ring_reader reader;
    struct tb_endpoint *endpoint; /* of the other process */
    bool damaged;                 /* it wrote nonsense; nothing more is read */
    bool blocked;                 /* its ring was full: in the list of such */
    struct tb_list on_blocked;
};

/* `bulk` as in ring.h; `out` and `in` are zero at first. */
void tb_duct_open(struct tb_duct *duct, struct tb_endpoint *endpoint, void *out, void *in, size_t bulk);
void tb_duct_close(struct tb_duct *duct); /* nobody waits for it any more */

/* The ring looked full. True: there is room for the frame after all. */
bool tb_duct_find_room(struct tb_duct *duct, struct tb_list *blocked, struct tb_ring_frame *frame, bool routed);
/* Its other side has written what makes no sense: says so. */
int tb_duct_damage(struct tb_duct *duct, const struct tb_upcalls *up, int error);

bool tb_ducts_have_room(const struct tb_list *blocked);
/* Tells those whose ring was full and has room again; how many. */
int tb_ducts_unblock(struct tb_list *blocked, const struct tb_upcalls *up);

/* Writes a frame, which the caller then publishes (tb_ring_publish) before it wakes the other side. False: full. */
static inline bool tb_duct_write(struct tb_duct *l, struct tb_list *blocked, const struct tb_envelope *envelope,
                                 struct tb_spans *payload, struct tb_ring_frame *frame)
{
    uint64_t length = payload != NULL ? payload->left : 0;
    TB_ASSERT(length <= l->endpoint->transport->max_payload);
    bool routed = envelope->message.flags & TB_MESSAGE_ROUTED;
    frame->length = (uint32_t)length;
    if (!tb_ring_reserve(&l->writer, frame, routed) && !tb_duct_find_room(l, blocked, frame, routed))
        return false;
    frame->record->message = envelope->message;
    if (routed)
        *frame->routing = envelope->routing;
    if (length > 0)
        tb_spans_gather(payload, frame->payload, length);
    return true;
}

/* Delivers one frame. Not more: whether another one is there would be seen only after waiting for a line that the
 * sender has just written, which costs a short message more than a further poll. *waits: the other side waits for room,
 * which there is now: it is to be woken. */
static inline int tb_duct_receive(struct tb_duct *l, const struct tb_upcalls *up, bool *waits)
{
    struct tb_ring_frame frame;
    int found = tb_ring_peek(&l->reader, &frame);
    if (found == 0 || l->damaged)
        return 0;
    if (__builtin_expect(found < 0, 0))
        return tb_duct_damage(l, up, found);
    uint8_t kind = frame.record->message.kind;
    if (__builtin_expect(!tb_kind_known(kind), 0))
        return tb_duct_damage(l, up, tb_error(TB_ERR_PROTOCOL, "a frame of unknown kind %u in shared memory", kind));
    up->frame(up->context, l->endpoint, frame.routing, &frame.record->message, frame.payload, frame.length);
    *waits = tb_ring_release(&l->reader, &frame);
    return 1;
}

/* The last look before sleeping. */
static inline bool tb_duct_ready(const struct tb_duct *l)
{
    return !l->damaged && tb_ring_ready(&l->reader);
}

#endif
