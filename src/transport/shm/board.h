/* A board: memory that the ranks of one communicator on one host share, for collectives through common memory. The
 * host's segment has a few of them behind its rings, sparse as everything there. The process that makes up a
 * communicator's context claims a board for it before anybody else hears of the context, so whether there is one is a
 * fact that all ranks of its host find alike. Elsewhere, and for collectives that are kept, the first of the ranks of
 * the host claims it, and the others do not look before they have heard of that. It is free again when each of these
 * ranks has closed it, or left it without having opened it.
 *
 * What is carried out on a board has a number, its place: from 0 on, the same on all ranks. A rank may carry them out
 * in any order, or several at once; what it does not take part in it counts as finished. Everything has one writer, but
 * for slots in which others put what they have reduced. A rank has columns, taken in turn by number, each of a cell, in
 * which it says what it calls and gives short data, and of counters; and it has slots for fragments of long data, any
 * of which it may take, since its cell says which. A column or slot may be used again when all others have finished
 * what it was for; so a rank that only gives can be many places ahead.
 *
 * Waiting is left to the user. Whoever has written something that others may wait for calls tb_board_wake.
 *
 * The struct belongs to one channel of the engine and is touched with that engine locked. */
#ifndef TB_TRANSPORT_SHM_BOARD_H
#define TB_TRANSPORT_SHM_BOARD_H

#include <stdalign.h>
#include <stdatomic.h>

#include "base/base.h"
#include "transport/shm/doorbell.h"

struct tb_transport;

#define TB_BOARD_COLUMNS 64u
#define TB_BOARD_CELL    1152u /* no power of two, so that they do not all want the same place in caches */
#define TB_BOARD_SLOTS   16u
#define TB_BOARD_SLOT    (16u << 10)
#define TB_BOARD_SHORT   (TB_BOARD_CELL - 32) /* bytes that fit into a cell */

/* What a rank calls, and its data if that is short. */
struct tb_board_cell {
    alignas(128) _Atomic uint64_t number; /* its place, from 1 on; written last */
    uint64_t bytes;
    uint32_t root;
    uint16_t behind; /* the first place that this rank has not finished is so many before this one */
    uint8_t what;
    uint8_t failed : 1;    /* it gives nothing: ranks do not agree */
    uint8_t operation : 7; /* of the collective that this is a part of */
    uint32_t stripe;       /* of blocks: how much of each is in a fragment; 0: they are here */
    uint32_t collective;   /* its number on the communicator, where others may have had no place */
    alignas(16) char data[];
};

/* Fragments of one place that a rank has dealt with. */
enum tb_board_counter {
    TB_BOARD_WROTE,  /* its own, into its slots */
    TB_BOARD_FOLDED, /* its range of everyone's */
    TB_BOARD_TAKEN,  /* what it wanted of others' slots */
    TB_BOARD_COUNTERS
};

struct tb_board_line {
    alignas(128) _Atomic uint64_t value;
};

struct tb_board_member {
    struct tb_board_line done; /* places, all before the first that it has not finished; TB_BOARD_LEFT: it has closed
                                * the board and will never call again */
    /* Of each column the last place, from 1 on, that was finished before an earlier one was. */
    alignas(128) _Atomic uint64_t finished[TB_BOARD_COLUMNS];
};

#define TB_BOARD_LEFT UINT64_MAX

/* What a board is for: a communicator, or, numbered from 1 on, one of its collectives that can be started in any order.
 */
struct tb_board_key {
    uint64_t context;
    uint64_t kept; /* 0: all others */
};

/* Boards that this process has to leave as soon as they are claimed. Part of the transport. */
#define TB_BOARD_DEBTS 16u
struct tb_board_debts {
    struct tb_board_debt {
        struct tb_board_key key;
        uint32_t size, rank;
    } owed[TB_BOARD_DEBTS];
    uint32_t count;
};

/* Of the counters: gave up; and has all, however many there are. */
#define TB_BOARD_FAILED UINT32_MAX
#define TB_BOARD_PASSED (UINT32_MAX - 1)

