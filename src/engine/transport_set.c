#include "engine/transport_set.h"

#include <string.h>

const struct tb_transport_table *tb_transport_set_of_scope(const struct tb_transport_set *set, enum tb_scope scope)
{
    for (uint32_t i = 0; i < set->count; i++)
        if (set->tables[i]->scope == scope)
            return set->tables[i];
    return NULL;
}

const struct tb_transport_table *tb_transport_set_adopter(const struct tb_transport_set *set, struct tb_proc proc,
                                                          enum tb_stream stream)
{
    for (uint32_t i = 0; i < set->count; i++)
        if (set->tables[i]->adopts != NULL && set->tables[i]->adopts(proc, stream))
            return set->tables[i];
    return NULL;
}

bool tb_transport_set_leads(const struct tb_transport_set *set, const struct tb_transport *transport,
                            enum tb_scope scope)
{
    for (uint32_t i = 0; i < set->open_count; i++)
        if ((transport == NULL || set->open[i].transport == transport) && set->open[i].table->scope == scope)
            return true;
    return false;
}

struct tb_transport *tb_transport_set_find(const struct tb_transport_set *set, const struct tb_transport_table *table)
{
    for (uint32_t i = 0; i < set->open_count; i++)
        if (set->open[i].table == table)
            return set->open[i].transport;
    return NULL;
}

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

static uint32_t rank_of(const struct tb_transport_set *set, const struct tb_transport_table *table)
{
    uint32_t rank = 0;
    while (set->tables[rank] != table)
        rank++;
    return rank;
}

/* Polling some takes a system call, for which messages of this host must not wait. Those are patient, as soon as one
 * for this host is open, which may be after them. */
static void arrange(struct tb_transport_set *set)
{
    struct tb_open_transport old[TB_TRANSPORTS_LIMIT];
    bool host = tb_transport_set_leads(set, NULL, TB_SCOPE_HOST) || tb_transport_set_leads(set, NULL, TB_SCOPE_NEAR);
    uint32_t at = 0;
    memcpy(old, set->open, sizeof old);
    set->busy_count = set->interval = 0;
    for (int patient = 0; patient <= 1; patient++)
        for (uint32_t i = 0; i < set->open_count; i++) {
            uint32_t patience = host ? old[i].table->patience : 0;
            if ((patience > 0) != (patient == 1))
                continue;
            set->open[at++] = old[i];
            set->busy_count += patient == 0;
            if (patient == 1 && (set->interval == 0 || patience < set->interval))
                set->interval = patience;
        }
}

void tb_transport_set_add(struct tb_transport_set *set, const struct tb_transport_table *table,
                          struct tb_transport *transport)
{
    /* In the order in which they were given, and then the patient ones last. */
    uint32_t at = set->open_count++;
    for (; at > 0 && rank_of(set, set->open[at - 1].table) > rank_of(set, table); at--)
        set->open[at] = set->open[at - 1];
    set->open[at] = (struct tb_open_transport){.transport = transport, .table = table};
    arrange(set);
}

static void set_remove(struct tb_transport_set *set, const struct tb_transport_table *table)
{
    uint32_t at = 0;
    while (set->open[at].table != table)
        at++;
    set->busy_count -= at < set->busy_count ? 1 : 0;
    set->open_count--;
    for (; at < set->open_count; at++)
        set->open[at] = set->open[at + 1];
    set->open[at] = (struct tb_open_transport){.transport = NULL};
}

/* While one is closed the agent may still connect it, or others. */
void tb_transport_set_close(struct tb_transport_set *set)
{
    while (set->open_count > 0) {
        struct tb_open_transport last = set->open[set->open_count - 1];
        last.transport->table->close(last.transport);
        set_remove(set, last.table);
    }
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

uint64_t tb_transport_set_deadline(const struct tb_transport_set *set)
{
    uint64_t first = TB_NEVER;
    for (uint32_t i = 0; i < set->open_count; i++) {
        uint64_t next = set->open[i].transport->table->deadline(set->open[i].transport);
        first = next < first ? next : first;
    }
    return first;
}

bool tb_transport_set_idle(const struct tb_transport_set *set)
{
    for (uint32_t i = 0; i < set->open_count; i++)
        if (!set->open[i].transport->table->idle(set->open[i].transport))
            return false;
    return true;
}

void tb_transport_set_skip(struct tb_transport_set *set, uint32_t rounds)
{
    set->countdown -= set->countdown < rounds ? set->countdown : rounds;
}

int tb_transport_set_poll_range(struct tb_transport_set *set, uint32_t from, uint32_t to)
{
    int n = 0;
    for (uint32_t i = from; i < to; i++)
        n += set->open[i].transport->table->poll(set->open[i].transport);
    return n;
}
