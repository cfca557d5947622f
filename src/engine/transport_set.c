#include "engine/transport_set.h"

#include "link/link.h"

const struct tb_transport_table *tb_transport_set_of_scope(const struct tb_transport_set *set, enum tb_scope scope)
{
    for (uint32_t i = 0; i < set->count; i++)
        if (set->tables[i]->scope == scope)
            return set->tables[i];
    return NULL;
}

const struct tb_transport_table *tb_transport_set_adopter(const struct tb_transport_set *set, struct tb_proc proc)
{
    for (uint32_t i = 0; i < set->count; i++)
        if (set->tables[i]->adopts != NULL && set->tables[i]->adopts(proc))
            return set->tables[i];
    return NULL;
}

bool tb_transport_set_relays(const struct tb_transport_set *set, const struct tb_transport *transport)
{
    for (uint32_t i = 0; i < set->open_count; i++)
        if (set->open[i].transport == transport)
            return set->open[i].table->scope == TB_SCOPE_RELAYED;
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

/* Polling it takes a system call, for which messages of this host must not wait. */
static bool is_patient(const struct tb_transport_set *set, const struct tb_transport_table *table)
{
    bool host = false;
    for (uint32_t i = 0; i < set->open_count; i++)
        host = host || set->open[i].table->scope == TB_SCOPE_HOST;
    return host && table->patience > 0;
}

int tb_transport_set_open(struct tb_transport_set *set, const struct tb_transport_table *table,
                          const struct tb_transport_config *config, struct tb_transport **transport)
{
    int error = tb_link_open(table, config, transport);
    if (error != TB_OK)
        return error;
    bool patient = is_patient(set, table);
    uint32_t at = patient ? set->busy_count : 0, end = patient ? set->open_count : set->busy_count;
    while (at < end && rank_of(set, set->open[at].table) < rank_of(set, table))
        at++;
    for (uint32_t i = set->open_count; i > at; i--)
        set->open[i] = set->open[i - 1];
    set->open[at] = (struct tb_open_transport){.transport = *transport, .table = table};
    set->open_count++;
    set->busy_count += patient ? 0 : 1;
    if (patient && (set->interval == 0 || table->patience < set->interval))
        set->interval = table->patience;
    return TB_OK;
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
