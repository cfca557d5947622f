#include "link/multicast_early.h"

#include <stdlib.h>

#define AGE UINT64_C(5000000000) /* ns after which an entry gives way */

static struct tb_list *bucket_of(const struct tb_multicast_early *e, uint64_t context, uint64_t number)
{
    uint64_t hash = tb_hash_number(tb_hash_number(TB_HASH_BASIS, tb_hash_fold(context)), tb_hash_fold(number));
    return (struct tb_list *)&e->buckets[tb_hash_fold(hash) % TB_MULTICAST_EARLY_BUCKETS];
}

void tb_multicast_early_open(struct tb_multicast_early *e, uint64_t limit, uint32_t window, uint64_t short_bytes)
{
    *e = (struct tb_multicast_early){.limit = limit, .window = window, .short_bytes = short_bytes};
    for (uint32_t i = 0; i < TB_MULTICAST_EARLY_BUCKETS; i++)
        tb_list_init(&e->buckets[i]);
    tb_list_init(&e->order);
}

static void account(struct tb_multicast_early *e, struct tb_multicast_early_entry *entry, uint64_t bytes, bool more)
{
    e->bytes = more ? e->bytes + bytes : e->bytes - bytes;
    entry->bytes = more ? entry->bytes + bytes : entry->bytes - bytes;
    if (entry->unknown)
        e->unknown_bytes = more ? e->unknown_bytes + bytes : e->unknown_bytes - bytes;
}

static void drop_fragments(struct tb_multicast_early *e, struct tb_multicast_early_entry *entry)
{
    struct tb_multicast_early_fragment *f;
    TB_LIST_EACH (f, &entry->fragments, struct tb_multicast_early_fragment, in_entry) {
        account(e, entry, sizeof *f + f->length, false);
        tb_list_remove(&f->in_entry);
        free(f);
    }
}

static void drop_control(struct tb_multicast_early *e, struct tb_multicast_early_entry *entry,
                         struct tb_multicast_early_control *c)
{
    account(e, entry, sizeof *c + c->length, false);
    tb_list_remove(&c->in_entry);
    free(c);
}

void tb_multicast_early_miss(struct tb_multicast_early *e, uint64_t context, uint64_t number, uint32_t root)
{
    const struct tb_multicast_untaken new = {context, number, root};
    for (uint32_t i = 0; i < TB_MULTICAST_UNTAKEN; i++)
        if (e->untaken[i].context == context && e->untaken[i].number == number && e->untaken[i].root == root)
            return;
    e->untaken[e->untaken_next++ % TB_MULTICAST_UNTAKEN] = new;
}

bool tb_multicast_early_among(const struct tb_multicast_early *e, uint64_t context, uint64_t first, uint64_t last,
                              struct tb_multicast_untaken *found)
{
    const struct tb_multicast_early_entry *entry;
    TB_LIST_EACH (entry, &e->order, const struct tb_multicast_early_entry, in_order)
        if (entry->context == context && entry->number >= first && entry->number <= last && entry->rooted) {
            *found = (struct tb_multicast_untaken){context, entry->number, entry->root};
            return true;
        }
    for (uint32_t i = 0; i < TB_MULTICAST_UNTAKEN && i < e->untaken_next; i++) {
        *found = e->untaken[i];
        if (found->context == context && found->number >= first && found->number <= last)
            return true;
    }
    return false;
}

void tb_multicast_early_drop(struct tb_multicast_early *e, struct tb_multicast_early_entry *entry)
{
    struct tb_multicast_early_control *c;
    drop_fragments(e, entry);
    TB_LIST_EACH (c, &entry->controls, struct tb_multicast_early_control, in_entry)
        drop_control(e, entry, c);
    account(e, entry, sizeof *entry, false);
    tb_list_remove(&entry->in_bucket);
    tb_list_remove(&entry->in_order);
    free(entry);
}

