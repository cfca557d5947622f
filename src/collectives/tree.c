/* Trees: who my parent and my children are, found by going down from the root, and what is passed along. */
#include "collectives/algorithms.h"

#define LATENCY_LIMIT 16u
#define FAN_LIMIT     64u
#define SHARED_WINDOW 4u /* pieces in flight to one of several children, so that they get theirs in turn */

/* ---- shapes ------------------------------------------------------------------------------------------------------ */

/* reach[t]: how many ranks the postal model's best tree has told after t gaps, beginning with one. As far as `size`;
 * returns the last index. */
static uint32_t postal_reach(uint64_t *reach, uint64_t latency, uint64_t size)
{
    uint32_t t = 0;
    for (reach[0] = 1; reach[t] < size; t++) {
        TB_ASSERT(t + 1 < TB_TREE_CHILDREN_LIMIT);
        reach[t + 1] = t + 1 < latency ? 1 : reach[t] + reach[t + 1 - latency];
    }
    return t;
}

/* How many ranks stand behind each child of the root of a tree of `size`, child included, the first child first. */
static uint32_t tree_split(enum tb_tree_kind kind, uint64_t argument, uint32_t size, uint32_t *behind)
{
    uint32_t rest = size - 1, count = 0;
    if (kind == TB_TREE_CHAIN) {
        behind[0] = rest;
        return rest > 0 ? 1 : 0;
    }
    if (kind == TB_TREE_EVEN) {
        uint32_t fan = argument < 1 ? 1 : argument > FAN_LIMIT ? FAN_LIMIT : (uint32_t)argument;
        for (uint32_t left = fan; rest > 0; left--, rest -= behind[count++])
            behind[count] = (rest + left - 1) / left;
        return count;
    }
    if (kind == TB_TREE_FIXED) {
        for (uint32_t left; size > 1; size = left) {
            left = tb_fixed_split(size, false);
            behind[count++] = size - left;
        }
        return count;
    }
    if (kind == TB_TREE_BINOMIAL) {
        for (uint64_t bit = 1ull << 32; bit > 0; bit /= 2)
            if (bit <= rest) {
                behind[count++] = rest + 1 - (uint32_t)bit;
                rest = (uint32_t)bit - 1;
            }
        return count;
    }
    uint64_t reach[TB_TREE_CHILDREN_LIMIT], latency = argument < 1               ? 1
                                                      : argument > LATENCY_LIMIT ? LATENCY_LIMIT
                                                                                 : argument;
    for (uint32_t t = postal_reach(reach, latency, size); rest > 0; t--, rest -= behind[count++]) {
        uint64_t told = t >= latency ? reach[t - latency] : 1;
        behind[count] = told < rest ? (uint32_t)told : rest;
    }
    return count;
}

uint32_t tb_tree_postal(uint64_t latency, uint32_t size, uint32_t *children, uint32_t *first)
{
    uint64_t reach[TB_TREE_CHILDREN_LIMIT];
    uint32_t behind[TB_TREE_CHILDREN_LIMIT];
    *children = tree_split(TB_TREE_POSTAL, latency, size, behind);
    *first = *children > 0 ? behind[0] : 0;
    return postal_reach(reach, latency < LATENCY_LIMIT ? latency : LATENCY_LIMIT, size);
}

uint32_t tb_binomial_behind(uint32_t size, uint32_t distance)
{
    uint32_t bit = distance & -distance;
    return distance == 0 ? size : bit < size - distance ? bit : size - distance;
}

void tb_tree_find(struct tb_tree *t, enum tb_tree_kind kind, uint64_t argument, uint32_t size, uint32_t root,
                  uint32_t distance)
{
    uint32_t low = 0, count = size, behind[TB_TREE_CHILDREN_LIMIT];
    *t = (struct tb_tree){.root = distance == 0};
    if (kind == TB_TREE_CHAIN && distance > 0) { /* nothing branches off on the way down */
        low = distance - 1;
        count = size - low;
    }
    while (low != distance) {
        uint32_t children = tree_split(kind, argument, count, behind), end = low + count;
        t->parent = (uint32_t)(((uint64_t)root + low) % size);
        for (uint32_t i = 0; i < children; i++) {
            end -= behind[i];
            count = behind[i];
            if (end <= distance)
                break;
        }
        low = end;
    }
    t->count = tree_split(kind, argument, count, behind);
    for (uint32_t i = 0, end = low + count; i < t->count; i++) {
        end -= behind[i];
        t->children[i] = (uint32_t)(((uint64_t)root + end) % size);
    }
}

void tb_tree_mine(struct tb_tree *t, enum tb_tree_kind kind, uint64_t argument, const struct tb_collective *c,
                  uint32_t root)
{
    uint32_t distance = (uint32_t)(((uint64_t)c->rank + c->size - root) % c->size);
    tb_tree_find(t, kind, argument, c->size, root, distance);
}

void tb_tree_group(struct tb_tree *t, const struct tb_collective *c)
{
    tb_tree_mine(t, tb_tree_binomial(c), 0, c, 0);
    t->whole = t->local = true;
}

/* ---- passing along ----------------------------------------------------------------------------------------------- */

/* The last added step is the tree's: of the whole, in which the builder orders steps; or piece by piece after `before`,
 * if there is such a step. */
static void tree_step(struct tb_builder *b, const struct tb_tree *t, uint32_t before)
{
    if (t->whole)
        tb_builder_join(b);
    else
        tb_after_pieces(b, before);
}

static uint32_t tree_send(struct tb_builder *b, const struct tb_tree *t, uint32_t peer, uint16_t edge,
                          struct tb_slice slice)
{
    uint32_t step = tb_builder_send(b, peer, edge, slice);
    if (t->local)
        tb_builder_local(b);
    if (t->join > 1)
        tb_builder_cut(b, t->join);
    return step;
}

