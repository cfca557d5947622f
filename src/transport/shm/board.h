/* A board: memory that all ranks of one communicator on one host share, for collectives through common memory. The
 * host's segment has a few of them behind its rings, sparse as everything there. The process that makes up a
 * communicator's context claims a board for it before anybody else hears of the context, so whether there is one is a
 * fact that all ranks find alike; it is free again when the last rank has closed it.
 *
 * Collectives on a board are numbered from 0, the same on all ranks, and each rank carries them out in that order.
 * Everything has one writer. A rank has cells, taken in turn by number, in which it says what it calls and gives short
 * data; slots for fragments of long data, also taken in turn; and counters. A cell or slot may be used again when all
 * others have done the collective that it was for; so a rank that only gives can be several collectives ahead.
 *
 * Waiting is left to the user. Whoever has written something that others may wait for calls tb_board_wake.
 *
 * The struct belongs to one channel of the engine and is touched with that engine locked. */
#ifndef TB_TRANSPORT_SHM_BOARD_H
#define TB_TRANSPORT_SHM_BOARD_H

#include <stdalign.h>
#include <stdatomic.h>

#include "base/base.h"

struct tb_transport;

#define TB_BOARD_CELLS 64u
#define TB_BOARD_CELL  1152u /* no power of two, so that they do not all want the same place in caches */
#define TB_BOARD_SLOTS 16u
#define TB_BOARD_SLOT  (16u << 10)
#define TB_BOARD_SHORT (TB_BOARD_CELL - 32) /* bytes that fit into a cell */

/* What a rank calls, and its data if that is short. */
struct tb_board_cell {
    alignas(128) _Atomic uint64_t number; /* of the collective, from 1 on; written last */
    uint64_t bytes;
    uint32_t root;
    uint16_t slot; /* of its first fragment */
    uint8_t what;
    bool failed;         /* it gives nothing: ranks do not agree */
    uint32_t stripe;     /* of blocks: how much of each is in a fragment; 0: they are here */
    uint32_t collective; /* its number on the communicator, where others may have had none on the board */
    alignas(16) char data[];
};

/* Fragments of one collective that a rank has dealt with. */
enum tb_board_counter {
    TB_BOARD_WROTE,  /* its own, into its slots */
    TB_BOARD_FOLDED, /* its range of everyone's */
    TB_BOARD_TAKEN,  /* what it wanted of others' slots, or of the results */
    TB_BOARD_COUNTERS
};

struct tb_board_line {
    alignas(128) _Atomic uint64_t value;
};

struct tb_board_member {
    struct tb_board_line done; /* collectives; TB_BOARD_LEFT: it has closed the board and will never call again */
    /* The number of the collective, from 1 on, in the upper half, and fragments in the lower one. Only half of the
     * number's bits are there, which is enough since no counter gets old, see TB_BOARD_AGE. */
    struct tb_board_line counters[TB_BOARD_COUNTERS];
};

#define TB_BOARD_LEFT UINT64_MAX

/* Of the counters: gave up; and is in a later collective. */
#define TB_BOARD_FAILED UINT32_MAX
#define TB_BOARD_PASSED (UINT32_MAX - 1)

/* A power of two. At collectives whose number it divides, counters that were not used are written, too. So they are
 * that old at most, seen from their own rank; another rank is ahead of it, or behind, by no more than there are cells.
 * That is far below 2^31, up to which numbers of 32 bits can be told to be earlier or later. */
#define TB_BOARD_AGE (1u << 30)

struct tb_board_head;

struct tb_board {
    struct tb_board_head *head;
    char *members, *results;
    size_t bytes; /* of all of it, from the first member on */
    uint32_t size, rank;
    bool registered;                 /* see doorbell.h */
    uint64_t started;                /* collectives of this rank */
    uint32_t slot;                   /* to be filled next */
    uint64_t filled[TB_BOARD_SLOTS]; /* each is in use until all have done so many */
    uint64_t least;                  /* all others have done so many, when last looked at */
    struct tb_board_bell {
        _Atomic uint32_t *state;
        int descriptor;
    } bells[]; /* of each rank */
};

/* `transport` is that of shared memory itself. Claims a board for a context, if one is free; `first`: the first one,
 * which every rank of the host may claim for the same context. */