/* A power of two. At the places of all columns from each of its multiples on, counters that were not used are written,
 * too. So none is of a place that is older by 2^32, whose number looks the same in 32 bits. */
#define TB_BOARD_AGE (1u << 30)

struct tb_board_head;

struct tb_board {
    struct tb_board_head *head;
    char *members;
    size_t bytes; /* of all of it, from the first member on */
    uint32_t size, rank;
    bool registered; /* see doorbell.h */
    uint64_t done;   /* as this rank's line says */
    uint64_t least;  /* all others have done so many, when last looked at */
    struct tb_board_bell {
        _Atomic uint32_t *state;
        int descriptor;
    } bells[]; /* of each rank */
};

/* `transport` is that of shared memory itself. Claims a board, if one is free; `first`: the first one, which every rank
 * of the host may claim for the same. What is kept gets none but of the second half of them. */
void tb_board_claim(struct tb_transport *transport, const struct tb_board_key *key, bool first);
bool tb_board_claimed(struct tb_transport *transport, const struct tb_board_key *key);
/* Nobody else has heard of it. */
void tb_board_unclaim(struct tb_transport *transport, const struct tb_board_key *key);
/* Room for one of up to `size` ranks, which is opened or freed. NULL: no memory. */
struct tb_board *tb_board_new(uint32_t size);
/* The board that was claimed, in that room, or NULL. `procs` (NULL: the identity) are all on this host. */
struct tb_board *tb_board_open(struct tb_transport *transport, const struct tb_board_key *key, uint32_t size,
                               uint32_t rank, const uint32_t *procs, struct tb_board *room);
void tb_board_close(struct tb_board *board);
/* This rank will not open it, but others may. If nobody has claimed it yet, it is left when somebody has. */
void tb_board_leave(struct tb_transport *transport, const struct tb_board_key *key, uint32_t size, uint32_t rank);

/* Everyone sleeping looks again. */
void tb_board_wake_slow(const struct tb_board *board);
static inline void tb_board_wake(const struct tb_board *board)
{
    bool busy = board->registered;
    atomic_signal_fence(memory_order_seq_cst);
    for (uint32_t i = 0; i < board->size && busy; i++)
        busy =
            i == board->rank || atomic_load_explicit(board->bells[i].state, memory_order_relaxed) == TB_DOORBELL_BUSY;
    if (__builtin_expect(!busy, 0))
        tb_board_wake_slow(board);
}
/* So many things have come since this process slept: it may be taken for busy, see doorbell.h. */
void tb_shm_heard(struct tb_transport *transport, uint32_t count);

/* Counters hold the number of their place, from 1 on, in the upper half, of which only half of the bits are there, and
 * fragments in the lower one. */
#define TB_BOARD_CELLS_AT     640u
#define TB_BOARD_COUNTERS_AT  (TB_BOARD_CELLS_AT + TB_BOARD_COLUMNS * TB_BOARD_CELL)
#define TB_BOARD_COUNTERS_END (TB_BOARD_COUNTERS_AT + TB_BOARD_COLUMNS * TB_BOARD_COUNTERS * 128u)
#define TB_BOARD_SLOTS_AT     ((TB_BOARD_COUNTERS_END + 4095u) / 4096u * 4096u)
#define TB_BOARD_MEMBER_BYTES (TB_BOARD_SLOTS_AT + TB_BOARD_SLOTS * TB_BOARD_SLOT)

static inline struct tb_board_member *tb_board_member_of(const struct tb_board *b, uint32_t rank)
{
    return (struct tb_board_member *)(b->members + (size_t)rank * TB_BOARD_MEMBER_BYTES);
}

static inline struct tb_board_cell *tb_board_cell_of(const struct tb_board *b, uint32_t rank, uint64_t number)
{
    return (struct tb_board_cell *)((char *)tb_board_member_of(b, rank) + TB_BOARD_CELLS_AT +
                                    number % TB_BOARD_COLUMNS * TB_BOARD_CELL);
}

