#include "planner/traffic.h"
#include "planner/driver_cost.h"
#include "planner/item_bytes.h"
#include "planner/simulator.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EVENTS_MOST (1ull << 26) /* of the simulation */
#define SPAN_BITS   32u          /* of a place's depth, in the number that levels are sorted by */

/* What one step sends, or receives. */
struct move {
    uint32_t from, to, step;
    uint64_t messages, bytes;
    uint64_t time; /* when the first of it begins, or is received */
    uint64_t last; /* when the last of it is done */
};

struct work {
    struct tb_traffic *traffic;
    const struct tb_group_shape *shape;
    struct tb_item_data data; /* that messages are counted for */
    struct tb_program **programs;
    uint32_t made;
    size_t steps;
    struct tb_step_times *times;
    struct move *sends, *receives;
    size_t send_count, receive_count, meeting_count, cast_count;
};

static int no_memory(void)
{
    return tb_error(TB_ERR_MEMORY, "no memory to show who sends what to whom");
}

static uint64_t sooner(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* ---- programs and times ------------------------------------------------------------------------------------------ */

static int programs_make(struct work *w, const struct tb_algorithm *algorithm, const struct tb_collective *call)
{
    struct tb_collective c = *call;
    if (c.size > TB_TRAFFIC_RANKS)
        return tb_error(TB_ERR_LIMIT, "who sends what to whom is shown of at most %u ranks", TB_TRAFFIC_RANKS);
    w->programs = calloc(c.size, sizeof *w->programs);
    if (w->programs == NULL)
        return no_memory();
    for (c.rank = 0; c.rank < c.size; c.rank++) {
        int error = algorithm->make(&c, &w->programs[c.rank]);
        if (error != TB_OK)
            return error;
        w->made++;
        w->steps += w->programs[c.rank]->step_count;
        if (w->steps > TB_TRAFFIC_STEPS)
            return tb_error(TB_ERR_LIMIT,
                            "%s on %u ranks has more than %u steps: too many to show who sends what to "
                            "whom",
                            algorithm->name, c.size, TB_TRAFFIC_STEPS);
    }
    return TB_OK;
}

/* Without times if that would take too long. */
static int programs_simulate(struct work *w, const struct tb_collective *call)
{
    struct tb_traffic *t = w->traffic;
    struct tb_item_data data = tb_item_data_of(call);
    struct tb_simulator *simulator;
    struct tb_ways ways;
    int error = tb_simulator_open(&simulator);
    if (error != TB_OK)
        return error;
    error = tb_ways_open(&ways, w->shape->table, w->shape);
    if (error == TB_OK) {
        struct tb_simulation run = {.programs = w->programs,
                                    .ways = &ways,
                                    .bytes = data.bytes,
                                    .blocks = data.blocks,
                                    .limit = EVENTS_MOST,
                                    .ends = t->ends,
                                    .times = w->times};
        error = tb_simulate(simulator, &run);
        t->time = error == TB_OK ? run.end : TB_COST_NEVER;
        tb_ways_close(&ways);
    }
    tb_simulator_close(simulator);
    if (error != TB_ERR_LIMIT && error != TB_ERR_MISMATCH)
        return error;
    memset(w->times, 0xff, w->steps * sizeof *w->times);
    memset(t->ends, 0xff, w->shape->size * sizeof *t->ends);
    return TB_OK;
}

/* ---- what each step moves ---------------------------------------------------------------------------------------- */

/* Items without data go nowhere, unless they are meant to be empty. */
static struct move move_of(const struct work *w, const struct tb_program *p, const struct tb_step *s)
{
    struct move m = {.step = (uint32_t)(s - p->steps)};
    for (uint32_t i = 0; i < s->items; i++) {
        uint64_t bytes = tb_item_bytes(&w->data, p, s, i);
        if (bytes == 0 && s->slice.count > 0 && !s->upto)
            continue;
        m.messages++;
        m.bytes = tb_cost_add(m.bytes, bytes);
    }
    return m;
}

/* What a rank gives or gets in a composite step. */
static uint64_t slice_total(const struct work *w, const struct tb_program *p, const struct tb_step *s,
                            const struct tb_slice *slice)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < s->items; i++)
        total = tb_cost_add(total, tb_slice_bytes(&w->data, p, s, slice, i));
    return total;
}

