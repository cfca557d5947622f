#include "engine/common.h"

#include "engine/common_exchange.h"
#include "engine/common_fragment.h"
#include "engine/common_reduce.h"
#include "engine/engine_state.h"

#include <stdlib.h>

#define LOOKS_PATIENCE 32u /* before it is asked whether the other has passed by */
#define LOOKS_IDLE     24u /* of a caller that has nothing else to do */
#define ARRIVALS_LOOK  256 /* that may belong to another collective of the same number */

enum stage { STAGE_OPEN, STAGE_CALLED, STAGE_AGREED };

/* What the step is about. */
static void state_bind(struct tb_common_drive *s)
{
    const struct tb_binding *binding = s->drive.binding;
    const struct tb_program *program = s->drive.program;
    const struct tb_step *step = s->drive.step;
    s->what = step->contract.composite;
    s->operation = binding->operation;
    s->root = step->peer;
    s->bytes = 0;
    s->op = binding->op;
    s->unit = s->op != NULL ? binding->element_bytes : 1;
    if (s->what >= TB_COMPOSITE_GATHER && s->op == NULL)
        return;
    tb_binding_part(binding, program, step, &step->slice, 0, &s->give, &s->rooms[0]);
    tb_binding_part(binding, program, step, &step->other, 0, &s->get, &s->rooms[1]);
    s->bytes = step->slice.count > 0 ? s->give.length : s->get.length;
    s->type = s->give.buffer->type;
}

/* ---- calling ----------------------------------------------------------------------------------------------------- */

/* Whether this rank waits until the other has called. */
static bool awaits(const struct tb_common_drive *s, uint32_t rank)
{
    if (rank == s->board->rank)
        return false;
    return tb_common_takes_from(s, rank) || s->what == TB_COMPOSITE_BARRIER ||
           (s->what == TB_COMPOSITE_REDUCE && tb_common_is_long(s) && !s->alone);
}

/* Says what this rank calls, with its data if it is short. False: the cell is still needed. */
static bool state_call(struct tb_common_drive *s, bool failed)
{
    struct tb_board *b = s->board;
    if (!tb_board_all_done(b, s->drive.place < TB_BOARD_CELLS ? 0 : s->drive.place + 1 - TB_BOARD_CELLS))
        return false;
    struct tb_board_cell *cell = tb_board_cell_of(b, b->rank, s->drive.place);
    cell->what = s->what;
    cell->root = s->root;
    cell->slot = (uint16_t)s->slot;
    cell->bytes = s->bytes;
    cell->failed = failed;
    cell->collective = s->drive.collective;
    if (tb_common_exchanges(s) && !failed)
        tb_common_exchange_call(s, cell);
    else if (tb_common_gives(s) && !failed && !tb_common_is_long(s) && s->bytes > 0)
        tb_part_gather(&s->give, 0, s->bytes, cell->data);
    tb_board_call(cell, s->drive.place);
    return true;
}

/* Those that only get short data need not say anything. */
static bool must_call(const struct tb_common_drive *s)
{
    return tb_common_gives(s) || tb_common_is_long(s) || s->what == TB_COMPOSITE_BARRIER;
}

/* Whether the awaited rank has done its collective of this number without a call: it was another one. */
static bool passed_by(struct tb_common_drive *s, const struct tb_board_cell *cell)
{
    if (TB_LIKELY(++s->looks % LOOKS_PATIENCE != 0))
        return false;
    const struct tb_board_member *m = tb_board_member_of(s->board, s->called);
    uint64_t done = atomic_load_explicit(&m->done.value, memory_order_acquire);
    if (done <= s->drive.place)
        return false;
    if (!tb_board_called(cell, s->drive.place))
        s->drive.error = tb_common_different(s, s->called, done == UINT64_MAX ? "nothing and has left" : "another one");
    return true;
}

