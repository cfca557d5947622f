/* How messages get from host to host: they are cut into parts, which pass wire after wire. */
#include "planner/simulator_state.h"

#define PARTS_MOST   8u         /* of a message */
#define PART_LEAST   16384u     /* bytes */
#define ASK_ABOVE    (2u << 20) /* bytes that a process lets another send without being asked, at most */
#define FIRST_BURST  28960u     /* bytes that TCP has sent before it can hear of a loss: twice ten segments */
#define HEADER_BYTES 64u
#define ACKNOWLEDGED 2896u /* bytes of two segments, after which a receiver answers */

/* ---- what is used again ------------------------------------------------------------------------------------------ */

/* Of a message of a step, on its first leg. */
static uint32_t part_new(struct tb_simulator *m, uint32_t step, uint32_t message)
{
    uint32_t index = m->free_part;
    if (index != TB_SIMULATOR_NONE) {
        m->free_part = m->parts[index].message;
    } else {
        index = m->part_count;
        size_t need = ((size_t)index + 1) * sizeof *m->parts;
        if (need > m->rooms[ROOM_PARTS].bytes && (m->parts = tb_simulator_room(m, ROOM_PARTS, need)) == NULL)
            return TB_SIMULATOR_NONE;
        m->part_count++;
    }
    const struct tb_simulator_step *f = &m->steps[step];
    const struct tb_simulator_path *path = &m->paths[f->path];
    m->parts[index] = (struct tb_simulator_part){.message = message,
                                                 .stream = f->stream,
                                                 .leg = path->first,
                                                 .left = (uint16_t)path->count,
                                                 .is_first = true,
                                                 .ends = m->streams[f->stream].ends};
    return index;
}

/* At the end of a list of notes. */
static void note_add(struct tb_simulator *m, uint32_t *head, uint32_t *tail, uint64_t time, uint64_t bytes)
{
    uint32_t index = m->free_note;
    if (index != TB_SIMULATOR_NONE) {
        m->free_note = m->notes[index].next;
    } else {
        index = m->note_count;
        size_t need = ((size_t)index + 1) * sizeof *m->notes;
        if (need > m->rooms[ROOM_NOTES].bytes && (m->notes = tb_simulator_room(m, ROOM_NOTES, need)) == NULL)
            return;
        m->note_count++;
    }
    m->notes[index] = (struct tb_simulator_note){time, bytes, TB_SIMULATOR_NONE};
    if (*head == TB_SIMULATOR_NONE)
        *head = index;
    else
        m->notes[*tail].next = index;
    *tail = index;
}

/* Takes the notes of times that have passed from the front of a list; their bytes. */
static uint64_t notes_pass(struct tb_simulator *m, uint32_t *head, uint64_t now)
{
    uint64_t bytes = 0;
    while (*head != TB_SIMULATOR_NONE && m->notes[*head].time <= now) {
        struct tb_simulator_note *note = &m->notes[*head];
        uint32_t index = *head;
        bytes += note->bytes;
        *head = note->next;
        note->next = m->free_note;
        m->free_note = index;
    }
    return bytes;
}

/* ---- wires ------------------------------------------------------------------------------------------------------- */

/* The cores that a wire is made with are busy; until when. */
static uint64_t wire_work(struct tb_simulator *m, uint64_t length, uint64_t now)
{
    struct tb_simulator_core *core = &m->cores[0];
    for (uint32_t i = 1; i < m->pool; i++)
        core = m->cores[i].free < core->free ? &m->cores[i] : core;
    uint64_t work;
    if (__builtin_mul_overflow(length, m->constants->wire_work, &work))
        work = TB_COST_NEVER;
    return core->free = tb_cost_add(tb_simulator_later(core->free, now), work);
}

uint64_t tb_simulator_wire_take(struct tb_simulator *m, uint32_t wire, uint64_t start, uint64_t length, uint64_t now,
                                uint64_t *end)
{
    struct tb_simulator_wire *w = &m->wires[wire];
    uint64_t time = tb_simulator_last_time(m, &w->last, m->wire_times + w->row, start + length);
    if (start > 0) {
        uint64_t before = tb_simulator_time(m, m->wire_times + w->row, start);
        time = time > before ? time - before : 0;
    }
    uint64_t begin = tb_simulator_later(now, w->free),
             burst = m->dues != NULL ? m->table->wires[w->row].burst * TB_COST_BURST_UNIT : 0;
    w->free = tb_cost_add(begin, time);
    if (burst > 0) {
        uint64_t due = tb_cost_add(tb_simulator_later(now, m->dues[wire]), time);
        m->dues[wire] = due;
        w->free = tb_simulator_later(begin, due > burst ? due - burst : 0);
    }
    *end = w->free;
    w->load = tb_cost_add(w->load, time);
    if (wire < m->run->wire_room && m->run->wire_bytes != NULL)
        m->run->wire_bytes[wire] = tb_cost_add(m->run->wire_bytes[wire], length);
    if (m->cores != NULL && m->constants->wire_work > 0 && m->constants->pool > 0)
        *end = tb_simulator_later(*end, wire_work(m, length, begin));
    return begin;
}

