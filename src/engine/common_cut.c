#include "engine/common_cut.h"

#define FRAGMENT_LEAST (4u << 10)
#define FRAGMENTS_GOOD 8u           /* as many as overlap well */
#define ALONE_REDUCE   (512u << 10) /* bytes of all ranks that one reduces alone... */
#define ALONE_EACH     (64u << 10)  /* ...or each of them */
#define BYTES_LIMIT    (1ull << 43) /* of one collective: fragments are counted in 32 bits */

struct tb_common_lengths tb_common_cut_measure(const struct tb_common_drive *s)
{
    const struct tb_step *step = s->drive.step;
    const struct tb_slice *slice = step->slice.count > 0 ? &step->slice : &step->other;
    struct tb_common_lengths items = {0};
    for (uint32_t item = 0; item < step->items; item++) {
        struct tb_part part;
        struct tb_buffer room;
        tb_binding_part(s->drive.binding, s->drive.program, step, slice, item, &part, &room);
        items.all += part.length;
        items.longest = part.length > items.longest ? part.length : items.longest;
    }
    return items;
}

/* How many bytes are a fragment. One that ends with its item may be as long as that. */
static uint32_t fragment_size(const struct tb_common_drive *s, uint64_t item)
{
    uint64_t share = s->drive.step->items > 1 ? item : (s->bytes + FRAGMENTS_GOOD - 1) / FRAGMENTS_GOOD;
    uint64_t fragment = share < FRAGMENT_LEAST ? FRAGMENT_LEAST : share > TB_BOARD_SLOT ? TB_BOARD_SLOT : share;
    fragment = fragment / 64 * 64;
    fragment -= fragment % s->unit;
    if (fragment == 0)
        fragment = s->unit;
    TB_ASSERT(fragment <= TB_BOARD_SLOT && s->bytes < BYTES_LIMIT);
    return (uint32_t)fragment;
}

void tb_common_cut(struct tb_common_drive *s)
{
    uint64_t all = s->bytes * s->size;
    bool several = s->drive.step->items > 1;
    s->alone = tb_common_reduces(s) && (s->size <= 2 || !tb_common_shares(s) ||
                                        all <= (s->what == TB_COMPOSITE_REDUCE ? ALONE_REDUCE : ALONE_EACH));
    /* Its own data need not be copied for itself, unless it stands where the result goes. */
    s->direct = s->alone && !several && tb_common_gets(s) && s->type->dense && s->give.buffer != s->get.buffer;
    s->operand = (const char *)((uintptr_t)s->give.buffer->base + s->give.from);
    uint64_t longest = several ? tb_common_cut_measure(s).longest : s->bytes;
    s->fragment = fragment_size(s, longest);
    uint32_t fragments = (uint32_t)((longest + s->fragment - 1) / s->fragment);
    s->per_item = several ? fragments : 0;
    s->fragments = several ? s->drive.step->items * fragments : fragments;
    tb_common_cut_allow(s);
    bool last = s->rank == s->size - 1;
    if ((s->direct && s->what == TB_COMPOSITE_REDUCE) || (s->direct && last && s->what == TB_COMPOSITE_SCAN) ||
        (last && s->what == TB_COMPOSITE_EXSCAN))
        s->counts[TB_BOARD_WROTE] = s->fragments; /* nobody else reads it */
}

void tb_common_cut_allow(struct tb_common_drive *s)
{
    s->limit = s->drive.ready == s->drive.step->items ? s->fragments : s->drive.ready * s->per_item;
}

void tb_common_cut_find_item(const struct tb_common_drive *s, bool get, uint32_t fragment, struct tb_part *part,
                             struct tb_buffer *room)
{
    const struct tb_step *step = s->drive.step;
    const struct tb_slice *slice = get ? &step->other : &step->slice;
    uint64_t at = (uint64_t)(fragment % s->per_item) * s->fragment;
    tb_binding_part(s->drive.binding, s->drive.program, step, slice, fragment / s->per_item, part, room);
    uint64_t left = part->length > at ? part->length - at : 0;
    part->from += at;
    part->length = left < s->fragment ? left : s->fragment;
}

uint32_t tb_common_cut_items(const struct tb_common_drive *s)
{
    uint32_t least = UINT32_MAX;
    if (tb_common_gives(s))
        least = s->counts[TB_BOARD_WROTE];
    if (tb_common_gets(s) && s->counts[TB_BOARD_TAKEN] < least)
        least = s->counts[TB_BOARD_TAKEN];
    return s->per_item > 0 ? least / s->per_item : 0;
}

/* ---- counting ---------------------------------------------------------------------------------------------------- */

/* How many fragments all others have counted; an error where one has given up and is needed. */
uint32_t tb_common_cut_least(struct tb_common_drive *s, enum tb_board_counter which, bool needed)
{
    uint32_t least = UINT32_MAX;
    for (uint32_t rank = 0; rank < s->size; rank++) {
        if (rank == s->rank)
            continue;
        uint32_t counted = tb_common_counted(s, rank, which);
        if (TB_UNLIKELY(counted == TB_BOARD_FAILED && needed)) {
            s->drive.error = tb_common_abandoned(s, rank);
            return 0;
        }
        least = counted < least ? counted : least;
    }
    return least;
}

/* Fragments that those who get what this rank gives have taken, so that later ones may come in their place. */
static uint32_t fragments_taken(struct tb_common_drive *s)
{
    uint32_t least = UINT32_MAX;
    for (uint32_t rank = 0; rank < s->size; rank++) {
        bool own = rank == s->rank;
        if (!tb_common_gives_to(s, rank) || (own && !tb_common_reduces(s)))
            continue;
        uint32_t taken = own ? s->counts[TB_BOARD_TAKEN] : tb_common_counted(s, rank, TB_BOARD_TAKEN);
        if (own && taken == s->fragments)
            continue;
        if (TB_UNLIKELY(taken == TB_BOARD_FAILED && s->what == TB_COMPOSITE_ALLREDUCE)) {
            s->drive.error = tb_common_abandoned(s, rank);
            return 0;
        }
        least = taken < least ? taken : least;
    }
    return least;
}

uint32_t tb_common_cut_free(struct tb_common_drive *s)
{
    if (!tb_common_shares(s) || s->alone || s->rank == s->size - 1)
        return fragments_taken(s);
    uint32_t least = tb_common_cut_least(s, TB_BOARD_FOLDED, true);
    return least < s->counts[TB_BOARD_FOLDED] ? least : s->counts[TB_BOARD_FOLDED];
}
