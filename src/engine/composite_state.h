/* One composite step on its way: what it is about, how far it is, and what can go wrong in it. It belongs to whoever
 * runs the step, and is touched with the engine locked. */
#ifndef TB_ENGINE_COMPOSITE_STATE_H
#define TB_ENGINE_COMPOSITE_STATE_H

#include "engine/channel.h"
#include "engine/engine.h"
#include "engine/part.h"

/* The first part is set before the start. */
struct tb_composite_state {
    uint8_t what;      /* enum tb_composite */
    uint8_t operation; /* of the collective, and its number on the channel */
    uint32_t collective;
    uint32_t root;
    uint64_t bytes, unit;       /* to be given or got; what must not be cut */
    struct tb_part give, get;   /* where that is asked for; of blocks, all of them, and only of reductions */
    struct tb_buffer rooms[2];  /* that these may refer to */
    const struct tb_type *type; /* of reductions */
    const struct tb_op *op;
    const struct tb_binding *binding; /* of blocks */
    const struct tb_program *program;
    const struct tb_step *step;
    void (*complete)(struct tb_composite_state *s); /* not if it is finished at once */
    int error;                                      /* when finished */

    uint8_t stage;
    struct tb_list in_line;
    struct tb_channel *channel;
    struct tb_board *board;
    uint64_t number;
    uint32_t called;  /* ranks before this one have called the same */
    uint32_t awaited; /* of these, those that this rank has waited for */
    uint32_t looks;   /* without success */
    bool foreign;     /* another collective of the same number has been heard of, */
    bool given_up;    /* or that another rank has given it up: */
    uint8_t foreign_operation;
    uint32_t foreign_rank;
    uint32_t fragment, fragments; /* bytes of each; how many this rank takes */
    uint32_t mine;                /* of blocks: how many this rank writes */
    uint32_t slot;                /* of this rank's first one */
    uint32_t free;                /* fragments that fit into this rank's slots, when last looked at */
    uint32_t counts[TB_BOARD_COUNTERS];
    bool alone;  /* of reductions: who gets the result makes it of whole fragments */
    bool direct; /* this rank's operand is read where it stands: */
    const char *operand;
    uint32_t own_stripe; /* of reductions of blocks: where in a slot this rank's stripe begins */
    uint32_t stripe;     /* of blocks: how much of each goes into a fragment; 0: they are in the cell */
    uint32_t next;       /* rank, counted from this one, whose fragment is to be taken */
    bool heard_long;     /* somebody may wait until this rank has counted */
};

/* ---- what a step is about ---------------------------------------------------------------------------------------- */

static inline enum tb_composite tb_state_what(const struct tb_composite_state *s)
{
    return (enum tb_composite)s->what;
}

/* Whether it is about blocks. */
static inline bool tb_state_exchanges(const struct tb_composite_state *s)
{
    return s->what >= TB_COMPOSITE_GATHER;
}

static inline bool tb_state_reduces(const struct tb_composite_state *s)
{
    return tb_composite_reduces(tb_state_what(s));
}

/* Whether all ranks have the same data, of which each may reduce a range. */
static inline bool tb_state_is_common(const struct tb_composite_state *s)
{
    return s->what == TB_COMPOSITE_REDUCE || s->what == TB_COMPOSITE_ALLREDUCE;
}

static inline bool tb_state_is_long(const struct tb_composite_state *s)
{
    return tb_state_exchanges(s) ? s->stripe > 0 : s->bytes > TB_BOARD_SHORT;
}

/* Whether a rank takes what this one gives, or gives what it takes. */
static inline bool tb_state_gives_to(const struct tb_composite_state *s, uint32_t rank)
{
    return tb_composite_takes(tb_state_what(s), s->root, rank, s->board->rank);
}

static inline bool tb_state_takes_from(const struct tb_composite_state *s, uint32_t rank)
{
    return tb_composite_takes(tb_state_what(s), s->root, s->board->rank, rank);
}

static inline bool tb_state_gives(const struct tb_composite_state *s)
{
    bool root = s->board->rank == s->root;
    switch (tb_state_what(s)) {
    case TB_COMPOSITE_BCAST:
    case TB_COMPOSITE_SCATTER:
        return root;
    case TB_COMPOSITE_GATHER:
        return !root;
    default:
        return s->what != TB_COMPOSITE_BARRIER;
    }
}

static inline bool tb_state_gets(const struct tb_composite_state *s)
{
    return tb_state_takes_from(s, s->root);
}

/* How many ranks, from the first on, this one reduces the data of. */
static inline uint32_t tb_state_operands(const struct tb_composite_state *s)
{
    return s->what == TB_COMPOSITE_SCAN     ? s->board->rank + 1
           : s->what == TB_COMPOSITE_EXSCAN ? s->board->rank
                                            : s->board->size;
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

/* ---- what goes wrong (each tells the story and returns the error) ------------------------------------------------ */

const char *tb_composite_name(unsigned what);
/* Another rank's data is not as long as this one expects. */
int tb_composite_unlike(const struct tb_composite_state *s, uint32_t rank, uint64_t theirs, uint64_t mine);
/* Another rank has called another collective. */
int tb_composite_different(const struct tb_composite_state *s, uint32_t rank, const char *theirs);
/* What another rank says in its cell is not what this one expects. */
int tb_composite_disagreement(const struct tb_composite_state *s, const struct tb_board_cell *cell, uint32_t rank);
/* A rank that is needed has given up. */
int tb_composite_abandoned(const struct tb_composite_state *s, uint32_t rank);

#endif
