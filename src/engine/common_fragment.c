#include "engine/common_fragment.h"

#include "engine/common_reduce.h"
#include "engine/likely.h"

#define FRAGMENT_LEAST (4u << 10)
#define FRAGMENTS_GOOD 8u           /* as many as overlap well */
#define ALONE_REDUCE   (512u << 10) /* bytes of all ranks that one reduces alone... */
#define ALONE_EACH     (64u << 10)  /* ...or each of them */
#define BYTES_LIMIT    (1ull << 43) /* of one collective: fragments are counted in 32 bits */

void tb_common_fragments_cut(struct tb_common_drive *s)
{
    uint64_t all = s->bytes * s->board->size;
    s->alone = tb_common_reduces(s) && (s->board->size == 2 || !tb_common_shares(s) ||
                                        all <= (s->what == TB_COMPOSITE_REDUCE ? ALONE_REDUCE : ALONE_EACH));
    /* Its own data need not be copied for itself, unless it stands where the result goes. */
    s->direct = s->alone && tb_common_gets(s) && s->type->dense && s->give.buffer != s->get.buffer;
    s->operand = (const char *)((uintptr_t)s->give.buffer->base + s->give.from);
    uint64_t share = (s->bytes + FRAGMENTS_GOOD - 1) / FRAGMENTS_GOOD;
    uint64_t fragment = share < FRAGMENT_LEAST ? FRAGMENT_LEAST : share > TB_BOARD_SLOT ? TB_BOARD_SLOT : share;
    fragment = fragment / 64 * 64;
    fragment -= fragment % s->unit;
    if (fragment == 0)
        fragment = s->unit;
    TB_ASSERT(fragment <= TB_BOARD_SLOT && s->bytes < BYTES_LIMIT);
    s->fragment = (uint32_t)fragment;
    s->fragments = (uint32_t)((s->bytes + fragment - 1) / fragment);
    bool last = s->board->rank == s->board->size - 1;
    if ((s->direct && s->what == TB_COMPOSITE_REDUCE) || (s->direct && last && s->what == TB_COMPOSITE_SCAN) ||
        (last && s->what == TB_COMPOSITE_EXSCAN))
        s->counts[TB_BOARD_WROTE] = s->fragments; /* nobody else reads it */
}

static uint32_t fragment_bytes(const struct tb_common_drive *s, uint32_t fragment)
{
    uint64_t left = s->bytes - (uint64_t)fragment * s->fragment;
    return left < s->fragment ? (uint32_t)left : s->fragment;
}

/* ---- counting ---------------------------------------------------------------------------------------------------- */

/* How many fragments all others have counted; an error where one has given up and is needed. */
static uint32_t counted_least(struct tb_common_drive *s, enum tb_board_counter which, bool needed)
{
    uint32_t least = UINT32_MAX;
    for (uint32_t rank = 0; rank < s->board->size; rank++) {
        if (rank == s->board->rank)
            continue;
        uint32_t counted = tb_board_counted(s->board, rank, which, s->drive.place);
        if (TB_UNLIKELY(counted == TB_BOARD_FAILED && needed)) {
            s->drive.error = tb_common_abandoned(s, rank);
            return 0;
        }
        least = counted < least ? counted : least;
    }
    return least;
}

void tb_common_fragments_count(struct tb_common_drive *s, enum tb_board_counter which)
{
    tb_board_count(s->board, which, s->drive.place, ++s->counts[which]);
}

