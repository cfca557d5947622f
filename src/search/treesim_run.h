/* Inside of TreeSim: what treesim.c sets up and treesim_run.c runs. tb_treesim_time is declared in treesim.h. */
#ifndef TB_SEARCH_TREESIM_RUN_H
#define TB_SEARCH_TREESIM_RUN_H

#include "search/event_heap.h"
#include "search/treesim.h"

/* Of more places than this, links are found by hash, so that there is no table of all pairs. */
#define TB_TREESIM_PLACES 512u

/* A link in use. `work` is what each of its transfers would have got had it been there since the link was last idle, in
 * picoseconds of a transfer alone, at time `when`; so a transfer ends at a work that is known when it begins. */
struct tb_treesim_link {
    uint64_t key, work, when;
    uint32_t active;      /* transfers; 0: idle, and of the rest only the key is of use */
    uint32_t first, last; /* in the order in which they end */
};

struct tb_treesim {
    struct tb_problem problem; /* its context is this */
    bool sender_free, one_link;
    uint32_t place_count;
    uint32_t *clusters, *sites, *places;       /* of nodes, of clusters, of nodes: what the matrix is about */
    uint64_t *times, *latencies;               /* of the message alone, from place to place */
    uint64_t *inside_times, *inside_latencies; /* of clusters; NULL: on the diagonal */
    uint32_t link_slots;                       /* of the hash, a power of two; 0: a link for each pair */
    struct tb_treesim_link *links;

    struct tb_event_heap heap;
    const struct tb_search_tree *tree;
    bool up;
    uint32_t *turn;                       /* of each node: the child that it serves now, or is served by */
    uint32_t *missing;                    /* on the way up: transfers that it waits for */
    uint32_t *before;                     /* on the way up: the child in front of it in its parent's list */
    uint32_t *weight;                     /* of gather and scatter: nodes that it leads to, with itself */
    uint32_t *behind;                     /* transfer that ends next on the same link, by its child */
    uint64_t *end_work;                   /* of a transfer on a link */
    uint64_t *starts;                     /* of transfers, by child */
    struct tb_treesim_transfer *timeline; /* NULL: nobody wants it */
    uint32_t timeline_count;
};

static inline uint64_t tb_treesim_alone(const struct tb_treesim *s, uint32_t from, uint32_t to)
{
    if (s->inside_times != NULL && s->clusters[from] == s->clusters[to])
        return s->inside_times[s->clusters[from]];
    return s->times[(size_t)s->places[from] * s->place_count + s->places[to]];
}

static inline uint64_t tb_treesim_latency(const struct tb_treesim *s, uint32_t from, uint32_t to)
{
    if (s->latencies == NULL)
        return 0;
    if (s->inside_latencies != NULL && s->clusters[from] == s->clusters[to])
        return s->inside_latencies[s->clusters[from]];
    return s->latencies[(size_t)s->places[from] * s->place_count + s->places[to]];
}

/* Two places, or two clusters of a site; TB_TREESIM_ALONE within a cluster. */
static inline uint64_t tb_treesim_key(const struct tb_treesim *s, uint32_t from, uint32_t to)
{
    uint64_t a = s->places[from], b = s->places[to], inside = 0, swap;
    if (s->clusters[from] == s->clusters[to])
        return TB_TREESIM_ALONE;
    if (a == b) {
        a = s->clusters[from];
        b = s->clusters[to];
        inside = 1ull << 63;
    }
    if (s->one_link && a > b) {
        swap = a;
        a = b;
        b = swap;
    }
    return inside != 0 ? inside | a << 31 | b : a * s->place_count + b;
}

#endif
