/* Outputs and input of ranks: the test holds the ranks' ends of the pipes, and time. */
#include "agent/outputs.h"
#include "agent/rank_input.h"
#include "remote/virtual_loop_test.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <unistd.h>

#define HOLD   1000000u
#define WINDOW 100000u
#define RANKS  2u

struct world {
    struct virtual_loop t;
    struct tb_outputs outputs;
    int pipes[RANKS][2]; /* the ranks' ends of standard output and error */
    char text[400000];   /* "RANK.STREAM:bytes" of each call */
    size_t length;
    size_t bytes;
    int events, heard, ended;
};

static void written(void *context, uint32_t rank, enum tb_output_stream stream, const void *bytes, size_t length)
{
    struct world *w = context;
    w->length += (size_t)sprintf(w->text + w->length, "%u.%d:", rank, (int)stream);
    memcpy(w->text + w->length, bytes, length);
    w->length += length;
    w->text[w->length] = 0;
    w->bytes += length;
    w->events++;
}

static void heard(void *context)
{
    ((struct world *)context)->heard++;
}

static void ended(void *context)
{
    ((struct world *)context)->ended++;
}

static struct world *world_open(void)
{
    struct world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    const struct tb_outputs_events events = {.context = w, .written = written, .heard = heard, .ended = ended};
    assert_int_equal(virtual_loop_open(&w->t), TB_OK);
    tb_outputs_open(&w->outputs, &w->t.loop, &events);
    assert_int_equal(tb_outputs_make(&w->outputs, RANKS, HOLD), TB_OK);
    tb_outputs_allow(&w->outputs, WINDOW);
    for (uint32_t i = 0; i < RANKS; i++)
        for (int k = 0; k < 2; k++) {
            int ends[2];
            assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
            w->pipes[i][k] = ends[1];
            assert_int_equal(
                tb_outputs_add(&w->outputs, i, 10 + i, k == 0 ? TB_OUTPUT_STANDARD : TB_OUTPUT_ERROR, ends[0]), TB_OK);
        }
    return w;
}

static void world_close(struct world *w)
{
    for (uint32_t i = 0; i < RANKS; i++)
        for (int k = 0; k < 2; k++)
            if (w->pipes[i][k] >= 0)
                close(w->pipes[i][k]);
    tb_outputs_close(&w->outputs);
    virtual_loop_close(&w->t);
    free(w);
}

static void say(struct world *w, uint32_t local, int stream, const char *text)
{
    assert_int_equal(write(w->pipes[local][stream - 1], text, strlen(text)), strlen(text));
}

static void expect(struct world *w, const char *text)
{
    assert_string_equal(w->text, text);
    w->length = 0;
    w->text[0] = 0;
}

/* ---- outputs ----------------------------------------------------------------------------------------------------- */

static void whole_lines_are_handed_up(void **state)
{
    struct world *w = world_open();
    say(w, 0, 1, "one\ntwo");
    virtual_loop_turn(&w->t);
    expect(w, "10.1:one\n");
    say(w, 0, 1, "\n");
    virtual_loop_turn(&w->t);
    say(w, 1, 2, "three\n");
    virtual_loop_turn(&w->t);
    expect(w, "10.1:two\n11.2:three\n");
    assert_int_equal(w->events, 3); /* the pieces of a line go out together */
    assert_int_equal(w->outputs.window, WINDOW - w->bytes);
    world_close(w);
}

static void unfinished_lines_wait_for_a_while(void **state)
{
    struct world *w = world_open();
    say(w, 0, 1, "name? ");
    virtual_loop_turn(&w->t);
    virtual_loop_pass(&w->t, HOLD / 2);
    say(w, 1, 1, "later");
    virtual_loop_turn(&w->t);
    expect(w, "");
    virtual_loop_pass(&w->t, HOLD / 2);
    expect(w, "10.1:name? ");
    virtual_loop_pass(&w->t, HOLD / 2 - 1);
    expect(w, "");
    virtual_loop_pass(&w->t, 1);
    expect(w, "11.1:later");
    world_close(w);
}

