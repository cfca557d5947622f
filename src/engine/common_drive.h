/* A drive of the driver for common memory: what a composite step is about, how far it is, and what can go wrong in it.
 * It stands in the room of whoever runs the step (driver.h), and is touched with the engine locked. */
#ifndef TB_ENGINE_COMMON_DRIVE_H
#define TB_ENGINE_COMMON_DRIVE_H

#include "engine/binding.h"
#include "engine/driver.h"
#include "engine/part.h"

/* What it has on a channel. */
struct tb_common {
    struct tb_engine *engine;       /* the lane of its channel */
    struct tb_transport *transport; /* that of shared memory itself */
    struct tb_board *board;         /* that ranks of the channel share; NULL: it is only proposed */
    struct tb_board *room;          /* for it, until then; or NULL */
    const uint32_t *ranks;          /* which those are, ascending; NULL: all */
    struct tb_list line;            /* drives on their way */
    struct tb_list *active, busy;   /* the engine's list, in which this is while there are some */
    const struct tb_peer *lost;     /* one of the board's processes that is gone */
    uint64_t next;                  /* place that was not taken yet */
    struct tb_list reserved;        /* places that are not finished, by collective, in order */
    uint32_t slot;                  /* to be looked at first */
    struct tb_common_slot {
        uint64_t filled; /* the place, from 1 on, whose data is there; 0: none */
        uint32_t fragment;
    } slots[TB_BOARD_SLOTS];

    struct tb_board_key key; /* what the board is for, and for how many, of whom this is which */
    uint32_t size, rank;
    const uint32_t *procs; /* of these, until the board is opened, and where they are some; NULL: the identity */
    uint32_t *lists;       /* memory of `ranks` and `procs`, or NULL */
    bool proposal;         /* whether it is opened others must agree on */
    bool left;             /* there is nothing to be closed */
};

struct tb_common_drive {
    struct tb_drive drive;
    uint8_t what;        /* enum tb_composite */
    uint8_t operation;   /* of the collective */
    uint32_t rank, size; /* among the members of the step */
    uint32_t root;
    const uint32_t *who;        /* which ranks of the board the members are; NULL: all of them */
    uint64_t bytes, unit;       /* to be given or got; what must not be cut */
    struct tb_part give, get;   /* where that is asked for, of the first item; of blocks the one that is given to all
                                 * others, or, of reductions, all of them */
    struct tb_buffer rooms[2];  /* that these may refer to */
    const struct tb_type *type; /* of reductions */
    const struct tb_op *op;

    uint8_t stage;
    struct tb_list in_line;
    struct tb_common *common;
    struct tb_board *board;
    struct tb_reserved own; /* of a collective that is only this */
    uint32_t called;        /* members before this one have called the same */
    uint32_t awaited;       /* of these, those that this rank has waited for */
    uint32_t behind;        /* of these, the one that has finished least: so many places before this one */
    uint32_t looks;         /* without success */
    uint64_t missed;        /* since when it is known that a rank has gone on without a call; 0: none has */
    bool foreign;           /* another collective of the same number has been heard of, */
    bool given_up;          /* or that another rank has given it up: */
    uint8_t foreign_operation;
    uint32_t foreign_rank;
    bool is_long;                 /* the data goes in fragments */
    uint32_t fragment, fragments; /* bytes of each; how many this rank takes */
    uint32_t per_item;            /* fragments of an item, where there are several; 0: there is one item */
    uint32_t limit;               /* fragments of items that are ready */
    uint32_t mine;                /* of blocks: how many this rank writes */
    uint32_t free;                /* of this rank's, so many are not needed any more, when last looked at */
    uint32_t counts[TB_BOARD_COUNTERS];
    struct tb_board_line *counters; /* of this rank, where others see these */
    uint64_t slots;                 /* as its cell tells them */
    bool alone;                     /* of reductions: who gets the result makes it of whole fragments */
    bool direct;                    /* this rank's operand is read where it stands: */
    const char *operand;
    uint32_t own_stripe; /* of reductions of blocks: where in a slot this rank's stripe begins */
    uint32_t stripe;     /* of blocks: how much of each goes into a fragment; 0: they are in the cell */
    uint32_t next;       /* rank, counted from this one, whose fragment is to be taken */
    bool heard_long;     /* somebody may wait until this rank has counted */
};

_Static_assert(sizeof(struct tb_common_drive) <= sizeof(union tb_drive_room), "there is room for it");

/* ---- what a step is about ---------------------------------------------------------------------------------------- */

static inline enum tb_composite tb_common_what(const struct tb_common_drive *s)
{
    return (enum tb_composite)s->what;
}

/* Whether it is about blocks. */
static inline bool tb_common_exchanges(const struct tb_common_drive *s)
{
    return s->what >= TB_COMPOSITE_GATHER;
}

static inline bool tb_common_reduces(const struct tb_common_drive *s)
{
    return tb_composite_reduces(tb_common_what(s));
}

