#include "planner/bound_graph.h"
#include "planner/bound_cut.h"

#include <stdlib.h>
#include <string.h>

#define NODE_LOOK 16u /* so many places, links and hosts are looked at in the time of a look at a way */

/* ---- nodes ------------------------------------------------------------------------------------------------------- */

/* Of the wide area, and of each site: what comes there from places without an uplink and with one, and what goes to
 * such places. */
enum area_node { AREA_FROM_BARE, AREA_FROM_UPLINK, AREA_TO_BARE, AREA_TO_UPLINK, AREA_NODES };

static uint32_t node_in(uint32_t place)
{
    return 2 * place;
}

static uint32_t node_out(uint32_t place)
{
    return 2 * place + 1;
}

static uint32_t node_area(const struct tb_bound_graph *g, uint32_t place, enum area_node which)
{
    return 2 * g->table->head->place_count + AREA_NODES * place + which;
}

static uint32_t node_kind(const struct tb_bound_graph *g, uint32_t kind)
{
    return (2 + AREA_NODES) * g->table->head->place_count + kind;
}

/* ---- edges ------------------------------------------------------------------------------------------------------- */

static int edge_add(struct tb_bound_graph *g, uint32_t from, uint32_t to, uint64_t time)
{
    if (g->edge_count == g->edge_room) {
        uint32_t room = g->edge_room > 0 ? 2 * g->edge_room : 64;
        struct tb_bound_edge *edges = realloc(g->edges, room * sizeof *edges);
        if (edges == NULL)
            return tb_error(TB_ERR_MEMORY, "no memory for the bound of %u places", g->table->head->place_count);
        g->edges = edges;
        g->edge_room = room;
    }
    g->edges[g->edge_count++] = (struct tb_bound_edge){from, to, time};
    return TB_OK;
}

static int edge_both(struct tb_bound_graph *g, uint32_t a, uint32_t b)
{
    int error = edge_add(g, a, b, 0);
    return error == TB_OK ? edge_add(g, b, a, 0) : error;
}

static uint64_t wire_latency(const struct tb_bound_graph *g, uint32_t wire)
{
    return wire != TB_COST_NONE ? g->table->wires[wire].latency : 0;
}

/* A place is an end of what passes an area. What has a link to all others leaves by these. */
static int place_join(struct tb_bound_graph *g, uint32_t place, uint32_t area)
{
    bool uplink = tb_bound_has_uplink(g->table, place), linked = g->linked[place] + 1 >= g->outermost;
    uint32_t from = node_area(g, area, uplink ? AREA_FROM_UPLINK : AREA_FROM_BARE);
    int error = linked ? TB_OK : edge_add(g, node_out(place), from, 0);
    if (error == TB_OK)
        error = edge_add(g, node_area(g, area, uplink ? AREA_TO_UPLINK : AREA_TO_BARE), node_out(place), 0);
    return error;
}

/* What nothing is said of passes what is assumed, unless an uplink is on the way. */
static int area_add(struct tb_bound_graph *g, uint32_t place)
{
    const struct tb_cost_place *row = &g->table->places[place];
    uint64_t wide = wire_latency(g, g->table->head->constants.wide);
    uint32_t first = node_area(g, place, AREA_FROM_BARE), world = node_area(g, 0, AREA_FROM_BARE);
    int error = edge_add(g, first + AREA_FROM_BARE, first + AREA_TO_BARE, wide);
    if (error == TB_OK)
        error = edge_add(g, first + AREA_FROM_BARE, first + AREA_TO_UPLINK, 0);
    if (error == TB_OK)
        error = edge_add(g, first + AREA_FROM_UPLINK, first + AREA_TO_BARE, 0);
    if (error == TB_OK)
        error = edge_add(g, first + AREA_FROM_UPLINK, first + AREA_TO_UPLINK, 0);
    if (error != TB_OK || place == 0)
        return error;
    error = edge_add(g, first + AREA_FROM_BARE, world + AREA_FROM_BARE, 0);
    if (error == TB_OK)
        error = edge_add(g, first + AREA_FROM_UPLINK, world + AREA_FROM_UPLINK, wire_latency(g, row->up));
    if (error == TB_OK)
        error = edge_add(g, world + AREA_TO_BARE, first + AREA_TO_BARE, 0);
    if (error == TB_OK)
        error = edge_add(g, world + AREA_TO_UPLINK, first + AREA_TO_UPLINK, wire_latency(g, row->down));
    return error;
}

