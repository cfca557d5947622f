#include "search/packing.h"

#include <stdlib.h>
#include <string.h>

#include "search/packing_state.h"

#define SWEEPS  3u  /* and so often */
#define REFINED 2u  /* times that trees are made anew for their shares */
#define PASSES  8u  /* over all trees, in which parts move */
#define SLACK   3u  /* a wire that cannot come near this part of the whole time is not looked at */
#define PRECISE 20u /* bits behind the point */

/* ---- how long ---------------------------------------------------------------------------------------------------- */

/* When a wire is done that trees share, and the pieces of each have gone on as far as they have to. If they take turns,
 * each waits for as much of the others as it has itself; else for those that have further to go. 0: not later than
 * `least`. */
static uint64_t wire_time(const struct tb_packing *p, uint32_t wire, uint64_t least)
{
    struct passing {
        uint64_t busy, reach;
    } passing[TREES];
    uint64_t all = 0, furthest = 0, most = 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < p->count; i++) {
        const struct packed_tree *t = &p->trees[i];
        if (t->share == 0 || t->busy[wire] == 0)
            continue;
        passing[count++] = (struct passing){t->busy[wire] * t->share, t->reach[wire]};
        all += t->busy[wire] * t->share;
        furthest = t->reach[wire] > furthest ? t->reach[wire] : furthest;
    }
    if (all / PARTS + furthest <= least)
        return 0;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t waits = 0, time;
        for (uint32_t k = 0; k < count; k++)
            if (!p->turns)
                waits += passing[k].reach >= passing[i].reach ? passing[k].busy : 0;
            else
                waits += passing[k].busy < passing[i].busy ? passing[k].busy : passing[i].busy;
        time = passing[i].reach + waits / PARTS;
        most = time > most ? time : most;
    }
    return most;
}

static uint64_t trees_time(const struct tb_packing *p)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < p->wires; i++) {
        uint64_t time = wire_time(p, i, most);
        most = time > most ? time : most;
    }
    return most;
}

/* Whether one wire is never done before another, whatever the shares are. */
static bool is_later(const struct tb_packing *p, uint32_t wire, uint32_t other)
{
    for (uint32_t i = 0; i < p->count; i++)
        if (p->trees[i].busy[wire] < p->trees[i].busy[other] || p->trees[i].reach[wire] < p->trees[i].reach[other])
            return false;
    return true;
}

/* Notes a wire, unless one that is noted is never done before it. */
static void busy_note(struct tb_packing *p, uint32_t wire)
{
    uint32_t left = 0;
    for (uint32_t i = 0; i < p->busy_count; i++)
        if (is_later(p, p->busy[i], wire))
            return;
    for (uint32_t i = 0; i < p->busy_count; i++)
        if (!is_later(p, wire, p->busy[i]))
            p->busy[left++] = p->busy[i];
    p->busy[left++] = wire;
    p->busy_count = left;
}

/* Notes the wires that may decide, whatever the shares are. */
static void busy_find(struct tb_packing *p)
{
    const uint64_t least = trees_time(p) / SLACK;
    p->busy_count = 0;
    for (uint32_t i = 0; i < p->wires; i++) {
        uint64_t busy = 0, reach = 0;
        for (uint32_t k = 0; k < p->count; k++) {
            const struct packed_tree *t = &p->trees[k];
            busy = t->busy[i] > busy ? t->busy[i] : busy;
            reach = t->reach[i] > reach ? t->reach[i] : reach;
        }
        if (busy > 0 && busy + reach > least)
            busy_note(p, i);
    }
}

/* The last of these. */
static uint64_t latest_of(const struct tb_packing *p)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < p->busy_count; i++) {
        uint64_t time = wire_time(p, p->busy[i], most);
        most = time > most ? time : most;
    }
    return most;
}

/* The sum of the eighth powers of their times, as parts of 2^scale: about that of the last ones, but it also falls when
 * parts leave one of several that are the last. */
static uint64_t strain_of(const struct tb_packing *p, uint32_t scale)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < p->busy_count; i++) {
        uint64_t time = wire_time(p, p->busy[i], 0);
        uint64_t x = scale > PRECISE ? time >> (scale - PRECISE) : time << (PRECISE - scale);
        x = x < 8ull << PRECISE ? x : 8ull << PRECISE;
        for (uint32_t k = 0; k < 3; k++)
            x = (uint64_t)((unsigned __int128)x * x >> PRECISE);
        sum += x;
    }
    return sum;
}

/* ---- which trees ------------------------------------------------------------------------------------------------- */

