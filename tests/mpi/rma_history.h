/* Whether what some ranks saw of one place of a window has an explanation: an order of all their operations, in which
 * those of each rank are as it made them, each sees what those before it left, and the last leaves what is there.
 * That is what MPI promises of accumulates: each is atomic for each element, those of one origin are in order. */
#ifndef TB_TESTS_MPI_RMA_HISTORY_H
#define TB_TESTS_MPI_RMA_HISTORY_H

#include "rma_element.h"

#define HISTORY_ORIGINS 4
#define HISTORY_EACH    4               /* operations of an origin */
#define HISTORY_STATES  (1 << 16)       /* that are remembered; places of a table */
#define HISTORY_POINTS  (5 * 5 * 5 * 5) /* how far each origin is */

struct history_step {
    enum element_op op;
    bool fetches;
    struct element_value operand, compare, seen;
};

struct history {
    const struct element *element;
    struct element_value before, after;
    int count[HISTORY_ORIGINS];
    struct history_step steps[HISTORY_ORIGINS][HISTORY_EACH];
    bool whole; /* the operations of an origin are together: it had an exclusive lock */
};

struct history_table {
    unsigned stamp, stamps[HISTORY_STATES], used;
    int points[HISTORY_STATES];
    struct element_value values[HISTORY_STATES];
};

/* Whether a state is new; it is remembered. */
static bool history_new(struct history_table *t, int point, struct element_value value)
{
    uint64_t bits = (uint64_t)value.first + (uint64_t)value.second * 0x94D049BB133111EBu;
    uint64_t hash = (bits ^ (uint64_t)point * 0x9E3779B97F4A7C15u) * 0xBF58476D1CE4E5B9u;
    for (unsigned i = (unsigned)(hash >> 40);; i++) {
        unsigned at = i % HISTORY_STATES;
        if (t->stamps[at] != t->stamp) {
            t->stamps[at] = t->stamp;
            t->points[at] = point;
            t->values[at] = value;
            t->used++;
            return true;
        }
        if (t->points[at] == point && element_equal(t->values[at], value))
            return false;
    }
}

/* From a state on: `busy` is the origin that must go on, -1 if any may. */
static bool history_search(const struct history *h, struct history_table *t, int done[HISTORY_ORIGINS], int busy,
                           struct element_value value)
{
    static const int WEIGHTS[HISTORY_ORIGINS] = {1, 5, 25, 125};
    int point = 0;
    bool all = true;
    for (int i = 0; i < HISTORY_ORIGINS; i++) {
        point += done[i] * WEIGHTS[i];
        all = all && done[i] == h->count[i];
    }
    if (all)
        return element_equal(value, h->after);
    if (!history_new(t, point + HISTORY_POINTS * (busy + 1), value) || t->used > HISTORY_STATES / 2)
        return false;
    for (int i = 0; i < HISTORY_ORIGINS; i++) {
        if (done[i] == h->count[i] || (busy >= 0 && busy != i))
            continue;
        const struct history_step *s = &h->steps[i][done[i]];
        if (s->fetches && !element_equal(s->seen, value))
            continue;
        done[i]++;
        int next = h->whole && done[i] < h->count[i] ? i : -1;
        bool found = history_search(h, t, done, next, element_next(h->element, s->op, s->operand, s->compare, value));
        done[i]--;
        if (found)
            return true;
    }
    return false;
}

static bool history_explained(const struct history *h)
{
    static struct history_table table;
    int done[HISTORY_ORIGINS] = {0};
    table.stamp++;
    table.used = 0;
    return history_search(h, &table, done, -1, h->before);
}

#endif