static void meeting_note(struct work *w, uint32_t rank, const struct tb_step *s, const struct tb_step_times *times)
{
    const struct tb_program *p = w->programs[rank];
    w->traffic->meetings[w->meeting_count++] =
        (struct tb_traffic_meeting){.host = tb_group_shape_host(w->shape, rank),
                                    .first = s->member_count > 0 ? p->lists[s->members] : 0,
                                    .edge = s->edge,
                                    .root = s->peer,
                                    .members = s->member_count > 0 ? s->member_count : w->shape->size,
                                    .items = s->items,
                                    .composite = (enum tb_composite)s->contract.composite,
                                    .bytes = later(slice_total(w, p, s, &s->slice), slice_total(w, p, s, &s->other)),
                                    .begin = times->begin,
                                    .done = times->done};
}

/* A member's part of one: what it sends itself, and what it gets of the others. */
static void cast_note(struct work *w, uint32_t rank, const struct tb_step *s, const struct tb_step_times *times)
{
    const struct tb_program *p = w->programs[rank];
    enum tb_composite composite = (enum tb_composite)s->contract.composite;
    bool rooted = tb_composite_rooted(composite), gives = !rooted || s->peer == rank;
    uint64_t given = slice_total(w, p, s, &s->slice), got = slice_total(w, p, s, &s->other);
    uint32_t others = rooted ? (gives ? 0 : 1) : s->member_count - 1;
    w->traffic->casts[w->cast_count++] =
        (struct tb_traffic_cast){.place = tb_group_shape_place(w->shape, rank),
                                 .first = p->lists[s->members],
                                 .edge = s->edge,
                                 .root = s->peer,
                                 .members = s->member_count,
                                 .items = s->items,
                                 .composite = composite,
                                 .sends = gives ? s->items : 0,
                                 .sent_bytes = given,
                                 .receives = (uint64_t)s->items * others,
                                 .received_bytes = rooted || got < given ? got : got - given,
                                 .begin = times->begin,
                                 .done = times->done};
}

static void step_note(struct work *w, uint32_t rank, const struct tb_step *s, const struct tb_step_times *times)
{
    const struct tb_program *p = w->programs[rank];
    uint64_t *first = &w->traffic->firsts[rank];
    if (s->kind == TB_STEP_SEND || s->kind == TB_STEP_RECEIVE) {
        bool sends = s->kind == TB_STEP_SEND;
        struct move m = move_of(w, p, s);
        m.from = sends ? rank : s->peer;
        m.to = sends ? s->peer : rank;
        m.time = sends ? times->begin : times->done;
        m.last = times->last;
        if (m.messages == 0)
            return;
        if (sends)
            w->sends[w->send_count++] = m;
        else
            w->receives[w->receive_count++] = m;
        *first = sends ? *first : sooner(*first, m.time);
    } else if (s->kind == TB_STEP_COMPOSITE) {
        bool cast = tb_driver_costs[s->contract.driver].wires;
        if (s->other.count > 0 || (cast ? s->peer != rank : s->contract.composite == TB_COMPOSITE_BARRIER))
            *first = sooner(*first, times->done);
        if (cast)
            cast_note(w, rank, s, times);
        else
            meeting_note(w, rank, s, times);
    }
}

