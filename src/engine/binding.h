/* What a program's symbols stand for in one run, from within: where pieces lie, and the memory of WORK. struct
 * tb_binding stands in engine.h. */
#ifndef TB_ENGINE_BINDING_H
#define TB_ENGINE_BINDING_H

#include "engine/engine.h"
#include "engine/part.h"

/* Memory that the last program needed for WORK, kept for the next one. Part of the engine, touched with it locked. */
struct tb_work_cache {
    void *memory;
    uint64_t bytes;
};

/* The bytes of one item of a step's slice; `room` is for a buffer that part may refer to. */
void tb_binding_part(const struct tb_binding *b, const struct tb_program *program, const struct tb_step *step,
                     const struct tb_slice *slice, uint32_t item, struct tb_part *part, struct tb_buffer *room);
/* The same of one piece of a slice, whether or not the step joins them. */
void tb_binding_block(const struct tb_binding *b, const struct tb_program *program, const struct tb_slice *slice,
                      uint32_t at, struct tb_part *part, struct tb_buffer *room);
/* Provides WORK, in the `small_bytes` at `small` if they are enough; *work is then NULL. */
int tb_binding_take_work(struct tb_binding *b, const struct tb_program *program, struct tb_work_cache *cache,
                         void *small, uint64_t small_bytes, void **work, uint64_t *work_bytes);
void tb_work_cache_give(struct tb_work_cache *cache, void *work, uint64_t bytes);
/* How much memory so many items of a type take, and where in it the first one stands. */
int tb_items_measure(const struct tb_type *type, unsigned __int128 count, uint64_t *bytes, int64_t *origin);

#endif
