/* Decisions are made in the order of time. A state is a moment: who has the message and is idle, which transfers are
 * under way and how much of each is left. The first who is idle sends to somebody, or never again; when all have
 * decided, time goes on to the end of the next transfer. So every tree in every order is met once.
 *
 * A state is left if no schedule that goes on from it can end before the best known one. That is computed as if nothing
 * shared a link any more, in which every schedule ends no later than it does: a sender is free, and a receiver has the
 * message, no earlier than what is left takes alone, and
 *   - everybody has it no earlier than by the quickest way from somebody who has it, were all senders idle;
 *   - of those who are slowest to reach, at best all others have it as soon as that; then those who have it tell them,
 *     each in the time that the quickest of them takes (treesim_bound.c has the same).
 * Where no two transfers can share a link there is a third: of two states in which the same nodes have the message, one
 * is left if all are free in the other as soon or sooner, and nothing that is under way there ends later than this one
 * can, because then every schedule ends there as soon or sooner. It may
 * not be used where links are shared: who is sooner may be in another's way.
 *
 * Nodes of a cluster are alike, so of those that wait for the message only the lowest is tried. */
#include "search/optimum.h"

#include <stdlib.h>
#include <string.h>

#include "search/all_trees.h"
#include "search/treesim.h"

#define MOST    TB_OPTIMUM_NODES
#define PART    64u /* parts of a picosecond in which remaining work is counted */
#define KEPT    24u /* states that are kept of each set of nodes */
#define STOPPED UINT64_MAX

struct transfer {
    uint64_t left, link; /* parts of picoseconds, alone */
    uint8_t from, to;
};

struct state {
    uint64_t now;        /* in parts */
    uint64_t free[MOST]; /* of nodes that have the message or are getting it, at the earliest; STOPPED */
    uint32_t waiting;    /* who has not got it, and nobody sends to; a bit each */
    uint32_t idle;       /* who has it and has to decide */
    uint32_t count;
    struct transfer transfers[MOST];
};

/* States from which all has been tried, of those with the same nodes waiting. */
struct kept {
    uint32_t count, next;
    uint64_t free[KEPT][MOST], last[KEPT]; /* and when those have it that somebody sends to */
};

struct optimum {
    struct tb_search_run *run;
    uint32_t nodes;
    bool shares;
    uint64_t times[MOST][MOST]; /* in parts */
    uint64_t links[MOST][MOST];
    uint32_t cluster[MOST];
    struct tb_search_tree tree;
    uint32_t last[MOST]; /* child of each node */
    uint64_t best;       /* in parts; what is not below it is left */
    struct kept *kept;   /* NULL: links are shared, or there is no memory */
    uint64_t earliest[MOST], reach[MOST];
};

/* When everybody who waits can have it at the earliest; the latest of these. */
static uint64_t quickest_ways(struct optimum *o, const struct state *s)
{
    uint64_t last = 0;
    for (uint32_t k = 0; k < o->nodes; k++) {
        if ((s->waiting >> k & 1) == 0) {
            last = s->free[k] != STOPPED && s->free[k] > last ? s->free[k] : last;
            continue;
        }
        o->earliest[k] = o->reach[k] = UINT64_MAX;
        for (uint32_t i = 0; i < o->nodes; i++) {
            bool sender = (s->waiting >> i & 1) == 0 && s->free[i] != STOPPED;
            if (i == k || (!sender && (s->waiting >> i & 1) == 0))
                continue;
            o->reach[k] = o->times[i][k] < o->reach[k] ? o->times[i][k] : o->reach[k];
            if (sender && s->free[i] + o->times[i][k] < o->earliest[k])
                o->earliest[k] = s->free[i] + o->times[i][k];
        }
    }
    for (uint32_t left = s->waiting; left != 0;) {
        uint32_t at = (uint32_t)__builtin_ctz(left);
        for (uint32_t rest = left; rest != 0; rest &= rest - 1)
            if (o->earliest[__builtin_ctz(rest)] < o->earliest[at])
                at = (uint32_t)__builtin_ctz(rest);
        left &= ~(1u << at);
        last = o->earliest[at] > last ? o->earliest[at] : last;
        if (o->earliest[at] == UINT64_MAX)
            break;
        for (uint32_t rest = left; rest != 0; rest &= rest - 1) {
            uint32_t k = (uint32_t)__builtin_ctz(rest);
            uint64_t there = o->earliest[at] + o->times[at][k];
            o->earliest[k] = there < o->earliest[k] ? there : o->earliest[k];
        }
    }
    return last;
}

/* When `count` more can have been told, each in `step`, by senders who are free at these times, of which there are
 * `senders` and room for `count` more. */
