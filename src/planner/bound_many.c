#include "planner/bound_many.h"
#include "planner/bound_cut.h"
#include "planner/bound_graph.h"
#include "planner/bound_part.h"
#include "planner/item_bytes.h"

#include <stdlib.h>

#define RANK_LOOK 16u          /* so many ranks are counted in the time of a look at a way */
#define RATE_MOST (1ull << 50) /* bytes a second that count */

/* Of prefixes: how often ranks change between a part and the rest. */
struct tb_bound_changes {
    uint32_t enters, leaves;
};

struct tb_bound_crowd {
    const struct tb_collective *call;
    const struct tb_cost_table *table;
    const struct tb_group_shape *shape;
    struct tb_bound_graph graph;
    struct tb_bound *bound;
    enum tb_bound_reach reach;
    bool rooted;
    uint32_t root;                      /* its host */
    uint64_t bytes, spent;              /* of the message or a block; by ranks on a message at least */
    uint64_t *far;                      /* of each host: from the root or to it; else what its own end takes */
    struct tb_bound_changes *of_hosts;  /* of prefixes; NULL */
    struct tb_bound_changes *of_places; /* of the shape */
    uint8_t *leaks;                     /* of each place of the table: some of what leaves it passes no uplink of it */
    uint64_t *links_out, *links_in;     /* of each place of the table: what all its links pass together */
    uint64_t others_out, others_in;     /* of all that has no link: what the outermost places pass together */
};

static void raise(struct tb_bound_crowd *w, uint64_t time, uint64_t latency, uint32_t host, uint32_t place)
{
    if (time > w->bound->time)
        *w->bound = (struct tb_bound){time, latency, host, place};
}

static uint64_t rates_add(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) || sum > RATE_MOST ? TB_BOUND_UNLIMITED : sum;
}

static uint64_t rate_of(const struct tb_bound_crowd *w, uint32_t wire)
{
    return wire != TB_COST_NONE ? rates_add(tb_bound_wire_rate(w->table, &w->table->wires[wire]), 0)
                                : TB_BOUND_UNLIMITED;
}

/* ---- how far ----------------------------------------------------------------------------------------------------- */

/* All that is as far from a host, or to it, as who is farthest; which is that. */
static uint32_t host_look(struct tb_bound_crowd *w, uint32_t host, bool away)
{
    uint32_t farthest = host;
    uint64_t most = 0;
    tb_bound_graph_walk(&w->graph, host, away);
    for (uint32_t i = 0; i < w->shape->host_count; i++) {
        uint64_t far = tb_bound_graph_time(&w->graph, host, i);
        if (i != host && far != TB_COST_NEVER && far > most) {
            most = far;
            farthest = i;
        }
    }
    if (farthest != host)
        raise(w, tb_cost_add(most, w->spent), tb_cost_add(most, w->spent), TB_BOUND_NONE, TB_BOUND_NONE);
    return farthest;
}

/* Prefixes go from the first rank to all others, and from all others to the last one. Where everyone gets something of
 * everyone, two of those who are farthest from each other are soon found. */
static void paths_look(struct tb_bound_crowd *w)
{
    if (w->rooted) {
        host_look(w, w->root, w->reach == TB_BOUND_REACH_FROM_ROOT);
    } else {
        uint32_t farthest = host_look(w, tb_group_shape_host(w->shape, 0), true);
        if (w->reach == TB_BOUND_REACH_ALL)
            host_look(w, farthest, true);
        else
            host_look(w, tb_group_shape_host(w->shape, w->call->size - 1), false);
    }
    for (uint32_t i = 0; i < w->shape->host_count; i++)
        w->far[i] =
            w->rooted && i != w->root ? tb_bound_graph_time(&w->graph, w->root, i) : tb_bound_graph_end(&w->graph, i);
}

/* ---- what passes wires ------------------------------------------------------------------------------------------- */

/* What must pass between a part and the rest, by one wire. Latencies that some of it may pass before and some behind
 * the wire are left out. */
static void part_look(struct tb_bound_crowd *w, const struct tb_bound_part *p, bool in, uint64_t rate, uint64_t latency,
                      uint32_t host, uint32_t place)
{
    const struct tb_bound_load load = tb_bound_part_load(w->call, w->bytes, p, in);
    if (p->ranks == w->call->size || load.bytes == 0 || rate == TB_BOUND_UNLIMITED)
        return;
    uint64_t far = tb_cost_add(latency, w->spent);
    raise(w, tb_cost_add(tb_bound_bytes_time(load.bytes, rate), far), far, host, place);
}

/* Of the root's host: how far the others are, those who are nearest, or all of them if all get everything, or all of
 * them have to do with each element. */
