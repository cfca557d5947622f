#include "transport/shm/duct.h"

void tb_duct_open(struct tb_duct *duct, struct tb_endpoint *endpoint, void *out, void *in, size_t bulk)
{
    *duct = (struct tb_duct){.endpoint = endpoint};
    tb_list_init(&duct->on_blocked);
    tb_ring_writer_open(&duct->writer, out, bulk);
    tb_ring_reader_open(&duct->reader, in, bulk);
}

void tb_duct_close(struct tb_duct *duct)
{
    tb_list_remove(&duct->on_blocked);
    duct->blocked = false;
}

bool tb_duct_find_room(struct tb_duct *l, struct tb_list *blocked, struct tb_ring_frame *frame, bool routed)
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

int tb_duct_damage(struct tb_duct *duct, const struct tb_upcalls *up, int error)
{
    duct->damaged = true;
    up->broken(up->context, duct->endpoint, error);
    return 1;
}

bool tb_ducts_have_room(const struct tb_list *blocked)
{
    struct tb_duct *l;
    TB_LIST_EACH (l, blocked, struct tb_duct, on_blocked)
        if (tb_ring_writer_look(&l->writer))
            return true;
    return false;
}

int tb_ducts_unblock(struct tb_list *blocked, const struct tb_upcalls *up)
{
    int freed = 0;
    struct tb_duct *l;
    TB_LIST_EACH (l, blocked, struct tb_duct, on_blocked) {
        if (!tb_ring_writer_look(&l->writer))
            continue;
        tb_duct_close(l);
        tb_ring_writer_resume(&l->writer);
        up->writable(up->context, l->endpoint);
        freed++;
    }
    return freed;
}
