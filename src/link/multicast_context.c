#include "link/multicast_context.h"

#include <stdlib.h>

static struct tb_list *bucket_of(const struct tb_multicast_contexts *all, uint64_t id)
{
    uint32_t hash = tb_hash_fold(tb_hash_number(TB_HASH_BASIS, tb_hash_fold(id)));
    return (struct tb_list *)&all->buckets[hash % TB_MULTICAST_CONTEXT_BUCKETS];
}

void tb_multicast_contexts_open(struct tb_multicast_contexts *all)
{
    for (uint32_t i = 0; i < TB_MULTICAST_CONTEXT_BUCKETS; i++)
        tb_list_init(&all->buckets[i]);
    tb_list_init(&all->order);
}

struct tb_multicast_context *tb_multicast_contexts_find(const struct tb_multicast_contexts *all, uint64_t id)
{
    struct tb_multicast_context *c;
    TB_LIST_EACH (c, bucket_of(all, id), struct tb_multicast_context, in_bucket)
        if (c->id == id)
            return c;
    return NULL;
}

static uint32_t listed(const void *list, uint32_t index)
{
    return ((const uint32_t *)list)[index];
}

struct tb_multicast_context *tb_multicast_contexts_add(struct tb_multicast_contexts *all, uint64_t id,
                                                       const struct tb_multicast_members *members)
{
    struct tb_multicast_context *c = calloc(1, sizeof *c);
    uint32_t *processes = NULL;
    if (c != NULL && members->process != NULL)
        processes = malloc(members->count * sizeof *processes);
    if (c == NULL || (members->process != NULL && processes == NULL)) {
        free(c);
        return NULL;
    }
    for (uint32_t i = 0; i < members->count && processes != NULL; i++)
        processes[i] = members->process(members->list, i);
    c->id = id;
    c->processes = processes;
    c->members = (struct tb_multicast_members){.count = members->count,
                                               .self = members->self,
                                               .process = processes != NULL ? listed : NULL,
                                               .list = processes};
    c->ask_at = c->children_at = c->tell_at = TB_NEVER;
    tb_list_init(&c->receives);
    tb_list_init(&c->sends);
    tb_list_init(&c->sources);
    tb_list_append(bucket_of(all, id), &c->in_bucket);
    tb_list_append(&all->order, &c->in_order);
    return c;
}

void tb_multicast_contexts_remove(struct tb_multicast_context *c)
{
    TB_ASSERT(tb_list_empty(&c->sources));
    tb_list_remove(&c->in_bucket);
    tb_list_remove(&c->in_order);
    free(c->children);
    free(c->askers);
    free(c->processes);
    free(c);
}
