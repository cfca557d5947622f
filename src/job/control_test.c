#include "job/job.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static void open_pipes(struct tb_pipe *a, struct tb_pipe *b)
{
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    tb_pipe_open(a, ends[0], ends[0]);
    tb_pipe_open(b, ends[1], ends[1]);
}

static int take(struct tb_pipe *pipe, struct tb_frame *frame)
{
    int rc = tb_pipe_next(pipe, frame);
    if (rc != TB_AGAIN)
        return rc;
    rc = tb_pipe_fill(pipe);
    return rc == TB_OK ? tb_pipe_next(pipe, frame) : rc;
}

static void frames_come_in_order_behind_the_noise(void **state)
{
    struct tb_pipe agent, launcher;
    struct tb_frame frame;
    char version[80];
    open_pipes(&agent, &launcher);
    static const char noise[] = "Welcome to venus!\ntombolo is a bar of sand\n" TB_AGENT_PREAMBLE "9.9 wire 1\n";
    assert_int_equal(write(agent.out, noise, 30), 30);
    assert_int_equal(tb_pipe_fill(&launcher), TB_OK);
    assert_int_equal(tb_pipe_preamble(&launcher, version, sizeof version), TB_AGAIN);
    assert_int_equal(write(agent.out, noise + 30, sizeof noise - 31), sizeof noise - 31);
    assert_int_equal(tb_pipe_fill(&launcher), TB_OK);
    assert_int_equal(tb_pipe_preamble(&launcher, version, sizeof version), TB_OK);
    assert_non_null(strstr(version, "9.9"));
    for (uint32_t i = 0; i < 100; i++) {
        struct tb_writer *w = tb_pipe_begin(&agent, TB_CONTROL_OUTPUT);
        tb_put_u32(w, i);
        assert_int_equal(tb_pipe_end(&agent), TB_OK);
    }
    assert_int_equal(tb_pipe_flush(&agent), TB_OK);
    for (uint32_t i = 0; i < 100; i++) {
        assert_int_equal(take(&launcher, &frame), TB_OK);
        assert_int_equal(frame.kind, TB_CONTROL_OUTPUT);
        assert_int_equal(tb_get_u32(&frame.fields), i);
        assert_int_equal(tb_reader_end(&frame.fields), TB_OK);
    }
    assert_int_equal(take(&launcher, &frame), TB_AGAIN);
    tb_pipe_close(&agent);
    assert_int_equal(take(&launcher, &frame), TB_ERR_CLOSED);
    tb_pipe_close(&launcher);
}

static void endless_noise_is_refused(void **state)
{
    struct tb_pipe agent, launcher;
    char noise[4096], version[80];
    int rc = TB_AGAIN;
    open_pipes(&agent, &launcher);
    memset(noise, 'x', sizeof noise);
    for (int i = 0; i < 100 && rc == TB_AGAIN; i++) {
        assert_int_equal(write(agent.out, noise, sizeof noise), sizeof noise);
        assert_int_equal(tb_pipe_fill(&launcher), TB_OK);
        rc = tb_pipe_preamble(&launcher, version, sizeof version);
    }
    assert_int_equal(rc, TB_ERR_PROTOCOL);
    tb_pipe_close(&agent);
    tb_pipe_close(&launcher);
}

static void nonsense_is_no_frame(void **state)
{
    struct tb_pipe agent, launcher;
    struct tb_frame frame;
    open_pipes(&agent, &launcher);
    uint8_t bytes[64];
    memset(bytes, 0xee, sizeof bytes);
    assert_int_equal(write(agent.out, bytes, sizeof bytes), sizeof bytes);
    assert_int_equal(take(&launcher, &frame), TB_ERR_PROTOCOL);
    tb_pipe_close(&agent);
    tb_pipe_close(&launcher);
}

static void setup_survives_and_cut_ones_are_refused(void **state)
{
    char *arguments[] = {"prog", "with space", NULL}, *variables[] = {"A=b", NULL};
    struct tb_app app = {.first_rank = 0,
                         .ranks = 4,
                         .argument_count = 2,
                         .arguments = arguments,
                         .variable_count = 1,
                         .variables = variables,
                         .directory = ""};
    struct tb_setup setup = {.version = "1.2",
                             .job = 7,
                             .host = 1,
                             .host_count = 2,
                             .window = 1000,
                             .hold = 5,
                             .parameters = "spin=1us\n",
                             .own_parameters = "",
                             .directory = "/",
                             .app_count = 1,
                             .apps = &app};
    struct tb_setup copy;
    struct tb_writer w;
    struct tb_reader r;
    memset(setup.key.bytes, 3, sizeof setup.key.bytes);
    tb_writer_open(&w);
    assert_int_equal(tb_setup_encode(&setup, &w), TB_OK);
    tb_reader_open(&r, w.bytes, w.length);
    assert_int_equal(tb_setup_decode(&copy, &r), TB_OK);
    assert_int_equal(copy.apps[0].ranks, 4);
    assert_string_equal(copy.apps[0].arguments[1], "with space");
    assert_null(copy.apps[0].arguments[2]);
    assert_memory_equal(copy.key.bytes, setup.key.bytes, TB_KEY_BYTES);
    tb_setup_close(&copy);
    for (size_t length = 0; length < w.length; length++) {
        tb_reader_open(&r, w.bytes, length);
        assert_int_not_equal(tb_setup_decode(&copy, &r), TB_OK);
    }
    tb_writer_close(&w);
}

static void packets_carry_descriptors(void **state)
{
    int ends[2], tube[2];
    struct tb_packet *packet = malloc(sizeof *packet);
    struct tb_writer w;
    assert_non_null(packet);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    assert_int_equal(pipe2(tube, O_CLOEXEC), 0);
    assert_int_equal(tb_packet_receive(ends[1], packet, false), TB_AGAIN);
    tb_writer_open(&w);
    tb_put_u32(&w, 42);
    assert_int_equal(tb_packet_send(ends[0], TB_CONTROL_CONNECTION, &w, &tube[1], 1), TB_OK);
    assert_int_equal(tb_packet_receive(ends[1], packet, false), TB_OK);
    assert_int_equal(packet->frame.kind, TB_CONTROL_CONNECTION);
    assert_int_equal(tb_get_u32(&packet->frame.fields), 42);
    assert_int_equal(packet->descriptor_count, 1);
    assert_true(fcntl(packet->descriptors[0], F_GETFD) & FD_CLOEXEC);
    assert_int_equal(write(packet->descriptors[0], "!", 1), 1);
    char byte = 0;
    assert_int_equal(read(tube[0], &byte, 1), 1);
    assert_int_equal(byte, '!');
    int handed = packet->descriptors[0];
    tb_packet_discard(packet);
    assert_int_equal(fcntl(handed, F_GETFD), -1);
    close(ends[0]);
    assert_int_equal(tb_packet_receive(ends[1], packet, false), TB_ERR_CLOSED);
    close(ends[1]);
    close(tube[0]);
    close(tube[1]);
    tb_writer_close(&w);
    free(packet);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_come_in_order_behind_the_noise),
        cmocka_unit_test(endless_noise_is_refused),
        cmocka_unit_test(nonsense_is_no_frame),
        cmocka_unit_test(setup_survives_and_cut_ones_are_refused),
        cmocka_unit_test(packets_carry_descriptors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
