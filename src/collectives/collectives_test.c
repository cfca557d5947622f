#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "collectives/collectives.h"

#define RANKS 33

struct shape {
    const struct tb_algorithm *algorithm;
    uint32_t size, root;
    struct tb_program *programs[RANKS];
};

static uint64_t data[] = {77};

static uint64_t *initial(void *context, uint32_t rank, enum tb_symbol symbol)
{
    const struct shape *s = context;
    return s->algorithm->operation == TB_OPERATION_BCAST && rank == s->root && symbol == TB_SYMBOL_OUT ? data : NULL;
}

static const uint64_t *expect(void *context, uint32_t rank, enum tb_symbol symbol)
{
    const struct shape *s = context;
    return s->algorithm->operation == TB_OPERATION_BCAST && symbol == TB_SYMBOL_OUT ? data : NULL;
}

static void shape_make(struct shape *s)
{
    for (uint32_t rank = 0; rank < s->size; rank++) {
        struct tb_collective c = {s->algorithm->operation, s->size, rank, s->root, 5, 4};
        if (s->algorithm->make(&c, &s->programs[rank]) != TB_OK)
            fail_msg("%s on %u ranks: %s", s->algorithm->name, s->size, tb_error_story());
    }
}

static void shape_free(struct shape *s)
{
    for (uint32_t rank = 0; rank < s->size; rank++)
        tb_program_free(s->programs[rank]);
}

static void every_algorithm_is_valid(void **state)
{
    for (int i = 0; tb_catalogue[i] != NULL; i++)
        for (uint32_t size = 1; size <= RANKS; size++) {
            uint32_t roots = tb_catalogue[i]->operation == TB_OPERATION_BARRIER ? 1 : size;
            for (uint32_t root = 0; root < roots; root++) {
                struct shape s = {.algorithm = tb_catalogue[i], .size = size, .root = root};
                shape_make(&s);
                struct tb_validation v = {size, s.programs, initial, expect, &s};
                if (tb_schedule_validate(&v) != TB_OK)
                    fail_msg("%s, %u ranks, root %u: %s", s.algorithm->name, size, root, tb_error_story());
                shape_free(&s);
            }
        }
}

/* Who must have entered before `rank` leaves, found by following messages and dependencies backwards. */
static void barrier_hears(const struct shape *s, uint32_t rank, uint32_t step, bool *heard, bool *seen)
{
    const struct tb_program *p = s->programs[rank];
    if (seen[rank * 128 + step])
        return;
    seen[rank * 128 + step] = true;
    heard[rank] = true;
    const struct tb_step *t = &p->steps[step];
    for (uint32_t k = 0; k < t->after_count; k++)
        barrier_hears(s, rank, p->after[t->after + k], heard, seen);
    if (t->kind != TB_STEP_RECEIVE)
        return;
    const struct tb_program *q = s->programs[t->peer];
    for (uint32_t k = 0; k < q->step_count; k++)
        if (q->steps[k].kind == TB_STEP_SEND && q->steps[k].peer == rank && q->steps[k].edge == t->edge)
            barrier_hears(s, t->peer, k, heard, seen);
}

static void nobody_leaves_a_barrier_early(void **state)
{
    static bool seen[RANKS * 128];
    for (int i = 0; tb_catalogue[i] != NULL; i++) {
        if (tb_catalogue[i]->operation != TB_OPERATION_BARRIER)
            continue;
        for (uint32_t size = 2; size <= RANKS; size++) {
            struct shape s = {.algorithm = tb_catalogue[i], .size = size};
            shape_make(&s);
            for (uint32_t rank = 0; rank < size; rank++) {
                bool heard[RANKS] = {false};
                memset(seen, 0, sizeof seen);
                for (uint32_t k = 0; k < s.programs[rank]->step_count; k++)
                    barrier_hears(&s, rank, k, heard, seen);
                for (uint32_t other = 0; other < size; other++)
                    if (!heard[other])
                        fail_msg("%s, %u ranks: %u leaves without %u", s.algorithm->name, size, rank, other);
            }
            shape_free(&s);
        }
    }
}

static void log_depth_is_short(void **state)
{
    struct tb_collective c = {TB_OPERATION_BARRIER, 1000, 17, 0, 0, 1};
    for (int i = 0; tb_catalogue[i] != NULL; i++) {
        struct tb_program *p = NULL;
        c.operation = tb_catalogue[i]->operation;
        if (strcmp(tb_catalogue[i]->name, "linear") == 0)
            continue;
        assert_int_equal(tb_catalogue[i]->make(&c, &p), TB_OK);
        assert_in_range(p->step_count, 1, 20);
        tb_program_free(p);
    }
}

static void operations_have_names(void **state)
{
    assert_string_equal(tb_operation_name(TB_OPERATION_BCAST), "MPI_Bcast");
    assert_non_null(strstr(tb_operation_name(200), "unknown"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_algorithm_is_valid),
                                       cmocka_unit_test(nobody_leaves_a_barrier_early),
                                       cmocka_unit_test(log_depth_is_short), cmocka_unit_test(operations_have_names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
