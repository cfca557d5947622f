#include "collectives/forest.h"

#include <stdlib.h>
#include <string.h>

/* Counts how many nodes of a tree hang below the root; loops do not. */
static uint32_t nodes_reached(const struct tb_forest *f, uint32_t tree, uint32_t *list)
{
    const uint32_t *first = f->first + (size_t)tree * (f->nodes + 1);
    uint32_t count = 1;
    list[0] = f->root;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = first[list[i]]; k < first[list[i] + 1]; k++)
            list[count++] = f->children[k];
    return count;
}

static int tree_check(const struct tb_forest *f, uint32_t tree, uint32_t *list)
{
    const uint32_t *parents = f->parents + (size_t)tree * f->nodes;
    for (uint32_t i = 0; i < f->nodes; i++)
        if (parents[i] >= f->nodes || (parents[i] == i) != (i == f->root))
            return tb_error(TB_ERR_ARGUMENT, "tree %u: node %u cannot be behind node %u", tree, i, parents[i]);
    uint32_t count = nodes_reached(f, tree, list);
    if (count == f->nodes)
        return TB_OK;
    bool *reached = calloc(f->nodes, sizeof *reached);
    uint32_t lost = 0;
    for (uint32_t i = 0; reached != NULL && i < count; i++)
        reached[list[i]] = true;
    while (reached != NULL && reached[lost])
        lost++;
    free(reached);
    return tb_error(TB_ERR_ARGUMENT, "tree %u: node %u is not behind the root, but behind itself", tree, lost);
}

struct child {
    uint64_t order;
    uint32_t parent, node;
};

static int children_compare(const void *a, const void *b)
{
    const struct child *x = a, *y = b;
    if (x->parent != y->parent)
        return x->parent < y->parent ? -1 : 1;
    if (x->order != y->order)
        return x->order < y->order ? -1 : 1;
    return x->node < y->node ? -1 : x->node > y->node;
}

/* The lists of children of one tree, which begin at number `base` of all. */
static void children_sort(const struct tb_forest *f, uint32_t tree, const uint64_t *order, struct child *list,
                          uint32_t *first, uint32_t *children)
{
    const uint32_t *parents = f->parents + (size_t)tree * f->nodes;
    uint32_t count = 0, base = tree * (f->nodes - 1), at = 0;
    for (uint32_t i = 0; i < f->nodes; i++)
        if (i != f->root)
            list[count++] = (struct child){order[(size_t)tree * f->nodes + i], parents[i], i};
    qsort(list, count, sizeof *list, children_compare);
    for (uint32_t i = 0; i <= f->nodes; i++) {
        while (at < count && list[at].parent < i)
            at++;
        first[(size_t)tree * (f->nodes + 1) + i] = base + at;
    }
    for (uint32_t i = 0; i < count; i++)
        children[base + i] = list[i].node;
}

void tb_forest_close(struct tb_forest *forest)
{
    free(forest);
}

/* One of the same size, with its shares and parents. NULL: no memory. */
static struct tb_forest *forest_new(const struct tb_forest *source)
{
    const size_t nodes = source->nodes, trees = source->trees;
    size_t numbers = trees + trees * nodes + trees * (nodes + 1) + trees * (nodes - 1);
    struct tb_forest *f = malloc(sizeof *f + numbers * sizeof(uint32_t));
    if (f == NULL) {
        tb_error(TB_ERR_MEMORY, "no memory for %u trees of %u nodes", source->trees, source->nodes);
        return NULL;
    }
    uint32_t *shares = (uint32_t *)(f + 1), *parents = shares + trees, *first = parents + trees * nodes,
             *children = first + trees * (nodes + 1);
    *f =
        (struct tb_forest){source->nodes, source->root, source->trees, source->piece, shares, parents, first, children};
    for (size_t i = 0; i < trees; i++)
        shares[i] = source->shares == NULL ? 1 : source->shares[i];
    memcpy(parents, source->parents, trees * nodes * sizeof *parents);
    return f;
}

int tb_forest_make(struct tb_forest **forest, const struct tb_forest *source, const uint64_t *order)
{
    const size_t nodes = source->nodes, trees = source->trees;
    *forest = NULL;
    if (nodes == 0 || source->root >= nodes || trees == 0 || trees > TB_FOREST_TREES)
        return tb_error(TB_ERR_ARGUMENT, "%u trees of %u nodes with root %u", source->trees, source->nodes,
                        source->root);
    struct tb_forest *f = forest_new(source);
    struct child *list = f != NULL ? malloc(nodes * sizeof *list) : NULL;
    if (list == NULL) {
        free(f);
        return tb_error(TB_ERR_MEMORY, "no memory for %u trees of %u nodes", source->trees, source->nodes);
    }
    uint32_t *first = (uint32_t *)f->first, *children = (uint32_t *)f->children;
    int error = TB_OK;
    for (uint32_t t = 0; t < trees && error == TB_OK; t++) {
        children_sort(f, t, order, list, first, children);
        error = tree_check(f, t, (uint32_t *)list);
    }
    free(list);
    if (error != TB_OK)
        tb_forest_close(f);
    else
        *forest = f;
    return error;
}

