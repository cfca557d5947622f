/* The executor: runs one program. A step's items (pieces) are started in order when what they depend on is done, at
 * most a window of them at a time. Sends that need no waiting use no request. Progress comes from the completion of
 * items. */
#include "engine/lane.h"

#include <stdlib.h>
#include <string.h>

#define SMALL_STEPS  16u
#define SMALL_ITEMS  16u
#define WINDOW_LIMIT 32u /* of a step that asks for all pieces at once: more does not make anything faster */

enum item_state { ITEM_IDLE, ITEM_ACTIVE, ITEM_DONE };

struct tb_run;

struct item {
    struct tb_request request;
    struct tb_run *run;
    uint32_t step;
    enum item_state state;
};

/* Items [0, done) are finished, [done, started) are on their way or finished out of order. */
struct progress {
    uint32_t items, started, done;
    uint32_t window;
    uint32_t first; /* place of its items in run->items; item k is at first + k % window */
};

struct tb_run {
    struct tb_request *request; /* completes when everything is done */
    struct tb_context *context;
    const struct tb_program *program;
    struct tb_binding binding;
    uint32_t number; /* of this collective on its channel */
    uint32_t low;    /* all steps before this one are done */
    uint32_t active; /* items on their way */
    int error;
    bool advancing, again;
    void *memory; /* in which it stands, freed at its end; NULL: the caller's */
    void *work;
    struct progress *progress;
    struct item *items;
};

struct small {
    struct tb_run run;
    struct progress progress[SMALL_STEPS];
    struct item items[SMALL_ITEMS];
};

/* ---- binding ----------------------------------------------------------------------------------------------------- */

static uint64_t run_match(const struct tb_run *run, const struct tb_step *s)
{
    return (uint64_t)run->number << 32 | (uint64_t)run->binding.operation << 24 | (uint64_t)s->edge << 8;
}

/* The bytes of one item of a slice. */
static struct tb_part run_part(const struct tb_run *run, const struct tb_slice *s, uint32_t item)
{
    const struct tb_binding *b = &run->binding;
    struct tb_part part = {.buffer = &b->buffers[s->symbol]};
    if (s->count == 0)
        return part;
    uint64_t first = (s->first + (uint64_t)s->stride * item) * b->piece;
    uint64_t end = first + b->piece;
    if (s->symbol != TB_SYMBOL_WORK && end > b->elements)
        end = b->elements;
    if (first < end) {
        part.from = first * b->element_bytes;
        part.length = (end - first) * b->element_bytes;
    }
    return part;
}

static uint32_t step_window(const struct tb_step *s)
{
    uint32_t items = s->slice.count == 0 ? 1 : s->slice.count;
    uint32_t window = s->window == 0 || s->window > WINDOW_LIMIT ? WINDOW_LIMIT : s->window;
    return window < items ? window : items;
}

/* ---- items ------------------------------------------------------------------------------------------------------- */

static void run_advance(struct tb_run *run);

/* Keeps the first error and its story, which is told again to whoever waits for the whole. */
static void run_fail(struct tb_run *run, int error)
{
    struct tb_engine *e = run->request->engine;
    if (run->error != TB_OK)
        return;
    run->error = error;
    free(e->story);
    e->story = strdup(tb_error_story());
}

static void progress_settle(struct tb_run *run, struct progress *p)
{
    while (p->done < p->started && run->items[p->first + p->done % p->window].state == ITEM_DONE) {
        run->items[p->first + p->done % p->window].state = ITEM_IDLE;
        p->done++;
    }
}

/* A receive of a collective must bring exactly what the program expects: counts are equal on all ranks. */
static int item_verdict(const struct item *item)
{
    const struct tb_request *r = &item->request;
    if (r->status.error != TB_OK || r->kind != TB_REQUEST_RECEIVE || r->status.cancelled || r->length == r->room)
        return r->status.error;
    return tb_error(TB_ERR_MISMATCH, "%s: rank %u has sent %llu bytes where this rank expects %llu",
                    tb_operation_name(item->run->binding.operation), r->rank, (unsigned long long)r->length,
                    (unsigned long long)r->room);
}