static inline struct tb_board_line *tb_board_line_of(const struct tb_board *b, uint32_t rank,
                                                     enum tb_board_counter which, uint64_t number)
{
    uint64_t line = number % TB_BOARD_COLUMNS * TB_BOARD_COUNTERS + which;
    return (struct tb_board_line *)((char *)tb_board_member_of(b, rank) + TB_BOARD_COUNTERS_AT +
                                    line * sizeof(struct tb_board_line));
}

/* In which slots a rank's fragments are is one word in its cell: four bits for each of those in flight, by its number
 * modulo TB_BOARD_SLOTS. This is the word of slots in turn, */
static inline uint64_t tb_board_slots_from(uint32_t first)
{
    const uint64_t turn = 0xfedcba9876543210u;
    uint32_t bits = first % TB_BOARD_SLOTS * 4;
    return turn >> bits | turn << (64 - bits) % 64;
}

static inline uint32_t tb_board_slots_get(uint64_t slots, uint32_t fragment)
{
    return (uint32_t)(slots >> fragment % TB_BOARD_SLOTS * 4 & 15);
}

static inline uint64_t tb_board_slots_put(uint64_t slots, uint32_t fragment, uint32_t slot)
{
    uint32_t at = fragment % TB_BOARD_SLOTS * 4;
    return (slots & ~((uint64_t)15 << at)) | (uint64_t)slot << at;
}

static inline char *tb_board_slot_of(const struct tb_board *b, uint32_t rank, uint32_t slot)
{
    return (char *)tb_board_member_of(b, rank) + TB_BOARD_SLOTS_AT + (size_t)slot * TB_BOARD_SLOT;
}

/* Whether a rank has finished a place. */
static inline bool tb_board_passed(const struct tb_board *b, uint32_t rank, uint64_t number)
{
    const struct tb_board_member *m = tb_board_member_of(b, rank);
    return atomic_load_explicit(&m->done.value, memory_order_acquire) > number ||
           atomic_load_explicit(&m->finished[number % TB_BOARD_COLUMNS], memory_order_acquire) > number;
}

/* Whether all others have. */
bool tb_board_look(struct tb_board *board, uint64_t number);
static inline bool tb_board_all_passed(struct tb_board *board, uint64_t number)
{
    return board->least > number || tb_board_look(board, number);
}

/* Writes the counters of this rank that have not been written in the place of that number. */
void tb_board_renew(struct tb_board *board, uint64_t number);

/* Called for every number, when this rank has finished it and all before it in its column. */
static inline void tb_board_settle(struct tb_board *b, uint64_t number)
{
    if (__builtin_expect(number % TB_BOARD_AGE < TB_BOARD_COLUMNS, 0))
        tb_board_renew(b, number);
}

/* This rank has finished everything before `done`; or one place beyond that, after what was before in its column. */
static inline void tb_board_done(struct tb_board *b, uint64_t done)
{
    b->done = done;
    atomic_store_explicit(&tb_board_member_of(b, b->rank)->done.value, done, memory_order_release);
}

static inline void tb_board_finish(struct tb_board *b, uint64_t number)
{
    atomic_store_explicit(&tb_board_member_of(b, b->rank)->finished[number % TB_BOARD_COLUMNS], number + 1,
                          memory_order_release);
}

/* Whether a rank has said what it calls at a place. */
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
    atomic_store_explicit(&tb_board_line_of(b, b->rank, which, number)->value, (number + 1) << 32 | fragments,
                          memory_order_release);
}

/* Of a place that this rank has not finished, so that nobody counts later ones of the column. */
static inline uint32_t tb_board_counted(const struct tb_board *b, uint32_t rank, enum tb_board_counter which,
                                        uint64_t number)
{
    uint64_t value = atomic_load_explicit(&tb_board_line_of(b, rank, which, number)->value, memory_order_acquire);
    return (uint32_t)(value >> 32) == (uint32_t)(number + 1) ? (uint32_t)value : 0;
}

#endif
