/* Numbers by which sends and receives find each other: of many ranks and tags, while the table grows. */
#include "mpi/pairing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static uint32_t next(struct tb_pairings **pairings, uint32_t rank, uint32_t tag, bool receives)
{
    uint32_t number = UINT32_MAX;
    assert_true(tb_pairing_next(pairings, rank, tag, receives, &number));
    return number;
}

static void each_counts_by_itself(void **state)
{
    struct tb_pairings *pairings = NULL;
    for (uint32_t round = 0; round < 5; round++)
        for (uint32_t rank = 0; rank < 70; rank++)
            for (uint32_t tag = 0; tag < 30; tag++) {
                assert_int_equal(next(&pairings, rank, tag * 0x1234567u & INT32_MAX, false), round);
                if (tag % 2 == 0)
                    assert_int_equal(next(&pairings, rank, tag * 0x1234567u & INT32_MAX, true), round);
            }
    assert_int_equal(next(&pairings, 3, 0x1234567u, true), 0);
    tb_pairings_free(pairings);
}

static void extremes_differ(void **state)
{
    static const uint32_t values[] = {0, 1, 2, INT32_MAX - 1, INT32_MAX};
    struct tb_pairings *pairings = NULL;
    for (uint32_t round = 0; round < 2; round++)
        for (size_t i = 0; i < 5; i++)
            for (size_t k = 0; k < 5; k++) {
                assert_int_equal(next(&pairings, values[i], values[k], false), round);
                assert_int_equal(next(&pairings, values[i], values[k], true), round);
            }
    tb_pairings_free(pairings);
}

static void numbers_begin_anew(void **state)
{
    struct tb_pairings *pairings = NULL;
    uint32_t number = 0;
    for (uint32_t i = 0; i < TB_PAIRING_LIMIT; i++) /* so many that a check of cmocka's takes too long for each */
        if (!tb_pairing_next(&pairings, 1, 2, false, &number) || number != i)
            fail();
    assert_int_equal(next(&pairings, 1, 2, false), 0);
    tb_pairings_free(pairings);
    tb_pairings_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_counts_by_itself), cmocka_unit_test(extremes_differ),
                                       cmocka_unit_test(numbers_begin_anew)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
