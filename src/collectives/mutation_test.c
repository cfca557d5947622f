/* Every dependency of every program of the catalogue is taken out in turn, or loosened by a piece: the validator must
 * complain whenever two items can then touch the same piece in any order, which is found out here by brute force. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "collectives/hosts_test.h"

#define RANKS 9
#define ITEMS 4096
#define WORDS (ITEMS / 64)

/* ---- brute force ------------------------------------------------------------------------------------------------- */

/* An item of a rank's program: what it touches. */
struct item {
    const struct tb_step *step;
    uint32_t first, count; /* positions of its pieces */
};

static struct item items[ITEMS];
static uint64_t before[ITEMS][WORDS]; /* items that are done when it starts */
static uint32_t starts[ITEMS];        /* first item of each step */

static void items_find(const struct tb_program *p)
{
    uint32_t at = 0;
    for (uint32_t i = 0; i < p->step_count; i++) {
        const struct tb_step *s = &p->steps[i];
        starts[i] = at;
        for (uint32_t k = 0; k < s->items; k++) {
            assert_in_range(at, 0, ITEMS - 1);
            struct item *item = &items[at];
            *item = (struct item){s, k * tb_step_join(s), tb_step_join(s)};
            memset(before[at], 0, sizeof before[at]);
            for (uint32_t d = 0; d < s->after_count; d++) {
                const struct tb_after *after = &p->after[s->after + d];
                uint32_t needed = tb_step_needs(s, after, &p->steps[after->step], k);
                for (uint32_t n = starts[after->step]; n < starts[after->step] + needed; n++) {
                    before[at][n / 64] |= 1ull << n % 64;
                    for (uint32_t w = 0; w <= n / 64; w++)
                        before[at][w] |= before[n][w];
                }
            }
            at++;
        }
    }
    starts[p->step_count] = at;
}

static bool pieces_meet(const struct tb_program *p, const struct item *a, const struct tb_slice *of_a,
                        const struct item *b, const struct tb_slice *of_b)
{
    if (of_a == NULL || of_b == NULL || of_a->symbol != of_b->symbol)
        return false;
    for (uint32_t i = a->first; i < a->first + a->count && i < of_a->count; i++)
        for (uint32_t k = b->first; k < b->first + b->count && k < of_b->count; k++)
            if (tb_slice_piece(p, of_a, i) == tb_slice_piece(p, of_b, k))
                return true;
    return false;
}

static const struct tb_slice *written(const struct tb_step *s)
{
    return s->kind == TB_STEP_SEND ? NULL : s->kind == TB_STEP_RECEIVE ? &s->slice : &s->other;
}

static const struct tb_slice *read(const struct tb_step *s)
{
    return s->kind == TB_STEP_RECEIVE || s->kind == TB_STEP_MEASURE ? NULL : &s->slice;
}

/* Of composite steps some have blocks where other steps have positions: there an item is all of both slices. */
static struct item widened(const struct item *item)
{
    bool blocks = item->step->kind == TB_STEP_COMPOSITE && item->step->contract.composite >= TB_COMPOSITE_GATHER;
    return blocks ? (struct item){item->step, 0, UINT32_MAX / 2} : *item;
}

static bool races(const struct tb_program *p)
{
    items_find(p);
    for (uint32_t i = 0; i < starts[p->step_count]; i++)
        for (uint32_t k = 0; k < i; k++) {
            struct item a = widened(&items[i]), b = widened(&items[k]);
            if (a.step == b.step || (before[i][k / 64] >> k % 64 & 1) != 0)
                continue;
            if (pieces_meet(p, &a, written(a.step), &b, written(b.step)) ||
                pieces_meet(p, &a, written(a.step), &b, read(b.step)) ||
                pieces_meet(p, &a, read(a.step), &b, written(b.step)))
                return true;
        }
    return false;
}

/* ---- the validator ----------------------------------------------------------------------------------------------- */

/* All data is there, and none is wrong: what is left to complain about is order. */
static uint64_t *initial(void *context, uint32_t rank, enum tb_symbol symbol)
{
    static uint64_t contents[ITEMS];
    for (uint32_t i = 0; i < ITEMS && contents[i] == 0; i++)
        contents[i] = 1;
    return contents;
}

