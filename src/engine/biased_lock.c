#include "engine/biased_lock.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SEEN_AFTER 1000000 /* ns: by then a thread that runs has seen what another one has written */

static bool biased_lock_membarrier(int command)
{
    return syscall(SYS_membarrier, command, 0, 0) == 0;
}

void tb_biased_lock_open(struct tb_biased_lock *lock)
{
    *lock = (struct tb_biased_lock){.depth = 0};
    pthread_mutex_init(&lock->visit, NULL);
    lock->fenced = !biased_lock_membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) ||
                   !biased_lock_membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
}

void tb_biased_lock_close(struct tb_biased_lock *lock)
{
    pthread_mutex_destroy(&lock->visit);
}

/* Between what the visitor has written and what it reads, and the same for the owner. A filter may have come since
 * registering: then the owner has to fence itself from now on, and has begun to do so, or does not run, which fences as
 * well, when a while has passed. */
static void fence_both(struct tb_biased_lock *lock)
{
    bool fenced = atomic_load_explicit(&lock->fenced, memory_order_relaxed);
    if (!fenced && !biased_lock_membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED)) {
        struct timespec while_seen = {.tv_nsec = SEEN_AFTER};
        atomic_store_explicit(&lock->fenced, true, memory_order_relaxed);
        nanosleep(&while_seen, NULL);
        fenced = true;
    }
    if (fenced)
        __sync_synchronize();
}

void tb_biased_lock_introduce(struct tb_biased_lock *lock)
{
    lock->visitor = pthread_self();
}

bool tb_biased_lock_visit(struct tb_biased_lock *lock)
{
    pthread_mutex_lock(&lock->visit);
    atomic_store_explicit(&lock->claimed, true, memory_order_release);
    fence_both(lock);
    if (!atomic_load_explicit(&lock->inside, memory_order_acquire))
        return true;
    tb_biased_lock_depart(lock);
    return false;
}

void tb_biased_lock_depart(struct tb_biased_lock *lock)
{
    atomic_store_explicit(&lock->claimed, false, memory_order_release);
    pthread_mutex_unlock(&lock->visit);
}

bool tb_biased_lock_is_visitor(const struct tb_biased_lock *lock)
{
    return pthread_equal(pthread_self(), lock->visitor) != 0;
}

/* Whoever holds the mutex keeps the visitor out; so the owner is inside when it gives that back. */
void tb_biased_lock_wait(struct tb_biased_lock *lock)
{
    atomic_store_explicit(&lock->inside, false, memory_order_release);
    atomic_store_explicit(&lock->blocked, true, memory_order_relaxed);
    pthread_mutex_lock(&lock->visit);
    atomic_store_explicit(&lock->blocked, false, memory_order_relaxed);
    atomic_store_explicit(&lock->inside, true, memory_order_relaxed);
    pthread_mutex_unlock(&lock->visit);
}

void tb_biased_lock_keep_out(struct tb_biased_lock *lock)
{
    pthread_mutex_lock(&lock->visit);
}

void tb_biased_lock_let_in(struct tb_biased_lock *lock)
{
    pthread_mutex_unlock(&lock->visit);
}
