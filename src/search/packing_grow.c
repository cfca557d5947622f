#include "search/packing_state.h"

#include <stdlib.h>
#include <string.h>

#include "search/edge_cost.h"

#define TIME_BITS 44u /* of all times; longer ones are counted less precisely */

static int no_memory(const struct tb_packing *p)
{
    return tb_error(TB_ERR_MEMORY, "no memory for the wires of %u nodes", p->nodes);
}

/* ---- what is known ----------------------------------------------------------------------------------------------- */

static int list_append(struct tb_packing *p, const struct tb_problem_wire *wires, uint32_t count)
{
    if (p->list_count + count > p->list_room) {
        size_t room = 2 * (p->list_count + count);
        struct tb_problem_wire *list = realloc(p->list, room * sizeof *list);
        if (list == NULL)
            return no_memory(p);
        p->list = list;
        p->list_room = room;
    }
    memcpy(p->list + p->list_count, wires, count * sizeof *wires);
    p->list_count += count;
    return TB_OK;
}

/* The wires from one node to another, for all pieces together; how long one piece takes is added to *hop. */
static uint32_t way_find(const struct tb_packing *p, uint32_t from, uint32_t to, struct tb_problem_wire *wires,
                         struct packing_edge *e)
{
    uint64_t latency, slowest = 0, bytes = p->problem->bytes;
    uint32_t count = p->problem->wires(p->problem, from, to, p->piece, wires, &latency);
    for (uint32_t i = 0; i < count; i++) {
        unsigned __int128 all = (unsigned __int128)wires[i].time * bytes / p->piece;
        slowest = wires[i].time > slowest ? wires[i].time : slowest;
        wires[i].time = all < TB_COST_NEVER ? (uint64_t)all : TB_COST_NEVER;
    }
    e->latency = tb_cost_add(e->latency, latency);
    e->hop = tb_cost_add(e->hop, tb_cost_add(latency, slowest));
    return count;
}

/* Between a parent and its child, in the directions in which data goes. */
static int edge_find(struct tb_packing *p, uint32_t parent, uint32_t child)
{
    struct packing_edge *e = &p->edges[(size_t)parent * p->nodes + child];
    struct tb_problem_wire wires[2 * TB_PROBLEM_WIRES];
    uint32_t count = 0;
    if (tb_edge_goes_down(p->problem))
        count = way_find(p, parent, child, wires, e);
    if (tb_edge_goes_up(p->problem))
        count += way_find(p, child, parent, wires + count, e);
    e->first = (uint32_t)p->list_count;
    e->count = count;
    for (uint32_t i = 0; i < count; i++)
        p->wires = wires[i].wire >= p->wires ? wires[i].wire + 1 : p->wires;
    return list_append(p, wires, count);
}

/* Makes all times so short that they can be added. */
static void times_scale(struct tb_packing *p)
{
    uint64_t all = 0;
    for (size_t i = 0; i < p->list_count; i++)
        all |= p->list[i].time;
    for (size_t i = 0; i < (size_t)p->nodes * p->nodes; i++)
        all |= p->edges[i].hop | p->edges[i].latency;
    while (all >> p->shift >> TIME_BITS != 0)
        p->shift++;
    for (size_t i = 0; i < p->list_count; i++)
        p->list[i].time >>= p->shift;
    for (size_t i = 0; i < (size_t)p->nodes * p->nodes; i++) {
        p->edges[i].hop >>= p->shift;
        p->edges[i].latency >>= p->shift;
    }
}

/* One piece of memory for everything whose size is known then. */
static int rooms_open(struct tb_packing *p)
{
    const size_t nodes = p->nodes, wires = p->wires;
    size_t longs = wires + nodes + TREES * 2 * (nodes + wires), numbers = 2 * nodes + wires + TREES * 2 * nodes;
    uint64_t *l = p->rooms = malloc(longs * sizeof *l + numbers * sizeof(uint32_t) + nodes + nodes * nodes);
    if (l == NULL)
        return no_memory(p);
    uint32_t *n = (uint32_t *)(l + longs);
    p->joined = (bool *)(n + numbers);
    p->across = p->joined + nodes;
    p->load = l;
    p->soonest = l + wires;
    p->home = n;
    p->from = n + nodes;
    p->busy = n + 2 * nodes;
    l += wires + nodes;
    n += 2 * nodes + wires;
    for (uint32_t i = 0; i < TREES; i++, l += 2 * (nodes + wires), n += 2 * nodes)
        p->trees[i] = (struct packed_tree){.parent = n,
                                           .order = n + nodes,
                                           .arrive = l,
                                           .deep = l + nodes,
                                           .busy = l + 2 * nodes,
                                           .reach = l + 2 * nodes + wires};
    for (uint32_t i = 0; i < nodes; i++) {
        p->home[i] = i;
        for (uint32_t k = i; k-- > 0;)
            p->home[i] = p->problem->clusters[k] == p->problem->clusters[i] ? k : p->home[i];
    }
    return TB_OK;
}

