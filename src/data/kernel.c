/* Every loop below is written once for any size of a block and made for the usual sizes by inlining it with a constant,
 * so that the copy of a block is a load and a store. */
#include "data/kernel.h"

#define INLINE static inline __attribute__((always_inline))

/* Bytes of records that are worked on field by field before the next ones: they stay in the first cache. */
#define RECORDS_TILE 8192
#define CACHE_LINE   64
#define FAR_STRIDE   512 /* bytes from turn to turn from which on asking ahead pays */
#define LOOP_AHEAD   32  /* turns */
#define LIST_AHEAD   8

/* A block of any size. The loops call it with the same size again and again, so its branches are foreseen. */
INLINE void move_any(char *to, const char *from, uint64_t n)
{
    if (n > CACHE_LINE) {
        memcpy(to, from, n);
    } else if (n >= 32) {
        char head[32], tail[32];
        memcpy(head, from, 32);
        memcpy(tail, from + n - 32, 32);
        memcpy(to, head, 32);
        memcpy(to + n - 32, tail, 32);
    } else if (n >= 16) {
        char head[16], tail[16];
        memcpy(head, from, 16);
        memcpy(tail, from + n - 16, 16);
        memcpy(to, head, 16);
        memcpy(to + n - 16, tail, 16);
    } else if (n >= 8) {
        uint64_t head, tail;
        memcpy(&head, from, 8);
        memcpy(&tail, from + n - 8, 8);
        memcpy(to, &head, 8);
        memcpy(to + n - 8, &tail, 8);
    } else if (n >= 4) {
        uint32_t head, tail;
        memcpy(&head, from, 4);
        memcpy(&tail, from + n - 4, 4);
        memcpy(to, &head, 4);
        memcpy(to + n - 4, &tail, 4);
    } else {
        for (uint64_t i = 0; i < n; i++)
            to[i] = from[i];
    }
}

INLINE void move(char *memory, char *packed, uint64_t block, bool fixed, bool gather)
{
    char *to = gather ? packed : memory;
    const char *from = gather ? memory : packed;
    if (fixed)
        memcpy(to, from, block);
    else
        move_any(to, from, block);
}

/* Calls LOOP(block, fixed, gather) with constants wherever the block has a usual size: statements of their own. */
#define FOR_SIZE(block, LOOP, gather)                                                                                  \
    switch (block) {                                                                                                   \
    case 1:                                                                                                            \
        LOOP(1, true, gather);                                                                                         \
        break;                                                                                                         \
    case 2:                                                                                                            \
        LOOP(2, true, gather);                                                                                         \
        break;                                                                                                         \
    case 4:                                                                                                            \
        LOOP(4, true, gather);                                                                                         \
        break;                                                                                                         \
    case 8:                                                                                                            \
        LOOP(8, true, gather);                                                                                         \
        break;                                                                                                         \
    case 12:                                                                                                           \
        LOOP(12, true, gather);                                                                                        \
        break;                                                                                                         \
    case 16:                                                                                                           \
        LOOP(16, true, gather);                                                                                        \
        break;                                                                                                         \
    case 24:                                                                                                           \
        LOOP(24, true, gather);                                                                                        \
        break;                                                                                                         \
    case 32:                                                                                                           \
        LOOP(32, true, gather);                                                                                        \
        break;                                                                                                         \
    default:                                                                                                           \
        LOOP(block, false, gather);                                                                                    \
    }

#define FOR_DIRECTION_AND_SIZE(block, LOOP)                                                                            \
    if (gather) {                                                                                                      \
        FOR_SIZE(block, LOOP, true)                                                                                    \
    } else {                                                                                                           \
        FOR_SIZE(block, LOOP, false)                                                                                   \
    }

INLINE void loop(char *memory, int64_t stride, char *packed, int64_t packed_stride, uint64_t count, uint64_t block,
                 bool fixed, bool gather)
{
    for (uint64_t i = 0; i < count; i++) {
        move(memory, packed, block, fixed, gather);
        memory = tb_shifted(memory, stride);
        packed += packed_stride;
    }
}

/* Asks for memory some turns before it is used; an address beyond the end does no harm. The processor foresees short
 * strides by itself. */
INLINE void far_loop(char *memory, int64_t stride, char *packed, uint64_t count, uint64_t block, bool fixed,
                     bool gather)
{
    for (uint64_t i = 0; i < count; i++) {
        if (gather)
            __builtin_prefetch(tb_shifted(memory, LOOP_AHEAD * stride), 0);
        else
            __builtin_prefetch(tb_shifted(memory, LOOP_AHEAD * stride), 1);
        move(memory, packed, block, fixed, gather);
        memory = tb_shifted(memory, stride);
        packed += block;
    }
}

static bool is_far(int64_t stride, uint64_t count)
{
    return (stride >= FAR_STRIDE || stride <= -FAR_STRIDE) && count > LOOP_AHEAD;
}

/* Blocks for which memcpy is right. */
static void long_loop(char *memory, int64_t stride, char *packed, uint64_t block, uint64_t count, bool gather)
{
    for (uint64_t i = 0; i < count; i++)
        tb_kernel_run(tb_shifted(memory, (int64_t)i * stride), packed + i * block, block, gather);
}

#define LOOP(size, fixed, way)     loop(memory, stride, packed, (int64_t)(size), count, size, fixed, way)
#define FAR_LOOP(size, fixed, way) far_loop(memory, stride, packed, count, size, fixed, way)

void tb_kernel_loop(char *memory, int64_t stride, char *packed, uint64_t block, uint64_t count, bool gather)
{
    if (block > CACHE_LINE) {
        long_loop(memory, stride, packed, block, count, gather);
    } else if (is_far(stride, count)) {
        FOR_DIRECTION_AND_SIZE(block, FAR_LOOP)
    } else {
        FOR_DIRECTION_AND_SIZE(block, LOOP)
    }
}

