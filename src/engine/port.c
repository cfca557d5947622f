#include "engine/port.h"

#include "engine/engine_state.h"

#define PUMP_FRAMES 32 /* frames of one transfer before others get their turn */

void tb_port_open(struct tb_port *port)
{
    tb_list_init(&port->transfers);
    tb_list_init(&port->on_engine);
}

static enum tb_stream transfer_stream(const struct tb_request *r)
{
    return r->total <= r->peer->short_limit ? TB_STREAM_SHORT : TB_STREAM_BULK;
}

/* Pushes frames of one transfer. TB_OK: no more to do for it now; TB_AGAIN: its peer takes nothing more. */
static int transfer_push(struct tb_request *r)
{
    struct tb_peer *p = r->peer;
    uint64_t most = tb_frame_bytes_for(p->frame, p->endpoint->transport->max_payload, r->total);
    enum tb_stream stream = transfer_stream(r);
    bool ahead = r->phase == TB_PHASE_AHEAD;
    for (int frames = 0; frames < PUMP_FRAMES && r->moved < r->total; frames++) {
        uint64_t n = r->total - r->moved < most ? r->total - r->moved : most;
        struct tb_envelope envelope;
        struct tb_spans spans;
        envelope.message = (struct tb_message){.kind = TB_KIND_DATA,
                                               .context = r->context,
                                               .match = r->remote_id,
                                               .offset = r->moved,
                                               .length = ahead ? r->total : n,
                                               .representation = p->engine->representation,
                                               .flags = ahead ? TB_MESSAGE_AHEAD : 0};
        tb_buffer_spans(&r->buffer, r->from + r->moved, n, &spans);
        int rc = tb_peer_transmit(p, &envelope, &spans, stream, r->message_id);
        if (rc == TB_AGAIN)
            return TB_AGAIN;
        if (rc < 0) {
            tb_peer_break(p, rc);
            return TB_AGAIN;
        }
        r->moved += n;
        r->pending += rc == TB_PENDING ? 1 : 0;
    }
    if (r->moved == r->total)
        tb_send_accepted(r);
    return TB_OK;
}

/* Transfers go in order; one whose peer takes nothing now lets those to other peers go on. */
static int port_pump(struct tb_port *port)
{
    int moved = 0;
    struct tb_request *r;
    struct tb_peer *full = NULL;
    TB_LIST_EACH (r, &port->transfers, struct tb_request, queue) {
        struct tb_peer *p = r->peer;
        if (p == full || p->error != TB_OK || (p->held[transfer_stream(r)] && !p->local))
            continue;
        uint64_t before = r->moved;
        struct tb_request *pushed = r;
        if (transfer_push(pushed) == TB_AGAIN) {
            moved += pushed->moved > before ? 1 : 0;
            full = p;
        } else {
            moved++;
        }
    }
    if (tb_list_empty(&port->transfers))
        tb_list_remove(&port->on_engine);
    return moved;
}

int tb_ports_pump(struct tb_ports *ports)
{
    int moved = 0;
    for (struct tb_list *at = ports->busy.next, *next; at != &ports->busy; at = next) {
        next = at->next;
        moved += port_pump(TB_CONTAINER(at, struct tb_port, on_engine));
    }
    return moved;
}

void tb_port_start(struct tb_ports *ports, struct tb_port *port, struct tb_request *r)
{
    bool first = tb_list_empty(&port->transfers);
    tb_list_append(&port->transfers, &r->queue);
    if (tb_list_empty(&port->on_engine))
        tb_list_append(&ports->busy, &port->on_engine);
    if (first)
        port_pump(port);
}
