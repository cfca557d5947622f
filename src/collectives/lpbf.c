#include "collectives/lpbf.h"

/* What is known while parts are told one after the other. */
struct telling {
    struct tb_lpbf *l;
    bool told[TB_LPBF_PARTS];
    uint64_t ready[TB_LPBF_PARTS]; /* of who is told: when it can send the next */
    uint64_t best[TB_LPBF_PARTS];  /* of who is not: when it would be, */
    uint32_t from[TB_LPBF_PARTS];  /* and by whom */
};

static void part_told(struct telling *t, uint32_t part, uint64_t when)
{
    t->told[part] = true;
    t->ready[part] = when;
    if (t->l->ways != NULL)
        t->l->ways(t->l, part, t->told);
}

/* Whether it would be told earlier by another part than was thought. Of two that are as early the first counts. */
static void edge_compare(struct telling *t, uint32_t from, uint32_t to)
{
    uint64_t when = t->ready[from] + t->l->arrive[from][to];
    if (when < t->best[to] || (when == t->best[to] && from < t->from[to])) {
        t->best[to] = when;
        t->from[to] = from;
    }
}

static void edges_choose(struct tb_lpbf *l, uint32_t *order)
{
    struct telling t = {.l = l};
    l->parent[l->root] = l->root;
    order[0] = l->root;
    part_told(&t, l->root, 0);
    for (uint32_t k = 0; k < l->count; k++) {
        t.from[k] = l->root;
        t.best[k] = l->arrive[l->root][k];
    }
    for (uint32_t n = 1; n < l->count; n++) {
        uint32_t next = l->root;
        for (uint32_t k = 0; k < l->count; k++)
            if (!t.told[k] && (next == l->root || t.best[k] < t.best[next] ||
                               (t.best[k] == t.best[next] && t.from[k] < t.from[next])))
                next = k;
        uint32_t from = t.from[next];
        l->parent[next] = from;
        order[n] = next;
        t.ready[from] += l->send[from][next];
        part_told(&t, next, t.best[next]);
        for (uint32_t k = 0; k < l->count; k++) {
            if (t.told[k])
                continue;
            bool again = t.from[k] == from; /* who has less time now */
            t.best[k] = again ? UINT64_MAX : t.best[k];
            for (uint32_t i = 0; i < l->count && again; i++)
                if (t.told[i])
                    edge_compare(&t, i, k);
            edge_compare(&t, next, k);
        }
    }
}

uint32_t tb_lpbf_children(const struct tb_lpbf *l, uint32_t part, uint32_t *children)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < l->count; i++) {
        if (i == l->root || l->parent[i] != part)
            continue;
        uint32_t at = count++;
        for (; at > 0 && l->branch[children[at - 1]] < l->branch[i]; at--)
            children[at] = children[at - 1];
        children[at] = i;
    }
    return count;
}

/* When each part has it, if children are served in their order. */
static void times_find(struct tb_lpbf *l, const uint32_t *order)
{
    uint32_t children[TB_LPBF_PARTS];
    uint64_t told[TB_LPBF_PARTS] = {0};
    l->last = l->busiest = 0;
    for (uint32_t n = 0; n < l->count; n++) {
        uint32_t part = order[n], count = tb_lpbf_children(l, part, children);
        uint64_t start = told[part];
        l->last = start > l->last ? start : l->last;
        for (uint32_t i = 0; i < count; i++) {
            told[children[i]] = start + l->arrive[part][children[i]];
            start += l->send[part][children[i]];
        }
        l->busiest = start - told[part] > l->busiest ? start - told[part] : l->busiest;
    }
}

void tb_lpbf_find(struct tb_lpbf *l)
{
    uint32_t order[TB_LPBF_PARTS] = {0}, children[TB_LPBF_PARTS];
    TB_ASSERT(l->count > 0 && l->count <= TB_LPBF_PARTS && l->root < l->count);
    edges_choose(l, order);
    /* Children were told after their parents. */
    for (uint32_t n = l->count; n-- > 0;) {
        uint32_t part = order[n], count = tb_lpbf_children(l, part, children);
        uint64_t start = 0, last = 0;
        for (uint32_t i = 0; i < count; i++) {
            uint64_t done = start + l->arrive[part][children[i]] + l->branch[children[i]];
            last = done > last ? done : last;
            start += l->send[part][children[i]];
        }
        l->branch[part] = last > start + l->inside[part] ? last : start + l->inside[part];
    }
    times_find(l, order);
}
