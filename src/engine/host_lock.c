#include "engine/host_lock.h"

uint32_t tb_host_lock_places(uint32_t tickets)
{
    uint32_t places = 1;
    while (places < tickets)
        places *= 2;
    return places;
}

/* Who has the ticket whose turn has come, if it waits. One that comes at the same time writes that it does before it
 * looks once more, and this looks for it after it has made way: one of the two sees the other. */
static uint32_t find_next(const struct tb_host_lock *lock, uint32_t serving)
{
    if (atomic_load(&lock->words->next) == serving)
        return TB_HOST_LOCK_NOBODY;
    uint64_t entry = atomic_load(&lock->waiting[serving & lock->mask]);
    return entry >> 32 == serving && (uint32_t)entry != 0 ? (uint32_t)entry - 1 : TB_HOST_LOCK_NOBODY;
}

static bool is_turn(const struct tb_host_lock *lock, uint32_t ticket, bool exclusive)
{
    return atomic_load(&lock->words->serving) == ticket && (!exclusive || atomic_load(&lock->words->sharers) == 0);
}

bool tb_host_lock_turn(const struct tb_host_lock *lock, uint32_t ticket, bool exclusive, uint32_t who, uint32_t *wake)
{
    *wake = TB_HOST_LOCK_NOBODY;
    if (!is_turn(lock, ticket, exclusive)) {
        atomic_store(&lock->waiting[ticket & lock->mask], (uint64_t)ticket << 32 | (who + 1));
        if (!is_turn(lock, ticket, exclusive))
            return false;
    }
    if (!exclusive) {
        atomic_fetch_add(&lock->words->sharers, 1);
        *wake = find_next(lock, atomic_fetch_add(&lock->words->serving, 1) + 1);
    }
    return true;
}

uint32_t tb_host_lock_leave(const struct tb_host_lock *lock, bool exclusive)
{
    if (exclusive)
        return find_next(lock, atomic_fetch_add(&lock->words->serving, 1) + 1);
    if (atomic_fetch_sub(&lock->words->sharers, 1) > 1)
        return TB_HOST_LOCK_NOBODY;
    return find_next(lock, atomic_load(&lock->words->serving));
}
