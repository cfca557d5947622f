/* A doorbell: how a rank that sleeps is woken. The sleeper says in a word of shared memory that it sleeps, looks again
 * whether something is there, and then waits for its eventfd; whoever has written something for it reads the word and
 * rings only if needed. Each side writes one thing and then reads the other's; without a full fence in between, both
 * could miss each other. That fence would more than double the cost of a short frame, since it waits until the frame's
 * line has been taken from the other core. So a rank that is busy has it done for everybody when it wants to sleep, by
 * the kernel (membarrier): only ranks that sleep often are written to with fences.
 *
 * The word belongs to the sleeper, except that a ringer takes SLEEPING back. The fences are __sync_synchronize because
 * the thread sanitizer objects to the standard's. */
#ifndef TB_TRANSPORT_SHM_DOORBELL_H
#define TB_TRANSPORT_SHM_DOORBELL_H

#include <stdatomic.h>

#include "base/base.h"

enum tb_doorbell_state {
    TB_DOORBELL_AWAKE = 0,    /* may sleep at any moment: fence before you trust this */
    TB_DOORBELL_SLEEPING = 1, /* sleeps, or is about to: ring */
    TB_DOORBELL_BUSY = 2      /* will not sleep without a fence in every process that has registered */
};

/* Registers this process for fences by the kernel. False: not possible here; it must then fence itself and never be
 * BUSY. */
bool tb_doorbell_register(void);

/* The sleeper's side. `sleep` says that we sleep; the caller then looks at everything again and takes it back if there
 * is something. False: not now, try again. `busy` may be called only by a process that has registered. */
bool tb_doorbell_sleep(_Atomic uint32_t *state);
void tb_doorbell_awake(_Atomic uint32_t *state, int descriptor); /* also empties the eventfd */
void tb_doorbell_busy(_Atomic uint32_t *state);

/* The other side, after something was written for the sleeper. `registered`: this process is. */
bool tb_doorbell_claim(_Atomic uint32_t *state); /* of several that see it asleep, true for one, which then rings */
void tb_doorbell_ring(_Atomic uint32_t *state, int descriptor);
/* Whether one that may fall asleep at any moment sleeps, or is about to. */
static inline bool tb_doorbell_sleeps(_Atomic uint32_t *state)
{
    __sync_synchronize();
    return __builtin_expect(atomic_load_explicit(state, memory_order_relaxed) == TB_DOORBELL_SLEEPING, 0);
}

static inline void tb_doorbell_wake(_Atomic uint32_t *state, int descriptor, bool registered)
{
    atomic_signal_fence(memory_order_seq_cst);
    if (__builtin_expect(registered && atomic_load_explicit(state, memory_order_relaxed) == TB_DOORBELL_BUSY, 1))
        return;
    if (tb_doorbell_sleeps(state))
        tb_doorbell_ring(state, descriptor);
}

#endif