static int place_add(struct tb_bound_graph *g, uint32_t place)
{
    const struct tb_cost_place *row = &g->table->places[place];
    uint32_t site = tb_cost_site_of(g->table, place);
    int error = edge_add(g, node_in(place), node_out(place), wire_latency(g, row->up));
    if (error == TB_OK)
        error = edge_add(g, node_out(place), node_in(place), wire_latency(g, row->down));
    if (error == TB_OK && !tb_bound_is_outermost(g->table, place))
        return edge_both(g, node_out(place), node_in(row->parent));
    if (error == TB_OK && (row->level == TB_LEVEL_SITE || place == 0))
        error = area_add(g, place);
    if (error == TB_OK && site != TB_PLACE_NONE)
        error = place_join(g, place, site);
    /* Hosts of a site that are in none of its clusters pass its uplink as their own. */
    if (error == TB_OK && (site == TB_PLACE_NONE || site == place))
        error = place_join(g, place, 0);
    return error;
}

/* Where a link begins, or ends: outside of a place; of a site at whatever is in it. */
static uint32_t link_ends(const struct tb_bound_graph *g, uint32_t place, uint32_t other, bool from, uint32_t *nodes)
{
    const struct tb_cost_place *places = g->table->places;
    bool around = places[other].parent == place && places[place].level == TB_LEVEL_CLUSTER;
    nodes[0] = around ? node_in(place) : node_out(place);
    if (places[place].level != TB_LEVEL_SITE)
        return 1;
    nodes[1] = node_area(g, place, from ? AREA_FROM_BARE : AREA_TO_BARE);
    nodes[2] = node_area(g, place, from ? AREA_FROM_UPLINK : AREA_TO_UPLINK);
    return 3;
}

static int link_add(struct tb_bound_graph *g, const struct tb_link_cost *link)
{
    uint32_t from[3], to[3], begins = link_ends(g, link->from, link->to, true, from);
    uint32_t ends = link_ends(g, link->to, link->from, false, to);
    int error = TB_OK;
    for (uint32_t i = 0; i < begins * ends && error == TB_OK; i++)
        error = edge_add(g, from[i / ends], to[i % ends], wire_latency(g, link->wire));
    return error;
}

bool tb_bound_graph_spot(const struct tb_bound_graph *g, uint32_t i, struct tb_spot *spot)
{
    const struct tb_cost_head *head = g->table->head;
    if (i < g->shape->host_count)
        *spot = tb_group_shape_spot(g->shape, i);
    else if (i - g->shape->host_count < head->relay_count)
        *spot = g->table->relays[i - g->shape->host_count];
    else if (i - g->shape->host_count - head->relay_count < head->hop_count)
        *spot = g->table->hops[i - g->shape->host_count - head->relay_count];
    else
        return false;
    return true;
}

bool tb_bound_graph_is_plain(const struct tb_cost_table *table, const struct tb_spot *spot)
{
    const struct tb_cost_kind *kind = &table->kinds[spot->kind];
    return tb_cost_feet_of(table, spot) == 1 && kind->gate_of == TB_COST_NONE;
}

/* Which of the outermost places have hosts, and to how many of them others have links. */
static int links_count(struct tb_bound_graph *g)
{
    const struct tb_cost_table *t = g->table;
    struct tb_spot spot;
    g->linked = calloc(t->head->place_count, sizeof *g->linked);
    uint8_t *peopled = calloc(t->head->place_count, sizeof *peopled);
    if (g->linked == NULL || peopled == NULL) {
        free(peopled);
        return tb_error(TB_ERR_MEMORY, "no memory for the bound of %u places", t->head->place_count);
    }
    for (uint32_t i = 0; tb_bound_graph_spot(g, i, &spot); i++)
        for (uint32_t f = 0; f < tb_cost_feet_of(t, &spot); f++) {
            uint32_t place = tb_cost_foot_of(t, &spot, f).place;
            while (!tb_bound_is_outermost(t, place))
                place = t->places[place].parent;
            g->outermost += peopled[place] == 0;
            peopled[place] = 1;
        }
    for (uint32_t i = 0; i < t->head->link_count; i++) {
        const struct tb_link_cost *l = &t->links[i];
        bool all = l->from_host == TB_COST_NONE && l->to_host == TB_COST_NONE && l->from != l->to;
        g->linked[l->from] += all && peopled[l->to];
    }
    free(peopled);
    return TB_OK;
}

/* A gateway is outside of the cluster that it leads out of, too, and who stands in several clusters is in all of them:
 * what passes it there costs nothing. */