/* What a message that comes at once puts into a queue. A short one is one part. */
static uint64_t burst_bytes(const struct tb_simulator *m, const struct tb_simulator_part *p)
{
    uint64_t bytes = p->is_short ? p->length : m->messages[p->message].bytes;
    return (bytes < FIRST_BURST ? bytes : FIRST_BURST) + HEADER_BYTES;
}

/* Takes room in the queue of a wire. False: it does not fit. */
static bool queue_take(struct tb_simulator *m, struct tb_simulator_wire *w, uint64_t bytes, uint64_t now)
{
    w->held -= notes_pass(m, &w->queue, now);
    bool fits = w->held == 0 || w->held + bytes <= m->table->wires[w->row].queue;
    w->held += fits ? bytes : 0;
    return fits;
}

/* ---- what is under way ------------------------------------------------------------------------------------------- */

/* So many bytes are there, which the sending side will know at some time. */
static void stream_acknowledge(struct tb_simulator *m, struct tb_simulator_stream *stream, uint64_t known,
                               uint64_t bytes)
{
    if (!stream->brief) {
        note_add(m, &stream->acks, &stream->last_ack, known, bytes);
    } else if (bytes > 0) {
        stream->under_way -= bytes;
        stream->known = tb_simulator_later(stream->known, known);
    }
}

/* Whether the sending side knows that all it has sent is there. */
static bool stream_is_quiet(struct tb_simulator *m, struct tb_simulator_stream *stream, uint64_t now)
{
    if (stream->brief)
        return stream->under_way == 0 && stream->known <= now;
    stream->under_way -= notes_pass(m, &stream->acks, now);
    return stream->under_way == 0;
}

/* ---- parts ------------------------------------------------------------------------------------------------------- */

/* When the receiver has something to do for a message whose bytes come from `first` to `last`; *until: before that the
 * receive is not done. */
static uint64_t receive_time(struct tb_simulator *m, uint32_t index, uint64_t bytes, uint64_t first, uint64_t last,
                             uint64_t *until)
{
    uint64_t own_first = m->paths[index].receive_none, copying = tb_simulator_receive_time(m, index, bytes);
    copying = copying > own_first ? copying - own_first : 0;
    *until = tb_cost_add(last, own_first);
    return tb_simulator_later(first, last > copying ? last - copying : 0);
}

/* Of a long message: the byte before which all must be known to be there until the last one can have left. */
static uint64_t message_behind(const struct tb_simulator *m, const struct tb_simulator_message *message)
{
    uint64_t window = m->paths[m->steps[message->step].path].window;
    return message->bytes > window ? message->bytes - window : 0;
}

/* A part of it is there, from `first` to `last`: as far as the window goes, bytes are known to be one by one. */
static void message_acknowledge(struct tb_simulator *m, struct tb_simulator_message *message, uint64_t length,
                                uint64_t first, uint64_t last)
{
    uint64_t behind = message_behind(m, message);
    if (behind <= message->there || behind > message->there + length)
        return;
    unsigned __int128 share = (unsigned __int128)(last - first) * (behind - message->there) / length;
    uint64_t latency = m->paths[m->steps[message->step].path].latency;
    uint64_t known = tb_cost_add(tb_cost_add(first, (uint64_t)share), latency);
    message->until = tb_simulator_later(message->until, known);
    if (message->next == TB_SIMULATOR_HELD)
        tb_simulator_done(m, message->step, message->until);
}