/* Whether all that this rank depends on have called the same. */
static bool state_agree(struct tb_common_drive *s)
{
    while (s->called < s->board->size) {
        const struct tb_board_cell *cell = tb_board_cell_of(s->board, s->called, s->drive.place);
        if (awaits(s, s->called)) {
            if (!tb_board_called(cell, s->drive.place) && !passed_by(s, cell))
                return false;
            if (TB_UNLIKELY(s->drive.error != TB_OK))
                return true;
            bool blocks = tb_common_exchanges(s);
            if (TB_UNLIKELY(cell->collective != s->drive.collective || cell->what != s->what || cell->root != s->root ||
                            cell->failed || (!blocks && cell->bytes != s->bytes))) {
                s->drive.error = tb_common_disagreement(s, cell, s->called);
                s->foreign = cell->collective != s->drive.collective;
                return true;
            }
            if (blocks)
                tb_common_exchange_hear(s, cell, s->called);
            if (TB_UNLIKELY(s->drive.error != TB_OK))
                return true;
            s->awaited++;
        }
        s->called++;
    }
    if (s->awaited == s->board->size - 1 && s->board->least < s->drive.place)
        s->board->least = s->drive.place; /* who calls has done all before */
    return true;
}

/* ---- the state machine ------------------------------------------------------------------------------------------- */

static uint32_t long_exchange(struct tb_common_drive *s)
{
    uint32_t n = tb_common_exchange_write(s);
    if (s->drive.error == TB_OK)
        n += tb_common_reduces(s) ? tb_common_fragments_fold_alone(s) : tb_common_exchange_take(s);
    if (s->drive.error == TB_OK && s->heard_long && s->counts[TB_BOARD_TAKEN] == s->fragments) {
        tb_board_count(s->board, TB_BOARD_TAKEN, s->drive.place, TB_BOARD_PASSED);
        tb_board_wake(s->board);
        s->heard_long = false;
    }
    return n;
}

static bool long_complete(const struct tb_common_drive *s)
{
    if (tb_common_exchanges(s))
        return tb_common_exchange_complete(s);
    if (tb_common_shares(s) && !s->alone && s->counts[TB_BOARD_FOLDED] < s->fragments)
        return false;
    return (!tb_common_gives(s) || s->counts[TB_BOARD_WROTE] == s->fragments) &&
           (!tb_common_gets(s) || s->counts[TB_BOARD_TAKEN] == s->fragments);
}

static uint32_t long_advance(struct tb_common_drive *s)
{
    return tb_common_exchanges(s) ? long_exchange(s)
           : tb_common_reduces(s) ? tb_common_fragments_reduce(s)
                                  : tb_common_fragments_bcast(s);
}

static void short_finish(struct tb_common_drive *s)
{
    if (tb_common_reduces(s) && tb_common_gets(s) && s->bytes > 0)
        s->drive.error = tb_common_reduce_whole(s, 0, (uint32_t)s->bytes);
    else if (s->what == TB_COMPOSITE_BCAST && tb_common_gets(s) && s->bytes > 0)
        tb_part_scatter(&s->get, 0, s->bytes, tb_board_cell_of(s->board, s->root, s->drive.place)->data);
}

/* Lets nobody wait for this rank. */
static void state_fail(struct tb_common_drive *s)
{
    if (s->stage == STAGE_OPEN || !must_call(s))
        state_call(s, true);
    for (int i = 0; i < TB_BOARD_COUNTERS; i++)
        tb_board_count(s->board, (enum tb_board_counter)i, s->drive.place, TB_BOARD_FAILED);
}

static void state_finish(struct tb_common_drive *s)
{
    struct tb_board *b = s->board;
    if (TB_UNLIKELY(s->drive.error != TB_OK && s->common->lost == NULL)) /* of a loss everyone is told */
        state_fail(s);
    if (tb_common_is_long(s))
        b->slot = (s->slot + s->counts[TB_BOARD_WROTE]) % TB_BOARD_SLOTS;
    tb_board_done(b, s->drive.place);
    tb_board_wake(b);
}

