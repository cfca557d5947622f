/* The segment: the memory that all ranks of a host share. Made by the agent, zero at first and sparse, so that only
 * what is touched costs memory. First a page for each rank, then a ring for each ordered pair of ranks, a receiver's
 * rings side by side, then boards (board.h). Everything is found by arithmetic; nothing in it is a pointer. Whoever
 * opens the transport writes its own page; who writes what afterwards stands at each field. */
#ifndef TB_TRANSPORT_SHM_SEGMENT_H
#define TB_TRANSPORT_SHM_SEGMENT_H

#include <stdatomic.h>

#include "transport/shm/memory_card.h"
#include "transport/shm/ring.h"

#define TB_SHM_PAGE  4096
#define TB_SHM_RANKS 4096 /* most ranks of one host */
#define TB_SHM_WORDS (TB_SHM_RANKS / 64)

/* One rank's page. Lines that are written at different times by different ranks are kept apart. */
struct tb_shm_page {
    alignas(128) _Atomic uint32_t state; /* enum tb_doorbell_state */
    alignas(128) struct tb_memory_card card;
    _Atomic uint32_t left; /* it has closed and will never send again; set by itself after all that it has sent */
    /* In the page of the first rank: how many have left. */
    alignas(128) _Atomic uint32_t departures;
    /* A bit for each rank that has sent something to this one; set by the sender before its first frame. */
    alignas(128) _Atomic uint64_t senders[TB_SHM_WORDS];
};
_Static_assert(sizeof(struct tb_shm_page) <= TB_SHM_PAGE, "a rank's page is one page");

static inline struct tb_shm_page *tb_shm_page_of(void *segment, uint32_t rank)
{
    return (struct tb_shm_page *)((char *)segment + (size_t)rank * TB_SHM_PAGE);
}

static inline void *tb_shm_ring_of(void *segment, uint32_t ranks, uint32_t from, uint32_t to, size_t bulk)
{
    return (char *)segment + (size_t)ranks * TB_SHM_PAGE + ((size_t)to * ranks + from) * tb_ring_bytes(bulk);
}

/* How much a ring holds for bulk frames: as the parameter says, a power of two. */
size_t tb_shm_bulk_bytes(void);

/* The boards of a host begin with their heads, a line each. */
struct tb_board_head {
    alignas(128) _Atomic uint64_t context; /* 0: free; TB_BOARD_TAKING: somebody is about to say what it is for */
    _Atomic uint64_t kept;                 /* as in struct tb_board_key, 0 while it is free; written before context */
    _Atomic uint32_t closed;               /* ranks that have closed it */
};

#define TB_BOARD_TAKING UINT64_MAX

void *tb_shm_boards_of(void *segment, uint32_t ranks); /* where the heads are */
uint32_t tb_shm_board_count(uint32_t ranks);
size_t tb_shm_heads_bytes(uint32_t ranks); /* of all of them */
size_t tb_shm_board_bytes(uint32_t ranks); /* of one */

struct tb_transport;
struct tb_transport_config;
struct tb_board_debts;

const struct tb_transport_config *tb_shm_config(const struct tb_transport *transport);
struct tb_board_debts *tb_shm_debts(struct tb_transport *transport);
bool tb_shm_registered(const struct tb_transport *transport); /* for fences by the kernel, see doorbell.h */

#endif
