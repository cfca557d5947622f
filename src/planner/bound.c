#include "planner/bound.h"
#include "planner/bound_between.h"
#include "planner/bound_cut.h"
#include "planner/bound_many.h"
#include "planner/bound_part.h"
#include "planner/item_bytes.h"

#define RANK_LOOK 16u /* so many ranks are counted in the time of a look at a way */
#define FEW_SPOTS 16u /* up to so many, each that must get something is looked at by itself, */
#define FEW_PARTS 8u  /* and of places of so many parts all that some of them can be together */

/* Of prefixes: one of its ranks, and whether those before and behind it are in it, too. */
static void part_count(const struct tb_collective *c, struct tb_bound_part *p, uint32_t rank, bool before, bool behind)
{
    p->enters += rank > 0 && !before ? 1 : 0;
    p->leaves += rank + 1 < c->size && !behind ? 1 : 0;
}

/* ---- paths ------------------------------------------------------------------------------------------------------- */

/* From one rank of a host to another. */
static uint64_t host_cost(const struct tb_bound_state *s)
{
    const struct tb_cost_constants *c = &s->ways->table->head->constants;
    return tb_cost_add(c->shm_latency, tb_cost_least(&c->ends[TB_ENDS_SHM].send));
}

static void bound_raise(struct tb_bound *b, uint64_t time, uint64_t latency, uint32_t host, uint32_t place)
{
    if (time > b->time)
        *b = (struct tb_bound){time, latency, host, place};
}

static void paths_look(const struct tb_bound_state *s, const struct tb_collective *c, struct tb_bound *b)
{
    enum tb_bound_reach reach = tb_bound_reach_of(c->operation);
    uint32_t root = s->spot_of[tb_group_shape_host(s->shape, c->root)];
    if (c->size > 1 && (s->shape->host_count == 1 || reach == TB_BOUND_REACH_ALL) && s->shape->most > 1)
        bound_raise(b, host_cost(s), host_cost(s), TB_BOUND_NONE, TB_BOUND_NONE);
    for (uint32_t i = 0; i < s->spot_count; i++)
        for (uint32_t k = 0; k < s->spot_count; k++) {
            bool up = s->spots[i].first < s->spots[k].last;
            if ((reach == TB_BOUND_REACH_FROM_ROOT && i != root) || (reach == TB_BOUND_REACH_TO_ROOT && k != root) ||
                (reach == TB_BOUND_REACH_UP && (!up || i == k)) || reach == TB_BOUND_REACH_NONE)
                continue;
            uint64_t far = i != k ? tb_bound_far(s, i, k) : s->spots[i].hosts > 1 ? s->spots[i].around : 0;
            bound_raise(b, far, far, TB_BOUND_NONE, TB_BOUND_NONE);
        }
}

/* ---- cuts -------------------------------------------------------------------------------------------------------- */

/* Of what everyone inside of a place must get: a host there gets it no faster than it comes, nor than the host can. The
 * same of what everyone inside has. */
static void inside_look(struct tb_bound_state *s, const struct tb_bound_cut *cut, struct tb_bound *b)
{
    for (uint32_t i = 0; i < s->spot_count && s->error == TB_OK; i++) {
        struct tb_bound_cut one = *cut;
        if (!tb_bound_cut_has(s, cut, s->shape->hosts[s->spots[i].host].place))
            continue;
        one.inside = (struct tb_bound_side){.only = i};
        one.rate = tb_bound_host_rate(s, s->spots[i].host, cut->in, &one.spent);
        one.burst = s->burst;
        uint64_t latency, time = one.rate > 0 ? tb_bound_cut_time(s, &one, &latency) : 0;
        if (time > 0)
            bound_raise(b, time, latency, s->spots[i].host, TB_BOUND_NONE);
    }
}