static int steps_note(struct work *w)
{
    size_t counts[TB_STEP_BIND + 1] = {0};
    for (uint32_t rank = 0; rank < w->shape->size; rank++)
        for (uint32_t i = 0; i < w->programs[rank]->step_count; i++)
            counts[w->programs[rank]->steps[i].kind]++;
    w->sends = calloc(counts[TB_STEP_SEND] + 1, sizeof *w->sends);
    w->receives = calloc(counts[TB_STEP_RECEIVE] + 1, sizeof *w->receives);
    w->traffic->meetings = calloc(counts[TB_STEP_COMPOSITE] + 1, sizeof *w->traffic->meetings);
    w->traffic->casts = calloc(counts[TB_STEP_COMPOSITE] + 1, sizeof *w->traffic->casts);
    if (w->sends == NULL || w->receives == NULL || w->traffic->meetings == NULL || w->traffic->casts == NULL)
        return no_memory();
    const struct tb_step_times *times = w->times;
    for (uint32_t rank = 0; rank < w->shape->size; rank++)
        for (uint32_t i = 0; i < w->programs[rank]->step_count; i++)
            step_note(w, rank, &w->programs[rank]->steps[i], times++);
    return TB_OK;
}

/* ---- levels ------------------------------------------------------------------------------------------------------ */

/* The part of a place that a rank is in: one of its inner places, or, of its own hosts, the place itself. */
static uint32_t part_of(const struct tb_group_shape *s, uint32_t rank, uint32_t place)
{
    uint32_t part = tb_group_shape_at(s, rank, s->places[place].depth + 1u);
    return part != TB_PLACE_NONE ? part : place;
}

/* What a message crosses, as a number that is smaller for what is wider. */
static uint32_t span_of(const struct tb_group_shape *s, uint32_t from, uint32_t to)
{
    uint32_t place = tb_group_shape_meet(s, from, to);
    if (place == TB_PLACE_NONE)
        return TB_SPAN_INSIDE * SPAN_BITS;
    uint32_t one = part_of(s, from, place), other = part_of(s, to, place);
    if (one == place && other == place)
        return TB_SPAN_HOSTS * SPAN_BITS;
    bool sites = s->places[one].level == TB_LEVEL_SITE || s->places[other].level == TB_LEVEL_SITE;
    if (sites && s->places[place].level == TB_LEVEL_WORLD)
        return TB_SPAN_SITES * SPAN_BITS;
    return TB_SPAN_CLUSTERS * SPAN_BITS + s->places[place].depth;
}

/* Flows have spans in the place of levels until they are sorted. */
static void levels_fill(struct tb_traffic *t)
{
    uint32_t span = UINT32_MAX;
    for (uint32_t i = 0; i < t->flow_count; i++) {
        struct tb_flow_row *f = &t->flows[i];
        if (f->level != span) {
            span = f->level;
            t->levels[t->level_count++] = (struct tb_traffic_level){
                .kind = (enum tb_span_kind)(span / SPAN_BITS), .depth = span % SPAN_BITS, .flow = i};
        }
        struct tb_traffic_level *level = &t->levels[t->level_count - 1];
        f->level = t->level_count - 1;
        level->flows++;
        level->messages += f->messages;
        level->bytes = tb_cost_add(level->bytes, f->bytes);
    }
}

/* ---- flows ------------------------------------------------------------------------------------------------------- */

