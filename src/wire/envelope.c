/* The envelope: its two halves to and from the wire, and whether a message makes sense. */
#include "wire/wire.h"
#include "wire/order.h"

#include <float.h>
#include <limits.h>
#include <stdio.h>
#include <wchar.h>

#if LDBL_MANT_DIG == 113
#define OWN_LDOUBLE TB_REP_LDOUBLE_QUAD
#elif LDBL_MANT_DIG == 64
#define OWN_LDOUBLE TB_REP_LDOUBLE_X87
#elif LDBL_MANT_DIG == 106
#define OWN_LDOUBLE TB_REP_LDOUBLE_PAIR
#else
#define OWN_LDOUBLE TB_REP_LDOUBLE_PLAIN
#endif

#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define OWN_ORDER TB_REP_BIG_ENDIAN
#else
#define OWN_ORDER 0
#endif

uint8_t tb_wire_representation(void)
{
    return (uint8_t)(OWN_ORDER | OWN_LDOUBLE | (sizeof(long) == 4 ? TB_REP_LONG4 : 0) |
                     (CHAR_MIN == 0 ? TB_REP_CHAR_UNSIGNED : 0));
}

uint32_t tb_wire_machine(void)
{
    return tb_wire_representation() | (uint32_t)(sizeof(void *) & 15) << 8 | (uint32_t)(sizeof(wchar_t) & 15) << 12 |
           (uint32_t)(sizeof(bool) & 15) << 16 | (uint32_t)(_Alignof(long long) & 15) << 20;
}

const char *tb_wire_long_double(uint8_t representation)
{
    switch (representation & TB_REP_LDOUBLE_MASK) {
    case TB_REP_LDOUBLE_QUAD:
        return "IEEE binary128";
    case TB_REP_LDOUBLE_X87:
        return "x87";
    case TB_REP_LDOUBLE_PAIR:
        return "two doubles";
    default:
        return "the same as double";
    }
}

void tb_wire_machine_print(uint32_t machine, char text[static TB_MACHINE_BYTES])
{
    snprintf(text, TB_MACHINE_BYTES, "%s-endian, long of %d bytes, long double %s, pointers of %u bytes",
             machine & TB_REP_BIG_ENDIAN ? "big" : "little", machine & TB_REP_LONG4 ? 4 : 8,
             tb_wire_long_double((uint8_t)machine), machine >> 8 & 15);
}

void tb_wire_put_message(void *to, const struct tb_message *message)
{
    uint8_t *at = to;
    tb_order_put64(at + offsetof(struct tb_message, context), message->context);
    tb_order_put64(at + offsetof(struct tb_message, match), message->match);
    tb_order_put64(at + offsetof(struct tb_message, length), message->length);
    tb_order_put64(at + offsetof(struct tb_message, offset), message->offset);
    tb_order_put32(at + offsetof(struct tb_message, source_rank), message->source_rank);
    at[offsetof(struct tb_message, kind)] = message->kind;
    at[offsetof(struct tb_message, representation)] = message->representation;
    tb_order_put16(at + offsetof(struct tb_message, flags), message->flags);
}

/* `routed`: whether the routing half came along; the flag must say the same. */
static int get_message(const uint8_t *at, struct tb_message *message, unsigned routed)
{
    message->context = tb_order_get64(at + offsetof(struct tb_message, context));
    message->match = tb_order_get64(at + offsetof(struct tb_message, match));
    message->length = tb_order_get64(at + offsetof(struct tb_message, length));
    message->offset = tb_order_get64(at + offsetof(struct tb_message, offset));
    message->source_rank = tb_order_get32(at + offsetof(struct tb_message, source_rank));
    message->kind = at[offsetof(struct tb_message, kind)];
    message->representation = at[offsetof(struct tb_message, representation)];
    message->flags = tb_order_get16(at + offsetof(struct tb_message, flags));

    if (__builtin_expect(!tb_kind_known(message->kind), 0))
        return tb_error(TB_ERR_PROTOCOL, "a message of the unknown kind %u arrived", message->kind);
    if (__builtin_expect((message->flags & ~TB_MESSAGE_ALL) != 0, 0))
        return tb_error(TB_ERR_PROTOCOL, "a message with unknown flags 0x%x arrived", message->flags);
    if (__builtin_expect((message->flags & TB_MESSAGE_ROUTED) != routed, 0))
        return tb_error(TB_ERR_PROTOCOL, "a message %s its routing half arrived, its flags 0x%x say otherwise",
                        routed ? "with" : "without", message->flags);
    return TB_OK;
}

int tb_wire_get_message(const void *from, struct tb_message *message)
{
    return get_message(from, message, 0);
}

void tb_wire_put_envelope(void *to, const struct tb_envelope *envelope)
{
    uint8_t *at = to;
    const struct tb_routing *routing = &envelope->routing;
    tb_order_put32(at + offsetof(struct tb_routing, source.job), routing->source.job);
    tb_order_put32(at + offsetof(struct tb_routing, source.index), routing->source.index);
    tb_order_put32(at + offsetof(struct tb_routing, destination.job), routing->destination.job);
    tb_order_put32(at + offsetof(struct tb_routing, destination.index), routing->destination.index);
    tb_order_put32(at + offsetof(struct tb_routing, sequence), routing->sequence);
    tb_order_put32(at + offsetof(struct tb_routing, acknowledge), routing->acknowledge);
    tb_wire_put_message(at + offsetof(struct tb_envelope, message), &envelope->message);
}

