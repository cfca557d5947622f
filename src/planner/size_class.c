#include "planner/size_class.h"

uint64_t tb_size_class_least(uint32_t size_class)
{
    if (size_class == 0)
        return 0;
    uint32_t octave = (size_class - 1) / 4, quarter = (size_class - 1) % 4;
    return octave >= 2 ? (uint64_t)(4 + quarter) << (octave - 2) : (4 + quarter) >> (2 - octave);
}

struct tb_collective tb_size_class_call(const struct tb_collective *c)
{
    struct tb_collective call = *c;
    call.elements = tb_size_class_least(tb_size_class(tb_size_class_bytes(c)));
    call.element_bytes = 1;
    call.argument = 0;
    return call;
}
