#include "link/multicast_report.h"

static void add(struct tb_multicast_report *r, uint32_t fragment, uint32_t who)
{
    if (fragment >= r->top)
        return;
    if (r->count == TB_MULTICAST_MISSING) {
        r->top = fragment;
        return;
    }
    r->missing[r->count++] = (struct tb_multicast_missing){fragment, who};
}

void tb_multicast_report_make(struct tb_multicast_report *r, const struct tb_multicast_holes *holes, uint32_t from,
                              uint32_t top, uint32_t poll, uint32_t who)
{
    r->complete = false;
    r->top = top;
    r->poll = poll;
    r->worst = 0;
    r->count = r->placed_count = 0;
    for (uint32_t f = tb_multicast_holes_next(holes, from, r->top); f < r->top;
         f = tb_multicast_holes_next(holes, f + 1, r->top))
        add(r, f, who);
}

void tb_multicast_report_place(struct tb_multicast_report *r, const struct tb_multicast_address *address)
{
    if (r->count == 0 || address->length == 0)
        return;
    r->placed[0] = (struct tb_multicast_placed){r->missing[0].who, *address};
    r->placed_count = 1;
}

static bool misses_alone(const struct tb_multicast_report *r, uint32_t process)
{
    for (uint32_t i = 0; i < r->count; i++)
        if (r->missing[i].who == process)
            return true;
    return false;
}

/* Of more than fit, others each time: whoever reads it remembers them. */
static uint64_t turn_of(const struct tb_multicast_report *r, uint32_t process)
{
    return tb_hash_number(tb_hash_number(TB_HASH_BASIS, r->top), process);
}

static void add_place(struct tb_multicast_report *r, const struct tb_multicast_placed *placed)
{
    uint32_t last = 0;
    if (!misses_alone(r, placed->process))
        return;
    if (r->placed_count < TB_MULTICAST_PLACED) {
        r->placed[r->placed_count++] = *placed;
        return;
    }
    for (uint32_t i = 1; i < r->placed_count; i++)
        if (turn_of(r, r->placed[i].process) > turn_of(r, r->placed[last].process))
            last = i;
    if (turn_of(r, placed->process) < turn_of(r, r->placed[last].process))
        r->placed[last] = *placed;
}

void tb_multicast_report_merge(struct tb_multicast_report *into, const struct tb_multicast_report *from)
{
    if (from->complete)
        return;
    if (into->complete) {
        *into = *from;
        return;
    }
    const struct tb_multicast_report before = *into;
    into->top = from->top < before.top ? from->top : before.top;
    into->poll = from->poll < before.poll ? from->poll : before.poll;
    into->worst = from->worst > before.worst ? from->worst : before.worst;
    into->count = 0;
    for (uint32_t i = 0, k = 0; i < before.count || k < from->count;) {
        const struct tb_multicast_missing *a = i < before.count ? &before.missing[i] : NULL;
        const struct tb_multicast_missing *b = k < from->count ? &from->missing[k] : NULL;
        if (a != NULL && b != NULL && a->fragment == b->fragment) {
            add(into, a->fragment, a->who == b->who ? a->who : TB_MULTICAST_SEVERAL);
            i++;
            k++;
        } else if (b == NULL || (a != NULL && a->fragment < b->fragment)) {
            add(into, a->fragment, a->who);
            i++;
        } else {
            add(into, b->fragment, b->who);
            k++;
        }
    }
    into->placed_count = 0;
    for (uint32_t i = 0; i < before.placed_count; i++)
        add_place(into, &before.placed[i]);
    for (uint32_t i = 0; i < from->placed_count; i++)
        add_place(into, &from->placed[i]);
}
