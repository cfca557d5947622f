/* Three arguments, each of which holds for every tree, and sharing only makes it later:
 *   - the message is in a cluster at the earliest by the quickest way from the root, were all senders idle;
 *   - in a cluster, what comes from elsewhere comes over links, of which each carries one message in the time of one
 *     alone, whoever shares it; and who has it inside can tell one more in each time of a transfer inside. So only so
 *     many can have it at a time;
 *   - of the nodes that are slowest to reach, at best all others had it from the beginning; and then those who have it
 *     can only double in each time that reaching one of these takes.
 * Scatter: besides the first, all blocks leave the root. What flows to the root is the same with time turned round; of
 * allreduce and barrier, the way down begins when the way up has ended. */
#include "search/treesim_bound.h"

#include <stdlib.h>

#include "search/treesim_run.h"

struct slow_cluster {
    uint64_t reach;
    uint32_t cluster;
};

struct bound {
    const struct tb_treesim *s;
    bool up;
    uint32_t count;            /* clusters that have nodes */
    uint32_t *nodes;           /* one of each of them */
    uint32_t *sizes;           /* how many it has */
    struct slow_cluster *slow; /* a sorted list */
    uint64_t *first;           /* when the message can be in each at the earliest */
    uint64_t *place_first;     /* the same of places */
    uint64_t *reach;           /* how long telling one there keeps a sender at least */
    bool *done;
};

/* How long a sender is busy, and when it has arrived, from cluster to cluster. */
static uint64_t busy_time(const struct bound *b, uint32_t from, uint32_t to)
{
    const struct tb_treesim *s = b->s;
    uint32_t x = b->nodes[b->up ? to : from], y = b->nodes[b->up ? from : to];
    return tb_treesim_alone(s, x, y) + (s->sender_free ? 0 : tb_treesim_latency(s, x, y));
}

static uint64_t arrive_time(const struct bound *b, uint32_t from, uint32_t to)
{
    uint32_t x = b->nodes[b->up ? to : from], y = b->nodes[b->up ? from : to];
    return tb_treesim_alone(b->s, x, y) + tb_treesim_latency(b->s, x, y);
}

/* The quickest ways from the root's cluster. */
static void first_times(struct bound *b, uint32_t root)
{
    for (uint32_t i = 0; i < b->count; i++) {
        b->first[i] = i == root ? 0 : UINT64_MAX;
        b->reach[i] = b->sizes[i] > 1 ? busy_time(b, i, i) : UINT64_MAX;
        b->done[i] = false;
    }
    for (uint32_t n = 0; n < b->count; n++) {
        uint32_t at = UINT32_MAX;
        for (uint32_t i = 0; i < b->count; i++)
            if (!b->done[i] && (at == UINT32_MAX || b->first[i] < b->first[at]))
                at = i;
        b->done[at] = true;
        for (uint32_t i = 0; i < b->count; i++) {
            if (i == at)
                continue;
            uint64_t busy = busy_time(b, at, i), there = b->first[at] + arrive_time(b, at, i);
            b->reach[i] = busy < b->reach[i] ? busy : b->reach[i];
            b->first[i] = there < b->first[i] ? there : b->first[i];
        }
    }
    for (uint32_t p = 0; p < b->s->place_count; p++)
        b->place_first[p] = UINT64_MAX;
    for (uint32_t i = 0; i < b->count; i++) {
        uint64_t *place = &b->place_first[b->s->places[b->nodes[i]]];
        *place = b->first[i] < *place ? b->first[i] : *place;
    }
}

/* How many have it `time` after one had it, if each tells another one in each `step`; at most `most`. */
static uint64_t told_after(uint64_t time, uint64_t step, uint64_t most)
{
    if (step == 0 || time / step >= 32 || 1ull << (time / step) > most)
        return most;
    return 1ull << (time / step);
}

/* Those who have it because of what came over one link: the first began at `from`, each takes `alone`. */
static uint64_t told_by_link(uint64_t from, uint64_t alone, uint64_t now, uint64_t inside, uint64_t most)
{
    uint64_t told = 0;
    if (alone == 0 && from <= now)
        return most;
    for (uint64_t there = from + alone; from != UINT64_MAX && there <= now && told < most; there += alone)
        told += told_after(now - there, inside, most);
    return told < most ? told : most;
}

/* Whether all of a cluster can have it at time `now`. */
static bool cluster_told(const struct bound *b, uint32_t cluster, uint32_t root, uint64_t now)
{
    const struct tb_treesim *s = b->s;
    const uint64_t most = b->sizes[cluster], inside = busy_time(b, cluster, cluster);
    const uint32_t own = s->places[b->nodes[cluster]];
    uint64_t told = cluster == root ? told_after(now, inside, most) : 0;
    for (uint32_t p = 0; p < s->place_count && told < most; p++) {
        uint64_t alone = s->times[(size_t)(b->up ? own : p) * s->place_count + (b->up ? p : own)];
        if (p != own)
            told += told_by_link(b->place_first[p], alone, now, inside, most);
    }
    for (uint32_t i = 0; s->sites != NULL && i < b->count && told < most; i++)
        if (i != cluster && s->places[b->nodes[i]] == own)
            told += told_by_link(b->first[i], s->times[(size_t)own * s->place_count + own], now, inside, most);
    return told >= most;
}

