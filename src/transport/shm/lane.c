#include "transport/shm/lane.h"

void tb_lane_open(struct tb_lane *lane, struct tb_endpoint *endpoint, void *out, void *in, size_t bulk)
{
    *lane = (struct tb_lane){.endpoint = endpoint};
    tb_list_init(&lane->on_blocked);
    tb_ring_writer_open(&lane->writer, out, bulk);
    tb_ring_reader_open(&lane->reader, in, bulk);
}

void tb_lane_close(struct tb_lane *lane)
{
    tb_list_remove(&lane->on_blocked);
    lane->blocked = false;
}

bool tb_lane_find_room(struct tb_lane *l, struct tb_list *blocked, struct tb_ring_frame *frame, bool routed)
{
    bool ample = tb_ring_writer_look(&l->writer);
    if (tb_ring_reserve(&l->writer, frame, routed))
        return true;
    TB_ASSERT(!ample);
    bool room = tb_ring_writer_wait(&l->writer) && tb_ring_reserve(&l->writer, frame, routed);
    /* Whoever was told TB_AGAIN before still waits for `writable`. */
    if (!l->blocked && room) {
        tb_ring_writer_resume(&l->writer);
    } else if (!l->blocked) {
        l->blocked = true;
        tb_list_append(blocked, &l->on_blocked);
    }
    return room;
}

int tb_lane_damage(struct tb_lane *lane, const struct tb_upcalls *up, int error)
{
    lane->damaged = true;
    up->broken(up->context, lane->endpoint, error);
    return 1;
}

bool tb_lanes_have_room(const struct tb_list *blocked)
{
    struct tb_lane *l;
    TB_LIST_EACH (l, blocked, struct tb_lane, on_blocked)
        if (tb_ring_writer_look(&l->writer))
            return true;
    return false;
}

int tb_lanes_unblock(struct tb_list *blocked, const struct tb_upcalls *up)
{
    int freed = 0;
    struct tb_lane *l;
    TB_LIST_EACH (l, blocked, struct tb_lane, on_blocked) {
        if (!tb_ring_writer_look(&l->writer))
            continue;
        tb_lane_close(l);
        tb_ring_writer_resume(&l->writer);
        up->writable(up->context, l->endpoint);
        freed++;
    }
    return freed;
}
