#include "transport/shm/doorbell.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool doorbell_membarrier(int command)
{
    return syscall(SYS_membarrier, command, 0, 0) == 0;
}

bool tb_doorbell_register(void)
{
    return doorbell_membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED) &&
           doorbell_membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
}

bool tb_doorbell_sleep(_Atomic uint32_t *state)
{
    bool fenced = true;
    if (atomic_load_explicit(state, memory_order_relaxed) == TB_DOORBELL_BUSY) {
        atomic_store_explicit(state, TB_DOORBELL_AWAKE, memory_order_relaxed);
        fenced = doorbell_membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
    }
    /* A filter may have come since registering. We are no longer BUSY, and by the next try everybody has seen it. */
    if (!fenced)
        return false;
    atomic_store_explicit(state, TB_DOORBELL_SLEEPING, memory_order_relaxed);
    __sync_synchronize();
    return true;
}

void tb_doorbell_awake(_Atomic uint32_t *state, int descriptor)
{
    atomic_store_explicit(state, TB_DOORBELL_AWAKE, memory_order_relaxed);
    /* A ringer that took the state late may ring after this: then the next sleep ends at once, which does no harm. */
    uint64_t rings;
    while (read(descriptor, &rings, sizeof(rings)) < 0 && errno == EINTR)
        ;
}

void tb_doorbell_busy(_Atomic uint32_t *state)
{
    uint32_t expected = TB_DOORBELL_AWAKE;
    atomic_compare_exchange_strong_explicit(state, &expected, TB_DOORBELL_BUSY, memory_order_relaxed,
                                            memory_order_relaxed);
}

bool tb_doorbell_claim(_Atomic uint32_t *state)
{
    uint32_t expected = TB_DOORBELL_SLEEPING;
    return atomic_compare_exchange_strong_explicit(state, &expected, TB_DOORBELL_AWAKE, memory_order_seq_cst,
                                                   memory_order_seq_cst);
}

void tb_doorbell_ring(_Atomic uint32_t *state, int descriptor)
{
    if (!tb_doorbell_claim(state))
        return;
    uint64_t one = 1;
    while (write(descriptor, &one, sizeof(one)) < 0 && errno == EINTR)
        ;
}
