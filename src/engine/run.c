#include "engine/run.h"

#include "engine/engine_state.h"

#include <stdlib.h>

#define PORTION (256u << 10) /* bytes that are copied or reduced before others get their turn */

static uint64_t run_match(const struct tb_run *run, const struct tb_step *s)
{
    const struct tb_binding *b = &run->binding;
    return tb_match_collective(b->numbers[s->group], b->operation, s->edge) | tb_binding_sort(b);
}

/* ---- items ------------------------------------------------------------------------------------------------------- */

static void run_advance(struct tb_run *run);

/* Something of it has ended. What follows may call functions of the program's, which are not for a standby. */
static void run_proceed(struct tb_run *run)
{
    struct tb_engine *e = run->request->engine;
    if (TB_LIKELY(!e->aside))
        run_advance(run);
    else if (tb_list_empty(&run->in_put_off))
        tb_list_append(&e->runs.put_off, &run->in_put_off);
}

void tb_runs_resume(struct tb_runs *runs)
{
    while (!tb_list_empty(&runs->put_off)) {
        struct tb_run *run = TB_CONTAINER(runs->put_off.next, struct tb_run, in_put_off);
        tb_list_remove(&run->in_put_off);
        run_advance(run);
    }
}

/* Ends it with the first error, whose story is told again to whoever waits for the whole. What would still have been
 * started with a driver is left out there. */
static void run_stop(struct tb_run *run, int error)
{
    uint32_t left[TB_DRIVERS_LIMIT] = {0};
    run->error = error;
    tb_request_keep_story(run->request, error);
    for (uint32_t i = 0; i < run->program->step_count; i++) {
        const struct tb_step *s = &run->program->steps[i];
        if (s->kind == TB_STEP_COMPOSITE && run->progress[i].started == 0)
            left[s->contract.driver] |= 1u << s->edge;
    }
    if (run->drivers != NULL)
        tb_driven_forgo(run->drivers, run->reserved, left);
}

static void run_fail(struct tb_run *run, int error)
{
    if (run->error != TB_OK)
        return;
    run_stop(run, error);
    tb_channel_give_up(run->request->channel, run->program, &run->binding, error);
}

/* Another rank has given it up. */
static void run_follow(struct tb_run *run, const struct tb_failure *f)
{
    struct tb_channel *channel = run->request->channel;
    uint32_t places = tb_channel_places(channel, run->program, &run->binding);
    run_stop(run, tb_failure_explain(f, channel->rank, &run->binding));
    if (f->places > places)
        tb_driven_skip(tb_channel_drivers(channel, &run->binding), &run->binding, f->places - places);
    tb_channel_pass_on(channel, run->program, &run->binding, f);
}

static void progress_settle(struct tb_run *run, struct tb_run_progress *p)
{
    while (p->done < p->started && run->items[p->first + p->done % p->window].state == TB_ITEM_DONE) {
        run->items[p->first + p->done % p->window].state = TB_ITEM_IDLE;
        p->done++;
    }
}

/* A receive of a collective must bring exactly what the program expects, since counts are equal on all ranks; unless
 * the step is there to learn the length. */
static int item_verdict(const struct tb_run_item *item)
{
    const struct tb_request *r = &item->request;
    if (r->status.error != TB_OK || r->kind != TB_REQUEST_RECEIVE || r->status.cancelled || r->length == r->room)
        return r->status.error;
    if (item->run->program->steps[item->step].upto && r->length < r->room)
        return TB_OK;
    if (r->length == 0)
        return tb_error(TB_ERR_MISMATCH,
                        "%s: rank %u cannot give the %llu bytes that this rank expects: ranks do not "
                        "agree about sizes",
                        tb_operation_name(item->run->binding.operation), r->rank, (unsigned long long)r->room);
    return tb_error(TB_ERR_MISMATCH, "%s: rank %u has sent %llu byte%s where this rank expects %llu",
                    tb_operation_name(item->run->binding.operation), r->rank, (unsigned long long)r->length,
                    tb_plural(r->length), (unsigned long long)r->room);
}