void tb_multicast_early_close(struct tb_multicast_early *e)
{
    struct tb_multicast_early_entry *entry;
    TB_LIST_EACH (entry, &e->order, struct tb_multicast_early_entry, in_order)
        tb_multicast_early_drop(e, entry);
    TB_ASSERT(e->bytes == 0);
}

struct tb_multicast_early_entry *tb_multicast_early_find(const struct tb_multicast_early *e, uint64_t context,
                                                         uint64_t number, uint32_t root)
{
    struct tb_multicast_early_entry *entry;
    TB_LIST_EACH (entry, bucket_of(e, context, number), struct tb_multicast_early_entry, in_bucket)
        if (entry->context == context && entry->number == number && entry->root == root)
            return entry;
    return NULL;
}

void tb_multicast_early_pass(struct tb_multicast_early *e, uint64_t context, uint64_t number)
{
    struct tb_multicast_early_entry *entry;
    TB_LIST_EACH (entry, &e->order, struct tb_multicast_early_entry, in_order)
        if (entry->context == context && entry->number < number) {
            if (entry->rooted)
                tb_multicast_early_miss(e, context, entry->number, entry->root);
            tb_multicast_early_drop(e, entry);
        }
}

/* The oldest that may give way, other than this one. */
static struct tb_multicast_early_entry *oldest(struct tb_multicast_early *e,
                                               const struct tb_multicast_early_entry *keep, bool unknown, uint64_t now)
{
    struct tb_multicast_early_entry *entry;
    // NOLINTNEXTLINE(clang-analyzer-unix.Malloc): an entry that was freed is in no list
    TB_LIST_EACH (entry, &e->order, struct tb_multicast_early_entry, in_order)
        if (entry != keep && (unknown ? entry->unknown : now - entry->at >= AGE))
            return entry;
    return NULL;
}

/* Makes room for so many bytes of an entry, which gives way itself to nobody. */
static bool make_room(struct tb_multicast_early *e, size_t bytes, bool unknown,
                      const struct tb_multicast_early_entry *keep, uint64_t now)
{
    struct tb_multicast_early_entry *give;
    while (unknown && e->unknown_bytes + bytes > e->limit / 4) {
        give = oldest(e, keep, true, now);
        if (give == NULL)
            return false;
        tb_multicast_early_drop(e, give);
    }
    while (e->bytes + bytes > e->limit) {
        give = oldest(e, keep, true, now);
        if (give == NULL)
            give = oldest(e, keep, false, now);
        if (give == NULL)
            return false;
        tb_multicast_early_drop(e, give);
    }
    return true;
}

static bool is_alike(const struct tb_multicast_early_entry *entry, const struct tb_datagram *head)
{
    return entry->length == head->length && (entry->piece == head->piece || entry->piece == 0 || head->piece == 0);
}

/* The entry of a message, made if there is none; rooted: its root itself has sent this. NULL: there is no room, or it
 * is not what came before. */
static struct tb_multicast_early_entry *entry_for(struct tb_multicast_early *e, const struct tb_datagram *head,
                                                  bool rooted, bool joined, uint64_t now)
{
    struct tb_multicast_early_entry *entry = tb_multicast_early_find(e, head->context, head->number, head->sender);
    if (entry != NULL && !is_alike(entry, head)) {
        if (!rooted || entry->rooted)
            return NULL;
        tb_multicast_early_drop(e, entry); /* whoever has told of it knew less than its root */
    } else if (entry != NULL) {
        entry->piece = entry->piece == 0 ? head->piece : entry->piece;
        entry->rooted = entry->rooted || rooted;
        return entry;
    }
    if (!make_room(e, sizeof *entry, !joined, NULL, now))
        return NULL;
    entry = malloc(sizeof *entry);
    if (entry == NULL)
        return NULL;
    *entry = (struct tb_multicast_early_entry){.context = head->context,
                                               .number = head->number,
                                               .length = head->length,
                                               .root = head->sender,
                                               .piece = head->piece,
                                               .rooted = rooted,
                                               .unknown = !joined,
                                               .at = now};
    tb_list_init(&entry->fragments);
    tb_list_init(&entry->controls);
    tb_list_append(bucket_of(e, head->context, head->number), &entry->in_bucket);
    tb_list_append(&e->order, &entry->in_order);
    account(e, entry, sizeof *entry, true);
    return entry;
}

