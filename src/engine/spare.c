#include "engine/spare.h"

#include "base/base.h"

#include <stdlib.h>

bool tb_spare_open(struct tb_spare *spare)
{
    *spare = (struct tb_spare){.memory = malloc(TB_SPARE_BYTES)};
    if (spare->memory == NULL)
        tb_error(TB_ERR_MEMORY, "no memory for messages that arrive early");
    return spare->memory != NULL;
}

void tb_spare_close(struct tb_spare *spare)
{
    free(spare->memory);
    spare->memory = NULL;
}

void *tb_spare_take(struct tb_spare *spare, uint64_t bytes)
{
    size_t alignment = alignof(max_align_t), left = TB_SPARE_BYTES - spare->used;
    if (bytes > left)
        return NULL;
    char *memory = spare->memory + spare->used;
    size_t taken = ((size_t)bytes + alignment - 1) & ~(alignment - 1);
    spare->used += taken <= left ? taken : left;
    spare->out++;
    return memory;
}

void tb_spare_free(struct tb_spare *spare, void *memory)
{
    uintptr_t at = (uintptr_t)memory, base = (uintptr_t)spare->memory;
    if (spare->memory == NULL || at < base || at - base >= TB_SPARE_BYTES) {
        free(memory);
        return;
    }
    if (--spare->out == 0)
        spare->used = 0;
}