static uint64_t root_far(const struct tb_bound_crowd *w)
{
    bool all = w->call->operation == TB_OPERATION_BCAST || w->call->operation == TB_OPERATION_REDUCE;
    uint64_t far = all ? 0 : TB_COST_NEVER;
    for (uint32_t i = 0; i < w->shape->host_count; i++)
        if (i != w->root && w->far[i] != TB_COST_NEVER)
            far = (w->far[i] > far) == all ? w->far[i] : far;
    return far != TB_COST_NEVER ? far : 0;
}

/* A host whose port all passes that it sends or gets. What it gets has passed all latencies before that if everybody
 * sends by a port of its own first, which the network of a hub is not. */
static void hosts_look(struct tb_bound_crowd *w)
{
    const struct tb_group_shape *s = w->shape;
    uint64_t around = w->rooted ? root_far(w) : 0;
    for (uint32_t i = 0; i < s->host_count; i++) {
        const struct tb_spot spot = tb_group_shape_spot(s, i);
        bool hub = w->table->places[spot.place].hub != 0;
        if (!tb_bound_graph_is_plain(w->table, &spot))
            continue;
        struct tb_bound_part p = {.ranks = s->hosts[i].rank_count, .root = i == w->root};
        if (w->of_hosts != NULL) {
            p.enters = w->of_hosts[i].enters;
            p.leaves = w->of_hosts[i].leaves;
        }
        uint64_t rate = tb_bound_graph_port_rate(&w->graph, &spot);
        uint64_t far = w->far[i] == TB_COST_NEVER ? 0 : w->rooted && i == w->root ? around : w->far[i];
        part_look(w, &p, false, rate, far, i, TB_BOUND_NONE);
        part_look(w, &p, true, rate, w->graph.bare && !hub ? far : 0, i, TB_BOUND_NONE);
    }
}

/* The rate at which something passes out of a place, or into it, at most. */
static uint64_t place_rate(const struct tb_bound_crowd *w, uint32_t place, bool in)
{
    const struct tb_cost_table *t = w->table;
    const struct tb_cost_place *row = &t->places[place];
    if (w->leaks[place])
        return TB_BOUND_UNLIMITED;
    if (row->up != TB_COST_NONE)
        return rate_of(w, in ? row->down : row->up);
    if (row->level != TB_LEVEL_CLUSTER || !tb_bound_is_outermost(t, place) || tb_bound_has_uplink(t, place))
        return TB_BOUND_UNLIMITED;
    uint32_t site = tb_cost_site_of(t, place);
    const uint64_t *links = in ? w->links_in : w->links_out;
    bool linked = !in && w->graph.linked[place] + 1 >= w->graph.outermost; /* to all others */
    uint64_t rate = rates_add(links[place], linked ? 0 : in ? w->others_in : w->others_out);
    return site != TB_PLACE_NONE && rate != TB_BOUND_UNLIMITED ? rates_add(rate, links[site]) : rate;
}

static void places_look(struct tb_bound_crowd *w)
{
    const struct tb_group_shape *s = w->shape;
    uint32_t root = s->hosts[w->root].place;
    for (uint32_t i = 1; i < s->place_count; i++) {
        const struct tb_shape_place *row = &s->places[i];
        struct tb_bound_part p = {.ranks = row->rank_count, .root = root >= i && root < row->end};
        uint64_t near = TB_COST_NEVER;
        if (w->of_places != NULL) {
            p.enters = w->of_places[i].enters;
            p.leaves = w->of_places[i].leaves;
        }
        for (uint32_t k = row->host; k < row->host + row->hosts; k++)
            near = w->far[s->order[k]] < near ? w->far[s->order[k]] : near;
        bool waits = w->graph.bare && !p.root && near != TB_COST_NEVER;
        part_look(w, &p, false, place_rate(w, row->place, false), 0, TB_BOUND_NONE, i);
        part_look(w, &p, true, place_rate(w, row->place, true), waits ? near : 0, TB_BOUND_NONE, i);
    }
}

/* ---- what is asked for once -------------------------------------------------------------------------------------- */

/* Places that some of their hosts leave by another way than an uplink: gateways of what is around, and who stands
 * elsewhere, too; and sites with sites in them. */
static void leaks_find(struct tb_bound_crowd *w)
{
    const struct tb_cost_table *t = w->table;
    struct tb_spot spot;
    for (uint32_t i = 0; tb_bound_graph_spot(&w->graph, i, &spot); i++) {
        uint32_t gate = t->kinds[spot.kind].gate_of, feet = tb_cost_feet_of(t, &spot);
        for (uint32_t f = 0; f < feet && (feet > 1 || gate != TB_COST_NONE); f++)
            for (uint32_t p = tb_cost_foot_of(t, &spot, f).place; p != TB_PLACE_NONE && p != 0; p = t->places[p].parent)
                if (feet > 1 || (gate < p && p < t->places[gate].end))
                    w->leaks[p] = 1;
    }
    for (uint32_t i = 1; i < t->head->place_count; i++)
        if (t->places[i].level == TB_LEVEL_SITE && tb_cost_site_of(t, t->places[i].parent) != TB_PLACE_NONE)
            w->leaks[tb_cost_site_of(t, t->places[i].parent)] = 1;
}