void tb_board_claim(struct tb_transport *transport, uint64_t context, bool first);
/* The context is not used. */
void tb_board_unclaim(struct tb_transport *transport, uint64_t context);
/* The board that was claimed for a context, or NULL. `procs` (NULL: the identity) are all on this host. Without memory
 * it counts as closed here, since others may have opened it. */
int tb_board_open(struct tb_transport *transport, uint64_t context, uint32_t size, uint32_t rank, const uint32_t *procs,
                  struct tb_board **board);
void tb_board_close(struct tb_board *board);

/* Everyone sleeping looks again. */
void tb_board_wake(const struct tb_board *board);
/* So many things have come since this process slept: it may be taken for busy, see doorbell.h. */
void tb_shm_heard(struct tb_transport *transport, uint32_t count);

#define TB_BOARD_CELLS_AT     512u
#define TB_BOARD_SLOTS_AT     ((TB_BOARD_CELLS_AT + TB_BOARD_CELLS * TB_BOARD_CELL + 4095u) / 4096u * 4096u)
#define TB_BOARD_MEMBER_BYTES (TB_BOARD_SLOTS_AT + TB_BOARD_SLOTS * TB_BOARD_SLOT)

static inline struct tb_board_member *tb_board_member_of(const struct tb_board *b, uint32_t rank)
{
    return (struct tb_board_member *)(b->members + (size_t)rank * TB_BOARD_MEMBER_BYTES);
}

static inline struct tb_board_cell *tb_board_cell_of(const struct tb_board *b, uint32_t rank, uint64_t number)
{
    return (struct tb_board_cell *)((char *)tb_board_member_of(b, rank) + TB_BOARD_CELLS_AT +
                                    number % TB_BOARD_CELLS * TB_BOARD_CELL);
}

static inline char *tb_board_slot_of(const struct tb_board *b, uint32_t rank, uint32_t slot)
{
    return (char *)tb_board_member_of(b, rank) + TB_BOARD_SLOTS_AT + (size_t)(slot % TB_BOARD_SLOTS) * TB_BOARD_SLOT;
}

/* Where reductions of fragments go, a range of each rank. */
static inline char *tb_board_result_of(const struct tb_board *b, uint32_t fragment)
{
    return b->results + (size_t)(fragment % TB_BOARD_SLOTS) * TB_BOARD_SLOT;
}

/* Whether all others have done so many collectives. */
bool tb_board_look(struct tb_board *board, uint64_t done);
static inline bool tb_board_all_done(struct tb_board *board, uint64_t done)
{
    return board->least >= done || tb_board_look(board, done);
}

/* Writes the counters of this rank that have not been written in the collective of that number. */
void tb_board_renew(struct tb_board *board, uint64_t number);

/* Called for every number. */
static inline void tb_board_done(struct tb_board *b, uint64_t number)
{
    if (__builtin_expect(number % TB_BOARD_AGE == 0, 0))
        tb_board_renew(b, number);
    atomic_store_explicit(&tb_board_member_of(b, b->rank)->done.value, number + 1, memory_order_release);
}

/* Whether a rank has said what it calls in a collective. */
static inline bool tb_board_called(const struct tb_board_cell *cell, uint64_t number)
{
    return atomic_load_explicit(&cell->number, memory_order_acquire) == number + 1;
}

static inline void tb_board_call(struct tb_board_cell *cell, uint64_t number)
{
    atomic_store_explicit(&cell->number, number + 1, memory_order_release);
}

static inline void tb_board_count(struct tb_board *b, enum tb_board_counter which, uint64_t number, uint32_t fragments)
{
    atomic_store_explicit(&tb_board_member_of(b, b->rank)->counters[which].value, (number + 1) << 32 | fragments,
                          memory_order_release);
}

static inline uint32_t tb_board_counted(const struct tb_board *b, uint32_t rank, enum tb_board_counter which,
                                        uint64_t number)
{
    uint64_t value = atomic_load_explicit(&tb_board_member_of(b, rank)->counters[which].value, memory_order_acquire);
    int32_t ahead = (int32_t)((uint32_t)(value >> 32) - (uint32_t)(number + 1));
    return ahead == 0 ? (uint32_t)value : ahead > 0 ? TB_BOARD_PASSED : 0;
}

#endif
