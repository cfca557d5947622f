#include "wire/wire.h"
#include "wire/order.h"

/* Where the fields are. */
enum {
    AT_CHECK = 0,
    AT_CONTEXT = 8,
    AT_NUMBER = 16,
    AT_LENGTH = 24,
    AT_JOB = 32,
    AT_SENDER = 36,
    AT_FRAGMENT = 40,
    AT_PIECE = 44,
    AT_VERSION = 46,
    AT_TYPE = 47,
    AT_REPRESENTATION = 48,
    AT_FLAGS = 49,
    AT_EXTRA = 50,
    AT_END = TB_DATAGRAM_BYTES
};

_Static_assert(AT_EXTRA + 2 == AT_END, "the header of a datagram");

/* Of everything behind the check; without a key, nothing. */
static uint64_t check_of(const uint8_t *header, const struct tb_siphash_key *key, const void *payload, size_t length)
{
    struct tb_siphash s;
    if (key == NULL)
        return 0;
    tb_siphash_begin(&s, key);
    tb_siphash_add(&s, header + AT_CONTEXT, AT_END - AT_CONTEXT);
    tb_siphash_add(&s, payload, length);
    return tb_siphash_end(&s);
}

void tb_datagram_put(void *to, const struct tb_datagram *d, const struct tb_siphash_key *key, const void *payload,
                     size_t length)
{
    uint8_t *at = to;
    tb_order_put64(at + AT_CONTEXT, d->context);
    tb_order_put64(at + AT_NUMBER, d->number);
    tb_order_put64(at + AT_LENGTH, d->length);
    tb_order_put32(at + AT_JOB, d->job);
    tb_order_put32(at + AT_SENDER, d->sender);
    tb_order_put32(at + AT_FRAGMENT, d->fragment);
    tb_order_put16(at + AT_PIECE, d->piece);
    at[AT_VERSION] = TB_DATAGRAM_VERSION;
    at[AT_TYPE] = d->type;
    at[AT_REPRESENTATION] = d->representation;
    at[AT_FLAGS] = d->flags;
    tb_order_put16(at + AT_EXTRA, d->extra);
    tb_order_put64(at + AT_CHECK, check_of(at, key, payload, length));
}

static void read_fields(const uint8_t *at, struct tb_datagram *d)
{
    *d = (struct tb_datagram){.context = tb_order_get64(at + AT_CONTEXT),
                              .number = tb_order_get64(at + AT_NUMBER),
                              .length = tb_order_get64(at + AT_LENGTH),
                              .job = tb_order_get32(at + AT_JOB),
                              .sender = tb_order_get32(at + AT_SENDER),
                              .fragment = tb_order_get32(at + AT_FRAGMENT),
                              .piece = tb_order_get16(at + AT_PIECE),
                              .extra = tb_order_get16(at + AT_EXTRA),
                              .type = at[AT_TYPE],
                              .representation = at[AT_REPRESENTATION],
                              .flags = at[AT_FLAGS]};
}

/* Whoever has the key and makes such a thing is another Tombolo, or wrong. */
static int contradiction(const struct tb_datagram *d, size_t length)
{
    if (d->type < TB_DATAGRAM_DATA || d->type >= TB_DATAGRAM_TYPES)
        return tb_error(TB_ERR_PROTOCOL, "a datagram of process %u has the unknown type %u", d->sender, d->type);
    if ((d->flags & ~TB_DATAGRAM_FLAGS) != 0)
        return tb_error(TB_ERR_PROTOCOL, "a datagram of process %u has the unknown flags %#x", d->sender, d->flags);
    if (d->extra != 0 && d->type != TB_DATAGRAM_ASK)
        return tb_error(TB_ERR_PROTOCOL, "a datagram of process %u asks nothing for the %uth time", d->sender,
                        d->extra);
    if (d->type != TB_DATAGRAM_DATA)
        return TB_OK;
    if (d->piece == 0 || d->fragment >= tb_datagram_fragments(d->length, d->piece) ||
        length != tb_datagram_fragment_bytes(d->length, d->piece, d->fragment))
        return tb_error(TB_ERR_PROTOCOL,
                        "a datagram of process %u has %zu bytes for fragment %u of %llu bytes in pieces of %u",
                        d->sender, length, d->fragment, (unsigned long long)d->length, d->piece);
    return TB_OK;
}

int tb_datagram_get(const void *header, size_t header_bytes, const void *payload, size_t length,
                    const struct tb_siphash_key *key, struct tb_datagram *d)
{
    const uint8_t *at = header;
    if (header_bytes < TB_DATAGRAM_BYTES || length > TB_DATAGRAM_PAYLOAD_LIMIT)
        return tb_error(TB_ERR_PROTOCOL, "a datagram of %zu bytes is none of ours", header_bytes + length);
    if (at[AT_VERSION] != TB_DATAGRAM_VERSION)
        return tb_error(TB_ERR_PROTOCOL, "a datagram is of version %u and not %u", at[AT_VERSION], TB_DATAGRAM_VERSION);
    read_fields(at, d);
    if (tb_order_get64(at + AT_CHECK) != check_of(at, key, payload, length))
        return tb_error(TB_ERR_FORBIDDEN, "a datagram fails the check of its group");
    return contradiction(d, length);
}
