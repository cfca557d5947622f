#include "agent/lines.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char seen[200000];
static size_t seen_length, emitted;

static void collect(void *context, const char *first, size_t first_length, const char *second, size_t second_length)
{
    memcpy(seen + seen_length, first, first_length);
    seen_length += first_length;
    memcpy(seen + seen_length, second, second_length);
    seen_length += second_length;
    emitted++;
}

static void restart(void)
{
    memset(seen, 0, sizeof seen);
    seen_length = emitted = 0;
}

static void add(struct tb_lines *lines, const char *text)
{
    tb_lines_add(lines, text, strlen(text), 1, collect, NULL);
}

static void only_whole_lines_are_passed_on(void **state)
{
    struct tb_lines lines = {0};
    restart();
    add(&lines, "one\ntw");
    assert_string_equal(seen, "one\n");
    add(&lines, "o");
    assert_string_equal(seen, "one\n");
    add(&lines, "\nthree");
    assert_string_equal(seen, "one\ntwo\n");
    tb_lines_flush(&lines, collect, NULL);
    assert_string_equal(seen, "one\ntwo\nthree");
    size_t before = emitted;
    tb_lines_flush(&lines, collect, NULL);
    assert_int_equal(emitted, before);
}

static void endless_lines_are_cut_but_not_lost(void **state)
{
    struct tb_lines lines = {0};
    char part[1000];
    restart();
    for (int i = 0; i < 150; i++) {
        memset(part, 'a' + i % 26, sizeof part);
        tb_lines_add(&lines, part, sizeof part, 1, collect, NULL);
        assert_true(lines.length <= TB_LINES_LIMIT + sizeof part);
    }
    tb_lines_flush(&lines, collect, NULL);
    assert_int_equal(seen_length, 150000);
    for (size_t i = 0; i < seen_length; i++)
        assert_int_equal(seen[i], 'a' + (char)(i / 1000 % 26));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_whole_lines_are_passed_on),
        cmocka_unit_test(endless_lines_are_cut_but_not_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
