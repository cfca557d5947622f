#include "agent/lines.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct {
    char text[300000];
    size_t length;
    int events;
} got;

static void take(void *context, const char *first, size_t first_length, const char *second, size_t second_length)
{
    if (first_length > 0)
        memcpy(got.text + got.length, first, first_length);
    got.length += first_length;
    if (second_length > 0)
        memcpy(got.text + got.length, second, second_length);
    got.length += second_length;
    got.text[got.length] = 0;
    got.events++;
}

static void add(struct tb_lines *lines, const char *text)
{
    tb_lines_add(lines, text, strlen(text), 1, take, NULL);
}

static void lines_come_whole(void **state)
{
    struct tb_lines lines = {0};
    memset(&got, 0, sizeof got);
    add(&lines, "one\ntwo\nthr");
    assert_string_equal(got.text, "one\ntwo\n");
    assert_int_equal(got.events, 1);
    add(&lines, "e");
    assert_int_equal(got.events, 1);
    add(&lines, "");
    add(&lines, "e\nfour");
    assert_string_equal(got.text, "one\ntwo\nthree\n");
    assert_int_equal(got.events, 2); /* the pieces of a line go out together */
    tb_lines_flush(&lines, take, NULL);
    assert_string_equal(got.text, "one\ntwo\nthree\nfour");
    tb_lines_flush(&lines, take, NULL);
    assert_int_equal(got.events, 3);
    assert_null(lines.bytes);
}

static void endless_lines_are_cut(void **state)
{
    struct tb_lines lines = {0};
    char piece[1000];
    memset(&got, 0, sizeof got);
    memset(piece, 'x', sizeof piece);
    for (int i = 0; i < 200; i++) {
        tb_lines_add(&lines, piece, sizeof piece, 1, take, NULL);
        assert_true(lines.length <= TB_LINES_LIMIT);
    }
    tb_lines_flush(&lines, take, NULL);
    assert_int_equal(got.length, 200000); /* nothing is lost */
    assert_int_equal(got.events, 4);
}

/* However the bytes are cut, the same comes out, and only at line ends until the last. */
static void any_cut_gives_the_same(void **state)
{
    static const char text[] = "a\n\nbcd\nef\n\n\nghi\njk";
    struct tb_random random;
    tb_random_seed(&random, 4);
    for (int i = 0; i < 1000; i++) {
        struct tb_lines lines = {0};
        memset(&got, 0, 64);
        got.length = 0;
        for (size_t at = 0; at < sizeof text - 1;) {
            size_t n = tb_random_below(&random, 5) + 1;
            n = n < sizeof text - 1 - at ? n : sizeof text - 1 - at;
            tb_lines_add(&lines, text + at, n, 1, take, NULL);
            at += n;
            assert_true(got.length == 0 || got.text[got.length - 1] == '\n');
        }
        tb_lines_flush(&lines, take, NULL);
        assert_int_equal(got.length, sizeof text - 1);
        assert_memory_equal(got.text, text, sizeof text - 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_come_whole),
        cmocka_unit_test(endless_lines_are_cut),
        cmocka_unit_test(any_cut_gives_the_same),
    };
    tb_param_load();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
