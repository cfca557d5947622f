#include "schedule/schedule.h"

#include <stdlib.h>
#include <string.h>

void tb_builder_open(struct tb_builder *b, uint32_t pieces)
{
    *b = (struct tb_builder){.program = {.pieces = pieces}};
}

static void builder_fail(struct tb_builder *b, int error)
{
    if (b->error == TB_OK)
        b->error = error;
}

/* Makes room for one more in a growing array. */
static bool builder_grow(struct tb_builder *b, void **array, size_t size, uint32_t used, uint32_t *room)
{
    if (used < *room)
        return true;
    uint32_t more = *room == 0 ? 8 : *room * 2;
    if (more > TB_PROGRAM_STEPS_LIMIT * 2) {
        builder_fail(b, tb_error(TB_ERR_LIMIT, "a program has more than %u steps or dependencies", *room));
        return false;
    }
    void *grown = realloc(*array, (size_t)more * size);
    if (grown == NULL) {
        builder_fail(b, tb_error(TB_ERR_MEMORY, "no memory for a program of %u steps", more));
        return false;
    }
    *array = grown;
    *room = more;
    return true;
}

static uint32_t builder_add(struct tb_builder *b, const struct tb_step *step)
{
    struct tb_program *p = &b->program;
    if (b->error != TB_OK)
        return 0;
    if (p->step_count == TB_PROGRAM_STEPS_LIMIT) {
        builder_fail(b, tb_error(TB_ERR_LIMIT, "a program has more than %u steps", TB_PROGRAM_STEPS_LIMIT));
        return 0;
    }
    if (!builder_grow(b, (void **)&p->steps, sizeof *p->steps, p->step_count, &b->step_room))
        return 0;
    p->steps[p->step_count] = *step;
    p->steps[p->step_count].after = b->after_total;
    return p->step_count++;
}

/* WORK is as large as the furthest piece that a step touches. */
static void builder_measure(struct tb_builder *b, struct tb_slice slice)
{
    if (slice.symbol != TB_SYMBOL_WORK || slice.count == 0)
        return;
    uint64_t end = slice.first + (uint64_t)slice.stride * (slice.count - 1) + 1;
    if (end > UINT32_MAX)
        builder_fail(b, tb_error(TB_ERR_LIMIT, "a program needs more than %u pieces of work space", UINT32_MAX));
    else if (end > b->program.work_pieces)
        b->program.work_pieces = (uint32_t)end;
}

uint32_t tb_builder_send(struct tb_builder *b, uint32_t peer, uint16_t edge, struct tb_slice slice)
{
    builder_measure(b, slice);
    return builder_add(b, &(struct tb_step){.kind = TB_STEP_SEND, .peer = peer, .edge = edge, .slice = slice});
}

uint32_t tb_builder_receive(struct tb_builder *b, uint32_t peer, uint16_t edge, struct tb_slice slice)
{
    builder_measure(b, slice);
    return builder_add(b, &(struct tb_step){.kind = TB_STEP_RECEIVE, .peer = peer, .edge = edge, .slice = slice});
}

uint32_t tb_builder_copy(struct tb_builder *b, struct tb_slice from, struct tb_slice to)
{
    builder_measure(b, from);
    builder_measure(b, to);
    if (from.count != to.count)
        builder_fail(b, tb_error(TB_ERR_ARGUMENT, "a copy of %u pieces to %u pieces", from.count, to.count));
    return builder_add(b, &(struct tb_step){.kind = TB_STEP_COPY, .slice = from, .other = to});
}

void tb_builder_after(struct tb_builder *b, uint32_t step)
{
    struct tb_program *p = &b->program;
    if (b->error != TB_OK)
        return;
    if (p->step_count == 0 || step >= p->step_count - 1) {
        builder_fail(b, tb_error(TB_ERR_ARGUMENT, "step %u cannot come after step %u", p->step_count - 1, step));
        return;
    }
    if (!builder_grow(b, (void **)&p->after, sizeof *p->after, b->after_total, &b->after_room))
        return;
    p->after[b->after_total++] = step;
    p->steps[p->step_count - 1].after_count++;
}

void tb_builder_pipeline(struct tb_builder *b, uint32_t window)
{
    struct tb_program *p = &b->program;
    if (b->error != TB_OK)
        return;
    if (p->step_count == 0) {
        builder_fail(b, tb_error(TB_ERR_ARGUMENT, "there is no step to pipeline"));
        return;
    }
    p->steps[p->step_count - 1].piecewise = true;
    p->steps[p->step_count - 1].window = window;
}

int tb_builder_finish(struct tb_builder *b, struct tb_program **program)
{
    struct tb_program *made = NULL;
    int error = b->error;
    size_t steps = sizeof(struct tb_step) * b->program.step_count;
    size_t after = sizeof(uint32_t) * b->after_total;
    if (error == TB_OK) {
        made = malloc(sizeof *made + steps + after);
        if (made == NULL)
            error = tb_error(TB_ERR_MEMORY, "no memory for a program of %u steps", b->program.step_count);
    }
    if (made != NULL) {
        *made = b->program;
        made->steps = (struct tb_step *)(made + 1);
        made->after = (uint32_t *)((char *)made->steps + steps);
        if (steps > 0)
            memcpy(made->steps, b->program.steps, steps);
        if (after > 0)
            memcpy(made->after, b->program.after, after);
    }
    free(b->program.steps);
    free(b->program.after);
    *b = (struct tb_builder){.error = TB_ERR_ARGUMENT};
    *program = made;
    return error;
}

void tb_program_free(struct tb_program *program)
{
    free(program);
}
