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

/* Whether the gate lets the first one through. */
static bool gate_passes(struct tb_lock_queue *lock, bool exclusive)
{
    if (!lock->ticketed)
        // NOLINTNEXTLINE(clang-analyzer-core.NullDereference): without a gate nobody waits for it
        lock->gate->queue(lock->context, &lock->ticket);
    lock->ticketed = true;
    // NOLINTNEXTLINE(clang-analyzer-core.NullDereference): likewise
    bool passes = lock->gate->turn(lock->context, lock->ticket, exclusive, lock->joining > 0);
    if (passes == lock->waits)
        lock->gate->wait(lock->context, !passes);
    lock->waits = !passes;
    lock->ticketed = !passes;
    return passes;
}

static void seat_leave(struct tb_lock_queue *lock, struct tb_lock_seat *seat)
{
    tb_list_remove(&seat->queue);
    lock->joining -= seat->wants == TB_LOCK_JOIN;
}

static void seat_grant(struct tb_lock_queue *lock, struct tb_lock_seat *seat)
{
    seat_leave(lock, seat);
    lock->exclusive = seat->wants == TB_LOCK_EXCLUSIVE;
    lock->sharers += !lock->exclusive;
    seat->holds = lock->exclusive ? TB_LOCK_EXCLUSIVE : TB_LOCK_SHARED;
    seat->wants = TB_LOCK_NONE;
    lock->grant(lock->context, seat);
}

/* Whoever is first gets it, as long as that is possible. A gate knows of those who share it, these here too, and one
 * that wants all of it takes its place there while they do. */
static void lock_grant_first(struct tb_lock_queue *lock)
{
    while (!lock->exclusive && !tb_list_empty(&lock->queue)) {
        struct tb_lock_seat *seat = TB_CONTAINER(lock->queue.next, struct tb_lock_seat, queue);
        bool exclusive = seat->wants == TB_LOCK_EXCLUSIVE;
        if (lock->gate != NULL ? !gate_passes(lock, exclusive) : exclusive && lock->sharers > 0)
            return;
        seat_grant(lock, seat);
    }
}

/* Whoever may join those who share it, wherever it stands. The gate knows by now that somebody would. */
static void lock_grant_joining(struct tb_lock_queue *lock)
{
    struct tb_lock_seat *seat;
    if (lock->exclusive || lock->joining == 0)
        return;
    TB_LIST_EACH (seat, &lock->queue, struct tb_lock_seat, queue)
        if (seat->wants == TB_LOCK_JOIN && (lock->gate != NULL ? lock->gate->join(lock->context) : lock->sharers > 0))
            seat_grant(lock, seat);
}

/* A gate may tell this process that others have come or gone while it is asked. */
static void lock_grant(struct tb_lock_queue *lock)
{
    lock->again = true;
    if (lock->granting)
        return;
    lock->granting = true;
    while (lock->again) {
        lock->again = false;
        lock_grant_first(lock);
        lock_grant_joining(lock);
    }
    lock->granting = false;
}

void tb_lock_queue_look(struct tb_lock_queue *lock)
{
    /* Those for whom the place was taken have gone: whoever is behind it must not wait for them. */
    if (!lock->granting && lock->waits && tb_list_empty(&lock->queue) && gate_passes(lock, false))
        lock->gate->unlock(lock->context, false);
    lock_grant(lock);
}

bool tb_lock_queue_ask(struct tb_lock_queue *lock, struct tb_lock_seat *seat, enum tb_lock_mode mode)
{
    if (seat->wants != TB_LOCK_NONE || seat->holds != TB_LOCK_NONE)
        return false;
    seat->wants = (uint8_t)mode;
    lock->joining += mode == TB_LOCK_JOIN;
    tb_list_append(&lock->queue, &seat->queue);
    lock_grant(lock);
    return true;
}

bool tb_lock_queue_release(struct tb_lock_queue *lock, struct tb_lock_seat *seat)
{
    enum tb_lock_mode held = (enum tb_lock_mode)seat->holds;
    if (seat->wants == TB_LOCK_NONE && held == TB_LOCK_NONE)
        return false;
    seat_leave(lock, seat);
    seat->wants = seat->holds = TB_LOCK_NONE;
    if (held == TB_LOCK_EXCLUSIVE)
        lock->exclusive = false;
    lock->sharers -= held == TB_LOCK_SHARED;
    if (held != TB_LOCK_NONE && lock->gate != NULL)
        lock->gate->unlock(lock->context, held == TB_LOCK_EXCLUSIVE);
    tb_lock_queue_look(lock);
    return true;
}
