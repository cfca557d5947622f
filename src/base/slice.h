/* How the kernel shares a core among threads, as far as a thread may say so itself. */
#ifndef TB_BASE_SLICE_H
#define TB_BASE_SLICE_H

#include <stdbool.h>
#include <stdint.h>

/* As the kernel has it; the C library declares neither the struct nor the call. */
struct tb_scheduling {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
};

/* For the calling thread; `size` is set here. */
bool tb_schedule(struct tb_scheduling wanted);
/* A short time slice for the calling thread, if it is an ordinary one: the kernel then prefers it when it wakes (Linux
 * 6.12 and later, without rights; before that nothing changes). It gets no more of the core than before. */
bool tb_slice_shorten(void);

#endif