static int spot_add(struct tb_bound_graph *g, const struct tb_spot *spot)
{
    uint32_t gate = g->table->kinds[spot->kind].gate_of, feet = tb_cost_feet_of(g->table, spot);
    int error = TB_OK;
    for (uint32_t i = 0; i < feet && error == TB_OK; i++) {
        uint32_t place = tb_cost_foot_of(g->table, spot, i).place;
        if (feet > 1)
            error = edge_both(g, node_in(place), node_kind(g, spot->kind));
        if (error == TB_OK && gate != TB_COST_NONE && place > gate && place < g->table->places[gate].end)
            error = edge_both(g, node_in(place), node_in(gate));
    }
    return error;
}

static uint32_t port_of(const struct tb_bound_graph *g, const struct tb_spot *spot)
{
    uint32_t own = g->table->kinds[spot->kind].port;
    return own != TB_COST_NONE ? own : g->table->places[spot->place].port;
}

/* Whether its port takes time, and so is on the ways. */
static bool port_counts(const struct tb_bound_graph *g, const struct tb_spot *spot)
{
    const struct tb_wire *wire = &g->table->wires[port_of(g, spot)];
    return wire->bandwidth > 0 || wire->curve != TB_COST_NONE;
}

/* ---- walks ------------------------------------------------------------------------------------------------------- */

