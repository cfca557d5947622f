/* For each destination class the others are settled from near to far, as Dijkstra does: whoever is settled offers to
 * all its neighbours to pass things on. An offer is refused if the one who would be handed it next is a neighbour of
 * the asking one, who then goes there by itself; since that one was settled before, its own offer has been heard. For
 * the same reason the direct neighbours of the destination are settled from the beginning, whatever others offer, and
 * where everybody is one there is nothing left to do. */
#include "topology/route.h"

#include <stdlib.h>
#include <string.h>

#define NOWHERE UINT32_MAX

/* A class that may not be settled yet, seen from one destination. */
struct label {
    uint64_t cost;
    uint32_t one_ways, hops;
    uint32_t count;
    uint32_t place; /* in the heap; NOWHERE: it is settled, or nobody has offered yet */
    bool settled;
    uint32_t nexts[TB_ROUTE_NEXT_LIMIT]; /* ascending */
};

struct search {
    const struct tb_connectivity *connectivity;
    uint32_t count, destination;
    uint8_t *ties; /* enum tb_tie of all pairs */
    struct label *labels;
    uint32_t heap_count;
    uint32_t *heap;    /* who may be settled next, the nearest first */
    uint32_t *settled; /* in this order */
    uint32_t *open;    /* who was not settled from the beginning */
    uint32_t open_count;
    uint32_t *first;      /* two of each class, and one more: where its direct neighbours begin in `neighbours`, and */
    uint32_t *neighbours; /* those to whom it has a tie of one way only */
};

static int label_order(uint32_t one_ways, uint64_t cost, uint32_t hops, const struct label *b)
{
    if (one_ways != b->one_ways)
        return one_ways < b->one_ways ? -1 : 1;
    if (cost != b->cost)
        return cost < b->cost ? -1 : 1;
    return (hops > b->hops) - (hops < b->hops);
}

static int label_compare(const struct label *a, const struct label *b)
{
    return label_order(a->one_ways, a->cost, a->hops, b);
}

/* ---- the heap ---------------------------------------------------------------------------------------------------- */

static bool is_nearer(const struct search *s, uint32_t a, uint32_t b)
{
    int order = label_compare(&s->labels[a], &s->labels[b]);
    return order != 0 ? order < 0 : a < b;
}

static void heap_put(struct search *s, uint32_t place, uint32_t class)
{
    s->heap[place] = class;
    s->labels[class].place = place;
}

/* After its label got better. */
static void heap_lift(struct search *s, uint32_t class)
{
    uint32_t place = s->labels[class].place;
    if (place == NOWHERE)
        place = s->heap_count++;
    while (place > 0 && is_nearer(s, class, s->heap[(place - 1) / 2])) {
        heap_put(s, place, s->heap[(place - 1) / 2]);
        place = (place - 1) / 2;
    }
    heap_put(s, place, class);
}

static uint32_t heap_take(struct search *s)
{
    uint32_t top = s->heap[0], last = s->heap[--s->heap_count], place = 0;
    for (;;) {
        uint32_t child = 2 * place + 1;
        if (child + 1 < s->heap_count && is_nearer(s, s->heap[child + 1], s->heap[child]))
            child++;
        if (child >= s->heap_count || !is_nearer(s, s->heap[child], last))
            break;
        heap_put(s, place, s->heap[child]);
        place = child;
    }
    heap_put(s, place, last);
    s->labels[top].place = NOWHERE;
    return top;
}

/* ---- settling ---------------------------------------------------------------------------------------------------- */

static void label_add(struct label *label, uint32_t next)
{
    uint32_t at = label->count;
    while (at > 0 && label->nexts[at - 1] > next)
        at--;
    if (at == TB_ROUTE_NEXT_LIMIT)
        return;
    uint32_t kept = label->count < TB_ROUTE_NEXT_LIMIT ? label->count : TB_ROUTE_NEXT_LIMIT - 1;
    memmove(label->nexts + at + 1, label->nexts + at, (kept - at) * sizeof *label->nexts);
    label->nexts[at] = next;
    label->count = kept + 1;
}

