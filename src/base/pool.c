#include "base/base.h"

#include <stdlib.h>

#define SLAB_ALIGNMENT 64

/* A slab is one allocation; its first cache line links the slabs, objects follow. */
struct slab {
    struct slab *next;
};

void tb_pool_open(struct tb_pool *pool, size_t size, uint32_t slab, uint32_t limit)
{
    TB_ASSERT(size >= sizeof(void *) && slab > 0 && limit > 0);
    size_t rounded = (size + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
    *pool = (struct tb_pool){.size = rounded, .slab = slab, .limit = limit};
}

void *tb_pool_grow(struct tb_pool *pool)
{
    uint32_t count = pool->slab;
    if (count > pool->limit - pool->total)
        count = pool->limit - pool->total;
    if (count == 0) {
        tb_error(TB_ERR_LIMIT, "all %u objects of a pool (%zu bytes each) are in use", pool->limit, pool->size);
        return NULL;
    }
    struct slab *slab = aligned_alloc(SLAB_ALIGNMENT, (SLAB_ALIGNMENT + pool->size * count + SLAB_ALIGNMENT - 1) &
                                                          ~(size_t)(SLAB_ALIGNMENT - 1));
    if (!slab) {
        tb_error(TB_ERR_MEMORY, "no memory for %u objects of %zu bytes", count, pool->size);
        return NULL;
    }
    slab->next = pool->slabs;
    pool->slabs = slab;
    pool->total += count;
    char *object = (char *)slab + SLAB_ALIGNMENT;
    for (uint32_t i = count; i-- > 1;) {
        void **link = (void **)(object + i * pool->size);
        *link = pool->free;
        pool->free = link;
    }
    pool->used++;
    return object;
}

bool tb_pool_reserve(struct tb_pool *pool)
{
    void *object = tb_pool_take(pool);
    if (object != NULL)
        tb_pool_give(pool, object);
    return object != NULL;
}

void tb_pool_close(struct tb_pool *pool)
{
    for (struct slab *slab = pool->slabs, *next; slab; slab = next) {
        next = slab->next;
        free(slab);
    }
    *pool = (struct tb_pool){0};
}
