#include "agent/address.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void interfaces_can_be_chosen(void **state)
{
    struct tb_address_list list;
    assert_int_equal(tb_param_set("interfaces", "lo", TB_PARAM_LAUNCHER), TB_OK);
    int rc = tb_address_list_own(&list, 4711);
    if (rc != TB_OK) {
        print_message("no loopback interface here\n");
        skip();
    }
    assert_true(list.count >= 1);
    assert_int_equal(list.at[0].port, 4711);
    for (uint32_t i = 0; i < list.count; i++)
        assert_true(list.at[i].family == 4 ? list.at[i].bytes[0] == 127 : list.at[i].bytes[15] == 1);
    assert_int_equal(tb_param_set("interfaces", "127.0.0.0/8", TB_PARAM_LAUNCHER), TB_OK);
    assert_int_equal(tb_address_list_own(&list, 4711), TB_OK);
    for (uint32_t i = 0; i < list.count; i++)
        assert_int_equal(list.at[i].bytes[0], 127);
    assert_int_equal(tb_param_set("interfaces", "lo,^lo", TB_PARAM_LAUNCHER), TB_OK);
    assert_int_equal(tb_address_list_own(&list, 4711), TB_ERR_ARGUMENT);
    assert_int_equal(tb_param_set("interfaces", "no-such-interface", TB_PARAM_LAUNCHER), TB_OK);
    assert_int_equal(tb_address_list_own(&list, 4711), TB_ERR_ARGUMENT);
    assert_non_null(strstr(tb_error_story(), "no-such-interface"));
}

static void interfaces_are_found_by_address(void **state)
{
    const struct tb_address loopback = {.family = 4, .bytes = {127, 0, 0, 1}},
                            nobody = {.family = 4, .port = 7, .bytes = {192, 0, 2, 1}};
    uint32_t index = 0;
    assert_int_equal(tb_address_find_interface(&nobody, &index), TB_ERR_UNSUPPORTED);
    assert_string_equal(tb_error_story(), "no network interface has the address 192.0.2.1:7 any more");
    int rc = tb_address_find_interface(&loopback, &index); /* it has the address, but no multicast, or is down */
    if (rc != TB_OK)
        assert_null(strstr(tb_error_story(), "any more"));
    assert_int_not_equal(index, 0);
}

static struct tb_address address_of(uint8_t a, uint8_t b, uint8_t c, uint8_t d, uint8_t prefix)
{
    return (struct tb_address){.family = 4, .prefix = prefix, .bytes = {a, b, c, d}};
}

static void near_is_in_one_subnet(void **state)
{
    struct tb_address_list list = {.count = 2, .at = {address_of(10, 1, 2, 3, 24), address_of(192, 168, 7, 1, 16)}};
    struct tb_address near = address_of(10, 1, 2, 99, 24), wide = address_of(192, 168, 99, 1, 16),
                      far = address_of(10, 1, 3, 3, 24), other = near;
    assert_true(tb_address_is_near(&list, &near));
    assert_true(tb_address_is_near(&list, &wide));
    assert_false(tb_address_is_near(&list, &far));
    near.prefix = 0; /* nothing is known of its subnet */
    assert_false(tb_address_is_near(&list, &near));
    other.family = 6;
    assert_false(tb_address_is_near(&list, &other));
}

static void an_inner_host_knows_its_side(void **state)
{
    const struct tb_address inner = address_of(10, 1, 2, 3, 24), outer = address_of(192, 168, 7, 1, 24);
    const struct tb_address gate[] = {address_of(80, 1, 2, 3, 24), address_of(10, 1, 2, 1, 24)};
    const struct tb_address_list both = {.count = 2, .at = {outer, inner}};
    struct tb_address_list own = both;
    assert_true(tb_address_list_narrow(&own, gate, 2, "10.9.9.9 4711 192.168.7.1 22"));
    assert_int_equal(own.count, 1);
    assert_memory_equal(&own.at[0], &inner, sizeof inner);
    own = both; /* behind a router: ssh knows */
    assert_true(tb_address_list_narrow(&own, gate, 1, "10.9.9.9 4711 192.168.7.1 22"));
    assert_int_equal(own.count, 1);
    assert_memory_equal(&own.at[0], &outer, sizeof outer);
    own = both; /* nobody knows */
    assert_false(tb_address_list_narrow(&own, gate, 1, "10.9.9.9 4711 192.168.7.2 22"));
    assert_false(tb_address_list_narrow(&own, gate, 1, "nonsense"));
    assert_false(tb_address_list_narrow(&own, gate, 0, NULL));
    assert_memory_equal(&own, &both, sizeof both);
    own.count = 1; /* it has only one */
    assert_true(tb_address_list_narrow(&own, gate, 0, NULL));
    assert_int_equal(own.count, 1);
}

static void link_local_addresses_get_our_interface(void **state)
{
    struct tb_address_list own = {.count = 2, .at = {{.family = 6}, {.family = 6, .scope = 3}}};
    struct tb_address theirs = {.family = 6, .scope = 8}, global = {.family = 6};
    tb_address_fix_scope(&own, &theirs);
    assert_int_equal(theirs.scope, 3);
    tb_address_fix_scope(&own, &global);
    assert_int_equal(global.scope, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(interfaces_can_be_chosen),
        cmocka_unit_test(interfaces_are_found_by_address),
        cmocka_unit_test(near_is_in_one_subnet),
        cmocka_unit_test(an_inner_host_knows_its_side),
        cmocka_unit_test(link_local_addresses_get_our_interface),
    };
    tb_param_load();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
