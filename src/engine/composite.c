/* Composite steps through common memory: barrier, broadcast, reduction and reduction to all among ranks that share a
 * board (see transport/shm/board.h). Each is a state machine that is advanced by progress; those of one channel are
 * carried out one after the other in the order of their start, which is the same on all ranks. A program must therefore
 * have its composite step where nothing delays it.
 *
 * Short data goes through cells: whoever gives writes it, whoever gets reads it, and reductions are made by everyone
 * who gets the result. Long data is cut into fragments that go through slots. A broadcast's root fills its slots as the
 * slowest reader empties them. In reductions everyone fills its own slots. Whoever gets the result reduces them alone,
 * if that is little work; otherwise of each fragment every rank reduces a range into the board's results, from which
 * the others copy it, which takes all of them twice. All reduce as x0 op (x1 op (... op xn)), so that order
 * matters and all have the same result.
 *
 * Nobody waits for a rank that has given up, since it says so in its cell and its counters. */
#include "engine/lane.h"

#include <stdlib.h>

#define FRAGMENT_LEAST (4u << 10)
#define FRAGMENTS_GOOD 8u           /* as many as overlap well */
#define FRAGMENTS_TURN 16u          /* dealt with before others get their turn */
#define LOOKS_PATIENCE 32u          /* before it is asked whether the other has passed by */
#define ARRIVALS_LOOK  256          /* that may belong to another collective of the same number */
#define ALONE_REDUCE   (512u << 10) /* bytes of all ranks that one reduces alone... */
#define ALONE_EACH     (64u << 10)  /* ...or each of them */
#define BLOCK_BYTES    (64u << 10)  /* of memory for items with gaps, unless one item is larger */
#define BYTES_LIMIT    (1ull << 43) /* of one collective: fragments are counted in 32 bits */

enum stage { STAGE_OPEN, STAGE_CALLED, STAGE_AGREED };

static const char *composite_name(unsigned what)
{
    static const enum tb_operation operations[TB_COMPOSITE_COUNT] = {TB_OPERATION_BARRIER, TB_OPERATION_BCAST,
                                                                     TB_OPERATION_REDUCE, TB_OPERATION_ALLREDUCE};
    return what < TB_COMPOSITE_COUNT ? tb_operation_name(operations[what]) : "nothing known";
}

static bool is_reduction(const struct tb_composite_state *s)
{
    return s->what == TB_COMPOSITE_REDUCE || s->what == TB_COMPOSITE_ALLREDUCE;
}

static bool is_long(const struct tb_composite_state *s)
{
    return s->bytes > TB_BOARD_SHORT;
}

static bool gives(const struct tb_composite_state *s)
{
    return s->what == TB_COMPOSITE_BCAST ? s->board->rank == s->root : is_reduction(s);
}

static bool gets(const struct tb_composite_state *s)
{
    bool root = s->board->rank == s->root;
    return s->what == TB_COMPOSITE_BCAST ? !root : s->what == TB_COMPOSITE_REDUCE ? root : is_reduction(s);
}

/* Whether this rank waits until the other has called. */
static bool awaits(const struct tb_composite_state *s, uint32_t rank)
{
    if (s->what == TB_COMPOSITE_BCAST)
        return gets(s) && rank == s->root;
    return rank != s->board->rank && (s->what != TB_COMPOSITE_REDUCE || gets(s) || (is_long(s) && !s->alone));
}

/* ---- fragments --------------------------------------------------------------------------------------------------- */

static void fragments_cut(struct tb_composite_state *s)
{
    uint64_t all = s->bytes * s->board->size;
    s->alone =
        is_reduction(s) && (s->board->size == 2 || all <= (s->what == TB_COMPOSITE_REDUCE ? ALONE_REDUCE : ALONE_EACH));
    /* Its own data need not be copied for itself, unless it stands where the result goes. */
    s->direct = is_reduction(s) && s->alone && gets(s) && s->type->dense && s->give.buffer != s->get.buffer;
    uint64_t share = (s->bytes + FRAGMENTS_GOOD - 1) / FRAGMENTS_GOOD;
    uint64_t fragment = share < FRAGMENT_LEAST ? FRAGMENT_LEAST : share > TB_BOARD_SLOT ? TB_BOARD_SLOT : share;
    fragment = fragment / 64 * 64;
    fragment -= fragment % s->unit;
    if (fragment == 0)
        fragment = s->unit;
    TB_ASSERT(fragment <= TB_BOARD_SLOT && s->bytes < BYTES_LIMIT);
    s->fragment = (uint32_t)fragment;
    s->fragments = (uint32_t)((s->bytes + fragment - 1) / fragment);
}

static uint32_t fragment_bytes(const struct tb_composite_state *s, uint32_t fragment)
{
    uint64_t left = s->bytes - (uint64_t)fragment * s->fragment;
    return left < s->fragment ? (uint32_t)left : s->fragment;
}

