/* Who is next where parts wait for a wire. They pass it as they come, which gives each stream as much of it as others
 * if all come in the same way, as from ports of one network. But where of some there may be more, since their answers
 * take longer, or wires before are faster or slower, or some come one part at a time, streams pass one part each in
 * turn. */
#include "planner/simulator_state.h"

/* ---- where ------------------------------------------------------------------------------------------------------- */

/* The wire of a leg of a stream; NULL: there is none. */
static struct tb_simulator_wire *stream_wire(struct tb_simulator *m, const struct tb_simulator_stream *s, uint32_t leg)
{
    uint32_t wire = tb_simulator_leg_wire(&m->legs[m->paths[s->path].first + leg], &s->ends);
    return wire < m->wire_count ? &m->wires[wire] : NULL;
}

/* How a stream comes to the wire of one of its legs. */
struct approach {
    uint32_t stream;
    bool first;  /* it is its first wire, where it has one part at a time */
    bool unlike; /* the slowest wire before it is another one: parts do not come at the pace at which they pass */
};

/* Of the first stream that comes to a wire, while all are looked at. */
static struct approach approach_noted(const struct tb_simulator_wire *w)
{
    uint32_t note = w->last_waiting;
    return (struct approach){note / 4, note % 2 == 1, note / 2 % 2 == 1};
}

static void approach_note(struct tb_simulator_wire *w, const struct approach *a)
{
    w->last_waiting = 4 * a->stream + 2 * a->unlike + a->first;
}

static uint64_t approach_window(const struct tb_simulator *m, const struct approach *a)
{
    return a->first ? 0 : m->paths[m->streams[a->stream].path].window;
}

/* Whether one of two streams would get more of a wire that passes parts as they come. */
static bool approaches_differ(const struct tb_simulator *m, const struct approach *a, const struct approach *b)
{
    return a->unlike || b->unlike || approach_window(m, a) != approach_window(m, b);
}

/* Each wire of a stream gets to know of it. */
static void stream_meet(struct tb_simulator *m, uint32_t stream)
{
    const struct tb_simulator_stream *s = &m->streams[stream];
    uint64_t slowest = UINT64_MAX; /* bit/s, of the wires before */
    for (uint32_t i = 0; i < m->paths[s->path].count && !s->brief; i++) {
        struct tb_simulator_wire *w = stream_wire(m, s, i);
        if (w == NULL)
            continue;
        uint64_t rate = m->table->wires[w->row].bandwidth;
        rate = rate > 0 ? rate : UINT64_MAX;
        const struct approach a = {stream, i == 0, i > 0 && slowest != rate};
        slowest = slowest < rate ? slowest : rate;
        if (w->last_waiting == TB_SIMULATOR_NONE) {
            approach_note(w, &a);
        } else {
            const struct approach noted = approach_noted(w);
            w->in_turns = w->in_turns || approaches_differ(m, &noted, &a);
        }
    }
}

static bool stream_takes_turns(struct tb_simulator *m, const struct tb_simulator_stream *s)
{
    for (uint32_t i = 0; i < m->paths[s->path].count; i++) {
        const struct tb_simulator_wire *w = stream_wire(m, s, i);
        if (w != NULL && w->in_turns)
            return true;
    }
    return false;
}

void tb_simulator_turns(struct tb_simulator *m)
{
    size_t count = 0;
    for (uint32_t i = 0; i < m->stream_count; i++)
        stream_meet(m, i);
    for (uint32_t i = 0; i < m->stream_count; i++)
        if (stream_takes_turns(m, &m->streams[i])) {
            m->streams[i].turns = (uint32_t)count;
            count += m->paths[m->streams[i].path].count;
        }
    m->turns = tb_simulator_room(m, ROOM_TURNS, (count + 1) * sizeof *m->turns);
    for (size_t i = 0; m->turns != NULL && i < count; i++)
        m->turns[i] = (struct tb_simulator_turn){.head = TB_SIMULATOR_NONE};
}

/* ---- waiting ----------------------------------------------------------------------------------------------------- */