/* It is there; a short message, or the last part of a long one, tells the receiver. */
static void part_deliver(struct tb_simulator *m, uint32_t part, uint64_t now, uint64_t first, uint64_t last)
{
    struct tb_simulator_part *p = &m->parts[part];
    struct tb_simulator_stream *stream = &m->streams[p->stream];
    uint64_t known = tb_cost_add(last, m->paths[stream->path].latency);
    stream_acknowledge(m, stream, known, p->length);
    if (stream->waits) {
        stream->waits = false;
        tb_simulator_push(m, TB_SIMULATOR_NEXT, 2 * p->stream, known);
    }
    if (p->is_short) {
        uint64_t begin = receive_time(m, stream->path, p->length, first, last, &p->last);
        __builtin_prefetch(&m->steps[p->message], 1); /* soon, mostly; it is not in the cache */
        tb_simulator_push(m, TB_SIMULATOR_COME, part, tb_simulator_later(now, begin));
        return;
    }
    struct tb_simulator_message *message = &m->messages[p->message];
    message->first = first < message->first ? first : message->first;
    message->last = tb_simulator_later(last, message->last);
    message_acknowledge(m, message, p->length, first, last);
    message->there += p->length;
    if (message->there == message->bytes) {
        uint64_t begin = receive_time(m, stream->path, message->bytes, message->first, message->last, &message->until);
        tb_simulator_push(m, TB_SIMULATOR_ARRIVE, p->message, tb_simulator_later(now, begin));
    }
    tb_simulator_part_free(m, part);
}

/* An agent passes a frame on when it is whole; so much of the time of a frame. */
static uint64_t frame_time(const struct tb_simulator_leg *leg, const struct tb_simulator_part *p, uint64_t time)
{
    return time == 0 || p->length >= leg->frame ? time : (uint64_t)((unsigned __int128)time * p->length / leg->frame);
}

/* When the sender is through with a message of which its first wire has this part from `begin` to `end`. TB_COST_NEVER:
 * not with this part, or it is not known yet. */
static uint64_t part_sent(const struct tb_simulator *m, const struct tb_simulator_part *p, uint64_t begin, uint64_t end)
{
    struct tb_simulator_message *message = &m->messages[p->message];
    bool early = message->bytes <= m->constants->unsent;
    if (early ? p->start > 0 : p->start + p->length < message->bytes)
        return TB_COST_NEVER;
    if (early)
        return tb_simulator_later(message->until, begin);
    message->until = tb_simulator_later(message->until, end);
    if (message->there >= message_behind(m, message))
        return message->until;
    message->next = TB_SIMULATOR_HELD;
    return TB_COST_NEVER;
}

/* After a part of a long message its stream goes on. */
static void stream_go_on(struct tb_simulator *m, uint32_t step, uint64_t sent, uint64_t end)
{
    uint32_t index = m->steps[step].stream;
    struct tb_simulator_stream *stream = &m->streams[index];
    if (sent != TB_COST_NEVER)
        tb_simulator_done(m, step, sent);
    stream->free = end;
    stream->busy = stream->head != TB_SIMULATOR_NONE;
    if (!stream->busy)
        return;
    const struct tb_simulator_message *head = &m->messages[stream->head];
    tb_simulator_push(m, TB_SIMULATOR_NEXT, 2 * index,
                      head->left == head->bytes ? tb_simulator_later(end, head->ready) : end);
}

/* After a short message the next one of its stream may go. */
static void short_go_on(struct tb_simulator *m, uint32_t index, uint64_t end)
{
    struct tb_simulator_stream *stream = &m->streams[index];
    stream->short_free = end;
    stream->short_busy = stream->short_head != TB_SIMULATOR_NONE;
    if (stream->short_busy)
        tb_simulator_push(m, TB_SIMULATOR_NEXT, 2 * index + 1,
                          tb_simulator_later(end, m->messages[stream->short_head].ready));
}

/* Leaves the wire to which it had come, or passed where there is none. */
static void part_go_on(struct tb_simulator *m, uint32_t part, uint64_t now, uint64_t begin, uint64_t end)
{
    struct tb_simulator_part *p = &m->parts[part];
    const struct tb_simulator_leg *leg = &m->legs[p->leg];
    bool leaves = p->is_first && !p->is_short;
    if (p->is_first && p->is_short)
        short_go_on(m, p->stream, end);
    uint64_t sent = leaves ? part_sent(m, p, begin, end) : TB_COST_NEVER;
    uint32_t step = leaves ? m->messages[p->message].step : TB_SIMULATOR_NONE;
    uint64_t first = tb_cost_add(tb_cost_add(begin, leg->delay), frame_time(leg, p, leg->store));
    uint64_t last = tb_cost_add(tb_simulator_later(end, p->last), leg->delay);
    last = tb_simulator_later(first, tb_cost_add(last, frame_time(leg, p, leg->hold)));
    p->leg++;
    p->is_first = false;
    if (--p->left == 0) {
        part_deliver(m, part, now, first, last);
    } else {
        p->last = last;
        tb_simulator_push(m, TB_SIMULATOR_PART, part, first);
    }
    if (leaves)
        stream_go_on(m, step, sent, end);
}

