#include "link/multicast_holes.h"

static uint64_t *word_of(struct tb_multicast_holes *h, uint32_t fragment)
{
    return &h->bits[fragment % TB_MULTICAST_SPAN / 64];
}

bool tb_multicast_holes_has(const struct tb_multicast_holes *h, uint32_t fragment)
{
    if (fragment < h->base)
        return true;
    return fragment - h->base < TB_MULTICAST_SPAN &&
           (h->bits[fragment % TB_MULTICAST_SPAN / 64] >> fragment % 64 & 1) != 0;
}

enum tb_multicast_arrival tb_multicast_holes_take(struct tb_multicast_holes *h, uint32_t fragment)
{
    if (tb_multicast_holes_has(h, fragment))
        return TB_MULTICAST_REPEATED;
    if (fragment - h->base >= TB_MULTICAST_SPAN)
        return TB_MULTICAST_FAR;
    *word_of(h, fragment) |= UINT64_C(1) << fragment % 64;
    for (; tb_multicast_holes_has(h, h->base); h->base++)
        *word_of(h, h->base) &= ~(UINT64_C(1) << h->base % 64); /* its place is for one that is a span further */
    return TB_MULTICAST_NEW;
}

uint32_t tb_multicast_holes_next(const struct tb_multicast_holes *h, uint32_t from, uint32_t end)
{
    uint32_t at = from > h->base ? from : h->base;
    while (at < end && tb_multicast_holes_has(h, at))
        at++;
    return at < end ? at : end;
}

uint32_t tb_multicast_holes_count(const struct tb_multicast_holes *h, uint32_t from, uint32_t end)
{
    uint32_t count = 0;
    for (uint32_t at = tb_multicast_holes_next(h, from, end); at < end; at = tb_multicast_holes_next(h, at + 1, end))
        count++;
    return count;
}