/* Where a tree passes between clusters. */
static void across_note(struct tb_packing *p, const struct packed_tree *t)
{
    memset(p->across, 0, (size_t)p->nodes * p->nodes * sizeof *p->across);
    for (uint32_t i = 0; i < p->nodes; i++)
        p->across[(size_t)p->home[t->parent[i]] * p->nodes + p->home[i]] = true;
}

static bool passes_elsewhere(const struct tb_packing *p, const struct packed_tree *t)
{
    for (uint32_t i = 0; i < p->nodes; i++)
        if (p->home[t->parent[i]] != p->home[i] && !p->across[(size_t)p->home[t->parent[i]] * p->nodes + p->home[i]])
            return true;
    return false;
}

/* Whether two trees pass between the same clusters. */
static bool are_alike(struct tb_packing *p, const struct packed_tree *a, const struct packed_tree *b)
{
    across_note(p, a);
    if (passes_elsewhere(p, b))
        return false;
    across_note(p, b);
    return !passes_elsewhere(p, a);
}

static void trees_swap(struct tb_packing *p, uint32_t a, uint32_t b)
{
    struct packed_tree tree = p->trees[a];
    p->trees[a] = p->trees[b];
    p->trees[b] = tree;
}

/* The last of so many trees joins one that is like it. False: there is none. */
static bool last_join(struct tb_packing *p, uint32_t count)
{
    for (uint32_t i = 0; i + 1 < count; i++)
        if (are_alike(p, &p->trees[i], &p->trees[count - 1])) {
            p->trees[i].share += p->trees[count - 1].share;
            return true;
        }
    return false;
}

/* Leaves out trees that have nothing. */
static void empty_drop(struct tb_packing *p)
{
    for (uint32_t i = p->count; i-- > 0;)
        if (p->trees[i].share == 0)
            trees_swap(p, i, --p->count);
}

/* The one with the least share gives it to the one with the most. */
static void least_drop(struct tb_packing *p)
{
    uint32_t least = 0, most = 0;
    for (uint32_t i = 1; i < p->count; i++) {
        least = p->trees[i].share < p->trees[least].share ? i : least;
        most = p->trees[i].share >= p->trees[most].share ? i : most;
    }
    p->trees[most].share += p->trees[least].share;
    p->trees[least].share = 0;
    empty_drop(p);
}

/* Deals the message out in equal parts, each of which gets the tree that it likes best beside all others; those that
 * are alike become one. */
static void parts_deal(struct tb_packing *p)
{
    memset(p->load, 0, p->wires * sizeof *p->load);
    for (uint32_t sweep = 0; sweep < SWEEPS; sweep++)
        for (uint32_t i = 0; i < STEPS; i++) {
            if (sweep > 0)
                tb_packing_unload(p, &p->trees[i]);
            p->trees[i].share = PARTS / STEPS;
            tb_packing_grow(p, &p->trees[i], false);
        }
    for (uint32_t i = 0; i < STEPS; i++) {
        trees_swap(p, p->count, i);
        if (!last_join(p, p->count + 1))
            p->count++;
    }
    while (p->count > DEALT)
        least_drop(p);
}

/* A tree that competes: the root's cluster tells that of `hub`, which tells all others; without one the root's does. */
static void other_add(struct tb_packing *p, uint32_t hub)
{
    const uint32_t root = p->home[p->problem->root];
    struct packed_tree *t = &p->trees[p->count];
    memset(p->across, 0, (size_t)p->nodes * p->nodes * sizeof *p->across);
    for (uint32_t i = 0; i < p->nodes; i++)
        p->across[(size_t)(hub == TB_NO_NODE || p->home[i] == hub ? root : hub) * p->nodes + p->home[i]] = true;
    t->share = PARTS / STEPS;
    tb_packing_grow(p, t, true);
    tb_packing_unload(p, t);
    t->share = 0;
    if (!last_join(p, p->count + 1))
        p->count++;
}

static void others_add(struct tb_packing *p)
{
    const uint32_t most = p->count + OTHERS;
    other_add(p, TB_NO_NODE);
    for (uint32_t i = 0; i < p->nodes && p->count < most; i++)
        if (p->home[i] == i && i != p->home[p->problem->root])
            other_add(p, i);
}