static int memory_get(struct tb_bound_graph *g)
{
    g->firsts = calloc(g->node_count + (size_t)1, sizeof *g->firsts);
    g->order = calloc(g->edge_count + (size_t)1, sizeof *g->order);
    g->heap = calloc(g->node_count, sizeof *g->heap);
    g->at = calloc(g->node_count, sizeof *g->at);
    g->times = calloc(g->node_count, sizeof *g->times);
    if (g->firsts == NULL || g->order == NULL || g->heap == NULL || g->at == NULL || g->times == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for the bound of %u places", g->table->head->place_count);
    return TB_OK;
}

int tb_bound_graph_open(struct tb_bound_graph *g, const struct tb_cost_table *table, const struct tb_group_shape *shape)
{
    const struct tb_cost_head *head = table->head;
    *g = (struct tb_bound_graph){.table = table, .shape = shape, .bare = true};
    g->node_count = (2 + AREA_NODES) * head->place_count + head->kind_count;
    int error = links_count(g);
    for (uint32_t i = 0; i < head->place_count && error == TB_OK; i++)
        error = place_add(g, i);
    for (uint32_t i = 0; i < head->link_count && error == TB_OK; i++)
        error = link_add(g, &table->links[i]);
    struct tb_spot spot;
    for (uint32_t i = 0; error == TB_OK && tb_bound_graph_spot(g, i, &spot); i++)
        if (!tb_bound_graph_is_plain(table, &spot)) {
            error = spot_add(g, &spot);
            g->bare = false;
        } else if (!port_counts(g, &spot)) {
            g->bare = false;
        }
    return error == TB_OK ? memory_get(g) : error;
}

void tb_bound_graph_close(struct tb_bound_graph *g)
{
    free(g->linked);
    free(g->edges);
    free(g->firsts);
    free(g->order);
    free(g->heap);
    free(g->at);
    free(g->times);
}

/* Edges by where they begin, seen in the direction of the walk. */
static void edges_sort(struct tb_bound_graph *g, bool away)
{
    memset(g->firsts, 0, (g->node_count + (size_t)1) * sizeof *g->firsts);
    for (uint32_t i = 0; i < g->edge_count; i++)
        g->firsts[away ? g->edges[i].from : g->edges[i].to]++;
    for (uint32_t i = 0, sum = 0; i <= g->node_count; i++) {
        sum += g->firsts[i];
        g->firsts[i] = sum;
    }
    for (uint32_t i = g->edge_count; i-- > 0;)
        g->order[--g->firsts[away ? g->edges[i].from : g->edges[i].to]] = i;
}

static void heap_put(struct tb_bound_graph *g, uint32_t at, uint32_t node)
{
    g->heap[at] = node;
    g->at[node] = at + 1;
}

static void heap_rise(struct tb_bound_graph *g, uint32_t at)
{
    uint32_t node = g->heap[at];
    for (; at > 0 && g->times[g->heap[(at - 1) / 2]] > g->times[node]; at = (at - 1) / 2)
        heap_put(g, at, g->heap[(at - 1) / 2]);
    heap_put(g, at, node);
}

/* The nearest of `count`, which leaves it. */
static uint32_t heap_take(struct tb_bound_graph *g, uint32_t count)
{
    uint32_t nearest = g->heap[0], node = g->heap[count - 1], at = 0;
    for (uint32_t child = 1; child + 1 < count; child = 2 * at + 1) {
        if (child + 2 < count && g->times[g->heap[child + 1]] < g->times[g->heap[child]])
            child++;
        if (g->times[g->heap[child]] >= g->times[node])
            break;
        heap_put(g, at, g->heap[child]);
        at = child;
    }
    heap_put(g, at, node);
    return nearest;
}

void tb_bound_graph_walk(struct tb_bound_graph *g, uint32_t host, bool away)
{
    uint32_t count = 1, start = node_in(tb_group_shape_spot(g->shape, host).place);
    edges_sort(g, away);
    for (uint32_t i = 0; i < g->node_count; i++) {
        g->times[i] = TB_COST_NEVER;
        g->at[i] = 0;
    }
    g->times[start] = 0;
    heap_put(g, 0, start);
    while (count > 0) {
        uint32_t node = heap_take(g, count--);
        for (uint32_t i = g->firsts[node]; i < g->firsts[node + 1]; i++) {
            const struct tb_bound_edge *e = &g->edges[g->order[i]];
            uint32_t next = away ? e->to : e->from;
            uint64_t time = tb_cost_add(g->times[node], e->time);
            if (time >= g->times[next])
                continue;
            g->times[next] = time;
            if (g->at[next] == 0)
                heap_put(g, count++, next);
            heap_rise(g, g->at[next] - 1);
        }
    }
}

static uint64_t port_latency(const struct tb_bound_graph *g, const struct tb_spot *spot)
{
    return g->table->places[spot->place].hub ? 0 : wire_latency(g, port_of(g, spot));
}

uint64_t tb_bound_graph_end(const struct tb_bound_graph *g, uint32_t host)
{
    struct tb_spot spot = tb_group_shape_spot(g->shape, host);
    return tb_bound_graph_is_plain(g->table, &spot)
               ? tb_cost_add(g->table->places[spot.place].near, port_latency(g, &spot))
               : 0;
}

uint64_t tb_bound_graph_time(const struct tb_bound_graph *g, uint32_t host, uint32_t other)
{
    struct tb_spot a = tb_group_shape_spot(g->shape, host), b = tb_group_shape_spot(g->shape, other);
    uint64_t ends[2] = {tb_bound_graph_end(g, host), tb_bound_graph_end(g, other)};
    if (host == other)
        return 0;
    if (a.place != b.place)
        return tb_cost_add(g->times[node_in(b.place)], tb_cost_add(ends[0], ends[1]));
    /* In one network its latency counts once. */
    uint64_t near = g->table->places[a.place].near;
    return ends[0] > 0 && ends[1] > 0 ? tb_cost_add(ends[0], ends[1]) - near : ends[0] > ends[1] ? ends[0] : ends[1];
}

uint64_t tb_bound_graph_spent(const struct tb_cost_table *t)
{
    uint64_t least = TB_COST_NEVER;
    for (uint32_t i = TB_ENDS_SHM + 1; i < TB_ENDS_COUNT + t->head->ends_count; i++) {
        const struct tb_cost_ends *ends = i < TB_ENDS_COUNT ? &t->head->constants.ends[i] : &t->ends[i - TB_ENDS_COUNT];
        uint64_t both = tb_cost_add(tb_cost_least(&ends->send), tb_cost_least(&ends->receive));
        least = both < least ? both : least;
    }
    return least;
}

uint64_t tb_bound_graph_looks(const struct tb_cost_table *table, const struct tb_group_shape *shape)
{
    const struct tb_cost_head *head = table->head;
    return ((uint64_t)shape->host_count + head->place_count + head->link_count + head->relay_count + head->hop_count +
            head->kind_count) /
           NODE_LOOK;
}

uint64_t tb_bound_graph_port_rate(const struct tb_bound_graph *g, const struct tb_spot *spot)
{
    const struct tb_cost_place *place = &g->table->places[spot->place];
    uint64_t rate = tb_bound_wire_rate(g->table, &g->table->wires[port_of(g, spot)]);
    if (!place->hub)
        return rate;
    /* Within it hosts have no port of their own. */
    uint64_t hub = tb_bound_wire_rate(g->table, &g->table->wires[place->port]);
    return hub > rate ? hub : rate;
}
