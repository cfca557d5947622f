#include "search/ecef.h"

#include <stdlib.h>

#include "search/edge_cost.h"

struct target {
    uint64_t arrive;
    uint32_t point;
};

/* Who has the message: when it can send again, and whom it would reach soonest, in this order. */
struct sender {
    uint64_t ready;
    uint32_t *targets, at;
    uint64_t arrive; /* at targets[at] */
    uint32_t last;   /* of its children in the tree */
};

struct ecef {
    const struct tb_problem *problem;
    const uint32_t *points;
    uint32_t count, sender_count;
    struct sender *senders;
    uint32_t *who; /* point of each sender */
    bool *told;
    struct target *work;
};

static int targets_compare(const void *a, const void *b)
{
    const struct target *x = a, *y = b;
    if (x->arrive != y->arrive)
        return x->arrive < y->arrive ? -1 : 1;
    return x->point < y->point ? -1 : x->point > y->point;
}

/* The next who has not been told; false: there is none. */
static bool target_next(struct ecef *e, struct sender *sender, uint32_t point)
{
    while (sender->targets[sender->at] != TB_NO_NODE && e->told[sender->targets[sender->at]])
        sender->at++;
    uint32_t target = sender->targets[sender->at];
    if (target != TB_NO_NODE)
        sender->arrive = tb_edge_arrive(e->problem, e->points[point], e->points[target]);
    return target != TB_NO_NODE;
}

static int sender_add(struct ecef *e, uint32_t point, uint64_t ready, uint32_t last)
{
    uint32_t count = 0, number = e->sender_count++;
    for (uint32_t i = 0; i < e->count; i++)
        if (!e->told[i])
            e->work[count++] = (struct target){tb_edge_arrive(e->problem, e->points[point], e->points[i]), i};
    qsort(e->work, count, sizeof *e->work, targets_compare);
    e->who[number] = point;
    e->senders[number] = (struct sender){ready, malloc((count + 1) * sizeof(uint32_t)), 0, 0, last};
    if (e->senders[number].targets == NULL)
        return tb_error(TB_ERR_MEMORY, "no memory for %u edges", count);
    for (uint32_t i = 0; i < count; i++)
        e->senders[number].targets[i] = e->work[i].point;
    e->senders[number].targets[count] = TB_NO_NODE;
    if (count > 0)
        e->senders[number].arrive = e->work[0].arrive;
    return TB_OK;
}

/* The sender whose next message is there first; of equal ones the first that was told. */
static uint32_t sender_choose(struct ecef *e)
{
    uint32_t best = 0;
    uint64_t earliest = UINT64_MAX;
    for (uint32_t i = 0; i < e->sender_count; i++) {
        struct sender *sender = &e->senders[i];
        uint32_t target = sender->targets[sender->at];
        if (target == TB_NO_NODE || (e->told[target] && !target_next(e, sender, e->who[i])))
            continue;
        if (sender->ready + sender->arrive < earliest) {
            earliest = sender->ready + sender->arrive;
            best = i;
        }
    }
    return best;
}

static int edges_choose(struct ecef *e, struct tb_search_tree *tree)
{
    uint32_t last = TB_NO_NODE;
    for (uint32_t k = tree->child[e->points[0]]; k != TB_NO_NODE; k = tree->next[k])
        last = k;
    e->told[0] = true;
    int error = sender_add(e, 0, 0, last);
    for (uint32_t n = 1; error == TB_OK && n < e->count; n++) {
        struct sender *from = &e->senders[sender_choose(e)];
        uint32_t point = e->who[from - e->senders], target = from->targets[from->at], node = e->points[target];
        uint64_t there = from->ready + from->arrive;
        tb_search_tree_put(tree, node, e->points[point], from->last);
        from->last = node;
        from->ready += tb_edge_send(e->problem, e->points[point], node);
        e->told[target] = true;
        error = sender_add(e, target, there, TB_NO_NODE);
    }
    return error;
}

int tb_ecef(const struct tb_problem *problem, const uint32_t *points, uint32_t count, struct tb_search_tree *tree)
{
    struct ecef e = {.problem = problem, .points = points, .count = count};
    if (count > TB_ECEF_POINTS)
        return tb_error(TB_ERR_LIMIT, "%u points are too many for edges one by one; at most %u", count, TB_ECEF_POINTS);
    if (count <= 1)
        return TB_OK;
    e.senders = calloc(count, sizeof *e.senders);
    e.who = malloc(count * sizeof *e.who);
    e.told = calloc(count, sizeof *e.told);
    e.work = malloc(count * sizeof *e.work);
    int error = TB_OK;
    if (e.senders == NULL || e.who == NULL || e.told == NULL || e.work == NULL)
        error = tb_error(TB_ERR_MEMORY, "no memory for %u points", count);
    else
        error = edges_choose(&e, tree);
    for (uint32_t i = 0; e.senders != NULL && i < e.sender_count; i++)
        free(e.senders[i].targets);
    free(e.senders);
    free(e.who);
    free(e.told);
    free(e.work);
    return error;
}
