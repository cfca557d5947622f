#include "collectives/levels_fit.h"

#define FEW_PARTS    8u  /* that are told directly where nothing is known */
#define NARROW_LOOKS 4u  /* parts to which ways are looked at, of narrow stages, */
#define WIDE_LOOKS   64u /* and of wide ones */
#define UNLIKE_PART  4u  /* ways that differ by more than this part are unlike */
#define LATENCY_MOST 16u /* of the postal model, in gaps */

/* ---- times ------------------------------------------------------------------------------------------------------- */

static uint64_t times(uint64_t time, uint64_t count)
{
    uint64_t all;
    return __builtin_mul_overflow(time, count, &all) ? TB_COST_NEVER : all;
}

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* What one message of some length costs in a stage. */
struct message {
    uint64_t count;  /* of them */
    uint64_t gap;    /* that a part needs for each that it sends, or combines, whoever it is for */
    uint64_t arrive; /* until another part has it */
    uint64_t period; /* the next one between the same two parts is so much later at least */
    uint64_t come;   /* until the last one has come to the stage */
    bool mixed;      /* what leaves for several parts at the same time comes to all of them when the last one does */
};

static struct message message_of(const struct tb_stage_cost *c, const struct tb_fit_pieces *p, uint32_t join)
{
    uint64_t bytes = times(p->bytes, join), send = tb_cost_at(&c->ends->send, bytes);
    uint64_t receive = tb_cost_at(&c->ends->receive, bytes), wire = tb_rate_time(bytes, c->rate);
    uint64_t combine = c->reduce != NULL ? tb_cost_at(c->reduce, bytes) : 0;
    struct message m = {.count = (p->count + join - 1) / join, .mixed = c->mixed};
    m.gap = later(later(send, tb_rate_time(bytes, c->shared)), c->reduce != NULL ? tb_cost_add(receive, combine) : 0);
    m.gap = m.gap > 0 ? m.gap : 1;
    m.arrive = tb_cost_add(tb_cost_add(send, wire), tb_cost_add(c->latency, tb_cost_add(receive, combine)));
    m.arrive = later(m.arrive, m.gap);
    m.period = later(wire, receive);
    m.come = tb_rate_time(times(p->bytes, p->count), c->come);
    return m;
}

/* All messages, if the first is everywhere after `first`, and a part has as many children at most. The last one is so
 * much later than it comes to the stage, too. */
static uint64_t all_messages(const struct message *m, uint64_t first, uint64_t children)
{
    uint64_t rest = times(later(times(m->gap, children), m->period), m->count - 1);
    return tb_cost_add(first, later(rest, m->come));
}

/* Trees in which each part has up to `fan` children with as many parts behind them. */
static uint64_t even_time(const struct message *m, uint32_t parts, uint32_t fan)
{
    uint64_t first = 0;
    uint32_t most = parts - 1 < fan ? parts - 1 : fan;
    for (uint32_t rest = parts - 1; rest > 0; rest = (rest + fan - 1) / fan - 1) {
        uint32_t children = rest < fan ? rest : fan;
        first = tb_cost_add(first, tb_cost_add(m->arrive, times(m->gap, children - 1)));
    }
    return all_messages(m, first, most);
}

static uint32_t rounds_of(uint32_t parts)
{
    return parts > 1 ? 32 - (uint32_t)__builtin_clz(parts - 1) : 0;
}

/* One message along a binomial tree. The first child of the root has what is beyond a power of two behind it, the
 * second half of that power. */
static uint64_t binomial_first(const struct message *m, uint32_t parts)
{
    uint32_t rounds = rounds_of(parts);
    if (m->mixed)
        return tb_cost_add(times(m->arrive, rounds), times(m->gap, (uint64_t)rounds * (rounds - 1) / 2));
    uint64_t before = 0, last = 0;
    while (parts > 1) {
        uint32_t power = 31 - (uint32_t)__builtin_clz(parts - 1);
        if (power > 0)
            last = later(last, tb_cost_add(before, tb_cost_add(m->gap, times(m->arrive, power))));
        before = tb_cost_add(before, m->arrive);
        parts -= 1u << power;
    }
    return later(last, before);
}

/* The same along the postal model's tree; *children of its root. */
static uint64_t postal_first(const struct message *m, uint64_t latency, uint32_t parts, uint32_t *children)
{
    uint32_t behind, gaps = tb_tree_postal(latency, parts, children, &behind);
    if (!m->mixed) {
        /* What a latency is longer than that is still to be waited for, on each level of the tree. */
        uint64_t told = times(m->gap, latency), more = m->arrive > told ? m->arrive - told : 0;
        return tb_cost_add(times(m->gap, gaps), times(more, gaps / latency));
    }
    uint64_t first = 0;
    for (uint32_t count = *children; count > 0;) {
        first = tb_cost_add(first, tb_cost_add(m->arrive, times(m->gap, count - 1)));
        if (behind > 1)
            tb_tree_postal(latency, behind, &count, &behind);
        else
            count = 0;
    }
    return first;
}