/* What it ends with, since it was heard that the others do not take part in it. */
static int state_verdict(const struct tb_common_drive *s)
{
    if (s->foreign)
        return tb_common_different(s, s->foreign_rank, tb_operation_name(s->foreign_operation));
    const struct tb_failure f = {tb_match_collective(s->drive.collective, s->foreign_operation, 0), s->foreign_rank, 0,
                                 false};
    return tb_failure_explain(&f);
}

/* Goes on as far as possible. True: it is finished, well or not. `n` grows with what was done. */
static bool state_advance(struct tb_common_drive *s, int *n)
{
    if (s->stage == STAGE_OPEN)
        s->slot = s->board->slot;
    if (TB_UNLIKELY(s->foreign || s->given_up) && s->drive.error == TB_OK)
        s->drive.error = state_verdict(s);
    if (TB_UNLIKELY(s->drive.error != TB_OK)) {
        state_finish(s);
        ++*n;
        return true;
    }
    if (s->stage == STAGE_OPEN) {
        if (must_call(s) && !state_call(s, false))
            return false;
        if (tb_common_exchanges(s))
            tb_common_exchange_own(s);
        s->stage = STAGE_CALLED;
        ++*n;
    }
    if (s->stage == STAGE_CALLED) {
        if (tb_common_is_long(s) && s->what != TB_COMPOSITE_BCAST)
            *n += (int)(tb_common_exchanges(s) ? tb_common_exchange_write(s) : tb_common_fragments_write(s));
        if (s->drive.error == TB_OK && !state_agree(s))
            return false;
        s->stage = STAGE_AGREED;
        ++*n;
    }
    if (s->drive.error == TB_OK && !tb_common_is_long(s) && !s->heard_long) {
        short_finish(s);
    } else if (s->drive.error == TB_OK) {
        *n += (int)long_advance(s);
        if (s->drive.error == TB_OK && !long_complete(s))
            return false;
    }
    state_finish(s);
    ++*n;
    return true;
}

/* It cannot be finished, since a process is lost. */
static void state_lose(struct tb_common_drive *s)
{
    const struct tb_peer *p = s->common->lost;
    s->drive.error = tb_error(tb_peer_error(p), "%s with process %u failed: %s", tb_common_name(s->what), p->proc.index,
                              p->story != NULL ? p->story : "it is lost");
    state_finish(s);
}

/* ---- the line of a channel --------------------------------------------------------------------------------------- */

/* Under this number this rank exchanges no messages, so whoever sends one has called another collective. */
static void state_hear(struct tb_common_drive *s, const struct tb_message *m)
{
    if (s->foreign || TB_MATCH_NUMBER(m->match) != s->drive.collective || (m->match & TB_MATCH_KEPT) != 0 ||
        TB_MATCH_OPERATION(m->match) == s->operation)
        return;
    s->foreign = true;
    s->foreign_operation = (uint8_t)TB_MATCH_OPERATION(m->match);
    s->foreign_rank = m->source_rank;
}

static void state_give_up(struct tb_common_drive *s, const struct tb_failure *f)
{
    if (s->foreign || s->given_up || !tb_failure_concerns(f, tb_match_collective(s->drive.collective, 0, 0)))
        return;
    s->given_up = true;
    s->foreign_operation = (uint8_t)TB_MATCH_OPERATION(f->match);
    s->foreign_rank = f->rank;
}

static void state_recall(struct tb_common_drive *s)
{
    const struct tb_failure *f =
        tb_failure_find(s->drive.channel->collective, tb_match_collective(s->drive.collective, 0, 0));
    if (f != NULL)
        state_give_up(s, f);
}

/* Looks again and again. Whoever waits for a rank that is about to come hears of it sooner than if it polled everything
 * else in between; not for long, since that must be done, too. */
static bool state_spin(struct tb_common_drive *s)
{
    int n = 0;
    if (!tb_engine_spins(s->drive.channel->engine))
        return false;
    for (uint32_t i = 0; i < LOOKS_IDLE; i++)
        if (state_advance(s, &n)) {
            tb_shm_heard(s->common->transport, 1);
            return true;
        }
    return false;
}

