#include "job/address.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void ports_are_parsed(void **state)
{
    uint16_t low, high;
    static const struct {
        const char *text;
        int low, high; /* -1: an error */
    } cases[] = {{"0", 0, 0},        {"4711", 4711, 4711}, {"20000-20100", 20000, 20100},
                 {"7-7", 7, 7},      {"", -1, 0},          {"x", -1, 0},
                 {"-5", -1, 0},      {"10-5", -1, 0},      {"65536", -1, 0},
                 {"1-65536", -1, 0}, {"1-", -1, 0},        {"1-2-3", -1, 0},
                 {"1 2", -1, 0},     {"1--2", -1, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int rc = tb_ports_parse(cases[i].text, &low, &high);
        assert_int_equal(rc, cases[i].low < 0 ? TB_ERR_ARGUMENT : TB_OK);
        if (rc == TB_OK) {
            assert_int_equal(low, cases[i].low);
            assert_int_equal(high, cases[i].high);
        }
    }
}

static struct tb_address address_of(uint8_t a, uint8_t b, uint8_t c, uint8_t d, uint8_t prefix)
{
    return (struct tb_address){.family = 4, .prefix = prefix, .bytes = {a, b, c, d}};
}

static void the_wider_subnet_counts(void **state)
{
    struct tb_address one = address_of(10, 1, 2, 3, 24), two = address_of(10, 1, 2, 200, 24),
                      wide = address_of(10, 1, 9, 1, 16), odd = address_of(10, 1, 2, 130, 25);
    assert_true(tb_address_same_subnet(&one, &two));
    assert_true(tb_address_same_subnet(&one, &wide));
    assert_true(tb_address_same_subnet(&two, &odd));
    one.prefix = 25;
    assert_false(tb_address_same_subnet(&one, &odd));
    one.prefix = 0;
    assert_false(tb_address_same_subnet(&one, &two));
    one.prefix = 24;
    two.family = 6;
    assert_false(tb_address_same_subnet(&one, &two));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ports_are_parsed),
        cmocka_unit_test(the_wider_subnet_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
