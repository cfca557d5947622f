#include "launch/visible_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void controls_are_shown(void **state)
{
    static const struct {
        const char *text, *shown;
    } cases[] = {
        {"", ""},
        {"plain: \"text\"\tand\nmore", "plain: \"text\"\tand\nmore"},
        {"\x1b[2J\x1b]0;title\a", "\\x1b[2J\\x1b]0;title\\x07"},
        {"over\rwritten\b\x7f", "over\\x0dwritten\\x08\\x7f"},
        {"Gr\xc3\xbc\xc3\x9f"
         "e \xe2\x82\xac \xf0\x9f\x98\x80",
         "Gr\xc3\xbc\xc3\x9f"
         "e \xe2\x82\xac \xf0\x9f\x98\x80"},
        {"\x9b"
         "31m",
         "\\x9b31m"}, /* begins a sequence too, in one byte, */
        {"\xc2\x9b"
         "31m",
         "\\xc2\\x9b31m"},              /* or as UTF-8, */
        {"\xc0\x9b[A", "\\xc0\\x9b[A"}, /* or as what is none */
        {"\xe0\x82\x9b", "\\xe0\\x82\\x9b"},
        {"\xed\xa0\x80", "\\xed\\xa0\\x80"},
        {"\xf5\x80\x80\x80", "\\xf5\\x80\\x80\\x80"},
        {"cut \xe2\x82", "cut \\xe2\\x82"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char shown[100];
        tb_visible_text(cases[i].text, shown, sizeof shown);
        assert_string_equal(shown, cases[i].shown);
    }
}

static void nothing_is_cut_in_its_midst(void **state)
{
    static const char text[] = "a\x1b\xe2\x82\xac"
                               "b";
    static const char *const shown[] = {
        "", "a", "a", "a", "a", "a\\x1b", "a\\x1b", "a\\x1b", "a\\x1b\xe2\x82\xac", "a\\x1b\342\202\254b"};
    for (size_t size = 1; size <= 10; size++) {
        char to[11];
        memset(to, '!', sizeof to);
        tb_visible_text(text, to, size);
        assert_string_equal(to, shown[size - 1]);
        assert_int_equal(to[size], '!');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(controls_are_shown),
        cmocka_unit_test(nothing_is_cut_in_its_midst),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
