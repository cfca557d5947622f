#include "agent/crossing.h"

/* ---- out --------------------------------------------------------------------------------------------------------- */

static bool has_room(const struct tb_neighbour *rank, uint32_t weight)
{
    const struct tb_queue *queue = &rank->peer.queue;
    return queue->bytes[TB_STREAM_SHORT] + queue->bytes[TB_STREAM_BULK] + weight <= TB_CROSSING_ARRIVALS;
}

static bool send_kept(void *context, const struct tb_far_host *host, struct tb_frame_buffer *buffer)
{
    struct tb_crossing *c = context;
    enum tb_stream stream = (enum tb_stream)buffer->stream;
    struct tb_cargo cargo = {.bytes = buffer->bytes,
                             .length = buffer->length,
                             .source = buffer->source,
                             .destination = buffer->destination,
                             .buffer = buffer};
    struct tb_neighbour *n = c->events.route(c->events.context, &cargo, stream, buffer->from, host);
    if (n == NULL)
        return false;
    if (!tb_hop_peer_is_agent(&n->peer)) {
        c->late += n->left;
        if (n->left || !has_room(n, buffer->weight))
            return n->left;
    }
    buffer->via = tb_neighbour_host(n, c->member);
    if (c->events.pass(c->events.context, n, stream, buffer->from, &cargo) == TB_OK)
        return true;
    tb_list_remove(&buffer->node); /* it was dropped, and may be tried again */
    return false;
}

int tb_crossing_keep(struct tb_crossing *c, struct tb_neighbour *rank, enum tb_stream stream, struct tb_cargo *cargo)
{
    struct tb_frame_buffer *buffer = cargo->buffer;
    const struct tb_address_book *book = c->member->book;
    /* Ranks know how many of their own world are here; those of a later one may be alone. */
    bool later = cargo->source.index >= book->ranks;
    uint64_t most = 2 * tb_relay_share(later ? 1 : book->hosts[c->member->host].rank_count);
    cargo->buffer = NULL;
    if (buffer == NULL) {
        buffer = tb_frame_buffer_make(c->pool, cargo->length);
        if (buffer == NULL)
            return tb_error(TB_ERR_MEMORY, "no memory to forward messages");
        memcpy(buffer->bytes, cargo->bytes, cargo->length);
    }
    buffer->source = cargo->source;
    buffer->destination = cargo->destination;
    buffer->stream = (uint8_t)stream;
    buffer->from = cargo->source.index;
    return tb_replay_keep(&c->replay, cargo->envelope, buffer, &rank->kept, most);
}

/* ---- in ---------------------------------------------------------------------------------------------------------- */

/* A question is answered the way that it came: that one works, whatever is known of the others. */
static void take_host_frame(struct tb_crossing *c, struct tb_neighbour *by, const struct tb_cargo *cargo)
{
    const struct tb_message *message = &cargo->envelope->message;
    uint32_t host = cargo->source.index & ~TB_PROC_AGENT;
    const char *bytes = cargo->bytes + TB_FRAME_BUFFER_HEAD;
    size_t length = cargo->length - TB_FRAME_BUFFER_HEAD;
    struct tb_reader items;
    if (message->match != tb_crc32c(0, bytes, length))
        return; /* changed on the way; asked again, later */
    tb_reader_open(&items, bytes, length);
    if (message->length != TB_HOST_FRAME_QUESTION) {
        tb_replay_take(&c->replay, host, message->offset, &items);
        return;
    }
    c->asked_by = by;
    tb_receipts_answer(&c->receipts, host, message->offset, &items);
    c->asked_by = NULL;
}

void tb_crossing_arrive(struct tb_crossing *c, struct tb_neighbour *by, enum tb_stream stream, struct tb_cargo *cargo)
{
    if (tb_proc_is_agent(cargo->destination)) {
        take_host_frame(c, by, cargo);
        return;
    }
    const struct tb_routing *routing = &cargo->envelope->routing;
    uint32_t source = cargo->source.index, destination = cargo->destination.index;
    /* First, so that the window of that rank never runs ahead of what is kept of it. */
    tb_replay_arrived(&c->replay, destination, source, routing->acknowledge);
    struct tb_neighbour *rank = tb_neighbour_find(c->table, destination);
    if (rank == NULL || tb_receipts_look(&c->receipts, source, destination, routing->sequence) != TB_RECEIPT_NEW)
        return;
    if (rank->left) {
        c->late++;
    } else if (!has_room(rank, (uint32_t)sizeof(struct tb_frame_buffer) + TB_FRAME_BUFFER_LIMIT) ||
               c->events.pass(c->events.context, rank, stream, TB_PROC_AGENT, cargo) != TB_OK) {
        c->refused++;
        tb_receipts_refuse(&c->receipts, source, destination);
        return;
    }
    tb_receipts_note(&c->receipts, source, destination, routing->sequence, cargo->length);
}

/* For half of what may lie there, since each frame that comes again has crossed a network in vain. */
static bool has_room_again(void *context, uint32_t destination)
{
    struct tb_crossing *c = context;
    const struct tb_neighbour *rank = tb_neighbour_find(c->table, destination);
    return rank != NULL && (rank->left || has_room(rank, TB_CROSSING_ARRIVALS / 2));
}

/* ---- between agents ---------------------------------------------------------------------------------------------- */

