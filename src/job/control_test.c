#include "job/job.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- setup ------------------------------------------------------------------------------------------------------- */

static char *words[] = {(char *)"./hello", (char *)"", (char *)"two words", NULL};
static char *variables[] = {(char *)"A=1", (char *)"B=", NULL};
static struct tb_app apps[2] = {{.first_rank = 0,
                                 .ranks = 3,
                                 .argument_count = 3,
                                 .arguments = words,
                                 .variables = variables,
                                 .variable_count = 2,
                                 .directory = (char *)"/x"},
                                {.first_rank = 3,
                                 .ranks = 1,
                                 .argument_count = 1,
                                 .arguments = words + 2,
                                 .variables = variables + 2,
                                 .directory = (char *)""}};
static struct tb_rank_run runs[] = {{4, 2}, {17, 1}};
static struct tb_setup sample = {.version = (char *)TB_VERSION,
                                 .bind_width = 2,
                                 .bind_cpus = (char *)"0+1,2",
                                 .rank_cpus = (char *)"3=1\n",
                                 .run_count = 2,
                                 .runs = runs,
                                 .input_rank = 7,
                                 .job = 5,
                                 .key = {{1, 2, 3}},
                                 .host = 1,
                                 .host_count = 2,
                                 .flags = TB_SETUP_LOCAL,
                                 .bind = TB_BIND_CORE,
                                 .window = 1000,
                                 .hold = 1ull << 40,
                                 .terminal = 24 << 16 | 80,
                                 .parameters = (char *)"log=debug\n",
                                 .own_parameters = (char *)"",
                                 .directory = (char *)"/home",
                                 .app_count = 2,
                                 .apps = apps,
                                 .neighbour_count = 2,
                                 .neighbours = {{.family = 4, .prefix = 24, .bytes = {10, 0, 0, 1}, .port = 7},
                                                {.family = 6, .prefix = 64, .bytes = {0xfd, 1}}}};

static void setup_survives_the_wire(void **state)
{
    struct tb_writer w;
    struct tb_reader r;
    struct tb_setup setup;
    tb_writer_open(&w);
    assert_int_equal(tb_setup_encode(&sample, &w), TB_OK);
    tb_reader_open(&r, w.bytes, w.length);
    assert_int_equal(tb_setup_decode(&setup, &r), TB_OK);
    assert_int_equal(tb_reader_end(&r), TB_OK);
    assert_memory_equal(&setup.key, &sample.key, sizeof setup.key);
    assert_int_equal(setup.bind, TB_BIND_CORE);
    assert_true(tb_setup_binds(&setup));
    assert_int_equal(setup.run_count, 2);
    assert_memory_equal(setup.runs, runs, sizeof runs);
    assert_true(setup.hold == 1ull << 40);
    assert_int_equal(setup.terminal, 24 << 16 | 80);
    assert_int_equal(setup.app_count, 2);
    assert_string_equal(setup.apps[0].arguments[2], "two words");
    assert_null(setup.apps[0].arguments[3]);
    assert_string_equal(setup.apps[0].variables[1], "B=");
    assert_int_equal(setup.apps[1].first_rank, 3);
    assert_int_equal(setup.neighbour_count, 2);
    assert_memory_equal(setup.neighbours, sample.neighbours, sizeof sample.neighbours);
    tb_setup_close(&setup);
    for (size_t length = 0; length < w.length; length++) {
        tb_reader_open(&r, w.bytes, length);
        assert_int_not_equal(tb_setup_decode(&setup, &r), TB_OK);
    }
    tb_writer_close(&w);
}

/* One byte more than this version knows is too many, but another version is told by its name. */
static void longer_setups_are_of_other_versions(void **state)
{
    char *const versions[] = {(char *)TB_VERSION, (char *)"99.0"};
    for (int i = 0; i < 2; i++) {
        struct tb_writer w;
        struct tb_reader r;
        struct tb_setup setup, from = sample;
        from.version = versions[i];
        tb_writer_open(&w);
        assert_int_equal(tb_setup_encode(&from, &w), TB_OK);
        tb_put_u8(&w, 0);
        tb_reader_open(&r, w.bytes, w.length);
        assert_int_equal(tb_setup_decode(&setup, &r), i == 0 ? TB_ERR_PROTOCOL : TB_OK);
        if (i == 1)
            tb_setup_close(&setup);
        tb_writer_close(&w);
    }
}

