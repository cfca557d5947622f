#include "agent/uplink.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define READ_BYTES   65536u
#define HEARD_FRAMES 16u /* after so many the launcher is told that they have come */

#define LEAST_NS 3000000000u /* that a launcher gets for an answer when its stream is lost */
#define BEATS    36u         /* of a silence that is too long, by the parameter heartbeat */
#define PING_PARTS                                                                                                     \
    24u /* of that parameter, after which we say something again: at the second beat, or late at the first */
#define HEARD_BEATS 12u
#define SURE_PARTS  6u /* of that parameter: after such a silence nobody else should count on us, */
#define DOUBT_PARTS 3u /* and after this we look for another stream */

static void in_ready(struct tb_watch *watch, uint32_t events);
static void take_received(struct tb_uplink *uplink, int rc);

static void drop_stream(struct tb_uplink *uplink)
{
    tb_loop_unwatch(uplink->loop, &uplink->in);
    tb_loop_unwatch(uplink->loop, &uplink->out);
    tb_tls_socket_close(uplink->tls);
    uplink->tls = NULL;
}

static void end(struct tb_uplink *uplink, const char *why)
{
    drop_stream(uplink);
    tb_timer_clear(&uplink->beat);
    tb_attach_close(&uplink->attach);
    uplink->over = true;
    uplink->events.lost(uplink->events.context, why);
}

/* ---- another stream ---------------------------------------------------------------------------------------------- */

/* Whether there is a launcher to look for when the stream has ended. */
static bool can_go_on(const struct tb_uplink *uplink)
{
    bool doubted = uplink->doubted > 0 && tb_loop_now(uplink->loop) - uplink->doubted <= tb_param.heartbeat;
    return uplink->attach.count > 0 && !uplink->final && (!uplink->straight || doubted);
}

/* The stream has ended. */
static void lose(struct tb_uplink *uplink, const char *why)
{
    if (!can_go_on(uplink)) {
        end(uplink, why);
        return;
    }
    tb_log(TB_LOG_INFO, "agent", "the control stream is lost; another way to the launcher is tried");
    drop_stream(uplink);
    uplink->down = true;
    /* The launcher may have much to read before it answers, or be stopped for a while. */
    uint64_t patience = tb_param.heartbeat > LEAST_NS ? tb_param.heartbeat : LEAST_NS;
    if (uplink->attach.busy)
        tb_attach_insist(&uplink->attach, patience);
    else
        tb_attach_begin(&uplink->attach, uplink->stream.sequence_in, patience);
}

/* It is silent, but may speak again. */
static void doubt(struct tb_uplink *uplink)
{
    uplink->doubted = tb_loop_now(uplink->loop);
    tb_log(TB_LOG_INFO, "agent", "the control stream is silent; another way to the launcher is tried beside it");
    tb_attach_begin(&uplink->attach, uplink->stream.sequence_in, tb_param.heartbeat / SURE_PARTS);
}

bool tb_uplink_is_sure(const struct tb_uplink *uplink)
{
    return !uplink->down && !uplink->over &&
           (!uplink->judges || uplink->silence.time <= tb_param.heartbeat / SURE_PARTS);
}

/* What TLS has received by now. A stream that was changed on the way is lost, but the launcher is not. */
static int decrypt(struct tb_uplink *uplink)
{
    static uint8_t plain[READ_BYTES]; /* one thread, used up at once */
    size_t got = 0;
    int rc = TB_OK;
    while (rc == TB_OK && (rc = tb_tls_socket_read(uplink->tls, plain, sizeof plain, &got)) == TB_OK)
        rc = tb_control_stream_feed(&uplink->stream, plain, got);
    if (rc == TB_AGAIN || rc == TB_ERR_MEMORY)
        return rc == TB_AGAIN ? TB_OK : rc;
    if (rc != TB_ERR_CLOSED)
        tb_log(TB_LOG_INFO, "agent", "the control stream breaks: %s", tb_error_story());
    return TB_ERR_CLOSED;
}

static void attached(void *context, struct tb_tls_socket *socket, uint32_t next)
{
    struct tb_uplink *uplink = context;
    drop_stream(uplink); /* the one of which we had doubts */
    uplink->tls = socket;
    uplink->down = uplink->straight = false;
    uplink->silence = (struct tb_silence){0};
    int rc = tb_control_stream_resume(&uplink->stream, -1, -1, next);
    if (rc == TB_OK)
        rc = tb_loop_watch(uplink->loop, &uplink->in, tb_tls_socket_descriptor(socket), EPOLLIN, in_ready);
    if (rc == TB_OK)
        take_received(uplink, decrypt(uplink)); /* that of the last record which is not for the attach */
    else
        end(uplink, tb_error_story());
}