int tb_packing_know(struct tb_packing *p)
{
    p->edges = calloc((size_t)p->nodes * p->nodes, sizeof *p->edges);
    int error = p->edges != NULL ? TB_OK : no_memory(p);
    for (uint32_t i = 0; i < p->nodes && error == TB_OK; i++)
        for (uint32_t k = 0; k < p->nodes && error == TB_OK; k++)
            if (i != k)
                error = edge_find(p, i, k);
    if (error != TB_OK)
        return error;
    times_scale(p);
    return rooms_open(p);
}

/* ---- a tree ------------------------------------------------------------------------------------------------------ */

static const struct packing_edge *edge_of(const struct tb_packing *p, uint32_t parent, uint32_t child)
{
    return &p->edges[(size_t)parent * p->nodes + child];
}

/* When a node would be done behind another one: the first piece has come, and then the busiest wire has passed all. */
static uint64_t done_at(const struct tb_packing *p, const struct packed_tree *t, uint32_t parent, uint32_t child)
{
    const struct packing_edge *e = edge_of(p, parent, child);
    uint64_t most = 0;
    for (uint32_t i = 0; i < e->count; i++) {
        const struct tb_problem_wire *w = &p->list[e->first + i];
        uint64_t busy = p->load[w->wire] + w->time * t->share;
        most = busy > most ? busy : most;
    }
    uint64_t all = e->latency + most / PARTS;
    return t->arrive[parent] + (all > e->hop ? all : e->hop);
}

static bool may_pass(const struct tb_packing *p, bool confined, uint32_t parent, uint32_t child)
{
    uint32_t a = p->home[parent], b = p->home[child];
    return !confined || a == b || p->across[(size_t)a * p->nodes + b];
}

static void look_at(struct tb_packing *p, const struct packed_tree *t, bool confined, uint32_t parent, uint32_t node)
{
    uint64_t done = may_pass(p, confined, parent, node) ? done_at(p, t, parent, node) : UINT64_MAX;
    if (done < p->soonest[node]) {
        p->soonest[node] = done;
        p->from[node] = parent;
    }
}

/* Who joins next: whoever would be done first. Wires may carry more than when it was looked at, never less, so that who
 * is first when looked at again is it. */
static uint32_t next_find(struct tb_packing *p, const struct packed_tree *t, uint32_t count, bool confined)
{
    for (;;) {
        uint32_t best = TB_NO_NODE;
        for (uint32_t i = 0; i < p->nodes; i++)
            if (!p->joined[i] && (best == TB_NO_NODE || p->soonest[i] < p->soonest[best]))
                best = i;
        uint64_t before = p->soonest[best];
        p->soonest[best] = UINT64_MAX;
        for (uint32_t i = 0; i < count; i++)
            look_at(p, t, confined, t->order[i], best);
        if (p->soonest[best] == before)
            return best;
    }
}

/* What a tree does to each wire. */
static void tree_sum(const struct tb_packing *p, struct packed_tree *t)
{
    memcpy(t->deep, t->arrive, p->nodes * sizeof *t->deep);
    memset(t->busy, 0, p->wires * sizeof *t->busy);
    memset(t->reach, 0, p->wires * sizeof *t->reach);
    for (uint32_t i = p->nodes; i-- > 1;) {
        uint32_t node = t->order[i], parent = t->parent[node];
        const struct packing_edge *e = edge_of(p, parent, node);
        const uint64_t deep = t->deep[node] - (e->hop - e->latency);
        t->deep[parent] = t->deep[node] > t->deep[parent] ? t->deep[node] : t->deep[parent];
        for (uint32_t k = e->first; k < e->first + e->count; k++) {
            uint32_t wire = p->list[k].wire;
            t->busy[wire] += p->list[k].time;
            t->reach[wire] = deep > t->reach[wire] ? deep : t->reach[wire];
        }
    }
}

void tb_packing_unload(struct tb_packing *p, const struct packed_tree *t)
{
    for (uint32_t i = 0; i < p->wires; i++)
        p->load[i] -= t->busy[i] * t->share;
}

void tb_packing_grow(struct tb_packing *p, struct packed_tree *t, bool confined)
{
    const uint32_t root = p->problem->root;
    memset(p->joined, 0, p->nodes * sizeof *p->joined);
    memset(p->soonest, 0xff, p->nodes * sizeof *p->soonest);
    t->parent[root] = t->order[0] = root;
    t->arrive[root] = 0;
    p->joined[root] = true;
    for (uint32_t count = 1, last = root; count < p->nodes; count++) {
        for (uint32_t i = 0; i < p->nodes; i++)
            if (!p->joined[i])
                look_at(p, t, confined, last, i);
        last = next_find(p, t, count, confined);
        const struct packing_edge *e = edge_of(p, p->from[last], last);
        t->order[count] = last;
        t->parent[last] = p->from[last];
        t->arrive[last] = t->arrive[p->from[last]] + e->hop;
        p->joined[last] = true;
        for (uint32_t i = e->first; i < e->first + e->count; i++)
            p->load[p->list[i].wire] += p->list[i].time * t->share;
    }
    tree_sum(p, t);
}
