#include "agent/border_link.h"

#include "agent/queue.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define READ_BYTES  65536u
#define FULL_BYTES  (1u << 20) /* that wait to leave: more is not taken */
#define BEAT_NS     1000000000u
#define FRAME_BYTES (sizeof(struct tb_envelope) + TB_RELAY_PAYLOAD)

/* The longest that a launcher says: who it is, of as many processes as a job can have; and when we know them, little
 * more than a frame has. */
#define FIRST_WORD_BYTES (sizeof(struct tb_meeting_party) + TB_JOB_RANKS_LIMIT * sizeof(uint32_t) + 65536u)
#define WORD_BYTES       (4u * READ_BYTES)

/* ---- its end ----------------------------------------------------------------------------------------------------- */

/* With the present story, unless there was a reason before. Told from the loop, when nobody is inside of a call. */
static void fail(struct tb_border_link *link, const char *why)
{
    if (link->why[0] != 0)
        return;
    snprintf(link->why, sizeof link->why, "%s", why);
    tb_loop_unwatch(link->member->loop, &link->watch);
    tb_timer_clear(&link->beat);
    tb_timer_set(link->member->loop, &link->end, 0);
}

static void end_due(struct tb_timer *timer)
{
    struct tb_border_link *link = TB_CONTAINER(timer, struct tb_border_link, end);
    link->events.ended(link->events.context, link, link->why);
}

/* ---- out --------------------------------------------------------------------------------------------------------- */

static size_t queued(const struct tb_border_link *link)
{
    return tb_control_stream_queued(&link->stream);
}

bool tb_border_link_is_full(const struct tb_border_link *link)
{
    return queued(link) > FULL_BYTES;
}

void tb_border_link_settle(struct tb_border_link *link)
{
    bool full = tb_border_link_is_full(link);
    int rc = TB_OK;
    if (link->why[0] != 0)
        return;
    while (rc == TB_OK && tb_tls_socket_is_ready(link->tls) && tb_tls_socket_has_room(link->tls) && queued(link) > 0) {
        size_t length;
        const void *bytes = tb_control_stream_take(&link->stream, READ_BYTES, &length);
        rc = tb_tls_socket_write(link->tls, bytes, length);
    }
    int left = tb_tls_socket_flush(link->tls);
    bool more = left == TB_AGAIN || (rc == TB_OK && tb_tls_socket_is_ready(link->tls) && queued(link) > 0);
    if (left < 0 || rc < 0) {
        fail(link, "the connection with it has broken");
        return;
    }
    tb_loop_change(link->member->loop, &link->watch,
                   (link->held != 0 ? 0u : (uint32_t)EPOLLIN) | (more ? (uint32_t)EPOLLOUT : 0u));
    if (full && !tb_border_link_is_full(link))
        link->events.eased(link->events.context);
}

static struct tb_writer *begin(struct tb_border_link *link, enum tb_border_word word)
{
    struct tb_writer *w = tb_control_stream_begin(&link->stream, TB_CONTROL_BORDER);
    tb_put_u8(w, (uint8_t)word);
    return w;
}

static void end(struct tb_border_link *link)
{
    if (tb_control_stream_end(&link->stream) != TB_OK)
        fail(link, tb_error_story());
}

void tb_border_link_tell(struct tb_border_link *link, const void *bytes, size_t length)
{
    tb_put_raw(begin(link, TB_BORDER_TELL), bytes, length);
    end(link);
}

void tb_border_link_pass(struct tb_border_link *link, enum tb_stream stream, char *bytes, size_t length)
{
    struct tb_envelope envelope;
    struct tb_routing *routing = &envelope.routing;
    uint32_t home;
    if (link->why[0] != 0 || tb_wire_get_envelope(bytes, &envelope) != TB_OK)
        return;
    if (!tb_border_names_shows(&link->names, routing->source.index) ||
        !tb_border_names_there(&link->names, routing->destination.index, &home)) {
        fail(link, "a process of this job has sent something to one of that job which it has not met");
        return;
    }
    routing->destination = (struct tb_proc){link->names.job, home};
    tb_wire_put_envelope(bytes, &envelope);
    struct tb_writer *w = begin(link, TB_BORDER_FRAME);
    tb_put_u8(w, (uint8_t)stream);
    tb_put_raw(w, bytes, length);
    end(link);
}

