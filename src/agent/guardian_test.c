/* Real processes: an agent that ends in every way below its guardian, and what it leaves; descendants of every kind. */
#include "agent/descendants.h"
#include "agent/guardian.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_MS 10000

static void nap(void)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    nanosleep(&pause, NULL);
}

/* A process that sleeps in a session of its own, below one that has ended. Its number is written to `to`. */
static void start_stray(int to)
{
    int ready[2];
    char word;
    assert_int_equal(pipe(ready), 0);
    pid_t between = fork();
    if (between == 0) {
        pid_t stray = fork();
        if (stray == 0) {
            setsid();
            close(0); /* the stream of an agent is not for those below it */
            close(ready[0]);
            close(ready[1]);
            for (;;)
                pause();
        }
        close(ready[1]);
        bool good = read(ready[0], &word, 1) == 0 && write(to, &stray, sizeof stray) == (ssize_t)sizeof stray;
        _exit(good ? 0 : 1);
    }
    close(ready[0]);
    close(ready[1]);
    waitpid(between, NULL, 0);
}

static pid_t read_number(int from)
{
    pid_t number = 0;
    assert_int_equal(read(from, &number, sizeof number), sizeof number);
    return number;
}

/* Orphans come to us: we collect those that have ended. */
static bool is_gone(pid_t pid)
{
    waitpid(pid, NULL, WNOHANG);
    return kill(pid, 0) < 0 && errno == ESRCH;
}

static bool goes(pid_t pid)
{
    for (int i = 0; i < PATIENCE_MS && !is_gone(pid); i++)
        nap();
    return is_gone(pid);
}

/* ---- descendants ------------------------------------------------------------------------------------------------- */

static bool is_this(void *context, pid_t group)
{
    return group == *(pid_t *)context;
}

static void test_descendants(void **state)
{
    int numbers[2];
    pid_t strays[3];
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    assert_int_equal(pipe(numbers), 0);
    assert_false(tb_descendants_left());
    for (int i = 0; i < 3; i++) {
        start_stray(numbers[1]);
        strays[i] = read_number(numbers[0]);
    }
    assert_true(tb_descendants_left());
    assert_int_equal(tb_descendants_signal(0, NULL, NULL), 3);
    assert_int_equal(tb_descendants_signal(SIGKILL, is_this, &strays[1]), 2);
    assert_true(goes(strays[0]) && goes(strays[2]));
    assert_false(is_gone(strays[1]));
    tb_descendants_end(10000000000u);
    assert_true(is_gone(strays[1]));
    assert_false(tb_descendants_left());
    close(numbers[0]);
    close(numbers[1]);
}

/* What leads to an agent, and what is below it, is left alone. */
static void test_shells_are_spared(void **state)
{
    int stream[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, stream), 0);
    pid_t shell = fork();
    if (shell == 0) {
        dup2(stream[1], 1);
        execle("/bin/sh", "sh", "-c", "sleep 1234 & echo $!; wait", (char *)NULL,
               (char *const[]){(char *)"PATH=/bin:/usr/bin", (char *)TB_SHELL_MARK, NULL});
        _exit(127);
    }
    char text[16] = "";
    assert_true(read(stream[0], text, sizeof text - 1) > 0);
    assert_false(tb_descendants_left());
    tb_descendants_end(10000000000u);
    assert_false(is_gone(shell));
    kill(shell, SIGKILL);
    kill(atoi(text), SIGKILL);
    assert_true(goes(shell) && goes(atoi(text)));
    close(stream[0]);
    close(stream[1]);
}

/* ---- guardian ---------------------------------------------------------------------------------------------------- */

struct world {
    pid_t guardian, agent, stray;
    int launcher; /* our end of its standard input */
    int status;
};

/* The life of an agent in these tests: it leaves a stray and ends as asked. */
static void live(struct tb_guardian *guardian, int numbers, int end_signal, bool orderly)
{
    pid_t self = getpid();
    if (write(numbers, &self, sizeof self) != (ssize_t)sizeof self)
        _exit(1);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    start_stray(numbers);
    char word;
    ssize_t n = end_signal == 0 ? recv(guardian->stream, &word, 1, 0) : 1;
    if (n == 0) { /* the guardian is gone */
        close(guardian->stream);
        guardian->stream = -1;
    }
    if (end_signal > 0)
        raise(end_signal);
    tb_guardian_leave(guardian, orderly);
    _exit(3);
}