static void say(struct tb_crossing *c, struct tb_neighbour *through, uint32_t host, const struct tb_far_host *far,
                enum tb_stream stream, const struct tb_message *message, const struct tb_writer *items)
{
    uint32_t length = (uint32_t)(TB_FRAME_BUFFER_HEAD + items->length);
    struct tb_hop hop = {
        .version = TB_WIRE_VERSION, .type = TB_HOP_ENVELOPE, .length = length - (uint32_t)sizeof(struct tb_hop)};
    struct tb_envelope envelope = {
        .routing = {.source = c->member->self, .destination = {c->member->self.job, TB_PROC_AGENT | host}},
        .message = *message};
    envelope.message.match = tb_crc32c(0, items->bytes, items->length);
    struct tb_frame_buffer *buffer = tb_frame_buffer_make(c->pool, length);
    if (buffer == NULL)
        return; /* asked again, later */
    tb_wire_put_hop(buffer->bytes, &hop);
    tb_wire_put_envelope(buffer->bytes + sizeof hop, &envelope);
    memcpy(buffer->bytes + TB_FRAME_BUFFER_HEAD, items->bytes, items->length);
    struct tb_cargo cargo = {.bytes = buffer->bytes,
                             .length = length,
                             .source = envelope.routing.source,
                             .destination = envelope.routing.destination,
                             .buffer = buffer};
    struct tb_neighbour *n =
        through != NULL ? through : c->events.route(c->events.context, &cargo, stream, c->member->self.index, far);
    if (n != NULL && !n->left)
        c->events.pass(c->events.context, n, stream, c->member->self.index, &cargo);
    tb_frame_buffer_free(c->pool, cargo.buffer);
}

static void ask(void *context, const struct tb_far_host *host, enum tb_stream stream, bool everywhere, uint64_t clock,
                const struct tb_writer *items)
{
    struct tb_crossing *c = context;
    const struct tb_host_route *route = tb_member_route(c->member, host->host);
    const struct tb_message question = {
        .kind = TB_KIND_HOST, .flags = TB_MESSAGE_ROUTED, .length = TB_HOST_FRAME_QUESTION, .offset = clock};
    if (!everywhere || route->means != TB_HOST_ROUTE_RELAYED) {
        say(c, NULL, host->host, host, stream, &question, items);
        return;
    }
    for (uint32_t k = 0; k < route->hop_count; k++) {
        struct tb_neighbour *n = tb_neighbour_find(c->table, TB_PROC_AGENT | route->hops[k]);
        if (n != NULL && route->hops[k] != c->member->host)
            say(c, n, host->host, host, stream, &question, items);
    }
}

static void tell(void *context, uint32_t host, uint64_t echo, const struct tb_writer *items)
{
    struct tb_crossing *c = context;
    const struct tb_message receipts = {
        .kind = TB_KIND_HOST, .flags = TB_MESSAGE_ROUTED, .length = TB_HOST_FRAME_RECEIPTS, .offset = echo};
    const struct tb_far_host *far = host < c->replay.host_count ? c->replay.hosts[host] : NULL;
    say(c, c->asked_by, host, far, TB_STREAM_SHORT, &receipts, items);
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

static void set_timer(struct tb_crossing *c)
{
    uint64_t due = c->replay.due < c->receipts.due ? c->replay.due : c->receipts.due;
    if (due >= c->timer.due)
        return;
    uint64_t now = tb_loop_now(c->member->loop);
    tb_timer_set(c->member->loop, &c->timer, due > now ? due - now : 0);
}

void tb_crossing_settle(struct tb_crossing *c)
{
    tb_replay_settle(&c->replay);
    if (!tb_list_empty(&c->receipts.refused))
        tb_receipts_settle(&c->receipts);
    set_timer(c);
}

static void tick(struct tb_timer *timer)
{
    struct tb_crossing *c = TB_CONTAINER(timer, struct tb_crossing, timer);
    uint64_t now = tb_loop_now(c->member->loop);
    if (c->replay.due <= now)
        tb_replay_tick(&c->replay);
    if (c->receipts.due <= now)
        tb_receipts_tick(&c->receipts);
    c->events.settle(c->events.context);
    set_timer(c);
}

int tb_crossing_open(struct tb_crossing *c, const struct tb_member *member, struct tb_neighbour_table *table,
                     struct tb_frame_pool *pool, const struct tb_crossing_events *events)
{
    *c = (struct tb_crossing){.member = member, .table = table, .pool = pool, .events = *events};
    tb_timer_init(&c->timer, tick);
    tb_receipts_open(&c->receipts, member,
                     &(struct tb_receipts_events){.context = c, .has_room = has_room_again, .tell = tell});
    return tb_replay_open(&c->replay, member, pool,
                          &(struct tb_replay_events){.context = c, .send = send_kept, .ask = ask});
}

void tb_crossing_close(struct tb_crossing *c)
{
    tb_log(TB_LOG_DEBUG, "agent",
           "between hosts: at most %llu bytes kept, %llu frames repeated, %llu questions, %llu receipts, %llu came "
           "again, %llu refused for want of room, %llu too late",
           (unsigned long long)c->replay.kept_most, (unsigned long long)c->replay.repeated,
           (unsigned long long)c->replay.questions, (unsigned long long)c->receipts.told,
           (unsigned long long)c->receipts.twice, (unsigned long long)c->refused, (unsigned long long)c->late);
    tb_timer_clear(&c->timer);
    tb_replay_close(&c->replay);
    tb_receipts_close(&c->receipts);
}
