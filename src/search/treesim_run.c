/* One simulation. Transfers are named by the child of the two nodes. Numbers of events: `c`, the transfer of c has been
 * sent, alone; nodes + c, it has arrived after its latency; 2 * nodes + l, the next one of link l has been sent. */
#include <string.h>

#include "search/treesim_run.h"

static uint32_t link_find(struct tb_treesim *s, uint64_t key)
{
    if (s->link_slots == 0)
        return (uint32_t)key;
    uint64_t hash = key * 0x9e3779b97f4a7c15u;
    uint32_t slot = (uint32_t)(hash >> 32) & (s->link_slots - 1);
    while (s->links[slot].key != TB_TREESIM_ALONE && s->links[slot].key != key)
        slot = (slot + 1) & (s->link_slots - 1);
    s->links[slot].key = key;
    return slot;
}

static void link_advance(struct tb_treesim_link *link, uint64_t now)
{
    uint64_t each = (now - link->when) / link->active;
    link->work += each;
    link->when += each * link->active;
}

static void link_await(struct tb_treesim *s, uint32_t number, uint64_t now)
{
    const struct tb_treesim_link *link = &s->links[number];
    uint64_t end_work = s->end_work[link->first], end = link->when;
    if (end_work > link->work)
        end += (end_work - link->work) * link->active;
    tb_event_heap_set(&s->heap, 2 * s->tree->nodes + number, end > now ? end : now);
}

static void link_begin(struct tb_treesim *s, uint32_t number, uint32_t c, uint64_t alone, uint64_t now)
{
    struct tb_treesim_link *link = &s->links[number];
    if (link->active == 0) {
        link->work = 0;
        link->when = now;
        link->first = link->last = TB_NO_NODE;
    } else {
        link_advance(link, now);
    }
    s->end_work[c] = link->work + alone;
    s->behind[c] = TB_NO_NODE;
    link->active++;
    if (link->last == TB_NO_NODE || s->end_work[link->last] <= s->end_work[c]) { /* always, if all are as long */
        if (link->last == TB_NO_NODE)
            link->first = c;
        else
            s->behind[link->last] = c;
        link->last = c;
    } else {
        uint32_t *at = &link->first;
        while (s->end_work[*at] <= s->end_work[c])
            at = &s->behind[*at];
        s->behind[c] = *at;
        *at = c;
    }
    link_await(s, number, now);
}

static uint32_t link_end(struct tb_treesim *s, uint32_t number, uint64_t now)
{
    struct tb_treesim_link *link = &s->links[number];
    uint32_t c = link->first;
    link_advance(link, now);
    link->first = s->behind[c];
    if (link->first == TB_NO_NODE)
        link->last = TB_NO_NODE;
    if (--link->active > 0)
        link_await(s, number, now);
    return c;
}

static void transfer_begin(struct tb_treesim *s, uint32_t c, uint64_t now)
{
    uint32_t parent = s->tree->parent[c], from = s->up ? c : parent, to = s->up ? parent : c;
    uint64_t alone = tb_treesim_alone(s, from, to), key = TB_TREESIM_ALONE;
    if (s->weight != NULL)
        alone *= s->weight[c];
    s->starts[c] = now;
    if (alone > 0)
        key = tb_treesim_key(s, from, to);
    if (key == TB_TREESIM_ALONE)
        tb_event_heap_set(&s->heap, c, now + alone);
    else
        link_begin(s, link_find(s, key), c, alone, now);
}

/* The parent of c goes on with its next child. */
static void parent_go_on(struct tb_treesim *s, uint32_t c, uint64_t now)
{
    uint32_t parent = s->tree->parent[c], turn = s->up ? s->before[c] : s->tree->next[c];
    s->turn[parent] = turn;
    if (turn != TB_NO_NODE && (!s->up || s->missing[turn] == 0))
        transfer_begin(s, turn, now);
}

/* A node has all that it is to pass on. */
static void node_begin(struct tb_treesim *s, uint32_t node, uint64_t now)
{
    if (!s->up && s->tree->child[node] != TB_NO_NODE)
        transfer_begin(s, s->tree->child[node], now);
    if (s->up && node != s->tree->root && s->turn[s->tree->parent[node]] == node)
        transfer_begin(s, node, now);
}

