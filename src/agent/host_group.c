#include "agent/host_group.h"

#include <stdio.h>
#include <string.h>

#define COMPLAINT_NS 1000000000u /* between two that the launcher is told */

static void timer_due(struct tb_timer *timer);
static void take_word(void *context, const struct tb_group_word *word);
static void take_foreign(void *context);

void tb_host_group_init(struct tb_host_group *g, struct tb_loop *loop, const struct tb_group_port_calls *calls,
                        const struct tb_host_group_events *events)
{
    *g = (struct tb_host_group){.loop = loop, .calls = calls, .events = *events};
    tb_timer_init(&g->timer, timer_due);
    tb_group_port_init(&g->port, loop,
                       &(struct tb_group_port_events){.context = g, .word = take_word, .foreign = take_foreign});
}

static void leave(struct tb_host_group *g)
{
    tb_timer_clear(&g->timer);
    if (g->open || g->held)
        g->calls->close(&g->port);
    g->open = g->held = false;
}

void tb_host_group_close(struct tb_host_group *g)
{
    leave(g);
    g->stopped = true;
    explicit_bzero(&g->where.key, sizeof g->where.key);
    explicit_bzero(&g->known.group.key, sizeof g->known.group.key);
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static void tell_state(const struct tb_host_group *g, enum tb_multicast_state state, const struct tb_multicast_fit *fit,
                       const char *why)
{
    static const struct tb_multicast_fit none;
    g->events.state(g->events.context, g->order.attempt, state, fit != NULL ? fit : &none, why);
}

/* It cannot be had; the launcher decides for all. */
static void fail(struct tb_host_group *g)
{
    char why[200];
    snprintf(why, sizeof why, "%s", tb_error_story());
    leave(g);
    tell_state(g, TB_MULTICAST_CLOSED, NULL, why);
}

static int open_port(struct tb_host_group *g, struct tb_multicast_fit *fit)
{
    int rc = g->calls->open(&g->port, &g->where, g->setup->job, g->setup->host, fit);
    g->open = rc == TB_OK;
    return rc;
}

static void open_group(struct tb_host_group *g)
{
    const struct tb_multicast_order *order = &g->order;
    struct tb_multicast_fit fit;
    g->where = (struct tb_multicast_group){.address = order->address, .local = order->local, .ttl = order->ttl};
    int rc =
        tb_group_key_derive(&g->where.key, &g->setup->key, order->place, order->address.bytes, order->address.port);
    if (rc == TB_OK)
        rc = open_port(g, &fit);
    if (rc == TB_AGAIN)
        tell_state(g, TB_MULTICAST_TAKEN, NULL, "");
    else if (rc != TB_OK)
        fail(g);
    else
        tell_state(g, TB_MULTICAST_OPEN, &fit, "");
}

static int take_order(struct tb_host_group *g, struct tb_reader *r)
{
    struct tb_multicast_order order;
    int rc = tb_multicast_order_get(r, &order);
    if (rc != TB_OK)
        return rc;
    leave(g);
    g->known.expected = true;
    g->order = order;
    g->taken = false;
    if (g->setup != NULL && order.attempt > 0)
        open_group(g);
    return TB_OK;
}

void tb_host_group_begin(struct tb_host_group *g, const struct tb_setup *setup, const struct tb_address_book *book)
{
    g->setup = setup;
    g->book = book;
    if (g->order.attempt == 0)
        return;
    tb_group_probe_open(&g->probe, book, g->order.place, setup->host);
    open_group(g);
}

/* ---- a test ------------------------------------------------------------------------------------------------------ */

static void act(struct tb_host_group *g, unsigned what)
{
    const struct tb_group_probe *probe = &g->probe;
    const struct tb_group_word word = {.test = probe->test, .heard = probe->heard, .longest = probe->longest};
    if (what & TB_GROUP_PROBE_REPORT)
        g->events.heard(g->events.context, probe->test, probe->heard, probe->longest);
    if ((what & TB_GROUP_PROBE_SEND) && g->calls->send(&g->port, &word, g->piece) != TB_OK)
        fail(g);
}

static void go_on(struct tb_host_group *g)
{
    uint64_t now = tb_loop_now(g->loop);
    act(g, tb_group_probe_act(&g->probe, now));
    uint64_t due = tb_group_probe_due(&g->probe);
    if (g->open && due != TB_NEVER)
        tb_timer_set(g->loop, &g->timer, due > now ? due - now : 0);
}

static void timer_due(struct tb_timer *timer)
{
    go_on(TB_CONTAINER(timer, struct tb_host_group, timer));
}

static void take_word(void *context, const struct tb_group_word *word)
{
    struct tb_host_group *g = context;
    act(g,
        tb_group_probe_hear(&g->probe, word->host, word->test, word->length == g->piece, word->heard, word->longest));
}

static void take_foreign(void *context)
{
    struct tb_host_group *g = context;
    if (g->taken)
        return;
    g->taken = true;
    tell_state(g, TB_MULTICAST_TAKEN, NULL, "");
}

static int take_test(struct tb_host_group *g, struct tb_reader *r)
{
    uint32_t attempt = tb_get_u32(r), test = tb_get_u32(r), piece = tb_get_u32(r);
    struct tb_multicast_fit fit;
    if (tb_reader_end(r) != TB_OK || test == 0 || piece <= TB_GROUP_PROBE_BYTES || piece > TB_DATAGRAM_PAYLOAD_LIMIT)
        return tb_error(TB_ERR_PROTOCOL, "what the launcher says of a test of multicast makes no sense");
    if (attempt != g->order.attempt)
        return TB_OK; /* of a group that is given up */
    if (!g->open && open_port(g, &fit) != TB_OK) {
        fail(g);
        return TB_OK;
    }
    g->piece = piece;
    g->taken = false;
    tb_group_probe_begin(&g->probe, test, tb_loop_now(g->loop));
    go_on(g);
    return TB_OK;
}

/* ---- verdicts ---------------------------------------------------------------------------------------------------- */

/* By which addresses the other hosts of the group send, as far as there is room. */
static uint32_t list_others(const struct tb_host_group *g, struct tb_address others[TB_GROUP_PORT_OTHERS])
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < g->book->host_count && count < TB_GROUP_PORT_OTHERS; i++) {
        const struct tb_host *host = &g->book->hosts[i];
        bool member = host->place == g->order.place && host->rank_count > 0 && i != g->setup->host;
        for (uint32_t k = 0; member && k < host->address_count; k++)
            if (tb_address_same_subnet(&host->addresses[k], &g->order.local)) {
                others[count++] = host->addresses[k];
                break;
            }
    }
    return count;
}

