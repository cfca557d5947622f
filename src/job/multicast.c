#include "job/multicast.h"

#include "job/job.h"

#include <string.h>

int tb_multicast_check_parameters(void)
{
    const char *mcast = tb_param.mcast, *check = tb_param.mcast_check;
    if (mcast != NULL && strcmp(mcast, "auto") != 0 && strcmp(mcast, "off") != 0)
        return tb_error(TB_ERR_ARGUMENT, "mcast=%s: should be auto or off", mcast);
    if (check != NULL && strcmp(check, "siphash") != 0 && strcmp(check, "none") != 0)
        return tb_error(TB_ERR_ARGUMENT, "mcast_check=%s: should be siphash or none", check);
    return TB_OK;
}

/* ---- who tests --------------------------------------------------------------------------------------------------- */

static bool is_member(const struct tb_address_book *book, uint32_t host, uint32_t place)
{
    return book->hosts[host].place == place && book->hosts[host].rank_count > 0;
}

/* Where the n-th prober stands among all hosts. */
static uint32_t prober_at(const struct tb_multicast_probers *probers, uint32_t n)
{
    return (uint32_t)((uint64_t)n * probers->member_count / probers->count);
}

static void set_members(struct tb_multicast_probers *probers, uint32_t count)
{
    probers->member_count = count;
    probers->count = count < TB_MULTICAST_PROBERS ? count : TB_MULTICAST_PROBERS;
}

void tb_multicast_probers_find(struct tb_multicast_probers *probers, const struct tb_address_book *book, uint32_t place)
{
    uint32_t all = 0, at = 0, found = 0;
    for (uint32_t i = 0; i < book->host_count; i++)
        all += is_member(book, i, place);
    set_members(probers, all);
    for (uint32_t i = 0; i < book->host_count && found < probers->count; i++)
        if (is_member(book, i, place) && at++ == prober_at(probers, found))
            probers->hosts[found++] = i;
}

void tb_multicast_probers_spread(struct tb_multicast_probers *probers, const uint32_t *hosts, uint32_t count)
{
    set_members(probers, count);
    for (uint32_t i = 0; i < probers->count; i++)
        probers->hosts[i] = hosts[prober_at(probers, i)];
}

uint32_t tb_multicast_probers_index(const struct tb_multicast_probers *probers, uint32_t host)
{
    for (uint32_t i = 0; i < probers->count; i++)
        if (probers->hosts[i] == host)
            return i;
    return TB_MULTICAST_PROBERS;
}

/* ---- orders ------------------------------------------------------------------------------------------------------ */

static bool is_group(const struct tb_address *address)
{
    return address->port != 0 &&
           (address->family == 4 ? (address->bytes[0] & 0xf0) == 0xe0 : address->bytes[0] == 0xff);
}

void tb_multicast_order_put(struct tb_writer *w, const struct tb_multicast_order *order)
{
    tb_put_u32(w, order->attempt);
    if (order->attempt == 0)
        return;
    tb_put_u32(w, order->place);
    tb_address_put(w, &order->address);
    tb_address_put(w, &order->local);
    tb_put_u32(w, order->ttl);
}

int tb_multicast_order_get(struct tb_reader *r, struct tb_multicast_order *order)
{
    *order = (struct tb_multicast_order){.attempt = tb_get_u32(r)};
    if (order->attempt > 0) {
        order->place = tb_get_u32(r);
        tb_address_get(r, &order->address);
        tb_address_get(r, &order->local);
        order->ttl = tb_get_u32(r);
    }
    bool good = tb_reader_end(r) == TB_OK;
    if (good && order->attempt > 0)
        good = order->place < TB_PLACES_LIMIT && is_group(&order->address) &&
               order->local.family == order->address.family && order->ttl >= 1 && order->ttl <= 255;
    return good ? TB_OK : tb_error(TB_ERR_PROTOCOL, "what the launcher says of a multicast group makes no sense");
}

/* ---- verdicts ---------------------------------------------------------------------------------------------------- */

enum tb_multicast_verdict tb_multicast_first(const struct tb_multicast_facts *m, uint32_t place)
{
    if (m->expected && m->version == 0)
        return TB_MULTICAST_UNKNOWN;
    bool works = m->expected && place < TB_PLACES_LIMIT && tb_multicast_bit(m->first, place);
    return works ? TB_MULTICAST_WORKS : TB_MULTICAST_FAILS;
}

/* Of a byte of bits, the one of a place. */
static uint8_t bit_in(uint32_t byte, uint32_t place)
{
    return byte == place / 8 ? (uint8_t)(1u << place % 8) : 0;
}

