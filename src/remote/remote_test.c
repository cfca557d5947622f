#include "remote/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

extern char **environ;

#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441
#endif

static char *joined(const struct tb_shell_target *target, char *text, size_t size)
{
    char **words;
    *text = 0;
    if (tb_shell_words(target, &words) != TB_OK)
        return NULL;
    for (char **word = words; *word != NULL; word++)
        snprintf(text + strlen(text), size - strlen(text), "%s<%s>", *text != 0 ? " " : "", *word);
    tb_shell_free(words);
    return text;
}

static void shells_are_called_as_users_expect(void **state)
{
    char text[1024];
    struct tb_shell_target target = {.host = "venus2", .program = "/opt/tombolo/bin/tombolo"};
    assert_non_null(strstr(joined(&target, text, sizeof text), "<ssh> <-o> <BatchMode=yes>"));
    assert_non_null(strstr(text, "<venus2> <exec /opt/tombolo/bin/tombolo agent>"));
    target.user = "kate";
    target.port = 2222;
    assert_non_null(strstr(joined(&target, text, sizeof text), "<-p> <2222> <kate@venus2>"));
    target.command = "/usr/bin/ssh -q";
    assert_string_equal(joined(&target, text, sizeof text),
                        "</usr/bin/ssh> <-q> <-p> <2222> <kate@venus2> <exec /opt/tombolo/bin/tombolo agent>");
    target.command = "docker exec -i";
    assert_null(joined(&target, text, sizeof text)); /* knows no port */
    target.port = 0;
    target.user = NULL;
    target.program = "/a b/it's";
    assert_string_equal(joined(&target, text, sizeof text),
                        "<docker> <exec> <-i> <venus2> <exec '/a b/it'\\''s' agent>");
    target.command = "  ";
    assert_null(joined(&target, text, sizeof text));
    target.local = true;
    assert_string_equal(joined(&target, text, sizeof text), "<tombolo> <agent>");
}

static void programs_are_found(void **state)
{
    char *found = tb_program_find("sh", "/nowhere:/bin:/usr/bin", NULL);
    assert_non_null(found);
    assert_string_equal(found, "/bin/sh");
    free(found);
    found = tb_program_find("bin/sh", NULL, "/");
    assert_non_null(found);
    free(found);
    assert_null(tb_program_find("no-such-program", "/bin", NULL));
    assert_int_equal(errno, ENOENT);
    assert_null(tb_program_find("/bin", NULL, NULL));
    assert_int_equal(errno, EISDIR);
    assert_null(tb_program_find("/etc/passwd/x", NULL, NULL));
    assert_int_equal(errno, ENOENT);
    assert_null(tb_program_find("", "/bin", NULL));
    assert_null(tb_program_find("sh", NULL, NULL));
}

