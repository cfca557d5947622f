#include "lab/emulator_hosts.h"

#include <string.h>

static uint64_t make_key(uint16_t segment, const uint8_t a[6])
{
    return (uint64_t)segment << 48 | (uint64_t)a[0] << 40 | (uint64_t)a[1] << 32 | (uint64_t)a[2] << 24 |
           (uint64_t)a[3] << 16 | (uint64_t)a[4] << 8 | a[5];
}

/* Where the key is, or would be put. The table is never full, so the search ends. */
static uint32_t slot_of(const struct tb_hosts *hosts, uint64_t key)
{
    uint32_t slot = (uint32_t)((key * 0x9e3779b97f4a7c15u) >> 49);
    while (hosts->entries[slot].key != 0 && hosts->entries[slot].key != key)
        slot = (slot + 1) % TB_HOSTS_SLOTS;
    return slot;
}

uint32_t tb_hosts_find(const struct tb_hosts *hosts, uint16_t segment, const uint8_t address[6])
{
    const struct tb_hosts_entry *entry = &hosts->entries[slot_of(hosts, make_key(segment, address))];
    return entry->key ? entry->port : TB_HOSTS_NONE;
}

void tb_hosts_learn(struct tb_hosts *hosts, uint16_t segment, const uint8_t address[6], uint32_t port, bool fixed)
{
    TB_ASSERT(segment > 0);
    uint64_t key = make_key(segment, address);
    struct tb_hosts_entry *entry = &hosts->entries[slot_of(hosts, key)];
    if (entry->key == 0) {
        if (hosts->count == TB_HOSTS_LIMIT)
            return;
        hosts->count++;
    } else if (entry->fixed && !fixed) {
        return;
    }
    *entry = (struct tb_hosts_entry){.key = key, .port = port, .fixed = fixed};
}

void tb_hosts_forget(struct tb_hosts *hosts, uint32_t port)
{
    /* Whoever stands behind a gap is put where it is found: one pass begins at an empty slot, so none is missed. */
    uint32_t begin = 0;
    while (hosts->entries[begin].key != 0)
        begin++;
    for (uint32_t i = 0; i < TB_HOSTS_SLOTS; i++) {
        struct tb_hosts_entry *entry = &hosts->entries[(begin + i) % TB_HOSTS_SLOTS], kept = *entry;
        if (kept.key == 0)
            continue;
        memset(entry, 0, sizeof *entry);
        if (kept.port == port)
            hosts->count--;
        else
            hosts->entries[slot_of(hosts, kept.key)] = kept;
    }
}
