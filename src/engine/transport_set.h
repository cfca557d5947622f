/* The transports of an engine: those that it may use, and those of them that are open. Part of the engine, touched with
 * it locked.
 *
 * What is open stands in the order of polling: first those that are looked at in every round, then the patient ones,
 * each in the order in which they were given. A transport may be opened by whatever a poll calls up; so loops go by
 * index, and one that is looked at twice in a round does no harm. */
#ifndef TB_ENGINE_TRANSPORT_SET_H
#define TB_ENGINE_TRANSPORT_SET_H

#include "engine/likely.h"
#include "transport/transport.h"

struct tb_open_transport {
    struct tb_transport *transport;
    const struct tb_transport_table *table; /* as it was given; the transport's own may be that of a decorator */
};

struct tb_transport_set {
    uint32_t open_count;
    uint32_t busy_count;          /* the first of `open`, polled in every round; one at least */
    uint32_t interval, countdown; /* of the others: rounds from poll to poll, and until the next one */
    struct tb_open_transport open[TB_TRANSPORTS_LIMIT];
    uint32_t count;
    const struct tb_transport_table *tables[TB_TRANSPORTS_LIMIT];
};

/* The first one that leads there, or that takes such connections with this process; NULL: none. */
const struct tb_transport_table *tb_transport_set_of_scope(const struct tb_transport_set *set, enum tb_scope scope);
const struct tb_transport_table *tb_transport_set_adopter(const struct tb_transport_set *set, struct tb_proc proc,
                                                          enum tb_stream stream);
/* Whether that is where one that is open leads; NULL: any of them. */
bool tb_transport_set_leads(const struct tb_transport_set *set, const struct tb_transport *transport,
                            enum tb_scope scope);
struct tb_transport *tb_transport_set_find(const struct tb_transport_set *set,
                                           const struct tb_transport_table *table); /* NULL: it is not open */
/* One of `tables` is open from now on. */
void tb_transport_set_add(struct tb_transport_set *set, const struct tb_transport_table *table,
                          struct tb_transport *transport);
/* All of them, the last one first. */
void tb_transport_set_close(struct tb_transport_set *set);

uint64_t tb_transport_set_deadline(const struct tb_transport_set *set); /* the next of all timers; TB_NEVER */
bool tb_transport_set_idle(const struct tb_transport_set *set);
/* So many rounds have passed for those that are patient; UINT32_MAX: they are polled in the next one. */
void tb_transport_set_skip(struct tb_transport_set *set, uint32_t rounds);

/* Polls those from one place in `open` up to another. */
int tb_transport_set_poll_range(struct tb_transport_set *set, uint32_t from, uint32_t to);

/* A round of progress, which counts for `rounds`. How many frames arrived or left. Most processes have one transport
 * open, which is shared memory; its latency is that of this function. */
static inline int tb_transport_set_poll(struct tb_transport_set *set, uint32_t rounds)
{
    int n = 0;
    struct tb_transport *first = set->open[0].transport;
    if (TB_LIKELY(first != NULL))
        n = first->table->poll(first);
    if (TB_LIKELY(set->open_count <= 1))
        return n;
    if (set->busy_count > 1)
        n += tb_transport_set_poll_range(set, 1, set->busy_count);
    if (set->busy_count == set->open_count)
        return n;
    if (set->countdown > rounds) {
        set->countdown -= rounds;
        return n;
    }
    set->countdown = set->interval;
    return n + tb_transport_set_poll_range(set, set->busy_count, set->open_count);
}

#endif
