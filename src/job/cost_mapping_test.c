#include "job/cost_mapping_test.h"

#include "base/changed_bytes_test.h"

static void add(struct tb_cost_mapping **newest, int descriptor, int expected)
{
    assert_int_equal(tb_cost_mapping_add(newest, descriptor, 3, 2), expected);
    close(descriptor);
}

/* What was read with a version goes on with it, also when there are others. */
static void versions_stay(void **state)
{
    struct tb_cost_mapping *newest = NULL;
    assert_null(tb_cost_mapping_first(newest));
    add(&newest, costs_file_of(2, 3, 1), TB_OK);
    const struct tb_cost_table *first = tb_cost_mapping_first(newest);
    assert_int_equal(first->head->version, 1);
    add(&newest, costs_file_of(4, 5, 2), TB_OK); /* hosts and places that have come */
    add(&newest, costs_file_of(4, 5, 2), TB_OK); /* the same again */
    assert_int_equal(newest->table.head->version, 2);
    add(&newest, costs_file_of(9, 5, 7), TB_OK);
    add(&newest, costs_file_of(4, 5, 3), TB_OK); /* too late */
    assert_int_equal(newest->table.head->version, 7);
    assert_int_equal(newest->table.head->place_count, 9);
    assert_int_equal(newest->older->table.head->version, 2);
    assert_null(newest->older->older->older);
    assert_ptr_equal(tb_cost_mapping_first(newest), first);
    assert_int_equal(first->head->place_count, 2);
    tb_cost_mapping_close(&newest);
    assert_null(newest);
}

/* The first is that of the address book; a later one forgets nothing. */
static void what_lacks_something_is_refused(void **state)
{
    struct tb_cost_mapping *newest = NULL;
    add(&newest, costs_file_of(2, 2, 1), TB_ERR_PROTOCOL);
    add(&newest, costs_file_of(2, 4, 1), TB_ERR_PROTOCOL);
    add(&newest, costs_file_of(1, 3, 1), TB_ERR_PROTOCOL);
    add(&newest, costs_file_of(3, 3, 1), TB_ERR_PROTOCOL);
    assert_null(newest);
    add(&newest, costs_file_of(2, 3, 1), TB_OK);
    add(&newest, costs_file_of(1, 3, 2), TB_ERR_PROTOCOL);
    add(&newest, costs_file_of(2, 2, 2), TB_ERR_PROTOCOL);
    assert_int_equal(newest->table.head->version, 1);
    tb_cost_mapping_close(&newest);
}

static void what_is_no_table_is_refused(void **state)
{
    struct tb_cost_mapping *newest = NULL;
    struct tb_cost_head *head = costs_make(2, 3, 1);
    assert_int_equal(tb_cost_mapping_add(&newest, -1, 3, 2), TB_ERR_PROTOCOL);
    add(&newest, costs_file("", 0), TB_ERR_PROTOCOL);
    add(&newest, costs_file("this is no table", 16), TB_ERR_PROTOCOL);
    add(&newest, costs_file(head, (size_t)head->bytes - 8), TB_ERR_PROTOCOL);
    int descriptor = costs_file(head, (size_t)head->bytes);
    assert_int_equal(ftruncate(descriptor, (off_t)TB_COST_TABLE_LIMIT + 1), 0);
    add(&newest, descriptor, TB_ERR_PROTOCOL);
    assert_null(newest);
    free(head);
}

/* Somebody who runs alone needs no agent for it. */
static void alone_it_is_made(void **state)
{
    struct tb_cost_mapping *newest = NULL;
    struct tb_places places;
    costs_places(&places, 1);
    assert_int_equal(tb_cost_mapping_make(&newest, &places, 1), TB_OK);
    tb_places_close(&places);
    assert_int_equal(tb_cost_table_check(tb_cost_mapping_first(newest), 1), TB_OK);
    tb_cost_mapping_close(&newest);
}

static int take_changed(void *context, const uint8_t *bytes, size_t length, size_t piece)
{
    struct tb_cost_mapping *newest = NULL;
    int descriptor = costs_file(bytes, length), rc = tb_cost_mapping_add(&newest, descriptor, 3, 2);
    close(descriptor);
    if (rc == TB_OK)
        (void)tb_cost_table_check(&newest->table, 3);
    tb_cost_mapping_close(&newest);
    return rc;
}

static void changed_bytes_do_no_harm(void **state)
{
    struct tb_cost_head *head = costs_make(2, 3, 1);
    const struct changed_bytes c = {
        .kind = "cost table", .take = take_changed, .bytes = (const uint8_t *)head, .length = (size_t)head->bytes};
    changed_bytes_sweep(&c);
    free(head);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(versions_stay),
        cmocka_unit_test(what_lacks_something_is_refused),
        cmocka_unit_test(what_is_no_table_is_refused),
        cmocka_unit_test(alone_it_is_made),
        cmocka_unit_test(changed_bytes_do_no_harm),
    };
    tb_param_load();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
