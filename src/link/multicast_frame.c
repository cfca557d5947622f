#include "link/multicast_frame.h"

/* ---- numbers of datagrams, which need no memory of their own -------------------------------------------------------
 */

static uint8_t *put_number(uint8_t *to, uint64_t number, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        to[i] = (uint8_t)(number >> 8 * i);
    return to + bytes;
}

static uint64_t get_number(const uint8_t **from, unsigned bytes)
{
    uint64_t number = 0;
    for (unsigned i = 0; i < bytes; i++)
        number |= (uint64_t)(*from)[i] << 8 * i;
    *from += bytes;
    return number;
}

/* ---- wishes --------------------------------------------------------------------------------------------------------
 */

void tb_multicast_wish_make(struct tb_multicast_wish *wish, const struct tb_multicast_holes *holes, uint32_t end,
                            bool whole)
{
    *wish = (struct tb_multicast_wish){.all = whole, .base = holes->base};
    for (uint32_t i = 0; i < TB_MULTICAST_SPAN && holes->base + i < end; i++) {
        bool here = tb_multicast_holes_has(holes, holes->base + i);
        wish->all = wish->all && !here;
        if (here)
            continue;
        wish->bits[i / 8] |= (uint8_t)(1u << i % 8);
        wish->bytes = i / 8 + 1;
    }
    if (wish->all)
        wish->bytes = 0;
}

bool tb_multicast_wish_has(const struct tb_multicast_wish *wish, uint32_t fragment)
{
    uint32_t i = fragment - wish->base;
    if (fragment < wish->base)
        return false;
    return wish->all || (i / 8 < wish->bytes && (wish->bits[i / 8] >> i % 8 & 1) != 0);
}

/* ---- control messages ----------------------------------------------------------------------------------------------
 */

void tb_multicast_put_confirm(struct tb_writer *w, const struct tb_multicast_confirm *c)
{
    tb_put_u8(w, c->word);
    tb_put_u64(w, c->context);
    tb_put_u64(w, c->number);
}

bool tb_multicast_get_confirm(const void *bytes, size_t length, struct tb_multicast_confirm *c)
{
    struct tb_reader r;
    tb_reader_open(&r, bytes, length);
    c->word = tb_get_u8(&r);
    c->context = tb_get_u64(&r);
    c->number = tb_get_u64(&r);
    return tb_reader_end(&r) == TB_OK && c->word < TB_MULTICAST_CONFIRM_WORDS;
}

static void put_name(struct tb_writer *w, const struct tb_multicast_name *name)
{
    tb_put_u64(w, name->context);
    tb_put_u64(w, name->number);
    tb_put_u64(w, name->length);
    tb_put_u32(w, name->root);
    tb_put_u32(w, name->piece);
}

/* A piece of 0 stands for one that is not known. */
static bool get_name(struct tb_reader *r, struct tb_multicast_name *name)
{
    name->context = tb_get_u64(r);
    name->number = tb_get_u64(r);
    name->length = tb_get_u64(r);
    name->root = tb_get_u32(r);
    uint32_t piece = tb_get_u32(r);
    name->piece = (uint16_t)piece;
    return r->error == TB_OK && piece <= UINT16_MAX;
}

void tb_multicast_put_report(struct tb_writer *w, const struct tb_multicast_name *name,
                             const struct tb_multicast_report *r)
{
    put_name(w, name);
    tb_put_u8(w, r->complete);
    tb_put_u32(w, r->top);
    tb_put_u32(w, r->poll);
    tb_put_u32(w, r->worst);
    tb_put_u32(w, r->complete ? 0 : r->count);
    for (uint32_t i = 0; i < r->count && !r->complete; i++) {
        tb_put_u32(w, r->missing[i].fragment);
        tb_put_u32(w, r->missing[i].who);
    }
    tb_put_u32(w, r->complete ? 0 : r->placed_count);
    for (uint32_t i = 0; i < r->placed_count && !r->complete; i++) {
        tb_put_u32(w, r->placed[i].process);
        tb_put_bytes(w, r->placed[i].address.bytes, r->placed[i].address.length);
    }
}

