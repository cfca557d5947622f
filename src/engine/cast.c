#include "engine/cast.h"

#include "engine/engine_state.h"

#include <stdlib.h>

#define MEMBERS_MOST 4096u              /* of an operation: their list is one frame */
#define PATIENCE     UINT64_C(50000000) /* ns that receivers which are ready wait for others */
/* ns that members wait for one that does nothing; longer than any of them waits for a repair */
#define STANDSTILL UINT64_C(250000000)

struct tb_cast {
    struct tb_engine *engine;
    struct tb_list in_port; /* while some of its receivers wait for others, in the operation or before */
    uint64_t deadline;      /* of that */
    struct tb_buffer buffer;
    struct tb_part part;
    struct tb_multicast_operation operation;
    bool under_way;      /* the operation */
    bool settling;       /* its end is being told to its members */
    uint32_t members;    /* of the operation, or of the one that is being prepared, this process among them; 0: none */
    uint32_t *processes; /* of these, this one first; NULL: nobody is in the group */
    uint32_t count;
    struct tb_request requests[];
};

static void cast_look(struct tb_cast *cast);

/* ---- waiting for receivers ----------------------------------------------------------------------------------------
 */

static void wait_until(struct tb_cast *cast, uint64_t deadline)
{
    cast->deadline = deadline;
    if (tb_list_empty(&cast->in_port))
        tb_list_append(&cast->engine->multicast->casts, &cast->in_port);
    tb_engine_stir(cast->engine);
}

static void wait_end(struct tb_cast *cast)
{
    cast->deadline = TB_NEVER;
    tb_list_remove(&cast->in_port);
}

/* ---- the operation ----------------------------------------------------------------------------------------------- */

static uint32_t count_in(const struct tb_cast *cast, enum tb_phase phase)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < cast->count; i++)
        n += cast->requests[i].phase == phase;
    return n;
}

/* Its data goes as after any CLEAR. */
static void send_alone(struct tb_request *r)
{
    struct tb_engine *e = r->engine;
    r->phase = TB_PHASE_BULK;
    e->waiting.stirred = true;
    tb_port_start(&e->ports, r->peer->port, r);
}

/* The operation is over, or will not be begun. */
static void members_end(struct tb_cast *cast, int error)
{
    cast->members = 0;
    wait_end(cast);
    cast->settling = true;
    for (uint32_t i = 0; i < cast->count; i++) {
        struct tb_request *r = &cast->requests[i];
        if (r->phase != TB_PHASE_TOGETHER && r->phase != TB_PHASE_INVITED)
            continue;
        tb_list_remove(&r->queue);
        if (error == TB_OK)
            tb_request_finish(r, TB_OK);
        else
            send_alone(r);
    }
    cast->settling = false;
}

static void operation_done(struct tb_multicast_operation *o, int error)
{
    struct tb_cast *cast = o->owner;
    cast->engine->multicast->waiting--;
    cast->under_way = false;
    members_end(cast, error);
    cast_look(cast);
}

static void operation_stop(struct tb_cast *cast)
{
    struct tb_multicast_port *port = cast->engine->multicast;
    if (cast->under_way) {
        tb_multicast_stop(port->protocol, &cast->operation);
        port->waiting--;
        tb_multicast_port_settle(port);
    }
    cast->under_way = false;
    members_end(cast, TB_ERR_PEER);
}

static uint32_t listed(const void *list, uint32_t index)
{
    const uint32_t *processes = list;
    return processes[index];
}

static void payload_copy(void *owner, uint64_t offset, void *bytes, size_t length, bool gather)
{
    const struct tb_cast *cast = owner;
    TB_ASSERT(gather);
    tb_part_gather(&cast->part, offset, length, bytes);
}

/* All members were invited. */
static void operation_start(struct tb_cast *cast)
{
    struct tb_multicast_port *port = cast->engine->multicast;
    struct tb_multicast_operation *o = &cast->operation;
    bool dense = cast->buffer.type->dense;
    o->context = tb_cast_context(cast->engine->config.transport.self.index);
    o->length = cast->part.length;
    o->members = (struct tb_multicast_members){cast->members, 0, listed, cast->processes};
    o->root = 0;
    o->payload = (struct tb_multicast_payload){dense ? cast->buffer.base : NULL, payload_copy, cast};
    o->done = operation_done;
    o->owner = cast;
    int rc = tb_multicast_start(port->protocol, o);
    cast->under_way = rc == TB_PENDING;
    port->waiting += cast->under_way;
    tb_multicast_port_settle(port);
    if (rc != TB_PENDING)
        members_end(cast, rc);
}

/* ---- invitations ------------------------------------------------------------------------------------------------- */

