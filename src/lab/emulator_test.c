/* The parts of the emulator that need no interface, and its control socket. What it does to frames is shown in the lab
 * (tests/lab/links). */
#include "lab/emulator_state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

/* ---- frames under way -------------------------------------------------------------------------------------------- */

static void push(struct tb_frames *frames, uint64_t due, uint32_t port, uint32_t pipe)
{
    struct tb_frame *frame = tb_frames_take(frames);
    assert_non_null(frame);
    frame->due = due;
    frame->port = port;
    frame->pipe = pipe;
    frame->length = (uint32_t)frames->number;
    assert_int_equal(tb_frames_push(frames, frame), 0);
}

static void frames_come_out_by_moment_then_in_order(void **state)
{
    struct tb_frames frames;
    struct tb_random random;
    tb_frames_open(&frames);
    tb_random_seed(&random, 3);
    assert_null(tb_frames_first(&frames));
    for (int i = 0; i < 5000; i++)
        push(&frames, tb_random_below(&random, 500), 0, 0);
    uint64_t due = 0, number = 0;
    for (int i = 0; i < 5000; i++) {
        struct tb_frame *frame = tb_frames_pop(&frames);
        assert_true(frame->due > due || (frame->due == due && (i == 0 || frame->number > number)));
        due = frame->due;
        number = frame->number;
        tb_frames_give(&frames, frame);
    }
    assert_null(tb_frames_first(&frames));
    tb_frames_close(&frames);
}

static void frames_of_a_port_or_pipe_are_forgotten(void **state)
{
    struct tb_frames frames;
    tb_frames_open(&frames);
    for (uint32_t i = 0; i < 3000; i++)
        push(&frames, 3000 - i, i % 3, i % 5);
    tb_frames_forget(&frames, 1, TB_FRAMES_ALL);
    assert_int_equal(frames.count, 2000);
    tb_frames_forget(&frames, TB_FRAMES_ALL, 2);
    assert_int_equal(frames.count, 1600);
    uint64_t due = 0;
    while (tb_frames_first(&frames)) {
        struct tb_frame *frame = tb_frames_pop(&frames);
        assert_true(frame->due > due && frame->port != 1 && frame->pipe != 2);
        due = frame->due;
        tb_frames_give(&frames, frame);
    }
    assert_int_equal(frames.pool.used, 0);
    tb_frames_close(&frames);
}

/* ---- hosts ------------------------------------------------------------------------------------------------------- */

static const uint8_t *address(uint32_t n)
{
    static uint8_t bytes[6];
    bytes[0] = 2;
    bytes[2] = (uint8_t)(n >> 24);
    bytes[3] = (uint8_t)(n >> 16);
    bytes[4] = (uint8_t)(n >> 8);
    bytes[5] = (uint8_t)n;
    return bytes;
}

static void hosts_are_found_where_they_were_seen(void **state)
{
    struct tb_hosts *hosts = calloc(1, sizeof *hosts);
    assert_non_null(hosts);
    for (uint32_t i = 0; i < TB_HOSTS_LIMIT + 100; i++)
        tb_hosts_learn(hosts, 1, address(i), i % 7, false);
    assert_int_equal(hosts->count, TB_HOSTS_LIMIT);
    for (uint32_t i = 0; i < TB_HOSTS_LIMIT; i++)
        assert_int_equal(tb_hosts_find(hosts, 1, address(i)), i % 7);
    assert_int_equal(tb_hosts_find(hosts, 1, address(TB_HOSTS_LIMIT + 1)), TB_HOSTS_NONE);
    assert_int_equal(tb_hosts_find(hosts, 2, address(1)), TB_HOSTS_NONE);
    tb_hosts_forget(hosts, 3);
    for (uint32_t i = 0; i < TB_HOSTS_LIMIT; i++)
        assert_int_equal(tb_hosts_find(hosts, 1, address(i)), i % 7 == 3 ? TB_HOSTS_NONE : i % 7);
    free(hosts);
}

static void hosts_move_unless_they_are_told(void **state)
{
    struct tb_hosts *hosts = calloc(1, sizeof *hosts);
    assert_non_null(hosts);
    tb_hosts_learn(hosts, 1, address(1), 4, false);
    tb_hosts_learn(hosts, 1, address(1), 5, false);
    assert_int_equal(tb_hosts_find(hosts, 1, address(1)), 5);
    tb_hosts_learn(hosts, 1, address(1), 6, true);
    tb_hosts_learn(hosts, 1, address(1), 7, false);
    assert_int_equal(tb_hosts_find(hosts, 1, address(1)), 6);
    free(hosts);
}

/* ---- lateness ---------------------------------------------------------------------------------------------------- */