static void transfer_arrived(struct tb_treesim *s, uint32_t c, uint64_t now, bool go_on)
{
    uint32_t parent = s->tree->parent[c];
    if (s->timeline != NULL) {
        uint32_t from = s->up ? c : parent, to = s->up ? parent : c;
        uint32_t level = s->clusters[from] == s->clusters[to] ? 0 : 1;
        if (level > 0 && s->sites != NULL && s->places[from] != s->places[to])
            level = 2;
        s->timeline[s->timeline_count++] = (struct tb_treesim_transfer){from, to, level, s->starts[c], now};
    }
    if (go_on)
        parent_go_on(s, c, now);
    if (!s->up)
        node_begin(s, c, now);
    else if (--s->missing[parent] == 0)
        node_begin(s, parent, now);
}

static void transfer_sent(struct tb_treesim *s, uint32_t c, uint64_t now)
{
    uint32_t parent = s->tree->parent[c];
    uint64_t latency = tb_treesim_latency(s, s->up ? c : parent, s->up ? parent : c);
    if (latency == 0) {
        transfer_arrived(s, c, now, true);
        return;
    }
    tb_event_heap_set(&s->heap, s->tree->nodes + c, now + latency);
    if (s->sender_free)
        parent_go_on(s, c, now);
}

/* Whose turn it is on the way up: the child that is served first on the way down comes last. */
static void turns_prepare(struct tb_treesim *s)
{
    const struct tb_search_tree *tree = s->tree;
    for (uint32_t i = 0; i < tree->nodes; i++) {
        uint32_t last = TB_NO_NODE, count = 0;
        for (uint32_t k = tree->child[i]; k != TB_NO_NODE; k = tree->next[k]) {
            s->before[k] = last;
            last = k;
            count++;
        }
        s->turn[i] = last;
        s->missing[i] = count;
    }
}

static void weights_prepare(struct tb_treesim *s)
{
    uint32_t *list = s->turn, count = tb_search_tree_list(s->tree, list);
    for (uint32_t i = 0; i < count; i++)
        s->weight[i] = 1;
    while (--count > 0)
        s->weight[s->tree->parent[list[count]]] += s->weight[list[count]];
}

/* One way through the tree, from `now` on; when it has ended. */
static uint64_t way_run(struct tb_treesim *s, bool up, uint64_t now)
{
    const uint32_t nodes = s->tree->nodes;
    s->up = up;
    if (up)
        turns_prepare(s);
    if (!up)
        node_begin(s, s->tree->root, now);
    for (uint32_t i = 0; up && i < nodes; i++)
        if (s->tree->child[i] == TB_NO_NODE)
            node_begin(s, i, now);
    while (s->heap.count > 0) {
        struct tb_event event = tb_event_heap_take(&s->heap);
        now = event.time;
        if (event.number < nodes)
            transfer_sent(s, event.number, now);
        else if (event.number < 2 * nodes)
            transfer_arrived(s, event.number - nodes, now, !s->sender_free);
        else
            transfer_sent(s, link_end(s, event.number - 2 * nodes, now), now);
    }
    return now;
}

uint64_t tb_treesim_time(struct tb_problem *problem, const struct tb_search_tree *tree)
{
    struct tb_treesim *s = problem->context;
    const enum tb_operation operation = problem->operation;
    uint64_t now = 0;
    s->tree = tree;
    s->timeline_count = 0;
    for (uint32_t i = 0; i < s->link_slots; i++)
        s->links[i].key = TB_TREESIM_ALONE;
    if (s->weight != NULL)
        weights_prepare(s);
    bool both = operation == TB_OPERATION_ALLREDUCE || operation == TB_OPERATION_BARRIER;
    if (both || operation == TB_OPERATION_REDUCE || operation == TB_OPERATION_GATHER)
        now = way_run(s, true, now);
    if (both || operation == TB_OPERATION_BCAST || operation == TB_OPERATION_SCATTER)
        now = way_run(s, false, now);
    return now;
}
