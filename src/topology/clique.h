/* The maximal cliques of a graph: groups whose members are all neighbours of each other, and to which nobody can be
 * added. Bron and Kerbosch's search with a pivot, on bit sets. There can be exponentially many, so the search gives up
 * beyond a number of cliques or of steps. */
#ifndef TB_TOPOLOGY_CLIQUE_H
#define TB_TOPOLOGY_CLIQUE_H

#include "base/base.h"

#define TB_CLIQUE_STEPS_LIMIT 2000000u

/* Words of a bit set of so many vertices. */
static inline size_t tb_clique_words(uint32_t vertices)
{
    return (vertices + 63u) / 64u;
}

struct tb_clique_list {
    uint32_t count;
    uint32_t *first;   /* count + 1: where each begins in `members` */
    uint32_t *members; /* ascending within a clique; the cliques in the order of their members */
};

/* `neighbours` has a bit set for each vertex, symmetric; whether a vertex is its own neighbour does not matter. */
int tb_clique_list_open(struct tb_clique_list *list, uint32_t vertices, const uint64_t *neighbours, uint32_t limit);
void tb_clique_list_close(struct tb_clique_list *list);

#endif
