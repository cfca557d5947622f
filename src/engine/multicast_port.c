#include "engine/multicast_port.h"

#include "engine/engine_state.h"
#include "engine/standby.h"

#include <stdlib.h>
#include <string.h>

#define PATIENCE 32u                  /* rounds of progress without a look, while nobody here waits for datagrams */
#define FLUSH_NS UINT64_C(1000000000) /* for which a process that leaves waits for what it is to pass on */
#define PIECE    1024u                /* payload of a fragment while there is no group that says more */

/* ---- datagrams --------------------------------------------------------------------------------------------------- */

_Static_assert(TB_MCAST_ADDRESS_PACKED == TB_MULTICAST_ADDRESS_BYTES, "the protocol has addresses as they travel");

static struct tb_multicast_address packed(const union tb_mcast_address *address)
{
    struct tb_multicast_address to;
    to.length = tb_mcast_address_pack(address, to.bytes);
    return to;
}

/* Nothing leaves here, or nothing for the group that does not work: who misses it asks over a connection. */
static bool port_is_mute(const struct tb_multicast_port *port, const struct tb_multicast_out *out)
{
    return port->group == NULL || (out->to == NULL && !port->works);
}

/* Others have told it: false, it is none to which this group's socket sends. */
static bool address_use(const struct tb_multicast_port *port, const struct tb_multicast_address *one,
                        union tb_mcast_address *to)
{
    if (!tb_mcast_address_unpack(to, one->bytes, one->length, port->config.interface) ||
        to->any.sa_family != port->config.group.any.sa_family)
        return false;
    return (to->any.sa_family == AF_INET6 ? to->in6.sin6_port : to->in4.sin_port) != 0;
}

static uint32_t port_send(void *owner, const struct tb_multicast_out *out, uint32_t count)
{
    struct tb_multicast_port *port = owner;
    struct tb_mcast_datagram row[TB_MULTICAST_BATCH];
    uint32_t sent = 0;
    while (sent < count) {
        uint32_t n = 0;
        for (; sent + n < count && out[sent + n].to == out[sent].to && n < TB_MULTICAST_BATCH; n++)
            row[n] = (struct tb_mcast_datagram){out[sent + n].head, out[sent + n].payload, out[sent + n].length};
        if (port_is_mute(port, &out[sent])) {
            port->unsent += n;
            sent += n;
            continue;
        }
        const struct tb_multicast_address *one = out[sent].to;
        union tb_mcast_address to;
        bool usable = one == NULL || address_use(port, one, &to);
        int taken = usable ? tb_mcast_group_send(port->group, one != NULL ? &to : NULL, row, n) : -1;
        if (taken < 0) { /* as if they were lost on the way */
            port->unsent += n;
            sent += n;
            continue;
        }
        sent += (uint32_t)taken;
        if ((uint32_t)taken < n)
            break;
    }
    return sent;
}

static bool is_foreign(const struct tb_multicast_port *port, const struct tb_datagram *head)
{
    const struct tb_multicast_heard *h;
    bool passes = head->type == TB_DATAGRAM_DATA || head->type == TB_DATAGRAM_POLL;
    if (!passes || head->context != tb_cast_context((uint32_t)(head->context >> 32)))
        return false;
    TB_LIST_EACH (h, &port->heard, const struct tb_multicast_heard, in_port)
        if (h->context == head->context && h->number == head->number)
            return false;
    return true;
}

static void group_datagram(void *context, const struct tb_mcast_arrival *arrival)
{
    struct tb_multicast_port *port = context;
    if (is_foreign(port, &arrival->head))
        return;
    const struct tb_multicast_address from = packed(arrival->from);
    tb_multicast_feed(port->protocol, &arrival->head, arrival->payload, arrival->length, &from);
}

static bool group_expect(void *context, struct tb_mcast_room *room)
{
    const struct tb_multicast_port *port = context;
    struct tb_multicast_row row;
    if (!tb_multicast_expect(port->protocol, &row))
        return false;
    *room = (struct tb_mcast_room){.context = row.context,
                                   .number = row.number,
                                   .length = row.length,
                                   .sender = row.sender,
                                   .fragment = row.fragment,
                                   .count = row.count,
                                   .piece = row.piece,
                                   .at = row.at};
    return true;
}