static void attach_failed(void *context)
{
    struct tb_uplink *uplink = context;
    if (uplink->down)
        end(uplink, "the launcher is gone, and nobody leads to it");
}

void tb_uplink_set_stand_ins(struct tb_uplink *uplink, const struct tb_key *key, struct tb_proc self,
                             const struct tb_address_book *book, const uint32_t *hosts, uint32_t count, bool straight)
{
    uplink->straight = straight && uplink->tls == NULL;
    tb_attach_set_stand_ins(&uplink->attach, key, self, book, hosts, count);
}

void tb_uplink_make_final(struct tb_uplink *uplink)
{
    uplink->final = true;
}

int tb_uplink_keep(struct tb_uplink *uplink)
{
    return tb_control_stream_keep(&uplink->stream);
}

/* ---- frames ------------------------------------------------------------------------------------------------------ */

static int take_frame(struct tb_uplink *uplink, struct tb_control_frame *frame)
{
    if (frame->kind == TB_CONTROL_HEARD)
        return tb_control_stream_heard(&uplink->stream, tb_get_u32(&frame->fields));
    uplink->events.frame(uplink->events.context, frame);
    return TB_OK;
}

static int fill(struct tb_uplink *uplink)
{
    if (uplink->tls == NULL)
        return tb_control_stream_fill(&uplink->stream);
    int rc = tb_tls_socket_receive(uplink->tls);
    return rc == TB_OK ? decrypt(uplink) : rc;
}

/* `rc`: how that went which has brought it. */
static void take_received(struct tb_uplink *uplink, int rc)
{
    struct tb_control_frame frame;
    if (rc == TB_AGAIN)
        return;
    if (rc == TB_OK) {
        uplink->silence.heard = true;
        uplink->silence.time = 0;
        tb_attach_close(&uplink->attach); /* there was no reason for doubts */
    }
    while (rc == TB_OK && (rc = tb_control_stream_next(&uplink->stream, &frame)) == TB_OK)
        rc = take_frame(uplink, &frame);
    if (rc == TB_ERR_PROTOCOL)
        fprintf(stderr, "tombolo agent %s: %s\n", TB_VERSION, tb_error_story());
    if (rc == TB_ERR_CLOSED)
        lose(uplink, "the launcher is gone");
    else if (rc < 0)
        end(uplink, tb_error_story());
}

static void in_ready(struct tb_watch *watch, uint32_t events)
{
    struct tb_uplink *uplink = TB_CONTAINER(watch, struct tb_uplink, in);
    take_received(uplink, fill(uplink));
}

static void out_ready(struct tb_watch *watch, uint32_t events)
{
    /* Only wakes the loop, which settles before it sleeps. */
}

struct tb_writer *tb_uplink_begin(struct tb_uplink *uplink, enum tb_control kind)
{
    return tb_control_stream_begin(&uplink->stream, kind);
}

int tb_uplink_end(struct tb_uplink *uplink)
{
    return tb_control_stream_end(&uplink->stream);
}

int tb_uplink_send(struct tb_uplink *uplink, enum tb_control kind)
{
    return tb_control_stream_send(&uplink->stream, kind);
}

size_t tb_uplink_queued(const struct tb_uplink *uplink)
{
    return tb_control_stream_queued(&uplink->stream);
}

/* TB_OK: everything has left; TB_AGAIN: it will when there is room; or an error. */
static int flush_encrypted(struct tb_uplink *uplink)
{
    int rc = TB_OK;
    while (rc == TB_OK && tb_uplink_queued(uplink) > 0 && tb_tls_socket_has_room(uplink->tls)) {
        size_t length;
        const void *bytes = tb_control_stream_take(&uplink->stream, READ_BYTES, &length);
        rc = tb_tls_socket_write(uplink->tls, bytes, length);
    }
    if (rc == TB_OK)
        rc = tb_tls_socket_flush(uplink->tls);
    if (rc == TB_OK && tb_uplink_queued(uplink) > 0)
        rc = TB_AGAIN;
    tb_loop_change(uplink->loop, &uplink->in, rc == TB_AGAIN ? EPOLLIN | EPOLLOUT : EPOLLIN);
    return rc;
}

static int flush_plain(struct tb_uplink *uplink)
{
    int rc = tb_control_stream_flush(&uplink->stream);
    if (rc != TB_AGAIN)
        tb_loop_unwatch(uplink->loop, &uplink->out);
    else if (uplink->out.descriptor < 0 &&
             tb_loop_watch(uplink->loop, &uplink->out, uplink->stream.out, EPOLLOUT, out_ready) != TB_OK)
        end(uplink, tb_error_story());
    return rc;
}

