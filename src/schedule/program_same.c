#include "schedule/schedule.h"

#include <string.h>

static bool slice_same(const struct tb_slice *a, const struct tb_slice *b)
{
    return a->symbol == b->symbol && a->first == b->first && a->stride == b->stride && a->count == b->count;
}

static bool contract_same(const struct tb_contract *a, const struct tb_contract *b)
{
    return a->composite == b->composite && a->driver == b->driver && a->rounds == b->rounds && a->passes == b->passes;
}

static bool step_same(const struct tb_step *a, const struct tb_step *b)
{
    return a->kind == b->kind && a->upto == b->upto && a->group == b->group && a->edge == b->edge &&
           a->peer == b->peer && a->join == b->join && a->window == b->window && a->items == b->items &&
           slice_same(&a->slice, &b->slice) && slice_same(&a->other, &b->other) &&
           contract_same(&a->contract, &b->contract) && a->members == b->members &&
           a->member_count == b->member_count && a->after == b->after && a->after_count == b->after_count;
}

static bool after_same(const struct tb_program *a, const struct tb_program *b, const struct tb_step *s)
{
    for (uint32_t i = s->after; i < s->after + s->after_count; i++)
        if (a->after[i].step != b->after[i].step || a->after[i].lag != b->after[i].lag)
            return false;
    return true;
}

bool tb_program_same(const struct tb_program *a, const struct tb_program *b)
{
    bool same = a->step_count == b->step_count && a->pieces == b->pieces && a->parts == b->parts &&
                a->work_pieces == b->work_pieces && a->size_pieces == b->size_pieces &&
                a->list_count == b->list_count && a->places == b->places && a->binds == b->binds &&
                a->work_whole == b->work_whole;
    for (uint32_t i = 0; same && i < a->step_count; i++)
        same = step_same(&a->steps[i], &b->steps[i]) && after_same(a, b, &a->steps[i]);
    return same && (a->list_count == 0 || memcmp(a->lists, b->lists, a->list_count * sizeof *a->lists) == 0);
}