/* ---- in ---------------------------------------------------------------------------------------------------------- */

/* One-sided accesses, messages, and what they need; nothing of multicast, nothing between agents, and nothing in a
 * communicator that is of one job in any case. */
static bool may_pass(const struct tb_message *message, size_t payload)
{
    return (message->context == 0 || tb_context_is_tagged(message->context)) && message->kind != TB_KIND_HOST &&
           message->kind < TB_KIND_MULTICAST && (message->flags & TB_MESSAGE_ROUTED) != 0 &&
           (message->flags & TB_MESSAGE_REMOTE) == 0 && tb_message_check(message, payload) == TB_OK;
}

static int take_frame(struct tb_border_link *link, struct tb_reader *r)
{
    static char frame[sizeof(struct tb_hop) + FRAME_BYTES]; /* one thread, and used up in the call */
    struct tb_envelope envelope;
    struct tb_routing *routing = &envelope.routing;
    uint8_t stream = tb_get_u8(r);
    size_t length = 0;
    const void *bytes = tb_get_rest(r, &length);
    uint32_t from;
    if (r->error != TB_OK || stream >= TB_STREAM_COUNT || length < sizeof envelope || length > FRAME_BYTES ||
        tb_wire_get_envelope(bytes, &envelope) != TB_OK || !may_pass(&envelope.message, length - sizeof envelope))
        return tb_error(TB_ERR_PROTOCOL, "it sends nonsense");
    if (routing->source.job != link->names.job || routing->destination.job != link->member->self.job ||
        !tb_border_names_here(&link->names, routing->source.index, &from) ||
        !tb_border_names_shows(&link->names, routing->destination.index))
        return tb_error(TB_ERR_PROTOCOL, "it sends messages between processes that have not met");
    routing->source = (struct tb_proc){link->member->self.job, from};
    char *to = frame + sizeof(struct tb_hop);
    memcpy(to, bytes, length);
    tb_wire_put_envelope(to, &envelope);
    return link->events.frame(link->events.context, link, from, (enum tb_stream)stream, to, length);
}

static int take_control(struct tb_border_link *link, struct tb_control_frame *frame)
{
    uint8_t word = tb_get_u8(&frame->fields);
    size_t length = 0;
    if (frame->kind != TB_CONTROL_BORDER || frame->fields.error != TB_OK)
        return tb_error(TB_ERR_PROTOCOL, "it sends nonsense");
    if (word == TB_BORDER_FRAME)
        return take_frame(link, &frame->fields);
    if (word == TB_BORDER_TELL) {
        const void *bytes = tb_get_rest(&frame->fields, &length);
        link->spoken = true;
        link->events.told(link->events.context, link, bytes, length);
        return TB_OK;
    }
    return word == TB_BORDER_ALIVE ? tb_reader_end(&frame->fields) : tb_error(TB_ERR_PROTOCOL, "it sends nonsense");
}

static int take_frames(struct tb_border_link *link)
{
    struct tb_control_frame frame;
    int rc;
    while (link->why[0] == 0 && (rc = tb_control_stream_next(&link->stream, &frame)) == TB_OK)
        if ((rc = take_control(link, &frame)) != TB_OK)
            return rc;
    if (link->why[0] != 0)
        return TB_OK;
    size_t begun = link->stream.received_end - link->stream.received_start;
    if (rc == TB_AGAIN && begun > (link->names.job == 0 ? FIRST_WORD_BYTES : WORD_BYTES))
        return tb_error(TB_ERR_PROTOCOL, "it sends nonsense");
    return rc == TB_AGAIN ? TB_OK : rc;
}