static int compare(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static int move_compare(const void *a, const void *b)
{
    const struct move *one = a, *other = b;
    int order = compare((uint64_t)one->from << 32 | one->to, (uint64_t)other->from << 32 | other->to);
    return order != 0 ? order : compare(one->time, other->time);
}

/* The order in which they leave; of those at the same time, as they stand in the programs. `level` is a step here. */
static int begin_compare(const void *a, const void *b)
{
    const struct tb_flow_row *one = a, *other = b;
    int order = compare(one->begin, other->begin);
    if (order == 0)
        order = compare(one->level, other->level);
    return order != 0 ? order : compare((uint64_t)one->from << 32 | one->to, (uint64_t)other->from << 32 | other->to);
}

static int flow_compare(const void *a, const void *b)
{
    const struct tb_flow_row *one = a, *other = b;
    int order = compare(one->level, other->level);
    if (order == 0)
        order = compare(one->from, other->from);
    return order != 0 ? order : compare(one->order, other->order);
}

/* When what a flow sends is there. `k`: the first receive of it, if there is one. */
static void receives_join(const struct work *w, size_t k, struct tb_flow_row *flow)
{
    for (size_t i = k; i < w->receive_count && w->receives[i].from == flow->from && w->receives[i].to == flow->to;
         i++) {
        flow->there = sooner(flow->there, w->receives[i].time);
        flow->last = later(flow->last, w->receives[i].last);
    }
    flow->last = flow->there == TB_COST_NEVER ? TB_COST_NEVER : flow->last;
}

/* One for every two ranks of which one sends to the other. */
static int flows_join(struct work *w)
{
    struct tb_traffic *t = w->traffic;
    size_t k = 0;
    t->flows = calloc(w->send_count + 1, sizeof *t->flows);
    if (t->flows == NULL)
        return no_memory();
    qsort(w->sends, w->send_count, sizeof *w->sends, move_compare);
    qsort(w->receives, w->receive_count, sizeof *w->receives, move_compare);
    for (size_t i = 0; i < w->send_count; i++) {
        const struct move *m = &w->sends[i];
        struct tb_flow_row *last = t->flow_count > 0 ? &t->flows[t->flow_count - 1] : NULL;
        if (last == NULL || last->from != m->from || last->to != m->to) {
            last = &t->flows[t->flow_count++];
            *last = (struct tb_flow_row){
                .from = m->from, .to = m->to, .level = m->step, .begin = m->time, .there = TB_COST_NEVER};
            while (k < w->receive_count &&
                   ((uint64_t)w->receives[k].from << 32 | w->receives[k].to) < ((uint64_t)m->from << 32 | m->to))
                k++;
            receives_join(w, k, last);
        }
        last->sent = later(last->sent, m->last);
        last->level = m->time == last->begin && m->step < last->level ? m->step : last->level;
        last->messages += m->messages;
        last->bytes = tb_cost_add(last->bytes, m->bytes);
    }
    qsort(t->flows, t->flow_count, sizeof *t->flows, begin_compare);
    for (uint32_t i = 0; i < t->flow_count; i++) {
        t->flows[i].order = i;
        t->flows[i].level = span_of(w->shape, t->flows[i].from, t->flows[i].to);
    }
    qsort(t->flows, t->flow_count, sizeof *t->flows, flow_compare);
    return TB_OK;
}

/* ---- places ------------------------------------------------------------------------------------------------------ */

static int pair_compare(const void *a, const void *b)
{
    const struct tb_place_traffic *one = a, *other = b;
    int order = compare(one->level, other->level);
    return order != 0 ? order : compare((uint64_t)one->from << 32 | one->to, (uint64_t)other->from << 32 | other->to);
}

static int pairs_join(struct work *w)
{
    struct tb_traffic *t = w->traffic;
    t->pairs = calloc((size_t)t->flow_count + 1, sizeof *t->pairs);
    if (t->pairs == NULL)
        return no_memory();
    uint32_t count = 0;
    for (uint32_t i = 0; i < t->flow_count; i++) {
        const struct tb_flow_row *f = &t->flows[i];
        if (t->levels[f->level].kind >= TB_SPAN_HOSTS)
            continue;
        uint32_t place = tb_group_shape_meet(w->shape, f->from, f->to);
        t->pairs[count++] = (struct tb_place_traffic){.level = f->level,
                                                      .from = part_of(w->shape, f->from, place),
                                                      .to = part_of(w->shape, f->to, place),
                                                      .messages = f->messages,
                                                      .bytes = f->bytes};
    }
    qsort(t->pairs, count, sizeof *t->pairs, pair_compare);
    for (uint32_t i = 0; i < count; i++) {
        struct tb_place_traffic *last = t->pair_count > 0 ? &t->pairs[t->pair_count - 1] : NULL;
        if (last != NULL && pair_compare(last, &t->pairs[i]) == 0) {
            last->messages += t->pairs[i].messages;
            last->bytes = tb_cost_add(last->bytes, t->pairs[i].bytes);
            continue;
        }
        struct tb_traffic_level *level = &t->levels[t->pairs[i].level];
        level->pair = level->pairs == 0 ? t->pair_count : level->pair;
        level->pairs++;
        t->pairs[t->pair_count++] = t->pairs[i];
    }
    return TB_OK;
}

/* ---- meetings ---------------------------------------------------------------------------------------------------- */

static int meeting_compare(const void *a, const void *b)
{
    const struct tb_traffic_meeting *one = a, *other = b;
    int order = compare((uint64_t)one->host << 32 | one->first, (uint64_t)other->host << 32 | other->first);
    return order != 0 ? order : compare(one->edge, other->edge);
}

/* Of each member's step one. */
static void meetings_join(struct work *w)
{
    struct tb_traffic *t = w->traffic;
    qsort(t->meetings, w->meeting_count, sizeof *t->meetings, meeting_compare);
    for (size_t i = 0; i < w->meeting_count; i++) {
        const struct tb_traffic_meeting *m = &t->meetings[i];
        struct tb_traffic_meeting *last = t->meeting_count > 0 ? &t->meetings[t->meeting_count - 1] : NULL;
        if (last == NULL || meeting_compare(last, m) != 0) {
            t->meetings[t->meeting_count++] = *m;
            continue;
        }
        last->bytes = last->bytes > m->bytes ? last->bytes : m->bytes;
        last->begin = sooner(last->begin, m->begin);
        last->done = sooner(last->done, m->done);
    }
}

static int cast_compare(const void *a, const void *b)
{
    const struct tb_traffic_cast *one = a, *other = b;
    int order = compare((uint64_t)one->place << 32 | one->first, (uint64_t)other->place << 32 | other->first);
    return order != 0 ? order : compare(one->edge, other->edge);
}

/* Likewise, with what all members send and get. */
static void casts_join(struct work *w)
{
    struct tb_traffic *t = w->traffic;
    qsort(t->casts, w->cast_count, sizeof *t->casts, cast_compare);
    for (size_t i = 0; i < w->cast_count; i++) {
        const struct tb_traffic_cast *c = &t->casts[i];
        struct tb_traffic_cast *last = t->cast_count > 0 ? &t->casts[t->cast_count - 1] : NULL;
        if (last == NULL || cast_compare(last, c) != 0) {
            t->casts[t->cast_count++] = *c;
            continue;
        }
        last->sends += c->sends;
        last->sent_bytes = tb_cost_add(last->sent_bytes, c->sent_bytes);
        last->receives += c->receives;
        last->received_bytes = tb_cost_add(last->received_bytes, c->received_bytes);
        last->begin = sooner(last->begin, c->begin);
        last->done = sooner(last->done, c->done);
    }
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static int traffic_fill(struct work *w, const struct tb_algorithm *algorithm, const struct tb_collective *call)
{
    struct tb_traffic *t = w->traffic;
    t->firsts = calloc(call->size, sizeof *t->firsts);
    t->ends = calloc(call->size, sizeof *t->ends);
    t->levels = calloc((size_t)(TB_SPAN_INSIDE + 1) * SPAN_BITS, sizeof *t->levels);
    if (t->firsts == NULL || t->ends == NULL || t->levels == NULL)
        return no_memory();
    memset(t->firsts, 0xff, call->size * sizeof *t->firsts);
    int error = programs_make(w, algorithm, call);
    if (error != TB_OK)
        return error;
    w->times = calloc(w->steps + 1, sizeof *w->times);
    error = w->times != NULL ? programs_simulate(w, call) : no_memory();
    if (error == TB_OK)
        error = steps_note(w);
    if (error == TB_OK)
        error = flows_join(w);
    if (error != TB_OK)
        return error;
    levels_fill(t);
    meetings_join(w);
    casts_join(w);
    return pairs_join(w);
}

int tb_traffic_open(struct tb_traffic *t, const struct tb_algorithm *algorithm, const struct tb_collective *call,
                    uint64_t elements)
{
    struct tb_collective counted = *call;
    counted.elements = elements;
    *t = (struct tb_traffic){.shape = call->shape, .time = TB_COST_NEVER};
    t->up = call->operation == TB_OPERATION_REDUCE || call->operation == TB_OPERATION_GATHER ||
            call->operation == TB_OPERATION_GATHERV;
    struct work w = {.traffic = t, .shape = call->shape, .data = tb_item_data_of(&counted)};
    int error = traffic_fill(&w, algorithm, call);
    for (uint32_t i = 0; i < w.made; i++)
        tb_program_free(w.programs[i]);
    free(w.programs);
    free(w.times);
    free(w.sends);
    free(w.receives);
    return error;
}

void tb_traffic_close(struct tb_traffic *t)
{
    free(t->levels);
    free(t->flows);
    free(t->pairs);
    free(t->meetings);
    free(t->casts);
    free(t->firsts);
    free(t->ends);
    *t = (struct tb_traffic){.shape = NULL};
}

/* "between clusters", and what they are in, as of the first of these messages. */
static void clusters_name(const struct tb_traffic *t, const struct tb_traffic_level *l, char *text)
{
    const struct tb_flow_row *f = &t->flows[l->flow];
    const struct tb_shape_place *places = t->shape->places;
    uint32_t place = tb_group_shape_meet(t->shape, f->from, f->to);
    int length = snprintf(text, TB_TRAFFIC_NAME_BYTES, "between clusters");
    if (places[place].level == TB_LEVEL_SITE)
        snprintf(text + length, TB_TRAFFIC_NAME_BYTES - (size_t)length, " of one site");
    for (; places[place].level == TB_LEVEL_CLUSTER; place = places[place].parent)
        length += snprintf(text + length, TB_TRAFFIC_NAME_BYTES - (size_t)length, " in a cluster");
}

char *tb_traffic_level_name(const struct tb_traffic *t, uint32_t level, char text[TB_TRAFFIC_NAME_BYTES])
{
    const struct tb_traffic_level *l = &t->levels[level];
    switch (l->kind) {
    case TB_SPAN_SITES:
        snprintf(text, TB_TRAFFIC_NAME_BYTES, "between sites");
        break;
    case TB_SPAN_CLUSTERS:
        clusters_name(t, l, text);
        break;
    case TB_SPAN_HOSTS:
        snprintf(text, TB_TRAFFIC_NAME_BYTES, "between hosts%s", t->shape->cluster_count > 1 ? " of one cluster" : "");
        break;
    default:
        snprintf(text, TB_TRAFFIC_NAME_BYTES, "within hosts");
    }
    return text;
}

const char *tb_composite_name(enum tb_composite composite)
{
    static const char *const names[TB_COMPOSITE_COUNT] = {
        [TB_COMPOSITE_BARRIER] = "barrier",
        [TB_COMPOSITE_BCAST] = "bcast",
        [TB_COMPOSITE_REDUCE] = "reduce",
        [TB_COMPOSITE_ALLREDUCE] = "allreduce",
        [TB_COMPOSITE_SCAN] = "scan",
        [TB_COMPOSITE_EXSCAN] = "exscan",
        [TB_COMPOSITE_GATHER] = "gather",
        [TB_COMPOSITE_ALLGATHER] = "allgather",
        [TB_COMPOSITE_SCATTER] = "scatter",
        [TB_COMPOSITE_ALLTOALL] = "alltoall",
        [TB_COMPOSITE_REDUCE_SCATTER] = "reduce_scatter",
    };
    return composite < TB_COMPOSITE_COUNT ? names[composite] : "composite";
}