static void damaged_setup_does_no_harm(void **state)
{
    struct tb_writer w;
    struct tb_random random;
    tb_writer_open(&w);
    assert_int_equal(tb_setup_encode(&sample, &w), TB_OK);
    uint8_t *bytes = malloc(w.length);
    assert_non_null(bytes);
    tb_random_seed(&random, 2);
    for (int i = 0; i < 20000; i++) {
        struct tb_reader r;
        struct tb_setup setup;
        memcpy(bytes, w.bytes, w.length);
        bytes[tb_random_below(&random, w.length)] = (uint8_t)tb_random_next(&random);
        bytes[tb_random_below(&random, w.length)] = (uint8_t)tb_random_next(&random);
        tb_reader_open(&r, bytes, w.length);
        if (tb_setup_decode(&setup, &r) == TB_OK)
            tb_setup_close(&setup);
    }
    free(bytes);
    tb_writer_close(&w);
}

/* ---- pipes ------------------------------------------------------------------------------------------------------- */

static void open_ends(struct tb_control_stream *pipe, int *other)
{
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    tb_control_stream_open(pipe, ends[0], ends[0]);
    *other = ends[1];
}

static void frames_arrive_in_pieces(void **state)
{
    struct tb_control_stream from, to;
    int a, b[2];
    struct tb_control_frame frame;
    open_ends(&from, &a);
    assert_int_equal(pipe2(b, O_NONBLOCK | O_CLOEXEC), 0);
    tb_control_stream_open(&to, b[0], -1);
    for (uint32_t i = 0; i < 5; i++) {
        tb_put_u32(tb_control_stream_begin(&from, TB_CONTROL_SIGNAL), i);
        assert_int_equal(tb_control_stream_end(&from), TB_OK);
    }
    assert_int_equal(tb_control_stream_flush(&from), TB_OK);
    assert_int_equal(tb_control_stream_queued(&from), 0);
    uint32_t got = 0;
    char byte;
    while (read(a, &byte, 1) == 1) {
        assert_int_equal(write(b[1], &byte, 1), 1);
        assert_int_equal(tb_control_stream_fill(&to), TB_OK);
        assert_int_equal(tb_control_stream_fill(&to), TB_AGAIN);
        int rc = tb_control_stream_next(&to, &frame);
        if (rc == TB_AGAIN)
            continue;
        assert_int_equal(rc, TB_OK);
        assert_int_equal(frame.kind, TB_CONTROL_SIGNAL);
        assert_int_equal(tb_get_u32(&frame.fields), got++);
        assert_int_equal(tb_reader_end(&frame.fields), TB_OK);
    }
    assert_int_equal(got, 5);
    close(b[1]);
    assert_int_equal(tb_control_stream_fill(&to), TB_ERR_CLOSED);
    close(a);
    tb_control_stream_close(&from);
    tb_control_stream_close(&to);
}

static void long_frames_wait_for_room(void **state)
{
    struct tb_control_stream from, to;
    int other;
    static char bytes[3000000];
    struct tb_control_frame frame;
    size_t length = 0;
    memset(bytes, 'x', sizeof bytes);
    open_ends(&from, &other);
    tb_control_stream_open(&to, other, other);
    tb_put_bytes(tb_control_stream_begin(&from, TB_CONTROL_INPUT), bytes, sizeof bytes);
    assert_int_equal(tb_control_stream_end(&from), TB_OK);
    assert_int_equal(tb_control_stream_send(&from, TB_CONTROL_PING), TB_OK);
    assert_int_equal(tb_control_stream_flush(&from), TB_AGAIN);
    while (tb_control_stream_next(&to, &frame) == TB_AGAIN) {
        tb_control_stream_fill(&to);
        tb_control_stream_flush(&from);
    }
    assert_non_null(tb_get_bytes(&frame.fields, &length));
    assert_int_equal(length, sizeof bytes);
    while (tb_control_stream_next(&to, &frame) == TB_AGAIN) {
        tb_control_stream_fill(&to);
        tb_control_stream_flush(&from);
    }
    assert_int_equal(frame.kind, TB_CONTROL_PING);
    tb_control_stream_close(&from);
    tb_control_stream_close(&to);
}