static void lateness_has_quantiles(void **state)
{
    static struct tb_lateness late;
    assert_int_equal(tb_lateness_quantile(&late, 990), 0);
    for (uint64_t i = 1; i <= 1000; i++)
        tb_lateness_note(&late, i * 1000 - 1);
    assert_int_equal(tb_lateness_quantile(&late, 500), 500000);
    assert_int_equal(tb_lateness_quantile(&late, 990), 990000);
    assert_int_equal(late.over, 700);
    tb_lateness_note(&late, 77000000);
    assert_int_equal(late.max, 77000000);
    assert_int_equal(tb_lateness_quantile(&late, 1000), 77000000);
}

/* ---- from pipe to pipe ------------------------------------------------------------------------------------------- */

/* An emulator without interfaces: what comes out of its one port is read from a socket. */
struct bench {
    struct tb_emulator *e;
    struct tb_emulator_port port;
    int out;
};

static void bench_open(struct bench *bench, const char *const *names, uint32_t count)
{
    int pair[2];
    *bench = (struct bench){.e = calloc(1, sizeof(struct tb_emulator))};
    assert_non_null(bench->e);
    tb_frames_open(&bench->e->frames);
    assert_int_equal(tb_emulator_pipe_make(bench->e, ""), 0);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(tb_emulator_pipe_make(bench->e, names[i]), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair), 0);
    bench->port.socket = pair[0];
    bench->out = pair[1];
    bench->e->ports[0] = &bench->port;
    bench->e->port_count = 1;
}

static void bench_close(struct bench *bench)
{
    tb_frames_close(&bench->e->frames);
    for (uint32_t i = 0; i < bench->e->pipe_count; i++)
        free(bench->e->pipes[i]);
    free(bench->e);
    close(bench->port.socket);
    close(bench->out);
}

/* A frame that has passed the first pipe of its way and comes out of it at this moment. */
static void bench_add(struct bench *bench, uint8_t mark, uint64_t due, struct tb_frame_way way)
{
    struct tb_frame *frame = tb_frames_take(&bench->e->frames);
    assert_non_null(frame);
    memset(frame->bytes, 0, 64);
    frame->bytes[20] = mark;
    frame->length = 60; /* 84 on the wire */
    frame->due = due;
    frame->port = 0;
    frame->way = way;
    frame->stage = 0;
    frame->pipe = way.pipes[0];
    frame->visit = ++bench->e->visit;
    memset(&frame->offload, 0, sizeof frame->offload);
    assert_int_equal(tb_frames_push(&bench->e->frames, frame), 0);
}

static uint8_t bench_take(struct bench *bench)
{
    uint8_t bytes[2048];
    ssize_t n = recv(bench->out, bytes, sizeof bytes, MSG_DONTWAIT);
    return n < 0 ? 0 : bytes[sizeof(struct virtio_net_hdr) + 20];
}

/* Those of several sources that share a pipe enter it by the moments at which they come out of their own, not as they
 * are found, and wait there for one another. */
static void sources_share_a_pipe_in_the_order_of_time(void **state)
{
    static const char *const names[] = {"a.up", "b.up", "c.down"};
    struct bench bench;
    bench_open(&bench, names, 3);
    struct tb_emulator *e = bench.e;
    tb_pipe_set(&e->pipes[3]->pipe, &(struct tb_grid_wire){.bandwidth = 84 * 8 * 1000}); /* 1 ms a frame */
    uint64_t begin = tb_clock_now_real() - 1000000000u;
    bench_add(&bench, 1, begin + 300, (struct tb_frame_way){.count = 2, .pipes = {1, 3}});
    bench_add(&bench, 2, begin + 100, (struct tb_frame_way){.count = 2, .pipes = {2, 3}});
    bench_add(&bench, 3, begin + 200, (struct tb_frame_way){.count = 2, .pipes = {1, 3}});
    bench_add(&bench, 4, begin + 400, (struct tb_frame_way){.count = 1, .pipes = {1}});
    tb_emulator_port_send(e);
    const uint8_t expected[] = {4, 2, 3, 1};
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(bench_take(&bench), expected[i]);
    assert_int_equal(e->pipes[3]->pipe.counts.frames, 3);
    assert_int_equal(e->pipes[3]->pipe.free, begin + 100 + 3000000);
    bench_close(&bench);
}

/* The third pipe is full, the second is cut: what is in it is gone, what comes to it too. */
static void each_pipe_of_a_way_decides(void **state)
{
    static const char *const names[] = {"a.up", "link", "b.down"};
    struct bench bench;
    bench_open(&bench, names, 3);
    struct tb_emulator *e = bench.e;
    tb_pipe_set(&e->pipes[3]->pipe, &(struct tb_grid_wire){.bandwidth = 84 * 8 * 1000, .queue = 2 * 84});
    uint64_t begin = tb_clock_now_real() - 1000000000u;
    for (uint8_t i = 1; i <= 5; i++)
        bench_add(&bench, i, begin + i, (struct tb_frame_way){.count = 3, .pipes = {1, 2, 3}});
    tb_emulator_port_send(e);
    assert_int_equal(bench_take(&bench), 1);
    assert_int_equal(bench_take(&bench), 2);
    assert_int_equal(bench_take(&bench), 0);
    assert_int_equal(e->pipes[2]->pipe.counts.frames, 5);
    assert_int_equal(e->pipes[3]->pipe.counts.full, 3);
    e->pipes[2]->pipe.is_cut = true;
    bench_add(&bench, 9, begin, (struct tb_frame_way){.count = 3, .pipes = {1, 2, 3}});
    tb_emulator_port_send(e);
    assert_int_equal(bench_take(&bench), 0);
    assert_int_equal(e->pipes[2]->pipe.counts.cut, 1);
    assert_int_equal(e->frames.count, 0);
    bench_close(&bench);
}