static int cast_invite(struct tb_request *r)
{
    struct tb_cast *cast = r->user;
    struct tb_peer *p = r->peer;
    uint64_t names[] = {r->message_id, cast->operation.number};
    size_t bytes = cast->members * sizeof *cast->processes;
    uint8_t *frame = cast->engine->multicast->frame;
    TB_ASSERT(sizeof names + bytes <= TB_MULTICAST_CONTROL_BYTES);
    memcpy(frame, names, sizeof names);
    memcpy(frame + sizeof names, cast->processes, bytes);
    struct tb_envelope envelope = {.message = {.kind = TB_KIND_CAST,
                                               .match = r->remote_id,
                                               .representation = cast->engine->representation,
                                               .length = sizeof names + bytes}};
    struct tb_spans spans = tb_spans_of(frame, sizeof names + bytes);
    int rc = tb_peer_transmit(p, &envelope, &spans, TB_STREAM_SHORT, 0);
    if (rc != TB_OK)
        return rc;
    tb_list_remove(&r->queue);
    r->phase = TB_PHASE_TOGETHER;
    cast_look(cast);
    return TB_OK;
}

static void invite(struct tb_request *r)
{
    struct tb_peer *p = r->peer;
    int rc = tb_list_empty(&p->envelopes) ? cast_invite(r) : TB_AGAIN;
    if (rc == TB_AGAIN) {
        tb_list_append(&p->envelopes, &r->queue);
        tb_peer_queue(p);
    } else if (rc < 0) {
        tb_peer_break(p, rc); /* which ends the request, and so the preparation */
    }
}

/* Those that are ready get it now, several of them together. */
static void round_begin(struct tb_cast *cast, uint32_t ready)
{
    wait_end(cast);
    for (uint32_t i = 0; i < cast->count; i++) {
        struct tb_request *r = &cast->requests[i];
        if (r->phase != TB_PHASE_READY)
            continue;
        if (ready == 1) {
            send_alone(r);
            return;
        }
        if (cast->members == 0)
            cast->processes[cast->members++] = cast->engine->config.transport.self.index;
        if (cast->members < MEMBERS_MOST) {
            cast->processes[cast->members++] = r->peer->proc.index;
            r->phase = TB_PHASE_INVITED;
        }
    }
    cast->operation.number = cast->engine->multicast->casts_made++;
    wait_until(cast, tb_clock_now(cast->engine->config.transport.clock) + STANDSTILL);
    for (uint32_t i = 0; i < cast->count; i++)
        if (cast->requests[i].phase == TB_PHASE_INVITED)
            invite(&cast->requests[i]);
}

/* Something has changed: what can be done next is done. */
static void cast_look(struct tb_cast *cast)
{
    uint32_t asked = 0;
    if (cast->settling)
        return;
    if (cast->members > 0) {
        bool invited = count_in(cast, TB_PHASE_INVITED) == 0;
        bool all = count_in(cast, TB_PHASE_TOGETHER) + 1 == cast->members;
        if (invited && !all)
            operation_stop(cast);
        else if (invited && !cast->under_way)
            operation_start(cast);
        if (cast->members > 0)
            return;
    }
    uint32_t ready = count_in(cast, TB_PHASE_READY);
    if (ready == 0) { /* also where those that were have ended */
        wait_end(cast);
        return;
    }
    for (uint32_t i = 0; i < cast->count; i++)
        asked += cast->requests[i].mode == TB_MODE_TOGETHER &&
                 (cast->requests[i].phase == TB_PHASE_QUEUED || cast->requests[i].phase == TB_PHASE_ASKED);
    uint64_t now = tb_clock_now(cast->engine->config.transport.clock);
    if (asked == 0 || now >= cast->deadline) {
        round_begin(cast, ready);
    } else if (cast->deadline == TB_NEVER) {
        wait_until(cast, now + PATIENCE);
    }
}

static void cast_cleared(struct tb_request *r)
{
    r->phase = TB_PHASE_READY;
    cast_look(r->user);
}

static void cast_refused(struct tb_request *r)
{
    struct tb_cast *cast = r->user;
    operation_stop(cast);
    cast_look(cast);
}

const struct tb_cast_sender tb_cast_sender = {cast_cleared, cast_refused, cast_invite};

/* The operation, or its preparation, is given up if it stands still: one of its members may compute. */
static void operation_judge(struct tb_cast *cast, uint64_t now)
{
    uint64_t moved = cast->under_way ? tb_multicast_moved(&cast->operation) : 0;
    if (moved + STANDSTILL > now)
        wait_until(cast, moved + STANDSTILL);
    else
        operation_stop(cast);
}

int tb_casts_advance(struct tb_multicast_port *port)
{
    uint64_t now = tb_list_empty(&port->casts) ? 0 : tb_clock_now(port->engine->config.transport.clock);
    struct tb_cast *cast;
    int n = 0;
    TB_LIST_EACH (cast, &port->casts, struct tb_cast, in_port)
        if (now >= cast->deadline) {
            if (cast->members > 0)
                operation_judge(cast, now);
            cast_look(cast);
            n++;
        }
    return n;
}