static void keep_membership(struct tb_host_group *g)
{
    struct tb_address others[TB_GROUP_PORT_OTHERS];
    if (!g->open)
        return;
    if (g->calls->hold(&g->port, others, list_others(g, others)) == TB_OK)
        g->open = false;
    else /* it goes on as it is: it is a member, and hears more than it needs */
        tb_log(TB_LOG_INFO, "agent", "%s", tb_error_story());
    g->held = true;
}

static int take_verdict(struct tb_host_group *g, struct tb_reader *r)
{
    size_t length = 0;
    uint32_t version = tb_get_u32(r);
    const uint8_t *bits = tb_get_bytes(r, &length);
    uint32_t piece = tb_get_u32(r), buffer = tb_get_u32(r);
    if (tb_reader_end(r) != TB_OK || piece > TB_DATAGRAM_PAYLOAD_LIMIT)
        return tb_error(TB_ERR_PROTOCOL, "what the launcher says of where multicast works makes no sense");
    int rc = tb_multicast_learn(&g->known, version, bits, length);
    if (rc != TB_OK)
        return rc;
    tb_timer_clear(&g->timer);
    g->known.grouped = piece > 0 && (g->open || g->held);
    g->known.group = g->where;
    g->known.group.piece = piece;
    g->known.group.buffer = buffer;
    if (g->known.grouped || g->held)
        keep_membership(g);
    else
        leave(g);
    g->events.verdict(g->events.context);
    return TB_OK;
}

void tb_host_group_complain(struct tb_host_group *g, uint32_t version, enum tb_multicast_trouble what)
{
    uint64_t now = tb_loop_now(g->loop);
    if (g->stopped || !g->known.grouped || version != g->known.version ||
        (g->complained > 0 && now - g->complained < COMPLAINT_NS))
        return;
    g->complained = now;
    g->events.trouble(g->events.context, version, what);
}

int tb_host_group_take(struct tb_host_group *g, enum tb_control kind, struct tb_reader *r)
{
    if (g->stopped)
        return TB_OK;
    if (kind == TB_CONTROL_GROUP)
        return take_order(g, r);
    if (g->setup == NULL)
        return tb_error(TB_ERR_PROTOCOL, "a test of multicast has come before the address book");
    return kind == TB_CONTROL_GROUP_TEST ? take_test(g, r) : take_verdict(g, r);
}
