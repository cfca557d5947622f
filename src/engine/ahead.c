#include "engine/ahead.h"

#include <stdlib.h>
#include <string.h>

void tb_aheads_open(struct tb_aheads *aheads, struct tb_spare *spare)
{
    aheads->spare = spare;
    tb_list_init(&aheads->coming);
    tb_list_init(&aheads->whole);
}

static struct tb_ahead *find_in(const struct tb_list *list, uint64_t id)
{
    struct tb_ahead *a;
    TB_LIST_EACH (a, list, struct tb_ahead, queue)
        if (a->id == id)
            return a;
    return NULL;
}

struct tb_ahead *tb_aheads_find(const struct tb_aheads *aheads, uint64_t id)
{
    struct tb_ahead *a = find_in(&aheads->coming, id);
    return a != NULL ? a : find_in(&aheads->whole, id);
}

struct tb_ahead *tb_aheads_add(struct tb_aheads *aheads, uint64_t id, uint64_t total)
{
    struct tb_ahead *a = malloc(sizeof *a);
    if (a == NULL)
        a = tb_spare_take(aheads->spare, sizeof *a);
    if (a == NULL) {
        tb_error(TB_ERR_MEMORY, "no memory for a message of %llu bytes", (unsigned long long)total);
        return NULL;
    }
    *a = (struct tb_ahead){.spare = aheads->spare, .id = id, .total = total, .state = TB_AHEAD_EARLY};
    tb_list_append(&aheads->coming, &a->queue);
    return a;
}

static uint64_t list_clear(struct tb_list *list, bool all)
{
    uint64_t bytes = 0;
    struct tb_ahead *a;
    TB_LIST_EACH (a, list, struct tb_ahead, queue)
        if (all || a->state != TB_AHEAD_KEPT) {
            bytes += a->total;
            tb_ahead_free(a);
        }
    return bytes;
}

uint64_t tb_aheads_clear(struct tb_aheads *aheads, bool all)
{
    uint64_t coming = list_clear(&aheads->coming, all);
    return coming + list_clear(&aheads->whole, all);
}

bool tb_ahead_fits(const struct tb_ahead *a, const struct tb_message *m, size_t length)
{
    return m->length == a->total && m->offset <= a->total && length <= a->total - m->offset &&
           length <= a->total - a->moved;
}

/* All zero: gaps are nobody's bytes. */
static void *bytes_make(const struct tb_ahead *a)
{
    void *bytes = calloc(1, a->total);
    if (bytes != NULL)
        return bytes;
    bytes = tb_spare_take(a->spare, a->total);
    return bytes != NULL ? memset(bytes, 0, a->total) : NULL;
}

static bool piece_keep(struct tb_ahead *a, const struct tb_message *m, const void *payload, size_t length)
{
    if (a->bytes == NULL)
        a->bytes = bytes_make(a);
    if (a->bytes == NULL) {
        tb_error(TB_ERR_MEMORY, "no memory for a message of %llu bytes that arrived before its receive",
                 (unsigned long long)a->total);
        return false;
    }
    memcpy(a->bytes + m->offset, payload, length);
    return true;
}

bool tb_ahead_take(struct tb_aheads *aheads, struct tb_ahead *a, const struct tb_message *m, const void *payload,
                   size_t length)
{
    bool keeps = a->state == TB_AHEAD_EARLY || a->state == TB_AHEAD_KEPT;
    if (keeps && !piece_keep(a, m, payload, length))
        return false;
    a->moved += length;
    if (tb_ahead_is_whole(a)) { /* it need not be found for pieces any more */
        tb_list_remove(&a->queue);
        tb_list_append(&aheads->whole, &a->queue);
    }
    return true;
}

void tb_ahead_forget_bytes(struct tb_ahead *a)
{
    tb_spare_free(a->spare, a->bytes);
    a->bytes = NULL;
}

void tb_ahead_free(struct tb_ahead *a)
{
    tb_list_remove(&a->queue);
    tb_ahead_forget_bytes(a);
    tb_spare_free(a->spare, a);
}
