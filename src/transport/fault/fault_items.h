/* Faults as a user writes them: a list such as loss=1%,delay=5ms,seed=1, in any order. Who injects faults has a table
 * of the items that it knows. */
#ifndef TB_TRANSPORT_FAULT_FAULT_ITEMS_H
#define TB_TRANSPORT_FAULT_FAULT_ITEMS_H

#include <stdint.h>

struct tb_fault_item {
    const char *name;
    /* Where its value goes; one of them. */
    double *share;    /* 1%, or a fraction up to 1 */
    uint64_t *time;   /* ns; written with ns, us, ms or s, a minute at most */
    uint64_t *number; /* decimal, or with 0x */
};

/* Those that are not named keep their value. TB_ERR_ARGUMENT: one is not understood; the story says so, and has
 * `example`. */
int tb_fault_items_read(const struct tb_fault_item *items, uint32_t count, const char *example,
                        const char *specification);

#endif