static void part_gather(const struct tb_part *part, uint64_t at, uint64_t length, void *to)
{
    struct tb_spans spans;
    tb_buffer_spans(part->buffer, part->from + at, length, &spans);
    tb_spans_gather(&spans, to, length);
}

static void part_scatter(const struct tb_part *part, uint64_t at, uint64_t length, const void *from)
{
    struct tb_spans spans;
    tb_buffer_spans(part->buffer, part->from + at, length, &spans);
    tb_spans_scatter(&spans, from, length);
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
        return (const char *)((uintptr_t)s->give.buffer->base + s->give.from + (uint64_t)o->fragment * s->fragment) +
               o->at;
    const struct tb_board_cell *cell = tb_board_cell_of(s->board, rank, s->number);
    return (is_long(s) ? tb_board_slot_of(s->board, rank, cell->slot + o->fragment) : cell->data) + o->at;
}

static int fold_dense(const struct operands *o, uint32_t length, char *to)
{
    const struct tb_composite_state *s = o->s;
    uint64_t count = length / s->type->size;
    uint32_t rank = s->board->size - 1;
    tb_op_loop3 *both = s->op->code != TB_OP_USER ? tb_op_kernel3(s->op, s->type) : NULL;
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
        uint32_t rank = s->board->size - 1;
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
    if (gives(s) && !failed && !is_long(s) && s->bytes > 0)
        part_gather(&s->give, 0, s->bytes, cell->data);
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
                    s->collective, rank, theirs, s->board->rank, composite_name(s->what));
}

static int disagreement(const struct tb_composite_state *s, const struct tb_board_cell *cell, uint32_t rank)
{
    if (cell->what != s->what)
        return different(s, rank, composite_name(cell->what));
    if (cell->root != s->root)
        return tb_error(TB_ERR_MISMATCH, "%s: rank %u takes rank %u for the root, this rank takes rank %u",
                        composite_name(s->what), rank, cell->root, s->root);
    if (cell->bytes != s->bytes)
        return tb_error(cell->bytes > s->bytes ? TB_ERR_TRUNCATE : TB_ERR_MISMATCH,
                        "%s: rank %u has sent %llu bytes where this rank expects %llu", composite_name(s->what), rank,
                        (unsigned long long)cell->bytes, (unsigned long long)s->bytes);
    return tb_error(TB_ERR_MISMATCH,
                    "%s: rank %u cannot give the %llu bytes that this rank expects: ranks do not agree about sizes",
                    composite_name(s->what), rank, (unsigned long long)s->bytes);
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
            if (TB_UNLIKELY(cell->what != s->what || cell->root != s->root || cell->bytes != s->bytes ||
                            cell->failed)) {
                s->error = disagreement(s, cell, s->called);
                return true;
            }
        }
        s->called++;
    }
    if (s->what != TB_COMPOSITE_BCAST && awaits(s, s->board->rank == 0) && s->board->least < s->number)
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
            s->error = tb_error(TB_ERR_MISMATCH, "%s: rank %u has given up", composite_name(s->what), rank);
            return 0;
        }
        least = counted < least ? counted : least;
    }
    return least;
}

static void count(struct tb_composite_state *s, enum tb_board_counter which)
{
    tb_board_count(s->board, which, s->number, ++s->counts[which]);
}

/* Fragments that those who get the result have taken, so that later ones may come in their place. */
static uint32_t results_taken(struct tb_composite_state *s)
{
    if (s->what == TB_COMPOSITE_ALLREDUCE) {
        uint32_t least = counted_least(s, TB_BOARD_TAKEN, true);
        return least < s->counts[TB_BOARD_TAKEN] ? least : s->counts[TB_BOARD_TAKEN];
    }
    return gets(s) ? s->counts[TB_BOARD_TAKEN] : tb_board_counted(s->board, s->root, TB_BOARD_TAKEN, s->number);
}

/* Whether the slot of the next fragment is free: nobody needs what an earlier collective has left there, and all others
 * have counted the fragment of this one. */
static bool slot_free(struct tb_composite_state *s)
{
    uint32_t next = s->counts[TB_BOARD_WROTE];
    if (next < TB_BOARD_SLOTS)
        return tb_board_all_done(s->board, s->board->filled[(s->slot + next) % TB_BOARD_SLOTS]);
    if (next < s->free)
        return true;
    uint32_t least;
    if (!is_reduction(s)) {
        least = counted_least(s, TB_BOARD_TAKEN, false);
    } else if (s->alone) {
        least = results_taken(s);
    } else {
        least = counted_least(s, TB_BOARD_FOLDED, true);
        least = least < s->counts[TB_BOARD_FOLDED] ? least : s->counts[TB_BOARD_FOLDED];
    }
    s->free = least < s->fragments ? least + TB_BOARD_SLOTS : UINT32_MAX;
    return next < s->free && s->error == TB_OK;
}