/* Whether a connection of its own, to the destination or to the one after `by`, would spare the asking one the hop by
 * `by`; then the way beyond it has `one_ways`. */
static bool is_detour(const struct search *s, uint32_t asking, uint32_t by, uint32_t one_ways)
{
    const uint8_t *mine = s->ties + (size_t)asking * s->count, *theirs = s->ties + (size_t)by * s->count;
    const struct label *label = &s->labels[by];
    if (by != s->destination && mine[s->destination] != TB_TIE_NONE && mine[s->destination] <= one_ways)
        return true;
    for (uint32_t i = 0; i < label->count; i++) {
        uint32_t after = label->nexts[i];
        if (mine[after] != TB_TIE_NONE && mine[after] <= mine[by] + theirs[after])
            return true;
    }
    return false;
}

/* To one neighbour, by a tie of this sort. */
static void offer_one(struct search *s, uint32_t by, uint32_t to, enum tb_tie tie)
{
    const struct label *near = &s->labels[by];
    struct label *label = &s->labels[to];
    if (label->settled)
        return;
    uint64_t cost = near->cost + tb_connectivity_cost(s->connectivity, to, by);
    int order = label_order(near->one_ways + tie, cost, near->hops + 1, label);
    if (order > 0 || is_detour(s, to, by, near->one_ways + tie))
        return;
    if (order < 0) {
        label->cost = cost;
        label->one_ways = near->one_ways + tie;
        label->hops = near->hops + 1;
        label->count = 0;
        heap_lift(s, to);
    }
    label_add(label, by);
}

/* To its neighbours by ties of one sort. */
static void offer(struct search *s, uint32_t by, enum tb_tie tie)
{
    for (uint32_t at = s->first[2 * by + tie]; at < s->first[2 * by + tie + 1]; at++)
        offer_one(s, by, s->neighbours[at], tie);
}

static uint32_t neighbour_count(const struct search *s, uint32_t class)
{
    return s->first[2 * class + TB_TIE_ONE_WAY] - s->first[2 * class + TB_TIE_DIRECT];
}

/* The destination and its direct neighbours; how many they are. */
static uint32_t settle_direct(struct search *s, uint32_t destination)
{
    uint32_t count = 0;
    s->labels[destination].cost = 0;
    s->labels[destination].one_ways = s->labels[destination].hops = 0;
    s->labels[destination].settled = true;
    s->settled[count++] = destination;
    for (uint32_t at = s->first[2 * destination]; at < s->first[2 * destination + 1]; at++) {
        uint32_t i = s->neighbours[at];
        struct label *label = &s->labels[i];
        label->cost = tb_connectivity_cost(s->connectivity, i, destination);
        label->one_ways = 0;
        label->hops = label->count = 1;
        label->nexts[0] = destination;
        label->settled = true;
        s->settled[count++] = i;
    }
    return count;
}

/* What these offer to the others, asked from the side that has fewer neighbours. */
static void offer_direct(struct search *s, uint32_t count)
{
    uint64_t theirs = 0, ours = 0;
    s->open_count = 0;
    for (uint32_t i = 0; i < s->count; i++)
        if (!s->labels[i].settled) {
            s->open[s->open_count++] = i;
            theirs += neighbour_count(s, i);
        } else {
            ours += neighbour_count(s, i);
        }
    for (uint32_t i = 0; i < count && ours <= theirs && s->open_count > 0; i++)
        offer(s, s->settled[i], TB_TIE_DIRECT);
    for (uint32_t i = 0; i < s->open_count && ours > theirs; i++) {
        uint32_t to = s->open[i];
        for (uint32_t at = s->first[2 * to]; at < s->first[2 * to + 1]; at++)
            if (s->labels[s->neighbours[at]].settled)
                offer_one(s, s->neighbours[at], to, TB_TIE_DIRECT);
    }
}

