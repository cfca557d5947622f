/* An operation in which order matters, for tests of reductions: maps x -> ax + b of numbers modulo 2^32, one after the
 * other. */
#ifndef TB_ENGINE_MAPS_TEST_H
#define TB_ENGINE_MAPS_TEST_H

#include <stdint.h>

struct map {
    uint32_t a, b;
};

static struct map map_join(struct map first, struct map second)
{
    return (struct map){first.a * second.a, first.b * second.a + second.b};
}

static void maps_join(void *context, void *first, void *into, int count, uintptr_t type)
{
    const struct map *x = first;
    struct map *y = into;
    for (int i = 0; i < count; i++)
        y[i] = map_join(x[i], y[i]);
}

#endif