INLINE void grid(char *memory, int64_t stride, uint64_t count, int64_t row_stride, char *packed, uint64_t rows,
                 uint64_t block, bool fixed, bool gather)
{
    for (uint64_t i = 0; i < rows; i++) {
        loop(memory, stride, packed, (int64_t)block, count, block, fixed, gather);
        memory = tb_shifted(memory, row_stride);
        packed += count * block;
    }
}

/* Some rows that are neighbours in memory, as the columns of a matrix are: a line of the cache that is fetched for one
 * of them is used for the others before it is given up. */
INLINE void neighbours(char *memory, int64_t stride, uint64_t count, int64_t row_stride, char *packed, uint64_t rows,
                       uint64_t block, bool fixed, bool gather)
{
    uint64_t row = count * block;
    for (uint64_t i = 0; i < count; i++) {
        for (uint64_t k = 0; k < rows; k++)
            move(tb_shifted(memory, (int64_t)k * row_stride), packed + k * row, block, fixed, gather);
        memory = tb_shifted(memory, stride);
        packed += block;
    }
}

INLINE void interleaved(char *memory, int64_t stride, uint64_t count, int64_t row_stride, char *packed, uint64_t rows,
                        uint64_t block, bool fixed, bool gather)
{
    while (rows > 0) {
        uint64_t part = rows >= 8 ? 8 : rows;
        if (part == 8)
            neighbours(memory, stride, count, row_stride, packed, 8, block, fixed, gather);
        else
            neighbours(memory, stride, count, row_stride, packed, part, block, fixed, gather);
        memory = tb_shifted(memory, (int64_t)part * row_stride);
        packed += part * count * block;
        rows -= part;
    }
}

#define GRID(size, fixed, way)        grid(memory, stride, count, row_stride, packed, rows, size, fixed, way)
#define INTERLEAVED(size, fixed, way) interleaved(memory, stride, count, row_stride, packed, rows, size, fixed, way)

void tb_kernel_grid(char *memory, int64_t stride, uint64_t count, int64_t row_stride, char *packed, uint64_t block,
                    uint64_t rows, bool gather)
{
    int64_t near = row_stride < 0 ? -row_stride : row_stride, far = stride < 0 ? -stride : stride;
    if (rows == 1) {
        tb_kernel_loop(memory, stride, packed, block, count, gather);
    } else if (near <= CACHE_LINE / 4 && far >= CACHE_LINE) {
        FOR_DIRECTION_AND_SIZE(block, INTERLEAVED)
    } else if (block > CACHE_LINE || is_far(stride, count)) {
        for (uint64_t i = 0; i < rows; i++)
            tb_kernel_loop(tb_shifted(memory, (int64_t)i * row_stride), stride, packed + i * count * block, block,
                           count, gather);
    } else {
        FOR_DIRECTION_AND_SIZE(block, GRID)
    }
}

INLINE void scattered(char *memory, const int64_t *displacements, char *packed, uint64_t count, uint64_t block,
                      bool fixed, bool gather)
{
    for (uint64_t i = 0; i < count; i++) {
        move(tb_shifted(memory, displacements[i]), packed, block, fixed, gather);
        packed += block;
    }
}

/* Stores to places that the processor cannot foresee wait for memory unless it is asked for in time. Loads do not:
 * many of them are under way at once. */
static void far_scattered(char *memory, const int64_t *displacements, const char *packed, uint64_t block,
                          uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        if (i + LIST_AHEAD < count)
            __builtin_prefetch(tb_shifted(memory, displacements[i + LIST_AHEAD]), 1);
        move_any(tb_shifted(memory, displacements[i]), packed, block);
        packed += block;
    }
}

#define SCATTERED(size, fixed, way) scattered(memory, displacements, packed, count, size, fixed, way)

void tb_kernel_scattered(char *memory, const int64_t *displacements, bool far, char *packed, uint64_t block,
                         uint64_t count, bool gather)
{
    if (far && !gather && block <= CACHE_LINE) {
        far_scattered(memory, displacements, packed, block, count);
    } else {
        FOR_DIRECTION_AND_SIZE(block, SCATTERED)
    }
}

void tb_kernel_ragged(char *memory, const int64_t *displacements, const uint64_t *starts, uint64_t count, char *packed,
                      bool gather)
{
    uint64_t start = starts[0];
    for (uint64_t i = 0; i < count; i++) {
        uint64_t block = starts[i + 1] - start;
        start = starts[i + 1];
        move(tb_shifted(memory, displacements[i]), packed, block, false, gather);
        packed += block;
    }
}

#define FIELD(size, fixed, way) loop(memory, stride, packed, packed_stride, count, size, fixed, way)

/* One field of some records. */
static void field(char *memory, int64_t stride, char *packed, int64_t packed_stride, uint64_t count, uint64_t block,
                  bool gather)
{
    FOR_DIRECTION_AND_SIZE(block, FIELD)
}

void tb_kernel_records(char *memory, int64_t stride, uint64_t count, const int64_t *displacements,
                       const uint64_t *starts, uint64_t fields, char *packed, bool gather)
{
    uint64_t size = starts[fields];
    uint64_t tile = size < RECORDS_TILE / 4 ? RECORDS_TILE / size : 4;
    while (count > 0) {
        uint64_t part = count < tile ? count : tile;
        for (uint64_t f = 0; f < fields; f++)
            field(tb_shifted(memory, displacements[f]), stride, packed + starts[f], (int64_t)size, part,
                  starts[f + 1] - starts[f], gather);
        memory = tb_shifted(memory, (int64_t)part * stride);
        packed += part * size;
        count -= part;
    }
}
