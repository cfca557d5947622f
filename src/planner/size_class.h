/* Classes of sizes. */
#ifndef TB_PLANNER_SIZE_CLASS_H
#define TB_PLANNER_SIZE_CLASS_H

#include "collectives/collectives.h"

/* Calls of about the same size are one class, four to an octave, and have the same program: what is made for a class
 * depends on nothing but its smallest size. Class 0 is no data, or sizes that are not known to all. */
static inline uint32_t tb_size_class(uint64_t bytes)
{
    if (bytes == 0)
        return 0;
    uint32_t octave = 63 - (uint32_t)__builtin_clzll(bytes);
    uint64_t quarter = octave >= 2 ? bytes >> (octave - 2) : bytes << (2 - octave);
    return 1 + 4 * octave + (uint32_t)(quarter & 3);
}
static inline uint64_t tb_size_class_bytes(const struct tb_collective *c)
{
    uint64_t bytes;
    return __builtin_mul_overflow(c->elements, c->element_bytes, &bytes) ? UINT64_MAX : bytes;
}
uint64_t tb_size_class_least(uint32_t size_class);
/* The call that stands for all of its class. */
struct tb_collective tb_size_class_call(const struct tb_collective *c);

#endif
