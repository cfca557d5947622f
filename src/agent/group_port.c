#include "agent/group_port.h"

#include "agent/address.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define WORD_BYTES 16u /* payload of the short datagram */

static union tb_mcast_address to_socket(const struct tb_address *address)
{
    struct sockaddr_storage name;
    union tb_mcast_address to = {.in6 = {.sin6_family = 0}};
    memcpy(&to, &name, tb_address_socket(address, &name));
    return to;
}

/* ---- what comes -------------------------------------------------------------------------------------------------- */

static void take_datagram(void *context, const struct tb_mcast_arrival *arrival)
{
    const struct tb_group_port *port = context;
    const struct tb_datagram *head = &arrival->head;
    struct tb_group_word word = {.host = head->sender & ~TB_PROC_AGENT, .length = (uint32_t)arrival->length};
    struct tb_reader r;
    if (head->type != TB_DATAGRAM_PROBE || !(head->sender & TB_PROC_AGENT) || arrival->alone ||
        head->number > UINT32_MAX)
        return;
    word.test = (uint32_t)head->number;
    tb_reader_open(&r, arrival->payload, arrival->length);
    word.heard = tb_get_u64(&r);
    word.longest = tb_get_u64(&r);
    if (r.error == TB_OK)
        port->events.word(port->events.context, &word);
}

static void wait_for_deadline(struct tb_group_port *port)
{
    uint64_t now = tb_loop_now(port->loop), due = tb_mcast_group_deadline(port->group);
    if (due == TB_NEVER)
        tb_timer_clear(&port->timer);
    else
        tb_timer_set(port->loop, &port->timer, due > now ? due - now : 0);
}

static void poll_group(struct tb_group_port *port)
{
    tb_mcast_group_poll(port->group);
    wait_for_deadline(port);
    const struct tb_mcast_counters *counters = tb_mcast_group_counters(port->group);
    uint64_t strange = counters->foreign + counters->malformed;
    if (strange == port->strange)
        return;
    port->strange = strange;
    port->events.foreign(port->events.context);
}

static void group_ready(struct tb_watch *watch, uint32_t events)
{
    poll_group(TB_CONTAINER(watch, struct tb_group_port, watch));
}

static void timer_due(struct tb_timer *timer)
{
    struct tb_group_port *port = TB_CONTAINER(timer, struct tb_group_port, timer);
    if (port->group != NULL) {
        poll_group(port);
        return;
    }
    if (tb_mcast_membership_renew(&port->membership, port->others, port->other_count) != TB_OK)
        tb_log(TB_LOG_INFO, "agent", "%s", tb_error_story());
    tb_timer_set(port->loop, timer, TB_MCAST_RENEW_NS);
}

/* ---- what is called ---------------------------------------------------------------------------------------------- */

static void close_group(struct tb_group_port *port)
{
    if (port->group == NULL)
        return;
    tb_loop_unwatch(port->loop, &port->watch);
    tb_mcast_group_close(port->group);
    port->group = NULL;
    tb_timer_clear(&port->timer);
}

static void port_close(struct tb_group_port *port)
{
    close_group(port);
    tb_timer_clear(&port->timer);
    if (port->membership.socket >= 0)
        tb_mcast_membership_close(&port->membership);
    port->membership.socket = -1;
    free(port->others);
    port->others = NULL;
    port->other_count = 0;
}

static int open_group(struct tb_group_port *port, const struct tb_multicast_group *where, uint32_t job, uint32_t host)
{
    const struct tb_mcast_config config = {.group = to_socket(&where->address),
                                           .local = to_socket(&where->local),
                                           .interface = where->interface,
                                           .hops = (uint8_t)where->ttl,
                                           .join = true,
                                           .job = job,
                                           .self = TB_PROC_AGENT | host,
                                           .key = where->key,
                                           .receive_buffer = TB_MCAST_RECEIVE_BYTES,
                                           .clock = port->loop->clock,
                                           .upcalls = {.context = port, .datagram = take_datagram}};
    errno = 0;
    int rc = tb_mcast_group_open(&port->group, &config);
    if (rc != TB_OK)
        return rc == TB_ERR_SYSTEM && errno == EADDRINUSE ? TB_AGAIN : rc;
    rc = tb_loop_watch(port->loop, &port->watch, tb_mcast_group_descriptor(port->group), EPOLLIN, group_ready);
    if (rc != TB_OK)
        close_group(port);
    return rc;
}

static int port_open(struct tb_group_port *port, struct tb_multicast_group *where, uint32_t job, uint32_t host,
                     struct tb_multicast_fit *fit)
{
    close_group(port);
    int rc = tb_address_find_interface(&where->local, &where->interface);
    if (rc == TB_OK && where->address.family == 6)
        where->address.scope = where->interface;
    if (rc == TB_OK)
        rc = open_group(port, where, job, host);
    if (rc != TB_OK)
        return rc;
    port->where = *where;
    port->strange = 0;
    *fit = (struct tb_multicast_fit){tb_mcast_group_piece(port->group), tb_mcast_group_buffer(port->group)};
    wait_for_deadline(port);
    return TB_OK;
}

static void put_u64(uint8_t *to, uint64_t v)
{
    for (unsigned i = 0; i < 8; i++)
        to[i] = (uint8_t)(v >> 8 * i);
}

static int port_send(struct tb_group_port *port, const struct tb_group_word *word, uint32_t piece)
{
    uint8_t payload[TB_DATAGRAM_PAYLOAD_LIMIT] = {0};
    const uint32_t lengths[] = {WORD_BYTES, piece};
    struct tb_mcast_datagram datagrams[2];
    put_u64(payload, word->heard);
    put_u64(payload + 8, word->longest);
    for (unsigned i = 0; i < 2; i++)
        datagrams[i] = (struct tb_mcast_datagram){.head = {.number = word->test,
                                                           .length = lengths[i],
                                                           .piece = (uint16_t)lengths[i],
                                                           .type = TB_DATAGRAM_PROBE,
                                                           .representation = tb_wire_representation()},
                                                  .payload = payload,
                                                  .length = lengths[i]};
    int rc = tb_mcast_group_send(port->group, NULL, datagrams, 2);
    wait_for_deadline(port);
    return rc < 0 ? rc : TB_OK;
}

/* The new membership before the old one goes, so that nobody hears that the host leaves. */
static int port_hold(struct tb_group_port *port, const struct tb_address *others, uint32_t count)
{
    const union tb_mcast_address group = to_socket(&port->where.address);
    if (port->membership.socket < 0) {
        int rc = tb_mcast_membership_open(&port->membership, &group, port->where.interface);
        if (rc != TB_OK)
            return rc;
        port->others = calloc(count + 1u, sizeof *port->others);
        port->other_count = port->others != NULL ? count : 0;
        for (uint32_t i = 0; i < port->other_count; i++)
            port->others[i] = to_socket(&others[i]);
    }
    close_group(port);
    tb_timer_set(port->loop, &port->timer, TB_MCAST_RENEW_NS);
    return TB_OK;
}

const struct tb_group_port_calls tb_group_port_calls = {
    .open = port_open, .send = port_send, .hold = port_hold, .close = port_close};

void tb_group_port_init(struct tb_group_port *port, struct tb_loop *loop, const struct tb_group_port_events *events)
{
    *port = (struct tb_group_port){.loop = loop, .events = *events, .membership.socket = -1, .watch.descriptor = -1};
    tb_timer_init(&port->timer, timer_due);
}