static void state_wait(struct tb_common_drive *s)
{
    struct tb_common *c = s->common;
    struct tb_channel *channel = s->drive.channel;
    if (tb_list_empty(&c->line))
        tb_list_append(c->active, &c->busy);
    tb_list_append(&c->line, &s->in_line);
    channel->engine->waiting.stirred = true;
    int looked = 0;
    struct tb_arrival *a;
    TB_LIST_EACH (a, &channel->collective->arrivals, struct tb_arrival, in_context) {
        state_hear(s, &a->message);
        if (++looked == ARRIVALS_LOOK)
            break;
    }
}

static bool common_start(struct tb_drive *d, void *state, bool idle)
{
    int n = 0;
    struct tb_common *c = state;
    struct tb_common_drive *s = TB_CONTAINER(d, struct tb_common_drive, drive);
    state_bind(s);
    s->common = c;
    s->board = c->board;
    s->drive.place = c->board->started++;
    s->stage = STAGE_OPEN;
    s->called = s->awaited = s->looks = s->free = 0;
    s->foreign = s->given_up = s->heard_long = false;
    s->drive.error = TB_OK;
    s->direct = s->alone = false;
    s->fragment = s->own_stripe = 0;
    tb_list_init(&s->in_line);
    for (int i = 0; i < TB_BOARD_COUNTERS; i++)
        s->counts[i] = 0;
    if (tb_common_exchanges(s))
        s->drive.error = tb_common_exchange_open(s);
    else if (tb_common_is_long(s))
        tb_common_fragments_cut(s);
    if (TB_UNLIKELY(d->channel->collective->failures != NULL))
        state_recall(s);
    if (tb_list_empty(&c->line) && (state_advance(s, &n) || (idle && state_spin(s))))
        return true;
    state_wait(s);
    return false;
}

static void common_skip(void *state, uint32_t count)
{
    struct tb_common *c = state;
    struct tb_board *b = c->board;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t number = b->started++;
        if (tb_list_empty(&c->line)) /* else it is done with the next one that is */
            tb_board_done(b, number);
    }
    tb_board_wake(b);
}

static void state_remove(struct tb_common_drive *s)
{
    struct tb_common *c = s->common;
    tb_list_remove(&s->in_line);
    if (tb_list_empty(&c->line))
        tb_list_remove(&c->busy);
}

static int common_advance(struct tb_list *active, bool thorough)
{
    int n = 0;
    struct tb_common *c;
    TB_LIST_EACH (c, active, struct tb_common, busy) {
        struct tb_common_drive *s = TB_CONTAINER(c->line.next, struct tb_common_drive, in_line);
        if (TB_UNLIKELY(thorough))
            s->looks = LOOKS_PATIENCE - 1;
        if (!state_advance(s, &n)) {
            if (TB_LIKELY(c->lost == NULL))
                continue;
            state_lose(s);
            n++;
        }
        tb_shm_heard(c->transport, 1);
        state_remove(s);
        s->drive.moved(&s->drive); /* the channel may be gone, and others may have started */
        break;
    }
    return n;
}

/* ---- failures ---------------------------------------------------------------------------------------------------- */

static void common_hear(void *state, const struct tb_message *m)
{
    struct tb_common *c = state;
    struct tb_common_drive *s;
    TB_LIST_EACH (s, &c->line, struct tb_common_drive, in_line)
        state_hear(s, m);
}

static void common_give_up(void *state, const struct tb_failure *f)
{
    struct tb_common *c = state;
    struct tb_common_drive *s;
    TB_LIST_EACH (s, &c->line, struct tb_common_drive, in_line)
        state_give_up(s, f);
}

static void common_lose(void *state, const struct tb_peer *peer)
{
    struct tb_common *c = state;
    c->lost = peer;
}

