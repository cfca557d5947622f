/* Objects of one size, taken and given back in constant time; memory grows by slabs up to a limit and is kept until
 * tb_pool_close. No locking. */
#ifndef TB_BASE_POOL_H
#define TB_BASE_POOL_H

#include <stddef.h>
#include <stdint.h>

struct tb_pool {
    size_t size;    /* of an object, a multiple of its alignment */
    uint32_t slab;  /* objects that are allocated together */
    uint32_t used;  /* objects that are out */
    uint32_t total; /* objects that exist */
    uint32_t limit; /* objects that may exist */
    void *free;     /* list through the objects' first word */
    void *slabs;    /* list of slabs */
};

void tb_pool_open(struct tb_pool *pool, size_t size, uint32_t slab, uint32_t limit);
void *tb_pool_grow(struct tb_pool *pool); /* slow path of tb_pool_take */
void tb_pool_close(struct tb_pool *pool);
bool tb_pool_reserve(struct tb_pool *pool); /* there is an object that can be taken; false: no memory */

/* An object with arbitrary content, or NULL when memory or the limit is exhausted (tb_error is told). */
static inline void *tb_pool_take(struct tb_pool *pool)
{
    void *object = pool->free;
    if (__builtin_expect(object == NULL, 0))
        return tb_pool_grow(pool);
    pool->free = *(void **)object;
    pool->used++;
    return object;
}

static inline void tb_pool_give(struct tb_pool *pool, void *object)
{
    *(void **)object = pool->free;
    pool->free = object;
    pool->used--;
}

#endif