static void better(struct tb_stage_fit *best, enum tb_level_tree tree, uint32_t argument, uint32_t join, uint64_t time)
{
    if (time < best->time)
        *best = (struct tb_stage_fit){tree, argument, join, time};
}

/* Of trees that take as long the first is taken: with the fewest to wait for on the way. */
static void trees_compare(struct tb_stage_fit *best, const struct message *m, uint32_t parts, uint32_t join)
{
    static const uint32_t fans[] = {2, 3, 4, 8};
    uint32_t rounds = rounds_of(parts);
    if (parts <= TB_LEVEL_FLAT_MOST)
        better(best, TB_LEVEL_FLAT, 0, join,
               all_messages(m, tb_cost_add(m->arrive, times(m->gap, parts - 2)), parts - 1));
    better(best, TB_LEVEL_BINOMIAL, 0, join, all_messages(m, binomial_first(m, parts), rounds));
    for (uint64_t latency = m->arrive / m->gap, end = latency + 1; latency <= end && parts > 3; latency++) {
        uint32_t children, gaps = (uint32_t)(latency < LATENCY_MOST ? latency : LATENCY_MOST);
        if (gaps < 2)
            continue;
        uint64_t first = postal_first(m, gaps, parts, &children);
        better(best, TB_LEVEL_POSTAL, gaps, join, all_messages(m, first, children));
        if (gaps == LATENCY_MOST)
            break;
    }
    for (uint32_t i = 0; i < sizeof fans / sizeof fans[0] && fans[i] < parts; i++)
        better(best, TB_LEVEL_EVEN, fans[i], join, even_time(m, parts, fans[i]));
    better(best, TB_LEVEL_CHAIN, 0, join, all_messages(m, times(m->arrive, parts - 1), 1));
}

struct tb_stage_fit tb_fit_find(const struct tb_stage_cost *cost, const struct tb_fit_pieces *pieces)
{
    struct tb_stage_fit best = {.tree = cost->parts <= FEW_PARTS ? TB_LEVEL_FLAT : TB_LEVEL_BINOMIAL, .join = 1};
    if (cost->ends == NULL || cost->parts < 2)
        return best;
    best.time = TB_COST_NEVER;
    for (uint32_t join = 1; join <= pieces->join && (join == 1 || join <= pieces->count); join *= 2) {
        const struct message m = message_of(cost, pieces, join);
        trees_compare(&best, &m, cost->parts, join);
    }
    return best;
}

/* ---- lengths ----------------------------------------------------------------------------------------------------- */

#define FIT_JOIN    4u  /* pieces that may go as one message, */
#define FIT_COUNTED 32u /* where there are so many */

struct tb_fit_pieces tb_fit_pieces(const struct tb_collective *c)
{
    struct tb_fit_pieces p = {.count = tb_argument_count(c->argument), .bytes = tb_argument_piece(c->argument)};
    uint64_t bytes = c->elements * c->element_bytes;
    if (p.count == 0) { /* it is said by a user */
        p.count = tb_pieces(c);
        p.bytes = p.bytes > 0 && p.bytes < bytes ? p.bytes : bytes;
    }
    p.join = p.count >= FIT_COUNTED ? FIT_JOIN : 1;
    p.join = tb_argument_wide(c->argument) > p.join ? tb_argument_wide(c->argument) : p.join;
    p.join = tb_argument_narrow(c->argument) > p.join ? tb_argument_narrow(c->argument) : p.join;
    return p;
}

/* ---- costs ------------------------------------------------------------------------------------------------------- */

static uint64_t slower(uint64_t a, uint64_t b)
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

/* The slowest wire that all share which a host sends to other parts of a place: its port, and uplinks inside of it. */
static void shared_find(struct tb_stage_cost *cost, const struct tb_group_shape *s, uint32_t host, uint32_t place)
{
    const struct tb_cost_table *t = s->table;
    uint32_t at = s->hosts[host].place, port = t->kinds[s->hosts[host].kind].port;
    port = port != TB_COST_NONE ? port : t->places[s->places[at].place].port;
    uint64_t first = port < t->head->wire_count ? t->wires[port].bandwidth : 0, rate = first;
    for (; at != TB_PLACE_NONE && at != place; at = s->places[at].parent) {
        uint32_t up = t->places[s->places[at].place].up;
        if (up < t->head->wire_count)
            rate = slower(rate, t->wires[up].bandwidth);
    }
    cost->shared = rate;
    cost->mixed = rate != first;
}

static void cost_of_way(struct tb_stage_cost *cost, const struct tb_cost_table *t, const struct tb_way_brief *way)
{
    cost->ends = &t->head->constants.ends[way->agents > 0 ? TB_ENDS_AGENTS : TB_ENDS_TCP];
    cost->latency = later(cost->latency, way->latency);
    cost->rate = slower(cost->rate, way->bandwidth);
    if (way->agents > 0)
        cost->shared = slower(cost->shared, t->wires[t->head->constants.agent].bandwidth);
    cost->looks++;
}