static const uint64_t *expect(void *context, uint32_t rank, enum tb_symbol symbol)
{
    return NULL;
}

static uint64_t combine(void *context, uint64_t first, uint64_t second)
{
    return 1;
}

static bool complains(struct tb_program *const *programs, uint32_t ranks)
{
    struct tb_validation v = {ranks, programs, initial, expect, NULL, combine, 0, NULL};
    return tb_schedule_validate(&v) != TB_OK;
}

/* ---- mutations --------------------------------------------------------------------------------------------------- */

struct counts {
    uint32_t tried, noticed;
};

static void mutation_try(const struct tb_algorithm *a, struct tb_program *const *programs, uint32_t ranks,
                         uint32_t rank, struct counts *n)
{
    bool race = races(programs[rank]), noticed = complains(programs, ranks);
    n->tried++;
    n->noticed += noticed;
    if (race && !noticed)
        fail_msg("%s of %s, rank %u of %u: a race is not noticed", a->name, tb_operation_name(a->operation), rank,
                 ranks);
}

static void step_mutate(const struct tb_algorithm *a, struct tb_program *const *programs, uint32_t ranks, uint32_t rank,
                        struct tb_step *s, struct counts *n)
{
    struct tb_after *after = programs[rank]->after + s->after;
    uint32_t last = s->after_count - 1;
    for (uint32_t d = 0; d <= last && s->after_count > 0; d++) {
        struct tb_after one = after[d];
        if (one.lag != TB_AFTER_WHOLE) {
            after[d].lag++;
            mutation_try(a, programs, ranks, rank, n);
        }
        after[d] = after[last];
        s->after_count--;
        mutation_try(a, programs, ranks, rank, n);
        s->after_count++;
        after[last] = d == last ? one : after[d];
        after[d] = one;
    }
}

static void call_mutate(const struct tb_algorithm *a, struct tb_collective *c, struct counts *n)
{
    struct tb_program *programs[RANKS];
    bool in_place = c->in_place;
    bool rooted = c->operation == TB_OPERATION_BCAST || c->operation == TB_OPERATION_REDUCE ||
                  (c->operation >= TB_OPERATION_GATHER && c->operation <= TB_OPERATION_SCATTERV);
    for (uint32_t rank = 0; rank < c->size; rank++) {
        c->rank = rank;
        c->in_place = in_place && (!rooted || rank == c->root);
        assert_int_equal(a->make(c, &programs[rank]), TB_OK);
    }
    c->in_place = in_place;
    if (complains(programs, c->size))
        fail_msg("%s of %s, %u ranks: %s", a->name, tb_operation_name(a->operation), c->size, tb_error_story());
    for (uint32_t rank = 0; rank<c->size; rank += c->size> 5 && rank == 1 ? c->size - 3 : 1)
        for (uint32_t i = 0; i < programs[rank]->step_count; i++)
            step_mutate(a, programs, c->size, rank, &programs[rank]->steps[i], n);
    for (uint32_t rank = 0; rank < c->size; rank++)
        tb_program_free(programs[rank]);
}

static void every_dependency_is_needed_or_implied(void **state)
{
    static const uint32_t sizes[] = {2, 3, 5, 9};
    struct counts all = {0, 0};
    for (int i = 0; tb_catalogue[i] != NULL; i++)
        for (uint32_t way = 0; way < 4 * 4 * 2; way++) {
            const struct tb_algorithm *a = tb_catalogue[i];
            struct tb_collective c = {.operation = a->operation, .size = sizes[way / 4 % 4], .elements = 12};
            bool pieces = a->argument != NULL && strncmp(a->argument, "piece", 5) == 0;
            c.element_bytes = 4;
            c.root = c.size / 2;
            c.commutative = (way & 1) != 0;
            c.in_place = (way & 2) != 0;
            hosts_allow(&c, a);
            c.argument = pieces && way < 16 ? 8 : 0;
            if (a->operation < TB_OPERATION_NEIGHBOR_ALLGATHER && (pieces || way < 16) && tb_algorithm_fits(a, &c))
                call_mutate(a, &c, &all);
        }
    assert_in_range(all.noticed, 1000, all.tried);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_dependency_is_needed_or_implied)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
