/* Memory that fails, for tests that are linked with their own malloc, calloc and realloc (`wrapped` in meson.build). */
#ifndef TB_BASE_FAILING_MEMORY_TEST_H
#define TB_BASE_FAILING_MEMORY_TEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static uint32_t countdown; /* the allocation that fails, counted from 1; 0: none */

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);

static bool fails(void)
{
    return countdown > 0 && --countdown == 0;
}

void *__wrap_malloc(size_t bytes)
{
    return fails() ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return fails() ? NULL : __real_calloc(count, bytes);
}

void *__wrap_realloc(void *memory, size_t bytes)
{
    return fails() ? NULL : __real_realloc(memory, bytes);
}

#endif