/* ---- control ----------------------------------------------------------------------------------------------------- */

static void *run(void *argument)
{
    int rc = tb_emulator_run(*(int *)argument, 1);
    return (void *)(intptr_t)rc;
}

static const char *ask(int socket, const char *message)
{
    static char answer[TB_EMULATOR_MESSAGE_BYTES + 1];
    assert_int_equal(send(socket, message, strlen(message), 0), (ssize_t)strlen(message));
    ssize_t length = recv(socket, answer, sizeof answer - 1, 0);
    assert_true(length > 0);
    answer[length] = '\0';
    return answer;
}

static void control_answers_each_message(void **state)
{
    int pair[2];
    pthread_t thread;
    void *result;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    assert_int_equal(pthread_create(&thread, NULL, run, &pair[1]), 0);
    assert_string_equal(ask(pair[0], "pipe a-b"), "ok");
    assert_string_equal(ask(pair[0], "pipe a-b"), "error there is a pipe a-b already");
    assert_string_equal(ask(pair[0], "set a-b bandwidth=1000000 latency=75000000 jitter=10 loss=5 reorder=6"), "ok");
    assert_string_equal(ask(pair[0], "cut a-b"), "ok");
    assert_non_null(strstr(ask(pair[0], "report"), "pipe a-b frames=0 bytes=0 lost=0 full=0 cut=0 state=cut "
                                                   "bandwidth=1000000 latency=75000000 jitter=10 loss=5 reorder=6 "
                                                   "queue=65536\n"));
    assert_string_equal(ask(pair[0], "set a-b queue=3000"), "ok");
    assert_non_null(strstr(ask(pair[0], "report"), " reorder=6 queue=3000\n"));
    assert_non_null(
        strstr(ask(pair[0], "heal a-b\nreset\nreport"), "ok\nlate count=0 p50=0 p99=0 max=0 over=0\ncpu used="));
    assert_string_equal(ask(pair[0], "pipe b\nnonsense\npipe c"), "error there is no command \"nonsense\"");
    assert_string_equal(ask(pair[0], "pipe b"), "error there is a pipe b already");
    assert_string_equal(ask(pair[0], "pipe c\nhalf b c"), "ok");
    const char *wrong[] = {"set a-b latency=-5",
                           "set a-b latency=",
                           "set a-b speed=5",
                           "set a-b loss=1000001",
                           "set a-b latency=5ms",
                           "set a-b",
                           "set nowhere latency=5",
                           "cut",
                           "route x y a-b",
                           "half b",
                           "half b b",
                           "half b nowhere",
                           "set a-b queue=k",
                           "drop x",
                           "port no-such-thing s",
                           "port lo s trunk 02:00",
                           "port lo s 02:00:00:00:00:01:02",
                           "port a-name-that-is-too-long s"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        if (strncmp(ask(pair[0], wrong[i]), "error ", 6) != 0)
            fail_msg("\"%s\" was accepted", wrong[i]);
    close(pair[0]);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_ptr_equal(result, NULL);
    close(pair[1]);
}

static void a_report_ends_with_a_whole_line(void **state)
{
    int pair[2];
    pthread_t thread;
    char line[64];
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    assert_int_equal(pthread_create(&thread, NULL, run, &pair[1]), 0);
    for (int i = 1; i < (int)TB_EMULATOR_PIPES; i++) {
        snprintf(line, sizeof line, "pipe p%d", i);
        assert_string_equal(ask(pair[0], line), "ok");
    }
    assert_string_equal(ask(pair[0], "pipe one-more"), "error there are 4096 pipes already");
    const char *answer = ask(pair[0], "report"), *last = strrchr(answer, '\n');
    assert_int_equal(last[1], '\0');
    assert_non_null(strstr(answer, "\nmore "));
    close(pair[0]);
    assert_int_equal(pthread_join(thread, NULL), 0);
    close(pair[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_come_out_by_moment_then_in_order),
        cmocka_unit_test(frames_of_a_port_or_pipe_are_forgotten),
        cmocka_unit_test(hosts_are_found_where_they_were_seen),
        cmocka_unit_test(hosts_move_unless_they_are_told),
        cmocka_unit_test(lateness_has_quantiles),
        cmocka_unit_test(sources_share_a_pipe_in_the_order_of_time),
        cmocka_unit_test(each_pipe_of_a_way_decides),
        cmocka_unit_test(control_answers_each_message),
        cmocka_unit_test(a_report_ends_with_a_whole_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