/* When all of a cluster can have it at the earliest, if that is later than `low`. */
static uint64_t cluster_bound(const struct bound *b, uint32_t cluster, uint32_t root, uint64_t low)
{
    uint64_t step = 1;
    low = low > b->first[cluster] ? low : b->first[cluster];
    if (b->sizes[cluster] < 2 || cluster_told(b, cluster, root, low))
        return low;
    while (!cluster_told(b, cluster, root, low + step))
        step *= 2;
    for (uint64_t high = low + step; high - low > 1;) { /* not at `low`, but at `high` */
        uint64_t middle = low + (high - low) / 2;
        if (cluster_told(b, cluster, root, middle))
            high = middle;
        else
            low = middle;
    }
    return low + 1;
}

static int slower_first(const void *a, const void *b)
{
    const struct slow_cluster *x = a, *y = b;
    return x->reach > y->reach ? -1 : x->reach < y->reach;
}

/* The slowest clusters, one more each time, and all others told from the beginning. */
static uint64_t slowest_bound(const struct bound *b, uint32_t root)
{
    uint64_t bound = 0, slow = 0, all = b->s->problem.nodes;
    for (uint32_t i = 0; i < b->count; i++)
        b->slow[i] = (struct slow_cluster){b->reach[i], i};
    qsort(b->slow, b->count, sizeof *b->slow, slower_first);
    for (uint32_t i = 0; i < b->count; i++) {
        uint32_t cluster = b->slow[i].cluster;
        slow += b->sizes[cluster] - (cluster == root ? 1 : 0);
        uint32_t steps = 0;
        while ((all - slow) << steps < all)
            steps++;
        uint64_t time = steps == 0 ? 0 : b->reach[cluster] * steps;
        bound = time > bound ? time : bound;
    }
    return bound;
}

/* All blocks but its own leave the root, or come to it, one after another. */
static uint64_t root_bound(const struct bound *b, uint32_t root)
{
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < b->count; i++)
        if (i != root || b->sizes[i] > 1) {
            uint32_t x = b->nodes[b->up ? i : root], y = b->nodes[b->up ? root : i];
            uint64_t alone = tb_treesim_alone(b->s, x, y);
            least = alone < least ? alone : least;
        }
    return b->s->problem.nodes > 1 ? least * (b->s->problem.nodes - 1) : 0;
}

static uint64_t way_bound(struct bound *b, uint32_t root, bool up)
{
    const enum tb_operation o = b->s->problem.operation;
    b->up = up;
    first_times(b, root);
    uint64_t bound = 0, other;
    if (o == TB_OPERATION_GATHER || o == TB_OPERATION_SCATTER) {
        bound = root_bound(b, root);
        for (uint32_t i = 0; i < b->count; i++)
            bound = b->first[i] > bound ? b->first[i] : bound;
        return bound;
    }
    for (uint32_t i = 0; i < b->count; i++)
        bound = cluster_bound(b, i, root, bound);
    other = slowest_bound(b, root);
    return other > bound ? other : bound;
}

static int bound_open(struct bound *b, const struct tb_problem *problem, uint32_t *root)
{
    const uint32_t clusters = problem->cluster_count;
    const struct tb_treesim *s = problem->context;
    *b = (struct bound){.s = s};
    uint32_t *numbers = malloc(3 * (size_t)clusters * sizeof *numbers);
    uint64_t *times = malloc((2 * (size_t)clusters + s->place_count) * sizeof *times);
    b->done = calloc(clusters, sizeof *b->done);
    b->slow = malloc(clusters * sizeof *b->slow);
    b->nodes = numbers;
    b->first = times;
    if (numbers == NULL || times == NULL || b->done == NULL || b->slow == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for the bound of %u clusters", clusters);
    b->sizes = numbers + clusters;
    b->reach = times + clusters;
    b->place_first = b->reach + clusters;
    uint32_t *index = b->sizes + clusters;
    for (uint32_t c = 0; c < clusters; c++)
        index[c] = UINT32_MAX;
    for (uint32_t i = 0; i < problem->nodes; i++) {
        uint32_t *at = &index[problem->clusters[i]];
        if (*at == UINT32_MAX) {
            *at = b->count++;
            b->nodes[*at] = i;
            b->sizes[*at] = 0;
        }
        b->sizes[*at]++;
    }
    *root = index[problem->clusters[problem->root]];
    return TB_OK;
}

int tb_treesim_bound(const struct tb_problem *problem, uint64_t *time)
{
    const enum tb_operation o = problem->operation;
    struct bound b;
    uint32_t root = 0;
    TB_ASSERT(tb_treesim_is(problem));
    int error = bound_open(&b, problem, &root);
    bool both = o == TB_OPERATION_ALLREDUCE || o == TB_OPERATION_BARRIER;
    *time = 0;
    if (error == TB_OK && (both || o == TB_OPERATION_REDUCE || o == TB_OPERATION_GATHER))
        *time += way_bound(&b, root, true);
    if (error == TB_OK && (both || o == TB_OPERATION_BCAST || o == TB_OPERATION_SCATTER))
        *time += way_bound(&b, root, false);
    free(b.nodes);
    free(b.first);
    free(b.done);
    free(b.slow);
    /* What rounding may give away where links are shared. */
    *time -= *time < 2 * (uint64_t)problem->nodes ? *time
             : tb_treesim_shares(problem)         ? 2 * (uint64_t)problem->nodes
                                                  : 0;
    return error;
}