static uint64_t doubling(uint64_t *free, uint32_t senders, uint32_t count, uint64_t step)
{
    uint64_t last = 0;
    TB_ASSERT(senders > 0); /* else nobody could be told, which quickest_ways has found */
    while (count-- > 0) {
        uint32_t at = 0;
        for (uint32_t i = 1; i < senders; i++)
            if (free[i] < free[at])
                at = i;
        last = free[at] + step;
        free[at] = free[senders++] = last;
    }
    return last;
}

/* The slowest to reach, one more each time. */
static uint64_t slowest_ones(const struct optimum *o, const struct state *s)
{
    uint32_t slow = 0;
    uint64_t bound = 0;
    while (slow != s->waiting) {
        uint64_t free[2 * MOST], step = 0;
        uint32_t senders = 0, next = 0;
        for (uint32_t rest = s->waiting & ~slow; rest != 0; rest &= rest - 1)
            if (o->reach[__builtin_ctz(rest)] >= step) {
                next = (uint32_t)__builtin_ctz(rest);
                step = o->reach[next];
            }
        slow |= 1u << next;
        for (uint32_t i = 0; i < o->nodes; i++) {
            bool waits = (s->waiting >> i & 1) != 0;
            if (waits ? (slow >> i & 1) == 0 : s->free[i] != STOPPED)
                free[senders++] = waits ? o->earliest[i] : s->free[i];
        }
        uint64_t time = doubling(free, senders, (uint32_t)__builtin_popcount(slow), step);
        bound = time > bound ? time : bound;
    }
    return bound;
}

/* When everything from this state on can have ended at the earliest. */
static uint64_t state_bound(struct optimum *o, const struct state *s)
{
    uint64_t quickest = quickest_ways(o, s);
    if (quickest >= o->best || s->waiting == 0)
        return quickest;
    uint64_t slowest = slowest_ones(o, s);
    return slowest > quickest ? slowest : quickest;
}

/* Whether a state from which all has been tried is as good as this one, from which nothing ends before `bound`. */
static bool is_dominated(const struct optimum *o, const struct state *s, uint64_t bound)
{
    const struct kept *kept = &o->kept[s->waiting];
    for (uint32_t n = 0; n < kept->count; n++) {
        uint32_t i = 0;
        while (i < o->nodes && ((s->waiting >> i & 1) != 0 || kept->free[n][i] <= s->free[i]))
            i++;
        if (i == o->nodes && kept->last[n] <= bound)
            return true;
    }
    return false;
}

static void state_keep(struct optimum *o, const struct state *s)
{
    struct kept *kept = &o->kept[s->waiting];
    uint32_t at = kept->count < KEPT ? kept->count++ : kept->next++ % KEPT;
    memcpy(kept->free[at], s->free, sizeof s->free);
    kept->last[at] = s->now;
    for (uint32_t i = 0; i < o->nodes; i++)
        if ((s->waiting >> i & 1) == 0 && s->free[i] != STOPPED && s->free[i] > kept->last[at])
            kept->last[at] = s->free[i];
}

/* To the end of the next transfers. There is one under way. */
static void time_advance(struct optimum *o, struct state *s)
{
    uint32_t sharers[MOST];
    uint64_t step = UINT64_MAX;
    for (uint32_t i = 0; i < s->count; i++) {
        sharers[i] = 1;
        for (uint32_t k = 0; o->shares && k < s->count; k++)
            sharers[i] +=
                k != i && s->transfers[k].link == s->transfers[i].link && s->transfers[i].link != TB_TREESIM_ALONE;
        step = s->transfers[i].left * sharers[i] < step ? s->transfers[i].left * sharers[i] : step;
    }
    s->now += step;
    uint32_t count = 0;
    for (uint32_t i = 0; i < s->count; i++) {
        struct transfer t = s->transfers[i];
        t.left -= step / sharers[i];
        if (t.left < sharers[i]) { /* or what rounding left of it */
            s->free[t.from] = s->free[t.to] = s->now;
            s->idle |= 1u << t.from | 1u << t.to;
        } else {
            s->free[t.from] = s->free[t.to] = s->now + t.left;
            s->transfers[count++] = t;
        }
    }
    s->count = count;
}

static int state_walk(struct optimum *o, struct state *s);