/* By the board others know, but there may be some that are not on it. */
static bool common_concerns(const struct tb_drive *d, const void *state)
{
    const struct tb_common *c = state;
    bool messages = TB_CONTAINER(d, const struct tb_common_drive, drive)->foreign;
    for (uint32_t i = 0; i < d->program->step_count; i++)
        messages |= d->program->steps[i].kind == TB_STEP_SEND || d->program->steps[i].kind == TB_STEP_RECEIVE;
    return messages && d->error != TB_ERR_GIVEN_UP && c->lost == NULL;
}

static void common_describe(const struct tb_drive *d, struct tb_wait *wait)
{
    const struct tb_common_drive *s = TB_CONTAINER(d, const struct tb_common_drive, drive);
    wait->state = TB_WAIT_MOVING;
    for (uint32_t rank = s->called; rank < s->board->size; rank++)
        if (awaits(s, rank) && !tb_board_called(tb_board_cell_of(s->board, rank, d->place), d->place)) {
            wait->rank = rank;
            wait->state = TB_WAIT_UNCALLED;
            return;
        }
}

/* ---- channels ---------------------------------------------------------------------------------------------------- */

/* Shared memory itself, or NULL. */
static struct tb_transport *memory_of(const struct tb_engine *e)
{
    return e->local != NULL && e->local->table == &tb_transport_shm ? e->local : NULL;
}

static void common_claim(struct tb_engine *e, uint64_t context, bool first)
{
    if (memory_of(e) != NULL)
        tb_board_claim(memory_of(e), context, first);
}

static void common_unclaim(struct tb_engine *e, uint64_t context)
{
    if (memory_of(e) != NULL)
        tb_board_unclaim(memory_of(e), context);
}

/* Whether all of its ranks are on this host, and may have a board. */
static bool is_near(const struct tb_engine *e, const struct tb_channel_config *config)
{
    bool near = config->common && config->size > 1;
    for (uint32_t rank = 0; rank < config->size && near; rank++) {
        struct tb_proc proc = {e->config.transport.self.job, config->procs == NULL ? rank : config->procs[rank]};
        near = e->config.is_local != NULL && e->config.is_local(e->config.context, proc);
    }
    return near;
}

/* The board of ranks that are all on this host, if one was claimed; if they are not, it is not needed. */
static int common_open(struct tb_engine *e, const struct tb_channel_config *config, void **state)
{
    struct tb_transport *memory = memory_of(e);
    struct tb_board *board = NULL;
    *state = NULL;
    if (memory == NULL)
        return TB_OK;
    if (!is_near(e, config)) {
        if (tb_context_leader(config->context) == e->config.transport.self.index)
            tb_board_unclaim(memory, config->context);
        return TB_OK;
    }
    int error = tb_board_open(memory, config->context, config->size, config->rank, config->procs, &board);
    if (error != TB_OK || board == NULL)
        return error;
    struct tb_common *c = calloc(1, sizeof *c);
    if (c == NULL) {
        tb_board_close(board);
        return tb_error(TB_ERR_MEMORY, "no memory for the shared memory of a communicator");
    }
    *c = (struct tb_common){.transport = memory, .board = board, .active = &e->driving.active[TB_DRIVER_COMMON]};
    tb_list_init(&c->line);
    tb_list_init(&c->busy);
    *state = c;
    return TB_OK;
}

static void common_close(void *state)
{
    struct tb_common *c = state;
    tb_board_close(c->board);
    free(c);
}

const struct tb_driver_table tb_driver_common = {.name = "common memory",
                                                 .claim = common_claim,
                                                 .unclaim = common_unclaim,
                                                 .open = common_open,
                                                 .close = common_close,
                                                 .start = common_start,
                                                 .skip = common_skip,
                                                 .advance = common_advance,
                                                 .concerns = common_concerns,
                                                 .lose = common_lose,
                                                 .give_up = common_give_up,
                                                 .hear = common_hear,
                                                 .describe = common_describe};
