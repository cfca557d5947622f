/* Who is next where parts wait for a wire. They pass it as they come, which gives each stream as much of it as others
 * if all come in the same way, as from ports of one network. But where of some there may be more, since their answers
 * take longer, or wires before are faster or slower, or some come one part at a time, streams pass parts in turn.
 *
 * What passes is counted for its stream by the time that it takes, so that one with long parts gets no more than one
 * with short ones. Streams wait in rounds: those for which less is counted than the end of the one that goes on are in
 * it, and the others in the next, whose end is as much later as the longest part took. A stream of which nothing has
 * waited begins with what was counted for the one that passes. */
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

static void sharings_open(struct tb_simulator *m)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < m->wire_count; i++)
        if (m->wires[i].in_turns)
            m->wires[i].sharing = count++;
    m->sharings = tb_simulator_room(m, ROOM_SHARINGS, ((size_t)count + 1) * sizeof *m->sharings);
    const struct tb_simulator_round none = {.head = TB_SIMULATOR_NONE};
    for (uint32_t i = 0; m->sharings != NULL && i < count; i++)
        m->sharings[i] = (struct tb_simulator_sharing){.round = none, .next = none};
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
    sharings_open(m);
}

/* ---- waiting ----------------------------------------------------------------------------------------------------- */

/* The turn of a part's stream at the wire of its leg. */
static uint32_t turn_of(const struct tb_simulator *m, const struct tb_simulator_part *p)
{
    const struct tb_simulator_stream *s = &m->streams[p->stream];
    return s->turns + p->leg - m->paths[s->path].first;
}

/* At the end of its round. */
static void turn_add(struct tb_simulator *m, struct tb_simulator_wire *w, uint32_t index)
{
    struct tb_simulator_sharing *s = &m->sharings[w->sharing];
    struct tb_simulator_turn *turn = &m->turns[index];
    struct tb_simulator_round *round = turn->passed < s->end ? &s->round : &s->next;
    turn->next = TB_SIMULATOR_NONE;
    if (round->streams == 0)
        round->head = index;
    else
        m->turns[round->tail].next = index;
    round->tail = index;
    round->streams++;
    round->passed += turn->passed;
    s->bytes += m->parts[turn->head].length;
    w->waiting = index; /* somebody does */
}

/* Behind those of its stream, or at the end. */
static void turn_wait(struct tb_simulator *m, struct tb_simulator_wire *w, uint32_t part)
{
    uint32_t index = turn_of(m, &m->parts[part]);
    struct tb_simulator_turn *turn = &m->turns[index];
    if (turn->head != TB_SIMULATOR_NONE) {
        m->parts[turn->tail].next = part;
        turn->tail = part;
        return;
    }
    turn->head = turn->tail = part;
    turn->passed = tb_simulator_later(turn->passed, m->sharings[w->sharing].passed);
    turn_add(m, w, index);
}

/* Its stream waits again when it is known how long the part takes. A round begins only now, so that whoever has come
 * meanwhile is in the one before. */
static uint32_t turn_take(struct tb_simulator *m, struct tb_simulator_wire *w)
{
    struct tb_simulator_sharing *s = &m->sharings[w->sharing];
    if (s->round.streams == 0) {
        s->round = s->next;
        s->next = (struct tb_simulator_round){.head = TB_SIMULATOR_NONE};
        s->end = tb_cost_add(s->end, s->longest);
    }
    struct tb_simulator_turn *turn = &m->turns[s->round.head];
    uint32_t part = turn->head;
    turn->head = m->parts[part].next;
    s->round.head = turn->next;
    s->round.streams--;
    s->round.passed -= turn->passed;
    s->bytes -= m->parts[part].length;
    w->waiting = s->round.streams > 0 ? s->round.head : s->next.head;
    return part;
}

/* How long the streams of a round pass parts until so much is counted for each of them. */
static uint64_t round_rest(const struct tb_simulator_round *round, uint64_t passed)
{
    unsigned __int128 all = (unsigned __int128)passed * round->streams;
    unsigned __int128 rest = all > round->passed ? all - round->passed : 0;
    return rest < TB_COST_NEVER ? (uint64_t)rest : TB_COST_NEVER;
}

/* Packets of all streams pass between those of a part, so that its last byte does when as much is counted for the
 * others, or when they have passed what they have. */
static uint64_t turn_rest(const struct tb_simulator_sharing *s, const struct tb_simulator_part *p, uint64_t passed,
                          uint64_t time)
{
    uint64_t rest = tb_cost_add(round_rest(&s->round, passed), passed > s->end ? round_rest(&s->next, passed) : 0);
    if (p->length == 0)
        return 0;
    unsigned __int128 most = (unsigned __int128)time * s->bytes / p->length;
    return rest < most ? rest : (uint64_t)most;
}

void tb_simulator_turn_pass(struct tb_simulator *m, uint32_t wire, uint32_t part, bool waited, uint64_t begin,
                            uint64_t end)
{
    struct tb_simulator_wire *w = &m->wires[wire];
    struct tb_simulator_part *p = &m->parts[part];
    if (!w->in_turns)
        return;
    struct tb_simulator_sharing *s = &m->sharings[w->sharing];
    uint32_t index = turn_of(m, p);
    struct tb_simulator_turn *turn = &m->turns[index];
    uint64_t before = waited ? turn->passed : tb_simulator_later(turn->passed, s->passed);
    uint64_t passed = tb_cost_add(before, end - begin), rest = turn_rest(s, p, passed, end - begin);
    if (rest > 0)
        p->last = tb_simulator_later(p->last, tb_cost_add(end, rest));
    if (!waited && s->round.streams + s->next.streams > 0) /* it has overtaken them */
        return;
    turn->passed = passed;
    s->passed = tb_simulator_later(s->passed, before);
    s->longest = tb_simulator_later(s->longest, end - begin);
    if (s->round.streams + s->next.streams == 0)
        s->end = passed;
    if (turn->head != TB_SIMULATOR_NONE)
        turn_add(m, w, index);
}

void tb_simulator_turn_wait(struct tb_simulator *m, uint32_t wire, uint32_t part)
{
    struct tb_simulator_wire *w = &m->wires[wire];
    bool first = w->waiting == TB_SIMULATOR_NONE;
    m->parts[part].next = TB_SIMULATOR_NONE;
    if (w->in_turns) {
        turn_wait(m, w, part);
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
