#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "transport/endpoint_table.h"

#define MANY 5000u

struct own {
    struct tb_endpoint head;
    uint32_t number;
};

static struct tb_transport transport;

static struct own *find(struct tb_endpoint_table *table, uint32_t job, uint32_t index, bool *fresh)
{
    struct tb_proc proc = {job, index};
    return (struct own *)tb_endpoint_table_find(table, &transport, proc, sizeof(struct own), fresh);
}

/* Each process has one endpoint, which stays where it is while the table grows. */
static void test_found_again(void **state)
{
    struct tb_endpoint_table table;
    static struct own *all[MANY];
    bool fresh;
    assert_int_equal(tb_endpoint_table_open(&table, "in a test"), TB_OK);
    for (uint32_t i = 0; i < MANY; i++) {
        all[i] = find(&table, 1 + i % 3, i / 3 | (i % 2 ? TB_PROC_AGENT : 0), &fresh);
        assert_non_null(all[i]);
        assert_true(fresh);
        assert_ptr_equal(all[i]->head.transport, &transport);
        assert_null(all[i]->head.user);
        assert_int_equal(all[i]->number, 0);
        all[i]->number = i;
    }
    assert_int_equal(table.count, MANY);
    for (uint32_t i = 0; i < MANY; i++) {
        assert_ptr_equal(find(&table, 1 + i % 3, i / 3 | (i % 2 ? TB_PROC_AGENT : 0), &fresh), all[i]);
        assert_false(fresh);
    }
    tb_endpoint_table_close(&table);
}

/* Going through visits each of them once. */
static void test_next(void **state)
{
    struct tb_endpoint_table table;
    struct tb_endpoint *endpoint;
    bool fresh;
    uint32_t seen = 0, at = 0, count = 0;
    assert_int_equal(tb_endpoint_table_open(&table, "in a test"), TB_OK);
    assert_null(tb_endpoint_table_next(&table, &at));
    for (uint32_t i = 0; i < 20; i++)
        assert_non_null(find(&table, 7, i, &fresh));
    at = 0;
    while ((endpoint = tb_endpoint_table_next(&table, &at)) != NULL) {
        seen |= 1u << endpoint->proc.index;
        count++;
    }
    assert_int_equal(count, 20);
    assert_int_equal(seen, (1u << 20) - 1);
    tb_endpoint_table_close(&table);
}

/* Whichever are taken out, the others are found; and who comes back is new. */
static void test_remove(void **state)
{
    struct tb_endpoint_table table;
    static struct own *all[MANY];
    bool fresh;
    assert_int_equal(tb_endpoint_table_open(&table, "in a test"), TB_OK);
    for (uint32_t i = 0; i < MANY; i++)
        all[i] = find(&table, 1, i, &fresh);
    uint32_t room = table.room;
    for (uint32_t i = 0; i < MANY; i += 1 + i % 3 / 2) {
        tb_endpoint_table_remove(&table, &all[i]->head);
        all[i] = NULL;
    }
    uint32_t left = table.count;
    for (uint32_t i = 0; i < MANY; i++)
        if (all[i] != NULL) {
            assert_ptr_equal(find(&table, 1, i, &fresh), all[i]);
            assert_false(fresh);
            left--;
        }
    assert_int_equal(left, 0);
    for (uint32_t i = 0; i < 100 * MANY; i++) { /* one after the other take no more room */
        struct own *own = find(&table, 2, i, &fresh);
        assert_true(fresh);
        tb_endpoint_table_remove(&table, &own->head);
    }
    assert_int_equal(table.room, room);
    tb_endpoint_table_close(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_found_again), cmocka_unit_test(test_next),
                                       cmocka_unit_test(test_remove)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