/* The same of those outside of it, each of which is as far from there as it is. */
static void outside_look(struct tb_bound_state *s, const struct tb_bound_cut *cut, struct tb_bound *b)
{
    for (uint32_t i = 0; i < s->spot_count && s->error == TB_OK; i++) {
        struct tb_bound_cut one = *cut;
        if (tb_bound_cut_has(s, cut, s->shape->hosts[s->spots[i].host].place))
            continue;
        one.outside = (struct tb_bound_side){.only = i};
        uint64_t latency, time = tb_bound_cut_time(s, &one, &latency);
        bound_raise(b, time, latency, TB_BOUND_NONE, cut->place);
    }
}

/* One direction across a boundary. */
static void side_look(struct tb_bound_state *s, const struct tb_collective *c, const struct tb_bound_part *p,
                      struct tb_bound_cut cut, struct tb_bound *b)
{
    enum tb_bound_reach reach = tb_bound_reach_of(c->operation);
    uint32_t root = s->spot_of[tb_group_shape_host(s->shape, c->root)];
    uint64_t latency, bytes = tb_item_data_of(c).bytes;
    /* What comes in from the root, or goes out to it, has that end outside; the other way it is inside. */
    bool outside = (reach == TB_BOUND_REACH_FROM_ROOT) == cut.in,
         rooted = reach == TB_BOUND_REACH_FROM_ROOT || reach == TB_BOUND_REACH_TO_ROOT;
    cut.outside.only = rooted && outside ? root : TB_BOUND_NONE;
    cut.inside.only = rooted && !outside ? root : TB_BOUND_NONE;
    const struct tb_bound_load load = tb_bound_part_load(c, bytes, p, cut.in);
    cut.bytes = load.bytes;
    cut.inside.all = load.inside_all;
    cut.outside.all = load.outside_all;
    uint64_t time = tb_bound_cut_time(s, &cut, &latency);
    bound_raise(b, time, latency, cut.host, cut.place);
    if (!s->thorough || cut.place == TB_BOUND_NONE || cut.bytes == 0)
        return;
    if (cut.inside.all)
        inside_look(s, &cut, b);
    if (cut.outside.all && s->spot_count <= FEW_SPOTS)
        outside_look(s, &cut, b);
}

/* Both. */
static void part_look(struct tb_bound_state *s, const struct tb_collective *c, const struct tb_bound_part *p,
                      struct tb_bound_cut cut, struct tb_bound *b)
{
    if (p->ranks == c->size)
        return;
    side_look(s, c, p, cut, b);
    cut.in = true;
    side_look(s, c, p, cut, b);
}

static void host_look(struct tb_bound_state *s, const struct tb_collective *c, uint32_t host, struct tb_bound *b)
{
    const struct tb_shape_host *h = &s->shape->hosts[host];
    struct tb_bound_part p = {.ranks = h->rank_count, .root = tb_group_shape_host(s->shape, c->root) == host};
    uint32_t first = tb_bound_reach_of(c->operation) == TB_BOUND_REACH_UP ? h->first_rank : TB_PLACE_NONE;
    for (uint32_t rank = first; rank != TB_PLACE_NONE; rank = tb_group_shape_next(s->shape, rank))
        part_count(c, &p, rank, rank > 0 && tb_group_shape_host(s->shape, rank - 1) == host,
                   rank + 1 < c->size && tb_group_shape_host(s->shape, rank + 1) == host);
    part_look(s, c, &p, (struct tb_bound_cut){.host = host, .place = TB_BOUND_NONE}, b);
}

static bool place_has(const struct tb_bound_state *s, uint32_t place, uint32_t rank)
{
    uint32_t at = tb_group_shape_place(s->shape, rank);
    return at >= place && at < s->shape->places[place].end;
}

static void place_count(struct tb_bound_state *s, const struct tb_collective *c, uint32_t place,
                        struct tb_bound_part *p)
{
    const struct tb_group_shape *shape = s->shape;
    const struct tb_shape_place *row = &shape->places[place];
    for (uint32_t i = row->host; i < row->host + row->hosts; i++)
        for (uint32_t rank = shape->hosts[shape->order[i]].first_rank; rank != TB_PLACE_NONE;
             rank = tb_group_shape_next(shape, rank))
            part_count(c, p, rank, rank > 0 && place_has(s, place, rank - 1),
                       rank + 1 < c->size && place_has(s, place, rank + 1));
    s->looks += row->rank_count / RANK_LOOK;
}

