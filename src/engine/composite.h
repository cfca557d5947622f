/* What the drivers of composite steps share: composite.c has the state machine, and steps with data for all; exchange.c
 * those with blocks. Everything here is called with the engine locked. */
#ifndef TB_ENGINE_COMPOSITE_H
#define TB_ENGINE_COMPOSITE_H

#include "engine/engine_state.h"

#define TB_FRAGMENTS_TURN 16u /* dealt with before others get their turn */

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

/* Whether a rank takes what this one gives, or gives what it takes. */
static inline bool tb_state_gives_to(const struct tb_composite_state *s, uint32_t rank)
{
    return tb_composite_takes(tb_state_what(s), s->root, rank, s->board->rank);
}

static inline bool tb_state_takes_from(const struct tb_composite_state *s, uint32_t rank)
{
    return tb_composite_takes(tb_state_what(s), s->root, s->board->rank, rank);
}

static inline void tb_part_gather(const struct tb_part *part, uint64_t at, uint64_t length, void *to)
{
    struct tb_spans spans;
    tb_buffer_spans(part->buffer, part->from + at, length, &spans);
    tb_spans_gather(&spans, to, length);
}

static inline void tb_part_scatter(const struct tb_part *part, uint64_t at, uint64_t length, const void *from)
{
    struct tb_spans spans;
    tb_buffer_spans(part->buffer, part->from + at, length, &spans);
    tb_spans_scatter(&spans, from, length);
}

const char *tb_composite_name(unsigned what);
/* Another rank's data is not as long as this one expects; the error is returned. */
int tb_composite_unlike(const struct tb_composite_state *s, uint32_t rank, uint64_t theirs, uint64_t mine);
void tb_state_count(struct tb_composite_state *s, enum tb_board_counter which);
/* Whether the slot of the next fragment is free. */
bool tb_state_slot_free(struct tb_composite_state *s);

/* ---- blocks (exchange.c) ----------------------------------------------------------------------------------------- */

/* Where blocks are: in a cell a word for each rank, of how long its block is and where in the cell. */
static inline uint64_t tb_block_word(uint64_t length, uint32_t at)
{
    return length << 16 | at;
}

static inline const uint64_t *tb_block_words(const struct tb_board_cell *cell)
{
    return (const uint64_t *)(const void *)cell->data;
}

/* At the start: how long the blocks of this rank are, and how they are cut. An error: that is more than can be counted.
 */
int tb_exchange_open(struct tb_composite_state *s);
/* Puts the blocks, if they are short, or what must be known about them into this rank's cell. */
void tb_exchange_call(struct tb_composite_state *s, struct tb_board_cell *cell);
/* Moves the block that this rank gives to itself, which must be as long as it expects. */
void tb_exchange_own(struct tb_composite_state *s);
/* A rank from which this one takes has called: its block is taken if it is there. */
void tb_exchange_hear(struct tb_composite_state *s, const struct tb_board_cell *cell, uint32_t rank);
/* Long blocks. How much was done. */
uint32_t tb_exchange_write(struct tb_composite_state *s);
uint32_t tb_exchange_take(struct tb_composite_state *s);
bool tb_exchange_complete(const struct tb_composite_state *s);

#endif
