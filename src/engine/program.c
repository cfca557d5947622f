/* Programs as their callers see them: whether one can be run, the memory for its run, and waiting for its end. */
#include "engine/engine_state.h"

#include <stdalign.h>
#include <stdlib.h>

#define SMALL_STEPS 16u
#define SMALL_ITEMS 16u
#define SMALL_WORK  512u

/* A run of few steps, on the stack of who waits for it. */
struct small_run {
    struct tb_run run;
    struct tb_run_progress progress[SMALL_STEPS];
    struct tb_run_item items[SMALL_ITEMS];
    alignas(16) char work[SMALL_WORK];
};

/* ---- checking ---------------------------------------------------------------------------------------------------- */

/* Whether a broadcast is of one part of each buffer, so that it does not matter how that is cut. */
static bool one_part(const struct tb_binding *binding, const struct tb_step *s)
{
    const struct tb_slice *slices[] = {&s->slice, &s->other};
    bool one = s->contract.composite == TB_COMPOSITE_BCAST && s->items == 1;
    for (int i = 0; i < 2; i++)
        one = one && (slices[i]->count < 2 || binding->cuts[slices[i]->symbol] != TB_CUT_TABLE);
    return one;
}

static inline int step_check(const struct tb_binding *binding, const struct tb_step *s, uint32_t step)
{
    bool reduces = s->kind == TB_STEP_REDUCE, driven = true;
    if (s->kind == TB_STEP_COMPOSITE) {
        bool even = binding->cuts[s->slice.symbol] == TB_CUT_EVEN && binding->cuts[s->other.symbol] == TB_CUT_EVEN;
        reduces = tb_composite_reduces((enum tb_composite)s->contract.composite);
        driven = s->contract.composite < TB_COMPOSITE_COUNT && s->contract.driver < TB_DRIVERS_LIMIT &&
                 (even || s->contract.composite >= TB_COMPOSITE_GATHER || one_part(binding, s));
    }
    if (!driven || (reduces && binding->op == NULL))
        return tb_error(TB_ERR_UNSUPPORTED, "step %u of a program is of a kind (%d) without a driver", step,
                        (int)s->kind);
    if (s->group > 0 && binding->local == NULL)
        return tb_error(TB_ERR_ARGUMENT, "step %u of a program needs the channel of a local group", step);
    return TB_OK;
}

/* How many items a program has on its way at most; an error if a step cannot be run. */
static int program_measure(const struct tb_program *program, const struct tb_binding *binding, uint32_t *items)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < program->step_count; i++) {
        int error = step_check(binding, &program->steps[i], i);
        if (error != TB_OK)
            return error;
        total += tb_run_window(&program->steps[i]);
    }
    if (total > TB_PROGRAM_STEPS_LIMIT)
        return tb_error(TB_ERR_LIMIT, "a program of %u steps has %llu pieces in flight", program->step_count,
                        (unsigned long long)total);
    *items = (uint32_t)total;
    return TB_OK;
}

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

void tb_binding_number(struct tb_channel *channel, struct tb_binding *binding)
{
    tb_engine_lock(channel->engine);
    tb_run_number(channel, binding);
    binding->numbered = true;
    tb_engine_unlock(channel->engine);
}

/* ---- whom it sends to -------------------------------------------------------------------------------------------- */

static int peer_open(struct tb_channel *channel, uint32_t rank)
{
    struct tb_peer *p = tb_channel_peer(channel, rank);
    if (p == NULL)
        return TB_ERR_MEMORY;
    return p->self || p->endpoint != NULL || p->error != TB_OK ? TB_OK : tb_peer_reach(p);
}

int tb_program_reach(struct tb_channel *channel, const struct tb_program *program)
{
    int error = TB_OK;
    tb_engine_lock(channel->engine);
    for (uint32_t i = 0; i < program->step_count && error != TB_ERR_MEMORY; i++)
        if (program->steps[i].kind == TB_STEP_SEND)
            error = peer_open(channel, program->steps[i].peer);
    tb_engine_unlock(channel->engine);
    return error == TB_ERR_MEMORY ? error : TB_OK;
}

/* ---- posting ----------------------------------------------------------------------------------------------------- */

static struct tb_run *run_make(const struct tb_program *program, uint32_t items)
{
    size_t items_at = (sizeof(struct tb_run) + sizeof(struct tb_run_progress) * program->step_count + 15) / 16 * 16;
    struct tb_run *run = malloc(items_at + sizeof(struct tb_run_item) * items);
    if (run == NULL) {
        tb_error(TB_ERR_MEMORY, "no memory to run a program of %u steps", program->step_count);
        return NULL;
    }
    run->memory = run;
    run->small = NULL;
    run->small_bytes = 0;
    run->progress = (struct tb_run_progress *)(run + 1);
    run->items = (struct tb_run_item *)((char *)run + items_at);
    return run;
}

static void request_open(struct tb_channel *channel, struct tb_request *request)
{
    tb_request_begin(request, channel->collective, TB_REQUEST_PROGRAM);
    request->phase = TB_PHASE_RUNNING;
    request->rank = channel->rank;
}

/* It is not started here. */
static void collective_refuse(struct tb_channel *channel, const struct tb_program *program,
                              const struct tb_binding *binding, int error)
{
    struct tb_binding numbered = *binding;
    if (!binding->numbered)
        tb_run_number(channel, &numbered);
    tb_driven_skip(tb_channel_drivers(channel, binding), &numbered, tb_channel_places(channel, program, binding));
    tb_channel_give_up(channel, program, &numbered, error);
}

