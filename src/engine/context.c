#include "engine/context.h"

#include "engine/failure.h"
#include "engine/likely.h"

#include <stdlib.h>

#define BUCKETS_FIRST 16u

static uint32_t context_hash(uint64_t id)
{
    return (uint32_t)((id * 0x9e3779b97f4a7c15u) >> 32);
}

struct tb_context *tb_contexts_find(struct tb_contexts *t, uint64_t id)
{
    if (TB_LIKELY(t->recent != NULL && t->recent->id == id))
        return t->recent;
    if (t->buckets == NULL)
        return NULL;
    for (struct tb_context *c = t->buckets[context_hash(id) & t->mask]; c != NULL; c = c->next)
        if (c->id == id)
            return t->recent = c;
    return NULL;
}

static bool contexts_grow(struct tb_contexts *t)
{
    if (t->buckets != NULL && t->used <= t->mask)
        return true;
    uint32_t count = t->buckets == NULL ? BUCKETS_FIRST : (t->mask + 1) * 2;
    struct tb_context **grown = count > TB_CONTEXTS_LIMIT ? NULL : calloc(count, sizeof(struct tb_context *));
    if (grown == NULL)
        return t->buckets != NULL && t->used < TB_CONTEXTS_LIMIT;
    for (uint32_t i = 0; t->buckets != NULL && i <= t->mask; i++) {
        struct tb_context *next;
        for (struct tb_context *c = t->buckets[i]; c != NULL; c = next) {
            next = c->next;
            struct tb_context **head = &grown[context_hash(c->id) & (count - 1)];
            c->next = *head;
            *head = c;
        }
    }
    free(t->buckets);
    t->buckets = grown;
    t->mask = count - 1;
    return true;
}

struct tb_context *tb_contexts_get(struct tb_contexts *t, uint64_t id)
{
    struct tb_context *c = tb_contexts_find(t, id);
    if (c != NULL)
        return c;
    struct tb_context *spare = tb_contexts_spare(t);
    if (spare == NULL && t->buckets != NULL && t->reserved > 0)
        spare = t->reserve[--t->reserved];
    else if (TB_UNLIKELY(t->reserved < t->wanted))
        tb_contexts_reserve(t, t->wanted);
    return spare != NULL ? tb_contexts_place(t, id, spare) : NULL;
}

bool tb_contexts_reserve(struct tb_contexts *t, uint32_t count)
{
    TB_ASSERT(count <= TB_CONTEXTS_RESERVE);
    t->wanted = count;
    while (t->reserved < count) {
        struct tb_context *spare = tb_contexts_spare(t);
        if (spare == NULL)
            return false;
        t->reserve[t->reserved++] = spare;
    }
    return true;
}

struct tb_context *tb_contexts_spare(struct tb_contexts *t)
{
    struct tb_context *c = contexts_grow(t) ? malloc(sizeof *c) : NULL;
    if (c == NULL)
        tb_error(TB_ERR_MEMORY, "no memory for another context, there are %u", t->used);
    return c;
}

struct tb_context *tb_contexts_place(struct tb_contexts *t, uint64_t id, struct tb_context *spare)
{
    struct tb_context *c = tb_contexts_find(t, id);
    if (c != NULL) {
        free(spare);
        return c;
    }
    c = spare;
    struct tb_context **head = &t->buckets[context_hash(id) & t->mask];
    *c = (struct tb_context){.id = id, .next = *head};
    tb_list_init(&c->arrivals);
    tb_list_init(&c->wild);
    tb_list_init(&c->requests);
    *head = c;
    t->used++;
    return c;
}

void tb_contexts_remove(struct tb_contexts *t, struct tb_context *c)
{
    struct tb_context **at = &t->buckets[context_hash(c->id) & t->mask];
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    t->used--;
    if (t->recent == c)
        t->recent = NULL;
    tb_failures_free(c->failures);
    free(c);
}

static struct tb_context *contexts_from(const struct tb_contexts *t, uint32_t bucket)
{
    for (uint32_t i = bucket; t->buckets != NULL && i <= t->mask; i++)
        if (t->buckets[i] != NULL)
            return t->buckets[i];
    return NULL;
}

struct tb_context *tb_contexts_first(const struct tb_contexts *t)
{
    return contexts_from(t, 0);
}

struct tb_context *tb_contexts_next(const struct tb_contexts *t, const struct tb_context *c)
{
    return c->next != NULL ? c->next : contexts_from(t, (context_hash(c->id) & t->mask) + 1);
}

void tb_contexts_close(struct tb_contexts *t)
{
    while (t->reserved > 0)
        free(t->reserve[--t->reserved]);
    free(t->buckets);
    *t = (struct tb_contexts){.used = 0};
}