static void item_complete(struct tb_request *request)
{
    struct tb_run_item *item = TB_CONTAINER(request, struct tb_run_item, request);
    struct tb_run *run = item->run;
    int error = item_verdict(item);
    if (error != TB_OK) {
        if (request->status.error != TB_OK)
            tb_request_explain(request);
        run_fail(run, error);
    }
    item->state = TB_ITEM_DONE;
    run->active--;
    progress_settle(run, &run->progress[item->step]);
    run_proceed(run);
}

/* ---- copies and reductions --------------------------------------------------------------------------------------- */

static void part_copy(const struct tb_part *from, const struct tb_part *to, uint64_t at, uint64_t length)
{
    struct tb_spans in, out;
    tb_buffer_spans(from->buffer, from->from + at, length, &in);
    tb_buffer_spans(to->buffer, to->from + at, length, &out);
    tb_spans_move(&in, &out);
}

static void *part_item(const struct tb_part *part, uint64_t at)
{
    const struct tb_type *type = part->buffer->type;
    uint64_t item = (part->from + at) / type->size;
    return (char *)((uintptr_t)part->buffer->base + item * (uint64_t)type->extent);
}

/* Does the next portion of a copy or reduction; true when all is done. */
static bool item_work(struct tb_run_item *item)
{
    struct tb_run *run = item->run;
    const struct tb_step *s = &run->program->steps[item->step];
    struct tb_part from, to;
    struct tb_buffer rooms[2];
    tb_binding_part(&run->binding, run->program, s, &s->slice, item->index, &from, &rooms[0]);
    tb_binding_part(&run->binding, run->program, s, &s->other, item->index, &to, &rooms[1]);
    if (from.length != to.length && (s->slice.symbol != TB_SYMBOL_WORK || run->program->binds))
        run_fail(run, tb_error(from.length > to.length ? TB_ERR_TRUNCATE : TB_ERR_MISMATCH,
                               "%s: this rank gives itself %llu bytes where it expects %llu",
                               tb_operation_name(run->binding.operation), (unsigned long long)from.length,
                               (unsigned long long)to.length));
    if (run->error != TB_OK)
        return true;
    uint64_t total = from.length < to.length ? from.length : to.length;
    uint64_t portion = total - item->moved < PORTION ? total - item->moved : PORTION;
    if (portion == 0)
        return true;
    if (s->kind == TB_STEP_COPY) {
        part_copy(&from, &to, item->moved, portion);
    } else {
        const struct tb_type *type = to.buffer->type;
        uint64_t items = portion < type->size ? 1 : portion / type->size;
        portion = items * type->size;
        int error =
            tb_op_apply(run->binding.op, part_item(&from, item->moved), part_item(&to, item->moved), items, type);
        if (error != TB_OK)
            run_fail(run, error);
    }
    item->moved += portion;
    return item->moved >= total;
}

/* ---- sizes ------------------------------------------------------------------------------------------------------- */

/* Sizes travel, so they are kept as they do. */
static void size_put(struct tb_run *run, uint32_t at, uint64_t value)
{
    uint8_t *bytes = (uint8_t *)&run->sizes[at];
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(value >> 8 * i);
}

static uint64_t size_get(const struct tb_run *run, uint32_t at)
{
    const uint8_t *bytes = (const uint8_t *)&run->sizes[at];
    uint64_t value = 0;
    for (int i = 0; i < 8; i++)
        value |= (uint64_t)bytes[i] << 8 * i;
    return value;
}

static void run_measure(struct tb_run *run, const struct tb_step *s, uint32_t index)
{
    struct tb_part part;
    struct tb_buffer room;
    tb_binding_part(&run->binding, run->program, s, &s->slice, index, &part, &room);
    size_put(run, tb_slice_piece(run->program, &s->other, index), part.length);
}