/* The turn of a part's stream at the wire of its leg. */
static uint32_t turn_of(const struct tb_simulator *m, const struct tb_simulator_part *p)
{
    const struct tb_simulator_stream *s = &m->streams[p->stream];
    return s->turns + p->leg - m->paths[s->path].first;
}

/* At the end of those that wait; whether it is the first of all. */
static bool turn_add(struct tb_simulator *m, struct tb_simulator_wire *w, uint32_t turn)
{
    bool first = w->waiting == TB_SIMULATOR_NONE;
    m->turns[turn].next = TB_SIMULATOR_NONE;
    if (first)
        w->waiting = turn;
    else
        m->turns[w->last_waiting].next = turn;
    w->last_waiting = turn;
    return first;
}

/* Behind those of its stream, or at the end; whether it is the first of all. */
static bool turn_wait(struct tb_simulator *m, struct tb_simulator_wire *w, uint32_t part)
{
    uint32_t index = turn_of(m, &m->parts[part]);
    struct tb_simulator_turn *turn = &m->turns[index];
    bool alone = turn->head == TB_SIMULATOR_NONE;
    if (!alone)
        m->parts[turn->tail].next = part;
    turn->tail = part;
    if (!alone)
        return false;
    turn->head = part;
    w->streams++;
    w->next_bytes += m->parts[part].length;
    return turn_add(m, w, index);
}

/* The stream of which a part passes stays the first until now, so that whoever has come meanwhile is before it. */
static uint32_t turn_take(struct tb_simulator *m, struct tb_simulator_wire *w)
{
    uint32_t index = w->waiting;
    if (index == w->passing && m->turns[index].next != TB_SIMULATOR_NONE) {
        w->waiting = m->turns[index].next;
        turn_add(m, w, index);
        index = w->waiting;
    }
    struct tb_simulator_turn *turn = &m->turns[index];
    uint32_t part = turn->head;
    turn->head = m->parts[part].next;
    w->next_bytes -= m->parts[part].length;
    if (turn->head != TB_SIMULATOR_NONE) {
        w->next_bytes += m->parts[turn->head].length;
    } else {
        w->waiting = turn->next;
        w->streams--;
    }
    return part;
}

/* Packets of all streams pass between those of a part, so that its last byte does when the others have passed one part
 * each, or as much as it has. */
void tb_simulator_turn_pass(struct tb_simulator *m, uint32_t wire, uint32_t part, uint64_t begin, uint64_t end)
{
    struct tb_simulator_wire *w = &m->wires[wire];
    struct tb_simulator_part *p = &m->parts[part];
    if (!w->in_turns)
        return;
    w->passing = turn_of(m, p);
    uint32_t own = m->turns[w->passing].head;
    uint64_t streams = w->streams, bytes = w->next_bytes;
    if (own != TB_SIMULATOR_NONE) {
        streams--;
        bytes -= m->parts[own].length;
    }
    unsigned __int128 rest = (unsigned __int128)(end - begin) * streams;
    if (p->length > 0 && bytes / p->length < streams)
        rest = (unsigned __int128)(end - begin) * bytes / p->length;
    if (rest > 0)
        p->last = tb_simulator_later(p->last, tb_cost_add(end, rest < TB_COST_NEVER ? (uint64_t)rest : TB_COST_NEVER));
}

void tb_simulator_turn_wait(struct tb_simulator *m, uint32_t wire, uint32_t part)
{
    struct tb_simulator_wire *w = &m->wires[wire];
    bool first = w->waiting == TB_SIMULATOR_NONE;
    m->parts[part].next = TB_SIMULATOR_NONE;
    if (w->in_turns) {
        first = turn_wait(m, w, part);
    } else {
        if (first)
            w->waiting = part;
        else
            m->parts[w->last_waiting].next = part;
        w->last_waiting = part;
    }
    if (first)
        tb_simulator_push(m, TB_SIMULATOR_WIRE, wire, w->free);
}

uint32_t tb_simulator_turn_take(struct tb_simulator *m, uint32_t wire)
{
    struct tb_simulator_wire *w = &m->wires[wire];
    if (w->in_turns)
        return turn_take(m, w);
    uint32_t part = w->waiting;
    w->waiting = m->parts[part].next;
    return part;
}
