#include "collectives/planned.h"

#define SHARED_WINDOW 4u  /* messages in flight to one of several children, so that they get theirs in turn, */
#define BESIDE_WINDOW 2u  /* and of each of several trees */
#define FINE_PIECES   64u /* of fewer pieces, each is cut so that trees get what their shares say, */
#define FINE_MOST     64u /* into so many at most */

/* ---- whether ----------------------------------------------------------------------------------------------------- */

static bool is_rooted(enum tb_operation o)
{
    return o != TB_OPERATION_ALLREDUCE && o != TB_OPERATION_BARRIER;
}

bool tb_fits_planned(const struct tb_collective *c)
{
    const struct tb_group_shape *s = c->shape;
    return c->forest != NULL && !c->inter && s != NULL && s->size == c->size && s->host_count > 1 &&
           c->forest->nodes == s->host_count &&
           (!is_rooted(c->operation) || tb_group_shape_host(s, c->root) == c->forest->root);
}

/* ---- pieces ------------------------------------------------------------------------------------------------------ */

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b > 0) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Each tree has pieces that follow each other. A whole share is one message; and where there are few messages they are
 * cut into several pieces, so that shares are as the forest says. None of them is empty. */
static void pieces_deal(struct tb_planned *p)
{
    const struct tb_forest *f = p->call->forest;
    struct tb_collective cut = *p->call;
    uint64_t all = 0, divisor = 0, before = 0;
    cut.argument = f->piece < TB_ARGUMENT_PIECE ? f->piece : 0;
    for (uint32_t i = 0; i < f->trees; i++) {
        all += f->shares[i];
        divisor = common_divisor(f->shares[i], divisor);
    }
    p->pieces = tb_pieces(&cut);
    p->join = 1;
    if (f->trees > 1 && p->pieces < FINE_PIECES) {
        uint64_t join = all / divisor < FINE_MOST ? all / divisor : FINE_MOST, most = cut.elements / p->pieces;
        p->join = (uint32_t)(join < most ? join : most > 0 ? most : 1);
    }
    p->pieces *= p->join;
    if (cut.elements > 0) {
        uint64_t each = (cut.elements + p->pieces - 1) / p->pieces;
        p->pieces = (uint32_t)((cut.elements + each - 1) / each);
    }
    for (uint32_t i = 0; i < f->trees; i++) {
        p->low[i] = (uint32_t)((p->pieces * before + all / 2) / all);
        before += f->shares[i];
    }
    p->low[f->trees] = p->pieces;
}

/* ---- neighbours -------------------------------------------------------------------------------------------------- */

/* The ranks of this host in a binomial tree behind its leader. */
static void inside_find(struct tb_planned *p)
{
    const struct tb_collective *c = p->call;
    const uint32_t first = c->shape->hosts[p->host.call.rank].first_rank;
    uint32_t mine = 0, leader = 0, at = 0;
    for (uint32_t r = first; r != TB_PLACE_NONE; r = tb_group_shape_next(c->shape, r), at++) {
        mine = r == c->rank ? at : mine;
        leader = r == p->host.leader ? at : leader;
    }
    struct tb_tree places, *t = &p->inside;
    TB_ASSERT(at > 0);
    tb_tree_find(&places, TB_TREE_BINOMIAL, 0, at, leader, (mine + at - leader) % at);
    t->count = places.count;
    at = 0;
    for (uint32_t r = first; r != TB_PLACE_NONE; r = tb_group_shape_next(c->shape, r), at++) {
        t->parent = at == places.parent ? r : t->parent;
        for (uint32_t i = 0; i < places.count; i++)
            t->children[i] = at == places.children[i] ? r : t->children[i];
    }
}

void tb_planned_open(struct tb_planned *p, const struct tb_collective *c)
{
    const uint32_t top = c->forest->root;
    p->call = c;
    tb_hosts_open(&p->host, c, is_rooted(c->operation) ? c->root : c->shape->hosts[top].first_rank);
    p->leads = c->rank == p->host.leader;
    p->common =
        p->host.members > 1 && p->host.members <= TB_HOSTS_RANKS && c->common && (c->skip & 1u << TB_LEVEL_HOST) == 0;
    p->inside.count = 0;
    p->inside.parent = c->rank;
    if (!p->common && p->host.members > 1)
        inside_find(p);
    pieces_deal(p);
}

uint32_t tb_planned_leader(const struct tb_planned *p, uint32_t node)
{
    return node == p->host.call.root ? p->host.root : p->call->shape->hosts[node].first_rank;
}

/* Where this rank's host stands in `first` of the forest. */
static size_t first_of(const struct tb_planned *p, uint32_t tree)
{
    return (size_t)tree * (p->call->forest->nodes + (size_t)1) + p->host.call.rank;
}

static uint32_t children_outside(const struct tb_planned *p, uint32_t tree)
{
    const uint32_t *first = p->call->forest->first + first_of(p, tree);
    return p->leads ? first[1] - first[0] : 0;
}