int tb_uplink_settle(struct tb_uplink *uplink)
{
    if (tb_uplink_is_down(uplink) || uplink->over)
        return TB_AGAIN;
    tb_control_stream_tell_heard(&uplink->stream, HEARD_FRAMES);
    int rc = uplink->tls != NULL ? flush_encrypted(uplink) : flush_plain(uplink);
    if (rc < 0) {
        lose(uplink, "the launcher does not listen any more");
        return TB_AGAIN;
    }
    return rc;
}

/* ---- heartbeat --------------------------------------------------------------------------------------------------- */

void tb_uplink_start_heartbeat(struct tb_uplink *uplink, bool judges)
{
    uplink->judges = judges;
    tb_timer_set(uplink->loop, &uplink->beat, tb_param.heartbeat / BEATS);
}

void tb_uplink_suspend(struct tb_uplink *uplink, bool suspended)
{
    uplink->suspended = suspended;
}

/* When there is time: whether we could go on by another stream. It is too late to say so when that is needed. */
static void check_tls(struct tb_uplink *uplink)
{
    if (uplink->warned || uplink->attach.count == 0)
        return;
    uplink->warned = true;
    if (tb_tls_is_usable() != TB_OK)
        tb_log(TB_LOG_WARN, "agent", "if the gateway is lost, this host cannot go on by another one: %s",
               tb_error_story());
}

static void judge(struct tb_uplink *uplink)
{
    struct tb_silence *silence = &uplink->silence;
    tb_silence_look(silence, tb_loop_now(uplink->loop), tb_param.heartbeat / BEATS,
                    uplink->suspended || uplink->down ? TB_SILENCE_SHUT : TB_SILENCE_OPEN);
    if (!uplink->judges || uplink->suspended || uplink->down)
        return;
    if (silence->time > tb_param.heartbeat && uplink->straight)
        end(uplink, "the launcher is silent"); /* and by now we are silent for it, too */
    else if (silence->time > tb_param.heartbeat)
        lose(uplink, "the launcher is silent");
    else if (silence->time > tb_param.heartbeat / DOUBT_PARTS && uplink->attach.count > 0 && !uplink->final &&
             !uplink->attach.busy)
        doubt(uplink);
}

/* Whoever gets the processor for a moment only, once in a while, says something then. */
static void speak(struct tb_uplink *uplink)
{
    uint64_t now = tb_loop_now(uplink->loop);
    bool new = uplink->said != uplink->stream.sequence_out;
    if (uplink->down || (!new &&now - uplink->said_at < tb_param.heartbeat / PING_PARTS))
        return;
    /* What has not left yet says as much as another one. */
    if (!new &&tb_uplink_queued(uplink) == 0)
        tb_uplink_send(uplink, TB_CONTROL_PING);
    uplink->said = uplink->stream.sequence_out;
    uplink->said_at = now;
}

static void beat(struct tb_timer *timer)
{
    struct tb_uplink *uplink = TB_CONTAINER(timer, struct tb_uplink, beat);
    uplink->beats++;
    judge(uplink);
    if (uplink->over)
        return;
    if (uplink->beats % HEARD_BEATS == 0) {
        tb_control_stream_tell_heard(&uplink->stream, 1);
        check_tls(uplink);
    }
    speak(uplink);
    tb_timer_set(uplink->loop, timer, tb_param.heartbeat / BEATS);
}

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

static int say_preamble(const struct tb_uplink *uplink)
{
    char text[128];
    int n = snprintf(text, sizeof text, TB_AGENT_PREAMBLE "%s wire %d\n", TB_VERSION, TB_WIRE_VERSION);
    if (write(uplink->stream.out, text, (size_t)n) != n)
        return tb_error_errno("cannot speak to the launcher");
    return TB_OK;
}

int tb_uplink_open(struct tb_uplink *uplink, struct tb_loop *loop, int in, int out,
                   const struct tb_uplink_events *events)
{
    *uplink = (struct tb_uplink){.loop = loop, .events = *events, .in.descriptor = -1, .out.descriptor = -1};
    struct tb_attach_events attach_calls = {.context = uplink, .attached = attached, .failed = attach_failed};
    tb_timer_init(&uplink->beat, beat);
    tb_attach_open(&uplink->attach, loop, &attach_calls);
    fcntl(in, F_SETFL, fcntl(in, F_GETFL) | O_NONBLOCK);
    fcntl(out, F_SETFL, fcntl(out, F_GETFL) | O_NONBLOCK);
    tb_control_stream_open(&uplink->stream, in, out);
    int rc = tb_loop_watch(loop, &uplink->in, in, EPOLLIN, in_ready);
    return rc == TB_OK ? say_preamble(uplink) : rc;
}

void tb_uplink_close(struct tb_uplink *uplink)
{
    drop_stream(uplink);
    tb_timer_clear(&uplink->beat);
    tb_attach_close(&uplink->attach);
    tb_control_stream_close(&uplink->stream);
}
