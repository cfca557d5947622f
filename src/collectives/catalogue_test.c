/* The catalogue as a whole: something for every call, programs that stay short, arguments worth rating. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "collectives/collectives.h"

#define ARGUMENTS 64

static void candidates_are_a_series(void **state)
{
    struct tb_collective c = {.operation = TB_OPERATION_BCAST, .size = 9, .elements = 1000000, .element_bytes = 8};
    uint64_t values[ARGUMENTS], few[4];
    uint32_t count = tb_candidates_piece(&c, values, ARGUMENTS);
    assert_in_range(count, 12, 40);
    assert_int_equal(values[0], 8000000);
    for (uint32_t i = 1; i < count; i++)
        assert_true(values[i] < values[i - 1] && values[i] * 2 + 1 >= values[i - 1]);
    assert_int_equal(tb_candidates_piece(&c, few, 4), 4);
    assert_int_equal(few[0], 8000000);
    for (c.elements = 1; c.elements < 2000; c.elements += 13) { /* none is less than a packet, but for the whole */
        count = tb_candidates_piece(&c, values, ARGUMENTS);
        assert_int_equal(values[0], c.elements * 8);
        assert_int_equal(count > 1, c.elements * 8 >= 2 * 1448);
        assert_true(count == 1 || values[count - 1] >= 1448);
    }
    c.elements = 0;
    assert_int_equal(tb_candidates_piece(&c, values, ARGUMENTS), 1);
    assert_int_equal(values[0], 0);
}

static void every_call_has_an_algorithm(void **state)
{
    for (unsigned o = 0; o < TB_OPERATION_COUNT; o++)
        for (int way = 0; way < 8; way++) {
            struct tb_collective c = {.operation = (enum tb_operation)o, .size = 3, .commutative = (way & 1) != 0};
            c.in_place = (way & 2) != 0;
            c.inter = (way & 4) != 0;
            c.remote_size = c.inter ? 2 : 0;
            bool alone = o == TB_OPERATION_SCAN || o == TB_OPERATION_EXSCAN || o >= TB_OPERATION_NEIGHBOR_ALLGATHER;
            if (c.inter && (c.in_place || alone))
                continue;
            bool found = false;
            for (int i = 0; tb_catalogue[i] != NULL; i++)
                found = found || tb_algorithm_fits(tb_catalogue[i], &c);
            if (!found)
                fail_msg("nothing for %s, way %d", tb_operation_name(o), way);
        }
}

/* Many ranks or many pieces do not make many steps. */
static void programs_are_compact(void **state)
{
    static const char *const names[] = {"binomial", "dissemination", "doubling",         "ring",     "chain",
                                        "binary",   "split-binary",  "scatter-ring",     "halving",  "butterfly",
                                        "postal",   "tree",          "scatter-doubling", "two-tree", "circulant"};
    for (int i = 0; tb_catalogue[i] != NULL; i++)
        for (int k = 0; k < 15; k++) {
            struct tb_collective c = {.size = 1000, .rank = 17, .elements = 100, .element_bytes = 1};
            struct tb_program *p = NULL;
            c.commutative = true;
            c.argument = tb_catalogue[i]->candidates == NULL ? 1 : 3;
            c.operation = tb_catalogue[i]->operation;
            if (strcmp(tb_catalogue[i]->name, names[k]) != 0 || !tb_algorithm_fits(tb_catalogue[i], &c))
                continue;
            assert_int_equal(tb_catalogue[i]->make(&c, &p), TB_OK);
            /* On the circulant graph up to ten steps for each of ceil(log2 p) rounds. */
            assert_in_range(p->step_count, 1, strcmp(names[k], "circulant") == 0 ? 100 : 50);
            tb_program_free(p);
        }
}

static void operations_have_names(void **state)
{
    for (unsigned o = 0; o < TB_OPERATION_COUNT; o++)
        assert_memory_equal(tb_operation_name(o), "MPI_", 4);
    assert_string_equal(tb_operation_name(TB_OPERATION_BCAST), "MPI_Bcast");
    assert_non_null(strstr(tb_operation_name(200), "unknown"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(candidates_are_a_series),
                                       cmocka_unit_test(every_call_has_an_algorithm),
                                       cmocka_unit_test(programs_are_compact), cmocka_unit_test(operations_have_names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