/* Fragments that those who get what this rank gives have taken, so that later ones may come in their place. */
static uint32_t fragments_taken(struct tb_common_drive *s)
{
    uint32_t least = UINT32_MAX;
    for (uint32_t rank = 0; rank < s->board->size; rank++) {
        bool own = rank == s->board->rank;
        if (!tb_common_gives_to(s, rank) || (own && !tb_common_reduces(s)))
            continue;
        uint32_t taken =
            own ? s->counts[TB_BOARD_TAKEN] : tb_board_counted(s->board, rank, TB_BOARD_TAKEN, s->drive.place);
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

bool tb_common_fragments_slot_free(struct tb_common_drive *s)
{
    uint32_t next = s->counts[TB_BOARD_WROTE];
    if (next < TB_BOARD_SLOTS)
        return tb_board_all_done(s->board, s->board->filled[(s->slot + next) % TB_BOARD_SLOTS]);
    if (next < s->free)
        return true;
    uint32_t least;
    if (!tb_common_shares(s) || s->alone) {
        least = fragments_taken(s);
    } else {
        least = counted_least(s, TB_BOARD_FOLDED, true);
        least = least < s->counts[TB_BOARD_FOLDED] ? least : s->counts[TB_BOARD_FOLDED];
    }
    s->free = least < UINT32_MAX - TB_BOARD_SLOTS ? least + TB_BOARD_SLOTS : UINT32_MAX;
    return next < s->free && s->drive.error == TB_OK;
}

/* ---- writing and taking ------------------------------------------------------------------------------------------ */

uint32_t tb_common_fragments_write(struct tb_common_drive *s)
{
    uint32_t *wrote = &s->counts[TB_BOARD_WROTE], before = *wrote;
    while (*wrote < s->fragments && *wrote - before < TB_COMMON_TURN && tb_common_fragments_slot_free(s)) {
        uint32_t slot = (s->slot + *wrote) % TB_BOARD_SLOTS;
        tb_part_gather(&s->give, (uint64_t)*wrote * s->fragment, fragment_bytes(s, *wrote),
                       tb_board_slot_of(s->board, s->board->rank, slot));
        s->board->filled[slot] = s->drive.place + 1;
        tb_common_fragments_count(s, TB_BOARD_WROTE);
        tb_board_wake(s->board);
    }
    return *wrote - before;
}

static uint32_t long_take(struct tb_common_drive *s, uint32_t there, bool result)
{
    uint32_t *taken = &s->counts[TB_BOARD_TAKEN], before = *taken;
    uint32_t first = tb_board_cell_of(s->board, s->root, s->drive.place)->slot;
    while (*taken < s->fragments && *taken < there && *taken - before < TB_COMMON_TURN) {
        const char *from =
            result ? tb_board_result_of(s->board, *taken) : tb_board_slot_of(s->board, s->root, first + *taken);
        tb_part_scatter(&s->get, (uint64_t)*taken * s->fragment, fragment_bytes(s, *taken), from);
        tb_common_fragments_count(s, TB_BOARD_TAKEN);
    }
    if (*taken > before)
        tb_board_wake(s->board);
    return *taken - before;
}

uint32_t tb_common_fragments_bcast(struct tb_common_drive *s)
{
    if (tb_common_gives(s))
        return tb_common_fragments_write(s);
    uint32_t there = tb_board_counted(s->board, s->root, TB_BOARD_WROTE, s->drive.place);
    if (TB_UNLIKELY(there == TB_BOARD_FAILED)) {
        s->drive.error =
            tb_error(TB_ERR_MISMATCH, "%s: the root, rank %u, has given up", tb_common_name(s->what), s->root);
        return 0;
    }
    return long_take(s, there, false);
}

/* ---- reducing ---------------------------------------------------------------------------------------------------- */

static uint32_t long_fold(struct tb_common_drive *s)
{
    uint32_t *folded = &s->counts[TB_BOARD_FOLDED], before = *folded;
    uint32_t there = counted_least(s, TB_BOARD_WROTE, true);
    there = there < s->counts[TB_BOARD_WROTE] ? there : s->counts[TB_BOARD_WROTE];
    while (*folded < there && s->drive.error == TB_OK) {
        if (*folded >= TB_BOARD_SLOTS && *folded - TB_BOARD_SLOTS >= fragments_taken(s))
            break;
        s->drive.error = tb_common_reduce_range(s, *folded, fragment_bytes(s, *folded));
        if (s->drive.error == TB_OK)
            tb_common_fragments_count(s, TB_BOARD_FOLDED);
    }
    if (*folded > before)
        tb_board_wake(s->board);
    return *folded - before;
}

/* Fragments that are there of all ranks whose data this one reduces. */
static uint32_t operands_there(struct tb_common_drive *s)
{
    uint32_t least = s->direct ? UINT32_MAX : s->counts[TB_BOARD_WROTE]; /* in place the result goes there, too */
    for (uint32_t rank = 0; rank < tb_common_operands(s); rank++) {
        if (rank == s->board->rank)
            continue;
        uint32_t wrote = tb_board_counted(s->board, rank, TB_BOARD_WROTE, s->drive.place);
        if (TB_UNLIKELY(wrote == TB_BOARD_FAILED)) {
            s->drive.error = tb_common_abandoned(s, rank);
            return 0;
        }
        least = wrote < least ? wrote : least;
    }
    return least;
}

uint32_t tb_common_fragments_fold_alone(struct tb_common_drive *s)
{
    uint32_t *taken = &s->counts[TB_BOARD_TAKEN], before = *taken;
    uint32_t there = operands_there(s);
    while (*taken < s->fragments && *taken < there && s->drive.error == TB_OK) {
        s->drive.error = tb_common_reduce_whole(s, *taken, fragment_bytes(s, *taken));
        if (s->drive.error == TB_OK)
            tb_common_fragments_count(s, TB_BOARD_TAKEN);
    }
    if (*taken > before)
        tb_board_wake(s->board);
    return *taken - before;
}

uint32_t tb_common_fragments_reduce(struct tb_common_drive *s)
{
    uint32_t n = tb_common_fragments_write(s);
    if (s->drive.error == TB_OK && s->alone)
        return n + (tb_common_gets(s) ? tb_common_fragments_fold_alone(s) : 0);
    if (s->drive.error == TB_OK)
        n += long_fold(s);
    if (s->drive.error == TB_OK && tb_common_gets(s) && s->counts[TB_BOARD_TAKEN] < s->counts[TB_BOARD_FOLDED]) {
        uint32_t there = counted_least(s, TB_BOARD_FOLDED, true);
        there = there < s->counts[TB_BOARD_FOLDED] ? there : s->counts[TB_BOARD_FOLDED];
        if (s->drive.error == TB_OK)
            n += long_take(s, there, true);
    }
    return n;
}