uint64_t tb_casts_deadline(const struct tb_multicast_port *port)
{
    const struct tb_cast *cast;
    uint64_t deadline = TB_NEVER;
    TB_LIST_EACH (cast, &port->casts, const struct tb_cast, in_port)
        deadline = cast->deadline < deadline ? cast->deadline : deadline;
    return deadline;
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

/* A send of it has ended. */
static void send_complete(struct tb_request *r)
{
    struct tb_cast *cast = r->user;
    cast_look(cast);
}

bool tb_cast_is_long(uint64_t bytes)
{
    uint64_t most = (uint64_t)tb_param.mcast_largest;
    return bytes > tb_multicast_defaults().short_bytes && (most == 0 || bytes <= most);
}

/* The port, if the message is one for the group; else NULL. */
static struct tb_multicast_port *port_for(struct tb_engine *e, uint64_t bytes)
{
    struct tb_multicast_port *port = tb_cast_is_long(bytes) ? tb_multicast_port_of(e) : NULL;
    uint32_t self = e->config.transport.self.index;
    const struct tb_multicast_members all = {.count = e->config.processes, .self = self};
    if (port == NULL)
        return NULL;
    tb_multicast_port_listen(port);
    if (!port->casts_joined)
        port->casts_joined = tb_multicast_join(port->protocol, tb_cast_context(self), &all) == TB_OK;
    return port->group != NULL && port->casts_joined ? port : NULL;
}

/* Notes who gets it together: each process of other hosts of the cluster, once. `marks`: one for each request. False:
 * there is no memory, and nobody is noted. */
static bool members_choose(struct tb_cast *cast, struct tb_channel *channel, const uint32_t *ranks, bool *marks)
{
    struct tb_engine *e = cast->engine;
    bool *seen = calloc(e->config.processes, sizeof *seen);
    uint32_t n = 0;
    for (uint32_t i = 0; i < cast->count && seen != NULL; i++) {
        struct tb_peer *p = tb_channel_peer(channel, ranks[i]);
        marks[i] = p != NULL && !p->self && !p->local && e->config.in_cluster(e->config.context, p->proc) &&
                   !seen[p->proc.index]; /* of the first world, as all in the cluster are */
        if (marks[i])
            seen[p->proc.index] = true;
        n += marks[i];
    }
    free(seen);
    uint32_t most = n < MEMBERS_MOST ? n + 1 : MEMBERS_MOST;
    cast->processes = n > 1 ? malloc(most * sizeof *cast->processes) : NULL;
    return cast->processes != NULL;
}

int tb_cast_post(struct tb_channel *channel, const struct tb_buffer *buffer, const uint32_t *ranks, uint32_t count,
                 uint64_t match, struct tb_cast **made)
{
    struct tb_engine *e = channel->engine;
    struct tb_cast *cast = calloc(1, sizeof *cast + count * sizeof cast->requests[0]);
    bool *marks = calloc(count, sizeof *marks);
    if (cast == NULL || marks == NULL) {
        free(cast);
        free(marks);
        return tb_error(TB_ERR_MEMORY, "no memory for messages to %u ranks", count);
    }
    *made = cast;
    cast->engine = e;
    cast->count = count;
    cast->deadline = TB_NEVER;
    cast->buffer = *buffer;
    cast->part = (struct tb_part){&cast->buffer, 0, tb_buffer_bytes(buffer)};
    tb_list_init(&cast->in_port);
    tb_engine_lock(e);
    bool together = port_for(e, cast->part.length) != NULL && members_choose(cast, channel, ranks, marks);
    for (uint32_t i = 0; i < count; i++) {
        struct tb_request *r = &cast->requests[i];
        bool is_member = together && marks[i];
        r->user = cast;
        r->complete = is_member ? send_complete : NULL;
        tb_send_start(channel->point, r, &cast->part, ranks[i], match, is_member ? TB_MODE_TOGETHER : TB_MODE_STANDARD);
    }
    tb_engine_unlock(e);
    free(marks);
    return TB_OK;
}

const struct tb_request *tb_cast_wait(struct tb_cast *cast, const char *call)
{
    const struct tb_request *failed = NULL;
    for (uint32_t i = 0; i < cast->count; i++) {
        tb_request_wait_in(&cast->requests[i], call, NULL);
        if (failed == NULL && cast->requests[i].status.error != TB_OK)
            failed = &cast->requests[i];
    }
    return failed;
}

void tb_cast_free(struct tb_cast *cast)
{
    /* Whoever has ended the last request may not have left the cast yet. */
    tb_engine_lock(cast->engine);
    tb_list_remove(&cast->in_port);
    tb_engine_unlock(cast->engine);
    free(cast->processes);
    free(cast);
}
