#include "link/squeeze_press.h"

void tb_spread_do(uint8_t *to, const uint8_t *from, size_t length, size_t size)
{
    size_t count = length / size;
    for (size_t plane = 0; plane < size; plane++)
        for (size_t i = 0; i < count; i++)
            *to++ = from[i * size + plane];
    memcpy(to, from + count * size, length % size);
}

void tb_spread_undo(uint8_t *to, const uint8_t *from, size_t length, size_t size)
{
    size_t count = length / size;
    for (size_t plane = 0; plane < size; plane++)
        for (size_t i = 0; i < count; i++)
            to[i * size + plane] = *from++;
    memcpy(to + count * size, from, length % size);
}
