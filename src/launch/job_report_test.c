/* What the user is told: once, and whole lines. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <cmocka.h>

#include "launch/job_report.h"

static void nothing_written(void *context, uint32_t host, uint32_t bytes) {}

static void never_fails(void *context, int code, const char *story)
{
    fail_msg("%s", story);
}

static const char *name_of(void *context, uint32_t host)
{
    return host == 0 ? "a" : "b";
}

static void succeeded(void *context) {}

/* What a report that is opened with these options writes to standard output or error (1, 2) while `use` uses it. */
static void written(int number, const struct tb_output_options *output, void (*use)(struct tb_job_report *), char *text,
                    size_t size)
{
    struct tb_loop loop;
    struct tb_job_report report;
    int ends[2], kept = dup(number);
    const struct tb_screen_events screen = {.written = nothing_written, .failed = never_fails, .host_name = name_of};
    assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    dup2(ends[1], number);
    assert_int_equal(tb_loop_open(&loop, &tb_clock_real), TB_OK);
    tb_job_report_open(&report, &loop, "mpiexec", output,
                       &(struct tb_job_report_events){.screen = screen, .succeeded = succeeded});
    assert_int_equal(tb_job_report_expect(&report, 12), TB_OK);
    use(&report);
    dup2(kept, number);
    close(kept);
    close(ends[1]);
    ssize_t n = read(ends[0], text, size - 1);
    text[n > 0 ? n : 0] = 0;
    close(ends[0]);
    for (int i = 0; i < 2; i++)
        free(report.screens[i].mid_lines); /* otherwise they go with the process */
    tb_loop_close(&loop);
}

static void say_twice(struct tb_job_report *report)
{
    tb_job_report_say(report, "host %s has no such directory", "a");
    tb_job_report_say(report, "host %s has no such directory", "b");
    for (int i = 0; i < 3; i++)
        tb_job_report_say(report, "host %s has no such directory", "a");
}

static void nothing_is_said_twice(void **state)
{
    char text[1024];
    written(2, &(struct tb_output_options){0}, say_twice, text, sizeof text);
    assert_string_equal(text, "mpiexec: host a has no such directory\nmpiexec: host b has no such directory\n");
}

static void answer_at_length(struct tb_job_report *report)
{
    char text[20000];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = 0;
    tb_job_report_answer(report, text);
}

/* A map of many hosts, for example. */
static void long_answers_are_whole(void **state)
{
    char text[30000];
    written(2, &(struct tb_output_options){0}, answer_at_length, text, sizeof text);
    assert_int_equal(strlen(text), strlen("mpiexec: \n") + 19999);
    assert_int_equal(text[strlen(text) - 1], '\n');
}

static void say_orders(struct tb_job_report *report)
{
    tb_job_report_say(report, "rank 1 says: %s", "\x1b[2Jbye");
    tb_job_report_answer(report, "\rmpiexec");
    tb_verdict_add(&report->verdict, TB_VERDICT_CAUSE, 1, "\x1b]0;owned\a");
    tb_job_report_add(report, 2, 3, 0, "\x1b[31mred\n", 9); /* a rank's own output is its own */
    tb_job_report_finish(report, false);
}

/* What others say cannot give the terminal orders when we quote it. */
static void terminals_get_no_orders(void **state)
{
    char text[1024];
    written(2, &(struct tb_output_options){0}, say_orders, text, sizeof text);
    assert_string_equal(text, "mpiexec: rank 1 says: \\x1b[2Jbye\nmpiexec: \\x0dmpiexec\n\x1b[31mred\n"
                              "mpiexec: \\x1b]0;owned\\x07\n");
}

static void print_lines(struct tb_job_report *report)
{
    tb_job_report_add(report, 1, 3, 0, "one\ntw", 6);
    tb_job_report_add(report, 2, 11, 1, "three\n", 6);
    tb_job_report_add(report, 1, 3, 0, "o\n", 2);
}