/* WORK is as large, and cut so, as the sizes say. */
static void run_bind(struct tb_run *run, const struct tb_step *s)
{
    struct tb_binding *b = &run->binding;
    uint64_t *offsets = run->sizes + run->program->size_pieces;
    offsets[0] = 0;
    for (uint32_t i = 0; i < s->slice.count; i++)
        if (__builtin_add_overflow(offsets[i], size_get(run, tb_slice_piece(run->program, &s->slice, i)),
                                   &offsets[i + 1]) ||
            offsets[i + 1] > INT64_MAX) {
            run_fail(run, tb_error(TB_ERR_MISMATCH, "%s: sizes of blocks are more than any memory can hold",
                                   tb_operation_name(b->operation)));
            return;
        }
    b->cuts[TB_SYMBOL_WORK] = TB_CUT_OFFSETS;
    b->buffers[TB_SYMBOL_WORK] = (struct tb_buffer){.type = &tb_type_byte};
    b->offsets = offsets;
    b->elements = offsets[s->slice.count];
    b->element_bytes = 1;
    int error = tb_binding_take_work(b, run->program, &run->request->engine->runs.cache, run->small, run->small_bytes,
                                     &run->work, &run->work_bytes);
    if (error != TB_OK)
        run_fail(run, error);
}

