#include "engine/common_fragment.h"

#include "engine/common_cut.h"
#include "engine/common_place.h"
#include "engine/common_reduce.h"
#include "engine/likely.h"

/* ---- writing and taking ------------------------------------------------------------------------------------------ */

uint32_t tb_common_fragments_write(struct tb_common_drive *s)
{
    uint32_t *wrote = &s->counts[TB_BOARD_WROTE], before = *wrote;
    int slot;
    while (*wrote < s->limit && *wrote - before < TB_COMMON_TURN && (slot = tb_common_slot_take(s)) >= 0) {
        struct tb_part part;
        struct tb_buffer room;
        tb_common_cut_find(s, false, *wrote, &part, &room);
        tb_part_gather(&part, 0, part.length, tb_board_slot_of(s->board, s->board->rank, (uint32_t)slot));
        tb_common_cut_count(s, TB_BOARD_WROTE);
        tb_board_wake(s->board);
    }
    return *wrote - before;
}

static uint32_t long_take(struct tb_common_drive *s, uint32_t there, uint32_t giver)
{
    uint32_t *taken = &s->counts[TB_BOARD_TAKEN], before = *taken;
    while (*taken < s->limit && *taken < there && *taken - before < TB_COMMON_TURN) {
        struct tb_part part;
        struct tb_buffer room;
        tb_common_cut_find(s, true, *taken, &part, &room);
        tb_part_scatter(&part, 0, part.length, tb_common_slot(s, giver, *taken));
        tb_common_cut_count(s, TB_BOARD_TAKEN);
    }
    if (*taken > before)
        tb_board_wake(s->board);
    return *taken - before;
}

uint32_t tb_common_fragments_bcast(struct tb_common_drive *s)
{
    if (tb_common_gives(s))
        return tb_common_fragments_write(s);
    uint32_t there = tb_common_counted(s, s->root, TB_BOARD_WROTE);
    if (TB_UNLIKELY(there == TB_BOARD_FAILED)) {
        s->drive.error = tb_error(TB_ERR_MISMATCH, "%s: the root, rank %u, has given up", tb_common_name(s->what),
                                  tb_common_rank(s, s->root));
        return 0;
    }
    return long_take(s, there, s->root);
}

/* ---- reducing ---------------------------------------------------------------------------------------------------- */

static uint32_t long_fold(struct tb_common_drive *s)
{
    uint32_t *folded = &s->counts[TB_BOARD_FOLDED], before = *folded;
    uint32_t there = tb_common_cut_least(s, TB_BOARD_WROTE, true);
    there = there < s->counts[TB_BOARD_WROTE] ? there : s->counts[TB_BOARD_WROTE];
    while (*folded < there && s->drive.error == TB_OK) {
        s->drive.error = tb_common_reduce_range(s, *folded, tb_common_cut_bytes(s, *folded));
        if (s->drive.error == TB_OK)
            tb_common_cut_count(s, TB_BOARD_FOLDED);
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
        if (rank == s->rank)
            continue;
        uint32_t wrote = tb_common_counted(s, rank, TB_BOARD_WROTE);
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
    while (*taken < s->limit && *taken < there && s->drive.error == TB_OK) {
        s->drive.error = tb_common_reduce_whole(s, *taken, tb_common_cut_bytes(s, *taken));
        if (s->drive.error == TB_OK)
            tb_common_cut_count(s, TB_BOARD_TAKEN);
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
        uint32_t there = tb_common_cut_least(s, TB_BOARD_FOLDED, true);
        there = there < s->counts[TB_BOARD_FOLDED] ? there : s->counts[TB_BOARD_FOLDED];
        if (s->drive.error == TB_OK)
            n += long_take(s, there, s->size - 1);
    }
    return n;
}