static void lines_begin_with_what_was_asked_for(void **state)
{
    char text[1024];
    written(1, &(struct tb_output_options){.tags = true}, print_lines, text, sizeof text);
    assert_string_equal(text, "[3] one\n[3] two\n");
    written(2, &(struct tb_output_options){.tags = true}, print_lines, text, sizeof text);
    assert_string_equal(text, "[11] three\n");
    written(1, &(struct tb_output_options){.pattern = "%h.%0.%r.%p.%g.%%.%x>", .merged = true}, print_lines, text,
            sizeof text);
    assert_string_equal(text, "a.03.3.0.0.%.%x>one\na.03.3.0.0.%.%x>twb.11.11.1.0.%.%x>three\no\n");
}

static void count_failure(void *context, int code, const char *story)
{
    assert_non_null(strstr(story, "more output than they may"));
    ++*(int *)context;
}

static void expect_gone(void *context, int code, const char *story) {}

/* An agent that does not keep to its window, and nobody reads: the launcher does not grow for ever. */
static void output_that_nobody_reads_is_bounded(void **state)
{
    struct tb_loop loop;
    struct tb_screen screen;
    int ends[2], failures = 0, pieces = 0;
    const size_t length = 1u << 20;
    char *bytes = calloc(1, length);
    assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    assert_int_equal(tb_loop_open(&loop, &tb_clock_real), TB_OK);
    tb_screen_open(
        &screen, &loop, ends[1], &(struct tb_screen_style){0},
        &(struct tb_screen_events){
            .context = &failures, .written = nothing_written, .failed = count_failure, .host_name = name_of});
    assert_int_equal(tb_screen_expect(&screen, 1), TB_OK);
    for (; failures == 0 && pieces < 1000; pieces++)
        tb_screen_add(&screen, 0, 0, bytes, length);
    assert_in_range(pieces, 17, 100);
    size_t queued = screen.queued;
    tb_screen_text(&screen, bytes, length);
    assert_int_equal(screen.queued, queued);
    signal(SIGPIPE, SIG_IGN);
    screen.events.failed = expect_gone;
    close(ends[0]); /* what waits is dropped */
    screen.watch.ready(&screen.watch, EPOLLERR);
    assert_int_equal(screen.queued, 0);
    close(ends[1]);
    free(screen.mid_lines);
    free(bytes);
    tb_loop_close(&loop);
}

static void count_lost(void *context, int code, const char *story)
{
    assert_int_equal(code, 1);
    assert_non_null(strstr(story, "No space left"));
    ++*(int *)context;
}

/* What a rank writes to standard error is lost on a full disk: that is told once. What we say ourselves is not meant.
 */
static void lost_errors_of_ranks_count(void **state)
{
    struct tb_loop loop;
    struct tb_screen screen;
    int lost = 0, kept = dup(2), full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    assert_true(full >= 0);
    assert_int_equal(tb_loop_open(&loop, &tb_clock_real), TB_OK);
    dup2(full, 2);
    tb_screen_open(&screen, &loop, 2, &(struct tb_screen_style){0},
                   &(struct tb_screen_events){
                       .context = &lost, .written = nothing_written, .failed = count_lost, .host_name = name_of});
    assert_int_equal(tb_screen_expect(&screen, 1), TB_OK);
    tb_screen_text(&screen, "a remark\n", 9);
    int after_remark = lost;
    tb_screen_add(&screen, 0, 0, "x\n", 2);
    tb_screen_add(&screen, 0, 0, "y\n", 2);
    dup2(kept, 2);
    close(kept);
    close(full);
    assert_int_equal(after_remark, 0);
    assert_int_equal(lost, 1);
    assert_int_equal(screen.queued, 0);
    if (screen.descriptor != 2)
        close(screen.descriptor);
    free(screen.mid_lines);
    tb_loop_close(&loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_said_twice),      cmocka_unit_test(long_answers_are_whole),
        cmocka_unit_test(terminals_get_no_orders),    cmocka_unit_test(output_that_nobody_reads_is_bounded),
        cmocka_unit_test(lost_errors_of_ranks_count), cmocka_unit_test(lines_begin_with_what_was_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