/* `from` sends to each who waits, one after another. */
static int senders_try(struct optimum *o, const struct state *s, uint32_t from)
{
    int error = TB_OK;
    uint32_t before = o->last[from];
    for (uint32_t rest = s->waiting, seen = 0; error == TB_OK && rest != 0; rest &= rest - 1) {
        uint32_t to = (uint32_t)__builtin_ctz(rest);
        if ((seen >> o->cluster[to] & 1) != 0)
            continue;
        seen |= 1u << o->cluster[to];
        struct state next = *s;
        next.waiting &= ~(1u << to);
        next.idle &= ~(1u << from);
        next.transfers[next.count++] =
            (struct transfer){o->times[from][to], o->links[from][to], (uint8_t)from, (uint8_t)to};
        next.free[from] = next.free[to] = next.now + o->times[from][to];
        tb_search_tree_put(&o->tree, to, from, before);
        o->last[from] = to;
        error = state_walk(o, &next);
        o->last[from] = before;
        tb_search_tree_take(&o->tree, to);
    }
    return error;
}

/* All who want it have it, or will: the tree is whole. */
static int tree_rate(struct optimum *o)
{
    uint64_t time;
    int error = tb_search_run_rate(o->run, &o->tree, &time);
    o->run->evaluations--; /* the state was counted */
    o->best = o->run->best_time * PART;
    return error;
}

static int state_walk(struct optimum *o, struct state *s)
{
    o->run->evaluations++;
    uint64_t bound = state_bound(o, s);
    if (tb_search_run_over(o->run) || bound >= o->best)
        return TB_OK;
    if (s->waiting == 0)
        return tree_rate(o);
    while (s->idle == 0)
        time_advance(o, s);
    if (o->kept != NULL && is_dominated(o, s, bound))
        return TB_OK;
    uint32_t from = (uint32_t)__builtin_ctz(s->idle);
    int error = senders_try(o, s, from);
    /* Or never again, if somebody else is left to do it. */
    struct state next = *s;
    next.idle &= ~(1u << from);
    next.free[from] = STOPPED;
    if (error == TB_OK && (next.idle != 0 || next.count > 0))
        error = state_walk(o, &next);
    if (o->kept != NULL && !o->run->stopped)
        state_keep(o, s);
    return error;
}

static int optimum_prepare(struct optimum *o, struct tb_search_run *run, bool up)
{
    struct tb_problem *problem = run->problem;
    *o = (struct optimum){.run = run, .nodes = problem->nodes, .shares = tb_treesim_shares(problem)};
    o->best = run->best_time < UINT64_MAX / PART ? run->best_time * PART : UINT64_MAX;
    for (uint32_t i = 0; i < o->nodes; i++) {
        o->last[i] = TB_NO_NODE;
        for (uint32_t c = o->cluster[i] = i; c-- > 0;)
            if (problem->clusters[c] == problem->clusters[i])
                o->cluster[i] = c;
        for (uint32_t k = 0; k < o->nodes; k++) {
            uint64_t time = i == k ? 0 : problem->arrive(problem, up ? k : i, up ? i : k);
            if (time > UINT64_MAX / PART / (2 * MOST)) /* all of them together, and one more, can be counted */
                return tb_error(TB_ERR_LIMIT, "%llu picoseconds are too long for the search of the optimum",
                                (unsigned long long)time);
            o->times[i][k] = time * PART;
            o->links[i][k] = tb_treesim_link_key(problem, i, k);
        }
    }
    if (!o->shares)
        o->kept = calloc((size_t)1 << o->nodes, sizeof *o->kept);
    return tb_search_tree_open(&o->tree, o->nodes, problem->root);
}

/* Whether the walk through time tells the truth: transfers that keep both ends until they have arrived, one way. On the
 * way up everything is as on the way down with time turned round, unless links are shared. */
static bool walk_fits(const struct tb_problem *problem, bool up)
{
    if (!tb_treesim_is(problem) || (!up && problem->operation != TB_OPERATION_BCAST))
        return false;
    bool shares = tb_treesim_shares(problem), latency = false, busy = true;
    for (uint32_t i = 0; i < problem->nodes * problem->nodes; i++) {
        uint32_t from = i / problem->nodes, to = i % problem->nodes;
        if (from == to)
            continue;
        latency = latency || tb_treesim_has_latency(problem, from, to);
        busy = busy && problem->arrive(problem, from, to) == problem->send(problem, from, to);
    }
    return busy && !(shares && (up || latency));
}

int tb_optimum(struct tb_search_run *run)
{
    const struct tb_problem *problem = run->problem;
    bool up = problem->operation == TB_OPERATION_REDUCE;
    struct optimum o;
    if (!walk_fits(problem, up))
        return tb_all_trees(run);
    int error = optimum_prepare(&o, run, up);
    struct state s = {.waiting = ((1u << o.nodes) - 1) & ~(1u << problem->root), .idle = 1u << problem->root};
    if (error == TB_OK && s.waiting == 0)
        error = tree_rate(&o);
    else if (error == TB_OK)
        error = state_walk(&o, &s);
    tb_search_tree_close(&o.tree);
    free(o.kept);
    return error;
}
