#include "launch/delivery.h"

#include "launch/host_tunnel.h"

#include <stdlib.h>

#define PIECE_BYTES 65536u
/* Of one agent, until it says so; it does after each MiB of such pieces. */
#define UNHEARD_LIMIT (1u << 22)

int tb_delivery_open(struct tb_delivery *delivery, uint32_t host_count, const struct tb_delivery_events *events)
{
    *delivery = (struct tb_delivery){.events = *events};
    delivery->places = calloc(host_count, sizeof *delivery->places);
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
        tb_control_stream_unheard(&agent->control) >= UNHEARD_LIMIT)
        return false;
    if (place->part < delivery->part_count) {
        const struct tb_delivery_part *part = &delivery->parts[place->part];
        uint64_t left = part->length - place->at, length = left < PIECE_BYTES ? left : PIECE_BYTES;
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