uint64_t tb_multicast_uncast(const struct tb_multicast_facts *m, uint32_t place)
{
    uint64_t bits = 0;
    for (uint32_t i = 0; i < TB_MULTICAST_PLACES; i++) {
        unsigned failed = m->first[i] & ~(unsigned)m->newest[i], there = bit_in(i, place);
        bits |= (failed & there) != 0 ? TB_CONTEXT_UNCAST_THERE : 0;
        bits |= (failed & ~there) != 0 ? TB_CONTEXT_UNCAST_AWAY : 0;
    }
    return bits;
}

bool tb_multicast_allowed(const struct tb_multicast_facts *m, uint64_t context, uint32_t place,
                          uint8_t places[static TB_MULTICAST_PLACES])
{
    bool there = (context & TB_CONTEXT_UNCAST_THERE) == 0, away = (context & TB_CONTEXT_UNCAST_AWAY) == 0, any = false;
    for (uint32_t i = 0; i < TB_MULTICAST_PLACES; i++) {
        uint8_t own = bit_in(i, place);
        places[i] = m->first[i] & (uint8_t)((there ? own : 0) | (away ? ~own : 0));
        any = any || places[i] != 0;
    }
    return any;
}

static void set_bits(uint8_t to[TB_MULTICAST_PLACES], const uint8_t *bits, size_t length)
{
    memset(to, 0, TB_MULTICAST_PLACES);
    if (length > 0)
        memcpy(to, bits, length);
}

int tb_multicast_learn(struct tb_multicast_facts *m, uint32_t version, const uint8_t *bits, size_t length)
{
    if (version == 0 || length > TB_MULTICAST_PLACES)
        return tb_error(TB_ERR_PROTOCOL, "what is said of where multicast works makes no sense");
    if (version <= m->version)
        return TB_OK;
    if (m->version == 0)
        set_bits(m->first, bits, length);
    set_bits(m->newest, bits, length);
    m->expected = true;
    m->version = version;
    return TB_OK;
}

static void put_bits(struct tb_writer *w, const uint8_t bits[TB_MULTICAST_PLACES])
{
    size_t length = TB_MULTICAST_PLACES;
    while (length > 0 && bits[length - 1] == 0)
        length--;
    tb_put_bytes(w, bits, length);
}

void tb_multicast_put(struct tb_writer *w, const struct tb_multicast_facts *m)
{
    tb_put_u32(w, m->version);
    put_bits(w, m->first);
    put_bits(w, m->newest);
    tb_put_u8(w, m->grouped);
    if (!m->grouped)
        return;
    tb_address_put(w, &m->group.address);
    tb_address_put(w, &m->group.local);
    tb_put_u32(w, m->group.interface);
    tb_put_u32(w, m->group.ttl);
    tb_put_u32(w, m->group.piece);
    tb_put_u32(w, m->group.buffer);
    tb_put_bytes(w, m->group.key.bytes, sizeof m->group.key.bytes);
}

static void get_group(struct tb_reader *r, struct tb_multicast_group *group)
{
    size_t length = 0;
    tb_address_get(r, &group->address);
    tb_address_get(r, &group->local);
    group->interface = tb_get_u32(r);
    group->ttl = tb_get_u32(r);
    group->piece = tb_get_u32(r);
    group->buffer = tb_get_u32(r);
    const void *key = tb_get_bytes(r, &length);
    if (r->error == TB_OK && (length != sizeof group->key.bytes || !is_group(&group->address) || group->ttl > 255 ||
                              group->piece == 0 || group->piece > TB_DATAGRAM_PAYLOAD_LIMIT))
        r->error = TB_ERR_PROTOCOL;
    if (r->error == TB_OK)
        memcpy(group->key.bytes, key, length);
}

int tb_multicast_get(struct tb_reader *r, struct tb_multicast_facts *m)
{
    struct tb_multicast_group group = {.ttl = 0};
    uint32_t version = tb_get_u32(r);
    size_t first_length = 0, newest_length = 0;
    const uint8_t *first = tb_get_bytes(r, &first_length), *newest = tb_get_bytes(r, &newest_length);
    bool grouped = tb_get_u8(r) != 0;
    if (grouped)
        get_group(r, &group);
    if (tb_reader_end(r) != TB_OK || first_length > TB_MULTICAST_PLACES)
        return tb_error(TB_ERR_PROTOCOL, "what the agent says of multicast makes no sense");
    if (version <= m->version)
        return TB_OK;
    bool begins = m->version == 0;
    int rc = tb_multicast_learn(m, version, newest, newest_length);
    if (rc != TB_OK)
        return rc;
    if (begins) /* this rank may have missed those in between */
        set_bits(m->first, first, first_length);
    m->grouped = grouped;
    m->group = group;
    return TB_OK;
}