uint32_t tb_planned_children(const struct tb_planned *p, uint32_t tree)
{
    return children_outside(p, tree) + p->inside.count;
}

uint32_t tb_planned_child(const struct tb_planned *p, uint32_t tree, uint32_t child)
{
    const struct tb_forest *f = p->call->forest;
    uint32_t outside = children_outside(p, tree);
    return child < outside ? tb_planned_leader(p, f->children[f->first[first_of(p, tree)] + child])
                           : p->inside.children[child - outside];
}

bool tb_planned_parent(const struct tb_planned *p, uint32_t tree, uint32_t *parent)
{
    const struct tb_forest *f = p->call->forest;
    const uint32_t node = p->host.call.rank;
    *parent = p->leads ? tb_planned_leader(p, f->parents[(size_t)tree * f->nodes + node]) : p->inside.parent;
    return !p->leads || node != f->root;
}

/* ---- down -------------------------------------------------------------------------------------------------------- */

static uint32_t window_of(const struct tb_planned *p, uint32_t children)
{
    return p->call->forest->trees > 1 ? BESIDE_WINDOW : children > 1 ? SHARED_WINDOW : 0;
}

uint32_t tb_planned_down(struct tb_builder *b, const struct tb_planned *p, uint32_t tree, uint16_t edge, uint32_t ready)
{
    const struct tb_slice slice = tb_slice_many(TB_SYMBOL_OUT, p->low[tree], p->low[tree + 1] - p->low[tree]);
    uint32_t children = tb_planned_children(p, tree), parent;
    if (slice.count == 0 || tb_planned_alone(p))
        return ready;
    if (tb_planned_parent(p, tree, &parent)) {
        uint32_t before = ready;
        ready = tb_builder_receive(b, parent, edge, slice);
        tb_builder_cut(b, p->join);
        tb_after_pieces(b, before);
    }
    /* Each piece has left for one child before it goes to the next. */
    for (uint32_t i = 0, sent = ready; i < children; i++) {
        uint32_t before = sent;
        sent = tb_builder_send(b, tb_planned_child(p, tree, i), edge, slice);
        tb_builder_cut(b, p->join);
        tb_builder_pipeline(b, window_of(p, children));
        tb_after_pieces(b, before);
    }
    return ready;
}

void tb_planned_out(struct tb_builder *b, const struct tb_planned *p, uint16_t place, const uint32_t *come,
                    uint32_t before)
{
    const struct tb_slice data = tb_slice_whole(b, TB_SYMBOL_OUT, 0), nothing = tb_slice_nothing();
    if (!p->common)
        return;
    tb_hosts_meet(b, &p->host, p->call, TB_COMPOSITE_BCAST, place, p->leads ? data : nothing,
                  p->leads ? nothing : data);
    tb_builder_cut(b, p->join);
    tb_after_pieces(b, before);
    for (uint32_t i = 0; p->leads && i < p->call->forest->trees; i++)
        if (p->low[i] < p->low[i + 1] && come[i] != TB_STEP_NONE)
            tb_builder_after_lag(b, come[i], (int32_t)p->low[i]);
}

/* ---- up ---------------------------------------------------------------------------------------------------------- */

struct tb_level_sum tb_planned_sum(struct tb_builder *b, const struct tb_planned *p, uint16_t place, bool out)
{
    const struct tb_slice own = tb_slice_whole(b, tb_source(p->call), 0), nothing = tb_slice_nothing();
    struct tb_level_sum sum = {.at = own, .ready = TB_STEP_NONE, .out = out, .ours = out && p->call->in_place};
    sum.room_free[0] = sum.room_free[1] = TB_STEP_NONE;
    if (!p->common)
        return sum;
    if (p->leads) {
        sum.at = tb_slice_whole(b, out ? TB_SYMBOL_OUT : TB_SYMBOL_WORK, 0);
        sum.ours = true;
        sum.turn = out ? 0 : 1;
    }
    sum.ready = tb_hosts_meet(b, &p->host, p->call, TB_COMPOSITE_REDUCE, place, own, p->leads ? sum.at : nothing);
    tb_builder_cut(b, p->join);
    return sum;
}

struct tb_level_sum tb_planned_up(struct tb_builder *b, const struct tb_planned *p, uint32_t tree, uint16_t edge,
                                  const struct tb_level_sum *whole)
{
    struct tb_level_sum sum = *whole;
    uint32_t parent;
    sum.at = tb_slice_range(whole->at, p->low[tree], p->low[tree + 1]);
    sum.beside = p->call->forest->trees > 1;
    sum.low = p->low[tree];
    sum.lag = -(int32_t)sum.low;
    if (sum.at.count == 0 || tb_planned_alone(p))
        return sum;
    /* The other way round than down: who is told last has the least behind it to wait for. */
    for (uint32_t i = tb_planned_children(p, tree); i-- > 0;)
        tb_level_sum_add(b, &sum, tb_planned_child(p, tree, i), edge, p->join);
    if (tb_planned_parent(p, tree, &parent))
        tb_level_sum_send(b, &sum, parent, edge, p->join);
    return sum;
}