/* What comes in is acknowledged, and whatever goes out at the same time waits for that; on a half-duplex port that is
 * what comes next. Of less than two segments nothing is: what is sent soon after carries it. */
static void port_acknowledge(struct tb_simulator *m, uint32_t port_in, uint64_t length, uint64_t now)
{
    const uint32_t port_out = tb_way_port_out(port_in);
    struct tb_simulator_wire *out = &m->wires[port_out];
    if (m->constants->ack_share == 0 || length < ACKNOWLEDGED || out->free <= now)
        return;
    uint64_t time = tb_simulator_time(m, m->wire_times + out->row, length);
    uint64_t answers = (uint64_t)((unsigned __int128)time * m->constants->ack_share / 1000);
    out->free = tb_cost_add(out->free, answers);
    if (m->dues != NULL)
        m->dues[port_out] = tb_cost_add(m->dues[port_out], answers);
}

/* Its time on the wire has come, for which it may have waited. */
static void part_cross(struct tb_simulator *m, uint32_t part, uint32_t wire, bool waited, uint64_t now)
{
    struct tb_simulator_part *p = &m->parts[part];
    struct tb_simulator_wire *w = &m->wires[wire];
    uint64_t end, begin = tb_simulator_wire_take(m, wire, p->start, p->length, now, &end);
    tb_simulator_turn_pass(m, wire, part, waited, begin, end);
    if (m->legs[p->leg].wire == TB_WAY_IN)
        port_acknowledge(m, wire, p->length, now);
    if (p->burst && w->limited)
        note_add(m, &w->queue, &w->last_queue, end, burst_bytes(m, p));
    part_go_on(m, part, now, begin, end);
}

/* Has come to a wire. What does not fit into its queue comes again later. */
static void part_pass(struct tb_simulator *m, uint32_t part, uint64_t now)
{
    struct tb_simulator_part *p = &m->parts[part];
    const struct tb_simulator_leg *leg = &m->legs[p->leg];
    if (leg->wire == TB_SIMULATOR_BARE) {
        part_go_on(m, part, now, now, now);
        return;
    }
    uint32_t wire = tb_simulator_leg_wire(leg, &p->ends);
    struct tb_simulator_wire *w = &m->wires[wire];
    if (p->burst && w->limited && !queue_take(m, w, burst_bytes(m, p), now)) {
        p->burst = false;
        p->last = tb_cost_add(p->last, m->constants->loss);
        tb_simulator_push(m, TB_SIMULATOR_PART, part, tb_cost_add(now, m->constants->loss));
    } else if ((m->mixed || w->in_turns) && (!p->is_short || p->in_turn) &&
               (w->free > now || w->waiting != TB_SIMULATOR_NONE)) {
        tb_simulator_turn_wait(m, wire, part);
    } else {
        part_cross(m, part, wire, false, now);
    }
}

void tb_simulator_wire_free(struct tb_simulator *m, uint32_t wire, uint64_t now)
{
    struct tb_simulator_wire *w = &m->wires[wire];
    if (w->free <= now) /* else a short one has overtaken */
        part_cross(m, tb_simulator_turn_take(m, wire), wire, true, now);
    if (w->waiting != TB_SIMULATOR_NONE)
        tb_simulator_push(m, TB_SIMULATOR_WIRE, wire, w->free);
}

void tb_simulator_part_comes(struct tb_simulator *m, uint32_t part, uint64_t now)
{
    struct tb_simulator_part *p = &m->parts[part];
    if (p->is_first) {
        struct tb_simulator_stream *stream = &m->streams[p->stream];
        p->burst = stream_is_quiet(m, stream, now);
        stream->under_way += p->length;
    }
    part_pass(m, part, now);
}

/* ---- streams ----------------------------------------------------------------------------------------------------- */

/* Of a long message. */
static uint64_t part_bytes(uint64_t bytes)
{
    uint64_t part = bytes / PARTS_MOST + (bytes % PARTS_MOST != 0);
    return part < PART_LEAST ? PART_LEAST : part;
}

