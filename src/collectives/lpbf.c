#include "collectives/lpbf.h"

static void edges_choose(struct tb_lpbf *l, uint32_t *order)
{
    uint64_t ready[TB_LPBF_PARTS] = {0};
    bool told[TB_LPBF_PARTS] = {false};
    told[l->root] = true;
    l->parent[l->root] = l->root;
    order[0] = l->root;
    for (uint32_t n = 1; n < l->count; n++) {
        uint32_t from = l->root, to = l->root;
        uint64_t best = UINT64_MAX;
        for (uint32_t i = 0; i < l->count; i++)
            for (uint32_t k = 0; told[i] && k < l->count; k++)
                if (!told[k] && (to == l->root || ready[i] + l->arrive[i][k] < best)) {
                    best = ready[i] + l->arrive[i][k];
                    from = i;
                    to = k;
                }
        told[to] = true;
        l->parent[to] = from;
        ready[to] = best;
        ready[from] += l->send[from][to];
        order[n] = to;
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

void tb_lpbf_find(struct tb_lpbf *l)
{
    uint32_t order[TB_LPBF_PARTS], children[TB_LPBF_PARTS];
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
}