void tb_collective_refuse(struct tb_channel *channel, const struct tb_binding *binding, int error)
{
    tb_engine_lock(channel->engine);
    collective_refuse(channel, NULL, binding, error);
    tb_engine_unlock(channel->engine);
}

static void program_post(struct tb_channel *channel, struct tb_request *request, const struct tb_program *program,
                         const struct tb_binding *binding)
{
    uint32_t items = 0;
    request_open(channel, request);
    tb_request_enlist(request, channel->collective);
    int error = program_measure(program, binding, &items);
    struct tb_run *run = error == TB_OK ? run_make(program, items) : NULL;
    if (run != NULL) {
        tb_run_start(run, channel, request, program, binding);
        return;
    }
    error = error != TB_OK ? error : TB_ERR_MEMORY;
    tb_request_keep_story(request, error);
    collective_refuse(channel, program, binding, error);
    tb_request_finish(request, error);
}

void tb_program_post(struct tb_channel *channel, struct tb_request *request, const struct tb_program *program,
                     const struct tb_binding *binding)
{
    struct tb_engine *e = channel->engine;
    tb_engine_lock(e);
    program_post(channel, request, program, binding);
    tb_engine_unlock(e);
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

/* In memory of the caller's: no allocation. */
static int run_small(struct tb_channel *channel, const struct tb_program *program, const struct tb_binding *binding)
{
    struct tb_engine *e = channel->engine;
    struct small_run small;
    struct tb_request request;
    small.run.memory = NULL;
    small.run.progress = small.progress;
    small.run.items = small.items;
    small.run.small = small.work;
    small.run.small_bytes = sizeof small.work;
    request.complete = NULL;
    tb_engine_lock(e);
    request_open(channel, &request);
    tb_run_start(&small.run, channel, &request, program, binding);
    tb_engine_unlock(e);
    tb_request_wait(&request);
    return request.status.error;
}

/* A program that is nothing but one composite step needs no run. */
struct alone {
    union tb_drive_room room;
    struct tb_request request;
};

/* It has failed here. */
static void alone_tell(const struct tb_drive *d)
{
    const struct tb_driven *driven = tb_channel_driver(d->channel, d->binding, d->step);
    struct tb_binding numbered = *d->binding;
    numbered.numbers[0] = d->collective;
    if (driven->driver->concerns(d, driven->state))
        tb_channel_give_up(d->channel, d->program, &numbered, d->error);
}

static void alone_moved(struct tb_drive *d)
{
    struct alone *a = TB_CONTAINER(d, struct alone, room.drive);
    if (!tb_drive_over(d))
        return;
    if (TB_UNLIKELY(d->error != TB_OK)) {
        tb_request_keep_story(&a->request, d->error);
        alone_tell(d);
    }
    tb_request_finish(&a->request, d->error);
}

void tb_alone_describe(const struct tb_request *request, struct tb_wait *wait)
{
    const struct tb_drive *d = &TB_CONTAINER(request, const struct alone, request)->room.drive;
    wait->collective = d->binding->call;
    wait->operation = d->binding->operation;
    wait->counted = !d->binding->numbered && d->binding->local == NULL;
    wait->number = d->collective;
    tb_channel_driver(d->channel, d->binding, d->step)->driver->describe(d, wait);
}

static int run_alone(struct tb_channel *channel, const struct tb_program *program, const struct tb_binding *binding,
                     const struct tb_driven *driven)
{
    struct tb_engine *e = channel->engine;
    struct alone a;
    struct tb_drive *d = &a.room.drive;
    tb_engine_lock(e);
    d->channel = channel;
    d->program = program;
    d->step = program->steps;
    d->binding = binding;
    d->collective = binding->numbered ? binding->numbers[0] : tb_channel_next_collective(channel);
    d->ready = program->steps[0].items;
    d->reserved = NULL;
    d->moved = alone_moved;
    bool done = driven->driver->start(d, driven->state, true);
    if (TB_UNLIKELY(done && d->error != TB_OK))
        alone_tell(d);
    if (!done) {
        a.request.complete = NULL;
        request_open(channel, &a.request);
        a.request.phase = TB_PHASE_ALONE;
    }
    tb_engine_unlock(e);
    if (done)
        return d->error;
    tb_request_wait(&a.request);
    return a.request.status.error;
}

/* Who carries it out, if it is nothing else; NULL: it is. */
static const struct tb_driven *driver_alone(const struct tb_channel *channel, const struct tb_program *program,
                                            const struct tb_binding *binding)
{
    const struct tb_step *s = program->steps;
    if (program->step_count != 1 || s->kind != TB_STEP_COMPOSITE || s->contract.driver >= TB_DRIVERS_LIMIT ||
        tb_channel_places(channel, program, binding) != 1)
        return NULL;
    return tb_channel_driver(channel, binding, s);
}

int tb_program_run(struct tb_channel *channel, const struct tb_program *program, const struct tb_binding *binding)
{
    uint32_t items = 0;
    const struct tb_driven *driven = driver_alone(channel, program, binding);
    int error = driven != NULL ? step_check(binding, program->steps, 0) : program_measure(program, binding, &items);
    if (TB_UNLIKELY(error != TB_OK)) {
        tb_engine_lock(channel->engine);
        collective_refuse(channel, program, binding, error);
        tb_engine_unlock(channel->engine);
        return error;
    }
    if (driven != NULL)
        return run_alone(channel, program, binding, driven);
    if (program->step_count <= SMALL_STEPS && items <= SMALL_ITEMS)
        return run_small(channel, program, binding);
    struct tb_request request = {.complete = NULL};
    tb_program_post(channel, &request, program, binding);
    tb_request_wait(&request);
    return request.status.error;
}
