#include "engine/common_exchange.h"

#include "engine/binding.h"
#include "engine/common_cut.h"
#include "engine/common_fragment.h"
#include "engine/common_place.h"
#include "engine/likely.h"

#define FRAGMENT_LEAST (8u << 10)
#define FRAGMENTS_GOOD 8u           /* as many as overlap well */
#define BYTES_LIMIT    (1ull << 47) /* of a block: its length stands in 48 bits */
#define ALIGNMENT      16u          /* of blocks in a cell: that of any element */

_Static_assert(TB_COMMON_ROW <= TB_BOARD_SLOT, "an element of each block fits into a slot");
_Static_assert((TB_COMMON_DEALS + 1) * sizeof(uint64_t) <= TB_BOARD_SHORT, "a cell has room for the table and slots");

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

struct block {
    struct tb_part part;
    struct tb_buffer room;
};

static inline void block_find(const struct tb_common_drive *s, const struct tb_slice *slice, uint32_t at,
                              struct tb_part *part, struct tb_buffer *room)
{
    const struct tb_binding *binding = s->drive.binding;
    const struct tb_buffer *one = &binding->buffers[slice->symbol];
    if (TB_LIKELY(binding->cuts[slice->symbol] == TB_CUT_BLOCKS &&
                  s->drive.program->parts == 1)) { /* the usual, at once */
        uint64_t before = tb_slice_piece(s->drive.program, slice, at) * one->count;
        *room = (struct tb_buffer){(char *)((uintptr_t)one->base + before * (uint64_t)one->type->extent), one->count,
                                   one->type};
        *part = (struct tb_part){room, 0, tb_buffer_bytes(one)};
        return;
    }
    tb_binding_block(s->drive.binding, s->drive.program, slice, at, part, room);
}

/* What this rank gives to another. What it gives to all stands in `give` of the drive. */
static void block_given(const struct tb_common_drive *s, uint32_t to, struct block *b)
{
    block_find(s, &s->drive.step->slice, tb_composite_deals(tb_common_what(s)) ? to : 0, &b->part, &b->room);
}

static void block_got(const struct tb_common_drive *s, uint32_t from, struct block *b)
{
    block_find(s, &s->drive.step->other, tb_composite_collects(tb_common_what(s)) ? from : 0, &b->part, &b->room);
}

/* Whether the block for a rank goes through the board. */
static bool deals_to(const struct tb_common_drive *s, uint32_t to)
{
    if (to == s->rank)
        return tb_common_reduces(s) && !s->direct;
    return tb_common_gives_to(s, to);
}

/* Of the stripes in a fragment that is given by `from`. */
static uint32_t stripe_number(const struct tb_common_drive *s, uint32_t from, uint32_t to)
{
    if (!tb_composite_deals(tb_common_what(s)))
        return 0;
    return tb_common_reduces(s) || to < from ? to : to - 1;
}

