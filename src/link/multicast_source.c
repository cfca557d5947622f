#include "link/multicast_source.h"
#include "link/multicast_operation.h"

struct tb_multicast_source *tb_multicast_source_find(const struct tb_multicast_context *c, uint64_t number)
{
    struct tb_multicast_source *s;
    TB_LIST_EACH (s, &c->sources, struct tb_multicast_source, of_context)
        if (s->number == number)
            return s;
    return NULL;
}

void tb_multicast_source_enter(struct tb_multicast_source *s, struct tb_multicast_context *in, uint64_t number,
                               uint64_t length, uint16_t piece)
{
    s->in = in;
    s->number = number;
    s->length = length;
    s->piece = piece;
    s->fragments = (uint32_t)tb_datagram_fragments(length, piece);
    s->sent = 0;
    s->turn = ++in->turns;
    tb_list_append(&in->sources, &s->of_context);
    in->begun = number >= in->begun ? number + 1 : in->begun;
}

void tb_multicast_source_datagram(struct tb_multicast *m, const struct tb_multicast_source *s, uint32_t fragment,
                                  uint8_t flags, const struct tb_multicast_address *to, uint32_t slot,
                                  struct tb_multicast_out *out)
{
    uint64_t offset = (uint64_t)fragment * s->piece;
    size_t length = tb_datagram_fragment_bytes(s->length, s->piece, fragment);
    *out = (struct tb_multicast_out){.head = {.context = s->in->id,
                                              .number = s->number,
                                              .length = s->length,
                                              .fragment = fragment,
                                              .piece = s->piece,
                                              .type = TB_DATAGRAM_DATA,
                                              .representation = m->config.representation,
                                              .flags = s->flags | flags},
                                     .length = length,
                                     .to = to};
    if (s->payload.base != NULL) {
        out->payload = (const char *)s->payload.base + offset;
        return;
    }
    char *place = m->scratch + (size_t)slot * m->scratch_piece;
    tb_multicast_payload_copy(&s->payload, offset, place, length, true);
    out->payload = place;
}

struct tb_multicast_name tb_multicast_source_name(const struct tb_multicast *m, const struct tb_multicast_source *s)
{
    return (struct tb_multicast_name){
        .context = s->in->id, .number = s->number, .length = s->length, .root = m->config.self, .piece = s->piece};
}