static void group_writable(void *context)
{
    struct tb_multicast_port *port = context;
    tb_multicast_writable(port->protocol);
}

/* ---- control messages -------------------------------------------------------------------------------------------- */

static int port_control(void *owner, uint32_t process, enum tb_multicast_control kind, const void *head,
                        size_t head_length, const void *bytes, size_t length)
{
    struct tb_multicast_port *port = owner;
    struct tb_peer *p = tb_peer_of(port->engine, process);
    if (p == NULL)
        return TB_AGAIN;
    if (p->error != TB_OK)
        return TB_ERR_PEER;
    if (p->endpoint == NULL) {
        int error = tb_peer_reach(p);
        if (error != TB_OK) {
            tb_peer_break(p, error);
            return TB_ERR_PEER;
        }
    }
    if (p->held[TB_STREAM_SHORT] && !p->local)
        return TB_AGAIN;
    TB_ASSERT(head_length + length <= TB_MULTICAST_CONTROL_BYTES &&
              head_length + length <= p->endpoint->transport->max_payload);
    memcpy(port->frame, head, head_length);
    if (length > 0)
        memcpy(port->frame + head_length, bytes, length);
    struct tb_envelope envelope = {.message = {.kind = (uint8_t)kind,
                                               .representation = port->engine->representation,
                                               .length = head_length + length}};
    struct tb_spans spans = tb_spans_of(port->frame, head_length + length);
    int rc = tb_peer_transmit(p, &envelope, &spans, TB_STREAM_SHORT, 0);
    if (rc < 0) {
        tb_peer_break(p, rc);
        return TB_ERR_PEER;
    }
    return rc;
}

void tb_multicast_port_hear(struct tb_peer *p, const struct tb_message *m, const void *payload, size_t length)
{
    struct tb_multicast_port *port = tb_multicast_port_of(p->engine);
    if (port == NULL)
        return; /* no memory: whoever asks will ask again */
    tb_multicast_hear(port->protocol, p->proc.index, (enum tb_multicast_control)m->kind, payload, length);
    tb_multicast_port_settle(port);
}

static bool port_is_gone(void *owner, uint64_t context)
{
    const struct tb_multicast_port *port = owner;
    return tb_freed_contexts_contains(&port->engine->freed_contexts, context);
}

int tb_multicast_port_mourn(const struct tb_multicast_port *port, uint32_t process, uint32_t rank)
{
    const struct tb_peers *peers = &port->engine->peers;
    const struct tb_peer *p = process < peers->count ? peers->by_index[process] : NULL;
    char host[TB_PEER_HOST_BYTES] = "";
    return tb_error(p != NULL ? tb_peer_error(p) : TB_ERR_PEER, "multicast with rank %u (process %u%s) failed: %s",
                    rank, process, p != NULL ? tb_peer_host(p, host) : host,
                    p != NULL && p->story != NULL ? p->story : "it is lost");
}

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

/* Adds what has come to a group. */
static void count_group(struct tb_mcast_counters *sum, struct tb_mcast_group *group)
{
    const struct tb_mcast_counters *c = tb_mcast_group_counters(group);
    sum->received += c->received;
    sum->forged += c->forged;
    sum->foreign += c->foreign;
    sum->malformed += c->malformed;
    sum->own += c->own;
}

static struct tb_mcast_counters counted_by(const struct tb_multicast_port *port)
{
    struct tb_mcast_counters sum = port->before;
    if (port->group != NULL)
        count_group(&sum, port->group);
    return sum;
}

/* The descriptor of the group that was open before must not become that of the new one (driver.h). */
static void group_open(struct tb_multicast_port *port)
{
    struct tb_mcast_group *before = port->group;
    if (tb_mcast_group_open(&port->group, &port->config) != TB_OK) {
        port->group = NULL;
        tb_log(TB_LOG_INFO, "engine", "multicast: %s; what others send comes over connections", tb_error_story());
        tb_multicast_move(port->protocol, NULL);
    } else {
        const struct tb_multicast_address own = packed(tb_mcast_group_own(port->group));
        tb_multicast_move(port->protocol, &own);
    }
    if (before != NULL) {
        count_group(&port->before, before);
        port->overflowed += tb_mcast_group_overflowed(before);
        tb_mcast_group_close(before);
    }
    tb_engine_stir(port->engine);
}

