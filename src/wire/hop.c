/* The hop header: framing on a byte stream. */
#include "wire/wire.h"
#include "wire/order.h"

void tb_wire_put_hop(void *to, const struct tb_hop *hop)
{
    uint8_t *at = to;
    at[offsetof(struct tb_hop, version)] = hop->version;
    at[offsetof(struct tb_hop, type)] = hop->type;
    tb_order_put16(at + offsetof(struct tb_hop, flags), hop->flags);
    tb_order_put32(at + offsetof(struct tb_hop, length), hop->length);
    tb_order_put32(at + offsetof(struct tb_hop, sequence), hop->sequence);
    tb_order_put32(at + offsetof(struct tb_hop, credit), hop->credit);
    tb_order_put32(at + offsetof(struct tb_hop, check), hop->check);
    tb_order_put32(at + offsetof(struct tb_hop, reserved), hop->reserved);
}

/* What is behind the hop header first, since it is a number of words then. `reserved` is 0, or the frame is refused. */
static uint32_t heads_check(const uint8_t *frame, size_t length)
{
    uint32_t crc = tb_crc32c(0, frame + sizeof(struct tb_hop), length - sizeof(struct tb_hop));
    return tb_crc32c(crc, frame, offsetof(struct tb_hop, check));
}

void tb_wire_seal_heads(void *frame, size_t length)
{
    uint8_t *at = frame;
    tb_order_put32(at + offsetof(struct tb_hop, check), heads_check(at, length));
}

bool tb_wire_heads_intact(const void *frame, size_t length)
{
    const uint8_t *at = frame;
    return tb_order_get32(at + offsetof(struct tb_hop, check)) == heads_check(at, length);
}

/* The lengths that a frame of a type may have behind the header. */
static bool hop_length_fits(uint8_t type, uint32_t length)
{
    switch (type) {
    case TB_HOP_MESSAGE:
        return length >= sizeof(struct tb_message) && length - sizeof(struct tb_message) <= TB_FRAME_PAYLOAD_LIMIT;
    case TB_HOP_ENVELOPE:
        return length >= sizeof(struct tb_envelope) && length - sizeof(struct tb_envelope) <= TB_FRAME_PAYLOAD_LIMIT;
    case TB_HOP_CONTROL:
        return length >= sizeof(uint32_t) && length <= TB_CONTROL_LIMIT;
    default:
        return length == 0;
    }
}

int tb_wire_get_hop(const void *from, struct tb_hop *hop)
{
    const uint8_t *at = from;
    hop->version = at[offsetof(struct tb_hop, version)];
    hop->type = at[offsetof(struct tb_hop, type)];
    hop->flags = tb_order_get16(at + offsetof(struct tb_hop, flags));
    hop->length = tb_order_get32(at + offsetof(struct tb_hop, length));
    hop->sequence = tb_order_get32(at + offsetof(struct tb_hop, sequence));
    hop->credit = tb_order_get32(at + offsetof(struct tb_hop, credit));
    hop->check = tb_order_get32(at + offsetof(struct tb_hop, check));
    hop->reserved = tb_order_get32(at + offsetof(struct tb_hop, reserved));

    if (__builtin_expect(hop->version != TB_WIRE_VERSION, 0))
        return tb_error(TB_ERR_PROTOCOL,
                        "a frame of wire version %u arrived, this is version %u: use the same Tombolo on all hosts",
                        hop->version, TB_WIRE_VERSION);
    if (__builtin_expect(hop->type < TB_HOP_MESSAGE || hop->type > TB_HOP_PONG, 0))
        return tb_error(TB_ERR_PROTOCOL, "a frame of the unknown type %u arrived", hop->type);
    bool asks = hop->type >= TB_HOP_PING;
    uint32_t known = TB_HOP_CHECKED | (asks ? TB_HOP_SMALL : 0);
    if (__builtin_expect((hop->flags & ~known) != 0 || hop->reserved != 0, 0))
        return tb_error(TB_ERR_PROTOCOL, "a frame with unknown flags 0x%x arrived (reserved: 0x%x)", hop->flags,
                        hop->reserved);
    if (__builtin_expect(!hop_length_fits(hop->type, hop->length), 0))
        return tb_error(TB_ERR_PROTOCOL, "a frame of type %u with an impossible length of %u bytes arrived", hop->type,
                        hop->length);
    return TB_OK;
}
