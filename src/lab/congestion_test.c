/* The permit for a congestion control, with an ordinary file in the place of the kernel's list. */
#include "lab/congestion.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char path[64];

static void put(const char *text)
{
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void expect(const char *text)
{
    char got[256] = "";
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    assert_true(fread(got, 1, sizeof got - 1, file) > 0);
    fclose(file);
    assert_string_equal(got, text);
}

static int open_file(void **state)
{
    strcpy(path, "/tmp/tombolo-congestion-XXXXXX");
    int fd = mkstemp(path);
    if (fd >= 0)
        close(fd);
    return fd >= 0 ? 0 : -1;
}

static int close_file(void **state)
{
    return unlink(path);
}

static void names(void **state)
{
    assert_true(tb_congestion_is_name("cubic"));
    assert_true(tb_congestion_is_name("a_12"));
    assert_false(tb_congestion_is_name(""));
    assert_false(tb_congestion_is_name("Cubic"));
    assert_false(tb_congestion_is_name("a b"));
    assert_false(tb_congestion_is_name("abcdefghijklmnop"));
    assert_true(tb_congestion_in("reno bbr cubic\n", "bbr"));
    assert_true(tb_congestion_in("reno bbr cubic\n", "cubic"));
    assert_false(tb_congestion_in("reno bbr cubic\n", "cub"));
    assert_false(tb_congestion_in("reno bbr2\n", "bbr"));
    assert_false(tb_congestion_in("", "bbr"));
    assert_int_equal(tb_congestion_find("reno"), TB_OK); /* every kernel has it */
    assert_int_equal(tb_congestion_find("no_such_thing"), TB_ERR_UNSUPPORTED);
    assert_non_null(strstr(tb_error_story(), "this kernel has no congestion control no_such_thing; it has "));
    assert_non_null(strstr(tb_error_story(), "reno"));
}

static void the_list_is_put_back(void **state)
{
    struct tb_congestion_permit permit;
    put("reno bbr\n");
    assert_int_equal(tb_congestion_allow(&permit, path, "cubic"), TB_OK);
    assert_true(permit.fd >= 0);
    expect("reno bbr cubic\n");
    tb_congestion_await(&permit);
    expect("reno bbr\n");
    /* What is there already stays. */
    assert_int_equal(tb_congestion_allow(&permit, path, "bbr"), TB_OK);
    assert_int_equal(permit.fd, -1);
    tb_congestion_await(&permit);
    expect("reno bbr\n");
    /* What somebody else does meanwhile stays, too. */
    assert_int_equal(tb_congestion_allow(&permit, path, "cubic"), TB_OK);
    put("reno vegas cubic\n");
    tb_congestion_await(&permit);
    expect("reno vegas\n");
    assert_int_equal(tb_congestion_allow(&permit, "/nowhere/at/all", "cubic"), TB_OK);
    assert_int_equal(permit.fd, -1);
}

/* Two hold it: it lasts until both have let go. */
static void the_last_holder_ends_it(void **state)
{
    struct tb_congestion_permit permit;
    put("reno bbr\n");
    assert_int_equal(tb_congestion_allow(&permit, path, "cubic"), TB_OK);
    int other = fcntl(permit.fd, F_DUPFD_CLOEXEC, 0);
    assert_true(other >= 0);
    tb_congestion_let_go(&permit);
    usleep(20000);
    expect("reno bbr cubic\n");
    close(other);
    tb_congestion_await(&permit);
    expect("reno bbr\n");
}

/* Ctrl-C, or worse: whoever holds it is killed, with its whole group. */
static void a_holder_is_killed(void **state)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGKILL};
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        struct tb_congestion_permit permit;
        int told[2];
        char byte;
        put("reno bbr\n");
        assert_int_equal(pipe(told), 0);
        pid_t pid = fork();
        if (pid == 0) {
            setpgid(0, 0);
            if (tb_congestion_allow(&permit, path, "cubic") == TB_OK && write(told[1], "x", 1) == 1)
                pause();
            _exit(1);
        }
        assert_int_equal(read(told[0], &byte, 1), 1);
        expect("reno bbr cubic\n");
        assert_int_equal(kill(-pid, signals[i]), 0);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        /* The next one waits for the lock, and with it for the list. */
        assert_int_equal(tb_congestion_allow(&permit, path, "vegas"), TB_OK);
        expect("reno bbr vegas\n");
        tb_congestion_await(&permit);
        expect("reno bbr\n");
        close(told[0]);
        close(told[1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(names),
                                       cmocka_unit_test_setup_teardown(the_list_is_put_back, open_file, close_file),
                                       cmocka_unit_test_setup_teardown(the_last_holder_ends_it, open_file, close_file),
                                       cmocka_unit_test_setup_teardown(a_holder_is_killed, open_file, close_file)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