/* What passes between a place and those that it has no link with: the wire that is assumed for each two, or their
 * uplinks. */
static void others_find(struct tb_bound_crowd *w)
{
    const struct tb_cost_table *t = w->table;
    for (uint32_t i = 0; i < t->head->place_count; i++) {
        const struct tb_cost_place *row = &t->places[i];
        uint32_t site = tb_cost_site_of(t, i);
        uint32_t up = row->up, down = row->down;
        if (!tb_bound_is_outermost(t, i))
            continue;
        if (up == TB_COST_NONE && site != TB_PLACE_NONE) {
            up = t->places[site].up;
            down = t->places[site].down;
        }
        bool bare = up == TB_COST_NONE;
        w->others_out = rates_add(w->others_out, rate_of(w, bare ? t->head->constants.wide : down));
        w->others_in = rates_add(w->others_in, rate_of(w, bare ? t->head->constants.wide : up));
    }
    for (uint32_t i = 0; i < t->head->link_count; i++) {
        const struct tb_link_cost *link = &t->links[i];
        uint64_t rate = rate_of(w, link->wire);
        w->links_out[link->from] = rates_add(w->links_out[link->from], rate);
        w->links_in[link->to] = rates_add(w->links_in[link->to], rate);
    }
}

static bool is_in(const struct tb_group_shape *s, uint32_t place, uint32_t inner)
{
    return inner >= place && inner < s->places[place].end;
}

static void changes_find(struct tb_bound_crowd *w)
{
    const struct tb_group_shape *s = w->shape;
    for (uint32_t rank = 1; rank < w->call->size; rank++) {
        uint32_t a = tb_group_shape_host(s, rank - 1), b = tb_group_shape_host(s, rank);
        if (a == b)
            continue;
        w->of_hosts[a].leaves++;
        w->of_hosts[b].enters++;
        uint32_t from = s->hosts[a].place, to = s->hosts[b].place;
        for (uint32_t p = from; !is_in(s, p, to); p = s->places[p].parent)
            w->of_places[p].leaves++;
        for (uint32_t p = to; !is_in(s, p, from); p = s->places[p].parent)
            w->of_places[p].enters++;
    }
}

static int crowd_open(struct tb_bound_crowd *w)
{
    uint32_t places = w->table->head->place_count;
    bool up = w->reach == TB_BOUND_REACH_UP;
    w->far = calloc(w->shape->host_count, sizeof *w->far);
    w->leaks = calloc(places, sizeof *w->leaks);
    w->links_out = calloc(places, sizeof *w->links_out);
    w->links_in = calloc(places, sizeof *w->links_in);
    w->of_hosts = up ? calloc(w->shape->host_count, sizeof *w->of_hosts) : NULL;
    w->of_places = up ? calloc(w->shape->place_count, sizeof *w->of_places) : NULL;
    if (w->far == NULL || w->leaks == NULL || w->links_out == NULL || w->links_in == NULL ||
        (up && (w->of_hosts == NULL || w->of_places == NULL)))
        return tb_error(TB_ERR_MEMORY, "no memory for the bound of %u hosts", w->shape->host_count);
    return tb_bound_graph_open(&w->graph, w->table, w->shape);
}

static void crowd_close(struct tb_bound_crowd *w)
{
    tb_bound_graph_close(&w->graph);
    free(w->far);
    free(w->leaks);
    free(w->links_out);
    free(w->links_in);
    free(w->of_hosts);
    free(w->of_places);
}

int tb_bound_many(struct tb_ways *ways, const struct tb_collective *c, uint64_t limit, struct tb_bound *bound,
                  uint64_t *looks)
{
    struct tb_bound_crowd w = {.call = c,
                               .table = ways->table,
                               .shape = ways->shape,
                               .bound = bound,
                               .reach = tb_bound_reach_of(c->operation),
                               .root = tb_group_shape_host(ways->shape, c->root),
                               .bytes = tb_item_data_of(c).bytes,
                               .spent = tb_bound_graph_spent(ways->table)};
    w.rooted = w.reach == TB_BOUND_REACH_FROM_ROOT || w.reach == TB_BOUND_REACH_TO_ROOT;
    *looks = tb_bound_graph_looks(w.table, w.shape) + (w.reach == TB_BOUND_REACH_UP ? c->size / RANK_LOOK : 0);
    if (*looks > limit || w.shape->host_count < 2)
        return TB_OK;
    int error = crowd_open(&w);
    if (error == TB_OK) {
        if (w.of_hosts != NULL)
            changes_find(&w);
        leaks_find(&w);
        others_find(&w);
        paths_look(&w);
        hosts_look(&w);
        places_look(&w);
    }
    crowd_close(&w);
    return error;
}
