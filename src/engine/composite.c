/* Composite steps through common memory: barrier, broadcast, reductions and, in exchange.c, whatever is about blocks,
 * among ranks that share a board (see transport/shm/board.h). Each is a state machine that is advanced by progress;
 * those of one channel are carried out one after the other in the order of their start, which is the same on all ranks.
 * A program must therefore have its composite step where nothing delays it.
 *
 * Short data goes through cells: whoever gives writes it, whoever gets reads it, and reductions are made by everyone
 * who gets the result. Long data is cut into fragments that go through slots. A broadcast's root fills its slots as the
 * slowest reader empties them. In reductions everyone fills its own slots. Whoever gets the result reduces them alone,
 * if that is little work; otherwise of each fragment every rank reduces a range into the board's results, from which
 * the others copy it, which takes all of them twice. All reduce as x0 op (x1 op (... op xn)), so that order
 * matters and all have the same result.
 *
 * Nobody waits for a rank that has given up, since it says so in its cell and its counters. */
#include "engine/composite.h"

#include <stdlib.h>

#define FRAGMENT_LEAST (4u << 10)
#define FRAGMENTS_GOOD 8u           /* as many as overlap well */
#define LOOKS_PATIENCE 32u          /* before it is asked whether the other has passed by */
#define LOOKS_IDLE     24u          /* of a caller that has nothing else to do */
#define ARRIVALS_LOOK  256          /* that may belong to another collective of the same number */
#define ALONE_REDUCE   (512u << 10) /* bytes of all ranks that one reduces alone... */
#define ALONE_EACH     (64u << 10)  /* ...or each of them */
#define BLOCK_BYTES    (64u << 10)  /* of memory for items with gaps, unless one item is larger */
#define BYTES_LIMIT    (1ull << 43) /* of one collective: fragments are counted in 32 bits */

enum stage { STAGE_OPEN, STAGE_CALLED, STAGE_AGREED };

const char *tb_composite_name(unsigned what)
{
    static const enum tb_operation operations[TB_COMPOSITE_COUNT] = {
        TB_OPERATION_BARRIER, TB_OPERATION_BCAST,    TB_OPERATION_REDUCE,        TB_OPERATION_ALLREDUCE,
        TB_OPERATION_SCAN,    TB_OPERATION_EXSCAN,   TB_OPERATION_GATHER,        TB_OPERATION_ALLGATHER,
        TB_OPERATION_SCATTER, TB_OPERATION_ALLTOALL, TB_OPERATION_REDUCE_SCATTER};
    return what < TB_COMPOSITE_COUNT ? tb_operation_name(operations[what]) : "nothing known";
}

/* Whether all ranks have the same data, of which each may reduce a range. */
static bool is_common(const struct tb_composite_state *s)
{
    return s->what == TB_COMPOSITE_REDUCE || s->what == TB_COMPOSITE_ALLREDUCE;
}

static bool is_long(const struct tb_composite_state *s)
{
    return tb_state_exchanges(s) ? s->stripe > 0 : s->bytes > TB_BOARD_SHORT;
}

static bool gives(const struct tb_composite_state *s)
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

static bool gets(const struct tb_composite_state *s)
{
    return tb_composite_takes(tb_state_what(s), s->root, s->board->rank, s->root);
}

/* Whether this rank waits until the other has called. */
static bool awaits(const struct tb_composite_state *s, uint32_t rank)
{
    if (rank == s->board->rank)
        return false;
    return tb_state_takes_from(s, rank) || s->what == TB_COMPOSITE_BARRIER ||
           (s->what == TB_COMPOSITE_REDUCE && is_long(s) && !s->alone);
}

/* How many ranks, from the first on, this one reduces the data of. */
static uint32_t operand_count(const struct tb_composite_state *s)
{
    return s->what == TB_COMPOSITE_SCAN     ? s->board->rank + 1
           : s->what == TB_COMPOSITE_EXSCAN ? s->board->rank
                                            : s->board->size;
}

