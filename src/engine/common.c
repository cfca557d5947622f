#include "engine/common.h"

#include "engine/common_channel.h"
#include "engine/common_cut.h"
#include "engine/common_exchange.h"
#include "engine/common_fragment.h"
#include "engine/common_members.h"
#include "engine/common_place.h"
#include "engine/common_reduce.h"
#include "engine/engine_state.h"

#define LOOKS_PATIENCE 32u /* before it is asked whether the other has passed by */
#define LOOKS_IDLE     24u /* of a caller that has nothing else to do */
#define LOOKS_CELL     8u  /* at the cell alone, for each of these */
#define ARRIVALS_LOOK  256 /* that may belong to another collective of the same number */

#define OVERHEARD 8u /* places before the next one that are looked at, of collectives that are not over */

_Static_assert(TB_OPERATION_COUNT < 128, "operations fit into seven bits of a cell");

enum stage { STAGE_OPEN, STAGE_CALLED, STAGE_AGREED };

/* What the step is about. */
static void state_bind(struct tb_common_drive *s)
{
    const struct tb_binding *binding = s->drive.binding;
    const struct tb_program *program = s->drive.program;
    const struct tb_step *step = s->drive.step;
    s->what = step->contract.composite;
    s->operation = binding->operation;
    s->bytes = 0;
    s->op = binding->op;
    s->unit = s->op != NULL ? binding->element_bytes : 1;
    if (s->what >= TB_COMPOSITE_GATHER && s->op == NULL)
        return;
    tb_binding_part(binding, program, step, &step->slice, 0, &s->give, &s->rooms[0]);
    tb_binding_part(binding, program, step, &step->other, 0, &s->get, &s->rooms[1]);
    s->bytes = step->slice.count > 0 ? s->give.length : s->get.length;
    s->type = s->give.buffer->type;
    if (TB_UNLIKELY(step->items > 1))
        s->bytes = tb_common_cut_measure(s).all;
}

/* Who takes part. */
static int state_gather(struct tb_common_drive *s)
{
    s->who = NULL;
    s->size = s->board->size;
    s->rank = s->board->rank;
    s->root = s->drive.step->peer;
    if (TB_LIKELY(s->drive.step->member_count == 0 && s->common->ranks == NULL))
        return TB_OK;
    return tb_common_members_find(s);
}

/* ---- calling ----------------------------------------------------------------------------------------------------- */

/* Whether this rank waits until the other has called. */
static bool awaits(const struct tb_common_drive *s, uint32_t rank)
{
    if (rank == s->rank)
        return false;
    return tb_common_takes_from(s, rank) || s->what == TB_COMPOSITE_BARRIER ||
           (s->what == TB_COMPOSITE_REDUCE && s->is_long && !s->alone);
}

/* Whether this rank's column is not needed any more for what was there before. */
static inline bool column_is_free(const struct tb_common_drive *s)
{
    uint64_t place = s->drive.place;
    return place < TB_BOARD_COLUMNS ||
           (place - TB_BOARD_COLUMNS < s->board->done && tb_board_all_passed(s->board, place - TB_BOARD_COLUMNS));
}

/* Says what this rank calls, with its data if it is short. False: the cell is still needed. */
static bool state_call(struct tb_common_drive *s, bool failed)
{
    struct tb_board *b = s->board;
    if (!column_is_free(s))
        return false;
    struct tb_board_cell *cell = tb_board_cell_of(b, b->rank, s->drive.place);
    cell->what = s->what;
    cell->root = s->root;
    cell->behind = (uint16_t)(s->drive.place - b->done);
    cell->bytes = s->bytes;
    cell->failed = failed;
    cell->operation = s->operation & 0x7f;
    cell->collective = s->drive.collective;
    if (tb_common_exchanges(s) && !failed)
        tb_common_exchange_call(s, cell);
    else if (tb_common_gives(s) && !failed && !s->is_long && s->bytes > 0)
        tb_part_gather(&s->give, 0, s->bytes, cell->data);
    if (s->is_long && !failed)
        tb_common_slots_foresee(s, cell);
    tb_board_call(cell, s->drive.place);
    return true;
}

