/* A lock that one side passes millions of times and another one seldom: its owner, which is the thread of the program
 * that is in the library (or one after the other of several), and a visitor, a thread of the library. The owner enters
 * with a store and a look at what the visitor last said, and leaves with a store. Each sets its own flag and then looks
 * at the other's; without a full fence in between both could miss each other, so the visitor has the kernel fence for
 * both (membarrier). Where the kernel does not, each fences itself.
 *
 * The owner never waits but while the visitor is inside. The visitor never waits for the owner: it is told that it
 * cannot come in. Both may enter again while they are inside, as callbacks do. */
#ifndef TB_ENGINE_BIASED_LOCK_H
#define TB_ENGINE_BIASED_LOCK_H

#include "engine/likely.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct tb_biased_lock {
    _Atomic bool inside;   /* the owner is */
    _Atomic bool claimed;  /* the visitor is inside, or looks whether it may be */
    _Atomic bool fenced;   /* the kernel does not fence for both */
    _Atomic bool blocked;  /* the owner waits until the visitor leaves */
    uint32_t depth;        /* how often the owner is inside; its own */
    pthread_t visitor;     /* that has introduced itself */
    pthread_mutex_t visit; /* held by the visitor while it is inside */
};

void tb_biased_lock_open(struct tb_biased_lock *lock);
void tb_biased_lock_close(struct tb_biased_lock *lock);

/* The visitor's side. It introduces itself once, before its first visit. */
void tb_biased_lock_introduce(struct tb_biased_lock *lock);
/* False: the owner is inside, and whatever the visitor has written before, the owner reads after it
 * has left (as far as it looks behind tb_biased_lock_leave). */
bool tb_biased_lock_visit(struct tb_biased_lock *lock);
void tb_biased_lock_depart(struct tb_biased_lock *lock);
/* Whether the owner waits for the visitor to depart. */
static inline bool tb_biased_lock_is_wanted(const struct tb_biased_lock *lock)
{
    return atomic_load_explicit(&lock->blocked, memory_order_relaxed);
}
/* Whether it is worth trying: a look without a fence. */
static inline bool tb_biased_lock_is_busy(const struct tb_biased_lock *lock)
{
    return atomic_load_explicit(&lock->inside, memory_order_relaxed);
}

/* For a third thread: keeps the visitor out, and not the owner. */
void tb_biased_lock_keep_out(struct tb_biased_lock *lock);
void tb_biased_lock_let_in(struct tb_biased_lock *lock);

/* ---- the owner's side -------------------------------------------------------------------------------------------- */

void tb_biased_lock_wait(struct tb_biased_lock *lock); /* the visitor has come first */
bool tb_biased_lock_is_visitor(const struct tb_biased_lock *lock);

/* The fences are __sync_synchronize because the thread sanitizer objects to the standard's. */
static inline void tb_biased_lock_fence(const struct tb_biased_lock *lock)
{
    atomic_signal_fence(memory_order_seq_cst);
    if (TB_UNLIKELY(atomic_load_explicit(&lock->fenced, memory_order_relaxed)))
        __sync_synchronize();
}

static inline bool tb_biased_lock_is_claimed(const struct tb_biased_lock *lock)
{
    return TB_UNLIKELY(atomic_load_explicit(&lock->claimed, memory_order_acquire));
}

/* True: the caller was outside before. Calls of the visitor's while it is inside come here, too, and change nothing. */
static inline bool tb_biased_lock_enter(struct tb_biased_lock *lock)
{
    if (tb_biased_lock_is_claimed(lock) && tb_biased_lock_is_visitor(lock))
        return false;
    if (lock->depth++ > 0)
        return false;
    atomic_store_explicit(&lock->inside, true, memory_order_relaxed);
    tb_biased_lock_fence(lock);
    if (tb_biased_lock_is_claimed(lock))
        tb_biased_lock_wait(lock);
    return true;
}

/* A call ends. True: it is the first one of those that the owner is in, which is to say tb_biased_lock_leave when it
 * has done what it may do only inside. */
static inline bool tb_biased_lock_is_last(struct tb_biased_lock *lock)
{
    if (tb_biased_lock_is_claimed(lock) && tb_biased_lock_is_visitor(lock))
        return false;
    if (lock->depth == 1)
        return true;
    lock->depth--;
    return false;
}

static inline void tb_biased_lock_leave(struct tb_biased_lock *lock)
{
    lock->depth = 0;
    atomic_store_explicit(&lock->inside, false, memory_order_release);
    tb_biased_lock_fence(lock);
}

#endif
