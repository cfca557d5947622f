#include "agent/pair_table.h"

#include <stdlib.h>

#define ROOM_FIRST 64u

static struct tb_pair **slot_of(const struct tb_pair_table *table, uint32_t source, uint32_t destination)
{
    uint32_t h = source * 0x9e3779b1u + destination;
    h ^= h >> 16;
    h *= 0x85ebca6bu;
    uint32_t mask = table->room - 1, at = (h ^ h >> 13) & mask;
    while (table->slots[at] != NULL &&
           (table->slots[at]->source != source || table->slots[at]->destination != destination))
        at = (at + 1) & mask;
    return &table->slots[at];
}

static bool grow(struct tb_pair_table *table)
{
    struct tb_pair_table bigger = {.count = table->count, .room = table->room == 0 ? ROOM_FIRST : 2 * table->room};
    bigger.slots = calloc(bigger.room, sizeof(struct tb_pair *));
    if (bigger.slots == NULL)
        return false;
    for (uint32_t i = 0; i < table->room; i++)
        if (table->slots[i] != NULL)
            *slot_of(&bigger, table->slots[i]->source, table->slots[i]->destination) = table->slots[i];
    free(table->slots);
    *table = bigger;
    return true;
}

struct tb_pair *tb_pair_table_find(const struct tb_pair_table *table, uint32_t source, uint32_t destination)
{
    return table->room > 0 ? *slot_of(table, source, destination) : NULL;
}

struct tb_pair *tb_pair_table_make(struct tb_pair_table *table, uint32_t source, uint32_t destination, size_t bytes)
{
    struct tb_pair *pair = tb_pair_table_find(table, source, destination);
    if (pair != NULL)
        return pair;
    if (table->count >= TB_PAIR_TABLE_LIMIT) {
        tb_error(TB_ERR_LIMIT, "more than %u pairs of ranks have spoken through one agent", TB_PAIR_TABLE_LIMIT);
        return NULL;
    }
    bool room = 2 * (table->count + 1) <= table->room || grow(table);
    pair = room ? calloc(1, bytes) : NULL;
    if (pair == NULL) {
        tb_error(TB_ERR_MEMORY, "no memory for what rank %u sends to rank %u", source, destination);
        return NULL;
    }
    *pair = (struct tb_pair){source, destination};
    *slot_of(table, source, destination) = pair;
    table->count++;
    return pair;
}

struct tb_pair *tb_pair_table_next(const struct tb_pair_table *table, uint32_t *at)
{
    while (*at < table->room)
        if (table->slots[(*at)++] != NULL)
            return table->slots[*at - 1];
    return NULL;
}

void tb_pair_table_close(struct tb_pair_table *table)
{
    for (uint32_t i = 0; i < table->room; i++)
        free(table->slots[i]);
    free(table->slots);
    *table = (struct tb_pair_table){0};
}
