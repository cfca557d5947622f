/* Control frames on a pair of byte streams. */
#include "job/job.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define READ_BYTES   65536u     /* read at once */
#define NOISE_LIMIT  65536u     /* what a remote shell may say before the agent speaks */
#define QUEUED_LIMIT (1u << 28) /* the full output pipes of as many ranks as a host may have, and more */
#define RESERVED     (1u << 24) /* of it not for output: that a rank has ended must be told whatever else waits */

void tb_control_stream_open(struct tb_control_stream *stream, int in, int out)
{
    *stream = (struct tb_control_stream){.in = in, .out = out};
    tb_writer_open(&stream->frame);
}

void tb_control_stream_close(struct tb_control_stream *stream)
{
    if (stream->in >= 0)
        close(stream->in);
    if (stream->out >= 0 && stream->out != stream->in)
        close(stream->out);
    free(stream->received);
    free(stream->queued);
    tb_writer_close(&stream->frame);
    *stream = (struct tb_control_stream){.in = -1, .out = -1};
}

/* Makes room for `more` bytes behind *end, moving what is there to the front first. */
static int make_room(uint8_t **bytes, size_t *start, size_t *end, size_t *room, size_t more)
{
    if (*room - *end >= more)
        return TB_OK;
    if (*start > 0) {
        memmove(*bytes, *bytes + *start, *end - *start);
        *end -= *start;
        *start = 0;
    }
    if (*room - *end >= more)
        return TB_OK;
    size_t wanted = *room * 2 > *end + more ? *room * 2 : *end + more;
    uint8_t *grown = realloc(*bytes, wanted);
    if (grown == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for a control message");
    *bytes = grown;
    *room = wanted;
    return TB_OK;
}

int tb_control_stream_fill(struct tb_control_stream *stream)
{
    if (stream->received_start == stream->received_end)
        stream->received_start = stream->received_end = 0;
    int rc = make_room(&stream->received, &stream->received_start, &stream->received_end, &stream->received_room,
                       READ_BYTES);
    if (rc != TB_OK)
        return rc;
    ssize_t n = read(stream->in, stream->received + stream->received_end, stream->received_room - stream->received_end);
    if (n > 0) {
        stream->received_end += (size_t)n;
        return TB_OK;
    }
    if (n == 0 || errno == ECONNRESET)
        return TB_ERR_CLOSED;
    if (errno == EAGAIN || errno == EINTR)
        return TB_AGAIN;
    return tb_error_errno("cannot read from the control stream");
}

int tb_control_stream_next(struct tb_control_stream *stream, struct tb_control_frame *frame)
{
    size_t there = stream->received_end - stream->received_start;
    if (there < sizeof(struct tb_hop))
        return TB_AGAIN;
    struct tb_hop hop;
    const uint8_t *at = stream->received + stream->received_start;
    int rc = tb_wire_get_hop(at, &hop);
    if (rc != TB_OK)
        return rc;
    if (hop.type != TB_HOP_CONTROL || hop.length < 4 || hop.length > TB_CONTROL_LIMIT ||
        hop.sequence != stream->sequence_in)
        return tb_error(TB_ERR_PROTOCOL, "bytes on the control stream that are no control message");
    if (there < sizeof hop + hop.length)
        return TB_AGAIN;
    tb_reader_open(&frame->fields, at + sizeof hop, hop.length);
    frame->kind = tb_get_u32(&frame->fields);
    stream->received_start += sizeof hop + hop.length;
    stream->sequence_in++;
    return TB_OK;
}

int tb_control_stream_preamble(struct tb_control_stream *stream, char *version, size_t size)
{
    const size_t mark = sizeof TB_AGENT_PREAMBLE - 1;
    const uint8_t *bytes = stream->received + stream->received_start;
    size_t there = stream->received_end - stream->received_start;
    const uint8_t *found = there > 0 ? memmem(bytes, there, TB_AGENT_PREAMBLE, mark) : NULL;
    const uint8_t *end = found != NULL ? memchr(found + mark, '\n', there - (size_t)(found - bytes) - mark) : NULL;
    if (end == NULL)
        return there > NOISE_LIMIT ? tb_error(TB_ERR_PROTOCOL, "the remote shell says a lot, but no agent answers")
                                   : TB_AGAIN;
    size_t length = (size_t)(end - (found + mark));
    if (length >= size)
        length = size - 1;
    memcpy(version, found + mark, length);
    version[length] = 0;
    stream->received_start += (size_t)(end + 1 - bytes);
    return TB_OK;
}

static int make_queue_room(struct tb_control_stream *stream, size_t more)
{
    if (!stream->keeps)
        return make_room(&stream->queued, &stream->queued_start, &stream->queued_end, &stream->queued_room, more);
    size_t sent = stream->queued_start - stream->kept_start;
    int rc = make_room(&stream->queued, &stream->kept_start, &stream->queued_end, &stream->queued_room, more);
    stream->queued_start = stream->kept_start + sent;
    return rc;
}

struct tb_writer *tb_control_stream_begin(struct tb_control_stream *stream, enum tb_control kind)
{
    stream->kind = kind;
    stream->frame.length = 0;
    stream->frame.error = TB_OK;
    tb_put_u32(&stream->frame, kind);
    return &stream->frame;
}

int tb_control_stream_end(struct tb_control_stream *stream)
{
    struct tb_writer *w = &stream->frame;
    if (w->error != TB_OK)
        return tb_error(w->error, "a control message is too long");
    struct tb_hop hop = {.version = TB_WIRE_VERSION,
                         .type = TB_HOP_CONTROL,
                         .length = (uint32_t)w->length,
                         .sequence = stream->sequence_out};
    size_t more = sizeof hop + w->length;
    if (tb_control_stream_unheard(stream) + more >
        (stream->kind == TB_CONTROL_OUTPUT ? QUEUED_LIMIT - RESERVED : QUEUED_LIMIT))
        return tb_error(TB_ERR_LIMIT, "too many control messages wait to be sent");
    int rc = make_queue_room(stream, more);
    if (rc != TB_OK)
        return rc;
    tb_wire_put_hop(stream->queued + stream->queued_end, &hop);
    memcpy(stream->queued + stream->queued_end + sizeof hop, w->bytes, w->length);
    stream->queued_end += more;
    stream->sequence_out++;
    return TB_OK;
}

int tb_control_stream_send(struct tb_control_stream *stream, enum tb_control kind)
{
    tb_control_stream_begin(stream, kind);
    return tb_control_stream_end(stream);
}

int tb_control_stream_flush(struct tb_control_stream *stream)
{
    while (stream->queued_start < stream->queued_end) {
        ssize_t n =
            write(stream->out, stream->queued + stream->queued_start, stream->queued_end - stream->queued_start);
        if (n >= 0) {
            stream->queued_start += (size_t)n;
        } else if (errno == EAGAIN) {
            return TB_AGAIN;
        } else if (errno == EPIPE || errno == ECONNRESET) {
            return TB_ERR_CLOSED;
        } else if (errno != EINTR) {
            return tb_error_errno("cannot write to the control stream");
        }
    }
    if (!stream->keeps)
        stream->queued_start = stream->queued_end = 0;
    return TB_OK;
}

size_t tb_control_stream_queued(const struct tb_control_stream *stream)
{
    return stream->queued_end - stream->queued_start;
}

size_t tb_control_stream_unheard(const struct tb_control_stream *stream)
{
    return stream->queued_end - (stream->keeps ? stream->kept_start : stream->queued_start);
}

int tb_control_stream_feed(struct tb_control_stream *stream, const void *bytes, size_t length)
{
    if (stream->received_start == stream->received_end)
        stream->received_start = stream->received_end = 0;
    int rc =
        make_room(&stream->received, &stream->received_start, &stream->received_end, &stream->received_room, length);
    if (rc != TB_OK || length == 0)
        return rc;
    memcpy(stream->received + stream->received_end, bytes, length);
    stream->received_end += length;
    return TB_OK;
}

const void *tb_control_stream_take(struct tb_control_stream *stream, size_t most, size_t *length)
{
    size_t there = tb_control_stream_queued(stream);
    const void *bytes = stream->queued + stream->queued_start;
    *length = there < most ? there : most;
    stream->queued_start += *length;
    if (stream->queued_start == stream->queued_end && !stream->keeps)
        stream->queued_start = stream->queued_end = 0;
    return bytes;
}

int tb_control_stream_keep(struct tb_control_stream *stream)
{
    if (stream->sequence_out != 0)
        return tb_error(TB_ERR_PROTOCOL, "a control stream is to keep its frames, but some were sent already");
    stream->keeps = true;
    return TB_OK;
}

bool tb_control_stream_tell_heard(struct tb_control_stream *stream, uint32_t frames)
{
    if (!stream->keeps || stream->sequence_in - stream->told < frames)
        return false;
    stream->told = stream->sequence_in;
    tb_put_u32(tb_control_stream_begin(stream, TB_CONTROL_HEARD), stream->sequence_in);
    return tb_control_stream_end(stream) == TB_OK;
}

int tb_control_stream_heard(struct tb_control_stream *stream, uint32_t next)
{
    struct tb_hop hop;
    if (!stream->keeps)
        return TB_OK; /* it does not matter, and what is queued need not begin with a frame */
    if ((int32_t)(next - stream->sequence_out) > 0)
        return tb_error(TB_ERR_PROTOCOL, "control messages are said to have come that were never sent");
    while (stream->kept_start < stream->queued_start) {
        /* These are our own frames, whole ones. */
        TB_ASSERT(tb_wire_get_hop(stream->queued + stream->kept_start, &hop) == TB_OK);
        size_t length = sizeof hop + hop.length;
        if ((int32_t)(next - hop.sequence) <= 0 || stream->kept_start + length > stream->queued_start)
            break;
        stream->kept_start += length;
    }
    if (stream->kept_start == stream->queued_end)
        stream->kept_start = stream->queued_start = stream->queued_end = 0;
    return TB_OK;
}

/* The number of the first frame that can be sent again, or else is the next. */
static uint32_t first_kept(const struct tb_control_stream *stream)
{
    struct tb_hop hop;
    if (stream->kept_start == stream->queued_end)
        return stream->sequence_out;
    TB_ASSERT(tb_wire_get_hop(stream->queued + stream->kept_start, &hop) == TB_OK);
    return hop.sequence;
}

bool tb_control_stream_is_past(const struct tb_control_stream *stream, uint32_t next)
{
    return stream->keeps && (int32_t)(next - first_kept(stream)) < 0;
}

int tb_control_stream_resume(struct tb_control_stream *stream, int in, int out, uint32_t next)
{
    if (!stream->keeps)
        return tb_error(TB_ERR_PROTOCOL, "a control stream that keeps nothing cannot go on as another one");
    int rc = tb_control_stream_heard(stream, next);
    if (rc != TB_OK)
        return rc;
    if (first_kept(stream) != next)
        return tb_error(TB_ERR_PROTOCOL, "what was lost with a control stream cannot be sent again");
    if (stream->in >= 0)
        close(stream->in);
    if (stream->out >= 0 && stream->out != stream->in)
        close(stream->out);
    stream->in = in;
    stream->out = out;
    stream->queued_start = stream->kept_start;
    stream->received_start = stream->received_end = 0; /* of a frame that will come again as a whole */
    return TB_OK;
}