static uint32_t tree_receive(struct tb_builder *b, const struct tb_tree *t, uint32_t peer, uint16_t edge,
                             struct tb_slice slice)
{
    uint32_t step = tb_builder_receive(b, peer, edge, slice);
    if (t->local)
        tb_builder_local(b);
    if (t->join > 1)
        tb_builder_cut(b, t->join);
    return step;
}

void tb_tree_broadcast(struct tb_builder *b, const struct tb_tree *t, uint16_t edge, struct tb_slice slice,
                       uint32_t ready)
{
    if (!t->root) {
        uint32_t before = ready;
        ready = tree_receive(b, t, t->parent, edge, slice);
        tree_step(b, t, before);
    }
    /* Each piece has left for one child before it goes to the next, so that the first one has it early and does not
     * share the port with the others. */
    for (uint32_t i = 0, sent = TB_STEP_NONE; i < t->count; i++) {
        uint32_t before = sent;
        sent = tree_send(b, t, t->children[i], edge, slice);
        if (!t->whole)
            tb_builder_pipeline(b, t->count > 1 ? SHARED_WINDOW : 0);
        tree_step(b, t, i == 0 ? ready : before);
    }
}

/* Combines a child's data, which comes with step `come` to `theirs`, with the sum so far, which is there after step
 * `*ready` (or at once), in place of one of the two. */
static void tree_combine(struct tb_builder *b, const struct tb_tree *t, struct tb_slice theirs, uint32_t come,
                         bool stays, struct tb_slice *sum, uint32_t *ready)
{
    uint32_t before = *ready;
    *ready = tb_builder_reduce(b, stays ? theirs : *sum, stays ? *sum : theirs);
    if (!t->whole)
        tb_builder_after_pieces(b, come);
    tree_step(b, t, before);
    if (!stays)
        *sum = theirs;
}

struct tb_slice tb_tree_reduce(struct tb_builder *b, const struct tb_tree *t, const struct tb_collective *c,
                               uint16_t edge, bool into_out, uint32_t *ready)
{
    struct tb_slice sum = tb_slice_whole(b, tb_source(c), 0), out = tb_slice_whole(b, TB_SYMBOL_OUT, 0);
    bool stays = into_out && c->in_place && c->commutative;
    uint32_t done = TB_STEP_NONE, before = TB_STEP_NONE;
    /* The nearest child comes next in the order of ranks, and has the fewest behind it to wait for. */
    for (uint32_t i = t->count; i-- > 0;) {
        struct tb_slice theirs = tb_slice_whole(b, TB_SYMBOL_WORK, i % 2);
        if (into_out && i == 0 && !c->in_place)
            theirs = out;
        uint32_t come = tree_receive(b, t, t->children[i], edge, theirs), room_free = TB_STEP_NONE;
        if (theirs.symbol == TB_SYMBOL_WORK)
            room_free = stays ? before : i + 2 < t->count ? done : TB_STEP_NONE;
        tree_step(b, t, room_free);
        before = done;
        tree_combine(b, t, theirs, come, stays, &sum, &done);
    }
    if (!t->root) {
        uint32_t sent = tree_send(b, t, t->parent, edge, sum);
        tree_step(b, t, done);
        done = sent;
    } else if (into_out && sum.symbol != TB_SYMBOL_OUT) {
        uint32_t copied = tb_builder_copy(b, sum, out);
        tree_step(b, t, done);
        done = copied;
        sum = out;
    }
    *ready = done;
    return sum;
}

/* ---- programs ---------------------------------------------------------------------------------------------------- */

int tb_tree_make_bcast(const struct tb_collective *c, enum tb_tree_kind kind, uint64_t argument, bool cut,
                       struct tb_program **program)
{
    struct tb_tree t;
    struct tb_builder b;
    tb_tree_mine(&t, kind, argument, c, c->root);
    tb_builder_open(&b, cut ? tb_pieces(c) : 1);
    tb_tree_broadcast(&b, &t, 0, tb_slice_whole(&b, TB_SYMBOL_OUT, 0), TB_STEP_NONE);
    return tb_builder_finish(&b, program);
}

int tb_tree_make_reduce(const struct tb_collective *c, enum tb_tree_kind kind, uint64_t argument,
                        struct tb_program **program)
{
    uint32_t root = c->commutative ? c->root : 0, ready;
    struct tb_tree t;
    struct tb_builder b;
    tb_tree_mine(&t, kind, argument, c, root);
    tb_builder_open(&b, tb_pieces(c));
    struct tb_slice sum = tb_tree_reduce(&b, &t, c, 0, t.root && root == c->root, &ready);
    if (t.root && root != c->root) {
        tb_builder_send(&b, c->root, 1, sum);
        tb_after_pieces(&b, ready);
    }
    if (c->rank == c->root && root != c->root) {
        tb_builder_receive(&b, root, 1, tb_slice_whole(&b, TB_SYMBOL_OUT, 0));
        tb_after_pieces(&b, ready);
    }
    return tb_builder_finish(&b, program);
}

int tb_tree_make_allreduce(const struct tb_collective *c, enum tb_tree_kind kind, uint64_t argument,
                           struct tb_program **program)
{
    struct tb_tree t;
    struct tb_builder b;
    uint32_t ready;
    tb_tree_mine(&t, kind, argument, c, 0);
    tb_builder_open(&b, tb_pieces(c));
    tb_tree_reduce(&b, &t, c, 0, t.root, &ready);
    tb_tree_broadcast(&b, &t, 1, tb_slice_whole(&b, TB_SYMBOL_OUT, 0), ready);
    return tb_builder_finish(&b, program);
}
