#include "topology/cost.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PS_PER_NS 1000u
#define PS_PER_S  1000000000000u
#define MEGA      1000000u

#define LINKS_BYTES 4000u /* of the parameter that carries links to the ranks */

/* On Ethernet 1448 bytes of data travel in a frame that takes the time of 1538, and every message begins with a header
 * of ours and ends in a frame that is not full. */
#define FRAME_DATA     1448u
#define FRAME_WIRE     1538u
#define MESSAGE_HEADER 154u

/* The kernel copies what goes through a socket, on both sides. */
#define SOCKET_COPY (16000ull * MEGA)

/* The time of a port, for a bandwidth on the wire. */
static struct tb_cost_curve wire_line(uint64_t bandwidth)
{
    uint64_t data = (uint64_t)((unsigned __int128)bandwidth * FRAME_DATA / FRAME_WIRE);
    uint64_t header = bandwidth == 0 ? 0 : (uint64_t)MESSAGE_HEADER * 8 * PS_PER_S / bandwidth;
    return tb_cost_line(header, data == 0 && bandwidth > 0 ? 1 : data);
}

static void link_set_wire(struct tb_cost_link *link, uint64_t bandwidth, uint64_t latency)
{
    if (bandwidth > 0)
        link->gap = wire_line(bandwidth);
    if (latency != UINT64_MAX)
        link->latency = latency;
}

/* ---- what was measured ------------------------------------------------------------------------------------------- */

static int table_take(struct tb_cost_link *link, const char *name, const char *table, bool ports)
{
    if (*table == 0 || tb_cost_points_parse(table, &link->send, &link->receive, ports ? &link->gap : NULL))
        return TB_OK;
    return tb_error(TB_ERR_ARGUMENT,
                    "parameter %s: '%s' should be up to %d points BYTES:SEND:RECEIVE:GAP with commas between, "
                    "times in nanoseconds, the first one for 0 bytes, and rising",
                    name, table, TB_COST_POINTS);
}

static void costs_defaults(struct tb_costs *c, struct tb_cost_link *ethernet, struct tb_cost_link *wide)
{
    const struct tb_params *p = &tb_param;
    uint64_t shm = (uint64_t)p->shm_bandwidth * MEGA, overhead = p->ethernet_overhead * PS_PER_NS;
    *c = (struct tb_costs){.cores = (uint32_t)p->cores, .change = p->change_time * PS_PER_NS};
    c->host.send = c->host.receive = tb_cost_line(p->shm_overhead * PS_PER_NS, shm);
    c->host.latency = p->shm_latency * PS_PER_NS;
    c->copy = tb_cost_line(0, shm);
    c->reduce = tb_cost_line(0, (uint64_t)p->reduce_bandwidth * MEGA);
    c->memory = tb_cost_line(0, (uint64_t)p->memory_bandwidth * MEGA);
    c->short_bytes = p->eager_tcp;
    c->queue = p->switch_queue;
    c->loss = p->loss_time * PS_PER_NS;
    ethernet->send = ethernet->receive = tb_cost_line(overhead, SOCKET_COPY);
    link_set_wire(ethernet, (uint64_t)p->ethernet_bandwidth * MEGA, p->ethernet_latency * PS_PER_NS);
    *wide = *ethernet;
    link_set_wire(wide, (uint64_t)p->wide_bandwidth * MEGA, p->wide_latency * PS_PER_NS);
}

/* ---- links between clusters -------------------------------------------------------------------------------------- */

/* A link of its own for this direction, which begins as what held so far. NULL: no memory. */
static struct tb_cost_link *costs_pair(struct tb_costs *c, uint32_t from, uint32_t to)
{
    if (c->link_count == c->link_room) {
        uint32_t room = c->link_room * 2;
        struct tb_cost_link *grown = realloc(c->links, room * sizeof *grown);
        if (grown == NULL)
            return NULL;
        c->links = grown;
        c->link_room = room;
    }
    c->links[c->link_count] = *tb_costs_link(c, from, to);
    c->pairs[from * c->cluster_count + to] = c->link_count;
    return &c->links[c->link_count++];
}

/* What the agents of two hosts add to a link that ranks may not cross themselves. */
static uint64_t agents_time(const struct tb_cost_table *t, const struct tb_link_cost *link)
{
    uint32_t flags = t->head->constants.flags;
    bool nested = t->places[t->places[link->from].parent].level == TB_LEVEL_CLUSTER ||
                  t->places[t->places[link->to].parent].level == TB_LEVEL_CLUSTER;
    bool open = (flags & TB_COSTS_GRID) == 0 || (link->flags & TB_LINK_DIRECT) != 0 || nested;
    return open ? 0 : 2 * t->head->constants.agent_latency;
}

