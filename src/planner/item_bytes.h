/* How many bytes a call and an item of a step have, for those who predict times. */
#ifndef TB_PLANNER_ITEM_BYTES_H
#define TB_PLANNER_ITEM_BYTES_H

#include "collectives/collectives.h"

/* What IN and OUT are. */
struct tb_item_data {
    uint64_t bytes; /* of all pieces together, or of each block */
    bool blocks;    /* each */
};

/* Of a call whose elements are bytes: as many as its ranks know of, or, where they do not know, as are assumed. */
uint64_t tb_call_bytes(const struct tb_collective *c);
struct tb_item_data tb_item_data_of(const struct tb_collective *c);
/* Of an item of `t`, as far as one of its slices goes. */
uint64_t tb_slice_bytes(const struct tb_item_data *data, const struct tb_program *p, const struct tb_step *t,
                        const struct tb_slice *slice, uint32_t item);
/* Of the message, or of what is copied. */
uint64_t tb_item_bytes(const struct tb_item_data *data, const struct tb_program *p, const struct tb_step *t,
                       uint32_t item);

#endif