int tb_forest_copy(struct tb_forest **copy, const struct tb_forest *forest)
{
    const size_t nodes = forest->nodes, trees = forest->trees;
    *copy = forest_new(forest);
    if (*copy == NULL)
        return TB_ERR_MEMORY;
    memcpy((uint32_t *)(*copy)->first, forest->first, trees * (nodes + 1) * sizeof(uint32_t));
    memcpy((uint32_t *)(*copy)->children, forest->children, trees * (nodes - 1) * sizeof(uint32_t));
    return TB_OK;
}

/* ---- another root ------------------------------------------------------------------------------------------------ */

/* Which node stands where another one stood, and which one is there now. */
struct places_taken {
    uint32_t *to, *of;
};

static void nodes_swap(struct places_taken *taken, uint32_t a, uint32_t b)
{
    uint32_t *to = taken->to, *of = taken->of, node = of[a];
    of[a] = of[b];
    of[b] = node;
    to[of[a]] = a;
    to[of[b]] = b;
}

/* What is at host `from` comes to `host`. One step nearer: to the part of the innermost place around both that `host`
 * is in, or, if that is where it is, to it. */
static int node_move(const struct tb_group_shape *s, struct places_taken *taken, uint32_t from, uint32_t host)
{
    uint32_t a = s->hosts[from].place, b = s->hosts[host].place;
    if (a == b) {
        nodes_swap(taken, from, host);
        return TB_OK;
    }
    while (s->places[a].parent != s->places[b].parent)
        if (s->places[a].depth > s->places[b].depth)
            a = s->places[a].parent;
        else
            b = s->places[b].parent;
    const struct tb_shape_place *x = &s->places[a], *y = &s->places[b];
    if (a == b || x->alike != y->alike || x->hosts != y->hosts)
        return tb_error(TB_ERR_ARGUMENT, "hosts %u and %u are in places that are not alike", from, host);
    for (uint32_t i = 0; i < x->hosts; i++)
        nodes_swap(taken, s->order[x->host + i], s->order[y->host + i]);
    return TB_OK;
}

/* The forest with its nodes where they are now. */
static int forest_place(struct tb_forest **moved, const struct tb_forest *f, const uint32_t *to, uint32_t *parents,
                        uint64_t *order)
{
    struct tb_forest source = *f;
    for (uint32_t t = 0; t < f->trees; t++)
        for (uint32_t i = 0; i < f->nodes; i++) {
            size_t tree = (size_t)t * f->nodes, k = (size_t)t * (f->nodes + (size_t)1) + i;
            parents[tree + to[i]] = to[f->parents[tree + i]];
            for (uint32_t n = f->first[k]; n < f->first[k + 1]; n++)
                order[tree + to[f->children[n]]] = n;
        }
    order[to[f->root]] = 0;
    source.root = to[f->root];
    source.parents = parents;
    return tb_forest_make(moved, &source, order);
}

int tb_forest_move(struct tb_forest **moved, const struct tb_forest *forest, const struct tb_group_shape *shape,
                   uint32_t host)
{
    const size_t nodes = forest->nodes;
    *moved = NULL;
    if (nodes != shape->host_count || host >= nodes)
        return tb_error(TB_ERR_ARGUMENT, "trees of %u nodes have no root on host %u of %u", forest->nodes, host,
                        shape->host_count);
    struct places_taken taken = {malloc(2 * nodes * sizeof(uint32_t)), NULL};
    uint32_t *parents = malloc(forest->trees * nodes * sizeof *parents);
    uint64_t *order = malloc(forest->trees * nodes * sizeof *order);
    int error = TB_ERR_MEMORY;
    if (taken.to != NULL && parents != NULL && order != NULL) {
        error = TB_OK;
        taken.of = taken.to + nodes;
        for (uint32_t i = 0; i < nodes; i++)
            taken.to[i] = taken.of[i] = i;
        while (error == TB_OK && taken.to[forest->root] != host)
            error = node_move(shape, &taken, taken.to[forest->root], host);
        if (error == TB_OK)
            error = forest_place(moved, forest, taken.to, parents, order);
    } else {
        tb_error(error, "no memory for %u trees of %u nodes", forest->trees, forest->nodes);
    }
    free(taken.to);
    free(parents);
    free(order);
    return error;
}
