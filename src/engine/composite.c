#include "engine/composite.h"

#include "engine/binding.h"
#include "engine/engine_state.h"
#include "engine/exchange.h"
#include "engine/composite_reduce.h"
#include "engine/fragment.h"

#define LOOKS_PATIENCE 32u /* before it is asked whether the other has passed by */
#define LOOKS_IDLE     24u /* of a caller that has nothing else to do */
#define ARRIVALS_LOOK  256 /* that may belong to another collective of the same number */

enum stage { STAGE_OPEN, STAGE_CALLED, STAGE_AGREED };

void tb_composite_bind(struct tb_composite_state *c, const struct tb_program *program, const struct tb_step *s,
                       const struct tb_binding *binding, uint32_t number)
{
    c->binding = binding;
    c->program = program;
    c->step = s;
    c->what = s->contract.composite;
    c->operation = binding->operation;
    c->collective = number;
    c->root = s->peer;
    c->bytes = 0;
    c->op = binding->op;
    c->unit = c->op != NULL ? binding->element_bytes : 1;
    if (c->what >= TB_COMPOSITE_GATHER && c->op == NULL)
        return;
    tb_binding_part(binding, program, s, &s->slice, 0, &c->give, &c->rooms[0]);
    tb_binding_part(binding, program, s, &s->other, 0, &c->get, &c->rooms[1]);
    c->bytes = s->slice.count > 0 ? c->give.length : c->get.length;
    c->type = c->give.buffer->type;
}

/* ---- calling ----------------------------------------------------------------------------------------------------- */

/* Whether this rank waits until the other has called. */
static bool awaits(const struct tb_composite_state *s, uint32_t rank)
{
    if (rank == s->board->rank)
        return false;
    return tb_state_takes_from(s, rank) || s->what == TB_COMPOSITE_BARRIER ||
           (s->what == TB_COMPOSITE_REDUCE && tb_state_is_long(s) && !s->alone);
}

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
    cell->collective = s->collective;
    if (tb_state_exchanges(s) && !failed)
        tb_exchange_call(s, cell);
    else if (tb_state_gives(s) && !failed && !tb_state_is_long(s) && s->bytes > 0)
        tb_part_gather(&s->give, 0, s->bytes, cell->data);
    tb_board_call(cell, s->number);
    return true;
}

/* Those that only get short data need not say anything. */
static bool must_call(const struct tb_composite_state *s)
{
    return tb_state_gives(s) || tb_state_is_long(s) || s->what == TB_COMPOSITE_BARRIER;
}