/* Fills slots that are free. */
static uint32_t long_write(struct tb_composite_state *s)
{
    uint32_t *wrote = &s->counts[TB_BOARD_WROTE], before = *wrote;
    while (*wrote < s->fragments && *wrote - before < FRAGMENTS_TURN && slot_free(s)) {
        uint32_t slot = (s->slot + *wrote) % TB_BOARD_SLOTS;
        part_gather(&s->give, (uint64_t)*wrote * s->fragment, fragment_bytes(s, *wrote),
                    tb_board_slot_of(s->board, s->board->rank, slot));
        s->board->filled[slot] = s->number + 1;
        count(s, TB_BOARD_WROTE);
        tb_board_wake(s->board);
    }
    return *wrote - before;
}

static uint32_t long_take(struct tb_composite_state *s, uint32_t there, bool result)
{
    uint32_t *taken = &s->counts[TB_BOARD_TAKEN], before = *taken;
    uint32_t first = tb_board_cell_of(s->board, s->root, s->number)->slot;
    while (*taken < s->fragments && *taken < there && *taken - before < FRAGMENTS_TURN) {
        const char *from =
            result ? tb_board_result_of(s->board, *taken) : tb_board_slot_of(s->board, s->root, first + *taken);
        part_scatter(&s->get, (uint64_t)*taken * s->fragment, fragment_bytes(s, *taken), from);
        count(s, TB_BOARD_TAKEN);
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
        s->error = tb_error(TB_ERR_MISMATCH, "%s: the root, rank %u, has given up", composite_name(s->what), s->root);
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
        if (*folded >= TB_BOARD_SLOTS && *folded - TB_BOARD_SLOTS >= results_taken(s))
            break;
        s->error = fold_range(s, *folded);
        if (s->error == TB_OK)
            count(s, TB_BOARD_FOLDED);
    }
    if (*folded > before)
        tb_board_wake(s->board);
    return *folded - before;
}

/* Reduces whole fragments. */
static uint32_t long_fold_alone(struct tb_composite_state *s)
{
    uint32_t *taken = &s->counts[TB_BOARD_TAKEN], before = *taken;
    uint32_t there = counted_least(s, TB_BOARD_WROTE, true);
    if (!s->direct && s->counts[TB_BOARD_WROTE] < there)
        there = s->counts[TB_BOARD_WROTE];
    while (*taken < s->fragments && *taken < there && s->error == TB_OK) {
        s->error = fold_whole(s, *taken, fragment_bytes(s, *taken));
        if (s->error == TB_OK)
            count(s, TB_BOARD_TAKEN);
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

static bool long_complete(const struct tb_composite_state *s)
{
    if (is_reduction(s) && !s->alone && s->counts[TB_BOARD_FOLDED] < s->fragments)
        return false;
    return (!gives(s) || s->counts[TB_BOARD_WROTE] == s->fragments) &&
           (!gets(s) || s->counts[TB_BOARD_TAKEN] == s->fragments);
}

/* ---- the state machine ------------------------------------------------------------------------------------------- */

static void short_finish(struct tb_composite_state *s)
{
    if (is_reduction(s) && gets(s) && s->bytes > 0)
        s->error = fold_whole(s, 0, (uint32_t)s->bytes);
    else if (gets(s) && s->bytes > 0)
        part_scatter(&s->get, 0, s->bytes, tb_board_cell_of(s->board, s->root, s->number)->data);
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
        s->stage = STAGE_CALLED;
        ++*n;
    }
    if (s->stage == STAGE_CALLED) {
        if (is_long(s) && is_reduction(s))
            *n += (int)long_write(s);
        if (s->error == TB_OK && !state_agree(s))
            return false;
        s->stage = STAGE_AGREED;
        ++*n;
    }
    if (s->error == TB_OK && !is_long(s)) {
        short_finish(s);
    } else if (s->error == TB_OK) {
        *n += (int)(is_reduction(s) ? long_reduce(s) : long_bcast(s));
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
    s->error = tb_error(tb_peer_error(p), "%s with process %u failed: %s", composite_name(s->what), p->proc.index,
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

bool tb_composite_start(struct tb_composite_state *s, struct tb_channel *channel)
{
    int n = 0;
    s->board = channel->board;
    s->channel = channel;
    s->number = channel->board->started++;
    s->stage = STAGE_OPEN;
    s->called = s->looks = s->free = 0;
    s->foreign = false;
    s->error = TB_OK;
    s->direct = s->alone = false;
    s->fragment = 0;
    tb_list_init(&s->in_line);
    if (is_long(s)) {
        fragments_cut(s);
        for (int i = 0; i < TB_BOARD_COUNTERS; i++)
            s->counts[i] = 0;
        if (s->direct && s->what == TB_COMPOSITE_REDUCE)
            s->counts[TB_BOARD_WROTE] = s->fragments; /* nobody else reads it */
    }
    if (tb_list_empty(&channel->composites) && state_advance(s, &n))
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