static void item_complete(struct tb_request *request)
{
    struct item *item = TB_CONTAINER(request, struct item, request);
    struct tb_run *run = item->run;
    int error = item_verdict(item);
    if (error != TB_OK) {
        if (request->status.error != TB_OK)
            tb_request_explain(request);
        run_fail(run, error);
    }
    item->state = ITEM_DONE;
    run->active--;
    progress_settle(run, &run->progress[item->step]);
    run_advance(run);
}

static void item_copy(struct tb_run *run, const struct tb_step *s, uint32_t index)
{
    struct tb_part from = run_part(run, &s->slice, index), to = run_part(run, &s->other, index);
    struct tb_spans in, out;
    uint64_t length = from.length < to.length ? from.length : to.length;
    tb_buffer_spans(from.buffer, from.from, length, &in);
    tb_buffer_spans(to.buffer, to.from, length, &out);
    while (in.left > 0) {
        size_t n = in.length < out.length ? in.length : out.length;
        memmove(out.base, in.base, n);
        tb_spans_skip(&in, n);
        tb_spans_skip(&out, n);
    }
}

static void item_start(struct tb_run *run, uint32_t step, uint32_t index)
{
    const struct tb_step *s = &run->program->steps[step];
    struct progress *p = &run->progress[step];
    struct item *item = &run->items[p->first + index % p->window];
    struct tb_part part = run_part(run, &s->slice, index);
    uint64_t match = run_match(run, s);
    item->run = run;
    item->step = step;
    item->state = ITEM_DONE;
    p->started++;
    if (s->kind == TB_STEP_COPY) {
        item_copy(run, s, index);
        return;
    }
    if (part.length == 0 && s->slice.count > 0)
        return; /* no data: the other side knows it too */
    if (s->kind == TB_STEP_SEND) {
        int rc = tb_send_try(run->context, &part, s->peer, match, TB_MODE_STANDARD);
        if (rc == TB_OK)
            return;
    }
    item->state = ITEM_ACTIVE;
    item->request.complete = item_complete;
    run->active++;
    if (s->kind == TB_STEP_SEND)
        tb_send_start(run->context, &item->request, &part, s->peer, match, TB_MODE_STANDARD);
    else
        tb_receive_start(run->context, &item->request, &part, s->peer, match, UINT64_MAX);
}

/* ---- the run ----------------------------------------------------------------------------------------------------- */

static bool step_ready(const struct tb_run *run, const struct tb_step *s, uint32_t index)
{
    for (uint32_t i = 0; i < s->after_count; i++) {
        const struct progress *before = &run->progress[run->program->after[s->after + i]];
        uint32_t needed = s->piecewise && index + 1 < before->items ? index + 1 : before->items;
        if (before->done < needed)
            return false;
    }
    return true;
}

static void step_advance(struct tb_run *run, uint32_t step)
{
    const struct tb_step *s = &run->program->steps[step];
    struct progress *p = &run->progress[step];
    while (p->started < p->items && p->started - p->done < p->window && run->error == TB_OK &&
           step_ready(run, s, p->started)) {
        item_start(run, step, p->started);
        progress_settle(run, p);
    }
}

/* After an error nothing new is started, and what is on its way is called back as far as possible. */
static void run_cancel(struct tb_run *run)
{
    for (uint32_t step = run->low; step < run->program->step_count; step++) {
        const struct progress *p = &run->progress[step];
        for (uint32_t i = 0; i < p->window && run->active > 0; i++)
            if (run->items[p->first + i].state == ITEM_ACTIVE)
                tb_request_cancel_locked(&run->items[p->first + i].request);
    }
}

static void run_end(struct tb_run *run)
{
    struct tb_request *request = run->request;
    int error = run->error;
    free(run->work);
    free(run->memory);
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

/* How many items a program has on its way at most; an error if a step cannot be run. */
static int program_measure(const struct tb_program *program, uint32_t *items)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < program->step_count; i++) {
        const struct tb_step *s = &program->steps[i];
        if (s->kind != TB_STEP_SEND && s->kind != TB_STEP_RECEIVE && s->kind != TB_STEP_COPY)
            return tb_error(TB_ERR_UNSUPPORTED, "step %u of a program is of a kind (%d) without a driver", i,
                            (int)s->kind);
        total += step_window(s);
    }
    if (total > TB_PROGRAM_STEPS_LIMIT)
        return tb_error(TB_ERR_LIMIT, "a program of %u steps has %llu pieces in flight", program->step_count,
                        (unsigned long long)total);
    *items = (uint32_t)total;
    return TB_OK;
}