/* Those that only get short data need not say anything. */
static bool must_call(const struct tb_common_drive *s)
{
    return tb_common_gives(s) || s->is_long || s->what == TB_COMPOSITE_BARRIER;
}

/* Whether the awaited rank has done its collective of this number without a call: it was another one, or that rank was
 * told sooner that somebody has given it up, and by whom comes here in a moment. */
static bool passed_by(struct tb_common_drive *s, const struct tb_board_cell *cell)
{
    if (TB_LIKELY(++s->looks % LOOKS_PATIENCE != 0))
        return false;
    uint32_t rank = tb_common_who(s, s->called);
    if (!tb_board_passed(s->board, rank, s->drive.place))
        return false;
    if (tb_board_called(cell, s->drive.place))
        return true;
    if (!tb_common_is_missed(s))
        return false;
    const struct tb_board_member *m = tb_board_member_of(s->board, rank);
    bool left = atomic_load_explicit(&m->done.value, memory_order_relaxed) == TB_BOARD_LEFT;
    s->drive.error = tb_common_different(s, tb_common_rank(s, s->called), left ? "nothing and has left" : NULL);
    return true;
}

/* Whether all that this rank depends on have called the same. */
static bool state_agree(struct tb_common_drive *s)
{
    while (s->called < s->size) {
        const struct tb_board_cell *cell = tb_common_cell(s, s->called);
        if (awaits(s, s->called)) {
            if (!tb_board_called(cell, s->drive.place) && !passed_by(s, cell))
                return false;
            if (TB_UNLIKELY(s->drive.error != TB_OK))
                return true;
            bool blocks = tb_common_exchanges(s);
            if (TB_UNLIKELY(cell->collective != s->drive.collective || cell->what != s->what || cell->root != s->root ||
                            cell->operation != s->operation || cell->failed || (!blocks && cell->bytes != s->bytes))) {
                s->drive.error = tb_common_disagreement(s, cell, s->called);
                s->foreign = cell->collective != s->drive.collective;
                return true;
            }
            if (blocks)
                tb_common_exchange_hear(s, cell, s->called);
            if (TB_UNLIKELY(s->drive.error != TB_OK))
                return true;
            s->awaited++;
            s->behind = cell->behind > s->behind ? cell->behind : s->behind;
        }
        s->called++;
    }
    if (s->awaited == s->board->size - 1 && s->board->least < s->drive.place - s->behind)
        s->board->least = s->drive.place - s->behind; /* as all of them have said */
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
        tb_part_scatter(&s->get, 0, s->bytes, tb_common_cell(s, s->root)->data);
}

/* Lets nobody wait for this rank. */
static void state_fail(struct tb_common_drive *s)
{
    if (s->stage == STAGE_OPEN || !must_call(s))
        state_call(s, true);
    if (!column_is_free(s))
        return; /* who comes here later finds this place finished */
    for (int i = 0; i < TB_BOARD_COUNTERS; i++)
        tb_board_count(s->board, (enum tb_board_counter)i, s->drive.place, TB_BOARD_FAILED);
}

static void state_finish(struct tb_common_drive *s)
{
    if (TB_UNLIKELY(s->drive.error != TB_OK && s->common->lost == NULL)) /* of a loss everyone is told */
        state_fail(s);
    if (TB_LIKELY(s->drive.error == TB_OK))
        s->drive.done = s->drive.step->items;
    if (TB_UNLIKELY(s->who != NULL))
        tb_common_members_forget(s);
    tb_common_finish(s->common, s->drive.reserved, s->drive.place);
    tb_board_wake(s->board);
}

