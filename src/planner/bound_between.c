#include "planner/bound_between.h"
#include "planner/bound_cut.h"
#include "planner/bound_graph.h"
#include "planner/bound_part.h"
#include "planner/item_bytes.h"

/* ---- from one host, and to it ------------------------------------------------------------------------------------ */

struct tb_bound_centre {
    const struct tb_collective *call;
    const struct tb_cost_table *table;
    const struct tb_group_shape *shape;
    struct tb_bound_graph graph;
    struct tb_bound *bound;
    uint32_t host;
    uint64_t spent;
};

static int centre_open(struct tb_bound_centre *w, struct tb_ways *ways, const struct tb_collective *c, uint64_t limit,
                       struct tb_bound *bound, uint64_t *looks)
{
    *w = (struct tb_bound_centre){.call = c,
                                  .table = ways->table,
                                  .shape = ways->shape,
                                  .bound = bound,
                                  .spent = tb_bound_graph_spent(ways->table)};
    *looks = tb_bound_graph_looks(ways->table, ways->shape);
    return *looks <= limit ? tb_bound_graph_open(&w->graph, w->table, w->shape) : TB_OK;
}

/* So many bytes pass the host's port, from it or to it, and those with whom it has to do are so far away; `far` is
 * TB_COST_NEVER where there is none on another host. */
static void centre_raise(struct tb_bound_centre *w, bool away, uint64_t bytes, uint64_t far)
{
    const struct tb_spot spot = tb_group_shape_spot(w->shape, w->host);
    const struct tb_cost_place *place = &w->table->places[spot.place];
    if (far == TB_COST_NEVER)
        return;
    uint64_t latency = tb_cost_add(far, w->spent), passes = 0;
    if (tb_bound_graph_is_plain(w->table, &spot))
        passes = tb_bound_bytes_time(bytes, tb_bound_graph_port_rate(&w->graph, &spot));
    uint64_t behind = away || (w->graph.bare && !place->hub) ? latency : 0;
    if (latency > w->bound->time)
        *w->bound = (struct tb_bound){latency, latency, TB_BOUND_NONE, TB_BOUND_NONE};
    if (passes > 0 && tb_cost_add(passes, behind) > w->bound->time)
        *w->bound = (struct tb_bound){tb_cost_add(passes, behind), behind, w->host, TB_BOUND_NONE};
}

/* The farther of two; TB_COST_NEVER: there is none. */
static uint64_t farther(uint64_t a, uint64_t b)
{
    return a == TB_COST_NEVER ? b : b == TB_COST_NEVER ? a : a > b ? a : b;
}

static uint64_t nearer(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* ---- two groups -------------------------------------------------------------------------------------------------- */

/* Between a rank of one group and all ranks of the other. */
static void group_look(struct tb_bound_centre *w, uint32_t rank, bool away, uint64_t bytes)
{
    const struct tb_group_shape *s = w->shape;
    const bool blocks = tb_item_data_of(w->call).blocks;
    uint32_t first = rank < s->split ? s->split : 0, end = rank < s->split ? s->size : s->split, others = 0;
    uint64_t most = TB_COST_NEVER, least = TB_COST_NEVER;
    w->host = tb_group_shape_host(s, rank);
    tb_bound_graph_walk(&w->graph, w->host, away);
    for (uint32_t i = first; i < end; i++) {
        uint32_t host = tb_group_shape_host(s, i);
        if (host == w->host)
            continue;
        uint64_t far = tb_bound_graph_time(&w->graph, w->host, host);
        most = farther(most, far);
        least = nearer(least, far);
        others++;
    }
    centre_raise(w, away, 0, most);
    centre_raise(w, away, tb_bound_times(bytes, blocks ? others : 1), blocks ? least : most);
}

int tb_bound_between(struct tb_ways *ways, const struct tb_collective *c, uint64_t limit, struct tb_bound *bound,
                     uint64_t *looks)
{
    struct tb_bound_centre w;
    enum tb_bound_reach reach = tb_bound_reach_of(c->operation);
    const struct tb_group_shape *s = ways->shape;
    int error = centre_open(&w, ways, c, limit, bound, looks);
    if (error == TB_OK && w.graph.table != NULL && s->split > 0) {
        bool rooted = reach == TB_BOUND_REACH_FROM_ROOT || reach == TB_BOUND_REACH_TO_ROOT;
        if (!rooted && reach != TB_BOUND_REACH_NONE) {
            /* How much the two groups have for each other need not be the same. */
            group_look(&w, 0, true, 0);
            group_look(&w, 0, false, 0);
        } else if (rooted && c->root != TB_ROOT_BESIDE) {
            bool here = c->root == TB_ROOT_HERE;
            uint32_t root = tb_group_shape_index(s, c->first, !here, here ? c->rank : c->root);
            group_look(&w, root, reach == TB_BOUND_REACH_FROM_ROOT, tb_item_data_of(c).bytes);
        }
    }
    tb_bound_graph_close(&w.graph);
    return error;
}

/* ---- neighbours -------------------------------------------------------------------------------------------------- */

/* Blocks that are the same for all targets leave once at least, others each. */
static void neighbours_look(struct tb_bound_centre *w, const uint32_t *ranks, uint32_t count, bool away)
{
    uint64_t most = TB_COST_NEVER, least = TB_COST_NEVER;
    uint32_t others = 0;
    bool same =
        w->call->operation == TB_OPERATION_NEIGHBOR_ALLGATHER || w->call->operation == TB_OPERATION_NEIGHBOR_ALLGATHERV;
    tb_bound_graph_walk(&w->graph, w->host, away);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t host = ranks[i] != TB_NOBODY ? tb_group_shape_host(w->shape, ranks[i]) : w->host;
        if (host == w->host)
            continue;
        uint64_t far = tb_bound_graph_time(&w->graph, w->host, host);
        most = farther(most, far);
        least = nearer(least, far);
        others = same ? 1 : others + 1;
    }
    centre_raise(w, away, 0, most);
    centre_raise(w, away, tb_bound_times(tb_call_bytes(w->call), others), least);
}

int tb_bound_neighbours(struct tb_ways *ways, const struct tb_collective *c, uint64_t limit, struct tb_bound *bound,
                        uint64_t *looks)
{
    struct tb_bound_centre w;
    int error = centre_open(&w, ways, c, limit, bound, looks);
    if (error == TB_OK && w.graph.table != NULL) {
        w.host = tb_group_shape_host(w.shape, c->rank);
        neighbours_look(&w, c->sources, c->source_count, false);
        neighbours_look(&w, c->targets, c->target_count, true);
    }
    tb_bound_graph_close(&w.graph);
    return error;
}
