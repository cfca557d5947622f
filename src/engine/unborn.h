/* Processes that were lost before anybody here needed them: there is no peer of them, and one that is made later is
 * lost from the beginning. Part of the engine, touched with it locked. All zero is none. */
#ifndef TB_ENGINE_UNBORN_H
#define TB_ENGINE_UNBORN_H

#include <stdbool.h>
#include <stdint.h>

struct tb_lost_range {
    uint32_t first, count;
    int error;
    char *story; /* may be NULL */
};

struct tb_unborn {
    struct tb_lost_range *ranges;
    uint32_t count;
};

/* With the present story. False: no memory. */
bool tb_unborn_add(struct tb_unborn *unborn, uint32_t first, uint32_t count, int error);
const struct tb_lost_range *tb_unborn_find(const struct tb_unborn *unborn, uint32_t index); /* NULL: none */
void tb_unborn_close(struct tb_unborn *unborn);

#endif
