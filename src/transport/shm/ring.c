#include "transport/shm/ring.h"

#define BULK_LEAST (16u << 10)

size_t tb_ring_bulk(uint64_t bytes)
{
    size_t bulk = BULK_LEAST;
    while (bulk < bytes)
        bulk *= 2;
    return bulk;
}

void tb_ring_writer_open(struct tb_ring_writer *writer, void *memory, size_t bulk)
{
    TB_ASSERT(bulk >= 1024 && (bulk & (bulk - 1)) == 0 && bulk <= UINT32_MAX / 2);
    *writer = (struct tb_ring_writer){.memory = memory, .bulk_bytes = (uint32_t)bulk};
}

void tb_ring_reader_open(struct tb_ring_reader *reader, void *memory, size_t bulk)
{
    TB_ASSERT(bulk >= 1024 && (bulk & (bulk - 1)) == 0 && bulk <= UINT32_MAX / 2);
    *reader = (struct tb_ring_reader){.memory = memory, .bulk_bytes = (uint32_t)bulk};
}

bool tb_ring_writer_look(struct tb_ring_writer *w)
{
    w->head = atomic_load_explicit(&w->memory->head, memory_order_seq_cst);
    w->bulk_head = atomic_load_explicit(&w->memory->bulk_head, memory_order_seq_cst);
    uint32_t longest = tb_ring_longest(w->bulk_bytes);
    uint64_t end = tb_ring_bulk_place(w->bulk_tail, longest, w->bulk_bytes) + longest;
    return w->tail + TB_RING_RECORD_UNITS + 1 <= w->head + TB_RING_UNITS && end <= w->bulk_head + w->bulk_bytes;
}

bool tb_ring_writer_wait(struct tb_ring_writer *w)
{
    atomic_store_explicit(&w->memory->waiting, 1, memory_order_seq_cst);
    return tb_ring_writer_look(w);
}

void tb_ring_writer_resume(struct tb_ring_writer *w)
{
    atomic_store_explicit(&w->memory->waiting, 0, memory_order_relaxed);
}

bool tb_ring_reader_tell(struct tb_ring_reader *r)
{
    r->told = r->head;
    r->bulk_told = r->bulk_head;
    atomic_store_explicit(&r->memory->head, r->head, memory_order_seq_cst);
    atomic_store_explicit(&r->memory->bulk_head, r->bulk_head, memory_order_seq_cst);
    return atomic_load_explicit(&r->memory->waiting, memory_order_seq_cst) != 0;
}

int tb_ring_reader_nonsense(const struct tb_ring_reader *r, uint64_t word)
{
    return tb_error(
        TB_ERR_PROTOCOL,
        "shared memory holds a record that makes no sense (word 0x%016llx at position %llu): the other process "
        "has been damaged or runs another version",
        (unsigned long long)word, (unsigned long long)r->head);
}