/* Memory for them. */
static int run_take_sizes(struct tb_run *run)
{
    size_t count = run->program->size_pieces;
    run->sizes = NULL;
    if (count == 0)
        return TB_OK;
    run->sizes = calloc(count + run->program->work_pieces + 1, sizeof *run->sizes);
    if (run->sizes == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for %zu sizes of blocks", count);
    run->binding.cuts[TB_SYMBOL_SIZES] = TB_CUT_BLOCKS;
    run->binding.buffers[TB_SYMBOL_SIZES] = (struct tb_buffer){run->sizes, sizeof *run->sizes, &tb_type_byte};
    return TB_OK;
}

/* ---- copies and reductions in turn ------------------------------------------------------------------------------- */

static void item_end(struct tb_run_item *item)
{
    struct tb_run *run = item->run;
    tb_list_remove(&item->working);
    item->state = TB_ITEM_DONE;
    run->active--;
    progress_settle(run, &run->progress[item->step]);
}

int tb_runs_work(struct tb_runs *runs)
{
    struct tb_run_item *item = TB_CONTAINER(runs->working.next, struct tb_run_item, working);
    struct tb_run *run = item->run;
    if (item_work(item) || run->error != TB_OK) {
        item_end(item);
        run_advance(run);
    } else {
        tb_list_remove(&item->working);
        tb_list_append(&runs->working, &item->working);
    }
    return 1;
}

/* ---- starting ---------------------------------------------------------------------------------------------------- */

static void item_start_local(struct tb_run *run, struct tb_run_item *item)
{
    struct tb_engine *e = run->request->engine;
    item->moved = 0;
    if (item_work(item))
        return;
    item->state = TB_ITEM_ACTIVE;
    run->active++;
    tb_list_append(&e->runs.working, &item->working);
    e->waiting.stirred = true;
}

static void item_start_message(struct tb_run *run, const struct tb_step *s, struct tb_run_item *item)
{
    struct tb_part part;
    struct tb_buffer room;
    tb_binding_part(&run->binding, run->program, s, &s->slice, item->index, &part, &room);
    if (s->other.count > 0) {
        struct tb_part shape;
        struct tb_buffer shape_room;
        tb_binding_part(&run->binding, run->program, s, &s->other, item->index, &shape, &shape_room);
        part.length = shape.length;
    }
    if (part.length == 0 && s->slice.count > 0 && !s->upto)
        return; /* no data: the other side knows it too */
    uint64_t match = run_match(run, s);
    struct tb_context *context = run->contexts[s->group];
    if (s->kind == TB_STEP_SEND && tb_send_try(context, &part, s->peer, match, TB_MODE_STANDARD) == TB_OK)
        return;
    item->state = TB_ITEM_ACTIVE;
    item->request.complete = item_complete;
    run->active++;
    if (s->kind == TB_STEP_SEND)
        tb_send_start(context, &item->request, &part, s->peer, match, TB_MODE_STANDARD);
    else
        tb_receive_start(context, &item->request, &part, s->peer, match, UINT64_MAX);
}

/* Takes over how far it is; true: it is over. */
static bool drive_settle(struct tb_run *run, uint32_t step, const struct tb_drive *d)
{
    run->progress[step].done = d->done;
    return tb_drive_over(d);
}

static void drive_judge(struct tb_run *run, const struct tb_drive *d)
{
    if (run->error != TB_OK || d->error == TB_OK)
        return;
    const struct tb_driven *driven = &run->drivers[d->step->contract.driver];
    if (driven->driver->concerns(d, driven->state))
        run_fail(run, d->error);
    else
        run_stop(run, d->error);
}

static void drive_moved(struct tb_drive *d)
{
    struct tb_run_item *item = TB_CONTAINER(d, struct tb_run_item, room.drive);
    struct tb_run *run = item->run;
    if (drive_settle(run, item->step, d)) {
        item->state = TB_ITEM_IDLE;
        run->active--;
        drive_judge(run, d);
    }
    run_proceed(run);
}

static bool step_ready(const struct tb_run *run, const struct tb_step *s, uint32_t index)
{
    for (uint32_t i = 0; i < s->after_count; i++) {
        const struct tb_after *after = &run->program->after[s->after + i];
        const struct tb_run_progress *before = &run->progress[after->step];
        if (before->done < before->items &&
            tb_step_waits(s, after, &run->program->steps[after->step], before->done, index))
            return false;
    }
    return true;
}

static bool drive_start(struct tb_run *run, const struct tb_step *s, struct tb_run_item *item, uint32_t ready)
{
    const struct tb_driven *driven = &run->drivers[s->contract.driver];
    item->run = run;
    item->step = (uint32_t)(s - run->program->steps);
    tb_list_init(&item->working);
    item->room.drive = (struct tb_drive){.channel = run->request->channel,
                                         .program = run->program,
                                         .step = s,
                                         .binding = &run->binding,
                                         .collective = run->binding.numbers[0],
                                         .ready = ready,
                                         .reserved = &run->reserved[s->contract.driver],
                                         .moved = drive_moved};
    return driven->driver->start(&item->room.drive, driven->state, false);
}

/* All items of a composite step are one drive, which is told how many of them are ready. True: it was told of more, and
 * may have finished them: nobody else would tell it of the next ones. */
static bool composite_tell(struct tb_run *run, uint32_t step)
{
    const struct tb_step *s = &run->program->steps[step];
    struct tb_run_progress *p = &run->progress[step];
    struct tb_run_item *item = &run->items[p->first];
    uint32_t ready = p->started;
    while (ready < p->items && ready - p->done < s->window && step_ready(run, s, ready))
        ready++;
    if (ready == p->started)
        return false;
    const struct tb_driven *driven = tb_channel_driver(run->request->channel, &run->binding, s);
    if (driven == NULL || run->drivers == NULL) {
        run_fail(run, tb_error(TB_ERR_UNSUPPORTED, "%s: ranks that share no memory have no driver for this step",
                               tb_operation_name(run->binding.operation)));
        return false;
    }
    struct tb_drive *d = &item->room.drive;
    bool first = p->started == 0, over;
    p->started = d->ready = ready;
    over = first ? drive_start(run, s, item, ready) : driven->driver->extend(d, driven->state);
    drive_settle(run, step, d);
    run->active += first && !over;
    run->active -= !first && over;
    item->state = over ? TB_ITEM_IDLE : TB_ITEM_ACTIVE;
    if (over)
        drive_judge(run, d);
    return !over;
}

static void item_start(struct tb_run *run, uint32_t step, uint32_t index)
{
    const struct tb_step *s = &run->program->steps[step];
    struct tb_run_progress *p = &run->progress[step];
    struct tb_run_item *item = &run->items[p->first + index % p->window];
    item->run = run;
    item->step = step;
    item->index = index;
    item->state = TB_ITEM_DONE;
    tb_list_init(&item->working);
    p->started++;
    if (s->kind == TB_STEP_COPY || s->kind == TB_STEP_REDUCE)
        item_start_local(run, item);
    else if (s->kind == TB_STEP_MEASURE)
        run_measure(run, s, index);
    else if (s->kind == TB_STEP_BIND)
        run_bind(run, s);
    else
        item_start_message(run, s, item);
}

/* ---- the run ----------------------------------------------------------------------------------------------------- */

static void step_advance(struct tb_run *run, uint32_t step)
{
    const struct tb_step *s = &run->program->steps[step];
    struct tb_run_progress *p = &run->progress[step];
    while (s->kind == TB_STEP_COMPOSITE && composite_tell(run, step))
        continue;
    while (s->kind != TB_STEP_COMPOSITE && p->started < p->items && p->started - p->done < p->window &&
           run->error == TB_OK && step_ready(run, s, p->started)) {
        item_start(run, step, p->started);
        progress_settle(run, p);
    }
}

/* After an error nothing new is started, and what is on its way is called back as far as possible. */
static void run_cancel(struct tb_run *run)
{
    for (uint32_t step = run->low; step < run->program->step_count; step++) {
        const struct tb_run_progress *p = &run->progress[step];
        for (uint32_t i = 0; i < p->window && run->active > 0; i++) {
            struct tb_run_item *item = &run->items[p->first + i];
            if (item->state != TB_ITEM_ACTIVE)
                continue;
            const struct tb_step *s = &run->program->steps[step];
            if (s->kind == TB_STEP_COMPOSITE) {
                /* It goes on, since the other ranks count on it, unless it never can. */
                if (p->started < p->items)
                    run->drivers[s->contract.driver].driver->stop(&item->room.drive, run->error);
            } else if (tb_list_empty(&item->working)) {
                tb_request_cancel_locked(&item->request);
            } else {
                item_end(item);
            }
        }
    }
}

static void run_end(struct tb_run *run)
{
    struct tb_request *request = run->request;
    struct tb_channel *local = run->binding.local;
    int error = run->error;
    tb_list_remove(&run->in_all);
    tb_list_remove(&run->in_put_off); /* of several events the last may have come without a standby */
    if (run->work != NULL)
        tb_work_cache_give(&request->engine->runs.cache, run->work, run->work_bytes);
    free(run->sizes);
    free(run->memory);
    if (local != NULL)
        tb_channel_drop(local);
    tb_request_finish(request, error);
}

static void run_advance(struct tb_run *run)
{
    if (run->advancing) {
        run->again = true;
        return;
    }
    uint32_t count = run->program->step_count;
    run->advancing = true;
    do {
        run->again = false;
        while (run->low < count && run->progress[run->low].done == run->progress[run->low].items)
            run->low++;
        for (uint32_t step = run->low; step < count && run->error == TB_OK; step++)
            step_advance(run, step);
        if (run->error != TB_OK)
            run_cancel(run);
    } while (run->again);
    run->advancing = false;
    while (run->low < count && run->progress[run->low].done == run->progress[run->low].items)
        run->low++;
    if (run->active == 0 && (run->error != TB_OK || run->low == count))
        run_end(run);
}

void tb_run_number(struct tb_channel *channel, struct tb_binding *binding)
{
    binding->numbers[0] = tb_channel_next_collective(channel);
    if (binding->local != NULL)
        binding->numbers[1] = tb_channel_next_collective(binding->local);
}

/* Takes the places of a program with each driver, as all ranks do, whatever steps they have. */
static void run_reserve(struct tb_run *run, struct tb_channel *channel)
{
    uint32_t places = tb_channel_places(channel, run->program, &run->binding), used[TB_DRIVERS_LIMIT] = {0};
    run->drivers = NULL;
    if (TB_LIKELY(places == 0))
        return;
    for (uint32_t i = 0; i < run->program->step_count; i++)
        if (run->program->steps[i].kind == TB_STEP_COMPOSITE)
            used[run->program->steps[i].contract.driver] |= 1u << run->program->steps[i].edge;
    run->drivers = tb_channel_drivers(channel, &run->binding);
    tb_driven_reserve(run->drivers, run->reserved, &run->binding, places, used);
}

/* That of its channels which has lost a process; NULL: none has. */
static const struct tb_channel *bereft_channel(const struct tb_run *run)
{
    const struct tb_channel *channel = run->request->channel, *local = run->binding.local;
    if (TB_UNLIKELY(channel->lost != NULL))
        return channel;
    return TB_UNLIKELY(local != NULL && local->lost != NULL) ? local : NULL;
}

void tb_run_start(struct tb_run *run, struct tb_channel *channel, struct tb_request *request,
                  const struct tb_program *program, const struct tb_binding *binding)
{
    struct tb_channel *local = binding->local;
    run->request = request;
    run->program = program;
    run->binding = *binding;
    if (program->work_whole && binding->cuts[TB_SYMBOL_IN] == TB_CUT_OFFSETS)
        run->binding.cuts[TB_SYMBOL_WORK] = TB_CUT_OFFSETS;
    if (!binding->numbered)
        tb_run_number(channel, &run->binding);
    run->contexts[0] = channel->collective;
    run->contexts[1] = NULL;
    if (local != NULL) {
        local->users++; /* until the run ends */
        run->contexts[1] = local->collective;
    }
    run->low = run->active = 0;
    run->advancing = run->again = false;
    run->error = TB_OK;
    tb_list_init(&run->in_put_off);
    tb_list_append(&channel->engine->runs.all, &run->in_all);
    uint32_t first = 0;
    for (uint32_t i = 0; i < program->step_count; i++) {
        uint32_t window = tb_run_window(&program->steps[i]);
        run->progress[i] = (struct tb_run_progress){.items = program->steps[i].items, .window = window, .first = first};
        for (uint32_t k = first; k < first + window; k++)
            run->items[k].state = TB_ITEM_IDLE;
        first += window;
    }
    run->work = NULL;
    run_reserve(run, channel);
    const struct tb_failure *f = NULL;
    if (TB_UNLIKELY(channel->collective->failures != NULL))
        f = tb_failure_at_start(channel->collective, tb_failure_name(&run->binding));
    if (TB_UNLIKELY(f != NULL))
        run_follow(run, f);
    const struct tb_channel *bereft = bereft_channel(run);
    if (TB_UNLIKELY(bereft != NULL))
        run_fail(run, tb_channel_mourn(bereft));
    int error = run_take_sizes(run);
    if (error == TB_OK && !program->binds)
        error = tb_binding_take_work(&run->binding, program, &channel->engine->runs.cache, run->small, run->small_bytes,
                                     &run->work, &run->work_bytes);
    if (error != TB_OK)
        run_fail(run, error);
    run_advance(run);
}

void tb_runs_give_up(struct tb_runs *runs, const struct tb_context *c, const struct tb_failure *f)
{
    struct tb_run *run;
    bool found;
    do { /* from the beginning each time: one that ends may end or start others */
        found = false;
        TB_LIST_EACH (run, &runs->all, struct tb_run, in_all)
            if (run->contexts[0] == c && run->error == TB_OK &&
                tb_failure_concerns(f, tb_failure_name(&run->binding))) {
                run_follow(run, f);
                run_proceed(run);
                found = true;
                break;
            }
    } while (found);
}

void tb_runs_mourn(struct tb_runs *runs)
{
    struct tb_run *run;
    bool found;
    do { /* as above */
        found = false;
        TB_LIST_EACH (run, &runs->all, struct tb_run, in_all)
            if (run->error == TB_OK && bereft_channel(run) != NULL) {
                run_fail(run, tb_channel_mourn(bereft_channel(run)));
                run_proceed(run);
                found = true;
                break;
            }
    } while (found);
}
