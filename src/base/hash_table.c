#include "base/base.h"

#include <stdlib.h>

static void put(struct tb_hash_table *table, uint32_t hash, uint32_t value)
{
    uint32_t at = hash & (table->room - 1);
    while (table->entries[at].value != TB_HASH_NONE)
        at = (at + 1) & (table->room - 1);
    table->entries[at] = (struct tb_hash_entry){hash, value};
}

/* Twice the room. Copying begins at a gap, so that a run of entries that goes on at the beginning of the table keeps
 * its order. */
static int grow(struct tb_hash_table *table)
{
    struct tb_hash_table grown = {.room = table->room != 0 ? 2 * table->room : 64, .used = table->used};
    grown.entries = malloc(grown.room * sizeof *grown.entries);
    if (grown.entries == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for a table of %u entries", grown.room);
    memset(grown.entries, 0xff, grown.room * sizeof *grown.entries);
    uint32_t first = 0;
    while (first < table->room && table->entries[first].value != TB_HASH_NONE)
        first++;
    for (uint32_t i = 0; i < table->room; i++) {
        const struct tb_hash_entry *entry = &table->entries[(first + i) & (table->room - 1)];
        if (entry->value != TB_HASH_NONE)
            put(&grown, entry->hash, entry->value);
    }
    free(table->entries);
    *table = grown;
    return TB_OK;
}

int tb_hash_table_add(struct tb_hash_table *table, uint32_t hash, uint32_t value)
{
    int rc = 2 * (table->used + 1) > table->room ? grow(table) : TB_OK;
    if (rc != TB_OK)
        return rc;
    put(table, hash, value);
    table->used++;
    return TB_OK;
}

uint32_t tb_hash_table_next(const struct tb_hash_table *table, uint32_t hash, uint32_t *at)
{
    while (table->room != 0) {
        struct tb_hash_entry entry = table->entries[(*at)++ & (table->room - 1)];
        if (entry.value == TB_HASH_NONE || entry.hash == hash)
            return entry.value;
    }
    return TB_HASH_NONE;
}

void tb_hash_table_close(struct tb_hash_table *table)
{
    free(table->entries);
    *table = (struct tb_hash_table){0};
}