static void settle_all(struct search *s, uint32_t destination)
{
    for (uint32_t i = 0; i < s->count; i++) {
        s->labels[i].cost = TB_ROUTE_COST_NONE;
        s->labels[i].one_ways = s->labels[i].hops = UINT32_MAX;
        s->labels[i].count = 0;
        s->labels[i].place = NOWHERE;
        s->labels[i].settled = false;
    }
    s->destination = destination;
    uint32_t count = settle_direct(s, destination), offered = 0;
    offer_direct(s, count);
    /* Whoever needs one tie of one way more than others is further away than all of them, so such ties have to be
     * looked at only when the others lead nowhere any more; mostly never. */
    do {
        while (s->heap_count > 0) {
            uint32_t nearest = heap_take(s);
            s->labels[nearest].settled = true;
            s->settled[count++] = nearest;
            offer(s, nearest, TB_TIE_DIRECT);
        }
        while (offered < count && count < s->count)
            offer(s, s->settled[offered++], TB_TIE_ONE_WAY);
    } while (s->heap_count > 0);
}

static int store(struct tb_routes *r, const struct search *s, uint32_t destination)
{
    for (uint32_t i = 0; i < s->count; i++) {
        const struct label *label = &s->labels[i];
        struct tb_route *route = &r->table[(size_t)i * s->count + destination];
        if (r->next_count + TB_ROUTE_NEXT_LIMIT > r->next_room) {
            uint32_t room = r->next_room < UINT32_MAX / 4 ? 2 * r->next_room + 1024 : 0;
            void *more = room > 0 ? realloc(r->nexts, room * sizeof *r->nexts) : NULL;
            if (more == NULL)
                return tb_error(TB_ERR_MEMORY, "no memory for routes among %u kinds of hosts", s->count);
            r->nexts = more;
            r->next_room = room;
        }
        *route = (struct tb_route){.cost = label->cost, .first = r->next_count, .count = (uint16_t)label->count};
        if (label->cost == TB_ROUTE_COST_NONE)
            continue;
        route->hops = (uint16_t)label->hops;
        route->one_ways = (uint16_t)label->one_ways;
        memcpy(r->nexts + r->next_count, label->nexts, label->count * sizeof *label->nexts);
        if (i == destination) { /* from one host of a class to another */
            route->cost = tb_connectivity_cost(s->connectivity, i, i);
            route->count = route->hops = 1;
            r->nexts[r->next_count] = i;
        }
        r->next_count += route->count;
    }
    return TB_OK;
}

static int search_open(struct search *s, const struct tb_connectivity *connectivity)
{
    uint32_t n = connectivity->classes.class_count;
    *s = (struct search){.connectivity = connectivity,
                         .count = n,
                         .ties = malloc((size_t)n * n + 1),
                         .labels = calloc(n + 1u, sizeof *s->labels),
                         .heap = calloc(n + 1u, sizeof *s->heap),
                         .settled = calloc(n + 1u, sizeof *s->settled),
                         .open = calloc(n + 1u, sizeof *s->open),
                         .first = calloc(2 * n + 1u, sizeof *s->first),
                         .neighbours = calloc((size_t)n * n + 1, sizeof *s->neighbours)};
    if (s->ties == NULL || s->labels == NULL || s->heap == NULL || s->settled == NULL || s->open == NULL ||
        s->first == NULL || s->neighbours == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for routes among %u kinds of hosts", n);
    uint32_t used = 0;
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t j = 0; j < n; j++)
            s->ties[(size_t)i * n + j] = (uint8_t)tb_connectivity_tie(connectivity, i, j);
        for (uint32_t tie = TB_TIE_DIRECT; tie <= TB_TIE_ONE_WAY; tie++) {
            for (uint32_t j = 0; j < n; j++) {
                if (i != j && s->ties[(size_t)i * n + j] == tie)
                    s->neighbours[used++] = j;
            }
            s->first[2 * i + tie + 1] = used;
        }
    }
    return TB_OK;
}

static void search_close(struct search *s)
{
    free(s->ties);
    free(s->labels);
    free(s->heap);
    free(s->settled);
    free(s->open);
    free(s->first);
    free(s->neighbours);
}

