#include "planner/bound_windows.h"

#include "topology/topology.h"

static uint64_t lesser(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static bool is_within(const struct tb_bound_window *a, const struct tb_bound_window *b)
{
    return a->before >= b->before && a->behind >= b->behind && a->more >= b->more;
}

void tb_bound_windows_add(struct tb_bound_windows *w, struct tb_bound_window window)
{
    uint32_t left = 0;
    for (uint32_t i = 0; i < w->count; i++)
        if (is_within(&window, &w->rows[i]))
            return;
    for (uint32_t i = 0; i < w->count; i++)
        if (!is_within(&w->rows[i], &window))
            w->rows[left++] = w->rows[i];
    w->count = left;
    if (w->count < TB_BOUND_WINDOWS) {
        w->rows[w->count++] = window;
        return;
    }
    struct tb_bound_window *last = &w->rows[w->count - 1];
    last->before = lesser(last->before, window.before);
    last->behind = lesser(last->behind, window.behind);
    last->more = lesser(last->more, window.more);
}

void tb_bound_windows_narrow(struct tb_bound_windows *w, bool later)
{
    for (uint32_t i = 0; i < w->count; i++) {
        uint64_t *side = later ? &w->rows[i].before : &w->rows[i].behind;
        *side = tb_cost_add(*side, w->rows[i].more);
    }
}

uint64_t tb_bound_windows_least(const struct tb_bound_windows *w)
{
    uint64_t least = TB_COST_NEVER;
    for (uint32_t i = 0; i < w->count; i++)
        least = lesser(tb_cost_add(w->rows[i].before, w->rows[i].behind), least);
    return least;
}

uint64_t tb_bound_windows_shut(const struct tb_bound_windows *w, uint64_t end)
{
    struct span {
        uint64_t from, to;
    } spans[TB_BOUND_WINDOWS];
    uint64_t open = 0, reached = 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < w->count; i++) {
        const struct tb_bound_window *row = &w->rows[i];
        if (tb_cost_add(row->before, row->behind) >= end)
            continue;
        uint32_t at = count++;
        for (; at > 0 && spans[at - 1].from > row->before; at--)
            spans[at] = spans[at - 1];
        spans[at] = (struct span){row->before, end - row->behind};
    }
    for (uint32_t i = 0; i < count; i++) {
        uint64_t from = spans[i].from > reached ? spans[i].from : reached;
        open += spans[i].to > from ? spans[i].to - from : 0;
        reached = spans[i].to > reached ? spans[i].to : reached;
    }
    return open > 0 ? end - open : TB_COST_NEVER;
}
