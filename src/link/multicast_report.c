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
    r->count = 0;
    for (uint32_t f = tb_multicast_holes_next(holes, from, r->top); f < r->top;
         f = tb_multicast_holes_next(holes, f + 1, r->top))
        add(r, f, who);
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
}
