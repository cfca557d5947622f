#include "engine/host_lock.h"

#define PASSES (UINT32_C(1) << 30) /* in the place of who has a ticket: nobody needs it */
#define WHO    (PASSES - 1)

static uint64_t entry_of(uint32_t ticket, uint32_t what)
{
    return (uint64_t)ticket << 32 | what;
}

/* Who waits with this ticket. */
static uint32_t waits_with(const struct tb_host_lock *lock, uint32_t ticket, uint32_t *what)
{
    uint64_t entry = atomic_load(&lock->waiting[ticket & lock->mask]);
    *what = (uint32_t)entry;
    bool waits = entry >> 32 == ticket && ((uint32_t)entry & WHO) != 0;
    return waits ? ((uint32_t)entry & WHO) - 1 : TB_HOST_LOCK_NOBODY;
}

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
    uint32_t what;
    if (atomic_load(&lock->words->next) == serving)
        return TB_HOST_LOCK_NOBODY;
    return waits_with(lock, serving, &what);
}

/* Whether a ticket passes by. Only one is told so, and goes on to the next. */
static bool passes(const struct tb_host_lock *lock, uint32_t ticket)
{
    _Atomic uint64_t *waiting = &lock->waiting[ticket & lock->mask];
    uint64_t entry = entry_of(ticket, PASSES);
    return atomic_load(waiting) == entry && atomic_compare_exchange_strong(waiting, &entry, 0);
}

/* To the next ticket that somebody needs. */
static uint32_t go_on(const struct tb_host_lock *lock)
{
    uint32_t serving;
    do
        serving = atomic_fetch_add(&lock->words->serving, 1) + 1;
    while (passes(lock, serving));
    return find_next(lock, serving);
}

static bool is_turn(const struct tb_host_lock *lock, uint32_t ticket, bool exclusive)
{
    return atomic_load(&lock->words->serving) == ticket && (!exclusive || atomic_load(&lock->words->sharers) == 0);
}

bool tb_host_lock_turn(const struct tb_host_lock *lock, uint32_t ticket, bool exclusive, uint32_t who, uint32_t *wake)
{
    *wake = TB_HOST_LOCK_NOBODY;
    if (!is_turn(lock, ticket, exclusive)) {
        atomic_store(&lock->waiting[ticket & lock->mask], entry_of(ticket, who + 1));
        if (!is_turn(lock, ticket, exclusive))
            return false;
    }
    if (!exclusive) {
        atomic_fetch_add(&lock->words->sharers, 1);
        *wake = go_on(lock);
    }
    return true;
}

/* One that comes at the same time writes that it waits before it looks whether somebody shares it. */
uint32_t tb_host_lock_joiner(const struct tb_host_lock *lock, uint32_t *from)
{
    uint32_t what, end = atomic_load(&lock->words->next);
    for (uint32_t looks = 0; looks <= lock->mask && *from != end; looks++) {
        uint32_t who = waits_with(lock, (*from)++, &what);
        if (who != TB_HOST_LOCK_NOBODY && (what & TB_HOST_LOCK_JOINS) != 0)
            return who;
    }
    return TB_HOST_LOCK_NOBODY;
}

/* Who wants all of it has it only from when on nobody shares it, and then nobody joins. */
bool tb_host_lock_join(const struct tb_host_lock *lock)
{
    uint32_t sharers = atomic_load(&lock->words->sharers);
    while (sharers > 0)
        if (atomic_compare_exchange_weak(&lock->words->sharers, &sharers, sharers + 1))
            return true;
    return false;
}

uint32_t tb_host_lock_pass(const struct tb_host_lock *lock, uint32_t ticket)
{
    atomic_store(&lock->waiting[ticket & lock->mask], entry_of(ticket, PASSES));
    if (atomic_load(&lock->words->serving) == ticket && passes(lock, ticket))
        return go_on(lock);
    return TB_HOST_LOCK_NOBODY;
}

bool tb_host_lock_return(const struct tb_host_lock *lock, uint32_t ticket, uint32_t who)
{
    uint64_t entry = entry_of(ticket, PASSES);
    return atomic_compare_exchange_strong(&lock->waiting[ticket & lock->mask], &entry, entry_of(ticket, who + 1));
}

uint32_t tb_host_lock_leave(const struct tb_host_lock *lock, bool exclusive)
{
    if (exclusive)
        return go_on(lock);
    if (atomic_fetch_sub(&lock->words->sharers, 1) > 1)
        return TB_HOST_LOCK_NOBODY;
    return find_next(lock, atomic_load(&lock->words->serving));
}
