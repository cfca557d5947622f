/* Frames of the launcher that concern processes, and come before this host knows the others: what a rank elsewhere asks
 * for may overtake a long cost table or plan. They are taken when the address book is there. Of an agent's thread. */
#ifndef TB_AGENT_EARLY_FRAMES_H
#define TB_AGENT_EARLY_FRAMES_H

#include "job/job.h"

struct tb_early_frames {
    uint8_t *bytes; /* of each its kind, the length of its fields, and these; or NULL */
    size_t length;
};

bool tb_early_frames_concern(uint32_t kind);
int tb_early_frames_keep(struct tb_early_frames *early, const struct tb_control_frame *frame);
/* Hands them over in the order in which they have come, and has none any more. */
void tb_early_frames_take(struct tb_early_frames *early, void (*take)(void *context, struct tb_control_frame *frame),
                          void *context);

#endif
