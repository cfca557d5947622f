#include "engine/match.h"

#include "engine/likely.h"

#include <stdlib.h>

#define BUCKETS_FIRST 256u
#define BUCKETS_LIMIT (1u << 20)

static uint32_t key_hash(uint64_t context, uint32_t rank, uint64_t match)
{
    uint64_t h = (context ^ ((uint64_t)rank << 40)) * 0x9e3779b97f4a7c15u;
    h = (h ^ match ^ (h >> 29)) * 0xbf58476d1ce4e5b9u;
    return (uint32_t)(h >> 32);
}

static struct tb_bucket *bucket_of(struct tb_matcher *m, uint64_t context, uint32_t rank, uint64_t match)
{
    return &m->buckets[key_hash(context, rank, match) & m->mask];
}

static struct tb_bucket *buckets_make(uint32_t count)
{
    struct tb_bucket *buckets = calloc(count, sizeof *buckets);
    for (uint32_t i = 0; buckets != NULL && i < count; i++) {
        tb_list_init(&buckets[i].posted);
        tb_list_init(&buckets[i].arrived);
    }
    return buckets;
}

int tb_match_open(struct tb_matcher *m)
{
    m->buckets = buckets_make(BUCKETS_FIRST);
    m->mask = BUCKETS_FIRST - 1;
    return m->buckets != NULL ? TB_OK : tb_error(TB_ERR_MEMORY, "no memory for the table of messages");
}

void tb_match_close(struct tb_matcher *m)
{
    free(m->buckets);
    m->buckets = NULL;
}

static void bucket_append(struct tb_list *list, struct tb_list *node)
{
    TB_ASSERT(list->prev != NULL);
    tb_list_append(list, node);
}

/* Keeps buckets short. Entries of one key keep their order, because they move in order. Without memory it stays small
 * and slow. */
static void buckets_grow(struct tb_matcher *m)
{
    uint32_t count = (m->mask + 1) * 4;
    struct tb_bucket *old = m->buckets;
    struct tb_bucket *grown = count > BUCKETS_LIMIT ? NULL : buckets_make(count);
    if (grown == NULL)
        return;
    uint32_t old_count = m->mask + 1;
    m->buckets = grown;
    m->mask = count - 1;
    for (uint32_t i = 0; i < old_count; i++) {
        struct tb_request *r;
        TB_LIST_EACH (r, &old[i].posted, struct tb_request, queue) {
            tb_list_remove(&r->queue);
            bucket_append(&bucket_of(m, r->context, r->rank, r->match)->posted, &r->queue);
        }
        struct tb_arrival *a;
        TB_LIST_EACH (a, &old[i].arrived, struct tb_arrival, in_bucket) {
            tb_list_remove(&a->in_bucket);
            bucket_append(&bucket_of(m, a->message.context, a->message.source_rank, a->message.match)->arrived,
                          &a->in_bucket);
        }
    }
    free(old);
}

static inline void buckets_added(struct tb_matcher *m)
{
    if (TB_UNLIKELY(++m->used > 2 * m->mask))
        buckets_grow(m);
}

static bool exact(uint32_t rank, uint64_t mask)
{
    return rank != TB_ANY_RANK && mask == UINT64_MAX;
}

static bool open_matches(const struct tb_request *r, uint32_t source, uint64_t match)
{
    return (r->rank == TB_ANY_RANK || r->rank == source) && ((r->match ^ match) & r->mask) == 0;
}

struct tb_request *tb_match_posted(struct tb_matcher *m, struct tb_context *c, uint32_t source, uint64_t match)
{
    struct tb_request *first = NULL, *r;
    struct tb_bucket *b = bucket_of(m, c->id, source, match);
    TB_LIST_EACH (r, &b->posted, struct tb_request, queue)
        if (r->match == match && r->rank == source && r->context == c->id) {
            first = r;
            break;
        }
    TB_LIST_EACH (r, &c->wild, struct tb_request, queue) {
        if (first != NULL && r->order > first->order)
            break;
        if (open_matches(r, source, match))
            return r;
    }
    return first;
}

struct tb_arrival *tb_match_arrived(struct tb_matcher *m, struct tb_context *c, uint32_t rank, uint64_t match,
                                    uint64_t mask)
{
    struct tb_arrival *a;
    if (tb_list_empty(&c->arrivals))
        return NULL;
    if (exact(rank, mask)) {
        struct tb_bucket *b = bucket_of(m, c->id, rank, match);
        TB_LIST_EACH (a, &b->arrived, struct tb_arrival, in_bucket)
            if (a->message.match == match && a->message.source_rank == rank && a->message.context == c->id)
                return a;
        return NULL;
    }
    TB_LIST_EACH (a, &c->arrivals, struct tb_arrival, in_context)
        if ((rank == TB_ANY_RANK || a->message.source_rank == rank) && ((a->message.match ^ match) & mask) == 0)
            return a;
    return NULL;
}

void tb_match_post(struct tb_matcher *m, struct tb_context *c, struct tb_request *r)
{
    r->order = ++m->orders;
    if (exact(r->rank, r->mask)) {
        tb_list_append(&bucket_of(m, c->id, r->rank, r->match)->posted, &r->queue);
        buckets_added(m);
    } else {
        tb_list_append(&c->wild, &r->queue);
    }
}

void tb_match_unpost(struct tb_matcher *m, struct tb_request *r)
{
    tb_list_remove(&r->queue);
    if (exact(r->rank, r->mask))
        m->used--;
}

void tb_match_arrive(struct tb_matcher *m, struct tb_context *c, struct tb_arrival *a)
{
    tb_list_append(&c->arrivals, &a->in_context);
    tb_list_append(&bucket_of(m, c->id, a->message.source_rank, a->message.match)->arrived, &a->in_bucket);
    buckets_added(m);
}

void tb_match_take(struct tb_matcher *m, struct tb_arrival *a)
{
    tb_list_remove(&a->in_context);
    tb_list_remove(&a->in_bucket);
    m->used--;
}
