/* Little-endian numbers in memory of any alignment. Written byte by byte, so that the same code is right on every
 * machine; compilers make one load or store of it where that is possible. Private to wire. */
#ifndef TB_WIRE_ORDER_H
#define TB_WIRE_ORDER_H

#include <stdint.h>

static inline void tb_order_put16(uint8_t *to, uint16_t v)
{
    to[0] = (uint8_t)v;
    to[1] = (uint8_t)(v >> 8);
}

static inline void tb_order_put32(uint8_t *to, uint32_t v)
{
    to[0] = (uint8_t)v;
    to[1] = (uint8_t)(v >> 8);
    to[2] = (uint8_t)(v >> 16);
    to[3] = (uint8_t)(v >> 24);
}

static inline void tb_order_put64(uint8_t *to, uint64_t v)
{
    tb_order_put32(to, (uint32_t)v);
    tb_order_put32(to + 4, (uint32_t)(v >> 32));
}

static inline uint16_t tb_order_get16(const uint8_t *from)
{
    return (uint16_t)(from[0] | from[1] << 8);
}

static inline uint32_t tb_order_get32(const uint8_t *from)
{
    return (uint32_t)from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16 | (uint32_t)from[3] << 24;
}

static inline uint64_t tb_order_get64(const uint8_t *from)
{
    return (uint64_t)tb_order_get32(from) | (uint64_t)tb_order_get32(from + 4) << 32;
}

#endif
