/* How many bytes an item of a step has, for those who simulate programs. */
#ifndef TB_PLANNER_ITEM_BYTES_H
#define TB_PLANNER_ITEM_BYTES_H

#include "schedule/schedule.h"

/* What IN and OUT are. */
struct tb_item_data {
    uint64_t bytes; /* of all pieces together, or of each block */
    bool blocks;    /* each */
};

/* Of an item of `t`, as far as one of its slices goes. */
uint64_t tb_slice_bytes(const struct tb_item_data *data, const struct tb_program *p, const struct tb_step *t,
                        const struct tb_slice *slice, uint32_t item);
/* Of the message, or of what is copied. */
uint64_t tb_item_bytes(const struct tb_item_data *data, const struct tb_program *p, const struct tb_step *t,
                       uint32_t item);

#endif