static bool has(const struct tb_multicast_early_entry *entry, uint32_t fragment)
{
    const struct tb_multicast_early_fragment *f;
    if (fragment >= entry->to) /* mostly they come in order */
        return false;
    TB_LIST_EACH (f, &entry->fragments, struct tb_multicast_early_fragment, in_entry)
        if (f->fragment == fragment)
            return true;
    return false;
}

enum tb_multicast_arrival tb_multicast_early_take(struct tb_multicast_early *e, const struct tb_datagram *head,
                                                  const void *payload, size_t length, bool joined, uint64_t now)
{
    struct tb_multicast_early_entry *entry = entry_for(e, head, true, joined, now);
    if (entry == NULL)
        return TB_MULTICAST_FAR;
    if (entry->foreign)
        return TB_MULTICAST_FOREIGN;
    if (has(entry, head->fragment))
        return TB_MULTICAST_REPEATED;
    if (entry->count >= e->window && entry->length > e->short_bytes) {
        drop_fragments(e, entry);
        entry->foreign = true;
        return TB_MULTICAST_FOREIGN;
    }
    entry->representation = head->representation;
    entry->heard = entry->heard || (head->flags & TB_DATAGRAM_REPAIR) == 0;
    if ((head->flags & TB_DATAGRAM_WINDOW) != 0 && head->fragment >= entry->top)
        entry->top = head->fragment + 1;
    struct tb_multicast_early_fragment *f = NULL;
    if (make_room(e, sizeof *f + length, entry->unknown, entry, now))
        f = malloc(sizeof *f + length);
    if (f == NULL) {
        entry->dropped = true;
        return TB_MULTICAST_FAR;
    }
    f->fragment = head->fragment;
    f->length = (uint32_t)length;
    f->repair = (head->flags & TB_DATAGRAM_REPAIR) != 0;
    if (length > 0)
        memcpy(f->payload, payload, length);
    tb_list_append(&entry->fragments, &f->in_entry);
    account(e, entry, sizeof *f + length, true);
    entry->to = head->fragment >= entry->to ? head->fragment + 1 : entry->to;
    entry->count++;
    return TB_MULTICAST_NEW;
}

void tb_multicast_early_poll(struct tb_multicast_early *e, const struct tb_datagram *head, uint32_t poll, uint32_t top,
                             bool joined, uint64_t now)
{
    struct tb_multicast_early_entry *entry = entry_for(e, head, true, joined, now);
    if (entry == NULL)
        return;
    entry->heard = true;
    entry->poll = poll > entry->poll ? poll : entry->poll;
    entry->top = top > entry->top ? top : entry->top;
}

void tb_multicast_early_control(struct tb_multicast_early *e, const struct tb_datagram *head, uint32_t from,
                                enum tb_multicast_control kind, const void *bytes, size_t length, bool joined,
                                uint64_t now)
{
    struct tb_multicast_early_entry *entry = entry_for(e, head, false, joined, now);
    if (entry == NULL)
        return;
    struct tb_multicast_early_control *c, *fresh = NULL;
    TB_LIST_EACH (c, &entry->controls, struct tb_multicast_early_control, in_entry)
        if (c->from == from && c->kind == kind)
            drop_control(e, entry, c);
    if (make_room(e, sizeof *fresh + length, entry->unknown, entry, now))
        fresh = malloc(sizeof *fresh + length);
    if (fresh == NULL)
        return;
    fresh->from = from;
    fresh->kind = kind;
    fresh->length = length;
    memcpy(fresh->bytes, bytes, length);
    tb_list_append(&entry->controls, &fresh->in_entry);
    account(e, entry, sizeof *fresh + length, true);
}