static bool differ(uint64_t a, uint64_t b)
{
    return a > b ? a - b > b / UNLIKE_PART : b - a > a / UNLIKE_PART;
}

/* Ways between who stands for a stage and some of its other parts, all of few; the direction is that of the data. */
static void ways_look(struct tb_stage_cost *cost, const struct tb_levels *l, const struct tb_stage *s)
{
    const struct tb_group_shape *shape = l->call->shape;
    const struct tb_spot root = tb_rank_spot(shape, s->parts[s->root].rank);
    uint32_t most = s->wide ? WIDE_LOOKS : NARROW_LOOKS, others = s->count - 1;
    uint32_t looks = others < most ? others : most;
    struct tb_way_brief first = {.latency = 0};
    for (uint32_t i = 0; i < looks; i++) {
        uint32_t part = (s->root + 1 + (uint32_t)((uint64_t)others * i / looks)) % s->count;
        const struct tb_spot other = tb_rank_spot(shape, s->parts[part].rank);
        bool up = l->call->operation == TB_OPERATION_REDUCE;
        struct tb_way_brief way = tb_cost_brief(shape->table, up ? &other : &root, up ? &root : &other);
        cost_of_way(cost, shape->table, &way);
        first = i == 0 ? way : first;
        cost->unlike = cost->unlike || differ(first.latency, way.latency) || differ(first.bandwidth, way.bandwidth);
    }
}

/* Data comes to a stage from the root, past other places perhaps, over several links at once where trees are packed. */
static void come_look(struct tb_stage_cost *cost, const struct tb_levels *l, const struct tb_stage *s,
                      const struct tb_level_kinds *k)
{
    const struct tb_group_shape *shape = l->call->shape;
    uint32_t from = tb_group_shape_host(shape, l->root);
    uint32_t to = tb_group_shape_host(shape, s->parts[s->root].rank);
    if (from == to)
        return;
    const struct tb_spot begin = tb_group_shape_spot(shape, from), end = tb_group_shape_spot(shape, to);
    struct tb_way_brief way = tb_cost_brief(shape->table, &begin, &end);
    cost->come = times(way.bandwidth, tb_levels_packed(l, k) ? l->parts - 1 : 1);
    cost->looks++;
}

struct tb_stage_cost tb_stage_cost(const struct tb_levels *l, const struct tb_stage *s, const struct tb_level_kinds *k)
{
    const struct tb_collective *c = l->call;
    struct tb_stage_cost cost = {.parts = s->count};
    if (!tb_costs_known(c))
        return cost;
    const struct tb_cost_constants *constants = &c->shape->table->head->constants;
    cost.reduce = tb_operation_reduces(c->operation) ? &constants->reduce : NULL;
    if (s->place == TB_PLACE_NONE) {
        cost.latency = constants->shm_latency;
        cost.ends = &constants->ends[TB_ENDS_SHM];
    } else {
        shared_find(&cost, c->shape, tb_group_shape_host(c->shape, s->parts[s->root].rank), s->place);
        ways_look(&cost, l, s);
    }
    come_look(&cost, l, s, k);
    return cost;
}

/* ---- places ------------------------------------------------------------------------------------------------------ */

/* Two hosts of a place, which are in different parts of it; how many parts it has. */
static uint32_t place_parts(const struct tb_group_shape *s, uint32_t place, uint32_t *two)
{
    const struct tb_shape_place *p = &s->places[place];
    uint32_t children = 0, inside = 0;
    for (uint32_t q = place + 1; q < p->end; q = s->places[q].end, children++) {
        inside += s->places[q].hosts;
        if (children < 2)
            two[children] = s->order[s->places[q].host];
    }
    uint32_t own = p->hosts - inside, found = children < 2 ? children : 2;
    for (uint32_t i = p->host; i < p->host + p->hosts && found < 2 && own > 0; i++)
        if (s->hosts[s->order[i]].place == place)
            two[found++] = s->order[i];
    return children + own;
}

uint64_t tb_place_time(const struct tb_collective *c, uint32_t place, const struct tb_fit_pieces *pieces,
                       uint32_t *looks)
{
    const struct tb_group_shape *s = c->shape;
    uint32_t two[2] = {0};
    struct tb_stage_cost cost = {.parts = place_parts(s, place, two)};
    uint64_t longest = 0;
    for (uint32_t q = place + 1; q < s->places[place].end; q = s->places[q].end)
        if (s->places[q].alike == q)
            longest = later(longest, tb_place_time(c, q, pieces, looks));
    if (cost.parts < 2)
        return longest;
    const struct tb_spot from = tb_group_shape_spot(s, two[0]), to = tb_group_shape_spot(s, two[1]);
    struct tb_way_brief way = tb_cost_brief(s->table, &from, &to);
    shared_find(&cost, s, two[0], place);
    cost.reduce = tb_operation_reduces(c->operation) ? &s->table->head->constants.reduce : NULL;
    cost_of_way(&cost, s->table, &way);
    *looks += cost.looks;
    return tb_cost_add(longest, tb_fit_find(&cost, pieces).time);
}
