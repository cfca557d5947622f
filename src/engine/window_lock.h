/* The lock of one rank's window, kept at that rank: shared by many or held by one, granted in the order in which it was
 * asked for. A shared one does not pass an exclusive one that waits, so nobody waits for ever behind those who come
 * later. The exception is who has other locks already (TB_LOCK_JOIN): it shares this one with those who do, since two
 * such processes, each behind an exclusive one that waits for the other, would never end. Whoever asks is known by a
 * struct tb_lock_seat, one for each rank. Pure: grants are told by a callback. Touched with the engine locked. */
#ifndef TB_ENGINE_WINDOW_LOCK_H
#define TB_ENGINE_WINDOW_LOCK_H

#include "base/base.h"
#include "wire/wire.h"

struct tb_lock_seat {
    struct tb_list queue; /* while it waits */
    uint8_t wants, holds; /* enum tb_lock_mode */
};

/* Another lock behind it, in memory that processes of the host share: who is first in the queue takes a place in that
 * one. */
struct tb_lock_gate {
    int (*queue)(void *context, uint32_t *ticket); /* TB_OK, always */
    /* `joins`: somebody in the queue would share it with others, and tb_lock_queue_look is to be called when these
     * have it. */
    bool (*turn)(void *context, uint32_t ticket, bool exclusive, bool joins);
    bool (*join)(void *context); /* shares it with those who do; false: nobody does */
    void (*unlock)(void *context, bool exclusive);
    void (*wait)(void *context,
                 bool waits); /* it has not got its turn, and tb_lock_queue_look is to be called; or has */
};

struct tb_lock_queue {
    uint32_t sharers;
    bool exclusive;
    bool granting, again; /* it is just being granted; and something has happened meanwhile */
    struct tb_list queue;
    uint32_t joining;                /* those in it who join */
    const struct tb_lock_gate *gate; /* NULL: there is none */
    bool ticketed, waits;            /* there is a ticket, and it waits */
    uint32_t ticket;
    void (*grant)(void *context, struct tb_lock_seat *seat); /* its holder is to be told; must not change the lock */
    void *context;
};

void tb_lock_queue_open(struct tb_lock_queue *lock, void (*grant)(void *context, struct tb_lock_seat *seat),
                        void *context);
void tb_lock_seat_open(struct tb_lock_seat *seat);
/* False: it has asked already, or holds it. */
bool tb_lock_queue_ask(struct tb_lock_queue *lock, struct tb_lock_seat *seat, enum tb_lock_mode mode);
/* The gate may be open. */
void tb_lock_queue_look(struct tb_lock_queue *lock);
/* Gives it back, or no longer waits for it. False: it did neither. */
bool tb_lock_queue_release(struct tb_lock_queue *lock, struct tb_lock_seat *seat);

#endif