void tb_multicast_port_listen(struct tb_multicast_port *port)
{
    if (port->listens)
        return;
    port->listens = true;
    if (port->works)
        group_open(port);
}

/* What is said of the group, beside which the rest stays as it is. */
static void group_adopt(struct tb_mcast_config *config, const struct tb_mcast_config *given)
{
    config->group = given->group;
    config->local = given->local;
    config->interface = given->interface;
    config->hops = given->hops;
    config->key = given->key;
}

static bool group_is(const struct tb_mcast_config *config, const struct tb_mcast_config *given)
{
    return tb_mcast_address_same(&config->group, &given->group) && /* the port is in the same place in both families */
           config->group.in4.sin_port == given->group.in4.sin_port &&
           tb_mcast_address_same(&config->local, &given->local) &&
           memcmp(config->key.bytes, given->key.bytes, sizeof config->key.bytes) == 0 &&
           config->interface == given->interface && config->hops == given->hops;
}

/* Datagrams that every socket of the group holds; 0: not known. */
static uint32_t group_holds(const struct tb_engine_group *given)
{
    uint32_t holds = tb_mcast_holds(given->buffer, given->piece);
    return given->buffer > 0 && holds == 0 ? 1 : holds;
}

static int port_open(struct tb_multicast_port *port, struct tb_engine *e, const struct tb_engine_group *given)
{
    uint64_t seed = e->config.transport.self.index;
    port->engine = e;
    port->frame = malloc(TB_MULTICAST_CONTROL_BYTES);
    if (port->frame == NULL)
        return TB_ERR_MEMORY;
    tb_list_init(&port->ended);
    tb_list_init(&port->drives);
    tb_list_init(&port->casts);
    tb_list_init(&port->heard);
    (void)tb_random_secret(&seed, sizeof seed);
    tb_random_seed(&port->random, seed);
    port->works = given->works;
    group_adopt(&port->config, &given->config);
    port->config.job = e->config.transport.self.job;
    port->config.self = e->config.transport.self.index;
    port->config.join = false; /* the agent of the host is a member, for all of its ranks */
    port->config.clock = e->config.transport.clock;
    port->config.receive_buffer = TB_MCAST_RECEIVE_BYTES;
    port->config.faults = tb_param.mcast_fault;
    port->config.upcalls = (struct tb_mcast_upcalls){port, group_expect, group_datagram, group_writable};
    struct tb_multicast_config config = {
        .clock = e->config.transport.clock,
        .random = &port->random,
        .calls = {port, port_send, port_control, port_is_gone},
        .limits = tb_multicast_defaults(),
        .job = e->config.transport.self.job,
        .self = e->config.transport.self.index,
        .representation = e->representation,
        .piece = given->works ? given->piece : PIECE,
        .holds = given->works ? group_holds(given) : 0,
        .byte_time = given->byte_time,
    };
    config.limits.delay = (uint64_t)tb_param.mcast_delay;
    return tb_multicast_open(&config, &port->protocol);
}

void tb_multicast_port_count(const struct tb_multicast_port *port, struct tb_counters *counters)
{
    const struct tb_mcast_counters g = counted_by(port);
    struct tb_multicast_counters c;
    tb_multicast_count(port->protocol, &c);
    uint64_t begins = c.waits + c.early_begins;
    counters->multicast_sent = c.sent - port->unsent;
    counters->multicast_used = c.used;
    counters->multicast_early = c.early;
    counters->multicast_late = c.late;
    counters->multicast_repaired = c.mended;
    counters->multicast_overflowed =
        port->overflowed + (port->group != NULL ? tb_mcast_group_overflowed(port->group) : 0);
    counters->multicast_repairs_one = c.repaired_one;
    counters->multicast_repairs_all = c.repaired_all;
    counters->multicast_rejected = c.rejected + g.forged + g.foreign + g.malformed;
    counters->multicast_control = c.repaired_bytes;
    counters->multicast_skew = begins > 0 ? (c.waited + c.early_by) / begins : 0;
}