static void place_look(struct tb_bound_state *s, const struct tb_collective *c, uint32_t place, struct tb_bound *b)
{
    const struct tb_shape_place *row = &s->shape->places[place];
    uint32_t root = tb_group_shape_place(s->shape, c->root);
    struct tb_bound_part p = {.ranks = row->rank_count, .root = root >= place && root < row->end};
    if (tb_bound_reach_of(c->operation) == TB_BOUND_REACH_UP)
        place_count(s, c, place, &p);
    part_look(s, c, &p, (struct tb_bound_cut){.host = TB_BOUND_NONE, .place = place}, b);
}

/* Some of the parts of a place, taken as one: what they need of those outside passes less than what each has of its
 * own. Of operations with a root those without it, since of the others nothing else must pass. */
static void some_look(struct tb_bound_state *s, const struct tb_collective *c, uint32_t parent, uint32_t parts,
                      struct tb_bound *b)
{
    const struct tb_shape_place *places = s->shape->places;
    uint32_t root = tb_group_shape_place(s->shape, c->root);
    struct tb_bound_part p = {.ranks = 0};
    for (uint32_t i = parent + 1, bit = 1; i < places[parent].end; i = places[i].end, bit <<= 1)
        if ((parts & bit) != 0) {
            p.ranks += places[i].rank_count;
            p.root = p.root || (root >= i && root < places[i].end);
        }
    enum tb_bound_reach reach = tb_bound_reach_of(c->operation);
    if (!p.root || (reach != TB_BOUND_REACH_FROM_ROOT && reach != TB_BOUND_REACH_TO_ROOT))
        part_look(s, c, &p, (struct tb_bound_cut){.host = TB_BOUND_NONE, .place = parent, .parts = parts}, b);
}

static void unions_look(struct tb_bound_state *s, const struct tb_collective *c, uint32_t parent, uint64_t limit,
                        struct tb_bound *b)
{
    uint32_t count = s->shape->places[parent].child_count;
    if (!s->thorough || s->spot_count > FEW_SPOTS || count < 3 || count > FEW_PARTS ||
        tb_bound_reach_of(c->operation) == TB_BOUND_REACH_UP)
        return;
    for (uint32_t parts = 1; parts + 1 < 1u << count && s->error == TB_OK && s->looks < limit; parts++)
        if ((parts & (parts - 1)) != 0)
            some_look(s, c, parent, parts, b);
}

/* Out of the root's place, if there are several others beside it, or into it. */
static void beside_look(struct tb_bound_state *s, const struct tb_collective *c, uint32_t place, struct tb_bound *b)
{
    const struct tb_shape_place *places = s->shape->places;
    uint32_t root = tb_group_shape_place(s->shape, c->root), groups = places[places[place].parent].child_count - 1;
    bool down = c->operation == TB_OPERATION_BCAST;
    if ((!down && c->operation != TB_OPERATION_REDUCE) || groups < 2 || root < place || root >= places[place].end)
        return;
    const struct tb_bound_cut cut = {.host = TB_BOUND_NONE,
                                     .place = place,
                                     .in = !down,
                                     .bytes = tb_item_data_of(c).bytes,
                                     .inside.only = s->spot_of[tb_group_shape_host(s->shape, c->root)],
                                     .outside.only = TB_BOUND_NONE,
                                     .groups = groups};
    uint64_t latency, time = tb_bound_cut_time(s, &cut, &latency);
    bound_raise(b, time, latency, TB_BOUND_NONE, place);
}

/* A reduction that all of several places get takes 2 (n - 1) messages between n of them for each element, as gossip
 * does: until one of them knows of all, n - 1 at least; then the other n - 1 do not yet, and each must get one more. */