static void preamble_is_found_in_noise(void **state)
{
    struct tb_control_stream pipe;
    int other;
    char version[32];
    const char first[] = "Welcome to venus!\nNo mail.\ntombolo ag", second[] = "ent 0.1.0 wi", third[] = "re 1\nXYZ";
    open_ends(&pipe, &other);
    assert_int_equal(write(other, first, sizeof first - 1), sizeof first - 1);
    assert_int_equal(tb_control_stream_fill(&pipe), TB_OK);
    assert_int_equal(tb_control_stream_preamble(&pipe, version, sizeof version), TB_AGAIN);
    assert_int_equal(write(other, second, sizeof second - 1), sizeof second - 1);
    assert_int_equal(tb_control_stream_fill(&pipe), TB_OK);
    assert_int_equal(tb_control_stream_preamble(&pipe, version, sizeof version), TB_AGAIN);
    assert_int_equal(write(other, third, sizeof third - 1), sizeof third - 1);
    assert_int_equal(tb_control_stream_fill(&pipe), TB_OK);
    assert_int_equal(tb_control_stream_preamble(&pipe, version, sizeof version), TB_OK);
    assert_string_equal(version, "0.1.0 wire 1");
    assert_int_equal(pipe.received_end - pipe.received_start, 3);
    close(other);
    tb_control_stream_close(&pipe);
}

static void endless_noise_is_no_preamble(void **state)
{
    struct tb_control_stream pipe;
    int other, rc = TB_AGAIN;
    char version[32], noise[4096];
    memset(noise, 'n', sizeof noise);
    open_ends(&pipe, &other);
    for (int i = 0; i < 100 && rc == TB_AGAIN; i++) {
        assert_int_equal(write(other, noise, sizeof noise), sizeof noise);
        while (tb_control_stream_fill(&pipe) == TB_OK)
            ;
        rc = tb_control_stream_preamble(&pipe, version, sizeof version);
    }
    assert_int_equal(rc, TB_ERR_PROTOCOL);
    close(other);
    tb_control_stream_close(&pipe);
}

static void garbage_is_refused(void **state)
{
    struct tb_random random;
    tb_random_seed(&random, 3);
    for (int i = 0; i < 200; i++) {
        struct tb_control_stream pipe;
        struct tb_control_frame frame;
        int other, rc = TB_OK;
        uint8_t bytes[256];
        for (size_t k = 0; k < sizeof bytes; k++)
            bytes[k] = (uint8_t)tb_random_next(&random);
        bytes[0] = i % 2 == 0 ? TB_WIRE_VERSION : bytes[0];
        open_ends(&pipe, &other);
        assert_int_equal(write(other, bytes, sizeof bytes), sizeof bytes);
        assert_int_equal(tb_control_stream_fill(&pipe), TB_OK);
        for (int k = 0; k < 20 && rc == TB_OK; k++)
            rc = tb_control_stream_next(&pipe, &frame);
        assert_int_not_equal(rc, TB_OK);
        close(other);
        tb_control_stream_close(&pipe);
    }
}

static void carry(struct tb_control_stream *from, struct tb_control_stream *to, size_t most)
{
    size_t length;
    while (tb_control_stream_queued(from) > 0 && most > 0) {
        const void *bytes = tb_control_stream_take(from, most < 7 ? most : 7, &length);
        assert_int_equal(tb_control_stream_feed(to, bytes, length), TB_OK);
        most -= length;
    }
}

static void put_number(struct tb_control_stream *pipe, uint32_t number)
{
    tb_put_u32(tb_control_stream_begin(pipe, TB_CONTROL_WINDOW), number);
    assert_int_equal(tb_control_stream_end(pipe), TB_OK);
}

