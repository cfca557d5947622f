/* Kernels: the loops that move bytes between memory with gaps and packed data, specialised by the size of the blocks.
 * Where the bytes go is known; nothing is allocated, nothing fails. `gather` moves from memory to packed. Internal to
 * data. */
#ifndef TB_DATA_KERNEL_H
#define TB_DATA_KERNEL_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Places may be seen from address 0 (MPI_BOTTOM), so this is arithmetic on addresses. */
static inline char *tb_shifted(char *memory, int64_t displacement)
{
    return (char *)((uintptr_t)memory + (uintptr_t)displacement);
}

static inline void tb_kernel_run(char *memory, char *packed, uint64_t n, bool gather)
{
    if (gather)
        memcpy(packed, memory, n);
    else
        memcpy(memory, packed, n);
}

/* `count` blocks, `stride` bytes apart. */
void tb_kernel_loop(char *memory, int64_t stride, char *packed, uint64_t block, uint64_t count, bool gather);
/* `rows` rows, `row_stride` bytes apart, of `count` blocks each. */
void tb_kernel_grid(char *memory, int64_t stride, uint64_t count, int64_t row_stride, char *packed, uint64_t block,
                    uint64_t rows, bool gather);
/* `count` equal blocks, each at its displacement; `far`: most of them far from the one before. */
void tb_kernel_scattered(char *memory, const int64_t *displacements, bool far, char *packed, uint64_t block,
                         uint64_t count, bool gather);
/* `count` blocks of any length: block i has the bytes between starts[i] and starts[i + 1]. */
void tb_kernel_ragged(char *memory, const int64_t *displacements, const uint64_t *starts, uint64_t count, char *packed,
                      bool gather);
/* `count` records, `stride` bytes apart, each of few fields: as ragged blocks. */
void tb_kernel_records(char *memory, int64_t stride, uint64_t count, const int64_t *displacements,
                       const uint64_t *starts, uint64_t fields, char *packed, bool gather);

#endif
