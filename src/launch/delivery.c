#include "launch/delivery.h"

#include "launch/host_tunnel.h"

#include <stdlib.h>

#define UNDER_WAY_BYTES  (1u << 26) /* to all together; gateways have to hold it if those behind them are slow */
#define UNDER_WAY_PIECES 64u        /* to one; it tells after each sixteen frames that they have come */
#define PIECE_LEAST      4096u
#define PIECE_MOST       65536u

int tb_delivery_open(struct tb_delivery *delivery, uint32_t host_count, const struct tb_delivery_events *events)
{
    uint32_t share = UNDER_WAY_BYTES / UNDER_WAY_PIECES / (host_count > 0 ? host_count : 1);
    *delivery = (struct tb_delivery){.events = *events};
    delivery->piece = share < PIECE_LEAST ? PIECE_LEAST : share > PIECE_MOST ? PIECE_MOST : share;
    delivery->places = calloc(host_count + 1u, sizeof *delivery->places);
    return delivery->places != NULL ? TB_OK : tb_error(TB_ERR_MEMORY, "no memory for what all hosts are told");
}

void tb_delivery_close(struct tb_delivery *delivery)
{
    free(delivery->places);
    *delivery = (struct tb_delivery){.places = NULL};
}

void tb_delivery_add(struct tb_delivery *delivery, const struct tb_delivery_part *part)
{
    TB_ASSERT(delivery->part_count < TB_DELIVERY_PARTS);
    if (part->length > 0)
        delivery->parts[delivery->part_count++] = *part;
}

bool tb_delivery_has_ended(const struct tb_delivery *delivery, uint32_t host)
{
    return delivery->places[host].part > delivery->part_count;
}

static int queue_piece(const struct tb_delivery_part *part, uint64_t at, uint64_t length,
                       struct tb_control_stream *stream)
{
    struct tb_writer *w = tb_control_stream_begin(stream, part->kind);
    tb_put_u32(w, part->version);
    tb_put_u64(w, part->length);
    tb_put_u64(w, at);
    tb_put_bytes(w, (const char *)part->bytes + at, (size_t)length);
    return tb_control_stream_end(stream);
}

bool tb_delivery_go_on(struct tb_delivery *delivery, struct tb_host_agent *agent)
{
    struct tb_delivery_place *place = &delivery->places[agent->host];
    int rc = TB_OK;
    if (tb_delivery_has_ended(delivery, agent->host) || tb_host_tunnel_is_full(&agent->control) ||
        tb_control_stream_unheard(&agent->control) >= (size_t)UNDER_WAY_PIECES * delivery->piece)
        return false;
    if (place->part < delivery->part_count) {
        const struct tb_delivery_part *part = &delivery->parts[place->part];
        uint64_t left = part->length - place->at, length = left < delivery->piece ? left : delivery->piece;
        rc = queue_piece(part, place->at, length, &agent->control);
        place->at = length < left ? place->at + length : 0;
        place->part += length == left;
    }
    if (rc != TB_OK || place->part == delivery->part_count) {
        place->part = delivery->part_count + 1;
        delivery->events.ended(delivery->events.context, agent, rc); /* which may close the delivery */
    }
    return true;
}