static void parts_look(struct tb_bound_state *s, const struct tb_collective *c, uint32_t parent, struct tb_bound *b)
{
    const struct tb_shape_place *row = &s->shape->places[parent];
    uint32_t ranks = 0;
    for (uint32_t i = parent + 1; i < row->end; i = s->shape->places[i].end)
        ranks += s->shape->places[i].rank_count;
    if (c->operation != TB_OPERATION_ALLREDUCE || row->child_count < 2 || ranks < c->size)
        return;
    uint64_t latency, bytes = tb_bound_times(tb_item_data_of(c).bytes, 2 * (row->child_count - 1));
    uint64_t time = tb_bound_children_time(s, parent, bytes, &latency);
    bound_raise(b, time, latency, TB_BOUND_NONE, parent);
}

/* All hosts that may decide: of those that nothing tells apart, one with the fewest ranks and one with the most. */
static void hosts_look(struct tb_bound_state *s, const struct tb_collective *c, uint64_t limit, struct tb_bound *b)
{
    uint32_t root = tb_group_shape_host(s->shape, c->root);
    for (uint32_t i = 0; i < s->spot_count && s->error == TB_OK && s->looks < limit; i++) {
        const struct tb_bound_spot *spot = &s->spots[i];
        host_look(s, c, spot->few, b);
        if (spot->many != spot->few)
            host_look(s, c, spot->many, b);
        if (s->spot_of[root] == i && root != spot->few && root != spot->many)
            host_look(s, c, root, b);
    }
}

static void places_look(struct tb_bound_state *s, const struct tb_collective *c, uint64_t limit, struct tb_bound *b)
{
    for (uint32_t i = 1; i < s->shape->place_count && s->error == TB_OK && s->looks < limit; i++)
        place_look(s, c, i, b);
    for (uint32_t i = 0; i < s->shape->place_count && s->error == TB_OK && s->looks < limit; i++) {
        if (i > 0)
            beside_look(s, c, i, b);
        parts_look(s, c, i, b);
        unions_look(s, c, i, limit, b);
    }
}

/* What passes some wires at once after a rest makes what a cut needs shorter by so much at most; where cuts do not
 * count it themselves. */
static int burst_take(const struct tb_ways *ways, struct tb_bound *bound, int error)
{
    uint64_t load = bound->time > bound->latency ? bound->time - bound->latency : 0;
    uint64_t burst = ways->table->head->constants.burst;
    bound->time -= load < burst ? load : burst;
    return error;
}

int tb_bound_find_within(struct tb_ways *ways, const struct tb_collective *c, uint64_t limit, struct tb_bound *bound,
                         uint64_t *looks)
{
    struct tb_bound_state s;
    *bound = (struct tb_bound){.host = TB_BOUND_NONE, .place = TB_BOUND_NONE};
    *looks = 0;
    bool nothing = c->operation != TB_OPERATION_BARRIER && tb_call_bytes(c) == 0;
    if (nothing)
        return TB_OK;
    if (c->inter)
        return burst_take(ways, bound, tb_bound_between(ways, c, limit, bound, looks));
    if (tb_bound_has_neighbours(c->operation))
        return burst_take(ways, bound, tb_bound_neighbours(ways, c, limit, bound, looks));
    int error = tb_bound_state_open(&s, ways, limit);
    s.thorough = limit >= TB_BOUND_THOROUGH;
    if (error == TB_OK && s.spot_count > 0) {
        /* Between places there is mostly less to pass by than into a host, so these come first where not all can be
         * looked at. */
        bool all = limit == UINT64_MAX;
        paths_look(&s, c, bound);
        if (!all)
            places_look(&s, c, limit, bound);
        hosts_look(&s, c, limit, bound);
        if (all)
            places_look(&s, c, limit, bound);
        error = s.error;
    }
    *looks = s.looks;
    if (error == TB_OK && s.spot_count == 0)
        error = burst_take(ways, bound, tb_bound_many(ways, c, limit, bound, looks));
    tb_bound_state_close(&s);
    return error;
}

int tb_bound_find(struct tb_ways *ways, const struct tb_collective *c, struct tb_bound *bound)
{
    uint64_t looks;
    return tb_bound_find_within(ways, c, UINT64_MAX, bound, &looks);
}