static int run_work(struct tb_run *run)
{
    const struct tb_binding *b = &run->binding;
    uint64_t bytes = run->program->work_pieces * b->piece * b->element_bytes;
    if (bytes == 0)
        return TB_OK;
    run->work = malloc(bytes);
    if (run->work == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for %llu bytes of work space", (unsigned long long)bytes);
    run->binding.buffers[TB_SYMBOL_WORK] = (struct tb_buffer){run->work, bytes, &tb_type_byte};
    return TB_OK;
}

/* Makes a run in the given memory and starts it. The request is begun and will be finished. */
static void run_start(struct tb_run *run, struct tb_channel *channel, struct tb_request *request,
                      const struct tb_program *program, const struct tb_binding *binding)
{
    run->request = request;
    run->context = channel->collective;
    run->program = program;
    run->binding = *binding;
    run->number = tb_channel_next_collective(channel);
    run->low = run->active = 0;
    run->advancing = run->again = false;
    run->work = NULL;
    uint32_t first = 0;
    for (uint32_t i = 0; i < program->step_count; i++) {
        const struct tb_step *s = &program->steps[i];
        uint32_t window = step_window(s);
        run->progress[i] =
            (struct progress){.items = s->slice.count == 0 ? 1 : s->slice.count, .window = window, .first = first};
        for (uint32_t k = first; k < first + window; k++)
            run->items[k].state = ITEM_IDLE;
        first += window;
    }
    run->error = run_work(run);
    run_advance(run);
}

static struct tb_run *run_make(const struct tb_program *program, uint32_t items)
{
    size_t items_at = (sizeof(struct tb_run) + sizeof(struct progress) * program->step_count + 15) / 16 * 16;
    struct tb_run *run = malloc(items_at + sizeof(struct item) * items);
    if (run == NULL) {
        tb_error(TB_ERR_MEMORY, "no memory to run a program of %u steps", program->step_count);
        return NULL;
    }
    run->memory = run;
    run->progress = (struct progress *)(run + 1);
    run->items = (struct item *)((char *)run + items_at);
    return run;
}

static void request_open(struct tb_channel *channel, struct tb_request *request)
{
    tb_request_begin(request, channel->collective, TB_REQUEST_PROGRAM);
    request->phase = TB_PHASE_RUNNING;
    request->rank = channel->rank;
}

static void program_post(struct tb_channel *channel, struct tb_request *request, const struct tb_program *program,
                         const struct tb_binding *binding)
{
    uint32_t items = 0;
    request_open(channel, request);
    tb_request_enlist(request, channel->collective);
    int error = program_measure(program, &items);
    struct tb_run *run = error == TB_OK ? run_make(program, items) : NULL;
    if (run != NULL)
        run_start(run, channel, request, program, binding);
    else
        tb_request_finish(request, error != TB_OK ? error : TB_ERR_MEMORY);
}

void tb_program_post(struct tb_channel *channel, struct tb_request *request, const struct tb_program *program,
                     const struct tb_binding *binding)
{
    struct tb_engine *e = channel->engine;
    tb_lane_lock(e);
    program_post(channel, request, program, binding);
    tb_lane_unlock(e);
}

/* In memory of the caller's: no allocation. */
static int run_small(struct tb_channel *channel, const struct tb_program *program, const struct tb_binding *binding)
{
    struct tb_engine *e = channel->engine;
    struct small small;
    struct tb_request request;
    small.run.memory = NULL;
    small.run.progress = small.progress;
    small.run.items = small.items;
    request.complete = NULL;
    tb_lane_lock(e);
    request_open(channel, &request);
    run_start(&small.run, channel, &request, program, binding);
    tb_lane_unlock(e);
    tb_request_wait(&request);
    return request.status.error;
}

int tb_program_run(struct tb_channel *channel, const struct tb_program *program, const struct tb_binding *binding)
{
    uint32_t items = 0;
    int error = program_measure(program, &items);
    if (error != TB_OK)
        return error;
    if (program->step_count <= SMALL_STEPS && items <= SMALL_ITEMS)
        return run_small(channel, program, binding);
    struct tb_request request = {.complete = NULL};
    tb_program_post(channel, &request, program, binding);
    tb_request_wait(&request);
    return request.status.error;
}
