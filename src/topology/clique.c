#include "topology/clique.h"

#include <stdlib.h>
#include <string.h>

struct clique_search {
    uint32_t limit, steps, depth;
    size_t words;
    const uint64_t *neighbours;
    uint64_t *sets; /* three of each depth: may still join, were tried already, to be tried next */
    uint32_t *chosen;
    struct tb_clique_list *list;
    size_t member_room, first_room;
};

static int take_clique(struct clique_search *s)
{
    struct tb_clique_list *list = s->list;
    if (list->count == s->limit)
        return tb_error(TB_ERR_LIMIT, "there are more than %u virtual clusters", s->limit);
    size_t used = list->first[list->count];
    if (list->count + 2u > s->first_room) {
        void *more = realloc(list->first, 2 * s->first_room * sizeof *list->first);
        if (more == NULL)
            return tb_error(TB_ERR_MEMORY, "no memory for %u virtual clusters", list->count);
        list->first = more;
        s->first_room *= 2;
    }
    if (used + s->depth > s->member_room) {
        size_t room = 2 * (used + s->depth);
        void *more = room > UINT32_MAX ? NULL : realloc(list->members, room * sizeof *list->members);
        if (more == NULL)
            return tb_error(TB_ERR_MEMORY, "no memory for %u virtual clusters", list->count);
        list->members = more;
        s->member_room = room;
    }
    memcpy(list->members + used, s->chosen, s->depth * sizeof *s->chosen);
    list->first[++list->count] = (uint32_t)(used + s->depth);
    return TB_OK;
}

static uint32_t common(const uint64_t *a, const uint64_t *b, size_t words)
{
    uint32_t sum = 0;
    for (size_t w = 0; w < words; w++)
        sum += (uint32_t)__builtin_popcountll(a[w] & b[w]);
    return sum;
}

static uint32_t next_bit(const uint64_t *set, size_t words, uint32_t from)
{
    for (size_t w = from / 64; w < words; w++) {
        uint64_t bits = w == from / 64 ? set[w] & (UINT64_MAX << (from % 64)) : set[w];
        if (bits != 0)
            return (uint32_t)(w * 64 + (size_t)__builtin_ctzll(bits));
    }
    return UINT32_MAX;
}

/* Only who is no neighbour of the pivot needs a branch of its own: a clique without any of them could be joined by the
 * pivot. The one with the most neighbours leaves the fewest. */
static void choose_branches(struct clique_search *s, const uint64_t *open, const uint64_t *tried, uint64_t *todo)
{
    uint32_t pivot = UINT32_MAX, most = 0;
    for (int pass = 0; pass < 2; pass++) {
        const uint64_t *set = pass == 0 ? open : tried;
        for (uint32_t v = next_bit(set, s->words, 0); v != UINT32_MAX; v = next_bit(set, s->words, v + 1)) {
            uint32_t n = common(open, s->neighbours + v * s->words, s->words);
            if (pivot == UINT32_MAX || n > most) {
                pivot = v;
                most = n;
            }
        }
    }
    for (size_t w = 0; w < s->words; w++)
        todo[w] = open[w] & ~s->neighbours[pivot * s->words + w];
    if ((open[pivot / 64] >> (pivot % 64) & 1) != 0)
        todo[pivot / 64] |= UINT64_C(1) << (pivot % 64);
}

static bool is_empty(const uint64_t *set, size_t words)
{
    return next_bit(set, words, 0) == UINT32_MAX;
}

/* Goes one level deeper with `v` chosen; whether there is anything to try there. */
static int descend(struct clique_search *s, uint32_t v, bool *deeper)
{
    uint64_t *open = s->sets + 3 * s->depth * s->words, *tried = open + s->words;
    uint64_t *next = open + 3 * s->words;
    const uint64_t *neighbours = s->neighbours + v * s->words;
    if (++s->steps > TB_CLIQUE_STEPS_LIMIT)
        return tb_error(TB_ERR_LIMIT, "who reaches whom is too irregular: virtual clusters not found in %u steps",
                        TB_CLIQUE_STEPS_LIMIT);
    for (size_t w = 0; w < s->words; w++) {
        next[w] = open[w] & neighbours[w];
        next[s->words + w] = tried[w] & neighbours[w];
    }
    next[v / 64] &= ~(UINT64_C(1) << (v % 64));
    s->chosen[s->depth++] = v;
    *deeper = !is_empty(next, s->words);
    if (*deeper)
        choose_branches(s, next, next + s->words, next + 2 * s->words);
    else if (is_empty(next + s->words, s->words))
        return take_clique(s);
    return TB_OK;
}