int tb_wire_get_envelope(const void *from, struct tb_envelope *envelope)
{
    const uint8_t *at = from;
    struct tb_routing *routing = &envelope->routing;
    routing->source.job = tb_order_get32(at + offsetof(struct tb_routing, source.job));
    routing->source.index = tb_order_get32(at + offsetof(struct tb_routing, source.index));
    routing->destination.job = tb_order_get32(at + offsetof(struct tb_routing, destination.job));
    routing->destination.index = tb_order_get32(at + offsetof(struct tb_routing, destination.index));
    routing->sequence = tb_order_get32(at + offsetof(struct tb_routing, sequence));
    routing->acknowledge = tb_order_get32(at + offsetof(struct tb_routing, acknowledge));
    return get_message(at + offsetof(struct tb_envelope, message), &envelope->message, TB_MESSAGE_ROUTED);
}

/* A piece, and that of a message that nobody has asked for, lies in its message. */
static bool data_fits(const struct tb_message *m, size_t payload)
{
    if ((m->flags & TB_MESSAGE_REMOTE) != 0)
        return false;
    if ((m->flags & TB_MESSAGE_AHEAD) == 0)
        return m->length == payload && m->offset <= UINT64_MAX - m->length;
    return m->length >= TB_AHEAD_LEAST && payload > 0 && m->offset <= m->length && payload <= m->length - m->offset;
}

/* What is behind the header of those that begin with a list of runs is looked at by whoever takes them. */
static bool access_fits(const struct tb_message *m, size_t payload)
{
    if ((m->flags & (TB_MESSAGE_REMOTE | TB_MESSAGE_AHEAD)) != 0)
        return false;
    switch (m->kind) {
    case TB_KIND_PUT: /* to anywhere: what is outside of the window is refused, and breaks nothing */
    case TB_KIND_GOT:
        return m->length == payload && payload > 0;
    case TB_KIND_PUT_RUNS:
    case TB_KIND_GET:
    case TB_KIND_ACCUMULATE:
    case TB_KIND_COMPARE:
        return payload >= TB_ACCESS_HEAD_BYTES + TB_ACCESS_RUN_BYTES && m->length > 0 &&
               m->length <= TB_FRAME_PAYLOAD_LIMIT && m->offset == 0;
    case TB_KIND_LOCKED:
        return payload == 0 && m->offset == 0 && m->length <= 1;
    case TB_KIND_LOCK:
        return payload == 0 &&
               (m->length == TB_LOCK_SHARED || m->length == TB_LOCK_EXCLUSIVE || m->length == TB_LOCK_JOIN);
    case TB_KIND_ASK:
    case TB_KIND_ANSWER:
        return payload == 0;
    case TB_KIND_REFUSED:
        return payload == 0 && m->length >= TB_REFUSAL_RANGE && m->length <= TB_REFUSAL_LOCK;
    default:
        return payload == 0 && m->offset == 0;
    }
}

int tb_message_check(const struct tb_message *message, size_t payload)
{
    bool ahead = (message->flags & TB_MESSAGE_AHEAD) != 0;
    bool remote = (message->flags & TB_MESSAGE_REMOTE) != 0;
    bool fits = false;
    switch (message->kind) {
    case TB_KIND_EAGER:
        fits = tb_message_is_whole(message, payload);
        break;
    case TB_KIND_REQUEST:
        fits = payload == (remote ? sizeof(uint64_t) : 0) && (!ahead || (!remote && message->length >= TB_AHEAD_LEAST));
        break;
    case TB_KIND_DATA:
        fits = data_fits(message, payload);
        break;
    case TB_KIND_FAILED:
        fits = !remote && !ahead && payload == 0 && message->length <= UINT8_MAX && message->offset <= 1;
        break;
    case TB_KIND_CANCELLED:
        fits = !remote && !ahead && payload == 0 && message->length <= 1;
        break;
    case TB_KIND_CLEAR:
    case TB_KIND_DONE:
    case TB_KIND_CANCEL:
    case TB_KIND_CREDIT:
    case TB_KIND_LINK:
        fits = !remote && !ahead && payload == 0;
        break;
    default:
        if (message->kind >= TB_KIND_PUT_RUNS && message->kind < TB_KIND_ACCESS_END)
            fits = access_fits(message, payload);
        else
            fits = message->kind >= TB_KIND_MULTICAST && message->kind < TB_KIND_MULTICAST_END && !remote && !ahead &&
                   message->length == payload && message->offset == 0;
        break;
    }
    if (__builtin_expect(fits, 1))
        return TB_OK;
    return tb_error(TB_ERR_PROTOCOL,
                    "a message of kind %u arrived whose header (length %llu, offset %llu, flags 0x%x) does not fit its "
                    "%zu bytes of payload",
                    message->kind, (unsigned long long)message->length, (unsigned long long)message->offset,
                    message->flags, payload);
}
