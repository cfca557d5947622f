#include "engine/window_lock.h"

void tb_lock_queue_open(struct tb_lock_queue *lock, void (*grant)(void *context, struct tb_lock_seat *seat),
                        void *context)
{
    *lock = (struct tb_lock_queue){.grant = grant, .context = context};
    tb_list_init(&lock->queue);
}

void tb_lock_seat_open(struct tb_lock_seat *seat)
{
    *seat = (struct tb_lock_seat){.wants = TB_LOCK_NONE, .holds = TB_LOCK_NONE};
    tb_list_init(&seat->queue);
}

/* Whoever is first gets it, as long as that is possible. */
static void lock_grant(struct tb_lock_queue *lock)
{
    while (!lock->exclusive && !tb_list_empty(&lock->queue)) {
        struct tb_lock_seat *seat = TB_CONTAINER(lock->queue.next, struct tb_lock_seat, queue);
        if (seat->wants == TB_LOCK_EXCLUSIVE && lock->sharers > 0)
            return;
        tb_list_remove(&seat->queue);
        seat->holds = seat->wants;
        seat->wants = TB_LOCK_NONE;
        lock->exclusive = seat->holds == TB_LOCK_EXCLUSIVE;
        lock->sharers += seat->holds == TB_LOCK_SHARED;
        lock->grant(lock->context, seat);
    }
}

bool tb_lock_queue_ask(struct tb_lock_queue *lock, struct tb_lock_seat *seat, enum tb_lock_mode mode)
{
    if (seat->wants != TB_LOCK_NONE || seat->holds != TB_LOCK_NONE)
        return false;
    seat->wants = (uint8_t)mode;
    tb_list_append(&lock->queue, &seat->queue);
    lock_grant(lock);
    return true;
}

bool tb_lock_queue_release(struct tb_lock_queue *lock, struct tb_lock_seat *seat)
{
    if (seat->wants == TB_LOCK_NONE && seat->holds == TB_LOCK_NONE)
        return false;
    tb_list_remove(&seat->queue);
    if (seat->holds == TB_LOCK_EXCLUSIVE)
        lock->exclusive = false;
    lock->sharers -= seat->holds == TB_LOCK_SHARED;
    seat->wants = seat->holds = TB_LOCK_NONE;
    lock_grant(lock);
    return true;
}