static int run(struct clique_search *s)
{
    choose_branches(s, s->sets, s->sets + s->words, s->sets + 2 * s->words);
    for (;;) {
        uint64_t *open = s->sets + 3 * s->depth * s->words, *tried = open + s->words, *todo = tried + s->words;
        uint32_t v = next_bit(todo, s->words, 0);
        if (v == UINT32_MAX) {
            if (s->depth == 0)
                return TB_OK;
            s->depth--;
            continue;
        }
        bool deeper = false;
        int rc = descend(s, v, &deeper);
        if (rc != TB_OK)
            return rc;
        uint64_t bit = UINT64_C(1) << (v % 64);
        todo[v / 64] &= ~bit; /* what was derived from these sets is in those below already */
        open[v / 64] &= ~bit;
        tried[v / 64] |= bit;
        if (!deeper)
            s->depth--;
    }
}

/* ---- order ------------------------------------------------------------------------------------------------------- */

struct span {
    const uint32_t *members;
    uint32_t count;
};

static int vertex_compare(const void *left, const void *right)
{
    const uint32_t *a = left, *b = right;
    return (*a > *b) - (*a < *b);
}

static int span_compare(const void *left, const void *right)
{
    const struct span *a = left, *b = right;
    for (uint32_t i = 0; i < a->count && i < b->count; i++) {
        if (a->members[i] != b->members[i])
            return a->members[i] < b->members[i] ? -1 : 1;
    }
    return 0; /* none is part of another */
}

static int sort(struct tb_clique_list *list)
{
    uint32_t total = list->first[list->count];
    struct span *spans = calloc(list->count + 1u, sizeof *spans);
    uint32_t *members = calloc(total + 1u, sizeof *members);
    if (spans == NULL || members == NULL) {
        free(spans);
        free(members);
        return tb_error(TB_ERR_MEMORY, "no memory for %u virtual clusters", list->count);
    }
    for (uint32_t i = 0; i < list->count; i++) {
        uint32_t *begin = list->members + list->first[i], count = list->first[i + 1] - list->first[i];
        qsort(begin, count, sizeof *begin, vertex_compare);
        spans[i] = (struct span){begin, count};
    }
    qsort(spans, list->count, sizeof *spans, span_compare);
    for (uint32_t i = 0, at = 0; i < list->count; i++) {
        memcpy(members + at, spans[i].members, spans[i].count * sizeof *members);
        at += spans[i].count;
        list->first[i + 1] = at;
    }
    free(spans);
    free(list->members);
    list->members = members;
    return TB_OK;
}

int tb_clique_list_open(struct tb_clique_list *list, uint32_t vertices, const uint64_t *neighbours, uint32_t limit)
{
    struct clique_search s = {
        .limit = limit, .words = tb_clique_words(vertices), .neighbours = neighbours, .list = list, .first_room = 64};
    *list = (struct tb_clique_list){.first = calloc(s.first_room, sizeof *list->first)};
    uint64_t *sets = calloc(3 * (vertices + 1u) * s.words + 1, sizeof *sets);
    uint32_t *chosen = calloc(vertices + 1u, sizeof *chosen);
    int rc = TB_OK;
    s.sets = sets;
    s.chosen = chosen;
    if (list->first == NULL || sets == NULL || chosen == NULL)
        rc = tb_error(TB_ERR_MEMORY, "no memory for the virtual clusters of %u vertices", vertices);
    for (uint32_t v = 0; v < vertices && rc == TB_OK; v++)
        sets[v / 64] |= UINT64_C(1) << (v % 64);
    if (rc == TB_OK && vertices > 0)
        rc = run(&s);
    if (rc == TB_OK)
        rc = sort(list);
    free(sets);
    free(chosen);
    if (rc != TB_OK)
        tb_clique_list_close(list);
    return rc;
}

void tb_clique_list_close(struct tb_clique_list *list)
{
    free(list->first);
    free(list->members);
    *list = (struct tb_clique_list){0};
}
