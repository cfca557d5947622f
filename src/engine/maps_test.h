/* An operation in which order matters, and what is combined first, for tests of reductions: of pairs of numbers modulo
 * 2^32. */
#ifndef TB_ENGINE_MAPS_TEST_H
#define TB_ENGINE_MAPS_TEST_H

#include "schedule/schedule.h"

struct map {
    uint32_t a, b;
};

static struct map map_join(struct map first, struct map second)
{
    // NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): tests give what they have filled in
    return (struct map){first.a * 5 + (second.a ^ first.b), first.b * second.a + second.b * 3 + 1};
}

static void maps_join(void *context, void *first, void *into, int count, uintptr_t type)
{
    const struct map *x = first;
    struct map *y = into;
    for (int i = 0; i < count; i++)
        y[i] = map_join(x[i], y[i]);
}

/* What the fixed tree makes of so many, at least one. */
static struct map maps_combine(const struct map *maps, uint32_t count, bool prefix)
{
    if (count == 1)
        return maps[0];
    uint32_t split = tb_fixed_split(count, prefix);
    return map_join(maps_combine(maps, split, prefix), maps_combine(maps + split, count - split, prefix));
}

#endif