/* ---- fragments --------------------------------------------------------------------------------------------------- */

static void fragments_cut(struct tb_composite_state *s)
{
    uint64_t all = s->bytes * s->board->size;
    s->alone = tb_state_reduces(s) && (s->board->size == 2 || !is_common(s) ||
                                       all <= (s->what == TB_COMPOSITE_REDUCE ? ALONE_REDUCE : ALONE_EACH));
    /* Its own data need not be copied for itself, unless it stands where the result goes. */
    s->direct = s->alone && gets(s) && s->type->dense && s->give.buffer != s->get.buffer;
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

static uint32_t fragment_bytes(const struct tb_composite_state *s, uint32_t fragment)
{
    uint64_t left = s->bytes - (uint64_t)fragment * s->fragment;
    return left < s->fragment ? (uint32_t)left : s->fragment;
}

/* ---- reducing ---------------------------------------------------------------------------------------------------- */

/* Everyone's packed data, from byte `at` of a cell or of the slots of a fragment on. */
struct operands {
    const struct tb_composite_state *s;
    uint32_t fragment, at;
};

static const char *operand_of(const struct operands *o, uint32_t rank)
{
    const struct tb_composite_state *s = o->s;
    if (s->direct && rank == s->board->rank)
        return s->operand + (uint64_t)o->fragment * s->fragment + o->at;
    const struct tb_board_cell *cell = tb_board_cell_of(s->board, rank, s->number);
    if (is_long(s))
        return tb_board_slot_of(s->board, rank, cell->slot + o->fragment) + s->slot_offset + o->at;
    bool block = tb_state_exchanges(s);
    return cell->data + (block ? tb_block_words(cell)[s->board->rank] & UINT16_MAX : 0) + o->at;
}

static int fold_dense(const struct operands *o, uint32_t length, char *to)
{
    const struct tb_composite_state *s = o->s;
    uint64_t count = length / s->type->size;
    uint32_t rank = operand_count(s) - 1;
    tb_op_loop3 *both = rank > 0 && s->op->code != TB_OP_USER ? tb_op_kernel3(s->op, s->type) : NULL;
    if (both != NULL) {
        both(operand_of(o, rank - 1), operand_of(o, rank), to, count);
        rank--;
    } else {
        memcpy(to, operand_of(o, rank), length);
    }
    int error = TB_OK;
    while (rank-- > 0 && error == TB_OK)
        error = tb_op_apply(s->op, operand_of(o, rank), to, count, s->type);
    return error;
}

/* Room for some items of a type with gaps, and where the first of them stands. */
static int block_make(const struct tb_type *type, uint64_t *items, void **memory, struct tb_buffer *buffer)
{
    uint64_t bytes, extent = (uint64_t)(type->extent < 0 ? -type->extent : type->extent);
    int64_t origin;
    uint64_t fit = extent > 0 ? BLOCK_BYTES / extent : 1;
    *items = fit > 0 ? fit : 1;
    int error = tb_items_measure(type, *items, &bytes, &origin);
    if (error != TB_OK)
        return error;
    *memory = malloc(bytes + 1);
    if (*memory == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for %llu bytes of work space", (unsigned long long)bytes);
    *buffer = (struct tb_buffer){(char *)((uintptr_t)*memory + (uint64_t)origin), *items, type};
    return TB_OK;
}

static void block_fill(const struct tb_buffer *block, const char *from, uint64_t length)
{
    struct tb_spans spans;
    tb_buffer_spans(block, 0, length, &spans);
    tb_spans_scatter(&spans, from, length);
}

/* Operations see items as their type has them: they are unpacked, some at a time. The result is packed at `to`, or,
 * without that, goes where it belongs, the operands being a whole fragment or cell. */
static int fold_sparse(const struct operands *operands, uint32_t length, char *to)
{
    const struct tb_composite_state *s = operands->s;
    struct operands o = *operands;
    struct tb_buffer sum, next;
    void *memory[2] = {NULL, NULL};
    uint64_t items = 0;
    int error = block_make(s->type, &items, &memory[0], &sum);
    if (error == TB_OK)
        error = block_make(s->type, &items, &memory[1], &next);
    for (uint64_t at = 0; at < length && error == TB_OK;) {
        uint64_t left = (length - at) / s->type->size, count = left < items ? left : items;
        uint64_t bytes = count * s->type->size;
        uint32_t rank = operand_count(s) - 1;
        struct tb_spans from, into = tb_spans_of(to != NULL ? to + at : NULL, bytes);
        block_fill(&sum, operand_of(&o, rank), bytes);
        while (rank-- > 0 && error == TB_OK) {
            block_fill(&next, operand_of(&o, rank), bytes);
            error = tb_op_apply(s->op, next.base, sum.base, count, s->type);
        }
        tb_buffer_spans(&sum, 0, bytes, &from);
        if (to == NULL)
            tb_buffer_spans(s->get.buffer, s->get.from + (uint64_t)o.fragment * s->fragment + at, bytes, &into);
        tb_spans_move(&from, &into);
        at += bytes;
        o.at += (uint32_t)bytes;
    }
    free(memory[0]);
    free(memory[1]);
    return error;
}

/* The reduction of everyone's short data, or of a fragment, where it belongs. */
static int fold_whole(struct tb_composite_state *s, uint32_t fragment, uint32_t length)
{
    struct operands o = {s, fragment, 0};
    if (!s->type->dense)
        return fold_sparse(&o, length, NULL);
    uint64_t from = s->get.from + (uint64_t)fragment * s->fragment;
    return fold_dense(&o, length, (char *)((uintptr_t)s->get.buffer->base + from));
}

/* This rank's range of a fragment. */
static int fold_range(struct tb_composite_state *s, uint32_t fragment)
{
    uint64_t items = fragment_bytes(s, fragment) / s->unit;
    uint32_t low = (uint32_t)(items * s->board->rank / s->board->size * s->unit);
    uint32_t high = (uint32_t)(items * (s->board->rank + 1) / s->board->size * s->unit);
    struct operands o = {s, fragment, low};
    if (low == high)
        return TB_OK;
    char *to = tb_board_result_of(s->board, fragment) + low;
    return s->type->dense ? fold_dense(&o, high - low, to) : fold_sparse(&o, high - low, to);
}

/* ---- calling ----------------------------------------------------------------------------------------------------- */

/* Says what this rank calls, with its data if it is short. False: the cell is still needed. */
static bool state_call(struct tb_composite_state *s, bool failed)
{
    struct tb_board *b = s->board;
    if (!tb_board_all_done(b, s->number < TB_BOARD_CELLS ? 0 : s->number + 1 - TB_BOARD_CELLS))
        return false;
    struct tb_board_cell *cell = tb_board_cell_of(b, b->rank, s->number);
    cell->what = s->what;
    cell->root = s->root;
    cell->slot = (uint16_t)s->slot;
    cell->bytes = s->bytes;
    cell->failed = failed;
    if (tb_state_exchanges(s) && !failed)
        tb_exchange_call(s, cell);
    else if (gives(s) && !failed && !is_long(s) && s->bytes > 0)
        tb_part_gather(&s->give, 0, s->bytes, cell->data);
    tb_board_call(cell, s->number);
    return true;
}

/* Those that only get short data need not say anything. */
static bool must_call(const struct tb_composite_state *s)
{
    return gives(s) || is_long(s) || s->what == TB_COMPOSITE_BARRIER;
}

static int different(const struct tb_composite_state *s, uint32_t rank, const char *theirs)
{
    return tb_error(TB_ERR_MISMATCH,
                    "ranks call different collectives: as number %u on this communicator rank %u has called %s, this "
                    "rank (%u) %s",
                    s->collective, rank, theirs, s->board->rank, tb_composite_name(s->what));
}

int tb_composite_unlike(const struct tb_composite_state *s, uint32_t rank, uint64_t theirs, uint64_t mine)
{
    return tb_error(theirs > mine ? TB_ERR_TRUNCATE : TB_ERR_MISMATCH,
                    "%s: rank %u has sent %llu bytes where this rank expects %llu", tb_operation_name(s->operation),
                    rank, (unsigned long long)theirs, (unsigned long long)mine);
}

static int disagreement(const struct tb_composite_state *s, const struct tb_board_cell *cell, uint32_t rank)
{
    if (cell->what != s->what)
        return different(s, rank, tb_composite_name(cell->what));
    if (cell->root != s->root)
        return tb_error(TB_ERR_MISMATCH, "%s: rank %u takes rank %u for the root, this rank takes rank %u",
                        tb_composite_name(s->what), rank, cell->root, s->root);
    if (!tb_state_exchanges(s) && cell->bytes != s->bytes)
        return tb_composite_unlike(s, rank, cell->bytes, s->bytes);
    return tb_error(TB_ERR_MISMATCH,
                    "%s: rank %u cannot give the data that this rank expects: ranks do not agree about sizes",
                    tb_operation_name(s->operation), rank);
}

/* Whether the awaited rank has done its collective of this number without a call: it was another one. */
static bool passed_by(struct tb_composite_state *s, const struct tb_board_cell *cell)
{
    if (TB_LIKELY(++s->looks % LOOKS_PATIENCE != 0))
        return false;
    const struct tb_board_member *m = tb_board_member_of(s->board, s->called);
    if (atomic_load_explicit(&m->done.value, memory_order_acquire) <= s->number)
        return false;
    if (!tb_board_called(cell, s->number))
        s->error = different(s, s->called, "another one");
    return true;
}

/* Whether all that this rank depends on have called the same. */
static bool state_agree(struct tb_composite_state *s)
{
    while (s->called < s->board->size) {
        const struct tb_board_cell *cell = tb_board_cell_of(s->board, s->called, s->number);
        if (awaits(s, s->called)) {
            if (!tb_board_called(cell, s->number) && !passed_by(s, cell))
                return false;
            if (TB_UNLIKELY(s->error != TB_OK))
                return true;
            bool blocks = tb_state_exchanges(s);
            if (TB_UNLIKELY(cell->what != s->what || cell->root != s->root || cell->failed ||
                            (!blocks && cell->bytes != s->bytes))) {
                s->error = disagreement(s, cell, s->called);
                return true;
            }
            if (blocks)
                tb_exchange_hear(s, cell, s->called);
            if (TB_UNLIKELY(s->error != TB_OK))
                return true;
            s->awaited++;
        }
        s->called++;
    }
    if (s->awaited == s->board->size - 1 && s->board->least < s->number)
        s->board->least = s->number; /* who calls has done all before */
    return true;
}

/* ---- long data --------------------------------------------------------------------------------------------------- */

/* How many fragments all others have counted; an error where one has given up and is needed. */
static uint32_t counted_least(struct tb_composite_state *s, enum tb_board_counter which, bool needed)
{
    uint32_t least = UINT32_MAX;
    for (uint32_t rank = 0; rank < s->board->size; rank++) {
        if (rank == s->board->rank)
            continue;
        uint32_t counted = tb_board_counted(s->board, rank, which, s->number);
        if (TB_UNLIKELY(counted == TB_BOARD_FAILED && needed)) {
            s->error = tb_error(TB_ERR_MISMATCH, "%s: rank %u has given up", tb_composite_name(s->what), rank);
            return 0;
        }
        least = counted < least ? counted : least;
    }
    return least;
}

void tb_state_count(struct tb_composite_state *s, enum tb_board_counter which)
{
    tb_board_count(s->board, which, s->number, ++s->counts[which]);
}

/* Fragments that those who get what this rank gives have taken, so that later ones may come in their place. */
static uint32_t fragments_taken(struct tb_composite_state *s)
{
    uint32_t least = UINT32_MAX;
    for (uint32_t rank = 0; rank < s->board->size; rank++) {
        bool own = rank == s->board->rank;
        if (!tb_state_gives_to(s, rank) || (own && !tb_state_reduces(s)))
            continue;
        uint32_t taken = own ? s->counts[TB_BOARD_TAKEN] : tb_board_counted(s->board, rank, TB_BOARD_TAKEN, s->number);
        if (own && taken == s->fragments)
            continue;
        if (TB_UNLIKELY(taken == TB_BOARD_FAILED && s->what == TB_COMPOSITE_ALLREDUCE)) {
            s->error = tb_error(TB_ERR_MISMATCH, "%s: rank %u has given up", tb_composite_name(s->what), rank);
            return 0;
        }
        least = taken < least ? taken : least;
    }
    return least;
}

/* Whether the slot of the next fragment is free: nobody needs what an earlier collective has left there, and all others
 * have counted the fragment of this one. */
bool tb_state_slot_free(struct tb_composite_state *s)
{
    uint32_t next = s->counts[TB_BOARD_WROTE];
    if (next < TB_BOARD_SLOTS)
        return tb_board_all_done(s->board, s->board->filled[(s->slot + next) % TB_BOARD_SLOTS]);
    if (next < s->free)
        return true;
    uint32_t least;
    if (!is_common(s) || s->alone) {
        least = fragments_taken(s);
    } else {
        least = counted_least(s, TB_BOARD_FOLDED, true);
        least = least < s->counts[TB_BOARD_FOLDED] ? least : s->counts[TB_BOARD_FOLDED];
    }
    s->free = least < UINT32_MAX - TB_BOARD_SLOTS ? least + TB_BOARD_SLOTS : UINT32_MAX;
    return next < s->free && s->error == TB_OK;
}

/* Fills slots that are free. */
static uint32_t long_write(struct tb_composite_state *s)
{
    uint32_t *wrote = &s->counts[TB_BOARD_WROTE], before = *wrote;
    while (*wrote < s->fragments && *wrote - before < TB_FRAGMENTS_TURN && tb_state_slot_free(s)) {
        uint32_t slot = (s->slot + *wrote) % TB_BOARD_SLOTS;
        tb_part_gather(&s->give, (uint64_t)*wrote * s->fragment, fragment_bytes(s, *wrote),
                       tb_board_slot_of(s->board, s->board->rank, slot));
        s->board->filled[slot] = s->number + 1;
        tb_state_count(s, TB_BOARD_WROTE);
        tb_board_wake(s->board);
    }
    return *wrote - before;
}

static uint32_t long_take(struct tb_composite_state *s, uint32_t there, bool result)
{
    uint32_t *taken = &s->counts[TB_BOARD_TAKEN], before = *taken;
    uint32_t first = tb_board_cell_of(s->board, s->root, s->number)->slot;
    while (*taken < s->fragments && *taken < there && *taken - before < TB_FRAGMENTS_TURN) {
        const char *from =
            result ? tb_board_result_of(s->board, *taken) : tb_board_slot_of(s->board, s->root, first + *taken);
        tb_part_scatter(&s->get, (uint64_t)*taken * s->fragment, fragment_bytes(s, *taken), from);
        tb_state_count(s, TB_BOARD_TAKEN);
    }
    if (*taken > before)
        tb_board_wake(s->board);
    return *taken - before;
}

static uint32_t long_bcast(struct tb_composite_state *s)
{
    if (gives(s))
        return long_write(s);
    uint32_t there = tb_board_counted(s->board, s->root, TB_BOARD_WROTE, s->number);
    if (TB_UNLIKELY(there == TB_BOARD_FAILED)) {
        s->error =
            tb_error(TB_ERR_MISMATCH, "%s: the root, rank %u, has given up", tb_composite_name(s->what), s->root);
        return 0;
    }
    return long_take(s, there, false);
}

static uint32_t long_fold(struct tb_composite_state *s)
{
    uint32_t *folded = &s->counts[TB_BOARD_FOLDED], before = *folded;
    uint32_t there = counted_least(s, TB_BOARD_WROTE, true);
    there = there < s->counts[TB_BOARD_WROTE] ? there : s->counts[TB_BOARD_WROTE];
    while (*folded < there && s->error == TB_OK) {
        if (*folded >= TB_BOARD_SLOTS && *folded - TB_BOARD_SLOTS >= fragments_taken(s))
            break;
        s->error = fold_range(s, *folded);
        if (s->error == TB_OK)
            tb_state_count(s, TB_BOARD_FOLDED);
    }
    if (*folded > before)
        tb_board_wake(s->board);
    return *folded - before;
}

/* Fragments that are there of all ranks whose data this one reduces. */
static uint32_t operands_there(struct tb_composite_state *s)
{
    uint32_t least = s->direct ? UINT32_MAX : s->counts[TB_BOARD_WROTE]; /* in place the result goes there, too */
    for (uint32_t rank = 0; rank < operand_count(s); rank++) {
        if (rank == s->board->rank)
            continue;
        uint32_t wrote = tb_board_counted(s->board, rank, TB_BOARD_WROTE, s->number);
        if (TB_UNLIKELY(wrote == TB_BOARD_FAILED)) {
            s->error = tb_error(TB_ERR_MISMATCH, "%s: rank %u has given up", tb_composite_name(s->what), rank);
            return 0;
        }
        least = wrote < least ? wrote : least;
    }
    return least;
}

/* Reduces whole fragments. */
static uint32_t long_fold_alone(struct tb_composite_state *s)
{
    uint32_t *taken = &s->counts[TB_BOARD_TAKEN], before = *taken;
    uint32_t there = operands_there(s);
    while (*taken < s->fragments && *taken < there && s->error == TB_OK) {
        s->error = fold_whole(s, *taken, fragment_bytes(s, *taken));
        if (s->error == TB_OK)
            tb_state_count(s, TB_BOARD_TAKEN);
    }
    if (*taken > before)
        tb_board_wake(s->board);
    return *taken - before;
}

static uint32_t long_reduce(struct tb_composite_state *s)
{
    uint32_t n = long_write(s);
    if (s->error == TB_OK && s->alone)
        return n + (gets(s) ? long_fold_alone(s) : 0);
    if (s->error == TB_OK)
        n += long_fold(s);
    if (s->error == TB_OK && gets(s) && s->counts[TB_BOARD_TAKEN] < s->counts[TB_BOARD_FOLDED]) {
        uint32_t there = counted_least(s, TB_BOARD_FOLDED, true);
        there = there < s->counts[TB_BOARD_FOLDED] ? there : s->counts[TB_BOARD_FOLDED];
        if (s->error == TB_OK)
            n += long_take(s, there, true);
    }
    return n;
}

static uint32_t long_exchange(struct tb_composite_state *s)
{
    uint32_t n = tb_exchange_write(s);
    if (s->error == TB_OK)
        n += tb_state_reduces(s) ? long_fold_alone(s) : tb_exchange_take(s);
    if (s->error == TB_OK && s->heard_long && s->counts[TB_BOARD_TAKEN] == s->fragments) {
        tb_board_count(s->board, TB_BOARD_TAKEN, s->number, TB_BOARD_PASSED);
        tb_board_wake(s->board);
        s->heard_long = false;
    }
    return n;
}

static bool long_complete(const struct tb_composite_state *s)
{
    if (tb_state_exchanges(s))
        return tb_exchange_complete(s);
    if (is_common(s) && !s->alone && s->counts[TB_BOARD_FOLDED] < s->fragments)
        return false;
    return (!gives(s) || s->counts[TB_BOARD_WROTE] == s->fragments) &&
           (!gets(s) || s->counts[TB_BOARD_TAKEN] == s->fragments);
}

static uint32_t long_advance(struct tb_composite_state *s)
{
    return tb_state_exchanges(s) ? long_exchange(s) : tb_state_reduces(s) ? long_reduce(s) : long_bcast(s);
}

/* ---- the state machine ------------------------------------------------------------------------------------------- */

static void short_finish(struct tb_composite_state *s)
{
    if (tb_state_reduces(s) && gets(s) && s->bytes > 0)
        s->error = fold_whole(s, 0, (uint32_t)s->bytes);
    else if (s->what == TB_COMPOSITE_BCAST && gets(s) && s->bytes > 0)
        tb_part_scatter(&s->get, 0, s->bytes, tb_board_cell_of(s->board, s->root, s->number)->data);
}

/* Lets nobody wait for this rank. */
static void state_fail(struct tb_composite_state *s)
{
    if (s->stage == STAGE_OPEN || !must_call(s))
        state_call(s, true);
    for (int i = 0; i < TB_BOARD_COUNTERS; i++)
        tb_board_count(s->board, (enum tb_board_counter)i, s->number, TB_BOARD_FAILED);
}

static void state_finish(struct tb_composite_state *s)
{
    struct tb_board *b = s->board;
    if (TB_UNLIKELY(s->error != TB_OK && s->channel->lost == NULL)) /* of a loss everyone is told */
        state_fail(s);
    if (is_long(s))
        b->slot = (s->slot + s->counts[TB_BOARD_WROTE]) % TB_BOARD_SLOTS;
    tb_board_done(b, s->number);
    tb_board_wake(b);
}

/* Goes on as far as possible. True: it is finished, well or not. `n` grows with what was done. */
static bool state_advance(struct tb_composite_state *s, int *n)
{
    if (s->stage == STAGE_OPEN)
        s->slot = s->board->slot;
    if (TB_UNLIKELY(s->foreign) && s->error == TB_OK)
        s->error = different(s, s->foreign_rank, tb_operation_name(s->foreign_operation));
    if (TB_UNLIKELY(s->error != TB_OK)) {
        state_finish(s);
        ++*n;
        return true;
    }
    if (s->stage == STAGE_OPEN) {
        if (must_call(s) && !state_call(s, false))
            return false;
        if (tb_state_exchanges(s))
            tb_exchange_own(s);
        s->stage = STAGE_CALLED;
        ++*n;
    }
    if (s->stage == STAGE_CALLED) {
        if (is_long(s) && s->what != TB_COMPOSITE_BCAST)
            *n += (int)(tb_state_exchanges(s) ? tb_exchange_write(s) : long_write(s));
        if (s->error == TB_OK && !state_agree(s))
            return false;
        s->stage = STAGE_AGREED;
        ++*n;
    }
    if (s->error == TB_OK && !is_long(s) && !s->heard_long) {
        short_finish(s);
    } else if (s->error == TB_OK) {
        *n += (int)long_advance(s);
        if (s->error == TB_OK && !long_complete(s))
            return false;
    }
    state_finish(s);
    ++*n;
    return true;
}

/* It cannot be finished, since a process is lost. */
static void state_lose(struct tb_composite_state *s)
{
    const struct tb_peer *p = s->channel->lost;
    s->error = tb_error(tb_peer_error(p), "%s with process %u failed: %s", tb_composite_name(s->what), p->proc.index,
                        p->story != NULL ? p->story : "it is lost");
    state_finish(s);
}

/* ---- the line of a channel --------------------------------------------------------------------------------------- */

/* Under this number this rank exchanges no messages, so whoever sends one has called another collective. */
static void state_hear(struct tb_composite_state *s, const struct tb_message *m)
{
    if (s->foreign || TB_MATCH_NUMBER(m->match) != s->collective || (m->match & TB_MATCH_KEPT) != 0 ||
        TB_MATCH_OPERATION(m->match) == s->operation)
        return;
    s->foreign = true;
    s->foreign_operation = (uint8_t)TB_MATCH_OPERATION(m->match);
    s->foreign_rank = m->source_rank;
}

/* Looks again and again. Whoever waits for a rank that is about to come hears of it sooner than if it polled everything
 * else in between; not for long, since that must be done, too. */
static bool state_spin(struct tb_composite_state *s)
{
    int n = 0;
    if (!tb_engine_spins(s->channel->engine))
        return false;
    for (uint32_t i = 0; i < LOOKS_IDLE; i++)
        if (state_advance(s, &n)) {
            tb_shm_heard(s->channel->engine->local, 1);
            return true;
        }
    return false;
}

bool tb_composite_start(struct tb_composite_state *s, struct tb_channel *channel, bool idle)
{
    int n = 0;
    s->board = channel->board;
    s->channel = channel;
    s->number = channel->board->started++;
    s->stage = STAGE_OPEN;
    s->called = s->awaited = s->looks = s->free = 0;
    s->foreign = s->heard_long = false;
    s->error = TB_OK;
    s->direct = s->alone = false;
    s->fragment = s->slot_offset = 0;
    tb_list_init(&s->in_line);
    for (int i = 0; i < TB_BOARD_COUNTERS; i++)
        s->counts[i] = 0;
    if (tb_state_exchanges(s))
        s->error = tb_exchange_open(s);
    else if (is_long(s))
        fragments_cut(s);
    if (tb_list_empty(&channel->composites) && (state_advance(s, &n) || (idle && state_spin(s))))
        return true;
    if (tb_list_empty(&channel->composites))
        tb_list_append(&channel->engine->boards, &channel->on_boards);
    tb_list_append(&channel->composites, &s->in_line);
    channel->engine->stirred = true;
    int looked = 0;
    struct tb_arrival *a;
    TB_LIST_EACH (a, &channel->collective->arrivals, struct tb_arrival, in_context) {
        state_hear(s, &a->message);
        if (++looked == ARRIVALS_LOOK)
            break;
    }
    return false;
}

void tb_composites_hear(struct tb_channel *channel, const struct tb_message *m)
{
    struct tb_composite_state *s;
    TB_LIST_EACH (s, &channel->composites, struct tb_composite_state, in_line)
        state_hear(s, m);
}

static void state_remove(struct tb_composite_state *s)
{
    struct tb_channel *channel = s->channel;
    tb_list_remove(&s->in_line);
    if (tb_list_empty(&channel->composites))
        tb_list_remove(&channel->on_boards);
}

int tb_composites_work(struct tb_engine *e)
{
    int n = 0;
    struct tb_channel *channel;
    TB_LIST_EACH (channel, &e->boards, struct tb_channel, on_boards) {
        struct tb_composite_state *s = TB_CONTAINER(channel->composites.next, struct tb_composite_state, in_line);
        if (!state_advance(s, &n)) {
            if (TB_LIKELY(channel->lost == NULL))
                continue;
            state_lose(s);
            n++;
        }
        tb_shm_heard(e->local, 1);
        state_remove(s);
        s->complete(s); /* the channel may be gone, and others may have started */
        break;
    }
    return n;
}

int tb_composites_look(struct tb_engine *e)
{
    struct tb_channel *channel;
    TB_LIST_EACH (channel, &e->boards, struct tb_channel, on_boards)
        TB_CONTAINER(channel->composites.next, struct tb_composite_state, in_line)->looks = LOOKS_PATIENCE - 1;
    return tb_composites_work(e);
}

/* ---- lost processes ---------------------------------------------------------------------------------------------- */

static bool channel_has(const struct tb_channel *channel, uint32_t proc)
{
    for (uint32_t rank = 0; rank < channel->size; rank++)
        if ((channel->procs == NULL ? rank : channel->procs[rank]) == proc)
            return true;
    return false;
}

void tb_composites_lose(struct tb_peer *peer)
{
    struct tb_engine *e = peer->engine;
    for (uint32_t i = 0; e->contexts != NULL && i <= e->context_mask; i++)
        for (struct tb_context *c = e->contexts[i]; c != NULL; c = c->next)
            if (c->channel != NULL && c->channel->board != NULL && c->channel->collective == c &&
                channel_has(c->channel, peer->proc.index))
                c->channel->lost = peer;
}