/* Whether the awaited rank has done its collective of this number without a call: it was another one. */
static bool passed_by(struct tb_composite_state *s, const struct tb_board_cell *cell)
{
    if (TB_LIKELY(++s->looks % LOOKS_PATIENCE != 0))
        return false;
    const struct tb_board_member *m = tb_board_member_of(s->board, s->called);
    uint64_t done = atomic_load_explicit(&m->done.value, memory_order_acquire);
    if (done <= s->number)
        return false;
    if (!tb_board_called(cell, s->number))
        s->error = tb_composite_different(s, s->called, done == UINT64_MAX ? "nothing and has left" : "another one");
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
            if (TB_UNLIKELY(cell->collective != s->collective || cell->what != s->what || cell->root != s->root ||
                            cell->failed || (!blocks && cell->bytes != s->bytes))) {
                s->error = tb_composite_disagreement(s, cell, s->called);
                s->foreign = cell->collective != s->collective;
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

/* ---- the state machine ------------------------------------------------------------------------------------------- */

static uint32_t long_exchange(struct tb_composite_state *s)
{
    uint32_t n = tb_exchange_write(s);
    if (s->error == TB_OK)
        n += tb_state_reduces(s) ? tb_fragments_fold_alone(s) : tb_exchange_take(s);
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
    if (tb_state_is_common(s) && !s->alone && s->counts[TB_BOARD_FOLDED] < s->fragments)
        return false;
    return (!tb_state_gives(s) || s->counts[TB_BOARD_WROTE] == s->fragments) &&
           (!tb_state_gets(s) || s->counts[TB_BOARD_TAKEN] == s->fragments);
}

static uint32_t long_advance(struct tb_composite_state *s)
{
    return tb_state_exchanges(s) ? long_exchange(s)
           : tb_state_reduces(s) ? tb_fragments_reduce(s)
                                 : tb_fragments_bcast(s);
}

static void short_finish(struct tb_composite_state *s)
{
    if (tb_state_reduces(s) && tb_state_gets(s) && s->bytes > 0)
        s->error = tb_composite_reduce_whole(s, 0, (uint32_t)s->bytes);
    else if (s->what == TB_COMPOSITE_BCAST && tb_state_gets(s) && s->bytes > 0)
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
    if (tb_state_is_long(s))
        b->slot = (s->slot + s->counts[TB_BOARD_WROTE]) % TB_BOARD_SLOTS;
    tb_board_done(b, s->number);
    tb_board_wake(b);
}

/* What it ends with, since it was heard that the others do not take part in it. */
static int state_verdict(const struct tb_composite_state *s)
{
    if (s->foreign)
        return tb_composite_different(s, s->foreign_rank, tb_operation_name(s->foreign_operation));
    const struct tb_failure f = {tb_match_collective(s->collective, s->foreign_operation, 0), s->foreign_rank, 0,
                                 false};
    return tb_failure_explain(&f);
}

/* Goes on as far as possible. True: it is finished, well or not. `n` grows with what was done. */
static bool state_advance(struct tb_composite_state *s, int *n)
{
    if (s->stage == STAGE_OPEN)
        s->slot = s->board->slot;
    if (TB_UNLIKELY(s->foreign || s->given_up) && s->error == TB_OK)
        s->error = state_verdict(s);
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
        if (tb_state_is_long(s) && s->what != TB_COMPOSITE_BCAST)
            *n += (int)(tb_state_exchanges(s) ? tb_exchange_write(s) : tb_fragments_write(s));
        if (s->error == TB_OK && !state_agree(s))
            return false;
        s->stage = STAGE_AGREED;
        ++*n;
    }
    if (s->error == TB_OK && !tb_state_is_long(s) && !s->heard_long) {
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

static void state_give_up(struct tb_composite_state *s, const struct tb_failure *f)
{
    if (s->foreign || s->given_up || !tb_failure_concerns(f, tb_match_collective(s->collective, 0, 0)))
        return;
    s->given_up = true;
    s->foreign_operation = (uint8_t)TB_MATCH_OPERATION(f->match);
    s->foreign_rank = f->rank;
}

static void state_recall(struct tb_composite_state *s)
{
    const struct tb_failure *f = tb_failure_find(s->channel->collective, tb_match_collective(s->collective, 0, 0));
    if (f != NULL)
        state_give_up(s, f);
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
    s->foreign = s->given_up = s->heard_long = false;
    s->error = TB_OK;
    s->direct = s->alone = false;
    s->fragment = s->own_stripe = 0;
    tb_list_init(&s->in_line);
    for (int i = 0; i < TB_BOARD_COUNTERS; i++)
        s->counts[i] = 0;
    if (tb_state_exchanges(s))
        s->error = tb_exchange_open(s);
    else if (tb_state_is_long(s))
        tb_fragments_cut(s);
    if (TB_UNLIKELY(channel->collective->failures != NULL))
        state_recall(s);
    if (tb_list_empty(&channel->composites) && (state_advance(s, &n) || (idle && state_spin(s))))
        return true;
    if (tb_list_empty(&channel->composites))
        tb_list_append(&channel->engine->boards, &channel->on_boards);
    tb_list_append(&channel->composites, &s->in_line);
    channel->engine->waiting.stirred = true;
    int looked = 0;
    struct tb_arrival *a;
    TB_LIST_EACH (a, &channel->collective->arrivals, struct tb_arrival, in_context) {
        state_hear(s, &a->message);
        if (++looked == ARRIVALS_LOOK)
            break;
    }
    return false;
}

void tb_composite_describe(const struct tb_composite_state *s, struct tb_wait *wait)
{
    wait->state = TB_WAIT_MOVING;
    for (uint32_t rank = s->called; rank < s->board->size; rank++)
        if (awaits(s, rank) && !tb_board_called(tb_board_cell_of(s->board, rank, s->number), s->number)) {
            wait->rank = rank;
            wait->state = TB_WAIT_UNCALLED;
            return;
        }
}

void tb_composites_hear(struct tb_channel *channel, const struct tb_message *m)
{
    struct tb_composite_state *s;
    TB_LIST_EACH (s, &channel->composites, struct tb_composite_state, in_line)
        state_hear(s, m);
}

bool tb_composite_concerns(const struct tb_composite_state *s)
{
    bool messages = s->foreign;
    for (uint32_t i = 0; i < s->program->step_count; i++)
        messages |= s->program->steps[i].kind == TB_STEP_SEND || s->program->steps[i].kind == TB_STEP_RECEIVE;
    return messages && s->error != TB_ERR_GIVEN_UP && s->channel->lost == NULL;
}

void tb_composites_give_up(struct tb_channel *channel, const struct tb_failure *f)
{
    struct tb_composite_state *s;
    TB_LIST_EACH (s, &channel->composites, struct tb_composite_state, in_line)
        state_give_up(s, f);
}

void tb_composites_skip(struct tb_channel *channel, uint32_t count)
{
    struct tb_board *b = channel->board;
    for (uint32_t i = 0; b != NULL && i < count; i++) {
        uint64_t number = b->started++;
        if (tb_list_empty(&channel->composites)) /* else it is done with the next one that is */
            tb_board_done(b, number);
    }
    if (b != NULL && count > 0)
        tb_board_wake(b);
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
        if (tb_channel_proc(channel, rank) == proc)
            return true;
    return false;
}

void tb_composites_lose(struct tb_peer *peer)
{
    const struct tb_contexts *all = &peer->engine->contexts;
    for (struct tb_context *c = tb_contexts_first(all); c != NULL; c = tb_contexts_next(all, c))
        if (c->channel != NULL && c->channel->board != NULL && c->channel->collective == c &&
            channel_has(c->channel, peer->proc.index))
            c->channel->lost = peer;
}