static uint64_t aligned(uint64_t at)
{
    return (at + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

/* How wide: stripes of all fit into a slot, and a cut is between elements. */
static uint32_t stripe_width(const struct tb_common_drive *s, uint64_t longest)
{
    uint32_t all = !tb_composite_deals(tb_common_what(s)) ? 1 : s->size - (tb_common_reduces(s) ? 0 : 1);
    TB_ASSERT(all > 0);
    uint64_t most = TB_BOARD_SLOT / all, least = FRAGMENT_LEAST / all;
    uint64_t width = (longest + FRAGMENTS_GOOD - 1) / FRAGMENTS_GOOD;
    width = width < least ? least : width > most ? most : width;
    width = width >= 64 ? width / 64 * 64 : width;
    width -= width % s->unit;
    return (uint32_t)(width > 0 ? width : s->unit);
}

static int too_long(const struct tb_common_drive *s, uint64_t length)
{
    return tb_error(TB_ERR_LIMIT, "%s: a block of %llu bytes is more than common memory can count",
                    tb_operation_name(s->operation), (unsigned long long)length);
}

/* This rank's own operand can be read where it stands, unless the result goes there. */
static void reduction_open(struct tb_common_drive *s)
{
    struct block own;
    block_given(s, s->rank, &own);
    s->type = own.part.buffer->type;
    s->bytes = own.part.length;
    s->alone = true;
    s->direct = s->type->dense && s->get.buffer->base != s->give.buffer->base;
    s->operand = (char *)((uintptr_t)own.part.buffer->base + own.part.from);
}

int tb_common_exchange_open(struct tb_common_drive *s)
{
    bool deals = tb_composite_deals(tb_common_what(s)), reduces = tb_common_reduces(s);
    uint64_t longest = 0, room = deals ? aligned(s->size * sizeof(uint64_t)) : 0;
    s->stripe = s->mine = s->next = s->fragments = 0;
    if (reduces)
        reduction_open(s);
    for (uint32_t to = 0; to < s->size && s->drive.step->slice.count > 0; to++) {
        struct block block;
        if (!tb_common_gives_to(s, to) || (to == s->rank && !reduces))
            continue;
        struct tb_part *part = deals ? &block.part : &s->give;
        block_find(s, &s->drive.step->slice, deals ? to : 0, part, deals ? &block.room : &s->rooms[0]);
        longest = part->length > longest ? part->length : longest;
        if (part->length > BYTES_LIMIT)
            return too_long(s, part->length);
        room += aligned(part->length);
        if (!deals) {
            s->bytes = part->length;
            break;
        }
    }
    if (longest > 0 && room > TB_BOARD_SHORT) {
        s->stripe = stripe_width(s, longest);
        if (longest / s->stripe >= TB_BOARD_PASSED - TB_BOARD_SLOTS) /* stripes are narrow where ranks are many */
            return too_long(s, longest);
        s->mine = (uint32_t)((longest + s->stripe - 1) / s->stripe);
    }
    if (reduces && s->stripe > 0) {
        s->fragment = s->stripe;
        s->own_stripe = s->rank * s->stripe;
        s->fragments = (uint32_t)((s->bytes + s->stripe - 1) / s->stripe);
    }
    s->is_long = s->stripe > 0;
    s->limit = s->fragments;
    return TB_OK;
}

/* ---- calling ----------------------------------------------------------------------------------------------------- */

void tb_common_exchange_own(struct tb_common_drive *s)
{
    struct block given, got;
    struct tb_spans from, to;
    uint32_t rank = s->rank;
    if (!tb_common_takes_from(s, rank) || s->drive.step->other.count == 0)
        return;
    block_given(s, rank, &given);
    block_got(s, rank, &got);
    if (TB_UNLIKELY(given.part.length != got.part.length)) {
        s->drive.error =
            tb_error(given.part.length > got.part.length ? TB_ERR_TRUNCATE : TB_ERR_MISMATCH,
                     "%s: this rank gives itself %llu bytes where it expects %llu", tb_operation_name(s->operation),
                     (unsigned long long)given.part.length, (unsigned long long)got.part.length);
        return;
    }
    /* At one address, data of another type is other data. */
    bool in_place = given.part.buffer->base == got.part.buffer->base && given.part.from == got.part.from &&
                    given.part.buffer->type == got.part.buffer->type;
    if (tb_common_reduces(s) || in_place || given.part.length == 0)
        return;
    tb_buffer_spans(given.part.buffer, given.part.from, given.part.length, &from);
    tb_buffer_spans(got.part.buffer, got.part.from, got.part.length, &to);
    tb_spans_move(&from, &to);
}

static void blocks_put(const struct tb_common_drive *s, struct tb_board_cell *cell)
{
    uint64_t *words = (uint64_t *)(void *)cell->data;
    uint32_t at = (uint32_t)(s->size * sizeof *words);
    for (uint32_t to = 0; to < s->size; to++) {
        struct block block;
        words[to] = 0;
        if (!deals_to(s, to))
            continue;
        block_given(s, to, &block);
        at = (uint32_t)aligned(at);
        words[to] = tb_block_word(block.part.length, at);
        if (s->stripe > 0 || block.part.length == 0)
            continue;
        tb_part_gather(&block.part, 0, block.part.length, cell->data + at);
        at += (uint32_t)block.part.length;
    }
}

void tb_common_exchange_call(struct tb_common_drive *s, struct tb_board_cell *cell)
{
    cell->stripe = s->stripe;
    if (tb_composite_deals(tb_common_what(s))) {
        blocks_put(s, cell);
    } else if (s->stripe == 0 && s->bytes > 0) {
        tb_part_gather(&s->give, 0, s->bytes, cell->data);
    }
}

/* ---- getting ----------------------------------------------------------------------------------------------------- */

void tb_common_exchange_hear(struct tb_common_drive *s, const struct tb_board_cell *cell, uint32_t rank)
{
    bool deals = tb_composite_deals(tb_common_what(s)), reduces = tb_common_reduces(s);
    uint64_t word = deals ? tb_block_words(cell)[s->rank] : 0, theirs = deals ? word >> 16 : cell->bytes;
    struct block block;
    block_got(s, rank, &block);
    if (TB_UNLIKELY(theirs != block.part.length || (reduces && cell->stripe != s->stripe))) {
        s->drive.error = tb_common_unlike(s, rank, theirs, block.part.length);
        return;
    }
    if (cell->stripe > 0) {
        uint32_t fragments = (uint32_t)((theirs + cell->stripe - 1) / cell->stripe);
        s->fragments = fragments > s->fragments ? fragments : s->fragments;
        s->heard_long = true;
    } else if (!reduces && theirs > 0) {
        tb_part_scatter(&block.part, 0, theirs, cell->data + (deals ? word & UINT16_MAX : 0));
    }
}

/* ---- long blocks ------------------------------------------------------------------------------------------------- */

static void stripe_write(const struct tb_common_drive *s, const struct tb_part *part, uint64_t at, char *to)
{
    if (at >= part->length)
        return;
    uint64_t left = part->length - at;
    tb_part_gather(part, at, left < s->stripe ? left : s->stripe, to);
}

static void fragment_write(struct tb_common_drive *s, uint32_t fragment, char *slot)
{
    uint64_t at = (uint64_t)fragment * s->stripe;
    if (!tb_composite_deals(tb_common_what(s))) {
        stripe_write(s, &s->give, at, slot);
        return;
    }
    for (uint32_t to = 0; to < s->size; to++) {
        struct block block;
        if (!deals_to(s, to))
            continue;
        block_given(s, to, &block);
        stripe_write(s, &block.part, at, slot + (size_t)stripe_number(s, s->rank, to) * s->stripe);
    }
}

uint32_t tb_common_exchange_write(struct tb_common_drive *s)
{
    uint32_t *wrote = &s->counts[TB_BOARD_WROTE], before = *wrote;
    int slot;
    while (*wrote < s->mine && *wrote - before < TB_COMMON_TURN && (slot = tb_common_slot_take(s)) >= 0) {
        fragment_write(s, *wrote, tb_board_slot_of(s->board, s->board->rank, (uint32_t)slot));
        tb_common_cut_count(s, TB_BOARD_WROTE);
        tb_board_wake(s->board);
    }
    return *wrote - before;
}

/* What a rank has put into a fragment for this one; false: it is not there yet. */
static bool fragment_take(struct tb_common_drive *s, uint32_t rank, uint32_t fragment)
{
    const struct tb_board_cell *cell = tb_common_cell(s, rank);
    uint64_t at = (uint64_t)fragment * cell->stripe;
    struct block block;
    block_got(s, rank, &block);
    if (cell->stripe == 0 || at >= block.part.length)
        return true;
    uint32_t there = tb_common_counted(s, rank, TB_BOARD_WROTE);
    if (TB_UNLIKELY(there == TB_BOARD_FAILED)) {
        s->drive.error = tb_common_abandoned(s, rank);
        return false;
    }
    /* In place this goes where the same fragment for that rank comes from. */
    bool held = s->drive.step->slice.symbol == s->drive.step->other.symbol && tb_composite_deals(tb_common_what(s)) &&
                s->counts[TB_BOARD_WROTE] <= fragment && s->counts[TB_BOARD_WROTE] < s->mine;
    if (there <= fragment || held)
        return false;
    uint64_t left = block.part.length - at;
    const char *slot = tb_common_slot(s, rank, fragment);
    tb_part_scatter(&block.part, at, left < cell->stripe ? left : cell->stripe,
                    slot + (size_t)stripe_number(s, rank, s->rank) * cell->stripe);
    return true;
}

uint32_t tb_common_exchange_take(struct tb_common_drive *s)
{
    uint32_t *taken = &s->counts[TB_BOARD_TAKEN], before = *taken, size = s->size;
    while (*taken < s->fragments && *taken - before < TB_COMMON_TURN) {
        /* Everyone begins with the next rank. */
        for (; s->next < size - 1; s->next++) {
            uint32_t rank = (s->rank + 1 + s->next) % size;
            if (tb_common_takes_from(s, rank) && !fragment_take(s, rank, *taken))
                break;
        }
        if (s->next < size - 1)
            break;
        s->next = 0;
        tb_common_cut_count(s, TB_BOARD_TAKEN);
    }
    if (*taken > before)
        tb_board_wake(s->board);
    return *taken - before;
}

bool tb_common_exchange_complete(const struct tb_common_drive *s)
{
    return s->counts[TB_BOARD_WROTE] == s->mine && s->counts[TB_BOARD_TAKEN] == s->fragments;
}
