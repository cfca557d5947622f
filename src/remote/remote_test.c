#include "remote/remote.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void words_of_shells(void **state)
{
    char **words;
    struct tb_shell_target target = {.host = "venus2", .command = "lab exec", .program = "/opt/tombolo"};
    assert_int_equal(tb_shell_words(&target, &words), TB_OK);
    assert_string_equal(words[0], "lab");
    assert_string_equal(words[1], "exec");
    assert_string_equal(words[2], "venus2");
    assert_non_null(strstr(words[3], "/opt/tombolo"));
    tb_shell_free(words);
    target = (struct tb_shell_target){.host = "venus2", .user = "ann", .port = 2222, .program = "/opt/tombolo"};
    assert_int_equal(tb_shell_words(&target, &words), TB_OK);
    assert_string_equal(words[0], "ssh");
    bool port = false, user = false;
    for (char **word = words; *word; word++) {
        port = port || strcmp(*word, "2222") == 0;
        user = user || strcmp(*word, "ann") == 0 || strncmp(*word, "ann@", 4) == 0;
    }
    assert_true(port && user);
    tb_shell_free(words);
}

static int run(const char *path, const char *directory, enum tb_child_stage *stage, int *status)
{
    char *arguments[] = {(char *)path, NULL}, *environment[] = {NULL};
    sigset_t mask;
    sigemptyset(&mask);
    struct tb_child child = {.path = path,
                             .arguments = arguments,
                             .environment = environment,
                             .directory = directory,
                             .streams = {-1, -1, -1},
                             .keep = -1,
                             .mask = &mask};
    pid_t pid;
    int rc = tb_child_start(&child, &pid, stage);
    if (rc == TB_OK)
        assert_int_equal(waitpid(pid, status, 0), pid);
    return rc;
}

static void children_run_or_say_why_not(void **state)
{
    enum tb_child_stage stage = TB_CHILD_FORK;
    int status = 0;
    assert_int_equal(run("/bin/true", NULL, &stage, &status), TB_OK);
    assert_int_equal(status, 0);
    assert_int_equal(run("/bin/false", NULL, &stage, &status), TB_OK);
    assert_int_equal(WEXITSTATUS(status), 1);
    errno = 0;
    assert_int_equal(run("/no/such/program", NULL, &stage, &status), TB_ERR_SYSTEM);
    assert_int_equal(errno, ENOENT);
    assert_int_equal(stage, TB_CHILD_EXEC);
    assert_int_equal(run("/bin/true", "/no/such/folder", &stage, &status), TB_ERR_SYSTEM);
    assert_int_equal(stage, TB_CHILD_DIRECTORY);
}

static void programs_are_found_as_a_shell_would(void **state)
{
    char *found = tb_program_find("true", "/nowhere:/usr/bin:/bin", "/");
    assert_non_null(found);
    assert_int_equal(access(found, X_OK), 0);
    free(found);
    assert_null(tb_program_find("no-such-program", "/usr/bin:/bin", "/"));
    assert_int_equal(errno, ENOENT);
    assert_null(tb_program_find("/etc/passwd", "/usr/bin", "/"));
    assert_int_equal(errno, EACCES);
    assert_null(tb_program_find("/etc", "/usr/bin", "/"));
}

static int fired;
static struct tb_loop *running;

static void fire(struct tb_timer *timer)
{
    fired++;
    running->stop = true;
}

static void readable(struct tb_watch *watch, uint32_t events)
{
    char byte;
    assert_int_equal(read(watch->descriptor, &byte, 1), 1);
    tb_loop_unwatch(running, watch);
    fired += 10;
}

static void loops_tell_of_descriptors_and_timers(void **state)
{
    struct tb_loop loop;
    struct tb_timer timer, never;
    struct tb_watch watch = {.descriptor = -1};
    int tube[2];
    assert_int_equal(tb_loop_open(&loop), TB_OK);
    running = &loop;
    assert_int_equal(pipe(tube), 0);
    tb_timer_init(&timer, fire);
    tb_timer_init(&never, fire);
    tb_timer_set(&loop, &timer, 20000000);
    tb_timer_set(&loop, &never, 1000000);
    tb_timer_clear(&never);
    assert_false(tb_timer_is_set(&never));
    assert_int_equal(tb_loop_watch(&loop, &watch, tube[0], EPOLLIN, readable), TB_OK);
    assert_int_equal(write(tube[1], "!", 1), 1);
    assert_int_equal(tb_loop_run(&loop), TB_OK);
    assert_int_equal(fired, 11);
    tb_loop_close(&loop);
    close(tube[0]);
    close(tube[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_of_shells),
        cmocka_unit_test(children_run_or_say_why_not),
        cmocka_unit_test(programs_are_found_as_a_shell_would),
        cmocka_unit_test(loops_tell_of_descriptors_and_timers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