/* Whether the window lets so many bytes go; if not, the stream has a time for its next part or waits. A part is known
 * to be there when all of it is, so that wires are idle unless one more is under way than an answer takes. */
static bool stream_open(struct tb_simulator *m, uint32_t index, uint64_t length, uint64_t now)
{
    struct tb_simulator_stream *stream = &m->streams[index];
    const struct tb_simulator_path *path = &m->paths[stream->path];
    if (stream_is_quiet(m, stream, now) || stream->under_way + length <= tb_simulator_later(path->window, 2 * length) ||
        stream->under_way < path->round_trip + length)
        return true;
    if (stream->acks != TB_SIMULATOR_NONE)
        tb_simulator_push(m, TB_SIMULATOR_NEXT, 2 * index, m->notes[stream->acks].time);
    else
        stream->waits = true;
    return false;
}

static void long_next(struct tb_simulator *m, uint32_t index, uint64_t now)
{
    struct tb_simulator_stream *stream = &m->streams[index];
    struct tb_simulator_message *message = &m->messages[stream->head];
    uint64_t part_length = part_bytes(message->bytes);
    uint64_t length = message->left < part_length ? message->left : part_length;
    bool is_first = message->left == message->bytes;
    if (!stream_open(m, index, length, now))
        return;
    if (is_first)
        message->first = TB_COST_NEVER;
    uint32_t part = part_new(m, message->step, stream->head);
    if (part == TB_SIMULATOR_NONE)
        return;
    struct tb_simulator_part *p = &m->parts[part];
    message->left -= length;
    bool is_last = message->left == 0;
    p->last = is_last ? message->until : 0;
    p->start = message->bytes - message->left - length;
    p->length = length;
    p->burst = is_first && stream->under_way == 0;
    stream->under_way += length;
    if (is_last)
        stream->head = message->next;
    part_pass(m, part, now);
}

/* A long message waits for those before it. */
static void stream_add(struct tb_simulator *m, uint32_t index, uint32_t message)
{
    struct tb_simulator_stream *stream = &m->streams[index];
    m->messages[message].next = TB_SIMULATOR_NONE;
    if (stream->head == TB_SIMULATOR_NONE)
        stream->head = message;
    else
        m->messages[stream->tail].next = message;
    stream->tail = message;
    if (!stream->busy)
        tb_simulator_push(m, TB_SIMULATOR_NEXT, 2 * index,
                          tb_simulator_later(m->messages[message].ready, stream->free));
    stream->busy = true;
}

uint64_t tb_simulator_parts(const struct tb_cost_table *table, uint64_t bytes)
{
    uint64_t part = part_bytes(bytes);
    return bytes <= table->head->constants.short_bytes ? 1 : (bytes + part - 1) / part;
}

/* A short message comes to the first wire. */
static void short_come(struct tb_simulator *m, uint32_t step, uint64_t bytes, bool in_turn, uint64_t ready)
{
    const struct tb_simulator_step *f = &m->steps[step];
    uint32_t part = part_new(m, step, f->partner);
    if (part == TB_SIMULATOR_NONE)
        return;
    m->parts[part].length = bytes;
    m->parts[part].is_short = true;
    m->parts[part].in_turn = in_turn;
    /* Of a rank that has its host for itself messages come to the port in this order anyway. */
    if (in_turn || m->hosts[m->host_of[f->rank]].ranks == 1) {
        tb_simulator_part_comes(m, part, ready);
    } else {
        m->streams[f->stream].short_busy = true;
        tb_simulator_push(m, TB_SIMULATOR_PART, part, ready);
    }
}

/* A short message waits for those before it. */
static void short_wait(struct tb_simulator *m, uint32_t step, uint64_t bytes, uint64_t ready, uint64_t until)
{
    struct tb_simulator_stream *stream = &m->streams[m->steps[step].stream];
    uint32_t index = tb_simulator_message_new(m);
    if (index == TB_SIMULATOR_NONE)
        return;
    m->messages[index] = (struct tb_simulator_message){
        .bytes = bytes, .ready = ready, .until = until, .step = step, .next = TB_SIMULATOR_NONE};
    if (stream->short_head == TB_SIMULATOR_NONE)
        stream->short_head = index;
    else
        m->messages[stream->short_tail].next = index;
    stream->short_tail = index;
    if (!stream->short_busy)
        short_go_on(m, m->steps[step].stream, stream->short_free);
}

