/* The sockets of labs. */
#include "lab/keeper.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define CALLERS_MOST 256

static void make_name(char *name, size_t room, const char *what)
{
    snprintf(name, room, "%s-%d", what, (int)getpid());
}

static void test_a_keeper_is_found(void **state)
{
    char name[64];
    make_name(name, sizeof name, "found");
    int listener = tb_keeper_listen(name);
    assert_true(listener >= 0);
    int fd = tb_keeper_connect(name);
    assert_true(fd >= 0);
    close(fd);
    close(listener);
    assert_int_equal(tb_keeper_connect(name), -1);
}

/* Names can be taken by everybody; one whose holder accepts nobody does not hold us up for ever. */
static void test_a_name_that_takes_nobody(void **state)
{
    char name[64];
    int callers[CALLERS_MOST], count = 0;
    make_name(name, sizeof name, "taken");
    int listener = tb_keeper_listen(name);
    assert_true(listener >= 0);
    assert_int_equal(listen(listener, 0), 0);
    while (count < CALLERS_MOST && (callers[count] = tb_keeper_connect(name)) >= 0)
        count++;
    assert_in_range(count, 1, CALLERS_MOST - 1);
    while (count > 0)
        close(callers[--count]);
    close(listener);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_keeper_is_found),
        cmocka_unit_test(test_a_name_that_takes_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