/* Moves so many parts from one tree to another wherever that helps. True: it did somewhere. */
static bool parts_move(struct tb_packing *p, uint32_t step, uint32_t scale)
{
    uint64_t best = scale > 0 ? strain_of(p, scale) : latest_of(p), before = best;
    const uint32_t count = p->count;
    for (uint32_t i = 0; i < count * count; i++) { // NOLINTNEXTLINE(clang-analyzer-core.DivideZero): there is one then
        uint32_t *a = &p->trees[i / count].share, *b = &p->trees[i % count].share;
        if (a == b || *a < step)
            continue;
        *a -= step;
        *b += step;
        uint64_t now = scale > 0 ? strain_of(p, scale) : latest_of(p);
        if (now < best) {
            best = now;
        } else {
            *a += step;
            *b -= step;
        }
    }
    return best < before;
}

/* Finds the best shares: first those with which all are soon done, then the last one. */
static void shares_tune(struct tb_packing *p)
{
    uint32_t scale = 1;
    busy_find(p);
    while (latest_of(p) >> scale > 1)
        scale++;
    for (uint32_t step = PARTS / 8; step > 0; step /= 2)
        for (uint32_t pass = 0; pass < PASSES && parts_move(p, step, scale);)
            pass++;
    for (uint32_t step = PARTS / 16; step > 0; step /= 2)
        for (uint32_t pass = 0; pass < PASSES && parts_move(p, step, 0);)
            pass++;
}

/* Each tree again, where it passes between clusters, for the share that it has; then their shares. The deepest comes
 * first. */
static void trees_refine(struct tb_packing *p)
{
    for (uint32_t n = 0; n < REFINED; n++) {
        memset(p->load, 0, p->wires * sizeof *p->load);
        for (uint32_t i = 0; i < p->count; i++)
            for (uint32_t k = 0; k < p->wires; k++)
                p->load[k] += p->trees[i].busy[k] * p->trees[i].share;
        for (uint32_t i = 0; i < p->count; i++) {
            across_note(p, &p->trees[i]);
            tb_packing_unload(p, &p->trees[i]);
            tb_packing_grow(p, &p->trees[i], true);
        }
        shares_tune(p);
        empty_drop(p);
    }
    p->time = trees_time(p);
    for (uint32_t i = 0; i < p->count; i++)
        for (uint32_t k = i + 1; k < p->count; k++)
            if (p->trees[k].deep[p->problem->root] > p->trees[i].deep[p->problem->root])
                trees_swap(p, i, k);
}

/* ---- from outside ------------------------------------------------------------------------------------------------ */

int tb_packing_open(struct tb_packing **packing, const struct tb_problem *problem, uint64_t piece, bool turns,
                    uint32_t trees)
{
    struct tb_packing *p = *packing = calloc(1, sizeof *p);
    TB_ASSERT(problem->nodes <= TB_PACKING_NODES && problem->wires != NULL && piece > 0 && trees > 0);
    if (p == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for the wires of %u nodes", problem->nodes);
    p->problem = problem;
    p->piece = piece;
    p->turns = turns;
    p->nodes = problem->nodes;
    int error = tb_packing_know(p);
    if (error != TB_OK)
        return error;
    parts_deal(p);
    others_add(p);
    shares_tune(p);
    empty_drop(p);
    while (p->count > trees)
        least_drop(p);
    trees_refine(p);
    return TB_OK;
}

void tb_packing_close(struct tb_packing *packing)
{
    if (packing == NULL)
        return;
    free(packing->edges);
    free(packing->list);
    free(packing->rooms);
    free(packing);
}

uint32_t tb_packing_trees(const struct tb_packing *packing)
{
    return packing->count;
}

uint64_t tb_packing_time(const struct tb_packing *packing)
{
    return packing->time << packing->shift;
}

void tb_packing_reduce(struct tb_packing *packing)
{
    TB_ASSERT(packing->count > 1);
    least_drop(packing);
    trees_refine(packing);
}

/* Whom most is behind comes first. */
static void tree_give(const struct tb_packing *p, const struct packed_tree *t, struct tb_search_tree *tree)
{
    tb_search_tree_clear(tree);
    for (uint32_t i = 1; i < p->nodes; i++) {
        uint32_t node = t->order[i], parent = t->parent[node], before = TB_NO_NODE;
        for (uint32_t k = tree->child[parent]; k != TB_NO_NODE && t->deep[k] >= t->deep[node]; k = tree->next[k])
            before = k;
        tb_search_tree_put(tree, node, parent, before);
    }
}

void tb_packing_give(const struct tb_packing *packing, struct tb_search_forest *forest)
{
    TB_ASSERT(packing->count <= forest->room);
    forest->trees = packing->count;
    forest->piece = packing->piece;
    for (uint32_t i = 0; i < packing->count; i++) {
        forest->shares[i] = packing->trees[i].share;
        tree_give(packing, &packing->trees[i], &forest->tree[i]);
    }
}