/* What the socket has now. TB_AGAIN: all of it is used. */
static int take_bytes(struct tb_border_link *link)
{
    static uint8_t plain[READ_BYTES];
    size_t got;
    int rc = tb_tls_socket_receive(link->tls);
    while (rc == TB_OK && (rc = tb_tls_socket_read(link->tls, plain, sizeof plain, &got)) == TB_OK) {
        rc = tb_control_stream_feed(&link->stream, plain, got);
        if (rc == TB_OK)
            rc = take_frames(link);
        link->silence.heard = true;
    }
    return rc;
}

static const char *reason(int error)
{
    if (error == TB_ERR_CLOSED || error == TB_ERR_SYSTEM)
        return "it has ended, or the connection with it has broken";
    return tb_error_story();
}

static void socket_ready(struct tb_watch *watch, uint32_t events)
{
    struct tb_border_link *link = TB_CONTAINER(watch, struct tb_border_link, watch);
    int rc = TB_AGAIN;
    if (events & ~(uint32_t)EPOLLOUT)
        rc = take_bytes(link);
    if (rc != TB_AGAIN && rc != TB_OK)
        fail(link, reason(rc));
    if (!link->up && link->why[0] == 0 && tb_tls_socket_is_ready(link->tls)) {
        link->up = true;
        link->events.up(link->events.context, link);
    }
    tb_border_link_settle(link);
}

void tb_border_link_hold(struct tb_border_link *link, enum tb_border_held why, bool held)
{
    link->held = (uint8_t)(held ? link->held | why : link->held & ~why);
}

/* ---- whether it lives -------------------------------------------------------------------------------------------- */

static void beat(struct tb_timer *timer)
{
    struct tb_border_link *link = TB_CONTAINER(timer, struct tb_border_link, beat);
    char why[sizeof link->why];
    tb_silence_look(&link->silence, tb_loop_now(link->member->loop), 2 * (uint64_t)BEAT_NS, TB_SILENCE_OPEN);
    if (tb_param.heartbeat > 0 && link->silence.time > tb_param.heartbeat && link->held == 0) {
        snprintf(why, sizeof why, "it has been silent for %.10g s", (double)tb_param.heartbeat / 1e9);
        fail(link, why);
        return;
    }
    if (queued(link) == 0) {
        begin(link, TB_BORDER_ALIVE);
        end(link);
    }
    tb_border_link_settle(link);
    if (link->why[0] == 0)
        tb_timer_set(link->member->loop, timer, BEAT_NS);
}

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

int tb_border_link_open(struct tb_border_link **opened, const struct tb_member *member, int socket,
                        const struct tb_key *secret, bool connector, const struct tb_border_link_events *events)
{
    struct tb_border_link *link = calloc(1, sizeof *link);
    int rc = link != NULL ? tb_tls_socket_open(&link->tls, socket, secret, connector)
                          : tb_error(TB_ERR_MEMORY, "no memory for a connection with another job");
    if (rc != TB_OK) {
        free(link);
        return rc;
    }
    link->member = member;
    link->events = *events;
    link->watch.descriptor = -1;
    tb_list_init(&link->node);
    tb_control_stream_open(&link->stream, -1, -1);
    tb_timer_init(&link->beat, beat);
    tb_timer_init(&link->end, end_due);
    tb_timer_set(member->loop, &link->beat, BEAT_NS);
    rc = tb_loop_watch(member->loop, &link->watch, socket, EPOLLIN, socket_ready);
    if (rc == TB_OK)
        tb_border_link_settle(link);
    else
        fail(link, tb_error_story());
    *opened = link;
    return TB_OK;
}

void tb_border_link_close(struct tb_border_link *link)
{
    tb_border_link_settle(link);
    tb_loop_unwatch(link->member->loop, &link->watch);
    tb_timer_clear(&link->beat);
    tb_timer_clear(&link->end);
    tb_list_remove(&link->node);
    tb_tls_socket_close(link->tls);
    tb_control_stream_close(&link->stream);
    tb_border_names_close(&link->names);
    free(link);
}
