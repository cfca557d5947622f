/* A press: what compresses and restores the bytes of a block, with the history of the blocks before. One table for each
 * library that is built in; tb_press_* returns NULL where it is not. Private to link. */
#ifndef TB_LINK_SQUEEZE_PRESS_H
#define TB_LINK_SQUEEZE_PRESS_H

#include "link/squeeze.h"

struct tb_press_table {
    uint32_t feature; /* TB_FEATURE_ZSTD or TB_FEATURE_LZ4 */
    uint8_t method;   /* of enum tb_squeeze_flags */

    void *(*out_open)(void); /* NULL: no memory, here and below */
    void (*out_close)(void *press);
    /* Forgets the history. 0, or -1 if that is impossible. */
    int (*out_restart)(void *press, int level);
    /* Compresses into at most `room` bytes and returns how many; 0: it does not fit, and the history is of no use any
     * more. */
    size_t (*out_pack)(void *press, const void *plain, size_t length, void *to, size_t room);
    /* How many bytes it would be, without history and quickly; 0: more than `room`. */
    size_t (*out_try)(void *press, const void *plain, size_t length, void *to, size_t room);

    void *(*in_open)(void);
    void (*in_close)(void *press);
    void (*in_restart)(void *press);
    /* Exactly `length` bytes come out of exactly `from_length`, or -1. Bounds all memory that it takes. */
    int (*in_unpack)(void *press, const void *from, size_t from_length, void *plain, size_t length);
};

const struct tb_press_table *tb_press_zstd(void);
const struct tb_press_table *tb_press_lz4(void);

/* Writes all first bytes of elements of `size` (4 or 8) bytes, then all second ones, and so on; what is left over
 * follows as it is. And back. */
void tb_spread_do(uint8_t *to, const uint8_t *from, size_t length, size_t size);
void tb_spread_undo(uint8_t *to, const uint8_t *from, size_t length, size_t size);

#endif
