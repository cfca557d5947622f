#include "transport/endpoint_table.h"

#include <stdlib.h>

#define ROOM_FIRST 16u
#define ROOM_LIMIT (1u << 21)

static struct tb_endpoint **slot_of(const struct tb_endpoint_table *table, struct tb_proc proc)
{
    uint32_t mask = table->room - 1, at = (proc.index * 0x9e3779b1u ^ proc.job) & mask;
    while (table->slots[at] != NULL &&
           (table->slots[at]->proc.index != proc.index || table->slots[at]->proc.job != proc.job))
        at = (at + 1) & mask;
    return &table->slots[at];
}

static int grow(struct tb_endpoint_table *table)
{
    struct tb_endpoint_table old = *table;
    if (old.room >= ROOM_LIMIT)
        return tb_error(TB_ERR_LIMIT, "more than %u processes to talk to %s", ROOM_LIMIT / 2, table->how);
    uint32_t room = old.room == 0 ? ROOM_FIRST : 2 * old.room;
    struct tb_endpoint **slots = calloc(room, sizeof(struct tb_endpoint *));
    if (slots == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for a table of %u processes", room);
    table->slots = slots;
    table->room = room;
    for (uint32_t i = 0; i < old.room; i++)
        if (old.slots[i] != NULL)
            *slot_of(table, old.slots[i]->proc) = old.slots[i];
    free(old.slots);
    return TB_OK;
}

int tb_endpoint_table_open(struct tb_endpoint_table *table, const char *how)
{
    *table = (struct tb_endpoint_table){.how = how};
    return grow(table);
}

void tb_endpoint_table_close(struct tb_endpoint_table *table)
{
    for (uint32_t i = 0; i < table->room; i++)
        free(table->slots[i]);
    free(table->slots);
    *table = (struct tb_endpoint_table){.how = table->how};
}

struct tb_endpoint *tb_endpoint_table_find(struct tb_endpoint_table *table, struct tb_transport *transport,
                                           struct tb_proc proc, size_t bytes, bool *fresh)
{
    *fresh = false;
    if (2 * table->count >= table->room && grow(table) != TB_OK)
        return NULL;
    struct tb_endpoint **slot = slot_of(table, proc);
    if (*slot != NULL)
        return *slot;
    struct tb_endpoint *endpoint = calloc(1, bytes);
    if (endpoint == NULL) {
        tb_error(TB_ERR_MEMORY, "no memory for the way to rank %u", proc.index);
        return NULL;
    }
    *endpoint = (struct tb_endpoint){.transport = transport, .proc = proc};
    *slot = endpoint;
    table->count++;
    *fresh = true;
    return endpoint;
}

/* Those behind it may stand there because its place was taken. */
void tb_endpoint_table_remove(struct tb_endpoint_table *table, struct tb_endpoint *endpoint)
{
    struct tb_endpoint **slot = slot_of(table, endpoint->proc);
    uint32_t mask = table->room - 1, at = (uint32_t)(slot - table->slots);
    TB_ASSERT(*slot == endpoint);
    *slot = NULL;
    for (at = (at + 1) & mask; table->slots[at] != NULL; at = (at + 1) & mask) {
        struct tb_endpoint *next = table->slots[at];
        table->slots[at] = NULL;
        *slot_of(table, next->proc) = next;
    }
    table->count--;
    free(endpoint);
}

struct tb_endpoint *tb_endpoint_table_next(const struct tb_endpoint_table *table, uint32_t *at)
{
    while (*at < table->room) {
        struct tb_endpoint *endpoint = table->slots[(*at)++];
        if (endpoint != NULL)
            return endpoint;
    }
    return NULL;
}