static bool get_places(struct tb_reader *from, struct tb_multicast_report *r)
{
    r->placed_count = tb_get_u32(from);
    if (r->placed_count > TB_MULTICAST_PLACED)
        return false;
    for (uint32_t i = 0; i < r->placed_count; i++) {
        struct tb_multicast_placed *placed = &r->placed[i];
        size_t length = 0;
        placed->process = tb_get_u32(from);
        const void *bytes = tb_get_bytes(from, &length);
        if (bytes == NULL || length == 0 || length > TB_MULTICAST_ADDRESS_BYTES)
            return false;
        placed->address.length = (uint32_t)length;
        memcpy(placed->address.bytes, bytes, length);
    }
    return true;
}

bool tb_multicast_get_report(const void *bytes, size_t length, struct tb_multicast_name *name,
                             struct tb_multicast_report *r)
{
    struct tb_reader from;
    tb_reader_open(&from, bytes, length);
    if (!get_name(&from, name))
        return false;
    r->complete = tb_get_u8(&from) != 0;
    r->top = tb_get_u32(&from);
    r->poll = tb_get_u32(&from);
    r->worst = tb_get_u32(&from);
    r->count = tb_get_u32(&from);
    if (r->count > TB_MULTICAST_MISSING)
        return false;
    for (uint32_t i = 0; i < r->count; i++) {
        r->missing[i].fragment = tb_get_u32(&from);
        r->missing[i].who = tb_get_u32(&from);
        if (r->missing[i].fragment >= r->top || (i > 0 && r->missing[i].fragment <= r->missing[i - 1].fragment))
            return false;
    }
    return get_places(&from, r) && tb_reader_end(&from) == TB_OK;
}

void tb_multicast_put_control_ask(struct tb_writer *w, const struct tb_multicast_name *name, uint8_t flags,
                                  const struct tb_multicast_wish *wish)
{
    put_name(w, name);
    tb_put_u8(w, flags);
    tb_put_u8(w, wish->all);
    tb_put_u32(w, wish->base);
    tb_put_bytes(w, wish->bits, wish->bytes);
}

bool tb_multicast_get_control_ask(const void *bytes, size_t length, struct tb_multicast_name *name, uint8_t *flags,
                                  struct tb_multicast_wish *wish)
{
    struct tb_reader r;
    size_t n;
    tb_reader_open(&r, bytes, length);
    if (!get_name(&r, name))
        return false;
    *flags = tb_get_u8(&r);
    wish->all = tb_get_u8(&r) != 0;
    wish->base = tb_get_u32(&r);
    const void *bits = tb_get_bytes(&r, &n);
    if (tb_reader_end(&r) != TB_OK || n > sizeof wish->bits || (*flags & ~TB_MULTICAST_ASK_FLAGS) != 0)
        return false;
    wish->bytes = (uint32_t)n;
    memset(wish->bits, 0, sizeof wish->bits);
    if (n > 0)
        memcpy(wish->bits, bits, n);
    return true;
}

void tb_multicast_put_rest(struct tb_writer *w, const struct tb_multicast_rest_head *rest)
{
    put_name(w, &rest->name);
    tb_put_u8(w, rest->flags);
    tb_put_u8(w, rest->representation);
    tb_put_u64(w, rest->offset);
}

/* Whole fragments of a message, or, at its end, what is left of it. */
static bool rest_is_right(const struct tb_multicast_rest_head *rest, size_t length)
{
    const struct tb_multicast_name *name = &rest->name;
    if ((rest->flags & ~TB_MULTICAST_REST_FLAGS) != 0 ||
        ((rest->flags & TB_MULTICAST_REST_GONE) != 0 && rest->flags != TB_MULTICAST_REST_GONE))
        return false;
    if ((rest->flags & TB_MULTICAST_REST_DATA) == 0)
        return length == 0;
    if (name->piece == 0 || rest->offset % name->piece != 0 || rest->offset > name->length ||
        length > name->length - rest->offset)
        return false;
    return length % name->piece == 0 ? length > 0 || name->length == 0 : length == name->length - rest->offset;
}

