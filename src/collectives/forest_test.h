/* For tests: random forests over so many nodes, the same on every machine. */
#ifndef TB_COLLECTIVES_FOREST_TEST_H
#define TB_COLLECTIVES_FOREST_TEST_H

#include <stdlib.h>

#include "base/base.h"
#include "collectives/forest.h"

#define FOREST_NODES 128u
#define FOREST_MOST  8u /* trees */

/* The parents of one tree: of nodes in some order each is behind one before it: any, the one just before, the first, or
 * as in a binomial tree. */
static inline void forest_tree(struct tb_random *random, uint32_t nodes, uint32_t root, uint32_t *parents)
{
    uint32_t order[FOREST_NODES], kind = (uint32_t)tb_random_below(random, 5);
    TB_ASSERT(nodes > 0 && nodes <= FOREST_NODES);
    for (uint32_t i = 0; i < nodes; i++)
        order[i] = (root + i) % nodes;
    for (uint32_t i = nodes - 1; i > 1; i--) {
        uint32_t other = 1 + (uint32_t)tb_random_below(random, i), node = order[i];
        order[i] = order[other];
        order[other] = node;
    }
    parents[root] = root;
    for (uint32_t i = 1; i < nodes; i++) {
        uint32_t any = (uint32_t)tb_random_below(random, i);
        parents[order[i]] = order[kind == 0 ? i - 1 : kind == 1 ? 0 : kind == 2 ? i & (i - 1) : any];
    }
}

/* Trees of unequal shares, for pieces of some elements of four bytes, or for whole ones. NULL: no memory. */
static inline struct tb_forest *forest_random(uint64_t seed, uint32_t nodes, uint32_t root)
{
    static uint32_t parents[FOREST_MOST * FOREST_NODES];
    static uint64_t order[FOREST_MOST * FOREST_NODES];
    static const uint64_t pieces[] = {0, 4, 12, 28, 100, 1000};
    uint32_t shares[FOREST_MOST];
    struct tb_random random;
    tb_random_seed(&random, seed);
    struct tb_forest source = {.nodes = nodes, .root = root, .shares = shares, .parents = parents}, *made;
    source.trees = 1 + (uint32_t)tb_random_below(&random, FOREST_MOST);
    source.piece = pieces[tb_random_below(&random, 6)];
    bool alike = tb_random_below(&random, 2) == 0;
    for (uint32_t t = 0; t < source.trees; t++) {
        shares[t] = alike ? 2 : 1 + (uint32_t)tb_random_below(&random, t % 2 == 0 ? 4 : 1000);
        forest_tree(&random, nodes, root, parents + t * nodes);
        for (uint32_t i = 0; i < nodes; i++)
            order[t * nodes + i] = tb_random_below(&random, 10);
    }
    return tb_forest_make(&made, &source, order) == TB_OK ? made : NULL;
}

#endif