/* The socket takes the next one, with which its sender is through then. */
static void short_next(struct tb_simulator *m, uint32_t index, uint64_t now)
{
    struct tb_simulator_stream *stream = &m->streams[index];
    struct tb_simulator_message message = m->messages[stream->short_head];
    tb_simulator_message_free(m, stream->short_head);
    stream->short_head = message.next;
    tb_simulator_done(m, message.step, tb_simulator_later(message.until, now));
    short_come(m, message.step, message.bytes, true, now);
}

void tb_simulator_next(struct tb_simulator *m, uint32_t index, uint64_t now)
{
    if (index % 2 == 0)
        long_next(m, index / 2, now);
    else
        short_next(m, index / 2, now);
}

/* The rank gives a short message away. */
static void short_leave(struct tb_simulator *m, uint32_t step, uint64_t bytes, uint64_t now)
{
    const struct tb_simulator_step *f = &m->steps[step];
    const struct tb_simulator_stream *stream = &m->streams[f->stream];
    uint64_t own = tb_simulator_send_time(m, f->path, bytes), end = tb_simulator_work(m, f->rank, now, own, 0);
    uint64_t ready = end - own + m->paths[f->path].send_none;
    if (stream->short_busy || stream->short_free > ready) {
        short_wait(m, step, bytes, ready, end);
        return;
    }
    tb_simulator_done(m, step, end);
    short_come(m, step, bytes, false, ready);
}

/* The rank gives it away. */
static void message_leave(struct tb_simulator *m, uint32_t index, uint64_t now)
{
    struct tb_simulator_message *message = &m->messages[index];
    uint32_t step = message->step;
    const struct tb_simulator_step *f = &m->steps[step];
    uint64_t bytes = message->bytes;
    if (bytes <= m->constants->short_bytes) {
        tb_simulator_message_free(m, index);
        short_leave(m, step, bytes, now);
        return;
    }
    uint64_t own = tb_simulator_send_time(m, f->path, bytes), end = tb_simulator_work(m, f->rank, now, own, 0);
    message->until = end;
    message->ready = end - own + m->paths[f->path].send_none;
    stream_add(m, f->stream, index);
}

void tb_simulator_send(struct tb_simulator *m, uint32_t step, uint32_t item, uint64_t bytes, uint64_t now)
{
    const struct tb_simulator_step *f = &m->steps[step];
    const struct tb_simulator_path *path = &m->paths[f->path];
    if (bytes <= ASK_ABOVE && bytes <= m->constants->short_bytes) {
        short_leave(m, step, bytes, now);
        return;
    }
    uint32_t index = tb_simulator_message_new(m);
    if (index == TB_SIMULATOR_NONE)
        return;
    m->messages[index] = (struct tb_simulator_message){
        .bytes = bytes, .left = bytes, .step = step, .item = item, .partner = f->partner, .next = TB_SIMULATOR_NONE};
    if (bytes <= ASK_ABOVE) {
        message_leave(m, index, now);
        return;
    }
    uint64_t asked = tb_simulator_work(m, f->rank, now, path->send_none, 0);
    tb_simulator_push(m, TB_SIMULATOR_ASK, index, tb_cost_add(asked, path->latency));
}

/* ---- asking ------------------------------------------------------------------------------------------------------ */

static void message_allow(struct tb_simulator *m, uint32_t index, uint64_t now)
{
    const struct tb_simulator_path *path = &m->paths[m->steps[m->messages[index].step].path];
    tb_simulator_push(m, TB_SIMULATOR_ANSWER, index, tb_cost_add(now, path->latency));
}

void tb_simulator_ask(struct tb_simulator *m, uint32_t index, uint64_t now)
{
    struct tb_simulator_message *message = &m->messages[index];
    struct tb_simulator_step *to = &m->steps[message->partner];
    if (to->posted > message->item) {
        message_allow(m, index, now);
        return;
    }
    message->next = TB_SIMULATOR_NONE;
    uint32_t *last = &to->askers;
    while (*last != TB_SIMULATOR_NONE)
        last = &m->messages[*last].next;
    *last = index;
}

void tb_simulator_posted(struct tb_simulator *m, uint32_t step, uint64_t now)
{
    struct tb_simulator_step *f = &m->steps[step];
    while (f->askers != TB_SIMULATOR_NONE && m->messages[f->askers].item < f->posted) {
        uint32_t index = f->askers;
        f->askers = m->messages[index].next;
        message_allow(m, index, now);
    }
}

void tb_simulator_answer(struct tb_simulator *m, uint32_t message, uint64_t now)
{
    message_leave(m, message, now);
}