/* Numbers from *next on, until nothing more is there. */
static void expect_numbers(struct tb_control_stream *pipe, uint32_t *next)
{
    struct tb_control_frame frame;
    int rc;
    while ((rc = tb_control_stream_next(pipe, &frame)) == TB_OK)
        if (frame.kind == TB_CONTROL_WINDOW)
            assert_int_equal(tb_get_u32(&frame.fields), (*next)++);
    assert_int_equal(rc, TB_AGAIN);
}

/* It cannot go on as another one, and what is said of its frames does not matter. */
static void one_that_keeps_nothing(void **state)
{
    struct tb_control_stream a;
    size_t length;
    tb_control_stream_open(&a, -1, -1);
    for (uint32_t i = 0; i < 2000; i++) {
        put_number(&a, i);
        tb_control_stream_take(&a, 17, &length); /* never up to the end of a frame */
    }
    assert_int_equal(tb_control_stream_heard(&a, 3), TB_OK);
    assert_int_equal(tb_control_stream_resume(&a, -1, -1, 3), TB_ERR_PROTOCOL);
    tb_control_stream_close(&a);
}

/* Whatever is lost with a stream is sent again on the next one, once, and nothing is kept that has been heard. */
static void lost_streams_are_resumed(void **state)
{
    struct tb_control_stream a, b;
    uint32_t sent = 0, received = 0;
    for (size_t lost_at = 0; lost_at < 200; lost_at += 13) {
        tb_control_stream_open(&a, -1, -1);
        tb_control_stream_open(&b, -1, -1);
        tb_control_stream_keep(&a);
        tb_control_stream_keep(&b);
        for (sent = received = 0; sent < 20; sent++)
            put_number(&a, sent);
        carry(&a, &b, lost_at);
        size_t length;
        tb_control_stream_take(&a, 100, &length); /* gone with the stream */
        expect_numbers(&b, &received);
        put_number(&a, sent++);
        assert_int_equal(tb_control_stream_resume(&a, -1, -1, b.sequence_in), TB_OK);
        assert_int_equal(tb_control_stream_resume(&b, -1, -1, a.sequence_in), TB_OK);
        carry(&a, &b, SIZE_MAX);
        expect_numbers(&b, &received);
        assert_int_equal(received, 21);
        assert_false(tb_control_stream_tell_heard(&b, 100));
        assert_true(tb_control_stream_tell_heard(&b, 1));
        carry(&b, &a, SIZE_MAX);
        struct tb_control_frame frame;
        assert_int_equal(tb_control_stream_next(&a, &frame), TB_OK);
        assert_int_equal(frame.kind, TB_CONTROL_HEARD);
        tb_control_stream_heard(&a, tb_get_u32(&frame.fields));
        assert_int_equal(a.queued_end, 0);
        assert_int_equal(tb_control_stream_resume(&a, -1, -1, 3), TB_ERR_PROTOCOL); /* which nobody has any more */
        assert_int_equal(tb_control_stream_resume(&a, -1, -1, sent + 1), TB_ERR_PROTOCOL); /* nor yet */
        assert_int_equal(tb_control_stream_heard(&a, sent + 1), TB_ERR_PROTOCOL);
        assert_int_equal(tb_control_stream_keep(&a), TB_ERR_PROTOCOL); /* too late */
        tb_control_stream_close(&a);
        tb_control_stream_close(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(setup_survives_the_wire),      cmocka_unit_test(longer_setups_are_of_other_versions),
        cmocka_unit_test(damaged_setup_does_no_harm),   cmocka_unit_test(frames_arrive_in_pieces),
        cmocka_unit_test(long_frames_wait_for_room),    cmocka_unit_test(preamble_is_found_in_noise),
        cmocka_unit_test(endless_noise_is_no_preamble), cmocka_unit_test(garbage_is_refused),
        cmocka_unit_test(lost_streams_are_resumed),     cmocka_unit_test(one_that_keeps_nothing),
    };
    tb_param_load();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