static void a_closed_window_stops_the_reading(void **state)
{
    struct world *w = world_open();
    char line[1000];
    memset(line, 'x', sizeof line);
    line[sizeof line - 1] = '\n';
    fcntl(w->pipes[0][0], F_SETFL, O_NONBLOCK);
    size_t sent = 0;
    for (int i = 0; i < 1000; i++) {
        ssize_t n = write(w->pipes[0][0], line, sizeof line);
        sent += n > 0 ? (size_t)n : 0;
        virtual_loop_pass(&w->t, 10 * HOLD); /* so much later that it is not let rest */
    }
    assert_in_range(w->bytes, WINDOW, WINDOW + 32768); /* no more than one read beyond it */
    assert_true(w->outputs.window <= 0);
    size_t before = w->bytes;
    tb_outputs_allow(&w->outputs, 1 << 20);
    virtual_loop_turn(&w->t);
    assert_true(w->bytes > before);
    virtual_loop_turn(&w->t);
    virtual_loop_pass(&w->t, HOLD);
    assert_int_equal(w->bytes, sent);
    world_close(w);
}

/* Line by line, each as soon as the last was taken: soon they are taken together, and none is lost or late. */
static void a_brisk_writer_is_read_from_time_to_time(void **state)
{
    struct world *w = world_open();
    for (int i = 0; i < 10; i++) {
        say(w, 0, 1, "a line\n");
        virtual_loop_turn(&w->t);
        assert_int_equal(w->events, i + 1); /* a few lines come at once */
    }
    for (int i = 0; i < 990; i++) {
        say(w, 0, 1, "a line\n");
        virtual_loop_pass(&w->t, 1000);
    }
    assert_in_range(w->events, 12, 60);
    assert_true(w->bytes < 1000 * 7);
    say(w, 1, 1, "another rank\n");
    int before = w->events;
    virtual_loop_turn(&w->t);
    assert_int_equal(w->events, before + 1); /* others are not kept waiting */
    virtual_loop_pass(&w->t, 1000000);
    assert_int_equal(w->bytes, 1000 * 7 + 13);
    say(w, 0, 1, "later\n"); /* it has rested long enough */
    virtual_loop_pass(&w->t, 10 * HOLD);
    before = w->events;
    say(w, 0, 1, "later\n");
    virtual_loop_turn(&w->t);
    assert_int_equal(w->events, before + 1);
    world_close(w);
}

/* A window that closes and opens while somebody rests, and the end of the stream then. */
static void a_brisk_writer_ends(void **state)
{
    struct world *w = world_open();
    for (int i = 0; i < 100; i++) {
        say(w, 0, 1, "a line\n");
        virtual_loop_turn(&w->t);
    }
    assert_true(w->bytes < 700);
    w->outputs.window = 0;
    virtual_loop_pass(&w->t, 1000000);
    assert_true(w->bytes < 700);
    tb_outputs_allow(&w->outputs, WINDOW);
    virtual_loop_turn(&w->t);
    assert_int_equal(w->bytes, 700);
    for (int i = 0; i < 100; i++) {
        say(w, 0, 1, "a line\n");
        virtual_loop_turn(&w->t);
    }
    say(w, 0, 1, "half");
    close(w->pipes[0][0]);
    w->pipes[0][0] = -1;
    virtual_loop_pass(&w->t, 1000000);
    assert_int_equal(w->bytes, 1404);
    assert_int_equal(w->ended, 1);
    for (int i = 0; i < 100; i++) {
        say(w, 1, 1, "a line\n");
        virtual_loop_turn(&w->t);
    }
    tb_outputs_drain(&w->outputs);
    assert_int_equal(w->bytes, 2104);
    virtual_loop_pass(&w->t, 1000000);
    world_close(w);
}

/* The end of the line is in the pipe; it is we who may not read it. */
static void no_line_is_torn_while_nobody_reads(void **state)
{
    struct world *w = world_open();
    say(w, 0, 1, "half");
    virtual_loop_turn(&w->t);
    w->outputs.window = 0;
    say(w, 0, 1, " and half\n");
    virtual_loop_turn(&w->t);
    virtual_loop_pass(&w->t, 3 * HOLD);
    expect(w, "");
    tb_outputs_allow(&w->outputs, WINDOW);
    virtual_loop_turn(&w->t);
    expect(w, "10.1:half and half\n");
    world_close(w);
}

static void ends_are_told(void **state)
{
    struct world *w = world_open();
    say(w, 0, 1, "last words");
    close(w->pipes[0][0]);
    w->pipes[0][0] = -1;
    virtual_loop_turn(&w->t);
    expect(w, "10.1:last words");
    assert_int_equal(w->heard, 1);
    assert_int_equal(w->ended, 1);
    assert_true(tb_outputs_any_open(&w->outputs));
    world_close(w);
}