static void port_log(const struct tb_multicast_port *port)
{
    struct tb_counters c = {.eager = 0};
    tb_multicast_port_count(port, &c);
    tb_log(TB_LOG_DEBUG, "engine",
           "multicast: datagrams: %llu sent, %llu used, %llu early, %llu late, %llu repaired, %llu rejected; "
           "%llu bytes sent otherwise; skew %llu us",
           (unsigned long long)c.multicast_sent, (unsigned long long)c.multicast_used,
           (unsigned long long)c.multicast_early, (unsigned long long)c.multicast_late,
           (unsigned long long)c.multicast_repaired, (unsigned long long)c.multicast_rejected,
           (unsigned long long)c.multicast_control, (unsigned long long)c.multicast_skew / 1000);
}

static void port_free(struct tb_multicast_port *port)
{
    if (port->protocol != NULL) {
        port_log(port);
        tb_multicast_close(port->protocol);
    }
    if (port->group != NULL)
        tb_mcast_group_close(port->group);
    free(port->frame);
    free(port);
}

struct tb_multicast_port *tb_multicast_port_of(struct tb_engine *e)
{
    struct tb_engine_group given;
    if (e->multicast != NULL)
        return e->multicast;
    if (e->config.multicast == NULL || !e->config.multicast(e->config.context, &given))
        return NULL;
    struct tb_multicast_port *port = calloc(1, sizeof *port);
    if (port == NULL || port_open(port, e, &given) != TB_OK) {
        if (port != NULL)
            port_free(port);
        return NULL;
    }
    e->multicast = port;
    tb_multicast_deafen(port->protocol, !port->works);
    for (uint32_t i = 0; i < e->peers.count; i++) /* who are gone since before there was a port */
        if (e->peers.by_index[i] != NULL && e->peers.by_index[i]->error != TB_OK)
            tb_multicast_lose(port->protocol, i);
    tb_list_append(&e->driving.active[TB_DRIVER_MULTICAST], &port->in_active);
    tb_engine_stir(e);
    return port;
}

void tb_multicast_port_close(struct tb_multicast_port *port)
{
    struct tb_engine *e = port->engine;
    tb_list_remove(&port->in_active);
    port_free(port);
    e->multicast = NULL;
}

/* ---- progress ---------------------------------------------------------------------------------------------------- */

void tb_multicast_port_settle(struct tb_multicast_port *port)
{
    const struct tb_standby *standby = &port->engine->standby;
    bool needed = tb_multicast_is_needed(port->protocol), watched = port->watched == standby->opened;
    if (!standby->open || needed == watched)
        return;
    if (!needed)
        tb_engine_unwatch(port->engine, TB_STANDBY_SELDOM);
    else if (tb_engine_watch(port->engine, TB_STANDBY_SELDOM) != TB_OK)
        return; /* without a thread others wait until the program calls something */
    port->watched = needed ? standby->opened : 0;
}

static bool group_drowns(struct tb_multicast_port *port, bool waited)
{
    const struct tb_mcast_counters g = counted_by(port);
    struct tb_multicast_counters c;
    tb_multicast_count(port->protocol, &c);
    port->vain += waited ? c.vain - port->vain_seen : 0; /* who waits for nothing has no use for any */
    port->vain_seen = c.vain;
    const struct tb_multicast_flow flow = {
        .right = g.received, .strange = g.forged + g.foreign + g.malformed + g.own, .repeated = port->vain};
    return tb_multicast_health_drowns(&port->health, &flow, tb_clock_now(port->engine->config.transport.clock));
}

static struct tb_multicast_seen seen_by(const struct tb_multicast_port *port)
{
    struct tb_multicast_counters c;
    tb_multicast_count(port->protocol, &c);
    return (struct tb_multicast_seen){c.messages, c.used, c.rested, counted_by(port).foreign};
}

