#include "engine/host_regions.h"

#include <time.h>

/* Looks of a reader. Whoever is found in the middle of a change has lost its core, mostly. */
#define LOOKS      200
#define LOOK_AGAIN 100000 /* ns */

static void change_begin(struct tb_host_regions *t)
{
    atomic_fetch_add_explicit(&t->changes, 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release); /* what follows is not seen before it */
}

static void change_end(struct tb_host_regions *t)
{
    atomic_fetch_add_explicit(&t->changes, 1, memory_order_release);
}

static void region_set(struct tb_host_regions *t, uint64_t i, uint64_t from, uint64_t to)
{
    atomic_store_explicit(&t->regions[i].from, from, memory_order_relaxed);
    atomic_store_explicit(&t->regions[i].to, to, memory_order_relaxed);
}

bool tb_host_regions_add(struct tb_host_regions *table, uint64_t from, uint64_t to)
{
    uint64_t count = atomic_load_explicit(&table->count, memory_order_relaxed);
    if (count == TB_HOST_REGIONS)
        return false;
    change_begin(table);
    region_set(table, count, from, to);
    atomic_store_explicit(&table->count, count + 1, memory_order_relaxed);
    change_end(table);
    return true;
}

void tb_host_regions_remove(struct tb_host_regions *table, uint64_t from)
{
    uint64_t count = atomic_load_explicit(&table->count, memory_order_relaxed), i = 0;
    while (i < count && atomic_load_explicit(&table->regions[i].from, memory_order_relaxed) != from)
        i++;
    if (i == count)
        return;
    change_begin(table);
    region_set(table, i, atomic_load_explicit(&table->regions[count - 1].from, memory_order_relaxed),
               atomic_load_explicit(&table->regions[count - 1].to, memory_order_relaxed));
    atomic_store_explicit(&table->count, count - 1, memory_order_relaxed);
    change_end(table);
}

/* How many bytes from there on are in one of them; *found: whether one is there at all. Others write it, so its count
 * is not believed. */
static uint64_t bytes_from(const struct tb_host_regions *t, uint64_t at, bool *found)
{
    uint64_t count = atomic_load_explicit(&t->count, memory_order_relaxed), most = 0;
    *found = false;
    for (uint64_t i = 0; i < count && i < TB_HOST_REGIONS; i++) {
        uint64_t from = atomic_load_explicit(&t->regions[i].from, memory_order_relaxed);
        uint64_t to = atomic_load_explicit(&t->regions[i].to, memory_order_relaxed);
        if (at < from || at > to)
            continue;
        *found = true;
        if (to - at > most)
            most = to - at;
    }
    return most;
}

/* What was attached in pieces that lie side by side is one. */
static bool find(const struct tb_host_regions *t, uint64_t at, uint64_t length)
{
    bool found;
    for (uint32_t steps = 0; steps <= TB_HOST_REGIONS; steps++) {
        uint64_t bytes = bytes_from(t, at, &found);
        if (length <= bytes)
            return found;
        if (bytes == 0)
            return false;
        at += bytes;
        length -= bytes;
    }
    return false;
}

/* False: it was changed meanwhile. */
static bool look(const struct tb_host_regions *table, uint64_t at, uint64_t length, bool *found)
{
    const struct timespec again = {.tv_nsec = LOOK_AGAIN};
    uint64_t before = atomic_load_explicit(&table->changes, memory_order_acquire);
    if (before % 2 != 0) {
        nanosleep(&again, NULL);
        return false;
    }
    *found = find(table, at, length);
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(&table->changes, memory_order_relaxed) == before;
}

bool tb_host_regions_have(const struct tb_host_regions *table, uint64_t at, uint64_t length)
{
    bool found = false;
    for (int looks = 0; looks < LOOKS; looks++)
        if (look(table, at, length, &found))
            return found;
    return false;
}