/* What it ends with, since it was heard that the others do not take part in it. */
static int state_verdict(const struct tb_common_drive *s)
{
    if (s->foreign)
        return tb_common_different(s, s->foreign_rank, tb_operation_name(s->foreign_operation));
    const struct tb_failure f = {tb_match_collective(s->drive.collective, s->foreign_operation, 0), s->foreign_rank, 0,
                                 false, 0};
    return tb_failure_explain(&f, s->drive.channel->rank, s->drive.binding);
}

/* Goes on as far as possible. True: it is finished, well or not. `n` grows with what was done. */
static bool state_advance(struct tb_common_drive *s, int *n)
{
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
        if (s->is_long && s->what != TB_COMPOSITE_BCAST)
            *n += (int)(tb_common_exchanges(s) ? tb_common_exchange_write(s) : tb_common_fragments_write(s));
        if (s->drive.error == TB_OK && !state_agree(s))
            return false;
        s->stage = STAGE_AGREED;
        ++*n;
    }
    if (s->drive.error == TB_OK && !s->is_long && !s->heard_long) {
        short_finish(s);
    } else if (s->drive.error == TB_OK) {
        *n += (int)long_advance(s);
        if (s->drive.error == TB_OK && !long_complete(s)) {
            uint32_t items = s->per_item > 0 ? tb_common_cut_items(s) : 0;
            s->drive.done = items < s->drive.step->items ? items : s->drive.step->items - 1;
            return false;
        }
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

/* ---- the drives of a channel ---------------------------------------------------------------------------------------
 */

/* Of its collective, by which failures are told. */
static uint64_t state_name(const struct tb_common_drive *s)
{
    return tb_match_collective(s->drive.collective, 0, 0) | tb_binding_sort(s->drive.binding);
}

/* Under this number this rank exchanges messages of this operation alone, so whoever sends one of another has called
 * another collective. */
static void state_hear(struct tb_common_drive *s, const struct tb_message *m)
{
    if (s->foreign || TB_MATCH_NUMBER(m->match) != s->drive.collective ||
        (m->match & UINT8_MAX) != tb_binding_sort(s->drive.binding) || TB_MATCH_OPERATION(m->match) == s->operation)
        return;
    s->foreign = true;
    s->foreign_operation = (uint8_t)TB_MATCH_OPERATION(m->match);
    s->foreign_rank = m->source_rank;
}

static void state_give_up(struct tb_common_drive *s, const struct tb_failure *f)
{
    if (s->foreign || s->given_up || !tb_failure_concerns(f, state_name(s)))
        return;
    s->given_up = true;
    s->foreign_operation = (uint8_t)TB_MATCH_OPERATION(f->match);
    s->foreign_rank = f->rank;
}

static void state_recall(struct tb_common_drive *s)
{
    const struct tb_failure *f = tb_failure_find(s->drive.channel->collective, state_name(s));
    if (f != NULL)
        state_give_up(s, f);
}

/* Until the one that is awaited has called, which nothing but its cell tells, or for a moment. */
static void cell_watch(const struct tb_common_drive *s)
{
    if (s->stage != STAGE_CALLED || s->is_long || s->called >= s->size)
        return;
    const struct tb_board_cell *cell = tb_common_cell(s, s->called);
    for (uint32_t i = 0; i < LOOKS_CELL && !tb_board_called(cell, s->drive.place); i++) {
    }
}

/* Where lanes share the transport, frames alone tell that a rank is busy. */
static inline void common_heard(const struct tb_common *c)
{
    if (TB_LIKELY(c->engine->lanes == NULL))
        tb_shm_heard(c->transport, 1);
}

/* Looks again and again. Whoever waits for a rank that is about to come hears of it sooner than if it polled everything
 * else in between; not for long, since that must be done, too. */
static bool state_spin(struct tb_common_drive *s)
{
    int n = 0;
    if (!tb_engine_spins(s->drive.channel->engine))
        return false;
    for (uint32_t i = 0; i < LOOKS_IDLE; i++) {
        cell_watch(s);
        if (state_advance(s, &n)) {
            common_heard(s->common);
            return true;
        }
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

/* Of long data, or of blocks. */
static void state_cut(struct tb_common_drive *s)
{
    s->alone = false;
    s->free = s->fragment = s->own_stripe = s->per_item = 0;
    for (int i = 0; i < TB_BOARD_COUNTERS; i++)
        s->counts[i] = 0;
    s->counters = tb_board_line_of(s->board, s->board->rank, TB_BOARD_WROTE, s->drive.place);
    if (s->drive.error != TB_OK)
        return;
    if (tb_common_exchanges(s))
        s->drive.error = tb_common_exchange_open(s);
    else
        tb_common_cut(s);
}

static bool common_start(struct tb_drive *d, void *state, bool idle)
{
    int n = 0;
    struct tb_common *c = state;
    struct tb_common_drive *s = TB_CONTAINER(d, struct tb_common_drive, drive);
    s->common = c;
    s->board = c->board;
    d->place = d->reserved != NULL ? d->reserved->first + d->step->edge : c->next++;
    d->done = 0;
    state_bind(s);
    d->error = state_gather(s);
    s->stage = STAGE_OPEN;
    s->called = s->awaited = s->behind = s->looks = 0;
    s->missed = 0;
    s->foreign = s->given_up = s->heard_long = s->direct = false;
    s->is_long = s->bytes > TB_BOARD_SHORT || d->step->items > 1;
    tb_list_init(&s->in_line);
    if (s->is_long || tb_common_exchanges(s))
        state_cut(s);
    if (TB_UNLIKELY(d->channel->collective->failures != NULL))
        state_recall(s);
    if (state_advance(s, &n) || (idle && tb_list_empty(&c->line) && state_spin(s)))
        return true;
    if (d->reserved == NULL) {
        s->own = (struct tb_reserved){.first = d->place, .left = 1};
        d->reserved = &s->own;
        tb_list_append(&c->reserved, &s->own.in_order);
    }
    state_wait(s);
    return false;
}

static void state_remove(struct tb_common_drive *s)
{
    struct tb_common *c = s->common;
    tb_list_remove(&s->in_line);
    if (tb_list_empty(&c->line))
        tb_list_remove(&c->busy);
}

static bool common_extend(struct tb_drive *d, void *state)
{
    int n = 0;
    struct tb_common_drive *s = TB_CONTAINER(d, struct tb_common_drive, drive);
    tb_common_cut_allow(s);
    if (!state_advance(s, &n))
        return false;
    state_remove(s);
    return true;
}

static void common_stop(struct tb_drive *d, int error)
{
    d->error = d->error == TB_OK ? error : d->error; /* it ends when it is advanced */
    d->channel->engine->waiting.stirred = true;
}

static void common_reserve(void *state, struct tb_reserved *r, uint32_t places, uint32_t collective, uint8_t operation)
{
    tb_common_reserve(state, r, places);
}

static void common_forgo(void *state, struct tb_reserved *r, uint32_t places)
{
    struct tb_common *c = state;
    for (uint32_t i = 0; i < TB_PROGRAM_PLACES_LIMIT; i++)
        if ((places >> i & 1) != 0)
            tb_common_finish(c, r, r->first + i);
    if (places != 0)
        tb_board_wake(c->board);
}

/* Advances the drives of a channel. True: somebody was told, and the channel may be gone. */
static bool common_work(struct tb_common *c, bool thorough, int *n)
{
    struct tb_common_drive *s;
    TB_LIST_EACH (s, &c->line, struct tb_common_drive, in_line) {
        uint32_t before = s->drive.done;
        if (TB_UNLIKELY(thorough))
            s->looks = LOOKS_PATIENCE - 1;
        bool over = state_advance(s, n);
        if (!over && TB_UNLIKELY(c->lost != NULL)) {
            state_lose(s);
            ++*n;
            over = true;
        }
        if (!over && s->drive.done == before)
            continue;
        common_heard(c);
        tb_list_remove(&s->in_line);
        if (!over) /* others have their turn first */
            tb_list_append(&c->line, &s->in_line);
        else if (tb_list_empty(&c->line))
            tb_list_remove(&c->busy);
        s->drive.moved(&s->drive);
        return true;
    }
    return false;
}

static int common_advance(struct tb_list *active, bool thorough)
{
    int n = 0;
    struct tb_common *c;
    TB_LIST_EACH (c, active, struct tb_common, busy)
        if (common_work(c, thorough, &n))
            break;
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

/* Whoever needs something of a process that is not on the board is told so by messages. */
static void common_lose(void *state, const struct tb_peer *peer)
{
    struct tb_common *c = state;
    bool here = c->ranks == NULL;
    for (uint32_t i = 0; i < c->size && !here; i++)
        here = c->procs[i] == peer->proc.index;
    if (here)
        c->lost = peer;
}

/* By the board others know, but there may be some that are not on it, or not at this place. */
static bool common_concerns(const struct tb_drive *d, const void *state)
{
    const struct tb_common *c = state;
    bool others = TB_CONTAINER(d, const struct tb_common_drive, drive)->foreign || d->program->places > 1 ||
                  d->step->member_count > 0;
    for (uint32_t i = 0; i < d->program->step_count; i++)
        others |= d->program->steps[i].kind == TB_STEP_SEND || d->program->steps[i].kind == TB_STEP_RECEIVE;
    return others && d->error != TB_ERR_GIVEN_UP && c->lost == NULL;
}

static bool common_overhear(void *state, uint32_t collective, uint8_t operation, uint32_t *rank, uint8_t *theirs)
{
    struct tb_common *c = state;
    struct tb_reserved r;
    const struct tb_board *b = c->board;
    uint64_t first = c->next > OVERHEARD ? c->next - OVERHEARD : 0;
    for (uint32_t member = 0; member < b->size; member++)
        for (uint64_t place = first; place <= c->next && member != b->rank; place++) {
            const struct tb_board_cell *cell = tb_board_cell_of(b, member, place);
            if (!tb_board_called(cell, place) || cell->collective != collective || cell->operation == operation)
                continue;
            *theirs = cell->operation;
            *rank = c->ranks != NULL ? c->ranks[member] : member;
            if (!tb_board_called(cell, place)) /* nobody waits for this rank to use the cell again */
                continue;
            if (place == c->next) { /* it has a place with others, none with this rank */
                tb_common_reserve(c, &r, 1);
                common_forgo(c, &r, r.left);
            }
            return true;
        }
    return false;
}

static void common_describe(const struct tb_drive *d, struct tb_wait *wait)
{
    const struct tb_common_drive *s = TB_CONTAINER(d, const struct tb_common_drive, drive);
    wait->state = TB_WAIT_MOVING;
    for (uint32_t member = s->called; member < s->size; member++)
        if (awaits(s, member) && !tb_board_called(tb_common_cell(s, member), d->place)) {
            wait->rank = tb_common_rank(s, member);
            wait->state = TB_WAIT_UNCALLED;
            return;
        }
}

const struct tb_driver_table tb_driver_common = {.name = "common memory",
                                                 .meets = true,
                                                 .claim = tb_common_claim,
                                                 .unclaim = tb_common_unclaim,
                                                 .open = tb_common_open,
                                                 .enter = tb_common_enter,
                                                 .pass = tb_common_pass,
                                                 .proposed = tb_common_proposed,
                                                 .provides = tb_common_provides,
                                                 .agree = tb_common_agree,
                                                 .close = tb_common_close,
                                                 .start = common_start,
                                                 .reserve = common_reserve,
                                                 .forgo = common_forgo,
                                                 .extend = common_extend,
                                                 .stop = common_stop,
                                                 .advance = common_advance,
                                                 .deadline = tb_common_deadline,
                                                 .concerns = common_concerns,
                                                 .lose = common_lose,
                                                 .give_up = common_give_up,
                                                 .hear = common_hear,
                                                 .overhear = common_overhear,
                                                 .describe = common_describe};
