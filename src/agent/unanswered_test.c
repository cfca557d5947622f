/* Addresses at which nobody answers: all are named, as long as there is room. */
#include "agent/unanswered.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void add(struct tb_unanswered *unanswered, const char *text, int error)
{
    struct tb_address address;
    assert_int_equal(tb_address_parse(text, &address), TB_OK);
    tb_unanswered_add(unanswered, &address, error);
}

static void all_are_named(void **state)
{
    struct tb_unanswered unanswered = {0};
    char text[600], expected[600];
    add(&unanswered, "192.0.2.1:7", ECONNREFUSED);
    tb_unanswered_print(&unanswered, text, sizeof text);
    snprintf(expected, sizeof expected, "nobody answers at 192.0.2.1:7 (%s)", strerror(ECONNREFUSED));
    assert_string_equal(text, expected);
    add(&unanswered, "[2001:db8::1]:7", ENETUNREACH);
    tb_unanswered_print(&unanswered, text, sizeof text);
    snprintf(expected, sizeof expected, "nobody answers at 192.0.2.1:7 (%s), [2001:db8::1]:7 (%s)",
             strerror(ECONNREFUSED), strerror(ENETUNREACH));
    assert_string_equal(text, expected);
}

static void more_than_there_is_room_for(void **state)
{
    struct tb_unanswered unanswered = {0};
    char text[600], more[40];
    for (int i = 0; i < 100; i++)
        add(&unanswered, i % 2 == 0 ? "192.0.2.1:7" : "[2001:db8:1234:5678:9abc:def0:1234:5678]:65535", ECONNREFUSED);
    assert_true(unanswered.count > 3 && unanswered.count + unanswered.more == 100);
    tb_unanswered_print(&unanswered, text, sizeof text);
    snprintf(more, sizeof more, ") and %u more", unanswered.more);
    assert_true(strlen(text) > strlen(more));
    assert_string_equal(text + strlen(text) - strlen(more), more);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_are_named), cmocka_unit_test(more_than_there_is_room_for)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
