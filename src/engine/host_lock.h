/* A lock in memory that processes of a host share: held by one, or shared by many, in the order in which they came,
 * whatever they want. Nobody waits in here: who comes gets a ticket, and looks whether it is its turn; who does not get
 * its turn is known by a number from then on, and whoever makes way for it is told that number, to wake it. One may
 * also join those who share it, past all that wait (window_lock.h says why), and leave its ticket where it is: that
 * passes by when its turn comes. Nothing in it is a pointer; all zero it is free.
 *
 * A struct tb_host_lock is one process's view of it; the words belong to all. */
#ifndef TB_ENGINE_HOST_LOCK_H
#define TB_ENGINE_HOST_LOCK_H

#include <stdalign.h>
#include <stdatomic.h>

#include "base/base.h"

#define TB_HOST_LOCK_NOBODY UINT32_MAX
#define TB_HOST_LOCK_JOINS  (UINT32_C(1) << 31) /* beside the number of one that waits */

struct tb_host_lock_words {
    alignas(128) _Atomic uint32_t next; /* ticket */
    _Atomic uint32_t serving;           /* the ticket whose turn it is, when those that share it have gone */
    _Atomic uint32_t sharers;
};

struct tb_host_lock {
    struct tb_host_lock_words *words;
    _Atomic uint64_t
        *waiting;  /* by ticket: its number in the upper half, and who has it (below 2^30) in the lower one */
    uint32_t mask; /* one less than the places there, of which there are enough for all tickets at a time */
};

/* Places for so many tickets: a power of two. */
uint32_t tb_host_lock_places(uint32_t tickets);

static inline uint32_t tb_host_lock_come(const struct tb_host_lock *lock)
{
    return atomic_fetch_add(&lock->words->next, 1);
}

/* Whether it is this one's turn: the lock is taken then, and *wake is who is next (TB_HOST_LOCK_NOBODY: nobody has to
 * be woken). `who` will be told otherwise, when it is worth looking again; with TB_HOST_LOCK_JOINS also when others
 * have begun to share it. */
bool tb_host_lock_turn(const struct tb_host_lock *lock, uint32_t ticket, bool exclusive, uint32_t who, uint32_t *wake);
/* Who waits for others to share it, from ticket *from on, which becomes the one behind; whoever gets its turn to share
 * it tells them. TB_HOST_LOCK_NOBODY: nobody (more). */
uint32_t tb_host_lock_joiner(const struct tb_host_lock *lock, uint32_t *from);
/* Shares it with those who do, past all that wait. False: nobody does; nothing has changed. */
bool tb_host_lock_join(const struct tb_host_lock *lock);
/* A ticket is not needed now: it passes by. Who is next, if that was its turn. */
uint32_t tb_host_lock_pass(const struct tb_host_lock *lock, uint32_t ticket);
/* Whether it has not passed by yet, and is needed again. */
bool tb_host_lock_return(const struct tb_host_lock *lock, uint32_t ticket, uint32_t who);
/* Gives it back; who is next. */
uint32_t tb_host_lock_leave(const struct tb_host_lock *lock, bool exclusive);

#endif