static void start(struct world *w, int end_signal, bool orderly)
{
    char title[] = "agent";
    int numbers[2], input[2];
    assert_int_equal(pipe(numbers), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, input), 0);
    w->guardian = fork();
    if (w->guardian == 0) {
        struct tb_guardian guardian;
        dup2(input[1], 0);
        close(input[0]);
        close(input[1]);
        tb_guardian_start(&guardian, title);
        live(&guardian, numbers[1], end_signal, orderly);
    }
    close(input[1]);
    close(numbers[1]);
    w->launcher = input[0];
    w->agent = read_number(numbers[0]);
    w->stray = read_number(numbers[0]);
    close(numbers[0]);
    assert_int_not_equal(w->agent, w->guardian);
}

static void finish(struct world *w)
{
    assert_int_equal(waitpid(w->guardian, &w->status, 0), w->guardian);
    assert_true(goes(w->agent));
    close(w->launcher);
}

static void test_an_agent_that_is_killed(void **state)
{
    struct world w;
    start(&w, SIGKILL, false);
    finish(&w);
    assert_true(WIFSIGNALED(w.status) && WTERMSIG(w.status) == SIGKILL);
    assert_true(is_gone(w.stray));
}

static void test_an_agent_that_crashes(void **state)
{
    struct world w;
    start(&w, SIGABRT, false);
    finish(&w);
    assert_true(WIFSIGNALED(w.status) && WTERMSIG(w.status) == SIGABRT && !WCOREDUMP(w.status));
    assert_true(is_gone(w.stray));
}

static void test_an_agent_that_is_stopped_is_ended_by_a_signal(void **state)
{
    struct world w;
    start(&w, 0, false);
    kill(w.agent, SIGSTOP);
    kill(w.guardian, SIGTERM);
    kill(w.guardian, SIGINT); /* the second is not waited for */
    finish(&w);
    assert_true(WIFSIGNALED(w.status));
    assert_true(is_gone(w.stray));
}

static void test_a_guardian_that_is_killed(void **state)
{
    struct world w;
    start(&w, 0, false);
    kill(w.agent, SIGSTOP); /* it notices nevertheless */
    kill(w.guardian, SIGKILL);
    finish(&w);
    assert_true(is_gone(w.stray));
}

/* The launcher hears of the end of an agent whatever the guardian does, and that one makes up for it later. */
static void test_a_guardian_that_is_stopped(void **state)
{
    struct world w;
    char word;
    start(&w, 0, false);
    kill(w.guardian, SIGSTOP);
    assert_int_equal(waitpid(w.guardian, NULL, WUNTRACED), w.guardian);
    kill(w.agent, SIGKILL);
    struct pollfd end = {.fd = w.launcher, .events = POLLIN};
    assert_int_equal(poll(&end, 1, PATIENCE_MS), 1);
    assert_int_equal(recv(w.launcher, &word, 1, MSG_DONTWAIT), 0);
    assert_false(is_gone(w.stray));
    kill(w.guardian, SIGCONT);
    finish(&w);
    assert_true(WIFSIGNALED(w.status) && WTERMSIG(w.status) == SIGKILL);
    assert_true(is_gone(w.stray));
}

static void test_what_may_go_on(void **state)
{
    struct world w;
    start(&w, -1, true);
    finish(&w);
    assert_true(WIFEXITED(w.status) && WEXITSTATUS(w.status) == 3);
    assert_false(is_gone(w.stray));
    kill(w.stray, SIGKILL);
    assert_true(goes(w.stray));
}

int main(void)
{
    const struct CMUnitTest all[] = {
        cmocka_unit_test(test_descendants),
        cmocka_unit_test(test_shells_are_spared),
        cmocka_unit_test(test_an_agent_that_is_killed),
        cmocka_unit_test(test_an_agent_that_crashes),
        cmocka_unit_test(test_an_agent_that_is_stopped_is_ended_by_a_signal),
        cmocka_unit_test(test_a_guardian_that_is_killed),
        cmocka_unit_test(test_a_guardian_that_is_stopped),
        cmocka_unit_test(test_what_may_go_on),
    };
    return cmocka_run_group_tests(all, NULL, NULL);
}