static void children_get_what_they_should(void **state)
{
    int out[2], kept = open("/dev/null", O_RDONLY | O_CLOEXEC), status;
    char text[256] = "";
    pid_t pid;
    enum tb_child_stage stage;
    sigset_t none;
    sigemptyset(&none);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    char *words[] = {(char *)"sh", (char *)"-c", (char *)"pwd; echo $X; [ -e /proc/self/fd/3 ] && echo kept; exit 5",
                     NULL};
    char *variables[] = {(char *)"X=y", NULL};
    struct tb_child child = {.path = "/bin/sh",
                             .arguments = words,
                             .environment = variables,
                             .directory = "/usr",
                             .streams = {-1, out[1], -1},
                             .keep = kept,
                             .death_signal = SIGKILL,
                             .mask = &none};
    assert_int_equal(tb_child_start(&child, &pid, &stage), TB_OK);
    assert_int_equal(getpgid(pid), pid);
    close(out[1]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(WEXITSTATUS(status), 5);
    assert_true(read(out[0], text, sizeof text - 1) > 0);
    assert_string_equal(text, "/usr\ny\nkept\n");
    close(out[0]);
    close(kept);
}

static void failures_to_start_are_told(void **state)
{
    pid_t pid;
    enum tb_child_stage stage;
    sigset_t none;
    sigemptyset(&none);
    char *words[] = {(char *)"x", NULL};
    struct tb_child child = {.path = "/no/such/program",
                             .arguments = words,
                             .environment = words,
                             .streams = {-1, -1, -1},
                             .keep = -1,
                             .mask = &none};
    assert_int_equal(tb_child_start(&child, &pid, &stage), TB_ERR_SYSTEM);
    assert_int_equal(errno, ENOENT);
    assert_int_equal(stage, TB_CHILD_EXEC);
    child.directory = "/no/such/directory";
    assert_int_equal(tb_child_start(&child, &pid, &stage), TB_ERR_SYSTEM);
    assert_int_equal(stage, TB_CHILD_DIRECTORY);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* nothing is left */
}

static struct {
    struct tb_loop loop;
    struct tb_watch watches[2];
    struct tb_timer timers[3];
    int fired[3], order, ready;
} t;

static void on_ready(struct tb_watch *watch, uint32_t events)
{
    /* Both are ready in the same batch; the first one takes the other out. */
    t.ready++;
    for (int i = 0; i < 2; i++)
        tb_loop_unwatch(&t.loop, &t.watches[i]);
}

static void on_timer(struct tb_timer *timer)
{
    long which = timer - t.timers;
    t.fired[which] = ++t.order;
    if (which == 1)
        tb_timer_clear(&t.timers[2]);
    if (which == 0)
        tb_timer_set(&t.loop, &t.timers[1], 1000000);
    else
        t.loop.stop = true;
}

static void loops_wait_for_all(void **state)
{
    int out[2][2];
    assert_int_equal(tb_loop_open(&t.loop, &tb_clock_real), TB_OK);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pipe2(out[i], O_CLOEXEC), 0);
        assert_int_equal(write(out[i][1], "x", 1), 1);
        assert_int_equal(tb_loop_watch(&t.loop, &t.watches[i], out[i][0], EPOLLIN, on_ready), TB_OK);
    }
    for (int i = 0; i < 3; i++)
        tb_timer_init(&t.timers[i], on_timer);
    tb_timer_set(&t.loop, &t.timers[0], 2000000);
    tb_timer_set(&t.loop, &t.timers[2], 3600000000000u);
    assert_int_equal(tb_loop_run(&t.loop), TB_OK);
    assert_int_equal(t.ready, 1);
    assert_int_equal(t.fired[0], 1);
    assert_int_equal(t.fired[1], 2);
    assert_int_equal(t.fired[2], 0);
    assert_false(tb_timer_is_set(&t.timers[2]));
    int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    assert_int_equal(tb_loop_watch(&t.loop, &t.watches[0], file, EPOLLIN, on_ready), TB_ERR_UNSUPPORTED);
    tb_loop_unwatch(&t.loop, &t.watches[0]);
    close(file);
    for (int i = 0; i < 4; i++)
        close(out[i / 2][i % 2]);
    tb_loop_close(&t.loop);
}

struct nap {
    struct tb_loop loop;
    struct tb_timer timer;
};

static void nap_over(struct tb_timer *timer)
{
    TB_CONTAINER(timer, struct nap, timer)->loop.stop = true;
}

/* Not rounded up to a millisecond, where the kernel can do better; never too early. */
static void short_timers_are_short(void **state)
{
    struct nap nap;
    struct epoll_event event;
    const int64_t limit[2] = {0, 1000};
    uint64_t shortest = TB_NEVER;
    assert_int_equal(tb_loop_open(&nap.loop, &tb_clock_real), TB_OK);
    tb_timer_init(&nap.timer, nap_over);
    for (int i = 0; i < 50; i++) {
        uint64_t before = tb_loop_now(&nap.loop);
        tb_timer_set(&nap.loop, &nap.timer, 100000);
        nap.loop.stop = false;
        assert_int_equal(tb_loop_run(&nap.loop), TB_OK);
        uint64_t took = tb_loop_now(&nap.loop) - before;
        assert_true(took >= 100000);
        shortest = took < shortest ? took : shortest;
    }
    if (syscall(SYS_epoll_pwait2, nap.loop.epoll, &event, 1, limit, NULL, 0) == 0)
        assert_true(shortest < 900000);
    tb_loop_close(&nap.loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shells_are_called_as_users_expect),
        cmocka_unit_test(programs_are_found),
        cmocka_unit_test(children_get_what_they_should),
        cmocka_unit_test(failures_to_start_are_told),
        cmocka_unit_test(loops_wait_for_all),
        cmocka_unit_test(short_timers_are_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