bool tb_multicast_get_rest(const void *bytes, size_t length, struct tb_multicast_rest_head *rest, const void **data,
                           size_t *data_length)
{
    struct tb_reader r;
    tb_reader_open(&r, bytes, length);
    if (!get_name(&r, &rest->name))
        return false;
    rest->flags = tb_get_u8(&r);
    rest->representation = tb_get_u8(&r);
    rest->offset = tb_get_u64(&r);
    if (r.error != TB_OK)
        return false;
    *data = r.bytes + r.at;
    *data_length = length - r.at;
    return rest_is_right(rest, *data_length);
}

void tb_multicast_put_control_poll(struct tb_writer *w, const struct tb_multicast_name *name,
                                   const struct tb_multicast_poll *poll)
{
    put_name(w, name);
    tb_put_u32(w, poll->poll);
    tb_put_u32(w, poll->top);
    tb_put_u8(w, poll->rescue);
}

bool tb_multicast_get_control_poll(const void *bytes, size_t length, struct tb_multicast_name *name,
                                   struct tb_multicast_poll *poll)
{
    struct tb_reader r;
    tb_reader_open(&r, bytes, length);
    if (!get_name(&r, name))
        return false;
    poll->poll = tb_get_u32(&r);
    poll->top = tb_get_u32(&r);
    poll->rescue = tb_get_u8(&r) != 0;
    return tb_reader_end(&r) == TB_OK && name->piece > 0 &&
           poll->top <= tb_datagram_fragments(name->length, name->piece);
}

/* ---- datagrams -----------------------------------------------------------------------------------------------------
 */

size_t tb_multicast_put_question(uint8_t to[static TB_MULTICAST_QUESTION_BYTES], const struct tb_multicast_question *q)
{
    uint8_t *at = put_number(to, q->serial, 8);
    at = put_number(at, q->late_by, 4);
    at = put_number(at, q->overflow, 1);
    at = put_number(at, q->wish.all, 1);
    at = put_number(at, q->wish.base, 4);
    if (q->wish.bytes > 0)
        memcpy(at, q->wish.bits, q->wish.bytes);
    return (size_t)(at - to) + q->wish.bytes;
}

bool tb_multicast_get_question(const void *bytes, size_t length, struct tb_multicast_question *q)
{
    const size_t fixed = TB_MULTICAST_QUESTION_BYTES - TB_MULTICAST_ASK_BYTES;
    const uint8_t *at = bytes;
    if (length < fixed || length > TB_MULTICAST_QUESTION_BYTES)
        return false;
    *q = (struct tb_multicast_question){.serial = get_number(&at, 8)};
    q->late_by = (uint32_t)get_number(&at, 4);
    q->overflow = get_number(&at, 1) != 0;
    q->wish.all = get_number(&at, 1) != 0;
    q->wish.base = (uint32_t)get_number(&at, 4);
    q->wish.bytes = (uint32_t)(length - fixed);
    memcpy(q->wish.bits, at, q->wish.bytes);
    return true;
}

size_t tb_multicast_put_status(uint8_t to[static TB_MULTICAST_STATUS_BYTES], const struct tb_multicast_status *s)
{
    uint8_t *at = put_number(to, s->serial, 8);
    at = put_number(at, s->begun, 8);
    return (size_t)(put_number(at, s->hold, 4) - to);
}

bool tb_multicast_get_status(const void *bytes, size_t length, struct tb_multicast_status *s)
{
    const uint8_t *at = bytes;
    if (length != TB_MULTICAST_STATUS_BYTES)
        return false;
    s->serial = get_number(&at, 8);
    s->begun = get_number(&at, 8);
    s->hold = (uint32_t)get_number(&at, 4);
    return true;
}

size_t tb_multicast_put_poll(uint8_t to[static TB_MULTICAST_POLL_BYTES], const struct tb_multicast_poll *p)
{
    uint8_t *at = put_number(to, p->poll, 4);
    return (size_t)(put_number(at, p->top, 4) - to);
}

bool tb_multicast_get_poll(const void *bytes, size_t length, struct tb_multicast_poll *p)
{
    const uint8_t *at = bytes;
    if (length != TB_MULTICAST_POLL_BYTES)
        return false;
    p->poll = (uint32_t)get_number(&at, 4);
    p->top = (uint32_t)get_number(&at, 4);
    p->rescue = false;
    return true;
}
