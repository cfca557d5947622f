/* A receiver's part of a cast. */
#include "engine/cast.h"

#include "engine/engine_state.h"

#include <stdlib.h>

/* A receive that takes part. */
struct tb_cast_receive {
    struct tb_multicast_heard heard;
    struct tb_request *request;
    struct tb_part part;
    struct tb_multicast_operation operation;
    uint32_t processes[];
};

static struct tb_cast_receive *receive_of(const struct tb_request *r)
{
    struct tb_cast_receive *c;
    TB_LIST_EACH (c, &r->engine->multicast->heard, struct tb_cast_receive, heard.in_port)
        if (c->request == r)
            return c;
    return NULL;
}

/* It takes part no longer. */
static void receive_end(struct tb_cast_receive *c)
{
    c->request->engine->multicast->waiting--;
    c->request->phase = TB_PHASE_COMING;
    tb_list_remove(&c->heard.in_port);
    free(c);
}

static void cast_forget(struct tb_request *r)
{
    struct tb_cast_receive *c = receive_of(r);
    struct tb_multicast_port *port = r->engine->multicast;
    tb_multicast_stop(port->protocol, &c->operation);
    receive_end(c);
    tb_multicast_port_settle(port);
}

static void cast_quit(struct tb_peer *p, uint64_t id)
{
    struct tb_request *r = tb_request_find(p->engine, id, TB_REQUEST_RECEIVE);
    if (r != NULL && r->peer == p && r->phase == TB_PHASE_HEARING)
        cast_forget(r);
}

const struct tb_cast_receiver tb_cast_receiver = {cast_quit, cast_forget};

/* The sender is asked to send the data as after any CLEAR. */
static void refuse(const struct tb_request *r)
{
    tb_peer_reply(r->peer, TB_KIND_CLEAR, r->remote_id, r->message_id, r->total);
}

static void operation_done(struct tb_multicast_operation *o, int error)
{
    struct tb_cast_receive *c = o->owner;
    struct tb_request *r = c->request;
    receive_end(c);
    if (error == TB_OK)
        tb_request_finish(r, TB_OK);
    else if (r->peer->error == TB_OK) /* otherwise it is about to be ended */
        refuse(r);
}

static uint32_t listed(const void *list, uint32_t index)
{
    const uint32_t *processes = list;
    return processes[index];
}

static void payload_copy(void *owner, uint64_t offset, void *bytes, size_t length, bool gather)
{
    const struct tb_cast_receive *c = owner;
    if (gather)
        tb_part_gather(&c->part, offset, length, bytes);
    else
        tb_part_scatter(&c->part, offset, length, bytes);
}

/* The port, where the context of the sender is joined; NULL: there is none, or no memory. */
static struct tb_multicast_port *port_join(struct tb_peer *p)
{
    struct tb_multicast_port *port = tb_multicast_port_of(p->engine);
    const struct tb_engine_config *config = &p->engine->config;
    const struct tb_multicast_members all = {.count = config->processes, .self = config->transport.self.index};
    if (port == NULL)
        return NULL;
    tb_multicast_port_listen(port);
    if (!p->casts)
        p->casts = tb_multicast_join(port->protocol, tb_cast_context(p->proc.index), &all) == TB_OK;
    return p->casts ? port : NULL;
}

/* Of a list of members that makes sense: this process's place in it; else 0. */
static uint32_t place_in(const struct tb_peer *p, const uint32_t *processes, uint32_t count)
{
    uint32_t place = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (processes[i] >= p->engine->config.processes || (i == 0 && processes[i] != p->proc.index))
            return 0;
        place = processes[i] == p->engine->config.transport.self.index ? i : place;
    }
    return place;
}

static void take_part(struct tb_request *r, struct tb_cast_receive *c, uint64_t number, uint32_t place, uint32_t count)
{
    struct tb_multicast_port *port = port_join(r->peer);
    bool dense = r->buffer.type->dense;
    c->request = r;
    c->heard.context = tb_cast_context(r->peer->proc.index);
    c->heard.number = number;
    c->part = (struct tb_part){&r->buffer, r->from, r->total};
    c->operation = (struct tb_multicast_operation){
        .context = c->heard.context,
        .number = number,
        .length = r->total,
        .members = {count, place, listed, c->processes},
        .payload = {dense ? (char *)r->buffer.base + r->from : NULL, payload_copy, c},
        .done = operation_done,
        .owner = c,
    };
    if (port == NULL || tb_multicast_start(port->protocol, &c->operation) != TB_PENDING) {
        free(c);
        refuse(r);
        return;
    }
    r->phase = TB_PHASE_HEARING;
    port->waiting++;
    tb_list_append(&port->heard, &c->heard.in_port);
    tb_multicast_port_settle(port);
}

/* One that makes no sense is dropped, as DATA that fits no message is. */
void tb_cast_invited(struct tb_peer *p, const struct tb_message *m, const void *payload, size_t length)
{
    uint64_t names[2];
    if (length < sizeof names || (length - sizeof names) % sizeof(uint32_t) != 0)
        return;
    size_t bytes = length - sizeof names;
    uint32_t count = (uint32_t)(bytes / sizeof(uint32_t));
    memcpy(names, payload, sizeof names);
    struct tb_request *r = tb_request_find(p->engine, m->match, TB_REQUEST_RECEIVE);
    if (r == NULL || r->peer != p || r->phase != TB_PHASE_COMING || r->moved > 0 || r->total != r->length) {
        tb_peer_reply(p, TB_KIND_CLEAR, names[0], 0, 0); /* it has ended: the others are not to wait for it */
        return;
    }
    struct tb_cast_receive *c = malloc(sizeof *c + bytes);
    if (c != NULL)
        memcpy(c->processes, (const char *)payload + sizeof names, bytes);
    uint32_t place = c != NULL ? place_in(p, c->processes, count) : 0;
    if (place == 0) {
        free(c);
        refuse(r);
        return;
    }
    take_part(r, c, names[1], place, count);
}