static void draining_knows_no_window(void **state)
{
    struct world *w = world_open();
    w->outputs.window = 0;
    say(w, 0, 1, "a\nb");
    say(w, 1, 2, "c\n");
    virtual_loop_turn(&w->t);
    expect(w, "");
    tb_outputs_drain(&w->outputs);
    expect(w, "10.1:a\n10.1:b11.2:c\n");
    assert_int_equal(w->outputs.window, -5);
    assert_false(tb_outputs_any_open(&w->outputs));
    assert_int_equal(w->heard + w->ended, 0); /* who drains knows */
    world_close(w);
}

/* ---- input ------------------------------------------------------------------------------------------------------- */

struct input_world {
    struct virtual_loop t;
    struct tb_rank_input input;
    int reader;
    size_t taken;
};

static void taken(void *context, size_t bytes)
{
    ((struct input_world *)context)->taken += bytes;
}

static void input_open(struct input_world *w)
{
    const struct tb_rank_input_events events = {.context = w, .taken = taken};
    int ends[2];
    *w = (struct input_world){0};
    assert_int_equal(virtual_loop_open(&w->t), TB_OK);
    tb_rank_input_open(&w->input, &w->t.loop, &events);
    assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    w->reader = ends[0];
    tb_rank_input_begin(&w->input, ends[1]);
}

static void input_close(struct input_world *w)
{
    tb_rank_input_close(&w->input);
    virtual_loop_close(&w->t);
    if (w->reader >= 0)
        close(w->reader);
}

/* More than the pipe holds: the rest follows when the rank reads, in order, and then the end. */
static void input_waits_for_its_reader(void **state)
{
    struct input_world w;
    input_open(&w);
    static uint8_t all[300000], got[65536];
    for (size_t i = 0; i < sizeof all; i++)
        all[i] = (uint8_t)(i * 7 + i / 256);
    for (size_t at = 0; at < sizeof all; at += 60000)
        assert_int_equal(tb_rank_input_add(&w.input, all + at, 60000), TB_OK);
    assert_int_equal(tb_rank_input_add(&w.input, NULL, 0), TB_OK);
    assert_true(w.taken > 0 && w.taken < sizeof all);
    size_t have = 0;
    ssize_t n;
    for (int i = 0; i < 1000; i++) {
        virtual_loop_turn(&w.t);
        n = read(w.reader, got, sizeof got);
        if (n <= 0)
            break;
        assert_memory_equal(got, all + have, (size_t)n);
        have += (size_t)n;
    }
    assert_int_equal(n, 0); /* the end has come */
    assert_int_equal(have, sizeof all);
    assert_int_equal(w.taken, sizeof all);
    input_close(&w);
}

/* A launcher that does not wait for room is not believed for ever. */
static void input_is_bounded(void **state)
{
    struct input_world w;
    input_open(&w);
    static char many[1 << 20];
    int rc = TB_OK, pieces = 0;
    for (; rc == TB_OK && pieces < 64; pieces++)
        rc = tb_rank_input_add(&w.input, many, sizeof many);
    assert_int_equal(rc, TB_ERR_LIMIT);
    assert_in_range(pieces, 16, 18);
    input_close(&w);
}

/* The launcher may go on sending: nobody reads it, but it is taken. */
static void input_that_nobody_reads_is_taken(void **state)
{
    struct input_world w;
    input_open(&w);
    static char many[200000];
    signal(SIGPIPE, SIG_IGN);
    assert_int_equal(tb_rank_input_add(&w.input, many, sizeof many), TB_OK);
    close(w.reader);
    w.reader = -1;
    virtual_loop_turn(&w.t);
    assert_int_equal(w.taken, sizeof many);
    assert_int_equal(w.input.descriptor, -1);
    assert_int_equal(tb_rank_input_add(&w.input, "more", 4), TB_OK);
    assert_int_equal(w.taken, sizeof many + 4);
    input_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_lines_are_handed_up),
        cmocka_unit_test(unfinished_lines_wait_for_a_while),
        cmocka_unit_test(a_closed_window_stops_the_reading),
        cmocka_unit_test(a_brisk_writer_is_read_from_time_to_time),
        cmocka_unit_test(a_brisk_writer_ends),
        cmocka_unit_test(no_line_is_torn_while_nobody_reads),
        cmocka_unit_test(ends_are_told),
        cmocka_unit_test(draining_knows_no_window),
        cmocka_unit_test(input_waits_for_its_reader),
        cmocka_unit_test(input_is_bounded),
        cmocka_unit_test(input_that_nobody_reads_is_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