/* Whether all ranks have the same data, of which each may reduce a range. */
static inline bool tb_common_shares(const struct tb_common_drive *s)
{
    return s->what == TB_COMPOSITE_REDUCE || s->what == TB_COMPOSITE_ALLREDUCE;
}

/* Whether a rank takes what this one gives, or gives what it takes. */
static inline bool tb_common_gives_to(const struct tb_common_drive *s, uint32_t rank)
{
    return tb_composite_takes(tb_common_what(s), s->root, rank, s->rank);
}

static inline bool tb_common_takes_from(const struct tb_common_drive *s, uint32_t rank)
{
    return tb_composite_takes(tb_common_what(s), s->root, s->rank, rank);
}

static inline bool tb_common_gives(const struct tb_common_drive *s)
{
    bool root = s->rank == s->root;
    switch (tb_common_what(s)) {
    case TB_COMPOSITE_BCAST:
    case TB_COMPOSITE_SCATTER:
        return root;
    case TB_COMPOSITE_GATHER:
        return !root;
    default:
        return s->what != TB_COMPOSITE_BARRIER;
    }
}

static inline bool tb_common_gets(const struct tb_common_drive *s)
{
    return tb_common_takes_from(s, s->root);
}

/* How many ranks, from the first on, this one reduces the data of. */
static inline uint32_t tb_common_operands(const struct tb_common_drive *s)
{
    return s->what == TB_COMPOSITE_SCAN ? s->rank + 1 : s->what == TB_COMPOSITE_EXSCAN ? s->rank : s->size;
}

/* ---- its members on the board ------------------------------------------------------------------------------------ */

/* The rank that a member is on the board, */
static inline uint32_t tb_common_who(const struct tb_common_drive *s, uint32_t member)
{
    return s->who == NULL ? member : s->who[member];
}

/* and on the channel, which the user knows. */
static inline uint32_t tb_common_rank(const struct tb_common_drive *s, uint32_t member)
{
    uint32_t who = tb_common_who(s, member);
    return s->common->ranks == NULL ? who : s->common->ranks[who];
}

static inline struct tb_board_cell *tb_common_cell(const struct tb_common_drive *s, uint32_t member)
{
    return tb_board_cell_of(s->board, tb_common_who(s, member), s->drive.place);
}

static inline uint32_t tb_common_counted(const struct tb_common_drive *s, uint32_t member, enum tb_board_counter which)
{
    return tb_board_counted(s->board, tb_common_who(s, member), which, s->drive.place);
}

/* The word of a cell that tells the slots of fragments. Where there are some, no short data is there, but perhaps the
 * table of blocks. */
static inline _Atomic uint64_t *tb_common_slots(const struct tb_common_drive *s, struct tb_board_cell *cell)
{
    return (_Atomic uint64_t *)(void *)cell->data + (tb_composite_deals(tb_common_what(s)) ? s->size : 0);
}

/* Where a fragment of a member stands. */
static inline char *tb_common_slot(const struct tb_common_drive *s, uint32_t member, uint32_t fragment)
{
    uint64_t slots = atomic_load_explicit(tb_common_slots(s, tb_common_cell(s, member)), memory_order_relaxed);
    return tb_board_slot_of(s->board, tb_common_who(s, member), tb_board_slots_get(slots, fragment));
}

/* ---- cells ------------------------------------------------------------------------------------------------------- */

/* Where blocks are: in a cell a word for each rank, of how long its block is and where in the cell. */
static inline uint64_t tb_block_word(uint64_t length, uint32_t at)
{
    return length << 16 | at;
}

static inline const uint64_t *tb_block_words(const struct tb_board_cell *cell)
{
    return (const uint64_t *)(const void *)cell->data;
}

/* ---- who has gone on without a call ------------------------------------------------------------------------------ */

/* One that is awaited has: whether that was seen so long ago that nothing comes any more that says why. */
bool tb_common_is_missed(struct tb_common_drive *s);
/* When that is next to be asked, of all channels in the list; TB_NEVER: not at all. */
uint64_t tb_common_deadline(const struct tb_list *active);

/* ---- what goes wrong (each tells the story and returns the error) ------------------------------------------------ */

const char *tb_common_name(unsigned what);
/* Another rank's data is not as long as this one expects. */
int tb_common_unlike(const struct tb_common_drive *s, uint32_t rank, uint64_t theirs, uint64_t mine);
/* Another rank (of the channel, not a member) has called another collective. */
int tb_common_different(const struct tb_common_drive *s, uint32_t rank, const char *theirs);
/* What another rank says in its cell is not what this one expects. */
int tb_common_disagreement(const struct tb_common_drive *s, const struct tb_board_cell *cell, uint32_t rank);
/* A rank that is needed has given up. */
int tb_common_abandoned(const struct tb_common_drive *s, uint32_t rank);

#endif
