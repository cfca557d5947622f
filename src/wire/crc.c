/* CRC-32C (Castagnoli, reflected). Which way to compute it is found out at the first call. */
#include "wire/wire.h"
#include "wire/crc.h"
#include "wire/order.h"

#include <stdatomic.h>

typedef uint32_t crc_function(uint32_t crc, const uint8_t *at, size_t length);

/* The remainder of each 4-bit value: two short steps a byte cost less memory than one long one. */
static const uint32_t remainders[16] = {
    0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
    0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9, 0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
};

static uint32_t crc_plain(uint32_t crc, const uint8_t *at, size_t length)
{
    for (; length > 0; length--) {
        crc ^= *at++;
        crc = crc >> 4 ^ remainders[crc & 15];
        crc = crc >> 4 ^ remainders[crc & 15];
    }
    return crc;
}

#if defined(__aarch64__)
#include <sys/auxv.h>

#if defined(__clang__)
#define HARDWARE __attribute__((target("crc")))
#define CRC_BYTE __builtin_arm_crc32cb
#define CRC_WORD __builtin_arm_crc32cd
#else
#define HARDWARE __attribute__((target("+crc")))
#define CRC_BYTE __builtin_aarch64_crc32cb
#define CRC_WORD __builtin_aarch64_crc32cx
#endif
#define HAS_HARDWARE ((getauxval(AT_HWCAP) & HWCAP_CRC32) != 0)
#elif defined(__x86_64__)
#include <nmmintrin.h>

#define HARDWARE          __attribute__((target("sse4.2")))
#define CRC_BYTE          _mm_crc32_u8
#define CRC_WORD(crc, at) ((uint32_t)_mm_crc32_u64((crc), (at)))
#define HAS_HARDWARE      __builtin_cpu_supports("sse4.2")
#endif

#if defined(HARDWARE)
HARDWARE static uint32_t crc_hardware(uint32_t crc, const uint8_t *at, size_t length)
{
    for (; length >= 8; length -= 8, at += 8)
        crc = CRC_WORD(crc, tb_order_get64(at));
    for (; length > 0; length--)
        crc = CRC_BYTE(crc, *at++);
    return crc;
}

static crc_function *crc_choose(void)
{
    return HAS_HARDWARE ? crc_hardware : crc_plain;
}
#else
static crc_function *crc_choose(void)
{
    return crc_plain;
}
#endif

uint32_t tb_crc32c(uint32_t crc, const void *bytes, size_t length)
{
    static _Atomic(crc_function *) chosen;
    crc_function *function = atomic_load_explicit(&chosen, memory_order_relaxed);
    if (__builtin_expect(function == NULL, 0)) {
        function = crc_choose();
        atomic_store_explicit(&chosen, function, memory_order_relaxed);
    }
    return ~function(~crc, bytes, length);
}

uint32_t tb_crc32c_plain(uint32_t crc, const void *bytes, size_t length)
{
    return ~crc_plain(~crc, bytes, length);
}