/* From one cluster to another (or itself), as far as the table says it. */
static int costs_take(struct tb_costs *costs, const struct tb_cost_table *t, uint32_t from, uint32_t from_place,
                      uint32_t to, uint32_t to_place)
{
    const struct tb_cost_place *place = &t->places[from_place];
    uint32_t number = TB_COST_NONE;
    if (from != to) {
        number = tb_cost_link_find(t, from_place, TB_COST_NONE, to_place, TB_COST_NONE);
        /* Links of sites are not in this table. */
        if (number == TB_COST_NONE || t->links[number].from != from_place || t->links[number].to != to_place)
            return TB_OK;
    }
    struct tb_cost_link *link = costs_pair(costs, from, to);
    if (link == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for the costs of %u clusters", costs->cluster_count);
    const struct tb_wire *wire = &t->wires[from == to ? place->port : t->links[number].wire];
    link->gap = wire->curve != TB_COST_NONE ? t->curves[wire->curve] : wire_line(wire->bandwidth);
    link->latency = from == to ? place->near : tb_cost_add(wire->latency, agents_time(t, &t->links[number]));
    link->hub = from == to && place->hub;
    return TB_OK;
}

static int costs_take_all(struct tb_costs *costs, const struct tb_group_shape *shape)
{
    int error = TB_OK;
    for (uint32_t i = 0; i < shape->place_count; i++)
        for (uint32_t k = 0; k < shape->place_count && error == TB_OK; k++) {
            const struct tb_shape_place *from = &shape->places[i], *to = &shape->places[k];
            if (from->cluster != TB_PLACE_NONE && to->cluster != TB_PLACE_NONE)
                error = costs_take(costs, shape->table, from->cluster, from->place, to->cluster, to->place);
        }
    return error;
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

static int tables_take(struct tb_costs *costs, struct tb_cost_link *ethernet)
{
    int error = table_take(&costs->host, "shm_table", tb_param.shm_table, false);
    return error == TB_OK ? table_take(ethernet, "ethernet_table", tb_param.ethernet_table, true) : error;
}

int tb_costs_open(struct tb_costs *costs, const struct tb_group_shape *shape)
{
    struct tb_cost_link ethernet = {.latency = 0}, wide;
    uint32_t n = shape->cluster_count;
    costs_defaults(costs, &ethernet, &wide);
    int error = tables_take(costs, &ethernet);
    if (error != TB_OK)
        return error;
    bool several = shape->host_count > 1 && shape->table != NULL && n <= TB_COST_CLUSTERS_LIMIT;
    costs->cluster_count = n;
    costs->links = calloc(4, sizeof *costs->links);
    costs->pairs = several ? calloc((size_t)n * n, sizeof *costs->pairs) : NULL;
    if (costs->links == NULL || (several && costs->pairs == NULL)) {
        tb_costs_close(costs);
        return tb_error(TB_ERR_MEMORY, "no memory for the costs of %u clusters", n);
    }
    costs->links[0] = ethernet;
    costs->links[1] = wide;
    costs->link_count = 2;
    costs->link_room = 4;
    for (uint32_t i = 0; several && i < n * n; i++)
        costs->pairs[i] = i / n != i % n;
    error = several ? costs_take_all(costs, shape) : TB_OK;
    if (error != TB_OK)
        tb_costs_close(costs);
    return error;
}

/* ---- what ranks are told of a grid ------------------------------------------------------------------------------- */

static bool is_of_clusters(const struct tb_grid_link *link)
{
    return link->from_host == TB_GRID_NONE && link->to_host == TB_GRID_NONE && link->from_site == TB_GRID_NONE &&
           link->to_site == TB_GRID_NONE;
}

/* What the agents of the two hosts add to a link of a grid file that ranks may not cross themselves; ns. */
static uint64_t agents_latency(const struct tb_grid *grid, const struct tb_grid_link *link)
{
    bool open = link->direct || !tb_grid_link_is_wide(grid, link);
    return open ? 0 : 2 * tb_param.agent_overhead;
}

/* Adds "A:MBIT:MS", with `more` ns; false: there is no room. */
static bool wire_print(char *text, size_t size, size_t *at, const char *from, const char *to,
                       const struct tb_grid_wire *wire, bool wide, uint64_t more)
{
    const struct tb_params *p = &tb_param;
    uint64_t bandwidth = (uint64_t)(wide ? p->wide_bandwidth : p->ethernet_bandwidth) * MEGA;
    uint64_t latency = wide ? p->wide_latency : p->ethernet_latency;
    bandwidth = wire->bandwidth > 0 ? wire->bandwidth : bandwidth;
    latency = (wire->latency != UINT64_MAX ? wire->latency : latency) + more;
    int n = snprintf(text + *at, size - *at, "%s%s%s%s:%.9g:%.9g", *at > 0 ? "," : "", from, *to != 0 ? ">" : "", to,
                     (double)bandwidth / MEGA, (double)latency / 1e6);
    if (n < 0 || (size_t)n >= size - *at) {
        text[*at] = 0;
        return false;
    }
    *at += (size_t)n;
    return true;
}

int tb_costs_pass_grid(const struct tb_grid *grid)
{
    char text[LINKS_BYTES] = "";
    size_t at = 0;
    bool room = true;
    if (*tb_param.links != 0)
        return TB_OK;
    for (uint32_t i = 0; i < grid->cluster_count && room; i++) {
        const struct tb_grid_cluster *c = &grid->clusters[i];
        if (c->ethernet.bandwidth > 0 || c->ethernet.latency != UINT64_MAX || c->medium == TB_GRID_HUB)
            room = wire_print(text, sizeof text, &at, c->name, "", &c->ethernet, false, 0);
        if (room && c->medium == TB_GRID_HUB && at + sizeof ":hub" <= sizeof text)
            at += (size_t)snprintf(text + at, sizeof text - at, ":hub");
    }
    for (uint32_t i = 0; i < grid->link_count && room; i++) {
        const struct tb_grid_link *l = &grid->links[i];
        if (is_of_clusters(l))
            room = wire_print(text, sizeof text, &at, grid->clusters[l->from].name, grid->clusters[l->to].name,
                              &l->wire, true, agents_latency(grid, l));
    }
    if (!room)
        tb_log(TB_LOG_WARN, "topology",
               "%s: not all links fit into the parameter links; the others are predicted alike", grid->file);
    return at > 0 ? tb_param_set("links", text, TB_PARAM_LAUNCHER) : TB_OK;
}

void tb_costs_close(struct tb_costs *costs)
{
    free(costs->links);
    free(costs->pairs);
    costs->links = NULL;
    costs->pairs = NULL;
}