/* What does not work, or is not heard here alone, need not be tested. */
static void look_for_trouble(struct tb_multicast_port *port)
{
    const struct tb_engine_config *config = &port->engine->config;
    struct tb_multicast_seen seen = seen_by(port);
    uint64_t now = tb_clock_now(config->transport.clock);
    if (!port->works || port->group == NULL) {
        tb_multicast_health_renew(&port->health, &seen, now);
        return;
    }
    enum tb_engine_trouble what = tb_multicast_health_look(&port->health, &seen, now);
    if (what == TB_TROUBLE_NONE)
        return;
    tb_log(TB_LOG_DEBUG, "engine", "multicast: %s",
           what == TB_TROUBLE_OTHERS ? "another job uses the group" : "most of it comes over connections");
    if (config->multicast_trouble != NULL)
        config->multicast_trouble(config->context, what);
}

void tb_multicast_port_regroup(struct tb_multicast_port *port)
{
    const struct tb_engine_config *config = &port->engine->config;
    struct tb_engine_group given = {.works = false};
    port->works = config->multicast(config->context, &given) && given.works;
    if (port->works) {
        bool same = group_is(&port->config, &given.config);
        group_adopt(&port->config, &given.config);
        tb_multicast_cut(port->protocol, given.piece, group_holds(&given));
        if (port->listens && (port->group == NULL || !same)) {
            group_open(port);
            tb_multicast_writable(port->protocol); /* the old one, which may have been full, would not tell any more */
        }
    }
    tb_multicast_deafen(port->protocol, !port->works);
    struct tb_multicast_seen seen = seen_by(port);
    tb_multicast_health_renew(&port->health, &seen, tb_clock_now(config->transport.clock));
    tb_engine_stir(port->engine);
}

int tb_multicast_port_advance(struct tb_multicast_port *port, bool thorough)
{
    int n = 0;
    bool often = !thorough && !port->engine->aside; /* a standby comes seldom enough by itself */
    if (often && port->waiting == 0 && ++port->rounds < PATIENCE)
        return 0;
    port->rounds = 0;
    if (port->group != NULL) {
        bool waited = port->waiting > 0;
        n = tb_mcast_group_poll(port->group);
        tb_multicast_deafen(port->protocol, !port->works || group_drowns(port, waited));
    }
    look_for_trouble(port);
    tb_multicast_control_writable(port->protocol);
    tb_multicast_advance(port->protocol);
    tb_multicast_port_settle(port);
    return n;
}

int tb_multicast_port_descriptor(const struct tb_multicast_port *port)
{
    return port->group != NULL ? tb_mcast_group_descriptor(port->group) : -1;
}

uint64_t tb_multicast_port_deadline(const struct tb_multicast_port *port)
{
    uint64_t group = port->group != NULL ? tb_mcast_group_deadline(port->group) : TB_NEVER;
    uint64_t protocol = tb_multicast_deadline(port->protocol);
    return group < protocol ? group : protocol;
}

bool tb_multicast_port_flush(struct tb_multicast_port *port)
{
    bool needed = tb_multicast_is_needed(port->protocol);
    if (needed && port->flushing == 0) {
        port->flushing = tb_clock_now(port->engine->config.transport.clock);
        tb_multicast_flush(port->protocol);
    }
    /* For others it only passes on what those below it say, who may be gone. */
    if (needed && !tb_multicast_keeps(port->protocol))
        needed = tb_clock_now(port->engine->config.transport.clock) - port->flushing < FLUSH_NS;
    if (!needed)
        port->flushing = 0;
    return !needed;
}

/* ---- what the owner of the engine says --------------------------------------------------------------------------- */

void tb_engine_listen(struct tb_engine *engine)
{
    tb_engine_lock(engine);
    struct tb_multicast_port *port = tb_multicast_port_of(engine);
    if (port != NULL)
        tb_multicast_port_listen(port);
    tb_engine_unlock(engine);
}

void tb_engine_regroup(struct tb_engine *engine)
{
    tb_engine_lock(engine);
    if (engine->multicast != NULL)
        tb_multicast_port_regroup(engine->multicast);
    tb_engine_unlock(engine);
}

void tb_engine_meet_last(struct tb_engine *engine)
{
    tb_engine_lock(engine);
    if (engine->multicast != NULL)
        tb_multicast_meet_last(engine->multicast->protocol);
    tb_engine_unlock(engine);
}

void tb_engine_part(struct tb_engine *engine, bool all)
{
    tb_engine_lock(engine);
    if (engine->multicast != NULL)
        tb_multicast_part(engine->multicast->protocol, all);
    tb_engine_unlock(engine);
}
