#include "topology/clique.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TOP 12u

static uint64_t draw(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 33;
}

static bool is_clique(const uint64_t *neighbours, uint32_t set)
{
    for (uint32_t v = 0; v < TOP; v++) {
        if ((set >> v & 1) != 0 && (set & ~(1u << v) & ~(uint32_t)neighbours[v]) != 0)
            return false;
    }
    return true;
}

/* Every subset is tried. */
static uint32_t count_maximal(const uint64_t *neighbours, uint32_t vertices, const bool *found)
{
    uint32_t count = 0;
    for (uint32_t set = 1; set < 1u << vertices; set++) {
        bool maximal = is_clique(neighbours, set);
        for (uint32_t v = 0; v < vertices && maximal; v++)
            maximal = (set >> v & 1) != 0 || !is_clique(neighbours, set | 1u << v);
        assert_int_equal(found[set], maximal);
        count += maximal;
    }
    return count;
}

static void all_subsets_agree(void **state)
{
    uint64_t seed = 7;
    static bool found[1u << TOP];
    for (uint32_t round = 0; round < 60; round++) {
        uint64_t neighbours[TOP] = {0};
        uint32_t vertices = 1 + (uint32_t)(draw(&seed) % TOP), dense = (uint32_t)(draw(&seed) % 11);
        for (uint32_t i = 0; i < vertices; i++) {
            for (uint32_t j = 0; j < i; j++) {
                if (draw(&seed) % 10 >= dense)
                    continue;
                neighbours[i] |= UINT64_C(1) << j;
                neighbours[j] |= UINT64_C(1) << i;
            }
            if (round % 2 == 0)
                neighbours[i] |= UINT64_C(1) << i;
        }
        struct tb_clique_list list;
        assert_int_equal(tb_clique_list_open(&list, vertices, neighbours, 1000), TB_OK);
        memset(found, 0, sizeof found);
        uint32_t last = 0;
        for (uint32_t c = 0; c < list.count; c++) {
            uint32_t set = 0;
            for (uint32_t i = list.first[c]; i < list.first[c + 1]; i++) {
                assert_true(i == list.first[c] || list.members[i - 1] < list.members[i]);
                set |= 1u << list.members[i];
            }
            assert_false(found[set]);
            assert_true(list.members[list.first[c]] >= last);
            last = list.members[list.first[c]];
            found[set] = true;
        }
        assert_int_equal(count_maximal(neighbours, vertices, found), list.count);
        tb_clique_list_close(&list);
    }
}

/* Everybody knows everybody but one: 2^n cliques. */
static void too_many_are_refused(void **state)
{
    enum { VERTICES = 100 };
    static uint64_t neighbours[VERTICES * 2];
    memset(neighbours, 0xff, sizeof neighbours);
    for (uint32_t i = 0; i < VERTICES; i++)
        neighbours[i * 2 + (i ^ 1) / 64] &= ~(UINT64_C(1) << ((i ^ 1) % 64));
    struct tb_clique_list list;
    assert_int_equal(tb_clique_list_open(&list, VERTICES, neighbours, 500), TB_ERR_LIMIT);
    assert_non_null(strstr(tb_error_story(), "more than 500"));
    assert_int_equal(tb_clique_list_open(&list, 16, (uint64_t[16]){0}, 16), TB_OK);
    assert_int_equal(list.count, 16);
    tb_clique_list_close(&list);
    assert_int_equal(tb_clique_list_open(&list, 0, NULL, 16), TB_OK);
    assert_int_equal(list.count, 0);
    tb_clique_list_close(&list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_subsets_agree),
        cmocka_unit_test(too_many_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
