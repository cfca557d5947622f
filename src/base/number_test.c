#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/number.h"

static void test_read(void **state)
{
    static const struct {
        const char *text, *rest;
        uint64_t value;
    } good[] = {{"0", "", 0},
                {"65536", "", 65536},
                {"64k", "", 65536},
                {"16M x", " x", 16u << 20},
                {"1g", "", 1u << 30},
                {"2kb", "b", 2048},
                {"3t", "t", 3},
                {"18446744073709551615", "", UINT64_MAX},
                {"17179869183g", "", UINT64_MAX - (1u << 30) + 1}};
    static const char *const bad[] = {"", "k", "-1", "+1", " 1", "x1", "18446744073709551616", "17179869184g"};
    uint64_t value;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        const char *rest = tb_number_read(good[i].text, &value);
        assert_non_null(rest);
        assert_string_equal(rest, good[i].rest);
        assert_int_equal(value, good[i].value);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_null(tb_number_read(bad[i], &value));
}

/* What is printed is read as the same number. */
static void test_print(void **state)
{
    static const struct {
        uint64_t value;
        const char *text;
    } rows[] = {{0, "0"},       {1, "1"},         {1000, "1000"},   {1024, "1k"},         {1536, "1536"},
                {65536, "64k"}, {3u << 20, "3m"}, {1u << 30, "1g"}, {1ull << 40, "1024g"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[32];
        uint64_t value;
        assert_int_equal(tb_number_print(rows[i].value, text, sizeof text), strlen(rows[i].text));
        assert_string_equal(text, rows[i].text);
        assert_non_null(tb_number_read(text, &value));
        assert_int_equal(value, rows[i].value);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_read), cmocka_unit_test(test_print)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