int tb_routes_open(struct tb_routes *routes, const struct tb_connectivity *connectivity)
{
    uint32_t n = connectivity->classes.class_count;
    struct search s;
    int rc = search_open(&s, connectivity);
    *routes = (struct tb_routes){
        .connectivity = connectivity, .class_count = n, .table = calloc((size_t)n * n + 1, sizeof *routes->table)};
    if (rc == TB_OK && routes->table == NULL)
        rc = tb_error(TB_ERR_MEMORY, "no memory for routes among %u kinds of hosts", n);
    for (uint32_t to = 0; to < n && rc == TB_OK; to++) {
        settle_all(&s, to);
        rc = store(routes, &s, to);
    }
    search_close(&s);
    if (rc != TB_OK)
        tb_routes_close(routes);
    return rc;
}

void tb_routes_close(struct tb_routes *routes)
{
    free(routes->table);
    free(routes->nexts);
    *routes = (struct tb_routes){0};
}

/* ---- hosts ------------------------------------------------------------------------------------------------------- */

static uint32_t sum_sizes(const struct tb_host_classes *classes, const uint32_t *nexts, uint32_t count)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < count; i++)
        sum += tb_host_classes_size(classes, nexts[i]);
    return sum;
}

static uint32_t choose(const struct tb_host_classes *classes, const uint32_t *nexts, uint32_t count, uint32_t to,
                       uint32_t spread)
{
    if (count == 0)
        return TB_GRID_NONE;
    if (nexts[0] == classes->of[to]) /* then it is the only one: who can connect does connect */
        return to;
    uint32_t place = spread % sum_sizes(classes, nexts, count), i = 0;
    while (place >= tb_host_classes_size(classes, nexts[i]))
        place -= tb_host_classes_size(classes, nexts[i++]);
    return tb_host_classes_member(classes, nexts[i], place);
}

static const struct tb_route *route_of(const struct tb_routes *routes, uint32_t from, uint32_t to)
{
    const struct tb_host_classes *classes = &routes->connectivity->classes;
    TB_ASSERT(from < classes->host_count && to < classes->host_count);
    return tb_routes_between(routes, classes->of[from], classes->of[to]);
}

uint32_t tb_routes_next(const struct tb_routes *routes, uint32_t from, uint32_t to, uint32_t spread)
{
    const struct tb_route *route = route_of(routes, from, to);
    return choose(&routes->connectivity->classes, routes->nexts + route->first, route->count, to, spread);
}

uint32_t tb_routes_choices(const struct tb_routes *routes, uint32_t from, uint32_t to)
{
    const struct tb_route *route = route_of(routes, from, to);
    if (route->hops == 1)
        return 1;
    return sum_sizes(&routes->connectivity->classes, routes->nexts + route->first, route->count);
}

uint32_t tb_routes_path(const struct tb_routes *routes, uint32_t from, uint32_t to, uint32_t room, uint32_t *hosts)
{
    uint32_t count = 0;
    for (uint32_t at = from; at != TB_GRID_NONE && count < room; at = tb_routes_next(routes, at, to, 0)) {
        hosts[count++] = at;
        if (at == to)
            return count;
    }
    return 0;
}

static uint32_t first_with_slots(const struct tb_connectivity *c, uint32_t class)
{
    for (uint32_t i = 0; i < tb_host_classes_size(&c->classes, class); i++) {
        uint32_t host = tb_host_classes_member(&c->classes, class, i);
        if (c->grid->hosts[host].slots > 0)
            return host;
    }
    return TB_GRID_NONE;
}

bool tb_routes_first_missing(const struct tb_routes *routes, uint32_t *from, uint32_t *to)
{
    for (uint32_t i = 0; i < routes->class_count; i++) {
        *from = first_with_slots(routes->connectivity, i);
        for (uint32_t j = i + 1; j < routes->class_count && *from != TB_GRID_NONE; j++) {
            if (tb_routes_between(routes, i, j)->cost != TB_ROUTE_COST_NONE)
                continue;
            *to = first_with_slots(routes->connectivity, j);
            if (*to != TB_GRID_NONE)
                return true;
        }
    }
    return false;
}
